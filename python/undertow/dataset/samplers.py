# SPDX-License-Identifier: Apache-2.0
"""The order in which the rows of a random-access source are visited."""

from undertow._core import data as _data


class Sampler:
    """Base: derive from it and define __iter__, which gives row numbers and is called once an epoch."""

    def __init__(self, num_samples=None):
        self.num_samples = num_samples

    def _handle(self):
        return _data.python_sampler(self)


class _Builtin(Sampler):
    def __init__(self, handle, num_samples=None):
        super().__init__(num_samples)
        self._built = handle

    def _handle(self):
        return self._built


def _count(value, what):
    if value is None:
        return 0
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{what} must be an integer, got {value!r}")
    if value < 0:
        raise ValueError(f"{what} must not be negative, got {value}")
    return value


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
        super().__init__(_data.subset_sampler(list(indices), _count(num_samples, "num_samples")), num_samples)


class SubsetRandomSampler(_Builtin):
    """The given rows, shuffled every epoch."""

    def __init__(self, indices, num_samples=None):
        super().__init__(_data.subset_random_sampler(list(indices), _count(num_samples, "num_samples")), num_samples)


class WeightedRandomSampler(_Builtin):
    """Row i with a probability in proportion to weights[i]."""

    def __init__(self, weights, num_samples=None, replacement=True):
        n = _count(num_samples, "num_samples")
        super().__init__(_data.weighted_random_sampler([float(w) for w in weights], n, replacement), num_samples)


class DistributedSampler(_Builtin):
    """Rows shard_id, shard_id + num_shards, ... of the epoch's order; every shard has as many."""

    def __init__(self, num_shards, shard_id, shuffle=True, num_samples=None, offset=-1):
        n = _count(num_samples, "num_samples")
        super().__init__(_data.distributed_sampler(num_shards, shard_id, shuffle, n, offset), num_samples)


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
