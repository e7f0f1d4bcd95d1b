# SPDX-License-Identifier: Apache-2.0
"""Checkpoints: a network's parameters in a file and back. The files are MindSpore's .ckpt."""

import os
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from undertow import _core
from undertow._core import Parameter, Tensor
from undertow._refused import refuse as _refuse
from undertow.nn import Cell

__all__ = ["save_checkpoint", "load_checkpoint", "load_checkpoint_async", "load_param_into_net"]

globals().update(
    _refuse(
        __name__,
        {
            "export": "export to MindIR, AIR and ONNX is not there yet",
            "load": "MindIR files are not read; load_checkpoint reads .ckpt files",
            "parse_print": "print_file_path is not honoured: prints go to standard output",
            "build_searched_strategy": "training is in one process",
            "merge_sliced_parameter": "training is in one process",
            "load_distributed_checkpoint": "training is in one process",
        },
    )
)

_writers = {}  # path -> thread of async_save, until it is done
_pool = None


def _check_path(function, path, format):
    if not isinstance(path, (str, os.PathLike)):
        raise TypeError(f"{function}: ckpt_file_name must be a path, got {type(path).__name__}")
    if format != "ckpt":
        raise ValueError(f"{function}: format must be 'ckpt', got {format!r}; other formats are not there yet")
    return os.fspath(path)


def _refuse_keys(function, key, mode):
    if key is not None:
        raise NotImplementedError(f"{function}: encrypted checkpoints ({mode}) are not supported")


def _items(save_obj):
    """(name, tensor) of what is to be saved."""
    if isinstance(save_obj, Cell):
        return [(parameter.name, parameter) for parameter in save_obj.get_parameters()]
    if isinstance(save_obj, dict):
        return list(save_obj.items())
    if isinstance(save_obj, (list, tuple)):
        items = []
        for i, item in enumerate(save_obj):
            if isinstance(item, Parameter):
                items.append((item.name, item))
            elif isinstance(item, dict) and {"name", "data"} <= set(item):
                items.append((item["name"], item["data"]))
            else:
                raise TypeError(
                    f"save_checkpoint: save_obj[{i}] must be a Parameter or a dict with 'name' and 'data', got {item!r}"
                )
        return items
    raise TypeError(
        f"save_checkpoint: save_obj must be a Cell, a dict, or a list of Parameters, got {type(save_obj).__name__}"
    )


def _entry(name, value):
    """What the file holds for a value: numbers become 64-bit integers and 32-bit floats, as in MindSpore."""
    if not isinstance(name, str):
        raise TypeError(f"save_checkpoint: names must be texts, got {name!r}")
    if isinstance(value, (str, Tensor)):
        return name, value
    if isinstance(value, bool):
        return name, Tensor(np.array(value))
    if isinstance(value, int):
        return name, Tensor(np.array(value, np.int64))
    if isinstance(value, float):
        return name, Tensor(np.array(value, np.float32))
    if isinstance(value, (np.ndarray, np.generic)):
        return name, Tensor(np.asarray(value))
    raise TypeError(f"save_checkpoint: '{name}' must be a Tensor, a number or a text, got {type(value).__name__}")


def save_checkpoint(
    save_obj,
    ckpt_file_name,
    integrated_save=True,
    async_save=False,
    append_dict=None,
    enc_key=None,
    enc_mode="AES-GCM",
    choice_func=None,
    crc_check=False,
    format="ckpt",
    **kwargs,
):
    """Saves a Cell, a dict name -> value, or a list of Parameters; append_dict adds numbers and texts.

    choice_func(name) -> bool chooses. ".ckpt" is appended to a name without it. async_save writes on a thread of its
    own, from a copy. The file is there as a whole or the earlier one stays. Raises FileError where it cannot be
    written.
    """
    path = _check_path("save_checkpoint", ckpt_file_name, format)
    _refuse_keys("save_checkpoint", enc_key, enc_mode)
    if kwargs:
        raise TypeError(f"save_checkpoint: unexpected argument '{next(iter(kwargs))}'")
    if not path.endswith(".ckpt"):
        path += ".ckpt"
    entries = [_entry(name, value) for name, value in _items(save_obj) if choice_func is None or choice_func(name)]
    for name, value in (append_dict or {}).items():
        entries.append(_entry(name, value))
    _wait(path)
    if not async_save:
        _core.train._save_checkpoint(path, entries, bool(crc_check))
        return
    entries = [(name, value if isinstance(value, str) else value.copy()) for name, value in entries]
    writer = threading.Thread(target=_write, args=(path, entries, bool(crc_check)))
    _writers[path] = writer
    writer.start()


def _write(path, entries, crc):
    try:
        _core.train._save_checkpoint(path, entries, crc)
    except Exception as error:
        warnings.warn(f"save_checkpoint: {error}", stacklevel=2)
    finally:
        _writers.pop(path, None)


def _wait(path):
    """Until an earlier async_save of the same file is done."""
    writer = _writers.get(path)
    if writer is not None:
        writer.join()


def load_checkpoint(
    ckpt_file_name,
    net=None,
    strict_load=False,
    filter_prefix=None,
    dec_key=None,
    dec_mode="AES-GCM",
    specify_prefix=None,
    choice_func=None,
    crc_check=False,
    remove_redundancy=False,
    format="ckpt",
):
    """The file's content: a dict of name -> Parameter, or text. With `net`, its parameters get the values too.

    choice_func(name) -> bool chooses; filter_prefix leaves out and specify_prefix takes only the names that start so.
    Raises FileError where the file cannot be read, FormatError where it is not a checkpoint, ValueError where nothing
    is left.
    """
    path = _check_path("load_checkpoint", ckpt_file_name, format)
    _refuse_keys("load_checkpoint", dec_key, dec_mode)
    if not path.endswith("ckpt"):
        raise ValueError(f"load_checkpoint: the file's name must end with '.ckpt', got {path!r}")
    if net is not None and not isinstance(net, Cell):
        raise TypeError(f"load_checkpoint: net must be a Cell, got {type(net).__name__}")
    _wait(path)
    if crc_check and os.path.isfile(path) and not _core.train._has_crc(path):
        warnings.warn(f"load_checkpoint: {path} holds no CRC to check", stacklevel=2)
    without, only = _prefixes("filter_prefix", filter_prefix), _prefixes("specify_prefix", specify_prefix)
    loaded = {}
    for name, value in _core.train._load_checkpoint(path, bool(crc_check)):
        if (without and name.startswith(without)) or (only and not name.startswith(only)):
            continue
        if choice_func is not None and not choice_func(name):
            continue
        loaded[name] = value
    if not loaded:
        raise ValueError(f"load_checkpoint: nothing of {path} is left after choosing")
    if net is not None:
        load_param_into_net(net, {n: v for n, v in loaded.items() if isinstance(v, Parameter)}, strict_load)
    return loaded


def _prefixes(argument, value):
    if value is None:
        return ()
    prefixes = (value,) if isinstance(value, str) else tuple(value)
    for prefix in prefixes:
        if not isinstance(prefix, str) or not prefix:
            raise ValueError(f"load_checkpoint: {argument} must be texts that are not empty, got {value!r}")
    return prefixes


def load_checkpoint_async(*args, **kwargs):
    """load_checkpoint on another thread: a future, whose result() is the dict."""
    global _pool
    _pool = _pool or ThreadPoolExecutor(1)
    return _pool.submit(load_checkpoint, *args, **kwargs)


def load_param_into_net(net, parameter_dict, strict_load=False, remove_redundancy=False):
    """Gives the network's parameters the values of the same names; returns the names of the network's that got none and
    the names of the dict's that no parameter has.

    All is checked first: after an error no parameter has changed. Another dtype of the same kind is converted unless
    strict_load. Raises ShapeError, TypeError.
    """
    if not isinstance(net, Cell):
        raise TypeError(f"load_param_into_net: net must be a Cell, got {type(net).__name__}")
    if not isinstance(parameter_dict, dict):
        raise TypeError(f"load_param_into_net: parameter_dict must be a dict, got {type(parameter_dict).__name__}")
    for name, value in parameter_dict.items():
        if not isinstance(value, (Parameter, str)):
            raise TypeError(
                f"load_param_into_net: parameter_dict['{name}'] must be a Parameter, got {type(value).__name__}"
            )
    parameters = [(name, value) for name, value in parameter_dict.items() if isinstance(value, Parameter)]
    missing, unused, by_order = _core.train._load_param_into_net(net, parameters, bool(strict_load))
    if by_order:
        warnings.warn(
            "load_param_into_net: some names differ; the values were matched by their order, shapes and last parts of "
            "the names",
            stacklevel=2,
        )
    if missing:
        shown = ", ".join(missing[:5]) + (f" and {len(missing) - 5} more" if len(missing) > 5 else "")
        warnings.warn(f"load_param_into_net: the checkpoint has no value for {shown}", stacklevel=2)
    return missing, unused
