# SPDX-License-Identifier: Apache-2.0
"""60,000 rows in memory, uint8 (28, 28) with a label, shuffled, in batches of 32: rows a second."""

import numpy as np
import undertow.dataset as ds
from _common import best_rate, emit

ROWS, BATCH = 60_000, 32


def main():
    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, (ROWS, 28, 28), np.uint8)
    labels = rng.integers(0, 10, ROWS).astype(np.int32)
    data = ds.NumpySlicesDataset((images, labels), ["image", "label"], shuffle=True).batch(BATCH, drop_remainder=True)
    emit("rows", best_rate(data, 5, lambda row: len(row[0])), "rows/s", batch=BATCH)


if __name__ == "__main__":
    main()
