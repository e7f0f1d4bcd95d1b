# SPDX-License-Identifier: Apache-2.0
"""An LSTM that tells sequences by where their largest value stands, trained with the loop sunk.

.venv/bin/python examples/lstm_classifier.py
"""

import numpy as np
from undertow.dataset import NumpySlicesDataset

import undertow as ut
from undertow import LossMonitor, Model, nn


class Classifier(nn.Cell):
    def __init__(self, hidden=16, classes=3):
        super().__init__()
        self.lstm = nn.LSTM(1, hidden, batch_first=True)
        self.head = nn.Dense(hidden, classes)

    def construct(self, x):
        _, (h, _) = self.lstm(x)
        return self.head(h[-1])


def main():
    ut.set_seed(1)
    rng = np.random.default_rng(1)
    x = rng.normal(size=(960, 9, 1)).astype(np.float32)
    labels = (x[:, :, 0].argmax(1) // 3).astype(np.int32)  # in which third
    train = NumpySlicesDataset({"x": x[:800], "y": labels[:800]}, shuffle=True).batch(40)
    test = NumpySlicesDataset({"x": x[800:], "y": labels[800:]}, shuffle=False).batch(40)

    net = Classifier()
    optimizer = nn.Adam(net.trainable_params(), 0.02)
    model = Model(net, nn.CrossEntropyLoss(), optimizer, metrics={"accuracy"})
    model.train(30, train, LossMonitor(100), dataset_sink_mode=True)
    accuracy = model.eval(test, dataset_sink_mode=True)["accuracy"]
    print(f"accuracy: {accuracy:.3f}")
    return accuracy


if __name__ == "__main__":
    main()
