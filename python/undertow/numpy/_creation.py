# SPDX-License-Identifier: Apache-2.0
"""Constants, dtypes, and functions that make tensors from nothing."""

import numpy as _np

from undertow._core import Tensor, dtype_of, float32, int32, uint32
from undertow._core import ops as _f

__all__ = [
    "int_",
    "uint",
    "float_",
    "inf",
    "nan",
    "pi",
    "PINF",
    "NINF",
    "array",
    "asarray",
    "asfarray",
    "arange",
    "copy",
    "empty",
    "empty_like",
    "eye",
    "full",
    "full_like",
    "geomspace",
    "identity",
    "indices",
    "linspace",
    "logspace",
    "meshgrid",
    "mgrid",
    "ogrid",
    "ones",
    "ones_like",
    "rand",
    "randint",
    "randn",
    "tri",
    "zeros",
    "zeros_like",
    "diag_indices",
    "ix_",
    "bartlett",
    "blackman",
    "hamming",
    "hanning",
]

int_, uint, float_ = int32, uint32, float32
inf = PINF = float("inf")
NINF = -inf
nan = float("nan")
pi = _np.pi


def asarray(a, dtype=None):
    """A Tensor of a Tensor, array, number or nested lists; lists of integers give int32, of floats float32."""
    if isinstance(a, Tensor):
        return a if dtype is None else _f.cast(a, dtype_of(dtype))
    if isinstance(a, (list, tuple)) and any(isinstance(x, Tensor) for x in a):
        stacked = _f.stack([asarray(x) for x in a])
        return stacked if dtype is None else _f.cast(stacked, dtype_of(dtype))
    if dtype is None and not isinstance(a, (_np.ndarray, _np.generic)):
        a = _np.asarray(a)
        dtype = {"int64": int32, "float64": float32}.get(a.dtype.name)
    return Tensor(a, None if dtype is None else dtype_of(dtype))


def array(obj, dtype=None, copy=True, ndmin=0):
    """As asarray, a copy unless copy=False, with at least `ndmin` dimensions."""
    x = asarray(obj, dtype)
    if copy and x is obj:
        x = _f.copy(x)
    return x if x.ndim >= ndmin else _f.reshape(x, (1,) * (ndmin - x.ndim) + x.shape)


def asfarray(a, dtype=float32):
    """As asarray, with a float dtype."""
    return asarray(a, dtype)


def copy(a):
    """A copy."""
    return _f.copy(asarray(a))


def full(shape, fill_value, dtype=None):
    """A tensor of one value, in the value's dtype."""
    value = asarray(fill_value, dtype)
    return _f.broadcast_to(value, (shape,) if isinstance(shape, int) else tuple(shape))


def zeros(shape, dtype=float32):
    """Zeros."""
    return _f.zeros(shape, dtype)


def ones(shape, dtype=float32):
    """Ones."""
    return _f.ones(shape, dtype)


empty = zeros


def _like(value):
    def like(a, dtype=None, shape=None):
        a = asarray(a)
        return _f.full(a.shape if shape is None else shape, value, dtype=a.dtype if dtype is None else dtype)

    like.__doc__ = "One value in a's shape and dtype."
    return like


zeros_like = empty_like = _like(0)
ones_like = _like(1)


def full_like(a, fill_value, dtype=None, shape=None):
    """One value in a's shape and dtype."""
    return _like(fill_value)(a, dtype, shape)


def arange(start, stop=None, step=None, dtype=None):
    """Numbers from start (0) up to, not including, stop: int32, float32 where an argument is a float."""
    start, stop = (0, start) if stop is None else (start, stop)
    step = 1 if step is None else step
    if dtype is None:
        parts = [x.item() if isinstance(x, Tensor) else x for x in (start, stop, step)]
        dtype = float32 if any(isinstance(x, (float, _np.floating)) for x in parts) else int32
    return _f.arange(start, stop, step, dtype=dtype)


def linspace(start, stop, num=50, endpoint=True, retstep=False, dtype=None, axis=0):
    """`num` evenly spaced numbers; start and stop may be tensors, whose axis is `axis`."""
    start, stop = (
        asarray(start, float32 if dtype is None else dtype),
        asarray(stop, float32 if dtype is None else dtype),
    )
    parts = max(num - 1 if endpoint else num, 1)
    step = (stop - start) / parts
    place = _f.arange(num, dtype=float32)
    shape = _np.broadcast_shapes(start.shape, stop.shape)
    place = _f.reshape(place, (num,) + (1,) * len(shape))
    y = start + place * step
    if endpoint and num > 1:  # the end exactly
        y = _f.where(_f.equal(place, num - 1), _f.broadcast_to(stop, shape) if shape else stop, y)
    y = _f.moveaxis(y, 0, axis) if shape else y
    y = y if dtype is None else _f.cast(y, dtype_of(dtype))
    return (y, step) if retstep else y


def logspace(start, stop, num=50, endpoint=True, base=10.0, dtype=None, axis=0):
    """base to the power of evenly spaced numbers."""
    y = _f.pow(asarray(base, float32), linspace(start, stop, num, endpoint, axis=axis))
    return y if dtype is None else _f.cast(y, dtype_of(dtype))


def geomspace(start, stop, num=50, endpoint=True, dtype=None, axis=0):
    """Numbers from start to stop with a constant ratio."""
    start, stop = asarray(start, float32), asarray(stop, float32)
    y = start * _f.pow(stop / start, linspace(0.0, 1.0, num, endpoint))
    return y if dtype is None else _f.cast(y, dtype_of(dtype))


def eye(N, M=None, k=0, dtype=float32):
    """Ones on the k-th diagonal."""
    return tri_mask(N, M, lambda row, column: _f.equal(column - row, k), dtype)


def identity(n, dtype=float32):
    """Ones on the main diagonal of a square."""
    return eye(n, dtype=dtype)


def tri(N, M=None, k=0, dtype=float32):
    """Ones on and below the k-th diagonal."""
    return tri_mask(N, M, lambda row, column: _f.less_equal(column - row, k), dtype)


def tri_mask(rows, columns, test, dtype):
    columns = rows if columns is None else columns
    row, column = _f.reshape(_f.arange(rows), (rows, 1)), _f.reshape(_f.arange(columns), (1, columns))
    return _f.cast(test(row, column), dtype_of(dtype))


def meshgrid(*xi, sparse=False, indexing="xy"):
    """One axis a tensor; sparse: without repeating."""
    xi = [_f.ravel(asarray(x)) for x in xi]
    if not sparse:
        return _f.meshgrid(*xi, indexing=indexing)
    out = []
    for i, x in enumerate(xi):
        place = 1 - i if indexing == "xy" and i < 2 and len(xi) > 1 else i
        out.append(_f.reshape(x, tuple(-1 if d == place else 1 for d in range(len(xi)))))
    return tuple(out)


def indices(dimensions, dtype=int32, sparse=False):
    """The positions of a grid along each of its dimensions."""
    grid = meshgrid(*[_f.arange(n, dtype=dtype_of(dtype)) for n in dimensions], sparse=sparse, indexing="ij")
    return grid if sparse else _f.stack(grid)


class _Grid:
    """mgrid[0:3, 0:2] and ogrid: an imaginary step is a number of points."""

    def __init__(self, sparse):
        self.sparse = sparse

    def __getitem__(self, key):
        single = not isinstance(key, tuple)
        axes = []
        for s in (key,) if single else key:
            start, step = s.start or 0, 1 if s.step is None else s.step
            axes.append(
                linspace(start, s.stop, int(abs(step))) if isinstance(step, complex) else arange(start, s.stop, step)
            )
        if single:
            return axes[0]
        grid = meshgrid(*axes, sparse=self.sparse, indexing="ij")
        return grid if self.sparse else _f.stack(grid)


mgrid, ogrid = _Grid(False), _Grid(True)


def diag_indices(n, ndim=2):
    """The positions of the main diagonal."""
    return (_f.arange(n, dtype=int32),) * ndim


def ix_(*args):
    """Vectors shaped so that together they index a grid."""
    return meshgrid(*args, sparse=True, indexing="ij")


def rand(*shape, dtype=float32):
    """Uniform in [0, 1)."""
    return _f.rand(*shape, dtype=dtype)


def randn(*shape, dtype=float32):
    """Standard normal."""
    return _f.randn(*shape, dtype=dtype)


def randint(minval, maxval=None, shape=None, dtype=int32):
    """Integers in [minval, maxval), in [0, minval) without maxval."""
    low, high = (0, minval) if maxval is None else (minval, maxval)
    return _f.randint(low, high, () if shape is None else shape, dtype=dtype)


def _window(terms):
    def window(M):
        if M < 1:
            return _f.zeros((0,))
        if M == 1:
            return _f.ones((1,))
        return terms(_f.arange(M, dtype=float32), M - 1)

    window.__doc__ = "A window of M numbers."
    return window


bartlett = _window(lambda n, m: 1 - _f.abs(2.0 * n / m - 1))
hanning = _window(lambda n, m: 0.5 - 0.5 * _f.cos(n * (2 * pi / m)))
hamming = _window(lambda n, m: 0.54 - 0.46 * _f.cos(n * (2 * pi / m)))
blackman = _window(lambda n, m: 0.42 - 0.5 * _f.cos(n * (2 * pi / m)) + 0.08 * _f.cos(n * (4 * pi / m)))
