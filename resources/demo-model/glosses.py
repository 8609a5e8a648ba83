# SPDX-License-Identifier: GPL-3.0-or-later
"""Meanings of plain nouns from WordNet, and a few pairs from chatterbot-corpus.

WordNet 3.0 is read from the files of Debian's package wordnet-base;
chatterbot-corpus from its Python package. Both are narrowed to short, harmless
entries.
"""
import importlib.util
import os
import re
from pathlib import Path

from phrases import article, sentence_case
from stories import hash_of

WORDNET = Path(os.environ.get("WORDNET_DIR", "/usr/share/wordnet"))

# The common words whose meanings the model learns; each first noun sense.
WORDS = """
acorn airport anchor apple arch attic balloon banana barn basket bat bed bee bell bench bicycle boat book bottle bow bowl box bread
brick bridge brook bucket bus butterfly button cabin cage cake camera candle carpenter carpet castle cat cave cellar chair chimney
church clock cloud clover coin comet compass cottage crab cradle crown cupboard curtain desk dictionary dish dragon drawer drum eagle
elephant feather fence field flag flute fog forest fountain fox funnel garden giant giraffe glacier glove goose guitar hammer
handkerchief harbor harp hat hedgehog helmet hill honey horse hospital hummingbird iceberg igloo island jacket jewel kettle key kitchen kite
ladder lake lamp lantern leaf letter library lighthouse lion lock map market mask meadow mill mirror mountain museum napkin
necklace needle nest oak oar ocean orchestra oven owl paddle palace paper parade pearl pencil penguin piano picnic pillow planet pond
pony prince princess pumpkin puzzle queen rabbit raft rain rainbow ribbon ring river robot rocket roof root rope sail sailor sandwich
scarecrow scarf school sea seed shell shepherd ship shoe shovel sled sleeve snow soap sofa soup spider spoon spring squirrel stable star statue
storm stove street suitcase sun table tail tailor teapot telescope tent thread throne torch tower town toy train treasure tree
trumpet tunnel umbrella valley vase village violin volcano wall watch waterfall wave well whale wheel whistle windmill window wing wizard
wolf
""".split()
UNWANTED = re.compile(r"\b(sex|sexual|genital|kill|weapon|drug|blood|corpse|death|dead|penis|breast|urine|feces|slang|slur|vulgar|"
                      r"bullet|gun|bomb|war|god|christ|disease|poison|narcotic|alcoholic|liquor|especially|esp|usually of|"
                      r"usu|specifically|trademark|genus|family)\b", re.I)


def load():
    """[(word, meaning)], sorted by word."""
    offsets = {}
    with open(WORDNET / "index.noun", encoding="latin-1") as file:
        for line in file:
            if not line.startswith(" "):
                fields = line.split()
                count = int(fields[2])
                offsets[fields[0]] = int(fields[-count])
    found = []
    with open(WORDNET / "data.noun", "rb") as file:
        for word in sorted(set(WORDS)):
            if word not in offsets:
                continue
            file.seek(offsets[word])
            gloss = file.readline().decode("latin-1").split("|", 1)[1]
            # Only the definition: no examples, no asides.
            gloss = re.sub(r"\([^)]*\)", "", gloss.split('; "')[0].split(";")[0])
            gloss = re.sub(r"\s+", " ", gloss).strip(" .,")
            if not re.match(r"(a|an|the|any|one) ", gloss) or UNWANTED.search(gloss) or not 4 <= len(gloss.split()) <= 18:
                continue
            if re.search(r"[^a-zA-Z ,'-]", gloss) or re.search(rf"\b{word}\b", gloss):
                continue
            found.append((word, gloss))
    return found


FRAMES = ["What is {a}?", "What is {a}?", "What does the word {w} mean?", "What does {w} mean?", "Define {w}.", "Do you know what {a} is?",
          "Can you tell me what {a} is?", "Explain the word {w}.", "Please tell me what {a} is.", "Tell me what {a} is.", "What's {a}?",
          "What do you call {a}?", "What is the meaning of {w}?"][:11]
ANSWERS = ["{A} is {g}."]


def draw(rng, meanings, held_out=False):
    while True:
        word, gloss = rng.choice(meanings)
        frame = rng.choice(FRAMES)
        if (hash_of(word + frame) % 8 == 0) == held_out:
            break
    names = dict(w=word, a=article(word), A=sentence_case(article(word)), g=gloss)
    return frame.format(**names), rng.choice(ANSWERS).format(**names)


CHATTER_FILES = ("greetings", "conversations", "botprofile", "computers", "food")
CHATTER_WORDS = re.compile(r"\b(god|hate|sex|drunk|drink|wine|beer|die|dead|kill|stupid|damn|hell|alice|python|clone|mother|father|boss|"
                           r"money|president|politic|windows|linux|microsoft|apple|internet|internet|whiskey|married|girl|boyfriend|skiddoo|man in a mask)", re.I)


def load_chatter():
    """Short question and answer pairs from chatterbot-corpus (BSD licence)."""
    import yaml

    package = importlib.util.find_spec("chatterbot_corpus")
    if package is None:
        raise SystemExit("chatterbot-corpus is not installed: pip install -r requirements.txt")
    folder = Path(package.submodule_search_locations[0]) / "data" / "english"
    pairs = []
    for name in CHATTER_FILES:
        content = yaml.safe_load((folder / f"{name}.yml").read_text(encoding="utf-8"))
        for turns in content["conversations"]:
            question, answer = str(turns[0]).strip(), str(turns[1]).strip()
            both = question + " " + answer
            if len(both) > 160 or CHATTER_WORDS.search(both) or not both.isascii() or "  " in both:
                continue
            if not answer[0].isupper() or answer[-1] not in ".!?" or len(answer.split()) < 3:
                continue
            pairs.append((question, answer))
    return pairs
