# SPDX-License-Identifier: Apache-2.0
"""Settings that pipelines take as their defaults. They are read when a pipeline or an iterator is created."""

import random as _random

import numpy as _np

from undertow._core import data as _data


def set_seed(seed):
    """Seeds shuffles and random operations, and NumPy's and Python's global generators."""
    if isinstance(seed, bool) or not isinstance(seed, (int, _np.integer)):
        raise TypeError(f"config.set_seed: the seed must be an integer, got {seed!r}")
    if not 0 <= seed < 2**32:
        raise ValueError(f"config.set_seed: the seed must be in [0, 2^32), got {seed}")
    _data.set_config("seed", int(seed))
    _np.random.seed(int(seed))  # noqa: NPY002
    _random.seed(int(seed))


def get_seed():
    return _data.config("seed")


def set_num_parallel_workers(num):
    """Workers of operations that name none."""
    if isinstance(num, bool) or not isinstance(num, int):
        raise TypeError(f"config.set_num_parallel_workers: the number must be an integer, got {num!r}")
    if num < 1:
        raise ValueError(f"config.set_num_parallel_workers: the number must be positive, got {num}")
    _data.set_config("num_parallel_workers", num)


def get_num_parallel_workers():
    return _data.config("num_parallel_workers")


def set_prefetch_size(size):
    """Batches that an iterator keeps ready."""
    if isinstance(size, bool) or not isinstance(size, int):
        raise TypeError(f"config.set_prefetch_size: the size must be an integer, got {size!r}")
    if size < 1:
        raise ValueError(f"config.set_prefetch_size: the size must be positive, got {size}")
    _data.set_config("prefetch_size", size)


def get_prefetch_size():
    return _data.config("prefetch_size")
