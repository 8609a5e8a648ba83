# SPDX-License-Identifier: GPL-3.0-or-later
"""Tokenizers in the way of SentencePiece: spaces are written as U+2581, bytes as <0xNN>."""

import json
import math
import re
import struct
import unicodedata
from collections import Counter

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers
from tokenizers import pre_tokenizers, processors, trainers
from transformers.tokenization_utils_base import generate_merges

from tokenizer_texts import TEXT

MARK = "▁"
BYTES = [f"<0x{b:02X}>" for b in range(256)]
CONTROL = ["<unk>", "<s>", "</s>"]
# Strings that cross words, lines and scripts, so that a wrong split changes the ids.
GLUED = ["▁▁", "▁▁▁", "▁▁▁▁", "▁▁▁▁▁▁▁▁", "of▁the", "▁of▁the", "s▁", "▁x", "x▁", "▁the▁", ".▁", "的狐", "aaa", "aaaa", "aaaaa", "abab"] * 4


def special(content, **flags):
    return AddedToken(content, special=True, normalized=False, **flags)


def plain(content, normalized=False, **flags):
    return AddedToken(content, special=False, normalized=normalized, **flags)


LINES = [MARK + line.replace(" ", MARK) for line in TEXT] + GLUED


def learnt_pieces(size, alphabet):
    """Joined pieces in the order of learning, then the single characters, rarest last."""
    counts = Counter("".join(LINES))
    single = sorted(counts, key=lambda c: (-counts[c], c))[:alphabet]
    trainer = trainers.BpeTrainer(vocab_size=size, initial_alphabet=single, limit_alphabet=len(single), min_frequency=2,
                                  show_progress=False, max_token_length=9)
    tokenizer = Tokenizer(models.BPE())
    known = re.compile("[" + re.escape("".join(single)) + "]+")
    tokenizer.train_from_iterator([part for line in LINES for part in known.findall(line)], trainer)
    vocab = sorted(tokenizer.get_vocab().items(), key=lambda item: item[1])
    return [p for p, _ in vocab if len(p) > 1], single


def bpe(size, alphabet, byte_fallback, fuse_unk):
    """A model with every way to join two pieces to a third, as conversions from SentencePiece list them."""
    joined, single = learnt_pieces(size, alphabet)
    fixed = CONTROL + (BYTES if byte_fallback else [])
    vocab = {piece: i for i, piece in enumerate(fixed + joined + single)}
    scores = {piece: 0.0 for piece in fixed} | {piece: -float(i) for i, piece in enumerate(joined + single)}
    merges = generate_merges(vocab, scores, skip_tokens=fixed)
    return models.BPE(vocab, merges, unk_token="<unk>", fuse_unk=fuse_unk, byte_fallback=byte_fallback), scores


def finish(tokenizer, added, before=(), after=(), ignore_merges=None, scores=None):
    for token in [special(t) for t in CONTROL if tokenizer.token_to_id(t) is not None] + added:
        (tokenizer.add_special_tokens if token.special else tokenizer.add_tokens)([token])
    if before or after:
        frame = [*before, "$A", *after]
        tokenizer.post_processor = processors.TemplateProcessing(
            single=" ".join(frame), special_tokens=[(t, tokenizer.token_to_id(t)) for t in [*before, *after]])
    data = json.loads(tokenizer.to_str())
    return data, [special(t) for t in CONTROL] + added, scores


def mark_decoder(strip):
    steps = [decoders.Replace(MARK, " "), decoders.ByteFallback(), decoders.Fuse()]
    return decoders.Sequence(steps + ([decoders.Strip(" ", 1, 0)] if strip else []))


def mixtral():
    model, scores = bpe(700, 220, True, True)
    tokenizer = Tokenizer(model)
    tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend(MARK), normalizers.Replace(" ", MARK)])
    tokenizer.decoder = mark_decoder(True)
    added = [special("<|im_end|>"), plain("<tool>"), plain("<note>")]
    return finish(tokenizer, added, before=["<s>"], scores=scores)


def no_prefix():
    model, scores = bpe(600, 160, True, True)
    tokenizer = Tokenizer(model)
    tokenizer.normalizer = normalizers.Replace(" ", MARK)
    tokenizer.decoder = mark_decoder(False)
    return finish(tokenizer, [special("<|im_end|>"), plain("<tool>")], before=["<s>"], after=["</s>"], scores=scores)


def metaspace():
    model, _ = bpe(500, 200, True, False)
    tokenizer = Tokenizer(model)
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(replacement=MARK, prepend_scheme="first", split=False)
    tokenizer.decoder = mark_decoder(True)
    added = [special("<|end|>", rstrip=True), special("<|user|>", rstrip=True), plain("<tool>", normalized=True), plain("<l>", lstrip=True)]
    return finish(tokenizer, added)


def unknown(fuse_unk):
    def make():
        model, _ = bpe(500, 150, False, fuse_unk)
        tokenizer = Tokenizer(model)
        tokenizer.normalizer = normalizers.Sequence([
            normalizers.Strip(left=True, right=False), normalizers.NFD(), normalizers.StripAccents(), normalizers.Lowercase()])
        tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(replacement=MARK, prepend_scheme="always", split=True)
        tokenizer.decoder = decoders.Metaspace(replacement=MARK, prepend_scheme="always", split=True)
        return finish(tokenizer, [plain("<tool>")])
    return make


def learnt_unigram(byte_fallback, size):
    """Pieces with the logarithm of how often they stand in the text; many are equal."""
    joined, single = learnt_pieces(size, 160)
    counts = {piece: sum(line.count(piece) for line in LINES) for piece in joined + single}
    total = sum(counts.values())
    fixed = CONTROL + (BYTES if byte_fallback else [])
    vocab = [(piece, 0.0) for piece in fixed]
    vocab += [(piece, round(math.log(count / total), 4)) for piece, count in counts.items() if count > 0]
    return models.Unigram(vocab, unk_id=0, byte_fallback=byte_fallback), dict(vocab)


def unigram():
    model, scores = learnt_unigram(False, 500)
    tokenizer = Tokenizer(model)
    tokenizer.normalizer = normalizers.Sequence([normalizers.NFKC(), normalizers.Replace(Regex(" {2,}"), " ")])
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace(replacement=MARK, prepend_scheme="always")])
    tokenizer.decoder = decoders.Metaspace(replacement=MARK, prepend_scheme="always")
    return finish(tokenizer, [special("<extra>", lstrip=True)], after=["</s>"], scores=scores)


def double_array(values):
    """A tree over the bytes of the keys that leads to numbers, as SentencePiece stores it."""
    units, used = {0: 0}, {0}

    def place(node, keys, depth):
        labels = sorted({key[depth] if depth < len(key) else 0 for key in keys})
        base = next(b for b in range(1, 1 << 20) if all(b ^ label not in used for label in labels))
        units[node] |= (node ^ base) << 10 | (0x100 if labels[0] == 0 else 0)
        used.update(base ^ label for label in labels)
        for label in labels:
            if label == 0:
                units[base] = values[next(key for key in keys if len(key) == depth)] | 1 << 31
            else:
                units[base ^ label] = label
                place(base ^ label, [key for key in keys if key[depth:depth + 1] == bytes([label])], depth + 1)

    place(0, sorted(values), 0)
    return struct.pack(f"<{max(units) + 1}I", *(units.get(i, 0) for i in range(max(units) + 1)))


def charsmap():
    """What NFKC changes among some characters and pairs, white space to a space, some to nothing."""
    texts = [chr(c) for block in ((0xA0, 0x180), (0x2000, 0x2070), (0x2100, 0x2150), (0x3300, 0x3358), (0xFB00, 0xFB07), (0xFF01, 0xFF5F))
             for c in range(*block)]
    texts += [a + b for a in "aeiounAEO" for b in "\u0300\u0301\u0308\u0327"]
    changed = {text: unicodedata.normalize("NFKC", text) for text in texts}
    changed |= {c: " " for c in "\t\n\r\u2028\u3000"} | {c: "" for c in "\u200b\u200e\ufeff\x01\x7f"}
    blob, values = b"", {}
    for text, to in changed.items():
        if text != to:
            values[text.encode()] = len(blob)
            blob += to.encode() + b"\0"
    tree = double_array(values)
    return struct.pack("<I", len(tree)) + tree + blob


def t5():
    model, scores = learnt_unigram(False, 400)
    tokenizer = Tokenizer(model)
    tokenizer.normalizer = normalizers.Sequence([
        normalizers.Precompiled(charsmap()),
        normalizers.Strip(left=False, right=True), normalizers.Replace(Regex(" {2,}"), MARK)])
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(replacement=MARK, prepend_scheme="always")
    tokenizer.decoder = decoders.Metaspace(replacement=MARK, prepend_scheme="always")
    return finish(tokenizer, [special("<extra_id_0>")], after=["</s>"], scores=scores)


def unigram_bytes():
    model, scores = learnt_unigram(True, 760)
    tokenizer = Tokenizer(model)
    tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend(MARK), normalizers.Replace(" ", MARK)])
    tokenizer.decoder = mark_decoder(True)
    return finish(tokenizer, [plain("<tool>")], before=["<s>"], scores=scores)


# name -> what is special, how to make it
STYLES = {
    "mixtral": ("BPE over characters with byte fallback: normalizer Prepend and Replace, decoder Sequence; adds <s>", mixtral),
    "no_prefix": ("as mixtral without the space in front; adds <s> and </s>", no_prefix),
    "metaspace": ("BPE with byte fallback, Metaspace that marks only the first word; added tokens with rstrip", metaspace),
    "unknown": ("BPE without bytes, Metaspace that splits; Strip, NFD, StripAccents, Lowercase; unknown characters apart", unknown(False)),
    "fuse_unknown": ("the same, unknown characters in a row are one", unknown(True)),
    "unigram": ("Unigram; NFKC, Replace; WhitespaceSplit and Metaspace; adds </s>", unigram),
    "t5": ("Unigram; Precompiled character map, Strip and Replace, Metaspace that splits; adds </s>", t5),
    "unigram_bytes": ("Unigram with byte fallback over whole stretches; adds <s>", unigram_bytes),
}
