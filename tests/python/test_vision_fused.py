# SPDX-License-Identifier: Apache-2.0
"""Operations in one pass give the bits of the operations one by one, for every kind of file and place in a batch."""

import numpy as np
import pytest
import undertow.dataset as ds
from images import file_of, photo
from PIL import Image
from undertow.dataset import transforms, vision
from undertow.dataset.vision import Inter

import undertow as ut

MEAN, STD = [120.5, 115.25, 100.0], [58.4, 57.1, 57.4]


def jpeg(size, **options):
    image = photo(*size, seed=sum(size))
    if options.pop("grey", False):
        image = image[:, :, 0]
    if options.pop("cmyk", False):
        image = Image.fromarray(image).convert("CMYK")
    return file_of(image, **options)


KINDS = {
    "444": {"quality": 90, "subsampling": 0},
    "422": {"quality": 80, "subsampling": 1},
    "420": {"quality": 75, "subsampling": 2},
    "progressive": {"quality": 80, "progressive": True, "subsampling": 2},
    "restarts": {"quality": 75, "restart_marker_blocks": 1},
    "grey": {"grey": True},
    "cmyk": {"cmyk": True},
    "png": {"form": "PNG"},
}
SIZES = ((61, 83), (97, 131), (16, 16), (17, 33), (1, 1), (1, 40), (40, 1), (2, 3))

LISTS = {
    "train": lambda: [
        vision.RandomCropDecodeResize((24, 31), (0.05, 1.0)),
        vision.RandomHorizontalFlip(),
        vision.Normalize(MEAN, STD),
        vision.HWC2CHW(),
    ],
    "eval": lambda: [
        vision.Decode(),
        vision.Resize(40),
        vision.CenterCrop(33),
        vision.Rescale(1 / 255, 0.5),
        vision.Normalize([0.4], [0.2]),
        vision.HWC2CHW(),
        transforms.TypeCast(ut.float16),
    ],
    "pil": lambda: [
        vision.Decode(to_pil=True),
        vision.RandomResizedCrop((20, 30), interpolation=Inter.BICUBIC),
        vision.RandomHorizontalFlip(),
        vision.ToTensor(),
        vision.Normalize([0.4, 0.5, 0.6], [0.2, 0.3, 0.4], is_hwc=False),
    ],
    "lanczos": lambda: [vision.Decode(True), vision.Resize((9, 50), Inter.ANTIALIAS), vision.CenterCrop((7, 40))],
    "flips": lambda: [
        vision.Decode(),
        vision.HorizontalFlip(),
        vision.VerticalFlip(),
        vision.RandomCrop(12, pad_if_needed=True),
        vision.RandomVerticalFlip(),
        vision.ToTensor(np.float64),
    ],
    "resized, then cut and turned": lambda: [
        vision.Decode(),
        vision.Resize((50, 45), Inter.CUBIC),
        vision.HorizontalFlip(),
        vision.Crop((3, 11), (20, 30)),
        vision.VerticalFlip(),
        vision.Crop((2, 0), (15, 21)),
        transforms.TypeCast(ut.int32),
    ],
    "every order": lambda: [
        vision.Decode(),
        vision.Normalize(MEAN, STD),
        vision.Resize((30, 29)),
        vision.HWC2CHW(),
        vision.Normalize([0.1, 0.2, 0.3], [1.5, 2.5, 3.5], is_hwc=False),
        vision.HorizontalFlip(),
        vision.Resize((20, 21), Inter.AREA),
        transforms.TypeCast(ut.float64),
        vision.Rescale(3.0, -1.0),
    ],
    "choices": lambda: [
        vision.Decode(),
        transforms.RandomApply([vision.Resize((35, 25)), vision.HorizontalFlip()], 0.5),
        transforms.RandomChoice([vision.Resize((20, 20), Inter.NEAREST), vision.Resize((20, 20), Inter.AREA)]),
        transforms.RandomOrder([vision.HorizontalFlip(), vision.RandomCrop(20)]),
        vision.Normalize([1.0], [2.0]),
    ],
    "others between": lambda: [
        vision.Decode(),
        vision.Resize((31, 40)),
        vision.AdjustBrightness(1.3),
        vision.Pad(2),
        vision.RandomResize((24, 24)),
        vision.NormalizePad(MEAN, STD),
        vision.HWC2CHW(),
    ],
    "halved": lambda: [vision.Decode(), vision.Resize((32, 40)), vision.Resize((16, 20)), vision.HorizontalFlip()],
}


def rows(operations, files, fuse, apart=False):
    """The images, through batches of one dataset each. `apart`: a map for every operation."""
    ds.config.set_fuse(fuse)
    try:
        ds.config.set_seed(11)
        data = ds.GeneratorDataset(lambda: ((f,) for f in files), ["image"])
        for part in [[o] for o in operations] if apart else [operations]:
            data = data.map(part, "image")
        return [row[0] for row in data.create_tuple_iterator(num_epochs=1, output_numpy=True)]
    finally:
        ds.config.set_fuse(True)


@pytest.mark.parametrize("name", LISTS)
def test_fused_or_not(name):
    files = [jpeg(size, **KINDS[kind]) for kind in KINDS for size in SIZES]
    one_by_one = rows(LISTS[name](), files, False)
    together = rows(LISTS[name](), files, True)
    assert len(together) == len(files)
    for a, b in zip(one_by_one, together, strict=True):
        assert a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
    if name in ("pil", "lanczos"):  # what is a PIL image is known within a list only
        return
    # Draws depend on the place of an operation, so maps one after the other have draws of their own.
    for a, b in zip(rows(LISTS[name](), files, False, True), rows(LISTS[name](), files, True, True), strict=True):
        assert a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


def test_calls_give_the_same():
    """The operations called by hand, which no pipeline can fuse."""
    file = jpeg((97, 131), quality=75)
    (got,) = rows(LISTS["eval"](), [file], True)
    want = file
    for operation in LISTS["eval"]():
        want = operation(want)
    assert got.dtype == want.dtype and got.tobytes() == want.tobytes()


def test_columns_of_a_batch():
    """Straight into a batch: images and masks, whose draws are the same, beside a label that stays."""
    images = [photo(40, 50, seed=i) for i in range(7)]
    source = [(image, image[:, :, :1].copy(), np.int32(i)) for i, image in enumerate(images)]

    def batches(fuse):
        ds.config.set_fuse(fuse)
        try:
            data = ds.GeneratorDataset(source, ["image", "mask", "label"], shuffle=False)
            operations = [vision.RandomResizedCrop((16, 18)), vision.RandomHorizontalFlip(), vision.HWC2CHW()]
            data = data.map(operations, ["image", "mask"]).map(vision.Rescale(0.5, 1.0), ["mask"], ["half"])
            return list(data.batch(3).create_dict_iterator(num_epochs=1, output_numpy=True))
        finally:
            ds.config.set_fuse(True)

    for a, b in zip(batches(False), batches(True), strict=True):
        assert list(a) == list(b) and all(np.array_equal(a[k], b[k]) and a[k].dtype == b[k].dtype for k in a)
        assert a["half"].shape[1:] == (1, 16, 18) and a["half"].dtype == np.float32
        assert np.array_equal(a["half"][:, 0], a["image"][:, 0] * np.float32(0.5) + 1)


def test_float_images_in_one_pass():
    """The list of the classic example: floats, rescaled, to planes, cast."""
    image = np.random.RandomState(0).uniform(0, 255, (33, 20, 3)).astype(np.float32)
    (got,) = rows([vision.Rescale(1 / 255, 0.0), vision.HWC2CHW(), transforms.TypeCast(ut.float16)], [image], True)
    assert np.array_equal(got, (image * np.float32(1 / 255)).transpose(2, 0, 1).astype(np.float16))


def test_errors_name_the_operation_and_the_row():
    files = [jpeg((40, 50), quality=75) for _ in range(3)]
    files[1] = files[1][: len(files[1]) // 2]
    data = ds.GeneratorDataset(files, ["image"], shuffle=False).map(LISTS["train"](), "image").batch(3)
    with pytest.raises(RuntimeError, match="(?s)RandomCropDecodeResize: damaged JPEG.*row 1"):
        list(data.create_tuple_iterator(num_epochs=1))
    data = ds.GeneratorDataset([files[0]], ["image"]).map([vision.Decode(), vision.Crop((0, 30), (40, 40))], "image")
    with pytest.raises(RuntimeError, match=r"(?s)Crop: the window.*\(40, 50, 3\)"):
        list(data.create_tuple_iterator(num_epochs=1))


def test_scaled_decode_is_near():
    """An option: other pixels, but nearly the same picture, wherever the window lies and at every scale."""
    y, x = np.mgrid[:600, :700]
    image = np.stack([127 + 100 * np.sin(x / 60.0), 127 + 100 * np.cos(y / 50.0), x * 255 / 700], -1).astype(np.uint8)
    for options in ({"subsampling": 0}, {"subsampling": 2}, {"subsampling": 2, "progressive": True}):
        files = [file_of(image, quality=95, **options)] * 12
        for size in ((200, 200), (90, 60), (33, 40)):
            operations = [vision.RandomCropDecodeResize(size, (0.3, 1.0), interpolation=Inter.AREA), vision.HWC2CHW()]
            exact = rows(operations, files, True)
            ds.config.set_scaled_decode(True)
            try:
                near = rows(operations, files, True)
            finally:
                ds.config.set_scaled_decode(False)
            for a, b in zip(exact, near, strict=True):
                assert a.shape == b.shape and np.abs(a.astype(int) - b).mean() < 3


def test_wrong_setting():
    with pytest.raises(TypeError, match="set_scaled_decode"):
        ds.config.set_scaled_decode("yes")
    with pytest.raises(TypeError, match="set_fuse"):
        ds.config.set_fuse(1)
    assert ds.config.get_fuse() is True
