# SPDX-License-Identifier: Apache-2.0
"""Model: training, evaluation and prediction of a network."""

from undertow import _core
from undertow._core import Tensor
from undertow._core.nn import Cell, Fbeta, Metric, Optimizer, Precision, Recall
from undertow._core.train import Callback
from undertow.amp.scaling import parts_of
from undertow.dataset import Dataset
from undertow.train.metrics import _FACTORY, _for_model, get_metric_fn

# Keywords of MindSpore's Model that change nothing here when they have these values.
_NEUTRAL = {"boost_config_dict": "", "acc_level": "O0"}

_BY_LEVEL = object()  # a loss scale manager is not given: O2 has one


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
            if metric not in _FACTORY:
                raise ValueError(
                    f"Model: metric '{metric}' is not known; use {', '.join(_FACTORY)} or a Metric of your own"
                )
            metric = get_metric_fn(metric)
        if not isinstance(metric, Metric):
            raise TypeError(f"Model: metric '{name}' must be a Metric or the name of one, got {type(metric).__name__}")
        named.append((name, _for_model(metric)))
    return named


def _callbacks(callbacks, where):
    if callbacks is None:
        return []
    items = list(callbacks) if isinstance(callbacks, (list, tuple)) else [callbacks]
    for item in items:
        if not isinstance(item, Callback):
            raise TypeError(f"{where}: 'callbacks' must be a Callback or a list of them, got {type(item).__name__}")
        _core.train._begin_callback(item)
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
    """Model(network, loss_fn=None, optimizer=None, metrics=None, eval_network=None, eval_indexes=None, amp_level="O0")

    With a loss function the dataset gives two columns (data, label); without one the network gets all columns and
    returns the loss. metrics: a set of names ("accuracy", "loss") or a dict of Metrics. eval_network returns (loss,
    output, label), or has their places in eval_indexes. amp_level: O0, O1, O2, O3 or auto, set on the network with the
    context's half type (amp.auto_mixed_precision); keep_batchnorm_fp32 says of O2 and O3 whether BatchNorm and
    LayerNorm normalise in float32. loss_scale_manager (default: DynamicLossScaleManager() at O2, else None): gradients
    are computed of the loss times its scale and divided by it before the update, whatever the optimizer's own
    loss_scale argument is. Raises TypeError and ValueError for what does not go together.
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
        keep_batchnorm_fp32=None,
        loss_scale_manager=_BY_LEVEL,
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
        self._train_network = None
        by_level = loss_scale_manager is _BY_LEVEL
        scale, update = parts_of(None if by_level else loss_scale_manager, "Model")
        indexes = (0, 1, 2) if eval_indexes is None else tuple(eval_indexes)
        if len(indexes) != 3:
            raise ValueError(f"Model: 'eval_indexes' must have three items (loss, output, label), got {len(indexes)}")
        self._core = _core.train.Model(
            self._network,
            self._loss_fn,
            optimizer,
            self._metrics,
            self._eval_network,
            indexes,
            amp_level,
            keep_batchnorm_fp32,
            by_level,
            scale,
            update,
        )

    @property
    def train_network(self):
        """The network with its loss and optimizer as one cell: called with a batch, it trains one step."""
        if self._train_network is None:
            self._train_network = self._core.train_network()
            self._train_network.set_train()
        return self._train_network

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

    def fit(
        self,
        epoch,
        train_dataset,
        valid_dataset=None,
        valid_frequency=1,
        callbacks=None,
        dataset_sink_mode=False,
        valid_dataset_sink_mode=False,
        sink_size=-1,
        initial_epoch=0,
    ):
        """Trains as train(), and evaluates after every valid_frequency-th epoch, or after those in a list.

        Callbacks find the results in eval_results of the run's parameters when such an epoch ends: the metrics, and
        "eval_loss", the mean loss over all rows.
        """
        if isinstance(valid_frequency, bool) or not isinstance(valid_frequency, (int, list)):
            raise TypeError(f"Model.fit: 'valid_frequency' must be an integer or a list, got {valid_frequency!r}")
        if valid_dataset is None:
            return self.train(epoch, train_dataset, callbacks, dataset_sink_mode, sink_size, initial_epoch)
        every = isinstance(valid_frequency, int)
        return self._core.fit(
            _integer(epoch, "epoch"),
            _dataset(train_dataset, "train_dataset"),
            _dataset(valid_dataset, "valid_dataset"),
            _callbacks(callbacks, "Model.fit"),
            _flag(dataset_sink_mode, "dataset_sink_mode"),
            _flag(valid_dataset_sink_mode, "valid_dataset_sink_mode"),
            _integer(sink_size, "sink_size"),
            _integer(initial_epoch, "initial_epoch"),
            valid_frequency if every else 1,
            [] if every else [_integer(e, "valid_frequency") for e in valid_frequency],
        )

    def build(self, train_dataset=None, valid_dataset=None, sink_size=-1, epoch=1, sink_mode=True):
        """Compiles the steps for these datasets' batches; nothing is run, and train() finds the programs ready."""
        self._core.build(
            None if train_dataset is None else _dataset(train_dataset, "train_dataset"),
            None if valid_dataset is None else _dataset(valid_dataset, "valid_dataset"),
        )

    def eval(self, valid_dataset, callbacks=None, dataset_sink_mode=False):
        """Results by metric name, every row counted once. With the sink the whole pass is one host command.

        A metric with one result a class gives an array of them.
        """
        results = self._core.eval(
            _dataset(valid_dataset, "valid_dataset"),
            _callbacks(callbacks, "Model.eval"),
            _flag(dataset_sink_mode, "dataset_sink_mode"),
        )
        by_class = (Precision, Recall, Fbeta)
        return {
            name: m.eval() if isinstance(m, by_class) else getattr(m, "_result", results[name])
            for name, m in self._metrics
        }

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
