# SPDX-License-Identifier: Apache-2.0
"""Enumerations of image operations, and image files."""

from enum import IntEnum, StrEnum

import numpy as np

from undertow._core import data as _data
from undertow.dataset import _arguments as _args
from undertow.dataset import _operation

_v = _data.vision


class Inter(IntEnum):
    """Interpolation. ANTIALIAS is for PIL images, AREA and PILCUBIC for arrays."""

    NEAREST, ANTIALIAS, LINEAR, CUBIC, AREA, PILCUBIC = 0, 1, 2, 3, 4, 5
    BILINEAR, BICUBIC = 2, 3


class Border(StrEnum):
    """What lies beyond an image: a constant, its last pixel, its mirror image without or with the last pixel twice."""

    CONSTANT, EDGE, REFLECT, SYMMETRIC = "constant", "edge", "reflect", "symmetric"


class ConvertMode(IntEnum):
    """Conversions of ConvertColor."""

    COLOR_BGR2BGRA = COLOR_RGB2RGBA = 0
    COLOR_BGRA2BGR = COLOR_RGBA2RGB = 1
    COLOR_BGR2RGBA = COLOR_RGB2BGRA = 2
    COLOR_RGBA2BGR = COLOR_BGRA2RGB = 3
    COLOR_BGR2RGB = COLOR_RGB2BGR = 4
    COLOR_BGRA2RGBA = COLOR_RGBA2BGRA = 5
    COLOR_BGR2GRAY = 6
    COLOR_RGB2GRAY = 7
    COLOR_GRAY2BGR = COLOR_GRAY2RGB = 8
    COLOR_GRAY2BGRA = COLOR_GRAY2RGBA = 9
    COLOR_BGRA2GRAY = 10
    COLOR_RGBA2GRAY = 11


class ImageBatchFormat(IntEnum):
    """The order of a batch's dimensions."""

    NHWC, NCHW = 0, 1


class SliceMode(IntEnum):
    """What SlicePatches does with pixels left over: pads them to a whole patch, or drops them."""

    PAD, DROP = 0, 1


class ImageReadMode(IntEnum):
    """Channels that read_image gives: the file's own, one, or three."""

    UNCHANGED, GRAYSCALE, COLOR = 0, 1, 2


class AutoAugmentPolicy(StrEnum):
    """The data set that a policy of AutoAugment was found on."""

    IMAGENET, CIFAR10, SVHN = "imagenet", "cifar10", "svhn"


def border_number(op, name, value):
    return list(Border).index(_args.member(op, name, value, Border))


def inter_number(op, value, name="interpolation"):
    return int(_args.member(op, name, value, Inter))


def read_file(filename):
    """The bytes of a file, as a 1-D array of uint8."""
    with open(filename, "rb") as f:
        return np.frombuffer(f.read(), np.uint8).copy()


def write_file(filename, data):
    """Writes a 1-D array of uint8 (or a Tensor of it) to a file."""
    array = _array("write_file", data)
    if array.ndim != 1 or array.dtype != np.uint8:
        raise ValueError(f"write_file: data must be 1-D of uint8, got {array.dtype} of shape {array.shape}")
    with open(filename, "wb") as f:
        f.write(array.tobytes())


def read_image(filename, mode=ImageReadMode.UNCHANGED):
    """A JPEG or PNG file as an array (H, W, C) of uint8."""
    return _v.decode(read_file(filename), int(_args.member("read_image", "mode", mode, ImageReadMode)))


def encode_jpeg(image, quality=75):
    """The bytes of a JPEG file, 1-D of uint8, for an image (H, W), (H, W, 1) or (H, W, 3) of uint8."""
    return _v.encode_jpeg(_array("encode_jpeg", image), _args.integer("encode_jpeg", "quality", quality))


def encode_png(image, compression_level=6):
    """The bytes of a PNG file, 1-D of uint8, for an image (H, W), (H, W, 1) or (H, W, 3) of uint8."""
    level = _args.integer("encode_png", "compression_level", compression_level)
    return _v.encode_png(_array("encode_png", image), level)


def write_jpeg(filename, image, quality=75):
    """Writes an image to a JPEG file."""
    write_file(filename, encode_jpeg(image, quality))


def write_png(filename, image, compression_level=6):
    """Writes an image to a PNG file."""
    write_file(filename, encode_png(image, compression_level))


def get_image_size(image):
    """[height, width] of an array (..., H, W, C) or (H, W), or of a PIL image."""
    if _operation.is_pil(image):
        return [image.height, image.width]
    shape = _array("get_image_size", image).shape
    if len(shape) < 2:
        raise ValueError(f"get_image_size: image must have at least 2 dimensions, got shape {shape}")
    return list(shape[-3:-1] if len(shape) > 2 else shape)


def get_image_num_channels(image):
    """The channels of an array (..., H, W, C) or (H, W), or of a PIL image."""
    if _operation.is_pil(image):
        return len(image.getbands())
    shape = _array("get_image_num_channels", image).shape
    if len(shape) < 2:
        raise ValueError(f"get_image_num_channels: image must have at least 2 dimensions, got shape {shape}")
    return shape[-1] if len(shape) > 2 else 1


def _array(op, value):
    array = value.asnumpy() if hasattr(value, "asnumpy") else value
    if not isinstance(array, np.ndarray):
        raise TypeError(f"{op}: expected an array or a Tensor, got {type(value).__name__}")
    return array
