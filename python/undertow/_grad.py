# SPDX-License-Identifier: Apache-2.0
"""Gradients of functions."""

import functools

from undertow import _core
from undertow._core import Parameter, Tensor


def _weights(weights):
    if weights is None:
        return None
    items = [weights] if isinstance(weights, Tensor) else list(weights)
    for i, w in enumerate(items):
        if not isinstance(w, Parameter):
            raise TypeError(f"weights[{i}] must be a Parameter, got {type(w).__name__}")
    return items


def _differentiate(fn, grad_position, weights, has_aux, return_ids, arrange):
    if grad_position is None and weights is None:
        raise ValueError("grad_position and weights are both None: there is nothing to differentiate with respect to")
    if not callable(fn):
        raise TypeError(f"the function to differentiate must be callable, got {type(fn).__name__}")
    single = isinstance(grad_position, int)
    positions = [] if grad_position is None else [grad_position] if single else list(grad_position)
    parameters = _weights(weights)
    one_weight = isinstance(weights, Tensor)

    @functools.wraps(fn, updated=())
    def differentiated(*args, **kwargs):
        result, by_position, by_weight = _core._value_and_grad(fn, args, kwargs, positions, parameters or [], has_aux)
        if return_ids:
            by_position = tuple(zip(positions, by_position))
            by_weight = tuple((p.name, g) for p, g in zip(parameters or (), by_weight))
        inputs = by_position[0] if single else by_position
        params = by_weight[0] if one_weight else by_weight
        if grad_position is None:
            grads = params
        elif parameters is None:
            grads = inputs
        else:
            grads = (inputs, params)
        return arrange(result, grads)

    return differentiated


def value_and_grad(fn, grad_position=0, weights=None, has_aux=False, return_ids=False):
    """A function that returns (value, gradients) of `fn`.

    grad_position: the argument(s) to differentiate with respect to: an int gives one Tensor, a tuple gives a tuple,
    None none. weights: Parameters, whose gradients come as a tuple; with both, gradients are (inputs, weights).
    has_aux: only the first output is differentiated; the value is the whole tuple. An output of several elements is
    summed. Raises ValueError where both are None, TypeError where an argument is not a Tensor.
    """
    return _differentiate(fn, grad_position, weights, has_aux, return_ids, lambda result, grads: (result, grads))


def grad(fn, grad_position=0, weights=None, has_aux=False, return_ids=False):
    """As value_and_grad, without the value; with has_aux: (gradients, the other outputs)."""

    def arrange(result, grads):
        return (grads, *_others(result)) if has_aux else grads

    def _others(result):
        rest = tuple(result[1:])
        return (rest,)

    return _differentiate(fn, grad_position, weights, has_aux, return_ids, arrange)
