# SPDX-License-Identifier: Apache-2.0
"""Test accuracy on Fashion-MNIST of LeNet and of a ResNet-18 at levels O0, O2 and O3 in both half types, one seed.

The data is Debian's package dataset-fashion-mnist. A few epochs each; half types are slow without hardware for them.
"""

import argparse
import os

from _common import emit
from _networks import LeNet
from resnet import ResNet
from undertow.dataset import transforms, vision

import undertow as ut
from undertow import dataset, nn

FOLDER = "/usr/share/datasets/fashion-mnist"


class Gray(nn.Cell):
    """The ResNet-18 of resnet.py for images of one channel."""

    def __init__(self):
        super().__init__()
        self.spread = nn.Conv2d(1, 3, 1)
        self.body = ResNet(True)

    def construct(self, x):
        return self.body(self.spread(x))


def load(usage):
    data = dataset.FashionMnistDataset(FOLDER, usage, shuffle=usage == "train")
    data = data.map([vision.Rescale(1 / 255, 0), vision.HWC2CHW()], "image").map(transforms.TypeCast(ut.int32), "label")
    return data.batch(32)


def accuracy(make, level, half, epochs):
    ut.set_context(mode=ut.GRAPH_MODE, half=half)
    ut.set_seed(1)
    net = make()
    loss = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
    opt = nn.Momentum(net.trainable_params(), 0.01, 0.9)
    model = ut.Model(net, loss, opt, {"accuracy"}, amp_level=level)
    model.train(epochs, load("train"), dataset_sink_mode=True)
    return model.eval(load("test"), dataset_sink_mode=True)["accuracy"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nets", nargs="*", default=["lenet"], choices=["lenet", "resnet18"])
    parser.add_argument("--epochs", type=int, default=5)
    args = parser.parse_args()
    if not os.path.isdir(FOLDER):
        return
    for name in args.nets:
        make = {"lenet": LeNet, "resnet18": Gray}[name]
        for level, half in (("O0", "auto"), *((o, h) for h in ("bfloat16", "float16") for o in ("O2", "O3"))):
            value = accuracy(make, level, half, args.epochs)
            emit("amp_accuracy", value, "of the test set", net=name, level=level, half=half, epochs=args.epochs)


if __name__ == "__main__":
    main()
