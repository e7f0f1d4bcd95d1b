# SPDX-License-Identifier: Apache-2.0
"""The base classes of image operations."""

from undertow.dataset._operation import Native


class Image(Native):
    """An operation on images; a PIL image gives a PIL image."""

    _takes_pil = True


class Resampling(Image):
    """One whose pixels between pixels depend on whether the image is a PIL image; C++ takes that last."""

    def _build(self, name, args, pil):
        return super()._build(name, (*args, int(pil)), pil)


class ToArray(Image):
    """One that gives arrays for PIL images too."""

    def _gives_pil(self, pil):
        return False
