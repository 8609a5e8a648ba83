# SPDX-License-Identifier: GPL-3.0-or-later
"""The tiny models: their configurations, tokenizers and templates, and how older versions wrote the configuration.

Every number that a loader could have hard-coded is odd here, and every switch of a family is on in
one of its models and off in another.
"""

import json
from typing import NamedTuple

from transformers import (
    DeepseekV2Config, DeepseekV3Config, Dots1Config, Ernie4_5_MoeConfig, Glm4MoeConfig, GptOssConfig, GraniteMoeConfig,
    GraniteMoeSharedConfig, HunYuanMoEV1Config, Llama4TextConfig, LlamaConfig, MiniMaxM2Config, MixtralConfig, OlmoeConfig,
    PhimoeConfig, Qwen2Config, Qwen2MoeConfig, Qwen3Config, Qwen3MoeConfig)

COMMON = dict(vocab_size=499, hidden_size=64, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
              rms_norm_eps=1e-2, max_position_embeddings=256)
TINY = dict(COMMON, vocab_size=283, hidden_size=32)


def rope(**more):
    return {"rope_parameters": {"rope_type": "default", "rope_theta": 3000.0, **more}}


def yarn(factor, original, **more):
    return rope(rope_type="yarn", factor=factor, original_max_position_embeddings=original, **more)


LLAMA3 = rope(rope_type="llama3", factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0, original_max_position_embeddings=16)
MLA = dict(TINY, num_key_value_heads=4, kv_lora_rank=32, qk_nope_head_dim=16, qk_rope_head_dim=8)


class Model(NamedTuple):
    name: str
    config: type
    dtype: str
    # plain: one folder. sharded: one of several files, with a 4.x configuration. both: a sharded and a
    # stacked folder. fp8, mxfp4: one folder of packed weights.
    layout: str
    values: dict
    gains: dict = {}  # part of a parameter's name: factor on its random values


MODELS = [Model(*model) for model in [
    ("olmoe", OlmoeConfig, "bfloat16", "plain", dict(
        COMMON, **rope(), num_experts=8, num_experts_per_tok=2, intermediate_size=32, norm_topk_prob=False, clip_qkv=0.8,
        tie_word_embeddings=False)),
    ("olmoe-norm", OlmoeConfig, "float16", "plain", dict(
        COMMON, **rope(rope_type="linear", factor=2.5), num_key_value_heads=1, num_experts=8, num_experts_per_tok=2,
        intermediate_size=40, norm_topk_prob=True, clip_qkv=None, tie_word_embeddings=True)),
    ("qwen3moe", Qwen3MoeConfig, "bfloat16", "plain", dict(
        COMMON, **rope(), head_dim=32, num_experts=8, num_experts_per_tok=2, moe_intermediate_size=32, intermediate_size=96,
        norm_topk_prob=True, tie_word_embeddings=True)),
    ("qwen3moe-dense", Qwen3MoeConfig, "float32", "plain", dict(
        COMMON, **rope(), hidden_size=32, num_hidden_layers=4, head_dim=16, num_experts=12, num_experts_per_tok=3,
        moe_intermediate_size=32, intermediate_size=64, decoder_sparse_step=2, mlp_only_layers=[3], norm_topk_prob=False,
        tie_word_embeddings=True)),
    ("mixtral", MixtralConfig, "bfloat16", "plain", dict(
        COMMON, **rope(), num_local_experts=8, num_experts_per_tok=2, intermediate_size=32, sliding_window=8,
        tie_word_embeddings=False)),
    ("mixtral-odd", MixtralConfig, "float16", "plain", dict(
        COMMON, **rope(), head_dim=24, num_local_experts=7, num_experts_per_tok=3, intermediate_size=40, sliding_window=None,
        tie_word_embeddings=True)),
    ("olmoe-tiny", OlmoeConfig, "float32", "both", dict(
        TINY, **rope(rope_type="linear", factor=4.0), num_experts=4, num_experts_per_tok=2, intermediate_size=32,
        norm_topk_prob=False, clip_qkv=1.0, tie_word_embeddings=True)),
    ("qwen3moe-tiny", Qwen3MoeConfig, "float32", "both", dict(
        TINY, **rope(), head_dim=16, num_experts=4, num_experts_per_tok=2, moe_intermediate_size=32, intermediate_size=64,
        norm_topk_prob=False, tie_word_embeddings=True)),
    ("mixtral-tiny", MixtralConfig, "float32", "both", dict(
        TINY, **rope(), num_local_experts=4, num_experts_per_tok=2, intermediate_size=32, sliding_window=6,
        tie_word_embeddings=False)),

    ("qwen2moe", Qwen2MoeConfig, "bfloat16", "plain", dict(
        TINY, **rope(), num_experts=5, num_experts_per_tok=3, moe_intermediate_size=24,
        shared_expert_intermediate_size=40, intermediate_size=56, norm_topk_prob=False, qkv_bias=True,
        tie_word_embeddings=False)),
    ("qwen2moe-tiny", Qwen2MoeConfig, "float16", "both", dict(
        TINY, **rope(), num_experts=5, num_experts_per_tok=2, moe_intermediate_size=32,
        shared_expert_intermediate_size=64, intermediate_size=96, norm_topk_prob=True, decoder_sparse_step=2,
        mlp_only_layers=[2], num_hidden_layers=3, qkv_bias=False,
        use_sliding_window=True, sliding_window=6, max_window_layers=1, tie_word_embeddings=True)),
    ("granitemoe", GraniteMoeConfig, "bfloat16", "plain", dict(
        TINY, **rope(), num_local_experts=5, num_experts_per_tok=2, intermediate_size=40, embedding_multiplier=3.0,
        residual_multiplier=0.7, attention_multiplier=0.25, logits_scaling=1.7, tie_word_embeddings=True)),
    ("granitemoe-tiny", GraniteMoeConfig, "float16", "both", dict(
        TINY, **rope(), num_local_experts=5, num_experts_per_tok=3, intermediate_size=32, embedding_multiplier=2.5,
        residual_multiplier=0.6, attention_multiplier=0.5, logits_scaling=3.0, attention_bias=True,
        tie_word_embeddings=False)),
    ("granitemoeshared", GraniteMoeSharedConfig, "bfloat16", "both", dict(
        TINY, **rope(), num_local_experts=5, num_experts_per_tok=2, intermediate_size=40, shared_intermediate_size=48,
        embedding_multiplier=3.0, residual_multiplier=0.7, attention_multiplier=0.25, logits_scaling=1.7,
        tie_word_embeddings=True)),
    ("llama", LlamaConfig, "bfloat16", "plain", dict(
        TINY, **LLAMA3, head_dim=16, intermediate_size=72, attention_bias=True, mlp_bias=True, tie_word_embeddings=False)),
    ("llama-plain", LlamaConfig, "float16", "sharded", dict(
        TINY, **LLAMA3, intermediate_size=64, attention_bias=False, mlp_bias=False,
        tie_word_embeddings=True)),
    ("qwen2", Qwen2Config, "bfloat16", "plain", dict(
        TINY, **rope(), num_hidden_layers=3, intermediate_size=72, use_sliding_window=True, sliding_window=6,
        max_window_layers=1, tie_word_embeddings=True)),
    ("qwen2-yarn", Qwen2Config, "float16", "sharded", dict(
        TINY, **yarn(4.0, 16), intermediate_size=64, tie_word_embeddings=False)),
    ("qwen3", Qwen3Config, "bfloat16", "plain", dict(
        TINY, **rope(), head_dim=16, intermediate_size=72, attention_bias=False, tie_word_embeddings=True)),
    ("qwen3-window", Qwen3Config, "float16", "sharded", dict(
        TINY, **yarn(4.0, 16), head_dim=24, intermediate_size=64, attention_bias=True,
        use_sliding_window=True, sliding_window=6, max_window_layers=1, tie_word_embeddings=False)),
    ("gpt-oss", GptOssConfig, "bfloat16", "plain", dict(
        TINY, **yarn(4.0, 40, beta_fast=32.0, beta_slow=1.0, truncate=False), num_hidden_layers=3, head_dim=16,
        intermediate_size=32, num_local_experts=4, num_experts_per_tok=2, sliding_window=6, swiglu_limit=2.0,
        tie_word_embeddings=False)),
    ("gpt-oss-mxfp4", GptOssConfig, "bfloat16", "mxfp4", dict(
        TINY, **yarn(8.0, 32, beta_fast=32.0, beta_slow=1.0, truncate=False), num_hidden_layers=3, head_dim=16,
        intermediate_size=64, num_local_experts=4, num_experts_per_tok=2, sliding_window=7, swiglu_limit=7.0,
        tie_word_embeddings=False), {"gate_up_proj": 4.0}),
    ("deepseekv2", DeepseekV2Config, "bfloat16", "plain", dict(
        MLA, **yarn(4.0, 32, beta_fast=32.0, beta_slow=1.0, mscale=0.8, mscale_all_dim=0.6), num_hidden_layers=2,
        q_lora_rank=24, v_head_dim=16, n_routed_experts=8, num_experts_per_tok=3, n_group=4, topk_group=2,
        topk_method="group_limited_greedy", routed_scaling_factor=2.5, first_k_dense_replace=1, n_shared_experts=2,
        moe_intermediate_size=24, intermediate_size=56, tie_word_embeddings=False)),
    ("deepseekv2-lite", DeepseekV2Config, "float16", "both", dict(
        MLA, **yarn(8.0, 16, beta_fast=32.0, beta_slow=1.0, mscale=0.707, mscale_all_dim=0.707), num_hidden_layers=2,
        q_lora_rank=None, v_head_dim=32, n_routed_experts=4, num_experts_per_tok=2, n_group=1, topk_group=1,
        topk_method="greedy", routed_scaling_factor=1.3, first_k_dense_replace=0, n_shared_experts=1,
        moe_intermediate_size=24, intermediate_size=64, tie_word_embeddings=True)),
    ("deepseekv3", DeepseekV3Config, "bfloat16", "plain", dict(
        MLA, **yarn(8.0, 16, beta_fast=32.0, beta_slow=1.0, mscale=1.0, mscale_all_dim=1.0), num_hidden_layers=2,
        q_lora_rank=32, v_head_dim=16, n_routed_experts=8, num_experts_per_tok=3, n_group=4, topk_group=2,
        norm_topk_prob=True, routed_scaling_factor=2.5, first_k_dense_replace=1, n_shared_experts=1, num_mtp_layers=1,
        moe_intermediate_size=24, intermediate_size=56, tie_word_embeddings=False)),
    ("deepseekv3-tiny", DeepseekV3Config, "float16", "both", dict(
        MLA, **yarn(4.0, 32, beta_fast=32.0, beta_slow=1.0, mscale=1.0, mscale_all_dim=0.5), num_hidden_layers=2,
        q_lora_rank=24, v_head_dim=32, n_routed_experts=4, num_experts_per_tok=2, n_group=2, topk_group=1,
        norm_topk_prob=False, routed_scaling_factor=1.5, first_k_dense_replace=1, n_shared_experts=2, num_mtp_layers=0,
        moe_intermediate_size=40, intermediate_size=64, tie_word_embeddings=True)),
    ("deepseekv3-fp8", DeepseekV3Config, "bfloat16", "fp8", dict(
        MLA, **yarn(8.0, 16, beta_fast=32.0, beta_slow=1.0, mscale=1.0, mscale_all_dim=1.0), num_hidden_layers=2,
        num_attention_heads=6, num_key_value_heads=6, q_lora_rank=32, v_head_dim=32, n_routed_experts=6,
        num_experts_per_tok=2, n_group=2, topk_group=1, norm_topk_prob=True, routed_scaling_factor=2.0,
        first_k_dense_replace=1, n_shared_experts=4, num_mtp_layers=1, moe_intermediate_size=40, intermediate_size=160,
        tie_word_embeddings=False)),

    ("glm4moe", Glm4MoeConfig, "bfloat16", "plain", dict(
        TINY, **rope(partial_rotary_factor=0.5), head_dim=16, n_routed_experts=6, num_experts_per_tok=3,
        n_group=1, topk_group=1, norm_topk_prob=True, routed_scaling_factor=1.8, first_k_dense_replace=1,
        n_shared_experts=2, num_mtp_layers=1, use_qk_norm=True, attention_bias=True, moe_intermediate_size=24,
        intermediate_size=56, tie_word_embeddings=False)),
    ("glm4moe-tiny", Glm4MoeConfig, "float16", "both", dict(
        TINY, **rope(partial_rotary_factor=0.5), head_dim=24, n_routed_experts=4, num_experts_per_tok=2, n_group=2,
        topk_group=1, norm_topk_prob=False, routed_scaling_factor=2.5, first_k_dense_replace=0, n_shared_experts=1,
        num_mtp_layers=0, use_qk_norm=False, attention_bias=False, moe_intermediate_size=32, intermediate_size=64,
        tie_word_embeddings=True)),
    ("ernie4-5-moe", Ernie4_5_MoeConfig, "bfloat16", "plain", dict(
        TINY, **rope(), num_hidden_layers=4, moe_num_experts=5, moe_k=3, moe_num_shared_experts=2, moe_intermediate_size=16,
        moe_layer_start_index=1, moe_layer_end_index=2, moe_layer_interval=1, intermediate_size=56, use_bias=False,
        tie_word_embeddings=True)),
    ("ernie4-5-moe-tiny", Ernie4_5_MoeConfig, "float16", "both", dict(
        TINY, **rope(), num_hidden_layers=2, moe_num_experts=5, moe_k=2, moe_num_shared_experts=1, moe_intermediate_size=40,
        moe_layer_start_index=0, moe_layer_end_index=-1, moe_layer_interval=2, intermediate_size=64, use_bias=True,
        tie_word_embeddings=False)),
    ("dots1", Dots1Config, "bfloat16", "plain", dict(
        TINY, **rope(), n_routed_experts=6, num_experts_per_tok=3, n_group=1, topk_group=1,
        norm_topk_prob=True, routed_scaling_factor=2.5, first_k_dense_replace=1, n_shared_experts=2,
        moe_intermediate_size=24, intermediate_size=56, sliding_window=6, max_window_layers=1, tie_word_embeddings=False)),
    ("dots1-tiny", Dots1Config, "float16", "both", dict(
        TINY, **rope(), head_dim=16, n_routed_experts=6, num_experts_per_tok=2, n_group=3, topk_group=2,
        norm_topk_prob=False, routed_scaling_factor=1.5, first_k_dense_replace=0, n_shared_experts=1,
        moe_intermediate_size=32, intermediate_size=64, sliding_window=None, attention_bias=True, tie_word_embeddings=True)),
    ("minimax-m2", MiniMaxM2Config, "bfloat16", "plain", dict(
        TINY, **rope(partial_rotary_factor=0.5), head_dim=16, rotary_dim=8, num_local_experts=5, num_experts_per_tok=3,
        intermediate_size=24, tie_word_embeddings=False)),
    ("minimax-m2-tiny", MiniMaxM2Config, "float16", "both", dict(
        TINY, **rope(partial_rotary_factor=0.75), head_dim=16, rotary_dim=12, num_local_experts=4, num_experts_per_tok=2,
        intermediate_size=32, tie_word_embeddings=True)),
    ("hunyuan-moe", HunYuanMoEV1Config, "bfloat16", "plain", dict(
        TINY, **rope(rope_type="dynamic", alpha=40.0, factor=1.0), head_dim=16, num_experts=5, moe_topk=3,
        intermediate_size=24, attention_bias=False, tie_word_embeddings=True)),
    ("hunyuan-moe-tiny", HunYuanMoEV1Config, "float16", "both", dict(
        TINY, **rope(rope_type="dynamic", alpha=15.0, factor=1.0), head_dim=16, num_experts=4, moe_topk=2,
        intermediate_size=32, attention_bias=True, tie_word_embeddings=False)),
    ("phimoe", PhimoeConfig, "bfloat16", "plain", dict(
        TINY, **rope(rope_type="longrope", short_factor=[1.0, 1.5, 2.5, 3.0], long_factor=[1.5, 3.0, 6.0, 9.0],
                     short_mscale=1.1, long_mscale=1.3, original_max_position_embeddings=128),
        num_local_experts=5, num_experts_per_tok=2, intermediate_size=24, router_jitter_noise=0.2, attention_bias=True,
        lm_head_bias=True, sliding_window=7, tie_word_embeddings=False)),
    ("phimoe-tiny", PhimoeConfig, "float16", "both", dict(
        TINY, **rope(rope_type="longrope", short_factor=[1.0, 1.5, 2.5, 3.0], long_factor=[1.5, 3.0, 6.0, 9.0],
                     short_mscale=1.1, long_mscale=1.3, original_max_position_embeddings=16),
        num_local_experts=4, num_experts_per_tok=2, intermediate_size=32, router_jitter_noise=0.3, attention_bias=False,
        lm_head_bias=False, sliding_window=None, tie_word_embeddings=False)),
    ("llama4", Llama4TextConfig, "bfloat16", "plain", dict(
        TINY, **LLAMA3, num_hidden_layers=4, head_dim=16, num_local_experts=4, num_experts_per_tok=1, intermediate_size=24,
        intermediate_size_mlp=56, interleave_moe_layer_step=2, use_qk_norm=True, no_rope_layer_interval=4,
        attention_chunk_size=7, attn_temperature_tuning=True, floor_scale=5, attn_scale=0.3, tie_word_embeddings=False)),
    ("llama4-top2", Llama4TextConfig, "float16", "sharded", dict(
        TINY, **rope(), head_dim=16, num_local_experts=4, num_experts_per_tok=2, intermediate_size=32,
        intermediate_size_mlp=64, interleave_moe_layer_step=1, use_qk_norm=False, no_rope_layer_interval=2,
        attention_chunk_size=9, attn_temperature_tuning=False, floor_scale=8192, attn_scale=0.1,
        tie_word_embeddings=True)),
]]

CHATML = ("chatml.jinja", ["<|endoftext|>", "<|im_start|>", "<|im_end|>"], None, ["<|im_end|>", "<|endoftext|>"])
# For each family with differences: chat template, special tokens, those that start and end a text.
STYLE = {
    "olmoe": ("olmoe.jinja", ["<|endoftext|>", "<|padding|>", "<|user|>", "<|assistant|>", "<|system|>"],
              "<|endoftext|>", ["<|endoftext|>"]),
    "qwen3_moe": ("qwen3.jinja", ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<think>", "</think>"],
                  None, ["<|im_end|>", "<|endoftext|>"]),
    "mixtral": ("mixtral.jinja", ["<unk>", "<s>", "</s>"], "<s>", ["</s>"]),
    "llama": ("llama3.jinja", ["<|begin_of_text|>", "<|end_of_text|>", "<|start_header_id|>", "<|end_header_id|>",
                               "<|eom_id|>", "<|eot_id|>"], "<|begin_of_text|>", ["<|eot_id|>", "<|end_of_text|>"]),
}
# Families whose pre-tokenizer is that of Qwen2. The others use the plain byte-level split.
QWEN2_SPLIT = {"qwen2", "qwen2_moe", "qwen3", "qwen3_moe"}

# Names of experts in folders that make_models.py does not stack.
OWN_LAYOUT = {
    "llama": "dense", "qwen2": "dense", "qwen3": "dense", "granitemoe": "granite", "granitemoeshared": "granite",
    "gpt_oss": "transposed_interleaved", "llama4_text": "transposed"}


def kept_in_float32(family, name):
    """Whether published files of the family store this tensor in float32, whatever the rest is."""
    if name.endswith("e_score_correction_bias"):
        return True
    return (family == "ernie4_5_moe" and name.endswith("mlp.gate.weight")) or name.endswith("gate.wg.weight")


def to_old_config(config):
    """The keys as transformers 4.x, or the authors' own code of that time, wrote them."""
    old = dict(config)
    family = old["model_type"]
    parameters = dict(old.pop("rope_parameters"))
    old["rope_theta"] = parameters.pop("rope_theta")
    if "partial_rotary_factor" in parameters:
        old["partial_rotary_factor"] = parameters.pop("partial_rotary_factor")
    kind = parameters.pop("rope_type")
    key = "rope_type" if family == "gpt_oss" or kind == "llama3" else "type"
    old["rope_scaling"] = None if kind == "default" else {key: kind, **parameters}
    old["torch_dtype"] = old.pop("dtype")
    old["transformers_version"] = "4.51.0"
    if family != "gpt_oss":
        old.pop("layer_types", None)
    if family == "qwen3_moe":
        old["num_experts"] = old.pop("num_local_experts")
        del old["norm_topk_prob"]  # absent means false
        # Switched off, so ignored.
        old.update(use_sliding_window=False, sliding_window=4, max_window_layers=1)
    if family == "qwen2" and not old["use_sliding_window"]:
        old.update(sliding_window=4, max_window_layers=1)
    if family == "mixtral" and old.get("head_dim") is None:
        old.pop("head_dim", None)
    if family in ("deepseek_v2", "deepseek_v3"):
        old.pop("head_dim", None)
        old.pop("qk_head_dim", None)
        old["moe_layer_freq"] = 1
        old["scoring_func"] = "softmax" if family == "deepseek_v2" else "sigmoid"
        if family == "deepseek_v3":
            old["topk_method"] = "noaux_tc"
    if family == "dots1":
        old.update(moe_layer_freq=1, scoring_func="noaux_tc")
    if family == "minimax_m2":
        del old["partial_rotary_factor"]  # rotary_dim has the value
        old.update(scoring_func="sigmoid", use_qk_norm=True, qk_norm_type="per_layer", use_routing_bias=True,
                   shared_intermediate_size=0, num_mtp_modules=3)
    if family == "hunyuan_v1_moe":
        old["moe_topk"] = [old["moe_topk"]] * old["num_hidden_layers"]
        old["moe_intermediate_size"] = [old["intermediate_size"]] * old["num_hidden_layers"]
        old["num_shared_expert"] = [1] * old["num_hidden_layers"]
        old.update(attention_head_dim=old["head_dim"], use_qk_norm=True, use_cla=False, use_mixed_mlp_moe=True)
        old["rope_scaling"].update(beta_fast=32, beta_slow=1, mscale=1.0, mscale_all_dim=1.0)
    if family == "phimoe":
        old["original_max_position_embeddings"] = old["rope_scaling"]["original_max_position_embeddings"]
    if family == "gpt_oss":
        old["experts_per_token"] = old["num_experts_per_tok"]
        old.pop("swiglu_alpha", None)
    return dict(sorted(old.items()))


TOLD = ("norm_topk_prob", "clip_qkv", "sliding_window", "head_dim", "mlp_only_layers", "decoder_sparse_step")
TOLD_OF_NEW = (
    "shared_expert_intermediate_size", "shared_intermediate_size", "n_shared_experts", "moe_num_shared_experts", "qkv_bias",
    "attention_bias", "mlp_bias", "use_bias", "lm_head_bias", "embedding_multiplier", "residual_multiplier",
    "attention_multiplier", "logits_scaling", "max_window_layers", "swiglu_limit", "q_lora_rank", "kv_lora_rank",
    "qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim", "n_group", "topk_group", "topk_method", "routed_scaling_factor",
    "first_k_dense_replace", "num_mtp_layers", "use_qk_norm", "rotary_dim", "moe_layer_start_index", "moe_layer_end_index",
    "moe_layer_interval", "router_jitter_noise", "intermediate_size_mlp", "interleave_moe_layer_step",
    "no_rope_layer_interval", "attention_chunk_size", "attn_temperature_tuning", "floor_scale", "attn_scale")


def traits(config, values, tiny_sharded):
    """What is switched on, in words."""
    family = config.model_type
    out = ["mla" if "kv_lora_rank" in values else "gqa", "eps 1e-2", "rope_theta 3000",
           "vocab not a multiple of 32, larger than the tokenizer",
           "tied embeddings" if config.tie_word_embeddings else "untied embeddings"]
    for key in TOLD:
        if key in values:
            out.append(f"{key} {json.dumps(values[key])}")
    parameters = values["rope_parameters"]
    if parameters["rope_type"] != "default":
        out.append(" ".join([f"rope {parameters['rope_type']}"] + [
            f"{key} {json.dumps(parameters[key])}" for key in parameters if key not in ("rope_type", "rope_theta")]))
    elif "partial_rotary_factor" in parameters:
        out.append(f"partial_rotary_factor {parameters['partial_rotary_factor']}")
    for key in TOLD_OF_NEW:
        if key in values:
            out.append(f"{key} {json.dumps(values[key])}")
    if tiny_sharded and family == "qwen3_moe":
        out[out.index("norm_topk_prob false")] = "norm_topk_prob absent (false)"
        out.append("sliding_window given but switched off")
    return out


