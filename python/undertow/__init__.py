# SPDX-License-Identifier: Apache-2.0
"""Undertow: deep-learning training that compiles the whole step and sinks the training loop.

The API follows MindSpore's: `Tensor`, `Parameter`, `nn`, `ops`, `dataset`, `Model`, callbacks, `set_context`, `jit`.
"""

import atexit as _atexit
import importlib as _importlib
import os as _os
import pkgutil as _pkgutil

from undertow import _core, _modules  # noqa: E402
from undertow._core import (  # noqa: E402, F401
    DataError,
    DeviceError,
    Error,
    FileError,
    FormatError,
    Parameter,
    ShapeError,
    Tensor,
    TraceError,
    bfloat16,
    bool_,
    float16,
    float32,
    float64,
    from_dlpack,
    from_numpy,
    int8,
    int16,
    int32,
    int64,
    uint8,
    uint16,
    uint32,
    uint64,
)

_modules.install()
_core._set_package_folder(_os.path.dirname(_os.path.abspath(__file__)) + _os.sep)


def _at_exit():
    """Ends the threads that may run Python, while there is a Python to run."""
    _core.train._stop_runs()
    _core.data._close_iterators()


_atexit.register(_at_exit)

for _class in (Tensor, Parameter):
    _class.__module__ = "undertow"

tensor = Tensor
half, single, double = float16, float32, float64
GRAPH_MODE, PYNATIVE_MODE = 0, 1
__version__ = "0.1.0"

# Where the other public names live; they are imported when first asked for.
_HOMES = {
    "undertow.context": "set_context get_context set_device reset_context",
    "undertow.common": "ParameterTuple RowTensor COOTensor CSRTensor set_seed get_seed dtype_to_nptype mutable",
    "undertow._grad": "value_and_grad grad",
    "undertow._jit": "jit _cell_graph_executor",
    "undertow.ops": "vjp vmap jvp jacfwd jacrev",
    "undertow.mindrecord": "FileWriter",
    "undertow.parallel": "ParallelMode set_auto_parallel_context get_auto_parallel_context reset_auto_parallel_context",
    "undertow.train": "Model Callback LossMonitor TimeMonitor LambdaCallback RunContext EarlyStopping History "
    "LearningRateScheduler ReduceLROnPlateau OnRequestExit ModelCheckpoint CheckpointConfig save_checkpoint "
    "load_checkpoint load_checkpoint_async load_param_into_net export data_sink",
}
_HOME = {name: module for module, names in _HOMES.items() for name in names.split()}


def __getattr__(name):
    """Imports submodules and the less urgent names on first use."""
    if name == "ms_function":
        _modules.note("mindspore.ms_function", "mindspore.jit")
        value = __getattr__("jit")
    elif name == "dtype":
        value = _importlib.import_module("undertow.common.dtype")
    elif name in _HOME:
        value = getattr(_importlib.import_module(_HOME[name]), name)
    elif name.startswith("_"):
        raise AttributeError(f"undertow has no '{name}'")
    else:
        try:
            value = _importlib.import_module(f"undertow.{name}")
        except ModuleNotFoundError as error:
            if error.name != f"undertow.{name}":
                raise
            raise AttributeError(f"undertow has no '{name}'") from None
    globals()[name] = value
    return value


def __dir__():
    modules = {name for _, name, _ in _pkgutil.iter_modules(__path__) if not name.startswith("_")}
    return sorted({name for name in globals() if not name.startswith("_")} | set(_HOME) | modules | {"dtype"})
