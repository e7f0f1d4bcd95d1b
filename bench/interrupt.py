# SPDX-License-Identifier: Apache-2.0
"""Ctrl-C in a sunk epoch: milliseconds from the signal to KeyboardInterrupt, the worst of ten."""

import os
import signal
import threading
import time

import numpy as np
from _common import emit

import undertow as ut
from undertow import dataset, nn


def main():
    ut.set_context(mode=ut.GRAPH_MODE, device_target="CPU")
    net = nn.SequentialCell(nn.Dense(64, 256), nn.ReLU(), nn.Dense(256, 1))
    model = ut.Model(net, nn.MSELoss(), nn.Momentum(net.trainable_params(), 1e-3, 0.9))
    x, y = np.zeros((20_000, 64), np.float32), np.zeros((20_000, 1), np.float32)
    data = dataset.NumpySlicesDataset((x, y), ["x", "y"]).batch(32)
    model.train(1, data, dataset_sink_mode=True)
    worst = 0.0
    for _ in range(10):
        sent = []

        def interrupt(sent=sent):
            time.sleep(0.2)
            sent.append(time.perf_counter())
            os.kill(os.getpid(), signal.SIGINT)

        threading.Thread(target=interrupt).start()
        try:
            model.train(1_000, data, dataset_sink_mode=True, sink_size=1_000_000)
        except KeyboardInterrupt:
            worst = max(worst, time.perf_counter() - sent[0])
    model.train(1, data, dataset_sink_mode=True)  # training goes on after it
    emit("interrupt", worst * 1e3, "ms")


if __name__ == "__main__":
    main()
