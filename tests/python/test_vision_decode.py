# SPDX-License-Identifier: Apache-2.0
"""Decoding: against Pillow, on odd files, and on damaged ones."""

import io

import numpy as np
import pytest
import undertow.dataset as ds
from images import far, file_of, photo, pillow_rgb
from PIL import Image
from undertow.dataset import vision

import undertow as ut

JPEGS = {
    "444": {"quality": 90, "subsampling": 0},
    "422": {"quality": 75, "subsampling": 1},
    "420": {"quality": 75, "subsampling": 2},
    "progressive": {"quality": 80, "progressive": True},
    "optimized": {"quality": 60, "optimize": True},
    "restarts": {"quality": 75, "restart_marker_blocks": 1},
}


@pytest.mark.parametrize("name", JPEGS)
def test_jpeg_as_pillow(name):
    for height, width in ((61, 83), (1, 1), (16, 16), (1, 40), (40, 1)):
        file = file_of(photo(height, width), **JPEGS[name])
        got = vision.Decode()(file)
        assert got.dtype == np.uint8 and got.shape == (height, width, 3)
        assert far(got, pillow_rgb(file)) <= 1  # both are libjpeg-turbo, perhaps of other versions


def test_png_as_pillow():
    image = photo(20, 30)
    rgba = np.concatenate([image, image[:, :, :1]], -1)
    for picture in (
        Image.fromarray(image),
        Image.fromarray(image[:, :, 0]),
        Image.fromarray(rgba),
        Image.fromarray(image).quantize(16),
        Image.fromarray(image[:, :, 0]).convert("1"),
        Image.fromarray(image[:, :, 0]).convert("LA"),
    ):
        file = file_of(picture, "PNG")
        want = np.asarray(picture.convert("RGB") if picture.mode != "RGBA" else Image.fromarray(rgba[:, :, :3]))
        assert np.array_equal(vision.Decode()(file), want), picture.mode


def test_interlaced_png():
    """Adam7, which Pillow does not write: cut from rows by hand."""
    import struct
    import zlib

    image = photo(9, 11)[:, :, 0]
    rows = b""
    for y0, x0, dy, dx in (
        (0, 0, 8, 8),
        (0, 4, 8, 8),
        (4, 0, 8, 4),
        (0, 2, 4, 4),
        (2, 0, 4, 2),
        (0, 1, 2, 2),
        (1, 0, 2, 1),
    ):
        part = image[y0::dy, x0::dx]
        if part.size:
            rows += b"".join(b"\0" + row.tobytes() for row in part)

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", 11, 9, 8, 0, 0, 0, 1)
    file = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")
    assert np.array_equal(vision.Decode()(file)[:, :, 1], image)


def test_cmyk_jpeg():
    """Ink (0, 255, 255, 0) is red, not cyan."""
    file = file_of(Image.new("CMYK", (16, 16), (0, 255, 255, 0)))
    assert far(vision.Decode()(file), np.full((16, 16, 3), (255, 0, 0))) <= 3
    picture = Image.fromarray(photo(32, 32)).convert("CMYK")
    file = file_of(picture, quality=95)
    assert far(vision.Decode()(file), pillow_rgb(file)) <= 2


def test_exif_orientation_is_left_alone(tmp_path):
    exif = Image.Exif()
    exif[0x0112] = 6
    file = file_of(photo(16, 24), exif=exif)
    path = tmp_path / "turned.jpg"
    path.write_bytes(file.tobytes())
    for got in (
        vision.Decode()(file),
        np.asarray(vision.Decode(to_pil=True)(file)),
        vision.read_image(str(path)),
        vision.RandomCropDecodeResize((16, 24), (1, 1), (1.5, 1.5))(file),
    ):
        assert got.shape == (16, 24, 3)


def test_16_bit_png():
    """The high byte: never all 255, never the low byte."""
    values = np.array([[0, 256, 32768, 65535]], np.uint16)
    got = vision.Decode()(file_of(Image.fromarray(values), "PNG"))
    assert got[0, :, 0].tolist() == [0, 1, 128, 255]
    assert vision.ToTensor()(values)[0, 0].tolist() == pytest.approx([0, 256 / 65535, 32768 / 65535, 1])


def test_grey_jpeg_has_three_equal_channels():
    grey = photo(20, 20)[:, :, 0]
    got = vision.Decode()(file_of(grey))
    assert (
        got.shape == (20, 20, 3)
        and np.array_equal(got[..., 0], got[..., 1])
        and np.array_equal(got[..., 0], got[..., 2])
    )
    assert vision.ToTensor()(Image.fromarray(grey)).shape == (1, 20, 20)


def test_read_and_write(tmp_path):
    image, path = photo(), str(tmp_path / "a.png")
    vision.write_png(path, image)
    assert np.array_equal(vision.read_image(path), image)
    assert np.array_equal(pillow_rgb(vision.read_file(path)), image)
    assert vision.read_image(path, vision.ImageReadMode.GRAYSCALE).shape == (61, 83, 1)
    vision.write_jpeg(path, ut.Tensor(image), 95)
    assert far(vision.read_image(path), pillow_rgb(vision.read_file(path))) <= 1
    assert vision.get_image_size(image) == [61, 83] and vision.get_image_num_channels(image) == 3
    vision.write_file(path, vision.encode_jpeg(image[:, :, 0]))
    assert vision.read_image(path).shape == (61, 83, 1)
    for bad in (0, 101):
        with pytest.raises(ValueError, match="quality"):
            vision.encode_jpeg(image, bad)
    with pytest.raises(RuntimeError, match="uint8"):
        vision.encode_png(image.astype(np.float32))


def test_a_window_has_the_pixels_of_the_whole():
    """Crop while decoding = decode, then crop, for every kind of JPEG and any place."""
    for name, options in JPEGS.items():
        file = file_of(photo(97, 131, seed=3), **options)
        whole = vision.Decode()(file)
        for size in ((40, 40), (97, 131)):
            for i in range(12):
                ds.config.set_seed(i)
                both = vision.RandomCropDecodeResize(size, scale=(0.02, 1.0))(file)
                ds.config.set_seed(i)
                apart = vision.RandomResizedCrop(size, scale=(0.02, 1.0))(whole)
                assert np.array_equal(both, apart), (name, size, i)


def test_damaged_files_are_errors():
    jpeg, png = file_of(photo()), file_of(photo(), "PNG")
    noise = np.frombuffer(b"not an image at all", np.uint8)
    for file in (jpeg[:100], jpeg[: len(jpeg) // 2], png[:30], png[: len(png) // 2], noise, jpeg[:0]):
        for op in (vision.Decode(), vision.RandomCropDecodeResize((8, 8), (1, 1), (1.36, 1.37))):
            with pytest.raises(RuntimeError, match="Decode|RandomCropDecodeResize"):
                op(file)
    progressive = file_of(photo(200, 200), progressive=True)
    with pytest.raises(RuntimeError, match="damaged"):
        vision.Decode()(progressive[: len(progressive) * 3 // 4])
    bad = png.copy()
    bad[len(bad) // 2] ^= 0x55
    with pytest.raises(RuntimeError, match="PNG"):
        vision.Decode()(bad)
    assert vision.Decode()(jpeg[:-2]).shape == (61, 83, 3)  # only the end marker is missing
    with pytest.raises(RuntimeError, match="Decode.*float32"):
        vision.Decode()(jpeg.astype(np.float32))


@pytest.mark.parametrize("packed", [False, True])
def test_a_damaged_file_is_named(tmp_path, packed):
    """Files cut to many sizes, in a folder and in MindRecord: the error tells file and row, and the others are read."""
    from undertow.mindrecord import FileWriter

    whole = [file_of(photo(40, 50, seed=i)) for i in range(4)]
    png = file_of(photo(40, 50), "PNG")
    (tmp_path / "a").mkdir()
    for cut in (0, 1, 2, 3, 10, 20, 100, 300, len(whole[2]) // 2, len(whole[2]) - 40):
        for kind, files in (("jpg", whole), ("png", [png] * 4)):
            files = [f[:cut] if i == 2 else f for i, f in enumerate(files)]
            if packed:
                place = str(tmp_path / "packed")
                writer = FileWriter(place, 1, overwrite=True)
                writer.add_schema({"image": {"type": "bytes"}}, "")
                writer.write_raw_data([{"image": f.tobytes()} for f in files])
                writer.commit()
                data, named = ds.MindDataset(place, shuffle=False), "row 2 of .*packed"
            else:
                for i, f in enumerate(files):
                    (tmp_path / "a" / f"{i}.{kind}").write_bytes(f.tobytes())
                data = ds.ImageFolderDataset(str(tmp_path), extensions=[f".{kind}"], shuffle=False)
                data, named = data.project("image"), rf"2\.{kind}"
            for operations in ([vision.Decode()], [vision.Decode(), vision.Resize((8, 8)), vision.HWC2CHW()]):
                iterator = data.map(operations, "image").create_tuple_iterator(num_epochs=1)
                with pytest.raises(RuntimeError, match=f"(?s)Decode.*row 2 .*{named}"):
                    for n, _ in enumerate(iterator):
                        assert n < 2


def test_changed_bytes_never_crash():
    """A few thousand mutations: each decodes to an image or raises DataError."""
    random = np.random.RandomState(1)
    files = [file_of(photo(24, 24), **o) for o in JPEGS.values()]
    files += [file_of(photo(24, 24), "PNG"), file_of(Image.fromarray(photo(24, 24)).quantize(8), "PNG")]
    decode = vision.Decode()
    outcomes = set()
    for i in range(3000):
        file = files[i % len(files)].copy()
        for _ in range(1 + i % 4):
            at = random.randint(len(file))
            kind = random.randint(4)
            if kind == 0:
                file[at] = random.randint(256)
            elif kind == 1:
                file = file[:at]
            elif kind == 2:
                file = np.concatenate([file[:at], file[at + random.randint(1, 40) :]])
            else:
                file = np.concatenate([file[:at], file[max(0, at - 20) :]])
            if not len(file):
                break
        if len(file) > 30 and file[0] == 0x89:
            file[16:18] = file[20:22] = 0  # no giant images: only slow
        try:
            outcomes.add(decode(file).ndim)
        except RuntimeError:
            outcomes.add("error")
    assert outcomes == {3, "error"}


def test_decode_in_a_pipeline():
    images = [photo(20 + i, 30, seed=i) for i in range(5)]
    files = [file_of(image) for image in images]
    data = ds.GeneratorDataset(lambda: ((f, np.int32(i)) for i, f in enumerate(files)), ["image", "label"])
    data = data.map([vision.Decode(), vision.Resize((8, 9)), vision.HWC2CHW()], ["image"])
    for i, row in enumerate(data.create_dict_iterator(num_epochs=1, output_numpy=True)):
        want = vision.HWC2CHW()(vision.Resize((8, 9))(vision.Decode()(files[i])))
        assert np.array_equal(row["image"], want)
    bad = ds.GeneratorDataset(lambda: ((f[:200],) for f in files), ["image"]).map(vision.Decode(), "image")
    with pytest.raises(RuntimeError, match="Decode"):
        list(bad.create_tuple_iterator(num_epochs=1))


def test_pil_images_in_a_pipeline_follow_pillow():
    files = [file_of(photo(50, 70, seed=i)) for i in range(3)]

    def source():
        return ((f,) for f in files)

    want = [np.asarray(Image.open(io.BytesIO(f.tobytes())).resize((20, 10), Image.BILINEAR)) for f in files]
    operations = [vision.Decode(to_pil=True), vision.Resize((10, 20)), vision.ToTensor()]
    rows = (
        ds.GeneratorDataset(source, ["x"]).map(operations, "x").create_tuple_iterator(num_epochs=1, output_numpy=True)
    )
    for (row,), w in zip(rows, want, strict=True):
        assert np.abs(row - w.transpose(2, 0, 1) / np.float32(255)).max() <= 1.01 / 255
    # With a Python function among them the list runs as calls; the answers are the same.
    seen = []
    operations = [vision.Decode(True), lambda image: (seen.append(image.size), image)[1], vision.Resize((10, 20))]
    rows = (
        ds.GeneratorDataset(source, ["x"]).map(operations, "x").create_tuple_iterator(num_epochs=1, output_numpy=True)
    )
    assert all(far(row, w) <= 1 for (row,), w in zip(rows, want, strict=True)) and set(seen) == {(70, 50)}
