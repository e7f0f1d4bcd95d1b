# SPDX-License-Identifier: Apache-2.0
"""Callbacks of map operations: told about passes, epochs and rows, and waiting for the training."""

import threading
import time

from undertow._core import data as _data
from undertow._core.data import DSRunContext  # noqa: F401
from undertow._core.train import Callback


def _step_size_of(step_size):
    if isinstance(step_size, bool) or not isinstance(step_size, int):
        raise TypeError(f"step_size must be an integer, got {step_size!r}")
    if step_size < 1:
        raise ValueError(f"step_size must be positive, got {step_size}")
    return step_size


class DSCallback:
    """For map(callbacks=...). Methods get a DSRunContext and are called in the order of the rows, from another thread;
    ds_step_begin and ds_step_end for the first of every `step_size` rows (after batch: batches). What they raise ends
    the pipeline. An operation with callbacks makes one row at a time, and runs ahead of its consumer no further than
    there is room for whole batches.
    """

    def __init__(self, step_size=1):
        self.step_size = _step_size_of(step_size)

    def ds_begin(self, ds_run_context):
        """Before the first epoch."""

    def ds_epoch_begin(self, ds_run_context):
        """Before each epoch."""

    def ds_epoch_end(self, ds_run_context):
        """After the last row of each epoch."""

    def ds_step_begin(self, ds_run_context):
        """Before a row."""

    def ds_step_end(self, ds_run_context):
        """After a row."""


class WaitedDSCallback(Callback, DSCallback):
    """A map operation that waits for the training: give it to map() and to Model.train.

    From the second epoch on sync_epoch_begin(train_run_context, ds_run_context) comes once the training has ended its
    epoch, and before rows after the first `step_size` sync_step_begin(...) once it has made a step; override one of
    them. Waiting longer than config.get_callback_timeout() seconds raises RuntimeError. A training that sinks makes
    many steps at once, so use it without sink.
    """

    def __init__(self, step_size=1):
        super().__init__()
        self.step_size = _step_size_of(step_size)
        self._epoch, self._step = threading.Event(), threading.Event()
        self._epoch_context = self._step_context = None
        self._ended = False

    def sync_epoch_begin(self, train_run_context, ds_run_context):
        """Before each epoch but the first."""

    def sync_step_begin(self, train_run_context, ds_run_context):
        """Before each step but the first."""

    def _wait(self, event, ds_run_context, hook):
        patience = _data.config("callback_timeout")
        until = time.monotonic() + patience
        while not self._ended and not event.wait(0.05):
            if ds_run_context._stopping:
                raise RuntimeError(f"{hook}: the pipeline is to end")
            if time.monotonic() > until:
                raise RuntimeError(
                    f"{hook} of {type(self).__name__} waited {patience} s for the training: give the callback to "
                    "Model.train too, with dataset_sink_mode=False, or raise config.set_callback_timeout"
                )
        event.clear()

    def ds_epoch_begin(self, ds_run_context):
        if ds_run_context.cur_epoch_num > 1 and self._overrides("sync_epoch_begin"):
            self._wait(self._epoch, ds_run_context, "ds_epoch_begin")
            self.sync_epoch_begin(self._epoch_context, ds_run_context)

    def ds_step_begin(self, ds_run_context):
        if ds_run_context.cur_step_num > self.step_size and self._overrides("sync_step_begin"):
            self._wait(self._step, ds_run_context, "ds_step_begin")
            self.sync_step_begin(self._step_context, ds_run_context)

    def _overrides(self, name):
        return getattr(type(self), name) is not getattr(WaitedDSCallback, name)

    def begin(self, run_context):
        self._ended = False

    def epoch_end(self, run_context):
        self._epoch_context = run_context
        self._epoch.set()

    def step_end(self, run_context):
        self._step_context = run_context
        self._step.set()

    def end(self, run_context):
        self._ended = True
        self.epoch_end(run_context)
        self.step_end(run_context)
