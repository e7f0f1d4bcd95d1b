# SPDX-License-Identifier: Apache-2.0
"""Stages of a pipeline beyond the plain ones: functions for batches, padding, buckets, cache, texts, settings."""

import json

import numpy as np
import pytest
from test_dataset import Rows, plain, values

import undertow as ut
from undertow import dataset as ds


def two(n=6):
    return ds.NumpySlicesDataset({"a": np.arange(n), "b": np.arange(n) * 10.0}, shuffle=False)


def ragged(n=5):
    return ds.GeneratorDataset(lambda: ((np.arange(i + 1), np.int32(i)) for i in range(n)), ["x", "i"])


def test_per_batch_map():
    seen = []

    def double(a, info):
        seen.append((info.get_epoch_num(), info.get_batch_num()))
        assert isinstance(a, list) and a[0].shape == ()
        return ([v * 2 for v in a],)

    batched = two().batch(4, per_batch_map=double, input_columns=["a"])
    assert batched.get_col_names() == ["a", "b"]
    it = batched.create_tuple_iterator(num_epochs=2, output_numpy=True)
    assert [[r[0].tolist(), r[1].tolist()] for r in it] == [
        [[0, 2, 4, 6], [0, 10, 20, 30]],
        [[8, 10], [40, 50]],
    ]
    assert [r[0].tolist() for r in it] == [[0, 2, 4, 6], [8, 10]] and {(0, 0), (0, 1), (1, 0), (1, 1)} <= set(seen)

    def split(a, info):
        return [v + 1 for v in a], np.stack(a)

    parts = two().batch(3, per_batch_map=split, input_columns=["a"], output_columns=["p", "q"])
    assert parts.get_col_names() == ["p", "q", "b"] and values(parts, 1) == [[[0, 1, 2], [3, 4, 5]]]
    renamed = two().batch(2, per_batch_map=lambda a, info: (a,), input_columns=["b"], output_columns=["c"])
    assert renamed.get_col_names() == ["a", "c"]
    padded = ragged().batch(5, per_batch_map=lambda x, i, info: ([np.resize(v, 2) for v in x], i))
    assert values(padded) == [[[[0, 0], [0, 1], [0, 1], [0, 1], [0, 1]]]]
    with pytest.raises(ut.DataError, match="2 columns"):
        values(two().batch(2, per_batch_map=lambda a, b, info: (a, b), output_columns=["one"]))
    with pytest.raises(ValueError, match="none"):
        two().batch(2, per_batch_map=double, input_columns=["none"])
    with pytest.raises(ZeroDivisionError):
        values(two().batch(2, per_batch_map=lambda a, b, info: 1 // 0))


def test_batch_size_function():
    grown = plain(10).batch(lambda info: info.get_batch_num() + 1)
    assert values(grown) == [[[0], [1, 2], [3, 4, 5], [6, 7, 8, 9]]] and grown.get_dataset_size() == 4
    assert values(plain(8).batch(lambda info: info.get_batch_num() + 1, True)) == [[[0], [1, 2], [3, 4, 5]]]
    for size, error in ((0, ValueError), ("x", TypeError)):
        with pytest.raises(error, match="batch_size"):
            values(plain(3).batch(lambda info, size=size: size))


def test_padded_batch():
    assert values(ragged(3).padded_batch(3)) == [[[[0, 0, 0], [0, 1, 0], [0, 1, 2]]]]
    fixed = ragged(3).padded_batch(2, pad_info={"x": ([4], -1)})
    assert values(fixed) == [[[[0, -1, -1, -1], [0, 1, -1, -1]], [[0, 1, 2, -1]]]]
    assert values(ragged(3).padded_batch(2, True, pad_info={"x": ([None], 7)})) == [[[[0, 7], [0, 1]]]]
    square = ds.GeneratorDataset(lambda: (np.full((i + 1, 2 - i), i + 1.0) for i in range(2)), ["m"])
    assert values(square.padded_batch(2)) == [[[[[1, 1], [0, 0]], [[2, 0], [2, 0]]]]]
    with pytest.raises(ut.DataError, match="x"):
        values(ragged(3).padded_batch(3, pad_info={"x": ([2], 0)}))
    with pytest.raises(ValueError, match="none"):
        ragged().padded_batch(2, pad_info={"none": ([2], 0)})
    texts = ds.NumpySlicesDataset([["a"], ["bcd"]], ["t"], shuffle=False).padded_batch(2, pad_info={"t": ([2], "-")})
    assert values(texts) == [[[["a", "-"], ["bcd", "-"]]]]


def test_buckets():
    lengths = [1, 5, 2, 9, 3, 4, 1, 12]
    source = ds.GeneratorDataset(lambda: ((np.full(n, n),) for n in lengths), ["x"])
    got = values(source.bucket_batch_by_length(["x"], [4, 8], [3, 2, 2]))[0]
    assert got == [[[1, 0, 0], [2, 2, 0], [3, 3, 3]], [[5] * 5, [4, 4, 4, 4, 0]], [[9] * 9 + [0] * 3, [12] * 12], [[1]]]
    wide = source.bucket_batch_by_length(["x"], [4, 8], [3, 2, 2], pad_to_bucket_boundary=True, drop_remainder=True)
    assert [np.shape(b) for b in values(wide)[0]] == [(3, 3), (2, 7), (2, 12)]
    assert wide.get_dataset_size() == 3
    by_value = source.bucket_batch_by_length(["x"], [2], [2, 6], lambda x: int(x[0]) % 3 + 1)
    assert sum(len(b) for b in values(by_value)[0]) == len(lengths)
    for boundaries, sizes in (([4, 4], [1, 1, 1]), ([4], [1]), ([], [1]), ([4], [0, 1])):
        with pytest.raises(ValueError, match="bucket"):
            source.bucket_batch_by_length(["x"], boundaries, sizes)


def test_cache():
    calls = []
    counted = ds.GeneratorDataset(Rows(6), ["x"]).map(lambda x: (calls.append(1), x * 2)[1], num_parallel_workers=1)
    first, second = values(counted.cache(), epochs=2)
    assert sorted(first) == sorted(second) == [0, 2, 4, 6, 8, 10] and first != second and len(calls) <= 7
    calls.clear()
    values(counted.cache(4 * 3), epochs=3)
    assert 9 <= len(calls) <= 13
    twice = plain(4).map(lambda x: x + 1, cache=ds.DatasetCache(1, 0))
    assert values(twice, epochs=2) == [[1, 2, 3, 4]] * 2
    assert values(ragged(3).cache(), 1, epochs=2) == [[0, 1, 2]] * 2


def test_texts():
    words = ["a", "bcd", "", "é中😀"]
    for source in (words, np.array(words), [np.array(w) for w in words], [(w,) for w in words]):
        dataset = ds.GeneratorDataset(source, ["t"], shuffle=False)
        rows = list(dataset.create_tuple_iterator(num_epochs=1))
        assert [str(r[0]) for r in rows] == words and rows[0][0].shape == () and dataset.output_types() == [np.str_]
    assert values(ds.NumpySlicesDataset(words, ["t"], shuffle=False).batch(3)) == [[words[:3], words[3:]]]
    several = ds.GeneratorDataset(lambda: iter([["x", "yz"], ["u", "v"]]), ["t"])
    assert several.output_shapes() == [[2]] and values(several.batch(2)) == [[[["x", "yz"], ["u", "v"]]]]
    assert values(ds.GeneratorDataset(words, ["t"], shuffle=False).filter(lambda t: len(str(t)) == 3)) == [
        ["bcd", "é中😀"]
    ]
    raw = ds.GeneratorDataset([np.array(b"ab"), np.array(b"c")], ["b"], shuffle=False)
    assert values(raw) == [[b"ab", b"c"]] and raw.output_types() == [np.bytes_]
    mixed = ds.GeneratorDataset(lambda: iter(["text", np.uint32(3)]), ["x"]).batch(2)
    with pytest.raises(ut.DataError, match="x"):
        values(mixed)


def test_texts_do_not_train():
    net = ut.nn.Dense(1, 1)
    model = ut.Model(net, ut.nn.MSELoss(), ut.nn.SGD(net.trainable_params(), 0.1))
    dataset = ds.GeneratorDataset([("a", np.float32([1]))] * 4, ["t", "y"]).batch(2)
    with pytest.raises(TypeError, match="'t'.*texts"):
        model.train(1, dataset)


def test_flat_map_concat_project():
    flat = plain(3).flat_map(lambda x: ds.NumpySlicesDataset([int(x)] * int(x + 1), ["y"], shuffle=False))
    assert values(flat) == [[0, 1, 1, 2, 2, 2]]
    padded = plain(2) + ds.PaddedDataset([{"x": np.int32(-1)}] * 2)
    assert values(padded) == [[0, 1, -1, -1]]


def test_generator_extras():
    typed = ds.GeneratorDataset(Rows(3), ["x"], column_types=[ut.float16], shuffle=False)
    assert typed.output_types() == [np.float16]
    schema = ds.Schema()
    schema.add_column("y", ut.int64, [])
    assert ds.GeneratorDataset(Rows(3), schema=schema).get_col_names() == ["y"]
    batches = ds.GeneratorDataset(Rows(6), ["x"], batch_sampler=[[3, 1], [2]])
    assert values(batches, epochs=2) == [[[3, 1], [2]]] * 2
    summed = ds.GeneratorDataset(Rows(6), ["x"], batch_sampler=[[3, 1], [2]], collate_fn=lambda rows: sum(rows))
    assert values(summed) == [[4, 2]]
    with pytest.raises(ValueError, match="batch_sampler"):
        ds.GeneratorDataset(Rows(6), ["x"], collate_fn=sum)


def test_shuffle_buffer():
    before = ds.config.get_shuffle_buffer()
    assert before == (1000, 256)
    try:
        ds.config.set_shuffle_buffer(4)
        order = values(ds.GeneratorDataset(lambda: iter(np.arange(50)), ["x"], shuffle=True))[0]
        assert sorted(order) == list(range(50)) != order and all(v <= i + 3 for i, v in enumerate(order))
        ds.config.set_shuffle_buffer(1000, 1)  # 1 MB are 4 rows
        big = lambda: (np.full(32768, i, np.int64) for i in range(40))  # noqa: E731
        order = [r[0][0] for r in ds.GeneratorDataset(big, ["x"], shuffle=True).create_tuple_iterator(None, 1, True)]
        assert sorted(order) == list(range(40)) != order and all(v <= i + 3 for i, v in enumerate(order))
    finally:
        ds.config.set_shuffle_buffer(*before)


def test_sampler_children():
    outer = ds.SequentialSampler(1, 2)
    outer.add_child(ds.SubsetSampler([9, 8, 7, 6]))
    assert values(ds.GeneratorDataset(Rows(10), ["x"], sampler=outer)) == [[8, 7]]
    with pytest.raises(RuntimeError):
        outer.add_child(ds.SequentialSampler())


def test_classes(tmp_path):
    for name, n in (("dog", 2), ("cat", 3)):
        (tmp_path / name).mkdir()
        for i in range(n):
            (tmp_path / name / f"{i}.jpg").write_bytes(f"{name}{i}".encode())
    (tmp_path / "cat" / "note.TXT").write_text("x")
    folder = ds.ImageFolderDataset(str(tmp_path), shuffle=False)
    assert values(folder, 1) == [[0, 0, 0, 0, 1, 1]] and folder.output_types() == [np.uint8, np.int32]
    assert folder.batch(1).num_classes() == 2 and folder.get_class_indexing() == {"cat": 0, "dog": 1}
    only = ds.ImageFolderDataset(tmp_path, extensions=[".JPG"], class_indexing={"cat": 7}, shuffle=False)
    rows = list(only.create_tuple_iterator(num_epochs=1, output_numpy=True))
    assert [(bytes(r[0]), int(r[1])) for r in rows] == [(b"cat0", 7), (b"cat1", 7), (b"cat2", 7)]
    assert values(ds.ImageFolderDataset(str(tmp_path), sampler=ds.PKSampler(1)), 1) == [[0, 1]]
    assert plain().num_classes() is None
    with pytest.raises(ut.FileError, match="bird"):
        ds.ImageFolderDataset(str(tmp_path), class_indexing={"bird": 0})
    with pytest.raises(ut.FileError, match="none"):
        ds.ImageFolderDataset(str(tmp_path / "none"))


def test_cifar(tmp_path):
    images = np.arange(3 * 3072, dtype=np.uint32).astype(np.uint8).reshape(3, 3, 32, 32)
    ten = b"".join(bytes([i * 4]) + images[i].tobytes() for i in range(3))
    (tmp_path / "data_batch_1.bin").write_bytes(ten[: 2 * 3073])
    (tmp_path / "data_batch_2.bin").write_bytes(ten[2 * 3073 :])
    (tmp_path / "test_batch.bin").write_bytes(ten[:3073])
    (tmp_path / "train.bin").write_bytes(b"".join(bytes([i, i * 40]) + images[i].tobytes() for i in range(3)))
    dataset = ds.Cifar10Dataset(str(tmp_path), "train", shuffle=False)
    rows = list(dataset.create_dict_iterator(num_epochs=1, output_numpy=True))
    assert [int(r["label"]) for r in rows] == [0, 4, 8] and len(ds.Cifar10Dataset(str(tmp_path))) == 4
    np.testing.assert_array_equal(rows[1]["image"], images[1].transpose(1, 2, 0))
    hundred = ds.Cifar100Dataset(str(tmp_path), "train", shuffle=False)
    assert hundred.get_col_names() == ["image", "coarse_label", "fine_label"] and values(hundred, 2) == [[0, 40, 80]]
    (tmp_path / "test_batch.bin").write_bytes(ten[:3000])
    with pytest.raises(ut.FormatError, match="test_batch"):
        ds.Cifar10Dataset(str(tmp_path), "test")
    (tmp_path / "test_batch.bin").write_bytes(b"\x0a" + ten[1:3073])
    with pytest.raises(ut.FormatError, match="label 10 of row 0"):
        ds.Cifar10Dataset(str(tmp_path), "test")


def test_text_and_csv_files(tmp_path):
    for name, text in (("a.txt", "one \n\ntwo"), ("b.txt", "drei\r\n")):
        (tmp_path / name).write_text(text, newline="")
    assert values(ds.TextFileDataset(str(tmp_path / "*.txt"), shuffle=False)) == [["one ", "two", "drei"]]
    assert sorted(values(ds.TextFileDataset(str(tmp_path / "*.txt")))[0]) == ["drei", "one ", "two"]
    (tmp_path / "a.csv").write_text('n,x,t\n1,0.5,"a,\n""b"""\n,-2e3,\n')
    plain_csv = ds.CSVDataset(str(tmp_path / "a.csv"), shuffle=False)
    assert plain_csv.get_col_names() == ["n", "x", "t"] and values(plain_csv, 2) == [['a,\n"b"', ""]]
    typed = ds.CSVDataset(str(tmp_path / "a.csv"), column_defaults=[7, 0.0, "-"], shuffle=False)
    assert typed.output_types() == [np.int32, np.float32, np.str_]
    assert [values(typed, c)[0] for c in range(3)] == [[1, 7], [0.5, -2000], ['a,\n"b"', "-"]]
    named = ds.CSVDataset(str(tmp_path / "a.csv"), column_names=["u", "v", "w"], shuffle=False)
    assert len(named) == 3
    (tmp_path / "bad.csv").write_text("n,x\n1,2\n3\n")
    with pytest.raises(ut.FormatError, match=r"bad.csv, row 1.*1 field"):
        values(ds.CSVDataset(str(tmp_path / "bad.csv"), shuffle=False))
    with pytest.raises(ut.FormatError, match="'u' in column 'n'"):
        (tmp_path / "bad.csv").write_text("n,x\nu,2\n")
        values(ds.CSVDataset(str(tmp_path / "bad.csv"), column_defaults=[0, 0]))
    with pytest.raises(ut.FileError, match="none"):
        ds.TextFileDataset(str(tmp_path / "none"))


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = (crc >> 1) ^ (0x82F63B78 if crc & 1 else 0)
    crc ^= 0xFFFFFFFF
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def field(number, kind, payload):
    assert len(payload) < 128
    return bytes([number << 3 | kind, len(payload)]) + payload


def tf_record(i):
    """An Example with an int64, a list of floats and bytes, framed as in a TFRecord file."""
    features = {
        b"i": field(3, 2, field(1, 2, bytes([i]))),
        b"f": field(2, 2, field(1, 2, np.float32([i, i / 2]).tobytes())),
        b"b": field(1, 2, field(1, 2, b"b" * (i + 1))),
    }
    entries = b"".join(field(1, 2, field(1, 2, k) + field(2, 2, v)) for k, v in features.items())
    example = field(1, 2, entries)
    head = len(example).to_bytes(8, "little")
    return head + crc32c(head).to_bytes(4, "little") + example + crc32c(example).to_bytes(4, "little")


def test_tfrecord(tmp_path):
    import gzip
    import zlib

    content = b"".join(tf_record(i) for i in range(4))
    (tmp_path / "a").write_bytes(content)
    (tmp_path / "gz").write_bytes(gzip.compress(content))
    (tmp_path / "z").write_bytes(zlib.compress(content))
    for name, kind in (("a", None), ("gz", "GZIP"), ("z", "ZLIB")):
        dataset = ds.TFRecordDataset(str(tmp_path / name), shuffle=False, compression_type=kind)
        assert dataset.get_col_names() == ["b", "f", "i"] and dataset.output_types() == [
            np.bytes_,
            np.float32,
            np.int64,
        ]
        assert values(dataset, 2) == [[[0], [1], [2], [3]]] and values(dataset, 1)[0][3] == [3.0, 1.5]
        assert values(dataset)[0][1] == [b"bb"]
    schema = {"columns": {"i": {"type": "int32", "shape": []}, "b": {"type": "uint8"}}}
    (tmp_path / "schema.json").write_text(json.dumps(schema))
    typed = ds.TFRecordDataset([str(tmp_path / "a")], str(tmp_path / "schema.json"), shuffle=False)
    assert typed.output_types() == [np.int32, np.uint8] and values(typed) == [[0, 1, 2, 3]]
    assert [r[1].tobytes() for r in typed.create_tuple_iterator(None, 1, True)] == [b"b" * (i + 1) for i in range(4)]
    damaged = bytearray(content)
    damaged[20] ^= 1
    (tmp_path / "bad").write_bytes(bytes(damaged))
    with pytest.raises(ut.FormatError, match="bad.*CRC"):
        values(ds.TFRecordDataset(str(tmp_path / "bad")))
    for name, kind in (("a", "GZIP"), ("gz", None)):
        with pytest.raises(ut.FormatError, match="compressed"):
            ds.TFRecordDataset(str(tmp_path / name), compression_type=kind)
    (tmp_path / "cut").write_bytes(content[:-3])
    with pytest.raises(ut.FormatError, match="cut short"):
        ds.TFRecordDataset(str(tmp_path / "cut"))


def test_tfrecord_to_mindrecord(tmp_path):
    from types import SimpleNamespace as Feature

    from undertow.mindrecord import FileReader, TFRecordToMR

    (tmp_path / "a").write_bytes(b"".join(tf_record(i) for i in range(4)))
    features = {"i": Feature(dtype="int64", shape=[]), "f": Feature(dtype=np.dtype("float32"), shape=[2])}
    for kind, field in ((["b"], "bytes"), (None, "string")):
        text = Feature(dtype=Feature(name="string"), shape=[])
        target = str(tmp_path / f"to_{field}")
        TFRecordToMR(str(tmp_path / "a"), target, features | {"b": text}, kind).transform()
        rows = list(FileReader(target).get_next())
        assert [r["i"] for r in rows] == [0, 1, 2, 3] and rows[3]["f"].tolist() == [3.0, 1.5]
        want = [b"b" * (i + 1) for i in range(4)]
        assert [bytes(r["b"]) if kind else r["b"].encode() for r in rows] == want
    for wrong, message in (
        ({"i": 3}, "dtype and a shape"),
        ({"i": Feature(dtype="complex", shape=[])}, "dtype must be one of"),
        ({"i": Feature(dtype="int64", shape=[2, 2])}, "shape must be"),
        ({}, "feature_dict"),
    ):
        with pytest.raises(ValueError, match=message):
            TFRecordToMR(str(tmp_path / "a"), str(tmp_path / "no"), wrong)
    with pytest.raises(ValueError, match="bytes_fields"):
        TFRecordToMR(str(tmp_path / "a"), str(tmp_path / "no"), features, ["f"])
    with pytest.raises(ut.FileError, match="no TFRecord file"):
        TFRecordToMR(str(tmp_path / "none"), str(tmp_path / "no"), features).transform()


def test_schema(tmp_path):
    (tmp_path / "s.json").write_text('{"numRows": 3, "columns": [{"name": "x", "type": "int64", "shape": [2]}]}')
    schema = ds.Schema(str(tmp_path / "s.json"))
    assert schema.num_rows == 3 and json.loads(schema.to_json())["columns"][0]["shape"] == [2]
    (tmp_path / "s.json").write_text("{")
    with pytest.raises(ValueError, match="JSON"):
        ds.Schema(str(tmp_path / "s.json"))


def test_settings():
    c = ds.config
    for name in (
        "numa_enable", "monitor_sampling_interval", "auto_num_workers", "callback_timeout", "autotune_interval",
        "enable_shared_mem", "auto_offload", "enable_watchdog", "multiprocessing_timeout_interval", "fast_recovery",
    ):  # fmt: skip
        value = getattr(c, "get_" + name)()
        getattr(c, "set_" + name)(value)
        assert getattr(c, "get_" + name)() == value
        with pytest.raises(TypeError):
            getattr(c, "set_" + name)("x")
    for call in (lambda: c.set_debug_mode(True), lambda: c.set_error_samples_mode(c.ErrorSamplesMode.SKIP)):
        with pytest.raises(NotImplementedError):
            call()
    assert c.get_iterator_mode() == {"do_copy": False, "parallel_convert": False} and not c.get_enable_autotune()
