# SPDX-License-Identifier: Apache-2.0
"""Operations for map() on columns of any kind."""

from enum import IntEnum

from undertow._core import data as _data
from undertow._core import dtype_of
from undertow.dataset import _arguments as _args
from undertow.dataset import _operation
from undertow.dataset._operation import Native as _Native
from undertow.dataset._operation import TensorOperation  # noqa: F401


class Relational(IntEnum):
    """Relations for Mask."""

    EQ, NE, LT, LE, GT, GE = 0, 1, 2, 3, 4, 5


class PyTensorOperation(_operation.TensorOperation):
    """Base class for operations written in Python: give it `__call__`."""


class TypeCast(_Native):
    """The column in another dtype; float to integer truncates."""

    def __init__(self, data_type):
        self._make("TypeCast", dtype_of(data_type))


class OneHot(_Native):
    """Integers in [0, num_classes) to rows of num_classes values of the same dtype.

    With smoothing_rate s > 0 the rows are float64: 1 - s + s / num_classes in the label's place, s / num_classes
    elsewhere. Any other label raises an error.
    """

    def __init__(self, num_classes, smoothing_rate=0.0):
        n = _args.integer("OneHot", "num_classes", num_classes)
        self._make("OneHot", n, _args.number("OneHot", "smoothing_rate", smoothing_rate))


class Fill(_Native):
    """Every element becomes fill_value, converted to the column's dtype."""

    def __init__(self, fill_value):
        value = fill_value if isinstance(fill_value, bool) else _args.number("Fill", "fill_value", fill_value)
        self._make("Fill", float(value))


class Mask(_Native):
    """Whether each element stands in the relation `operator` to `constant`, as dtype."""

    def __init__(self, operator, constant, dtype=bool):
        relation = _args.member("Mask", "operator", operator, Relational)
        value = constant if isinstance(constant, bool) else _args.number("Mask", "constant", constant)
        self._make("Mask", int(relation), float(value), dtype_of(dtype))


class Slice(_Native):
    """Part of each dimension: a place, a list of places, a slice, or None or Ellipsis for all. Keeps the rank."""

    def __init__(self, *slices):
        self._make("Slice", [self._one(s) for s in slices])

    @staticmethod
    def _one(s):
        if s is None or s is Ellipsis:
            return (None, None, 1)
        if isinstance(s, slice):
            ends = [None if v is None else _args.integer("Slice", "a bound", v) for v in (s.start, s.stop)]
            return (*ends, 1 if s.step is None else _args.integer("Slice", "a step", s.step))
        return _args.one_or("Slice", "a slice", s, (), _args.integer)


class Concatenate(_Native):
    """1-D columns one after the other, between `prepend` and `append`."""

    def __init__(self, axis=0, prepend=None, append=None):
        self._make("Concatenate", _args.integer("Concatenate", "axis", axis), prepend, append)


class Duplicate(_Native):
    """One column to two."""

    def __init__(self):
        self._make("Duplicate")


class PadEnd(_Native):
    """Pads at the end of each dimension, or cuts, to pad_shape; None keeps a dimension. pad_value None is 0."""

    def __init__(self, pad_shape, pad_value=None):
        if not isinstance(pad_shape, (list, tuple)):
            raise TypeError(f"PadEnd: pad_shape must be a list or tuple, got {pad_shape!r}")
        shape = [None if n is None else _args.integer("PadEnd", "pad_shape", n) for n in pad_shape]
        self._make("PadEnd", shape, 0.0 if pad_value is None else _args.number("PadEnd", "pad_value", pad_value))


class Unique(_Native):
    """Three columns: the different values in order of appearance, each element's index among them, their counts."""

    def __init__(self):
        self._make("Unique")


class _Group(_Native):
    """An operation that applies some of a list of operations."""

    _takes_pil = True

    def _hold(self, name, transforms, *args):
        if not isinstance(transforms, (list, tuple)) or not transforms:
            raise ValueError(f"{name}: transforms must be a list of operations, got {transforms!r}")
        for t in transforms:
            if not callable(t):
                raise TypeError(f"{name}: an operation must be callable, got {t!r}")
        self.transforms = list(transforms)
        self._recipe, self._handles = (name, args), {}
        _data.make(name, [_data.make("Duplicate")], *args)  # checks the other arguments

    def _build(self, name, args, pil):
        handles = []
        for t in self.transforms:
            part, gives = _operation.plan([t], pil)
            if bool(gives) != bool(pil):
                raise _operation.Unknown
            handles.append(_data.compose(part))
        return _data.make(name, handles, *args)

    def __call__(self, *values):
        try:
            return super().__call__(*values)
        except _operation.Unknown:  # one of them turns PIL images into arrays, or is a Python function on PIL images
            return _operation.call_all(self._pick(), values)

    def _pick(self):
        """The operations to apply, in order, by draws of this call."""
        raise NotImplementedError


class Compose(_operation.TensorOperation):
    """Several operations as one, applied in order."""

    def __init__(self, transforms):
        if not isinstance(transforms, (list, tuple)) or not transforms:
            raise ValueError(f"Compose: transforms must be a list of operations, got {transforms!r}")
        for t in transforms:
            if not callable(t):
                raise TypeError(f"Compose: an operation must be callable, got {t!r}")
        self.transforms = self._parts = list(transforms)

    def __call__(self, *values):
        return _operation.call_all(self.transforms, values)


class RandomApply(_Group):
    """All of the operations with the chance prob, or none."""

    def __init__(self, transforms, prob=0.5):
        self.prob = _args.number("RandomApply", "prob", prob)
        self._hold("RandomApply", transforms, self.prob)

    def _pick(self):
        return self.transforms if _data.draw() < self.prob else []


class RandomChoice(_Group):
    """One of the operations."""

    def __init__(self, transforms):
        self._hold("RandomChoice", transforms)

    def _pick(self):
        return [self.transforms[int(_data.draw() * len(self.transforms))]]


class RandomOrder(_Group):
    """All of the operations, in a random order."""

    def __init__(self, transforms):
        self._hold("RandomOrder", transforms)

    def _pick(self):
        return sorted(self.transforms, key=lambda _: _data.draw())


OneHotOp = OneHot  # its name in MindSpore 1.x
