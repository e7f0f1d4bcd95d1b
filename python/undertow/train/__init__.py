# SPDX-License-Identifier: Apache-2.0
"""Model, callbacks and metrics."""

from undertow._refused import refuse as _refuse
from undertow.amp import DynamicLossScaleManager, FixedLossScaleManager, LossScaleManager  # noqa: F401
from undertow.train import callback, metrics  # noqa: F401
from undertow.train._data_sink import data_sink  # noqa: F401
from undertow.train.callback import *  # noqa: F403
from undertow.train.checkpoint import CheckpointConfig, ModelCheckpoint  # noqa: F401
from undertow.train.metrics import *  # noqa: F403
from undertow.train.model import Model  # noqa: F401
from undertow.train.serialization import (  # noqa: F401
    export,
    load_checkpoint,
    load_checkpoint_async,
    load_param_into_net,
    save_checkpoint,
)

globals().update(
    _refuse(
        __name__,
        {
            "TrainFaultTolerance": "it is for clusters of Ascend devices; ModelCheckpoint and OnRequestExit save a run",
            "SummaryRecord": "event files are not there yet",
            "SummaryLandscape": "event files are not there yet",
            "SummaryCollector": "use callbacks: step_losses and step_learning_rates hold what a run did",
        },
    )
)
