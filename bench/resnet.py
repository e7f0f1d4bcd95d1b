# SPDX-License-Identifier: Apache-2.0
"""A ResNet-18 of 64 to 512 channels, Momentum: milliseconds a sunk step, for small images and larger ones."""

import numpy as np
from _common import best_of, emit

import undertow as ut
from undertow import dataset, nn, ops

STEPS = 4


def conv(i, o, kernel, stride):
    return nn.Conv2d(i, o, kernel, stride, pad_mode="pad", padding=kernel // 2)


class Block(nn.Cell):
    def __init__(self, i, o, stride):
        super().__init__()
        self.body = nn.SequentialCell(
            conv(i, o, 3, stride), nn.BatchNorm2d(o), nn.ReLU(), conv(o, o, 3, 1), nn.BatchNorm2d(o)
        )
        self.shortcut = nn.SequentialCell(conv(i, o, 1, stride), nn.BatchNorm2d(o)) if stride > 1 else None
        self.relu = nn.ReLU()

    def construct(self, x):
        return self.relu(self.body(x) + (x if self.shortcut is None else self.shortcut(x)))


class ResNet(nn.Cell):
    def __init__(self, small_images):
        super().__init__()
        if small_images:
            stem = [conv(3, 64, 3, 1), nn.BatchNorm2d(64), nn.ReLU()]
        else:
            stem = [conv(3, 64, 7, 2), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(3, 2, pad_mode="same")]
        blocks = []
        for i, o in ((64, 64), (64, 128), (128, 256), (256, 512)):
            blocks += [Block(i, o, o // i), Block(o, o, 1)]
        self.body = nn.SequentialCell(*stem, *blocks)
        self.fc = nn.Dense(512, 10)

    def construct(self, x):
        return self.fc(ops.mean(self.body(x), (2, 3)))


def measure(pixels, batch):
    rng = np.random.default_rng(0)
    x = rng.random((STEPS * batch, 3, pixels, pixels), np.float32)
    y = (np.arange(STEPS * batch) % 10).astype(np.int32)
    data = dataset.NumpySlicesDataset((x, y), ["x", "y"], shuffle=False).batch(batch)
    net = ResNet(pixels < 64)
    loss = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
    model = ut.Model(net, loss, nn.Momentum(net.trainable_params(), 0.01, 0.9))
    model.train(1, data, dataset_sink_mode=True)
    seconds = best_of(3, lambda: model.train(1, data, dataset_sink_mode=True))
    emit("resnet18_step", seconds / STEPS * 1e3, "ms/step", pixels=pixels, batch=batch)


def main():
    ut.set_context(mode=ut.GRAPH_MODE, device_target="CPU")
    measure(32, 32)
    measure(112, 8)


if __name__ == "__main__":
    main()
