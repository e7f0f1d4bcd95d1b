# SPDX-License-Identifier: Apache-2.0
"""The same photos in MindSpore's pipeline, from the files that our benchmark has made."""

import sys
from pathlib import Path

import mindspore.dataset as ds
from mindspore.dataset import vision

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import _photos  # noqa: E402
from _common import best_rate, emit  # noqa: E402

MEAN, STD = [123.675, 116.28, 103.53], [58.395, 57.12, 57.375]


def main():
    ds.config.set_prefetch_size(4)

    def measure(source, data):
        operations = [
            vision.RandomCropDecodeResize(224),
            vision.RandomHorizontalFlip(),
            vision.Normalize(MEAN, STD),
            vision.HWC2CHW(),
        ]
        batches = data.map(operations, "image", num_parallel_workers=2).batch(32, drop_remainder=True)
        emit("photos", best_rate(batches, 5, lambda row: len(row[0])), "images/s", source=source)

    measure("folder", ds.ImageFolderDataset(str(_photos.FOLDER), num_parallel_workers=2, shuffle=True))
    measure("mindrecord", ds.MindDataset(str(_photos.MINDRECORD), num_parallel_workers=2, shuffle=True))


if __name__ == "__main__":
    main()
