# SPDX-License-Identifier: Apache-2.0
"""What runs at the same time in a pipeline, each as a ratio of two rates of one run.

source_waits: rows that are waited for 4 ms each, two workers against one (2x at best), alone and in a training.
source_as_slow_as_the_step: a training whose batches take as long as its steps, against the slower of the two alone (1x
at best; 0.5x where they take turns). native_maps: decoding and resizing pictures, two workers against one (as many as
there are free cores, 2x at best).
"""

import time

import numpy as np
import undertow.dataset as ds
from _common import best_of, best_rate, emit
from undertow.dataset import vision

from undertow import Model, nn

ROWS, BATCH, WAIT = 192, 8, 0.004


class Waits:
    """Rows of float32 (features,) with float32 (1,), each after `seconds`."""

    def __init__(self, rows, features, seconds):
        self.rows, self.seconds = rows, seconds
        self.row = np.ones(features, np.float32), np.ones(1, np.float32)

    def __len__(self):
        return self.rows

    def __getitem__(self, i):
        time.sleep(self.seconds)
        return self.row


def batches(source, workers, batch):
    # Threads: they wait at the same time, and what is measured is not the start of processes.
    data = ds.GeneratorDataset(
        source, ["x", "y"], shuffle=False, num_parallel_workers=workers, python_multiprocessing=False
    )
    return data.batch(batch)


def trainer(features, hidden):
    net = nn.SequentialCell(nn.Dense(features, hidden), nn.ReLU(), nn.Dense(hidden, 1))
    return Model(net, nn.MSELoss(), nn.SGD(net.trainable_params(), 1e-6))


def training_time(model, data):
    model.train(1, data, dataset_sink_mode=True)  # compiles
    return best_of(3, lambda: model.train(1, data, dataset_sink_mode=True))


def source_waits():
    source = Waits(ROWS, 16, WAIT)
    alone = [best_rate(batches(source, workers, BATCH), 3, lambda row: len(row[0])) for workers in (1, 2)]
    emit("source_waits", alone[1] / alone[0], "x", place="alone")
    model = trainer(16, 16)
    times = [training_time(model, batches(source, workers, BATCH)) for workers in (1, 2)]
    emit("source_waits", times[0] / times[1], "x", place="training")


def source_as_slow_as_the_step():
    steps, batch, features = 60, 256, 1024
    model = trainer(features, 1024)
    ready = ds.NumpySlicesDataset(
        (np.ones((steps * batch, features), np.float32), np.ones((steps * batch, 1), np.float32)), shuffle=False
    ).batch(batch)
    step = training_time(model, ready) / steps

    class Batches(Waits):
        """Whole batches."""

        def __init__(self, seconds):
            super().__init__(steps, (batch, features), seconds)
            self.row = self.row[0], np.ones((batch, 1), np.float32)

    data = ds.GeneratorDataset(Batches(step), ["x", "y"], shuffle=False)
    source = steps / best_rate(data, 3, lambda row: 1)
    emit(
        "source_as_slow_as_the_step",
        max(source, step * steps) / training_time(model, data),
        "x",
        batch=batch,
    )


def native_maps():
    rng = np.random.default_rng(0)
    smooth = np.kron(rng.integers(0, 256, (12, 16, 3), np.uint8), np.ones((24, 24, 1), np.uint8))
    files = np.stack([vision.encode_jpeg(smooth)] * 600)

    def rate(workers):
        data = ds.NumpySlicesDataset(files, ["image"], shuffle=False)
        data = data.map([vision.Decode(), vision.Resize((128, 128))], "image", num_parallel_workers=workers).batch(32)
        return best_rate(data, 4, lambda row: len(row[0]))

    one, two = rate(1), rate(2)
    emit("native_maps", two / one, "x", workers="2 to 1")


def main():
    source_waits()
    source_as_slow_as_the_step()
    native_maps()


if __name__ == "__main__":
    main()
