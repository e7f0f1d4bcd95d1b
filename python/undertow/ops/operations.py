# SPDX-License-Identifier: Apache-2.0
"""The class forms, under their older address."""

from undertow.ops.primitives import *  # noqa: F403
