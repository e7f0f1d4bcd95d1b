# SPDX-License-Identifier: Apache-2.0
"""Settings that pipelines take as their defaults. They are read when a pipeline or an iterator is created.

Those of the second half are MindSpore's: they are kept and given back, and change nothing here.
"""

import enum as _enum
import json as _json
import random as _random

import numpy as _np

from undertow._core import data as _data


class ErrorSamplesMode(_enum.IntEnum):
    """What becomes of a row whose operation fails: RETURN raises the error, which is the only one supported."""

    RETURN, REPLACE, SKIP = 0, 1, 2


def _integer(value, what, least, most=2**63 - 1):
    if isinstance(value, bool) or not isinstance(value, (int, _np.integer)):
        raise TypeError(f"config.{what} must be an integer, got {value!r}")
    if not least <= value <= most:
        raise ValueError(f"config.{what} must be in [{least}, {most}], got {value}")
    return int(value)


def set_seed(seed):
    """Seeds shuffles and random operations, and NumPy's and Python's global generators."""
    seed = _integer(seed, "set_seed: the seed", 0, 2**32 - 1)
    _data.set_config("seed", seed)
    _np.random.seed(seed)  # noqa: NPY002
    _random.seed(seed)


def get_seed():
    return _data.config("seed")


def set_num_parallel_workers(num):
    """Workers of operations that name none."""
    if _integer(num, "set_num_parallel_workers: the number", -(2**62)) < 1:
        raise ValueError(f"config.set_num_parallel_workers: the number must be positive, got {num}")
    _data.set_config("num_parallel_workers", num)


def get_num_parallel_workers():
    return _data.config("num_parallel_workers")


def set_prefetch_size(size):
    """Batches that an iterator keeps ready."""
    _data.set_config("prefetch_size", _integer(size, "set_prefetch_size: the size", 1, 2**31 - 1))


def get_prefetch_size():
    return _data.config("prefetch_size")


def set_shuffle_buffer(rows=1000, megabytes=256):
    """The buffer from which sources without random access are shuffled: it ends at that many rows, or at the row with
    which it holds that many megabytes.
    """
    rows = _integer(rows, "set_shuffle_buffer: rows", 2)
    _data.set_config("shuffle_bytes", _integer(megabytes, "set_shuffle_buffer: megabytes", 1, 2**40) << 20)
    _data.set_config("shuffle_rows", rows)


def get_shuffle_buffer():
    """(rows, megabytes)"""
    return _data.config("shuffle_rows"), _data.config("shuffle_bytes") >> 20


def _set_flag(name, enable):
    if not isinstance(enable, bool):
        raise TypeError(f"config.set_{name} takes a bool, got {enable!r}")
    _data.set_config(name, int(enable))


def set_fuse(enable):
    """Whether operations one after the other become one pass over the rows (the default). The values are the same."""
    _set_flag("fuse", enable)


def get_fuse():
    return bool(_data.config("fuse"))


def set_scaled_decode(enable):
    """Whether JPEG pictures that a list of operations makes smaller than half their size are decoded at a half, a
    quarter or an eighth of it. Faster, with slightly other pixels; off by default.
    """
    _set_flag("scaled_decode", enable)


def get_scaled_decode():
    return bool(_data.config("scaled_decode"))


def load(file):
    """Takes settings from a JSON file: an object with "seed", "numParallelWorkers" or "prefetchSize"."""
    setters = {
        "seed": set_seed,
        "numParallelWorkers": set_num_parallel_workers,
        "prefetchSize": set_prefetch_size,
        "monitorSamplingInterval": set_monitor_sampling_interval,  # noqa: F821
        "callbackTimeout": set_callback_timeout,
    }
    with open(file, encoding="utf-8") as text:
        try:
            content = _json.load(text)
        except _json.JSONDecodeError as error:
            raise RuntimeError(f"config.load: {file} is not JSON: {error}") from None
    for key, value in content.items():
        if key in setters:
            setters[key](value)


_kept = {}


def _keep(name, default, kind, least=None):
    """Defines set_<name> and get_<name> for a setting that changes nothing here."""
    _kept[name] = default

    def setter(value):
        if kind is bool and not isinstance(value, bool):
            raise TypeError(f"config.set_{name} takes a bool, got {value!r}")
        if kind is int:
            value = _integer(value, f"set_{name}: the value", least, 2**31 - 1)
        _kept[name] = value

    def getter():
        return _kept[name]

    setter.__name__, getter.__name__ = f"set_{name}", f"get_{name}"
    setter.__doc__ = "Kept, and changes nothing here."
    globals().update({setter.__name__: setter, getter.__name__: getter})


for _name, _default, _kind, _least in (
    ("numa_enable", False, bool, None),
    ("monitor_sampling_interval", 1000, int, 1),
    ("auto_num_workers", False, bool, None),
    ("autotune_interval", 0, int, 0),
    ("enable_shared_mem", True, bool, None),
    ("auto_offload", False, bool, None),
    ("enable_watchdog", True, bool, None),
    ("multiprocessing_timeout_interval", 300, int, 1),
    ("dynamic_shape", False, bool, None),
    ("fast_recovery", True, bool, None),
    ("sending_batches", 0, int, 0),
):
    _keep(_name, _default, _kind, _least)


def set_callback_timeout(timeout):
    """Seconds that sync_wait, and callbacks that wait for the training, have patience."""
    _data.set_config("callback_timeout", _integer(timeout, "set_callback_timeout: the value", 1, 2**31 - 1))


def get_callback_timeout():
    return _data.config("callback_timeout")


def set_enable_autotune(enable, filepath_prefix=None):
    """Whether workers go to the slowest stages while a pipeline runs: all of them together are as many as there are
    cores, and num_parallel_workers is only what a stage begins with. Dataset.last_profile() tells what each has got;
    `filepath_prefix` is checked, and no file is written.
    """
    if not isinstance(enable, bool):
        raise TypeError(f"config.set_enable_autotune: enable must be a bool, got {enable!r}")
    if filepath_prefix is not None and not isinstance(filepath_prefix, str):
        raise TypeError(f"config.set_enable_autotune: filepath_prefix must be a str, got {filepath_prefix!r}")
    _data.set_config("autotune", int(enable))


def get_enable_autotune():
    return bool(_data.config("autotune"))


def set_debug_mode(debug_mode_flag, debug_hook_list=None):
    """Only False: the pipeline of debug mode is not supported."""
    if not isinstance(debug_mode_flag, bool):
        raise TypeError(f"config.set_debug_mode: debug_mode_flag must be a bool, got {debug_mode_flag!r}")
    if debug_mode_flag:
        raise NotImplementedError("config.set_debug_mode: debug mode is not supported; use num_parallel_workers=1")


def get_debug_mode():
    return False


def set_error_samples_mode(error_samples_mode):
    """Only RETURN: rows whose operation fails raise its error."""
    if not isinstance(error_samples_mode, ErrorSamplesMode):
        raise TypeError(f"config.set_error_samples_mode takes an ErrorSamplesMode, got {error_samples_mode!r}")
    if error_samples_mode is not ErrorSamplesMode.RETURN:
        raise NotImplementedError("config.set_error_samples_mode: only RETURN is supported; drop rows with filter()")


def get_error_samples_mode():
    return ErrorSamplesMode.RETURN


def set_iterator_mode(do_copy=False, parallel_convert=False):
    """Kept, and changes nothing here: what an iterator gives is always the caller's own."""
    for value, what in ((do_copy, "do_copy"), (parallel_convert, "parallel_convert")):
        if not isinstance(value, bool):
            raise TypeError(f"config.set_iterator_mode: {what} must be a bool, got {value!r}")
    _kept["iterator_mode"] = {"do_copy": do_copy, "parallel_convert": parallel_convert}


def get_iterator_mode():
    return dict(_kept.get("iterator_mode", {"do_copy": False, "parallel_convert": False}))


def set_multiprocessing_start_method(start_method="fork"):
    """Kept, and changes nothing here."""
    if start_method not in ("fork", "spawn"):
        raise ValueError(f"config.set_multiprocessing_start_method: 'fork' or 'spawn', got {start_method!r}")
    _kept["start_method"] = start_method


def get_multiprocessing_start_method():
    return _kept.get("start_method", "fork")
