# SPDX-License-Identifier: Apache-2.0
"""Cells, layers, losses, optimizers and metrics."""

from undertow._core import nn as _layers
from undertow._core.nn import *  # noqa: F403

for _class in vars(_layers).values():
    if isinstance(_class, type):
        _class.__module__ = "undertow.nn"
