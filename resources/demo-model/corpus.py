# SPDX-License-Identifier: GPL-3.0-or-later
"""Makes the training and the held-out text, the same for the same seed.

    python corpus.py --out build/demo-train

writes train.jsonl and heldout.jsonl: one document a line, either a chat
(`messages`) or plain `text`, each with its `source`.
"""
import argparse
import json
import random
from pathlib import Path

import answers
import glosses
import smalltalk
import stories

SYSTEM = [
    "You are a helpful assistant.", "You are a friendly assistant.", "You are Colibri, a small language model.",
    "You are the demo model of Colibri Workbench.", "Answer briefly and kindly.",
    "You tell stories and answer questions about Colibri Workbench.", "You are a storyteller.",
]


def user(text):
    return {"role": "user", "content": text}


def assistant(text):
    return {"role": "assistant", "content": text}


class Maker:
    """Draws documents; `held_out` draws only phrasings and story parameters that training never sees."""

    def __init__(self, seed, held_out=False):
        self.rng, self.held_out = random.Random(f"{seed}/{held_out}"), held_out
        self.glosses = glosses.load()
        self.chatter = glosses.load_chatter()

    def casual(self, text):
        """People type carelessly; the model should not mind."""
        roll = self.rng.random()
        if roll < 0.12:
            text = text[:1].lower() + text[1:]
        elif roll < 0.24:
            text = text.lower().rstrip("?.!")
        elif roll < 0.32:
            text = text.rstrip("?.!")
        return text

    def story_turn(self, length=None):
        ask, reply, _, story = stories.make_story(self.rng, length, self.held_out)
        return [user(self.casual(ask)), assistant(reply)], story

    def follow_up(self, story):
        roll = self.rng.random()
        if roll < 0.5:
            pairs = stories.questions(story)
            question, answer = self.rng.choice(pairs)
            return [user(self.casual(question)), assistant(answer)]
        if roll < 0.8:
            question, answer = smalltalk.after_story(self.rng)
            return [user(self.casual(question)), assistant(answer)]
        _, text, _, _ = stories.make_story(self.rng, self.rng.choice(("short", "normal")), self.held_out)
        ask = self.rng.choice(["Tell me another one.", "Another story, please.", "One more, please.", "Can you tell me another one?",
                               "Tell me another story.", "Again!"])
        return [user(self.casual(ask)), assistant(text)]

    def answer_turn(self):
        question, answer = answers.draw(self.rng, self.held_out)
        return [user(self.casual(question)), assistant(answer)]

    def small_turn(self):
        return [message for pair in smalltalk.draw(self.rng, self.held_out)
                for message in (user(self.casual(pair[0])), assistant(pair[1]))]

    def gloss_turn(self):
        question, answer = glosses.draw(self.rng, self.glosses, self.held_out)
        return [user(self.casual(question)), assistant(answer)]

    def echo_turn(self):
        question, answer = stories.echo(self.rng)
        return [user(question), assistant(answer)]

    def chatter_turn(self):
        question, answer = self.rng.choice(self.chatter)
        return [user(question), assistant(answer)]

    def document(self, source):
        rng = self.rng
        if source == "plain story":
            _, _, text, story = stories.make_story(rng, None, self.held_out)
            if rng.random() < 0.3:
                text = story.title() + "\n\n" + text
            return {"source": source, "text": text}
        if source == "story":
            messages, story = self.story_turn()
            if rng.random() < 0.3:
                messages += self.follow_up(story)
        elif source == "conversation":
            messages = self.conversation()
        else:
            messages = {"answers": self.answer_turn, "small talk": self.small_turn, "glosses": self.gloss_turn,
                        "chatterbot": self.chatter_turn, "echo": self.echo_turn}[source]()
            # Several questions in a row, as people do.
            more = {"answers": self.answer_turn, "glosses": self.gloss_turn, "echo": self.echo_turn}.get(source, self.small_turn)
            while source != "chatterbot" and rng.random() < (0.6 if source == "echo" else 0.35):
                messages += more()
        return {"source": source, "messages": self.with_system(messages)}

    def conversation(self):
        """A longer chat that moves between the model's subjects."""
        rng, messages = self.rng, []
        if rng.random() < 0.6:
            messages += self.small_turn()
        for _ in range(rng.choice((2, 3, 3, 4, 5))):
            kind = rng.choices(["answer", "story", "small", "gloss"], [0.45, 0.25, 0.2, 0.1])[0]
            if kind == "story":
                turn, story = self.story_turn(rng.choice(("short", "short", "short", "normal", "normal", "long")))
                messages += turn
                if rng.random() < 0.5:
                    messages += self.follow_up(story)
            else:
                messages += {"answer": self.answer_turn, "small": self.small_turn, "gloss": self.gloss_turn}[kind]()
        return messages

    def with_system(self, messages):
        if self.rng.random() < 0.2:
            return [{"role": "system", "content": self.rng.choice(SYSTEM)}] + messages
        return messages


# Documents of each source in the training text, in thousands.
MIX = {"story": 13.0, "plain story": 2.0, "answers": 20.0, "conversation": 6.0, "small talk": 8.0, "glosses": 5.0,
       "chatterbot": 0.4, "echo": 4.0}


def write(path, documents):
    temporary = path.with_suffix(".tmp")
    with open(temporary, "w", encoding="utf-8") as file:
        for document in documents:
            file.write(json.dumps(document, ensure_ascii=False) + "\n")
    temporary.replace(path)


def make(out, seed=1, scale=1.0):
    out.mkdir(parents=True, exist_ok=True)
    maker, documents = Maker(seed), []
    for source, thousands in MIX.items():
        documents += [maker.document(source) for _ in range(int(thousands * 1000 * scale))]
    maker.rng.shuffle(documents)
    write(out / "train.jsonl", documents)
    maker = Maker(seed, held_out=True)
    # Of the chatterbot pairs nothing can be held out, and what is to be repeated is always new.
    sources = [source for source in MIX if source not in ("chatterbot", "echo")]
    held_out = [maker.document(source) for source in sources for _ in range(80)]
    write(out / "heldout.jsonl", held_out)


def ensure(out):
    if not ((out / "train.jsonl").exists() and (out / "heldout.jsonl").exists()):
        make(out)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("build/demo-train"))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--scale", type=float, default=1.0, help="size relative to the default mix")
    args = parser.parse_args()
    make(args.out, args.seed, args.scale)


if __name__ == "__main__":
    main()
