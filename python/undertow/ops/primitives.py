# SPDX-License-Identifier: Apache-2.0
"""Operators as classes: the constructor takes the static arguments, the call takes the tensors.

Each class is a row of the table below: the function that it calls, its constructor's arguments with their defaults, and
how both come together.
"""

from undertow._core import ops as f


class Primitive:
    """Base of the class forms. The constructor's arguments become attributes."""

    _defaults = {}

    def __init__(self, *args, **kwargs):
        names = list(self._defaults)
        cls = type(self).__name__
        if len(args) > len(names):
            raise TypeError(f"ops.{cls} takes at most {len(names)} arguments, got {len(args)}")
        given = dict(zip(names, args))
        for key, value in kwargs.items():
            if key not in self._defaults:
                raise TypeError(f"ops.{cls} got an unexpected argument '{key}'; it takes {', '.join(names) or 'none'}")
            if key in given:
                raise TypeError(f"ops.{cls} got '{key}' twice")
            given[key] = value
        self._attributes = self._defaults | given
        self.__dict__.update(self._attributes)

    @property
    def name(self):
        return type(self).__name__

    def __call__(self, *inputs):
        return self._call(*inputs, **self._attributes)

    def __repr__(self):
        return f"ops.{self.name}({', '.join(f'{k}={v!r}' for k, v in self._attributes.items())})"


def _define(name, call, **defaults):
    globals()[name] = type(
        name,
        (Primitive,),
        {
            "_call": staticmethod(call),
            "_defaults": defaults,
            "__module__": __name__,
            "__doc__": (getattr(call, "__doc__", None) or f"The class form of ops.{call.__name__}."),
        },
    )
    __all__.append(name)


__all__ = ["Primitive"]

_UNARY = {
    "Abs": "abs", "Neg": "neg", "Exp": "exp", "Expm1": "expm1", "Log": "log", "Log1p": "log1p", "Sqrt": "sqrt",
    "Rsqrt": "rsqrt", "Square": "square", "Reciprocal": "reciprocal", "Sin": "sin", "Cos": "cos", "Tanh": "tanh",
    "Erf": "erf", "Sigmoid": "sigmoid", "ReLU": "relu", "Floor": "floor", "Ceil": "ceil", "Round": "round",
    "Rint": "round", "Trunc": "trunc", "Sign": "sign", "LogicalNot": "logical_not", "IsNan": "isnan", "IsInf": "isinf",
    "IsFinite": "isfinite", "Identity": "copy", "StopGradient": "stop_gradient", "ZerosLike": "zeros_like",
    "OnesLike": "ones_like",
}  # fmt: skip
_BINARY = {
    "Add": "add", "TensorAdd": "add", "Sub": "sub", "Mul": "mul", "Div": "div", "RealDiv": "div",
    "FloorDiv": "floor_div", "FloorMod": "floor_mod", "Mod": "floor_mod", "Pow": "pow", "Maximum": "maximum",
    "Minimum": "minimum",
    "Atan2": "atan2", "Equal": "equal", "NotEqual": "not_equal", "Less": "less", "LessEqual": "less_equal",
    "Greater": "greater", "GreaterEqual": "greater_equal", "LogicalAnd": "logical_and", "LogicalOr": "logical_or",
    "LogicalXor": "logical_xor", "Cast": "cast", "Reshape": "reshape", "Transpose": "transpose", "Tile": "tile",
    "ExpandDims": "expand_dims", "Assign": "assign", "AssignAdd": "assign_add", "AssignSub": "assign_sub",
    "Depend": "depend",
}  # fmt: skip
for _name, _function in (_UNARY | _BINARY).items():
    _define(_name, getattr(f, _function))

for _name in ("ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin"):
    _reduce = {"ReduceSum": f.reduce_sum, "ReduceMean": f.reduce_mean, "ReduceMax": f.amax, "ReduceMin": f.amin}[_name]
    _define(_name, lambda x, axis=(), keep_dims=False, _f=_reduce: _f(x, axis, keep_dims), keep_dims=False)
_define("ReduceProd", lambda x, axis=(), keep_dims=False: f.prod(x, axis, keep_dims), keep_dims=False)
_define("ReduceAll", lambda x, axis=(), keep_dims=False: f.all(x, axis, keep_dims), keep_dims=False)
_define("ReduceAny", lambda x, axis=(), keep_dims=False: f.any(x, axis, keep_dims), keep_dims=False)
_define(
    "Argmax", lambda x, axis=-1, output_type=None: _as(f.argmax(x, axis), output_type), axis=-1, output_type="int32"
)
_define(
    "Argmin", lambda x, axis=-1, output_type=None: _as(f.argmin(x, axis), output_type), axis=-1, output_type="int32"
)
_define("Softmax", lambda x, axis=-1: f.softmax(x, axis), axis=-1)
_define("LogSoftmax", lambda x, axis=-1: f.log_softmax(x, axis), axis=-1)
_define("Concat", lambda xs, axis=0: f.concat(xs, axis), axis=0)
_define("Stack", lambda xs, axis=0: f.stack(xs, axis), axis=0)
_define("Squeeze", lambda x, axis=(): f.squeeze(x, axis), axis=())
_define("Flatten", lambda x: f.flatten(x))
_define("BroadcastTo", lambda x, shape: f.broadcast_to(x, shape), shape=None)
_define("Gather", lambda x, indices, axis, batch_dims=0: f.gather(x, indices, axis, batch_dims), batch_dims=0)
_define("Select", lambda condition, x, y: f.where(condition, x, y))
_define("OneHot", lambda i, depth, on=1.0, off=0.0, axis=-1: f.one_hot(i, depth, on, off, axis), axis=-1)
_define("Ones", lambda shape, dtype: f.ones(shape, dtype))
_define("Zeros", lambda shape, dtype: f.zeros(shape, dtype))
_define("Fill", lambda dtype, shape, value: f.full(shape, value, dtype=dtype))
_define(
    "Dropout",
    lambda x, keep_prob=0.5, Seed0=0, Seed1=0: (f.dropout(x, 1 - keep_prob), None),
    keep_prob=0.5,
    Seed0=0,
    Seed1=0,
)
_define("Shape", lambda x: x.shape)
_define("Size", lambda x: x.size)
_define("Rank", lambda x: x.ndim)
_define("DType", lambda x: x.dtype)


def _as(x, dtype):
    return x if dtype is None else f.cast(x, dtype)


_define(
    "MatMul",
    lambda a, b, transpose_a=False, transpose_b=False: f._matmul(a, b, transpose_a, transpose_b),
    transpose_a=False,
    transpose_b=False,
)
BatchMatMul = type("BatchMatMul", (MatMul,), {"__module__": __name__, "__doc__": "As MatMul."})  # noqa: F821
__all__.append("BatchMatMul")


def _split(x, axis=0, output_num=1):
    n = x.shape[axis]
    if n % output_num:
        raise ValueError(
            f"ops.Split: dimension {axis} of shape {x.shape} cannot be split into {output_num} equal parts"
        )
    return f.split(x, n // output_num, axis)


_define("Split", _split, axis=0, output_num=1)
_define("SoftmaxCrossEntropyWithLogits", lambda logits, labels: f._softmax_cross_entropy(logits, labels))
_define("SparseSoftmaxCrossEntropyWithLogits", lambda logits, labels: f._sparse_softmax_cross_entropy(logits, labels))
