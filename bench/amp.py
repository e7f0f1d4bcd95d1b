# SPDX-License-Identifier: Apache-2.0
"""LeNet, SimpleNet and ResNet-50 at levels O0, O2 and O3 in bfloat16: milliseconds a sunk step, and O0's against each.

On a processor without bfloat16 products the half levels widen within each kernel, which costs time.
"""

import numpy as np
from _common import best_of, emit

import undertow as ut
from undertow import dataset, nn, ops

STEPS = 4


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


def lenet():
    return nn.SequentialCell(
        nn.Conv2d(1, 6, 5, pad_mode="valid", has_bias=True), nn.ReLU(), nn.MaxPool2d(2, 2),
        nn.Conv2d(6, 16, 5, pad_mode="valid", has_bias=True), nn.ReLU(), nn.MaxPool2d(2, 2), nn.Flatten(),
        nn.Dense(256, 120), nn.ReLU(), nn.Dense(120, 84), nn.ReLU(), nn.Dense(84, 10),
    )  # fmt: skip


def simple_net():
    return nn.SequentialCell(
        nn.Conv2d(3, 64, 3, pad_mode="valid"), nn.BatchNorm2d(64), nn.ReLU(), nn.Flatten(), nn.Dense(64 * 222 * 222, 10)
    )


NETWORKS = {
    "lenet": (lenet, (32, 1, 28, 28)),
    "simple_net": (simple_net, (32, 3, 224, 224)),
    "resnet50": (ResNet50, (8, 3, 112, 112)),
}


def measure(name, level):
    make, shape = NETWORKS[name]
    rng = np.random.default_rng(0)
    x = rng.random((STEPS * shape[0], *shape[1:]), np.float32)
    y = (np.arange(STEPS * shape[0]) % 10).astype(np.int32)
    data = dataset.NumpySlicesDataset((x, y), ["x", "y"], shuffle=False).batch(shape[0])
    net = make()
    loss = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
    opt = nn.Momentum(net.trainable_params(), 0.01, 0.9)
    model = ut.Model(net, loss, opt, amp_level=level, loss_scale_manager=None)
    model.train(1, data, dataset_sink_mode=True)
    return best_of(3, lambda: model.train(1, data, dataset_sink_mode=True)) / STEPS * 1e3


def main():
    ut.set_context(mode=ut.GRAPH_MODE, device_target="CPU", half="bfloat16")
    for name in NETWORKS:
        times = {}
        for level in ("O0", "O2", "O3"):
            times[level] = measure(name, level)
            emit("amp_step", times[level], "ms/step", net=name, level=level)
        for level in ("O2", "O3"):
            emit("amp_gain", times["O0"] / times[level], "x", net=name, level=level)


if __name__ == "__main__":
    main()
