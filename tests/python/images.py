# SPDX-License-Identifier: Apache-2.0
"""Pictures for tests."""

import io

import numpy as np
from PIL import Image


def photo(height=61, width=83, seed=0):
    """Something like a photograph: smooth colours, edges and noise; uint8 (height, width, 3)."""
    random = np.random.RandomState(seed)
    y, x = np.mgrid[:height, :width]
    waves = 127 + 120 * np.sin(x / 17.0) * np.cos(y / 23.0)
    base = np.stack([waves, 255.0 * x / width, 255.0 * (1 - y / height)], -1)
    base[height // 3 : height // 2, width // 4 : width // 2] = (250, 5, 128)
    return np.clip(base + random.randn(height, width, 3) * 12, 0, 255).astype(np.uint8)


def file_of(image, form="JPEG", **options):
    """The bytes of an image file, as Pillow writes it."""
    out = io.BytesIO()
    (image if isinstance(image, Image.Image) else Image.fromarray(image)).save(out, form, **options)
    return np.frombuffer(out.getvalue(), np.uint8).copy()


def pillow_rgb(file):
    return np.asarray(Image.open(io.BytesIO(file.tobytes())).convert("RGB"))


def far(a, b):
    """The largest difference."""
    return int(np.abs(np.asarray(a).astype(np.int64) - np.asarray(b).astype(np.int64)).max(initial=0))
