# SPDX-License-Identifier: Apache-2.0
"""Operations on the colours of images of uint8; three channels are RGB."""

from undertow.dataset import _arguments as _args
from undertow.dataset.vision._image import Image, ToArray
from undertow.dataset.vision.utils import ConvertMode


class AdjustBrightness(Image):
    """Times brightness_factor: 0 is black, 1 the image."""

    def __init__(self, brightness_factor):
        self._make("AdjustBrightness", _args.number("AdjustBrightness", "brightness_factor", brightness_factor))


class AdjustContrast(Image):
    """Away from the mean grey: 0 is that grey, 1 the image."""

    def __init__(self, contrast_factor):
        self._make("AdjustContrast", _args.number("AdjustContrast", "contrast_factor", contrast_factor))


class AdjustSaturation(Image):
    """Away from each pixel's grey: 0 is grey, 1 the image."""

    def __init__(self, saturation_factor):
        self._make("AdjustSaturation", _args.number("AdjustSaturation", "saturation_factor", saturation_factor))


class AdjustHue(Image):
    """Turns the hue by hue_factor of the circle, in [-0.5, 0.5]."""

    def __init__(self, hue_factor):
        self._make("AdjustHue", _args.number("AdjustHue", "hue_factor", hue_factor))


class AdjustGamma(Image):
    """255 * gain * (x / 255) ** gamma; float32 in [0, 1] likewise."""

    def __init__(self, gamma, gain=1):
        self._make(
            "AdjustGamma", _args.number("AdjustGamma", "gamma", gamma), _args.number("AdjustGamma", "gain", gain)
        )


class AdjustSharpness(Image):
    """Away from a smoothed image: 0 is that one, 1 the image."""

    def __init__(self, sharpness_factor):
        self._make("AdjustSharpness", _args.number("AdjustSharpness", "sharpness_factor", sharpness_factor))


class RandomColorAdjust(Image):
    """Brightness, contrast, saturation and hue, in a random order, by factors from (min, max).

    One number v is (max(0, 1 - v), 1 + v); for hue (-v, v).
    """

    def __init__(self, brightness=(1, 1), contrast=(1, 1), saturation=(1, 1), hue=(0, 0)):
        name = "RandomColorAdjust"
        factors = {"brightness": brightness, "contrast": contrast, "saturation": saturation}
        spreads = [_args.spread(name, k, v, center=1.0, low=0.0) for k, v in factors.items()]
        self._make(name, *spreads, _args.spread(name, "hue", hue))


class RandomColor(Image):
    """AdjustSaturation by a factor from degrees (min, max)."""

    def __init__(self, degrees=(0.1, 1.9)):
        self._make("RandomColor", _args.pair("RandomColor", "degrees", degrees))


class RandomSharpness(Image):
    """AdjustSharpness by a factor from degrees (min, max)."""

    def __init__(self, degrees=(0.1, 1.9)):
        self._make("RandomSharpness", _args.pair("RandomSharpness", "degrees", degrees))


class RandomAdjustSharpness(Image):
    """AdjustSharpness by `degree` with the chance prob."""

    def __init__(self, degree, prob=0.5):
        name = "RandomAdjustSharpness"
        self._make(name, _args.number(name, "degree", degree), _args.number(name, "prob", prob))


class Grayscale(Image):
    """Grey, as one channel (H, W) or three equal ones."""

    def __init__(self, num_output_channels=1):
        self._make("Grayscale", _args.integer("Grayscale", "num_output_channels", num_output_channels))


class RandomGrayscale(Image):
    """Three equal channels of grey with the chance prob."""

    def __init__(self, prob=0.1):
        self._make("RandomGrayscale", _args.number("RandomGrayscale", "prob", prob))


class Invert(Image):
    """255 - x."""

    def __init__(self):
        self._make("Invert")


class RandomInvert(Image):
    """Invert with the chance prob."""

    def __init__(self, prob=0.5):
        self._make("RandomInvert", _args.number("RandomInvert", "prob", prob))


class Equalize(Image):
    """Each channel's histogram made even."""

    def __init__(self):
        self._make("Equalize")


class RandomEqualize(Image):
    """Equalize with the chance prob."""

    def __init__(self, prob=0.5):
        self._make("RandomEqualize", _args.number("RandomEqualize", "prob", prob))


def _contrast(name, cutoff, ignore):
    values = [] if ignore is None else _args.one_or(name, "ignore", ignore, (), _args.integer)
    return _args.number(name, "cutoff", cutoff), values


class AutoContrast(Image):
    """Each channel stretched to 0..255, without `cutoff` percent of the pixels at both ends and the values `ignore`."""

    def __init__(self, cutoff=0.0, ignore=None):
        self._make("AutoContrast", *_contrast("AutoContrast", cutoff, ignore))


class RandomAutoContrast(Image):
    """AutoContrast with the chance prob."""

    def __init__(self, cutoff=0.0, ignore=None, prob=0.5):
        name = "RandomAutoContrast"
        self._make(name, *_contrast(name, cutoff, ignore), _args.number(name, "prob", prob))


class Posterize(Image):
    """Keeps the leading bits of each value, 0 to 8."""

    def __init__(self, bits):
        self._make("Posterize", _args.integer("Posterize", "bits", bits))


class RandomPosterize(Image):
    """Posterize with bits from (min, max), or with one number."""

    def __init__(self, bits=(8, 8)):
        b = _args.one_or("RandomPosterize", "bits", bits, (2,), _args.integer)
        self._make("RandomPosterize", (b[0], b[-1]))


class Solarize(Image):
    """Inverts the values within threshold (min, max); one number t is (t, 255)."""

    def __init__(self, threshold):
        t = _args.one_or("Solarize", "threshold", threshold, (2,))
        self._make("Solarize", (t[0], t[1] if len(t) == 2 else 255.0))


class RandomSolarize(Image):
    """Solarize with thresholds drawn from (min, max)."""

    def __init__(self, threshold=(0, 255)):
        self._make("RandomSolarize", _args.pair("RandomSolarize", "threshold", threshold))


class RandomLighting(Image):
    """AlexNet's noise along the principal components of ImageNet's colours, with standard deviation alpha."""

    def __init__(self, alpha=0.05):
        self._make("RandomLighting", _args.number("RandomLighting", "alpha", alpha))


class ConvertColor(ToArray):
    """Reorders, adds or drops channels, as convert_mode says."""

    def __init__(self, convert_mode):
        self._make("ConvertColor", int(_args.member("ConvertColor", "convert_mode", convert_mode, ConvertMode)))


class RgbToHsv(ToArray):
    """Hue and saturation in [0, 1] and the value as it is; float64."""

    def __init__(self, is_hwc=False):
        self._make("RgbToHsv", _args.flag("RgbToHsv", "is_hwc", is_hwc))


class HsvToRgb(ToArray):
    """The reverse of RgbToHsv."""

    def __init__(self, is_hwc=False):
        self._make("HsvToRgb", _args.flag("HsvToRgb", "is_hwc", is_hwc))


class GaussianBlur(Image):
    """Smoothed by kernel_size odd pixels: one or (width, height). sigma None: 0.3 * ((k - 1) * 0.5 - 1) + 0.8."""

    def __init__(self, kernel_size, sigma=None):
        name = "GaussianBlur"
        widths = [] if sigma is None else _args.one_or(name, "sigma", sigma, (1, 2))
        self._make(name, _args.size(name, kernel_size, "kernel_size"), widths)
