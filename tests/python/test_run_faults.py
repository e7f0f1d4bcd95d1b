# SPDX-License-Identifier: Apache-2.0
"""Mistakes that training loops are known for: numbers of steps, stops, evaluation sets, denormals."""

import subprocess
import sys

import numpy as np
import pytest
from undertow.dataset import GeneratorDataset

import undertow as ut
from undertow import nn
from undertow.train import ModelCheckpoint


def rows(n, bad=None):
    rng = np.random.default_rng(3)
    x = rng.normal(size=(n, 2)).astype("f")
    y = x.sum(1, keepdims=True)
    if bad is not None:
        y[bad] = np.nan
    return GeneratorDataset(list(zip(x, y)), ["x", "y"], shuffle=False)


def model(rate=0.05, **more):
    ut.set_seed(1)
    net = nn.Dense(2, 1)
    optimizer = nn.Momentum(net.trainable_params(), rate, 0.9)
    return ut.Model(net, nn.MSELoss(), optimizer, **more), net, optimizer


def test_checkpoints_and_lines_carry_true_steps(tmp_path, capsys):
    ut.set_context(mode=ut.GRAPH_MODE)
    config = ut.CheckpointConfig(save_checkpoint_steps=4, keep_checkpoint_max=9)
    weights = {}
    for name, sink in (("host", False), ("sunk", True)):
        m, _, optimizer = model()
        run = {"dataset_sink_mode": True, "sink_size": 4} if sink else {}
        saver = ModelCheckpoint(name, str(tmp_path / name), config)
        monitors = [ut.LossMonitor(1), ut.TimeMonitor()] if sink else []
        m.train(2 if sink else 1, rows(16).batch(2), [saver, *monitors], **run)
        assert optimizer.global_step.asnumpy().tolist() == [8]
        files = sorted((tmp_path / name).glob("*.ckpt"))
        # With the sink an epoch is a command: both end with their fourth step.
        assert [p.stem for p in files] == [
            f"{name}-{e}_{s}" for e, s in ([(1, 4), (2, 4)] if sink else [(1, 4), (1, 8)])
        ]
        weights[name] = [ut.load_checkpoint(str(p)) for p in files]
    for host, sunk in zip(weights["host"], weights["sunk"]):
        np.testing.assert_array_equal(host["weight"].asnumpy(), sunk["weight"].asnumpy())
    lines = capsys.readouterr().out.splitlines()
    losses = [line.split(", loss")[0] for line in lines if "loss is" in line]
    assert losses == ["epoch: 1 step: 4", "epoch: 2 step: 4"]
    for line in lines:
        if "per step time" in line:
            epoch, step = (float(part.split(": ")[1].split(" ms")[0]) for part in line.split(", "))
            assert step == pytest.approx(epoch / 4, abs=2e-3)


@pytest.mark.parametrize("sink, steps", [(False, 3), (True, 4)])
def test_a_stop_on_nan_ends_the_run_once(sink, steps, tmp_path):
    seen = []

    class Watch(ut.Callback):
        def on_train_step_end(self, run_context):
            seen.append(run_context.original_args().cur_step_num)
            if not np.isfinite(run_context.original_args().net_outputs.asnumpy()).all() or seen[-1] >= 3:
                run_context.request_stop()

        def on_train_epoch_begin(self, run_context):
            seen.append("epoch")

        def on_train_end(self, run_context):
            seen.append("end")

    older = tmp_path / "older.ckpt"
    m, net, _ = model()
    ut.save_checkpoint(net, str(older))
    size = older.stat().st_size
    run = {"dataset_sink_mode": True, "sink_size": 4} if sink else {}
    m.train(10, rows(16, bad=5).batch(2), [Watch()], **run)
    assert seen == ["epoch", *([1, 2, 3] if not sink else [4]), "end"] and seen[-2] == steps
    assert older.stat().st_size == size


def test_each_evaluation_starts_at_the_first_row():
    results = []

    class Keep(ut.Callback):
        def on_train_epoch_end(self, run_context):
            results.append(dict(run_context.original_args().eval_results))

    valid = rows(10).batch(4)
    next(valid.create_tuple_iterator())  # one batch, by hand
    m, _, _ = model(rate=0.0, metrics={"loss", "mae"})
    m.fit(3, rows(8).batch(4), valid, callbacks=[Keep()])
    want = m.eval(rows(10).batch(10))
    assert results[0] == results[1] == results[2]
    for key, value in want.items():
        assert results[0][key] == pytest.approx(value, rel=1e-6)


DENORMALS = """
import threading
import numpy as np
tiny = np.full(1000, 1e-40, np.float32)
before = (tiny * np.float32(1)).tobytes()
import undertow as ut
from undertow import Tensor, ops
x = np.full(1_000_000, 1e-40, np.float32)
def bits():
    return ops.mul(Tensor(x), Tensor(np.float32(1))).asnumpy().tobytes(), Tensor(x).sum().asnumpy().tobytes()
seen = [bits()]
thread = threading.Thread(target=lambda: seen.append(bits()))
thread.start(); thread.join()
assert seen[0] == seen[1], "another thread, other bits"
print(np.frombuffer(seen[0][0], np.float32)[0])
assert before == (tiny * np.float32(1)).tobytes() and before == tiny.tobytes(), "the program's own mode was changed"
import hashlib
print(hashlib.sha256(b"".join(seen[0])).hexdigest())
"""


def test_denormal_numbers_follow_one_rule():
    said = set()
    for threads in ("1", "2"):
        done = subprocess.run(
            [sys.executable, "-c", DENORMALS],
            capture_output=True, text=True, timeout=120, env={"PATH": "/usr/bin:/bin", "OMP_NUM_THREADS": threads},
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        said.add(done.stdout)
    assert len(said) == 1
