# SPDX-License-Identifier: Apache-2.0
"""Bins, positions, sets and differences, under NumPy's names."""

from undertow._core import float32
from undertow._core import ops as _f
from undertow.numpy._creation import asarray
from undertow.numpy._functions import isin, unique
from undertow.numpy._table import adder

__all__ = []
_public = adder(globals())


@_public
def histogram_bin_edges(a, bins=10, range=None, weights=None):
    """The edges of equal bins, or the bins themselves if they are edges."""
    if not isinstance(bins, int):
        return asarray(bins)
    a = _f.ravel(asarray(a))
    low, high = range if range is not None else (_f.amin(a), _f.amax(a))
    return _f.linspace(asarray(low, float32), asarray(high, float32), bins + 1)


@_public
def histogram(a, bins=10, range=None, weights=None, density=False):
    """(number or weight of elements in each bin, edges)."""
    a = _f.cast(_f.ravel(asarray(a)), float32)
    edges = histogram_bin_edges(a, bins, range)
    n = edges.shape[0] - 1
    inside = _f.logical_and(a >= edges[0], a <= edges[n])
    place = _f.clip(_f.searchsorted(edges, a, right=True) - 1, 0, n - 1)
    w = _f.ones(a.shape) if weights is None else _f.cast(_f.ravel(asarray(weights)), float32)
    count = _f.unsorted_segment_sum(_f.where(inside, w, 0.0), place, n)
    if density:
        return count / _f.sum(count) / _f.diff(edges), edges
    return count, edges


@_public
def interp(x, xp, fp, left=None, right=None):
    """Linear interpolation of points (xp ascending, fp); the ends' values beyond them."""
    x, xp, fp = (asarray(v, float32) for v in (x, xp, fp))
    n = xp.shape[0]
    at = _f.clip(_f.searchsorted(xp, x, right=True) - 1, 0, max(n - 2, 0))
    low, high = _f.gather(xp, at, 0), _f.gather(xp, _f.clip(at + 1, 0, n - 1), 0)
    a, b = _f.gather(fp, at, 0), _f.gather(fp, _f.clip(at + 1, 0, n - 1), 0)
    y = a + (b - a) * _f.clip(_f.div_no_nan(x - low, high - low), 0.0, 1.0)
    y = y if left is None else _f.where(x < xp[0], left, y)
    return y if right is None else _f.where(x > xp[n - 1], right, y)


@_public
def unravel_index(indices, shape, order="C"):
    """Flat positions as positions along each dimension."""
    indices, out = asarray(indices), []
    for n in reversed(shape) if order == "C" else shape:
        out.append(_f.floor_mod(indices, n))
        indices = _f.floor_div(indices, n)
    return tuple(reversed(out) if order == "C" else out)


@_public
def ravel_multi_index(multi_index, dims, mode="clip", order="C"):
    """Positions along dimensions as flat positions; out of range: the nearest ("clip"), or "wrap"."""
    if mode not in ("clip", "wrap"):
        raise ValueError(f"numpy.ravel_multi_index: mode must be 'clip' or 'wrap', got '{mode}'")
    flat = 0
    pairs = list(zip(multi_index, dims))
    for place, n in pairs if order == "C" else reversed(pairs):
        place = asarray(place)
        flat = flat * n + (_f.clip(place, 0, n - 1) if mode == "clip" else _f.floor_mod(place, n))
    return flat


@_public
def setdiff1d(ar1, ar2, assume_unique=False):
    """The values of the one that the other does not have, in ascending order. Eager only."""
    a = _f.ravel(asarray(ar1)) if assume_unique else unique(ar1)
    return _f.masked_select(a, isin(a, ar2, True))


@_public
def intersect1d(ar1, ar2, assume_unique=False):
    """The values that both have, in ascending order. Eager only."""
    a = unique(ar1)
    return _f.masked_select(a, isin(a, ar2))


@_public
def multi_dot(arrays):
    """The product of several matrices, from the left."""
    arrays = [asarray(a) for a in arrays]
    out = arrays[0]
    for a in arrays[1:]:
        out = _f.matmul(out, a)
    return out


@_public
def gradient(f, *varargs, axis=None, edge_order=1):
    """Central differences inside, one-sided ones at the ends, along each axis. Spacings are numbers."""
    if edge_order != 1:
        raise ValueError(f"numpy.gradient: edge_order must be 1, got {edge_order}")
    f = asarray(f)
    axes = list(range(f.ndim)) if axis is None else [axis] if isinstance(axis, int) else list(axis)
    steps = list(varargs) * (len(axes) if len(varargs) == 1 else 1) or [1.0] * len(axes)
    out = []
    for d, h in zip(axes, steps):
        y = _f.moveaxis(f, d, 0)
        parts = [(y[1:2] - y[:1]) / h, (y[2:] - y[:-2]) / (2 * h), (y[-1:] - y[-2:-1]) / h]
        out.append(_f.moveaxis(_f.concat(parts), 0, d))
    return out[0] if len(out) == 1 else out
