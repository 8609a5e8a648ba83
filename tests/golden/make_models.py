# SPDX-License-Identifier: GPL-3.0-or-later
"""Makes tiny random models with transformers and records their logits, routing and greedy text.

Writes models/. The formats are described in README.md, the models in model_families.py. Every norm
weight and bias is random, and the prompt is longer than the sliding windows. With names of models
as arguments, only those are made and the others stay unchanged.
"""

import json
import shutil
import sys
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from tokenizers import decoders, normalizers, processors
from transformers import AutoConfig, AutoModelForCausalLM

import make_tokenizers
import model_packing
from model_families import CHATML, MODELS, OWN_LAYOUT, QWEN2_SPLIT, STYLE, kept_in_float32, to_old_config, traits
from model_recorder import forward, measure

HERE = Path(__file__).resolve().parent
OUT = HERE / "models"
PROMPT_LENGTH = 24


def make_tokenizer(family, folder, vocab_size):
    """A byte-level tokenizer that leaves some ids of the model's vocabulary unused."""
    _, special, bos, eos = STYLE.get(family, CHATML)
    t = make_tokenizers
    if family in QWEN2_SPLIT:
        pre_tokenizer, normalizer = t.split_then_bytes(t.QWEN2_PATTERN), normalizers.NFC()
    elif family == "llama":
        pre_tokenizer, normalizer = t.split_then_bytes(t.LLAMA3_PATTERN), None
    else:
        pre_tokenizer, normalizer = t.byte_level(), normalizers.NFC() if family == "olmoe" else None
    tokenizer = t.train(pre_tokenizer, normalizer, vocab_size - len(special) - 7)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=False)
    tokenizer.add_special_tokens([t.special(s) for s in special])
    adds_bos = family in ("mixtral", "llama")
    if adds_bos:
        tokenizer.post_processor = processors.Sequence([
            processors.ByteLevel(trim_offsets=False),
            processors.TemplateProcessing(single=f"{bos} $A", special_tokens=[(bos, tokenizer.token_to_id(bos))])])
    data = json.loads(tokenizer.to_str())
    (folder / "tokenizer.json").write_text(
        json.dumps(data, ensure_ascii=False, separators=(",", ":")) + "\n", encoding="utf-8")
    write_json(folder / "tokenizer_config.json", {
        "add_bos_token": adds_bos, "bos_token": bos, "clean_up_tokenization_spaces": False, "eos_token": eos[0],
        "model_max_length": 256, "pad_token": special[0], "tokenizer_class": "PreTrainedTokenizerFast"})
    ids = [tokenizer.token_to_id(s) for s in eos]
    return tokenizer.token_to_id(bos) if bos else None, ids, tokenizer.token_to_id(special[0])


def write_json(path, value):
    path.write_text(json.dumps(value, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def random_value(name, shape, config, generator):
    if name.endswith("bias"):
        spread = 0.3 if "e_score" not in name else 0.1 if config.model_type == "ernie4_5_moe" else 0.2
        return spread * torch.randn(shape, generator=generator)
    if "norm" in name:
        return 0.5 + torch.rand(shape, generator=generator)
    value = torch.randn(shape, generator=generator)
    if name.endswith("sinks"):
        return value
    if "embed_tokens" in name:
        return value * (0.25 if config.tie_word_embeddings else 0.5)
    if "lm_head" in name:
        return value * (2.0 / config.hidden_size ** 0.5)
    return value * (1.4 / row_length(name, shape, config) ** 0.5)


def row_length(name, shape, config):
    """The number of inputs of a matrix."""
    transposed = OWN_LAYOUT.get(config.model_type, "").startswith("transposed") and ".experts." in name
    return shape[-2 if transposed else -1]


def weights_of(model):
    """The parameters, and the buffers that are stored, by name."""
    stored = model.state_dict()
    named = sorted(model.named_parameters()) + sorted(item for item in model.named_buffers() if item[0] in stored)
    return dict(named)


def randomise(model, seed, dtype, gains):
    """Sets every weight, and rounds it to the dtype in which it will be stored."""
    generator = torch.Generator().manual_seed(seed)
    for name, weight in weights_of(model).items():
        value = random_value(name, weight.shape, model.config, generator)
        for part, gain in gains.items():
            value *= gain if part in name and not name.endswith("bias") else 1.0
        with torch.no_grad():
            weight.copy_(value if kept_in_float32(model.config.model_type, name) else value.to(dtype).float())
    model.tie_weights()


def build(config, seed, dtype, gains):
    model = AutoModelForCausalLM.from_config(config, attn_implementation="eager", experts_implementation="eager").eval()
    randomise(model.float(), seed, dtype, gains)
    return model


def load(folder, dtype=torch.float32):
    kinds = dict(attn_implementation="eager", experts_implementation="eager")
    if not any("quantization_config" in line for line in open(folder / "config.json", encoding="utf-8")):
        return AutoModelForCausalLM.from_pretrained(folder, dtype=dtype, **kinds).eval()
    config = AutoConfig.from_pretrained(folder)
    del config.quantization_config
    plain = model_packing.unpack(load_file(folder / "model.safetensors"))
    scratch = OUT / "unpacked"
    scratch.mkdir()
    save_file(plain, scratch / "model.safetensors", {"format": "pt"})
    config.save_pretrained(scratch)
    model = AutoModelForCausalLM.from_pretrained(scratch, dtype=dtype, **kinds).eval()
    shutil.rmtree(scratch)
    return model


def save(model, folder, dtype, stacked, sharded, packing, eos):
    folder.mkdir(parents=True)
    family = model.config.model_type
    full = {name: weight.detach().clone() for name, weight in weights_of(model).items() if kept_in_float32(family, name)}
    stored = model.to(dtype)
    for name, weight in weights_of(stored).items():
        if name in full:
            weight.data = full[name]
    stored.save_pretrained(folder, save_original_format=not stacked, max_shard_size="40KB" if sharded else "1GB")
    write_json(folder / "generation_config.json", {
        "eos_token_id": eos if len(eos) > 1 else eos[0], "do_sample": True, "temperature": 0.7, "top_k": 20, "top_p": 0.8})
    config = json.loads((folder / "config.json").read_text())
    if packing:
        tensors, entry = model_packing.pack(load_file(folder / "model.safetensors"), packing)
        if getattr(model.config, "num_mtp_layers", 0):
            tensors = model_packing.with_mtp_layer(tensors, model.config)
        save_file(tensors, folder / "model.safetensors", {"format": "pt"})
        config["quantization_config"] = entry
    if sharded or packing:
        write_json(folder / "config.json", to_old_config(config))


def folders_of(model):
    """(folder name, stacked, sharded, packing) of each folder of a model."""
    if model.layout == "both":
        return [(f"{model.name}-sharded", False, True, None), (f"{model.name}-stacked", True, False, None)]
    packing = model.layout if model.layout in ("fp8", "mxfp4") else None
    return [(model.name, False, model.layout == "sharded", packing)]


def find_seed(model, prompt):
    """The first seed whose model has clear margins between its choices."""
    dtype = getattr(torch, model.dtype)
    for seed in range(1, 2000):
        candidate = build(model.config(**model.values), seed, dtype, model.gains)
        if model.layout in ("fp8", "mxfp4"):
            round_by_packing(candidate, model.layout)
        if measure(candidate, prompt):
            return seed
    raise SystemExit(f"{model.name}: no seed with clear decisions")


def round_by_packing(model, packing):
    """Replaces the weights in memory by the values that the packed files will have."""
    for name, weight in weights_of(model).items():
        matrix = weight.data
        if packing == "mxfp4" and name.endswith(("experts.gate_up_proj", "experts.down_proj")):
            rounded = model_packing.unpack_mxfp4(*model_packing.pack_mxfp4(matrix.transpose(1, 2)))
            weight.data = rounded.transpose(1, 2).contiguous()
        elif packing == "fp8" and name.endswith("experts.gate_up_proj"):
            weight.data = torch.stack([torch.cat([model_packing.unpack_fp8(*model_packing.pack_fp8(half))
                                                  for half in expert.chunk(2)]) for expert in matrix])
        elif packing == "fp8" and name.endswith("experts.down_proj"):
            weight.data = torch.stack([model_packing.unpack_fp8(*model_packing.pack_fp8(expert)) for expert in matrix])
        elif packing == "fp8" and name.endswith(model_packing.FP8_PARTS):
            weight.data = model_packing.unpack_fp8(*model_packing.pack_fp8(matrix))


def make_one(model):
    """Writes the folders of a model; returns their entries of the index."""
    dtype, values = getattr(torch, model.dtype), model.values
    family = model.config.model_type
    folders = folders_of(model)
    first = folders[0][0]
    prompt_generator = torch.Generator().manual_seed(len(model.name))
    prompt = torch.randint(0, values["vocab_size"], (PROMPT_LENGTH,), generator=prompt_generator).tolist()
    seed = find_seed(model, prompt)

    entries, reference = [], None
    scratch = OUT / "scratch"
    scratch.mkdir()
    bos, eos, pad = make_tokenizer(family, scratch, values["vocab_size"])
    config = model.config(**values)
    config.bos_token_id, config.pad_token_id = bos, pad
    config.eos_token_id = eos[-1]  # generation_config.json may have more, and takes precedence
    for folder_name, stacked, sharded, packing in folders:
        folder = OUT / folder_name
        if folder.exists():
            shutil.rmtree(folder)
        save(build(config, seed, dtype, model.gains), folder, dtype, stacked, sharded, packing, eos)
        for part in scratch.iterdir():
            shutil.copy(part, folder)
        shutil.copy(HERE / "templates" / STYLE.get(family, CHATML)[0], folder / "chat_template.jinja")

        loaded = load(folder)  # the files decide
        expected, logits = measure(loaded, prompt)
        if reference is None:
            reference = logits
            exact = forward(load(folder).double(), prompt)
            expected["f64_error"] = float("%.3g" % ((exact - logits).abs().max(-1).values / logits.abs().max(-1).values).max())
            text = ",\n".join(f'"{key}":{json.dumps(value, separators=(",", ":"))}' for key, value in expected.items())
            (folder / "expected.json").write_text("{" + text + "}\n")
        assert torch.equal(reference, logits), f"{folder_name} differs from {first}"
        rows = [row_length(name, w.shape, config) for name, w in loaded.named_parameters() if w.dim() > 1 and "bias" not in name]
        own_layout = packing if packing == "mxfp4" else OWN_LAYOUT.get(family, "per_expert")
        entries.append({
            "name": folder_name, "family": family, "layout": "stacked" if stacked else own_layout,
            "files": len(list(folder.glob("*.safetensors"))), "config_style": "4.x" if sharded or packing else "5.x",
            "dtype": packing or model.dtype, "expected": f"{first}/expected.json", "q8_ok": all(n % 32 == 0 for n in rows),
            "traits": traits(config, values, sharded)})
        size = sum(f.stat().st_size for f in folder.iterdir())
        print(f"{folder_name}: seed {seed}, {size / 1000:.0f} kB, margins {expected['margins']}, "
              f"{len(set(expected['greedy']))} different tokens, f64 error {expected.get('f64_error', '')}", flush=True)
    shutil.rmtree(scratch)
    return entries


def main():
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    OUT.mkdir(exist_ok=True)
    wanted = sys.argv[1:] or [model.name for model in MODELS]
    unknown = set(wanted) - {model.name for model in MODELS}
    if unknown:
        raise SystemExit(f"no such model: {', '.join(sorted(unknown))}")
    index_file = OUT / "index.json"
    old = {entry["name"]: entry for entry in json.loads(index_file.read_text())} if index_file.exists() else {}
    for model in MODELS:
        if model.name in wanted:
            old.update({entry["name"]: entry for entry in make_one(model)})
            names = [folder[0] for known in MODELS for folder in folders_of(known)]
            write_json(index_file, [old[name] for name in names if name in old])


if __name__ == "__main__":
    main()
