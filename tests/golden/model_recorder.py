# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs a model, records what passes through it, and turns that into expected values.

A model is refused when one of its decisions (the largest logit, the chosen experts or groups) is
too close to call: then another implementation could rightly decide otherwise.
"""

import torch

GREEDY_LENGTH = 64
LOGIT_MARGIN, ROUTER_MARGIN = 1e-3, 1e-4


def moe_block(layer):
    """The routed part of a layer, or None in a dense layer."""
    for name in ("mlp", "block_sparse_moe", "feed_forward"):
        block = getattr(layer, name, None)
        if block is not None and hasattr(block, "experts"):
            return block
    return None


def gap_at(values, k):
    """Smallest step from the k-th to the (k+1)-th largest value of any row."""
    if k >= values.shape[-1]:
        return float("inf")
    best = values.topk(k + 1).values
    return float((best[:, k - 1] - best[:, k]).min())


class Choice:
    """How one family chooses experts: the scores by which, and how close the calls are."""

    def __init__(self, config, block):
        self.config, self.family, self.block = config, config.model_type, block
        self.router = getattr(block, "gate", None) or block.router

    def grouped(self, scores, of_group):
        """Scores with those of the groups that lose at minus infinity, and the gap between groups."""
        config = self.config
        parts = scores.view(len(scores), config.n_group, -1)
        groups = of_group(parts)
        best = groups.topk(config.topk_group).indices
        kept = torch.zeros_like(groups, dtype=torch.bool).scatter_(1, best, True)
        masked = parts.masked_fill(~kept.unsqueeze(-1), float("-inf")).reshape(scores.shape)
        return masked, gap_at(groups, config.topk_group)

    @torch.no_grad()
    def scores(self, logits):
        """What the experts are chosen by, [tokens, experts], and the smallest gap of other decisions."""
        if self.family in ("deepseek_v3", "glm4_moe", "dots1"):
            return self.grouped(logits.sigmoid() + self.router.e_score_correction_bias,
                                lambda parts: parts.topk(2, -1).values.sum(-1))
        if self.family == "deepseek_v2" and self.config.topk_method == "group_limited_greedy":
            return self.grouped(logits, lambda parts: parts.max(-1).values)
        if self.family == "minimax_m2":
            return logits.sigmoid() + self.block.e_score_correction_bias, float("inf")
        if self.family == "ernie4_5_moe":
            return logits.softmax(-1) + self.router.moe_statics.e_score_correction_bias, float("inf")
        if self.family == "phimoe":
            return logits, self.sparsemixer_gap(logits)
        return logits, float("inf")

    def sparsemixer_gap(self, logits):
        """How near an expert is to being left out of a softmax: it is when it falls short of the best by a given part."""
        gap, order = float("inf"), logits.topk(2).indices
        for rank in range(2):
            open_to_choice = torch.ones_like(logits, dtype=torch.bool)
            open_to_choice.scatter_(1, order[:, :rank], False)
            best = logits.gather(1, order[:, rank:rank + 1])
            short = (best - logits) / logits.abs().clamp(min=best) - 2 * self.config.router_jitter_noise
            gap = min(gap, float(short[open_to_choice].abs().min()))
        return gap

    def read(self, output):
        """Router logits, and weights and experts by falling score, whatever the router returns."""
        if self.family == "llama4_text":
            logits = output[1]
            experts = logits.topk(self.config.num_experts_per_tok).indices
            return logits, logits.gather(1, experts).sigmoid(), experts
        logits, weights, experts = output
        ranked = self.scores(logits)[0].topk(experts.shape[-1]).indices
        assert torch.equal(ranked.sort().values, experts.sort().values), "the choice of experts is not understood"
        place = (ranked.unsqueeze(-1) == experts.unsqueeze(1)).int().argmax(-1)
        return logits, weights.gather(1, place), ranked


class Recorder:
    """Collects what passes through the model in one forward."""

    def __init__(self, model):
        self.hidden, self.routing, self.choices = {}, {}, {}
        base = model.model
        base.layers[0].register_forward_pre_hook(self.keep_input("embed"))
        base.norm.register_forward_hook(self.keep("norm"))
        for number, layer in enumerate(base.layers):
            layer.register_forward_hook(self.keep(f"layer.{number}"))
            layer.post_attention_layernorm.register_forward_pre_hook(self.keep_input(f"attn.{number}"))
            block = moe_block(layer)
            if block is not None:
                self.choices[number] = Choice(model.config, block)
                self.choices[number].router.register_forward_hook(self.route(number))

    def keep(self, name):
        def hook(_, inputs, output):
            value = output[0] if isinstance(output, tuple) else output
            self.hidden[name] = value[0].detach().clone()
        return hook

    def keep_input(self, name):
        def hook(_, inputs):
            self.hidden[name] = inputs[0][0].detach().clone()
        return hook

    def route(self, layer):
        def hook(_, inputs, output):
            read = self.choices[layer].read(output)
            self.routing[layer] = tuple(value.detach().clone() for value in read)  # logits, weights, experts
        return hook

    def router_gap(self):
        """Smallest step between neighbours among the best k + 1 scores, and of any other decision, of any token."""
        gap = float("inf")
        for layer, (logits, weights, experts) in self.routing.items():
            scores, other = self.choices[layer].scores(logits)
            best = scores.topk(min(experts.shape[-1] + 1, scores.shape[-1])).values
            steps = best[:, :-1] - best[:, 1:]
            gap = min(gap, float(steps[steps == steps].min()), other)
        return gap


def forward(model, ids):
    with torch.no_grad():
        return model(input_ids=torch.tensor([ids]), use_cache=False).logits[0]


def relative_margin(logits):
    top = logits.topk(2).values
    return float((top[0] - top[1]) / logits.abs().max())


def floats(tensor):
    return [float("%.9g" % value) for value in tensor.tolist()]


def table(tensor):
    return [floats(row) for row in tensor]


def routing(recorder, with_logits):
    out = []
    for layer, (logits, weights, experts) in sorted(recorder.routing.items()):
        entry = {"layer": layer, "experts": experts.tolist(), "weights": table(weights)}
        if with_logits:
            entry["logits"] = table(logits)
        out.append(entry)
    return out


def measure(model, prompt):
    """The expected values and the prompt's logits, or None when some decision is too close to call."""
    recorder = Recorder(model)
    prompt_logits = forward(model, prompt)
    if min(relative_margin(row) for row in prompt_logits) <= LOGIT_MARGIN or recorder.router_gap() <= ROUTER_MARGIN:
        return None
    at_prompt = dict(recorder.hidden)
    routing_at_prompt = routing(recorder, True)
    ids, margin = list(prompt), float("inf")
    for _ in range(GREEDY_LENGTH):
        logits = forward(model, ids)[-1]
        margin = min(margin, relative_margin(logits))
        if margin <= LOGIT_MARGIN:
            return None
        ids.append(int(logits.argmax()))
    gap = recorder.router_gap()  # of the longest forward: prompt and all but the last token
    greedy = ids[len(prompt):]
    if gap <= ROUTER_MARGIN or len(set(greedy)) < 12:
        return None
    order = ["embed", *[f"{kind}.{n}" for n in range(len(model.model.layers)) for kind in ("attn", "layer")], "norm"]
    margins = {"top2": float("%.3g" % margin)}
    if recorder.routing:
        margins["router"] = float("%.3g" % gap)
    return {
        "prompt": prompt,
        "logits": [{"position": p, "values": floats(prompt_logits[p])} for p in range(len(prompt) - 4, len(prompt))],
        "argmax": prompt_logits.argmax(-1).tolist(),
        "logsumexp": floats(prompt_logits.double().logsumexp(-1)),
        "hidden": [{"at": name, "values": floats(at_prompt[name][-1])} for name in order],
        "routing": routing_at_prompt,
        "greedy": greedy,
        "greedy_routing": routing(recorder, False),
        "margins": margins,
    }, prompt_logits
