# SPDX-License-Identifier: Apache-2.0
"""data_sink: a training step of the user's, sunk as Model sinks its own."""

from undertow import _core
from undertow._jit import _flatten_outputs, _rebuild_outputs
from undertow.dataset import Dataset


class _Sink:
    """The step, its data, and the tree that it returned when it was traced."""

    def __init__(self, fn, dataset, sink_size):
        self.fn = fn
        self.output = None
        self.changes = _core._attribute_changes()
        self.core = _core.train.DataSink(self.build, dataset._node, sink_size)

    def build(self, columns):
        """Runs while tracing."""
        outputs = []
        self.output = self.fn(*columns)
        _flatten_outputs(self.output, outputs)
        return outputs

    def run(self):
        if self.changes != (now := _core._attribute_changes()):
            self.core.retrace()
            self.changes = now
        tensors = self.core.run()  # may trace, which sets the output
        return _rebuild_outputs(self.output, iter(tensors))


def data_sink(fn, dataset, sink_size=1, jit_config=None, input_signature=None):
    """A function without arguments that runs `fn` on the next sink_size batches of the dataset, as one host command.

    `fn` gets the columns of a batch; it is traced and compiled, and no Python runs between the steps. What is returned
    is what `fn` returned in the last of them. The data goes on from call to call, from one epoch to the next. The other
    arguments are MindSpore's and have no effect. Raises TypeError and ValueError for arguments that are not these, and
    what a step or the data raises.
    """
    if not callable(fn):
        raise TypeError(f"data_sink: 'fn' must be a function or a Cell, got {type(fn).__name__}")
    if not isinstance(dataset, Dataset):
        raise TypeError(f"data_sink: 'dataset' must be a Dataset, got {type(dataset).__name__}")
    if isinstance(sink_size, bool) or not isinstance(sink_size, int):
        raise TypeError(f"data_sink: 'sink_size' must be an integer, got {sink_size!r}")
    if sink_size < 1:
        raise ValueError(f"data_sink: 'sink_size' must be at least 1, got {sink_size}")
    return _Sink(fn, dataset, sink_size).run
