# SPDX-License-Identifier: Apache-2.0
"""Faults that users have reported for systems of this kind, and what must happen instead."""

import traceback

import numpy as np
import pytest

import undertow as ut
from undertow import Callback, LossMonitor, Model, Tensor, nn, ops
from undertow import dataset as ds

SINK = pytest.mark.parametrize("sink", [False, True])
MODES = pytest.mark.parametrize("mode", [ut.GRAPH_MODE, ut.PYNATIVE_MODE])


def line(n=10):
    x = np.arange(n, dtype=np.float32).reshape(-1, 1)
    return x, 2 * x


def linear(**options):
    net = nn.Dense(1, 1, weight_init="zeros", bias_init="zeros")
    return net, Model(net, nn.MSELoss(), nn.SGD(net.trainable_params(), 0.001), **options)


def rows_of(dataset, epochs):
    it = dataset.create_tuple_iterator(num_epochs=epochs, output_numpy=True)
    return [[row[0].item() for row in it] for _ in range(epochs)]


# ---- Evaluation weighs by rows.


@SINK
@pytest.mark.parametrize("batch", [1, 2, 3])
def test_eval_weighs_by_rows(sink, batch):
    class Given(nn.Cell):
        """The data are the outputs."""

        def construct(self, x):
            return x

    class Loss(nn.LossBase):
        def construct(self, out, label):
            return self.get_loss(out[:, 2])

    # Losses 10, 10, 9; the first two rows are classified right.
    out = np.array([[0, 1, 10], [1, 0, 10], [1, 0, 9]], np.float32)
    label = np.array([2, 2, 1], np.int32)
    dataset = ds.NumpySlicesDataset((out, label), shuffle=False).batch(batch)
    result = Model(Given(), Loss(), metrics={"loss", "accuracy"}).eval(dataset, dataset_sink_mode=sink)
    assert result["loss"] == pytest.approx(29 / 3, rel=1e-6) and result["accuracy"] == pytest.approx(2 / 3)


# ---- Sources that are used up.


class Spent:
    """__iter__ returns itself and never starts over."""

    def __init__(self):
        self.i = -1

    def __iter__(self):
        return self

    def __next__(self):
        self.i += 1
        if self.i >= 5:
            raise StopIteration
        return np.float32([self.i])


def five():
    for i in range(5):
        yield np.float32([i])


def test_a_generator_function_gives_every_epoch():
    assert rows_of(ds.GeneratorDataset(five, ["x"]), 2) == [[0, 1, 2, 3, 4]] * 2


@pytest.mark.parametrize(
    "make, name", [(five, "five"), (Spent, "Spent"), (lambda: zip(five()), "zip"), (lambda: map(abs, five()), "map")]
)
def test_a_used_up_source_is_an_error_in_the_second_epoch(make, name):
    it = ds.GeneratorDataset(make(), ["x"]).create_tuple_iterator(num_epochs=2, output_numpy=True)
    assert [row[0].item() for row in it] == [0, 1, 2, 3, 4]
    with pytest.raises(ut.DataError, match=name):
        list(it)


@SINK
@pytest.mark.parametrize("make", [five, Spent])
def test_training_on_a_used_up_source(sink, make):
    def pairs(source):
        for x in source:
            yield x, 2 * x

    dataset = ds.GeneratorDataset(pairs(make()), ["x", "y"]).batch(2)
    _, model = linear()
    with pytest.raises((ut.DataError, ValueError)):
        model.train(2, dataset, dataset_sink_mode=sink, sink_size=3 if sink else -1)


def test_shuffle_of_a_generator_really_shuffles():
    def hundred():
        yield from (np.int32(i) for i in range(100))

    first, second = rows_of(ds.GeneratorDataset(hundred, ["x"], shuffle=True), 2)
    assert sorted(first) == sorted(second) == list(range(100)) and list(range(100)) != first != second


# ---- Nothing to train on.


def empty_sets():
    x, y = line(3)
    slices = ds.NumpySlicesDataset((x, y), ["x", "y"])
    return {
        "batch larger than the data": slices.batch(4, drop_remainder=True),
        "no rows": ds.GeneratorDataset(lambda: iter(()), ["x", "y"]).batch(2),
        "empty list": ds.GeneratorDataset([], ["x", "y"]).batch(2),
        "all filtered away": slices.filter(lambda a, b: False).batch(2),
    }


@SINK
@pytest.mark.parametrize("name", empty_sets())
def test_nothing_to_train_on(name, sink):
    net, model = linear(metrics={"loss"})
    for call in (model.train, model.eval):
        with pytest.raises(ValueError, match="0 batches"):
            args = (1, empty_sets()[name]) if call == model.train else (empty_sets()[name],)
            call(*args, dataset_sink_mode=sink)
    assert net.weight.item() == 0


# ---- Errors of workers.


class Special(Exception):
    """Two arguments, so that it cannot be made anew from its text."""

    def __init__(self, a, b):
        super().__init__(f"special {a} {b}")
        self.a, self.b = a, b


class Breaks:
    def __len__(self):
        return 8

    def __getitem__(self, i):
        if i == 3:
            raise Special("p", "q")
        return np.float32([i]), np.float32([i])


def broken_map(x):
    if x == 3:
        raise Special("p", "q")
    return x


def breaking_sets():
    x, y = line(8)
    return {
        "source": (ds.GeneratorDataset(Breaks(), ["x", "y"], shuffle=False, num_parallel_workers=2), "__getitem__"),
        "map": (
            ds.NumpySlicesDataset((x, y), ["x", "y"], shuffle=False).map(broken_map, num_parallel_workers=2),
            "broken_map",
        ),
    }


@pytest.mark.parametrize("name", breaking_sets())
def test_a_workers_error_keeps_type_text_and_line(name):
    dataset, function = breaking_sets()[name]
    for _ in range(2):  # a new iterator works again, up to the same row
        it = dataset.create_tuple_iterator(num_epochs=1, output_numpy=True)
        assert [next(it)[0].item() for _ in range(3)] == [0, 1, 2]
        with pytest.raises(Special, match="special p q") as error:
            next(it)
        assert (error.value.a, error.value.b) == ("p", "q")
        assert function in [frame.name for frame in traceback.extract_tb(error.value.__traceback__)]


@SINK
@MODES
@pytest.mark.parametrize("name", breaking_sets())
def test_a_workers_error_ends_training(name, sink, mode):
    ut.set_context(mode=mode)
    net, model = linear()
    with pytest.raises(Special, match="special p q"):
        model.train(1, breaking_sets()[name][0].batch(1), dataset_sink_mode=sink)
    x, y = line()
    model.train(1, ds.NumpySlicesDataset((x, y)).batch(5), dataset_sink_mode=sink)
    assert np.isfinite(net.weight.asnumpy()).all()


def test_interrupting_errors_pass_too():
    def stops():
        yield np.float32([1])
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        list(ds.GeneratorDataset(stops, ["x"]).create_tuple_iterator(num_epochs=1))


# ---- Odd memory from sources (tensors: test_tensor.py).


def test_odd_memory_in_rows():
    base = np.arange(6, dtype=np.float32).reshape(2, 3)
    frozen = base.copy()
    frozen.flags.writeable = False
    rows = [base[:, ::-1], base.T.copy().T, np.asfortranarray(base), base.astype(">f4"), frozen]
    for source in (rows, lambda: iter(rows)):
        got = [
            row[0]
            for row in ds.GeneratorDataset(source, ["x"], shuffle=False).create_tuple_iterator(
                num_epochs=1, output_numpy=True
            )
        ]
        np.testing.assert_array_equal(got, rows)


# ---- Labels out of range.


def classify(sink, mode, device, labels, dtype):
    ut.set_context(mode=mode, device_target=device)
    net = nn.Dense(2, 3, weight_init="zeros", bias_init="zeros")
    opt = nn.Momentum(net.trainable_params(), 0.1, 0.9)
    loss = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
    data = ds.NumpySlicesDataset((np.ones((len(labels), 2), np.float32), np.array(labels, dtype)), shuffle=False).batch(
        2
    )
    losses = []

    class Keep(Callback):
        def on_train_step_end(self, c):
            losses.extend(c.original_args().step_losses)

    model = Model(net, loss, opt)
    return net, opt, losses, lambda: model.train(1, data, Keep(), dataset_sink_mode=sink)


@SINK
@MODES
@pytest.mark.parametrize("dtype", [np.int32, np.int64])
@pytest.mark.parametrize("wrong", [3, -1, 2**31 - 1])
def test_labels_out_of_range(sink, mode, dtype, wrong, device):
    net, _, _, run = classify(sink, mode, device, [0, wrong], dtype)
    with pytest.raises(IndexError, match=rf"{wrong}.*row 1.*0 to 2"):
        run()
    assert not net.weight.asnumpy().any()


@SINK
@MODES
def test_good_labels(sink, mode, device):
    _, _, losses, run = classify(sink, mode, device, [0, 2], np.int64)
    run()
    assert losses == [pytest.approx(1.0986123, rel=1e-6)]


@SINK
@MODES
def test_a_failed_step_changes_nothing(sink, mode):
    """Batch 5 of 6 has a wrong label: everything is as after batch 4."""
    labels = [0, 1, 2, 0, 1, 2, 0, 1, 2, 7, 0, 1]
    net, opt, _, run = classify(sink, mode, "CPU", labels, np.int32)
    with pytest.raises(IndexError, match="7"):
        run()
    good_net, good_opt, _, good = classify(sink, mode, "CPU", labels[:8], np.int32)
    good()
    pairs = zip(
        [*net.get_parameters(), *opt.get_parameters()], [*good_net.get_parameters(), *good_opt.get_parameters()]
    )
    for p, want in pairs:
        np.testing.assert_array_equal(p.asnumpy(), want.asnumpy(), err_msg=p.name)


def test_labels_out_of_range_in_functions():
    logits = Tensor(np.zeros((2, 3), np.float32))
    for f in (ops.cross_entropy, ut.jit(ops.cross_entropy)):
        with pytest.raises(IndexError, match="3"):
            f(logits, Tensor(np.array([0, 3], np.int32)))


# ---- BatchNorm.


@pytest.mark.parametrize("compiled", [False, True])
def test_batch_norm_statistics(compiled, device):
    bn = nn.BatchNorm2d(1).set_train()
    x = Tensor(np.array([1, 2, 3, 4], np.float32).reshape(4, 1, 1, 1))
    out = (ut.jit(lambda t: bn(t)) if compiled else bn)(x).asnumpy().ravel()
    np.testing.assert_allclose(out, (np.array([1, 2, 3, 4]) - 2.5) / np.sqrt(1.25 + 1e-5), rtol=1e-5)
    assert bn.moving_mean.item() == pytest.approx(0.25) and bn.moving_variance.item() == pytest.approx(
        1.0666667, rel=1e-6
    )


@SINK
@MODES
def test_batch_norm_on_one_value(sink, mode):
    ut.set_context(mode=mode)
    x = np.random.default_rng(0).normal(size=(5, 3)).astype(np.float32)
    net = nn.SequentialCell(nn.BatchNorm1d(3), nn.Dense(3, 1))
    model = Model(net, nn.MSELoss(), nn.SGD(net.trainable_params(), 0.1), metrics={"loss"})
    data = ds.NumpySlicesDataset((x, x[:, :1]), shuffle=False)
    with pytest.raises(ValueError, match=r"(?s)BatchNorm1d.*\(1, 3\)"):
        model.train(1, data.batch(4), dataset_sink_mode=sink)
    statistics = [net[0].moving_mean.asnumpy(), net[0].moving_variance.asnumpy()]
    assert all(np.isfinite(s).all() for s in statistics)
    assert np.isfinite(model.eval(data.batch(1), dataset_sink_mode=sink)["loss"])
    np.testing.assert_array_equal(statistics, [net[0].moving_mean.asnumpy(), net[0].moving_variance.asnumpy()])


# ---- Empty tensors.


@pytest.mark.parametrize("compiled", [False, True])
def test_empty_tensors(compiled, device):
    def run(f, *args):
        return (ut.jit(f) if compiled else f)(*args)

    x = Tensor(np.zeros((0, 5), np.float32))
    assert np.isnan(run(ops.mean, x).item()) and run(ops.sum, x).item() == 0
    for f in (ops.amax, ops.argmin):
        with pytest.raises(ValueError):
            run(f, x)
    dense = nn.Dense(5, 3)
    assert run(lambda t: dense(t), x).shape == (0, 3)
    grads = run(ut.grad(lambda t: dense(t).sum(), None, dense.trainable_params()), x)
    assert [g.shape for g in grads] == [(3, 5), (3,)] and not any(g.asnumpy().any() for g in grads)
    conv, image = nn.Conv2d(3, 2, 3), Tensor(np.zeros((0, 3, 8, 8), np.float32))
    assert run(lambda t: conv(t), image).shape == (0, 2, 8, 8)
    gx, (gw,) = run(ut.grad(lambda t: conv(t).sum(), 0, conv.trainable_params()), image)
    assert gx.shape == (0, 3, 8, 8) and gw.shape == (2, 3, 3, 3) and not gw.asnumpy().any()
    assert run(lambda t: ops.concat((t, t)), x).shape == (0, 5)
    assert run(lambda t: ops.dropout(t, 0.5), x).shape == (0, 5)


# ---- Losses that are not finite.


@SINK
@MODES
def test_a_loss_that_is_not_finite(sink, mode):
    ut.set_context(mode=mode)
    x, y = line(6)
    y[4] = np.nan
    net, model = linear()
    data = ds.NumpySlicesDataset((x, y), shuffle=False).batch(2)
    with pytest.raises(ValueError, match=r"(?i)epoch.* 1.*step.* 3.*nan"):
        model.train(1, data, LossMonitor(0), dataset_sink_mode=sink)
    assert np.isfinite(net.weight.item()) and net.weight.item() != 0
    model.train(1, data, dataset_sink_mode=sink)  # nobody asked: it is recorded, not refused
    assert np.isnan(net.weight.item())
