# SPDX-License-Identifier: Apache-2.0
"""Datasets that start a pipeline."""

import os

import numpy as np

from undertow._core import data as _data
from undertow.dataset.datasets import Dataset, Shuffle, integer_of, names_of, workers_of
from undertow.dataset.samplers import handle_of


def _options(shuffle, num_parallel_workers, num_samples, num_shards, shard_id, sampler):
    """The common arguments of sources, checked."""
    if shuffle is not None and not isinstance(shuffle, bool):
        if shuffle not in (Shuffle.GLOBAL, Shuffle.ADAPTIVE):
            raise ValueError(f"shuffle must be True, False or Shuffle.GLOBAL, got {shuffle!r}")
        shuffle = True
    if num_samples is not None and integer_of(num_samples, "num_samples") <= 0:
        raise ValueError(f"num_samples must be positive, got {num_samples}")
    if (num_shards is None) != (shard_id is None):
        raise ValueError("num_shards and shard_id must be given together")
    return _data.SourceOptions(
        shuffle,
        workers_of(num_parallel_workers),
        0 if num_samples is None else integer_of(num_samples, "num_samples"),
        0 if num_shards is None else integer_of(num_shards, "num_shards"),
        -1 if shard_id is None else integer_of(shard_id, "shard_id"),
        handle_of(sampler),
    )


class GeneratorDataset(Dataset):
    """Rows from Python.

    source: an object with __getitem__ and __len__ (shuffled by default); a generator function, called once an epoch; an
    iterable; or an iterator or generator object, which gives its rows once. A row is a tuple with an array or number
    for each of `column_names`, or a single one. A list or tuple of such rows is copied once, and no Python runs for it
    afterwards. Without random access `shuffle=True` draws from a buffer of 1024 rows. Rows are fetched by
    num_parallel_workers threads, in order; what a source raises comes out where the data is used.
    """

    def __init__(
        self,
        source,
        column_names=None,
        column_types=None,
        schema=None,
        num_samples=None,
        num_parallel_workers=1,
        shuffle=None,
        sampler=None,
        num_shards=None,
        shard_id=None,
        python_multiprocessing=True,
        max_rowsize=None,
        batch_sampler=None,
        collate_fn=None,
    ):
        if batch_sampler is not None or collate_fn is not None:
            raise NotImplementedError(
                "GeneratorDataset: batch_sampler and collate_fn are not supported yet; use batch()"
            )
        if schema is not None or column_types is not None:
            raise NotImplementedError("GeneratorDataset: schema and column_types are not supported; use map()")
        names = names_of(column_names, "column_names")
        if not names:
            raise ValueError("GeneratorDataset: column_names must be given")
        options = _options(shuffle, num_parallel_workers, num_samples, num_shards, shard_id, sampler)
        super().__init__(self._make(source, names, options))

    @staticmethod
    def _make(source, names, options):
        title = f"GeneratorDataset({_title(source)})"
        if type(source) in (list, tuple) and len(source):
            columns = _data.snapshot(source)
            if columns is not None and len(columns) == len(names):
                return _data.arrays(columns, names, options)
        if hasattr(source, "__getitem__") and not isinstance(source, type):
            if not hasattr(source, "__len__"):
                raise TypeError(f"{title}: a source with __getitem__ also needs __len__")
            return _data.random_access(source, len(source), title, names, options)
        if hasattr(source, "__next__") and _built_in(source):
            return _data.sequential(lambda: source, True, title, names, options)
        if hasattr(source, "__iter__") and not isinstance(source, type):
            return _data.sequential(lambda: iter(source), False, title, names, options)
        if callable(source):
            return _data.sequential(lambda: iter(source()), False, title, names, options)
        raise TypeError(
            "GeneratorDataset: source must be a sequence, an iterable or a generator function, not "
            f"{type(source).__name__}"
        )


def _title(source):
    return getattr(source, "__qualname__", None) or getattr(source, "__name__", None) or type(source).__name__


def _built_in(source):
    """Whether it is an iterator that cannot start over: a generator object, zip, map, a file, ..."""
    return type(source).__module__ in ("builtins", "itertools", "_io") or type(source).__name__ == "generator"


class NumpySlicesDataset(Dataset):
    """Arrays sliced on their first dimension.

    data: an array, a list, a tuple of arrays (one a column), or a dict from column name to array. Names default to
    column_0, column_1, ... Shuffled by default.
    """

    def __init__(
        self,
        data,
        column_names=None,
        num_samples=None,
        num_parallel_workers=1,
        shuffle=None,
        sampler=None,
        num_shards=None,
        shard_id=None,
    ):
        names = names_of(column_names, "column_names")
        if isinstance(data, dict):
            if not data:
                raise ValueError("NumpySlicesDataset: data is empty")
            names, columns = names or list(data), list(data.values())
        elif isinstance(data, tuple):
            columns = list(data)
        elif isinstance(data, (list, np.ndarray)) or hasattr(data, "__array__"):
            columns = [data]
        else:
            raise TypeError(
                f"NumpySlicesDataset: data must be an array, a list, a tuple or a dict, got {type(data).__name__}"
            )
        if names and len(names) != len(columns):
            raise ValueError(f"NumpySlicesDataset: {len(columns)} columns of data and {len(names)} column_names")
        options = _options(shuffle, num_parallel_workers, num_samples, num_shards, shard_id, sampler)
        super().__init__(_data.arrays(columns, names, options))


class _IdxDataset(Dataset):
    """Images and labels in IDX files, plain or gzip. Columns: image uint8 (28, 28, 1), label uint32 ()."""

    def __init__(
        self,
        dataset_dir,
        usage=None,
        num_samples=None,
        num_parallel_workers=None,
        shuffle=None,
        sampler=None,
        num_shards=None,
        shard_id=None,
        cache=None,
    ):
        if usage not in (None, "train", "test", "all"):
            raise ValueError(f"{type(self).__name__}: usage must be 'train', 'test' or 'all', got {usage!r}")
        options = _options(shuffle, num_parallel_workers, num_samples, num_shards, shard_id, sampler)
        super().__init__(self._open(os.fspath(dataset_dir), usage or "all", options))


class MnistDataset(_IdxDataset):
    """MNIST from a folder. Raises FileError for a missing folder or file, FormatError for a wrong one."""

    _open = staticmethod(_data.mnist)


class FashionMnistDataset(_IdxDataset):
    """Fashion-MNIST from a folder. Raises FileError for a missing folder or file, FormatError for a wrong one."""

    _open = staticmethod(_data.fashion_mnist)
