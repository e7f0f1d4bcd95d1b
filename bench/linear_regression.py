# SPDX-License-Identifier: Apache-2.0
"""Linear regression, Adam, batch 16, 1,600 shuffled rows: microseconds a step for each way to run the loop."""

import numpy as np
from _common import best_of, emit

import undertow as ut
from undertow import dataset, nn

ROWS, BATCH = 1600, 16
STEPS = ROWS // BATCH


def rows():
    rng = np.random.default_rng(0)
    x = rng.uniform(-10, 10, (ROWS, 1)).astype(np.float32)
    y = (2 * x + 3 + rng.normal(0, 1, (ROWS, 1))).astype(np.float32)
    return x, y


def model():
    net = nn.Dense(1, 1)
    return ut.Model(net, nn.MSELoss(), nn.Adam(net.trainable_params(), learning_rate=0.01))


def measure(name, steps, sink, sink_size):
    net = model()
    data = dataset.NumpySlicesDataset(rows(), ["x", "y"], shuffle=True).batch(BATCH)
    commands = steps // STEPS if sink_size == -1 else steps // sink_size
    train = {"dataset_sink_mode": sink, "sink_size": sink_size}
    net.train(1, data, **train)  # compiles
    seconds = best_of(3, lambda: net.train(commands, data, **train))
    emit(
        "linear_regression",
        seconds / (commands * (STEPS if sink_size == -1 else sink_size)) * 1e6,
        "us/step",
        loop=name,
    )


def main():
    ut.set_context(mode=ut.GRAPH_MODE, device_target="CPU")
    measure("off", 2_000, False, -1)
    measure("sink_1", 2_000, True, 1)
    measure("sink_10", 20_000, True, 10)
    # Long enough for the pipeline, and not what it had prepared before, to set the pace.
    for size in (100, 1000):
        measure(f"sink_{size}", 100_000, True, size)
    measure("sink_epoch", 100_000, True, -1)


if __name__ == "__main__":
    main()
