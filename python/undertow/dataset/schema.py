# SPDX-License-Identifier: Apache-2.0
"""Schema: names, types and shapes of columns, for sources that cannot tell them by themselves."""

import json

from undertow._core import dtype_of


class Schema:
    """Columns of a source. schema_file: JSON with "columns": {name: {"type": ..., "shape": [...]}} or a list of
    {"name": ..., "type": ..., "shape": [...]}, and optionally "datasetType" and "numRows".
    """

    def __init__(self, schema_file=None):
        self.columns, self.dataset_type, self.num_rows = {}, "", 0
        if schema_file is None:
            return
        try:
            with open(schema_file, encoding="utf-8") as file:
                content = json.load(file)
        except json.JSONDecodeError as error:
            raise ValueError(f"Schema: {schema_file} is not JSON: {error}") from None
        self.from_json(content)

    def add_column(self, name, de_type, shape=None):
        """de_type: a dtype or its name; "string" for texts."""
        if not isinstance(name, str):
            raise TypeError(f"Schema: a column's name must be a str, got {name!r}")
        if shape is not None and not all(isinstance(d, int) and not isinstance(d, bool) for d in shape):
            raise TypeError(f"Schema: the shape of '{name}' must be a list of integers, got {shape!r}")
        text = de_type in ("string", "bytes")
        self.columns[name] = (de_type if text else dtype_of(de_type), None if shape is None else list(shape))

    def from_json(self, content):
        """Adds what the dict has; see the class."""
        if not isinstance(content, dict) or "columns" not in content:
            raise ValueError("Schema: the JSON needs an object with 'columns'")
        columns = content["columns"]
        items = columns.items() if isinstance(columns, dict) else ((c.get("name"), c) for c in columns)
        for name, column in items:
            if name is None or "type" not in column:
                raise ValueError(f"Schema: a column needs a name and a type, got {column!r}")
            self.add_column(name, column["type"], column.get("shape"))
        self.dataset_type, self.num_rows = content.get("datasetType", ""), content.get("numRows", 0)
        if not isinstance(self.num_rows, int) or self.num_rows < 0:
            raise ValueError(f"Schema: numRows must be a number of rows, got {self.num_rows!r}")

    def parse_columns(self, columns):
        """Adds the columns of a dict from name to {"type", "shape"}, or of a list of dicts with "name" too."""
        self.from_json({"columns": columns})

    def types(self):
        """The columns' dtypes in their order; None for texts."""
        return [None if isinstance(t, str) else t for t, _ in self.columns.values()]

    def to_json(self):
        columns = []
        for name, (t, shape) in self.columns.items():
            entry = {"name": name, "type": t if isinstance(t, str) else str(t).lower(), "rank": len(shape or ())}
            columns.append(entry if shape is None else {**entry, "shape": shape})
        return json.dumps({"columns": columns, "datasetType": self.dataset_type, "numRows": self.num_rows}, indent=2)

    def __str__(self):
        return self.to_json()
