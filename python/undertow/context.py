# SPDX-License-Identifier: Apache-2.0
"""Process-wide settings: execution mode and device."""

import warnings

from undertow import _core
from undertow.parallel import (  # noqa: F401
    ParallelMode,
    get_auto_parallel_context,
    reset_auto_parallel_context,
    set_auto_parallel_context,
)

GRAPH_MODE, PYNATIVE_MODE = 0, 1

_ON_CPU = "there is one CPU device"
_MEMORY = "a program's memory is planned when it is compiled"
_COMPILER = "every step is compiled as a whole, in one way"
# MindSpore's other settings: default, and why another value changes nothing (None: what it asks for is so anyway).
_OTHERS = {
    "aoe_config": ({}, _ON_CPU),
    "aoe_tune_mode": ("", _ON_CPU),
    "ascend_config": ({}, _ON_CPU),
    "auto_tune_mode": ("NO_TUNE", "kernels are chosen by fixed rules"),
    "check_bprop": (False, "a cell's own gradient is not compared with the recorded one"),
    "compile_cache_path": ("", "machine code is cached in UNDERTOW_CACHE_DIR"),
    "debug_level": ("RELEASE", _COMPILER),
    "deterministic": ("ON", None),
    "device_id": (0, _ON_CPU),
    "enable_compile_cache": (False, None),
    "enable_graph_kernel": (False, None),
    "enable_mem_reuse": (True, None),
    "enable_reduce_precision": (True, None),
    "enable_profiling": (False, "Profiler measures"),
    "enable_sparse": (False, "tensors are dense"),
    "env_config_path": ("", "there is no configuration file"),
    "exec_order": ("dfs", "operations run in the order they were written"),
    "gpu_config": ({}, _ON_CPU),
    "grad_for_scalar": (False, "numbers are constants of a compiled function"),
    "graph_kernel_flags": ("", "fusion has no flags"),
    "inter_op_parallel_num": (0, "operations run one after the other, each on all threads"),
    "jit_config": ({}, _COMPILER),
    "jit_level": ("O0", _COMPILER),
    "jit_syntax_level": ("LAX", _COMPILER),
    "max_call_depth": (1000, None),
    "max_device_memory": ("1024GB", _MEMORY),
    "max_device_memory_fraction": (1.0, _MEMORY),
    "memory_offload": ("OFF", _MEMORY),
    "memory_optimize_level": ("O0", _MEMORY),
    "mempool_block_size": ("1GB", _MEMORY),
    "op_timeout": (900, "operations have no time limit"),
    "precompile_only": (False, "compiling alone is not offered"),
    "print_file_path": ("", "prints go to standard output"),
    "profiling_options": ("", "Profiler measures"),
    "pynative_synchronize": (False, None),
    "reserve_class_name_in_scope": (True, None),
    "runtime_num_threads": (0, "OMP_NUM_THREADS sets the number of threads"),
    "save_dump_path": (".", "UNDERTOW_DUMP=all shows the graph after each pass"),
    "save_graphs": (False, "UNDERTOW_DUMP=all shows the graph after each pass"),
    "save_graphs_path": (".", "UNDERTOW_DUMP=all shows the graph after each pass"),
    "support_binary": (False, "scripts run from source"),
    "variable_memory_max_size": ("", _MEMORY),
}
_settings = {name: default for name, (default, _) in _OTHERS.items()}
_told = set()


def set_context(mode=None, device_target=None, strict_device=None, half=None, **settings):
    """Changes settings; those that are left out stay as they are.

    mode: GRAPH_MODE or PYNATIVE_MODE. device_target: "CPU" or "reference"; "Ascend" and "GPU" run on the CPU with one
    warning, or raise DeviceError under strict_device=True. half: the half type of mixed precision, "float16",
    "bfloat16" or "auto" (the one that the device is fast in; without one, levels compute in float32). MindSpore's other
    settings are accepted; those without effect are noted once. Raises DeviceError for an unknown device and ValueError
    for an unknown setting, before anything changes.
    """
    for name in settings:
        if name not in _OTHERS:
            raise ValueError(f"set_context: unknown setting '{name}'; known are {', '.join(_OTHERS)}")
    if mode is not None and (isinstance(mode, bool) or not isinstance(mode, int)):
        raise TypeError(f"set_context: mode must be GRAPH_MODE or PYNATIVE_MODE, got {mode!r}")
    if half is not None and not isinstance(half, str):
        raise TypeError(f'set_context: half must be "auto", "float16" or "bfloat16", got {half!r}')
    _core._set_context(mode, device_target, strict_device, half)
    for name, value in settings.items():
        default, why = _OTHERS[name]
        if value != default and why and name not in _told:
            _told.add(name)
            warnings.warn(f"set_context: '{name}' changes nothing in Undertow: {why}", stacklevel=2)
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
    _core._set_context(PYNATIVE_MODE, "CPU", False, "auto")
    _settings.update((name, default) for name, (default, _) in _OTHERS.items())
