# SPDX-License-Identifier: Apache-2.0
"""Bad input to pipelines: the error says what is wrong, where, and what was expected."""

import gzip
import subprocess
import sys
import textwrap

import numpy as np
import pytest
from test_dataset import write_idx
from undertow.dataset import transforms, vision

import undertow as ut
from undertow import dataset as ds
from undertow import mindrecord as mr


def rows_of(dataset):
    return list(dataset.create_tuple_iterator(num_epochs=1, output_numpy=True))


def plain(**options):
    return ds.NumpySlicesDataset((np.arange(10, dtype=np.float32), np.arange(10)), ["x", "y"], **options)


# ---- Files and folders.

FOLDERS = ("ImageFolderDataset", "MnistDataset", "FashionMnistDataset", "Cifar10Dataset", "Cifar100Dataset")
FILES = ("MindDataset", "TFRecordDataset", "TextFileDataset", "CSVDataset")


@pytest.mark.parametrize("name", FOLDERS)
def test_missing_and_empty_folders(tmp_path, name):
    make = getattr(ds, name)
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").write_text("x")
    for place in ("missing", "file"):
        with pytest.raises(ut.FileError, match=rf"no folder '.*{place}'"):
            make(str(tmp_path / place))
    with pytest.raises(ut.FileError, match="empty.* has no"):
        make(str(tmp_path / "empty"))


def test_classes_without_images(tmp_path):
    (tmp_path / "cat").mkdir()
    data = ds.ImageFolderDataset(str(tmp_path))
    assert len(data) == 0
    with pytest.raises(ut.DataError, match=rf"ImageFolderDataset\({tmp_path}\) has 0 rows"):
        rows_of(data.batch(2))


@pytest.mark.parametrize("name", FILES)
def test_missing_files(tmp_path, name):
    make = getattr(ds, name)
    with pytest.raises(ut.FileError, match="missing"):
        make(str(tmp_path / "missing"))
    with pytest.raises(ut.FileError, match=r"folder.* it is not a file"):
        (tmp_path / "folder").mkdir()
        make(str(tmp_path / "folder"))
    with pytest.raises(ValueError, match=rf"{name}: the list of files is empty"):
        make([])
    with pytest.raises(TypeError, match="paths, got 3"):
        make([3])


def test_files_that_are_not_what_their_names_say(tmp_path):
    text = tmp_path / "a.mindrecord"
    text.write_text("plain text, longer than any header is at the least " * 20)
    with pytest.raises(ut.FormatError, match=r"a\.mindrecord is not a whole MindRecord file"):
        ds.MindDataset(str(text))
    with pytest.raises(ut.FormatError, match=r"a\.mindrecord is not a TFRecord file"):
        rows_of(ds.TFRecordDataset(str(text)))
    (tmp_path / "cat").mkdir()
    (tmp_path / "cat" / "0.jpg").write_text("plain text")
    for decode in (
        ds.ImageFolderDataset(str(tmp_path), decode=True),
        ds.ImageFolderDataset(str(tmp_path)).map(vision.Decode(), "image"),
        ds.ImageFolderDataset(str(tmp_path)).map([vision.Decode(), vision.Resize(4)], "image").batch(1),
    ):
        with pytest.raises(ut.DataError, match=r"(?s)Decode: neither a JPEG nor a PNG.*row 0 \(.*0\.jpg\)"):
            rows_of(decode)


def test_mnist_files(tmp_path):
    """Fault C07: cut, of another number of rows, still compressed (which is read), compressed and cut."""
    write_idx(tmp_path, "train", 10)
    images = tmp_path / "train-images-idx3-ubyte"
    whole = images.read_bytes()
    want = [r[0] for r in rows_of(ds.MnistDataset(str(tmp_path), "train", shuffle=False))]
    images.write_bytes(gzip.compress(whole))
    got = [r[0] for r in rows_of(ds.MnistDataset(str(tmp_path), "train", shuffle=False))]
    np.testing.assert_array_equal(got, want)
    for content, words in (
        (whole[:-100], "cut short"),
        (whole[:10], "train-images"),
        (b"", "0 bytes"),
        (gzip.compress(whole)[:-12], "train-images"),
        (gzip.compress(gzip.compress(whole)), "train-images"),
        (b"not an IDX file at all, whatever its name says", "train-images"),
    ):
        images.write_bytes(content)
        with pytest.raises(ut.FormatError, match=words):
            ds.MnistDataset(str(tmp_path), "train")
    images.write_bytes(whole)
    write_idx(tmp_path, "train", 10, labels=9)
    with pytest.raises(ut.FormatError, match="10 images.*9 labels"):
        ds.MnistDataset(str(tmp_path), "train")


# ---- Columns, shapes, rows, numbers.


class Ragged:
    shapes = (3, 3, 4, 3)

    def __len__(self):
        return len(self.shapes)

    def __getitem__(self, i):
        return np.zeros(self.shapes[i], np.float32)


@pytest.mark.parametrize(
    "make, error, words",
    [
        # names of columns
        (lambda: plain().map(abs, "z"), ValueError, "map: there is no column 'z'; the columns are x, y"),
        (lambda: plain().filter(abs, "z"), ValueError, "filter: there is no column 'z'; the columns are x, y"),
        (lambda: plain().project(["z"]), ValueError, "project: there is no column 'z'; the columns are x, y"),
        (lambda: plain().rename("z", "w"), ValueError, "rename: there is no column 'z'; the columns are x, y"),
        (lambda: plain().rename("x", "y"), ValueError, "rename: column 'y' would occur twice"),
        (lambda: ds.zip((plain(), plain())), ValueError, "zip: column 'x' would occur twice"),
        (lambda: plain() + plain().project("x"), ValueError, "the columns differ: x, y and x"),
        (lambda: ds.NumpySlicesDataset([1, 2], ["a", "b"]), ValueError, "1 columns of data and 2 column_names"),
        (lambda: ds.NumpySlicesDataset(([1], [2]), ["a", "a"]), ValueError, "column 'a' would occur twice"),
        (
            lambda: rows_of(plain().map(lambda x: (x, x), "x", ["a", "b", "c"])),
            ut.DataError,
            "<lambda> gave 2 columns where 3 are expected",
        ),
        # shapes
        (lambda: ds.NumpySlicesDataset(([1], [2, 3])), ValueError, "array 0 has 1 rows, array 1 has 2"),
        (
            lambda: rows_of(ds.GeneratorDataset(Ragged(), ["c"], shuffle=False).batch(4)),
            ut.DataError,
            r"column 'c': row 0 of the batch is Float32 of shape \(3,\), row 2 is Float32 of shape \(4,\)",
        ),
        (
            lambda: rows_of(ds.GeneratorDataset(Ragged(), ["c"], shuffle=False).skip(1).batch(2)),
            ut.DataError,
            r"column 'c': row 0 of the batch is Float32 of shape \(3,\), row 1 is Float32 of shape \(4,\)",
        ),
        (
            lambda: rows_of(ds.GeneratorDataset(Ragged(), ["c"], shuffle=False, num_parallel_workers=2).batch(4)),
            ut.DataError,
            r"column 'c': row 0 of the batch is .*\(3,\), row 2 is .*\(4,\)",
        ),
        (
            lambda: rows_of(plain(shuffle=False).map(lambda x: np.zeros(1 + int(x) // 3), "x").batch(4)),
            ut.DataError,
            r"column 'x': row 0 of the batch is .*\(1,\), row 3 is .*\(2,\)",
        ),
        (
            lambda: rows_of(ds.GeneratorDataset(lambda: iter([np.float32(1), np.int32(1)]), ["c"]).batch(2)),
            ut.DataError,
            "column 'c': row 0 of the batch is Float32 .* row 1 is Int32",
        ),
        # row numbers of samplers
        (lambda: rows_of(plain(sampler=ds.SubsetSampler([1, 10]))), IndexError, "gave row 10, but there are 10 rows"),
        (lambda: rows_of(plain(sampler=ds.SubsetSampler([1, -1]))), IndexError, "gave row -1, but there are 10 rows"),
        (lambda: rows_of(plain(sampler=[99])), IndexError, "gave row 99, but there are 10 rows"),
        (lambda: rows_of(plain(sampler=ds.SubsetRandomSampler([99]))), IndexError, "gave row 99"),
        (lambda: rows_of(plain(sampler=ds.IterSampler(range(12)))), IndexError, "gave row 10"),
        (lambda: rows_of(plain(sampler=ds.IterSampler("ab"))), TypeError, "row numbers, which are integers, got 'a'"),
        (lambda: rows_of(plain(sampler=ds.IterSampler([0.5]))), TypeError, "IterSampler.* got 0.5"),
        (lambda: ds.SubsetSampler(["a"]), TypeError, "row numbers, which are integers, got 'a'"),
        (lambda: rows_of(plain(sampler=ds.SequentialSampler(20))), IndexError, "start_index is 20.* 10 rows"),
        (lambda: rows_of(plain(sampler=ds.WeightedRandomSampler([1] * 11, 2))), IndexError, "11 weights, but 10 rows"),
        (lambda: ds.WeightedRandomSampler([1, -1]), ValueError, "not negative, got -1"),
        (lambda: plain(shuffle=True, sampler=ds.SequentialSampler()), ValueError, "sampler cannot be combined"),
        # numbers
        (lambda: plain().batch(-1), ValueError, "batch_size must be at least 1, got -1"),
        (lambda: plain().batch(0), ValueError, "batch_size must be at least 1, got 0"),
        (lambda: plain().batch(2.5), TypeError, "batch_size must be an integer, got 2.5"),
        (lambda: plain().repeat(-2), ValueError, "repeat must be -1 or at least 1, got -2"),
        (lambda: plain().repeat(0), ValueError, "repeat must be -1 or at least 1, got 0"),
        (lambda: plain().take(-2), ValueError, "take must be -1 or at least 1, got -2"),
        (lambda: plain().skip(-1), ValueError, "skip must not be negative, got -1"),
        (lambda: plain().shuffle(-1), ValueError, "buffer_size of shuffle must be at least 2, got -1"),
        (lambda: plain(num_samples=-1), ValueError, "num_samples must be positive, got -1"),
        (lambda: plain(num_parallel_workers=-1), ValueError, "num_parallel_workers must be positive, got -1"),
        (lambda: plain().split([-0.5, 1.5]), ValueError, r"fractions must be .*\[-0.5, 1.5\]"),
        (lambda: plain().split([20, 1]), ValueError, "sizes 20, 1 .* at most the 10 rows"),
        (lambda: plain().create_dict_iterator(num_epochs=-2), ValueError, "num_epochs must be .* got -2"),
        (lambda: ds.config.set_prefetch_size(-1), ValueError, "set_prefetch_size: .* got -1"),
        (lambda: ds.PKSampler(0), ValueError, "num_val must be at least 1, got 0"),
        (lambda: mr.FileWriter("x", -1), ValueError, r"shard_num must be in \[1, 1000\], got -1"),
        # shards
        (lambda: plain(num_shards=2, shard_id=2), ValueError, r"shard_id must be in \[0, 2\), got 2"),
        (lambda: plain(num_shards=2, shard_id=-1), ValueError, r"shard_id must be in \[0, 2\), got -1"),
        (lambda: plain(num_shards=0, shard_id=0), ValueError, "num_shards must be at least 1, got 0"),
        (lambda: plain(num_shards=2), ValueError, "num_shards and shard_id must be given together"),
        (lambda: plain(shard_id=0), ValueError, "num_shards and shard_id must be given together"),
        (lambda: ds.DistributedSampler(2, 2), ValueError, r"shard_id must be in \[0, 2\), got 2"),
        (lambda: ds.DistributedSampler(2, -1), ValueError, r"shard_id must be in \[0, 2\), got -1"),
        (lambda: ds.DistributedSampler(0, 0), ValueError, "num_shards must be at least 1, got 0"),
        (lambda: ds.DistributedSampler("2", 0), TypeError, "num_shards must be an integer, got '2'"),
    ],
)
def test_columns_shapes_and_numbers(make, error, words):
    with pytest.raises(error, match=words):
        make()


# ---- Operations.

TEXT = np.array("ab")
FLOATS, FLAT = np.zeros((4, 6, 3), np.float32), np.zeros(5, np.uint8)


@pytest.mark.parametrize(
    "operation, value, words",
    [
        (vision.Decode(), FLOATS, r"Decode takes the bytes .* uint8, got float32 of shape \(4, 6, 3\)"),
        (vision.Resize(3), FLAT, r"Resize takes images of shape \(H, W\) or \(H, W, C\), got shape \(5,\)"),
        (vision.CenterCrop(3), FLAT, r"CenterCrop takes images .* got shape \(5,\)"),
        (vision.Rotate(3), FLAT, r"Rotate takes images .* got shape \(5,\)"),
        (vision.ToTensor(), FLAT, r"ToTensor takes images .* got shape \(5,\)"),
        (vision.HWC2CHW(), FLAT, r"HWC2CHW takes images .* got shape \(5,\)"),
        (vision.AdjustBrightness(2), FLOATS, r"AdjustBrightness takes images of uint8, got float32 of shape"),
        (vision.Equalize(), FLOATS, r"Equalize takes images of uint8, got float32 of shape"),
        (vision.Normalize([1] * 3, [1] * 3), np.zeros((4, 6, 1)), "Normalize has 3 means for an image of 1 channel"),
        (vision.Normalize([1], [1]), TEXT, r"Normalize takes numbers, got texts of shape \(\)"),
        (transforms.OneHot(3), np.float32(1), r"OneHot takes integers, got float32 of shape \(\)"),
        (transforms.OneHot(3), np.int32(5), r"OneHot: label 5 is not in .*\[0, 3\)"),
        (transforms.TypeCast(ut.int32), TEXT, r"TypeCast takes numbers, got texts of shape \(\)"),
        (transforms.Fill(3), TEXT, "Fill takes numbers, got texts"),
        (transforms.Mask(transforms.Relational.EQ, 3), TEXT, "Mask takes numbers, got texts"),
        (transforms.PadEnd([3, 3]), np.zeros(3), r"PadEnd: pad_shape has 2 dimensions, .* shape \(3,\)"),
        (transforms.Slice([7]), np.zeros(3), "Slice: place 7 of dimension 0, which has 3 elements"),
        (transforms.Concatenate(0), np.array(["a", "b"]), r"Concatenate takes numbers, got texts of shape \(2,\)"),
        (transforms.PadEnd([3]), np.array(["a", "b"]), r"PadEnd takes numbers, got texts of shape \(2,\)"),
        (transforms.Concatenate(0), np.zeros((2, 2)), r"Concatenate takes 1-D columns, got shape \(2, 2\)"),
    ],
)
def test_operations_say_what_they_take(operation, value, words):
    with pytest.raises(ut.DataError, match=words):
        operation(value)
    with pytest.raises(ut.DataError, match=rf"(?s){words}.*row 0 of GeneratorDataset"):
        rows_of(ds.GeneratorDataset(lambda: iter([value]), ["x"]).map(operation, "x"))


def test_text_operations_want_texts():
    tokenize = ds.text.WhitespaceTokenizer()
    for call in (lambda: tokenize(np.zeros(3)), lambda: rows_of(plain().map(tokenize, "x"))):
        with pytest.raises(TypeError, match=r"WhitespaceTokenizer: expected text, got float.* of shape"):
            call()


# ---- A disk that is full.


@pytest.mark.parametrize("shards", [1, 2])
@pytest.mark.parametrize("large", ["data", "text"])
def test_a_full_disk(tmp_path, shards, large):
    """A limit for files stands for the disk. What was there stays; nothing half written is left, even while the writer
    lives; the error names the file and the reason."""
    code = f"""
        import os, resource
        import numpy as np
        import undertow as ut
        from undertow.mindrecord import FileReader, FileWriter

        path, shards, large = {str(tmp_path / "x")!r}, {shards}, {large!r}
        text = {{"data": "a", "text": "y" * 900}}[large]

        def writer():
            made = FileWriter(path, shards, overwrite=True)
            made.set_header_size(1 << 14)
            made.set_page_size(1 << 15)
            made.add_schema({{"text": {{"type": "string"}}, "data": {{"type": "bytes"}}}})
            return made

        def rows(n):
            return [{{"text": text, "data": b"x" * (5000 if large == "data" else 1)}} for _ in range(n)]

        first = writer()
        first.write_raw_data(rows(4))
        first.commit()
        names = sorted(os.listdir(os.path.dirname(path)))
        resource.setrlimit(resource.RLIMIT_FSIZE, (150_000, 150_000))
        second = writer()
        try:
            for _ in range(200):
                second.write_raw_data(rows(10))
            second.commit()
        except ut.FileError as error:
            assert os.path.basename(path) in str(error), error
            assert "could not be written in full: File too large" in str(error), error
        else:
            raise AssertionError("nothing failed")
        assert sorted(os.listdir(os.path.dirname(path))) == names
        for call in (lambda: second.write_raw_data(rows(1)), second.commit):
            try:
                call()
            except RuntimeError as error:
                assert "writing failed before" in str(error)
            else:
                raise AssertionError("a writer that has failed went on")
        del second
        assert sorted(os.listdir(os.path.dirname(path))) == names
        assert len(list(FileReader(path + ("0" if shards > 1 else "")).get_next())) == 4
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
