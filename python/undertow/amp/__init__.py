# SPDX-License-Identifier: Apache-2.0
"""Mixed precision: levels (levels.py), what they do (report.py) and loss scaling (scaling.py)."""

from undertow.amp.levels import (  # noqa: F401
    auto_mixed_precision,
    build_train_network,
    custom_mixed_precision,
    get_black_list,
    get_white_list,
)
from undertow.amp.report import report, watch  # noqa: F401
from undertow.amp.scaling import *  # noqa: F403
