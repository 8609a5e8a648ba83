# SPDX-License-Identifier: GPL-3.0-or-later
"""Writes the small inputs from which fuzzing starts, from the golden files: corpus/TARGET/seed_*.

Needs the packages of ../golden/requirements.txt. Other names in corpus/ are inputs that once
failed; nothing here touches them.
"""

import json
import struct
import tempfile
from pathlib import Path

import gguf
import numpy as np

HERE = Path(__file__).resolve().parent
GOLDEN = HERE.parent / "golden"
ODD_TEXT = "Hello  wörld's, 12345\r\n\n\t你好 नमस्ते e\u0301 <s>👩‍🚀 don't\u00a0x▁y"


def write(target, name, data):
    folder = HERE / "corpus" / target
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"seed_{name}").write_bytes(data)


def compact(value):
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def safetensors():
    def file(header, size):
        text = json.dumps(header).encode()
        return struct.pack("<Q", len(text)) + text + bytes(size)

    tensor = lambda dtype, shape, begin, end: {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}
    write("safetensors", "two", file({"a": tensor("F32", [2, 3], 0, 24), "b": tensor("BF16", [4], 24, 32),
                                      "__metadata__": {"format": "pt"}}, 32))
    kinds, end = {}, 0
    for dtype, size in (("F64", 8), ("I64", 8), ("F16", 2), ("BF16", 2), ("F8_E4M3", 1), ("U8", 1), ("BOOL", 1)):
        kinds[dtype] = tensor(dtype, [2], end, end + 2 * size)
        end += 2 * size
    write("safetensors", "kinds", file(kinds, end))
    write("safetensors", "empty", file({}, 0))
    write("safetensors", "scalar", file({"s": tensor("F32", [], 0, 4), "z": tensor("F32", [0, 5], 4, 4)}, 4))


def small_gguf(fill):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "x.gguf"
        writer = gguf.GGUFWriter(path, "llama")
        fill(writer)
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()
        return path.read_bytes()


def ggufs():
    def values(writer):
        for name in ("uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64", "float32", "float64"):
            getattr(writer, f"add_{name}")(f"v.{name}", 7)
        writer.add_bool("v.bool", True)
        writer.add_string("v.string", "text")
        writer.add_array("v.strings", ["a", "bc", ""])
        writer.add_array("v.numbers", [1, 2, 3])
        writer.add_tensor("token_embd.weight", np.zeros((2, 32), dtype=np.float16))
        writer.add_tensor("blk.0.attn_norm.weight", np.zeros(8, dtype=np.float32))

    def scored(writer):
        tokens = ["<unk>", "<s>", "</s>", *[f"<0x{b:02X}>" for b in (10, 65)], "▁", "a", "b", "ab", "▁ab", "[PAD10]"]
        writer.add_tokenizer_model("llama")
        writer.add_token_list(tokens)
        writer.add_token_scores([-float(i) for i in range(len(tokens))])
        writer.add_token_types([2, 3, 3, 6, 6, 1, 1, 1, 1, 1, 5])
        writer.add_bos_token_id(1)
        writer.add_add_bos_token(True)
        writer.add_add_space_prefix(False)

    def bytes_of(pre):
        def fill(writer):
            writer.add_tokenizer_model("gpt2")
            writer.add_tokenizer_pre(pre)
            writer.add_token_list(["H", "e", "l", "o", "Ġ", "He", "ll", "Hell", "<|end|>"])
            writer.add_token_merges(["H e", "l l", "He ll"])
            writer.add_token_types([1] * 8 + [3])
        return fill

    def unigram(writer):
        writer.add_tokenizer_model("t5")
        writer.add_token_list(["<pad>", "</s>", "<unk>", "▁", "a", "▁a"])
        writer.add_token_scores([0.0, 0.0, 0.0, -2.0, -2.5, -3.0])
        writer.add_token_types([3, 3, 2, 1, 1, 1])
        writer.add_eos_token_id(1)

    write("gguf", "values", small_gguf(values))
    write("gguf", "scored", small_gguf(scored))
    write("gguf", "unigram", small_gguf(unigram))
    for pre in ("qwen2", "deepseek-llm", "kimi-k2"):
        write("gguf", pre, small_gguf(bytes_of(pre)))


def tokenizers():
    """Golden ones with a vocabulary cut to what a few merges need."""
    for name in ("gpt2", "llama3", "qwen2", "deepseek_v3", "o200k", "kimi", "starcoder", "mixtral", "metaspace", "unknown",
                 "unigram", "unigram_bytes"):
        file = json.loads((GOLDEN / "tokenizers" / name / "tokenizer.json").read_text())
        model = file["model"]
        if model["type"] == "Unigram":
            model["vocab"] = model["vocab"][:3] + model["vocab"][-20:]
        else:
            pairs = [m.split(" ") if isinstance(m, str) else m for m in model["merges"][:12]]
            needed = {t for pair in pairs for t in (*pair, "".join(pair))} | {"<unk>", "<0x41>"}
            model["vocab"] = {t: i for t, i in model["vocab"].items() if t in needed}
            model["merges"] = pairs
        file["added_tokens"] = file["added_tokens"][:3]
        write("tokenizer", name, compact(file) + b"\0" + ODD_TEXT.encode())


def templates():
    cases = {case["template"]: case for case in json.loads((GOLDEN / "template_cases.json").read_text())}
    for name in ("llama3", "qwen3", "mistral_tools", "macros", "feature_for_loop_fields", "feature_namespace", "feature_slices",
                 "feature_format", "feature_groupby", "feature_strftime_now", "feature_tojson_options", "feature_macro_call_block",
                 "feature_string_escapes", "feature_for_recursive", "feature_dictsort"):
        source = (GOLDEN / "templates" / f"{name}.jinja").read_bytes()
        write("template", name, source + b"\0" + compact(cases[f"{name}.jinja"]["input"]))


def configs():
    for name in ("mixtral", "olmoe-norm", "qwen3moe", "qwen3moe-tiny-sharded"):
        folder = GOLDEN / "models" / name
        write("config", name, (folder / "config.json").read_bytes() + b"\0" + (folder / "generation_config.json").read_bytes())


def model_json():
    """The demo model's, cut to one layer."""
    model = json.loads((HERE.parents[1] / "resources/demo-model/container/model.json").read_text())
    model["num_hidden_layers"] = 1
    model["moe_layers"] = [0]
    model["tensors"] = [t for t in model["tensors"] if t["name"].split(".")[0] in ("0", "embed", "norm", "head")]
    model["experts"] = model["experts"][:1]
    write("model_json", "demo", compact(model))


if __name__ == "__main__":
    for make in (safetensors, ggufs, tokenizers, templates, configs, model_json):
        make()
