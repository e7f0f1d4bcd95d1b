# SPDX-License-Identifier: Apache-2.0
"""The same ResNet-18 in PyTorch, eager."""

import os
import sys
from pathlib import Path

import torch
from torch import nn

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from _common import best_of, emit  # noqa: E402

STEPS = 4


def conv(i, o, kernel, stride):
    return nn.Conv2d(i, o, kernel, stride, kernel // 2, bias=False)


class Block(nn.Module):
    def __init__(self, i, o, stride):
        super().__init__()
        self.body = nn.Sequential(
            conv(i, o, 3, stride), nn.BatchNorm2d(o), nn.ReLU(), conv(o, o, 3, 1), nn.BatchNorm2d(o)
        )
        self.shortcut = nn.Sequential(conv(i, o, 1, stride), nn.BatchNorm2d(o)) if stride > 1 else nn.Identity()

    def forward(self, x):
        return torch.relu(self.body(x) + self.shortcut(x))


def resnet(small_images):
    if small_images:
        stem = [conv(3, 64, 3, 1), nn.BatchNorm2d(64), nn.ReLU()]
    else:
        stem = [conv(3, 64, 7, 2), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(3, 2, 1)]
    blocks = []
    for i, o in ((64, 64), (64, 128), (128, 256), (256, 512)):
        blocks += [Block(i, o, o // i), Block(o, o, 1)]
    return nn.Sequential(*stem, *blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 10))


def measure(pixels, batch):
    net = resnet(pixels < 64)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9)
    x, y = torch.rand(STEPS, batch, 3, pixels, pixels), torch.arange(batch) % 10

    def epoch():
        for i in range(STEPS):
            optimizer.zero_grad()
            nn.functional.cross_entropy(net(x[i]), y).backward()
            optimizer.step()

    epoch()
    emit("resnet18_step", best_of(3, epoch) / STEPS * 1e3, "ms/step", pixels=pixels, batch=batch)


def main():
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "2")))
    measure(32, 32)
    measure(112, 8)


if __name__ == "__main__":
    main()
