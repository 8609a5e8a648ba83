# SPDX-License-Identifier: GPL-3.0-or-later
"""The text that the golden tokenizers learn from, and the strings that they are asked to encode."""

import unicodedata

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
        "o200k": ["HelloWorld helloWORLD's don'T XMLHttpRequest's iPhone'll", "path/to//file/\n//\n", "<|start|>assistant<|channel|>"],
        "kimi": ["你好World你好 world你好's", "日本語テスト 漢字Kanji", "an unreachable 日本語"],
        "deepseek_v3": ["<｜begin▁of▁sentence｜><｜User｜>Hi!<｜Assistant｜><think>\n", "#include (x)y .com -5 _name 中文,中文ab", "x１２３４ y"],
        "deepseek_llm": ["x  ", "x \n ", "a，b。c", "中文ab12中", "<｜User｜>Hi<｜Assistant｜>"],
        "bailing": ["x\n\n\ny", "'S'LL 're", "a!!\n\n!"],
        "glm4": ["[gMASK]<sop><|user|>\nHi<think>", "[gMASK] <sop>"],
        "mixtral": ["<s>[INST] Hi [/INST]", "<s> x</s> y", "x <tool> y<tool>", "  <tool>", "▁x ▁ x", "x<|im_end|> y\n<|im_end|>"],
        "metaspace": ["<s>x</s>y z", "<s> x", "<|end|>\n\nx", "x  <|end|>  y", "▁x ▁"],
    }.get(name, [])
