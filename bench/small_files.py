# SPDX-License-Identifier: Apache-2.0
"""50,000 files of 2 KB, rows a second as they are: from their folder, and packed into MindRecord (4 shards)."""

import os

import _photos
import numpy as np
import undertow.dataset as ds
from _common import best_rate, emit
from undertow.mindrecord import FileWriter

FILES, BYTES, SHARDS = 50_000, 2048, 4
FOLDER = _photos.FOLDER.parent / "small_files"
PACKED = _photos.FOLDER.parent / "small_files.mindrecord"


def make():
    rng = np.random.default_rng(0)
    if not (FOLDER / "class9" / f"{FILES // 10 - 1:05d}.jpg").exists():
        for i in range(FILES):
            path = FOLDER / f"class{i % 10}" / f"{i // 10:05d}.jpg"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(rng.bytes(BYTES))
    if not os.path.exists(f"{PACKED}0"):
        writer = FileWriter(str(PACKED), SHARDS)
        writer.add_schema({"image": {"type": "bytes"}, "label": {"type": "int32"}}, "small files")
        rows = []
        for i in range(FILES):
            rows.append({"image": (FOLDER / f"class{i % 10}" / f"{i // 10:05d}.jpg").read_bytes(), "label": i % 10})
            if len(rows) == 1000:
                writer.write_raw_data(rows)
                rows = []
        writer.commit()


def open_files():
    return len(os.listdir("/proc/self/fd"))


def main():
    make()
    folder = ds.ImageFolderDataset(str(FOLDER), num_parallel_workers=2, shuffle=True)
    emit("small_files", best_rate(folder, 3, lambda row: 1), "rows/s", source="folder")
    before = open_files()
    packed = ds.MindDataset(f"{PACKED}0", num_parallel_workers=2, shuffle=True)
    emit("small_files", best_rate(packed, 3, lambda row: 1), "rows/s", source="mindrecord")
    iterator = packed.create_tuple_iterator(num_epochs=1)
    next(iter(iterator))
    emit("small_files_open", open_files() - before, "files", shards=SHARDS)


if __name__ == "__main__":
    main()
