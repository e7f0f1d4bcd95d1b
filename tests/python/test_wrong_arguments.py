# SPDX-License-Identifier: Apache-2.0
"""A wrong argument is named, with what it takes and what it got."""

import numpy as np
import pytest

import undertow as ut
from undertow import Tensor, _arguments, _core, nn, ops

X = Tensor(np.ones((2, 3), np.float32))


@pytest.mark.parametrize(
    "call, text",
    [
        (lambda: ops.relu("a"), "relu: 'input' must be a Tensor, but is the str 'a'"),
        (lambda: ops.softmax(X, axis="a"), "softmax: 'axis' must be an int, but is the str 'a'"),
        (lambda: ops.softmax(X, 1, 2), "softmax takes at most 2 arguments (input, axis), got 3"),
        (lambda: ops.softmax(X, axes=1), "softmax has no argument 'axes'; did you mean 'axis'? It takes input, axis"),
        (lambda: ops.softmax(X, 1, axis=1), "softmax got the argument 'axis' twice"),
        (lambda: ops.softmax(), "softmax needs the argument 'input' (a Tensor)"),
        (lambda: ops.broadcast_to(X, 2.5), "broadcast_to: 'shape' must be"),
        (lambda: ops.where(X, X, "b"), "where: 'other' must be a Tensor or a number, but is the str 'b'"),
        (lambda: ops.MatMul(transpose_a=1), "ops.MatMul: 'transpose_a' must be True or False, but is the int 1"),
        (lambda: X.reshape(1, "a"), "expected ints or a sequence of ints, got (1, 'a')"),
        (lambda: ops.rand(2, "a"), "size must be ints or a tuple of ints, got (2, 'a')"),
        (lambda: nn.Dense("a", 3), "Dense: 'in_channels' must be an int, but is the str 'a'"),
        (
            lambda: nn.Dense(3, 3, has_bias=X),
            "Dense: 'has_bias' must be True or False, but is a Tensor of shape (2, 3)",
        ),
        (lambda: nn.Dense(3), "Dense needs the argument 'out_channels' (an int)"),
        (
            lambda: nn.Conv2d(3, 4, "3"),
            "Conv2d: 'kernel_size' must be an int or a sequence of ints, but is the str '3'",
        ),
        (lambda: nn.Dropout(p="a"), "Dropout: 'p' must be a number or None, but is the str 'a'"),
        (lambda: nn.LSTM(3, 4, layers=2), "LSTM has no argument 'layers'; did you mean 'num_layers'? It takes"),
        (
            lambda: nn.Momentum(nn.Dense(2, 2).trainable_params(), 0.1),
            "Momentum needs the argument 'momentum' (a number)",
        ),
    ],
)
def test_the_argument_is_named(call, text):
    with pytest.raises(TypeError) as error:
        call()
    assert text in str(error.value) and "\n" not in str(error.value)


class Alien:
    def __repr__(self):
        return "Alien()"


def required(function, skip):
    """The parameters without default of a function's only form."""
    if len(function.__nb_signature__) != 1:
        return []
    parameters, _, _ = _arguments.parameters_of(function.__nb_signature__[0])
    return [p for p in parameters[skip:] if not p.optional]


FUNCTIONS = {n: f for n, f in vars(_core.ops).items() if hasattr(f, "__nb_signature__") and not n.startswith("_")}
CLASSES = {
    n: c
    for n, c in vars(_core.nn).items()
    if isinstance(c, type) and hasattr(vars(c).get("__init__"), "__nb_signature__")
}
TYPED = [(n, f, required(f, 0)) for n, f in FUNCTIONS.items()]
TYPED += [(n, c, required(vars(c)["__init__"], 1)) for n, c in CLASSES.items()]
TYPED = [row for row in TYPED if any(p.takes not in ("", "object", "object | None") for p in row[2])]


@pytest.mark.parametrize("name, call, parameters", TYPED, ids=[row[0] for row in TYPED])
def test_every_typed_argument(name, call, parameters):
    with pytest.raises(TypeError) as error:
        call(*[Alien()] * len(parameters))
    first = next(p for p in parameters if p.takes not in ("", "object", "object | None", "collections.abc.Callable"))
    message = str(error.value)
    assert message.startswith(f"{name}: '{first.name}' must be ") and "Alien" in message
    assert "_core" not in message and "|" not in message


def test_there_are_many():
    assert len(TYPED) > 300


def test_other_errors_stay():
    with pytest.raises(ValueError, match="axis 5 is out of range"):
        ops.softmax(X, 5)

    def broken(x):
        raise TypeError("incompatible with my wishes")

    with pytest.raises(TypeError, match="^incompatible with my wishes"):
        ut.grad(broken)(X)
