# SPDX-License-Identifier: Apache-2.0
"""The same rows in MindSpore's pipeline, from the file that our benchmark has made."""

import sys
from pathlib import Path

import mindspore.dataset as ds

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from _common import best_rate, emit  # noqa: E402
from _photos import FOLDER  # noqa: E402


def main():
    rows = ds.MindDataset(str(FOLDER.parent / "rows.mindrecord"), num_parallel_workers=2, shuffle=True)
    emit("mindrecord_rows", best_rate(rows, 5, lambda row: 1), "rows/s", bytes=45_000)


if __name__ == "__main__":
    main()
