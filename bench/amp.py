# SPDX-License-Identifier: Apache-2.0
"""LeNet, SimpleNet and ResNet-50 at levels O0, O2 and O3 in bfloat16: milliseconds a sunk step, and O0's against each.

On a processor without bfloat16 products the half levels widen within each kernel, which costs time.
"""

import numpy as np
from _common import best_of, emit
from _networks import LeNet, ResNet50

import undertow as ut
from undertow import dataset, nn

STEPS = 4


def simple_net():
    return nn.SequentialCell(
        nn.Conv2d(3, 64, 3, pad_mode="valid"), nn.BatchNorm2d(64), nn.ReLU(), nn.Flatten(), nn.Dense(64 * 222 * 222, 10)
    )


NETWORKS = {
    "lenet": (LeNet, (32, 1, 28, 28)),
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
