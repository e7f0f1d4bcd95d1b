# SPDX-License-Identifier: Apache-2.0
"""What the operations for map() share: calls on arrays and PIL images, and lists of operations as one.

In a pipeline a PIL image is an array, and which operations see it as a PIL image is known from the list: from ToPIL()
or Decode(to_pil=True) on, until one that gives arrays. Where a Python function among them makes that unknowable, the
list runs as Python calls, one after the other.
"""

import inspect
import sys

import numpy as np

from undertow._core import data as _data


def is_pil(value):
    """Whether it is an image of Pillow, without importing Pillow."""
    module = sys.modules.get("PIL.Image")
    return module is not None and isinstance(value, module.Image)


def pil_module():
    """PIL.Image. Raises ImportError that says what needs it."""
    try:
        from PIL import Image
    except ImportError:
        raise ImportError("PIL images need Pillow: pip install pillow") from None
    return Image


def array_of(value):
    """What the C++ operations take for one argument: PIL images and bytes become arrays."""
    if is_pil(value):
        if value.mode in ("P", "PA", "1"):
            raise ValueError(
                f"PIL images of mode {value.mode!r} are not supported: convert('RGB') or convert('L') them"
            )
        return np.asarray(value)
    if isinstance(value, (bytes, bytearray)):
        return np.frombuffer(value, np.uint8)
    return value


def pil_of(array, like=None):
    """An array as a PIL image; `like`: one whose mode it takes where the channels allow."""
    if array.ndim == 3 and array.shape[2] == 1:
        array = array[:, :, 0]
    image = pil_module().fromarray(array)
    mode = getattr(like, "mode", None)
    if mode in ("CMYK", "HSV", "YCbCr", "LAB") and len(image.getbands()) == len(like.getbands()):
        image = pil_module().frombuffer(mode, image.size, image.tobytes(), "raw", mode, 0, 1)
    return image


class Unknown(Exception):
    """Whether the input is a PIL image is not known before it is there."""


class TensorOperation:
    """Base class of all operations."""


class Native(TensorOperation):
    """An operation in C++. Called, it works at once on arrays, numbers, Tensors and PIL images."""

    _takes_pil = False  # whether PIL images are images to it, and not just arrays

    def _make(self, name, *args, **options):
        """Sets the C++ constructor and its arguments, and checks them by calling it."""
        self._recipe = (name, args)
        self._handles = {}
        self._of(False)

    def _of(self, pil):
        handle = self._handles.get(pil)
        if handle is None:
            name, args = self._recipe
            handle = self._handles[pil] = self._build(name, args, pil)
        return handle

    def _build(self, name, args, pil):
        """The C++ operation for arrays, or for PIL images."""
        return _data.make(name, *args)

    def plan(self, pil):
        """(C++ operation, whether it gives PIL images) for an input that is a PIL image or not; None: not known."""
        if pil is None and self._takes_pil:
            raise Unknown
        return self._of(bool(pil)), self._gives_pil(pil)

    def _gives_pil(self, pil):
        return pil and self._takes_pil

    def __call__(self, *values):
        pil = next((v for v in values if is_pil(v)), None)
        result = self._of(pil is not None)(*map(array_of, values))
        if not self._gives_pil(pil is not None):
            return result
        return tuple(pil_of(r, pil) for r in result) if isinstance(result, tuple) else pil_of(result, pil)

    def __getstate__(self):
        return self.__dict__ | {"_handles": {}}

    def __setstate__(self, state):
        self.__dict__.update(state)

    def __repr__(self):
        return f"{type(self).__name__}()"


def flat(operations):
    """A list of operations with the Compose in it taken apart."""
    for operation in operations:
        parts = getattr(operation, "_parts", None)
        if parts is None:
            yield operation
        else:
            yield from flat(parts)


def plan(operations, pil=False):
    """(C++ operations, whether the last gives PIL images). Raises Unknown where that is not known."""
    handles = []
    for operation in flat(operations):
        if isinstance(operation, Native):
            handle, pil = operation.plan(pil)
        elif not callable(operation):
            raise TypeError(f"map: an operation must be callable, got {type(operation).__name__}")
        elif pil:
            raise Unknown
        else:
            handle, pil = _function(operation), None
        handles.append(handle)
    return handles, pil


def handle_of(operations):
    """The C++ operation that does one after the other."""
    operations = list(flat(operations))
    try:
        handles = plan(operations)[0]
    except Unknown:
        return _data.python_map(_Calls(operations), arity_of(operations[0]), name_of(operations[0]))
    return _data.compose(handles)


def has_functions(operations):
    """Whether there is a Python function among them."""
    return any(not isinstance(operation, Native) for operation in flat(operations))


def call_all(operations, values):
    """Calls operations one after the other on the values of a row."""
    for operation in operations:
        result = operation(*values)
        values = result if isinstance(result, tuple) else (result,)
    return values if len(values) != 1 else values[0]


def _function(function):
    return _data.python_map(function, arity_of(function), name_of(function))


class _Calls:
    """Operations called one after the other; PIL images leave as arrays."""

    def __init__(self, operations):
        self.operations = operations

    def __call__(self, *values):
        result = call_all(self.operations, values)
        return tuple(map(array_of, result)) if isinstance(result, tuple) else array_of(result)


def name_of(function):
    return getattr(function, "__name__", type(function).__name__)


def arity_of(function):
    """How many columns a callable takes: its positional parameters without defaults; -1 for any number."""
    if isinstance(function, Native):
        return 1
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return 1
    if any(p.kind is p.VAR_POSITIONAL for p in parameters):
        return -1
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return max(1, sum(p.kind in kinds and p.default is p.empty for p in parameters))
