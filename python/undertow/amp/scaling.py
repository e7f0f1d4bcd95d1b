# SPDX-License-Identifier: Apache-2.0
"""Loss scaling: the scalers, the managers, and the check for finite gradients."""

from undertow._refused import refuse as _refuse

_REASON = "loss scaling is not there yet"
_NAMES = [
    "DynamicLossScaleManager",
    "DynamicLossScaler",
    "FixedLossScaleManager",
    "LossScaleManager",
    "LossScaler",
    "StaticLossScaler",
    "all_finite",
    "init_status",
]
globals().update(_refuse("undertow.amp", dict.fromkeys(_NAMES, _REASON)))
