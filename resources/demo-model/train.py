# SPDX-License-Identifier: GPL-3.0-or-later
"""Trains the demo model from scratch on the CPU.

    python train.py --out build/demo-train --minutes 90

makes the corpus and the tokenizer if they are missing, then trains until the
time is up, saving as it goes; called again, it goes on from the last save. The
learning rate stays flat and falls linearly to zero in the last part of the
time. To end earlier, write the minutes left into OUT/DECAY.
"""
import argparse
import json
import math
import os
import time
from pathlib import Path

# Every distinct matrix shape is a compiled kernel; the default cache is too small.
os.environ.setdefault("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "8192")

import torch
import torch.nn.functional as F

import corpus
from model import Config, HeadLoss, Model
from text import Packer, encode, load_tokenizer, read_documents, render, train_tokenizer


class Muon:
    """Momentum whose update is orthogonalised (Newton-Schulz), for matrices.

    It needs about half of AdamW's steps here, and gives rarely chosen experts
    full-sized updates. Stacked experts are orthogonalised one by one.
    """

    def __init__(self, parameters, buffers, fused, momentum=0.95, weight_decay=0.02):
        self.parameters, self.buffers, self.fused = parameters, buffers, fused
        self.momentum, self.weight_decay = momentum, weight_decay

    # The polynomials of Amsel et al., "The Polar Express" (2025), best for four steps.
    POLAR = ((8.2872, -23.5959, 17.3004), (4.1071, -2.9478, 0.5448), (3.9487, -2.9089, 0.5518), (3.3184, -2.4885, 0.5100))

    @classmethod
    def orthogonal(cls, g):
        x = g.to(torch.bfloat16)
        tall = x.shape[-2] > x.shape[-1]
        x = x.mT.contiguous() if tall else x
        x = x / (x.norm(dim=(-2, -1), keepdim=True) * 1.02 + 1e-7)
        for a, b, c in cls.POLAR:
            square = x @ x.mT
            x = a * x + (b * square + c * (square @ square)) @ x
        return (x.mT if tall else x).float()

    @torch.no_grad()
    def step(self, grads, rate):
        for p, buffer, grad, fused in zip(self.parameters, self.buffers, grads, self.fused):
            buffer.lerp_(grad, 1 - self.momentum)
            update = grad.lerp_(buffer, self.momentum)
            if fused:
                # Gate and up are two matrices that only share their storage.
                update = update.unflatten(-2, (2, -1))
            update = self.orthogonal(update).reshape(p.shape)
            # Scaled so that one rate suits these and AdamW's parameters.
            scale = 0.2 * math.sqrt(max(p.shape[-2:]))
            p.mul_(1 - rate * self.weight_decay).add_(update, alpha=-rate * scale)


class Shared:
    """What the worker processes have in common, in shared memory.

    Each worker computes the gradient of its part of a batch on one thread, then
    updates its part of the weights. Workers wait for each other twice a step;
    threads would do so at every matrix product, which costs much on a machine
    that has other work to do.
    """

    def __init__(self, config, args, context):
        torch.manual_seed(args.seed)
        self.config, self.workers = config, args.workers
        self.model = Model(config).share_memory()
        zeros = lambda: [torch.zeros_like(p).share_memory_() for p in self.model.parameters()]
        self.grads = [zeros() for _ in range(args.workers)]
        self.momentum = zeros()
        # A running average of the weights: what a decayed learning rate would
        # give, at any time, for the checkpoints in between.
        self.average = [p.detach().clone().share_memory_() for p in self.model.parameters()]
        self.losses = torch.zeros(args.workers, 2).share_memory_()
        self.control = torch.zeros(3, dtype=torch.float64).share_memory_()  # rate, length, go on
        self.barrier = context.Barrier(args.workers)


class Worker:
    """One process of the training; number 0 also keeps the clock and the log."""

    def __init__(self, rank, shared, args):
        self.rank, self.shared, self.args, self.model = rank, shared, args, shared.model
        self.step, self.tokens, self.elapsed = 0, 0, 0.0
        self.decay_from, self.decay_length = None, None
        names = dict(self.model.named_parameters())
        self.parameters = list(names.values())
        part, others, fused = [], [], []
        for i, (name, p) in enumerate(names.items()):
            if p.dim() < 2 or name.endswith(("embed_tokens.weight", "lm_head.weight", "gate.weight")):
                others.append(i)
            elif p.dim() == 3:
                # A share of the experts of every layer.
                size = -(-len(p) // shared.workers)
                part.append((i, slice(rank * size, (rank + 1) * size)))
                fused.append("w13" in name)
            elif len(part) % shared.workers == rank:
                part.append((i, slice(None)))
                fused.append("w13" in name)
            else:
                part.append((i, slice(0, 0)))
                fused.append(False)
        keep = [n for n, (i, s) in enumerate(part) if self.parameters[i][s].numel()]
        self.part = [part[n] for n in keep]
        view = lambda tensors: [tensors[i].data[s] for i, s in self.part]
        self.muon = Muon(view(self.parameters), view(shared.momentum), [fused[n] for n in keep])
        self.others = others if rank == 0 else []
        self.adam = None
        if rank == 0:
            self.adam = torch.optim.AdamW([self.parameters[i] for i in others], betas=(0.9, 0.98), weight_decay=0.0)

    def save(self, path, **more):
        temporary = path.with_suffix(".tmp")
        torch.save(dict(config=self.model.config.as_dict(), model=self.model.state_dict(), average=self.shared.average,
                        momentum=self.shared.momentum, adam=self.adam.state_dict(), step=self.step, tokens=self.tokens,
                        elapsed=self.elapsed, decay=(self.decay_from, self.decay_length), **more), temporary)
        temporary.replace(path)

    def restore(self, state):
        self.step, self.tokens, self.elapsed = state["step"], state["tokens"], state["elapsed"]
        # When more time is given than before, the rate goes up again first.
        if self.elapsed >= self.args.minutes * 60 * (1 - self.args.decay):
            self.decay_from, self.decay_length = state["decay"]
        if self.rank == 0:
            with torch.no_grad():
                self.model.load_state_dict(state["model"])
                for mine, stored in ((self.shared.average, state["average"]), (self.shared.momentum, state["momentum"])):
                    for p, q in zip(mine, stored):
                        p.copy_(q)
            self.adam.load_state_dict(state["adam"])

    def rate(self):
        """Warm-up, flat, then linear to zero; all but the warm-up by the clock."""
        if self.decay_from is None:
            total = self.args.minutes * 60
            flag = self.args.out / "DECAY"
            if flag.exists():
                self.decay_from, self.decay_length = self.elapsed, float(flag.read_text()) * 60
                flag.unlink()
            elif self.elapsed >= total * (1 - self.args.decay):
                self.decay_from, self.decay_length = self.elapsed, total - self.elapsed
        factor = min(1.0, (self.step + 1) / 50)
        if self.decay_from is not None:
            factor *= max(0.0, 1 - (self.elapsed - self.decay_from) / self.decay_length)
        return self.args.rate * factor

    @property
    def finished(self):
        if self.args.stop_tokens and self.tokens >= self.args.stop_tokens:
            return True
        return self.decay_from is not None and self.elapsed >= self.decay_from + self.decay_length

    def decide(self):
        """Worker 0 sets what all must agree on; call before `begin`."""
        self.shared.control[0] = self.rate()
        self.shared.control[1] = self.args.length if self.decay_from is None else self.args.final_length
        self.shared.control[2] = 0.0 if self.finished else 1.0

    def train_step(self, rows, rate):
        started, shared = time.monotonic(), self.shared
        mine = rows[self.rank:: shared.workers]
        ids, targets = mine[:, :-1], mine[:, 1:]
        with torch.autocast("cpu", dtype=torch.bfloat16):
            hidden = self.model.hidden(ids)
        loss = HeadLoss.apply(hidden.flatten(0, 1), self.model.lm_head.weight, targets.flatten())
        balance = self.model.balance()
        (loss + self.args.balance * balance).backward()
        for p, buffer in zip(self.parameters, shared.grads[self.rank]):
            buffer.copy_(p.grad)
            p.grad = None
        shared.losses[self.rank, 0], shared.losses[self.rank, 1] = loss.item(), balance.item()
        shared.barrier.wait()

        mean = lambda i, s: sum(g[i][s] for g in shared.grads) / shared.workers
        self.muon.step([mean(i, s) for i, s in self.part], rate)
        if self.adam:
            for i in self.others:
                self.parameters[i].grad = mean(i, slice(None))
            torch.nn.utils.clip_grad_norm_([self.parameters[i] for i in self.others], 1.0)
            for group in self.adam.param_groups:
                group["lr"] = rate
            self.adam.step()
            for i in self.others:
                self.parameters[i].grad = None
        if self.step % 8 == 0:
            weight = 0.5 if self.step < 200 else 0.15
            with torch.no_grad():
                for i, s in self.part + [(i, slice(None)) for i in self.others]:
                    shared.average[i][s].lerp_(self.parameters[i][s], weight)
        shared.barrier.wait()
        self.step += 1
        self.tokens += rows[:, 1:].numel()
        self.elapsed += time.monotonic() - started
        return shared.losses.mean(0).tolist()


@torch.no_grad()
def evaluate_sources(model, tokenizer, documents, length=1024, each=None):
    """Held-out loss per token, by source, each document on its own.

    Calls `each` with the model after every document.
    """
    sums = {}
    model.eval()
    for document, ids in zip(documents, encode(tokenizer, documents)):
        ids = torch.from_numpy(ids[: length].astype("int64"))[None]
        with torch.autocast("cpu", dtype=torch.bfloat16):
            logits = model(ids[:, :-1])
        loss = F.cross_entropy(logits[0].float(), ids[0, 1:], reduction="sum").item()
        if each:
            each(model)
        total = sums.setdefault(document["source"], [0.0, 0])
        total[0] += loss
        total[1] += ids.shape[1] - 1
    model.train()
    out = {source: total / count for source, (total, count) in sorted(sums.items())}
    out["all"] = sum(t for t, _ in sums.values()) / sum(c for _, c in sums.values())
    return out


SAMPLES = [
    "Tell me a story about a fox who finds a key.", "Hello! Who are you?", "Why is the first reply so slow?",
    "what does the cache slider do", "What is a lantern?", "Tell me a long story about a girl and a boat.",
]


def show_samples(model, tokenizer, log, limit=160):
    model.eval()
    stop = {tokenizer.token_to_id("<|im_end|>"), tokenizer.token_to_id("<|endoftext|>")}
    for prompt in SAMPLES:
        ids = tokenizer.encode(render([{"role": "user", "content": prompt}], True)).ids
        log(f"  > {prompt}\n  < {tokenizer.decode(model.generate(ids, limit, stop))}")
    model.train()


def run(rank, shared, args, encoded, held_out):
    torch.set_num_threads(1)
    log_path = args.out / f"{args.name}.log"

    def log(line):
        if rank == 0:
            print(line, flush=True)
            with open(log_path, "a", encoding="utf-8") as file:
                file.write(line + "\n")

    tokenizer = load_tokenizer(args.out / "tokenizer.json")
    worker = Worker(rank, shared, args)
    checkpoint = args.out / f"{args.name}.pt"
    epoch = row = 0
    if checkpoint.exists():
        state = torch.load(checkpoint, weights_only=False)
        worker.restore(state)
        epoch, row = state["epoch"], state["row"]
        del state
        log(f"resumed at step {worker.step}, {worker.tokens} tokens")
    log(json.dumps(dict(parameters=sum(p.numel() for p in shared.model.parameters()), **shared.config.as_dict())))

    packer, averaged = None, Model(shared.config)
    saved, count, sums = time.monotonic(), 0, [0.0, 0.0]
    while True:
        if rank == 0:
            worker.decide()
        shared.barrier.wait()
        rate, length, go_on = shared.control.tolist()
        length = int(length)
        if not go_on:
            break
        if packer is None or packer.length != length:
            if packer is not None:
                epoch, row = packer.epoch + 1, 0
                log(f"decay begins at step {worker.step}, {worker.tokens} tokens")
            packer = Packer(encoded, length, args.batch * args.length // length, args.seed, epoch, row)
        loss, balance = worker.train_step(torch.from_numpy(packer.next()), rate)
        sums[0] += loss
        sums[1] += balance
        count += 1
        if rank:
            continue
        if worker.step % 50 == 0:
            log(f"step {worker.step} tokens {worker.tokens} min {worker.elapsed / 60:.1f} "
                f"loss {sums[0] / count:.4f} balance {sums[1] / count:.3f} rate {rate:.5f} "
                f"tok/s {worker.tokens / worker.elapsed:.0f}")
            count, sums = 0, [0.0, 0.0]
        if time.monotonic() - saved > args.save_minutes * 60 or worker.finished:
            worker.save(checkpoint, epoch=packer.epoch, row=packer.row)
            log(f"saved at step {worker.step}, {worker.tokens} tokens")
            saved = time.monotonic()
            if args.save_only:
                continue
            with torch.no_grad():
                for p, q in zip(averaged.parameters(), shared.average):
                    p.copy_(q)
            torch.set_num_threads(args.workers)
            result = evaluate_sources(averaged, tokenizer, held_out[::8])
            log(f"held-out at {worker.tokens} tokens (averaged weights): "
                + " ".join(f"{k} {v:.4f}" for k, v in result.items()))
            if not args.dense:
                show_samples(averaged, tokenizer, log)
            torch.set_num_threads(1)
            saved = time.monotonic()
    if rank == 0:
        torch.set_num_threads(args.workers)
        result = evaluate_sources(shared.model, tokenizer, held_out)
        log(f"final at {worker.tokens} tokens: " + " ".join(f"{k} {v:.4f}" for k, v in result.items()))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("build/demo-train"))
    parser.add_argument("--name", default="moe", help="file stem of checkpoint and log")
    parser.add_argument("--minutes", type=float, default=90)
    parser.add_argument("--decay", type=float, default=0.35, help="last part of the time in which the rate falls")
    parser.add_argument("--rate", type=float, default=2.5e-3)
    parser.add_argument("--balance", type=float, default=0.006, help="weight of the load-balance loss")
    parser.add_argument("--length", type=int, default=512)
    parser.add_argument("--final-length", type=int, default=1024, help="length while the rate falls: long chats come last")
    parser.add_argument("--batch", type=int, default=4, help="rows of LENGTH tokens in a step")
    parser.add_argument("--workers", type=int, default=os.cpu_count(), help="processes, one thread each")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--save-minutes", type=float, default=4)
    parser.add_argument("--save-only", action="store_true", help="no held-out loss and samples at each save")
    parser.add_argument("--stop-tokens", type=int, default=0, help="stop here, without a decay (for comparisons)")
    parser.add_argument("--dense", action="store_true", help="dense baseline with the same active weights")
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)

    corpus.ensure(args.out)
    documents = read_documents(args.out / "train.jsonl")
    if not (args.out / "tokenizer.json").exists():
        train_tokenizer(documents, Config.vocab_size, args.out / "tokenizer.json")
    tokenizer = load_tokenizer(args.out / "tokenizer.json")
    encoded = encode(tokenizer, documents)
    held_out = read_documents(args.out / "heldout.jsonl")
    print(f"{len(encoded)} documents, {sum(map(len, encoded))} tokens; held out {len(held_out)} documents", flush=True)

    config = Config()
    if args.dense:
        config.dense_intermediate_size = config.num_experts_per_tok * config.moe_intermediate_size
    context = torch.multiprocessing.get_context("spawn")
    shared = Shared(config, args, context)
    others = [context.Process(target=run, args=(rank, shared, args, encoded, held_out), daemon=True)
              for rank in range(1, args.workers)]
    for process in others:
        process.start()
    run(0, shared, args, encoded, held_out)
    for process in others:
        process.join()


if __name__ == "__main__":
    main()
