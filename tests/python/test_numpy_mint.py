# SPDX-License-Identifier: Apache-2.0
"""undertow.numpy against NumPy, and undertow.mint against NumPy's equivalents."""

import numpy as np
import pytest
import undertow.numpy as mnp

import undertow as ut
from undertow import Tensor, mint

X = np.array([[3, 1, 2], [4, 0, 5]], np.float32)
V = np.array([1, 2, 3], np.float32)
N = np.where(X == 0, np.nan, X)

# Evaluated twice: np is NumPy, or undertow.numpy.
CALLS = """
np.mean(x)
np.mean(x, axis=0, keepdims=True)
np.sum(x, axis=(0, 1))
np.std(x, axis=1, ddof=1)
np.var(x)
np.max(x, axis=1)
np.amin(x)
np.argmax(x, axis=1)
np.argmin(x)
np.prod(x, axis=0)
np.cumsum(x)
np.cumsum(x, axis=1)
np.cumprod(v)
np.add(x, 2)
np.add(1, 2)
np.subtract(2, v)
np.power(v, 2)
np.divide(x, v)
np.mod(x, 2)
np.arctan2(x, v)
np.sqrt(v)
np.log1p(v)
np.cbrt(v)
np.exp2(v)
np.rint(x)
np.less(x, v)
np.logical_not(x)
np.isnan(x)
np.maximum(x, 2)
np.clip(x, 1, 3)
np.around(x)
np.reshape(x, (3, -1))
np.transpose(x)
np.expand_dims(x, (0, 2))
np.squeeze(np.expand_dims(x, 0))
np.swapaxes(x, 0, 1)
np.moveaxis(x, 0, 1)
np.rollaxis(np.expand_dims(x, 0), 2)
np.broadcast_to(v, (2, 3))
np.tile(x, (2, 1))
np.tile(v, 2)
np.repeat(x, 2, axis=1)
np.roll(x, 1)
np.roll(x, 1, axis=1)
np.flip(x)
np.rot90(x)
np.concatenate((x, x), axis=1)
np.concatenate((x, x), axis=None)
np.stack([x, x], axis=1)
np.hstack((x, x))
np.vstack((x, x))
np.column_stack((v, v))
np.split(x, 3, axis=1)[1]
np.array_split(v, 2)[0]
np.append(x, v)
np.diff(x)
np.ravel(x)
np.diag(v)
np.diag(x)
np.diagonal(x)
np.trace(x)
np.tril(x)
np.triu(x, 1)
np.where(x > 1, x, 0)
np.select([x > 3, x > 1], [x, x * 2], 7)
np.take_along_axis(x, np.argmax(x, axis=1)[:, None], 1)
np.isclose(x, x)
np.searchsorted(v, x)
np.digitize(x, v)
np.dot(x, v)
np.inner(x, v)
np.outer(v, v)
np.kron(v, v)
np.matmul(x, v)
np.tensordot(x, x, axes=2)
np.tensordot(x, x, ((0,), (0,)))
np.cross(v, v * 2 + 1)
np.cov(x)
np.corrcoef(x)
np.trapz(x)
np.polyval(v, x)
np.vander(v)
np.average(x, axis=1, weights=v)
np.ptp(x, axis=0)
np.count_nonzero(x)
np.nansum(x)
np.pad(x, 1)
np.pad(x, ((1, 0), (0, 2)))
np.eye(3, k=1)
np.tri(3, 4)
np.identity(2)
np.linspace(0, 1, 5)
np.linspace(0, 1, 4, endpoint=False)
np.logspace(0, 2, 3)
np.geomspace(1, 8, 4)
np.arange(5)
np.arange(1, 3, 0.5)
np.full((2, 2), 7)
np.zeros_like(x)
np.ones((2,))
np.meshgrid(v, v)[1]
np.meshgrid(v, v, sparse=True)[0]
np.mgrid[0:3, 0:2]
np.indices((2, 3))
np.hanning(5)
np.blackman(5)
np.array([1, 2, 3])
np.array([[1.5, 2]])
np.unique(x)
np.isin(x, [1, 2])
np.bincount(np.array([1, 1, 3]))
np.array_equal(x, x)
np.heaviside(x - 1, 0.5)
np.hypot(x, v)
np.float_power(v, 2)
np.trunc(x / 2)
np.sign(x - 2)
np.nanmax(n, axis=1)
np.nanmin(n)
np.nanvar(n, axis=1)
np.nanstd(n)
np.histogram(x, 3)[0]
np.histogram(x, bins=4, range=(1, 5), density=True)[0]
np.histogram(x, 3)[1]
np.interp(x, v, v * v)
np.unravel_index(np.arange(6), (2, 3))[1]
np.ravel_multi_index((np.arange(2), np.arange(2)), (2, 3))
np.setdiff1d(x, v)
np.intersect1d(x, v)
np.gradient(v)
np.gradient(x, 2.0)[1]
""".strip().splitlines()


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("call", CALLS)
def test_numpy(call):
    if "trapz" in call and not hasattr(np, "trapz"):
        want = np.trapezoid(X)
    else:
        want = eval(call, {"np": np, "x": X, "v": V, "n": N})
    got = eval(call, {"np": mnp, "x": Tensor(X), "v": Tensor(V), "n": Tensor(N)})
    np.testing.assert_allclose(got.asnumpy().astype(np.float64), np.asarray(want, np.float64), rtol=1e-5, atol=1e-5)
    assert got.shape == np.shape(want)


def test_numpy_dtypes():
    assert mnp.array([1, 2]).dtype == ut.int32 and mnp.array([1.5]).dtype == ut.float32
    assert mnp.array(np.zeros(2)).dtype == ut.float64 and mnp.arange(3).dtype == ut.int32
    assert mnp.full((2,), 3).dtype == ut.int32 and mnp.add(1, 2, dtype=ut.float32).dtype == ut.float32
    assert mnp.argmin(Tensor(X)).dtype == ut.int64 and mnp.bool_ is ut.bool_ and mnp.pi == np.pi
    assert mnp.take(Tensor(X), Tensor([0, 10])).asnumpy().tolist() == [3, 5]
    assert mnp.rand(2, 3).shape == (2, 3) and mnp.randint(5, shape=(4,)).dtype == ut.int32


MINT = {
    "cat": (lambda x: mint.cat((x, x), dim=1), np.concatenate([X, X], 1)),
    "max": (lambda x: mint.max(x), 5),
    "max_dim": (lambda x: mint.max(x, 1)[0], X.max(1)),
    "max_other": (lambda x: mint.max(x, x * 0 + 2), np.maximum(X, 2)),
    "std": (lambda x: mint.std(x, 1), X.std(1, ddof=1)),
    "sum": (lambda x: mint.sum(x, dim=0, keepdim=True), X.sum(0, keepdims=True)),
    "transpose": (lambda x: mint.transpose(x, 0, 1), X.T),
    "permute": (lambda x: mint.permute(x, (1, 0)), X.T),
    "gather": (lambda x: mint.gather(x, 1, Tensor([[0], [2]])), [[3], [5]]),
    "split": (lambda x: mint.split(x, 2, dim=1)[0], X[:, :2]),
    "flatten": (lambda x: mint.flatten(x), X.ravel()),
    "squeeze": (lambda x: mint.squeeze(x, 0), X),
    "norm": (lambda x: mint.norm(x), np.sqrt((X**2).sum())),
    "median": (lambda x: mint.median(x), 2),
    "any": (lambda x: mint.any(x > 4, 1), [False, True]),
    "topk": (lambda x: mint.topk(x, 1, dim=0)[0], X.max(0)[None]),
    "where": (lambda x: mint.where(x > 1, x, 0.0), np.where(X > 1, X, 0)),
    "meshgrid": (lambda x: mint.meshgrid(x[0], x[1])[0], np.meshgrid(X[0], X[1], indexing="ij")[0]),
    "einsum": (lambda x: mint.einsum("ij->j", x), X.sum(0)),
    "unique": (lambda x: mint.unique(Tensor([2, 1, 2])), [1, 2]),
    "scatter_add": (lambda x: mint.scatter_add(x, 1, Tensor([[0], [0]]), x[:, :1]), X + X * [1, 0, 0]),
    "argmin": (lambda x: mint.argmin(x, 1), [1, 1]),
    "linspace": (lambda x: mint.linspace(0, 1, 3), [0, 0.5, 1]),
    "randint": (lambda x: mint.randint(3, (2, 3)) * 0, np.zeros((2, 3))),
}


@pytest.mark.parametrize("name", MINT)
def test_mint(name):
    call, want = MINT[name]
    np.testing.assert_allclose(call(Tensor(X)).asnumpy(), np.asarray(want), rtol=1e-5, atol=1e-6)
