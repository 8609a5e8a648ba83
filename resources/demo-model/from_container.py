# SPDX-License-Identifier: GPL-3.0-or-later
"""Makes a checkpoint for train.py out of the committed q8_0 container.

    python from_container.py --out build/demo-train --revive 0.2

The optimiser starts afresh. With --revive F an expert that is used less than F
times its fair share on held-out text is replaced by half of the layer's busiest
one: a copy of its weights, and a copy of its router row with a little noise, so
that the two share its tokens and then grow apart.
"""
import argparse
import json
import shutil
from pathlib import Path

import numpy as np
import torch

import corpus
from model import Config, Model
from text import encode, load_tokenizer, read_documents

HERE = Path(__file__).resolve().parent
PANEL = 16


def unpack(data, rows, cols):
    """[panel][block]{f16 scale[16]; int8 q[8][16][4]} -> (rows, cols) f32; see kernels/packed.h."""
    blocks = np.frombuffer(data, np.uint8).reshape(rows // PANEL, cols // 32, 544)
    scale = np.ascontiguousarray(blocks[..., :32]).view(np.float16).astype(np.float32)
    q = np.ascontiguousarray(blocks[..., 32:]).view(np.int8).reshape(rows // PANEL, cols // 32, 8, PANEL, 4)
    values = q.transpose(0, 3, 1, 2, 4).astype(np.float32) * scale.transpose(0, 2, 1)[..., None, None]
    return torch.from_numpy(values.reshape(rows, cols))


NAMES = {"attn_norm": "input_layernorm", "q": "self_attn.q_proj", "k": "self_attn.k_proj", "v": "self_attn.v_proj",
         "o": "self_attn.o_proj", "q_norm": "self_attn.q_norm", "k_norm": "self_attn.k_norm",
         "ffn_norm": "post_attention_layernorm", "router": "mlp.gate"}
TOP = {"embed": "embed_tokens.weight", "norm": "norm.weight", "head": "lm_head.weight"}


def read_container(folder):
    info = json.loads((folder / "model.json").read_text())
    assert all(t["dtype"] in ("q8_0", "f32") for t in info["tensors"]), "only a q8_0 container"
    state, dense = {}, (folder / "dense.bin").read_bytes()
    for t in info["tensors"]:
        rows, cols = t["shape"]
        data = dense[t["offset"]: t["offset"] + t["bytes"]]
        value = unpack(data, rows, cols) if t["packed"] else torch.from_numpy(
            np.frombuffer(data, np.float32, rows * cols).copy()).reshape(rows, cols)
        value = value if rows > 1 else value[0]
        layer, _, part = t["name"].partition(".")
        state[f"layers.{layer}.{NAMES[part]}.weight" if part else TOP[t["name"]]] = value
    hidden, inner, experts = info["hidden_size"], info["moe_intermediate_size"], info["num_experts"]
    size = hidden * inner // 32 * 34
    for layer in range(info["num_hidden_layers"]):
        data = (folder / f"experts/layer_{layer:03d}.bin").read_bytes()
        record = len(data) // experts
        w13, w2 = [], []
        for e in range(experts):
            part = [data[e * record + i * size: e * record + (i + 1) * size] for i in range(3)]
            w13.append(torch.cat([unpack(part[0], inner, hidden), unpack(part[1], inner, hidden)]))
            w2.append(unpack(part[2], hidden, inner))
        state[f"layers.{layer}.mlp.w13"] = torch.stack(w13)
        state[f"layers.{layer}.mlp.w2"] = torch.stack(w2)
    return state


@torch.no_grad()
def expert_use(model, tokenizer, documents):
    """(layers, experts) share of all choices, on held-out text."""
    use = torch.zeros(model.config.num_hidden_layers, model.config.num_experts)
    for ids in encode(tokenizer, documents):
        model(torch.from_numpy(ids[:512].astype("int64"))[None])
        for i, layer in enumerate(model.layers):
            use[i] += torch.bincount(layer.mlp.index.flatten(), minlength=use.shape[1])
    return use / use.sum(1, keepdim=True)


@torch.no_grad()
def revive(model, use, share):
    generator = torch.Generator().manual_seed(1)
    for i, layer in enumerate(model.layers):
        fair = share / use.shape[1]
        for e in (use[i] < fair).nonzero().flatten().tolist():
            hot = int(use[i].argmax())
            layer.mlp.w13[e], layer.mlp.w2[e] = layer.mlp.w13[hot], layer.mlp.w2[hot]
            row = layer.mlp.gate.weight[hot]
            noise = torch.randn(row.shape, generator=generator) * row.std() * 0.2
            layer.mlp.gate.weight[e] = row + noise
            use[i, [e, hot]] = use[i, hot] / 2
            print(f"layer {i}: expert {e} is now half of expert {hot}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("build/demo-train"))
    parser.add_argument("--container", type=Path, default=HERE / "container")
    parser.add_argument("--revive", type=float, default=0.0)
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    shutil.copy(args.container / "tokenizer.json", args.out / "tokenizer.json")
    corpus.ensure(args.out)
    model = Model(Config())
    model.load_state_dict(read_container(args.container))
    tokenizer = load_tokenizer(args.out / "tokenizer.json")
    use = expert_use(model, tokenizer, read_documents(args.out / "heldout.jsonl")[::8])
    print("least used, as a multiple of the fair share:", (use.min(1).values * use.shape[1]).tolist())
    if args.revive:
        revive(model, use, args.revive)
    parameters = list(model.parameters())
    adam = torch.optim.AdamW([p for n, p in model.named_parameters() if p.dim() < 2 or n.endswith(
        ("embed_tokens.weight", "lm_head.weight", "gate.weight"))], betas=(0.9, 0.98), weight_decay=0.0)
    torch.save(dict(config=model.config.as_dict(), model=model.state_dict(),
                    average=[p.detach().clone() for p in parameters],
                    momentum=[torch.zeros_like(p) for p in parameters], adam=adam.state_dict(), step=0, tokens=0,
                    elapsed=0.0, decay=(None, None), epoch=10, row=0), args.out / "moe.pt")


if __name__ == "__main__":
    main()
