# SPDX-License-Identifier: Apache-2.0
"""jit: a Python function as one compiled program."""

import functools
from collections import OrderedDict

from undertow import _core
from undertow._core import Parameter, Tensor

_MAX_PROGRAMS = 64  # kinds of arguments that one function keeps
_END = object()


def _flatten(tree, tensors):
    """The structure of a tree of tensors, hashable; its tensors are appended to `tensors`."""
    if isinstance(tree, Tensor) and not isinstance(tree, Parameter):
        tensors.append(tree)
        return ("tensor", tree.shape, str(tree.dtype))
    if isinstance(tree, (tuple, list)):
        return (type(tree).__name__, *(_flatten(item, tensors) for item in tree))
    if isinstance(tree, dict):
        return ("dict", *((key, _flatten(item, tensors)) for key, item in tree.items()))
    if tree is None or isinstance(tree, (bool, int, float, str, bytes)):
        return (type(tree).__name__, tree)
    return ("object", id(tree))


def _rebuild(tree, tensors):
    """`tree` with its tensors replaced by the next ones of the iterator."""
    if isinstance(tree, Tensor) and not isinstance(tree, Parameter):
        return next(tensors)
    if isinstance(tree, (tuple, list)):
        items = [_rebuild(item, tensors) for item in tree]
        return type(tree)(*items) if hasattr(tree, "_fields") else type(tree)(items)
    if isinstance(tree, dict):
        return type(tree)((key, _rebuild(item, tensors)) for key, item in tree.items())
    return tree


class _Program:
    """One compiled form of a function: for one structure of arguments."""

    def __init__(self, fn, args, kwargs):
        self.fn, self.args, self.kwargs = fn, args, kwargs  # the trees; other objects in them stay alive with it
        self.output = None
        self.changes = -1
        self.compiled = _core.CompiledFunction(getattr(fn, "__name__", "function"), self.build)

    def build(self, inputs):
        """Runs while tracing."""
        tensors = iter(inputs)
        args, kwargs = _rebuild(self.args, tensors), _rebuild(self.kwargs, tensors)
        result = self.fn(*args, **kwargs)
        outputs = []
        _flatten_outputs(result, outputs)
        self.output = result
        return outputs

    def compile(self, tensors):
        self.compiled.compile(tensors)

    def run(self, tensors):
        if self.changes != (now := _core._attribute_changes()):
            self.compiled.retrace()
            self.changes = now
        outputs = iter(self.compiled.run(tensors))
        return _rebuild_outputs(self.output, outputs)


def _flatten_outputs(tree, tensors):
    if isinstance(tree, Tensor):
        tensors.append(tree)
    elif isinstance(tree, (tuple, list)):
        for item in tree:
            _flatten_outputs(item, tensors)
    elif isinstance(tree, dict):
        for item in tree.values():
            _flatten_outputs(item, tensors)


def _rebuild_outputs(tree, tensors):
    if isinstance(tree, Tensor):
        return next(tensors)
    return _rebuild(tree, tensors) if not isinstance(tree, (tuple, list, dict)) else _rebuild_nested(tree, tensors)


def _rebuild_nested(tree, tensors):
    if isinstance(tree, dict):
        return type(tree)((key, _rebuild_outputs(item, tensors)) for key, item in tree.items())
    items = [_rebuild_outputs(item, tensors) for item in tree]
    return type(tree)(*items) if hasattr(tree, "_fields") else type(tree)(items)


def jit(function=None, *, capture_mode="trace", jit_level="O0", dynamic=0, fullgraph=False, backend="", **options):
    """Compiles a function (or a Cell) into one program a kind of arguments; also as a decorator with arguments.

    A kind is given by shapes, dtypes, structure and Python values of the arguments, training flags and attributes of
    cells, and the context. Parameters that it writes are written. Inside another trace it is an ordinary call. The
    other arguments are MindSpore's and have no effect.
    """
    if function is None:
        return functools.partial(jit, capture_mode=capture_mode, jit_level=jit_level, dynamic=dynamic)
    if not callable(function):
        raise TypeError(f"jit needs a function, got {type(function).__name__}")
    programs = OrderedDict()

    @functools.wraps(function, updated=())
    def compiled(*args, **kwargs):
        if _core.ops._tracing():
            return function(*args, **kwargs)
        tensors = []
        key = (_flatten(args, tensors), _flatten(kwargs, tensors), _core._context("device"))
        program = programs.pop(key, None) or _Program(function, args, kwargs)
        programs[key] = program
        if len(programs) > _MAX_PROGRAMS:
            programs.popitem(last=False)
        try:
            return program.run(tensors)
        except BaseException:
            if program.output is None:  # never traced
                programs.pop(key, None)
            raise

    return compiled


class _CellGraphExecutor:
    """Compiles cells ahead of their first call."""

    def compile(self, cell, *args, **kwargs):
        """Traces and compiles `cell` for these arguments; runs nothing. Raises what tracing raises, and ValueError
        where two parameters have one name.
        """
        cell.check_names()
        tensors = []
        _flatten(args, tensors)
        _flatten(kwargs, tensors)
        _Program(cell, args, kwargs).compile(tensors)
        return cell.cls_name, True


_cell_graph_executor = _CellGraphExecutor()
