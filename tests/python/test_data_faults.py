# SPDX-License-Identifier: Apache-2.0
"""Faults that users have reported for data pipelines, each called by itself and through threads and processes."""

import io

import numpy as np
import pytest
from images import far, file_of, photo, pillow_rgb
from PIL import Image
from test_dataset import write_idx
from undertow.dataset import vision

import undertow as ut
from undertow import Callback, Model, nn
from undertow import dataset as ds
from undertow import mindrecord as mr


@pytest.fixture(autouse=True)
def fused_again():
    yield
    ds.config.set_fuse(True)


class Given:
    """Rows that are already there."""

    def __init__(self, values):
        self.values = values

    def __len__(self):
        return len(self.values)

    def __getitem__(self, i):
        return self.values[i]


def through(operations, values):
    """What the operations make of each value: called by themselves, and in every kind of pipeline the same."""
    operations = operations if isinstance(operations, list) else [operations]
    expected = []
    for value in values:
        for operation in operations:
            value = operation(value)
        expected.append(np.asarray(value))
    for fuse in (True, False):
        ds.config.set_fuse(fuse)
        for workers, processes in ((1, False), (2, False), (2, True)):
            options = {"num_parallel_workers": workers, "python_multiprocessing": processes}
            data = ds.GeneratorDataset(Given(values), ["x"], shuffle=False, **options)
            data = data.map(operations, "x", **options)
            got = [row[0] for row in data.create_tuple_iterator(num_epochs=1, output_numpy=True)]
            assert len(got) == len(expected)
            for a, b in zip(got, expected, strict=True):
                assert a.dtype == b.dtype and np.array_equal(a, b), (fuse, workers, processes)
    return expected


# ---- B: rows.


def test_shuffled_epochs():
    """B05: each epoch is a permutation of its own, and the seed gives the same again, in iterators and in training."""

    def orders(data):
        it = data.create_tuple_iterator(num_epochs=2, output_numpy=True)
        return [[int(row[0]) for row in it] for _ in range(2)]

    def trained(sink):
        """The losses are the squares of what the steps saw."""
        ds.config.set_seed(1)
        x = np.arange(10, dtype=np.float32).reshape(-1, 1)
        data = ds.NumpySlicesDataset((x, 0 * x), ["x", "y"], shuffle=True).batch(1)
        net = nn.Dense(1, 1, weight_init="ones", bias_init="zeros")
        losses = []

        class Keep(Callback):
            def on_train_step_end(self, run_context):
                losses.extend(run_context.original_args().step_losses)

        model = Model(net, nn.MSELoss(), nn.SGD(net.trainable_params(), 0.0))
        model.train(2, data, Keep(), dataset_sink_mode=sink)
        seen = np.sqrt(losses).round().astype(int).tolist()
        return seen[:10], seen[10:]

    def made():
        ds.config.set_seed(1)
        return orders(ds.GeneratorDataset(Given(np.arange(10)), ["x"], shuffle=False).shuffle(10))

    first, second = made()
    assert sorted(first) == sorted(second) == list(range(10)) and first != second
    assert made() == [first, second]
    for sink in (False, True):
        first, second = trained(sink)
        assert sorted(first) == sorted(second) == list(range(10)) and first != second
        assert trained(sink) == (first, second)


@pytest.mark.parametrize("workers, processes", [(1, False), (2, False), (2, True)])
def test_shuffled_shards_and_parts(workers, processes):
    """B06 and B14: shards of one order share no row but the two that fill up; parts of a split share none, ever."""
    options = {"num_parallel_workers": workers, "python_multiprocessing": processes}

    def rows(data):
        it = data.create_tuple_iterator(num_epochs=2, output_numpy=True)
        return [[int(v) for row in it for v in np.ravel(row[0])] for _ in range(2)]

    for shuffle in (False, True):
        shards = [
            ds.GeneratorDataset(Given(np.arange(10)), ["x"], shuffle=shuffle, num_shards=4, shard_id=i, **options)
            for i in range(4)
        ]
        assert [s.batch(2).get_dataset_size() for s in shards] == [2] * 4
        for epoch in zip(*(rows(s.batch(2)) for s in shards), strict=True):
            assert [len(part) for part in epoch] == [3] * 4
            assert set(sum(epoch, [])) == set(range(10))
    few = [
        ds.GeneratorDataset(Given(np.arange(3)), ["x"], shuffle=False, num_shards=4, shard_id=i, **options)
        for i in range(4)
    ]
    assert [rows(s) for s in few] == [[[i % 3]] * 2 for i in range(4)]
    train, test = ds.GeneratorDataset(Given(np.arange(10)), ["x"], **options).shuffle(10).split([0.8, 0.2])
    train, test = rows(train), rows(test)
    assert not {v for epoch in train for v in epoch} & {v for epoch in test for v in epoch}
    assert all(len(a) == 8 and len(b) == 2 for a, b in zip(train, test, strict=True))


@pytest.mark.parametrize("processes", [False, True])
def test_odd_memory(processes):
    """B13: the values are NumPy's, whatever lies in memory, and what is read only stays as it was."""
    base = np.arange(6, dtype=np.float32).reshape(2, 3)
    frozen = base.copy()
    frozen.flags.writeable = False
    values = [
        base[:, ::-1], np.zeros((1, 4))[::-1], base.T, np.asfortranarray(base), frozen, np.float32(3), np.array(True),
        base[::-1, ::2], np.broadcast_to(np.float32(7), (2, 2)), base.astype(">f4"), np.arange(3, dtype=">i8"),
    ]  # fmt: skip
    data = ds.GeneratorDataset(
        Given(values), ["x"], shuffle=False, num_parallel_workers=2, python_multiprocessing=processes
    )
    got = [row[0] for row in data.create_tuple_iterator(num_epochs=1, output_numpy=True)]
    for a, b in zip(got, values, strict=True):
        np.testing.assert_array_equal(a, b)
        assert a.shape == b.shape and a.dtype == b.dtype.newbyteorder("=")
    assert [row[0].tolist() for row in data.create_tuple_iterator(num_epochs=1)][0] == [[2, 1, 0], [5, 4, 3]]
    for (row,) in data.create_tuple_iterator(num_epochs=1, output_numpy=True):
        row[...] = 1
    assert frozen.tolist() == [[0, 1, 2], [3, 4, 5]]


# ---- C: pictures.


def test_cmyk_and_ycck():
    """C02: inks are not inverted."""
    red = file_of(Image.new("CMYK", (16, 16), (0, 255, 255, 0)))
    picture = file_of(Image.fromarray(photo(32, 32)).convert("CMYK"), quality=95)
    files = [red, picture]
    for file in (red, picture):
        ycck = file.copy()
        at = ycck.tobytes().index(b"Adobe") + 11
        assert ycck[at] == 0
        ycck[at] = 2  # the same numbers, to be understood as YCCK
        files.append(ycck)
    got = through(vision.Decode(), files)
    assert got[0].shape == (16, 16, 3) and far(got[0], np.full((16, 16, 3), (255, 0, 0))) <= 3
    for image, file in zip(got, files, strict=True):
        assert far(image, pillow_rgb(file)) <= 3


def test_one_rule_for_orientation(tmp_path):
    """C03: pictures are not turned, whichever way they are read."""
    exif = Image.Exif()
    exif[0x0112] = 6
    file = file_of(photo(16, 24), exif=exif)
    (tmp_path / "class").mkdir()
    (tmp_path / "class" / "turned.jpg").write_bytes(file.tobytes())
    upright = through(vision.Decode(), [file])[0]
    folder = ds.ImageFolderDataset(str(tmp_path), decode=True, num_parallel_workers=2)
    crop = vision.RandomCropDecodeResize((16, 24), (1, 1), (1.5, 1.5))
    for got in (
        next(folder.create_tuple_iterator(num_epochs=1, output_numpy=True))[0],
        np.asarray(vision.Decode(to_pil=True)(file)),
        vision.read_image(str(tmp_path / "class" / "turned.jpg")),
        through(crop, [file])[0],
        through([vision.Decode(), vision.Resize((16, 24))], [file])[0],
    ):
        assert got.shape == (16, 24, 3) and far(got, upright) <= 1


def test_16_bit_png():
    """C04: the high byte."""
    values = np.array([[0, 256, 32768, 65535]], np.uint16)
    file = file_of(Image.fromarray(values), "PNG")
    assert through(vision.Decode(), [file])[0].tolist() == [[[v] * 3 for v in (0, 1, 128, 255)]]
    np.testing.assert_allclose(through(vision.ToTensor(), [values])[0][0], values / 65535, rtol=1e-6)


def test_colours_clamp():
    """C05: what leaves 0 to 255 stops there."""
    bright = np.full((1, 2, 3), (255, 250, 255), np.uint8)
    assert (through(vision.AdjustBrightness(1.1), [bright])[0] == 255).all()
    ends = np.zeros((8, 8, 3), np.uint8)
    ends[:4] = 255
    assert np.array_equal(through(vision.AdjustContrast(3.0), [ends])[0], ends)
    assert np.array_equal(through(vision.Invert(), [ends])[0], 255 - ends)
    for inter in (vision.Inter.BICUBIC, vision.Inter.PILCUBIC, vision.Inter.LINEAR):
        rows = through(vision.Resize((32, 32), inter), [ends])[0][:, 16, 0].astype(int)
        assert rows[0] >= 250 and rows[-1] <= 5  # an edge that overshoots would wrap to the other end
        assert all(a >= b for a, b in zip(rows[12:20], rows[13:21])), rows
        assert (rows[:12] > 200).all() and (rows[20:] < 55).all(), rows
    for factor in (0.0, 5.0):
        adjust = vision.RandomColorAdjust((factor, factor), (factor, factor), (factor, factor), (0.5, 0.5))
        for row in through(adjust, [ends])[0].reshape(-1, 3):
            assert len(set(row.tolist())) == 1  # grey stays grey


def test_grey_pictures_and_layouts():
    """C06"""
    shapes = [(4, 6, 1), (4, 6), (4, 6, 4)]
    images = [np.arange(np.prod(s), dtype=np.uint8).reshape(s) for s in shapes]
    planes = through(vision.HWC2CHW(), images)
    assert [p.shape for p in planes] == [(1, 4, 6), (4, 6), (4, 4, 6)]
    assert np.array_equal(planes[2], images[2].transpose(2, 0, 1))
    grey = through(vision.Decode(), [file_of(photo(20, 20)[:, :, 0])])[0]
    assert grey.shape == (20, 20, 3) and (grey == grey[:, :, :1]).all()
    one = through(vision.Normalize([2.0], [4.0]), [images[0]])[0]
    assert np.array_equal(one, (images[0] - np.float32(2)) / np.float32(4))
    three = vision.Normalize([1.0] * 3, [1.0] * 3)
    for workers in (1, 2):
        data = ds.NumpySlicesDataset(np.zeros((4, 4, 6, 1), np.uint8), ["x"])
        with pytest.raises(ut.DataError, match="Normalize has 3 means for an image of 1 channel"):
            list(data.map(three, "x", num_parallel_workers=workers).create_tuple_iterator(num_epochs=1))


def test_mnist_through_workers(tmp_path):
    """C07: compressed files are read for what they are, and rows do not depend on workers (wrong files:
    test_dataset_errors.py)."""
    import gzip

    write_idx(tmp_path, "train", 10)
    path = tmp_path / "train-images-idx3-ubyte"
    rows = []
    for content in (path.read_bytes(), gzip.compress(path.read_bytes())):
        path.write_bytes(content)
        for workers in (1, 2):
            data = ds.MnistDataset(str(tmp_path), "train", shuffle=False, num_parallel_workers=workers)
            data = data.map([vision.Rescale(1 / 255, 0.0), vision.HWC2CHW()], "image", num_parallel_workers=workers)
            rows.append([(r[0].tolist(), int(r[1])) for r in data.create_tuple_iterator(num_epochs=1)])
    assert len(rows[0]) == 10 and all(r == rows[0] for r in rows)


# ---- D: MindRecord.


@pytest.mark.parametrize("workers, processes", [(1, False), (2, False), (2, True)])
def test_any_path_and_any_text(tmp_path, workers, processes):
    """D01, through workers; files and texts whose names are not ASCII, moved after they were written."""
    folder = tmp_path / "數據 é"
    folder.mkdir()
    text = "é中\N{GRINNING FACE}"
    file = io.BytesIO()
    Image.fromarray(photo(12, 10)).save(file, "PNG")
    writer = mr.FileWriter(str(folder / "ü.mindrecord"), 2)
    schema = {
        "t": {"type": "string"}, "a": {"type": "int32", "shape": [-1]}, "n": {"type": "int64"}, "p": {"type": "bytes"}
    }  # fmt: skip
    writer.add_schema(schema, text)
    writer.write_raw_data(
        [{"t": f"{text}{i}", "a": np.arange(i + 1, dtype=np.int32), "n": i, "p": file.getvalue()} for i in range(5)]
    )
    writer.commit()
    moved = tmp_path / "ñ 移"
    folder.rename(moved)
    paths = [str(moved / f"ü.mindrecord{i}") for i in range(2)]
    for given in (paths, paths[0]):
        data = ds.MindDataset(given, ["t", "a", "n", "p"], shuffle=False, num_parallel_workers=workers)
        data = data.map(vision.Decode(), "p", num_parallel_workers=workers)
        data = data.map(lambda t: np.array(str(t) + "ß"), "t", num_parallel_workers=workers,
                        python_multiprocessing=processes)  # fmt: skip
        rows = list(data.create_dict_iterator(num_epochs=1, output_numpy=True))
        assert [str(r["t"]) for r in rows] == [f"{text}{i}ß" for i in range(5)]
        assert [r["a"].tolist() for r in rows] == [list(range(i + 1)) for i in range(5)]
        assert [int(r["n"]) for r in rows] == list(range(5))
        assert all(np.array_equal(r["p"], photo(12, 10)) for r in rows)
