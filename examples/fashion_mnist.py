# SPDX-License-Identifier: Apache-2.0
"""LeNet-5 on Fashion-MNIST with the training loop sunk, then sink off and on side by side.

    .venv/bin/python examples/fashion_mnist.py [--epochs 5] [--data /usr/share/datasets/fashion-mnist]

The data is Debian's package dataset-fashion-mnist. Five epochs reach at least 0.87 test accuracy.
"""

import argparse
import time

from undertow.dataset import FashionMnistDataset, transforms, vision

import undertow as ut
from undertow import LossMonitor, Model, TimeMonitor, nn

BATCH = 32


class LeNet5(nn.Cell):
    """(N, 1, 28, 28) images to (N, 10) logits."""

    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 6, 5, pad_mode="valid", has_bias=True)
        self.conv2 = nn.Conv2d(6, 16, 5, pad_mode="valid", has_bias=True)
        self.relu = nn.ReLU()
        self.pool = nn.MaxPool2d(kernel_size=2, stride=2)
        self.flatten = nn.Flatten()
        self.fc1 = nn.Dense(16 * 4 * 4, 120)
        self.fc2 = nn.Dense(120, 84)
        self.fc3 = nn.Dense(84, 10)

    def construct(self, x):
        x = self.pool(self.relu(self.conv1(x)))
        x = self.pool(self.relu(self.conv2(x)))
        x = self.flatten(x)
        x = self.relu(self.fc1(x))
        x = self.relu(self.fc2(x))
        return self.fc3(x)


def load(folder, usage):
    """Batches of images / 255 in NCHW and int32 labels."""
    images = [vision.Rescale(1 / 255, 0), vision.HWC2CHW()]
    data = FashionMnistDataset(folder, usage, shuffle=usage == "train")
    data = data.map(images, "image").map(transforms.TypeCast(ut.int32), "label")
    return data.batch(BATCH)


def make_model():
    net = LeNet5()
    loss = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
    return Model(net, loss, nn.Momentum(net.trainable_params(), 0.01, 0.9), metrics={"accuracy"})


def compare(train, steps):
    """Host commands and time a step, without and with the sink, on `steps` steps of a fresh network each."""
    part = train.take(steps)
    print(f"\n{'sink':>6} {'host commands':>14} {'steps':>6} {'us a step':>10}")
    for sink in (False, True):
        model = make_model()
        model.train(1, train.take(10), dataset_sink_mode=sink)  # compiles
        ut.runtime.reset_stats()
        start = time.perf_counter()
        model.train(1, part, dataset_sink_mode=sink)
        seconds = time.perf_counter() - start
        stats = ut.runtime.stats()
        print(
            f"{'on' if sink else 'off':>6} {stats['commands']:>14} {stats['steps']:>6} {seconds / steps * 1e6:>10.1f}"
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--data", default="/usr/share/datasets/fashion-mnist")
    parser.add_argument("--sink-size", type=int, default=-1, help="steps per host command; -1: one epoch")
    args = parser.parse_args()

    ut.set_seed(1)
    ut.set_context(mode=ut.GRAPH_MODE, device_target="CPU")
    train, test = load(args.data, "train"), load(args.data, "test")
    per_epoch = train.get_dataset_size()
    commands = args.epochs if args.sink_size == -1 else -(-args.epochs * per_epoch // args.sink_size)

    model = make_model()
    callbacks = [LossMonitor(per_epoch), TimeMonitor()]
    model.train(commands, train, callbacks, dataset_sink_mode=True, sink_size=args.sink_size)
    print(f"test accuracy after {args.epochs} epochs: {model.eval(test, dataset_sink_mode=True)['accuracy']:.4f}")
    compare(train, min(500, per_epoch))


if __name__ == "__main__":
    main()
