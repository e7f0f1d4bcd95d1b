# SPDX-License-Identifier: Apache-2.0
"""The same rows in memory through a DataLoader without workers."""

import sys
from pathlib import Path

import numpy as np
import torch
from torch.utils.data import DataLoader, TensorDataset

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from _common import best_epoch, emit  # noqa: E402

ROWS, BATCH = 60_000, 32


def main():
    torch.set_num_threads(1)
    rng = np.random.default_rng(0)
    images = torch.from_numpy(rng.integers(0, 256, (ROWS, 28, 28), np.uint8))
    labels = torch.from_numpy(rng.integers(0, 10, ROWS).astype(np.int32))
    loader = DataLoader(TensorDataset(images, labels), BATCH, shuffle=True, drop_last=True)
    emit("rows", best_epoch(loader, 4, lambda batch: len(batch[0])), "rows/s", batch=BATCH)


if __name__ == "__main__":
    main()
