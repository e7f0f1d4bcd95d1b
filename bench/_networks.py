# SPDX-License-Identifier: Apache-2.0
"""Networks of several benchmarks, and of the tests of mixed precision."""

from undertow import nn, ops


class LeNet(nn.Cell):
    def __init__(self):
        super().__init__()
        self.body = nn.SequentialCell(
            nn.Conv2d(1, 6, 5, pad_mode="valid", has_bias=True), nn.ReLU(), nn.MaxPool2d(2, 2),
            nn.Conv2d(6, 16, 5, pad_mode="valid", has_bias=True), nn.ReLU(), nn.MaxPool2d(2, 2), nn.Flatten(),
            nn.Dense(256, 120), nn.ReLU(), nn.Dense(120, 84), nn.ReLU(), nn.Dense(84, 10),
        )  # fmt: skip

    def construct(self, x):
        return self.body(x)


class Bottleneck(nn.Cell):
    def __init__(self, i, mid, stride):
        super().__init__()
        o = 4 * mid
        self.body = nn.SequentialCell(
            nn.Conv2d(i, mid, 1), nn.BatchNorm2d(mid), nn.ReLU(),
            nn.Conv2d(mid, mid, 3, stride, pad_mode="pad", padding=1), nn.BatchNorm2d(mid), nn.ReLU(),
            nn.Conv2d(mid, o, 1), nn.BatchNorm2d(o),
        )  # fmt: skip
        shortcut = stride != 1 or i != o
        self.shortcut = nn.SequentialCell(nn.Conv2d(i, o, 1, stride), nn.BatchNorm2d(o)) if shortcut else None
        self.relu = nn.ReLU()

    def construct(self, x):
        return self.relu(self.body(x) + (x if self.shortcut is None else self.shortcut(x)))


class ResNet50(nn.Cell):
    def __init__(self):
        super().__init__()
        stem = nn.Conv2d(3, 64, 7, 2, pad_mode="pad", padding=3)
        blocks, channels = [], 64
        for stage, count in enumerate((3, 4, 6, 3)):
            for n in range(count):
                blocks.append(Bottleneck(channels, 64 << stage, 2 if stage and n == 0 else 1))
                channels = 256 << stage
        self.body = nn.SequentialCell(stem, nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(3, 2, pad_mode="same"), *blocks)
        self.fc = nn.Dense(2048, 10)

    def construct(self, x):
        return self.fc(ops.mean(self.body(x), (2, 3)))
