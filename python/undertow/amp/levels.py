# SPDX-License-Identifier: Apache-2.0
"""Levels of mixed precision: which cells of a network compute in a half type."""

import inspect

from undertow import _core, nn, ops
from undertow.amp.scaling import DynamicLossScaleManager
from undertow.nn import Cell
from undertow.nn.function_cell import FunctionCell


def _network(network, function):
    if not isinstance(network, Cell):
        raise TypeError(f"{function}: 'network' must be a Cell, got {type(network).__name__}")
    return network


def auto_mixed_precision(network, amp_level="O0", dtype=None):
    """The network at a level, which is set in place: O0, O1, O2, O3 or auto. Its results become float32.

    O1: convolutions, Dense and the steps of recurrent cells in half. O2: all but BatchNorm and LayerNorm. O3: all.
    auto: operator by operator; `network` may be a function then. dtype: float16 or bfloat16; left out, it is the
    context's half type. Weights, statistics and losses stay in float32; cells that to_float was called for stay as they
    are.
    Raises ValueError for an unknown level and for a network at another level, TypeError for another dtype.
    """
    if not isinstance(network, Cell) and inspect.isfunction(network) and amp_level == "auto":
        network = FunctionCell(network)
    _core.amp.auto_mixed_precision(_network(network, "auto_mixed_precision"), amp_level, dtype, None)
    return network


def _entries(network, classes, argument, ops_too):
    """(name, the network's cells of that class) of each class."""
    if not isinstance(classes, (list, tuple)):
        raise TypeError(f"custom_mixed_precision: '{argument}' must be a list of classes, got {type(classes).__name__}")
    cells = [cell for _, cell in network.cells_and_names()]
    for item in classes:
        if not isinstance(item, type) or not (ops_too or issubclass(item, Cell)):
            kinds = "classes of cells and operators" if ops_too else "classes of cells"
            raise TypeError(f"custom_mixed_precision: '{argument}' must hold {kinds}, got {item!r}")
    return [(item.__name__, [c for c in cells if isinstance(c, item)]) for item in classes]


def custom_mixed_precision(network, *, white_list=None, black_list=None, dtype=None):
    """The network with the cells and operators of white_list in half, or with all but the cells of black_list in half.

    Exactly one list must be given, of classes (nn.Dense, ops.MatMul). A class that matches nothing is warned of. Raises
    as auto_mixed_precision does.
    """
    _network(network, "custom_mixed_precision")
    if (white_list is None) == (black_list is None):
        raise ValueError("custom_mixed_precision takes either a white_list or a black_list")
    white = [] if white_list is None else _entries(network, white_list, "white_list", True)
    black = [] if black_list is None else _entries(network, black_list, "black_list", False)
    _core.amp.custom_mixed_precision(network, white, black, dtype)
    return network


def get_white_list():
    """The classes that level O1 computes in half."""
    operators = set(_core.amp.operator_names())
    return [getattr(ops if name in operators else nn, name) for name in _core.amp.get_white_list()]


def get_black_list():
    """The classes that level O2 computes in float32."""
    return [getattr(nn, name) for name in _core.amp.get_black_list()]


_LEVEL_ARGUMENTS = ("cast_model_type", "keep_batchnorm_fp32", "loss_scale_manager")


def build_train_network(network, optimizer, loss_fn=None, level="O0", boost_level="O0", **kwargs):
    """The network at a level with its loss and optimizer as one cell: called with a batch, it trains one step.

    kwargs: keep_batchnorm_fp32; cast_model_type, the half type; loss_scale_manager (default: DynamicLossScaleManager()
    at O2, else None). Raises TypeError and ValueError for what does not go together.
    """
    from undertow.train.model import Model

    _network(network, "build_train_network")
    for name in kwargs:
        if name not in _LEVEL_ARGUMENTS:
            raise ValueError(f"build_train_network: unknown argument '{name}'; known are {', '.join(_LEVEL_ARGUMENTS)}")
    if boost_level != "O0":
        raise ValueError(f"build_train_network: boost_level '{boost_level}' is not supported; use O0")
    dtype = kwargs.get("cast_model_type")
    if dtype is not None and str(dtype) == "Float32":
        level, dtype = "O0", None
    _core.amp.auto_mixed_precision(network, level, dtype, kwargs.get("keep_batchnorm_fp32"))
    manager = kwargs.get("loss_scale_manager", DynamicLossScaleManager() if level == "O2" else None)
    return Model(network, loss_fn, optimizer, loss_scale_manager=manager).train_network
