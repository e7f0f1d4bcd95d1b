# SPDX-License-Identifier: Apache-2.0
"""Functions on tensors, and their class forms (ops.ReLU()(x))."""

from undertow._core.ops import *  # noqa: F403
from undertow._grad import grad, value_and_grad  # noqa: F401
from undertow.ops.primitives import *  # noqa: F403
