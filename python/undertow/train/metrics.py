# SPDX-License-Identifier: Apache-2.0
"""What Model.eval measures."""

from undertow._core.nn import Accuracy, Loss, Metric  # noqa: F401
