# SPDX-License-Identifier: Apache-2.0
"""The same linear regression on MindSpore, Model.train with sink off and on (on a CPU its sink is ignored)."""

import json
import time

import mindspore as ms
import numpy as np
from mindspore import dataset, nn

ROWS, BATCH = 1600, 16


def main():
    ms.set_context(mode=ms.GRAPH_MODE, device_target="CPU")
    rng = np.random.default_rng(0)
    x = rng.uniform(-10, 10, (ROWS, 1)).astype(np.float32)
    y = (2 * x + 3 + rng.normal(0, 1, (ROWS, 1))).astype(np.float32)
    for name, sink in (("off", False), ("sink_epoch", True)):
        data = dataset.NumpySlicesDataset((x, y), ["x", "y"], shuffle=True).batch(BATCH)
        net = nn.Dense(1, 1)
        model = ms.Model(net, nn.MSELoss(), nn.Adam(net.trainable_params(), learning_rate=0.01))
        model.train(1, data, dataset_sink_mode=sink)
        start = time.perf_counter()
        model.train(10, data, dataset_sink_mode=sink)
        value = (time.perf_counter() - start) / (10 * ROWS // BATCH) * 1e6
        print(json.dumps({"name": "linear_regression", "value": value, "unit": "us/step", "params": {"loop": name}}))


if __name__ == "__main__":
    main()
