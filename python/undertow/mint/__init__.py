# SPDX-License-Identifier: Apache-2.0
"""PyTorch's signatures under MindSpore's name `mint`: thin over undertow.ops."""

from undertow._core import Tensor, dtype_of, int64
from undertow._core import ops as _f

__all__ = []

# The same function, under the same name or the one after '='.
_SAME = """
abs acos acosh add addbmm addcdiv addcmul addmm addmv allclose amax amin arange arccos arccosh arcsin arcsinh arctan
arctan2 arctanh argmax argsort asin asinh atan atan2 atanh baddbmm bernoulli bincount bitwise_and bitwise_not bitwise_or
bitwise_xor bmm broadcast_to cat cdist ceil chunk clamp clip clone concat cos cosh count_nonzero cross cummax cummin
cumprod cumsum diff digamma div divide dot dstack einsum eq equal erf erfc erfinv exp exp2 expm1 eye fix=trunc
flip float_power floor floor_divide fmod frac full full_like gather=gather_elements ge greater greater_equal gt histc
hstack index_select isclose isfinite isinf isneginf isnan kthvalue le lerp less less_equal linspace log log10 log1p log2
logaddexp logaddexp2 logical_and logical_not logical_or logical_xor logsumexp lt masked_select matmul maximum mean
minimum mm mul mv nan_to_num nansum narrow ne neg negative nonzero not_equal ones ones_like outer pow prod rand
rand_like randn randn_like ravel reciprocal remainder repeat_interleave reshape roll round rsqrt scatter
scatter_add=_scatter_add_elements searchsorted sigmoid sign sin sinc sinh sort split sqrt square stack sub sum
swapaxes t take tan tanh tile topk trace tril triu trunc unbind unsqueeze where xlogy zeros zeros_like select=_select_at
index_add=_index_add
"""

for _row in _SAME.split():
    _name, _, _function = _row.partition("=")
    globals()[_name] = getattr(_f, _function or _name)
    __all__.append(_name)


def _public(function):
    __all__.append(function.__name__)
    return function


@_public
def argmin(input, dim=None, keepdim=False):
    """Position of the first minimum, int64."""
    return _f.cast(_f.argmin(input, dim, keepdim), int64)


def _extremum(name, both, value, elementwise):
    def function(input, dim=None, keepdim=False, *, other=None):
        if isinstance(dim, Tensor) or other is not None:
            return elementwise(input, dim if other is None else other)
        return value(input) if dim is None else both(input, dim, keepdim)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = "The extreme element; with dim (values, positions); with a second tensor elementwise."
    globals()[name] = function
    __all__.append(name)


_extremum("max", _f.max, _f.amax, _f.maximum)
_extremum("min", _f.min, _f.amin, _f.minimum)


def _quantifier(name, f):
    def function(input, dim=None, keepdim=False):
        return f(input, dim, keepdim)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f.__doc__
    globals()[name] = function
    __all__.append(name)


_quantifier("all", _f.all)
_quantifier("any", _f.any)


def _spread(name, f):
    def function(input, dim=None, *, correction=1, keepdim=False):
        return f(input, dim, correction=correction, keepdim=keepdim)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = "With n - correction."
    globals()[name] = function
    __all__.append(name)


for _name in ("std", "var", "std_mean", "var_mean"):
    _spread(_name, getattr(_f, _name))


@_public
def median(input, dim=None, keepdim=False):
    """The lower middle value; with dim (values, positions)."""
    return _f.median(_f.ravel(input), 0)[0] if dim is None else _f.median(input, dim, keepdim)


@_public
def norm(input, p="fro", dim=None, keepdim=False, *, dtype=None):
    """p-norm of the elements over dimensions."""
    return _f.vector_norm(input, 2.0 if p == "fro" else float(p), dim, keepdim, dtype=dtype)


@_public
def permute(input, dims):
    """Dimensions in another order."""
    return _f.permute(input, dims)


@_public
def transpose(input, dim0, dim1):
    """Two dimensions exchanged."""
    return _f.swapaxes(input, dim0, dim1)


@_public
def flatten(input, start_dim=0, end_dim=-1):
    """Joins dimensions start_dim to end_dim."""
    return _f.flatten(input, start_dim=start_dim, end_dim=end_dim)


@_public
def squeeze(input, dim=None):
    """Without dimensions of extent 1: the given ones that are, or all of them."""
    if dim is None:
        return _f.squeeze(input)
    dims = (dim,) if isinstance(dim, int) else tuple(dim)
    dims = tuple(d for d in dims if input.shape[d] == 1)
    return _f.squeeze(input, dims) if dims else input


@_public
def softmax(input, dim, *, dtype=None):
    """exp(x) / sum(exp(x)) along a dimension."""
    return _f.softmax(input, dim, dtype=dtype)


@_public
def diag(input, diagonal=0):
    """A vector as the diagonal of a matrix, or the diagonal of a matrix."""
    return _f._diag_matrix(input, diagonal)


@_public
def meshgrid(*tensors, indexing="ij"):
    """One axis a tensor."""
    if len(tensors) == 1 and not isinstance(tensors[0], Tensor):
        tensors = tensors[0]
    return _f.meshgrid(*tensors, indexing=indexing or "ij")


@_public
def unique(input, sorted=True, return_inverse=False, return_counts=False, dim=None):
    """The values of the flattened tensor. Eager only."""
    if dim is not None:
        raise ValueError(f"mint.unique: only dim=None is supported, got {dim}")
    return _f._unique(input, sorted, return_inverse, return_counts)


@_public
def unique_consecutive(input, return_inverse=False, return_counts=False, dim=None):
    """The flattened tensor without repeated neighbours. Eager only."""
    return _f.unique_consecutive(input, return_inverse, return_counts, dim)


@_public
def item(input):
    """The only element as a number."""
    return input.item()


@_public
def empty(*size, dtype=None, device=None):
    """A tensor of the given shape; its values are 0."""
    return _f.zeros(size[0] if len(size) == 1 and not isinstance(size[0], int) else size, dtype)


@_public
def empty_like(input, *, dtype=None, device=None):
    """A tensor of the input's shape; its values are 0."""
    return _f.zeros_like(input, dtype=dtype)


@_public
def randint(low, high=None, size=None, *, dtype=int64, generator=None):
    """Integers in [low, high), in [0, low) without high: randint(high, size) or randint(low, high, size)."""
    _no_generator(generator)
    if size is None:
        low, high, size = 0, low, high
    return _f.randint(low, high, size, dtype=dtype)


@_public
def randint_like(input, low, high=None, *, dtype=None):
    """Integers in the input's shape."""
    low, high = (0, low) if high is None else (low, high)
    return _f.cast(_f.randint(low, high, input.shape), input.dtype if dtype is None else dtype_of(dtype))


@_public
def randperm(n, *, generator=None, dtype=int64):
    """0 to n - 1 in random order."""
    _no_generator(generator)
    return _f.randperm(n, dtype=dtype)


@_public
def normal(mean=0.0, std=1.0, size=None, generator=None):
    """Normal draws with the given mean and deviation, which may be tensors."""
    _no_generator(generator)
    return _f.normal(() if size is None else size, mean, std)


@_public
def multinomial(input, num_samples, replacement=False, *, generator=None):
    """Positions drawn in proportion to each row's weights, int64."""
    _no_generator(generator)
    return _f.cast(_f.multinomial(input, num_samples, replacement), int64)


def _no_generator(generator):
    if generator is not None:
        raise ValueError("mint: a generator of its own is not supported; use set_seed")


__all__ = sorted(set(__all__))
