# SPDX-License-Identifier: GPL-3.0-or-later
"""Trains small tokenizers and records how the reference encodes and decodes.

Writes tokenizers/NAME/tokenizer.json, tokenizers/NAME/cases.json and tokenizers/index.json.
The formats are described in README.md.
"""

import json
import random
from pathlib import Path

from tokenizers import Tokenizer

import tokenizer_bytelevel
import tokenizer_sentencepiece
from tokenizer_texts import added_token_strings, common_strings, random_strings, template_strings

HERE = Path(__file__).resolve().parent
OUT = HERE / "tokenizers"
FIRST = 5  # number of styles, from the oldest, that also get the long strings


class Reference:
    """A tokenizer of the reference, and our own account of which bytes its tokens stand for."""

    def __init__(self, path, added):
        self.tokenizer = Tokenizer.from_file(str(path))
        self.special = {self.tokenizer.token_to_id(t.content): t.special for t in added}
        decoder = json.loads(self.tokenizer.to_str())["decoder"]
        self.kind = decoder["type"]
        self.strips = self.kind == "Metaspace" or any(d["type"] == "Strip" for d in decoder.get("decoders", []))

    def tokens(self, ids, skip_special):
        for i in ids:
            token = self.tokenizer.id_to_token(i)
            if token is not None and not (skip_special and self.special.get(i)):
                yield token, i in self.special

    def raw_bytes(self, ids, skip_special, at_start=True):
        """`at_start`: as a whole text; else as the continuation of one."""
        out = b""
        for number, (token, added) in enumerate(self.tokens(ids, skip_special)):
            if self.kind == "ByteLevel":
                out += token.encode() if added else bytes(tokenizer_bytelevel.CHAR_TO_BYTE[c] for c in token)
            elif self.kind == "Metaspace":
                out += token.replace("▁", "" if number == 0 and at_start else " ").encode()
            elif token in tokenizer_sentencepiece.BYTES:
                out += bytes([tokenizer_sentencepiece.BYTES.index(token)])
            else:
                out += token.replace("▁", " ").encode()
        if self.kind == "Sequence" and self.strips and at_start and out.startswith(b" "):
            out = out[1:]
        return out

    def text(self, ids, skip_special):
        """The reference's string, checked against our own bytes.

        Two differences are deliberate. An added token all of whose characters also stand for
        bytes, and one of them for another byte (as the e-acute), is taken for byte-level text by
        the reference and comes out broken; there the token's own text is what is wanted. Of
        <0xNN> tokens in a row that are not valid as a whole the reference makes one U+FFFD for
        each byte; we keep what is valid in them.
        """
        ours = self.raw_bytes(ids, skip_special).decode("utf-8", "replace")
        text = self.tokenizer.decode(ids, skip_special_tokens=skip_special)
        broken = [t for t, added in self.tokens(ids, False) if added and not t.isascii()
                  and all(c in tokenizer_bytelevel.CHAR_TO_BYTE for c in t)]
        invalid = self.kind == "Sequence" and "\ufffd" in ours and "\ufffd" in text
        assert ours == text or broken or invalid, (ids, ours, text)
        return ours

    def streamed(self, ids, skip_special=False):
        return self.raw_bytes(ids, skip_special, at_start=False).decode("utf-8", "replace")


def encode_case(reference, text):
    tokenizer = reference.tokenizer
    case = {"text": text}
    ids = tokenizer.encode(text, add_special_tokens=False).ids
    case["ids"] = ids
    tokenizer.encode_special_tokens = True
    plain_ids = tokenizer.encode(text, add_special_tokens=False).ids
    tokenizer.encode_special_tokens = False
    if plain_ids != ids:
        case["plain"] = plain_ids
    with_bos = tokenizer.encode(text, add_special_tokens=True).ids
    if with_bos != ids:
        case["with_bos"] = with_bos
    decoded = reference.text(ids, False)
    skipped = reference.text(ids, True)
    if decoded != text:
        case["decoded"] = decoded
    if skipped != decoded:
        case["decoded_skip"] = skipped
    if reference.streamed(ids) != decoded:
        case["streamed"] = reference.streamed(ids)
    return case


def decode_case(reference, ids):
    text = reference.text(ids, False)
    skipped = reference.text(ids, True)
    case = {"ids": ids, "hex": reference.raw_bytes(ids, False).hex(), "text": text}
    if skipped != text:
        case["text_skip"] = skipped
    return case


def id_sequences(rng, reference, encode):
    size = reference.tokenizer.get_vocab_size(with_added_tokens=True)
    sequences = [[]] + [[i] for i in (*rng.sample(range(256), 24), *sorted(reference.special)[:8])]
    for _ in range(60):  # pieces of real sequences: often start or end within a character
        ids = rng.choice(encode)["ids"]
        if len(ids) > 2:
            start = rng.randrange(len(ids) - 1)
            sequences.append(ids[start:start + rng.randint(1, 12)])
    for _ in range(60):
        sequences.append([rng.randrange(size) for _ in range(rng.randint(1, 10))])
    for _ in range(30):  # single bytes: mostly invalid UTF-8
        sequences.append([rng.randrange(256) for _ in range(rng.randint(1, 8))])
    sequences += [[size], [size + 7, 5, 2**31 - 1, 6, size]]  # ids that do not exist
    return sequences


def write_lines(path, arrays):
    """One case per line, so that a difference can be read."""
    dump = lambda value: json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    parts = [f'"{key}":[\n' + ",\n".join(dump(v) for v in values) + "\n]" for key, values in arrays.items()]
    text = "{" + ",\n".join(parts) + "}\n"
    json.loads(text)
    path.write_text(text, encoding="utf-8")


def built():
    """Each style: name, what is special, content of the file, added tokens, the name of its split in a GGUF, its scores."""
    for name, (about, make, gguf_pre) in tokenizer_bytelevel.STYLES.items():
        yield name, about, *make(), gguf_pre, None
    for name, (about, make) in tokenizer_sentencepiece.STYLES.items():
        data, added, scores = make()
        yield name, about, data, added, None, scores


def main():
    index = []
    for number, (name, about, data, added, gguf_pre, scores) in enumerate(built()):
        rng = random.Random(1000 + number)
        folder = OUT / name
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / "tokenizer.json"
        path.write_text(json.dumps(data, ensure_ascii=False, indent=0, separators=(",", ":")) + "\n", encoding="utf-8")
        reference = Reference(path, added)

        texts = common_strings() + random_strings(rng) + added_token_strings(rng, added) + template_strings(name)
        texts = [text for text in dict.fromkeys(texts) if number < FIRST or len(text) <= 130]
        encode = [encode_case(reference, text) for text in texts]
        decode = [decode_case(reference, ids) for ids in id_sequences(rng, reference, encode)]
        write_lines(folder / "cases.json", {"encode": encode, "decode": decode})

        size = max(reference.tokenizer.get_vocab(with_added_tokens=True).values()) + 1
        frame = reference.tokenizer.encode("", add_special_tokens=True).ids
        entry = {"name": name, "about": about, "frame": frame, "vocab_size": size}
        if gguf_pre:
            entry["gguf_pre"] = gguf_pre
        if scores:
            entry["scores"] = [scores.get(reference.tokenizer.id_to_token(i), 0.0) for i in range(size)]
        index.append(entry)
        print(f"{name}: vocabulary {size}, {len(encode)} strings, {len(decode)} id sequences")
    (OUT / "index.json").write_text("[\n" + ",\n".join(json.dumps(e, ensure_ascii=False) for e in index) + "\n]\n", encoding="utf-8")


if __name__ == "__main__":
    main()
