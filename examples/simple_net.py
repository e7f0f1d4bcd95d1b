# SPDX-License-Identifier: Apache-2.0
"""A MindSpore script: a pipeline with parallel maps feeds a sunk run in mixed precision. Images are drawn at random.

python -m undertow examples/simple_net.py --images 256 --size 64
"""

import argparse

import mindspore as ms
import mindspore.dataset as ds
import numpy as np
from mindspore import Model, context, nn
from mindspore.dataset import transforms, vision
from mindspore.train.callback import LossMonitor, TimeMonitor


class SimpleNet(nn.Cell):
    def __init__(self, size, pad_mode):
        super().__init__()
        self.conv = nn.Conv2d(3, 64, 3, pad_mode=pad_mode)
        self.bn = nn.BatchNorm2d(64)
        self.relu = nn.ReLU()
        self.flatten = nn.Flatten()
        self.fc = nn.Dense(64 * (size - 2) * (size - 2), 10)

    def construct(self, x):
        return self.fc(self.flatten(self.relu(self.bn(self.conv(x)))))


def images(count, size):
    rng = np.random.default_rng(1)

    def generator():
        for i in range(count):
            yield rng.uniform(0, 255, (size, size, 3)).astype(np.float32), np.array(i % 10, np.int32)

    data = ds.GeneratorDataset(generator, ["image", "label"], num_parallel_workers=4, shuffle=True)
    data = data.map([vision.Rescale(1 / 255, 0), vision.HWC2CHW()], "image", num_parallel_workers=4)
    data = data.map(transforms.TypeCast(ms.int32), "label", num_parallel_workers=4)
    return data.batch(32, drop_remainder=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--images", type=int, default=256)
    parser.add_argument("--size", type=int, default=64)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--pad-mode", default="valid")
    parser.add_argument("--amp-level", default="O2")
    parser.add_argument("--half", default="auto", help="the half type: auto, float16 or bfloat16")
    args = parser.parse_args()

    context.set_context(mode=context.GRAPH_MODE, device_target="Ascend", enable_graph_kernel=True)
    if args.half != "auto":
        context.set_context(half=args.half)  # Undertow's own
    ms.set_seed(1)
    data = images(args.images, args.size)
    print("batches:", data.get_dataset_size())
    net = SimpleNet(args.size, args.pad_mode)
    loss = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
    model = Model(net, loss, nn.Momentum(net.trainable_params(), 0.01, 0.9), amp_level=args.amp_level)
    model.train(args.epochs, data, callbacks=[TimeMonitor(), LossMonitor()], dataset_sink_mode=True)


if __name__ == "__main__":
    main()
