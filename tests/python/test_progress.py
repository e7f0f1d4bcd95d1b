# SPDX-License-Identifier: Apache-2.0
"""How far a dataset has got, where its time goes, and who is told: state, profile, autotune, callbacks, sync_wait."""

import os
import time

import numpy as np
import pytest

import undertow as ut
from undertow import Callback, Model, Tensor, nn
from undertow import dataset as ds


def draws(x):
    return np.array([x, np.random.randint(2**30)])  # noqa: NPY002


def drawing(workers, processes):
    data = ds.NumpySlicesDataset(np.arange(20), "x")
    data = data.map(draws, "x", num_parallel_workers=workers, python_multiprocessing=processes)
    return data.shuffle(4).batch(3)


def taken(iterator, n):
    return [np.asarray(next(iterator)[0]).tolist() for _ in range(n)]


@pytest.mark.parametrize("processes", [False, True])
def test_state_resumes_with_the_same_rows(processes):
    def iterator(data):
        return data.create_tuple_iterator(num_epochs=2, output_numpy=True)

    expected = [row[0].tolist() for it in [iterator(drawing(1, False))] for _ in range(2) for row in it]
    assert len(expected) == 14
    for stop, workers in ((3, 2), (6, 1), (7, 3), (9, 4)):
        data = drawing(workers, processes)
        it = iterator(data)
        before = []
        while len(before) < stop:
            before += [row[0].tolist() for _, row in zip(range(stop - len(before)), it)]
        state = data.state()
        assert state == {"seed": ds.config.get_seed(), "epoch": stop // 7, "batch": stop % 7}
        it.stop()
        other = drawing(workers, processes)
        other.load_state(state)
        after = [row[0].tolist() for row in iterator(other)]
        assert before == expected[:stop] and after == expected[stop : stop // 7 * 7 + 7]


def test_wrong_states():
    data = ds.NumpySlicesDataset(np.arange(4), "x").batch(2)
    assert data.state() == {"seed": ds.config.get_seed(), "epoch": 0, "batch": 0}
    for wrong in ({"epoch": 1}, None, {"seed": 1, "epoch": 0, "batch": 2}, {"seed": 1, "epoch": -1, "batch": 0}):
        with pytest.raises(ValueError, match="load_state"):
            data.load_state(wrong)


class Weights(Callback):
    def __init__(self, net, dataset):
        super().__init__()
        self.net, self.dataset, self.seen = net, dataset, []

    def on_train_step_end(self, run_context):
        self.seen.append((self.net.weight.asnumpy().copy(), self.dataset.state()))


@pytest.mark.parametrize("sink", [False, True])
def test_training_goes_on_from_a_state(sink):
    def parts():
        x = np.arange(20, dtype=np.float32).reshape(-1, 1) / 20
        data = ds.NumpySlicesDataset((x, 2 * x), ["x", "y"]).batch(3)
        net = nn.Dense(1, 1, weight_init="ones", bias_init="zeros")
        return data, net, Model(net, nn.MSELoss(), nn.Momentum(net.trainable_params(), 0.1, 0.0))

    data, net, model = parts()
    whole = Weights(net, data)
    model.train(14, data, [whole], dataset_sink_mode=sink, sink_size=1) if sink else model.train(2, data, [whole])
    assert [s["epoch"] * 7 + s["batch"] for _, s in whole.seen] == list(range(1, 15))

    other, net, model = parts()
    net.weight.set_data(Tensor(whole.seen[4][0]))
    # The bias is not kept here: freeze what was learned of it by starting from the same place.
    data, first, first_model = parts()
    keep = Weights(first, data)
    first_model.train(5, data, [keep], dataset_sink_mode=True, sink_size=1)
    net.bias.set_data(first.bias)
    other.load_state(data.state())
    rest = Weights(net, other)
    model.train(9, other, [rest], dataset_sink_mode=True, sink_size=1)
    for (a, s), (b, t) in zip(whole.seen[5:], rest.seen, strict=True):
        np.testing.assert_array_equal(a, b)
        assert s == t


def slow(x):
    time.sleep(0.002)
    return x


def test_profile():
    data = ds.NumpySlicesDataset(np.arange(200), "x").map(lambda x: x + 1, "x")
    data = data.map(slow, "x", num_parallel_workers=1).batch(4)
    assert data.last_profile() is None
    profile = data.profile(batches=20)
    by_name = {stage.name: stage for stage in profile.stages}
    assert set(by_name) == {"NumpySlicesDataset", "map(<lambda>) of x", "map(slow) of x", "batch"}
    worst = by_name["map(slow) of x"]
    assert worst.share > 0.5 and worst.samples_per_second < 500 and worst.seconds_per_sample >= 0.002
    assert "map(slow) of x" in profile.bottleneck and profile.bottleneck in str(profile)
    assert data.state()["batch"] == 0
    with pytest.raises(ValueError, match="batches"):
        data.profile(0)


def test_a_training_leaves_a_profile(capfd):
    x = np.zeros((40, 1), np.float32)
    data = ds.NumpySlicesDataset((x, x), ["x", "y"]).map(slow, "x", num_parallel_workers=1).batch(4)
    net = nn.Dense(1, 1)
    model = Model(net, nn.MSELoss(), nn.SGD(net.trainable_params(), 0.01), metrics={"loss"})
    for sink in (False, True):
        model.train(2, data, dataset_sink_mode=sink)
        profile = data.last_profile()
        assert profile.batches == 20 and profile.queue_size >= 3
        assert 0 < profile.wait_seconds <= profile.seconds
        assert "map(slow)" in profile.bottleneck and "waited for data" in profile.bottleneck
    model.eval(data)
    assert data.last_profile().batches == 10
    assert capfd.readouterr().out == ""


def test_autotune_gives_the_slowest_stage_more_workers():
    data = ds.NumpySlicesDataset(np.arange(300), "x", shuffle=False)
    data = data.map(lambda x: x, "x", num_parallel_workers=1).map(slow, "x", num_parallel_workers=1).batch(2)

    def run():
        rows = [row[0].tolist() for row in data.create_tuple_iterator(num_epochs=1, output_numpy=True)]
        return rows, {s.name: s.workers for s in data.last_profile().stages}

    expected, before = run()
    ds.config.set_enable_autotune(True)
    try:
        assert ds.config.get_enable_autotune()
        rows, after = run()
    finally:
        ds.config.set_enable_autotune(False)
    assert rows == expected and before["map(slow) of x"] == 1
    assert after["map(slow) of x"] == os.cpu_count()


class Log(ds.DSCallback):
    def __init__(self, step_size=1):
        super().__init__(step_size)
        self.calls = []

    def ds_epoch_begin(self, ds_run_context):
        self.calls.append(("epoch", ds_run_context.cur_epoch_num))

    def ds_step_end(self, c):
        self.calls.append((c.cur_epoch_num, c.cur_step_num_in_epoch, c.cur_step_num))


def test_callbacks_of_a_map():
    log, sparse = Log(), Log(3)
    data = ds.NumpySlicesDataset(np.arange(4), "x", shuffle=False)
    data = data.map(lambda x: x, "x", num_parallel_workers=2, callbacks=[log, sparse])
    it = data.create_tuple_iterator(num_epochs=2, output_numpy=True)
    assert [[row[0].item() for row in it] for _ in range(2)] == [[0, 1, 2, 3]] * 2
    steps = [(e, i, (e - 1) * 4 + i) for e in (1, 2) for i in range(1, 5)]
    assert log.calls == [("epoch", 1), *steps[:4], ("epoch", 2), *steps[4:]]
    assert sparse.calls == [("epoch", 1), steps[0], steps[3], ("epoch", 2), steps[6]]

    class Bad(ds.DSCallback):
        def ds_step_begin(self, ds_run_context):
            raise KeyError("the user's")

    data = data.map(lambda x: x, "x", callbacks=Bad())
    with pytest.raises(KeyError, match="the user's"):
        list(data.create_tuple_iterator(num_epochs=1))
    for wrong, error in ((3, TypeError), ([None], TypeError)):
        with pytest.raises(error, match="DSCallback"):
            data.map(lambda x: x, "x", callbacks=wrong)
    for wrong, error in (("1", TypeError), (0, ValueError)):
        with pytest.raises(error, match="step_size"):
            ds.DSCallback(wrong)


class Follow(ds.WaitedDSCallback):
    def __init__(self, log):
        super().__init__()
        self.log = log

    def sync_step_begin(self, train_run_context, ds_run_context):
        self.log.append(("data", ds_run_context.cur_step_num))


class Steps(Callback):
    def __init__(self, log):
        super().__init__()
        self.log = log

    def on_train_step_end(self, run_context):
        self.log.append(("train", run_context.original_args().cur_step_num))


def test_a_map_waits_for_the_training():
    log = []
    follow = Follow(log)
    x = np.zeros((4, 1), np.float32)
    data = ds.NumpySlicesDataset((x, x), ["x", "y"], shuffle=False).map(lambda x: x, "x", callbacks=follow).batch(1)
    net = nn.Dense(1, 1)
    model = Model(net, nn.MSELoss(), nn.SGD(net.trainable_params(), 0.01))
    model.train(2, data, [Steps(log), follow], dataset_sink_mode=False)
    assert [n for kind, n in log if kind == "train"] == list(range(1, 9))
    for n in range(2, 9):  # row n is made after step n - 1
        assert log.index(("data", n)) > log.index(("train", n - 1))

    alone = ds.NumpySlicesDataset(x, "x").map(lambda x: x, "x", callbacks=Follow([]))
    ds.config.set_callback_timeout(1)
    try:
        with pytest.raises(RuntimeError, match=r"waited 1 s for the training.*dataset_sink_mode=False"):
            list(alone.create_tuple_iterator(num_epochs=1))
    finally:
        ds.config.set_callback_timeout(60)


def test_sync_wait():
    class Augment:
        loss = 0

        def preprocess(self, x):
            return x + self.loss

        def update(self, data):
            self.loss = data["loss"]

    augment = Augment()
    data = ds.NumpySlicesDataset(np.arange(5) * 10, "x", shuffle=False)
    data = data.sync_wait("policy", callback=augment.update).map(augment.preprocess, "x")
    count = 0
    for row in data.create_dict_iterator(num_epochs=1, output_numpy=True):
        assert row["x"] == count * 10 + count
        count += 1
        data.sync_update("policy", data={"loss": count})
    assert count == 5
    with pytest.raises(ValueError, match="no sync_wait"):
        data.sync_update("other")
    for bad in (lambda: data.sync_wait("a", 0), lambda: data.sync_update("policy", -1)):
        with pytest.raises(ValueError, match="num_batch"):
            bad()
    with pytest.raises(TypeError, match="callable"):
        data.sync_wait("a", callback=3)
    assert isinstance(ut.dataset.DSCallback(), ds.DSCallback)
