# SPDX-License-Identifier: Apache-2.0
"""Functions on tensors, and their class forms (ops.ReLU()(x))."""

import sys as _sys

from undertow._control import ForiLoop, Scan, WhileLoop, cond, fori_loop, scan, while_loop  # noqa: F401
from undertow._core.ops import *  # noqa: F403
from undertow._grad import grad, value_and_grad  # noqa: F401
from undertow._print import Print, print_  # noqa: F401
from undertow.ops import _composite, functional, operations  # noqa: F401
from undertow.ops._composite import *  # noqa: F403
from undertow.ops._composite import _primexpr  # noqa: F401
from undertow.ops._refusals import *  # noqa: F403
from undertow.ops._signatures import *  # noqa: F403
from undertow.ops.operations import *  # noqa: F403

# MindSpore keeps some of these names in modules below.
composite = primitive = function = _sys.modules[__name__]
