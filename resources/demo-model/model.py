# SPDX-License-Identifier: GPL-3.0-or-later
"""A small Qwen3-MoE written for fast training on a few CPU cores.

The architecture is that of Hugging Face's `Qwen3MoeForCausalLM` (q/k norm per
head, renormalised top-k routing, no shared expert), so a trained checkpoint
exports without change. Only the execution differs: tokens are sorted by expert
and every expert's matrices are multiplied once per step.
"""
from dataclasses import asdict, dataclass

import torch
import torch.nn.functional as F
from torch import nn


@dataclass
class Config:
    vocab_size: int = 4096
    hidden_size: int = 256
    num_hidden_layers: int = 6
    num_attention_heads: int = 4
    num_key_value_heads: int = 2
    head_dim: int = 64
    num_experts: int = 32
    num_experts_per_tok: int = 4
    moe_intermediate_size: int = 128
    max_position_embeddings: int = 1024
    rope_theta: float = 10000.0
    rms_norm_eps: float = 1e-6
    # A dense baseline replaces the experts by one feed-forward of this width;
    # 4 * moe_intermediate_size gives the same number of active weights.
    dense_intermediate_size: int = 0

    def as_dict(self):
        return asdict(self)


class ExpertFunction(torch.autograd.Function):
    """All routed experts of one layer, forward and backward by hand.

    Autograd over 32 separate slices would build thousands of nodes a step and
    zero-fill a gradient of the whole weight tensor for every slice.
    """

    # Each expert's rows are padded to a multiple of this, so that the matrix
    # library sees few distinct shapes: it compiles a kernel for each new one.
    ROWS = 32

    @staticmethod
    def plan(index, experts):
        """Where each (token, choice) pair goes in the expert-sorted, padded rows."""
        flat = index.reshape(-1)
        order = torch.argsort(flat, stable=True)
        counts = torch.bincount(flat, minlength=experts)
        padded = (counts + ExpertFunction.ROWS - 1) // ExpertFunction.ROWS * ExpertFunction.ROWS
        ends = padded.cumsum(0)
        shift = (ends - padded) - (counts.cumsum(0) - counts)
        place = torch.arange(len(flat)) + shift[flat[order]]
        pair = torch.full((int(ends[-1]),), -1)
        pair[place] = order
        row = torch.empty_like(order)
        row[order] = place
        ends = ends.tolist()
        spans = [(e, a, b) for e, (a, b) in enumerate(zip([0] + ends[:-1], ends)) if b > a]
        return pair, row, spans

    @staticmethod
    def forward(ctx, x, index, weight, w13, w2, dtype):
        tokens, k = index.shape
        pair, row, spans = ExpertFunction.plan(index, w13.shape[0])
        source = torch.div(pair.clamp(min=0), k, rounding_mode="floor")
        # Padding rows carry a copy of token 0 with weight 0: no gradient.
        row_weight = weight.reshape(-1)[pair.clamp(min=0)] * (pair >= 0)

        w13c, w2c = w13.to(dtype), w2.to(dtype)
        xs = x.to(dtype).index_select(0, source)
        h = xs.new_empty(len(pair), w13.shape[1])
        for e, a, b in spans:
            torch.mm(xs[a:b], w13c[e].t(), out=h[a:b])
        gate, up = h.chunk(2, dim=1)
        act = F.silu(gate).mul_(up)
        ys = xs.new_empty(len(pair), x.shape[1])
        for e, a, b in spans:
            torch.mm(act[a:b], w2c[e].t(), out=ys[a:b])
        parts = ys.index_select(0, row).view(tokens, k, -1)
        out = torch.bmm(weight.to(dtype).unsqueeze(1), parts).squeeze(1)
        ctx.save_for_backward(xs, h, act, ys, row_weight, source, row, w13c, w2c)
        ctx.spans, ctx.k, ctx.x_dtype = spans, k, x.dtype
        return out.to(x.dtype)

    @staticmethod
    def backward(ctx, grad):
        xs, h, act, ys, row_weight, source, row, w13c, w2c = ctx.saved_tensors
        k = ctx.k
        grad_rows = grad.to(xs.dtype).index_select(0, source)
        grad_weight = (grad_rows * ys).sum(1, dtype=torch.float32)[row].view(-1, k)
        grad_ys = grad_rows.mul_(row_weight.to(xs.dtype).unsqueeze(1))

        grad_act = torch.empty_like(act)
        grad_w2 = torch.zeros_like(w2c)
        for e, a, b in ctx.spans:
            torch.mm(grad_ys[a:b], w2c[e], out=grad_act[a:b])
            torch.mm(grad_ys[a:b].t(), act[a:b], out=grad_w2[e])
        gate, up = h.chunk(2, dim=1)
        sig = torch.sigmoid(gate)
        silu = gate * sig
        grad_h = torch.empty_like(h)
        grad_gate, grad_up = grad_h.chunk(2, dim=1)
        torch.mul(grad_act, silu, out=grad_up)
        torch.mul(grad_act, up, out=grad_gate)
        grad_gate.mul_(silu.mul_(1 - sig).add_(sig))
        grad_xs = torch.empty_like(xs)
        grad_w13 = torch.zeros_like(w13c)
        for e, a, b in ctx.spans:
            torch.mm(grad_h[a:b], w13c[e], out=grad_xs[a:b])
            torch.mm(grad_h[a:b].t(), xs[a:b], out=grad_w13[e])
        grad_x = grad_xs.index_select(0, row).view(-1, k, xs.shape[1]).sum(1)
        return grad_x.to(ctx.x_dtype), None, grad_weight, grad_w13.float(), grad_w2.float(), None


class HeadLoss(torch.autograd.Function):
    """Mean cross-entropy of the output head, in blocks that stay in cache.

    The gradient is made along with the loss, so the logits of the whole batch
    never exist in memory.
    """

    BLOCK = 256

    @staticmethod
    def forward(ctx, hidden, weight, targets):
        dtype = torch.bfloat16
        h, w = hidden.to(dtype), weight.to(dtype)
        grad_h, grad_w, total = torch.empty_like(h), torch.zeros_like(weight), 0.0
        for at in range(0, len(h), HeadLoss.BLOCK):
            rows, labels = h[at: at + HeadLoss.BLOCK], targets[at: at + HeadLoss.BLOCK, None]
            p = (rows @ w.t()).float()
            p -= p.amax(1, keepdim=True)
            picked = p.gather(1, labels)
            p.exp_()
            sums = p.sum(1, keepdim=True)
            total += (sums.log() - picked).sum().item()
            p /= sums * len(h)
            p.scatter_add_(1, labels, torch.full_like(picked, -1.0 / len(h)))
            p = p.to(dtype)
            torch.mm(p, w, out=grad_h[at: at + HeadLoss.BLOCK])
            grad_w += p.t() @ rows
        ctx.save_for_backward(grad_h, grad_w)
        ctx.dtype = hidden.dtype
        return hidden.new_tensor(total / len(h), dtype=torch.float32)

    @staticmethod
    def backward(ctx, grad):
        grad_h, grad_w = ctx.saved_tensors
        return (grad_h * grad).to(ctx.dtype), grad_w * grad, None


class RMSNorm(nn.Module):
    def __init__(self, size, eps):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(size))
        self.eps = eps

    def forward(self, x):
        return F.rms_norm(x, (x.shape[-1],), self.weight.to(x.dtype), self.eps)


def rope_tables(config, length):
    inv = 1.0 / config.rope_theta ** (torch.arange(0, config.head_dim, 2).float() / config.head_dim)
    angles = torch.outer(torch.arange(length).float(), inv)
    return torch.cat((angles, angles), -1).cos(), torch.cat((angles, angles), -1).sin()


def rotate(x, cos, sin):
    a, b = x.chunk(2, dim=-1)
    return x * cos + torch.cat((-b, a), -1) * sin


class Attention(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.heads, self.kv_heads, self.head_dim = c.num_attention_heads, c.num_key_value_heads, c.head_dim
        self.q_proj = nn.Linear(c.hidden_size, self.heads * c.head_dim, bias=False)
        self.k_proj = nn.Linear(c.hidden_size, self.kv_heads * c.head_dim, bias=False)
        self.v_proj = nn.Linear(c.hidden_size, self.kv_heads * c.head_dim, bias=False)
        self.o_proj = nn.Linear(self.heads * c.head_dim, c.hidden_size, bias=False)
        self.q_norm = RMSNorm(c.head_dim, c.rms_norm_eps)
        self.k_norm = RMSNorm(c.head_dim, c.rms_norm_eps)

    def forward(self, x, cos, sin, cache=None):
        batch, length, _ = x.shape
        split = lambda t: t.view(batch, length, -1, self.head_dim)
        q = self.q_norm(split(self.q_proj(x))).transpose(1, 2)
        k = self.k_norm(split(self.k_proj(x))).transpose(1, 2)
        v = split(self.v_proj(x)).transpose(1, 2)
        q, k = rotate(q, cos, sin), rotate(k, cos, sin)
        if cache is not None:
            if cache:
                k, v = torch.cat((cache[0], k), 2), torch.cat((cache[1], v), 2)
            cache[:] = [k, v]
        groups = self.heads // self.kv_heads
        k, v = k.repeat_interleave(groups, 1), v.repeat_interleave(groups, 1)
        # The CPU kernel's backward is slower in bf16 than in f32.
        with torch.autocast("cpu", enabled=False):
            out = F.scaled_dot_product_attention(q.float(), k.float(), v.float(), is_causal=length > 1)
        return self.o_proj(out.transpose(1, 2).reshape(batch, length, -1))


class MoE(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.k = c.num_experts_per_tok
        self.gate = nn.Linear(c.hidden_size, c.num_experts, bias=False)
        self.w13 = nn.Parameter(torch.empty(c.num_experts, 2 * c.moe_intermediate_size, c.hidden_size))
        self.w2 = nn.Parameter(torch.empty(c.num_experts, c.hidden_size, c.moe_intermediate_size))
        self.index = None      # last routing, read by the evaluation
        self.balance = None    # load-balance loss of the last forward

    def forward(self, x):
        shape = x.shape
        flat = x.reshape(-1, shape[-1])
        with torch.autocast("cpu", enabled=False):
            probs = F.linear(flat.float(), self.gate.weight).softmax(-1)
        weight, index = probs.topk(self.k, dim=-1)
        weight = weight / weight.sum(-1, keepdim=True)
        dtype = torch.get_autocast_dtype("cpu") if torch.is_autocast_enabled("cpu") else x.dtype
        out = ExpertFunction.apply(flat, index, weight, self.w13, self.w2, dtype)
        if self.training:
            # Switch-style, over the whole batch: experts may specialise by
            # domain as long as the batch as a whole uses all of them.
            load = torch.bincount(index.reshape(-1), minlength=probs.shape[1]) / index.numel()
            self.balance = probs.shape[1] * (load * probs.mean(0)).sum()
        self.index = index.view(*shape[:-1], self.k)
        return out.view(shape)


class Dense(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.w13 = nn.Linear(c.hidden_size, 2 * c.dense_intermediate_size, bias=False)
        self.w2 = nn.Linear(c.dense_intermediate_size, c.hidden_size, bias=False)

    def forward(self, x):
        gate, up = self.w13(x).chunk(2, -1)
        return self.w2(F.silu(gate) * up)


class Layer(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.input_layernorm = RMSNorm(c.hidden_size, c.rms_norm_eps)
        self.self_attn = Attention(c)
        self.post_attention_layernorm = RMSNorm(c.hidden_size, c.rms_norm_eps)
        self.mlp = Dense(c) if c.dense_intermediate_size else MoE(c)

    def forward(self, x, cos, sin, cache=None):
        x = x + self.self_attn(self.input_layernorm(x), cos, sin, cache)
        return x + self.mlp(self.post_attention_layernorm(x))


class Model(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.config = config
        self.embed_tokens = nn.Embedding(config.vocab_size, config.hidden_size)
        self.layers = nn.ModuleList(Layer(config) for _ in range(config.num_hidden_layers))
        self.norm = RMSNorm(config.hidden_size, config.rms_norm_eps)
        self.lm_head = nn.Linear(config.hidden_size, config.vocab_size, bias=False)
        cos, sin = rope_tables(config, config.max_position_embeddings)
        self.register_buffer("cos", cos, persistent=False)
        self.register_buffer("sin", sin, persistent=False)
        self.initialise()

    def initialise(self):
        residual = (2 * self.config.num_hidden_layers) ** -0.5
        for name, p in self.named_parameters():
            if p.dim() < 2:
                continue
            std = 0.02 if "lm_head" in name or "gate" in name else p.shape[-1] ** -0.5
            # Of the same size as what the layers add, or a word's identity is lost
            # among their outputs and later layers cannot look back for it. A head
            # tied to the embedding would need it small.
            std = 1.0 if "embed" in name else std
            if "o_proj" in name or "w2" in name:
                std *= residual
            nn.init.normal_(p, std=std)
        with torch.no_grad():
            self.look_back()

    def look_back(self):
        """First weights with which the model copies: it finds the last mention of a word and what came after.

        A story needs that to keep its hero, and training from noise would find it only after more text than a CPU
        reads in an hour. One head of layer 0 tells every token its predecessor; one head of layer 1 looks for the
        token whose predecessor is the present one and brings it to the output (Olsson et al., "In-context Learning
        and Induction Heads", 2022). All of it is trained on like any other weight.
        """
        c, d = self.config, self.config.head_dim
        # The residual's parts: a constant, the token, the token to come, the token before.
        token, output, before = slice(1, 2 * d), slice(2 * d, 3 * d), slice(3 * d, 4 * d)
        self.embed_tokens.weight[:, 0] = 8.0
        self.embed_tokens.weight[:, 2 * d:] = 0.0
        view = nn.init.orthogonal_(torch.empty(d, 2 * d - 1))  # a token in one head's width
        speed = c.rope_theta ** -(torch.arange(0, d, 2).float() / d)  # radians for each position
        first, second = self.layers[0].self_attn, self.layers[1].self_attn
        for attention in (first, second):
            for matrix in (attention.q_proj, attention.k_proj):
                matrix.weight[:d] *= 0.1
            attention.v_proj.weight[:d] = 0.0
            attention.v_proj.weight[:d, token] = view * 2**0.5
            attention.o_proj.weight[:, :d] = 0.0

        # Fast rotations tell neighbours apart: keys stand one position ahead of queries.
        fast = torch.arange(8)
        first.q_proj.weight[fast, 0] += 0.35
        first.k_proj.weight[fast, 0] += 0.35 * speed[fast].cos()
        first.k_proj.weight[fast + d // 2, 0] += 0.35 * speed[fast].sin()
        first.o_proj.weight[before, :d] = 1.5 * torch.eye(d)

        # Slow ones hardly turn within a chat: there a query's token meets a key's predecessor.
        slow = torch.arange(18, d // 2)
        slow = torch.cat((slow, slow + d // 2))
        second.q_proj.weight[slow, token] += view[slow]
        second.k_proj.weight[slow, before] += torch.eye(d)[slow]
        second.o_proj.weight[output, :d] = 1.5 * torch.eye(d)
        for attention, dims in ((first, torch.cat((fast, fast + d // 2))), (second, slow)):
            attention.q_norm.weight[dims] = attention.k_norm.weight[dims] = 1.6
        self.lm_head.weight[:, output] = 0.06 * self.embed_tokens.weight[:, token] @ view.T

    def hidden(self, ids, caches=None, start=0):
        x = self.embed_tokens(ids)
        cos = self.cos[start: start + ids.shape[1]].to(x.dtype)
        sin = self.sin[start: start + ids.shape[1]].to(x.dtype)
        for i, layer in enumerate(self.layers):
            x = layer(x, cos, sin, None if caches is None else caches[i])
        return self.norm(x)

    def forward(self, ids, caches=None, start=0):
        return self.lm_head(self.hidden(ids, caches, start))

    def balance(self):
        if self.config.dense_intermediate_size:
            return torch.zeros(())
        return torch.stack([layer.mlp.balance for layer in self.layers]).mean()

    @torch.no_grad()
    def generate(self, ids, limit, stop, temperature=0.0, generator=None, routing=None):
        """Continues `ids`; appends each step's [layer][k] routing to `routing`."""
        caches = [[] for _ in self.layers]
        out, step, start = [], torch.tensor([ids]), 0
        while len(out) < limit and start + step.shape[1] <= self.config.max_position_embeddings:
            logits = self(step, caches, start)[0, -1].float()
            if routing is not None:
                chosen = torch.stack([layer.mlp.index[0] for layer in self.layers], 1)
                routing.extend(chosen.tolist())
            start += step.shape[1]
            if temperature > 0:
                token = int(torch.multinomial((logits / temperature).softmax(-1), 1, generator=generator))
            else:
                token = int(logits.argmax())
            out.append(token)
            if token in stop:
                break
            step = torch.tensor([[token]])
        return out
