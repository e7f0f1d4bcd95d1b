# SPDX-License-Identifier: Apache-2.0
"""How parameters get their first values."""

from undertow import _core
from undertow._core import Tensor, float32


class Initializer:
    """Base of initializers: `initializer(init, shape, dtype)` draws from them.

    A class of one's own overrides `_initialize(self, arr)`, which fills the array that it gets.
    """

    def __init__(self, **kwargs):
        self._kwargs = kwargs
        self.__dict__.update(kwargs)

    def _initialize(self, arr):
        if type(self)._recipe is Initializer._recipe:
            raise NotImplementedError(f"{type(self).__name__} must override _initialize(self, arr)")
        arr[...] = _core._initializer(self, arr.shape, float32).asnumpy()

    @property
    def _recipe(self):
        return _core._init_function(self._initialize)

    def __call__(self, arr):
        """Fills an array."""
        return self._initialize(arr)

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
        filled = defaults | given
        for key, value in filled.items():
            if value is ...:
                raise TypeError(f"{name} needs the argument '{key}'")
        recipe(**filled)  # wrong values are refused here
        Initializer.__init__(self, **filled)

    cls = type(name, (Initializer,), {"__init__": __init__, "__doc__": doc, "__module__": __name__})
    drawn = property(lambda self: recipe(**self._kwargs))
    # A derived class with an _initialize of its own is drawn by that.
    cls._recipe = property(
        lambda self: (
            drawn.__get__(self)
            if type(self)._initialize is Initializer._initialize
            else Initializer._recipe.__get__(self)
        )
    )
    return cls


Zero = _define("Zero", "Zeros.", {}, lambda: _core._init("Zero"))
One = _define("One", "Ones.", {}, lambda: _core._init("One"))
Identity = _define("Identity", "The identity matrix.", {}, lambda: _core._init("Identity"))
Constant = _define("Constant", "One value.", {"value": ...}, lambda value: _core._init("Constant", value))
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
Sparse = _define(
    "Sparse",
    "Normal with standard deviation `sigma`; a part `sparsity` of each column is zero. Two dimensions.",
    {"sparsity": ..., "sigma": 0.01},
    lambda sparsity, sigma: _core._init("Sparse", sparsity, sigma),
)
Dirac = _define(
    "Dirac", "The identity of a convolution.", {"groups": 1}, lambda groups: _core._init("Dirac", float(groups))
)
Orthogonal = _define(
    "Orthogonal", "Orthonormal rows or columns.", {"gain": 1.0}, lambda gain: _core._init("Orthogonal", gain)
)
VarianceScaling = _define(
    "VarianceScaling",
    "Variance scale / fan.",
    {"scale": 1.0, "mode": "fan_in", "distribution": "truncated_normal"},
    lambda scale, mode, distribution: _core._init_variance(scale, mode, distribution),
)


def _calculate_fan_in_and_fan_out(shape):
    """Numbers of inputs and outputs of a weight of this shape."""
    return _core._fans(tuple(shape))


def _calculate_correct_fan(shape, mode):
    mode = mode.lower()
    if mode not in ("fan_in", "fan_out"):
        raise ValueError(f"mode must be 'fan_in' or 'fan_out', got '{mode}'")
    return _calculate_fan_in_and_fan_out(shape)[mode == "fan_out"]


def _calculate_gain(nonlinearity, param=None):
    return _core._gain(nonlinearity, 0.01 if param is None else param)


calculate_gain = _calculate_gain


def initializer(init, shape=None, dtype=float32):
    """A Tensor drawn from `init`: a name ("normal", "zeros", "he_uniform", ...), a number, a Tensor or an Initializer.

    Raises ValueError for an unknown name and for a Tensor of another shape.
    """
    if shape is None:
        if not isinstance(init, Tensor):
            raise ValueError("initializer: shape is needed unless init is a Tensor")
        shape = init.shape
    if isinstance(shape, int):
        shape = (shape,)
    if not isinstance(init, (str, Tensor, Initializer, int, float)) or isinstance(init, bool):
        raise TypeError(
            f"initializer: init must be a name, a number, a Tensor or an Initializer, got {type(init).__name__}"
        )
    return _core._initializer(init, shape, float32 if dtype is None else dtype)
