# SPDX-License-Identifier: Apache-2.0
"""Model: training, evaluation and prediction of a network."""

from undertow import _core
from undertow._core import Tensor
from undertow._core.nn import Cell, Metric, Optimizer, get_metric
from undertow._core.train import Callback
from undertow.dataset import Dataset

# Keywords of MindSpore's Model that change nothing here when they have these values.
_NEUTRAL = {"loss_scale_manager": None, "keep_batchnorm_fp32": None, "boost_config_dict": "", "acc_level": "O0"}


class _Function(Cell):
    """A plain function as a cell."""

    def __init__(self, function):
        super().__init__()
        self._function = function

    def construct(self, *inputs):
        return self._function(*inputs)


def _cell(value, argument, optional=True):
    if (value is None and optional) or isinstance(value, Cell):
        return value
    if callable(value) and not isinstance(value, type):
        return _Function(value)
    raise TypeError(f"Model: '{argument}' must be a Cell, got {type(value).__name__}")


def _metrics(metrics):
    if metrics is None:
        return []
    if isinstance(metrics, dict):
        pairs = metrics.items()
    elif isinstance(metrics, (set, frozenset)):
        pairs = ((name, name) for name in sorted(metrics))
    else:
        raise TypeError(f"Model: 'metrics' must be a set of names or a dict of Metrics, got {type(metrics).__name__}")
    named = []
    for name, metric in pairs:
        if not isinstance(name, str):
            raise TypeError(f"Model: the name of a metric must be a str, got {type(name).__name__}")
        if isinstance(metric, str):
            metric = get_metric(metric)
        if not isinstance(metric, Metric):
            raise TypeError(f"Model: metric '{name}' must be a Metric or the name of one, got {type(metric).__name__}")
        named.append((name, metric))
    return named


def _callbacks(callbacks, where):
    if callbacks is None:
        return []
    items = list(callbacks) if isinstance(callbacks, (list, tuple)) else [callbacks]
    for item in items:
        if not isinstance(item, Callback):
            raise TypeError(f"{where}: 'callbacks' must be a Callback or a list of them, got {type(item).__name__}")
    return items


def _dataset(dataset, argument):
    if not isinstance(dataset, Dataset):
        raise TypeError(f"'{argument}' must be a Dataset, got {type(dataset).__name__}")
    return dataset._node


def _integer(value, argument):
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"'{argument}' must be an integer, got {value!r}")
    return value


def _flag(value, argument):
    if not isinstance(value, bool):
        raise TypeError(f"'{argument}' must be a bool, got {value!r}")
    return value


class Model:
    """Model(network, loss_fn=None, optimizer=None, metrics=None, eval_network=None, eval_indexes=None)

    With a loss function the dataset gives two columns (data, label); without one the network gets all columns and
    returns the loss. metrics: a set of names ("accuracy", "loss") or a dict of Metrics. eval_network returns (loss,
    output, label), or has their places in eval_indexes. Raises TypeError and ValueError for what does not go together.
    """

    def __init__(
        self,
        network,
        loss_fn=None,
        optimizer=None,
        metrics=None,
        eval_network=None,
        eval_indexes=None,
        amp_level="O0",
        boost_level="O0",
        **kwargs,
    ):
        for name, value in kwargs.items():
            if name not in _NEUTRAL:
                raise ValueError(f"Model: unknown argument '{name}'; known are {', '.join(_NEUTRAL)}")
            if value is not None and value != _NEUTRAL[name]:
                raise ValueError(f"Model: '{name}' is not supported yet")
        if boost_level != "O0":
            raise ValueError(f"Model: boost_level '{boost_level}' is not supported; use O0")
        if optimizer is not None and not isinstance(optimizer, Optimizer):
            raise TypeError(f"Model: 'optimizer' must be an Optimizer, got {type(optimizer).__name__}")
        self._network = _cell(network, "network", optional=False)
        self._loss_fn, self._optimizer = _cell(loss_fn, "loss_fn"), optimizer
        self._eval_network = _cell(eval_network, "eval_network")
        self._metrics = _metrics(metrics)
        indexes = (0, 1, 2) if eval_indexes is None else tuple(eval_indexes)
        if len(indexes) != 3:
            raise ValueError(f"Model: 'eval_indexes' must have three items (loss, output, label), got {len(indexes)}")
        self._core = _core.train.Model(
            self._network, self._loss_fn, optimizer, self._metrics, self._eval_network, indexes, amp_level
        )

    @property
    def train_network(self):
        return self._network

    @property
    def predict_network(self):
        return self._network

    @property
    def eval_network(self):
        return self._eval_network or self._network

    def train(self, epoch, train_dataset, callbacks=None, dataset_sink_mode=False, sink_size=-1, initial_epoch=0):
        """Trains up to epoch number `epoch`.

        dataset_sink_mode: sink_size steps (-1: one epoch) run as one host command, without any Python in between;
        `epoch` then counts commands. Arguments and data are checked before anything changes. Raises what a source, a
        callback or a cell raised; KeyboardInterrupt ends a command at the next step border.
        """
        self._core.train(
            _integer(epoch, "epoch"),
            _dataset(train_dataset, "train_dataset"),
            _callbacks(callbacks, "Model.train"),
            _flag(dataset_sink_mode, "dataset_sink_mode"),
            _integer(sink_size, "sink_size"),
            _integer(initial_epoch, "initial_epoch"),
        )

    def eval(self, valid_dataset, callbacks=None, dataset_sink_mode=False):
        """Results by metric name, every row counted once. With the sink the whole pass is one host command."""
        results = self._core.eval(
            _dataset(valid_dataset, "valid_dataset"),
            _callbacks(callbacks, "Model.eval"),
            _flag(dataset_sink_mode, "dataset_sink_mode"),
        )
        own = {name: m._result for name, m in self._metrics if hasattr(m, "_result")}
        return {name: own.get(name, results[name]) for name, _ in self._metrics}

    def predict(self, *predict_data, backend=None, config=None):
        """The network's output for these Tensors, in evaluation mode."""
        for i, item in enumerate(predict_data):
            if not isinstance(item, Tensor):
                raise TypeError(f"Model.predict: input {i} must be a Tensor, got {type(item).__name__}")
        outputs = self._core.predict(list(predict_data))
        return outputs[0] if len(outputs) == 1 else tuple(outputs)

    def request_stop(self):
        """From any thread: the run in progress ends at the next step border, without an error."""
        self._core.request_stop()
