# SPDX-License-Identifier: Apache-2.0
"""PyTorch's bfloat16 autocast beside float32, for the networks of bench/amp.py."""

import sys
from pathlib import Path

import torch
from torch import nn

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from _common import best_of, emit  # noqa: E402

STEPS = 4


class Bottleneck(nn.Module):
    def __init__(self, i, mid, stride):
        super().__init__()
        o = 4 * mid
        self.body = nn.Sequential(
            nn.Conv2d(i, mid, 1, bias=False), nn.BatchNorm2d(mid), nn.ReLU(),
            nn.Conv2d(mid, mid, 3, stride, 1, bias=False), nn.BatchNorm2d(mid), nn.ReLU(),
            nn.Conv2d(mid, o, 1, bias=False), nn.BatchNorm2d(o),
        )  # fmt: skip
        self.shortcut = None
        if stride != 1 or i != o:
            self.shortcut = nn.Sequential(nn.Conv2d(i, o, 1, stride, bias=False), nn.BatchNorm2d(o))

    def forward(self, x):
        return torch.relu(self.body(x) + (x if self.shortcut is None else self.shortcut(x)))


def resnet50():
    blocks, channels = [], 64
    for stage, count in enumerate((3, 4, 6, 3)):
        for n in range(count):
            blocks.append(Bottleneck(channels, 64 << stage, 2 if stage and n == 0 else 1))
            channels = 256 << stage
    stem = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(3, 2, 1)]
    return nn.Sequential(*stem, *blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(2048, 10))


def lenet():
    return nn.Sequential(
        nn.Conv2d(1, 6, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(6, 16, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
        nn.Linear(256, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(), nn.Linear(84, 10),
    )  # fmt: skip


def simple_net():
    return nn.Sequential(
        nn.Conv2d(3, 64, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(), nn.Flatten(), nn.Linear(64 * 222 * 222, 10)
    )


NETWORKS = {
    "lenet": (lenet, (32, 1, 28, 28)),
    "simple_net": (simple_net, (32, 3, 224, 224)),
    "resnet50": (resnet50, (8, 3, 112, 112)),
}


def measure(name, half):
    make, shape = NETWORKS[name]
    x, y = torch.rand(shape), torch.arange(shape[0]) % 10
    net = make().to(memory_format=torch.channels_last)
    x = x.to(memory_format=torch.channels_last)
    opt = torch.optim.SGD(net.parameters(), 0.01, 0.9)

    def steps():
        for _ in range(STEPS):
            opt.zero_grad()
            with torch.autocast("cpu", torch.bfloat16, enabled=half):
                loss = nn.functional.cross_entropy(net(x).float(), y)
            loss.backward()
            opt.step()

    steps()
    return best_of(3, steps) / STEPS * 1e3


def main():
    for name in NETWORKS:
        full = measure(name, False)
        emit("amp_step", full, "ms/step", net=name, level="O0")
        half = measure(name, True)
        for level in ("O2", "O3"):  # autocast is the one level that PyTorch has
            emit("amp_step", half, "ms/step", net=name, level=level)
            emit("amp_gain", full / half, "x", net=name, level=level)


if __name__ == "__main__":
    main()
