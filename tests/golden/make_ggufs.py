# SPDX-License-Identifier: GPL-3.0-or-later
"""Makes GGUF twins of tiny models with llama.cpp's own converter, as published files are made.

    make_ggufs.py PATH_OF_LLAMA_CPP [NAME...]

Writes gguf/NAME.gguf and gguf/index.json. The expected values are those of the folder, except where
the format has no place for something (LOST): the number types are chosen so that no value changes.
The converter knows tokenizers by a hash of their output, which
ours do not match, so it is told the name of the pre-tokenizer here.
"""

import json
import runpy
import shutil
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
MODELS = HERE / "models"

# folder: number type that holds its values
TWINS = {
    "olmoe-tiny-sharded": "f32", "qwen3moe-tiny-sharded": "f32", "mixtral-tiny-sharded": "f32", "qwen2moe": "bf16",
    "granitemoe-tiny-sharded": "f16", "granitemoeshared-sharded": "bf16", "llama": "bf16", "llama-plain": "f16",
    "qwen2-yarn": "f16", "qwen3": "bf16", "gpt-oss-mxfp4": "bf16", "deepseekv2": "bf16", "deepseekv2-lite-sharded": "f16",
    "deepseekv3-tiny-sharded": "f16", "glm4moe": "bf16", "ernie4-5-moe": "bf16", "dots1": "bf16",
    "minimax-m2-tiny-sharded": "f16", "phimoe": "bf16", "llama4": "bf16", "hunyuan-moe": "bf16",
}
# What the twin cannot express. Everything else is in the file or follows from the architecture.
LOST = {
    "olmoe-tiny-sharded": ["clip_qkv", "rms_norm_eps (1e-5 is written)"],
    "qwen3moe-tiny-sharded": ["norm_topk_prob false (the architecture means true)"],
    "mixtral-tiny-sharded": ["sliding_window"],
    "deepseekv2": ["mscale (taken to equal mscale_all_dim)", "topk_method group_limited_greedy"],
    "deepseekv3-tiny-sharded": ["mscale (taken to equal mscale_all_dim)"],
    "dots1": ["sliding_window"],
    "phimoe": ["short_mscale, long_mscale", "router_jitter_noise"],
    "llama4": ["attention_chunk_size", "floor_scale", "attn_scale"],
}
# The class name in published files, if transformers has renamed it.
PUBLISHED_CLASS = {"PhimoeForCausalLM": "PhiMoEForCausalLM", "Llama4ForCausalLM": "Llama4ForConditionalGeneration"}
PRE_TOKENIZER = {"qwen2": "qwen2", "qwen2_moe": "qwen2", "qwen3": "qwen2", "qwen3_moe": "qwen2", "llama": "llama-bpe"}


def as_published(config):
    """The config under the names and in the form that the converter expects."""
    config["architectures"] = [PUBLISHED_CLASS.get(a, a) for a in config["architectures"]]
    if config["model_type"] == "hunyuan_v1_moe":
        layers, rope = config["num_hidden_layers"], config["rope_parameters"]
        config["moe_intermediate_size"] = [config["intermediate_size"]] * layers
        config["moe_topk"] = [config["moe_topk"]] * layers
        config["num_shared_expert"] = [1] * layers
        # The converter supports a single alpha and multiplies the base by it; so does this.
        dim = config["head_dim"]
        rope["rope_theta"] *= rope.pop("alpha") ** (dim / (dim - 2))
        rope["rope_type"] = "default"


def convert(llama_cpp, name):
    from conversion import get_model_class
    from conversion.base import TextModel

    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / name
        shutil.copytree(MODELS / name, folder)
        config = json.loads((folder / "config.json").read_text())
        as_published(config)
        (folder / "config.json").write_text(json.dumps(config))
        TextModel.get_vocab_base_pre = lambda self, tokenizer: PRE_TOKENIZER.get(config["model_type"], "gpt-2")
        # Some published models have SentencePiece files; the test models are all byte-level.
        kind = get_model_class(config["architectures"][0])
        kind.set_vocab = lambda self: self._set_vocab_gpt2()
        (HERE / "gguf").mkdir(exist_ok=True)
        out = HERE / "gguf" / f"{name}.gguf"
        sys.argv = ["convert_hf_to_gguf.py", str(folder), "--outtype", TWINS[name], "--outfile", str(out),
                    "--model-name", name]
        runpy.run_path(str(llama_cpp / "convert_hf_to_gguf.py"), run_name="__main__")
        print(f"{name}: {out.stat().st_size / 1000:.0f} kB")


def main():
    if len(sys.argv) < 2:
        raise SystemExit(__doc__)
    llama_cpp, names = Path(sys.argv[1]).resolve(), sys.argv[2:] or list(TWINS)
    sys.path.insert(0, str(llama_cpp))
    sys.path.insert(1, str(llama_cpp / "gguf-py"))
    for name in names:
        convert(llama_cpp, name)
    models = {entry["name"]: entry for entry in json.loads((MODELS / "index.json").read_text())}
    index = [{"name": name, "family": models[name]["family"], "dtype": TWINS[name], "expected": models[name]["expected"],
              "lost": LOST.get(name, [])} for name in TWINS]
    (HERE / "gguf" / "index.json").write_text(json.dumps(index, indent=2) + "\n")


if __name__ == "__main__":
    main()
