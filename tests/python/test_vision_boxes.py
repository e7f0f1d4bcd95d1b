# SPDX-License-Identifier: Apache-2.0
"""Boxes go where their images go. The values of MindSpore 2.10 are pinned where it gives any."""

import numpy as np
import pytest
import undertow.dataset as ds
from images import photo
from undertow.dataset import vision
from undertow.dataset.vision import Inter

IMAGE = np.arange(240, dtype=np.uint8).reshape(10, 8, 3)


def boxes(*rows):
    return np.array(rows, np.float32)


@pytest.mark.parametrize(
    ("op", "given", "want"),
    [
        (vision.RandomHorizontalFlipWithBBox(1.0), [1, 2, 3, 4, 9, 9], [4, 2, 3, 4, 9, 9]),
        (vision.RandomVerticalFlipWithBBox(1.0), [1, 2, 3, 4, 9, 9], [1, 4, 3, 4, 9, 9]),
        (vision.ResizeWithBBox((5, 16)), [1, 2, 3, 4], [2, 1, 6, 2]),
        (vision.ResizeWithBBox(4), [1, 2, 3, 4], [0.5, 1, 1.5, 2]),
        (vision.RandomResizeWithBBox((5, 16)), [1, 2, 3, 4], [2, 1, 6, 2]),
        (vision.RandomCropWithBBox((10, 8)), [1, 2, 3, 4, 7], [1, 2, 3, 4, 7]),
        (vision.RandomHorizontalFlipWithBBox(0.0), [1, 2, 3, 4], [1, 2, 3, 4]),
    ],
)
def test_as_mindspore(op, given, want):
    image, moved = op(IMAGE, boxes(given))
    assert moved.dtype == np.float32 and moved.tolist() == [want]
    plain = type(op).__mro__[2]
    if plain is vision.ResizeWithBBox.__mro__[2]:
        assert np.array_equal(image, vision.Resize(image.shape[:2])(IMAGE))


def marked(box, value=255, shape=(40, 60)):
    """A black image with a white box."""
    image = np.zeros((*shape, 3), np.uint8)
    x, y, w, h = box
    image[y : y + h, x : x + w] = value
    return image


def seen(image):
    """The box of what is white, or None."""
    y, x = np.nonzero(image[:, :, 0] > 127)
    return None if not len(x) else [x.min(), y.min(), x.max() + 1 - x.min(), y.max() + 1 - y.min()]


@pytest.mark.parametrize(
    "op",
    [
        vision.RandomCropWithBBox((20, 30)),
        vision.RandomCropWithBBox((20, 30), [3, 5, 7, 11]),
        vision.RandomCropWithBBox((50, 70), pad_if_needed=True),
        vision.RandomResizedCropWithBBox((37, 23), interpolation=Inter.NEAREST),
        vision.RandomHorizontalFlipWithBBox(),
        vision.RandomVerticalFlipWithBBox(),
        vision.ResizeWithBBox((80, 30), Inter.NEAREST),
    ],
)
def test_boxes_lie_where_the_pixels_lie(op):
    """Found in the image itself; at a scale the border of what is seen is rounded to a pixel."""
    box = (22, 11, 14, 9)
    image = marked(box)
    data = ds.GeneratorDataset([(image, boxes(box))] * 40, ["image", "boxes"], shuffle=False)
    left_out = 0
    for picture, got in data.map(op, ["image", "boxes"]).create_tuple_iterator(num_epochs=1, output_numpy=True):
        want = seen(picture)
        if not len(got):
            left_out += 1
            assert want is None and got.shape == (0, 4)
        elif want is None:
            assert got[0, 2:].min() < 1.5  # touches, or a sliver that no pixel shows
        else:
            assert np.abs(got[0] - want).max() <= 2.5
    assert left_out < 40


def test_a_crop_keeps_what_it_touches():
    ds.config.set_seed(5)
    given = boxes([1, 2, 3, 4], [6, 8, 2, 2], [0, 0, 2, 1])
    counts = set()
    for _ in range(30):
        image, got = vision.RandomCropWithBBox((4, 4))(IMAGE, given)
        top, left = divmod(int(np.argmax((image[0, 0] == IMAGE).all(-1))), 8)
        want = []
        for x, y, w, h in given:
            a, b, c, d = max(x - left, 0), max(y - top, 0), min(x + w - left, 4), min(y + h - top, 4)
            if a <= c and b <= d:
                want.append([a, b, c - a, d - b])
        assert got.tolist() == want
        counts.add(len(want))
    assert len(counts) > 1


def test_augment_works_in_the_boxes_only():
    image, given = photo(30, 40), boxes([3, 4, 10, 12], [20, 10, 15, 15])
    got, same = vision.BoundingBoxAugment(vision.HorizontalFlip(), 1.0)(image, given)
    want = image.copy()
    for x, y, w, h in given.astype(int):
        want[y : y + h, x : x + w] = image[y : y + h, x : x + w][:, ::-1]
    assert np.array_equal(got, want) and np.array_equal(same, given)
    got, _ = vision.BoundingBoxAugment(vision.RandomCrop(5), 0.1)(image, given)
    changed = [
        not np.array_equal(got[y : y + h, x : x + w], image[y : y + h, x : x + w]) for x, y, w, h in given.astype(int)
    ]
    assert sum(changed) == 1


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (np.zeros((1, 4)), "float32.*float64"),
        (boxes([1, 2, 3]), r"4 or more.*\(1, 3\)"),
        (np.zeros(4, np.float32), r"shape \(4,\)"),
        (boxes([1, 2, 30, 4]), "box 0 .*within the image of 10 x 8"),
        (boxes([0, 0, 1, 1], [-1, 2, 3, 4]), "box 1"),
        (boxes([np.nan, 2, 3, 4]), "box 0"),
    ],
)
def test_wrong_boxes(wrong, message):
    for op in (vision.RandomHorizontalFlipWithBBox(1.0), vision.BoundingBoxAugment(vision.HorizontalFlip(), 1.0)):
        with pytest.raises(RuntimeError, match=message):
            op(IMAGE, wrong)
    with pytest.raises(RuntimeError, match="two columns"):
        vision.ResizeWithBBox(3)(IMAGE)
    with pytest.raises(ValueError, match="ratio"):
        vision.BoundingBoxAugment(vision.HorizontalFlip(), 0.0)
    assert vision.ResizeWithBBox((5, 4))(IMAGE, np.zeros((0, 4), np.float32))[1].shape == (0, 4)
