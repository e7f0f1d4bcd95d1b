# SPDX-License-Identifier: Apache-2.0
"""inspect.signature for the constructors of cells in C++, which scripts ask for."""

import ast
import inspect
import re
import types


class Init:
    """Stands for a class's `__init__`, and knows its parameters with their defaults."""

    def __init__(self, native):
        self._native = native
        self.__name__, self.__doc__ = "__init__", native.__doc__

    def __get__(self, instance, owner=None):
        return self if instance is None else types.MethodType(self, instance)

    def __call__(self, *args, **kwargs):
        return self._native(*args, **kwargs)

    @property
    def __signature__(self):
        # nanobind writes "def __init__(self, p: float | None = \\0)", with the defaults beside it.
        text, _, *defaults = self._native.__nb_signature__[0]
        defaults = defaults[0] if defaults else ()
        text = re.sub(r"\\(\d+)", r"_\1", text)
        parameters = ast.parse(re.sub(r"\s*->.*", "", text, flags=re.S) + ": ...").body[0].args
        names = [*parameters.posonlyargs, *parameters.args]
        without = len(names) - len(parameters.defaults)
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        result = []
        for i, item in enumerate(names):
            default = inspect.Parameter.empty
            if i >= without:
                default = defaults[int(parameters.defaults[i - without].id[1:])]
            result.append(inspect.Parameter(item.arg, kind, default=default))
        if parameters.vararg:
            result.append(inspect.Parameter(parameters.vararg.arg, inspect.Parameter.VAR_POSITIONAL))
        if parameters.kwarg:
            result.append(inspect.Parameter(parameters.kwarg.arg, inspect.Parameter.VAR_KEYWORD))
        return inspect.Signature(result)


def give(cls):
    """Replaces the class's own native `__init__`, if it has one."""
    native = vars(cls).get("__init__")
    if native is not None and hasattr(native, "__nb_signature__"):
        cls.__init__ = Init(native)
