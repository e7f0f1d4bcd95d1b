# SPDX-License-Identifier: Apache-2.0
"""Operations that decode, move, cut and turn images. A size is (height, width), or one number."""

from undertow.dataset import _arguments as _args
from undertow.dataset import _operation
from undertow.dataset.vision._image import Image, Resampling
from undertow.dataset.vision.utils import Border, Inter, SliceMode, border_number, inter_number

_WINDOW = {"scale": (0.08, 1.0), "ratio": (3.0 / 4.0, 4.0 / 3.0)}


class Decode(Image):
    """The bytes of a JPEG or PNG file (uint8, 1-D) to an RGB image (H, W, 3), or to a PIL image.

    Grey becomes three equal channels, CMYK is converted, alpha is dropped, 16 bits give their high byte; pixels come as
    they are stored, whatever an EXIF orientation says. Damaged or cut files raise an error.
    """

    def __init__(self, to_pil=False):
        self._to_pil = _args.flag("Decode", "to_pil", to_pil)
        self._make("Decode")

    def plan(self, pil):
        return self._of(False), self._to_pil

    def __call__(self, *files):
        result = super().__call__(*files)
        return _operation.pil_of(result) if self._to_pil else result


class _RandomWindow(Resampling):
    def _window(self, name, size, scale, ratio, interpolation, max_attempts):
        self._make(
            name,
            _args.size(name, size),
            _args.pair(name, "scale", scale),
            _args.pair(name, "ratio", ratio),
            inter_number(name, interpolation),
            _args.integer(name, "max_attempts", max_attempts),
        )


class RandomCropDecodeResize(_RandomWindow):
    """Decode and RandomResizedCrop in one, with the same draws and pixels; only the window is decoded."""

    def __init__(
        self,
        size,
        scale=_WINDOW["scale"],
        ratio=_WINDOW["ratio"],
        interpolation=Inter.BILINEAR,
        max_attempts=10,
    ):
        self._window("RandomCropDecodeResize", size, scale, ratio, interpolation, max_attempts)


class RandomResizedCrop(_RandomWindow):
    """A window of `scale` of the area, with width / height in `ratio`, resized to `size`.

    After max_attempts windows that do not fit it takes the middle.
    """

    def __init__(
        self,
        size,
        scale=_WINDOW["scale"],
        ratio=_WINDOW["ratio"],
        interpolation=Inter.BILINEAR,
        max_attempts=10,
    ):
        self._window("RandomResizedCrop", size, scale, ratio, interpolation, max_attempts)


class Resize(Resampling):
    """Resizes to (height, width), or its shorter side to a number.

    Arrays are interpolated between the nearest pixels, as OpenCV does; PIL images by filters that widen as the image
    shrinks, as Pillow does.
    """

    def __init__(self, size, interpolation=Inter.LINEAR):
        self._make("Resize", _args.size("Resize", size), inter_number("Resize", interpolation))


class RandomResize(Resampling):
    """Resize with a random interpolation."""

    def __init__(self, size):
        self._make("RandomResize", _args.size("RandomResize", size))


class ResizedCrop(Resampling):
    """A window, resized."""

    def __init__(self, top, left, height, width, size, interpolation=Inter.BILINEAR):
        name = "ResizedCrop"
        window = {"top": top, "left": left, "height": height, "width": width}
        self._make(
            name,
            *(_args.integer(name, k, v) for k, v in window.items()),
            _args.size(name, size),
            inter_number(name, interpolation),
        )


class Crop(Image):
    """The window of `size` whose upper left corner is at coordinates (top, left)."""

    def __init__(self, coordinates, size):
        corner = _args.items("Crop", "coordinates", coordinates, (2,), _args.integer)
        self._make("Crop", tuple(corner), _args.size("Crop", size))


class CenterCrop(Image):
    """The middle; a smaller image is padded with 0."""

    def __init__(self, size):
        self._make("CenterCrop", _args.size("CenterCrop", size))


class RandomCrop(Image):
    """A window at a random place of the image with its padding (1, 2 or 4 numbers: left, top, right, bottom)."""

    def __init__(self, size, padding=None, pad_if_needed=False, fill_value=0, padding_mode=Border.CONSTANT):
        name = "RandomCrop"
        self._make(
            name,
            _args.size(name, size),
            [] if padding is None else _padding(name, padding),
            _args.flag(name, "pad_if_needed", pad_if_needed),
            _args.fill(name, fill_value),
            border_number(name, "padding_mode", padding_mode),
        )


class Pad(Image):
    """With `padding` pixels more: 1 number, 2 (left and right, top and bottom) or 4 (left, top, right, bottom)."""

    def __init__(self, padding, fill_value=0, padding_mode=Border.CONSTANT):
        fill, border = _args.fill("Pad", fill_value), border_number("Pad", "padding_mode", padding_mode)
        self._make("Pad", _padding("Pad", padding), fill, border)


class PadToSize(Image):
    """Padded to `size`, in the middle or at offset (top, left)."""

    def __init__(self, size, offset=None, fill_value=0, padding_mode=Border.CONSTANT):
        name = "PadToSize"
        self._make(
            name,
            _args.size(name, size),
            [] if offset is None else _args.one_or(name, "offset", offset, (0, 1, 2), _args.integer),
            _args.fill(name, fill_value),
            border_number(name, "padding_mode", padding_mode),
        )


class HorizontalFlip(Image):
    """Left becomes right."""

    def __init__(self):
        self._make("HorizontalFlip")


class VerticalFlip(Image):
    """Top becomes bottom."""

    def __init__(self):
        self._make("VerticalFlip")


class RandomHorizontalFlip(Image):
    """HorizontalFlip with the chance prob."""

    def __init__(self, prob=0.5):
        self._make("RandomHorizontalFlip", _args.number("RandomHorizontalFlip", "prob", prob))


class RandomVerticalFlip(Image):
    """VerticalFlip with the chance prob."""

    def __init__(self, prob=0.5):
        self._make("RandomVerticalFlip", _args.number("RandomVerticalFlip", "prob", prob))


class FiveCrop(Image):
    """The four corners and the middle, as five images."""

    def __init__(self, size):
        self._make("FiveCrop", _args.size("FiveCrop", size))


class TenCrop(Image):
    """FiveCrop of the image and of its mirror image, as ten images."""

    def __init__(self, size, use_vertical_flip=False):
        flip = _args.flag("TenCrop", "use_vertical_flip", use_vertical_flip)
        self._make("TenCrop", _args.size("TenCrop", size), flip)


class SlicePatches(Image):
    """num_height x num_width parts, row by row."""

    def __init__(self, num_height=1, num_width=1, slice_mode=SliceMode.PAD, fill_value=0):
        name = "SlicePatches"
        self._make(
            name,
            _args.integer(name, "num_height", num_height),
            _args.integer(name, "num_width", num_width),
            int(_args.member(name, "slice_mode", slice_mode, SliceMode)),
            _args.number(name, "fill_value", fill_value),
        )


class Affine(Image):
    """A turn and a shear (degrees; one number shears along x), a scale, a shift in fractions of width and height."""

    def __init__(self, degrees, translate, scale, shear, resample=Inter.NEAREST, fill_value=0):
        name = "Affine"
        shears = _args.one_or(name, "shear", shear, (2,))
        self._make(
            name,
            _args.number(name, "degrees", degrees),
            tuple(_args.items(name, "translate", translate, (2,))),
            _args.number(name, "scale", scale),
            (shears[0], shears[1] if len(shears) == 2 else 0.0),
            inter_number(name, resample, "resample"),
            _args.fill(name, fill_value),
        )


class RandomAffine(Image):
    """Affine with draws from ranges: degrees (min, max) or a number; translate and shear (min x, max x[, min y, max y])
    or a number for shear; scale (min, max)."""

    def __init__(self, degrees, translate=None, scale=None, shear=None, resample=Inter.NEAREST, fill_value=0):
        name = "RandomAffine"
        if shear is not None:
            shear = list(_args.spread(name, "shear", shear)) if not hasattr(shear, "__len__") else shear
        self._make(
            name,
            _args.spread(name, "degrees", degrees),
            [] if translate is None else _args.items(name, "translate", translate, (2, 4)),
            [] if scale is None else _args.items(name, "scale", scale, (2,)),
            [] if shear is None else _args.items(name, "shear", shear, (2, 4)),
            inter_number(name, resample, "resample"),
            _args.fill(name, fill_value),
        )


def _rotation(name, resample, expand, center, fill_value):
    return (
        inter_number(name, resample, "resample"),
        _args.flag(name, "expand", expand),
        None if center is None else tuple(_args.items(name, "center", center, (2,))),
        _args.fill(name, fill_value),
    )


class Rotate(Image):
    """Turns counter-clockwise about the middle, or about center (x, y). expand: makes room for all of it."""

    def __init__(self, degrees, resample=Inter.NEAREST, expand=False, center=None, fill_value=0):
        rest = _rotation("Rotate", resample, expand, center, fill_value)
        self._make("Rotate", _args.number("Rotate", "degrees", degrees), *rest)


class RandomRotation(Image):
    """Rotate by degrees from (min, max), or from -degrees to degrees."""

    def __init__(self, degrees, resample=Inter.NEAREST, expand=False, center=None, fill_value=0):
        rest = _rotation("RandomRotation", resample, expand, center, fill_value)
        self._make("RandomRotation", _args.spread("RandomRotation", "degrees", degrees), *rest)


class Perspective(Image):
    """The projective map that takes the four start_points (x, y) to the end_points."""

    def __init__(self, start_points, end_points, interpolation=Inter.BILINEAR):
        name = "Perspective"
        points = [
            [tuple(_args.items(name, what, p, (2,))) for p in given]
            for what, given in (("start_points", start_points), ("end_points", end_points))
        ]
        self._make(name, *points, inter_number(name, interpolation))


class RandomPerspective(Image):
    """With the chance prob, a Perspective whose corners move inwards by up to distortion_scale of half a side."""

    def __init__(self, distortion_scale=0.5, prob=0.5, interpolation=Inter.BICUBIC):
        name = "RandomPerspective"
        scale, chance = _args.number(name, "distortion_scale", distortion_scale), _args.number(name, "prob", prob)
        self._make(name, scale, chance, inter_number(name, interpolation))


def _padding(name, padding):
    return _args.one_or(name, "padding", padding, (1, 2, 4), _args.integer)
