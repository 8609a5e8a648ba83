# SPDX-License-Identifier: GPL-3.0-or-later
"""Small helpers for text made from templates."""
import re

CHOICE = re.compile(r"\[([^\[\]]*)\]")


def expand(template, rng, slots=None):
    """Resolves `[a|b|c]` choices, innermost first, then `{slot}` names."""
    while True:
        text, count = CHOICE.subn(lambda m: rng.choice(m.group(1).split("|")), template)
        if not count:
            break
        template = text
    return text.format(**slots) if slots is not None else text


def article(noun):
    return ("an " if noun[0].lower() in "aeiou" else "a ") + noun


def sentence_case(text):
    """Upper case at the start, but names such as q8_0 and next_router stay as they are."""
    first = text.split(" ", 1)[0]
    if "_" in first or (first[:1] == "q" and first[1:2].isdigit()):
        return text
    return text[:1].upper() + text[1:]
