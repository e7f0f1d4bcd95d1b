# SPDX-License-Identifier: Apache-2.0
"""Parameters, seeds and dtypes."""

import numpy as _np

from undertow import _core
from undertow._core import Parameter, Tensor  # noqa: F401
from undertow._refused import refuse as _refuse
from undertow.common import dtype, initializer, parameter  # noqa: F401
from undertow.common.dtype import dtype_to_nptype  # noqa: F401
from undertow.common.parameter import ParameterTuple  # noqa: F401

globals().update(
    _refuse(__name__, dict.fromkeys(("RowTensor", "COOTensor", "CSRTensor", "RowTensorInner"), "tensors are dense"))
)

_seed = None


def set_seed(seed):
    """Seeds Undertow's, NumPy's and Python's generators. Raises TypeError for a non-integer, ValueError below 0."""
    import random

    global _seed
    if isinstance(seed, bool) or not isinstance(seed, (int, _np.integer)):
        raise TypeError(f"set_seed: the seed must be an integer, got {type(seed).__name__}")
    if seed < 0:
        raise ValueError(f"set_seed: the seed must not be negative, got {seed}")
    _seed = int(seed)
    _core._set_seed(_seed)
    _np.random.seed(_seed % 2**32)  # noqa: NPY002
    random.seed(_seed)


def get_seed():
    """The seed that was set, or None."""
    return _seed


def mutable(value, dynamic_len=False):
    """The value itself: constants of a compiled function are told apart by their values anyway."""
    return value
