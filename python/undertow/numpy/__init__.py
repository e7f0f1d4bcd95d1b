# SPDX-License-Identifier: Apache-2.0
"""NumPy's names on Tensors: thin over undertow.ops.

Arguments that are not Tensors are converted: Python integers give int32, floats float32; arrays keep their dtype.
"""

from undertow._core import (  # noqa: F401
    bool_,
    float16,
    float32,
    float64,
    int8,
    int16,
    int32,
    int64,
    uint8,
    uint16,
    uint32,
    uint64,
)
from undertow.numpy._creation import *  # noqa: F403
from undertow.numpy._functions import *  # noqa: F403
from undertow.numpy._positions import *  # noqa: F403
from undertow.numpy._shapes import *  # noqa: F403
