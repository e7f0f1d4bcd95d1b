# SPDX-License-Identifier: Apache-2.0
"""A small transformer encoder that sorts out which digit of a sequence is doubled, trained with the loop sunk.

.venv/bin/python examples/transformer.py
"""

import numpy as np
from undertow.dataset import NumpySlicesDataset

import undertow as ut
from undertow import LossMonitor, Model, Parameter, Tensor, nn


class Net(nn.Cell):
    def __init__(self, digits=8, length=6, width=32):
        super().__init__()
        self.embed = nn.Embedding(digits, width)
        place = np.random.default_rng(2).normal(0, 0.1, (length, width))
        self.place = Parameter(Tensor(place.astype(np.float32)))
        layer = nn.TransformerEncoderLayer(width, 4, 64, dropout=0.0, activation="gelu", batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2, nn.LayerNorm((width,)))
        self.head = nn.Dense(width, digits)

    def construct(self, ids):
        return self.head(self.encoder(self.embed(ids) + self.place).mean(1))


def samples(count, rng):
    """Five different digits, one of them twice: the label is that one."""
    ids = np.stack([rng.permutation(8)[:6] for _ in range(count)]).astype(np.int32)
    ids[:, 5] = ids[:, 0]
    labels = ids[:, 0].copy()
    return rng.permuted(ids, axis=1), labels


def main():
    ut.set_seed(1)
    rng = np.random.default_rng(1)
    ids, labels = samples(2000, rng)
    train = NumpySlicesDataset({"x": ids[:1600], "y": labels[:1600]}, shuffle=True).batch(50)
    test = NumpySlicesDataset({"x": ids[1600:], "y": labels[1600:]}, shuffle=False).batch(50)

    net = Net()
    optimizer = nn.Adam(net.trainable_params(), 0.002)
    model = Model(net, nn.CrossEntropyLoss(), optimizer, metrics={"accuracy"})
    model.train(20, train, LossMonitor(200), dataset_sink_mode=True)
    accuracy = model.eval(test, dataset_sink_mode=True)["accuracy"]
    print(f"accuracy: {accuracy:.3f}")
    return accuracy


if __name__ == "__main__":
    main()
