# SPDX-License-Identifier: Apache-2.0
"""Process-wide settings: execution mode and device."""

import warnings

from undertow import _core

GRAPH_MODE, PYNATIVE_MODE = 0, 1

# MindSpore's other settings: kept so that get_context gives them back, without effect here.
_NOTED = {
    "device_id": 0,
    "save_graphs": False,
    "save_graphs_path": ".",
    "enable_graph_kernel": False,
    "graph_kernel_flags": "",
    "max_call_depth": 1000,
    "max_device_memory": "1024GB",
    "mempool_block_size": "1GB",
    "memory_optimize_level": "O0",
    "memory_offload": "OFF",
    "enable_compile_cache": False,
    "compile_cache_path": "",
    "jit_config": {},
    "jit_level": "O0",
    "jit_syntax_level": "LAX",
    "deterministic": "ON",
    "pynative_synchronize": False,
    "print_file_path": "",
    "precompile_only": False,
    "reserve_class_name_in_scope": True,
    "enable_reduce_precision": True,
    "runtime_num_threads": 0,
    "ascend_config": {},
    "gpu_config": {},
    "env_config_path": "",
    "variable_memory_max_size": "",
    "auto_tune_mode": "NO_TUNE",
    "inter_op_parallel_num": 0,
    "max_device_memory_fraction": 1.0,
}
_settings = dict(_NOTED)
_told = set()


def set_context(mode=None, device_target=None, strict_device=None, **settings):
    """Changes settings; those that are left out stay as they are.

    mode: GRAPH_MODE or PYNATIVE_MODE. device_target: "CPU" or "reference"; "Ascend" and "GPU" run on the CPU with one
    warning, or raise DeviceError under strict_device=True. MindSpore's other settings are accepted; those without
    effect are noted once. Raises DeviceError for an unknown device and ValueError for an unknown setting, before
    anything changes.
    """
    for name in settings:
        if name not in _NOTED:
            raise ValueError(f"set_context: unknown setting '{name}'; known are {', '.join(sorted(_NOTED))}")
    if mode is not None and (isinstance(mode, bool) or not isinstance(mode, int)):
        raise TypeError(f"set_context: mode must be GRAPH_MODE or PYNATIVE_MODE, got {mode!r}")
    _core._set_context(mode, device_target, strict_device)
    for name, value in settings.items():
        if value != _NOTED[name] and name not in _told:
            _told.add(name)
            warnings.warn(f"set_context: '{name}' has no effect in Undertow", stacklevel=2)
        _settings[name] = value


def get_context(attr_key):
    """The setting of that name. Raises ValueError for an unknown one."""
    if attr_key in _settings:
        return _settings[attr_key]
    value = _core._context(attr_key)
    if value is None:
        raise ValueError(f"get_context: unknown setting '{attr_key}'")
    return value


def set_device(device_target, device_id=None):
    """Chooses the device: "CPU" or "reference"."""
    set_context(device_target=device_target)
    if device_id is not None:
        _settings["device_id"] = device_id


def reset_context():
    """All settings as at the start."""
    _core._set_context(PYNATIVE_MODE, "CPU", False)
    _settings.update(_NOTED)
