# SPDX-License-Identifier: Apache-2.0
"""Images of float32 (224, 224, 3) from a generator that makes one and gives it again and again; rescaled, to planes,
labels cast, batches of 32: images a second. And images that NumPy draws in a source with random access, by two worker
processes, against what the same source gives in a plain loop.
"""

import numpy as np
import undertow.dataset as ds
from _common import best_of, best_rate, emit
from undertow.dataset import transforms, vision

import undertow as ut

ROWS = 4000


def generator():
    image = np.random.default_rng(0).uniform(0, 255, (224, 224, 3)).astype(np.float32)
    for i in range(ROWS):
        yield image, np.array(i % 10, np.int32)


class Drawn:
    """A picture of its own for every row: circles over noise."""

    def __len__(self):
        return 320

    def __getitem__(self, i):
        rng = np.random.default_rng(i)
        y, x = np.mgrid[:224, :224].astype(np.float32)
        image = rng.random((224, 224, 3), np.float32)
        for _ in range(4):
            cy, cx, radius = rng.integers(20, 200, 3)
            image[np.hypot(y - cy, x - cx) < radius / 2] = rng.random(3, np.float32)
        return image, np.int32(i % 10)


def main():
    data = ds.GeneratorDataset(generator, ["image", "label"], num_parallel_workers=1, shuffle=False)
    operations = [vision.Rescale(1.0 / 255.0, 0.0), vision.HWC2CHW()]
    data = data.map(operations, "image", num_parallel_workers=2)
    data = data.map(transforms.TypeCast(ut.int32), "label", num_parallel_workers=2).batch(32, drop_remainder=True)
    emit("generated_images", best_rate(data, 4, lambda row: len(row[0])), "images/s", image="made once")

    source = Drawn()
    plain = len(source) / best_of(3, lambda: [source[i] for i in range(len(source))])
    data = ds.GeneratorDataset(source, ["image", "label"], num_parallel_workers=2, shuffle=True)
    data = data.batch(32, drop_remainder=True)
    emit("drawn_images", best_rate(data, 4, lambda row: len(row[0])) / plain, "x", processes=2)


if __name__ == "__main__":
    main()
