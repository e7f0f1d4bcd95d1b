# SPDX-License-Identifier: Apache-2.0
"""CellDict: cells held by name."""

from collections.abc import Iterable, Mapping

from undertow._core.nn import Cell


class CellDict(Cell):
    """CellDict(cells=None): cells by key, registered, in the order they came; used like a dict.

    `cells`: a dict, a CellDict, or an iterable of (key, cell). A key is a str without dots. Raises TypeError and
    ValueError for other keys and values, KeyError for a key that is not there. It cannot be called.
    """

    def __init__(self, cells=None):
        super().__init__()
        if cells is not None:
            self.update(cells)

    def __getitem__(self, key):
        return self.name_cells()[key]

    def __setitem__(self, key, cell):
        if not isinstance(key, str):
            raise TypeError(f"CellDict: a key must be a str, got {type(key).__name__}")
        if not key or "." in key:
            raise ValueError(f"CellDict: a key must be a name without dots, got {key!r}")
        if not isinstance(cell, Cell):
            raise TypeError(f"CellDict: the value of '{key}' must be a Cell, got {type(cell).__name__}")
        self._insert_child(key, cell)

    def __delitem__(self, key):
        self.pop(key)

    def __len__(self):
        return len(self.name_cells())

    def __bool__(self):
        return len(self) > 0

    def __iter__(self):
        return iter(self.name_cells())

    def __contains__(self, key):
        return key in self.name_cells()

    def keys(self):
        return self.name_cells().keys()

    def values(self):
        return self.name_cells().values()

    def items(self):
        return self.name_cells().items()

    def pop(self, key):
        """Takes a cell out and returns it."""
        cell = self[key]
        self._remove_child(key)
        return cell

    def clear(self):
        for key in list(self):
            self._remove_child(key)

    def update(self, cells):
        """Adds cells, replacing those of the same keys."""
        if isinstance(cells, (Mapping, CellDict)):
            cells = cells.items()
        if not isinstance(cells, Iterable):
            raise TypeError(f"CellDict: the cells must be a dict or pairs, got {type(cells).__name__}")
        for pair in cells:
            if not isinstance(pair, (list, tuple)) or len(pair) != 2:
                raise ValueError(f"CellDict: an item must be a pair (key, cell), got {pair!r}")
            self[pair[0]] = pair[1]

    def construct(self, *inputs):
        raise NotImplementedError("a CellDict cannot be called; call its cells")
