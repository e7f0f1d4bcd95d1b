# SPDX-License-Identifier: Apache-2.0
"""C++ and Python train to the same bits, whatever the sink, and with a cold, a warm and no cache of compiled code.

The same network eagerly and on the reference device comes out the same but for rounding.
"""

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


def train(sink_size, epochs, mode=ut.GRAPH_MODE, device="CPU", lr=0.05):
    """Losses of all steps and all parameters after 21 steps an epoch (sink_size 0: off)."""
    ut.set_context(mode=mode, device_target=device)
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
    model = ut.Model(net, loss, nn.Momentum(net.trainable_params(), lr, 0.9))
    data = dataset.NumpySlicesDataset((x.reshape(rows, 1, 28, 28), y), ["x", "y"], shuffle=True).batch(16)
    commands = epochs * 21 // sink_size if sink_size > 0 else epochs
    model.train(commands, data, callbacks=[Losses()], dataset_sink_mode=sink_size != 0, sink_size=sink_size or -1)
    assert len(losses) == epochs * 21
    return losses, [p.asnumpy() for p in net.get_parameters()]


def from_python(sink_size):
    losses, parameters = train(sink_size, 2)
    return words(losses) + [w for p in parameters for w in words(p)]


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


@pytest.mark.parametrize(
    ("mode", "device", "tolerance"), [(ut.PYNATIVE_MODE, "CPU", 1e-5), (ut.GRAPH_MODE, "reference", 1e-4)]
)
def test_eager_and_reference_differ_by_rounding_only(mode, device, tolerance):
    losses, parameters = train(-1, 3, lr=0.01)  # 63 steps
    again, others = train(0, 3, mode, device, lr=0.01)
    np.testing.assert_allclose(again, losses, rtol=0, atol=tolerance)
    for p, q in zip(parameters, others, strict=True):
        np.testing.assert_allclose(q, p, rtol=0, atol=tolerance)
