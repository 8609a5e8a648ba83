# SPDX-License-Identifier: GPL-3.0-or-later
"""Makes tiny random models with transformers and records their logits, routing and greedy text.

Writes models/. The formats are described in README.md. Every number that a loader could have
hard-coded is odd here (eps 1e-2, rope theta 3000, vocabulary 499), every norm weight is random,
and the prompt is longer than the sliding windows.
"""

import json
import shutil
from pathlib import Path

import torch
from tokenizers import decoders, normalizers, processors
from transformers import AutoModelForCausalLM, MixtralConfig, OlmoeConfig, Qwen3MoeConfig

import make_tokenizers

HERE = Path(__file__).resolve().parent
OUT = HERE / "models"
PROMPT_LENGTH, GREEDY_LENGTH = 24, 64
LOGIT_MARGIN, ROUTER_MARGIN = 1e-3, 1e-4

COMMON = dict(vocab_size=499, hidden_size=64, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
              rms_norm_eps=1e-2, max_position_embeddings=256)
TINY = dict(COMMON, vocab_size=283, hidden_size=32)


def rope(**more):
    return {"rope_parameters": {"rope_type": "default", "rope_theta": 3000.0, **more}}


# name, configuration class, stored dtype, layout ("both": a sharded and a stacked folder), options
MODELS = [
    ("olmoe", OlmoeConfig, "bfloat16", "per_expert", dict(
        COMMON, **rope(), num_experts=8, num_experts_per_tok=2, intermediate_size=32, norm_topk_prob=False, clip_qkv=0.8,
        tie_word_embeddings=False)),
    ("olmoe-norm", OlmoeConfig, "float16", "per_expert", dict(
        COMMON, **rope(rope_type="linear", factor=2.5), num_key_value_heads=1, num_experts=8, num_experts_per_tok=2,
        intermediate_size=40, norm_topk_prob=True, clip_qkv=None, tie_word_embeddings=True)),
    ("qwen3moe", Qwen3MoeConfig, "bfloat16", "per_expert", dict(
        COMMON, **rope(), head_dim=32, num_experts=8, num_experts_per_tok=2, moe_intermediate_size=32, intermediate_size=96,
        norm_topk_prob=True, tie_word_embeddings=True)),
    ("qwen3moe-dense", Qwen3MoeConfig, "float32", "per_expert", dict(
        COMMON, **rope(), hidden_size=32, num_hidden_layers=4, head_dim=16, num_experts=12, num_experts_per_tok=3,
        moe_intermediate_size=32, intermediate_size=64, decoder_sparse_step=2, mlp_only_layers=[3], norm_topk_prob=False,
        tie_word_embeddings=True)),
    ("mixtral", MixtralConfig, "bfloat16", "per_expert", dict(
        COMMON, **rope(), num_local_experts=8, num_experts_per_tok=2, intermediate_size=32, sliding_window=8,
        tie_word_embeddings=False)),
    ("mixtral-odd", MixtralConfig, "float16", "per_expert", dict(
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
]

STYLE = {  # per family: chat template, special tokens, which of them start and end a text
    "olmoe": ("olmoe.jinja", ["<|endoftext|>", "<|padding|>", "<|user|>", "<|assistant|>", "<|system|>"],
              "<|endoftext|>", ["<|endoftext|>"]),
    "qwen3_moe": ("qwen3.jinja", ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<think>", "</think>"],
                  None, ["<|im_end|>", "<|endoftext|>"]),
    "mixtral": ("mixtral.jinja", ["<unk>", "<s>", "</s>"], "<s>", ["</s>"]),
}


def make_tokenizer(family, folder, vocab_size):
    """A byte-level tokenizer that leaves some ids of the model's vocabulary unused."""
    _, special, bos, eos = STYLE[family]
    t = make_tokenizers
    if family == "qwen3_moe":
        pre_tokenizer, normalizer = t.split_then_bytes(t.QWEN2_PATTERN), normalizers.NFC()
    else:
        pre_tokenizer, normalizer = t.byte_level(), normalizers.NFC() if family == "olmoe" else None
    tokenizer = t.train(pre_tokenizer, normalizer, vocab_size - len(special) - 7)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=False)
    tokenizer.add_special_tokens([t.special(s) for s in special])
    if family == "mixtral":
        tokenizer.post_processor = processors.Sequence([
            processors.ByteLevel(trim_offsets=False),
            processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", tokenizer.token_to_id("<s>"))])])
    data = json.loads(tokenizer.to_str())
    (folder / "tokenizer.json").write_text(
        json.dumps(data, ensure_ascii=False, separators=(",", ":")) + "\n", encoding="utf-8")
    write_json(folder / "tokenizer_config.json", {
        "add_bos_token": family == "mixtral", "bos_token": bos, "clean_up_tokenization_spaces": False, "eos_token": eos[0],
        "model_max_length": 256, "pad_token": special[0], "tokenizer_class": "PreTrainedTokenizerFast"})
    ids = [tokenizer.token_to_id(s) for s in eos]
    return tokenizer.token_to_id(bos) if bos else None, ids, tokenizer.token_to_id(special[0])


def write_json(path, value):
    path.write_text(json.dumps(value, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def randomise(model, seed, dtype):
    """Sets every parameter, and rounds it to the dtype in which it will be stored."""
    generator = torch.Generator().manual_seed(seed)
    config = model.config
    for name, parameter in sorted(model.named_parameters()):
        if "norm" in name:
            value = 0.5 + torch.rand(parameter.shape, generator=generator)
        else:
            value = torch.randn(parameter.shape, generator=generator)
            if "embed_tokens" in name:
                value *= 0.25 if config.tie_word_embeddings else 0.5
            elif "lm_head" in name:
                value *= 2.0 / config.hidden_size ** 0.5
            else:
                value *= 1.4 / parameter.shape[-1] ** 0.5
        with torch.no_grad():
            parameter.copy_(value.to(dtype).float())
    model.tie_weights()


class Recorder:
    """Collects what passes through the model in one forward."""

    def __init__(self, model):
        self.hidden, self.routing = {}, {}
        base = model.model
        base.embed_tokens.register_forward_hook(self.keep("embed"))
        base.norm.register_forward_hook(self.keep("norm"))
        for number, layer in enumerate(base.layers):
            layer.register_forward_hook(self.keep(f"layer.{number}"))
            layer.post_attention_layernorm.register_forward_hook(self.keep(f"attn.{number}", of_input=True))
            if hasattr(layer.mlp, "experts"):
                layer.mlp.gate.register_forward_hook(self.route(number))

    def keep(self, name, of_input=False):
        def hook(_, inputs, output):
            value = inputs[0] if of_input else output[0] if isinstance(output, tuple) else output
            self.hidden[name] = value[0].detach().clone()
        return hook

    def route(self, layer):
        def hook(_, inputs, output):
            self.routing[layer] = tuple(value.detach().clone() for value in output)  # logits, weights, experts
        return hook


def forward(model, ids):
    with torch.no_grad():
        return model(input_ids=torch.tensor([ids]), use_cache=False).logits[0]


def relative_margin(logits):
    top = logits.topk(2).values
    return float((top[0] - top[1]) / logits.abs().max())


def router_gap(recorder):
    """Smallest step between neighbours among the best k + 1 router logits of any token."""
    gap = float("inf")
    for logits, weights, experts in recorder.routing.values():
        best = logits.topk(experts.shape[-1] + 1).values
        gap = min(gap, float((best[:, :-1] - best[:, 1:]).min()))
        assert torch.equal(logits.topk(experts.shape[-1]).indices, experts)
    return gap


def floats(tensor):
    return [float("%.9g" % value) for value in tensor.tolist()]


def table(tensor):
    return [floats(row) for row in tensor]


def routing(recorder, with_logits):
    out = []
    for layer, (logits, weights, experts) in sorted(recorder.routing.items()):
        entry = {"layer": layer, "experts": experts.tolist(), "weights": table(weights)}
        if with_logits:
            entry["logits"] = table(logits)
        out.append(entry)
    return out


def measure(model, prompt):
    """The expected values, or None when some decision is too close to call."""
    recorder = Recorder(model)
    prompt_logits = forward(model, prompt)
    at_prompt = dict(recorder.hidden)
    routing_at_prompt = routing(recorder, True)
    ids, margin = list(prompt), float("inf")
    for _ in range(GREEDY_LENGTH):
        logits = forward(model, ids)[-1]
        margin = min(margin, relative_margin(logits))
        if margin <= LOGIT_MARGIN:
            return None
        ids.append(int(logits.argmax()))
    gap = router_gap(recorder)  # of the longest forward: prompt and all but the last token
    greedy = ids[len(prompt):]
    if gap <= ROUTER_MARGIN or len(set(greedy)) < 12:
        return None
    if min(relative_margin(row) for row in prompt_logits) <= LOGIT_MARGIN:
        return None
    order = ["embed", *[f"{kind}.{n}" for n in range(len(model.model.layers)) for kind in ("attn", "layer")], "norm"]
    return {
        "prompt": prompt,
        "logits": [{"position": p, "values": floats(prompt_logits[p])} for p in range(len(prompt) - 4, len(prompt))],
        "argmax": prompt_logits.argmax(-1).tolist(),
        "logsumexp": floats(prompt_logits.double().logsumexp(-1)),
        "hidden": [{"at": name, "values": floats(at_prompt[name][-1])} for name in order],
        "routing": routing_at_prompt,
        "greedy": greedy,
        "greedy_routing": routing(recorder, False),
        "margins": {"top2": float("%.3g" % margin), "router": float("%.3g" % gap)},
    }, prompt_logits


def load(folder, dtype=torch.float32):
    model = AutoModelForCausalLM.from_pretrained(
        folder, dtype=dtype, attn_implementation="eager", experts_implementation="eager")
    return model.eval()


def to_old_config(config):
    """The keys as transformers 4.x wrote them."""
    old = dict(config)
    parameters = old.pop("rope_parameters")
    old["rope_theta"] = parameters["rope_theta"]
    linear = parameters["rope_type"] == "linear"
    old["rope_scaling"] = {"type": "linear", "factor": parameters["factor"]} if linear else None
    old["torch_dtype"] = old.pop("dtype")
    old["transformers_version"] = "4.51.0"
    if old["model_type"] == "qwen3_moe":
        old["num_experts"] = old.pop("num_local_experts")
        del old["norm_topk_prob"]  # absent means false
        old.update(use_sliding_window=False, sliding_window=4, max_window_layers=1)  # switched off: to be ignored
    if old["model_type"] == "mixtral" and old.get("head_dim") is None:
        old.pop("head_dim", None)
    return dict(sorted(old.items()))


def save(model, folder, dtype, stacked, sharded, eos):
    folder.mkdir(parents=True)
    stored = model.to(dtype)
    stored.save_pretrained(folder, save_original_format=not stacked, max_shard_size="40KB" if sharded else "1GB")
    model.to(torch.float32)
    for extra in ("generation_config.json",):
        write_json(folder / extra, {"eos_token_id": eos if len(eos) > 1 else eos[0], "do_sample": True, "temperature": 0.7,
                                    "top_k": 20, "top_p": 0.8})
    config = json.loads((folder / "config.json").read_text())
    if sharded:
        write_json(folder / "config.json", to_old_config(config))


def traits(config, values, tiny_sharded):
    family = config.model_type
    out = ["gqa", "eps 1e-2", "rope_theta 3000", "vocab not a multiple of 32, larger than the tokenizer",
           "tied embeddings" if config.tie_word_embeddings else "untied embeddings"]
    for key in ("norm_topk_prob", "clip_qkv", "sliding_window", "head_dim", "mlp_only_layers", "decoder_sparse_step"):
        if key in values:
            out.append(f"{key} {json.dumps(values[key])}")
    parameters = values["rope_parameters"]
    if parameters["rope_type"] != "default":
        out.append(f"rope {parameters['rope_type']} factor {parameters['factor']}")
    if tiny_sharded and family == "qwen3_moe":
        out[out.index("norm_topk_prob false")] = "norm_topk_prob absent (false)"
        out.append("sliding_window given but switched off")
    return out


def generate_one(name, config_class, dtype_name, layout, values):
    dtype = getattr(torch, dtype_name)
    family = config_class.model_type
    folders = [(f"{name}-sharded", False, True), (f"{name}-stacked", True, False)] if layout == "both" else [(name, False, False)]
    first = OUT / folders[0][0]
    prompt_generator = torch.Generator().manual_seed(len(name))
    prompt = torch.randint(0, values["vocab_size"], (PROMPT_LENGTH,), generator=prompt_generator).tolist()

    for seed in range(1, 500):
        model = AutoModelForCausalLM.from_config(
            config_class(**values), attn_implementation="eager", experts_implementation="eager").eval()
        randomise(model, seed, dtype)
        if measure(model, prompt):
            break
    else:
        raise SystemExit(f"{name}: no seed with clear decisions")

    entries, reference = [], None
    scratch = OUT / "scratch"
    scratch.mkdir()
    bos, eos, pad = make_tokenizer(family, scratch, values["vocab_size"])
    model.config.bos_token_id, model.config.pad_token_id = bos, pad
    model.config.eos_token_id = eos[-1]  # generation_config.json may have more, and wins
    for folder_name, stacked, sharded in folders:
        folder = OUT / folder_name
        fresh = AutoModelForCausalLM.from_config(model.config, attn_implementation="eager", experts_implementation="eager").eval()
        randomise(fresh, seed, dtype)
        save(fresh, folder, dtype, stacked, sharded, eos)
        for part in scratch.iterdir():
            shutil.copy(part, folder)
        shutil.copy(HERE / "templates" / STYLE[family][0], folder / "chat_template.jinja")

        loaded = load(folder)  # what counts is what the files say
        expected, logits = measure(loaded, prompt)
        if reference is None:
            reference = logits
            exact = forward(load(folder).double(), prompt)
            expected["f64_error"] = float("%.3g" % ((exact - logits).abs().max(-1).values / logits.abs().max(-1).values).max())
            text = ",\n".join(f'"{key}":{json.dumps(value, separators=(",", ":"))}' for key, value in expected.items())
            (folder / "expected.json").write_text("{" + text + "}\n")
        assert torch.equal(reference, logits), f"{folder_name} differs from {folders[0][0]}"
        rows = [values["hidden_size"], values.get("moe_intermediate_size", values["intermediate_size"])]
        rows.append(loaded.model.layers[0].self_attn.o_proj.weight.shape[1])
        entries.append({
            "name": folder_name, "family": family, "layout": "stacked" if stacked else "per_expert",
            "files": len(list(folder.glob("*.safetensors"))), "config_style": "4.x" if sharded else "5.x", "dtype": dtype_name,
            "expected": f"{folders[0][0]}/expected.json", "q8_ok": all(n % 32 == 0 for n in rows),
            "traits": traits(model.config, values, sharded)})
        size = sum(f.stat().st_size for f in folder.iterdir())
        print(f"{folder_name}: seed {seed}, {size / 1000:.0f} kB, margins {expected['margins']}, "
              f"{len(set(expected['greedy']))} different tokens, f64 error {expected.get('f64_error', '')}", flush=True)
    shutil.rmtree(scratch)
    return entries


def main():
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    if OUT.exists():
        shutil.rmtree(OUT)
    OUT.mkdir()
    index = [entry for model in MODELS for entry in generate_one(*model)]
    write_json(OUT / "index.json", index)


if __name__ == "__main__":
    main()
