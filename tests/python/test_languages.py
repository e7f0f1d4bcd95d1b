# SPDX-License-Identifier: Apache-2.0
"""C++ and Python train to the same bits, whatever the sink, and with a cold, a warm and no cache of compiled code."""

import os
import subprocess
from pathlib import Path

import numpy as np
import pytest

import undertow as ut
from undertow import dataset, nn

PROGRAM = Path(__file__).resolve().parents[2] / "build" / "tests" / "train" / "language_bits"


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 6, 5, pad_mode="valid")
        self.bn = nn.BatchNorm2d(6)
        self.conv2 = nn.Conv2d(6, 16, 5, pad_mode="valid")
        self.pool = nn.MaxPool2d(kernel_size=2, stride=2)
        self.relu = nn.ReLU()
        self.flatten = nn.Flatten()
        self.drop = nn.Dropout(p=0.25)
        self.fc1 = nn.Dense(256, 84)
        self.fc2 = nn.Dense(84, 10)

    def construct(self, x):
        x = self.pool(self.relu(self.bn(self.conv1(x))))
        x = self.drop(self.flatten(self.pool(self.relu(self.conv2(x)))))
        return self.fc2(self.relu(self.fc1(x)))


def words(values):
    return [f"{v:08x}" for v in np.ravel(values).astype(np.float32).view(np.uint32)]


def from_python(sink_size):
    ut.set_context(mode=ut.GRAPH_MODE, device_target="CPU")
    ut.set_seed(5)
    rows = 328
    x = ((np.arange(rows * 784) * 7919) % 1009).astype(np.float32) / np.float32(1009)
    y = ((np.arange(rows) ** 2) % 10).astype(np.int32)
    losses = []

    class Losses(ut.Callback):
        def on_train_step_end(self, run_context):
            losses.extend(run_context.original_args().step_losses)

    net = Net()
    loss = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
    model = ut.Model(net, loss, nn.Momentum(net.trainable_params(), 0.05, 0.9))
    data = dataset.NumpySlicesDataset((x.reshape(rows, 1, 28, 28), y), ["x", "y"], shuffle=True).batch(16)
    epochs = 42 // sink_size if sink_size > 0 else 2
    sink = {"dataset_sink_mode": sink_size != 0, "sink_size": sink_size or -1}
    model.train(epochs, data, callbacks=[Losses()], **sink)
    assert len(losses) == 42
    return words(losses) + [w for p in net.get_parameters() for w in words(p.asnumpy())]


def from_cpp(sink_size, **env):
    done = subprocess.run(
        [PROGRAM, str(sink_size)], env=os.environ | env, capture_output=True, text=True, timeout=120, check=True
    )
    return done.stdout.split()


@pytest.fixture(scope="module")
def want():
    return from_python(0)


@pytest.mark.parametrize("sink_size", [0, 1, 7, -1])
def test_cpp_equals_python(want, sink_size):
    assert from_cpp(sink_size) == want
    assert from_python(sink_size) == want


def test_caches_change_no_bit(want, tmp_path):
    assert from_cpp(-1, UNDERTOW_CACHE="0") == want
    assert from_cpp(-1, UNDERTOW_CACHE_DIR=str(tmp_path)) == want
    assert any(tmp_path.iterdir())
    assert from_cpp(-1, UNDERTOW_CACHE_DIR=str(tmp_path)) == want
