# SPDX-License-Identifier: Apache-2.0
"""What mixed precision does to a network: dtypes of cells, casts of a step, and largest values."""

from undertow import _core
from undertow.nn import Cell


def report(network):
    """The dtype that each cell computes in and why, and the casts that write a tensor in its newest compiled step.

    Printed, it is a table; `cells` and `casts` are lists of rows, and `compiled` says whether there is a step. Raises
    TypeError where network is no Cell.
    """
    if not isinstance(network, Cell):
        raise TypeError(f"amp.report: 'network' must be a Cell, got {type(network).__name__}")
    return _core.amp.report(network)


def watch(model, steps):
    """Shows each cell's largest absolute value in the next `steps` training steps, against the limit of its type.

    It needs not be passed to train. The rows can be read from what it returns. Raises TypeError where model is no
    Model, ValueError for steps below 1.
    """
    core = getattr(model, "_core", None)
    if not isinstance(core, _core.train.Model):
        raise TypeError(f"amp.watch: 'model' must be a Model, got {type(model).__name__}")
    if isinstance(steps, bool) or not isinstance(steps, int):
        raise TypeError(f"amp.watch: 'steps' must be an integer, got {steps!r}")
    return _core.amp.watch(core, steps)
