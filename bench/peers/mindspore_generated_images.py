# SPDX-License-Identifier: Apache-2.0
"""The same generated images through MindSpore's pipeline."""

import sys
from pathlib import Path

import mindspore as ms
import mindspore.dataset as ds
import numpy as np
from mindspore.dataset import transforms, vision

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from _common import best_rate, emit  # noqa: E402

ROWS = 4000


def generator():
    image = np.random.default_rng(0).uniform(0, 255, (224, 224, 3)).astype(np.float32)
    for i in range(ROWS):
        yield image, np.array(i % 10, np.int32)


def main():
    data = ds.GeneratorDataset(generator, ["image", "label"], num_parallel_workers=1, shuffle=False)
    operations = [vision.Rescale(1.0 / 255.0, 0.0), vision.HWC2CHW()]
    data = data.map(operations, "image", num_parallel_workers=2)
    data = data.map(transforms.TypeCast(ms.int32), "label", num_parallel_workers=2).batch(32, drop_remainder=True)
    emit("generated_images", best_rate(data, 3, lambda row: len(row[0])), "images/s", image="made once")


if __name__ == "__main__":
    main()
