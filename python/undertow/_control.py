# SPDX-License-Identifier: Apache-2.0
"""Control flow over trees of values: cond, while_loop, scan, fori_loop.

While a step is compiled the functions become parts of the program; numbers in what they take and return are tensors
then. Otherwise they run at once, with the values as they are.
"""

from contextlib import contextmanager

from undertow import _core
from undertow._core import Tensor
from undertow._core.ops import stack

_LEAF = object()  # where a tensor stands in the skeleton of a tree


def _flatten(tree, leaves, weak):
    """The tree with _LEAF for its tensors and numbers, which are appended to `leaves`; `weak`: which were numbers."""
    if isinstance(tree, (Tensor, bool, int, float)):
        leaves.append(tree if isinstance(tree, Tensor) else Tensor(tree))
        weak.append(not isinstance(tree, Tensor))
        return _LEAF
    if isinstance(tree, (tuple, list)):
        items = [_flatten(item, leaves, weak) for item in tree]
        return type(tree)(*items) if hasattr(tree, "_fields") else type(tree)(items)
    if isinstance(tree, dict):
        return {key: _flatten(item, leaves, weak) for key, item in tree.items()}
    return tree


def _fill(skeleton, leaves):
    """The tree again, with the next tensors of the iterator."""
    if skeleton is _LEAF:
        return next(leaves)
    if isinstance(skeleton, (tuple, list)):
        items = [_fill(item, leaves) for item in skeleton]
        return type(skeleton)(*items) if hasattr(skeleton, "_fields") else type(skeleton)(items)
    if isinstance(skeleton, dict):
        return {key: _fill(item, leaves) for key, item in skeleton.items()}
    return skeleton


def _describe(skeleton):
    if skeleton is _LEAF:
        return "Tensor"
    if isinstance(skeleton, (tuple, list)):
        inner = ", ".join(map(_describe, skeleton))
        return f"[{inner}]" if isinstance(skeleton, list) else f"({inner})"
    if isinstance(skeleton, dict):
        return "{" + ", ".join(f"{key!r}: {_describe(item)}" for key, item in skeleton.items()) + "}"
    return repr(skeleton)


def _returned(op, expected, tree):
    """The leaves of what a function returned, which must have the structure `expected` (None: not known yet)."""
    leaves = []
    skeleton = _flatten(tree, leaves, [])
    if expected is not None and skeleton != expected[0]:
        raise TypeError(
            f"ops.{op}: {expected[1]} {_describe(expected[0])}, but the function returned {_describe(skeleton)}"
        )
    return leaves, skeleton


def _callable(op, **functions):
    for name, f in functions.items():
        if not callable(f):
            raise TypeError(f"ops.{op}: '{name}' must be a function, got {type(f).__name__}")


@contextmanager
def _frame(key, which, trip=-1):
    _core._enter(key, which, trip)
    try:
        yield
    finally:
        _core._leave()


def _types(tree):
    leaves, weak = [], []
    skeleton = _flatten(tree, leaves, weak)
    return skeleton, [None if w else (t.dtype, t.shape) for t, w in zip(leaves, weak)]


def _check_carry(op, before, after):
    """Eagerly: a carry keeps its structure, and its tensors their dtypes and shapes. Numbers may become tensors."""
    (old, old_types), (new, new_types) = _types(before), _types(after)
    if old != new or any(a is not None and b is not None and a != b for a, b in zip(old_types, new_types)):

        def show(skeleton, types):
            names = ", ".join("number" if t is None else f"{t[0]}{list(t[1])}" for t in types)
            return f"{_describe(skeleton)} of {names}" if names else _describe(skeleton)

        raise TypeError(
            f"ops.{op}: the function must return what it is given, but the carry was {show(old, old_types)} and it "
            f"returned {show(new, new_types)}"
        )


def cond(pred, true_fn, false_fn, *operands):
    """true_fn(*operands) where `pred`, a Tensor of one element or a bool, is true, else false_fn(*operands).

    Only the chosen function runs. Compiled, both must return the same structure of tensors with the same dtypes and
    shapes: TypeError names both. Parameters that they write are written.
    (MindSpore's ops.cond is another function, the condition number of a matrix.)
    """
    if not callable(true_fn) or not callable(false_fn):
        raise TypeError(
            "ops.cond(pred, true_fn, false_fn, *operands) is control flow and takes two functions, got "
            f"{type(true_fn).__name__} and {type(false_fn).__name__}"
        )
    if not _core._records() or not isinstance(pred, Tensor):
        chosen = bool(pred)
        with _frame(_core._control_key(), 0 if chosen else 1):
            return (true_fn if chosen else false_fn)(*operands)
    tensors = []
    arguments = _flatten(list(operands), tensors, [])
    result = None

    def branch(function):
        def call(leaves):
            nonlocal result
            returned, skeleton = _returned("cond", result, function(*_fill(arguments, iter(leaves))))
            result = (skeleton, "the first function returned")
            return returned

        return call

    out = _core._cond(pred, branch(true_fn), branch(false_fn), tensors)
    return _fill(result[0], iter(out))


def while_loop(cond_func, loop_func, init_val):
    """init_val = loop_func(init_val) for as long as cond_func(init_val) is true; returns the last one.

    The value keeps its structure, dtypes and shapes, else TypeError naming both. Its gradient computes the value of
    every trip again from the first: n * (n - 1) / 2 trips for n; where n is known use scan or fori_loop.
    """
    _callable("while_loop", cond_func=cond_func, loop_func=loop_func)
    if not _core._records():
        key, value, trip = _core._control_key(), init_val, 0
        while True:
            with _frame(key, 0, trip):
                if not bool(cond_func(value)):
                    return value
            with _frame(key, 1, trip):
                following = loop_func(value)
            _check_carry("while_loop", value, following)
            value, trip = following, trip + 1
    tensors, weak = [], []
    skeleton = _flatten(init_val, tensors, weak)

    def condition(leaves):
        value = cond_func(_fill(skeleton, iter(leaves)))
        return value if isinstance(value, Tensor) else Tensor(bool(value))

    def body(leaves):
        return _returned("while_loop", (skeleton, "the carry is"), loop_func(_fill(skeleton, iter(leaves))))[0]

    return _fill(skeleton, iter(_core._while_loop(condition, body, tensors, weak)))


def _pair(result):
    if not isinstance(result, tuple) or len(result) != 2:
        raise TypeError(f"ops.scan: the function must return (carry, result), got {type(result).__name__}")
    return result


def _scan_rows(loop_func, init, xs, length, reverse):
    """As one loop over the first axis of the tensors in `xs`; the results are stacked."""
    tensors, weak, rows = [], [], []
    skeleton = _flatten(init, tensors, weak)
    row = _flatten(xs, rows, [])
    result = None

    def body(carry, x):
        nonlocal result
        following, y = _pair(loop_func(_fill(skeleton, iter(carry)), _fill(row, iter(x))))
        ys, result = _returned("scan", None, y)
        return _returned("scan", (skeleton, "the carry is"), following)[0], ys

    carry, ys = _core._scan(body, tensors, rows, length, reverse, weak)
    return _fill(skeleton, iter(carry)), result, ys


def scan(loop_func, init, xs, length=None, unroll=True, *, reverse=False):
    """carry, y = loop_func(carry, x) for each x of `xs`; returns (the last carry, all y).

    xs: a list or tuple of elements, or None with `length`: then y come as a list, and unroll=False compiles one loop
    in place of all trips (elements must have equal structures and types). A Tensor, or a dict of Tensors, is always one
    loop over its first axis, and the y are stacked along a new one. reverse: from the last element to the first; y keep
    their places. The carry keeps its structure, dtypes and shapes, else TypeError naming both. Its gradient is a scan
    the other way, which holds the carries of all trips.
    """
    _callable("scan", loop_func=loop_func)
    if not isinstance(unroll, bool):
        raise TypeError(f"ops.scan: 'unroll' must be a bool, got {type(unroll).__name__}")
    if length is not None and (isinstance(length, bool) or not isinstance(length, int)):
        raise TypeError(f"ops.scan: 'length' must be an int or None, got {type(length).__name__}")
    if isinstance(xs, (Tensor, dict)):
        carry, result, ys = _scan_rows(loop_func, init, xs, -1 if length is None else length, reverse)
        return carry, _fill(result, iter(ys))
    if xs is None and (length is None or length < 0):
        raise ValueError(f"ops.scan: without xs, 'length' must be a number of trips, got {length}")
    if xs is not None and not isinstance(xs, (list, tuple)):
        raise TypeError(f"ops.scan: 'xs' must be a list, a tuple, a Tensor, a dict or None, got {type(xs).__name__}")
    if xs is not None and length is not None and length != len(xs):
        raise ValueError(f"ops.scan: 'length' is {length}, but xs has {len(xs)} elements")
    count = length if xs is None else len(xs)
    if count == 0:
        return init, []
    if unroll or not _core._records():
        key, carry, ys = _core._control_key(), init, [None] * count
        for i in reversed(range(count)) if reverse else range(count):
            with _frame(key, 0, i):
                following, ys[i] = _pair(loop_func(carry, None if xs is None else xs[i]))
            _check_carry("scan", carry, following)
            carry = following
        return carry, ys
    stacked = None if xs is None else _stack(xs)
    carry, result, ys = _scan_rows(loop_func, init, stacked, count, reverse)
    return carry, [_fill(result, iter([y[i] for y in ys])) for i in range(count)]


def _stack(xs):
    columns, first = [], None
    for i, x in enumerate(xs):
        leaves = []
        skeleton = _flatten(x, leaves, [])
        if first is None:
            first, columns = skeleton, [[] for _ in leaves]
        if skeleton != first:
            raise TypeError(
                "ops.scan: with unroll=False all elements of xs must be alike, but the first is "
                f"{_describe(first)} and element {i} {_describe(skeleton)}"
            )
        for column, leaf in zip(columns, leaves):
            if column and (column[0].shape, column[0].dtype) != (leaf.shape, leaf.dtype):
                raise TypeError(
                    f"ops.scan: with unroll=False all elements of xs must be alike, but element {i} has {leaf.dtype} "
                    f"{list(leaf.shape)} where the first has {column[0].dtype} {list(column[0].shape)}"
                )
            column.append(leaf)
    return _fill(first, iter([stack(column) for column in columns]))


def fori_loop(lower, upper, loop_func, init_val, unroll=True):
    """init_val = loop_func(i, init_val) for i from `lower` up to, not including, `upper`; returns the last one.

    Bounds are ints or integer Tensors of one element. With ints, unroll=True compiles the trips one after the other,
    with i an int; otherwise one loop is compiled and i is an int64 Tensor. Gradients are scan's, with Tensor bounds
    while_loop's.
    """
    _callable("fori_loop", loop_func=loop_func)
    for name, bound in (("lower", lower), ("upper", upper)):
        if isinstance(bound, bool) or not isinstance(bound, (int, Tensor)):
            raise TypeError(f"ops.fori_loop: '{name}' must be an int or a Tensor, got {type(bound).__name__}")
    known = isinstance(lower, int) and isinstance(upper, int)
    if not _core._records() or (known and unroll):
        key, value = _core._control_key(), init_val
        for trip, i in enumerate(range(int(lower), int(upper))):
            with _frame(key, 0 if known else 1, trip):
                following = loop_func(i, value)
            _check_carry("fori_loop", value, following)
            value = following
        return value
    tensors, weak = [], []
    skeleton = _flatten(init_val, tensors, weak)

    def body(i, leaves):
        return _returned("fori_loop", (skeleton, "the carry is"), loop_func(i, _fill(skeleton, iter(leaves))))[0]

    return _fill(skeleton, iter(_core._fori_loop(lower, upper, body, tensors, weak)))


def _class_form(name, function):
    """ops.<name>()(...) calls the function."""

    def call(self, *args, **kwargs):
        return function(*args, **kwargs)

    return type(name, (), {"__call__": call, "__doc__": function.__doc__, "__module__": "undertow.ops"})


WhileLoop = _class_form("WhileLoop", while_loop)
Scan = _class_form("Scan", scan)
ForiLoop = _class_form("ForiLoop", fori_loop)
