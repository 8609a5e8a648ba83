# SPDX-License-Identifier: GPL-3.0-or-later
"""The packed weights of published checkpoints: FP8 with a scale per tile, and MXFP4.

Each packing has an encoder, and a decoder that is used to compute the expected values from what
the files say.
"""

import torch

FP8_TILE = 128
FP8_MAX = 448.0  # of E4M3
FP4_VALUES = torch.tensor([0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, -0.0, -0.5, -1.0, -1.5, -2.0, -3.0, -4.0, -6.0])
FP8_PARTS = ("_proj.weight", "_proj_with_mqa.weight")


def tiles(weight):
    rows, columns = weight.shape
    for r in range(0, rows, FP8_TILE):
        for c in range(0, columns, FP8_TILE):
            yield r // FP8_TILE, c // FP8_TILE, (slice(r, r + FP8_TILE), slice(c, c + FP8_TILE))


def pack_fp8(weight):
    """[rows, columns] float32 -> the same in E4M3, and [tiles down, tiles across] float32 factors."""
    counts = [-(-n // FP8_TILE) for n in weight.shape]
    codes, scales = torch.empty(weight.shape, dtype=torch.float8_e4m3fn), torch.empty(counts)
    for i, j, part in tiles(weight):
        scales[i, j] = weight[part].abs().max() / FP8_MAX
        codes[part] = (weight[part] / scales[i, j]).to(torch.float8_e4m3fn)
    return codes, scales


def unpack_fp8(codes, scales):
    weight = torch.empty(codes.shape)
    for i, j, part in tiles(weight):
        weight[part] = codes[part].float() * scales[i, j]
    return weight


def pack_mxfp4(weight):
    """[experts, rows, columns] -> blocks [experts, rows, columns / 32, 16] and scales [experts, rows, columns / 32], bytes."""
    groups = weight.reshape(*weight.shape[:-1], -1, 32)
    largest = groups.abs().amax(-1)
    exponents = torch.floor(torch.log2(largest.clamp(min=2.0 ** -100))) - 2  # the largest code is 6, below 2^3
    scaled = groups / torch.exp2(exponents).unsqueeze(-1)
    codes = (scaled.unsqueeze(-1) - FP4_VALUES).abs().argmin(-1).to(torch.uint8)
    blocks = codes[..., 0::2] | (codes[..., 1::2] << 4)
    return blocks, (exponents + 127).to(torch.uint8)


def unpack_mxfp4(blocks, scales):
    codes = torch.stack((blocks & 15, blocks >> 4), -1).flatten(-2)
    values = FP4_VALUES[codes.long()] * torch.exp2(scales.float() - 127).unsqueeze(-1)
    return values.flatten(-2)


def pack(tensors, packing):
    """Takes the tensors of a file to those of the packed file, and to the entry of the configuration."""
    out = {}
    for name, tensor in tensors.items():
        if packing == "fp8" and name.endswith(FP8_PARTS):
            out[name], out[name + "_scale_inv"] = pack_fp8(tensor.float())
        elif packing == "mxfp4" and name.endswith(("experts.gate_up_proj", "experts.down_proj")):
            # The plain form has input features first, the packed one output features.
            out[name + "_blocks"], out[name + "_scales"] = pack_mxfp4(tensor.float().transpose(1, 2))
        else:
            out[name] = tensor
    if packing == "fp8":
        return out, {"quant_method": "fp8", "fmt": "e4m3", "activation_scheme": "dynamic",
                     "weight_block_size": [FP8_TILE, FP8_TILE]}
    return out, {"quant_method": "mxfp4", "modules_to_not_convert": [
        "model.layers.*.self_attn", "model.layers.*.mlp.router", "model.embed_tokens", "lm_head"]}


def unpack(tensors):
    """The plain float32 tensors that a packed file stands for."""
    out = {}
    for name, tensor in tensors.items():
        if name.endswith("_blocks"):
            plain = name.removesuffix("_blocks")
            out[plain] = unpack_mxfp4(tensor, tensors[plain + "_scales"]).transpose(1, 2).contiguous()
        elif name + "_scale_inv" in tensors:
            out[name] = unpack_fp8(tensor, tensors[name + "_scale_inv"])
        elif not name.endswith(("_scale_inv", "_scales")):
            out[name] = tensor.float()
    return out


def with_mtp_layer(tensors, config):
    """Adds what a checkpoint holds of a multi-token prediction layer behind the last: to be left unread."""
    generator = torch.Generator().manual_seed(7)
    hidden, layer = config.hidden_size, config.num_hidden_layers
    shapes = {"eh_proj.weight": (hidden, 2 * hidden), "enorm.weight": (hidden,), "hnorm.weight": (hidden,),
              "shared_head.norm.weight": (hidden,), "input_layernorm.weight": (hidden,)}
    added = {f"model.layers.{layer}.{name}": torch.randn(shape, generator=generator).to(torch.bfloat16)
             for name, shape in shapes.items()}
    return {**tensors, **added}
