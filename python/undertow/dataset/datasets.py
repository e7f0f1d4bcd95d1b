# SPDX-License-Identifier: Apache-2.0
"""Dataset: a handle to an immutable pipeline description."""

import builtins

import numpy as np

from undertow._core import data as _data
from undertow.dataset._operation import handle_of, has_functions


class Shuffle:
    """Kinds of shuffling."""

    FALSE, ADAPTIVE, GLOBAL, PARTIAL, FILES, INFILE = False, "adaptive", "global", "partial", "file", "infile"


def names_of(columns, what):
    """A list of column names from None, a name, or a list of them."""
    if columns is None:
        return []
    names = [columns] if isinstance(columns, str) else list(columns)
    for name in names:
        if not isinstance(name, str):
            raise TypeError(f"{what} must be column names, got {name!r}")
    return names


def workers_of(value):
    """num_parallel_workers: None is the default."""
    if value is None:
        return 0
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"num_parallel_workers must be an integer, got {value!r}")
    if value < 1:
        raise ValueError(f"num_parallel_workers must be positive, got {value}")
    return value


def integer_of(value, what):
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise TypeError(f"{what} must be an integer, got {value!r}")
    return value.__index__()


def bool_of(value, what):
    if not isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{what} must be a bool, got {value!r}")
    return bool(value)


class Dataset:
    """Rows of named columns, and how they are made. Every method gives a new Dataset; nothing runs before an iterator,
    Model.train or output_shapes(). One Dataset may be the base of any number of others.
    """

    def __init__(self, node):
        self._node = node

    # ---- operations

    def batch(
        self,
        batch_size,
        drop_remainder=False,
        num_parallel_workers=None,
        per_batch_map=None,
        input_columns=None,
        output_columns=None,
        python_multiprocessing=False,
        max_rowsize=None,
    ):
        """Rows become batches; every column gains a leading dimension. Rows of different shapes raise DataError.

        batch_size may be a function of BatchInfo. per_batch_map(*columns, BatchInfo) gets a list of arrays for each of
        `input_columns` (default: all) and gives as many such lists as `output_columns` (default: the input columns)
        has names; they take the places of the input columns where there are as many, else they come first. With
        python_multiprocessing it runs in num_parallel_workers worker processes.
        """
        if callable(batch_size):
            size_of = batch_size

            def size(batch, epoch):
                return size_of(BatchInfo(batch, epoch))

        else:
            size = integer_of(batch_size, "batch: batch_size")
        drop, workers = bool_of(drop_remainder, "batch: drop_remainder"), workers_of(num_parallel_workers)
        if per_batch_map is None:
            if input_columns is not None or output_columns is not None:
                raise ValueError("batch: input_columns and output_columns need a per_batch_map")
            return Dataset(self._node.batch(size, drop, workers))
        if not callable(per_batch_map):
            raise TypeError(f"batch: per_batch_map must be callable, got {type(per_batch_map).__name__}")
        names = self.get_col_names()
        inputs = names_of(input_columns, "batch: input_columns") or names
        outputs = names_of(output_columns, "batch: output_columns") or inputs
        for name in inputs:
            if name not in names:
                raise ValueError(f"batch: there is no column '{name}'; the columns are {', '.join(names)}")
        places, out_names = _places(names, inputs, outputs)

        def function(batch, epoch, *columns):
            return per_batch_map(*columns, BatchInfo(batch, epoch))

        collate = _data.python_batch(function, [names.index(c) for c in inputs], len(outputs), places, out_names)
        if bool_of(python_multiprocessing, "batch: python_multiprocessing"):
            collate = _data.in_processes(collate)
        return Dataset(self._node.batch(size, drop, workers, collate, out_names))

    def padded_batch(self, batch_size, drop_remainder=False, num_parallel_workers=None, pad_info=None):
        """As batch(), with columns padded to one shape.

        pad_info: {column: (shape, value)}, where extents of the shape may be None and the shape may be None: up to the
        largest of the batch. Without it all columns are padded, with 0.
        """
        size = integer_of(batch_size, "padded_batch: batch_size")
        padding = _padding(pad_info, "padded_batch")
        drop = bool_of(drop_remainder, "padded_batch: drop_remainder")
        return Dataset(self._node.padded_batch(size, padding, drop, workers_of(num_parallel_workers)))

    def bucket_batch_by_length(
        self,
        column_names,
        bucket_boundaries,
        bucket_batch_sizes,
        element_length_function=None,
        pad_info=None,
        pad_to_bucket_boundary=False,
        drop_remainder=False,
    ):
        """Batches of rows of about one length, padded.

        A row goes to the first bucket whose boundary is above its length, which is element_length_function(*columns),
        or the first extent of the only column; a bucket with its number of rows becomes a batch.
        """
        if element_length_function is not None and not callable(element_length_function):
            raise TypeError("bucket_batch_by_length: element_length_function must be callable")
        for value, what in ((bucket_boundaries, "bucket_boundaries"), (bucket_batch_sizes, "bucket_batch_sizes")):
            if not isinstance(value, (list, tuple)):
                raise TypeError(f"bucket_batch_by_length: {what} must be a list of integers, got {value!r}")
        return Dataset(
            self._node.bucket_batch(
                names_of(column_names, "bucket_batch_by_length: column_names"),
                [integer_of(b, "bucket_batch_by_length: a boundary") for b in bucket_boundaries],
                [integer_of(b, "bucket_batch_by_length: a batch size") for b in bucket_batch_sizes],
                element_length_function,
                _padding(pad_info, "bucket_batch_by_length"),
                bool_of(pad_to_bucket_boundary, "bucket_batch_by_length: pad_to_bucket_boundary"),
                bool_of(drop_remainder, "bucket_batch_by_length: drop_remainder"),
            )
        )

    def cache(self, size=0):
        """Keeps each row, as it is here, in memory once it was made: up to `size` bytes, 0: any number.

        For sources with random access; rows of the others are read each time.
        """
        if integer_of(size, "cache: size") < 0:
            raise ValueError(f"cache: size must not be negative, got {size}")
        return Dataset(self._node.cache(size))

    def _cache_in(self, cache):
        """For constructors: their argument `cache`, a DatasetCache or None."""
        if cache is not None:
            self._node = self.cache(cache.size_in_bytes)._node

    def map(
        self,
        operations,
        input_columns=None,
        output_columns=None,
        num_parallel_workers=None,
        python_multiprocessing=False,
        max_rowsize=None,
        cache=None,
        callbacks=None,
        offload=None,
    ):
        """Applies an operation, or a list of them one after the other, to the input columns (default: the first).

        A Python callable gets NumPy arrays and returns an array, a number, or a tuple of them. Other columns are kept.
        With python_multiprocessing a list that has a Python callable runs in num_parallel_workers worker processes,
        forked when an iterator or a training starts; else in threads. A callable that draws from NumPy's or Python's
        global generators finds them seeded for each row.
        """
        operations = operations if isinstance(operations, (list, tuple)) else [operations]
        op = handle_of(operations)
        if bool_of(python_multiprocessing, "map: python_multiprocessing") and has_functions(operations):
            op = _data.in_processes(op)
        inputs, outputs = names_of(input_columns, "map: input_columns"), names_of(output_columns, "map: output_columns")
        mapped = Dataset(self._node.map(op, inputs, outputs, workers_of(num_parallel_workers), _callbacks(callbacks)))
        return mapped if cache is None else mapped.cache(cache.size_in_bytes)

    def shuffle(self, buffer_size):
        """Draws rows from a buffer of that many, anew each epoch. buffer_size >= 2."""
        return Dataset(self._node.shuffle(integer_of(buffer_size, "shuffle: buffer_size")))

    def repeat(self, count=None):
        """Several passes as one epoch; None or -1: without end."""
        return Dataset(self._node.repeat(-1 if count is None else integer_of(count, "repeat: count")))

    def take(self, count=-1):
        """The first rows (or batches); -1: all."""
        return Dataset(self._node.take(integer_of(count, "take: count")))

    def skip(self, count):
        """Without the first rows (or batches)."""
        return Dataset(self._node.skip(integer_of(count, "skip: count")))

    def rename(self, input_columns, output_columns):
        """Columns under other names."""
        return Dataset(self._node.rename(names_of(input_columns, "rename"), names_of(output_columns, "rename")))

    def project(self, columns):
        """Only these columns, in this order."""
        return Dataset(self._node.project(names_of(columns, "project")))

    def filter(self, predicate, input_columns=None, num_parallel_workers=None):
        """Keeps the rows for which `predicate` of the input columns (default: all) is true."""
        if not callable(predicate):
            raise TypeError(f"filter: predicate must be callable, got {type(predicate).__name__}")
        return Dataset(self._node.filter(predicate, names_of(input_columns, "filter: input_columns")))

    def zip(self, datasets):
        """Columns side by side, as long as the shortest."""
        others = [datasets] if isinstance(datasets, Dataset) else list(datasets)
        return Dataset(self._node.zip([_node(d) for d in others]))

    def concat(self, datasets):
        """One after the other. Column names must be equal."""
        node = self._node
        for other in [datasets] if isinstance(datasets, Dataset) else datasets:
            node = node.concat(_node(other))
        return Dataset(node)

    def __add__(self, other):
        return self.concat(other)

    def split(self, sizes, randomize=True):
        """Parts that never share a row: numbers of rows, or fractions of all of them."""
        if not isinstance(sizes, (list, tuple)) or not sizes:
            raise ValueError(f"split: sizes must be a list of numbers, got {sizes!r}")
        if all(isinstance(s, float) for s in sizes):
            if not all(0 < s <= 1 for s in sizes) or abs(sum(sizes) - 1) > 1e-9:
                raise ValueError(f"split: fractions must be in (0, 1] and sum to 1, got {sizes}")
            total = self.get_dataset_size()
            sizes = [round(total * s) for s in sizes]
            sizes[-1] += total - sum(sizes)
        return [Dataset(n) for n in self._node.split([integer_of(s, "split: a size") for s in sizes], bool(randomize))]

    def apply(self, apply_func):
        """apply_func(self), which must give a Dataset."""
        result = apply_func(self)
        if not isinstance(result, Dataset):
            raise TypeError(f"apply: the function must return a Dataset, got {type(result).__name__}")
        return result

    def flat_map(self, func):
        """The datasets that func(*row) gives for each row (NumPy arrays), one after the other. Runs this dataset at
        once.
        """
        parts = [func(*row) for row in self.create_tuple_iterator(num_epochs=1, output_numpy=True)]
        if not parts:
            raise ValueError("flat_map: the dataset has no rows")
        return parts[0] if len(parts) == 1 else parts[0].concat(parts[1:])

    def sync_wait(self, condition_name, num_batch=1, callback=None):
        """Batches (or rows) wait here until they are let through: `num_batch` at the start of an epoch, more with each
        sync_update, which calls callback(data) first. RuntimeError after config.get_callback_timeout() seconds.
        """
        if not isinstance(condition_name, str):
            raise TypeError(f"sync_wait: condition_name must be a str, got {condition_name!r}")
        if callback is not None and not callable(callback):
            raise TypeError(f"sync_wait: callback must be callable, got {type(callback).__name__}")
        n = integer_of(num_batch, "sync_wait: num_batch")
        return Dataset(self._node.sync_wait(condition_name, n, callback))

    def sync_update(self, condition_name, num_batch=None, data=None):
        """Lets `num_batch` more (default: as many as at the start) through the sync_wait of that name, after its
        callback(data).
        """
        if num_batch is not None and integer_of(num_batch, "sync_update: num_batch") < 1:
            raise ValueError(f"sync_update: num_batch must be positive, got {num_batch}")
        self._node.sync_update(condition_name, 0 if num_batch is None else num_batch, data)

    def state(self):
        """{"seed", "epoch", "batch"} behind the last batch that the latest iterator or training of this dataset has
        given, epoch and batch counted from 0; to be kept, and given to load_state.
        """
        return _state(self._node.state())

    def load_state(self, state):
        """The next iterator or training of this dataset begins there, with the rows that the one before would have
        given, for any workers; its first epoch is what is left of one. Sources without random access are read up to
        there. ValueError for a position that the dataset does not have.
        """
        if not isinstance(state, dict) or set(state) != {"seed", "epoch", "batch"}:
            raise ValueError(f"load_state takes what state() gave, a dict of seed, epoch and batch; got {state!r}")
        self._node.load_state(_data.Position(*(integer_of(state[k], k) for k in ("seed", "epoch", "batch"))))

    def profile(self, batches=100):
        """Runs up to that many batches of an epoch as fast as they come, and gives where their time goes: for each
        stage its samples/s alone, time per sample and share, how full the queue was, and one sentence that names the
        bottleneck; str() is a table.
        """
        return self._node.profile(integer_of(batches, "profile: batches"))

    def last_profile(self):
        """The same figures of the latest iterator or training (Model.train, fit, eval) of this dataset that has ended;
        None where there was none.
        """
        return self._node.last_profile()

    def save(self, file_name, num_files=1, file_type="mindrecord"):
        """Writes the rows to MindRecord files, in their order: the first files have one row more where they do not
        divide. Types that MindRecord lacks are stored as bytes and noted in the schema's description, from which
        MindDataset gives them back as they were.
        """
        from undertow.dataset.saving import save

        save(self, file_name, num_files, file_type)

    # ---- iteration

    def create_dict_iterator(self, num_epochs=-1, output_numpy=False, do_copy=False):
        """An iterator over one epoch after the other, of dicts from column name to Tensor (or NumPy array)."""
        return _data.Iterator(self._node, _epochs(num_epochs), True, bool(output_numpy))

    def create_tuple_iterator(self, columns=None, num_epochs=-1, output_numpy=False, do_copy=False):
        """An iterator over one epoch after the other, of lists of Tensors (or NumPy arrays)."""
        node = self._node if columns is None else self.project(columns)._node
        return _data.Iterator(node, _epochs(num_epochs), False, bool(output_numpy))

    def __iter__(self):
        return self.create_tuple_iterator(num_epochs=1)

    # ---- questions

    def get_dataset_size(self):
        """Rows or batches an epoch; -1 for a source that gives its rows only once and does not know their number."""
        return self._node.get_dataset_size()

    def __len__(self):
        size = self.get_dataset_size()
        if size < 0:
            raise TypeError("the size of this dataset is not known before it has run")
        return size

    def get_batch_size(self):
        """Rows a batch; 1 without batch()."""
        return self._node.get_batch_size()

    def get_repeat_count(self):
        return self._node.get_repeat_count()

    def get_col_names(self):
        return self._node.get_col_names()

    @property
    def column_names(self):
        return self.get_col_names()

    def output_shapes(self, estimate=False):
        """The shape of each column, from the first row."""
        return [list(shape) for _, shape, _ in self._node.specs()]

    def output_types(self):
        """NumPy's type of each column, from the first row."""
        from undertow.common.dtype import dtype_to_nptype

        return [
            dtype_to_nptype(t) if not text else (np.bytes_ if t.itemsize == 1 else np.str_)
            for t, _, text in self._node.specs()
        ]

    def num_classes(self):
        """The number of classes of the source; None where it has none."""
        return len(self._node.classes()) or None

    def get_class_indexing(self):
        """{name of a class: its number}; empty where the source has none."""
        return dict(self._node.classes())

    @property
    def input_indexs(self):
        """Whatever it was set to; it changes nothing here."""
        return getattr(self, "_input_indexs", ())

    @input_indexs.setter
    def input_indexs(self, value):
        self._input_indexs = value

    def reset(self):
        """Nothing to do: every iterator starts anew."""

    def close(self):
        """Nothing to do: threads end with their iterator."""


class BatchInfo:
    """What a function for a batch may ask for: the number of the batch in its epoch, and of the epoch, from 0."""

    def __init__(self, batch, epoch):
        self._batch, self._epoch = batch, epoch

    def get_batch_num(self):
        return self._batch

    def get_epoch_num(self):
        return self._epoch


def _state(position):
    return {"seed": position.seed, "epoch": position.epoch, "batch": position.batch}


def _callbacks(callbacks):
    """A list of DSCallback from None, one, or a list."""
    from undertow.dataset.callback import DSCallback

    if callbacks is None:
        return []
    callbacks = list(callbacks) if isinstance(callbacks, (list, tuple)) else [callbacks]
    for callback in callbacks:
        if not isinstance(callback, DSCallback):
            raise TypeError(f"map: callbacks must be DSCallback, got {type(callback).__name__}")
    return callbacks


def _places(names, inputs, outputs):
    """For each column that follows: the output that it is, or ~column that it was; and its name."""
    if len(inputs) == len(outputs):
        places = [inputs.index(n) if n in inputs else ~i for i, n in enumerate(names)]
    else:
        places = [*range(len(outputs)), *(~i for i, n in enumerate(names) if n not in inputs)]
    return places, [outputs[p] if p >= 0 else names[~p] for p in places]


def _padding(pad_info, what):
    """{column: (shape, value)}, checked."""
    if pad_info is None:
        return {}
    if not isinstance(pad_info, dict):
        raise TypeError(f"{what}: pad_info must be a dict from column to (shape, value), got {pad_info!r}")
    out = {}
    for column, how in pad_info.items():
        if how is None:
            how = (None, 0)
        if not isinstance(how, (list, tuple)) or len(how) != 2:
            raise TypeError(f"{what}: pad_info['{column}'] must be (shape, value), got {how!r}")
        shape, value = how
        if shape is not None and not isinstance(shape, (list, tuple)):
            raise TypeError(f"{what}: the shape in pad_info['{column}'] must be a list, got {shape!r}")
        value = 0 if value is None else value.decode() if isinstance(value, bytes) else value
        out[column] = (shape, value if isinstance(value, str) else float(value))
    return out


def _epochs(num_epochs):
    n = integer_of(num_epochs, "num_epochs")
    if n == 0 or n < -1:
        raise ValueError(f"num_epochs must be positive, or -1 for no end, got {n}")
    return n


def _node(dataset):
    if not isinstance(dataset, Dataset):
        raise TypeError(f"expected a Dataset, got {type(dataset).__name__}")
    return dataset._node


def _wrap(node):
    """The Python object for a C++ dataset."""
    return Dataset(node)


def zip(datasets):
    """Columns of several datasets side by side."""
    first, *rest = builtins.tuple(datasets)
    return first.zip(rest)


def concat(datasets):
    """Several datasets one after the other."""
    first, *rest = builtins.tuple(datasets)
    return first.concat(rest)
