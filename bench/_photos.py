# SPDX-License-Identifier: Apache-2.0
"""1,000 pictures with what matters of photos: sizes of 400-560 x 330-440, JPEG of quality 90, about 45 KB each.

Made of noise whose power falls with the square of the frequency, as that of photos does, and of shapes with edges.
They are made once, by our benchmark, in build/photos/class0 to class9; peers read the same files.
"""

from pathlib import Path

import numpy as np

FOLDER = Path(__file__).resolve().parent.parent / "build" / "photos"
MINDRECORD = FOLDER.parent / "photos.mindrecord"
COUNT = 1000


def scene(rng, height=600, width=760):
    """One large picture, uint8 (height, width, 3)."""
    frequency = np.hypot(np.fft.fftfreq(height)[:, None], np.fft.rfftfreq(width)[None, :])
    frequency[0, 0] = 1

    def noise(power):
        spectrum = np.exp(2j * np.pi * rng.random(frequency.shape)) / frequency**power
        layer = np.fft.irfft2(spectrum, (height, width))
        return (layer - layer.mean()) / layer.std()

    light = noise(1.35)[..., None]
    image = 120 + 48 * light + 14 * np.stack([noise(1.7) for _ in range(3)], -1)
    y, x = np.mgrid[:height, :width]
    for _ in range(14):
        cy, cx = rng.integers(height), rng.integers(width)
        h, w = rng.integers(20, 140, 2)
        inside = (
            ((y - cy) / h) ** 2 + ((x - cx) / w) ** 2 < 1
            if rng.random() < 0.5
            else (abs(y - cy) < h) & (abs(x - cx) < w)
        )
        image[inside] = 0.55 * image[inside] + 0.45 * rng.integers(0, 256, 3)
    return np.clip(image, 0, 255).astype(np.uint8)


def make(encode):
    """Writes the files with encode(image, quality) -> bytes, unless they are there."""
    if (FOLDER / "class9" / f"{COUNT // 10 - 1:04d}.jpg").exists():
        return
    rng = np.random.default_rng(0)
    scenes = [scene(rng) for _ in range(6)]
    for i in range(COUNT):
        image = scenes[i % len(scenes)]
        h, w = rng.integers(330, 440), rng.integers(400, 560)
        top, left = rng.integers(image.shape[0] - h + 1), rng.integers(image.shape[1] - w + 1)
        path = FOLDER / f"class{i % 10}" / f"{i // 10:04d}.jpg"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(encode(np.ascontiguousarray(image[top : top + h, left : left + w]), 90))


def files():
    """(path, class) of every picture."""
    return [(str(path), int(path.parent.name[5:])) for path in sorted(FOLDER.glob("class*/*.jpg"))]
