# SPDX-License-Identifier: Apache-2.0
"""The same rows in MindSpore's pipeline, from the file that our benchmark has made."""

import json
import sys
import time
from pathlib import Path

import mindspore.dataset as ds

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from _photos import FOLDER  # noqa: E402


def main():
    rows = ds.MindDataset(str(FOLDER.parent / "rows.mindrecord"), num_parallel_workers=2, shuffle=True)
    iterator = rows.create_tuple_iterator(num_epochs=5, output_numpy=True)
    best = 0
    for epoch in range(5):
        start, count = time.perf_counter(), 0
        for _ in iterator:
            count += 1
        if epoch:
            best = max(best, count / (time.perf_counter() - start))
    print(json.dumps({"name": "mindrecord_rows", "value": best, "unit": "rows/s", "params": {"bytes": 45_000}}))


if __name__ == "__main__":
    main()
