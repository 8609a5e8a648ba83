# SPDX-License-Identifier: GPL-3.0-or-later
"""Trains small byte-level BPE tokenizers and records how the reference encodes and decodes.

Writes tokenizers/NAME/tokenizer.json, tokenizers/NAME/cases.json and tokenizers/index.json.
The formats are described in README.md.
"""

import json
import random
import unicodedata
from pathlib import Path

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers
from tokenizers import pre_tokenizers, processors, trainers

HERE = Path(__file__).resolve().parent
OUT = HERE / "tokenizers"

LLAMA3_PATTERN = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
QWEN2_PATTERN = LLAMA3_PATTERN.replace(r"\p{N}{1,3}", r"\p{N}")

TEXT = [
    "The quick brown fox jumps over the lazy dog. The dog didn't mind; it's used to foxes, and they're used to it.",
    "We've said it before and we'll say it again: I'm sure he'd have done the same, don't you think so?",
    "A mixture of experts model routes every token to a few experts. The router chooses, the experts compute.",
    "The cache holds some of the experts; the rest stay on the disk until a token needs them.",
    "When the hit rate falls, the model waits for the disk. When the cache grows, the model waits less.",
    "Once upon a time there was a small hummingbird who lived in a garden with red and yellow flowers.",
    "She said hello to the sun, hello to the wind, and hello to every flower in the garden.",
    "def add(a, b):\n    return a + b\n\nfor i in range(10):\n    print(add(i, 1))\n",
    "def main():\n\tif True:\n\t\treturn {'key': [1, 2, 3], 'name': \"value\"}\n",
    "#include <stdio.h>\nint main(void) {\n    printf(\"hello, world\\n\");\n    return 0;\n}\n",
    "{\"type\": \"function\", \"function\": {\"name\": \"get_weather\", \"arguments\": {\"city\": \"Paris\"}}}\n",
    "In 1999 there were 365 days, in 2000 there were 366; 1234567890 is a number, and 3.14159 is another.",
    "Der schnelle braune Fuchs springt über den faulen Hund. Größe, Maß, Straße, für, über, möglich.",
    "Le renard brun saute par-dessus le chien paresseux. C'était déjà l'été, où êtes-vous, garçon?",
    "El zorro marrón salta sobre el perro perezoso. ¿Dónde está el niño? ¡Mañana será otro día!",
    "Быстрая коричневая лиса прыгает через ленивую собаку. Привет, мир! Привет, привет.",
    "Η γρήγορη αλεπού πηδάει πάνω από το σκυλί. Καλημέρα κόσμε, καλημέρα.",
    "الثعلب البني السريع يقفز فوق الكلب الكسول. مرحبا بالعالم مرحبا.",
    "השועל החום המהיר קופץ מעל הכלב העצלן. שלום עולם שלום.",
    "तेज़ भूरी लोमड़ी आलसी कुत्ते के ऊपर कूदती है। नमस्ते दुनिया नमस्ते।",
    "สวัสดีชาวโลก สุนัขจิ้งจอกสีน้ำตาลกระโดดข้ามสุนัข",
    "敏捷的棕色狐狸跳过了懒狗。你好，世界！你好，中国。",
    "素早い茶色の狐がのろまな犬を飛び越える。こんにちは世界、日本語、日本。",
    "빠른 갈색 여우가 게으른 개를 뛰어넘습니다. 안녕하세요 세계, 안녕.",
    "Emoji: 😀 😀 🎉 🚀 ❤️ 👍🏽 👩‍👩‍👧‍👦 🇫🇷 🇯🇵 ☕ ✨ 😀🎉",
    "Tiếng Việt: xin chào thế giới. Čeština: příliš žluťoučký kůň. Türkçe: İstanbul, ığdır.",
    "a b  c   d    e     f      g       h        i\n\n\n\nj\r\nk\r\n\r\nl\t\tm\t n",
    "https://example.org/path?query=1&other=2#part user@example.org C:\\dir\\file.txt /usr/bin",
    "!!! ??? ... --- *** === +++ ((( ))) [[[ ]]] {{{ }}} <<< >>> ||| &&& %%% $$$ ### @@@ ~~~ ``` ",
]

# Ranges from which random characters are drawn. Only characters assigned by Unicode 14 are
# used, so that the answer does not depend on the Unicode version of a regex library.
BLOCKS = [
    (0x20, 0x7E), (0xA0, 0xFF), (0x100, 0x24F), (0x250, 0x2AF), (0x2B0, 0x2FF), (0x300, 0x36F),
    (0x370, 0x3FF), (0x400, 0x4FF), (0x530, 0x58F), (0x590, 0x5FF), (0x600, 0x6FF), (0x700, 0x74F),
    (0x900, 0x97F), (0x980, 0x9FF), (0xB80, 0xBFF), (0xE00, 0xE7F), (0xF00, 0xFFF), (0x10A0, 0x10FF),
    (0x1100, 0x11FF), (0x1200, 0x137F), (0x13A0, 0x13FF), (0x1780, 0x17FF), (0x1800, 0x18AF),
    (0x1E00, 0x1EFF), (0x1F00, 0x1FFF), (0x2000, 0x206F), (0x2070, 0x209F), (0x20A0, 0x20CF),
    (0x20D0, 0x20FF), (0x2100, 0x214F), (0x2150, 0x218F), (0x2190, 0x21FF), (0x2200, 0x22FF),
    (0x2300, 0x23FF), (0x2460, 0x24FF), (0x2500, 0x257F), (0x2600, 0x27BF), (0x2E80, 0x2EFF),
    (0x3000, 0x303F), (0x3040, 0x309F), (0x30A0, 0x30FF), (0x3130, 0x318F), (0x3200, 0x32FF),
    (0x4E00, 0x9FFF), (0xA000, 0xA48C), (0xAC00, 0xD7A3), (0xF900, 0xFAFF), (0xFB00, 0xFB4F),
    (0xFB50, 0xFDFF), (0xFE00, 0xFE2F), (0xFE70, 0xFEFF), (0xFF00, 0xFFEF), (0x10000, 0x1005D),
    (0x10330, 0x1034A), (0x1D100, 0x1D1FF), (0x1D400, 0x1D7FF), (0x1F100, 0x1F1FF),
    (0x1F300, 0x1F5FF), (0x1F600, 0x1F64F), (0x1F680, 0x1F6FF), (0x1F900, 0x1F9FF),
    (0x20000, 0x2A6DF), (0x2F800, 0x2FA1D), (0xE0100, 0xE01EF), (0xE000, 0xF8FF), (0xF0000, 0xF00FF),
]


def assigned(code):
    return unicodedata.category(chr(code)) not in ("Cn", "Cs")


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


def finish(tokenizer, name, added, unreachable, ignore_merges, string_merges, bos):
    """Adds tokens, rewrites the parts of the file that the library does not let one set, reloads."""
    data = json.loads(tokenizer.to_str())
    for word in unreachable:  # whole words in the vocabulary to which no merge leads
        data["model"]["vocab"].setdefault(spell(word), len(data["model"]["vocab"]))
    data["model"]["ignore_merges"] = ignore_merges
    tokenizer = Tokenizer.from_str(json.dumps(data))
    for token in added:
        (tokenizer.add_special_tokens if token.special else tokenizer.add_tokens)([token])
    if bos:
        template = processors.TemplateProcessing(
            single=f"{bos} $A", pair=f"{bos} $A {bos} $B:1",
            special_tokens=[(bos, tokenizer.token_to_id(bos))])
        tokenizer.post_processor = processors.Sequence([processors.ByteLevel(trim_offsets=False), template])
    data = json.loads(tokenizer.to_str())
    if string_merges:  # the older form: one string per merge
        data["model"]["merges"] = [" ".join(pair) for pair in data["model"]["merges"]]
    folder = OUT / name
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "tokenizer.json"
    path.write_text(json.dumps(data, ensure_ascii=False, indent=0, separators=(",", ":")) + "\n", encoding="utf-8")
    return Tokenizer.from_file(str(path))


def byte_level(prefix_space=False, use_regex=True):
    return pre_tokenizers.ByteLevel(add_prefix_space=prefix_space, use_regex=use_regex)


def split_then_bytes(pattern):
    return pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(pattern), "isolated", invert=False), byte_level(use_regex=False)])


def build(name):
    nfc = normalizers.NFC()
    if name == "gpt2":
        tokenizer = train(byte_level(), None, 1150)
        tokenizer.post_processor = processors.ByteLevel(trim_offsets=False)
        added = [special("<|endoftext|>"), special("<mask>", lstrip=True), special("<r>", rstrip=True),
                 plain("<lr>", lstrip=True, rstrip=True), plain("foo", single_word=True), plain("<a>"),
                 plain("<a><b>"), plain("<two words>"),
                 plain("<|日本|>", normalized=False)]
        options = dict(unreachable=[" unreachable"], ignore_merges=False, string_merges=True, bos=None)
    elif name == "gpt2_prefix_space":
        tokenizer = train(byte_level(prefix_space=True), None, 1150)
        added = [special("<s>"), special("</s>"), special("<mask>", lstrip=True), plain("<note>"),
                 plain("bar", single_word=True, lstrip=True)]
        options = dict(unreachable=[], ignore_merges=False, string_merges=False, bos="<s>")
    elif name == "llama3":
        tokenizer = train(split_then_bytes(LLAMA3_PATTERN), None, 1150)
        added = [special(s) for s in ("<|begin_of_text|>", "<|end_of_text|>", "<|start_header_id|>",
                                      "<|end_header_id|>", "<|eot_id|>", "<|python_tag|>")]
        added.append(plain("<|custom|>", normalized=False))
        options = dict(unreachable=[" unreachable", "Unreachable", "日本語です", "777", "??!"],
                       ignore_merges=True, string_merges=False, bos="<|begin_of_text|>")
    elif name == "qwen2":
        tokenizer = train(split_then_bytes(QWEN2_PATTERN), nfc, 1150)
        tokenizer.post_processor = processors.ByteLevel(add_prefix_space=False, trim_offsets=False, use_regex=False)
        added = [special("<|endoftext|>"), special("<|im_start|>"), special("<|im_end|>"),
                 *[plain(s, normalized=False) for s in ("<tool_call>", "</tool_call>", "<think>", "</think>")],
                 plain("déjà!", normalized=True), plain("<ü>", normalized=False)]
        options = dict(unreachable=[" unreachable"], ignore_merges=False, string_merges=False, bos=None)
    else:  # neox
        tokenizer = train(byte_level(), nfc, 1150)
        tokenizer.post_processor = processors.ByteLevel(add_prefix_space=False, trim_offsets=True)
        added = [special("<|endoftext|>"), special("<|padding|>"), *[plain(" " * n) for n in range(24, 1, -1)],
                 *[plain(s) for s in ("|||EMAIL_ADDRESS|||", "|||PHONE_NUMBER|||", "|||IP_ADDRESS|||")]]
        options = dict(unreachable=[], ignore_merges=False, string_merges=True, bos=None)
    tokenizer.decoder = decoders.ByteLevel()
    bos = options["bos"]
    tokenizer = finish(tokenizer, name, added, **options)
    return tokenizer, added, bos


STYLES = {
    "gpt2": "ByteLevel with its own regex; merges as strings; added tokens with lstrip, rstrip, single_word",
    "gpt2_prefix_space": "ByteLevel with its own regex and add_prefix_space; template processor that adds <s>",
    "llama3": "Split regex (digits in threes) then ByteLevel without regex; ignore_merges; adds <|begin_of_text|>",
    "qwen2": "NFC, Split regex (single digits) then ByteLevel without regex; special and plain added tokens",
    "neox": "NFC, ByteLevel with its own regex; added tokens that are runs of 2 to 24 spaces; merges as strings",
}


def common_strings():
    """Strings for every tokenizer."""
    out = ["", " ", "  ", "   ", "\n", "\n\n", "\r\n", "\r", "\t", " \n", "\n ", " \n ", "\t\n\t", "a", " a", "a ",
           "hello", " hello", "Hello world", "hello  world", "hello   world   ", "  leading", "trailing  "]
    out += TEXT
    out += [  # contractions, all cases, and letters whose case folding is special
        "don't", "DON'T", "Don'T we'LL I'M he'D they'Re you'VE it'S", "'s 't 're 've 'm 'll 'd", " 's 'S", "''s", "'sx",
        "it’s", "'ſ", "we'lL x'RE", "o'clock 'tis rock'n'roll", "can't've", "1's 2'll", "a'b'c'd'e", "'", "''", "'''",
        "ſtrange K Å ẞ ß SS", "d'Été l'Œuvre qu'il", "İi Iı",
        "x'sx", "x'Sx", "x'ſx", " 'ſx", "'tx'Tx", "'rex'REx'rEx", "'vex", "'mx 'Mx", "'llx'Llx", "'dx", "xx's's", "7's", "!'s",
    ]
    out += [  # digits
        "0", "12", "123", "1234", "12345", "123456", "1234567", "12345678901234567890", "1 2 3", "1,234,567.89",
        "3.14e-10", "0x1F", "v1.2.3", "2024-07-26T12:34:56Z", "٣٤٥٦", "१२३४", "①②③④", "½¾", "Ⅳ", "x²y³", "777", "7777",
        "a1b22c333d4444", "１２３４", "100%", "$5.00", "№5", "𝟘𝟙𝟚𝟛", "〇一二三",
    ]
    out += [  # white space
        "a\u00a0b", "\u00a0", "\u00a0\u00a0x", " \u00a0 ", "a\u2003b", "a\u2009\u2009b", "a\u3000b", "\u3000\u3000",
        "a\u0085b", "\u0085", "a\u0085\u0085b", "a\u180eb", "a \u180e b", "\u180e\u180e", "a\u200bb", "a\u200b\u200bb",
        "\ufeffBOM", "a\ufeffb", "a\u2028b\u2029c", "\u2028\u2028", "a\x0bb\x0cc", "\x0b\x0c", "a\x1cb\x1db\x1eb\x1fb",
        "a\u205fb", "a\u1680b", "a\u202fb", "x \t y", "x\t\t\ty", "\t\tx", " \t \t ", "x\n\n\ny", "x\n \ny", "x \n\n y",
        "x\r\ny\r\n", "\r\n\r\n", "x\r\r\ny", "line \r\n  next", "\n\n  indented", "   \n   \n", "a  \n", "!\n", "!\n\n", "! \n",
        "...\r\n\r\n", "}\n\n\n}", "){\n\t", " " * 4 + "if x:\n" + " " * 8 + "pass\n", "a" + " " * 30 + "b", " " * 63,
        "\n" * 40, "\t" * 17, " \n" * 10, "x" + " " * 24 + "y" + " " * 25 + "z", "a \u200d b",
    ]
    out += [  # control characters and odd code points
        "\x00", "a\x00b", "\x01\x02\x03", "\x7f", "\x1b[31mred\x1b[0m", "\u00ad", "a\u00adb", "\ufffd", "\ufffe", "\uffff",
        "\ue000\uf8ff", "\U0010ffff", "\U000f0000x", "\u061c\u200e\u200f\u202a\u202c", "\u2066x\u2069", "\U000e0041\U000e007f",
    ]
    out += [  # combining marks and normalization
        "e\u0301", "é", "cafe\u0301", "caf\u00e9", "a\u0301\u0327", "a\u0327\u0301", "\u0301", " \u0301", "x\u0301\u0302\u0303",
        "\u1100\u1161\u11a8", "각", "A\u030a \u00c5 \u212b", "\u03a9 \u2126", "ﬁ ﬂ ﬃ", "\u0344", "\u0958", "\uf900", "\u2f800"[:1],
        "\U0002f800", "n\u0303o", "de\u0301ja\u0300!", "déjà!", "q\u0307\u0323", "q\u0323\u0307", "ำ า", "क्षि", "\u0f73",
        "Å" + "\u0301" * 20, "Z̷̢͝a̶l̴g̵o̷", "\u2260 =\u0338", "\u0340\u0341", "\u1e9b\u0323",
    ]
    out += [  # emoji
        "😀", "😀😀", " 😀", "😀 😃", "👍🏽", "👩‍👩‍👧‍👦", "👨🏿‍🚀", "🇫🇷🇯🇵", "❤️", "❤", "☕️x", "1️⃣", "🏴󠁧󠁢󠁥󠁮󠁧󠁿", "text😀text", "🧑‍💻 code", "🫠",
        "😀" * 12, "™®©", "→⇒↔", "✓✗",
    ]
    out += [  # scripts without spaces, mixed scripts, right to left
        "你好世界", "你好,世界!", "日本語テスト", "日本語です", "ｶﾀｶﾅ", "한국어 텍스트", "ภาษาไทย", "မြန်မာ", "ខ្មែរ", "བོད་ཡིག", "ქართული",
        "አማርኛ", "مرحبا123world", "שָׁלוֹם", "हिन्दी में", "தமிழ்", "ελληνικά", "Ünïcödé", "𝒳𝓎𝓏", "𐍈𐌰", "𠀀𠀁", "abcабвαβγ", "Ａｂｃ",
        "İstanbul", "straße STRASSE", "ǅ ǆ", "ª º ʰ ˣ", "ⅷ Ⓐ ⓐ", "ـ", "々〆〇", "ー〜",
    ]
    out += [  # punctuation and code
        "!", "!!", "?!?!", "...", "…", "--", "—", "a-b", "a--b", "a_b", "__init__", "snake_case_name", "camelCaseName", "C++", "C#",
        "a/b\\c", "x=1;y=2", "if(x){y}", "<html>", "</div>", "<!-- c -->", "&amp;", "@user #tag", "user@example.org", "`code`",
        "```py\nx\n```", "\"quoted\"", "“curly”", "«guillemets»", "(a)", "[b]", "{c}", "$x$", "\\n", "\\u00e9", "%s %d", "a...b",
        "¿Qué?", "¡Hola!", "a.b.c", ".5", " .", " ,x", " -x", "x -- y", "~/.bashrc", "**bold** _it_", "| a | b |\n|---|---|\n", "#!/bin/sh\n",
        "/* c */ // d\n", " !x", "\n!x", "\t!x", "\u00a0!x", "x!\r\n\r\ny", "unreachable", " unreachable", "Unreachable", "an unreachable word",
        "??!", "a??!b", "experts", " experts", "expertise", "hellohello", "aaaaaaaa", "The the THE tHe",
    ]
    out += ["a" * 300, "ab" * 120, "1" * 200, "!" * 150, "é" * 60, "的" * 60, "hello " * 40, "=" * 77 + "\n", "-" * 80, " x" * 50,
            "lorem ipsum dolor sit amet " * 5, "x" * 1000]
    return out


def random_strings(rng):
    out = []
    codes = {block: [c for c in range(block[0], block[1] + 1) if assigned(c)] for block in BLOCKS}
    for block in BLOCKS:  # one string within every block
        out.append("".join(chr(rng.choice(codes[block])) for _ in range(8)))
    for _ in range(50):  # mixed blocks, with spaces and line ends between
        parts = []
        for _ in range(rng.randint(2, 9)):
            chars = codes[rng.choice(BLOCKS)]
            parts.append("".join(chr(rng.choice(chars)) for _ in range(rng.randint(1, 3))))
            if rng.random() < 0.5:
                parts.append(rng.choice([" ", "  ", "\n", "\t", "'s", " 1", "-", "\r\n", "\u00a0"]))
        out.append("".join(parts))
    for _ in range(40):  # combining marks after letters, to exercise normalization
        out.append("".join(rng.choice("aeioucnsAEOzZ가नक") + "".join(
            chr(rng.randint(0x300, 0x345)) for _ in range(rng.randint(0, 3))) for _ in range(rng.randint(1, 6))))
    for _ in range(40):  # pieces of the training text glued together
        parts = []
        for _ in range(rng.randint(1, 4)):
            line = rng.choice(TEXT)
            start = rng.randrange(len(line))
            parts.append(line[start:start + rng.randint(1, 25)])
        out.append(rng.choice(["", " ", "\n"]).join(parts))
    for _ in range(40):  # few symbols, many patterns
        out.append("".join(rng.choice(["a", "B", "1", " ", " ", "\n", "\r\n", "\t", ".", "!", "'", "'s", "é", "的", "\u00a0"])
                           for _ in range(rng.randint(3, 14))))
    return out


def added_token_strings(rng, added):
    out = []
    for token in added[:14]:
        t = token.content
        out += [t, f"a{t}b", f"a {t} b", f"  {t}  ", f"{t}{t}", f"{t} {t}", f"\n{t}\n", t[:-1], t[1:], f"x{t[:-1]}{t}",
                t.upper() if t.upper() != t else t.lower(), f"({t})", f"\t{t}\u00a0{t}\u3000x", f"1{t}2", f"_{t}_", f"é{t}é"]
    contents = [t.content for t in added]
    for _ in range(30):
        out.append("".join(rng.choice([*contents, "text", " ", " word ", "\n", "  ", "<", "|>", "é", "e\u0301", "1"])
                           for _ in range(rng.randint(2, 8))))
    return out


def template_strings(name):
    return {
        "gpt2": ["<a><b><a>", "<a><a><b>", "food foo foo. foo_bar xfoo foo1 foo-foo éfoo fooé foo", "<two  words><two words>",
                 "   <mask>   x   <r>   y   <lr>   z", "x\n<mask>\n<r>\ny\n<lr>\nz", "<|endoftext|><|endoftext|"],
        "gpt2_prefix_space": ["<s>hello</s>", "<s> hello </s>", "a  bar b", "bar", "rebar bars bar", " <note>x", "<note>\nx",
                              "<note>\tx", "x <mask> y", "\u00a0x", "<s></s>"],
        "llama3": ["<|begin_of_text|><|start_header_id|>user<|end_header_id|>\n\nHi!<|eot_id|>", "<|custom|>7777 777"],
        "qwen2": ["<|im_start|>user\nHi, how're you?<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n",
                  "<tool_call>\n{\"name\": \"f\", \"arguments\": {}}\n</tool_call>", "déjà! de\u0301ja\u0300! <ü> <u\u0308>",
                  "e<|im_end|>\u0301", "e\u0301<|im_end|>e\u0301"],
        "neox": ["x" + " " * 2 + "y" + " " * 3 + "z", " " * 48, " " * 49, "\n" + " " * 8 + "return", " " * 5 + "\n" + " " * 5,
                 "mail |||EMAIL_ADDRESS||| or ||||||EMAIL_ADDRESS|||", "e\u0301  e\u0301"],
    }[name]


def raw_bytes(tokenizer, added_ids, ids, skip_special):
    out = b""
    for i in ids:
        token = tokenizer.id_to_token(i)
        if i in added_ids:
            if not (skip_special and added_ids[i]):
                out += token.encode()
        else:
            out += bytes(CHAR_TO_BYTE[c] for c in token)
    return out


def decode(tokenizer, added_ids, ids, skip_special):
    """The reference's string, checked against our own bytes.

    An added token all of whose characters also stand for bytes, and one of them for another byte
    (as the e-acute), is taken for byte-level text by the reference and comes out broken. There
    the token's own text is what is wanted.
    """
    ours = raw_bytes(tokenizer, added_ids, ids, skip_special).decode("utf-8", "replace")
    text = tokenizer.decode(ids, skip_special_tokens=skip_special)
    broken = [tokenizer.id_to_token(i) for i in ids if i in added_ids]
    broken = [t for t in broken if not t.isascii() and all(c in CHAR_TO_BYTE for c in t)]
    assert ours == text or broken, (ids, ours, text)
    return ours


def encode_case(tokenizer, added_ids, text):
    case = {"text": text}
    tokenizer.encode_special_tokens = False
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
    decoded = decode(tokenizer, added_ids, ids, False)
    skipped = decode(tokenizer, added_ids, ids, True)
    if decoded != text:
        case["decoded"] = decoded
    if skipped != decoded:
        case["decoded_skip"] = skipped
    return case


def decode_case(tokenizer, added_ids, ids):
    text = decode(tokenizer, added_ids, ids, False)
    skipped = decode(tokenizer, added_ids, ids, True)
    case = {"ids": ids, "hex": raw_bytes(tokenizer, added_ids, ids, False).hex(), "text": text}
    if skipped != text:
        case["text_skip"] = skipped
    return case


def write_lines(path, arrays):
    """One case per line, so that a difference can be read."""
    dump = lambda value: json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    parts = [f'"{key}":[\n' + ",\n".join(dump(v) for v in values) + "\n]" for key, values in arrays.items()]
    text = "{" + ",\n".join(parts) + "}\n"
    json.loads(text)
    path.write_text(text, encoding="utf-8")


def main():
    index = []
    for number, (name, about) in enumerate(STYLES.items()):
        rng = random.Random(1000 + number)
        tokenizer, added, bos = build(name)
        added_ids = {tokenizer.token_to_id(t.content): t.special for t in added}
        texts = common_strings() + random_strings(rng) + added_token_strings(rng, added) + template_strings(name)
        texts = list(dict.fromkeys(texts))
        encode = [encode_case(tokenizer, added_ids, text) for text in texts]

        size = tokenizer.get_vocab_size(with_added_tokens=True)
        sequences = [[]] + [[i] for i in (*rng.sample(range(256), 24), *sorted(added_ids)[:8])]
        for _ in range(60):  # pieces of real sequences: often start or end within a character
            ids = rng.choice(encode)["ids"]
            if len(ids) > 2:
                start = rng.randrange(len(ids) - 1)
                sequences.append(ids[start:start + rng.randint(1, 12)])
        for _ in range(60):
            sequences.append([rng.randrange(size) for _ in range(rng.randint(1, 10))])
        for _ in range(30):  # single bytes: mostly invalid UTF-8
            sequences.append([rng.randrange(256) for _ in range(rng.randint(1, 8))])
        decoded = [decode_case(tokenizer, added_ids, ids) for ids in sequences]

        write_lines(OUT / name / "cases.json", {"encode": encode, "decode": decoded})
        index.append({"name": name, "about": about, "bos": tokenizer.token_to_id(bos) if bos else None, "vocab_size": size})
        print(f"{name}: vocabulary {size}, {len(encode)} strings, {len(decoded)} id sequences")
    (OUT / "index.json").write_text(json.dumps(index, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
