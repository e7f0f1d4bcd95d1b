# SPDX-License-Identifier: Apache-2.0
"""Settings of training on several devices. Undertow runs in one process; the settings are kept and given back."""


class ParallelMode:
    """Ways to share out the work. With one process all of them mean the same."""

    STAND_ALONE = "stand_alone"
    DATA_PARALLEL = "data_parallel"
    HYBRID_PARALLEL = "hybrid_parallel"
    SEMI_AUTO_PARALLEL = "semi_auto_parallel"
    AUTO_PARALLEL = "auto_parallel"
    MODE_LIST = [STAND_ALONE, DATA_PARALLEL, HYBRID_PARALLEL, SEMI_AUTO_PARALLEL, AUTO_PARALLEL]


_DEFAULTS = {
    "device_num": 1,
    "global_rank": 0,
    "gradients_mean": False,
    "gradient_fp32_sync": True,
    "parallel_mode": ParallelMode.STAND_ALONE,
    "auto_parallel_search_mode": "recursive_programming",
    "search_mode": "recursive_programming",
    "parameter_broadcast": False,
    "strategy_ckpt_load_file": "",
    "strategy_ckpt_save_file": "",
    "full_batch": False,
    "dataset_strategy": "data_parallel",
    "enable_parallel_optimizer": False,
    "parallel_optimizer_config": {},
    "force_fp32_communication": False,
    "enable_alltoall": False,
    "all_reduce_fusion_config": [],
    "pipeline_stages": 1,
    "pipeline_config": {},
    "grad_accumulation_step": 1,
    "auto_parallel_new_interface": False,
    "comm_fusion": {},
    "strategy_ckpt_config": {},
    "group_ckpt_save_file": "",
}
_settings = dict(_DEFAULTS)


def set_auto_parallel_context(**settings):
    """Keeps the settings. Raises ValueError for an unknown one, an unknown parallel_mode, or more than one device."""
    for name, value in settings.items():
        if name not in _DEFAULTS:
            raise ValueError(f"set_auto_parallel_context: unknown setting '{name}'; known are {', '.join(_DEFAULTS)}")
        if name == "parallel_mode" and value not in ParallelMode.MODE_LIST:
            raise ValueError(
                f"set_auto_parallel_context: parallel_mode must be one of {ParallelMode.MODE_LIST}, got {value!r}"
            )
        if name in ("device_num", "pipeline_stages") and value != 1:
            raise ValueError(
                f"set_auto_parallel_context: {name} must be 1, got {value!r}: Undertow trains in one process for now"
            )
    _settings.update(settings)


def get_auto_parallel_context(attr_key):
    """The setting of that name. Raises ValueError for an unknown one."""
    if attr_key not in _DEFAULTS:
        raise ValueError(f"get_auto_parallel_context: unknown setting '{attr_key}'; known are {', '.join(_DEFAULTS)}")
    return _settings[attr_key]


def reset_auto_parallel_context():
    """All settings as at the start."""
    _settings.clear()
    _settings.update(_DEFAULTS)
