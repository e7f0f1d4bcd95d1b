# SPDX-License-Identifier: Apache-2.0
"""Debugging in PYNATIVE_MODE: with the sink off, every operation runs at once. Values can be printed, decide a Python
branch, or stop in a debugger; the same cell then trains compiled and sunk.

python -m undertow examples/debugging.py
"""

import mindspore as ms
import numpy as np
from mindspore import Model, nn
from mindspore.dataset import NumpySlicesDataset
from mindspore.train import LossMonitor


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.hidden = nn.Dense(4, 8, activation="relu")
        self.out = nn.Dense(8, 1)
        self.look = False
        self.dead = []

    def construct(self, x):
        h = self.hidden(x)
        if self.look:
            # breakpoint() would stop here, with h's values at hand.
            alive = (h > 0).any(axis=0)
            self.dead.append(8 - int(alive.sum()))
            if self.dead[-1] > 4:
                print("more than half of the units are off:", alive)
        return self.out(h)


def main():
    ms.set_seed(1)
    rng = np.random.default_rng(1)
    x = rng.normal(size=(320, 4)).astype(np.float32)
    y = (x @ [[1.0], [-2.0], [3.0], [0.5]]).astype(np.float32)
    data = NumpySlicesDataset((x, y), ["x", "y"], shuffle=False).batch(32)

    net = Net()
    model = Model(net, nn.MSELoss(), nn.Adam(net.trainable_params(), 0.05))
    ms.set_context(mode=ms.PYNATIVE_MODE)
    net.look = True
    model.train(1, data, dataset_sink_mode=False)
    print("units off at each step:", net.dead)

    net.look = False
    ms.set_context(mode=ms.GRAPH_MODE)
    model.train(20, data, LossMonitor(50), dataset_sink_mode=True)


if __name__ == "__main__":
    main()
