# SPDX-License-Identifier: GPL-3.0-or-later
"""Byte-level BPE tokenizers, one for each way in which models split a text before encoding it."""

import json

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers
from tokenizers import pre_tokenizers, processors, trainers

from tokenizer_texts import TEXT

CONTRACTIONS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
LLAMA3_PATTERN = (
    CONTRACTIONS + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
QWEN2_PATTERN = LLAMA3_PATTERN.replace(r"\p{N}{1,3}", r"\p{N}")
QWEN35_PATTERN = QWEN2_PATTERN.replace(r"?\p{L}+", r"?[\p{L}\p{M}]+").replace(r"[^\s\p{L}\p{N}]", r"[^\s\p{L}\p{M}\p{N}]")
O200K_PATTERN = (
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+" + CONTRACTIONS + "?"
    r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*" + CONTRACTIONS + "?"
    r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
KIMI_PATTERN = r"[\p{Han}]+|" + O200K_PATTERN.replace(r"\p{M}]", r"\p{M}&&[^\p{Han}]]").replace(r"[\r\n/]*", r"[\r\n]*")
TEKKEN_PATTERN = O200K_PATTERN.replace(CONTRACTIONS + "?", "").replace(r"\p{N}{1,3}", r"\p{N}")
BAILING_PATTERN = (
    r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}"
    r"| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+"
)
DEEPSEEK_V3_PATTERNS = (
    r"\p{N}{1,3}", "[一-龥぀-ゟ゠-ヿ]+",
    "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+"
    "| ?[\\p{P}\\p{S}]+[\r\n]*|\\s*[\r\n]+|\\s+(?!\\S)|\\s+",
)
# Runs of letters with upper and lower case.
CASED = (
    "A-Za-zµÀ-ÖØ-öø-ƺƼ-ƿǄ-ʓʕ-ʯͰ-ͳͶͷͻ-ͽͿΆΈ-ΊΌΎ-ΡΣ-ϵϷ-ҁҊ-ԯԱ-ՖႠ-ჅᎠ-Ᏽᏸ-ᏽᲐ-ᲺᲽ-Ჿᴀ-ᴫᵫ-ᵷᵹ-ᶚḀ-ἕἘ-Ἕἠ-ὅὈ-Ὅὐ-ὗὙὛὝὟ-\u1f7dᾀ-ᾴᾶ-ᾼ\u1fbeῂ-ῄῆ-ῌῐ-\u1fd3ῖ-\u1fdbῠ"
    "-Ῥῲ-ῴῶ-ῼℂℇℊ-ℓℕℙ-ℝℤ\u2126ℨ\u212a-ℭℯ-ℴℹℼ-ℿⅅ-ⅉⅎↃↄⰀ-ⱻⱾ-ⳤⳫ-ⳮⳲⳳꙀ-ꙭꚀ-ꚛꜢ-ꝯꝱ-ꞇꞋ-ꞎꭰ-ꮿﬀ-ﬆﬓ-ﬗＡ-Ｚａ-ｚ𐐀-𐑏𐒰-𐓓𐓘-𐓻𐲀-𐲲𐳀-𐳲𑢠-𑣟𞤀-𞥃"
)
DEEPSEEK_LLM_PATTERNS = (
    "[\r\n]", f"\\s?[{CASED}]+", "\\s?[!-/:-~！-／：-～‘-‟\u3000-。]+", "\\s+$", "[一-龥ࠀ-一가-퟿]+")


def byte_alphabet():
    """The GPT-2 map from bytes to printable characters, and back."""
    keep = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    to_char = {b: chr(b) for b in keep}
    extra = 0
    for b in range(256):
        if b not in to_char:
            to_char[b] = chr(256 + extra)
            extra += 1
    return to_char, {c: b for b, c in to_char.items()}


BYTE_TO_CHAR, CHAR_TO_BYTE = byte_alphabet()


def spell(text):
    return "".join(BYTE_TO_CHAR[b] for b in text.encode())


def special(content, **flags):
    return AddedToken(content, special=True, normalized=False, **flags)


def plain(content, normalized=True, **flags):
    return AddedToken(content, special=False, normalized=normalized, **flags)


def boundary_words():
    """Pairs over characters of every class a pre-tokenizer tells apart.

    Learnt from text that is already split, merges never cross a split, and a wrong split would go
    unseen. These words put such merges into the vocabulary: a split at a wrong place, or a
    missing one, changes the ids.
    """
    chars = ["x", "S", "é", "的", "7", "٣", "!", "-", "'", " ", "\t", "\n", "\r", "\u00a0", "\u3000", "\u0085",
             "\u180e", "\u200b", "\u0301", "ſ", "😀"]
    words = [a + b for a in chars for b in chars]
    words += ["x'", "x's", "sx", "'sx", "'Sx", "'ſx", "tx", "'tx", "rex", "'rex", "vex", "'vex", "mx", "'mx", "llx", "'llx", "dx",
              "'dx", "777", "7777", "77777", "   ", "    ", "\n\n\n", " \n\n", "\n \n", "!\n\n", "!!!", "  x", "  7", "  !", " 's", "''s"]
    return words


def train(pre_tokenizer, normalizer, size):
    words = [piece for line in TEXT for piece, _ in pre_tokenizer.pre_tokenize_str(line)]
    words += [spell(word) for word in boundary_words()] * 3
    trainer = trainers.BpeTrainer(
        vocab_size=size, min_frequency=2, show_progress=False,
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()))
    tokenizer = Tokenizer(models.BPE())
    tokenizer.train_from_iterator(words, trainer)
    tokenizer.pre_tokenizer = pre_tokenizer
    if normalizer:
        tokenizer.normalizer = normalizer
    return tokenizer


def finish(tokenizer, added, unreachable=(), ignore_merges=False, string_merges=False, frame=()):
    """Adds tokens and rewrites the parts of the file that the library does not let one set.

    `frame`: the tokens that are put before the text. Gives the content of tokenizer.json.
    """
    tokenizer.decoder = decoders.ByteLevel()
    data = json.loads(tokenizer.to_str())
    for word in unreachable:  # whole words in the vocabulary that no merge produces
        data["model"]["vocab"].setdefault(spell(word), len(data["model"]["vocab"]))
    data["model"]["ignore_merges"] = ignore_merges
    tokenizer = Tokenizer.from_str(json.dumps(data))
    for token in added:
        (tokenizer.add_special_tokens if token.special else tokenizer.add_tokens)([token])
    if frame:
        before = " ".join(frame)
        template = processors.TemplateProcessing(
            single=f"{before} $A", pair=f"{before} $A {before} $B:1",
            special_tokens=[(token, tokenizer.token_to_id(token)) for token in frame])
        tokenizer.post_processor = processors.Sequence([processors.ByteLevel(trim_offsets=False), template])
    data = json.loads(tokenizer.to_str())
    if string_merges:  # older format: one string for each merge
        data["model"]["merges"] = [" ".join(pair) for pair in data["model"]["merges"]]
    return data


def byte_level(prefix_space=False, use_regex=True):
    return pre_tokenizers.ByteLevel(add_prefix_space=prefix_space, use_regex=use_regex)


def split_then_bytes(*patterns, last=None):
    """One isolating split after another, then bytes."""
    splits = [pre_tokenizers.Split(Regex(p), "isolated", invert=False) for p in patterns]
    return pre_tokenizers.Sequence([*splits, *([last] if last else []), byte_level(use_regex=False)])


def gpt2():
    tokenizer = train(byte_level(), None, 1150)
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=False)
    added = [special("<|endoftext|>"), special("<mask>", lstrip=True), special("<r>", rstrip=True),
             plain("<lr>", lstrip=True, rstrip=True), plain("foo", single_word=True), plain("<a>"),
             plain("<a><b>"), plain("<two words>"),
             plain("<|日本|>", normalized=False)]
    return finish(tokenizer, added, unreachable=[" unreachable"], string_merges=True), added


def gpt2_prefix_space():
    tokenizer = train(byte_level(prefix_space=True), None, 1150)
    added = [special("<s>"), special("</s>"), special("<mask>", lstrip=True), plain("<note>"),
             plain("bar", single_word=True, lstrip=True)]
    return finish(tokenizer, added, frame=["<s>"]), added


def llama3():
    tokenizer = train(split_then_bytes(LLAMA3_PATTERN), None, 1150)
    added = [special(s) for s in ("<|begin_of_text|>", "<|end_of_text|>", "<|start_header_id|>",
                                  "<|end_header_id|>", "<|eot_id|>", "<|python_tag|>")]
    added.append(plain("<|custom|>", normalized=False))
    return finish(tokenizer, added, unreachable=[" unreachable", "Unreachable", "日本語です", "777", "??!"],
                  ignore_merges=True, frame=["<|begin_of_text|>"]), added


def qwen2():
    tokenizer = train(split_then_bytes(QWEN2_PATTERN), normalizers.NFC(), 1150)
    tokenizer.post_processor = processors.ByteLevel(add_prefix_space=False, trim_offsets=False, use_regex=False)
    added = [special("<|endoftext|>"), special("<|im_start|>"), special("<|im_end|>"),
             *[plain(s, normalized=False) for s in ("<tool_call>", "</tool_call>", "<think>", "</think>")],
             plain("déjà!", normalized=True), plain("<ü>", normalized=False)]
    return finish(tokenizer, added, unreachable=[" unreachable"]), added


def neox():
    tokenizer = train(byte_level(), normalizers.NFC(), 1150)
    tokenizer.post_processor = processors.ByteLevel(add_prefix_space=False, trim_offsets=True)
    added = [special("<|endoftext|>"), special("<|padding|>"), *[plain(" " * n) for n in range(24, 1, -1)],
             *[plain(s) for s in ("|||EMAIL_ADDRESS|||", "|||PHONE_NUMBER|||", "|||IP_ADDRESS|||")]]
    return finish(tokenizer, added, string_merges=True), added


def with_splits(pre_tokenizer, added, normalizer=None, frame=(), **options):
    return lambda: (finish(train(pre_tokenizer, normalizer, 1150), added, frame=frame, **options), added)


def digits_then_bytes():
    return pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), byte_level()])


DEEPSEEK_TOKENS = [special("<｜begin▁of▁sentence｜>"), special("<｜end▁of▁sentence｜>"), plain("<｜User｜>", normalized=False),
                   plain("<｜Assistant｜>", normalized=False), plain("<think>", normalized=False)]
END = [special("<|endoftext|>"), special("<|im_start|>"), special("<|im_end|>"), plain("<tool>", normalized=False)]

# name -> what is special, how to make it, and the name of the splitting rule in GGUF files
STYLES = {
    "gpt2": ("ByteLevel with its own regex; merges as strings; added tokens with lstrip, rstrip, single_word", gpt2, "gpt-2"),
    "gpt2_prefix_space": ("ByteLevel with its own regex and add_prefix_space; template processor that adds <s>", gpt2_prefix_space, None),
    "llama3": ("Split regex (digits in threes) then ByteLevel without regex; ignore_merges; adds <|begin_of_text|>", llama3, "llama-bpe"),
    "qwen2": ("NFC, Split regex (single digits) then ByteLevel without regex; special and plain added tokens", qwen2, "qwen2"),
    "neox": ("NFC, ByteLevel with its own regex; added tokens that are runs of 2 to 24 spaces; merges as strings", neox, "olmo"),
    "deepseek_v3": ("three Splits one after the other (numbers, Chinese and kana, the rest), then ByteLevel",
                    with_splits(split_then_bytes(*DEEPSEEK_V3_PATTERNS), DEEPSEEK_TOKENS, normalizers.Sequence([]),
                                frame=["<｜begin▁of▁sentence｜>"]), "deepseek-v3"),
    "deepseek_llm": ("five Splits (line ends, cased letters, punctuation, last spaces, Chinese), Digits, then ByteLevel",
                     with_splits(split_then_bytes(*DEEPSEEK_LLM_PATTERNS, last=pre_tokenizers.Digits(individual_digits=True)),
                                 DEEPSEEK_TOKENS, frame=["<｜begin▁of▁sentence｜>"]), "deepseek-llm"),
    "o200k": ("Split regex that cuts where lower case turns to upper case, and keeps contractions with their word",
              with_splits(split_then_bytes(O200K_PATTERN), [*END, special("<|start|>"), special("<|channel|>")]), "gpt-4o"),
    "kimi": ("as o200k, but Chinese stands apart: intersections of character classes; ignore_merges",
             with_splits(split_then_bytes(KIMI_PATTERN), END, ignore_merges=True, unreachable=["日本語", " unreachable"]), "kimi-k2"),
    "tekken": ("as o200k without contractions, single digits; adds <s>",
               with_splits(split_then_bytes(TEKKEN_PATTERN), [special("<s>"), special("</s>"), special("[INST]")],
                           frame=["<s>"], ignore_merges=True), "tekken"),
    "qwen35": ("NFC, as qwen2, but marks belong to words",
               with_splits(split_then_bytes(QWEN35_PATTERN), END, normalizers.NFC()), "qwen35"),
    "bailing": ("possessive quantifiers; a line end at a time",
                with_splits(split_then_bytes(BAILING_PATTERN), END), "bailingmoe"),
    "starcoder": ("Digits one by one, then ByteLevel with its own regex", with_splits(digits_then_bytes(), END), "refact"),
    "glm4": ("the split of llama3 without ignore_merges; two tokens before the text",
             with_splits(split_then_bytes(LLAMA3_PATTERN), [special("<|endoftext|>"), special("[gMASK]"), special("<sop>"),
                                                            special("<|user|>"), plain("<think>", normalized=False)],
                         frame=["[gMASK]", "<sop>"]), "glm4"),
}
