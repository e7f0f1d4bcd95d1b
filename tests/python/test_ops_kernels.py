# SPDX-License-Identifier: Apache-2.0
"""The kernels behind sorting, running reductions, scattering and integer products: dtypes, and shapes that they cut."""

import numpy as np
import pytest

import undertow as ut
from undertow import Tensor, ops

RNG = np.random.default_rng(21)
NUMBERS = ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float16", "float32", "float64"]


def draw(dtype, shape):
    if dtype.startswith("float"):
        return RNG.normal(size=shape).astype(dtype)
    info = np.iinfo(dtype)
    return RNG.integers(max(info.min, -40), 40, shape).astype(dtype)


@pytest.mark.parametrize("dtype", NUMBERS)
def test_sort_of_every_dtype(dtype, device):
    x = draw(dtype, (3, 50, 2))
    x[0, 3] = x[0, 7]
    values, at = ops.sort(Tensor(x), 1)
    np.testing.assert_array_equal(values.asnumpy(), np.sort(x, 1))
    np.testing.assert_array_equal(at.asnumpy(), np.argsort(x, 1, kind="stable"))
    values, at = ops.sort(Tensor(x), 1, True)
    np.testing.assert_array_equal(values.asnumpy(), np.sort(x, 1)[:, ::-1])
    np.testing.assert_array_equal(np.take_along_axis(x, at.asnumpy(), 1), values.asnumpy())


def test_sort_of_special_values(device):
    x = np.array([2, np.nan, -np.inf, 0.0, np.inf, -0.0, np.nan, -1], np.float32)
    values, at = ops.sort(Tensor(x))
    np.testing.assert_array_equal(values.asnumpy(), np.sort(x))
    assert at.asnumpy().tolist() == [2, 7, 3, 5, 0, 4, 1, 6]  # 0 and -0 are equal and keep their order
    assert ops.sort(Tensor(x), descending=True)[1].asnumpy().tolist() == [1, 6, 4, 0, 3, 5, 7, 2]


def test_topk_of_many(device):
    x = RNG.permutation(4 * 3000).reshape(4, 3000).astype(np.float32)
    values, at = ops.topk(Tensor(x), 20)
    want = np.argsort(-x, 1)[:, :20]
    np.testing.assert_array_equal(at.asnumpy(), want)
    np.testing.assert_array_equal(values.asnumpy(), np.take_along_axis(x, want, 1))
    half = Tensor(x / 12000, ut.bfloat16)
    values, at = ops.topk(half, 5)
    wide = half.astype(ut.float32).asnumpy()
    np.testing.assert_array_equal(values.astype(ut.float32).asnumpy(), -np.sort(-wide, 1)[:, :5])


@pytest.mark.parametrize("dtype", NUMBERS)
def test_running_reductions_of_every_dtype(dtype, device):
    x = draw(dtype, (2, 30, 37))
    tol = {"rtol": 2e-3, "atol": 5e-3} if dtype == "float16" else {"rtol": 1e-5, "atol": 1e-5}
    wide = x.astype(np.float64) if dtype.startswith("float") else x
    for axis in (1, 2):
        want = np.cumsum(wide, axis, dtype=None if dtype.startswith("float") else dtype)
        np.testing.assert_allclose(ops.cumsum(Tensor(x), axis).asnumpy(), want, **tol)
        np.testing.assert_array_equal(ops.cummax(Tensor(x), axis)[0].asnumpy(), np.maximum.accumulate(x, axis))
        np.testing.assert_array_equal(ops.cummin(Tensor(x), axis)[0].asnumpy(), np.minimum.accumulate(x, axis))
    assert ops.cumsum(Tensor(x), 1).dtype == dtype


MODES = {
    "update": None, "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide, "max": np.maximum,
    "min": np.minimum,
}  # fmt: skip


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("dtype", ["float32", "int32", "float64", "uint8"])
def test_scatter_modes(mode, dtype, device):
    x, u = draw(dtype, (300, 7)), draw(dtype, (500, 7))
    u[u == 0] = 1
    at = RNG.integers(-300, 300, 500)
    want = x.copy()
    with np.errstate(all="ignore"):
        for i, row in zip(at, u):
            if MODES[mode] is None:
                want[i] = row
            elif mode == "div" and not dtype.startswith("float"):
                want[i] = np.trunc(want[i] / row).astype(dtype)
            else:
                want[i] = MODES[mode](want[i], row)
    got = getattr(ops, f"scatter_{mode}")(Tensor(x), Tensor(at), Tensor(u))
    np.testing.assert_allclose(got.asnumpy(), want, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("dtype", ["float64", "int8", "uint16", "int32", "int64"])
def test_products_of_other_dtypes(dtype, device):
    a, b = draw(dtype, (2, 9, 33)), draw(dtype, (2, 33, 300))
    np.testing.assert_allclose(ops.matmul(Tensor(a), Tensor(b)).asnumpy(), a @ b, rtol=1e-12)
    product = ops.BatchMatMul(True, True)
    got = product(Tensor(a.swapaxes(1, 2).copy()), Tensor(b.swapaxes(1, 2).copy()))
    np.testing.assert_allclose(got.asnumpy(), a @ b, rtol=1e-12)
    np.testing.assert_allclose(ops.matmul(Tensor(a), Tensor(b[0, :, 0])).asnumpy(), a @ b[0, :, 0], rtol=1e-12)


def test_boxes_are_written(device):
    for dtype in ("uint8", "int16", "float32", "float64"):
        x, v = draw(dtype, (40, 50, 6)), draw(dtype, (13, 50, 2))
        y = Tensor(x)
        y[1:40:3, ::-1, 2:6:3] = Tensor(v)
        want = x.copy()
        want[1:40:3, ::-1, 2:6:3] = v
        np.testing.assert_array_equal(y.asnumpy(), want)


def test_large_results():
    x = Tensor(RNG.normal(size=(64, 5000)).astype(np.float32))
    at = Tensor(RNG.integers(0, 64, 2000))
    u = Tensor(RNG.normal(size=(2000, 5000)).astype(np.float32))
    np.testing.assert_allclose(ops.cumsum(x, 1).asnumpy(), np.cumsum(x.asnumpy().astype(np.float64), 1), atol=1e-4)
    want = x.asnumpy().astype(np.float64)
    np.add.at(want, at.asnumpy(), u.asnumpy().astype(np.float64))
    np.testing.assert_allclose(ops.scatter_add(x, at, u).asnumpy(), want, atol=1e-4)
    np.testing.assert_array_equal(ops.sort(x, 0)[0].asnumpy(), np.sort(x.asnumpy(), 0))
