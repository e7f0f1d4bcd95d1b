# SPDX-License-Identifier: Apache-2.0
"""The same photos through torchvision's v2 transforms and a DataLoader with two workers."""

import sys
from pathlib import Path

import torch
from torch.utils.data import DataLoader, Dataset
from torchvision.io import decode_jpeg, read_file
from torchvision.transforms import v2

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import _photos  # noqa: E402
from _common import best_epoch, emit  # noqa: E402


class Photos(Dataset):
    def __init__(self):
        self.files = _photos.files()
        self.transform = v2.Compose(
            [
                v2.RandomResizedCrop(224, antialias=True),
                v2.RandomHorizontalFlip(),
                v2.ToDtype(torch.float32, scale=True),
                v2.Normalize([0.485, 0.456, 0.406], [0.229, 0.224, 0.225]),
            ]
        )

    def __len__(self):
        return len(self.files)

    def __getitem__(self, i):
        path, label = self.files[i]
        return self.transform(decode_jpeg(read_file(path))), label


def main():
    torch.set_num_threads(1)
    loader = DataLoader(Photos(), 32, shuffle=True, num_workers=2, drop_last=True, persistent_workers=True)
    emit("photos", best_epoch(loader, 4, lambda batch: len(batch[0])), "images/s", source="folder")


if __name__ == "__main__":
    main()
