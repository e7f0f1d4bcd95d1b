# SPDX-License-Identifier: Apache-2.0
"""Levels of mixed precision. Networks compute in the dtypes of their tensors for now; levels above O0 are refused."""

from undertow._refused import refuse as _refuse
from undertow.nn import Cell

_REASON = "mixed precision is not there yet; train at level O0"
globals().update(
    _refuse(
        "undertow.amp",
        dict.fromkeys(("build_train_network", "custom_mixed_precision", "get_white_list", "get_black_list"), _REASON),
    )
)


def auto_mixed_precision(network, amp_level="O0", dtype=None):
    """The network at a level of mixed precision; O0 changes nothing.

    Raises TypeError where network is no Cell, ValueError for an unknown level, NotImplementedError above O0.
    """
    if not isinstance(network, Cell):
        raise TypeError(f"auto_mixed_precision: network must be a Cell, got {type(network).__name__}")
    if amp_level not in ("O0", "O1", "O2", "O3", "auto"):
        raise ValueError(f"auto_mixed_precision: the level must be O0, O1, O2, O3 or auto, got {amp_level!r}")
    if amp_level != "O0":
        raise NotImplementedError(f"auto_mixed_precision: level {amp_level}: {_REASON}")
    return network
