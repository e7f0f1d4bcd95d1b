# SPDX-License-Identifier: Apache-2.0
"""Random image operations: what their draws depend on, and how often they act."""

import pickle

import numpy as np
import pytest
import undertow.dataset as ds
from images import file_of, photo
from PIL import Image
from undertow.dataset import transforms, vision
from undertow.dataset.vision import Inter

IMAGE = photo()
H, W = IMAGE.shape[:2]

RANDOM = {
    "RandomCrop": vision.RandomCrop((20, 30), 4),
    "RandomResizedCrop": vision.RandomResizedCrop((20, 30)),
    "RandomResize": vision.RandomResize((20, 30)),
    "RandomHorizontalFlip": vision.RandomHorizontalFlip(),
    "RandomVerticalFlip": vision.RandomVerticalFlip(),
    "RandomRotation": vision.RandomRotation(30, Inter.LINEAR),
    "RandomAffine": vision.RandomAffine(30, (-0.1, 0.1), (0.8, 1.2), 10),
    "RandomPerspective": vision.RandomPerspective(),
    "RandomColorAdjust": vision.RandomColorAdjust(0.4, 0.4, 0.4, 0.1),
    "RandomColor": vision.RandomColor(),
    "RandomSharpness": vision.RandomSharpness(),
    "RandomAdjustSharpness": vision.RandomAdjustSharpness(2.0),
    "RandomGrayscale": vision.RandomGrayscale(0.5),
    "RandomInvert": vision.RandomInvert(),
    "RandomEqualize": vision.RandomEqualize(),
    "RandomAutoContrast": vision.RandomAutoContrast(5.0),
    "RandomPosterize": vision.RandomPosterize((1, 8)),
    "RandomSolarize": vision.RandomSolarize((10, 200)),
    "RandomLighting": vision.RandomLighting(0.2),
    "CutOut": vision.CutOut(10),
    "RandAugment": vision.RandAugment(3),
    "TrivialAugmentWide": vision.TrivialAugmentWide(),
    "AutoAugment": vision.AutoAugment(),
    "AutoAugmentCifar": vision.AutoAugment(vision.AutoAugmentPolicy.CIFAR10),
    "AutoAugmentSvhn": vision.AutoAugment(vision.AutoAugmentPolicy.SVHN, Inter.LINEAR, (1, 2, 3)),
    "UniformAugment": vision.UniformAugment([vision.Invert(), vision.HorizontalFlip(), vision.Posterize(2)]),
    "RandomSelectSubpolicy": vision.RandomSelectSubpolicy(
        [[(vision.RandomRotation(45), 0.5), (vision.RandomVerticalFlip(), 1.0)], [(vision.Invert(), 0.5)]]
    ),
    "RandomApply": transforms.RandomApply([vision.Invert(), vision.VerticalFlip()]),
    "RandomChoice": transforms.RandomChoice([vision.Invert(), vision.RandomRotation(30), lambda x: x // 2]),
    "RandomOrder": transforms.RandomOrder([vision.Posterize(2), vision.RandomColorAdjust(0.9), vision.Equalize()]),
}


def rows_of(op, workers, epochs=1):
    data = ds.NumpySlicesDataset(np.stack([IMAGE] * 12), ["x"], shuffle=False).map(op, num_parallel_workers=workers)
    iterator = data.create_tuple_iterator(num_epochs=epochs, output_numpy=True)
    return [[row[0] for row in iterator] for _ in range(epochs)]


@pytest.mark.parametrize("name", RANDOM)
def test_draws_depend_on_the_row_only(name):
    op = RANDOM[name]
    ds.config.set_seed(7)
    (first, second), ((again,)) = rows_of(op, 1, 2), rows_of(op, 2)
    assert all(np.array_equal(a, b) for a, b in zip(first, again, strict=True))
    assert all(r.dtype == np.uint8 for r in first)
    assert any(not np.array_equal(a, b) for a, b in zip(first, second, strict=True))
    assert len({r.tobytes() for r in first}) > 1
    ds.config.set_seed(8)
    assert any(not np.array_equal(a, b) for a, b in zip(first, rows_of(op, 2)[0], strict=True))
    ds.config.set_seed(7)
    eager = [op(IMAGE) for _ in range(4)]
    ds.config.set_seed(7)
    assert all(np.array_equal(a, op(IMAGE)) for a in eager)
    copy = pickle.loads(pickle.dumps(op)) if name != "RandomChoice" else op
    ds.config.set_seed(7)
    assert np.array_equal(eager[0], copy(IMAGE))


def test_chances():
    ds.config.set_seed(3)
    flips = [not np.array_equal(vision.RandomHorizontalFlip(0.3)(IMAGE), IMAGE) for _ in range(600)]
    assert 0.24 < np.mean(flips) < 0.36
    tops = [int(vision.RandomCrop((H - 3, W))(np.arange(H * W).reshape(H, W))[0, 0]) // W for _ in range(600)]
    assert np.bincount(tops, minlength=4).min() > 100
    areas = []
    for _ in range(300):
        got = vision.RandomResizedCrop((1, 1), (0.25, 0.25), (1, 1), Inter.NEAREST)(np.arange(H * W).reshape(H, W, 1))
        areas.append(int(got[0, 0, 0]))
    assert len(set(areas)) > 150


def test_an_image_and_its_mask_are_cropped_alike():
    image, mask = IMAGE, IMAGE[:, :, 0]
    for op in (vision.RandomCrop((20, 20), 3), vision.RandomHorizontalFlip(), vision.RandomResizedCrop((9, 9))):
        for _ in range(5):
            a, b = op(image, mask)
            assert np.array_equal(a[:, :, 0], b)


def test_lists_and_python_functions():
    """Random operations within a Python function draw from the row, too."""
    crop = vision.RandomCrop((20, 20))

    def function(x):
        return crop(x)

    ds.config.set_seed(5)
    once, again = rows_of([vision.Invert(), function], 2)[0], rows_of([vision.Invert(), function], 1)[0]
    assert all(np.array_equal(a, b) for a, b in zip(once, again, strict=True)) and len({r.tobytes() for r in once}) > 6
    composed = transforms.Compose([vision.Decode(True), vision.Resize((8, 8)), vision.ToTensor()])
    assert composed(file_of(IMAGE)).shape == (3, 8, 8)
    on_pil = transforms.RandomApply([lambda im: im.rotate(90, expand=True)], 1.0)
    assert on_pil(Image.fromarray(IMAGE)).size == (H, W)
