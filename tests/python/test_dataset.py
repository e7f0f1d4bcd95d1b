# SPDX-License-Identifier: Apache-2.0
"""Datasets: sources, operations, iterators, order, settings, errors."""

import gzip
import struct
import threading
import time

import numpy as np
import pytest

import undertow as ut
from undertow import dataset as ds


class Rows:
    """Random access: row i is the int32 i."""

    def __init__(self, n=10):
        self.n = n

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        return np.int32(i)


def values(dataset, column=0, epochs=1):
    it = dataset.create_tuple_iterator(num_epochs=epochs, output_numpy=True)
    return [[np.asarray(row[column]).tolist() for row in it] for _ in range(epochs)]


def plain(n=10, **options):
    return ds.GeneratorDataset(Rows(n), ["x"], shuffle=False, **options)


def generate():
    yield from (np.int32(i) for i in range(5))


def test_sources():
    rows = [(np.float32([i, i]), np.int32(i)) for i in range(4)]
    sources = {
        "random access": Rows(4), "generator function": lambda: (np.int32(i) for i in range(4)),
        "iterable": range(4), "array": np.arange(4, dtype=np.int32),
        "list": [np.int32(i) for i in range(4)], "tuple": tuple(np.int32(i) for i in range(4)),
    }  # fmt: skip
    for name, source in sources.items():
        assert values(ds.GeneratorDataset(source, ["x"], shuffle=False)) == [[0, 1, 2, 3]], name
    two = ds.GeneratorDataset(rows, ["a", "b"], shuffle=False)
    assert two.get_col_names() == ["a", "b"] and values(two) == [[[i, i] for i in range(4)]] and len(two) == 4
    assert two.output_shapes() == [[2], []] and two.output_types() == [np.float32, np.int32]


def test_a_list_is_copied_once():
    rows = [(np.float32(i), np.int32(i)) for i in range(4)]
    dataset = ds.GeneratorDataset(rows, ["a", "b"], shuffle=False)
    rows.clear()
    assert values(dataset, 1) == [[0, 1, 2, 3]]


def test_ragged_rows_in_a_list():
    dataset = ds.GeneratorDataset([(np.zeros(i, np.int32),) for i in range(3)], ["x"], shuffle=False)
    assert values(dataset) == [[[], [0], [0, 0]]]
    with pytest.raises(ut.DataError, match=r"(?s)x.*\(0,\).*\(1,\)"):
        values(dataset.batch(2))


def test_python_numbers_keep_numpys_types():
    assert ds.GeneratorDataset([(1, 2.5, True)] * 2, ["a", "b", "c"]).output_types() == [np.int64, np.float64, np.bool_]


def test_numpy_slices():
    x, y = np.arange(6).reshape(3, 2), np.arange(3)
    for data, names in (((x, y), ["column_0", "column_1"]), ({"x": x, "y": y}, ["x", "y"]), (x, ["column_0"])):
        dataset = ds.NumpySlicesDataset(data, shuffle=False)
        assert dataset.get_col_names() == names and values(dataset) == [x.tolist()]
    assert values(ds.NumpySlicesDataset([1, 2, 3], "n", shuffle=False)) == [[1, 2, 3]]
    assert values(ds.NumpySlicesDataset({"x": x[:, ::-1]}, shuffle=False)) == [x[:, ::-1].tolist()]
    with pytest.raises(ValueError):
        ds.NumpySlicesDataset((x, np.arange(4)))
    with pytest.raises(ValueError, match="column_names"):
        ds.NumpySlicesDataset((x, y), ["only"])


def test_default_order():
    ds.config.set_seed(3)
    first, second = values(ds.GeneratorDataset(Rows(20), ["x"]), epochs=2)
    assert sorted(first) == sorted(second) == list(range(20)) and first != second and first != list(range(20))
    assert values(ds.GeneratorDataset(Rows(20), ["x"]), epochs=2) == [first, second]
    ds.config.set_seed(4)
    assert values(ds.GeneratorDataset(Rows(20), ["x"]))[0] != first


def test_batch():
    assert values(plain().batch(4)) == [[[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]]
    assert values(plain().batch(4, drop_remainder=True)) == [[[0, 1, 2, 3], [4, 5, 6, 7]]]
    assert plain().batch(4).get_dataset_size() == 3 and plain().batch(4, True).get_dataset_size() == 2
    assert plain().batch(4).get_batch_size() == 4 and plain().batch(4).output_shapes() == [[4]]
    for bad, error in ((0, ValueError), (-1, ValueError), (2.5, TypeError), ("2", TypeError), (True, TypeError)):
        with pytest.raises(error):
            plain().batch(bad)


def test_other_operations():
    assert values(plain(4).repeat(2)) == [[0, 1, 2, 3] * 2] and plain(4).repeat(2).get_dataset_size() == 8
    assert values(plain().take(3)) == [[0, 1, 2]] and values(plain().skip(7)) == [[7, 8, 9]]
    assert sorted(values(plain().shuffle(5))[0]) == list(range(10))
    assert values(plain(3) + plain(2)) == [[0, 1, 2, 0, 1]] and values(ds.concat([plain(1), plain(2)])) == [[0, 0, 1]]
    pair = plain(3).zip(plain(2).rename("x", "y"))
    assert pair.get_col_names() == ["x", "y"] and len(pair) == 2 and values(pair.project("y")) == [[0, 1]]
    assert values(plain().filter(lambda x: x % 3 == 0)) == [[0, 3, 6, 9]]
    assert values(plain().apply(lambda d: d.take(1))) == [[0]]
    train, test = plain().split([0.8, 0.2])
    for _ in range(2):
        assert sorted(values(train)[0] + values(test)[0]) == list(range(10))
    for call in (
        lambda: plain().shuffle(1),
        lambda: plain().take(0),
        lambda: plain().repeat(0),
        lambda: plain().project("z"),
    ):
        with pytest.raises((ValueError, KeyError)):
            call()


def test_two_branches_of_one_dataset():
    base = plain(3)
    a, b = base.map(lambda x: x + 1), base.map(lambda x: x * 10)
    assert values(a) == [[1, 2, 3]] and values(b) == [[0, 10, 20]]
    ia, ib = a.create_tuple_iterator(num_epochs=1), b.create_tuple_iterator(num_epochs=1)
    assert [(x[0].item(), y[0].item()) for x, y in zip(ia, ib)] == [(1, 0), (2, 10), (3, 20)]


def test_map():
    two = ds.NumpySlicesDataset({"a": np.arange(3), "b": np.arange(3) * 10}, shuffle=False)
    assert values(two.map(lambda a: a + 1)) == [[1, 2, 3]]
    assert values(two.map(lambda b: b + 1, "b"), 1) == [[1, 11, 21]]
    assert values(two.map([lambda a: a + 1, lambda a: a * 2], "a")) == [[2, 4, 6]]
    both = two.map(lambda a, b: (a + b, a - b, np.float32(1)), ["a", "b"], ["s", "d", "one"])
    assert both.get_col_names() == ["s", "d", "one"] and values(both) == [[0, 11, 22]]
    one = two.map(lambda a, b: a + b, ["a", "b"], ["s"])
    assert one.get_col_names() == ["s"] and values(one) == [[0, 11, 22]]
    batched = two.batch(3).map(lambda a: a.sum(), "a")
    assert values(batched) == [[3]]
    with pytest.raises(TypeError, match="callable"):
        two.map(3)


def test_native_operations():
    image = np.arange(24, dtype=np.uint8).reshape(2, 4, 3)
    chw = ds.vision.HWC2CHW()
    np.testing.assert_array_equal(chw(image), image.transpose(2, 0, 1))
    assert chw(image[..., :1]).shape == (1, 2, 4) and chw(image[..., 0]).shape == (2, 4)
    np.testing.assert_allclose(ds.vision.Rescale(1 / 255, -0.5)(image), image / 255 - 0.5, atol=1e-6)
    mean, std = [1.0, 2.0, 3.0], [2.0, 4.0, 8.0]
    np.testing.assert_allclose(ds.vision.Normalize(mean, std)(image), (image - np.array(mean)) / std, rtol=1e-6)
    np.testing.assert_allclose(
        ds.vision.Normalize(mean, std, False)(chw(image)),
        ((image - np.array(mean)) / std).transpose(2, 0, 1),
        rtol=1e-6,
    )
    cast = ds.transforms.TypeCast(ut.int32)(np.array([1.7, -1.7]))
    assert cast.dtype == np.int32 and cast.tolist() == [1, -1]
    both = ds.transforms.Compose([chw, ds.vision.Rescale(2, 0), lambda x: x + 1])
    np.testing.assert_allclose(both(image), image.transpose(2, 0, 1) * 2.0 + 1)
    pipeline = ds.NumpySlicesDataset({"image": image[None]}).map([chw, ds.transforms.TypeCast("float16")], "image")
    assert pipeline.output_types() == [np.float16] and pipeline.output_shapes() == [[3, 2, 4]]
    with pytest.raises(ut.DataError, match="3 means"):
        ds.vision.Normalize(mean, std)(image[..., :1])
    with pytest.raises(ut.DataError, match="HWC2CHW"):
        chw(image[None])
    with pytest.raises(ValueError, match="length"):
        ds.vision.Normalize([1], [1, 2])


def test_iterators():
    it = plain(3).create_dict_iterator(num_epochs=2)
    assert [d["x"].item() for d in it] == [0, 1, 2] == [d["x"].item() for d in it]
    assert isinstance(next(iter(plain(1)))[0], ut.Tensor)
    assert isinstance(next(plain(1).create_tuple_iterator(output_numpy=True))[0], np.ndarray)
    with pytest.raises(RuntimeError, match="epoch"):
        next(it)
    endless = plain(2).create_tuple_iterator()
    assert [[row[0].item() for row in endless] for _ in range(5)] == [[0, 1]] * 5
    two = ds.NumpySlicesDataset({"a": [1], "b": [2]})
    assert next(two.create_tuple_iterator(columns=["b"]))[0].item() == 2


def test_large_columns_are_handed_out_safely():
    big = np.arange(3 * 30_000, dtype=np.float32).reshape(3, -1)
    kept = [
        row[0]
        for row in ds.NumpySlicesDataset(big, shuffle=False).create_tuple_iterator(num_epochs=1, output_numpy=True)
    ]
    np.testing.assert_array_equal(np.stack(kept), big)


def test_workers_do_not_change_the_order():
    want = values(ds.GeneratorDataset(Rows(50), ["x"], num_parallel_workers=1).batch(4), epochs=2)
    for n in (2, 3, 8):
        dataset = ds.GeneratorDataset(Rows(50), ["x"], num_parallel_workers=n).map(lambda x: x, num_parallel_workers=n)
        assert values(dataset.batch(4), epochs=2) == want


def test_draws_from_numpys_generator_repeat():
    def run(workers):
        ut.set_seed(7)
        dataset = plain(8).map(lambda x: np.random.randint(2**30), num_parallel_workers=workers)  # noqa: NPY002
        return values(dataset, epochs=2)

    first = run(1)
    assert first == run(2) == run(3) and len({v for epoch in first for v in epoch}) == 16


def test_waiting_sources_overlap():
    class Slow(Rows):
        def __getitem__(self, i):
            time.sleep(0.01)
            return np.int32(i)

    def seconds(workers):
        dataset = ds.GeneratorDataset(Slow(60), ["x"], num_parallel_workers=workers, shuffle=False)
        dataset.output_types()
        start = time.perf_counter()
        assert values(dataset.batch(2)) == [[[i, i + 1] for i in range(0, 60, 2)]]
        return time.perf_counter() - start

    one, four = seconds(1), seconds(4)
    assert one > 0.59 and four < 0.6 * one


def test_an_iterator_left_early_ends_its_threads():
    before = threading.active_count()
    for _ in range(3):
        next(ds.GeneratorDataset(Rows(1000), ["x"], num_parallel_workers=4).create_tuple_iterator())
    assert threading.active_count() <= before + 1


def test_samplers():
    def run(sampler):
        return values(ds.GeneratorDataset(Rows(10), ["x"], sampler=sampler))[0]

    assert run(ds.SequentialSampler(2, 3)) == [2, 3, 4] and run(ds.SubsetSampler([5, 1])) == [5, 1] == run([5, 1])
    assert sorted(run(ds.RandomSampler())) == list(range(10)) and sorted(run(ds.SubsetRandomSampler([3, 4]))) == [3, 4]
    assert set(run(ds.WeightedRandomSampler([0] * 9 + [1], 4))) == {9} and run(ds.IterSampler(range(2))) == [0, 1]
    assert run(ds.DistributedSampler(4, 1, shuffle=False)) == [1, 5, 9]

    class Mine(ds.Sampler):
        def __iter__(self):
            return iter([7, 7, 0])

    assert run(Mine()) == [7, 7, 0]
    with pytest.raises(ValueError, match="sampler"):
        ds.GeneratorDataset(Rows(), ["x"], sampler=Mine(), shuffle=True)


def test_shards():
    shards = [values(plain(10, num_shards=4, shard_id=i))[0] for i in range(4)]
    assert shards == [[0, 4, 8], [1, 5, 9], [2, 6, 0], [3, 7, 1]]
    with pytest.raises(ValueError, match="together"):
        plain(num_shards=2)


def test_num_samples():
    assert values(plain(num_samples=3)) == [[0, 1, 2]]
    some = values(ds.GeneratorDataset(Rows(10), ["x"], num_samples=8))[0]
    assert len(set(some)) == 8
    with pytest.raises(ValueError, match="num_samples"):
        plain(num_samples=-1)


def write_idx(folder, prefix, n, zipped=False, labels=None):
    opener, end = (gzip.open, ".gz") if zipped else (open, "")
    images = np.arange(n * 784, dtype=np.uint64).astype(np.uint8).reshape(n, 28, 28)
    with opener(folder / f"{prefix}-images-idx3-ubyte{end}", "wb") as f:
        f.write(struct.pack(">IIII", 2051, n, 28, 28) + images.tobytes())
    with opener(folder / f"{prefix}-labels-idx1-ubyte{end}", "wb") as f:
        count = n if labels is None else labels
        f.write(struct.pack(">II", 2049, count) + bytes(i % 10 for i in range(count)))
    return images


@pytest.mark.parametrize("cls", [ds.MnistDataset, ds.FashionMnistDataset])
@pytest.mark.parametrize("zipped", [False, True])
def test_idx_files(tmp_path, cls, zipped):
    images = write_idx(tmp_path, "train", 12, zipped)
    write_idx(tmp_path, "t10k", 3, zipped)
    dataset = cls(tmp_path, "train", shuffle=False)
    assert len(dataset) == 12 and len(cls(str(tmp_path))) == 15 and dataset.get_col_names() == ["image", "label"]
    image, label = next(dataset.create_tuple_iterator(output_numpy=True))
    np.testing.assert_array_equal(image, images[0][..., None])
    assert image.dtype == np.uint8 and label.dtype == np.uint32 and label == 0


def test_wrong_idx_files(tmp_path):
    with pytest.raises(ut.FileError, match="nowhere") as error:
        ds.MnistDataset(tmp_path / "nowhere", "train")
    assert isinstance(error.value, FileNotFoundError)
    with pytest.raises(ut.FileError, match="images"):
        ds.MnistDataset(tmp_path, "train")
    write_idx(tmp_path, "train", 10, labels=9)
    with pytest.raises(ut.FormatError, match="(?s)10.*9|9.*10"):
        ds.MnistDataset(tmp_path, "train")
    path = tmp_path / "train-images-idx3-ubyte"
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(ut.FormatError, match="train-images") as error:
        ds.MnistDataset(tmp_path, "train")
    assert isinstance(error.value, ValueError)
    with pytest.raises(ValueError, match="usage"):
        ds.MnistDataset(tmp_path, "valid")


@pytest.mark.parametrize(
    "make, error, words",
    [
        (lambda: ds.GeneratorDataset(3, ["x"]), TypeError, "source"),
        (lambda: ds.GeneratorDataset(Rows()), ValueError, "column_names"),
        (lambda: ds.GeneratorDataset(Rows(), [1]), TypeError, "column"),
        (lambda: plain(num_parallel_workers=0), ValueError, "num_parallel_workers"),
        (lambda: values(ds.GeneratorDataset(lambda: iter([(1, 2)]), ["x"])), ut.DataError, "column"),
        (lambda: values(ds.GeneratorDataset(lambda: iter([(1, None)]), ["x", "y"])), TypeError, "column 1"),
        (lambda: plain().create_tuple_iterator(num_epochs=0), ValueError, "num_epochs"),
        (lambda: ds.config.set_seed(-1), ValueError, "seed"),
        (lambda: ds.config.set_num_parallel_workers(0), ValueError, "positive"),
    ],
)
def test_bad_arguments(make, error, words):
    with pytest.raises(error, match=words):
        make()
