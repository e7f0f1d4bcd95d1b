# SPDX-License-Identifier: Apache-2.0
"""Cells, layers, losses, optimizers and metrics."""

from undertow._core.nn import *  # noqa: F403
