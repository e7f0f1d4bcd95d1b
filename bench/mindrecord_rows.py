# SPDX-License-Identifier: Apache-2.0
"""2,000 rows of 45,000 bytes and a label from MindRecord as they are, shuffled, two workers: rows a second."""

import numpy as np
import undertow.dataset as ds
from _common import best_rate, emit
from _photos import FOLDER
from undertow.mindrecord import FileWriter

ROWS, BYTES = 2000, 45_000
FILE = FOLDER.parent / "rows.mindrecord"


def make():
    if FILE.exists():
        return
    FILE.parent.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(0)
    writer = FileWriter(str(FILE), 1)
    writer.add_schema({"data": {"type": "bytes"}, "label": {"type": "int32"}}, "rows")
    writer.write_raw_data([{"data": rng.bytes(BYTES), "label": i % 10} for i in range(ROWS)])
    writer.commit()


def main():
    make()
    rows = ds.MindDataset(str(FILE), num_parallel_workers=2, shuffle=True)
    emit("mindrecord_rows", best_rate(rows, 9, lambda row: 1), "rows/s", bytes=BYTES)


if __name__ == "__main__":
    main()
