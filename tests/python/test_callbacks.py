# SPDX-License-Identifier: Apache-2.0
"""Model.fit, callbacks that act on a run, checkpoints of a run, and metrics against NumPy."""

import copy

import numpy as np
import pytest
from undertow.dataset import GeneratorDataset
from undertow.train.callback import _CallbackManager, _InternalCallbackParam

import undertow as ut
from undertow import Tensor, nn
from undertow.train import (
    EarlyStopping,
    History,
    LearningRateScheduler,
    ModelCheckpoint,
    ReduceLROnPlateau,
    RunContext,
    metrics,
)

ROWS = [(np.array([i], "f"), np.array([2 * i], "f")) for i in range(6)]


def data(rows=ROWS, batch=2):
    return GeneratorDataset(rows, ["x", "y"], shuffle=False).batch(batch)


def model(rate=0.01, wanted=("loss", "mae")):
    net = nn.Dense(1, 1, weight_init="zeros", bias_init="zeros")
    opt = nn.SGD(net.trainable_params(), rate)
    return ut.Model(net, nn.MSELoss(), opt, metrics=set(wanted)), net, opt


class Record(ut.Callback):
    """Hooks in order, and what the evaluation gave."""

    def __init__(self):
        super().__init__()
        self.calls, self.results = [], []

    def on_train_epoch_begin(self, run_context):
        self.calls.append("epoch")

    def on_train_epoch_end(self, run_context):
        params = run_context.original_args()
        self.calls.append("end")
        self.results.append((params.cur_epoch_num, dict(params.eval_results), params.mode, params.batch_num))

    def on_eval_begin(self, run_context):
        self.calls.append("eval")

    def on_eval_step_end(self, run_context):
        self.calls.append(run_context.original_args().mode)


@pytest.mark.parametrize("sink", [False, True])
def test_fit(sink):
    m, net, _ = model()
    seen, history = Record(), History()
    m.fit(3, data(), data(ROWS[:5], 2), 2, [seen, history], dataset_sink_mode=sink, valid_dataset_sink_mode=sink)
    assert [c for c in seen.calls if c != "eval"].count("end") == 3
    assert seen.calls.index("eval") > seen.calls.index("end"), "the first evaluation comes after epoch 2"
    assert [bool(r[1]) for r in seen.results] == [False, True, False]
    assert all(r[2:] == ("train", 3) for r in seen.results)
    results = seen.results[1][1]
    assert set(results) == {"loss", "mae", "eval_loss"}
    assert results["loss"] == pytest.approx(results["eval_loss"])
    assert history.epoch == {"epoch": [1, 2, 3]} and len(history.history["net_output"]) == 3
    assert history.history["mae"] == [results["mae"]]
    w, b = net.weight.item(), net.bias.item()
    final = m.eval(data(ROWS[:5], 2))
    d = [w * x.item() + b - y.item() for x, y in ROWS[:5]]
    assert final["mae"] == pytest.approx(np.abs(d).mean(), rel=1e-5)
    assert final["loss"] == pytest.approx(np.square(d).mean(), rel=1e-5)


def test_fit_at_epochs_and_errors():
    m, _, _ = model()
    seen = Record()
    m.fit(4, data(), data(), [1, 4], seen)
    assert [e for e, results, *_ in seen.results if results] == [1, 4]
    with pytest.raises(TypeError, match="valid_frequency"):
        m.fit(1, data(), data(), "often")
    with pytest.raises(ValueError, match="valid_frequency"):
        m.fit(1, data(), data(), 0)
    plain = ut.Model(nn.Dense(1, 1), nn.MSELoss(), nn.SGD(nn.Dense(1, 1).trainable_params()))
    with pytest.raises(ValueError, match="metrics"):
        plain.fit(1, data(), data())


def test_early_stopping_ends_a_run():
    m, net, _ = model(rate=0.0)  # nothing changes, so nothing improves
    seen = Record()
    stop = EarlyStopping(patience=2)
    m.fit(9, data(), data(), callbacks=[stop, seen])
    assert len(seen.results) == 3 and stop.stopped_epoch == 3
    m2, _, _ = model()
    m2.train(3, data(), [EarlyStopping(monitor="loss", patience=1)], dataset_sink_mode=True)
    with pytest.raises(ValueError, match="'accuracy'.*loss, loss, mae, eval_loss|'accuracy'"):
        m2.fit(1, data(), data(), callbacks=EarlyStopping(monitor="accuracy"))


def drive(callback, name, values, prepare=lambda params: None):
    """A program that calls the hooks itself: (epochs run, context)."""
    params = _InternalCallbackParam()
    prepare(params)
    context = RunContext(params)
    with _CallbackManager([callback]) as manager:
        manager.on_train_begin(context)
        for i, value in enumerate(values):
            params.eval_results = {name: value}
            params.cur_epoch_num = i + 1
            manager.on_train_epoch_end(context)
            if context.get_stop_requested():
                break
        manager.on_train_end(context)
    return params.cur_epoch_num, context


@pytest.mark.parametrize(
    "options, values, stop",
    [
        ({"patience": 2}, [1.0, 0.9, 1.0, 0.95], 4),
        ({"patience": 1, "min_delta": 0.2}, [1.0, 0.9], 2),
        ({"patience": 2, "mode": "max"}, [0.1, 0.2, 0.1, 0.1], 4),
        ({"patience": 2, "baseline": 0.5}, [1.0, 0.9, 0.8], 2),  # better each time, but never than the baseline
        ({"patience": 2}, [1.0, 0.0, 0.5, 0.4], 4),  # 0 is a value
        ({"patience": 2}, [1.0, float("nan"), float("nan")], 3),
    ],
)
def test_early_stopping(options, values, stop):
    epoch, context = drive(EarlyStopping(**options), "eval_loss", values)
    assert epoch == stop and context.get_stop_requested()


def test_early_stopping_restores(capsys):
    net = nn.Dense(1, 1, weight_init="zeros", has_bias=False)
    stop = EarlyStopping(patience=1, restore_best_weights=True, verbose=True)
    params = _InternalCallbackParam()
    params.train_network = net
    context = RunContext(params)
    stop.on_train_begin(context)
    for epoch, value in enumerate([1.0, 0.5, 0.7], 1):
        net.weight.set_data(Tensor(np.full((1, 1), epoch, "f")))
        params.eval_results, params.cur_epoch_num = {"eval_loss": value}, epoch
        stop.on_train_epoch_end(context)
    stop.on_train_end(context)
    assert net.weight.item() == 2
    assert capsys.readouterr().out.splitlines() == [
        "Restoring model weights from the end of the best epoch.",
        "Epoch 00003: early stopping",
    ]


def test_reduce_lr_on_plateau(capsys):
    opt = nn.SGD(nn.Dense(1, 1).trainable_params(), 1.0)
    rates = []

    class Watch(ReduceLROnPlateau):
        def on_train_epoch_end(self, run_context):
            super().on_train_epoch_end(run_context)
            rates.append(opt.get_lr().item())

    plateau = Watch(patience=2, cooldown=2, min_lr=0.05, verbose=True)
    drive(plateau, "eval_loss", [1.0, 1.1, 1.0, 1.0, 1.1, 1.2], lambda p: setattr(p, "optimizer", opt))
    assert rates == pytest.approx([1, 1, 0.1, 0.1, 0.1, 0.05])
    assert capsys.readouterr().out.splitlines()[0] == "Epoch 00003: ReduceLROnPlateau reducing learning rate to 0.1."
    many = nn.SGD(nn.Dense(1, 1).trainable_params(), [0.1, 0.2])
    with pytest.raises(ValueError, match="one number"):
        drive(ReduceLROnPlateau(), "eval_loss", [1.0], lambda p: setattr(p, "optimizer", many))


@pytest.mark.parametrize("sink", [False, True])
def test_learning_rate_between_commands(sink):
    """What a callback sets is what the next command uses, sunk too."""
    m, net, opt = model(rate=0.5)
    seen = []

    class Watch(ut.Callback):
        def on_train_step_end(self, run_context):
            seen.extend(run_context.original_args().step_learning_rates)

    halve = LearningRateScheduler(lambda rate, step: rate / 2)
    m.train(3, data(), [Watch(), halve], dataset_sink_mode=sink)
    steps = [0.5 / 2 ** (i // 3 if sink else i) for i in range(9)]
    assert seen == pytest.approx(steps)
    assert opt.get_lr().item() == pytest.approx(steps[-1] / 2)


@pytest.mark.parametrize("make, error", [
    (lambda: EarlyStopping(mode="up"), ValueError),
    (lambda: EarlyStopping(patience=-1), ValueError),
    (lambda: ReduceLROnPlateau(factor=1.0), ValueError),
    (lambda: ReduceLROnPlateau(cooldown=-1), ValueError),
    (lambda: LearningRateScheduler(0.1), TypeError),
    (lambda: RunContext(5), TypeError),
    (lambda: _CallbackManager([None]), TypeError),
    (lambda: ModelCheckpoint(123), ValueError),
    (lambda: ModelCheckpoint(config=1), TypeError),
    (lambda: ut.CheckpointConfig(0, 0, 0, 0), ValueError),
    (lambda: ut.CheckpointConfig(save_checkpoint_steps=-1), ValueError),
])  # fmt: skip
def test_bad_arguments(make, error):
    with pytest.raises(error):
        make()


def test_model_checkpoint(tmp_path):
    m, net, opt = model()
    config = ut.CheckpointConfig(save_checkpoint_steps=2, keep_checkpoint_max=2, append_info=["step_num", {"tag": 7}])
    saver = ModelCheckpoint("run", str(tmp_path), config)
    m.train(2, data(), [saver])
    names = sorted(p.name for p in tmp_path.iterdir())
    assert names == ["run-2_1.ckpt", "run-2_3.ckpt"]
    loaded = ut.load_checkpoint(saver.latest_ckpt_file_name)
    assert loaded["step_num"].item() == 6 and loaded["tag"].item() == 7
    np.testing.assert_array_equal(loaded["weight"].asnumpy(), net.weight.asnumpy())
    assert loaded["global_step"].tolist() == [6]
    again = ModelCheckpoint("run", str(tmp_path), config)
    m.train(1, data(), [again], dataset_sink_mode=True)
    assert again.latest_ckpt_file_name.endswith("run_1-1_3.ckpt")
    named = ModelCheckpoint(lambda p: f"at{p.cur_step_num}", lambda p: str(tmp_path / "own"))
    m.train(1, data(), [named])
    assert (tmp_path / "own" / "at3.ckpt").exists()


def test_build_compiles_ahead():
    m, net, _ = model()
    ut.runtime.reset_stats()
    m.build(data(), data())
    before = ut.runtime.stats()["compiles"]
    assert before > 0 and ut.runtime.stats()["steps"] == 0 and net.weight.item() == 0
    m.train(1, data(), dataset_sink_mode=True)
    assert ut.runtime.stats()["compiles"] == before, "training found its program"


def test_train_network_of_a_model():
    m, net, opt = model()
    loss = m.train_network(Tensor(ROWS[1][0][None]), Tensor(ROWS[1][1][None]))
    assert loss.item() == 4 and net.weight.item() != 0 and opt.global_step.item() == 1
    assert set(m.train_network.parameters_dict()) >= {"weight", "bias", "global_step"}


# ---- Metrics

RNG = np.random.default_rng(3)
SCORES = RNG.normal(size=(12, 4)).astype("f")
LABELS = RNG.integers(0, 4, 12)
PROBS = np.exp(SCORES) / np.exp(SCORES).sum(1, keepdims=True)
BEST = SCORES.argmax(1)


def rates(kind):
    hits = np.array([((c == BEST) & (c == LABELS)).sum() for c in range(4)], "d")
    predicted, actual = np.bincount(BEST, minlength=4), np.bincount(LABELS, minlength=4)
    if kind == "precision":
        return hits / np.maximum(predicted, 1e-300)
    if kind == "recall":
        return hits / np.maximum(actual, 1e-300)
    return 2 * hits / np.maximum(predicted + actual, 1e-300)


RANKS = (-SCORES).argsort(1)
CONFUSION = np.zeros((4, 4))
np.add.at(CONFUSION, (LABELS, BEST), 1)

METRICS = [
    ("accuracy", lambda: nn.Accuracy(), (BEST == LABELS).mean()),
    ("precision", lambda: nn.Precision(), rates("precision")),
    ("recall", lambda: nn.Recall(), rates("recall")),
    ("F1", lambda: nn.F1(), rates("F1")),
    ("top_1_accuracy", lambda: nn.Top1CategoricalAccuracy(), (BEST == LABELS).mean()),
    ("top 2", lambda: nn.TopKCategoricalAccuracy(2), (RANKS[:, :2] == LABELS[:, None]).any(1).mean()),
    ("perplexity", lambda: nn.Perplexity(), np.exp(-np.log(PROBS[range(12), LABELS]).mean())),
    ("confusion", lambda: nn.ConfusionMatrix(4), CONFUSION),
]


@pytest.mark.parametrize("name, make, want", METRICS, ids=[m[0] for m in METRICS])
def test_metric_alone(name, make, want):
    metric = make()
    scores = PROBS if name == "perplexity" else SCORES
    for _ in range(2):  # clear() forgets
        metric.clear()
        with pytest.raises(RuntimeError):
            metric.eval()
        for at in (slice(0, 5), slice(5, 12)):
            metric.update(Tensor(scores[at]), Tensor(LABELS[at].astype("i")))
        np.testing.assert_allclose(metric.eval(), want, rtol=1e-5)
    if name in ("precision", "recall", "F1"):
        assert metric.eval(True) == pytest.approx(np.mean(want))
    if name != "perplexity":
        one_hot = np.eye(4, dtype="f")[LABELS]
        metric.clear()
        metric.update(Tensor(scores), Tensor(one_hot if name != "confusion" else LABELS))
        np.testing.assert_allclose(metric.eval(), want, rtol=1e-5)


class Fixed(nn.Cell):
    """Gives its input as logits."""

    def construct(self, x):
        return x


@pytest.mark.parametrize("sink", [False, True])
def test_metrics_in_a_model(sink):
    rows = list(zip(SCORES, LABELS.astype("i")))
    given = {name: make() for name, make, _ in METRICS if name != "perplexity"}
    m = ut.Model(Fixed(), nn.SoftmaxCrossEntropyWithLogits(True, "mean"), metrics=given)
    results = m.eval(GeneratorDataset(rows, ["x", "y"], shuffle=False).batch(5), dataset_sink_mode=sink)
    for name, _, want in METRICS:
        if name in results:
            np.testing.assert_allclose(results[name], want, rtol=1e-5, err_msg=name)


def test_errors_and_more_dimensions():
    y, label = RNG.normal(size=(4, 3)), RNG.normal(size=(4, 3))
    for metric, want in ((nn.MAE(), np.abs(y - label).sum() / 4), (nn.MSE(), np.square(y - label).sum() / 4)):
        metric.update(Tensor(y), Tensor(label))
        assert metric.eval() == pytest.approx(want)
    images = RNG.normal(size=(2, 3, 4)).astype("f")
    classes = RNG.integers(0, 3, (2, 4))
    assert nn.Accuracy()(Tensor(images), Tensor(classes)) == pytest.approx((images.argmax(1) == classes).mean())
    many = (RNG.random((5, 3)) > 0.5).astype("f")
    other = many.copy()
    other[0, 0] = 1 - other[0, 0]
    assert nn.Accuracy("multilabel")(Tensor(many), Tensor(other)) == pytest.approx(0.8)
    with pytest.raises(ValueError, match="shape"):
        nn.Accuracy().update(Tensor(many), Tensor(np.zeros((4,), "i")))


class Half(nn.Accuracy):
    """A C++ metric that Python changes must be asked in Python."""

    def eval(self):
        return super().eval() / 2


class OfLoss(nn.Metric):
    """Sees what set_indexes chooses."""

    def clear(self):
        self.seen = []

    @metrics.rearrange_inputs
    def update(self, *inputs):
        self.seen.append([i.shape for i in inputs])

    def eval(self):
        return len(self.seen)


def test_user_metrics():
    rows = list(zip(SCORES, LABELS.astype("i")))
    given = {"half": Half(), "own": OfLoss(), "chosen": nn.Accuracy().set_indexes([1, 2])}
    m = ut.Model(Fixed(), nn.SoftmaxCrossEntropyWithLogits(True, "mean"), metrics=given)
    results = m.eval(GeneratorDataset(rows, ["x", "y"], shuffle=False).batch(6))
    assert results["half"] == pytest.approx((BEST == LABELS).mean() / 2)
    assert results["chosen"] == pytest.approx((BEST == LABELS).mean())
    assert results["own"] == 2
    with pytest.raises(ValueError, match="indexes"):
        nn.Accuracy().set_indexes(1)
    assert "accuracy" in metrics.names() and metrics.get_metrics_factory()["mae"] is nn.MAE
    with pytest.raises(KeyError, match="speed"):
        metrics.get_metric_fn("speed")
    with pytest.raises(NotImplementedError, match="eval"):
        nn.Metric().eval()


def test_parameters_of_a_run_copy():
    """History of a run stays readable after it."""
    m, _, _ = model()
    history = History()
    m.fit(2, data(), data(), callbacks=[history])
    assert copy.copy(history.history).keys() == {"net_output", "loss", "mae"}
