# SPDX-License-Identifier: Apache-2.0
"""inspect.signature for the constructors of cells in C++, which scripts ask for."""

import inspect
import types

from undertow._arguments import parameters_of


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
        found, more, more_named = parameters_of(self._native.__nb_signature__[0])
        kinds = inspect.Parameter
        result = [
            kinds(
                p.name,
                kinds.KEYWORD_ONLY if p.keyword_only else kinds.POSITIONAL_OR_KEYWORD,
                default=p.default if p.optional else kinds.empty,
            )
            for p in found
        ]
        if more:
            result.append(kinds("args", kinds.VAR_POSITIONAL))
        if more_named:
            result.append(kinds("kwargs", kinds.VAR_KEYWORD))
        return inspect.Signature(result)


def give(cls):
    """Replaces the class's own native `__init__`, if it has one."""
    native = vars(cls).get("__init__")
    if native is not None and hasattr(native, "__nb_signature__"):
        cls.__init__ = Init(native)
