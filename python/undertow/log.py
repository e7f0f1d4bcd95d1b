# SPDX-License-Identifier: Apache-2.0
"""Messages of a script: one logger named "undertow", whose level the variable GLOG_v sets (0 debug ... 4 critical)."""

import logging as _logging
import os as _os
import sys as _sys

_LEVELS = {"0": _logging.DEBUG, "1": _logging.INFO, "2": _logging.WARNING, "3": _logging.ERROR, "4": _logging.CRITICAL}

_logger = _logging.getLogger("undertow")
if not _logger.handlers:
    _handler = _logging.StreamHandler(_sys.stderr)
    _handler.setFormatter(_logging.Formatter("[%(levelname)s] %(asctime)s %(filename)s:%(lineno)d %(message)s"))
    _logger.addHandler(_handler)
    _logger.propagate = False
    _logger.setLevel(_LEVELS.get(_os.environ.get("GLOG_v", "2"), _logging.WARNING))  # noqa: SIM112

debug, info, warning = _logger.debug, _logger.info, _logger.warning
error, critical = _logger.error, _logger.critical


def get_level():
    """The level as GLOG_v writes it: "0" (debug) to "4" (critical)."""
    return next((text for text, level in _LEVELS.items() if level == _logger.level), "2")


def set_level(level):
    """Sets the level: "0" (debug) to "4" (critical), or one of Python's logging levels."""
    _logger.setLevel(_LEVELS.get(str(level), level))


def get_log_config():
    """The settings of the logger."""
    return {"GLOG_v": get_level(), "GLOG_logtostderr": "1"}
