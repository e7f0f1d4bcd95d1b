# SPDX-License-Identifier: Apache-2.0
"""What Model.eval measures."""

import functools

import numpy as np

from undertow._core.nn import (
    MAE,
    MSE,
    Accuracy,
    Fbeta,
    Loss,
    Metric,
    Perplexity,
    Precision,
    Recall,
    TopKCategoricalAccuracy,
)

__all__ = [
    "Accuracy", "ConfusionMatrix", "F1", "Fbeta", "Loss", "MAE", "MSE", "Metric", "Perplexity", "Precision", "Recall",
    "Top1CategoricalAccuracy", "Top5CategoricalAccuracy", "TopKCategoricalAccuracy", "get_metric_fn", "get_metrics",
    "get_metrics_factory", "names", "rearrange_inputs",
]  # fmt: skip


def rearrange_inputs(update):
    """A decorator of `update`: passes those of its inputs that set_indexes() has chosen, in that order."""

    @functools.wraps(update)
    def wrapped(self, *inputs):
        return update(self, *(inputs if not self.indexes else (inputs[i] for i in self.indexes)))

    return wrapped


class F1(Fbeta):
    """2 P R / (P + R), for each class."""

    def __init__(self):
        super().__init__(1.0)


class Top1CategoricalAccuracy(TopKCategoricalAccuracy):
    """Share of rows whose label has the largest output."""

    def __init__(self):
        super().__init__(1)


class Top5CategoricalAccuracy(TopKCategoricalAccuracy):
    """Share of rows whose label is among the five largest outputs."""

    def __init__(self):
        super().__init__(5)


class ConfusionMatrix(Metric):
    """ConfusionMatrix(num_classes, normalize="no_norm", threshold=0.5): counts [label, prediction].

    normalize: "no_norm", "target" (rows sum to 1), "prediction" (columns do) or "all". Outputs (N, C, ...) are compared
    by their largest class; floating outputs of the labels' shape by `threshold`. Raises ValueError for other arguments.
    """

    def __init__(self, num_classes, normalize="no_norm", threshold=0.5):
        super().__init__()
        if isinstance(num_classes, bool) or not isinstance(num_classes, int):
            raise TypeError(f"ConfusionMatrix: 'num_classes' must be an integer, got {num_classes!r}")
        if normalize not in ("no_norm", "target", "prediction", "all"):
            raise ValueError(
                f"ConfusionMatrix: 'normalize' must be no_norm, target, prediction or all, got {normalize!r}"
            )
        self.num_classes, self.normalize, self.threshold = num_classes, normalize, threshold
        self.clear()

    def clear(self):
        self.confusion_matrix = np.zeros((self.num_classes, self.num_classes))
        self._updated = False

    @rearrange_inputs
    def update(self, *inputs):
        if len(inputs) != 2:
            raise ValueError(f"ConfusionMatrix.update takes outputs and labels, got {len(inputs)} inputs")
        y, label = (self._convert_data(i) for i in inputs)
        if y.ndim == label.ndim + 1:
            y = y.argmax(axis=1)
        elif y.ndim != label.ndim:
            raise ValueError(f"ConfusionMatrix: outputs have shape {y.shape} and labels {label.shape}")
        elif y.dtype.kind == "f":
            y = y >= self.threshold
        places = label.reshape(-1).astype(np.int64) * self.num_classes + y.reshape(-1).astype(np.int64)
        counts = np.bincount(places, minlength=self.num_classes**2)
        if counts.size != self.num_classes**2:
            raise ValueError(f"ConfusionMatrix: a class is outside of 0..{self.num_classes - 1}")
        self.confusion_matrix += counts.reshape(self.num_classes, self.num_classes)
        self._updated = True

    def eval(self):
        if not self._updated:
            raise RuntimeError("ConfusionMatrix: no rows were counted yet")
        axis = {"no_norm": None, "target": 1, "prediction": 0, "all": (0, 1)}[self.normalize]
        if axis is None:
            return self.confusion_matrix
        total = self.confusion_matrix.sum(axis=axis, keepdims=True)
        return np.divide(self.confusion_matrix, total, out=np.zeros_like(self.confusion_matrix), where=total != 0)


_FACTORY = {
    "accuracy": Accuracy,
    "acc": Accuracy,
    "precision": Precision,
    "recall": Recall,
    "F1": F1,
    "topk": TopKCategoricalAccuracy,
    "top_1_accuracy": Top1CategoricalAccuracy,
    "top_5_accuracy": Top5CategoricalAccuracy,
    "mae": MAE,
    "mse": MSE,
    "loss": Loss,
    "perplexity": Perplexity,
    "confusion_matrix": ConfusionMatrix,
}


def names():
    """The names of the metrics."""
    return sorted(_FACTORY)


def get_metrics_factory():
    """Metric classes by name."""
    return dict(_FACTORY)


def get_metric_fn(name, *args, **kwargs):
    """A metric by name. Raises KeyError naming those there are."""
    if name not in _FACTORY:
        raise KeyError(f"metric {name!r} is not known; use {', '.join(names())} or a Metric of your own")
    return _FACTORY[name](*args, **kwargs)


class _OnHost(Metric):
    """A metric that must see concrete values: a C++ one that Python changes, or that has indexes."""

    def __init__(self, metric):
        super().__init__()
        self.metric = metric
        self._indexes = metric.indexes

    def clear(self):
        self.metric.clear()

    def update(self, *inputs):
        # The inputs were chosen already; update() must not choose again.
        chosen, self.metric._indexes = self.metric.indexes, None
        try:
            self.metric.update(*inputs)
        finally:
            self.metric._indexes = chosen

    def eval(self):
        return self.metric.eval()


def _is_changed(metric):
    """Whether Python overrides what C++ would run inside of the step."""
    for cls in type(metric).__mro__:
        if cls.__module__ in ("undertow._core.nn", "undertow.nn", __name__):
            return False
        if {"clear", "update", "eval"} & vars(cls).keys():
            return True
    return False


def _for_model(metric):
    """The metric as Model takes it."""
    traced = isinstance(metric, tuple(c for c in set(_FACTORY.values()) if c is not ConfusionMatrix))
    if traced and (metric.indexes is not None or _is_changed(metric)):
        return _OnHost(metric)
    return metric


def get_metrics(metrics):
    """{name: Metric} from a set of names, or a dict of Metrics. Raises TypeError for anything else."""
    if metrics is None:
        return None
    if isinstance(metrics, (set, frozenset)):
        return {name: get_metric_fn(name) for name in sorted(metrics)}
    if isinstance(metrics, dict):
        for name, metric in metrics.items():
            if not isinstance(name, str) or not isinstance(metric, Metric):
                raise TypeError(f"metrics[{name!r}] must be a Metric under a name, got {type(metric).__name__}")
        return metrics
    raise TypeError(f"metrics must be a set of names or a dict of Metrics, got {type(metrics).__name__}")
