# SPDX-License-Identifier: Apache-2.0
"""The same photos in MindSpore's pipeline, from the files that our benchmark has made."""

import json
import sys
import time
from pathlib import Path

import mindspore.dataset as ds
from mindspore.dataset import vision

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import _photos  # noqa: E402

MEAN, STD = [123.675, 116.28, 103.53], [58.395, 57.12, 57.375]


def emit(name, value, unit, **params):
    print(json.dumps({"name": name, "value": value, "unit": unit, "params": params}), flush=True)


def best_rate(data, epochs, rows_in):
    best = 0
    iterator = data.create_tuple_iterator(num_epochs=epochs, output_numpy=True)
    for epoch in range(epochs):
        start, rows = time.perf_counter(), 0
        for row in iterator:
            rows += rows_in(row)
        if epoch:
            best = max(best, rows / (time.perf_counter() - start))
    return best


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
