# SPDX-License-Identifier: Apache-2.0
"""Dataset: a handle to an immutable pipeline description."""

import builtins
import inspect

from undertow._core import data as _data


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


def map_handle(operation):
    """The C++ operation for one of ours or for a Python callable."""
    if hasattr(operation, "_handle"):
        return operation._handle()
    if not callable(operation):
        raise TypeError(f"map: an operation must be callable, got {type(operation).__name__}")
    name = getattr(operation, "__name__", type(operation).__name__)
    return _data.python_map(operation, _arity(operation), name)


def _arity(function):
    """How many columns a callable takes: its positional parameters without defaults; -1 for any number."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return 1
    if any(p.kind is p.VAR_POSITIONAL for p in parameters):
        return -1
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return max(1, sum(p.kind in kinds and p.default is p.empty for p in parameters))


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
        """Rows become batches; every column gains a leading dimension. Rows of different shapes raise DataError."""
        if per_batch_map is not None or callable(batch_size):
            raise NotImplementedError("batch: per_batch_map and a batch_size function are not supported yet; use map()")
        n = integer_of(batch_size, "batch: batch_size")
        return Dataset(self._node.batch(n, bool(drop_remainder), workers_of(num_parallel_workers)))

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
        """
        items = list(operations) if isinstance(operations, (list, tuple)) else [operations]
        op = _data.compose([map_handle(item) for item in items])
        inputs, outputs = names_of(input_columns, "map: input_columns"), names_of(output_columns, "map: output_columns")
        return Dataset(self._node.map(op, inputs, outputs, workers_of(num_parallel_workers)))

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
        return [list(shape) for shape in self._node.output_shapes()]

    def output_types(self):
        """NumPy's type of each column, from the first row."""
        from undertow.common.dtype import dtype_to_nptype

        return [dtype_to_nptype(t) for t in self._node.output_types()]

    def reset(self):
        """Nothing to do: every iterator starts anew."""


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
