# SPDX-License-Identifier: Apache-2.0
"""MindSpore's boost: nothing of it is needed here, where every step is compiled as a whole."""

from undertow._refused import refuse as _refuse

_REASON = "boost modes change the training algorithm; use amp_level and dataset_sink_mode"
globals().update(_refuse(__name__, dict.fromkeys(
    ("AutoBoost", "GradientAccumulation", "GradientFreeze", "LessBN", "OptimizerProcess", "ParameterProcess",
     "gradient_accumulation_op", "gradient_clear_op", "BoostTrainOneStepCell", "BoostTrainOneStepWithLossScaleCell"),
    _REASON,
)))  # fmt: skip
