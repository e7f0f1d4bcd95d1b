# SPDX-License-Identifier: Apache-2.0
"""A function, or the class form of an op, as a cell: for layers that take an activation."""

from undertow._core.nn import Cell


class FunctionCell(Cell):
    """Calls `function` with its inputs."""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def construct(self, *inputs):
        return self.function(*inputs)
