# SPDX-License-Identifier: Apache-2.0
"""The same LeNet-5 in PyTorch, eager: the figure that both of our modes are held against."""

import os
import sys
from pathlib import Path

import torch
from torch import nn

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from _common import best_of, emit  # noqa: E402

ROWS, BATCH = 9600, 32


def main():
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "2")))
    net = nn.Sequential(
        nn.Conv2d(1, 6, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(6, 16, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
        nn.Linear(256, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(), nn.Linear(84, 10),
    )  # fmt: skip
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9)
    x = torch.rand(ROWS, 1, 28, 28)
    y = torch.arange(ROWS) % 10

    def epoch():
        order = torch.randperm(ROWS)
        for i in range(0, ROWS, BATCH):
            rows = order[i : i + BATCH]
            optimizer.zero_grad()
            nn.functional.cross_entropy(net(x[rows]), y[rows]).backward()
            optimizer.step()

    epoch()
    value = best_of(3, epoch) / (ROWS // BATCH) * 1e6
    for mode in ("compiled", "compiled_sink_off", "eager"):
        emit("lenet_step", value, "us/step", mode=mode)


if __name__ == "__main__":
    main()
