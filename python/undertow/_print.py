# SPDX-License-Identifier: Apache-2.0
"""print within what is traced: values of traced tensors appear at every step, in order."""

import sys

from undertow import _core
from undertow._core import Tensor


def _traced(value):
    if isinstance(value, Tensor):
        return not value._has_value
    return isinstance(value, (tuple, list)) and any(map(_traced, value))


def _pieces(value):
    """The value as text and tensors, one after the other, as str(value) has them."""
    if isinstance(value, Tensor):
        return [value]
    if not isinstance(value, (tuple, list)):
        return [str(value)]
    opening, closing = ("(", ",)" if len(value) == 1 else ")") if isinstance(value, tuple) else ("[", "]")
    pieces = [opening]
    for i, item in enumerate(value):
        pieces += [", "] if i else []
        pieces += _pieces(item) if isinstance(item, (Tensor, tuple, list)) else [repr(item)]
    return [*pieces, closing]


def _show(values, sep, end, flush):
    pieces = []
    for i, value in enumerate(values):
        pieces += [sep] if i else []
        pieces += _pieces(value)
    _core._print(pieces, "", end, flush)


def print_(*input_x):
    """Prints each input on a line of its own, tensors by their values: at every step, sunk or not, in order.

    Inputs are Tensors, numbers, strings, and tuples and lists of them. Text goes through sys.stdout: at once in eager
    code, else about every 20 ms while a command runs, and all of it before the call that runs it returns. A gradient
    passes by it.
    """
    _show(input_x, "\n", "\n", False)


class Print:
    """ops.Print()(...) calls ops.print_."""

    def __call__(self, *input_x):
        print_(*input_x)


def _replacement(before):
    """What stands in for the built-in `before` while a trace compiles."""

    def print(*args, sep=" ", end="\n", file=None, flush=False):
        if file in (None, sys.stdout) and _core._records() and any(map(_traced, args)):
            _show(args, " " if sep is None else sep, "\n" if end is None else end, flush)
        else:
            before(*args, sep=sep, end=end, file=file, flush=flush)

    return print
