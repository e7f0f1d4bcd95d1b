# SPDX-License-Identifier: Apache-2.0
"""Checks of arguments that scripts borrow from MindSpore: each returns the value, or raises naming the argument."""

import enum
import operator
import re

import numpy as np


class Rel(enum.Enum):
    """Relations of a number to a limit, or to a range (lower, upper)."""

    EQ, NE, LT, LE, GT, GE = 1, 2, 3, 4, 5, 6
    INC_NEITHER, INC_LEFT, INC_RIGHT, INC_BOTH = 7, 8, 9, 10
    IN, NOT_IN = 11, 12


EQ, NE, LT, LE, GT, GE = Rel.EQ, Rel.NE, Rel.LT, Rel.LE, Rel.GT, Rel.GE
INC_NEITHER, INC_LEFT, INC_RIGHT, INC_BOTH = Rel.INC_NEITHER, Rel.INC_LEFT, Rel.INC_RIGHT, Rel.INC_BOTH
IN, NOT_IN = Rel.IN, Rel.NOT_IN

_COMPARE = {
    Rel.EQ: (operator.eq, "=="),
    Rel.NE: (operator.ne, "!="),
    Rel.LT: (operator.lt, "<"),
    Rel.LE: (operator.le, "<="),
    Rel.GT: (operator.gt, ">"),
    Rel.GE: (operator.ge, ">="),
}
_RANGES = {
    Rel.INC_NEITHER: (operator.lt, operator.lt, "({}, {})"),
    Rel.INC_LEFT: (operator.le, operator.lt, "[{}, {})"),
    Rel.INC_RIGHT: (operator.lt, operator.le, "({}, {}]"),
    Rel.INC_BOTH: (operator.le, operator.le, "[{}, {}]"),
}


def _name(arg_name, prim_name):
    of = f"{prim_name}: " if prim_name else ""
    return f"{of}'{arg_name}'" if arg_name else f"{of}the value"


def _number(value, kind, arg_name, prim_name):
    allowed = (int, np.integer) if kind is int else (int, float, np.integer, np.floating)
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, allowed):
        raise TypeError(f"{_name(arg_name, prim_name)} must be {kind.__name__}, got {type(value).__name__}")
    return value


def check_number(value, limit, rel, kind=float, arg_name=None, prim_name=None):
    """A number that stands in a relation to `limit`. Raises TypeError, ValueError."""
    _number(value, kind, arg_name, prim_name)
    compare, text = _COMPARE[rel]
    if not compare(value, limit):
        raise ValueError(f"{_name(arg_name, prim_name)} must be {text} {limit}, got {value}")
    return value


def _range(value, lower, upper, rel, kind, arg_name, prim_name):
    _number(value, kind, arg_name, prim_name)
    low, high, text = _RANGES[rel]
    if not (low(lower, value) and high(value, upper)):
        raise ValueError(f"{_name(arg_name, prim_name)} must be in {text.format(lower, upper)}, got {value}")
    return value


def check_int(value, limit, rel, arg_name=None, prim_name=None):
    """An integer that stands in a relation to `limit`."""
    return check_number(value, limit, rel, int, arg_name, prim_name)


def check_is_int(value, arg_name=None, prim_name=None):
    """An integer."""
    return _number(value, int, arg_name, prim_name)


def check_is_float(value, arg_name=None, prim_name=None):
    """A float."""
    return check_value_type(arg_name, value, float, prim_name)


def check_positive_int(value, arg_name=None, prim_name=None):
    """An integer above 0."""
    return check_number(value, 0, Rel.GT, int, arg_name, prim_name)


def check_non_negative_int(value, arg_name=None, prim_name=None):
    """An integer of at least 0."""
    return check_number(value, 0, Rel.GE, int, arg_name, prim_name)


def check_positive_float(value, arg_name=None, prim_name=None):
    """A number above 0."""
    return check_number(value, 0, Rel.GT, float, arg_name, prim_name)


def check_non_negative_float(value, arg_name=None, prim_name=None):
    """A number of at least 0."""
    return check_number(value, 0, Rel.GE, float, arg_name, prim_name)


def check_int_range(value, lower, upper, rel, arg_name=None, prim_name=None):
    """An integer in a range."""
    return _range(value, lower, upper, rel, int, arg_name, prim_name)


def check_float_range(value, lower, upper, rel, arg_name=None, prim_name=None):
    """A number in a range."""
    return _range(value, lower, upper, rel, float, arg_name, prim_name)


def check_bool(value, arg_name=None, prim_name=None):
    """A bool."""
    return check_value_type(arg_name, value, bool, prim_name)


def check_string(value, valid_values, arg_name=None, prim_name=None):
    """One of the valid texts."""
    if value not in valid_values:
        raise ValueError(f"{_name(arg_name, prim_name)} must be one of {list(valid_values)}, got {value!r}")
    return value


def check_value_type(arg_name, value, valid_types, prim_name=None):
    """A value of one of the types; a bool is no int."""
    kinds = tuple(valid_types) if isinstance(valid_types, (list, tuple)) else (valid_types,)
    if (isinstance(value, bool) and bool not in kinds) or not isinstance(value, kinds):
        names = " or ".join(kind.__name__ for kind in kinds)
        raise TypeError(f"{_name(arg_name, prim_name)} must be {names}, got {type(value).__name__}")
    return value


check_isinstance = check_value_type


def check_str_by_regular(value, pattern=r"^[0-9a-zA-Z\_\.]*$", arg_name=None, prim_name=None):
    """A text that matches the pattern: by default a name of letters, digits, '_' and '.' that starts with no dot."""
    if not isinstance(value, str) or re.match(pattern, value) is None or value.startswith("."):
        raise ValueError(f"{_name(arg_name, prim_name)} must be a name that matches {pattern}, got {value!r}")
    return value


def check_equal_int(value, limit, arg_name=None, prim_name=None):
    """That integer."""
    return check_number(value, limit, Rel.EQ, int, arg_name, prim_name)


class Validator:
    """The same checks under MindSpore's old name."""


def _into_validator():
    for name, value in list(globals().items()):
        if name.startswith("check_"):
            setattr(Validator, name, staticmethod(value))


_into_validator()
