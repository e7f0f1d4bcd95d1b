# SPDX-License-Identifier: Apache-2.0
"""Cells, layers, losses, optimizers and metrics."""

from undertow import _modules
from undertow._core import nn as _layers
from undertow._core.nn import *  # noqa: F403
from undertow.nn import _signature
from undertow.nn._cell_dict import CellDict  # noqa: F401
from undertow.nn._training import ForwardValueAndGrad, opt_init_args_register  # noqa: F401

for _class in vars(_layers).values():
    if isinstance(_class, type):
        _class.__module__ = "undertow.nn"
        _signature.give(_class)


def __getattr__(name):
    """Metrics that are written in Python live in train.metrics, which needs this module."""
    from undertow.train import metrics

    if name in metrics.__all__:
        return getattr(metrics, name)
    return _modules.below("nn", name)
