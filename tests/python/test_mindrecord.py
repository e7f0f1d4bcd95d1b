# SPDX-License-Identifier: Apache-2.0
"""MindRecord: files of MindSpore, writing and reading, MindDataset, converters, the command line."""

import json
import os
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import undertow as ut
from undertow import dataset as ds
from undertow import mindrecord as mr

DATA = Path(__file__).parent.parent / "formats" / "data" / "mindrecord"
SCHEMA = {
    "label": {"type": "int32"},
    "name": {"type": "string"},
    "score": {"type": "float64"},
    "data": {"type": "bytes"},
    "v": {"type": "int64", "shape": [-1]},
}


def row(i):
    return {"label": i, "name": f"é中😀{i}", "score": i / 4, "data": bytes(range(i)), "v": np.arange(i + 1) - 3}


def write(path, rows, shards=1, schema=None, at_once=None, **options):
    writer = mr.FileWriter(str(path), shards, **options)
    writer.add_schema(schema or SCHEMA, "of a test")
    at_once = at_once or max(len(rows), 1)
    for i in range(0, len(rows), at_once):
        writer.write_raw_data(rows[i : i + at_once])
    writer.commit()
    return str(path)


def equal(a, b):
    assert a.keys() == b.keys()
    for key, value in b.items():
        if isinstance(value, np.ndarray):
            np.testing.assert_array_equal(a[key], value)
            assert a[key].dtype == value.dtype
        else:
            assert a[key] == value and type(a[key]) is type(value), key


def labels(dataset, column="label"):
    return [int(r[column]) for r in dataset.create_dict_iterator(num_epochs=1, output_numpy=True)]


def decode(value):
    if isinstance(value, dict) and "ndarray" in value:
        return np.array(value["ndarray"], value["dtype"]).reshape(value["shape"])
    return bytes.fromhex(value["bytes_hex"]) if isinstance(value, dict) else value


@pytest.fixture
def theirs(tmp_path):
    for file in DATA.glob("small*"):
        (tmp_path / file.name).write_bytes(file.read_bytes())
    return tmp_path


@pytest.mark.parametrize("name", ["small1.mindrecord", "small4.mindrecord", "smallpages.mindrecord"])
def test_files_of_mindspore(theirs, name):
    truth = json.loads((DATA / "truth.json").read_text())[name]
    path = str(theirs / (name if truth["shards"] == 1 else name + "0"))
    reader = mr.FileReader(path)
    rows = list(reader.get_next())
    want = [{k: decode(v) for k, v in r.items()} for r in truth["rows"]]
    if truth["shards"] > 1:
        rows.sort(key=lambda r: r["label"])
        want.sort(key=lambda r: r["label"])
    assert len(rows) == reader.len() == len(want)
    for a, b in zip(rows, want):
        equal(a, b)
    assert reader.schema() == truth["schema"]
    dataset = ds.MindDataset(path, shuffle=False)
    assert dataset.get_col_names() == sorted(truth["schema"]) and len(dataset) == len(want)
    got = sorted(dataset.create_dict_iterator(num_epochs=1, output_numpy=True), key=lambda r: int(r["label"]))
    for a, b in zip(got, sorted(want, key=lambda r: r["label"])):
        for key, value in b.items():
            kind = truth["schema"][key]["type"]
            if kind == "bytes":
                assert a[key].dtype == np.uint8 and a[key].tobytes() == value
            elif kind == "string":
                assert a[key].shape == () and a[key].dtype.kind == "U" and str(a[key]) == value
            else:
                np.testing.assert_array_equal(a[key], np.asarray(value, kind))
                assert a[key].dtype == kind


def test_write_and_read(tmp_path):
    folder = tmp_path / "é 中文"
    folder.mkdir()
    rows = [row(i) for i in range(13)]
    write(folder / "x", rows, shards=4)
    back = list(mr.FileReader(str(folder / "x0")).get_next())
    for a, b in zip(back, rows, strict=True):
        equal(a, b)
    assert labels(ds.MindDataset(str(folder / "x2"), shuffle=False)) == list(range(13))
    moved = tmp_path / "moved"
    folder.rename(moved)
    files = [str(moved / f"x{i}") for i in range(4)]
    assert labels(ds.MindDataset(files, shuffle=False)) == list(range(13))
    assert labels(ds.MindDataset(files[1:2], shuffle=False)) == [4, 5, 6]
    os.remove(files[1])
    with pytest.raises(ut.FileError, match="x1"):
        ds.MindDataset(files[0])
    write(tmp_path / "one", rows, shards=4, at_once=1)
    assert [mr.FileReader([str(tmp_path / f"one{i}")]).len() for i in range(4)] == [4, 3, 3, 3]
    assert sorted(r["label"] for r in mr.FileReader(str(tmp_path / "one0")).get_next()) == list(range(13))
    some = next(mr.FileReader(files[:1] + files[2:], columns=["name"]).get_next())
    assert some == {"name": "é中😀0"}


def test_existing_files_stay(tmp_path):
    path = write(tmp_path / "x", [row(1)])
    with pytest.raises(ut.FileError, match="overwrite"):
        mr.FileWriter(path)
    writer = mr.FileWriter(path, overwrite=True)
    writer.add_schema(SCHEMA)
    writer.write_raw_data([row(5)])
    del writer
    assert [r["label"] for r in mr.FileReader(path).get_next()] == [1]
    write(path, [row(7)], overwrite=True)
    appended = mr.FileWriter.open_for_append(path)
    appended.write_raw_data([row(8)])
    appended.commit()
    with pytest.raises(RuntimeError, match="committed"):
        appended.write_raw_data([row(9)])
    assert [r["label"] for r in mr.FileReader(path).get_next()] == [7, 8]


@pytest.mark.parametrize(
    "change, error, words",
    [
        ({"label": 2**40}, ValueError, "row 1.*'label'"),
        ({"label": True}, TypeError, "row 1.*'label'"),
        ({"label": 1.0}, TypeError, "row 1.*'label'"),
        ({"name": b"x"}, TypeError, "row 1.*'name'"),
        ({"data": "x"}, TypeError, "row 1.*'data'"),
        ({"score": "x"}, TypeError, "row 1.*'score'"),
        ({"v": [1, 2]}, TypeError, "row 1.*'v'"),
        ({"v": np.arange(3, dtype=np.int32)}, TypeError, "row 1.*'v'"),
    ],
)
def test_invalid_rows_are_errors(tmp_path, change, error, words):
    writer = mr.FileWriter(str(tmp_path / "x"))
    writer.add_schema(SCHEMA)
    rows = [row(0), {**row(1), **change}]
    with pytest.raises(error, match=words):
        writer.write_raw_data(rows)
    assert len(rows) == 2
    with pytest.raises(ValueError, match="row 0.*'v'"):
        writer.write_raw_data([{k: v for k, v in row(0).items() if k != "v"}])
    writer.write_raw_data([{**row(0), "more": 1, "label": np.int64(3), "score": np.float32(0.5)}])
    writer.commit()
    assert [r["label"] for r in mr.FileReader(str(tmp_path / "x")).get_next()] == [3]


def test_wrong_schemas(tmp_path):
    for content in (
        {"a": {"type": "uint8"}},
        {"a b": {"type": "int32"}},
        {"a": {"type": "string", "shape": [2]}},
        {"a": {"type": "int32", "shape": [-1, -1]}},
        {"a": {"shape": [2]}},
        {"a": {"type": "int32", "x": 1}},
        {},
        3,
    ):
        with pytest.raises(ValueError):
            mr.FileWriter(str(tmp_path / "x")).add_schema(content)
    writer = mr.FileWriter(str(tmp_path / "x"))
    writer.add_schema(SCHEMA)
    with pytest.raises(ValueError):
        writer.add_schema(SCHEMA)
    for index, error in ((["data"], ValueError), (["none"], ValueError), ("label", TypeError)):
        with pytest.raises(error):
            writer.add_index(index)
    for call in (lambda: writer.set_page_size(1), lambda: writer.set_header_size(2**40)):
        with pytest.raises(ValueError):
            call()


def test_empty_bytes_and_no_blob(tmp_path):
    path = write(tmp_path / "x", [{"d": b""}, {"d": b"a\0"}], schema={"d": {"type": "bytes"}})
    assert [r["d"] for r in mr.FileReader(path).get_next()] == [b"", b"a\0"]
    path = write(tmp_path / "y", [{"n": 5}], schema={"n": {"type": "int64"}})
    assert list(mr.FileReader(path).get_next()) == [{"n": 5}]


def test_mindpage(tmp_path):
    path = write(tmp_path / "x", [{**row(i), "label": i % 3} for i in range(8)])
    page = mr.MindPage(path)
    assert page.candidate_fields == ["label", "name", "score"]
    page.category_field = "label"
    info = json.loads(page.read_category_info())
    assert [(c["id"], c["name"], c["count"]) for c in info["categories"]] == [(0, 0, 3), (1, 1, 3), (2, 2, 2)]
    assert [r["score"] for r in page.read_at_page_by_id(1, 0, 2)] == [0.25, 1.0]
    assert [r["score"] for r in page.read_at_page_by_name(1, 1, 2)] == [1.75]
    with pytest.raises(ValueError):
        page.category_field = "data"


def test_mind_dataset_orders(tmp_path):
    path = write(tmp_path / "x", [row(i) for i in range(12)], shards=3) + "0"
    ds.config.set_seed(1)
    assert sorted(labels(ds.MindDataset(path))) == list(range(12)) != labels(ds.MindDataset(path))
    files = labels(ds.MindDataset(path, shuffle=ds.Shuffle.FILES))
    assert sorted(files) == list(range(12)) and all(files[i + 1] == files[i] + 1 for i in range(12) if i % 4 != 3)
    inside = labels(ds.MindDataset(path, shuffle=ds.Shuffle.INFILE))
    assert [{v // 4 for v in inside[i : i + 4]} for i in (0, 4, 8)] == [{0}, {1}, {2}] and inside != list(range(12))
    shards = [labels(ds.MindDataset(path, shuffle=False, num_shards=5, shard_id=i)) for i in range(5)]
    assert shards == [[0, 5, 10], [1, 6, 11], [2, 7, 0], [3, 8, 1], [4, 9, 2]]
    assert labels(ds.MindDataset(path, shuffle=False, num_samples=5)) == [0, 1, 2, 3, 4]
    assert labels(ds.MindDataset(path, sampler=ds.SubsetSampler([7, 2]))) == [7, 2]
    two = ds.MindDataset(path, ["score", "label"], shuffle=False)
    assert two.get_col_names() == ["score", "label"] and two.output_types() == [np.float64, np.int32]
    padded = {"label": np.int32(-1), "score": np.float64(0)}
    more = ds.MindDataset(path, ["label", "score"], shuffle=False, padded_sample=padded, num_padded=3)
    assert labels(more)[-4:] == [11, -1, -1, -1]
    with pytest.raises(ValueError, match="none"):
        ds.MindDataset(path, ["none"])


def test_pk_sampler(tmp_path):
    rows = [{**row(i), "label": i % 3} for i in range(12)]
    path = write(tmp_path / "x", rows, shards=2, at_once=1) + "0"
    assert labels(ds.MindDataset(path, sampler=ds.PKSampler(2))) == [0, 0, 1, 1, 2, 2]
    assert labels(ds.MindDataset(path, sampler=ds.PKSampler(5, num_class=1))) == [0] * 5
    shuffled = ds.MindDataset(path, sampler=ds.PKSampler(2, shuffle=True))
    assert sorted(labels(shuffled)) == [0, 0, 1, 1, 2, 2]
    with pytest.raises(TypeError, match="none"):
        ds.MindDataset(path, sampler=ds.PKSampler(2, class_column="none"))
    with pytest.raises(TypeError, match="label"):
        ds.NumpySlicesDataset([1, 2], sampler=ds.PKSampler(2))


def test_texts_in_batches(tmp_path):
    path = write(tmp_path / "x", [{**row(i), "name": "x" * (i % 4)} for i in range(9)])
    names = [b["name"] for b in ds.MindDataset(path, ["name"], shuffle=False).batch(4).create_dict_iterator(1, True)]
    assert [n.tolist() for n in names] == [["", "x", "xx", "xxx"], ["", "x", "xx", "xxx"], [""]]
    assert ds.MindDataset(path, ["name"]).output_types() == [np.str_]
    assert ds.MindDataset(path, ["name"]).batch(2).output_shapes() == [[2]]
    upper = ds.MindDataset(path, ["name"], shuffle=False).map(lambda t: np.char.upper(t), "name")
    assert [str(r[0]) for r in upper.create_tuple_iterator(num_epochs=1)][:4] == ["", "X", "XX", "XXX"]


def test_save(tmp_path):
    columns = {
        "u8": np.arange(7 * 6, dtype=np.uint8).reshape(7, 3, 2), "half": np.arange(7, dtype=np.float16),
        "flag": np.arange(7) % 2 == 0, "i64": np.arange(7), "f": np.arange(14, dtype=np.float32).reshape(7, 2),
        "u64": np.full(7, 2**63 + 1, np.uint64), "s": np.array([f"t{i}" * i for i in range(7)]),
    }  # fmt: skip
    source = ds.NumpySlicesDataset(columns, shuffle=False)
    source.save(str(tmp_path / "x"), 3)
    back = ds.MindDataset(str(tmp_path / "x0"), shuffle=False)
    rows = list(back.create_dict_iterator(num_epochs=1, output_numpy=True))
    assert len(rows) == 7
    for name, want in columns.items():
        got = np.stack([r[name] for r in rows])
        np.testing.assert_array_equal(got, want)
        assert got.dtype.kind == want.dtype.kind and (got.dtype == want.dtype or name == "s")
    ds.GeneratorDataset(lambda: ((np.zeros(i, np.uint8),) for i in range(4)), ["x"]).save(str(tmp_path / "y"))
    assert [r[0].shape for r in ds.MindDataset(str(tmp_path / "y"), shuffle=False)] == [(0,), (1,), (2,), (3,)]


def test_csv_and_image_converters(tmp_path):
    (tmp_path / "a.csv").write_text('n,x,"t, u"\n1,0.5,a\n-2,3,"b, c"\n'.replace('"t, u"', "t"))
    mr.CsvToMR(str(tmp_path / "a.csv"), str(tmp_path / "csv")).transform()
    assert list(mr.FileReader(str(tmp_path / "csv")).get_next()) == [
        {"n": 1, "t": "a", "x": 0.5},
        {"n": -2, "t": "b, c", "x": 3.0},
    ]
    for folder in ("n1", "n2"):
        (tmp_path / "images" / folder).mkdir(parents=True)
        for i in range(3):
            (tmp_path / "images" / folder / f"{i}.jpg").write_bytes(folder.encode() + bytes([i]))
    (tmp_path / "map").write_text("n1 0\nn2 1\n")
    paths = [str(tmp_path / name) for name in ("map", "images", "net")]
    mr.ImageNetToMR(*paths, 2).transform()
    rows = list(mr.FileReader(paths[2] + "0").get_next())
    assert sorted((r["label"], r["image"]) for r in rows) == [
        (label, folder + bytes([i])) for label, folder in enumerate((b"n1", b"n2")) for i in range(3)
    ]


def test_cifar_and_mnist_converters(tmp_path):
    from test_dataset import write_idx

    images = np.arange(4 * 3072, dtype=np.uint32).astype(np.uint8).reshape(4, 3072)
    for name in ("data_batch_1", "test_batch", "train", "test"):
        content = {b"data": images, b"labels": [3, 1, 2, 0], b"fine_labels": [9, 8, 7, 6], b"coarse_labels": [1] * 4}
        (tmp_path / name).write_bytes(pickle.dumps(content, protocol=2))
    mr.Cifar10ToMR(str(tmp_path), str(tmp_path / "c10")).transform(["label"])
    mr.Cifar100ToMR(str(tmp_path), str(tmp_path / "c100")).transform()
    rows = list(mr.FileReader(str(tmp_path / "c10_test")).get_next())
    assert [r["label"] for r in rows] == [3, 1, 2, 0] and rows[0]["data"][:4] == b"\x89PNG"
    assert next(mr.FileReader(str(tmp_path / "c100")).get_next())["fine_label"] == 9
    (tmp_path / "test_batch").write_bytes(pickle.dumps({b"data": os.system}))
    with pytest.raises(ValueError, match="system"):
        mr.Cifar10ToMR(str(tmp_path), str(tmp_path / "no")).transform()
    write_idx(tmp_path, "train", 3)
    write_idx(tmp_path, "t10k", 2)
    mr.MnistToMR(str(tmp_path), str(tmp_path / "mnist")).transform()
    assert [r["label"] for r in mr.FileReader(str(tmp_path / "mnist_train.mindrecord")).get_next()] == [0, 1, 2]


def test_any_path_and_text_in_any_place(tmp_path):
    """Fault D01: names that are not ASCII, moved folders, a missing shard, a file that is there already."""
    folder = tmp_path / "數據 é"
    folder.mkdir()
    text = "é中\N{GRINNING FACE}"
    rows = [{"text": f"{text}{i}", "a": np.arange(i + 1, dtype=np.int32), "n": i} for i in range(5)]
    schema = {"text": {"type": "string"}, "a": {"type": "int32", "shape": [-1]}, "n": {"type": "int64"}}

    def write():
        writer = mr.FileWriter(str(folder / "ü.mindrecord"), 2)
        writer.add_schema(schema, text)
        writer.write_raw_data(rows)
        writer.commit()

    write()
    with pytest.raises(ut.FileError, match="ü.mindrecord0"):
        write()
    moved = tmp_path / "ñ 移"
    folder.rename(moved)
    paths = [str(moved / f"ü.mindrecord{i}") for i in range(2)]
    for given in (paths, paths[0]):
        data = ds.MindDataset(given, shuffle=False)
        got = list(data.create_dict_iterator(num_epochs=1, output_numpy=True))
        assert len(got) == 5
        for row, want in zip(got, rows, strict=True):
            assert row["text"].item() == want["text"] and np.array_equal(row["a"], want["a"]) and row["n"] == want["n"]
    (moved / "ü.mindrecord1").unlink()
    with pytest.raises(ut.FileError, match="ü.mindrecord1"):
        ds.MindDataset(paths[0])


def test_command_line(tmp_path):
    for folder, n in (("b", 3), ("a", 2)):
        (tmp_path / "d" / folder).mkdir(parents=True)
        for i in range(n):
            (tmp_path / "d" / folder / f"{i}.jpg").write_bytes(folder.encode() * i)

    def run(*args):
        command = [sys.executable, "-m", "undertow", "mindrecord", *args]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    packed = run("pack", str(tmp_path / "d"), "--shards", "2")
    assert packed.returncode == 0 and "5 images of 2 classes" in packed.stdout and not packed.stderr
    rows = list(mr.FileReader(str(tmp_path / "d.mindrecord0")).get_next())
    assert [(r["label"], r["image"]) for r in rows] == [(0, b""), (0, b"a"), (1, b""), (1, b"b"), (1, b"bb")]
    info = run("info", str(tmp_path / "d.mindrecord1"))
    assert info.returncode == 0 and "5 rows in 2 file(s)" in info.stdout and "label: int32 (index)" in info.stdout
    again = run("pack", str(tmp_path / "d"), "--shards", "2")
    assert again.returncode == 1 and "exists" in again.stderr and "Traceback" not in again.stderr
    assert run("info", str(tmp_path / "none")).returncode == 1
