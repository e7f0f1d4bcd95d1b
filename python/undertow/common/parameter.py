# SPDX-License-Identifier: Apache-2.0
"""Parameter and tuples of them."""

from undertow._core import Parameter

_GENERATED = "Parameter#"


def _is_parameter_generated(name):
    """Whether a name was made up because none was given."""
    return isinstance(name, str) and name.startswith(_GENERATED)


class ParameterTuple(tuple):
    """A tuple of Parameters. Raises TypeError for other items, ValueError for two of one name."""

    __slots__ = ()

    def __new__(cls, iterable=()):
        items, named = tuple(iterable), {}
        for i, item in enumerate(items):
            if not isinstance(item, Parameter):
                raise TypeError(f"ParameterTuple: item {i} must be a Parameter, got {type(item).__name__}")
            if named.setdefault(item.name, item) is not item:
                raise ValueError(f"ParameterTuple: two parameters have the name '{item.name}'; rename one of them")
        return super().__new__(cls, items)

    def clone(self, prefix, init="same"):
        """Copies named `prefix.<name>`, with the same values or those of an initializer."""
        copies = []
        for p in self:
            copy = p.clone(init)
            copy.name = f"{prefix}.{p.name}"
            copies.append(copy)
        return ParameterTuple(copies)
