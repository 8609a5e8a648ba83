# SPDX-License-Identifier: GPL-3.0-or-later
"""Writes a trained checkpoint as a Hugging Face folder and checks it.

    python export_hf.py --out build/demo-train

makes OUT/colibri-demo from OUT/moe.pt; the check loads it with transformers'
Qwen3MoeForCausalLM and compares the logits with our own forward pass.
"""
import argparse
import json
import shutil
from pathlib import Path

import torch
from safetensors.torch import save_file

from model import Config, Model
from text import END_OF_TEXT, TURN_END, TURN_START, load_tokenizer, render

HERE = Path(__file__).resolve().parent


def load_model(path, averaged=False):
    state = torch.load(path, map_location="cpu", weights_only=False)
    model = Model(Config(**state["config"]))
    model.load_state_dict(state["model"])
    if averaged:
        with torch.no_grad():
            for p, q in zip(model.parameters(), state["average"]):
                p.copy_(q)
    return model.eval(), state


def hub_tensors(model):
    """Tensors under the names that the hub's Qwen3-MoE checkpoints use."""
    out = {}
    for name, tensor in model.state_dict().items():
        tensor = tensor.detach().float()
        if name.endswith("mlp.w13"):
            base = "model." + name.removesuffix("w13") + "experts."
            for e, both in enumerate(tensor):
                gate, up = both.chunk(2)
                out[f"{base}{e}.gate_proj.weight"] = gate.clone()
                out[f"{base}{e}.up_proj.weight"] = up.clone()
        elif name.endswith("mlp.w2"):
            for e, down in enumerate(tensor):
                out["model." + name.removesuffix("w2") + f"experts.{e}.down_proj.weight"] = down.clone()
        else:
            out[name if name == "lm_head.weight" else "model." + name] = tensor.clone()
    return out


def hub_config(c, ids):
    return {
        "architectures": ["Qwen3MoeForCausalLM"], "model_type": "qwen3_moe",
        "attention_bias": False, "attention_dropout": 0.0, "decoder_sparse_step": 1, "head_dim": c.head_dim,
        "hidden_act": "silu", "hidden_size": c.hidden_size, "initializer_range": 0.02,
        # Unused, since every layer is sparse, but the key is expected.
        "intermediate_size": c.num_experts_per_tok * c.moe_intermediate_size,
        "max_position_embeddings": c.max_position_embeddings, "max_window_layers": c.num_hidden_layers,
        "mlp_only_layers": [], "moe_intermediate_size": c.moe_intermediate_size, "norm_topk_prob": True,
        "num_attention_heads": c.num_attention_heads, "num_experts": c.num_experts,
        "num_experts_per_tok": c.num_experts_per_tok, "num_hidden_layers": c.num_hidden_layers,
        "num_key_value_heads": c.num_key_value_heads, "output_router_logits": False, "rms_norm_eps": c.rms_norm_eps,
        "rope_scaling": None, "rope_theta": c.rope_theta, "router_aux_loss_coef": 0.001, "sliding_window": None,
        "tie_word_embeddings": False, "torch_dtype": "float32", "use_cache": True, "use_sliding_window": False,
        "vocab_size": c.vocab_size, "bos_token_id": None, "eos_token_id": ids[TURN_END], "pad_token_id": ids[END_OF_TEXT],
    }


def write_json(path, value):
    path.write_text(json.dumps(value, indent=2) + "\n", encoding="utf-8")


def export(model, tokenizer_path, folder):
    temporary = folder.with_name(folder.name + ".tmp")
    shutil.rmtree(temporary, ignore_errors=True)
    temporary.mkdir(parents=True)
    tokenizer = load_tokenizer(tokenizer_path)
    ids = {t: tokenizer.token_to_id(t) for t in (END_OF_TEXT, TURN_START, TURN_END)}
    c = model.config
    save_file(hub_tensors(model), temporary / "model.safetensors", metadata={"format": "pt"})
    write_json(temporary / "config.json", hub_config(c, ids))
    write_json(temporary / "generation_config.json", {
        "do_sample": True, "temperature": 0.7, "top_p": 0.95, "max_new_tokens": 640,
        "eos_token_id": [ids[TURN_END], ids[END_OF_TEXT]], "pad_token_id": ids[END_OF_TEXT]})
    shutil.copy(tokenizer_path, temporary / "tokenizer.json")
    shutil.copy(HERE / "chat_template.jinja", temporary / "chat_template.jinja")
    write_json(temporary / "tokenizer_config.json", {
        "added_tokens_decoder": {str(i): {"content": t, "lstrip": False, "normalized": False, "rstrip": False,
                                          "single_word": False, "special": True} for t, i in ids.items()},
        "additional_special_tokens": [TURN_START], "bos_token": None, "eos_token": TURN_END, "pad_token": END_OF_TEXT,
        "unk_token": None, "add_prefix_space": False, "clean_up_tokenization_spaces": False,
        "model_max_length": c.max_position_embeddings, "tokenizer_class": "PreTrainedTokenizerFast"})
    shutil.rmtree(folder, ignore_errors=True)
    temporary.rename(folder)


@torch.no_grad()
def check(model, folder):
    from transformers import AutoTokenizer, Qwen3MoeForCausalLM

    reference, report = Qwen3MoeForCausalLM.from_pretrained(folder, dtype=torch.float32, output_loading_info=True)
    assert not report["missing_keys"] and not report["unexpected_keys"], report
    tokenizer = AutoTokenizer.from_pretrained(folder)
    messages = [{"role": "system", "content": "You are a storyteller."},
                {"role": "user", "content": "Tell me a story about a fox who finds a key."},
                {"role": "assistant", "content": "Once upon a time there was a fox."}, {"role": "user", "content": "And then?"}]
    text = tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
    assert text == render(messages, True), text
    ids = tokenizer(text)["input_ids"]
    assert ids == load_tokenizer(folder / "tokenizer.json").encode(text).ids
    ours = model(torch.tensor([ids]))[0]
    theirs = reference(torch.tensor([ids])).logits[0]
    error = ((ours - theirs).norm() / theirs.norm()).item()
    print(f"{len(ids)} positions, relative logit difference {error:.2e}, "
          f"same argmax at {(ours.argmax(-1) == theirs.argmax(-1)).float().mean().item():.0%}")
    assert error < 1e-4


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("build/demo-train"))
    parser.add_argument("--averaged", action="store_true", help="the averaged weights, for a checkpoint before the decay")
    parser.add_argument("--no-check", action="store_true")
    args = parser.parse_args()
    model, state = load_model(args.out / "moe.pt", args.averaged)
    export(model, args.out / "tokenizer.json", args.out / "colibri-demo")
    print(f"step {state['step']}, {state['tokens']} tokens -> {args.out / 'hf'}")
    if not args.no_check:
        check(model, args.out / "colibri-demo")


if __name__ == "__main__":
    main()
