# SPDX-License-Identifier: Apache-2.0
"""Rows of the op table: special functions, statistics, running reductions, sorting."""

import math

import numpy as np
from op_cases import Case, _tensor, distinct, nonzero, np_softmax, positive, reduction, unary, wide

from undertow import ops


def inside(rng, shape):
    return rng.uniform(-0.9, 0.9, shape)


def above_one(rng, shape):
    return rng.uniform(1.2, 4, shape)


def tails(rng, shape):
    return rng.uniform(-4, 4, shape)


def vector(f):
    return np.vectorize(f, otypes=[np.float64])


def np_digamma(x):
    """The derivative of lgamma by a difference of high order."""
    h = 1e-3
    f = vector(math.lgamma)
    d = lambda k: (f(x + k * h) - f(x - k * h)) / (2 * k * h)  # noqa: E731
    return (15 * d(1) - 6 * d(2) + d(3)) / 10


def np_erfinv(y):
    """The root of erf by bisection."""
    low, high = np.full(np.shape(y), -6.0), np.full(np.shape(y), 6.0)
    for _ in range(80):
        middle = (low + high) / 2
        below = vector(math.erf)(middle) < y
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return np.where(np.isnan(y), np.nan, (low + high) / 2)


def binary(name, ref, **more):
    return Case(name, getattr(ops, name), ref, **({"shapes": [(3, 4), (4,)]} | more))


ELEMENTWISE = [
    unary("tan", np.tan, make=inside),
    unary("sinh", np.sinh),
    unary("cosh", np.cosh),
    unary("asin", np.arcsin, make=inside),
    unary("acos", np.arccos, make=inside),
    unary("atan", np.arctan),
    unary("asinh", np.arcsinh),
    unary("acosh", np.arccosh, make=above_one),
    unary("atanh", np.arctanh, make=inside),
    unary("erfc", vector(math.erfc), make=tails),
    unary("erfinv", np_erfinv, make=inside),
    unary("lgamma", vector(math.lgamma), make=positive),
    unary("exp2", np.exp2),
    unary("log2", np.log2, make=positive),
    unary("log10", np.log10, make=positive),
    unary("frac", lambda x: x - np.trunc(x)),
    unary("deg2rad", np.deg2rad),
    unary("rad2deg", np.rad2deg),
    unary("sinc", np.sinc),
    unary("logit", lambda x: np.log(x / (1 - x)), make=lambda rng, s: rng.uniform(0.1, 0.9, s)),
    unary("signbit", np.signbit, grad=False, nan=False),
    unary("isposinf", np.isposinf, grad=False, nan=False),
    binary("fmod", np.fmod, make=[wide, nonzero]),
    binary("xlogy", lambda x, y: x * np.log(y), make=[wide, positive]),
    binary("xdivy", np.divide, make=[wide, nonzero]),
    binary("hypot", np.hypot),
    binary("logaddexp", np.logaddexp),
    binary("logaddexp2", np.logaddexp2),
    binary("copysign", np.copysign, make=nonzero, nan=False),
    binary("heaviside", np.heaviside, grad=False),
    binary("fmax", np.fmax, make=[wide, positive]),
    binary("fmin", np.fmin, make=[wide, positive]),
    Case("lerp", lambda x, y: ops.lerp(x, y, 0.3), lambda x, y: x + (y - x) * 0.3, [(3, 4), (3, 4)]),
    Case(
        "addcdiv",
        lambda x, a, b: ops.addcdiv(x, a, b, 2.0),
        lambda x, a, b: x + 2 * a / b,
        [(3, 4), (3, 4), (4,)],
        make=[wide, wide, nonzero],
    ),
    Case("addcmul", lambda x, a, b: ops.addcmul(x, a, b), lambda x, a, b: x + a * b, [(3, 4), (3, 4), (4,)]),
    Case(
        "div_floor",
        lambda x, y: ops.div(x, y, rounding_mode="floor"),
        lambda x, y: np.floor(x / y),
        [(3, 4), (4,)],
        make=[wide, nonzero],
        grad=False,
    ),
    Case("nan_to_num", lambda x: ops.nan_to_num(x, 2.0), lambda x: np.nan_to_num(x, nan=2.0), nan=False),
    Case("isclose", lambda x, y: ops.isclose(x, y), np.isclose, [(3, 4), (3, 4)], grad=False, nan=False),
    Case(
        "clip_tensors",
        lambda x, y: ops.clamp(x, y - 1, y + 1),
        lambda x, y: np.clip(x, y - 1, y + 1),
        [(3, 4), (4,)],
        nan=False,
    ),
    Case("addn", lambda x, y: ops.addn([x, y, x]), lambda x, y: 2 * x + y, [(3, 4), (3, 4)]),
    Case("round_decimals", lambda x: ops.round(x, decimals=2), lambda x: np.round(x, 2), grad=False, tol=2e-6),
]


def np_norm(x, p, axis=None, keepdims=False):
    return np.sum(np.abs(x) ** p, axis=axis, keepdims=keepdims) ** (1 / p)


def np_logsumexp(x, axis=None, keepdims=False):
    return np.log(np.sum(np.exp(x), axis=axis, keepdims=keepdims))


def np_cos(x, y):
    return np.sum(x * y, 1) / np.sqrt(np.sum(x * x, 1) * np.sum(y * y, 1))


REDUCTIONS = [
    reduction("logsumexp", np_logsumexp, 1, True, tol=5e-6),
    reduction("logsumexp", np_logsumexp, (0, 2), tol=5e-6),
    reduction("nanmean", np.nanmean, 1, nan=False),
    reduction("nansum", np.nansum, (0, 2), True, nan=False, tol=5e-6),
    reduction("ptp", lambda x, axis, keepdims: np.ptp(x, axis, keepdims=keepdims), 1, make=distinct),
    reduction("count_nonzero", lambda x, axis, keepdims: np.count_nonzero(x, axis), 1, grad=False, nan=False),
    Case("norm2", lambda x: ops.norm(x, dim=1), lambda x: np_norm(x, 2, 1), [(3, 5)], tol=5e-6),
    Case("norm3", lambda x: ops.vector_norm(x, 3.0, 1, True), lambda x: np_norm(x, 3, 1, True), [(3, 5)], tol=5e-6),
    Case("norm1", lambda x: ops.norm(x, 1, 0), lambda x: np_norm(x, 1, 0), [(3, 5)], tol=5e-6),
    Case("norm_inf", lambda x: ops.norm(x, float("inf"), 1), lambda x: np.abs(x).max(1), [(3, 5)], make=distinct),
    Case("matrix_norm", lambda x: ops.norm(x, 1), lambda x: np.abs(x).sum(0).max(), [(3, 5)], tol=5e-6),
    Case("std_mean", lambda x: ops.std_mean(x, 1, 1)[0], lambda x: x.std(1, ddof=1), [(3, 5)], tol=5e-6),
    Case("l2_loss", ops.l2_loss, lambda x: (x**2).sum() / 2, [(3, 5)], tol=5e-6),
    Case("cosine_similarity", ops.cosine_similarity, np_cos, [(3, 5), (3, 5)], tol=5e-6),
    Case("dist", lambda x, y: ops.dist(x, y, 3.0), lambda x, y: np_norm(x - y, 3), [(3, 4), (3, 4)], tol=5e-6),
    Case("cumsum", lambda x: ops.cumsum(x, 1), lambda x: np.cumsum(x, 1), [(2, 5, 3)], tol=5e-6),
    Case("cumsum_last", lambda x: ops.cumsum(x, -1), lambda x: np.cumsum(x, -1), [(20, 7)], tol=5e-6),
    Case(
        "cumsum_exclusive_reverse",
        lambda x: ops.CumSum(True, True)(x, 0),
        lambda x: np.cumsum(x[::-1], 0)[::-1] - x,
        [(4, 3)],
        tol=5e-6,
        nan=False,
    ),
    Case("cumprod", lambda x: ops.cumprod(x, 1), lambda x: np.cumprod(x, 1), [(3, 5)], make=nonzero, tol=1e-5),
    Case(
        "cumprod_zeros",
        lambda x: ops.cumprod(x * _tensor(np.float32([1, 0, 1, 0, 1])).astype(x.dtype), 1),
        lambda x: np.cumprod(x * np.array([1, 0, 1, 0, 1]), 1),
        [(3, 5)],
        make=nonzero,
        nan=False,
    ),
    Case("cummax", lambda x: ops.cummax(x, 1)[0], lambda x: np.maximum.accumulate(x, 1), [(3, 5)], make=distinct),
    Case("cummin", lambda x: ops.cummin(x, 0)[0], lambda x: np.minimum.accumulate(x, 0), [(5, 18)], make=distinct),
    Case(
        "logcumsumexp",
        lambda x: ops.logcumsumexp(x, 1),
        lambda x: np.logaddexp.accumulate(x, 1),
        [(3, 5)],
        nan=False,
        tol=5e-6,
    ),
    Case("sort", lambda x: ops.sort(x, 1)[0], lambda x: np.sort(x, 1), [(3, 5)], make=distinct),
    Case("sort_down", lambda x: ops.sort(x, 0, True)[0], lambda x: -np.sort(-x, 0), [(5, 3)], make=distinct, nan=False),
    Case("argsort", lambda x: ops.argsort(x, 1), lambda x: np.argsort(x, 1), [(3, 5)], make=distinct, grad=False),
    Case("topk", lambda x: ops.topk(x, 3)[0], lambda x: -np.sort(-x, -1)[:, :3], [(4, 9)], make=distinct, nan=False),
    Case(
        "topk_low",
        lambda x: ops.topk(x, 2, 0, False)[0],
        lambda x: np.sort(x, 0)[:2],
        [(7, 3)],
        make=distinct,
        nan=False,
    ),
    Case(
        "kthvalue",
        lambda x: ops.kthvalue(x, 2, 1)[0],
        lambda x: np.sort(x, 1)[:, 1],
        [(3, 5)],
        make=distinct,
        nan=False,
    ),
    Case("median", lambda x: ops.median(x, 1)[0], lambda x: np.median(x, 1), [(3, 5)], make=distinct),
    Case(
        "quantile",
        lambda x: ops.quantile(x, 0.3, 1),
        lambda x: np.quantile(x, 0.3, 1),
        [(3, 6)],
        make=distinct,
        tol=5e-6,
    ),
    Case(
        "renorm",
        lambda x: ops.renorm(x, 2.0, 0, 1.0),
        lambda x: x / np.maximum(1, np_norm(x, 2, 1, True) + 1e-7),
        [(3, 5)],
        tol=5e-6,
        grad=False,
        nan=False,
    ),
    Case(
        "searchsorted",
        lambda x: ops.searchsorted(_tensor(np.float32([-1, 0.2, 1])).astype(x.dtype), x),
        lambda x: np.searchsorted([-1, np.float64(np.float32(0.2)), 1], x),
        [(3, 4)],
        grad=False,
        nan=False,
    ),
    Case(
        "softmax_weighted",
        lambda x: ops.softmax(x, 1) * ops.cumsum(x, 1),
        lambda x: np_softmax(x, 1) * np.cumsum(x, 1),
        [(3, 4)],
        tol=5e-6,
    ),
]

# Values only: their references have no derivative to compare with.
VALUES = [unary("digamma", np_digamma, make=positive, grad=False, tol=1e-5, dtypes=("float32",))]

ALL = ELEMENTWISE + REDUCTIONS + VALUES
