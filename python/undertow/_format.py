# SPDX-License-Identifier: Apache-2.0
"""How tensors and cells print."""

import numpy as np


def _traced(tensor):
    return f"shape={list(tensor.shape)}, dtype={tensor.dtype!s}, traced"


def _is_traced(tensor):
    return not tensor._has_value


def tensor_str(tensor):
    """Values as NumPy prints them."""
    return f"Tensor({_traced(tensor)})" if _is_traced(tensor) else str(tensor.asnumpy())


def _values(tensor):
    array = tensor.asnumpy()
    options = {"separator": ", ", "threshold": 1000}
    if array.dtype.kind == "f":
        options["formatter"] = {"float_kind": lambda v: f"{v: .8e}"}
    return np.array2string(array, **options)


def tensor_repr(tensor):
    """Tensor(shape=[2], dtype=Float32, value= [ 1.00000000e+00,  2.00000000e+00])"""
    if _is_traced(tensor):
        return f"Tensor({_traced(tensor)})"
    text = _values(tensor)
    gap = "\n" if "\n" in text else " "
    return f"Tensor(shape={list(tensor.shape)}, dtype={tensor.dtype!s}, value={gap}{text})"


def parameter_repr(parameter):
    """Parameter (name=fc.weight, shape=(1, 3), dtype=Float32, requires_grad=True)"""
    return (
        f"Parameter (name={parameter.name}, shape={parameter.shape}, dtype={parameter.dtype!s}, "
        f"requires_grad={parameter.requires_grad})"
    )


def cell_repr(cell):
    """The tree of cells, one a line."""
    extra, children = cell.extend_repr(), cell.name_cells()
    name = type(cell).__name__
    if not children:
        return f"{name}<{extra}>"
    lines = [extra] if extra else []
    lines += [f"({key}): {child!r}" for key, child in children.items()]
    body = "\n".join(lines).replace("\n", "\n  ")
    return f"{name}<\n  {body}\n  >"


class HookHandle:
    """What register_forward_hook gives: remove() ends the hook. Usable in `with`."""

    def __init__(self, cell, number):
        self._cell, self._number = cell, number

    def remove(self):
        if self._cell is not None:
            self._cell._remove_hook(self._number)
            self._cell = None

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.remove()
