# SPDX-License-Identifier: Apache-2.0
"""Model, callbacks and metrics."""

from undertow._core.nn import Accuracy, Loss, Metric  # noqa: F401
from undertow.train import callback  # noqa: F401
from undertow.train.callback import (  # noqa: F401
    Callback,
    LambdaCallback,
    LossMonitor,
    RunContext,
    TimeMonitor,
)
from undertow.train.model import Model  # noqa: F401
