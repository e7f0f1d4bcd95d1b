# SPDX-License-Identifier: Apache-2.0
"""MindSpore 1.x's operations on PIL images: those of `vision`, with the defaults that differed there."""

from undertow import _modules
from undertow.dataset.transforms import Compose, RandomApply, RandomChoice, RandomOrder  # noqa: F401
from undertow.dataset.vision import *  # noqa: F403
from undertow.dataset.vision import geometry, layout

_modules.note("mindspore.dataset.vision.py_transforms", "mindspore.dataset.vision")


class Decode(geometry.Decode):
    """The bytes of a file to a PIL image."""

    def __init__(self):
        super().__init__(to_pil=True)


class Normalize(layout.Normalize):
    """float32: (image - mean) / std for images (C, H, W), as ToTensor gives them."""

    def __init__(self, mean, std):
        super().__init__(mean, std, is_hwc=False)
