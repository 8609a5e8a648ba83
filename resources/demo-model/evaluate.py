# SPDX-License-Identifier: GPL-3.0-or-later
"""Measures a trained demo model and writes evaluation.md.

Held-out loss by source, how often each expert is chosen, hit rates of an LRU
cache over the routing of generated text, and fifty prompts with their answers.
"""
import argparse
import math
import random
from collections import OrderedDict
from pathlib import Path

import torch

import corpus
from export_hf import load_model
from model import ExpertFunction
from text import document_text, encode, load_tokenizer, read_documents, render
from train import evaluate_sources

HERE = Path(__file__).resolve().parent

# Written by hand; none of these (with hero and thing, for stories) is in the training text.
PROMPTS = """
Hello, who are you?
Hi, what are you able to do?
Tell me a story about a fox who finds a key.
Tell me a short story about a shy whale.
Please tell me a story about a brave girl who finds a lantern in the forest.
Tell me a story about a dinosaur.
I want a bedtime story about a bear who is afraid of the dark.
Tell me a long story about a princess and a telescope.
Tell me a long story about a boy who loses a kite.
Could you make up a story about two owls?
A story about a robot who wants to see the sea, please!
Tell me something about a hedgehog in a storm.
What is an expert in this program?
What is a router good for?
How does a Mixture of Experts work?
Why does the hit rate fall when I change the subject?
What does the cache slider do?
What will happen if I move the cache slider to 4?
What is the cache policy?
What is the difference between lru and slru?
What does prefetch depth mean?
How many prefetch threads should I use?
Which prefetch source is best?
What is the link limit and why is it on?
Do more compute threads make it faster?
What does ITL mean?
What is TTFT?
Explain P50 and P99 to me.
What is a stall?
What is the LRU cliff?
What is the difference between prefill and decode?
What is the KV cache for?
Why was the first reply so slow?
How can I export my session?
What is inside a session file?
What does the marker in the plot mean?
Why does SM utilisation say n/a?
How can I make you faster?
Do I need a graphics card for this?
Does the text change when I make the cache smaller?
What is q8_0?
What is a token?
How do I open my own model?
What is a lantern?
What does the word harbor mean?
What is a hummingbird?
Tell me a joke, please.
What is the capital of Sweden?
I feel a bit sad today.
Thank you, that was nice. Goodbye!
""".strip().splitlines()

CACHE_SIZES = (2, 4, 8, 12, 16, 24, 32)


def lru_hit_rate(routing, slots):
    """`routing`: for each token, for each layer, the chosen experts. One cache for all layers."""
    cache, hits, lookups = OrderedDict(), 0, 0
    for token in routing:
        for layer, experts in enumerate(token):
            for expert in experts:
                key = (layer, expert)
                lookups += 1
                if key in cache:
                    hits += 1
                    cache.move_to_end(key)
                    continue
                cache[key] = True
                if len(cache) > slots:
                    cache.popitem(last=False)
    return hits / lookups


@torch.no_grad()
def held_out_pass(model, tokenizer, documents):
    """Loss by source and each layer's shares of the experts, in one pass."""
    counts = torch.zeros(len(model.layers), model.config.num_experts)

    def count(model):
        for i, layer in enumerate(model.layers):
            counts[i] += torch.bincount(layer.mlp.index.flatten(), minlength=counts.shape[1])

    losses = evaluate_sources(model, tokenizer, documents, each=count)
    return losses, counts / counts.sum(1, keepdim=True)


def answer_all(model, tokenizer, prompts, temperature, routing, seed=0, limit=640):
    stop = {tokenizer.token_to_id("<|im_end|>"), tokenizer.token_to_id("<|endoftext|>")}
    generator = torch.Generator().manual_seed(seed)
    out = []
    for prompt in prompts:
        ids = tokenizer.encode(render([{"role": "user", "content": prompt}], True)).ids
        tokens = model.generate(ids, limit, stop, temperature, generator, routing)
        out.append((prompt, tokenizer.decode(tokens).strip(), len(tokens), tokens[-1] in stop))
    return out


def write_held_out_text(documents, path, size=30000):
    """A small text for the product's perplexity figures."""
    rng, text = random.Random(7), ""
    documents = list(documents)
    rng.shuffle(documents)
    for document in documents:
        piece = document_text(document) + "<|endoftext|>"
        if len(text) + len(piece) <= size:
            text += piece
    path.write_text(text, encoding="utf-8")


def table(header, rows):
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    return lines + ["| " + " | ".join(str(c) for c in row) + " |" for row in rows]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("build/demo-train"))
    parser.add_argument("--averaged", action="store_true")
    parser.add_argument("--report", type=Path, default=HERE / "evaluation.md")
    parser.add_argument("--heldout-text", type=Path, help="also write this small held-out text")
    parser.add_argument("--every", type=int, default=1, help="use every n-th held-out document only")
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    corpus.ensure(args.out)
    model, state = load_model(args.out / "moe.pt", args.averaged)
    tokenizer = load_tokenizer(args.out / "tokenizer.json")
    documents = read_documents(args.out / "heldout.jsonl")
    if args.heldout_text:
        write_held_out_text(documents, args.heldout_text)

    losses, shares = held_out_pass(model, tokenizer, documents[:: args.every])
    model.eval()
    lines = ["# Evaluation of the demo model", "", f"Made by `evaluate.py` after {state['step']} steps, "
             f"{state['tokens']:,} training tokens.", "", "## Held-out loss", "",
             "Nats per token, over whole chats (prompts included), each document on its own. "
             "Held out are phrasings of questions and pairs of hero and thing in stories.", ""]
    lines += table(["source", "loss", "perplexity"], [(k, f"{v:.4f}", f"{math.exp(v):.3f}") for k, v in losses.items()])

    experts = model.config.num_experts
    lines += ["", "## Expert usage", "", f"Share of each layer's choices on the held-out text; even use would be {1 / experts:.2%}.", ""]
    rows = []
    for i, share in enumerate(shares):
        ordered = share.sort(descending=True).values
        rows.append((i, f"{ordered[-1]:.2%}", f"{share.median():.2%}", f"{ordered[0]:.2%}", f"{ordered[:8].sum():.1%}", int((share < 0.001).sum())))
    lines += table(["layer", "least used", "median", "most used", "8 most used together", "below 0.1 %"], rows)

    routing = []
    # One token at a time there is nothing to gain from padded rows.
    ExpertFunction.ROWS = 1
    greedy = answer_all(model, tokenizer, PROMPTS, 0.0, routing)
    lines += ["", "## Hit rates", "", "LRU over the routing of the fifty chats below (prompt and answer, token by token), "
              "one cache of layers x size slots, cold at the start, without prefetch.", ""]
    rates = {size: lru_hit_rate(routing, size * len(model.layers)) for size in CACHE_SIZES}
    lines += table(["experts per layer", "hit rate"], [(s, f"{r:.1%}") for s, r in rates.items()])

    quote = lambda t: [("> " + line).rstrip() for line in t.split("\n")]
    lines += ["", "## Fifty prompts, greedy", ""]
    for prompt, text, count, ended in greedy:
        lines += [f"**{prompt}** ({count} tokens{'' if ended else ', cut'})", "", *quote(text), ""]
    lines += ["## Twelve of them at temperature 0.7", ""]
    for prompt, text, count, ended in answer_all(model, tokenizer, PROMPTS[2::4], 0.7, None):
        lines += [f"**{prompt}** ({count} tokens{'' if ended else ', cut'})", "", *quote(text), ""]
    args.report.write_text("\n".join(lines).rstrip() + "\n", encoding="utf-8")
    print(losses, rates, sep="\n")


if __name__ == "__main__":
    main()
