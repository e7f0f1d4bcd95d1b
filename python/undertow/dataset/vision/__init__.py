# SPDX-License-Identifier: Apache-2.0
"""Operations for map() on images."""

from undertow._core import data as _data
from undertow.dataset.transforms import _Native


class Rescale(_Native):
    """float32: image * rescale + shift."""

    def __init__(self, rescale, shift):
        super().__init__(_data.rescale(float(rescale), float(shift)))


class Normalize(_Native):
    """float32: (image - mean) / std per channel; one value stands for all channels."""

    def __init__(self, mean, std, is_hwc=True):
        super().__init__(_data.normalize([float(m) for m in mean], [float(s) for s in std], bool(is_hwc)))


class HWC2CHW(_Native):
    """(H, W, C) to (C, H, W); a 2-D image stays as it is."""

    def __init__(self):
        super().__init__(_data.hwc2chw())
