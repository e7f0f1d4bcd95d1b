# SPDX-License-Identifier: Apache-2.0
"""Other formats to MindRecord."""

import csv
import os
import pickle
import string

import numpy as np

from undertow._core import FileError
from undertow.dataset.datasets import integer_of
from undertow.mindrecord.files import FileWriter

_BATCH = 256


def _path(value, what):
    if not isinstance(value, (str, os.PathLike)) or not os.fspath(value):
        raise ValueError(f"{what} must be a path, got {value!r}")
    return os.fspath(value)


class _Converter:
    """Writes what `_rows` gives, in the order in which it comes."""

    def _write(self, destination, schema, index, rows, shards=1, description=""):
        writer = FileWriter(destination, shards)
        writer.add_schema(schema, description)
        if index:
            writer.add_index(index)
        waiting = []
        for row in rows:
            waiting.append(row)
            if len(waiting) == _BATCH:
                writer.write_raw_data(waiting)
                waiting = []
        writer.write_raw_data(waiting)
        writer.commit()


class CsvToMR(_Converter):
    """A CSV file whose first line names the columns; a column of whole numbers is int64, of numbers float64, else
    string. columns_list: the columns to take; default: all.
    """

    def __init__(self, source, destination, columns_list=None, partition_number=1):
        self.source, self.destination = _path(source, "source"), _path(destination, "destination")
        if columns_list is not None and not all(isinstance(c, str) for c in columns_list):
            raise ValueError(f"columns_list must be a list of str, got {columns_list!r}")
        self.columns, self.shards = columns_list, integer_of(partition_number, "partition_number")

    def transform(self):
        if not os.path.isfile(self.source):
            raise FileError(f"there is no CSV file '{self.source}'")
        with open(self.source, newline="", encoding="utf-8") as file:
            names, *lines = [line for line in csv.reader(file) if line] or [[]]
        for number, line in enumerate(lines, 1):
            if len(line) != len(names):
                raise ValueError(f"{self.source}: row {number} has {len(line)} values for {len(names)} columns")
        for name in self.columns or names:
            if name not in names:
                raise RuntimeError(f"{self.source} has no column '{name}'; it has {', '.join(names)}")
            if name.isdigit():
                raise ValueError(f"{self.source}: the first line must name the columns; '{name}' is a number")
        schema, columns = {}, {}
        for name in self.columns or names:
            values = [line[names.index(name)] for line in lines]
            for kind, convert in (("int64", int), ("float64", float), ("string", str)):
                try:
                    columns[name] = [convert(v) for v in values]
                except ValueError:
                    continue
                schema[name] = {"type": kind}
                break
        rows = (dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True))
        self._write(self.destination, schema, list(schema), rows, self.shards, "csv_schema")


class ImageNetToMR(_Converter):
    """Images in a folder for each class; the lines of map_file are a folder and its number. Fields: label int32, image
    bytes, file_name string. Files that are not .jpg or .JPEG are left out.
    """

    def __init__(self, map_file, image_dir, destination, partition_number=1):
        self.map_file, self.image_dir = _path(map_file, "map_file"), _path(image_dir, "image_dir")
        self.destination = _path(destination, "destination")
        self.shards = integer_of(partition_number, "partition_number")

    def _rows(self):
        with open(self.map_file, encoding="utf-8") as file:
            classes = [line.split() for line in file if line.strip()]
        for folder, label in classes:
            path = os.path.join(self.image_dir, folder)
            if not os.path.isdir(path):
                raise FileError(f"{self.map_file} names the folder '{folder}', which is not in {self.image_dir}")
            for name in sorted(os.listdir(path)):
                if name.endswith(("JPEG", "jpg")):
                    file_name = os.path.join(path, name)
                    with open(file_name, "rb") as image:
                        yield {"label": int(label), "image": image.read(), "file_name": file_name}

    def transform(self):
        schema = {"label": {"type": "int32"}, "image": {"type": "bytes"}, "file_name": {"type": "string"}}
        index = ["label", "file_name"]
        self._write(self.destination, schema, index, self._rows(), self.shards, "imagenet_schema")


class _NumbersOnly(pickle.Unpickler):
    """Refuses everything that an array of numbers does not need, since a pickle may run any code."""

    _ALLOWED = (
        ("numpy", "ndarray"),
        ("numpy", "dtype"),
        ("numpy.core.multiarray", "_reconstruct"),
        ("numpy._core.multiarray", "_reconstruct"),
        ("_codecs", "encode"),
    )

    def find_class(self, module, name):
        if (module, name) not in self._ALLOWED:
            raise ValueError(f"the file asks for {module}.{name}, which a CIFAR file does not hold")
        return super().find_class(module, name)


class _CifarToMR(_Converter):
    """CIFAR's Python version, to two files: `destination` and, with the test set, `destination`_test. Images are stored
    as PNG.
    """

    def __init__(self, source, destination):
        self.source, self.destination = _path(source, "source"), _path(destination, "destination")
        if not os.path.isdir(self.source):
            raise FileError(f"there is no folder '{self.source}'")
        self._files = [self._find(prefix) for prefix in self._prefixes]

    def _find(self, prefix):
        found = sorted(f for f in os.listdir(self.source) if f == prefix or f.startswith(prefix + "_"))
        if not found:
            raise FileError(f"{self.source} has no file '{prefix}*'")
        return [os.path.join(self.source, f) for f in found]

    def _rows(self, paths):
        number = 0
        for path in paths:
            with open(path, "rb") as file:
                content = _NumbersOnly(file, encoding="bytes").load()
            images = np.asarray(content[b"data"], np.uint8).reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1)
            labels = [content[key] for key, _ in self._labels]
            for i, image in enumerate(images):
                row = {"id": number, "data": _png(image)}
                for (_, field), values in zip(self._labels, labels, strict=True):
                    row[field] = int(values[i])
                yield row
                number += 1

    def transform(self, fields=None):
        """fields: the index fields."""
        if fields is not None and not isinstance(fields, list):
            raise ValueError(f"fields must be None or a list, got {fields!r}")
        schema = {"id": {"type": "int64"}, **{f: {"type": "int64"} for _, f in self._labels}, "data": {"type": "bytes"}}
        for paths, ending, what in zip(self._files, ("", "_test"), ("img_train", "img_test"), strict=True):
            self._write(self.destination + ending, schema, fields, self._rows(paths), description=what)


class Cifar10ToMR(_CifarToMR):
    __doc__ = _CifarToMR.__doc__ + "\n    Fields: id and label int64, data bytes."
    _prefixes = ("data_batch", "test_batch")
    _labels = ((b"labels", "label"),)


class Cifar100ToMR(_CifarToMR):
    __doc__ = _CifarToMR.__doc__ + "\n    Fields: id, fine_label and coarse_label int64, data bytes."
    _prefixes = ("train", "test")
    _labels = ((b"fine_labels", "fine_label"), (b"coarse_labels", "coarse_label"))


class MnistToMR(_Converter):
    """The four IDX files of MNIST, plain or gzip, to `destination`_train.mindrecord and `destination`_test.mindrecord.
    Fields: label int64, data bytes (PNG).
    """

    def __init__(self, source, destination, partition_number=1):
        self.source, self.destination = _path(source, "source"), _path(destination, "destination")
        self.shards = integer_of(partition_number, "partition_number")

    def _rows(self, usage):
        from undertow.dataset import MnistDataset

        rows = MnistDataset(self.source, usage, shuffle=False).create_tuple_iterator(num_epochs=1, output_numpy=True)
        for image, label in rows:
            yield {"label": int(label), "data": _png(image[..., 0])}

    def transform(self):
        schema = {"label": {"type": "int64"}, "data": {"type": "bytes"}}
        for usage in ("train", "test"):
            path = f"{self.destination}_{usage}.mindrecord"
            self._write(path, schema, ["label"], self._rows(usage), self.shards, "mnist_schema")


class TFRecordToMR(_Converter):
    """A TFRecord file. feature_dict: by the features' names, objects with `dtype` and `shape` as TensorFlow's
    FixedLenFeature, which need not come from TensorFlow: "string", "int64" or "float32" (or dtypes of these names), and
    [] for single values or [n] for n numbers. bytes_fields: the features of "string" that are bytes and not texts.

    Fields have the features' names, with "_" for punctuation and spaces.
    """

    _TYPES = {"int64": "int64", "int32": "int32", "float32": "float32", "string": "string"}

    def __init__(self, source, destination, feature_dict, bytes_fields=None):
        self.source, self.destination = _path(source, "source"), _path(destination, "destination")
        if not isinstance(feature_dict, dict) or not feature_dict:
            raise ValueError(f"feature_dict must be a dict of features by name, got {feature_dict!r}")
        self.features = {name: self._feature(name, feature) for name, feature in feature_dict.items()}
        self.bytes_fields = list(bytes_fields or ())
        for name in self.bytes_fields:
            if name not in self.features:
                raise ValueError(f"bytes_fields: {name!r} is not in feature_dict")
            if self.features[name] != ("string", []):
                raise ValueError(f"bytes_fields: {name!r} must be a single string, it is {self.features[name]}")

    def _feature(self, name, feature):
        try:
            dtype, shape = feature.dtype, list(feature.shape)
        except (AttributeError, TypeError):
            raise ValueError(f"feature_dict[{name!r}] must have a dtype and a shape, got {feature!r}") from None
        kind = self._TYPES.get(str(getattr(dtype, "name", dtype)).lower())
        if kind is None:
            raise ValueError(f"feature_dict[{name!r}]: dtype must be one of {list(self._TYPES)}, got {dtype!r}")
        if len(shape) > 1 or not all(isinstance(d, int) and d > 0 for d in shape) or (shape and kind == "string"):
            raise ValueError(f"feature_dict[{name!r}]: shape must be [] or, for numbers, [n]; got {shape} for {kind}")
        return kind, shape

    @staticmethod
    def _field(name):
        return "".join("_" if c in string.punctuation + " " else c for c in name)

    def tfrecord_iterator(self):
        """The rows, one after the other, as dicts by field."""
        from undertow.dataset import Schema, TFRecordDataset

        schema = Schema()
        for name, (kind, shape) in self.features.items():
            if name in self.bytes_fields:
                schema.add_column(name, "uint8")
            else:
                schema.add_column(name, kind, shape)
        data = TFRecordDataset(self.source, schema, shuffle=False)
        for row in data.create_dict_iterator(num_epochs=1, output_numpy=True):
            out = {}
            for name, (_, shape) in self.features.items():
                value = row[name]
                if name in self.bytes_fields:
                    value = value.tobytes()
                elif not shape:
                    value = value.item()
                out[self._field(name)] = value
            yield out

    def transform(self):
        if not os.path.isfile(self.source):
            raise FileError(f"there is no TFRecord file '{self.source}'")
        schema = {}
        for name, (kind, shape) in self.features.items():
            field = {"type": "bytes" if name in self.bytes_fields else kind}
            schema[self._field(name)] = field | ({"shape": shape} if shape else {})
        self._write(self.destination, schema, [], self.tfrecord_iterator(), 1, "tfrecord_schema")


def _png(image):
    """The bytes of a PNG file of an image, (H, W) grey or (H, W, 3) RGB."""
    import struct
    import zlib

    height, width = image.shape[:2]
    lines = np.concatenate([np.zeros((height, 1), np.uint8), image.reshape(height, -1)], axis=1)

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", width, height, 8, 2 if image.ndim == 3 else 0, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", head)
        + chunk(b"IDAT", zlib.compress(lines.tobytes()))
        + chunk(b"IEND", b"")
    )
