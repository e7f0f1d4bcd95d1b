# SPDX-License-Identifier: Apache-2.0
"""Operations for map() on any column."""

from undertow._core import data as _data
from undertow._core import dtype_of


class _Native:
    """An operation in C++. Called, it works on arrays at once."""

    def __init__(self, op):
        self._op = op

    def _handle(self):
        return self._op

    def __call__(self, *arrays):
        return self._op(*arrays)


class TypeCast(_Native):
    """The column in another dtype; float to integer truncates."""

    def __init__(self, data_type):
        super().__init__(_data.type_cast(dtype_of(data_type)))


class Compose(_Native):
    """Several operations as one, applied in order."""

    def __init__(self, transforms):
        from undertow.dataset.datasets import map_handle

        if not isinstance(transforms, (list, tuple)) or not transforms:
            raise ValueError(f"Compose: transforms must be a list of operations, got {transforms!r}")
        self.transforms = list(transforms)
        super().__init__(_data.compose([map_handle(t) for t in self.transforms]))
