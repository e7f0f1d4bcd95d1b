# SPDX-License-Identifier: Apache-2.0
"""The host while a command runs: signals, stops, the GIL, and no Python inside."""

import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from test_train import data, linear

import undertow as ut


@pytest.mark.parametrize("sink", [False, True])
@pytest.mark.parametrize("mode", [ut.GRAPH_MODE, ut.PYNATIVE_MODE])
def test_ctrl_c(sink, mode):
    ut.set_context(mode=mode)
    net, opt, model = linear()
    model.train(1, data(10), dataset_sink_mode=sink)
    threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    start = time.perf_counter()
    with pytest.raises(KeyboardInterrupt):
        model.train(10**6, data(10).repeat(100), dataset_sink_mode=sink)
    assert time.perf_counter() - start < 1.5
    steps = opt.global_step.asnumpy().item()
    assert np.isfinite(net.weight.asnumpy()).all() and steps > 9
    model.train(1, data(10), dataset_sink_mode=sink)
    assert opt.global_step.asnumpy().item() == steps + 9


def test_a_signal_handler_of_ones_own():
    class Own(Exception):
        pass

    def handler(*_):
        raise Own("from the handler")

    before = signal.signal(signal.SIGUSR1, handler)
    try:
        threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGUSR1)).start()
        with pytest.raises(Own, match="from the handler"):
            linear()[2].train(10**6, data(10), dataset_sink_mode=True, sink_size=900)
    finally:
        signal.signal(signal.SIGUSR1, before)


def test_request_stop_from_another_thread():
    _, opt, model = linear()
    threading.Timer(0.3, model.request_stop).start()
    model.train(10**6, data(10), dataset_sink_mode=True, sink_size=900)
    assert opt.global_step.asnumpy().item() > 0


def test_training_on_another_thread_leaves_the_gil_free():
    _, _, model = linear()
    thread = threading.Thread(target=lambda: model.train(300, data(10), dataset_sink_mode=True, sink_size=900))
    thread.start()
    ticks = 0
    while thread.is_alive():
        time.sleep(0.001)
        ticks += 1
    assert ticks > 3


def test_no_python_runs_inside_a_command():
    def events(size):
        _, _, model = linear()
        model.train(1, data(10, shuffle=True), dataset_sink_mode=True)
        count = [0]

        def profile(*_):
            count[0] += 1

        threading.setprofile(profile)
        sys.setprofile(profile)
        try:
            model.train(900 // size, data(10, shuffle=True), dataset_sink_mode=True, sink_size=size)
        finally:
            sys.setprofile(None)
            threading.setprofile(None)
        return count[0]

    assert events(900) < 400 and events(9) < 400


# ---- The end of the interpreter.

ENDS = {
    "a live iterator": """
class Slow:
    def __len__(self): return 1000
    def __getitem__(self, i): time.sleep(.002); return np.float32([i])
it = ds.GeneratorDataset(Slow(), ["x"], num_parallel_workers=4).map(lambda x: x + 1).batch(2).create_tuple_iterator()
next(it)
ut.kept = it  # lives in a module, to the very end
""",
    "a thread that trains": """
net = nn.Dense(1, 1)
model = Model(net, nn.MSELoss(), nn.SGD(net.trainable_params(), 1e-6))
rows = lambda: ((np.float32([i]), np.float32([i])) for i in range(100))
data = ds.GeneratorDataset(rows, ["x", "y"]).batch(10)
train = lambda: model.train(10**6, data, dataset_sink_mode=True, sink_size=10)
threading.Thread(target=train, daemon=True).start()
time.sleep(.3)
""",
}


@pytest.mark.parametrize("name", ENDS)
@pytest.mark.parametrize("end, status", [("", 0), ("sys.exit(3)", 3), ("raise ValueError('last')", 1)])
def test_the_interpreter_ends_in_peace(name, end, status):
    head = "import sys, threading, time, numpy as np, undertow as ut\nfrom undertow import Model, nn, dataset as ds\n"
    result = subprocess.run([sys.executable, "-c", head + ENDS[name] + end], capture_output=True, text=True, timeout=60)
    assert result.returncode == status, result.stderr
    assert not result.stderr or "ValueError: last" in result.stderr


@pytest.mark.parametrize("kind", ["eager", "compiled"])
def test_work_beside_a_run_that_needs_python_for_its_data(kind):
    """The run holds the device and waits for rows; whoever waits for the device must not hold the GIL."""

    class Slow:
        def __len__(self):
            return 100

        def __getitem__(self, i):
            time.sleep(0.0005)
            return np.ones((8, 16, 16), np.float32), np.ones(1, np.float32)

    net = ut.nn.SequentialCell(ut.nn.Conv2d(8, 32, 3), ut.nn.Flatten(), ut.nn.Dense(32 * 256, 1))
    model = ut.Model(net, ut.nn.MSELoss(), ut.nn.SGD(net.trainable_params(), 1e-6))
    rows = ut.dataset.GeneratorDataset(Slow(), ["x", "y"]).batch(10)
    other = ut.nn.Conv2d(8, 32, 3)
    work = (lambda x: other(x)) if kind == "eager" else ut.jit(lambda x: other(x))
    thread = threading.Thread(target=lambda: model.train(3, rows, dataset_sink_mode=True), daemon=True)
    thread.start()
    start = time.perf_counter()
    while thread.is_alive() and time.perf_counter() - start < 30:
        work(ut.ops.ones((20, 8, 16, 16)))
    assert not thread.is_alive()
