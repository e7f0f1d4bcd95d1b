# SPDX-License-Identifier: Apache-2.0
"""Helpers that are Python by nature: mapping over trees, dispatch on types, gradients as objects, tuples and lists."""

import functools
import operator

from undertow._core import Parameter, Tensor, float32, int32, int64
from undertow._core import ops as f
from undertow._grad import grad as _grad

__all__ = [
    "GradOperation",
    "HyperMap",
    "Map",
    "MultitypeFuncGraph",
    "add_flags",
    "array_to_scalar",
    "constexpr",
    "dtype",
    "dyn_shape",
    "in_dict",
    "is_floating_point",
    "is_tensor",
    "isconstant",
    "list_len",
    "make_list",
    "make_range",
    "make_tuple",
    "mixed_precision_cast",
    "not_in_dict",
    "numel",
    "partial",
    "rank",
    "scalar_cast",
    "scalar_to_array",
    "scalar_to_tensor",
    "shape",
    "size",
    "tensor_range",
    "tuple_len",
    "tuple_to_array",
    "typeof",
    "vjp",
    "zip_operation",
]

partial = functools.partial
zip_operation = zip


# ---- trees


class HyperMap:
    """Applies a function to the corresponding leaves of trees of tuples, lists and dicts.

    HyperMap()(fn, xs, ys) and HyperMap(fn)(xs, ys) are the same. The trees must agree in structure; what is neither a
    tuple, a list nor a dict is a leaf. reverse: from the last item to the first. Raises TypeError or ValueError where
    the trees differ.
    """

    _deep = True

    def __init__(self, ops=None, reverse=False):
        if ops is not None and not callable(ops):
            raise TypeError(f"ops.{type(self).__name__}: 'ops' must be callable, got {type(ops).__name__}")
        self.ops, self.reverse = ops, reverse

    def __call__(self, *args):
        fn, trees = (args[0], args[1:]) if self.ops is None else (self.ops, args)
        if not callable(fn) or not trees:
            raise TypeError(f"ops.{type(self).__name__} needs a function and at least one tree to apply it to")
        return self._map(fn, trees, True)

    def _map(self, fn, trees, outermost):
        first = trees[0]
        if not isinstance(first, (tuple, list, dict)) or not (self._deep or outermost):
            return fn(*trees)
        for tree in trees[1:]:
            if not isinstance(tree, (dict,) if isinstance(first, dict) else (tuple, list)):
                raise TypeError(
                    f"ops.{type(self).__name__}: the trees differ: {type(first).__name__} and {type(tree).__name__}"
                )
            if len(tree) != len(first):
                raise ValueError(f"ops.{type(self).__name__}: the trees differ: {len(first)} and {len(tree)} items")
        if isinstance(first, dict):
            return {key: self._map(fn, [tree[key] for tree in trees], False) for key in first}
        rows = list(zip(*trees))
        if self.reverse:
            return _result_type(first)(reversed([self._map(fn, row, False) for row in reversed(rows)]))
        return _result_type(first)(self._map(fn, row, False) for row in rows)


def _result_type(tree):
    return list if isinstance(tree, list) else tuple


class Map(HyperMap):
    """As HyperMap, of the outermost level only: items may be tuples of their own."""

    _deep = False


_KINDS = {
    "Tensor": lambda x: isinstance(x, Tensor),
    "Parameter": lambda x: isinstance(x, Parameter),
    "Number": lambda x: isinstance(x, (int, float)) and not isinstance(x, bool),
    "Int": lambda x: isinstance(x, int) and not isinstance(x, bool),
    "Float": lambda x: isinstance(x, float),
    "Bool": lambda x: isinstance(x, bool),
    "String": lambda x: isinstance(x, str),
    "Function": callable,
    "Tuple": lambda x: isinstance(x, tuple),
    "List": lambda x: isinstance(x, list),
    "Dict": lambda x: isinstance(x, dict),
    "None": lambda x: x is None,
    "Any": lambda x: True,
}


class MultitypeFuncGraph:
    """A function chosen by the types of its arguments: register("Tensor", "Number") decorates one choice.

    A type is a name ("Tensor", "Number", "Int", "Float", "Bool", "String", "Tuple", "List", "Dict", "Function",
    "None"), a Python class, or a dtype (a number of that kind). The first choice that fits is called; TypeError where
    none does.
    """

    def __init__(self, name, read_value=False, doc_url=""):
        self.name, self.entries = name, []

    def register(self, *types):
        """A decorator that adds a choice."""
        tests = [self._test(t) for t in types]

        def decorator(fn):
            self.entries.append((tests, fn))
            return fn

        return decorator

    @staticmethod
    def _test(kind):
        if isinstance(kind, type):
            return lambda x: isinstance(x, kind)
        name = str(kind)
        if name in ("RowTensor", "COOTensor", "CSRTensor"):
            return lambda x: False  # tensors are dense: nothing is of these types
        if name in _KINDS:
            return _KINDS[name]
        known = {"Int": "Int", "UInt": "Int", "Float": "Float", "Bool": "Bool"}
        for prefix, test in known.items():  # dtypes: Int64, Float32
            if name.startswith(prefix) and name[len(prefix) :].isdigit():
                return _KINDS[test]
        raise TypeError(f"MultitypeFuncGraph: the type '{name}' is not known; use one of {', '.join(_KINDS)}")

    def __call__(self, *args):
        for tests, fn in self.entries:
            if len(tests) == len(args) and all(test(x) for test, x in zip(tests, args)):
                return fn(*args)
        got = ", ".join(type(x).__name__ for x in args)
        raise TypeError(f"MultitypeFuncGraph '{self.name}': no registered function takes ({got})")

    def __repr__(self):
        return f"MultitypeFuncGraph({self.name!r})"


# ---- gradients


class GradOperation:
    """Makes gradient functions: GradOperation(...)(fn_or_cell[, weights])(*inputs).

    Without options the gradient with respect to the first input; get_all: a tuple, one an input; get_by_list: a tuple,
    one a parameter of `weights` (both options: a pair of tuples). sens_param: the last argument of the call is the
    gradient with respect to the output (a Tensor, or a tree of the output's structure); otherwise it is ones.
    """

    def __init__(self, get_all=False, get_by_list=False, sens_param=False):
        for name, value in {"get_all": get_all, "get_by_list": get_by_list, "sens_param": sens_param}.items():
            if not isinstance(value, bool):
                raise TypeError(f"GradOperation: '{name}' must be a bool, got {type(value).__name__}")
        self.get_all, self.get_by_list, self.sens_param = get_all, get_by_list, sens_param

    def __call__(self, fn, weights=None):
        if self.get_by_list and weights is None:
            if not hasattr(fn, "trainable_params"):
                raise TypeError("GradOperation: with get_by_list=True a function needs 'weights', the Parameters")
            weights = fn.trainable_params()
        if weights is not None and isinstance(weights, Tensor):
            weights = (weights,)

        def gradient(*args, **kwargs):
            inputs, sens = (args[:-1], args[-1]) if self.sens_param else (args, None)
            position = None
            if not self.get_by_list or self.get_all:
                tensors = tuple(i for i, x in enumerate(inputs) if isinstance(x, Tensor))
                position = tensors if self.get_all else 0

            def weighted(*xs, **more):
                out = fn(*xs, **more)
                return out if sens is None else _dot(out, sens)

            return _grad(weighted, position, weights if self.get_by_list else None)(*inputs, **kwargs)

        return gradient


def _dot(out, sens):
    """The sum of products of all leaves: what has `sens` as its gradient with respect to `out`."""
    if isinstance(out, (tuple, list)):
        if not isinstance(sens, (tuple, list)) or len(sens) != len(out):
            raise ValueError(f"the gradient of an output of {len(out)} items must have as many")
        total = None
        for o, s in zip(out, sens):
            part = _dot(o, s)
            total = part if total is None else total + part
        return total
    return f.reduce_sum(out * f.cast(sens, out.dtype) if isinstance(sens, Tensor) else out * sens)


def vjp(fn, *inputs, weights=None, has_aux=False):
    """(outputs, function): the function takes a tree like the outputs and gives the gradients of their product with it.

    The gradients are one Tensor for one input, else a tuple; with `weights`, (those of inputs, those of weights). The
    forward pass runs again at each call. has_aux: only the first output is differentiated, the others are returned.
    """
    position = 0 if len(inputs) == 1 else tuple(range(len(inputs)))

    def first(out):
        return out[0] if has_aux else out

    outputs = fn(*inputs)

    def backward(*sens):
        if not sens:
            raise TypeError("vjp: the gradient with respect to the output is needed")
        seed = sens[0] if len(sens) == 1 else sens
        return _grad(lambda *xs: _dot(first(fn(*xs)), seed), position, weights)(*inputs)

    if has_aux:
        return outputs[0], backward, *outputs[1:]
    return outputs, backward


# ---- what is known while tracing


def constexpr(fn=None, get_instance=True, name=None, reuse_result=True, check=True):
    """Marks a function of constants. Plain Python runs while tracing here, so it is the function itself.

    get_instance=False: the decorated name is a class, called as name()(...).
    """

    def decorate(function):
        return function if get_instance else (lambda: function)

    return decorate if fn is None else decorate(fn)


_primexpr = constexpr


def add_flags(fn=None, **flags):
    """Marks a function or Cell for MindSpore's compiler; without effect here."""
    return fn if fn is not None else (lambda function: function)


def shape(input_x):
    """The shape as a tuple."""
    return _tensor(input_x, "shape").shape


def rank(input_x):
    """The number of dimensions."""
    return _tensor(input_x, "rank").ndim


def size(input_x):
    """The number of elements."""
    return _tensor(input_x, "size").size


def numel(input):
    """The number of elements."""
    return _tensor(input, "numel").size


def dtype(x):
    """The element type."""
    return _tensor(x, "dtype").dtype


def dyn_shape(input_x):
    """The shape as an int64 Tensor."""
    x = _tensor(input_x, "dyn_shape")
    return Tensor(list(x.shape), int64) if x.ndim else f.zeros((0,), int64)


def _tensor(x, op):
    if not isinstance(x, Tensor):
        raise TypeError(f"ops.{op} needs a Tensor, got {type(x).__name__}")
    return x


def mixed_precision_cast(dst_dtype, x):
    """The floating Tensors of a tree in another dtype; everything else as it is."""
    if isinstance(x, Tensor):
        return f.cast(x, dst_dtype) if x.is_floating_point() else x
    if isinstance(x, (tuple, list)):
        return _result_type(x)(mixed_precision_cast(dst_dtype, item) for item in x)
    if isinstance(x, dict):
        return {key: mixed_precision_cast(dst_dtype, item) for key, item in x.items()}
    return x


def is_tensor(obj):
    """Whether it is a Tensor."""
    return isinstance(obj, Tensor)


def is_floating_point(input):
    """Whether the elements are floats."""
    return _tensor(input, "is_floating_point").is_floating_point()


def isconstant(x):
    """Whether the value is known while tracing."""
    return not isinstance(x, Tensor) or x._has_value


def typeof(x):
    """A Tensor's dtype, or the type of anything else."""
    return x.dtype if isinstance(x, Tensor) else type(x)


# ---- numbers, tuples and lists


def tuple_to_array(input_x):
    """A tuple of numbers as a Tensor: int32 of integers, float32 of floats. Raises TypeError for others."""
    items = list(input_x)
    if any(isinstance(x, Tensor) for x in items):
        return f.stack([x if isinstance(x, Tensor) else scalar_to_tensor(x) for x in items])
    return Tensor(items, float32 if any(isinstance(x, float) for x in items) else int32)


def scalar_to_tensor(input_x, dtype=float32):
    """A number as a Tensor of no dimensions."""
    return f.full((), input_x, dtype=dtype)


def scalar_to_array(input_x):
    """A number as a Tensor of no dimensions, in its own dtype."""
    return Tensor(input_x)


def scalar_cast(input_x, input_y):
    """A number converted to a dtype; a traced value becomes a Tensor of that dtype."""
    if isinstance(input_x, Tensor):
        return f.cast(input_x, input_y)
    return f.full((), input_x, dtype=input_y).item()


def array_to_scalar(x):
    """The only element as a number."""
    return x.item()


def make_range(*args):
    """The numbers of Python's range as a tuple."""
    return tuple(range(*args))


def tensor_range(start, end, step):
    """The numbers from start up to end."""
    return f.range(start, end, step)


def make_tuple(*args):
    """The arguments as a tuple."""
    return args


def make_list(*args):
    """The arguments as a list."""
    return list(args)


def in_dict(key, dictionary):
    """Whether the key is there."""
    return key in dictionary


def not_in_dict(key, dictionary):
    """Whether the key is not there."""
    return key not in dictionary


tuple_len = list_len = len

for _name, _operator in {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "div": operator.truediv,
    "floordiv": operator.floordiv,
    "mod": operator.mod,
    "pow": operator.pow,
    "eq": operator.eq,
    "ne": operator.ne,
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
    "max": max,
    "min": min,
    "usub": operator.neg,
    "uadd": operator.pos,
}.items():
    globals()[f"scalar_{_name}"] = _operator
    __all__.append(f"scalar_{_name}")
