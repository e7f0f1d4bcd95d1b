# SPDX-License-Identifier: Apache-2.0
"""Datasets that start a pipeline."""

import builtins
import os

import numpy as np

from undertow._core import data as _data
from undertow.dataset.datasets import Dataset, Shuffle, bool_of, integer_of, names_of, workers_of
from undertow.dataset.samplers import handle_of
from undertow.dataset.schema import Schema
from undertow.dataset.transforms import TypeCast

_MODES = {Shuffle.GLOBAL: 0, Shuffle.ADAPTIVE: 0, Shuffle.PARTIAL: 0, Shuffle.FILES: 1, Shuffle.INFILE: 2}


def _options(shuffle, num_parallel_workers, num_samples, num_shards, shard_id, sampler):
    """The common arguments of sources, checked."""
    mode = 0
    if shuffle is not None and not isinstance(shuffle, bool):
        if shuffle not in _MODES:
            raise TypeError(f"shuffle must be a bool or one of dataset.Shuffle, got {shuffle!r}")
        mode, shuffle = _MODES[shuffle], True
    if num_samples is not None and integer_of(num_samples, "num_samples") <= 0:
        raise ValueError(f"num_samples must be positive, got {num_samples}")
    if (num_shards is None) != (shard_id is None):
        raise ValueError("num_shards and shard_id must be given together")
    if num_shards is not None:
        if integer_of(num_shards, "num_shards") < 1:
            raise ValueError(f"num_shards must be at least 1, got {num_shards}")
        if not 0 <= integer_of(shard_id, "shard_id") < num_shards:
            raise ValueError(f"shard_id must be in [0, {num_shards}), got {shard_id}")
    return _data.SourceOptions(
        shuffle,
        workers_of(num_parallel_workers),
        0 if num_samples is None else integer_of(num_samples, "num_samples"),
        0 if num_shards is None else integer_of(num_shards, "num_shards"),
        -1 if shard_id is None else integer_of(shard_id, "shard_id"),
        handle_of(sampler),
        mode,
    )


class GeneratorDataset(Dataset):
    """Rows from Python.

    source: an object with __getitem__ and __len__ (shuffled by default); a generator function, called once an epoch; an
    iterable; or an iterator or generator object, which gives its rows once. A row is a tuple with an array or number
    for each of `column_names`, or a single one. A list or tuple of such rows is copied once, and no Python runs for it
    afterwards. Without random access `shuffle=True` draws from a buffer of 1,000 rows or
    256 MB, whichever is less (config.set_shuffle_buffer). With random access and num_parallel_workers above 1 rows are
    fetched by that many worker processes, forked when an iterator or a training starts; with
    python_multiprocessing=False, by threads that take turns. Rows come in order, and what a source raises comes out
    where the data is used. A source that draws from NumPy's or Python's global generators finds them seeded for each
    row.
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
        names = names_of(column_names, "column_names")
        if schema is not None:
            schema = schema if isinstance(schema, Schema) else Schema(schema)
            names, column_types = names or list(schema.columns), column_types or schema.types()
        if not names:
            raise ValueError("GeneratorDataset: column_names must be given, or a schema")
        if batch_sampler is None:
            if collate_fn is not None:
                raise ValueError("GeneratorDataset: collate_fn needs a batch_sampler")
            options = _options(shuffle, num_parallel_workers, num_samples, num_shards, shard_id, sampler)
            multiprocessing = bool_of(python_multiprocessing, "GeneratorDataset: python_multiprocessing")
            processes = multiprocessing and workers_of(num_parallel_workers) > 1
            super().__init__(self._make(source, names, options, processes))
        else:
            given = (num_samples, shuffle, sampler, num_shards, shard_id)
            if any(value is not None for value in given):
                raise ValueError("GeneratorDataset: batch_sampler excludes sampler, shuffle, num_samples and shards")
            options = _options(None, num_parallel_workers, None, None, None, None)
            super().__init__(_batches(source, names, batch_sampler, collate_fn, options))
        for name, dtype in builtins.zip(names, column_types or ()):
            if dtype is not None:
                self._node = self.map(TypeCast(dtype), name)._node

    @staticmethod
    def _make(source, names, options, processes):
        title = f"GeneratorDataset({_title(source)})"
        if type(source) in (list, tuple) and len(source):
            columns = _data.snapshot(source)
            if columns is not None and len(columns) == len(names):
                return _data.arrays(columns, names, options)
        if hasattr(source, "__getitem__") and not isinstance(source, type):
            if not hasattr(source, "__len__"):
                raise TypeError(f"{title}: a source with __getitem__ also needs __len__")
            return _data.random_access(source, len(source), title, names, options, processes)
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


def _batches(source, names, batch_sampler, collate_fn, options):
    """Whole batches: the rows of each list of row numbers that batch_sampler gives, stacked or given to collate_fn."""
    if not hasattr(source, "__getitem__"):
        raise TypeError("GeneratorDataset: batch_sampler needs a source with __getitem__")
    if not hasattr(batch_sampler, "__iter__"):
        raise TypeError(f"GeneratorDataset: batch_sampler must be iterable, got {type(batch_sampler).__name__}")
    if collate_fn is not None and not callable(collate_fn):
        raise TypeError("GeneratorDataset: collate_fn must be callable")

    def stack(rows):
        rows = [row if isinstance(row, tuple) else (row,) for row in rows]
        return tuple(np.stack([np.asarray(value) for value in column]) for column in builtins.zip(*rows))

    def batches():
        for numbers in batch_sampler:
            yield (collate_fn or stack)([source[int(i)] for i in numbers])

    return _data.sequential(batches, False, f"GeneratorDataset({_title(source)})", names, options)


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


class _UsageDataset(Dataset):
    """A folder with a set for training and one for tests; usage: 'train', 'test', or None or 'all' for all there is."""

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
        self._cache_in(cache)


class MnistDataset(_UsageDataset):
    """MNIST from a folder of IDX files, plain or gzip. Columns: image uint8 (28, 28, 1), label uint32 ().
    Raises FileError for a missing folder or file, FormatError for a wrong one.
    """

    _open = staticmethod(_data.mnist)


class FashionMnistDataset(_UsageDataset):
    """Fashion-MNIST from a folder. Raises FileError for a missing folder or file, FormatError for a wrong one."""

    _open = staticmethod(_data.fashion_mnist)


class Cifar10Dataset(_UsageDataset):
    """CIFAR-10's binary version: data_batch_*.bin and test_batch.bin. Columns: image uint8 (32, 32, 3), label
    uint32 ().
    """

    _open = staticmethod(_data.cifar10)


class Cifar100Dataset(_UsageDataset):
    """CIFAR-100's binary version (train.bin, test.bin). Columns: image uint8 (32, 32, 3), coarse_label and fine_label
    uint32 ().
    """

    _open = staticmethod(_data.cifar100)


class PaddedDataset(GeneratorDataset):
    """The given rows (dicts from column to array), in their order, to be put behind another dataset with `+`."""

    def __init__(self, padded_samples):
        if not isinstance(padded_samples, list) or not padded_samples:
            raise TypeError(f"padded_samples must be a list of dicts, got {padded_samples!r}")
        if not all(isinstance(row, dict) and row.keys() == padded_samples[0].keys() for row in padded_samples):
            raise ValueError("padded_samples must be dicts with the same columns")
        names = list(padded_samples[0])
        super().__init__([tuple(row[n] for n in names) for row in padded_samples], names, shuffle=False)


class DatasetCache:
    """Rows kept in memory, for the argument `cache`: `size` MB, 0: any number. The server that MindSpore's has is not
    needed; the other arguments change nothing.
    """

    def __init__(
        self, session_id, size=0, spilling=False, hostname=None, port=None, num_connections=None, prefetch_size=None
    ):
        self.session_id = integer_of(session_id, "session_id")
        if integer_of(size, "size") < 0:
            raise ValueError(f"size must not be negative, got {size}")
        if spilling:
            raise NotImplementedError("DatasetCache: spilling to disk is not supported")
        self.size_in_bytes = size << 20
