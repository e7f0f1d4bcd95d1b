# SPDX-License-Identifier: Apache-2.0
"""How parameters get their first values."""

from undertow import _core
from undertow._core import Tensor, float32


class Initializer:
    """Base of initializers: `initializer(init, shape, dtype)` draws from them."""

    def __init__(self, **kwargs):
        self._kwargs = kwargs

    @property
    def _recipe(self):
        raise TypeError(f"{type(self).__name__} cannot be used as an initializer")

    def __repr__(self):
        return f"{type(self).__name__}({', '.join(f'{k}={v}' for k, v in self._kwargs.items())})"


def _define(name, doc, defaults, recipe):
    def __init__(self, *args, **kwargs):
        names = list(defaults)
        if len(args) > len(names):
            raise TypeError(f"{name} takes at most {len(names)} arguments, got {len(args)}")
        given = dict(zip(names, args))
        for key, value in kwargs.items():
            if key not in defaults:
                raise TypeError(f"{name} got an unexpected argument '{key}'; it takes {', '.join(names) or 'none'}")
            if key in given:
                raise TypeError(f"{name} got '{key}' twice")
            given[key] = value
        Initializer.__init__(self, **(defaults | given))

    cls = type(name, (Initializer,), {"__init__": __init__, "__doc__": doc, "__module__": __name__})
    cls._recipe = property(lambda self: recipe(**self._kwargs))
    return cls


Zero = _define("Zero", "Zeros.", {}, lambda: _core._init("Zero"))
One = _define("One", "Ones.", {}, lambda: _core._init("One"))
Identity = _define("Identity", "The identity matrix.", {}, lambda: _core._init("Identity"))
Constant = _define("Constant", "One value.", {"value": 0.0}, lambda value: _core._init("Constant", value))
Normal = _define(
    "Normal",
    "Normal with standard deviation `sigma`.",
    {"sigma": 0.01, "mean": 0.0},
    lambda sigma, mean: _core._init("Normal", sigma, mean),
)
TruncatedNormal = _define(
    "TruncatedNormal",
    "Normal, drawn again outside of [a, b] standard deviations.",
    {"sigma": 0.01, "mean": 0.0, "a": -2.0, "b": 2.0},
    lambda sigma, mean, a, b: _core._init("TruncatedNormal", sigma, mean, a, b),
)
Uniform = _define("Uniform", "U(-scale, scale).", {"scale": 0.07}, lambda scale: _core._init("Uniform", scale))
XavierUniform = _define(
    "XavierUniform", "Glorot's uniform.", {"gain": 1}, lambda gain: _core._init("XavierUniform", gain)
)
XavierNormal = _define("XavierNormal", "Glorot's normal.", {"gain": 1}, lambda gain: _core._init("XavierNormal", gain))
_HE = {"negative_slope": 0, "mode": "fan_in", "nonlinearity": "leaky_relu"}
HeUniform = _define(
    "HeUniform",
    "He's uniform.",
    _HE,
    lambda negative_slope, mode, nonlinearity: _core._init_he(False, negative_slope, mode, nonlinearity),
)
HeNormal = _define(
    "HeNormal",
    "He's normal.",
    _HE,
    lambda negative_slope, mode, nonlinearity: _core._init_he(True, negative_slope, mode, nonlinearity),
)


def initializer(init, shape=None, dtype=float32):
    """A Tensor drawn from `init`: a name ("normal", "zeros", "he_uniform", ...), a number, a Tensor or an Initializer.

    Raises ValueError for an unknown name and for a Tensor of another shape.
    """
    if shape is None:
        if not isinstance(init, Tensor):
            raise ValueError("initializer: shape is needed unless init is a Tensor")
        shape = init.shape
    return _core._initializer(init, shape, float32 if dtype is None else dtype)
