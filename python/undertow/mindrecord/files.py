# SPDX-License-Identifier: Apache-2.0
"""FileWriter, FileReader and MindPage."""

import json
import os

from undertow._core import data as _data
from undertow.dataset.datasets import integer_of, names_of
from undertow.dataset.files import paths_of


def _path(file_name, what):
    if not isinstance(file_name, (str, os.PathLike)):
        raise TypeError(f"{what}: file_name must be a path, got {file_name!r}")
    return os.fspath(file_name)


class FileWriter:
    """Writes rows to MindRecord files.

    shard_num files, `file_name` and their number where there are several; no file has more than one row more than
    another. Files appear with commit(), all of them and with their index; until then those that were there stay.
    FileError where one is there already and `overwrite` is false.
    """

    def __init__(self, file_name, shard_num=1, overwrite=False):
        if not isinstance(overwrite, bool):
            raise TypeError(f"FileWriter: overwrite must be a bool, got {overwrite!r}")
        shards = integer_of(shard_num, "FileWriter: shard_num")
        self._writer = _data.MindRecordWriter(_path(file_name, "FileWriter"), shards, overwrite)
        self._fields = self._description = None
        self._index = []

    @classmethod
    def open_for_append(cls, file_name):
        """A writer that goes on after the rows of a file that stands alone, with its schema."""
        writer = cls.__new__(cls)
        writer._writer = _data.MindRecordWriter.append(_path(file_name, "FileWriter.open_for_append"))
        writer._fields = []
        return writer

    def add_schema(self, content, desc=None):
        """content: {field: {"type": int32, int64, float32, float64, string or bytes[, "shape": [...]]}}; one extent of
        a shape may be -1.
        """
        if self._fields is not None:
            raise ValueError("add_schema: a MindRecord file has one schema, and it was given already")
        if not isinstance(content, dict) or not content:
            raise ValueError(f"add_schema: content must be a dict from field to its type, got {content!r}")
        if desc is not None and not isinstance(desc, str):
            raise TypeError(f"add_schema: desc must be a str, got {desc!r}")
        fields = []
        for name, field in content.items():
            if not isinstance(name, str) or not isinstance(field, dict) or "type" not in field:
                raise ValueError(f'add_schema: the field {name!r} must be a dict with "type", got {field!r}')
            if unknown := set(field) - {"type", "shape"}:
                raise ValueError(f"add_schema: the field '{name}' has {sorted(unknown)}, which a schema does not have")
            shape = field.get("shape")
            if shape is not None:
                if not isinstance(shape, (list, tuple)):
                    raise ValueError(f"add_schema: the shape of '{name}' must be a list, got {shape!r}")
                shape = [integer_of(d, f"add_schema: an extent of '{name}'") for d in shape]
            if not isinstance(field["type"], str):
                raise ValueError(f"add_schema: the type of '{name}' must be a str, got {field['type']!r}")
            fields.append((name, field["type"], shape))
        self._writer.set_schema(fields, desc or "", [])
        self._fields, self._description = fields, desc or ""

    def add_index(self, index_fields):
        """Fields that the index holds; without it all numbers and texts."""
        if not isinstance(index_fields, list) or not index_fields:
            raise TypeError(f"add_index: index_fields must be a list of field names, got {index_fields!r}")
        if not self._fields:
            raise ValueError("add_index: add_schema must come first")
        self._index = self._index + names_of(index_fields, "add_index: index_fields")
        self._writer.set_schema(self._fields, self._description, self._index)

    def write_raw_data(self, raw_data, parallel_writer=False):
        """Writes a list of rows, dicts from field to value. A row that does not fit the schema raises an error that
        names row and field, and then none of the list is written. parallel_writer changes nothing: the work is done in
        native code and in order.
        """
        if not isinstance(parallel_writer, bool):
            raise TypeError(f"write_raw_data: parallel_writer must be a bool, got {parallel_writer!r}")
        if not isinstance(raw_data, list):
            raise TypeError(f"write_raw_data: raw_data must be a list of dicts, got {type(raw_data).__name__}")
        self._writer.write(raw_data)

    def set_header_size(self, header_size):
        """Bytes kept for the header, 16 KiB to 128 MiB; default 16 MiB."""
        self._writer.set_header_size(integer_of(header_size, "set_header_size: header_size"))

    def set_page_size(self, page_size):
        """Bytes of a page, 32 KiB to 256 MiB; default 32 MiB. A row must fit into one."""
        self._writer.set_page_size(integer_of(page_size, "set_page_size: page_size"))

    def commit(self):
        """Gives the files and their indexes their names."""
        self._writer.commit()


class FileReader:
    """Reads the rows of MindRecord files in their order, as Python numbers, str, bytes and arrays.

    file_name: a file, which stands for all of its set, or a list. columns: the fields to read; default: all.
    """

    def __init__(self, file_name, num_consumer=4, columns=None, operator=None):
        if operator is not None:
            raise NotImplementedError("FileReader: operator is not supported")
        if integer_of(num_consumer, "FileReader: num_consumer") < 1:
            raise ValueError(f"FileReader: num_consumer must be positive, got {num_consumer}")
        if columns is not None and not isinstance(columns, list):
            raise TypeError(f"FileReader: columns must be a list of field names, got {columns!r}")
        self._reader = _data.MindRecordReader(paths_of(file_name, "FileReader"), not isinstance(file_name, list))
        self._columns = names_of(columns, "FileReader: columns") or None
        for name in self._columns or ():
            if name not in self._reader.schema():
                raise ValueError(f"FileReader: there is no field '{name}' among {', '.join(self._reader.schema())}")

    def get_next(self):
        """A generator of the rows, dicts from field to value."""
        reader = self._open()
        for row in range(len(reader)):
            if self._reader is None:
                return
            yield reader.read(row, self._columns)

    def schema(self):
        """{field: {"type": ..., "shape": ...}}"""
        return self._open().schema()

    def len(self):
        """The number of rows."""
        return len(self._open())

    def close(self):
        self._reader = None

    def _open(self):
        if self._reader is None:
            raise RuntimeError("FileReader: it was closed")
        return self._reader


class MindPage:
    """Reads the rows of MindRecord files by the value of an index field, page by page."""

    def __init__(self, file_name, num_consumer=4):
        if integer_of(num_consumer, "MindPage: num_consumer") < 1:
            raise ValueError(f"MindPage: num_consumer must be positive, got {num_consumer}")
        self._reader = _data.MindRecordReader(paths_of(file_name, "MindPage"), not isinstance(file_name, list))
        self._field, self._rows = None, {}

    @property
    def candidate_fields(self):
        """The index fields."""
        return list(self._reader.index())

    @property
    def category_field(self):
        """The field that rows are grouped by."""
        return self._field

    @category_field.setter
    def category_field(self, category_field):
        if category_field not in self.candidate_fields:
            raise ValueError(
                f"MindPage: category_field must be one of {', '.join(self.candidate_fields)}, got {category_field!r}"
            )
        rows = {}
        for row in range(len(self._reader)):
            rows.setdefault(self._reader.read(row, [category_field])[category_field], []).append(row)
        self._field, self._rows = category_field, dict(sorted(rows.items()))

    def read_category_info(self):
        """JSON: the field, and each value with its number ("id") and its count of rows."""
        self._need_field()
        categories = [{"count": len(r), "id": i, "name": v} for i, (v, r) in enumerate(self._rows.items())]
        return json.dumps({"categories": categories, "key": self._field}, separators=(",", ":"), ensure_ascii=False)

    def read_at_page_by_id(self, category_id, page, num_row):
        """Page `page` of `num_row` rows of the value with that number: a list of dicts."""
        self._need_field()
        i = integer_of(category_id, "category_id")
        if not 0 <= i < len(self._rows):
            raise ValueError(f"category_id must be in [0, {len(self._rows)}), got {category_id}")
        return self._page(list(self._rows.values())[i], page, num_row)

    def read_at_page_by_name(self, category_name, page, num_row):
        """Page `page` of `num_row` rows with that value: a list of dicts."""
        self._need_field()
        if category_name not in self._rows:
            raise ValueError(f"no row has {self._field} {category_name!r}")
        return self._page(self._rows[category_name], page, num_row)

    def _need_field(self):
        if self._field is None:
            raise RuntimeError("MindPage: category_field must be set first")

    def _page(self, rows, page, num_row):
        page, count = integer_of(page, "page"), integer_of(num_row, "num_row")
        if page < 0 or count < 1:
            raise ValueError(f"page must not be negative and num_row must be positive, got {page} and {num_row}")
        return [self._reader.read(row) for row in rows[page * count : (page + 1) * count]]
