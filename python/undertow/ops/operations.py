# SPDX-License-Identifier: Apache-2.0
"""Operators as classes: the constructor takes the static arguments, the call takes the tensors.

Each class is a row of the tables below: the function that it calls, its constructor's arguments with their defaults,
and where both differ, how they come together.
"""

import re
from functools import partial

from undertow._core import float32, int32, int64
from undertow._core import ops as f
from undertow.ops import _communication
from undertow.ops import _composite as c
from undertow.ops._communication import *  # noqa: F403
from undertow.ops._primitive import REQUIRED, Primitive, define

__all__ = ["Primitive", *_communication.__all__]
_define = partial(define, globals())


def _snake(name):
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()


# Without static arguments: the function has the class's name in small letters, or the one after '='.
_PLAIN = """
Abs Neg Exp Expm1 Log Log1p Sqrt Rsqrt Square Reciprocal Sin Cos Tan Tanh Sinh Cosh Asin ACos=acos Atan Asinh Acosh
Atanh Erf Erfc Erfinv Lgamma Digamma Sigmoid ReLU=relu Floor Ceil Round Rint=round Trunc Sign LogicalNot IsNan=isnan
IsInf=isinf IsFinite=isfinite Identity=copy StopGradient ZerosLike OnesLike Inv=reciprocal Invert L2Loss Sinc
Add TensorAdd=add Sub Mul Div RealDiv=div FloorDiv FloorMod Mod=fmod TruncateMod TruncateDiv DivNoNan Pow Maximum
Minimum Atan2 Equal NotEqual Less LessEqual Greater GreaterEqual LogicalAnd LogicalOr LogicalXor BitwiseAnd BitwiseOr
BitwiseXor LeftShift=bitwise_left_shift RightShift=bitwise_right_shift Xlogy Xdivy Hypot Heaviside Fmax Fmin
Lerp Addcdiv Addcmul SquaredDifference=_squared_difference
Cast Reshape Transpose Tile ExpandDims Flatten Select=where Assign AssignAdd AssignSub Depend AddN=addn
AccumulateNV2=accumulate_n MaskedFill MaskedSelect NonZero=nonzero Slice Ger Cdist=cdist Diag Trace
GatherD GatherNd GatherV2=gather ScatterNd TensorScatterUpdate TensorScatterAdd TensorScatterSub TensorScatterMul
TensorScatterDiv TensorScatterMax TensorScatterMin UnsortedSegmentSum UnsortedSegmentProd UnsortedSegmentMax
UnsortedSegmentMin IndexFill MatrixBandPart Bincount=bincount Unique Fills Eye Expand
Polygamma
"""
for _row in _PLAIN.split():
    _name, _, _function = _row.partition("=")
    _function = _function or _snake(_name)
    _define(_name, getattr(f, _function))

# Static arguments that the function takes by the same names.
_define("Concat", f.concat, axis=0)
_define("Stack", f.stack, axis=0)
_define("Pack", f.stack, axis=0)
_define("Squeeze", f.squeeze, axis=())
_define("Softmax", f.softmax, axis=-1)
_define("LogSoftmax", f.log_softmax, axis=-1)
_define("BroadcastTo", f.broadcast_to, shape=REQUIRED)
_define("Gather", f.gather, batch_dims=0)
_define("CumSum", f._cumsum, exclusive=False, reverse=False)
_define("CumProd", f._cumprod, exclusive=False, reverse=False)
_define("Cummax", f.cummax, axis=REQUIRED)
_define("Cummin", f.cummin, axis=REQUIRED)
_define("ArgMaxWithValue", f._argmax_with_value, axis=0, keep_dims=False)
_define("ArgMinWithValue", f._argmin_with_value, axis=0, keep_dims=False)
_define("Sort", f.sort, axis=-1, descending=False)
_define("TopK", f.top_k, sorted=True)
_define("Tril", f.tril, diagonal=0)
_define("Triu", f.triu, diagonal=0)
_define("ReverseV2", f.reverse, axis=REQUIRED)
_define("Roll", f.roll, shifts=REQUIRED, dims=None)
_define("ReverseSequence", f.reverse_sequence, seq_dim=REQUIRED, batch_dim=0)
_define("FillDiagonal", f.fill_diagonal, fill_value=REQUIRED, wrap=False)
_define("IsClose", f.isclose, rtol=1e-05, atol=1e-08, equal_nan=False)
_define("ApproximateEqual", f.approximate_equal, tolerance=1e-05)
_define("NanToNum", f.nan_to_num, nan=None, posinf=None, neginf=None)
_define("InTopK", f.intopk, k=REQUIRED)
_define("Renorm", lambda x, p, dim, maxnorm: f.renorm(x, p, dim, maxnorm), p=REQUIRED, dim=REQUIRED, maxnorm=REQUIRED)
_define("Cross", lambda x, y, dim: f.cross(x, y, None if dim == -65530 else dim), dim=-65530)
_define("TensorScatterElements", f.tensor_scatter_elements, axis=0, reduction="none")
_define("InplaceUpdate", f.inplace_update, indices=REQUIRED)
_define("InplaceAdd", f.inplace_add, indices=REQUIRED)
_define("InplaceSub", f.inplace_sub, indices=REQUIRED)
_define("StridedSlice", f.strided_slice, begin_mask=0, end_mask=0, ellipsis_mask=0, new_axis_mask=0, shrink_axis_mask=0)
_define("IndexAdd", f.index_add, axis=REQUIRED, use_lock=True, check_index_bound=True)
_define("Range", f.range, maxlen=1000000)
_define("Histogram", lambda x, bins, min, max: f.cast(f.histc(x, bins, min, max), int32), bins=100, min=0.0, max=0.0)
for _mode in ("Update", "Add", "Sub", "Mul", "Div", "Max", "Min"):
    _define(f"Scatter{_mode}", getattr(f, f"scatter_{_mode.lower()}"), hints=["use_locking"], use_locking=False)
    _define(f"ScatterNd{_mode}", getattr(f, f"scatter_nd_{_mode.lower()}"), use_locking=False)
_define("MatMul", f._matmul, transpose_a=False, transpose_b=False)
_define("BatchMatMul", f._matmul, transpose_a=False, transpose_b=False)

# Reductions: the axes come with the call.
for _name, _function in {
    "ReduceSum": f.reduce_sum,
    "ReduceMean": f.reduce_mean,
    "ReduceMax": f.amax,
    "ReduceMin": f.amin,
    "ReduceProd": f.reduce_prod,
    "ReduceAll": f.all,
    "ReduceAny": f.any,
}.items():
    _extra = {"skip_mode": False} if _name == "ReduceSum" else {}

    def _reduce(x, axis=(), keep_dims=False, skip_mode=False, _f=_function):
        if skip_mode and axis in ((), []):
            return x  # no axes: nothing is reduced
        return _f(x, axis, keep_dims)

    _define(_name, _reduce, keep_dims=False, **_extra)


def _argument_of(function):
    def call(x, axis, output_type):
        return f.cast(function(x, axis), output_type)

    return call


_define("Argmax", _argument_of(f.argmax), axis=-1, output_type=int32)
_define("Argmin", _argument_of(f.argmin), axis=-1, output_type=int32)
_define(
    "LpNorm",
    lambda x, axis, p, keep_dims, epsilon: f.vector_norm(x, p, axis, keep_dims),
    axis=REQUIRED,
    p=2,
    keep_dims=False,
    epsilon=1e-12,
)
_define("EuclideanNorm", lambda x, axes, keep_dims: f.vector_norm(x, 2, axes, keep_dims), keep_dims=False)
_define(
    "ReduceStd",
    lambda x, axis, unbiased, keep_dims: f.std_mean(x, axis, int(unbiased), keep_dims),
    axis=(),
    unbiased=True,
    keep_dims=False,
)
_define("SquareSumAll", lambda x, y: (f.reduce_sum(f.square(x)), f.reduce_sum(f.square(y))))
_define("CountNonZero", lambda x, dims: f.count_nonzero(x, dims, dtype=int64), dims=None)
_define(
    "Median",
    lambda x, global_median, axis, keep_dims, ignore_nan: _median(x, global_median, axis, keep_dims, ignore_nan),
    global_median=False,
    axis=0,
    keep_dims=False,
    ignore_nan=False,
)


def _median(x, global_median, axis, keep_dims, ignore_nan):
    if global_median:
        x, axis = f.ravel(x), 0
    return (f.nanmedian if ignore_nan else f.median)(x, axis, keep_dims)


_define("OneHot", lambda i, depth, on=1.0, off=0.0, axis=-1: f.one_hot(i, depth, on, off, axis), axis=-1)
_define("Ones", lambda shape, dtype: f.ones(shape, dtype))
_define("Zeros", lambda shape, dtype: f.zeros(shape, dtype))
_define("Fill", f.fill)
_define("FillV2", lambda shape, value: f.full(shape, value))
_define("LinSpace", f.linspace)
_define(
    "LogSpace",
    lambda start, end, steps, base, dtype: f.logspace(start, end, steps, base, dtype=dtype),
    steps=10,
    base=10,
    dtype=float32,
)
_define("Meshgrid", lambda xs, indexing: f.meshgrid(*xs, indexing=indexing), indexing="xy")
_define("Einsum", lambda xs, equation: f.einsum(equation, *xs), equation=REQUIRED)
_define("Eps", lambda x: f.full_like(x, {"float16": 2**-10, "float32": 2**-23, "float64": 2**-52}[x.dtype.name]))
_define("MulNoNan", lambda x, y: f.where(f.equal(y, 0), f.zeros_like(x * y), x * y))
_define(
    "SearchSorted",
    lambda s, v, dtype, right: f.cast(f.searchsorted(s, v, right=right), dtype),
    dtype=int64,
    right=False,
)
_define("Unstack", lambda x, axis, num: f.unstack(x, axis), axis=0, num=None)
_define("Unpack", f.unstack, axis=0)
_define(
    "SplitV",
    lambda x, size_splits, split_dim, num_split: _split_v(x, size_splits, split_dim),
    size_splits=REQUIRED,
    split_dim=REQUIRED,
    num_split=REQUIRED,
)
_define("IdentityN", lambda xs: tuple(f.copy(x) for x in xs))
_define(
    "TrilIndices",
    lambda row, col, offset, dtype: f.tril_indices(row, col, offset, dtype=dtype),
    row=REQUIRED,
    col=REQUIRED,
    offset=0,
    dtype=int32,
)
_define(
    "TriuIndices",
    lambda row, col, offset, dtype: f.triu_indices(row, col, offset, dtype=dtype),
    row=REQUIRED,
    col=REQUIRED,
    offset=0,
    dtype=int32,
)
_define(
    "UniqueConsecutive",
    lambda x, return_inverse, return_counts, dim: f.unique_consecutive(x, return_inverse, return_counts, dim),
    return_inverse=False,
    return_counts=False,
    dim=None,
)


def _split_v(x, sizes, axis):
    sizes = list(sizes)
    if -1 in sizes:  # what the others leave
        sizes[sizes.index(-1)] = x.shape[axis] - sum(s for s in sizes if s != -1)
    return f.split(x, sizes, axis)


def _split(x, axis, output_num):
    n = x.shape[axis]
    if n % output_num:
        raise ValueError(
            f"ops.Split: dimension {axis} of shape {x.shape} cannot be split into {output_num} equal parts"
        )
    return f.split(x, n // output_num, axis)


_define("Split", _split, axis=0, output_num=1)

_define("FloatStatus", lambda x: f.reshape(f.cast(f.logical_not(f.all(f.isfinite(x))), float32), (1,)))
_define("ScalarToArray", c.scalar_to_array)
_define("SparseGatherV2", f.gather)

# What a tensor is made of.
_define("Shape", lambda x: x.shape)
_define("TensorShape", c.dyn_shape)
_define("DynamicShape", c.dyn_shape, hints=["dtype"], dtype=None)
_define("Size", lambda x: x.size)
_define("Rank", lambda x: x.ndim)
_define("DType", lambda x: x.dtype)


_define("TupleToArray", c.tuple_to_array)
_define("ScalarToTensor", c.scalar_to_tensor)
_define("ScalarCast", c.scalar_cast)

# Random draws. The two seeds are one.
_define("StandardNormal", lambda shape, seed, seed2: f.standard_normal(shape, seed or seed2), seed=0, seed2=0)
_define("StandardLaplace", lambda shape, seed, seed2: f.standard_laplace(shape, seed or seed2), seed=0, seed2=0)
_define("UniformReal", lambda shape, seed, seed2: f._uniform_real(shape, seed or seed2), seed=0, seed2=0)
_define(
    "UniformInt", lambda shape, low, high, seed, seed2: f._random_int(shape, low, high, seed or seed2), seed=0, seed2=0
)
_define(
    "TruncatedNormal",
    lambda shape, dtype, seed, seed2: f.cast(f._truncated_normal(shape, seed or seed2), dtype),
    dtype=float32,
    seed=0,
    seed2=0,
)
_define(
    "Multinomial",
    lambda x, n, seed, seed2, dtype: f.cast(f.multinomial(x, n, True, seed or seed2), dtype),
    seed=0,
    seed2=0,
    dtype=int32,
)
_define("RandomCategorical", lambda x, n, seed=0, dtype=int64: f.random_categorical(x, n, seed, dtype), dtype=int64)
_define("RandomShuffle", lambda x, seed, seed2: f.shuffle(x, seed or seed2), seed=0, seed2=0)
_define("RandpermV2", lambda n, seed, offset, dtype: f.randperm(n, seed, offset, dtype), seed=0, offset=0, dtype=int64)
_define("Bernoulli", lambda x, p, seed, offset: f.bernoulli(x, p, seed if seed > 0 else None), seed=-1, offset=0)
_define(
    "Dropout",
    lambda x, keep_prob, Seed0, Seed1: (f.dropout(x, 1 - keep_prob), None),
    keep_prob=0.5,
    Seed0=0,
    Seed1=0,
)

_define("SoftmaxCrossEntropyWithLogits", lambda logits, labels: f._softmax_cross_entropy(logits, labels))
_define("SparseSoftmaxCrossEntropyWithLogits", lambda logits, labels: f._sparse_softmax_cross_entropy(logits, labels))

# Neural networks.
from undertow.ops import nn_operations  # noqa: E402
from undertow.ops.nn_operations import *  # noqa: E402, F403

__all__ += nn_operations.__all__
