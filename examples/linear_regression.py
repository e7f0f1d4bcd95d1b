# SPDX-License-Identifier: Apache-2.0
"""Linear regression, y = 2x + 3 with noise: the smallest whole program.

.venv/bin/python examples/linear_regression.py
"""

import numpy as np
from undertow.dataset import NumpySlicesDataset

import undertow as ut
from undertow import LossMonitor, Model, nn


def main():
    ut.set_seed(1)
    ut.set_context(mode=ut.GRAPH_MODE)
    rng = np.random.default_rng(1)
    x = rng.uniform(-10, 10, (1600, 1)).astype(np.float32)
    y = 2 * x + 3 + rng.normal(0, 1, (1600, 1)).astype(np.float32)
    data = NumpySlicesDataset({"x": x, "y": y}).batch(16)

    net = nn.Dense(1, 1)
    model = Model(net, nn.MSELoss(), nn.Adam(net.trainable_params(), 0.05), metrics={"loss"})
    model.train(20, data, LossMonitor(500), dataset_sink_mode=True)  # 2,000 steps in 20 host commands

    print(f"y = {net.weight.asnumpy().item():.3f} x + {net.bias.asnumpy().item():.3f}")
    print("mean loss:", model.eval(data, dataset_sink_mode=True)["loss"])
    print(ut.runtime.stats())


if __name__ == "__main__":
    main()
