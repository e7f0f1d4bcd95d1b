# SPDX-License-Identifier: Apache-2.0
"""MindSpore 1.x's operations on arrays: those of `vision`, with the arguments that differed there."""

from undertow import _modules
from undertow.dataset.vision import *  # noqa: F403
from undertow.dataset.vision import geometry

_modules.note("mindspore.dataset.vision.c_transforms", "mindspore.dataset.vision")


class Decode(geometry.Decode):
    """The bytes of a file to an RGB image (H, W, 3); rgb=False is not supported."""

    def __init__(self, rgb=True):
        if rgb is not True:
            raise NotImplementedError(f"Decode: only rgb=True is supported, got {rgb!r}")
        super().__init__()
