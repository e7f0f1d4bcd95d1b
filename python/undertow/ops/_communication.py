# SPDX-License-Identifier: Apache-2.0
"""Operators between processes. With one process, rank 0 of a group of 1, each gives back what it gets."""

from undertow._core.ops import identity as _identity
from undertow.communication import GlobalComm as _GlobalComm
from undertow.ops._primitive import Primitive as _Primitive

__all__ = ["ReduceOp", "AllReduce", "AllGather", "ReduceScatter", "Broadcast", "AlltoAll"]


class ReduceOp:
    """How values of all processes become one."""

    SUM, MAX, MIN, PROD = "sum", "max", "min", "prod"


class _Alone(_Primitive):
    def __call__(self, x):
        if isinstance(x, (tuple, list)):
            return type(x)(_identity(item) for item in x)
        return _identity(x)


class AllReduce(_Alone):
    """The value over all processes: in one process, the value."""

    def __init__(self, op=ReduceOp.SUM, group=_GlobalComm.WORLD_COMM_GROUP):
        if op not in ("sum", "max", "min", "prod"):
            raise ValueError(f"ops.AllReduce: op must be sum, max, min or prod, got {op!r}")
        super().__init__()


class ReduceScatter(AllReduce):
    """The value over all processes, a part for each: in one process, the value."""


class AllGather(_Alone):
    """The values of all processes, one after the other: in one process, the value."""

    def __init__(self, group=_GlobalComm.WORLD_COMM_GROUP):
        super().__init__()


class Broadcast(_Alone):
    """The values of the root process: in one process, the values."""

    def __init__(self, root_rank, group=_GlobalComm.WORLD_COMM_GROUP):
        if root_rank != 0:
            raise ValueError(f"ops.Broadcast: root_rank must be 0 in a single process, got {root_rank!r}")
        super().__init__()


class AlltoAll(_Alone):
    """A part from each process: in one process, the value."""

    def __init__(self, split_count, split_dim, concat_dim, group=_GlobalComm.WORLD_COMM_GROUP):
        if split_count != 1:
            raise ValueError(f"ops.AlltoAll: split_count must be 1 in a single process, got {split_count!r}")
        super().__init__()
