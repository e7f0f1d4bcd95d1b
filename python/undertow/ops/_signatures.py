# SPDX-License-Identifier: Apache-2.0
"""Functions whose signature programs look at: `inspect.signature` cannot read those of C++ functions."""

from undertow._core import ops as f

__all__ = ["interpolate", "split"]


def interpolate(input, size=None, scale_factor=None, mode="nearest", align_corners=None, recompute_scale_factor=None):
    """Resizes (N, C, spatial...) to `size` or by `scale_factor`.

    mode: nearest, nearest-exact, linear, bilinear, trilinear, bicubic or area.
    """
    return f.interpolate(input, size, scale_factor, mode, align_corners, recompute_scale_factor)


def split(tensor, split_size_or_sections, axis=0):
    """Pieces of the given size (the last may be smaller), or of the given sizes."""
    return f.split(tensor, split_size_or_sections, axis)
