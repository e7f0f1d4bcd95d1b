# SPDX-License-Identifier: Apache-2.0
"""What runs on the host around epochs and steps."""

import signal
import threading
from contextlib import ExitStack

from undertow._core.train import (
    Callback,
    EarlyStopping,
    History,
    LearningRateScheduler,
    LossMonitor,
    ReduceLROnPlateau,
    RunContext,
    TimeMonitor,
)
from undertow._core.train import CallbackParams as InternalCallbackParam

_InternalCallbackParam = InternalCallbackParam

__all__ = [
    "Callback", "EarlyStopping", "History", "LambdaCallback", "LearningRateScheduler", "LossMonitor", "OnRequestExit",
    "ReduceLROnPlateau", "RunContext", "TimeMonitor",
]  # fmt: skip

_HOOKS = tuple(
    f"on_{mode}{part}_{edge}"
    for mode in ("train", "eval")
    for part in ("_epoch", "_step", "")
    for edge in ("begin", "end")
)


class LambdaCallback(Callback):
    """Hooks as functions of a RunContext: on_train_begin=..., on_train_epoch_end=..., on_eval_step_end=..., ..."""

    def __init__(
        self,
        on_train_epoch_begin=None,
        on_train_epoch_end=None,
        on_train_step_begin=None,
        on_train_step_end=None,
        on_train_begin=None,
        on_train_end=None,
        on_eval_epoch_begin=None,
        on_eval_epoch_end=None,
        on_eval_step_begin=None,
        on_eval_step_end=None,
        on_eval_begin=None,
        on_eval_end=None,
    ):
        super().__init__()
        given = locals()
        self._hooks = {name: given[name] for name in _HOOKS if given[name] is not None}
        for name, hook in self._hooks.items():
            if not callable(hook):
                raise TypeError(f"LambdaCallback: {name} must be a function, got {type(hook).__name__}")


def _forward(name):
    def hook(self, run_context):
        if name in self._hooks:
            self._hooks[name](run_context)

    hook.__name__ = name
    return hook


for _name in _HOOKS:
    setattr(LambdaCallback, _name, _forward(_name))


class OnRequestExit(Callback):
    """OnRequestExit(save_ckpt=True, save_mindir=False, file_name="Net", directory="./", config_file=None, sig=SIGTERM)

    When the process gets the signal, the run ends at the next step border (at the end of the command with the sink on)
    and saves "<directory>/<file_name>_train.ckpt". Raises TypeError and ValueError for other arguments; exporting
    (save_mindir=True) and a config_file to be watched are not supported.
    """

    def __init__(
        self,
        save_ckpt=True,
        save_mindir=False,
        file_name="Net",
        directory="./",
        config_file=None,
        sig=signal.SIGTERM,
    ):
        super().__init__()
        for name, value in (("save_ckpt", save_ckpt), ("save_mindir", save_mindir)):
            if not isinstance(value, bool):
                raise TypeError(f"OnRequestExit: '{name}' must be a bool, got {type(value).__name__}")
        if not isinstance(file_name, str) or not file_name:
            raise ValueError(f"OnRequestExit: 'file_name' must be a name, got {file_name!r}")
        if save_mindir:
            raise ValueError("OnRequestExit: save_mindir=True is not supported; checkpoints are")
        if config_file is not None:
            raise ValueError("OnRequestExit: config_file is not supported; send the signal")
        self.save_ckpt, self.file_name, self.directory, self.sig = save_ckpt, file_name, directory, sig
        self.stop, self._before = False, None

    def on_train_begin(self, run_context):
        self.stop = False
        if threading.current_thread() is threading.main_thread():
            self._before = signal.signal(self.sig, self._request)

    def _request(self, number, frame):
        self.stop = True

    def on_train_step_end(self, run_context):
        if self.stop:
            run_context.request_stop()

    def on_train_end(self, run_context):
        if self._before is not None:
            signal.signal(self.sig, self._before)
            self._before = None
        if self.stop and self.save_ckpt:
            from undertow.train.serialization import save_checkpoint

            network = run_context.original_args().train_network
            save_checkpoint(network, f"{self.directory.rstrip('/')}/{self.file_name}_train.ckpt")


class _CallbackManager(Callback):
    """Callbacks as one, for programs that drive them themselves: enters and leaves them, and calls them in order."""

    def __init__(self, callbacks):
        super().__init__()
        self._callbacks = [callbacks] if isinstance(callbacks, Callback) else list(callbacks or [])
        for item in self._callbacks:
            if not isinstance(item, Callback):
                raise TypeError(f"callbacks must be a Callback or a list of them, got {type(item).__name__}")
        self._stack = ExitStack()

    def __enter__(self):
        self._stack.__enter__()
        for callback in self._callbacks:
            self._stack.enter_context(callback)
        return self

    def __exit__(self, *error):
        return self._stack.__exit__(*error)


def _to_all(name):
    def hook(self, run_context):
        for callback in self._callbacks:
            getattr(callback, name)(run_context)

    hook.__name__ = name
    return hook


for _name in (*_HOOKS, "begin", "epoch_begin", "step_begin", "step_end", "epoch_end", "end"):
    setattr(_CallbackManager, _name, _to_all(_name))
