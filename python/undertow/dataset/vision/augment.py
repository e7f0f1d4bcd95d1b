# SPDX-License-Identifier: Apache-2.0
"""Operations that blank parts of images, mix batches, or choose among other operations."""

import numpy as np

from undertow._core import data as _data
from undertow.dataset import _arguments as _args
from undertow.dataset import _operation
from undertow.dataset.vision._image import Image, ToArray
from undertow.dataset.vision.utils import AutoAugmentPolicy, ImageBatchFormat, Inter, inter_number


class Erase(ToArray):
    """Overwrites a rectangle of an image (H, W, C) by one value, or one for each channel."""

    def __init__(self, top, left, height, width, value=0.0, inplace=False):
        _no_inplace("Erase", inplace)
        window = {"top": top, "left": left, "height": height, "width": width}
        places = [_args.integer("Erase", k, v) for k, v in window.items()]
        self._make("Erase", *places, _args.fill("Erase", value, "value"))


class RandomErasing(ToArray):
    """With the chance prob, overwrites a rectangle of an image (C, H, W), as ToTensor gives it.

    The rectangle has `scale` of the area and width / height in `ratio`. value: one number, one a channel, or "random"
    for standard normal noise.
    """

    def __init__(self, prob=0.5, scale=(0.02, 0.33), ratio=(0.3, 3.3), value=0, inplace=False, max_attempts=10):
        name = "RandomErasing"
        _no_inplace(name, inplace)
        if isinstance(value, str) and value != "random":
            raise ValueError(f'{name}: value must be a number, three numbers or "random", got {value!r}')
        self._make(
            name,
            _args.number(name, "prob", prob),
            _args.pair(name, "scale", scale),
            _args.pair(name, "ratio", ratio),
            [] if isinstance(value, str) else _args.fill(name, value, "value"),
            _args.integer(name, "max_attempts", max_attempts),
        )


class CutOut(ToArray):
    """Blanks num_patches squares of `length` pixels at random places; those at the edge are cut off."""

    def __init__(self, length, num_patches=1, is_hwc=True):
        name = "CutOut"
        sizes = _args.integer(name, "length", length), _args.integer(name, "num_patches", num_patches)
        self._make(name, *sizes, _args.flag(name, "is_hwc", is_hwc))


class MixUpBatch(ToArray):
    """Batches of images and one-hot labels: each row mixed with another by a weight from Beta(alpha, alpha)."""

    def __init__(self, alpha=1.0):
        self._make("MixUpBatch", _args.number("MixUpBatch", "alpha", alpha))


class CutMixBatch(ToArray):
    """Batches of images and one-hot labels: with the chance prob a part of another image, and of its label."""

    def __init__(self, image_batch_format, alpha=1.0, prob=1.0):
        name = "CutMixBatch"
        form = _args.member(name, "image_batch_format", image_batch_format, ImageBatchFormat)
        self._make(name, int(form), _args.number(name, "alpha", alpha), _args.number(name, "prob", prob))


class MixUp(_operation.TensorOperation):
    """Batches of images and one-hot labels mixed by a weight from Beta(alpha, alpha).

    is_single: each row with another of its batch; else a batch with the one that came before it, which makes the
    operation keep a batch from call to call.
    """

    def __init__(self, batch_size, alpha, is_single=True):
        self.batch_size = _args.integer("MixUp", "batch_size", batch_size)
        self.alpha = _args.number("MixUp", "alpha", alpha)
        self.is_single = _args.flag("MixUp", "is_single", is_single)
        if self.batch_size < 1 or self.alpha <= 0:
            raise ValueError(f"MixUp: batch_size and alpha must be positive, got {batch_size} and {alpha}")
        self._before = None

    def __call__(self, image, label):
        image, label = np.asarray(image), np.asarray(label)
        other = image, label
        if self.is_single:
            order = np.argsort([_data.draw() for _ in range(len(image))])
            other = image[order], label[order]
        elif self._before is not None and self._before[0].shape == image.shape:
            other = self._before
        self._before = image, label
        weight = np.float32(_data.draw_beta(self.alpha))
        return tuple(weight * a + (1 - weight) * b for a, b in zip((image, label), other, strict=True))


def _policy(name, interpolation, fill_value):
    return inter_number(name, interpolation), _args.fill(name, fill_value)


class AutoAugment(Image):
    """One of 25 pairs of operations, found by search on a data set (arXiv:1805.09501); uint8 (H, W, 3)."""

    def __init__(self, policy=AutoAugmentPolicy.IMAGENET, interpolation=Inter.NEAREST, fill_value=0):
        chosen = _args.member("AutoAugment", "policy", policy, AutoAugmentPolicy)
        number = list(AutoAugmentPolicy).index(chosen)
        self._make("AutoAugment", number, *_policy("AutoAugment", interpolation, fill_value))


class RandAugment(Image):
    """num_ops operations of 14, with strength magnitude of num_magnitude_bins (arXiv:1909.13719); uint8 (H, W, 3)."""

    def __init__(self, num_ops=2, magnitude=9, num_magnitude_bins=31, interpolation=Inter.NEAREST, fill_value=0):
        name = "RandAugment"
        given = {"num_ops": num_ops, "magnitude": magnitude, "num_magnitude_bins": num_magnitude_bins}
        numbers = [_args.integer(name, k, v) for k, v in given.items()]
        self._make(name, *numbers, *_policy(name, interpolation, fill_value))


class TrivialAugmentWide(Image):
    """One operation of 14 with any strength (arXiv:2103.10158); uint8 (H, W, 3)."""

    def __init__(self, num_magnitude_bins=31, interpolation=Inter.NEAREST, fill_value=0):
        name = "TrivialAugmentWide"
        bins = _args.integer(name, "num_magnitude_bins", num_magnitude_bins)
        self._make(name, bins, *_policy(name, interpolation, fill_value))


class _Chosen(Image):
    """Operations among operations; all must leave PIL images PIL images, and arrays arrays."""

    def _inside(self, transform, pil):
        handles, gives = _operation.plan([transform], pil)
        if bool(gives) != bool(pil):
            raise _operation.Unknown
        return _data.compose(handles)


class UniformAugment(_Chosen):
    """num_ops of the operations, each with a chance of one half."""

    def __init__(self, transforms, num_ops=2):
        name = "UniformAugment"
        if not isinstance(transforms, (list, tuple)) or not all(map(callable, transforms)):
            raise TypeError(f"{name}: transforms must be a list of operations, got {transforms!r}")
        self.transforms = list(transforms)
        self._make(name, _args.integer(name, "num_ops", num_ops))

    def _build(self, name, args, pil):
        return _data.make(name, [self._inside(t, pil) for t in self.transforms], *args)


class RandomSelectSubpolicy(_Chosen):
    """One of the sub-policies, each a list of (operation, chance)."""

    def __init__(self, policy):
        name = "RandomSelectSubpolicy"
        if not isinstance(policy, (list, tuple)) or not all(isinstance(sub, (list, tuple)) for sub in policy):
            raise TypeError(f"{name}: policy must be a list of lists of (operation, prob), got {policy!r}")
        for sub in policy:
            for step in sub:
                if not isinstance(step, (list, tuple)) or len(step) != 2 or not callable(step[0]):
                    raise TypeError(f"{name}: a step must be (operation, prob), got {step!r}")
        self.policy = [[(op, _args.number(name, "prob", prob)) for op, prob in sub] for sub in policy]
        self._make(name)

    def _build(self, name, args, pil):
        return _data.make(name, [[(self._inside(op, pil), p) for op, p in sub] for sub in self.policy])


def _no_inplace(name, inplace):
    if _args.flag(name, "inplace", inplace):
        raise NotImplementedError(f"{name}: inplace=True is not supported: the result is always a new array")
