# SPDX-License-Identifier: Apache-2.0
"""Model: exactness, equality over sink sizes and workers, callbacks, counters, stop, evaluation, prediction."""

import re

import numpy as np
import pytest

import undertow as ut
from undertow import Callback, LambdaCallback, LossMonitor, Model, Tensor, TimeMonitor, nn
from undertow import dataset as ds

RNG = np.random.default_rng(5)
X = RNG.uniform(-1, 1, (90, 3)).astype(np.float32)
Y = (X @ np.float32([[2], [-1], [0.5]]) + 3).astype(np.float32)


def data(batch=16, **options):
    return ds.NumpySlicesDataset((X, Y), ["x", "y"], shuffle=options.pop("shuffle", False), **options).batch(batch)


def linear(optimizer=None, metrics=None):
    net = nn.Dense(3, 1, weight_init="ones", bias_init="zeros")
    opt = optimizer(net.trainable_params()) if optimizer else nn.Adam(net.trainable_params(), 0.05)
    return net, opt, Model(net, nn.MSELoss(), opt, metrics=metrics)


class Record(Callback):
    """Every hook with its numbers."""

    def __init__(self):
        super().__init__()
        self.events, self.losses = [], {}

    def note(self, name, context):
        p = context.original_args()
        self.events.append((name, p.cur_epoch_num, p.cur_step_num, p.batch_num))

    def on_train_begin(self, c):
        self.note("begin", c)

    def on_train_epoch_begin(self, c):
        self.note("epoch_begin", c)

    def on_train_step_begin(self, c):
        self.note("step_begin", c)

    def on_train_step_end(self, c):
        self.note("step_end", c)
        p = c.original_args()
        for i, loss in enumerate(p.step_losses):
            self.losses[p.cur_step_num - len(p.step_losses) + 1 + i] = loss

    def on_train_epoch_end(self, c):
        self.note("epoch_end", c)

    def on_train_end(self, c):
        self.note("end", c)


def adam_by_hand(epochs, batch, lr=0.05):
    """Weights, bias and losses of Adam in float64."""
    w, b = np.ones((1, 3)), np.zeros(1)
    moments = [[np.zeros_like(p), np.zeros_like(p)] for p in (w, b)]
    losses, t = [], 0
    for _ in range(epochs):
        for at in range(0, len(X), batch):
            x, y = X[at : at + batch].astype(np.float64), Y[at : at + batch]
            d = x @ w.T + b - y
            losses.append((d * d).mean())
            t += 1
            for p, g, (m, v) in zip((w, b), (2 * (d * x).mean(0, keepdims=True), 2 * d.mean(0)), moments):
                m += 0.1 * (g - m)
                v += 0.001 * (g * g - v)
                p -= lr * np.sqrt(1 - 0.999**t) / (1 - 0.9**t) * m / (np.sqrt(v) + 1e-8)
    return w, b, losses


@pytest.mark.parametrize("mode", [ut.GRAPH_MODE, ut.PYNATIVE_MODE])
@pytest.mark.parametrize("sink, size", [(False, -1), (True, 1), (True, 4), (True, 6), (True, 12), (True, -1)])
def test_training_is_exactly_adam_on_these_batches(sink, size, mode, device):
    ut.set_context(mode=mode)
    net, opt, model = linear()
    record = Record()
    commands = 2 if size == -1 else 12 // size
    model.train(commands, data(), record, dataset_sink_mode=sink, sink_size=size)
    w, b, losses = adam_by_hand(2, 16)
    np.testing.assert_allclose(net.weight.asnumpy(), w, atol=1e-5)
    np.testing.assert_allclose(net.bias.asnumpy(), b, atol=1e-5)
    assert opt.global_step.asnumpy().item() == 12
    assert sorted(record.losses) == list(range(1, 13))
    np.testing.assert_allclose([record.losses[i] for i in range(1, 13)], losses, rtol=1e-4)


class Lenet(nn.Cell):
    """Small, with BatchNorm and Dropout."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 4, 3, pad_mode="valid")
        self.bn = nn.BatchNorm2d(4)
        self.relu = nn.ReLU()
        self.pool = nn.MaxPool2d(2, 2)
        self.flatten = nn.Flatten()
        self.drop = nn.Dropout(p=0.25)
        self.fc = nn.Dense(4 * 5 * 5, 10)

    def construct(self, x):
        x = self.pool(self.relu(self.bn(self.conv(x))))
        return self.fc(self.drop(self.flatten(x)))


IMAGES = RNG.normal(size=(100, 1, 12, 12)).astype(np.float32)
LABELS = RNG.integers(0, 10, 100).astype(np.int32)


def train_lenet(sink, size, workers=1, mode=ut.GRAPH_MODE, steps=21):
    """All state after `steps` steps, and the losses."""
    ut.set_context(mode=mode)
    ut.set_seed(3)
    ds.config.set_seed(3)
    net = Lenet()
    opt = nn.Momentum(net.trainable_params(), 0.05, 0.9)
    source = ds.GeneratorDataset(list(zip(IMAGES, LABELS)), ["x", "y"], num_parallel_workers=workers)
    batches = source.map(lambda x: x * np.float32(0.5), "x", num_parallel_workers=workers).batch(16)
    record = Record()
    model = Model(net, nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean"), opt)
    model.train(3 if size == -1 else steps // size, batches, record, dataset_sink_mode=sink, sink_size=size)
    state = {p.name: p.asnumpy() for p in [*net.get_parameters(), *opt.get_parameters()]}
    return state, [record.losses[i] for i in range(1, steps + 1)]


def test_bits_are_equal_over_sink_sizes_and_workers():
    want, losses = train_lenet(False, -1)
    for sink, size, workers in ((True, 1, 1), (True, 7, 2), (True, 3, 4), (True, 21, 1), (True, -1, 2), (False, -1, 4)):
        state, again = train_lenet(sink, size, workers)
        assert again == losses, (sink, size, workers)
        for name, value in want.items():
            np.testing.assert_array_equal(state[name], value, err_msg=f"{name} {sink} {size} {workers}")


def test_eager_follows_compiled():
    want, losses = train_lenet(True, -1)
    state, eager = train_lenet(False, -1, mode=ut.PYNATIVE_MODE)
    np.testing.assert_allclose(eager, losses, rtol=1e-5, atol=1e-5)
    for name, value in want.items():
        np.testing.assert_allclose(state[name], value, rtol=1e-4, atol=1e-5, err_msg=name)


def test_hooks_and_numbers():
    net, _, model = linear()
    record = Record()
    model.train(2, data(45), record)
    per_epoch = [("step_begin", 1), ("step_end", 1), ("step_begin", 2), ("step_end", 2)]
    want = [("begin", 0, 0, 2)]
    for e in (1, 2):
        want.append(("epoch_begin", e, 2 * e - 2, 2))
        want += [(name, e, 2 * e - 2 + s, 2) for name, s in per_epoch]
        want.append(("epoch_end", e, 2 * e, 2))
    assert record.events == [*want, ("end", 2, 4, 2)]


def test_hooks_and_numbers_with_the_sink():
    _, _, model = linear()
    record = Record()
    model.train(3, data(), record, dataset_sink_mode=True, sink_size=4)
    assert [e for e in record.events if e[0] == "step_end"] == [("step_end", i, 4 * i, 4) for i in (1, 2, 3)]
    assert len(record.events) == 2 + 4 * 3


def test_old_hook_names_and_context_managers():
    seen = []

    class Old(Callback):
        def begin(self, c):
            seen.append("begin")

        def epoch_end(self, c):
            seen.append("epoch_end")

        def step_end(self, c):
            seen.append(c.original_args()["cur_step_num"])

        def end(self, c):
            seen.append("end")

        def __enter__(self):
            seen.append("enter")
            return self

        def __exit__(self, *error):
            seen.append("exit")

    linear()[2].train(1, data(45), [Old()])
    assert seen == ["enter", "begin", 1, 2, "epoch_end", "end", "exit"]


def test_run_context():
    kept = {}

    class Look(Callback):
        def on_train_begin(self, c):
            kept["context"] = c
            c.original_args().own = "mine"

        def on_train_step_end(self, c):
            p = c.original_args()
            assert p is kept["context"].original_args() and p.own == "mine" and p["own"] == "mine"
            assert isinstance(p.net_outputs, Tensor) and p.net_outputs.asnumpy().ndim == 0
            assert p.network is net and p.optimizer is opt and p.get("nothing", 5) == 5 and "batch_num" in p
            assert p.train_dataset.get_dataset_size() == 2 and p.mode == "train" and self in p.list_callback
            assert set(p.keys()) >= {"cur_step_num", "own", "loss_fn", "net_outputs", "epoch_num"}
            with pytest.raises(AttributeError, match="nothing"):
                p.nothing  # noqa: B018
            kept["steps"] = p.cur_step_num

    net, opt, model = linear()
    model.train(1, data(45), Look())
    assert kept["steps"] == 2
    with pytest.raises(RuntimeError, match="over"):
        kept["context"].original_args().cur_step_num  # noqa: B018


def test_monitors_print_mindspores_lines(capsys):
    _, _, model = linear()
    model.train(2, data(45), [LossMonitor(), TimeMonitor()])
    lines = capsys.readouterr().out.splitlines()
    losses = [re.match(r"epoch: (\d+) step: (\d+), loss is [\d.e-]+$", line) for line in lines if "loss is" in line]
    assert [m.groups() for m in losses] == [("1", "1"), ("1", "2"), ("2", "1"), ("2", "2")]
    times = [line for line in lines if line.startswith("Train")]
    assert len(times) == 2 and all(
        re.match(r"Train epoch time: \d+\.\d{3} ms, per step time: \d+\.\d{3} ms$", t) for t in times
    )
    model.train(2, data(45), LossMonitor(), dataset_sink_mode=True)
    assert [line.split(",")[0] for line in capsys.readouterr().out.splitlines()] == [
        "epoch: 1 step: 2",
        "epoch: 2 step: 2",
    ]


def test_lambda_callback():
    seen = []
    steps = LambdaCallback(
        on_train_step_end=lambda c: seen.append(c.original_args().cur_step_num),
        on_eval_end=lambda c: seen.append("eval"),
    )
    _, _, model = linear(metrics={"loss"})
    model.train(1, data(45), steps)
    model.eval(data(45), steps)
    assert seen == [1, 2, "eval"]
    with pytest.raises(TypeError, match="on_train_end"):
        LambdaCallback(on_train_end=3)


@pytest.mark.parametrize("sink", [False, True])
def test_request_stop(sink):
    class Stop(Record):
        def on_train_step_end(self, c):
            super().on_train_step_end(c)
            if c.original_args().cur_step_num >= 3:
                c.request_stop()
                assert c.get_stop_requested()

    stop = Stop()
    linear()[2].train(10, data(), stop, dataset_sink_mode=sink, sink_size=2 if sink else -1)
    assert max(stop.losses) == (4 if sink else 3) and stop.events[-1][0] == "end"


def test_an_error_in_a_callback():
    class Fails(Callback):
        left = 0

        def on_train_step_end(self, c):
            raise LookupError("in the hook")

        def __exit__(self, *error):
            Fails.left += 1

    with pytest.raises(LookupError, match="in the hook") as error:
        linear()[2].train(1, data(), Fails())
    assert error.traceback[-1].name == "on_train_step_end" and Fails.left == 1


def test_counters():
    _, _, model = linear(metrics={"loss"})
    model.train(1, data(15), dataset_sink_mode=True)
    ut.runtime.reset_stats()
    model.train(4, data(15), dataset_sink_mode=True)
    model.train(6, data(15), dataset_sink_mode=True, sink_size=2)
    stats = ut.runtime.stats()
    assert (stats["commands"], stats["steps"], stats["compiles"]) == (10, 36, 0)
    assert stats["allocations"] == 0
    model.eval(data(), dataset_sink_mode=True)
    assert ut.runtime.stats()["commands"] == 11


def test_eval():
    ut.set_context(mode=ut.GRAPH_MODE)
    net, _, model = linear(metrics={"loss"})
    want = float(((X @ net.weight.asnumpy().T + net.bias.asnumpy() - Y) ** 2).mean())
    for batch in (1, 16, 89, 90):
        off, on = (model.eval(data(batch), dataset_sink_mode=sink)["loss"] for sink in (False, True))
        assert off == on == pytest.approx(want, rel=1e-5), batch
    assert net.weight.tolist() == [[1, 1, 1]] and not net.training


def test_metrics():
    class Rows(nn.Metric):
        def __init__(self):
            super().__init__()
            self.clear()

        def clear(self):
            self.shapes = []

        def update(self, output, label):
            self.shapes.append((output.shape, label.shape))

        def eval(self):
            return self.shapes

    net, _, model = linear(metrics={"mean": nn.Loss(), "rows": Rows()})
    for sink in (False, True):
        result = model.eval(data(45), dataset_sink_mode=sink)
        assert result["rows"] == [((45, 1), (45, 1))] * 2 and result["mean"] > 0 and list(result) == ["mean", "rows"]
    accuracy = nn.Accuracy()
    accuracy.clear()
    accuracy.update(Tensor([[0.1, 0.9], [0.8, 0.2], [0.3, 0.7]]), Tensor([1, 0, 0]))
    assert accuracy.eval() == pytest.approx(2 / 3)


def test_predict():
    net, _, model = linear()
    for mode in (ut.GRAPH_MODE, ut.PYNATIVE_MODE):
        ut.set_context(mode=mode)
        np.testing.assert_allclose(model.predict(Tensor(X)).asnumpy(), X.sum(1, keepdims=True), rtol=1e-5)
    with pytest.raises(TypeError, match="input 0"):
        model.predict(X)


def test_network_that_computes_its_loss():
    class WithLoss(nn.Cell):
        def __init__(self):
            super().__init__()
            self.fc = nn.Dense(3, 1)

        def construct(self, x, y, weight):
            return (((self.fc(x) - y) ** 2) * weight).mean()

    net = WithLoss()
    three = ds.NumpySlicesDataset((X, Y, np.ones_like(Y)), ["x", "y", "w"], shuffle=False).batch(30)
    record = Record()
    Model(net, optimizer=nn.SGD(net.trainable_params(), 0.1)).train(5, three, record, dataset_sink_mode=True)
    assert record.losses[15] < record.losses[1]


def test_a_function_as_loss():
    net = nn.Dense(3, 1)
    Model(net, lambda out, y: ((out - y) ** 2).mean(), nn.SGD(net.trainable_params(), 0.1)).train(1, data())


def test_initial_epoch():
    record = Record()
    linear()[2].train(3, data(45), record, initial_epoch=1)
    assert [e[1] for e in record.events if e[0] == "epoch_begin"] == [2, 3]


def make_model(**options):
    net = nn.Dense(3, 1)
    return Model(net, nn.MSELoss(), nn.SGD(net.trainable_params()), **options)


@pytest.mark.parametrize(
    "call, error, words",
    [
        (lambda: Model(3), TypeError, "network"),
        (lambda: Model(nn.ReLU(), optimizer=3), TypeError, "optimizer"),
        (lambda: make_model(metrics=["loss"]), TypeError, "set"),
        (lambda: make_model(metrics={"nonsense"}), ValueError, "nonsense"),
        (lambda: make_model(unknown=1), ValueError, "unknown"),
        (lambda: Model(nn.ReLU(), metrics={"loss"}), ValueError, "loss_fn"),
        (lambda: make_model().train(0, data()), ValueError, "epoch"),
        (lambda: make_model().train(1.5, data()), TypeError, "epoch"),
        (lambda: make_model().train(1, X), TypeError, "Dataset"),
        (lambda: make_model().train(1, data(), callbacks=3), TypeError, "Callback"),
        (lambda: make_model().train(1, data(), [3]), TypeError, "Callback"),
        (lambda: make_model().train(1, data(), dataset_sink_mode=1), TypeError, "dataset_sink_mode"),
        (lambda: make_model().train(1, data(), dataset_sink_mode=True, sink_size=0), ValueError, "sink_size"),
        (lambda: make_model().train(1, ds.NumpySlicesDataset((X, Y, Y)).batch(4)), ValueError, "3"),
        (lambda: make_model().eval(data()), ValueError, "metrics"),
        (lambda: nn.SGD([]), ValueError, "param"),
        (lambda: nn.SGD(3), TypeError, "iterable"),
        (lambda: nn.SGD([Tensor([1.0])]), TypeError, "Parameter"),
        (lambda: nn.Momentum(nn.Dense(1, 1).trainable_params(), -0.1, 0.9), ValueError, "learning_rate"),
        (lambda: nn.SGD(nn.Dense(1, 1).trainable_params() * 2), RuntimeError, "twice"),
        (lambda: nn.Adam(nn.Dense(1, 1).trainable_params(), "fast"), TypeError, "learning_rate"),
        (lambda: ut.set_context(device_target="Quantum"), ut.DeviceError, "Quantum"),
        (lambda: ut.set_context(nonsense=1), ValueError, "nonsense"),
    ],
)
def test_bad_arguments(call, error, words):
    with pytest.raises(error, match=words):
        call()


def test_shape_errors_name_cell_and_shapes_before_anything_changes():
    net = nn.SequentialCell(nn.Dense(3, 4), nn.Dense(5, 1))
    model = Model(net, nn.MSELoss(), nn.SGD(net.trainable_params()))
    before = [p.asnumpy() for p in net.get_parameters()]
    for sink in (False, True):
        with pytest.raises(ut.ShapeError, match=r"(?s)1.*\(16, 4\)"):
            model.train(1, data(), dataset_sink_mode=sink)
    for p, value in zip(net.get_parameters(), before):
        np.testing.assert_array_equal(p.asnumpy(), value)


def test_python_if_on_a_traced_value():
    class Branches(nn.Cell):
        def construct(self, x):
            if x.sum() > 0:
                return x
            return -x

    ut.set_context(mode=ut.GRAPH_MODE)
    with pytest.raises(ut.TraceError, match=r"(?s)test_train.py:\d+.*ops.where"):
        Model(Branches()).predict(Tensor([1.0]))
    ut.set_context(mode=ut.PYNATIVE_MODE)
    assert Model(Branches()).predict(Tensor([-1.0])).item() == 1
