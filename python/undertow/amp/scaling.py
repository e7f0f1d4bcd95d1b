# SPDX-License-Identifier: Apache-2.0
"""Loss scaling: the scalers, the managers, and the check for finite gradients."""

from abc import ABC, abstractmethod

from undertow._core import Tensor
from undertow._core import train as _train
from undertow._core.nn import Cell
from undertow._core.train import (
    DynamicLossScaleManager,
    DynamicLossScaler,
    FixedLossScaleManager,
    StaticLossScaler,
)

__all__ = [
    "DynamicLossScaleManager",
    "DynamicLossScaler",
    "FixedLossScaleManager",
    "LossScaleManager",
    "LossScaler",
    "StaticLossScaler",
    "all_finite",
    "init_status",
]


class LossScaleManager:
    """Base of managers that users write for Model: how the loss is scaled.

    get_loss_scale() gives the scale to start with. get_update_cell() gives a Cell that every step calls with
    (loss_scale, overflow), which may assign the Parameter loss_scale and returns whether the step is skipped; or None,
    and no step is skipped. update_loss_scale(overflow) is the rule for loops on the host.
    """

    def get_loss_scale(self):
        raise NotImplementedError(f"{type(self).__name__} must define get_loss_scale")

    def update_loss_scale(self, overflow):
        raise NotImplementedError(f"{type(self).__name__} must define update_loss_scale")

    def get_update_cell(self):
        raise NotImplementedError(f"{type(self).__name__} must define get_update_cell")


class LossScaler(ABC):
    """Base of scalers that users write: scale and unscale Tensors or tuples of them, and adjust after a step."""

    @abstractmethod
    def scale(self, inputs):
        """The inputs times the scale."""

    @abstractmethod
    def unscale(self, inputs):
        """The inputs divided by the scale."""

    @abstractmethod
    def adjust(self, grads_finite):
        """Called after a step, with whether its gradients were finite."""


for _class in (DynamicLossScaler, StaticLossScaler):
    LossScaler.register(_class)
    _class.__module__ = "undertow.amp"
for _class in (DynamicLossScaleManager, FixedLossScaleManager):
    _class.__module__ = "undertow.amp"


def parts_of(manager, function):
    """What the core takes of a loss scale manager, ours or a user's: (scale to start with, update cell)."""
    if manager is None:
        return None, None
    if not isinstance(manager, (DynamicLossScaleManager, FixedLossScaleManager, LossScaleManager)):
        raise TypeError(f"{function}: 'loss_scale_manager' must be a LossScaleManager, got {type(manager).__name__}")
    cell = manager.get_update_cell()
    if cell is not None and not isinstance(cell, Cell):
        raise TypeError(
            f"{function}: get_update_cell of {type(manager).__name__} must give a Cell or None, "
            f"got {type(cell).__name__}"
        )
    return float(manager.get_loss_scale()), cell


def all_finite(inputs, status=None):
    """Whether every element of every Tensor of a tuple or list is finite: a bool Tensor of one element.

    `status` (see init_status) is of no effect. Raises TypeError for what is no Tensor.
    """
    items = [inputs] if isinstance(inputs, Tensor) else inputs
    if not isinstance(items, (tuple, list)):
        raise TypeError(f"all_finite takes a tuple or list of Tensors, got {type(inputs).__name__}")
    for i, item in enumerate(items):
        if not isinstance(item, Tensor):
            raise TypeError(f"all_finite: item {i} must be a Tensor, got {type(item).__name__}")
    return _train.all_finite(list(items))


def init_status():
    """A Tensor for all_finite's `status`, which devices without a status register do not need."""
    return Tensor([0.0] * 8)
