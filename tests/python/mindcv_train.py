# SPDX-License-Identifier: Apache-2.0
"""Run as `python -m undertow mindcv_train.py MODEL`: one training step, compiled and eager, from the same weights.

Prints one JSON line: trainable parameters, both losses, the largest difference of a weight after the step, and how
far the step moved one.
"""

import json
import sys

import mindspore as ms
import numpy as np
from mindcv import create_model
from mindspore import Model, nn
from mindspore.dataset import NumpySlicesDataset


class _Losses(ms.Callback):
    def __init__(self):
        self.values = []

    def on_train_step_end(self, run_context):
        out = run_context.original_args().net_outputs
        while isinstance(out, (tuple, list)):
            out = out[0]
        self.values.append(float(out.asnumpy()))


def step(net, images, labels, mode, sink):
    ms.set_context(mode=mode)
    ms.set_seed(7)
    data = NumpySlicesDataset((images, labels), ["image", "label"], shuffle=False).batch(len(images))
    loss = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
    losses = _Losses()
    model = Model(net, loss, nn.SGD(net.trainable_params(), 0.01))
    model.train(1, data, losses, dataset_sink_mode=sink)
    return losses.values[0]


def main(name):
    ms.set_seed(7)
    net = create_model(name, num_classes=10)
    rng = np.random.default_rng(7)
    images, labels = rng.normal(size=(2, 3, 224, 224)).astype(np.float32), np.array([3, 7], np.int32)
    before = [p.asnumpy().copy() for p in net.get_parameters()]
    compiled = step(net, images, labels, ms.GRAPH_MODE, True)
    after = [p.asnumpy().copy() for p in net.get_parameters()]
    for p, value in zip(net.get_parameters(), before):
        p.set_data(ms.Tensor(value))
    eager = step(net, images, labels, ms.PYNATIVE_MODE, False)
    far = max(float(np.abs(p.asnumpy() - a).max()) for p, a in zip(net.get_parameters(), after))
    moved = max(float(np.abs(a - b).max()) for a, b in zip(before, after))
    count = sum(p.size for p in net.trainable_params())
    print(json.dumps({"parameters": count, "compiled": compiled, "eager": eager, "far": far, "moved": moved}))


main(sys.argv[1])
