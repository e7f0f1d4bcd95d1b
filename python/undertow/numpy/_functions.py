# SPDX-License-Identifier: Apache-2.0
"""Functions of tensors under NumPy's names. Most are a row of a table: the function of undertow.ops that it is."""

from undertow._core import Tensor, dtype_of, float32, int32, int64
from undertow._core import ops as _f
from undertow.numpy._creation import arange, asarray
from undertow.numpy._table import adder, as_dtype

__all__ = []
_public = _add = adder(globals())


# ---- elementwise: "name" or "name=function of ops"
_UNARY = """
abs absolute arccos=acos arccosh=acosh arcsin=asin arcsinh=asinh arctan=atan arctanh=atanh cbrt=_cbrt ceil cos cosh
deg2rad exp exp2 expm1 fabs=abs floor isfinite isinf isnan isneginf isposinf log log10 log1p log2 logical_not
negative=neg positive=copy rad2deg radians=deg2rad reciprocal rint=round sign signbit sin sinh sqrt square tan tanh
trunc fix=trunc invert=bitwise_not bitwise_not
"""
_BINARY = """
add arctan2=atan2 bitwise_and bitwise_or bitwise_xor copysign divide=div equal float_power floor_divide=floor_div fmod
greater greater_equal heaviside hypot less less_equal logaddexp logaddexp2 logical_and logical_or logical_xor maximum
minimum mod=floor_mod multiply=mul not_equal power=pow remainder=floor_mod subtract=sub true_divide=div
"""


def _unary(f):
    return lambda x, dtype=None: as_dtype(f(asarray(x)), dtype)


def _binary(f):
    # Of two numbers one becomes a Tensor, since a number takes its dtype from a Tensor.
    return lambda x1, x2, dtype=None: as_dtype(f(_operand(x1, x2), _operand(x2, None)), dtype)


def _operand(x, other=None):
    plain = isinstance(x, (bool, int, float)) and (other is None or not isinstance(other, (bool, int, float)))
    return x if plain else asarray(x)


for _table, _make in ((_UNARY, _unary), (_BINARY, _binary)):
    for _row in _table.split():
        _name, _, _function = _row.partition("=")
        _add(_name, _make(getattr(_f, _function or _name)))


# ---- reductions
def _reduction(f):
    return lambda a, axis=None, keepdims=False: f(asarray(a), axis, keepdims)


for _name, _function in {"all": _f.all, "any": _f.any, "sometrue": _f.any, "ptp": _f.ptp}.items():
    _add(_name, _reduction(_function))
for _name, _function in {"amax": _f.amax, "max": _f.amax, "amin": _f.amin, "min": _f.amin}.items():

    def _extremum(a, axis=None, keepdims=False, initial=None, where=True, _f=_function):
        if initial is None and where is True:
            return _f(asarray(a), axis, keepdims)
        return _f(asarray(a), axis, keepdims, initial=initial, where=where)

    _add(_name, _extremum)
for _name, _function in {"nansum": _f.nansum, "nanmean": _f.nanmean}.items():
    _add(
        _name,
        lambda a, axis=None, dtype=None, keepdims=False, _f=_function: as_dtype(_f(asarray(a), axis, keepdims), dtype),
    )


@_public
def mean(a, axis=None, keepdims=False, dtype=None):
    """Mean over axes."""
    return as_dtype(_f.mean(asarray(a), axis, keepdims), dtype)


@_public
def sum(a, axis=None, dtype=None, keepdims=False, initial=None):
    """Sum over axes; integers give int64."""
    y = as_dtype(_f.sum(asarray(a), axis, keepdims), dtype)
    return y if initial is None else y + initial


@_public
def prod(a, axis=None, dtype=None, keepdims=False, initial=None):
    """Product over axes."""
    y = as_dtype(_f.prod(asarray(a), axis, keepdims), dtype)
    return y if initial is None else y * initial


@_public
def std(x, axis=None, ddof=0, keepdims=False):
    """Standard deviation."""
    return _f.std(asarray(x), axis, ddof, keepdims)


@_public
def var(x, axis=None, ddof=0, keepdims=False):
    """Variance."""
    return _f.var(asarray(x), axis, ddof, keepdims)


@_public
def average(x, axis=None, weights=None, returned=False):
    """Mean, weighted where there are weights."""
    x = asarray(x)
    if weights is None:
        y, total = _f.mean(x, axis), x.size if axis is None else x.shape[axis]
        return (y, _f.full_like(y, total)) if returned else y
    w = asarray(weights)
    if w.ndim == 1 and x.ndim > 1:
        w = _f.reshape(w, tuple(-1 if d == axis % x.ndim else 1 for d in range(x.ndim)))
    total = _f.sum(_f.broadcast_to(w, x.shape), axis)
    y = _f.sum(x * w, axis) / total
    return (y, total) if returned else y


@_public
def argmax(a, axis=None):
    """Position of the first maximum, int64."""
    return _f.argmax(asarray(a), axis)


@_public
def argmin(a, axis=None):
    """Position of the first minimum, int64."""
    return _f.cast(_f.argmin(asarray(a), axis), int64)


@_public
def count_nonzero(x, axis=None, keepdims=False):
    """How many elements are not 0, int64."""
    return _f.count_nonzero(asarray(x), axis, keepdims, int64)


@_public
def norm(x, ord=None, axis=None, keepdims=False):
    """Norm of everything, of vectors along an axis, or of matrices."""
    return _f.norm(asarray(x), ord, axis, keepdims)


@_public
def cumsum(a, axis=None, dtype=None):
    """Running sum; of the flattened tensor without an axis."""
    a = asarray(a) if axis is not None else _f.ravel(asarray(a))
    return _f.cumsum(a, axis or 0, dtype)


@_public
def cumprod(a, axis=None, dtype=None):
    """Running product; of the flattened tensor without an axis."""
    a = asarray(a) if axis is not None else _f.ravel(asarray(a))
    return _f._cumprod(as_dtype(a, dtype), axis or 0)


@_public
def nancumsum(a, axis=None, dtype=None):
    """Running sum of what is not NaN."""
    a = asarray(a)
    return cumsum(_f.where(_f.isnan(a), 0.0, a), axis, dtype)


@_public
def clip(x, xmin, xmax, dtype=None):
    """Limited to [xmin, xmax]."""
    return as_dtype(_f.clip(asarray(x), xmin, xmax), dtype)


@_public
def around(a, decimals=0):
    """Nearest number of so many decimals."""
    return _f.round(asarray(a), decimals=decimals)


_add("round", lambda a, decimals=0: around(a, decimals))
_add("divmod", lambda x1, x2, dtype=None: (globals()["floor_divide"](x1, x2, dtype), globals()["mod"](x1, x2, dtype)))


# ---- choosing
@_public
def where(condition, x=None, y=None):
    """x where the condition holds, else y. Raises TypeError where one of them is missing."""
    if x is None or y is None:
        raise TypeError("numpy.where needs x and y; for the positions of what is not 0 use ops.nonzero")
    x, y = (asarray(x), _operand(y)) if not isinstance(y, Tensor) else (_operand(x), y)
    return _f.where(asarray(condition), x, y)


@_public
def select(condlist, choicelist, default=0):
    """The choice of the first condition that holds."""
    out = None
    for condition, choice in reversed(list(zip(condlist, choicelist))):
        choice = asarray(choice)
        out = _f.where(asarray(condition), choice, default if out is None else out)
    return out


@_public
def take(a, indices, axis=None, mode="clip"):
    """Elements of the flattened tensor or an axis; out of range: the nearest ("clip"), "wrap" or "raise"."""
    a, indices = asarray(a), asarray(indices)
    if axis is None:
        a, axis = _f.ravel(a), 0
    n = a.shape[axis]
    if mode == "clip":
        indices = _f.clip(indices, 0, n - 1)
    elif mode == "wrap":
        indices = _f.floor_mod(indices, n)
    elif mode != "raise":
        raise ValueError(f"numpy.take: mode must be 'clip', 'wrap' or 'raise', got '{mode}'")
    return _f.gather(a, indices, axis)


@_public
def take_along_axis(arr, indices, axis):
    """Elements along an axis, a position for each."""
    return _f.take_along_axis(asarray(arr), asarray(indices), axis)


@_public
def unique(x, return_inverse=False):
    """The values of the flattened tensor in ascending order. Eager only."""
    return _f._unique(_f.ravel(asarray(x)), True, return_inverse)


@_public
def argwhere(a):
    """Positions of what is not 0. Eager only."""
    return _f.argwhere(asarray(a))


@_public
def isin(element, test_elements, invert=False):
    """Whether elements are among the others."""
    return _f.isin(asarray(element), asarray(test_elements), invert)


@_public
def in1d(ar1, ar2, invert=False):
    """As isin, of the flattened tensor."""
    return isin(_f.ravel(asarray(ar1)), ar2, invert)


@_public
def isclose(a, b, rtol=1e-05, atol=1e-08, equal_nan=False):
    """|a - b| <= atol + rtol |b|."""
    return _f.isclose(asarray(a), asarray(b), rtol, atol, equal_nan)


@_public
def array_equal(a1, a2, equal_nan=False):
    """Whether shapes and elements are equal."""
    a1, a2 = asarray(a1), asarray(a2)
    if a1.shape != a2.shape:
        return Tensor(False)
    same = _f.equal(a1, a2)
    if equal_nan:
        same = _f.logical_or(same, _f.logical_and(_f.isnan(a1), _f.isnan(a2)))
    return _f.all(same)


@_public
def searchsorted(a, v, side="left", sorter=None):
    """Where values would be inserted to keep an ascending sequence in order, int32."""
    return _f.searchsorted(asarray(a), asarray(v), side=side, sorter=sorter, out_int32=True)


@_public
def digitize(x, bins, right=False):
    """The bin that holds each value."""
    return _f.searchsorted(asarray(bins), asarray(x), right=not right, out_int32=True)


@_public
def bincount(x, weights=None, minlength=0, length=None):
    """How often each number appears, int32; with `length` in compiled functions too."""
    x = _f.ravel(asarray(x))
    if length is None:
        y = _f.bincount(x, None if weights is None else asarray(weights), minlength)
    else:
        w = _f.ones(x.shape) if weights is None else asarray(weights)
        y = _f.unsorted_segment_sum(w, x, max(length, minlength))
    return y if weights is not None else _f.cast(y, int32)


# ---- products
@_public
def matmul(x1, x2, dtype=None):
    """Matrix product."""
    return as_dtype(_f.matmul(asarray(x1), asarray(x2)), dtype)


_PRODUCTS = {
    "dot": lambda a, b: _f.dot(asarray(a), asarray(b)),
    "inner": lambda a, b: _f.inner(asarray(a), asarray(b)),
    "outer": lambda a, b: _f.outer(asarray(a), asarray(b)),
    "kron": lambda a, b: _f.kron(asarray(a), asarray(b)),
    "tensordot": lambda a, b, axes=2: _f.tensor_dot(asarray(a), asarray(b), axes),
    "matrix_power": lambda a, n: _f.matrix_power(asarray(a), n),
    "trapz": lambda y, x=None, dx=1.0, axis=-1: _trapz(asarray(y), x, dx, axis),
    "vander": lambda x, N=None, increasing=False: _vander(asarray(x), N, increasing),
    "polyval": lambda p, x: _polyval(asarray(p), asarray(x)),
}


def _trapz(y, x, dx, axis):
    y = _f.moveaxis(y, axis, -1)
    width = dx if x is None else _f.diff(_f.moveaxis(asarray(x), axis if asarray(x).ndim > 1 else 0, -1))
    return _f.sum((y[..., 1:] + y[..., :-1]) * 0.5 * width, -1)


def _vander(x, columns, increasing):
    columns = x.shape[0] if columns is None else columns
    power = arange(columns)
    return _f.pow(_f.expand_dims(x, 1), power if increasing else columns - 1 - power)


def _polyval(p, x):
    y = _f.zeros_like(x) if x.ndim else _f.zeros((), x.dtype)
    for coefficient in _f.unstack(p):
        y = y * x + coefficient
    return y


for _name, _function in _PRODUCTS.items():
    _add(_name, _function)


@_public
def cross(a, b, axisa=-1, axisb=-1, axisc=-1, axis=None):
    """Cross product of vectors of 3."""
    if axis is not None:
        axisa = axisb = axisc = axis
    y = _f.cross(_f.moveaxis(asarray(a), axisa, -1), _f.moveaxis(asarray(b), axisb, -1), -1)
    return _f.moveaxis(y, -1, axisc)


@_public
def cov(m, y=None, rowvar=True, bias=False, ddof=None, fweights=None, aweights=None, dtype=None):
    """Covariance of variables in rows."""
    if fweights is not None or aweights is not None:
        raise ValueError("numpy.cov: weights are not supported")
    m = _f.cast(_f.atleast_2d(asarray(m)), float32 if dtype is None else dtype_of(dtype))
    m = m if rowvar else m.T
    if y is not None:
        other = _f.cast(_f.atleast_2d(asarray(y)), m.dtype)
        m = _f.concat([m, other if rowvar else other.T])
    ddof = (0 if bias else 1) if ddof is None else ddof
    m = m - _f.mean(m, 1, True)
    return _f.squeeze(_f.matmul(m, m.T) / (m.shape[1] - ddof))


@_public
def corrcoef(x, y=None, rowvar=True, dtype=None):
    """Correlation of variables in rows."""
    c = cov(x, y, rowvar, dtype=dtype)
    if c.ndim == 0:
        return c / c
    d = _f.sqrt(_f.diagonal(c))
    return _f.clip(c / _f.outer(d, d), -1.0, 1.0)


@_public
def promote_types(type1, type2):
    """The dtype of arithmetic between two."""
    return (_f.zeros((), dtype_of(type1)) + _f.zeros((), dtype_of(type2))).dtype


@_public
def result_type(*arrays_and_dtypes):
    """The dtype of arithmetic between tensors and dtypes."""
    dtypes = [x.dtype if isinstance(x, Tensor) else dtype_of(x) for x in arrays_and_dtypes]
    out = dtypes[0]
    for d in dtypes[1:]:
        out = promote_types(out, d)
    return out


# ---- NaN left out
def _nan_extremum(f, other):
    def function(a, axis=None, dtype=None, keepdims=False):
        a = asarray(a)
        return as_dtype(f(_f.where(_f.isnan(a), other, a), axis, keepdims), dtype)

    return function


_add("nanmax", _nan_extremum(_f.amax, -float("inf")))
_add("nanmin", _nan_extremum(_f.amin, float("inf")))


@_public
def nanvar(a, axis=None, dtype=None, ddof=0, keepdims=False):
    """Variance of what is not NaN."""
    a = asarray(a, dtype)
    count = _f.sum(_f.cast(_f.logical_not(_f.isnan(a)), float32), axis, keepdims)
    return _f.nansum(_f.square(a - _f.nanmean(a, axis, True)), axis, keepdims) / (count - ddof)


@_public
def nanstd(a, axis=None, dtype=None, ddof=0, keepdims=False):
    """Standard deviation of what is not NaN."""
    return _f.sqrt(nanvar(a, axis, dtype, ddof, keepdims))
