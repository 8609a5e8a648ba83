# SPDX-License-Identifier: GPL-3.0-or-later
"""Makes GGUF twins of tiny models with llama.cpp's own converter, as published files are made.

    make_ggufs.py PATH_OF_LLAMA_CPP [NAME...]

Writes gguf/NAME.gguf. The expected values are those of the folder: the number types are
chosen so that no value changes. The converter knows tokenizers by a hash of their output, which
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
    "minimax-m2-tiny-sharded": "f16", "phimoe": "bf16", "llama4": "bf16",
}
# What published files call the class, where transformers now calls it otherwise.
PUBLISHED_CLASS = {"PhimoeForCausalLM": "PhiMoEForCausalLM", "Llama4ForCausalLM": "Llama4ForConditionalGeneration"}
PRE_TOKENIZER = {"qwen2": "qwen2", "qwen2_moe": "qwen2", "qwen3": "qwen2", "qwen3_moe": "qwen2", "llama": "llama-bpe"}


def convert(llama_cpp, name):
    from conversion import get_model_class
    from conversion.base import TextModel

    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / name
        shutil.copytree(MODELS / name, folder)
        config = json.loads((folder / "config.json").read_text())
        config["architectures"] = [PUBLISHED_CLASS.get(a, a) for a in config["architectures"]]
        (folder / "config.json").write_text(json.dumps(config))
        TextModel.get_vocab_base_pre = lambda self, tokenizer: PRE_TOKENIZER.get(config["model_type"], "gpt-2")
        # Some of the published models come with SentencePiece files; ours are all byte-level.
        kind = get_model_class(config["architectures"][0])
        kind.set_vocab = lambda self: self._set_vocab_gpt2()
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


if __name__ == "__main__":
    main()
