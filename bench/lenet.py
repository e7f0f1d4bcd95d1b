# SPDX-License-Identifier: Apache-2.0
"""LeNet-5, batch 32, Momentum: microseconds a step, sunk, step by step, and eagerly."""

import numpy as np
from _common import best_of, emit
from _networks import LeNet

import undertow as ut
from undertow import dataset, nn

ROWS, BATCH = 9600, 32


def measure(name, mode, sink, epochs, manager=None):
    ut.set_context(mode=mode, device_target="CPU")
    rng = np.random.default_rng(0)
    x = rng.random((ROWS, 1, 28, 28), np.float32)
    y = (np.arange(ROWS) % 10).astype(np.int32)
    data = dataset.NumpySlicesDataset((x, y), ["x", "y"], shuffle=True).batch(BATCH)
    net = LeNet()
    loss = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
    model = ut.Model(net, loss, nn.Momentum(net.trainable_params(), 0.01, 0.9), loss_scale_manager=manager)
    model.train(1, data, dataset_sink_mode=sink)
    seconds = best_of(3, lambda: model.train(epochs, data, dataset_sink_mode=sink))
    emit("lenet_step", seconds / (epochs * ROWS // BATCH) * 1e6, "us/step", mode=name)


def main():
    measure("compiled", ut.GRAPH_MODE, True, 2)
    measure("compiled_loss_scale", ut.GRAPH_MODE, True, 2, ut.amp.DynamicLossScaleManager())
    measure("compiled_sink_off", ut.GRAPH_MODE, False, 2)
    measure("eager", ut.PYNATIVE_MODE, False, 1)


if __name__ == "__main__":
    main()
