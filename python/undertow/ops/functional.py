# SPDX-License-Identifier: Apache-2.0
"""The functions, under their older address."""

from undertow._control import cond, fori_loop, scan, while_loop  # noqa: F401
from undertow._core.ops import *  # noqa: F403
from undertow._grad import grad, value_and_grad  # noqa: F401
from undertow._print import print_  # noqa: F401
from undertow.ops._composite import *  # noqa: F403
from undertow.ops._signatures import *  # noqa: F403
