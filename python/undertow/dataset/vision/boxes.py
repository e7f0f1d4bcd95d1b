# SPDX-License-Identifier: Apache-2.0
"""Operations on images with boxes: two columns, an array (H, W, C) or (H, W) and float32 (N, 4 or more).

A box is x, y, width and height in pixels; what else stands in its row stays. The boxes go where the image goes and are
cut to it; those that are outside of it are left out, and where none is left the shape is (0, ...).
"""

from undertow._core import data as _data
from undertow.dataset import _arguments as _args
from undertow.dataset.vision import geometry
from undertow.dataset.vision.augment import _Chosen


class _WithBoxes:
    """Turns an operation on images into the one of the same arguments that takes boxes along."""

    _takes_pil = False

    def _make(self, name, *args):
        super()._make(name + "WithBBox", *args)

    def _build(self, name, args, pil):
        return _data.make(name, *args)


class RandomHorizontalFlipWithBBox(_WithBoxes, geometry.RandomHorizontalFlip):
    """RandomHorizontalFlip of an image and its boxes."""


class RandomVerticalFlipWithBBox(_WithBoxes, geometry.RandomVerticalFlip):
    """RandomVerticalFlip of an image and its boxes."""


class ResizeWithBBox(_WithBoxes, geometry.Resize):
    """Resize of an image and its boxes."""


class RandomResizeWithBBox(_WithBoxes, geometry.RandomResize):
    """RandomResize of an image and its boxes."""


class RandomCropWithBBox(_WithBoxes, geometry.RandomCrop):
    """RandomCrop of an image and its boxes."""


class RandomResizedCropWithBBox(_WithBoxes, geometry.RandomResizedCrop):
    """RandomResizedCrop of an image and its boxes."""


class BoundingBoxAugment(_Chosen):
    """The transform of what lies in `ratio` of the boxes (at least one), drawn by chance; the boxes stay."""

    def __init__(self, transform, ratio=0.3):
        if not callable(transform):
            raise TypeError(f"BoundingBoxAugment: transform must be an operation, got {transform!r}")
        self.transform = transform
        self._make("BoundingBoxAugment", _args.number("BoundingBoxAugment", "ratio", ratio))

    def _build(self, name, args, pil):
        return _data.make(name, [self._inside(self.transform, False)], *args)
