# SPDX-License-Identifier: Apache-2.0
"""The table of op tests: one row an op. See test_ops.py for what each row is tested for."""

import math
from dataclasses import dataclass, field

import numpy as np

from undertow import ops

erf = np.vectorize(math.erf, otypes=[np.float64])


def wide(rng, shape):
    """Values in [-3, 3], none of them within 0.05 of an integer or a half, where rounding and signs jump."""
    x = rng.integers(-6, 6, shape) / 2 + rng.uniform(0.05, 0.45, shape)
    return x.astype(np.float64)


def positive(rng, shape):
    return rng.uniform(0.3, 3, shape)


def nonzero(rng, shape):
    return rng.uniform(0.5, 2, shape) * rng.choice([-1, 1], shape)


def distinct(rng, shape):
    """All different by at least 0.05, so that maxima do not change within a difference quotient."""
    n = int(np.prod(shape))
    return (rng.permutation(n) * 0.1 - n * 0.05 + 0.013).reshape(shape)


@dataclass
class Case:
    name: str
    op: object  # on Tensors
    ref: object  # on float64 arrays
    shapes: list = field(default_factory=lambda: [(3, 4)])
    make: object = wide  # one generator, or one an input
    grad: bool = True
    tol: float = 2e-6
    nan: bool = True  # a NaN in an input comes out where NumPy gives one
    dtypes: tuple = ("float32", "float64")

    def inputs(self, rng, shapes=None):
        shapes = self.shapes if shapes is None else shapes
        makers = self.make if isinstance(self.make, (list, tuple)) else [self.make] * len(shapes)
        return [m(rng, s) for m, s in zip(makers, shapes)]

    def __repr__(self):
        return self.name


def unary(name, ref, **more):
    return Case(name, getattr(ops, name), ref, **more)


def binary(name, ref, **more):
    return Case(name, getattr(ops, name), ref, **({"shapes": [(3, 4), (4,)]} | more))


def compare(name, ref):
    return Case(name, getattr(ops, name), ref, shapes=[(3, 4), (3, 1)], grad=False, nan=False)


def np_sigmoid(x):
    return 1 / (1 + np.exp(-x))


def np_softmax(x, axis=-1):
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


def np_conv2d(x, w, stride=1, pad=(0, 0, 0, 0)):
    x = np.pad(x, ((0, 0), (0, 0), pad[:2], pad[2:]))
    kh, kw = w.shape[2:]
    oh, ow = (x.shape[2] - kh) // stride + 1, (x.shape[3] - kw) // stride + 1
    y = np.zeros((x.shape[0], w.shape[0], oh, ow), np.result_type(x, w))
    for i in range(oh):
        for j in range(ow):
            patch = x[:, :, i * stride : i * stride + kh, j * stride : j * stride + kw]
            y[:, :, i, j] = np.einsum("ncij,ocij->no", patch, w)
    return y


def np_pool(reduce, x, k, s):
    oh, ow = (x.shape[2] - k) // s + 1, (x.shape[3] - k) // s + 1
    rows = [
        np.stack([reduce(x[:, :, i * s : i * s + k, j * s : j * s + k], axis=(2, 3)) for j in range(ow)], -1)
        for i in range(oh)
    ]
    return np.stack(rows, 2)


ELEMENTWISE = [
    unary("neg", np.negative),
    unary("abs", np.abs),
    unary("exp", np.exp),
    unary("expm1", np.expm1),
    unary("log", np.log, make=positive),
    unary("log1p", np.log1p, make=positive),
    unary("sqrt", np.sqrt, make=positive),
    unary("rsqrt", lambda x: 1 / np.sqrt(x), make=positive),
    unary("square", np.square),
    unary("reciprocal", np.reciprocal, make=nonzero),
    unary("sin", np.sin),
    unary("cos", np.cos),
    unary("tanh", np.tanh),
    unary("erf", erf),
    unary("sigmoid", np_sigmoid),
    unary("relu", lambda x: np.maximum(x, 0)),
    unary("floor", np.floor, grad=False),
    unary("ceil", np.ceil, grad=False),
    unary("round", np.round, grad=False),
    unary("trunc", np.trunc, grad=False),
    unary("sign", np.sign, grad=False),
    unary("copy", np.copy),
    unary("isnan", np.isnan, grad=False),
    unary("isinf", np.isinf, grad=False),
    unary("isfinite", np.isfinite, grad=False),
    unary("logical_not", np.logical_not, grad=False),
    binary("add", np.add),
    binary("sub", np.subtract),
    binary("mul", np.multiply),
    binary("div", np.divide, make=[wide, nonzero]),
    binary("pow", np.power, make=[positive, wide], tol=5e-6),
    binary("maximum", np.maximum, make=[wide, positive]),
    binary("minimum", np.minimum, make=[wide, positive]),
    binary("atan2", np.arctan2, make=nonzero),
    binary("floor_div", np.floor_divide, make=[wide, nonzero], grad=False),
    binary("floor_mod", np.mod, make=[wide, nonzero], grad=False),
    compare("equal", np.equal),
    compare("not_equal", np.not_equal),
    compare("less", np.less),
    compare("less_equal", np.less_equal),
    compare("greater", np.greater),
    compare("greater_equal", np.greater_equal),
    Case(
        "where",
        lambda x, y: ops.where(x > y, x, y * 2),
        lambda x, y: np.where(x > y, x, y * 2),
        [(3, 4), (4,)],
        nan=False,
    ),
    Case("clip", lambda x: ops.clip(x, -1.2, 1.7), lambda x: np.clip(x, -1.2, 1.7)),
    Case("gelu_like", lambda x: 0.5 * x * (1 + ops.erf(x / 2**0.5)), lambda x: 0.5 * x * (1 + erf(x / 2**0.5))),
    Case("scalar_mix", lambda x: 2 - x / 3 + x**2, lambda x: 2 - x / 3 + x**2),
]


def reduction(name, ref, axis, keep=False, **more):
    def op(x):
        return getattr(ops, name)(x, axis, keep)

    label = f"{name}[{axis},{keep}]"
    return Case(label, op, lambda x: ref(x, axis=axis, keepdims=keep), **({"shapes": [(2, 3, 4)]} | more))


AXES = [(None, False), (1, False), ((0, 2), True), (-1, True)]
REDUCTIONS = [
    *(reduction("sum", np.sum, a, k, tol=5e-6) for a, k in AXES),
    *(reduction("mean", np.mean, a, k) for a, k in AXES),
    *(reduction("prod", np.prod, a, k, make=nonzero, tol=1e-5) for a, k in AXES),
    *(reduction("amax", np.max, a, k, make=distinct) for a, k in AXES),
    *(reduction("amin", np.min, a, k, make=distinct) for a, k in AXES),
    reduction("all", np.all, 1, grad=False, nan=False),
    reduction("any", np.any, 1, grad=False, nan=False),
    Case("var", lambda x: ops.var(x, 1), lambda x: np.var(x, axis=1), [(3, 5)], tol=5e-6),
    Case("std", lambda x: ops.std(x, 1, 1), lambda x: np.std(x, axis=1, ddof=1), [(3, 5)], tol=5e-6),
    Case("argmax", lambda x: ops.argmax(x, 1), lambda x: np.argmax(x, 1), [(3, 5)], make=distinct, grad=False),
    Case("argmin", lambda x: ops.argmin(x, 1), lambda x: np.argmin(x, 1), [(3, 5)], make=distinct, grad=False),
    Case("argmax_all", ops.argmax, np.argmax, [(3, 5)], make=distinct, grad=False),
    Case("softmax", ops.softmax, np_softmax, [(3, 5)]),
    Case("softmax0", lambda x: ops.softmax(x, 0), lambda x: np_softmax(x, 0), [(3, 5)]),
    Case("log_softmax", ops.log_softmax, lambda x: np.log(np_softmax(x)), [(3, 5)], tol=5e-6),
]

INDEX = np.array([[2, 0], [1, -1]])
SHAPES = [
    Case("reshape", lambda x: ops.reshape(x, (2, -1)), lambda x: x.reshape(2, -1), [(3, 4)]),
    Case("flatten", ops.flatten, lambda x: x.reshape(2, -1), [(2, 3, 4)]),
    Case("transpose", lambda x: ops.transpose(x, (2, 0, 1)), lambda x: x.transpose(2, 0, 1), [(2, 3, 4)]),
    Case("swapaxes", lambda x: ops.swapaxes(x, 0, -1), lambda x: x.swapaxes(0, -1), [(2, 3, 4)]),
    Case("expand_dims", lambda x: ops.expand_dims(x, 1), lambda x: x[:, None], [(2, 3)]),
    Case("squeeze", lambda x: ops.squeeze(x, 1), lambda x: x.squeeze(1), [(2, 1, 3)]),
    Case("broadcast_to", lambda x: ops.broadcast_to(x, (2, 3, 4)), lambda x: np.broadcast_to(x, (2, 3, 4)), [(3, 1)]),
    Case("tile", lambda x: ops.tile(x, (2, 1, 3)), lambda x: np.tile(x, (2, 1, 3)), [(2, 3)]),
    Case("concat", lambda *xs: ops.concat(xs, 1), lambda *xs: np.concatenate(xs, 1), [(2, 3), (2, 1), (2, 2)]),
    Case("stack", lambda *xs: ops.stack(xs, 1), lambda *xs: np.stack(xs, 1), [(2, 3), (2, 3)]),
    Case("split", lambda x: ops.split(x, 2, 1)[1], lambda x: x[:, 2:4], [(2, 5)], nan=False),
    Case("gather", lambda x: ops.gather(x, _tensor(INDEX), 1), lambda x: np.take(x, INDEX, 1), [(2, 3)]),
    Case("slice", lambda x: x[1:, ::-2, None], lambda x: x[1:, ::-2, None], [(3, 5)]),
    Case("ellipsis", lambda x: x[..., 1], lambda x: x[..., 1], [(2, 3, 4)]),
    Case("take_rows", lambda x: x[_tensor(INDEX)], lambda x: x[INDEX], [(3, 2)]),
]

POOLED = [(2, 2, 5, 6)]
HEAVY = [
    Case("matmul", ops.matmul, np.matmul, [(3, 4), (4, 5)], tol=5e-6),
    Case("matmul_batch", ops.matmul, np.matmul, [(2, 3, 4), (1, 4, 5)], tol=5e-6),
    Case("dense", ops.dense, lambda x, w, b: x @ w.T + b, [(3, 4), (5, 4), (5,)], tol=5e-6),
    Case("conv2d", ops.conv2d, np_conv2d, [(2, 3, 6, 5), (4, 3, 3, 2)], tol=1e-5),
    Case(
        "conv2d_same",
        lambda x, w: ops.conv2d(x, w, stride=2, pad_mode="same"),
        lambda x, w: np_conv2d(x, w, 2, (0, 1, 1, 1)),
        [(1, 2, 6, 5), (3, 2, 3, 3)],
        tol=1e-5,
    ),
    Case(
        "max_pool2d",
        lambda x: ops.max_pool2d(x, 2, 1),
        lambda x: np_pool(np.max, x, 2, 1),
        POOLED,
        make=distinct,
    ),
    Case("avg_pool2d", lambda x: ops.avg_pool2d(x, 2, 2), lambda x: np_pool(np.mean, x, 2, 2), POOLED, tol=5e-6),
    Case("mse_loss", ops.mse_loss, lambda x, y: np.mean((x - y) ** 2), [(3, 4), (3, 4)], tol=5e-6),
    Case(
        "cross_entropy",
        lambda x: ops.cross_entropy(x, _tensor(np.array([1, 0, 4], np.int32))),
        lambda x: -np.mean(np.log(np_softmax(x))[np.arange(3), [1, 0, 4]]),
        [(3, 5)],
        tol=5e-6,
    ),
    Case(
        "cross_entropy_dense",
        lambda x, p: ops.cross_entropy(x, p, reduction="sum"),
        lambda x, p: -np.sum(p * np.log(np_softmax(x))),
        [(3, 5), (3, 5)],
        tol=1e-5,
    ),
]


def _tensor(array):
    from undertow import Tensor

    return Tensor(array)


ALL = ELEMENTWISE + REDUCTIONS + SHAPES + HEAVY
