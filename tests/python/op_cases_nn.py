# SPDX-License-Identifier: Apache-2.0
"""Rows of the op table: activations, normalisations, windows, resizing, losses."""

import functools
import itertools

import numpy as np
from op_cases import Case, distinct, erf, np_conv2d, np_sigmoid, np_softmax, positive, wide

from undertow import ops


def probability(rng, shape):
    return rng.uniform(0.1, 0.9, shape)


def row(name, op, ref, *shapes, **more):
    return Case(name, op, ref, list(shapes), **more)


def unary(name, ref, op=None, **more):
    return Case(name, op or getattr(ops, name), ref, **more)


def np_softplus(x):
    return np.logaddexp(0, x)


def np_selu(x):
    scale, alpha = 1.0507009873554805, 1.6732632423543772
    return scale * np.where(x > 0, x, alpha * np.expm1(x))


ACTIVATIONS = [
    unary("relu6", lambda x: np.clip(x * 3, 0, 6), lambda x: ops.relu6(x * 3)),
    unary("gelu", lambda x: x * (1 + erf(x / np.sqrt(2))) / 2),
    unary(
        "gelu_tanh",
        lambda x: x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))) / 2,
        lambda x: ops.gelu(x, approximate="tanh"),
    ),
    unary("fast_gelu", lambda x: x * np_sigmoid(1.702 * x)),
    unary("silu", lambda x: x * np_sigmoid(x)),
    unary("mish", lambda x: x * np.tanh(np_softplus(x))),
    unary("hardswish", lambda x: x * np.clip(x + 3, 0, 6) / 6),
    unary("hardsigmoid", lambda x: np.clip(x + 3, 0, 6) / 6),
    unary("hardtanh", lambda x: np.clip(x, -1.2, 1.7), lambda x: ops.hardtanh(x, -1.2, 1.7)),
    unary("leaky_relu", lambda x: np.where(x > 0, x, 0.2 * x)),
    unary("elu", lambda x: np.where(x > 0, x, 0.7 * np.expm1(x)), lambda x: ops.elu(x, 0.7)),
    unary("celu", lambda x: np.where(x > 0, x, 1.3 * np.expm1(x / 1.3)), lambda x: ops.celu(x, 1.3)),
    unary("selu", np_selu),
    unary("softplus", np_softplus),
    unary("softplus_beta", lambda x: np_softplus(2 * x) / 2, lambda x: ops.softplus(x, 2, 20)),
    unary("softsign", lambda x: x / (1 + np.abs(x))),
    unary("logsigmoid", lambda x: -np_softplus(-x)),
    unary("hardshrink", lambda x: np.where(np.abs(x) <= 0.5, 0, x)),
    unary("softshrink", lambda x: x - np.clip(x, -0.5, 0.5)),
    unary("tanhshrink", lambda x: x - np.tanh(x), tol=5e-6),
    unary("threshold", lambda x: np.where(x <= 0.3, -2, x), lambda x: ops.threshold(x, 0.3, -2.0)),
    row("prelu", ops.prelu, lambda x, w: np.where(x > 0, x, w[0] * x), (3, 4), (1,), make=[wide, positive]),
]

ALONG_AN_AXIS = [
    row("softmin", lambda x: ops.softmin(x, 1), lambda x: np_softmax(-x, 1), (3, 5)),
    row("glu", lambda x: ops.glu(x, 1), lambda x: x[:, :3] * np_sigmoid(x[:, 3:]), (2, 6)),
    row(
        "prelu_channels",
        ops.prelu,
        lambda x, w: np.where(x > 0, x, w[:, None] * x),
        (2, 3, 4),
        (3,),
        make=[wide, positive],
    ),
]


def normalised(x, axes, eps):
    return (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + eps)


def np_group_norm(x, g, b, groups=2, eps=1e-5):
    parts = normalised(x.reshape(x.shape[0], groups, int(np.prod(x.shape[1:])) // groups), 2, eps).reshape(x.shape)
    return parts * g[:, None] + b[:, None]


def np_lrn(x):
    n = x.shape[1]
    sums = np.stack([(x[:, max(0, c - 2) : min(n, c + 3)] ** 2).sum(1) for c in range(n)], 1)
    return x / (1.5 + 0.3 * sums) ** 0.75


NORMS = [
    row(
        "layer_norm",
        lambda x, g, b: ops.layer_norm(x, (5,), g, b, 1e-5),
        lambda x, g, b: normalised(x, -1, 1e-5) * g + b,
        (3, 5),
        (5,),
        (5,),
        tol=1e-5,
    ),
    row(
        "layer_norm_2",
        lambda x, g, b: ops.layer_norm(x, (3, 4), g, b, 1e-5),
        lambda x, g, b: normalised(x, (1, 2), 1e-5) * g + b,
        (2, 3, 4),
        (3, 4),
        (3, 4),
        tol=1e-5,
    ),
    row(
        "rms_norm",
        lambda x, g: ops.rms_norm(x, g),
        lambda x, g: x / np.sqrt((x**2).mean(-1, keepdims=True) + 1e-6) * g,
        (3, 5),
        (5,),
        tol=5e-6,
    ),
    row("group_norm", lambda x, g, b: ops.group_norm(x, 2, g, b), np_group_norm, (2, 4, 3), (4,), (4,), tol=1e-5),
    row(
        "batch_norm",
        lambda x, m, v, g, b: ops.batch_norm(x, m, v, g, b),
        lambda x, m, v, g, b: (x - m[:, None]) / np.sqrt(v[:, None] + 1e-5) * g[:, None] + b[:, None],
        (2, 3, 4),
        *[(3,)] * 4,
        make=[wide, wide, positive, wide, wide],
        tol=1e-5,
    ),
    row(
        "batch_norm_training",
        lambda x, g, b: ops.batch_norm(x, ops.zeros(3), ops.ones(3), g, b, True),
        lambda x, g, b: normalised(x, (0, 2), 1e-5) * g[:, None] + b[:, None],
        (2, 3, 4),
        (3,),
        (3,),
        tol=1e-5,
        dtypes=("float32",),
        grad=False,  # the statistics that it is given are float32
    ),
    row(
        "l2_normalize",
        lambda x: ops.L2Normalize(1, 1e-4)(x),
        lambda x: x / np.sqrt(np.maximum((x**2).sum(1, keepdims=True), 1e-4)),
        (3, 4),
    ),
    row("lrn", lambda x: ops.lrn(x, 2, 1.5, 0.3, 0.75), np_lrn, (2, 6, 2, 2), tol=1e-5),
]


def windows(x, kernel, strides, pads, fill, dilations=None):
    """x (N, C, d...) → (N, C, outputs..., kernel...), by looking at each place in turn."""
    n = len(kernel)
    dilations = dilations or (1,) * n
    x = np.pad(x, [(0, 0)] * 2 + [(p, p) for p in pads], constant_values=fill)
    counts = [(x.shape[2 + i] - (kernel[i] - 1) * dilations[i] - 1) // strides[i] + 1 for i in range(n)]
    result = np.empty((*x.shape[:2], *counts, *kernel), x.dtype)
    for at in itertools.product(*map(range, counts)):
        for k in itertools.product(*map(range, kernel)):
            place = tuple(a * s + j * d for a, s, j, d in zip(at, strides, k, dilations))
            result[(slice(None), slice(None), *at, *k)] = x[(slice(None), slice(None), *place)]
    return result


def np_pooled(reduce, kernel, strides, pads, fill, dilations=None):
    axes = tuple(range(-len(kernel), 0))
    return lambda x: reduce(windows(x, kernel, strides, pads, fill, dilations), axis=axes)


def np_adaptive(reduce, x, sizes):
    for axis, n in zip(range(2, 2 + len(sizes)), sizes):
        d = x.shape[axis]
        parts = [range(i * d // n, -(-(i + 1) * d // n)) for i in range(n)]
        x = np.stack([reduce(np.take(x, p, axis), axis=axis) for p in parts], axis)
    return x


def np_conv(x, w, strides, pads):
    taps = windows(x, w.shape[2:], strides, pads, 0)
    n = w.ndim - 2
    letters = "uvw"[:n]
    return np.einsum(f"nc{'xyz'[:n]}{letters},oc{letters}->no{'xyz'[:n]}", taps, w)


def np_conv_transpose(x, w, strides, pads):
    full = [(d - 1) * s + k for d, s, k in zip(x.shape[2:], strides, w.shape[2:])]
    y = np.zeros((x.shape[0], w.shape[1], *full))
    for at in itertools.product(*map(range, x.shape[2:])):
        span = tuple(slice(a * s, a * s + k) for a, s, k in zip(at, strides, w.shape[2:]))
        y[(slice(None), slice(None), *span)] += np.tensordot(x[(slice(None), slice(None), *at)], w, (1, 0))
    return y[(slice(None), slice(None), *(slice(p, f - p) for p, f in zip(pads, full)))]


WINDOWS = [
    row("max_pool1d", lambda x: ops.max_pool1d(x, 3, 2), np_pooled(np.max, (3,), (2,), (0,), 0), (2, 3, 8)),
    row(
        "max_pool2d_padded",
        lambda x: ops.max_pool2d(x, 3, 2, 1, dilation=2),
        np_pooled(np.max, (3, 3), (2, 2), (1, 1), -np.inf, (2, 2)),
        (2, 2, 8, 7),
    ),
    row(
        "max_pool3d",
        lambda x: ops.max_pool3d(x, (2, 3, 3), 2, 1),
        np_pooled(np.max, (2, 3, 3), (2, 2, 2), (1, 1, 1), -np.inf),
        (1, 2, 4, 5, 5),
    ),
    row("avg_pool1d", lambda x: ops.avg_pool1d(x, 4, 3, 1), np_pooled(np.mean, (4,), (3,), (1,), 0), (2, 3, 9)),
    row(
        "avg_pool2d_padded",
        lambda x: ops.avg_pool2d(x, 3, 2, 1),
        np_pooled(np.mean, (3, 3), (2, 2), (1, 1), 0),
        (2, 2, 7, 5),
    ),
    row(
        "avg_pool2d_divisor",
        lambda x: ops.avg_pool2d(x, 3, 2, 1, divisor_override=5),
        lambda x: np_pooled(np.sum, (3, 3), (2, 2), (1, 1), 0)(x) / 5,
        (2, 2, 7, 5),
    ),
    row(
        "avg_pool2d_without_padding",
        lambda x: ops.avg_pool2d(x, 3, 2, 1, count_include_pad=False),
        lambda x: (
            np_pooled(np.sum, (3, 3), (2, 2), (1, 1), 0)(x)
            / np_pooled(np.sum, (3, 3), (2, 2), (1, 1), 0)(np.ones(x.shape))
        ),
        (2, 2, 7, 5),
    ),
    row(
        "avg_pool3d",
        lambda x: ops.avg_pool3d(x, 2, 1),
        np_pooled(np.mean, (2,) * 3, (1,) * 3, (0,) * 3, 0),
        (1, 2, 3, 4, 3),
    ),
    row(
        "adaptive_avg_pool1d",
        lambda x: ops.adaptive_avg_pool1d(x, 3),
        lambda x: np_adaptive(np.mean, x, (3,)),
        (2, 2, 7),
    ),
    row(
        "adaptive_avg_pool2d",
        lambda x: ops.adaptive_avg_pool2d(x, (4, 3)),
        lambda x: np_adaptive(np.mean, x, (4, 3)),
        (2, 2, 6, 5),
    ),
    row(
        "adaptive_avg_pool3d",
        lambda x: ops.adaptive_avg_pool3d(x, (2, 3, 2)),
        lambda x: np_adaptive(np.mean, x, (2, 3, 2)),
        (1, 2, 3, 4, 5),
    ),
    row(
        "adaptive_max_pool2d",
        lambda x: ops.adaptive_max_pool2d(x, (4, 3)),
        lambda x: np_adaptive(np.max, x, (4, 3)),
        (2, 2, 6, 5),
    ),
    row(
        "lp_pool2d",
        lambda x: ops.lp_pool2d(x, 3, 2, 2),
        lambda x: np_pooled(np.sum, (2, 2), (2, 2), (0, 0), 0)(x**3) ** (1 / 3),
        (2, 2, 4, 6),
        make=positive,
        tol=1e-5,
    ),
    row(
        "conv1d", lambda x, w: ops.conv1d(x, w, stride=2), lambda x, w: np_conv(x, w, (2,), (0,)), (2, 3, 8), (4, 3, 3)
    ),
    row(
        "conv2d_grouped",
        lambda x, w: ops.conv2d(x, w, pad_mode="pad", padding=1, groups=2),
        lambda x, w: np.concatenate(
            [np_conv2d(x[:, :2], w[:2], 1, (1,) * 4), np_conv2d(x[:, 2:], w[2:], 1, (1,) * 4)], 1
        ),
        (2, 4, 4, 5),
        (4, 2, 3, 3),
        tol=1e-5,
    ),
    row(
        "conv2d_depthwise",
        lambda x, w: ops.conv2d(x, w, stride=2, pad_mode="pad", padding=1, groups=3),
        lambda x, w: np.concatenate([np_conv2d(x[:, i : i + 1], w[i : i + 1], 2, (1,) * 4) for i in range(3)], 1),
        (2, 3, 5, 5),
        (3, 1, 3, 3),
        tol=1e-5,
    ),
    row(
        "conv3d",
        lambda x, w: ops.conv3d(x, w, stride=(1, 2, 2), pad_mode="pad", padding=1),
        lambda x, w: np_conv(x, w, (1, 2, 2), (1, 1, 1)),
        (1, 2, 3, 4, 4),
        (3, 2, 2, 3, 3),
        tol=1e-5,
    ),
    row(
        "conv1d_transpose",
        lambda x, w: ops.conv1d_transpose(x, w, "pad", 1, 2),
        lambda x, w: np_conv_transpose(x, w, (2,), (1,)),
        (2, 3, 4),
        (3, 2, 3),
        tol=1e-5,
    ),
    row(
        "conv2d_transpose",
        lambda x, w: ops.conv2d_transpose(x, w, "pad", 1, 2),
        lambda x, w: np_conv_transpose(x, w, (2, 2), (1, 1)),
        (2, 3, 3, 4),
        (3, 2, 3, 3),
        tol=1e-5,
    ),
    row(
        "conv3d_transpose",
        lambda x, w: ops.conv3d_transpose(x, w, "valid", 0, 2),
        lambda x, w: np_conv_transpose(x, w, (2, 2, 2), (0, 0, 0)),
        (1, 2, 2, 2, 3),
        (2, 2, 2, 3, 2),
        tol=1e-5,
    ),
]
for case in WINDOWS:
    if "max" in case.name:
        case.make = distinct


# ---- resizing is linear and separable: one matrix (out, in) an axis.
def taps(out, size, source, kernel, reach):
    """Weights kernel(distance) of the `reach` neighbours on each side of source(i); what lies outside is clamped."""
    matrix = np.zeros((out, size))
    for i in range(out):
        at = source(i)
        low = int(np.floor(at))
        for j in range(low - reach + 1, low + reach + 1):
            matrix[i, min(max(j, 0), size - 1)] += kernel(at - j)
    return matrix


def hat(t):
    return max(0.0, 1 - abs(t))


def cubic(t, a=-0.75):
    t = abs(t)
    if t <= 1:
        return (a + 2) * t**3 - (a + 3) * t**2 + 1
    return a * t**3 - 5 * a * t**2 + 8 * a * t - 4 * a if t < 2 else 0.0


def half_pixel(out, size):
    return lambda i: (i + 0.5) * size / out - 0.5


def corners(out, size):
    return lambda i: i * (size - 1) / (out - 1) if out > 1 else 0.0


def linear(out, size, places=half_pixel):
    at = places(out, size)
    return taps(out, size, lambda i: max(at(i), 0.0), hat, 1)


def bicubic(out, size):
    return taps(out, size, corners(out, size), cubic, 2)


def area(out, size):
    matrix = np.zeros((out, size))
    for i in range(out):
        low, high = i * size // out, -(-(i + 1) * size // out)
        matrix[i, low:high] = 1 / (high - low)
    return matrix


def nearest(out, size, shift=0.0):
    return np.eye(size)[[min(int((i + shift) * size / out), size - 1) for i in range(out)]]


def np_resize(x, sizes, matrix):
    for axis, n in zip(range(2, 2 + len(sizes)), sizes):
        x = np.moveaxis(np.tensordot(matrix(n, x.shape[axis]), x, (1, axis)), 0, axis)
    return x


def resized(name, shape, sizes, matrix, nan=False, **options):
    return row(
        f"interpolate_{name}",
        lambda x: ops.interpolate(x, sizes, **options),
        lambda x: np_resize(x, sizes if isinstance(sizes, tuple) else (sizes,), matrix),
        shape,
        tol=1e-5,
        nan=nan,
    )


RESIZING = [
    resized("nearest", (2, 2, 4, 5), (7, 3), nearest, mode="nearest"),
    resized("nearest_exact", (2, 2, 4, 5), (7, 3), functools.partial(nearest, shift=0.5), mode="nearest-exact"),
    resized("area", (2, 2, 6, 5), (4, 3), area, mode="area"),
    resized("linear", (2, 3, 7), 4, linear, mode="linear"),
    resized("bilinear", (2, 2, 4, 5), (7, 3), linear, mode="bilinear"),
    resized(
        "bilinear_corners",
        (2, 2, 4, 5),
        (7, 3),
        functools.partial(linear, places=corners),
        mode="bilinear",
        align_corners=True,
    ),
    resized("bicubic_corners", (1, 2, 4, 5), (7, 3), bicubic, mode="bicubic", align_corners=True),
    resized("trilinear", (1, 2, 3, 4, 2), (2, 6, 3), linear, mode="trilinear"),
]


def np_pixel_shuffle(x, r=2):
    n, c, h, w = x.shape
    return x.reshape(n, c // r**2, r, r, h, w).transpose(0, 1, 4, 2, 5, 3).reshape(n, c // r**2, h * r, w * r)


def np_pixel_unshuffle(x, r=2):
    n, c, h, w = x.shape
    return x.reshape(n, c, h // r, r, w // r, r).transpose(0, 1, 3, 5, 2, 4).reshape(n, c * r * r, h // r, w // r)


def np_unfold(x):
    y = windows(x, (3, 2), (1, 2), (1, 1), 0)
    n, c, h, w = y.shape[:4]
    return y.transpose(0, 1, 4, 5, 2, 3).reshape(n, c * 6, h * w)


ARRANGING = [
    row("pixel_shuffle", lambda x: ops.pixel_shuffle(x, 2), np_pixel_shuffle, (2, 8, 2, 3)),
    row("pixel_unshuffle", lambda x: ops.pixel_unshuffle(x, 2), np_pixel_unshuffle, (2, 2, 4, 6)),
    row(
        "channel_shuffle",
        lambda x: ops.channel_shuffle(x, 2),
        lambda x: x.reshape(len(x), 2, 2, 3, 2).swapaxes(1, 2).reshape(x.shape),
        (2, 4, 3, 2),
    ),
    row("unfold", lambda x: ops.unfold(x, (3, 2), 1, 1, (1, 2)), np_unfold, (2, 2, 4, 5)),
    *(
        row(
            f"pad_{mode}",
            lambda x, mode=mode: ops.pad(x, (1, 2, 2, 1), mode=mode),
            lambda x, to=to: np.pad(x, [(0, 0), (0, 0), (2, 1), (1, 2)], to),
            (2, 2, 4, 5),
        )
        for mode, to in (("reflect", "reflect"), ("replicate", "edge"), ("circular", "wrap"))
    ),
    row(
        "pad_constant",
        lambda x: ops.pad(x, (1, 2), value=1.5),
        lambda x: np.pad(x, [(0, 0), (1, 2)], constant_values=1.5),
        (2, 3),
    ),
]


# Their first input may hold any number of samples, none as well.
SAMPLES = [c for c in ALONG_AN_AXIS + NORMS + WINDOWS + RESIZING + ARRANGING if c.name != "batch_norm_training"]
ALL = ACTIVATIONS + ALONG_AN_AXIS + NORMS + WINDOWS + RESIZING + ARRANGING
