# SPDX-License-Identifier: Apache-2.0
"""The order in which the rows of a random-access source are visited."""

from undertow._core import data as _data


class Sampler:
    """Base: derive from it and define __iter__, which gives row numbers and is called once an epoch."""

    def __init__(self, num_samples=None):
        self.num_samples = num_samples
        self._child = None

    def _handle(self):
        """The C++ sampler, behind its child."""
        own = self._own_handle()
        child = getattr(self, "_child", None)  # a class of the user's may not have called __init__
        return own if child is None else _data.chained_sampler(handle_of(child), own)

    def _own_handle(self):
        return _data.python_sampler(self)

    def add_child(self, sampler):
        """From now on this sampler chooses among the rows that `sampler` chooses."""
        if sampler is not None and getattr(self, "_child", None) is not None:
            raise RuntimeError("a sampler has one child, and this one has it already")
        self._child = sampler

    def get_child(self):
        return getattr(self, "_child", None)

    def get_num_samples(self):
        return getattr(self, "num_samples", None)


class _Builtin(Sampler):
    def __init__(self, handle, num_samples=None):
        super().__init__(num_samples)
        self._built = handle

    def _own_handle(self):
        return self._built


def _integer(value, what):
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise TypeError(f"{what} must be an integer, got {value!r}")
    return value.__index__()


def _count(value, what):
    if value is None:
        return 0
    if _integer(value, what) < 0:
        raise ValueError(f"{what} must not be negative, got {value}")
    return value.__index__()


def _row_numbers(indices):
    numbers = list(indices)
    for i in numbers:
        if isinstance(i, bool) or not hasattr(i, "__index__"):
            raise TypeError(f"indices must be row numbers, which are integers, got {i!r}")
    return numbers


class SequentialSampler(_Builtin):
    """Rows start_index, start_index + 1, ..."""

    def __init__(self, start_index=None, num_samples=None):
        n = _count(num_samples, "num_samples")
        super().__init__(_data.sequential_sampler(_count(start_index, "start_index"), n), num_samples)


class RandomSampler(_Builtin):
    """A new permutation every epoch; with `replacement` independent draws."""

    def __init__(self, replacement=False, num_samples=None):
        super().__init__(_data.random_sampler(replacement, _count(num_samples, "num_samples")), num_samples)


class SubsetSampler(_Builtin):
    """The given rows, in their order."""

    def __init__(self, indices, num_samples=None):
        super().__init__(_data.subset_sampler(_row_numbers(indices), _count(num_samples, "num_samples")), num_samples)


class SubsetRandomSampler(_Builtin):
    """The given rows, shuffled every epoch."""

    def __init__(self, indices, num_samples=None):
        n = _count(num_samples, "num_samples")
        super().__init__(_data.subset_random_sampler(_row_numbers(indices), n), num_samples)


class WeightedRandomSampler(_Builtin):
    """Row i with a probability in proportion to weights[i]."""

    def __init__(self, weights, num_samples=None, replacement=True):
        n = _count(num_samples, "num_samples")
        super().__init__(_data.weighted_random_sampler([float(w) for w in weights], n, replacement), num_samples)


class DistributedSampler(_Builtin):
    """Rows shard_id, shard_id + num_shards, ... of the epoch's order; every shard has as many."""

    def __init__(self, num_shards, shard_id, shuffle=True, num_samples=None, offset=-1):
        shards, shard = _integer(num_shards, "num_shards"), _integer(shard_id, "shard_id")
        n, offset = _count(num_samples, "num_samples"), _integer(offset, "offset")
        super().__init__(_data.distributed_sampler(shards, shard, shuffle, n, offset), num_samples)


class PKSampler(_Builtin):
    """num_val rows of each of the first num_class classes (None: all), class after class.

    The source tells the classes by class_column. A class with fewer rows starts over.
    """

    def __init__(self, num_val, num_class=None, shuffle=False, class_column="label", num_samples=None):
        if not isinstance(class_column, str):
            raise TypeError(f"class_column must be a column's name, got {class_column!r}")
        if not isinstance(shuffle, bool):
            raise TypeError(f"shuffle must be a bool, got {shuffle!r}")
        val, n = _count(num_val, "num_val"), _count(num_samples, "num_samples")
        super().__init__(_data.pk_sampler(val, _count(num_class, "num_class"), shuffle, class_column, n), num_samples)


class IterSampler(Sampler):
    """Any iterable of row numbers."""

    def __init__(self, sampler, num_samples=None):
        super().__init__(num_samples)
        self._iterable = sampler

    def __iter__(self):
        return iter(self._iterable)


def handle_of(sampler):
    """The C++ sampler for a Sampler, a list of row numbers, or an iterable of them."""
    if sampler is None:
        return None
    if isinstance(sampler, Sampler):
        return sampler._handle()
    if isinstance(sampler, (list, tuple)):
        return SubsetSampler(sampler)._handle()
    if hasattr(sampler, "__iter__"):
        return IterSampler(sampler)._handle()
    raise TypeError(f"sampler must be a Sampler or an iterable of row numbers, got {type(sampler).__name__}")
