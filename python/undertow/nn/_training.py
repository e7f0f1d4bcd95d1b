# SPDX-License-Identifier: Apache-2.0
"""What optimizers and training cells written in Python need."""

import functools
import inspect

from undertow import _grad, ops
from undertow._core import Parameter, Tensor
from undertow._core.nn import Cell


def opt_init_args_register(init):
    """A decorator of `__init__`: keeps its arguments in init_args, init_params and init_learning_rate."""
    signature = inspect.signature(init)

    @functools.wraps(init)
    def wrapped(self, *args, **kwargs):
        bound = signature.bind(self, *args, **kwargs)
        bound.apply_defaults()
        given = dict(list(bound.arguments.items())[1:])
        init(self, *args, **kwargs)
        if "params" in given:
            self.init_params = {"params": given.pop("params")}
        if "learning_rate" in given:
            rate = given.pop("learning_rate")
            self.init_learning_rate = (
                None if isinstance(rate, Cell) else rate.tolist() if isinstance(rate, Tensor) else rate
            )
        self.init_args = given

    return wrapped


def _describe_optimizer(attributes):
    """Adds the class-form ops that such optimizers call as attributes of theirs."""
    attributes.update(
        assignadd=ops.AssignAdd(),
        map_=ops.Map(),
        map_reverse=ops.Map(None, True),
        hyper_map=ops.HyperMap(),
        hyper_map_reverse=ops.HyperMap(None, True),
    )


def _describe_step(cell, sens, has_sens, return_grad):
    """Sets what classes derived from TrainOneStepCell read."""
    cell.__dict__.update(
        weights=cell.optimizer.parameters,
        sens=sens,
        sense_flag=has_sens,
        return_grad=return_grad,
        reducer_flag=False,
        grad_reducer=lambda grads: grads,
        grad=ops.GradOperation(get_by_list=True, sens_param=True),
        grad_no_sens=ops.GradOperation(get_by_list=True),
    )


def _describe_scaled_step(cell, updates):
    """Sets what classes derived from TrainOneStepWithLossScaleCell read."""
    _describe_step(cell, 1.0, True, False)
    cell.__dict__.update(hyper_map=ops.HyperMap(), is_distributed=False, enable_tuple_broaden=True)
    if not updates:
        cell.__dict__["loss_scaling_manager"] = None


class ForwardValueAndGrad(Cell):
    """ForwardValueAndGrad(network, weights=None, get_all=False, get_by_list=False, sens_param=False)

    Called with the network's inputs it gives (value, gradients): of the first input; of all inputs with get_all; of
    `weights` with get_by_list; of (inputs, weights) with both. With sens_param the last input is a factor on the value.
    Raises TypeError for arguments of other types.
    """

    def __init__(self, network, weights=None, get_all=False, get_by_list=False, sens_param=False):
        super().__init__(auto_prefix=False)
        if not callable(network):
            raise TypeError(
                f"ForwardValueAndGrad: 'network' must be a Cell or a function, got {type(network).__name__}"
            )
        for name, value in (("get_all", get_all), ("get_by_list", get_by_list), ("sens_param", sens_param)):
            if not isinstance(value, bool):
                raise TypeError(f"ForwardValueAndGrad: '{name}' must be a bool, got {type(value).__name__}")
        if get_by_list and (isinstance(weights, Parameter) or not isinstance(weights, (tuple, list))):
            raise TypeError(
                f"ForwardValueAndGrad: with get_by_list, 'weights' must be a list of Parameters, "
                f"got {type(weights).__name__}"
            )
        self.network = network
        self.weights = tuple(weights) if get_by_list else None
        self.get_all, self.get_by_list, self.sens_param = get_all, get_by_list, sens_param

    def construct(self, *inputs):
        sens = 1.0
        if self.sens_param:
            *inputs, sens = inputs
        position = tuple(range(len(inputs))) if self.get_all else None if self.get_by_list else 0

        def forward(*args):
            out = self.network(*args)
            first = out[0] if isinstance(out, (tuple, list)) else out
            return first * sens, out

        (_, out), grads = _grad.value_and_grad(forward, position, self.weights, has_aux=True)(*inputs)
        return out, grads
