# SPDX-License-Identifier: Apache-2.0
"""Images to the numbers and the layout that a network takes."""

from undertow._core import dtype_of
from undertow.dataset import _arguments as _args
from undertow.dataset import _operation
from undertow.dataset.vision._image import Image, ToArray


class Rescale(ToArray):
    """float32: image * rescale + shift."""

    def __init__(self, rescale, shift):
        self._make("Rescale", _args.number("Rescale", "rescale", rescale), _args.number("Rescale", "shift", shift))


def _moments(name, mean, std):
    return _args.items(name, "mean", mean, ()), _args.items(name, "std", std, ())


class Normalize(ToArray):
    """float32: (image - mean) / std per channel; one value stands for all channels."""

    def __init__(self, mean, std, is_hwc=True):
        self._make("Normalize", *_moments("Normalize", mean, std), _args.flag("Normalize", "is_hwc", is_hwc))


class NormalizePad(ToArray):
    """Normalize with one more channel of zeros, as float32 or float16."""

    def __init__(self, mean, std, dtype="float32", is_hwc=True):
        name = "NormalizePad"
        self._make(name, *_moments(name, mean, std), dtype_of(dtype), _args.flag(name, "is_hwc", is_hwc))


class HWC2CHW(ToArray):
    """(H, W, C) to (C, H, W); a 2-D image stays as it is."""

    def __init__(self):
        self._make("HWC2CHW")


class ToTensor(ToArray):
    """(H, W, C) or (H, W) to (C, H, W), divided by 255 (uint16: by 65535)."""

    def __init__(self, output_type="float32"):
        self._make("ToTensor", dtype_of(output_type))


class ToType(ToArray):
    """The image in another dtype."""

    def __init__(self, data_type):
        self._make("TypeCast", dtype_of(data_type))


class ToPIL(Image):
    """An array (uint8 of 1, 3 or 4 channels, or 2-D float32) to a PIL image."""

    def __init__(self):
        self._make("ToPIL")

    def _gives_pil(self, pil):
        return True

    def plan(self, pil):
        return self._of(False), True

    def __call__(self, image):
        return image if _operation.is_pil(image) else super().__call__(image)


class ToNumpy(ToArray):
    """A PIL image to an array."""

    def __init__(self):
        self._make("ToNumpy")

    def plan(self, pil):
        return self._of(False), False


class LinearTransformation(ToArray):
    """The image as a row, less mean_vector, times the square transformation_matrix; float64."""

    def __init__(self, transformation_matrix, mean_vector):
        self._make("LinearTransformation", transformation_matrix, mean_vector)
