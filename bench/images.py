# SPDX-License-Identifier: Apache-2.0
"""Photos to batches (JPEG, random crop to 224, flip, normalise, CHW, batches of 32, two workers), images a second: from
a folder, from MindRecord, and the operations one by one.
"""

import _photos
import undertow.dataset as ds
from _common import best_rate, emit
from undertow.dataset import vision
from undertow.mindrecord import FileWriter

MEAN, STD = [123.675, 116.28, 103.53], [58.395, 57.12, 57.375]


def operations():
    return [
        vision.RandomCropDecodeResize(224),
        vision.RandomHorizontalFlip(),
        vision.Normalize(MEAN, STD),
        vision.HWC2CHW(),
    ]


def mindrecord():
    if not _photos.MINDRECORD.exists():
        writer = FileWriter(str(_photos.MINDRECORD), 1)
        writer.add_schema({"image": {"type": "bytes"}, "label": {"type": "int32"}}, "photos")
        rows = []
        for path, label in _photos.files():
            with open(path, "rb") as file:
                rows.append({"image": file.read(), "label": label})
        writer.write_raw_data(rows)
        writer.commit()
    return str(_photos.MINDRECORD)


def main():
    ds.config.set_prefetch_size(4)
    _photos.make(lambda image, quality: vision.encode_jpeg(image, quality).tobytes())

    def measure(source, data):
        batches = data.map(operations(), "image", num_parallel_workers=2).batch(32, drop_remainder=True)
        emit("photos", best_rate(batches, 5, lambda row: len(row[0])), "images/s", source=source)

    measure("folder", ds.ImageFolderDataset(str(_photos.FOLDER), num_parallel_workers=2, shuffle=True))
    measure("mindrecord", ds.MindDataset(mindrecord(), num_parallel_workers=2, shuffle=True))
    ds.config.set_fuse(False)
    measure("folder, one by one", ds.ImageFolderDataset(str(_photos.FOLDER), num_parallel_workers=2, shuffle=True))


if __name__ == "__main__":
    main()
