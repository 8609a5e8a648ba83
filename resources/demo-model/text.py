# SPDX-License-Identifier: GPL-3.0-or-later
"""Tokenizer, chat format and packing shared by training and evaluation."""
import json
import random
from pathlib import Path

import numpy as np
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

END_OF_TEXT, TURN_START, TURN_END = "<|endoftext|>", "<|im_start|>", "<|im_end|>"

# Qwen2's split pattern: digits stand alone, so numbers cost no vocabulary.
SPLIT = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)


def render(messages, generation_prompt=False):
    """The same text as chat_template.jinja gives."""
    text = "".join(f"{TURN_START}{m['role']}\n{m['content']}{TURN_END}\n" for m in messages)
    return text + (f"{TURN_START}assistant\n" if generation_prompt else "")


def document_text(document):
    if "messages" in document:
        return render(document["messages"])
    return document["text"]


def read_documents(path):
    with open(path, encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def train_tokenizer(documents, vocab_size, path):
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(SPLIT), "isolated"),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
    ])
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size,
        min_frequency=2,
        special_tokens=[END_OF_TEXT, TURN_START, TURN_END],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator((plain_text(d) for d in documents), trainer)
    tokenizer.save(str(path))
    return tokenizer


def plain_text(document):
    if "messages" in document:
        return "\n".join(m["content"] for m in document["messages"])
    return document["text"]


def encode(tokenizer, documents):
    texts = [document_text(d) for d in documents]
    end = tokenizer.token_to_id(END_OF_TEXT)
    return [np.array(e.ids + [end], dtype=np.uint16) for e in tokenizer.encode_batch(texts)]


class Packer:
    """Endless batches of `length + 1` tokens made of whole documents.

    Documents are put, longest first, into the first row of a small pool with
    room for them; what stays free at a row's end is filled with the start of a
    further document, so no position is wasted.
    """

    def __init__(self, encoded, length, batch, seed, epoch=0, row=0):
        self.encoded, self.length, self.batch, self.seed = encoded, length, batch, seed
        self.epoch, self.row = epoch, row
        self.fill()

    def fill(self):
        rng = random.Random(f"{self.seed}/{self.epoch}/{self.length}")
        order = list(range(len(self.encoded)))
        rng.shuffle(order)
        size, rows = self.length + 1, []
        for at in range(0, len(order), 256):
            pool = sorted(order[at: at + 256], key=lambda i: -len(self.encoded[i]))
            open_rows = []
            for i in pool:
                document = self.encoded[i][:size]
                best = min((r for r in open_rows if r[0] >= len(document)), default=None, key=lambda r: r[0])
                if best is None:
                    best = [size, []]
                    open_rows.append(best)
                best[0] -= len(document)
                best[1].append(document)
            for room, parts in open_rows:
                rng.shuffle(parts)
                while room > 0:
                    part = self.encoded[rng.choice(order)][:room]
                    parts.append(part)
                    room -= len(part)
                rows.append(np.concatenate(parts))
        rng.shuffle(rows)
        self.rows = np.stack(rows).astype(np.int64)

    def next(self):
        if self.row + self.batch > len(self.rows):
            self.epoch, self.row = self.epoch + 1, 0
            self.fill()
        self.row += self.batch
        return self.rows[self.row - self.batch: self.row]


def load_tokenizer(path):
    return Tokenizer.from_file(str(Path(path)))
