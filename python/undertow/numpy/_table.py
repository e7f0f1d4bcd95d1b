# SPDX-License-Identifier: Apache-2.0
"""How a row of a table becomes a public function."""

from undertow._core import dtype_of
from undertow._core import ops as _f


def adder(namespace):
    """A function add(name, function) that makes `function` public in a module's namespace; also a decorator."""

    def add(name, function=None):
        if function is None:
            name, function = name.__name__, name
        function.__name__ = function.__qualname__ = name
        function.__module__ = namespace["__name__"]
        function.__doc__ = function.__doc__ or f"NumPy's {name}."
        namespace[name] = function
        namespace["__all__"].append(name)
        return function

    return add


def as_dtype(x, dtype):
    """x in a dtype, as it is without one."""
    return x if dtype is None else _f.cast(x, dtype_of(dtype))
