# SPDX-License-Identifier: GPL-3.0-or-later
"""Quantises rows of floats with the gguf package. Writes quant_cases.json; format in README.md."""

import json
from pathlib import Path

import numpy as np
from gguf import GGML_QUANT_SIZES
from gguf import GGMLQuantizationType as Type
from gguf import quants

HERE = Path(__file__).resolve().parent


def rows():
    rng = np.random.default_rng(20)
    f32 = np.float32
    ramp = np.arange(32, dtype=f32)
    yield "normal", rng.standard_normal(64)
    yield "normal, small", rng.standard_normal(96) * 0.02
    yield "normal, large", rng.standard_normal(32) * 500
    yield "zeros", np.zeros(32)
    yield "negative zeros", np.full(32, -0.0)
    yield "one block of zeros between others", np.concatenate([ramp, np.zeros(32), -ramp])
    yield "constant", np.full(32, 0.75)
    yield "constant negative", np.full(32, -0.3)
    yield "single spike", np.where(ramp == 5, 9.5, 0)
    yield "single negative spike", np.where(ramp == 31, -9.5, 0)
    yield "largest is positive", np.concatenate([[2.0], rng.uniform(-1.9, 1.9, 31)])
    yield "largest is negative", np.concatenate([[-2.0], rng.uniform(-1.9, 1.9, 31)])
    yield "positive and negative largest are equal", np.concatenate([[1.5, -1.5], rng.uniform(-1, 1, 30)])
    yield "negative and positive largest are equal", np.concatenate([[-1.5, 1.5], rng.uniform(-1, 1, 30)])
    yield "halves: rounding away from zero in q8_0", np.concatenate([[127.0], ramp[:31] - 15.5])
    yield "halves: rounding in q4_0", np.concatenate([[-8.0], (ramp[:31] - 15) / 2])
    yield "ramp", ramp - 15
    yield "scale is subnormal in half precision", rng.standard_normal(32) * 1e-4
    yield "scale vanishes in half precision", rng.standard_normal(32) * 1e-7
    yield "outlier in a small block", np.concatenate([[100.0], rng.standard_normal(31) * 0.01])
    yield "several blocks of different size", np.concatenate([rng.standard_normal(32) * 10.0 ** e for e in range(-3, 3)])
    yield "uniform", rng.uniform(-1, 1, 128)
    for number in range(6):
        yield f"random {number}", rng.standard_normal(64) * rng.uniform(0.01, 3)


def half_rows():
    """Values for f16 and bf16 that are difficult to round."""
    ones = np.float32(1)
    values = [0.0, -0.0, 1.0, 1 + 2 ** -11, 1 + 3 * 2 ** -11, 1 + 2 ** -11 + 2 ** -23, 2049, 2051, 65504, 65519.99, -65504,
              6.1e-5, 6e-8, 2.9e-8, 3e-8, 5.96e-8, 1e-10, 3.14159265, 0.1, -0.1, 1 / 3, 1 + 2 ** -8, 1 + 3 * 2 ** -8,
              1 + 2 ** -9, 1 + 2 ** -8 + 2 ** -20, 255.5, 257, 258.5, 1e-3, 12345.678, -1e-5, ones]
    yield "edges", np.array(values)
    yield "normal", np.random.default_rng(21).standard_normal(64)


def blocks(kind):
    """Random blocks of a type that the package does not encode: all codes and 6-bit scales, block scales of usual size, and at the ends of half precision."""
    rng = np.random.default_rng(int(kind))
    size = GGML_QUANT_SIZES[kind][1]
    halves = [size - 2] if kind == Type.Q6_K else [0, 2]
    usual = [[0.0012, 0.0031], [-0.02, 0.7], [3.5, -0.04]]
    for name, scales in (("usual", usual), ("extreme", [[65504, 65504], [6e-8, -6e-8], [0, 0.25]])):
        out = rng.integers(0, 256, (3, size), dtype=np.uint8)
        for block, values in zip(out, scales):
            for at, value in zip(halves, values):
                block[at:at + 2] = np.array([value], np.float16).view(np.uint8)
        yield name, out
    yield "all codes and scales 1", np.full((1, size), 0xFF, np.uint8)


def block_case(name, encoded, kind):
    encoded = encoded.copy()
    if name.startswith("all"):
        for at in [GGML_QUANT_SIZES[kind][1] - 2] if kind == Type.Q6_K else [0, 2]:
            encoded[:, at:at + 2] = np.array([1], np.float16).view(np.uint8)
    decoded = quants.dequantize(encoded.reshape(-1), kind).reshape(-1)
    return {"name": name, "n": len(decoded), "bytes": encoded.tobytes().hex(), "y": decoded.astype("<f4").tobytes().hex()}


def case(name, x, encoded, decoded):
    assert decoded.dtype == np.float32 and decoded.shape == x.shape
    return {"name": name, "n": len(x), "x": x.astype("<f4").tobytes().hex(), "bytes": encoded.tobytes().hex(),
            "y": decoded.astype("<f4").tobytes().hex()}


def check_q4_0(x, encoded):
    """Checks that single precision gives the same as the package, which rounds in double precision."""
    for block, bytes_ in zip(x.reshape(-1, 32), encoded.reshape(-1, 18)):
        largest = block[np.argmax(np.abs(block))]
        scale = np.float32(largest / np.float32(-8))
        with np.errstate(divide="ignore", over="ignore"):
            inverse = np.float32(0) if scale == 0 else np.float32(1) / scale
        codes = np.minimum(15, (block * inverse + np.float32(8.5)).astype(np.int32)).astype(np.uint8)
        if np.isfinite(inverse) and not np.array_equal(bytes_[2:], codes[:16] | codes[16:] << 4):
            return False
    return True


def main():
    out = {"q8_0": [], "q4_0": [], "bf16": [], "f16": [], "q4_1": [], "q5_0": [], "q5_1": [], "mxfp4": [], "q4_k": [], "q5_k": [], "q6_k": []}
    for name, x in rows():
        x = x.astype(np.float32)
        for key, kind in (("q8_0", Type.Q8_0), ("q4_0", Type.Q4_0)):
            encoded = quants.quantize(x, kind)
            if key == "q4_0" and name == "negative zeros":
                continue  # the sign of the zero scale differs between implementations
            if key == "q4_0" and not check_q4_0(x, encoded):
                print("left out of q4_0, rounding depends on precision:", name)
                continue
            out[key].append(case(name, x, encoded, quants.dequantize(encoded, kind)))
        if len(x) > 96 or name.startswith("random"):
            continue
        for key, kind in (("q4_1", Type.Q4_1), ("q5_0", Type.Q5_0), ("q5_1", Type.Q5_1), ("mxfp4", Type.MXFP4)):
            encoded = quants.quantize(x, kind)
            out[key].append(case(name, x, encoded, quants.dequantize(encoded, kind)))
    for key, kind in (("q4_k", Type.Q4_K), ("q5_k", Type.Q5_K), ("q6_k", Type.Q6_K)):
        out[key] = [block_case(name, encoded, kind) for name, encoded in blocks(kind)]
    for name, x in half_rows():
        x = x.astype(np.float32)
        for key, kind in (("bf16", Type.BF16), ("f16", Type.F16)):
            encoded = quants.quantize(x, kind)
            out[key].append(case(name, x, encoded, quants.dequantize(encoded, kind).astype(np.float32)))
    parts = [f'"{key}":[\n' + ",\n".join(json.dumps(c, separators=(",", ":")) for c in cases) + "\n]" for key, cases in out.items()]
    (HERE / "quant_cases.json").write_text("{" + ",\n".join(parts) + "}\n")
    print({key: len(cases) for key, cases in out.items()})


if __name__ == "__main__":
    main()
