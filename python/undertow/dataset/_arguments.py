# SPDX-License-Identifier: Apache-2.0
"""Checks of the arguments of operations: each gives what C++ takes, or raises an error that names the argument."""

import numbers


def number(op, name, value):
    """A float from a number that is not a bool."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise TypeError(f"{op}: {name} must be a number, got {value!r}")
    return float(value)


def integer(op, name, value):
    """An int; bool is none."""
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise TypeError(f"{op}: {name} must be an integer, got {value!r}")
    return value.__index__()


def flag(op, name, value):
    if not isinstance(value, bool):
        raise TypeError(f"{op}: {name} must be True or False, got {value!r}")
    return value


def items(op, name, value, lengths, of=number):
    """A list of numbers from a list or tuple of one of the lengths."""
    if not isinstance(value, (list, tuple)) and not hasattr(value, "tolist"):
        raise TypeError(f"{op}: {name} must be a list or tuple, got {value!r}")
    out = [of(op, name, v) for v in value]
    if lengths and len(out) not in lengths:
        raise ValueError(f"{op}: {name} must have {' or '.join(map(str, lengths))} elements, got {value!r}")
    return out


def one_or(op, name, value, lengths, of=number):
    """A list from one number or a list of them."""
    if isinstance(value, numbers.Number):
        return [of(op, name, value)]
    return items(op, name, value, lengths, of)


def size(op, value, name="size"):
    """One size or (height, width)."""
    return one_or(op, name, value, (1, 2), integer)


def pair(op, name, value):
    """(min, max)."""
    return tuple(items(op, name, value, (2,)))


def spread(op, name, value, center=0.0, low=None):
    """(min, max) from a pair, or center -/+ a number that is not negative, cut at `low`."""
    if not isinstance(value, numbers.Number):
        return pair(op, name, value)
    v = number(op, name, value)
    if v < 0:
        raise ValueError(f"{op}: {name} must not be negative where it is one number, got {value}")
    least = center - v
    return (least if low is None else max(low, least), center + v)


def fill(op, value, name="fill_value"):
    """One value, or one for each of three channels."""
    return one_or(op, name, value, (1, 3))


def member(op, name, value, enum):
    """A member of an enumeration."""
    if not isinstance(value, enum):
        raise TypeError(f"{op}: {name} must be a member of {enum.__name__}, got {value!r}")
    return value
