# SPDX-License-Identifier: Apache-2.0
"""Dataset.save: rows of any dataset to MindRecord files."""

import json
import os

import numpy as np

from undertow._core import data as _data

# Before the list of columns that are stored as bytes, in the schema's description.
NOTE = "undertow columns: "
_NUMBERS = ("int32", "int64", "float32", "float64")
_BATCH = 256


def save(dataset, file_name, num_files, file_type):
    if file_type != "mindrecord":
        raise ValueError(f"save: file_type must be 'mindrecord', got {file_type!r}")
    if isinstance(num_files, bool) or not isinstance(num_files, int) or not 1 <= num_files <= 1000:
        raise ValueError(f"save: num_files must be in [1, 1000], got {num_files!r}")
    total = dataset.get_dataset_size() if num_files > 1 else 0
    if total < 0:
        raise ValueError("save: the number of rows is not known before the pipeline runs; save to one file")
    rows = dataset.create_dict_iterator(num_epochs=1, output_numpy=True)
    writer, columns, waiting, shard = None, {}, [], 0
    # The first files have one row more where they do not divide, so that the order stays when they are read.
    ends = [(total // num_files) * (i + 1) + min(i + 1, total % num_files) for i in range(num_files)]
    for count, row in enumerate(rows):
        if writer is None:
            columns = {name: _Column(name, value) for name, value in row.items()}
            writer = _data.MindRecordWriter(os.fspath(file_name), num_files, False)
            stored = {c.name: [c.dtype.name, c.shape] for c in columns.values() if c.as_bytes}
            writer.set_schema([c.field for c in columns.values()], NOTE + json.dumps(stored) if stored else "", [])
        full = num_files > 1 and count == ends[shard]
        if full or len(waiting) == _BATCH:
            writer.write(waiting, shard)
            waiting = []
            shard += full
        waiting.append({name: columns[name].value(value, count) for name, value in row.items()})
    if writer is None:
        raise ValueError("save: the dataset has no rows")
    writer.write(waiting, shard)
    writer.commit()


class _Column:
    """How one column is stored: as its first row is."""

    def __init__(self, name, first):
        self.name, self.dtype, self.rank = name, first.dtype, first.ndim
        self.text = first.dtype.kind == "U"
        if self.text and first.ndim:
            raise TypeError(f"save: column '{name}' holds several texts a row, for which MindRecord has no type")
        self.as_bytes = first.dtype.name not in _NUMBERS and not self.text
        self.inner = first.shape[1:]
        self.shape = [-1, *self.inner] if first.ndim else []
        if self.text:
            self.field = (name, "string", None)
        elif self.as_bytes:
            self.field = (name, "bytes", None)
        else:
            self.field = (name, first.dtype.name, self.shape or None)

    def value(self, array, row):
        same = array.dtype == self.dtype or (self.text and array.dtype.kind == "U")
        if not same or array.ndim != self.rank or array.shape[1:] != self.inner:
            raise ValueError(
                f"save: column '{self.name}' is {self.dtype} of shape {self.shape} in the first row and {array.dtype} "
                f"of shape {list(array.shape)} in row {row}; only the first extent may differ"
            )
        if self.text:
            return str(array)
        if self.as_bytes:
            return np.ascontiguousarray(array).tobytes()
        return array if self.rank else array.item()
