# SPDX-License-Identifier: Apache-2.0
"""Datasets that read files."""

import glob
import json
import os

import numpy as np

from undertow._core import data as _data
from undertow.dataset.datasets import Dataset, Shuffle, integer_of, names_of
from undertow.dataset.saving import NOTE
from undertow.dataset.schema import Schema
from undertow.dataset.sources import _options


def paths_of(files, what):
    """A list of paths from one or several."""
    items = files if isinstance(files, (list, tuple)) else [files]
    if not items:
        raise ValueError(f"{what}: the list of files is empty")
    for item in items:
        if not isinstance(item, (str, os.PathLike)):
            raise TypeError(f"{what}: files must be paths, got {item!r}")
    return [os.fspath(item) for item in items]


class MindDataset(Dataset):
    """Rows of MindRecord files.

    dataset_files: a file, which stands for all files of its set, or a list of files, which stand for themselves. All
    columns come in the order of their names unless columns_list says otherwise. Numbers have shape (), texts are
    NumPy's str_, bytes are uint8 of one dimension, arrays have the shape of the file's schema. Shuffled by default;
    Shuffle.FILES shuffles the order of files, Shuffle.INFILE the rows within each. padded_sample, a dict of all
    columns, is put num_padded times behind the rows.
    """

    def __init__(
        self,
        dataset_files,
        columns_list=None,
        num_parallel_workers=None,
        shuffle=None,
        num_shards=None,
        shard_id=None,
        sampler=None,
        padded_sample=None,
        num_padded=None,
        num_samples=None,
        cache=None,
    ):
        paths = paths_of(dataset_files, "MindDataset")
        if (padded_sample is None) != (num_padded is None):
            raise ValueError("MindDataset: padded_sample and num_padded must be given together")
        if padded_sample is not None and columns_list is None:
            raise ValueError("MindDataset: padded_sample needs a columns_list")
        columns = names_of(columns_list, "MindDataset: columns_list")
        options = _options(shuffle, num_parallel_workers, num_samples, num_shards, shard_id, sampler)
        padded = 0 if num_padded is None else integer_of(num_padded, "num_padded")
        super().__init__(
            _data.mind(
                paths, columns, padded_sample or {}, padded, not isinstance(dataset_files, (list, tuple)), options
            )
        )
        note = _data.mindrecord_description(paths[0])
        if note.startswith(NOTE):
            self._restore(json.loads(note[len(NOTE) :]))
        self._cache_in(cache)

    def _restore(self, columns):
        """Columns that save() has stored as bytes, in their own type."""
        for name, (dtype, shape) in columns.items():
            if name in self.get_col_names():
                self._node = self.map(_Restore(dtype, shape), name)._node


class _Restore:
    def __init__(self, dtype, shape):
        self.dtype, self.shape = np.dtype(dtype), shape

    def __call__(self, data):
        return np.frombuffer(data.tobytes(), self.dtype).reshape(self.shape)


class ImageFolderDataset(Dataset):
    """A folder with a folder of images for each class. Columns: image uint8 (the file's bytes; with `decode` the
    pixels, H x W x 3), label int32 ().

    Classes are numbered by their folders' names in order, or as class_indexing (name to number) says, which also leaves
    out the folders that it does not name. extensions: of the files that count, such as [".jpg"]; None: all files.
    """

    def __init__(
        self,
        dataset_dir,
        num_samples=None,
        num_parallel_workers=None,
        shuffle=None,
        sampler=None,
        extensions=None,
        class_indexing=None,
        decode=False,
        num_shards=None,
        shard_id=None,
        cache=None,
        decrypt=None,
    ):
        if decrypt is not None:
            raise NotImplementedError("ImageFolderDataset: decrypt is not supported")
        if not isinstance(dataset_dir, (str, os.PathLike)):
            raise TypeError(f"ImageFolderDataset: dataset_dir must be a path, got {dataset_dir!r}")
        options = _options(shuffle, num_parallel_workers, num_samples, num_shards, shard_id, sampler)
        endings = names_of(extensions, "extensions")
        if class_indexing is not None and not isinstance(class_indexing, dict):
            raise TypeError(f"class_indexing must be a dict from folder to number, got {class_indexing!r}")
        classes = {name: integer_of(n, "a number in class_indexing") for name, n in (class_indexing or {}).items()}
        super().__init__(_data.image_folder(os.fspath(dataset_dir), endings, classes, options))
        if decode:
            from undertow.dataset import vision

            self._node = self.map(vision.Decode(), "image")._node
        self._cache_in(cache)


def _matching(files, what):
    """The files that the patterns stand for, each pattern's in their order."""
    found = []
    for pattern in paths_of(files, what):
        paths = sorted(glob.glob(pattern)) if glob.has_magic(pattern) and not os.path.exists(pattern) else [pattern]
        if not paths:
            raise ValueError(f"{what}: no file is like '{pattern}'")
        found += paths
    return found


class TextFileDataset(Dataset):
    """Lines of text files (paths or patterns). Column: text, NumPy's str_ (); empty lines are left out."""

    def __init__(
        self,
        dataset_files,
        num_samples=None,
        num_parallel_workers=None,
        shuffle=Shuffle.GLOBAL,
        num_shards=None,
        shard_id=None,
        cache=None,
    ):
        options = _options(shuffle, num_parallel_workers, num_samples, num_shards, shard_id, None)
        super().__init__(_data.text_file(_matching(dataset_files, "TextFileDataset"), options))
        self._cache_in(cache)


class CSVDataset(Dataset):
    """Lines of CSV files (paths or patterns).

    column_names: default: the first line of every file. column_defaults: for each column what stands for an empty
    field: an int makes it int32, a float float32, a str text; default: all are texts.
    """

    def __init__(
        self,
        dataset_files,
        field_delim=",",
        column_defaults=None,
        column_names=None,
        num_samples=None,
        num_parallel_workers=None,
        shuffle=Shuffle.GLOBAL,
        num_shards=None,
        shard_id=None,
        cache=None,
    ):
        if (
            not isinstance(field_delim, str)
            or len(field_delim) != 1
            or field_delim in '"\r\n'
            or ord(field_delim) > 127
        ):
            raise ValueError(f"CSVDataset: field_delim must be one ASCII character, got {field_delim!r}")
        if column_defaults is not None and not isinstance(column_defaults, list):
            raise TypeError(f"CSVDataset: column_defaults must be a list, got {column_defaults!r}")
        for default in column_defaults or ():
            if isinstance(default, bool) or not isinstance(default, (int, float, str)):
                raise TypeError(f"CSVDataset: column_defaults must be int, float or str, got {default!r}")
        options = _options(shuffle, num_parallel_workers, num_samples, num_shards, shard_id, None)
        names, paths = names_of(column_names, "CSVDataset: column_names"), _matching(dataset_files, "CSVDataset")
        super().__init__(_data.csv(paths, field_delim, names, column_defaults or [], options))
        self._cache_in(cache)


class TFRecordDataset(Dataset):
    """Records (tf.train.Example) of TFRecord files (paths or patterns).

    schema: a Schema or its file; without it the columns are the features of the first record by name: int64, float32,
    or NumPy's bytes_, all of one dimension. In a schema "uint8" for bytes gives the bytes themselves, "string" str_.
    Rows are dealt to shards one by one, so that all have as many; shard_equal_rows changes nothing.
    """

    def __init__(
        self,
        dataset_files,
        schema=None,
        columns_list=None,
        num_samples=None,
        num_parallel_workers=None,
        shuffle=Shuffle.GLOBAL,
        num_shards=None,
        shard_id=None,
        shard_equal_rows=False,
        cache=None,
        compression_type=None,
    ):
        if schema is not None and not isinstance(schema, Schema):
            schema = Schema(schema)
        wanted, columns = names_of(columns_list, "TFRecordDataset: columns_list"), []
        if schema is not None:
            for name in wanted or schema.columns:
                if name not in schema.columns:
                    raise ValueError(f"TFRecordDataset: the schema has no column '{name}'")
                kind, shape = schema.columns[name]
                text = isinstance(kind, str)
                columns.append((name, None if text else kind, kind == "string", shape))
            num_samples = num_samples or schema.num_rows or None
        else:
            columns = [(name, None, False, None) for name in wanted]
        options = _options(shuffle, num_parallel_workers, num_samples, num_shards, shard_id, None)
        paths = _matching(dataset_files, "TFRecordDataset")
        super().__init__(_data.tfrecord(paths, columns, compression_type or "", options))
        self._cache_in(cache)
