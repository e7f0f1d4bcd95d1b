# SPDX-License-Identifier: Apache-2.0
"""Functions that move elements, under NumPy's names."""

from undertow._core import Tensor
from undertow._core import ops as _f
from undertow.numpy._creation import asarray
from undertow.numpy._table import adder, as_dtype

__all__ = []
_public = _add = adder(globals())


# ---- shapes
@_public
def reshape(x, new_shape):
    """The elements in another shape."""
    return _f.reshape(asarray(x), new_shape)


@_public
def transpose(a, axes=None):
    """Dimensions in another order, reversed without one."""
    a = asarray(a)
    return a.T if axes is None else _f.transpose(a, axes)


_SHAPES = {
    "ravel": lambda x: _f.ravel(asarray(x)),
    "expand_dims": lambda a, axis: _expand(asarray(a), axis),
    "squeeze": lambda a, axis=None: _f.squeeze(asarray(a), axis),
    "swapaxes": lambda x, axis1, axis2: _f.swapaxes(asarray(x), axis1, axis2),
    "moveaxis": lambda a, source, destination: _f.moveaxis(asarray(a), source, destination),
    "broadcast_to": lambda array, shape: _f.broadcast_to(asarray(array), shape),
    "broadcast_arrays": lambda *args: list(_f.broadcast_arrays(*map(asarray, args))),
    "tile": lambda a, reps: _f.tile(asarray(a), (reps,) if isinstance(reps, int) else reps),
    "roll": lambda a, shift, axis=None: _f.roll(asarray(a), shift, axis),
    "rot90": lambda a, k=1, axes=(0, 1): _f.rot90(asarray(a), k, axes),
    "fliplr": lambda m: _f.fliplr(asarray(m)),
    "flipud": lambda m: _f.flipud(asarray(m)),
    "flip": lambda m, axis=None: _f.flip(asarray(m), tuple(range(asarray(m).ndim)) if axis is None else axis),
    "concatenate": lambda arrays, axis=0: _concatenate(arrays, axis),
    "stack": lambda arrays, axis=0: _f.stack([asarray(a) for a in arrays], axis),
    "hstack": lambda tup: _f.hstack([asarray(a) for a in tup]),
    "vstack": lambda tup: _f.vstack([asarray(a) for a in tup]),
    "dstack": lambda tup: _f.dstack([asarray(a) for a in tup]),
    "column_stack": lambda tup: _f.column_stack([asarray(a) for a in tup]),
    "split": lambda x, indices_or_sections, axis=0: _even_split(asarray(x), indices_or_sections, axis),
    "array_split": lambda x, indices_or_sections, axis=0: _f.tensor_split(asarray(x), indices_or_sections, axis),
    "hsplit": lambda x, indices_or_sections: _f.hsplit(asarray(x), indices_or_sections),
    "vsplit": lambda x, indices_or_sections: _f.vsplit(asarray(x), indices_or_sections),
    "dsplit": lambda x, indices_or_sections: _f.dsplit(asarray(x), indices_or_sections),
    "repeat": lambda a, repeats, axis=None: _f.repeat_interleave(asarray(a), repeats, axis),
    "diag": lambda v, k=0: _f._diag_matrix(asarray(v), k),
    "diagflat": lambda v, k=0: _f.diagflat(asarray(v), k),
    "diagonal": lambda a, offset=0, axis1=0, axis2=1: _f.diagonal(asarray(a), offset, axis1, axis2),
    "trace": lambda a, offset=0, axis1=0, axis2=1, dtype=None: as_dtype(
        _f.sum(_f.diagonal(asarray(a), offset, axis1, axis2), -1), dtype
    ),
    "tril": lambda m, k=0: _f.tril(asarray(m), k),
    "triu": lambda m, k=0: _f.triu(asarray(m), k),
    "tril_indices": lambda n, k=0, m=None: tuple(_f.tril_indices(n, n if m is None else m, k)),
    "triu_indices": lambda n, k=0, m=None: tuple(_f.triu_indices(n, n if m is None else m, k)),
    "tril_indices_from": lambda arr, k=0: tuple(_f.tril_indices(*arr.shape[-2:], k)),
    "triu_indices_from": lambda arr, k=0: tuple(_f.triu_indices(*arr.shape[-2:], k)),
    "append": lambda arr, values, axis=None: _append(asarray(arr), asarray(values), axis),
    "diff": lambda a, n=1, axis=-1, prepend=None, append=None: _f.diff(asarray(a), n, axis, prepend, append),
    "ediff1d": lambda ary: _f.diff(_f.ravel(asarray(ary))),
    "size": lambda a, axis=None: asarray(a).size if axis is None else asarray(a).shape[axis],
    "isscalar": lambda element: isinstance(element, (bool, int, float, str)),
    "atleast_1d": lambda *arys: _one_or_many(_f.atleast_1d, arys),
    "atleast_2d": lambda *arys: _one_or_many(_f.atleast_2d, arys),
    "atleast_3d": lambda *arys: _one_or_many(_f.atleast_3d, arys),
}


def _one_or_many(f, arrays):
    out = [f(asarray(a)) for a in arrays]
    return out[0] if len(out) == 1 else out


def _expand(a, axis):
    for d in sorted(x % (a.ndim + len(axis)) for x in axis) if isinstance(axis, (tuple, list)) else (axis,):
        a = _f.expand_dims(a, d)
    return a


def _concatenate(arrays, axis):
    if isinstance(arrays, Tensor):
        arrays = _f.unstack(arrays)
    arrays = [asarray(a) for a in arrays]
    return _f.concat([_f.ravel(a) for a in arrays] if axis is None else arrays, axis or 0)


def _even_split(x, where, axis):
    if isinstance(where, int) and x.shape[axis] % where:
        raise ValueError(f"split: dimension {axis} of shape {x.shape} cannot be divided into {where} equal parts")
    return _f.tensor_split(x, where, axis)


def _append(a, values, axis):
    return _concatenate([a, values], axis)


for _name, _function in _SHAPES.items():
    _add(_name, _function)


@_public
def rollaxis(x, axis, start=0):
    """Moves an axis before another."""
    x = asarray(x)
    axis, start = axis % x.ndim, start + x.ndim if start < 0 else start
    return _f.moveaxis(x, axis, start - (start > axis))


@_public
def pad(
    arr, pad_width, mode="constant", stat_length=None, constant_values=0, end_values=0, reflect_type="even", **kwargs
):
    """Constant padding: pad_width as in NumPy. Raises ValueError for other modes."""
    if mode != "constant":
        raise ValueError(f"numpy.pad: mode '{mode}' is not supported; use 'constant', or ops.pad")
    arr = asarray(arr)
    if isinstance(pad_width, int):
        widths = [(pad_width, pad_width)] * arr.ndim
    elif isinstance(pad_width[0], int):
        widths = [tuple(pad_width) * (2 // len(pad_width))] * arr.ndim
    else:
        widths = list(pad_width) * (arr.ndim if len(pad_width) == 1 else 1)
    for axis, (before, after) in enumerate(widths):
        parts = [arr]
        for n, place in ((before, 0), (after, 1)):
            shape = arr.shape[:axis] + (n,) + arr.shape[axis + 1 :]
            parts.insert(len(parts) if place else 0, _f.full(shape, constant_values, dtype=arr.dtype))
        arr = _f.concat(parts, axis)
    return arr
