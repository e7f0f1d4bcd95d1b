# SPDX-License-Identifier: Apache-2.0
"""The functions, under their older address."""

from undertow._core.ops import *  # noqa: F403
from undertow._grad import grad, value_and_grad  # noqa: F401
