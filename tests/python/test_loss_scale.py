# SPDX-License-Identifier: Apache-2.0
"""Loss scaling in Model: the rule of the scale over thousands of steps, skipped steps, managers of users."""

import numpy as np
import pytest
from undertow.amp import DynamicLossScaleManager, FixedLossScaleManager

import undertow as ms
from undertow import amp, dataset, nn, ops

INF = np.float32(np.inf)


class Dot(nn.Cell):
    """loss = sum(x * w): the gradient of w is x."""

    def __init__(self, value=(1.0, -2.0), dtype=ms.float32):
        super().__init__()
        self.w = ms.Parameter(ms.Tensor(np.array(value), dtype), name="w")

    def construct(self, x):
        return ops.sum(x * self.w)


def rows(values):
    """One step a row; a row is the gradient."""
    data = np.asarray(values, np.float32)
    return dataset.NumpySlicesDataset((data,), ["x"], shuffle=False)


class Records(ms.Callback):
    """What the steps did, sunk or not."""

    def __init__(self):
        super().__init__()
        self.losses, self.scales, self.skipped, self.rates = [], [], [], []

    def step_end(self, run_context):
        params = run_context.original_args()
        self.losses += params.step_losses
        self.scales += params.step_loss_scales
        self.skipped += params.step_skipped
        self.rates += params.step_learning_rates


def train(values, manager, optimizer=None, net=None, epochs=1, callbacks=(), **options):
    net = net or Dot()
    optimizer = optimizer or nn.Momentum(net.trainable_params(), 0.125, 0.5)
    model = ms.Model(net, optimizer=optimizer, loss_scale_manager=manager)
    records = Records()
    model.train(epochs, rows(values), [records, *callbacks], **options)
    return model, records


def scale_rule(overflows, scale, factor, window):
    """MindSpore's rule, and a largest scale: the scale that each step has."""
    had, step, last = [], 1, 0
    for overflow in overflows:
        had.append(scale)
        if overflow:
            scale, last = max(np.float32(scale / factor), np.float32(1)), step
        elif step - last >= window:
            grown, last = np.float64(scale) * factor, step
            scale = np.float32(grown) if grown <= 2.0**126 else scale
        step += 1
    return had


@pytest.mark.parametrize("factor,window", [(2, 7), (3, 4)])
def test_scale_follows_the_rule_over_5000_steps(factor, window):
    steps = 5000
    overflows = np.random.default_rng(5).random(steps) < 0.13
    values = np.ones((steps, 2), np.float32)
    values[overflows, 1] = INF
    ms.set_context(mode=ms.GRAPH_MODE)
    ms._core._reset_stats()
    net = Dot()
    model, records = train(
        values,
        DynamicLossScaleManager(2.0**12, factor, window),
        net=net,
        optimizer=nn.SGD(net.trainable_params(), 2.0**-12),
        dataset_sink_mode=True,
    )
    assert ms._core._stats()["commands"] == 1
    assert records.scales == scale_rule(overflows, np.float32(2.0**12), np.float32(factor), window)
    assert records.skipped == overflows.tolist()
    applied = steps - int(overflows.sum())
    if factor == 2:  # scales that are powers of two leave no trace
        np.testing.assert_array_equal(net.w.asnumpy(), np.float32([1, -2]) - applied * np.float32(2.0**-12))


@pytest.mark.parametrize("mode", [ms.GRAPH_MODE, ms.PYNATIVE_MODE])
def test_scale_falls_to_one_and_comes_back(mode):
    """F01: 40 batches with an inf, then 4 good ones."""
    ms.set_context(mode=mode)
    values = np.ones((44, 2), np.float32)
    values[:40, 0] = INF
    for options in ({}, {"dataset_sink_mode": True, "sink_size": 11, "epochs": 4}):
        net = Dot()
        opt = nn.Momentum(net.trainable_params(), 0.125, 0.5)
        model, records = train(values, DynamicLossScaleManager(2**24, 2, 2), opt, net, **options)
        assert records.scales[:26] == [2.0**k for k in range(24, 0, -1)] + [1.0, 1.0]
        assert records.scales[40:] == [1.0, 1.0, 2.0, 2.0]
        assert model.train_network.scale_sense.asnumpy() == 4.0
        assert opt.global_step.asnumpy() == 4
        assert records.skipped == [True] * 40 + [False] * 4
        assert np.isfinite(net.w.asnumpy()).all()
        assert records.losses[40] == -1.0  # unscaled


def test_schedule_stands_still_in_skipped_steps():
    """F03: the first update that is applied has the first rate."""
    values = np.ones((4, 2), np.float32)
    values[0] = INF
    net = Dot()
    opt = nn.SGD(net.trainable_params(), [0.5, 0.25, 0.125, 0.0625])
    ms.set_context(mode=ms.GRAPH_MODE)
    _, records = train(values, DynamicLossScaleManager(1024), opt, net, dataset_sink_mode=True)
    assert records.rates == [0.5, 0.5, 0.25, 0.125]
    assert opt.global_step.asnumpy() == 3
    np.testing.assert_array_equal(net.w.asnumpy(), np.float32([1, -2]) - np.float32(0.875))


def test_managers_written_in_python():
    class Halving(nn.Cell):
        def __init__(self):
            super().__init__()
            self.calls = ms.Parameter(ms.Tensor(0, ms.int32), name="calls", requires_grad=False)

        def construct(self, loss_scale, overflow):
            ops.assign(loss_scale, loss_scale / 2)
            ops.assign(self.calls, self.calls + 1)
            return overflow

    class Manager(amp.LossScaleManager):
        def __init__(self):
            self.cell = Halving()

        def get_loss_scale(self):
            return 64

        def update_loss_scale(self, overflow):
            pass

        def get_update_cell(self):
            return self.cell

    for mode in (ms.GRAPH_MODE, ms.PYNATIVE_MODE):
        ms.set_context(mode=mode)
        manager = Manager()
        _, records = train([[1, 1], [INF, 1], [1, 1]], manager)
        assert records.scales == [64.0, 32.0, 16.0]
        assert records.skipped == [False, True, False]
        assert manager.cell.calls.asnumpy() == 3


def test_state_of_the_scale_is_saved(tmp_path):
    ms.set_context(mode=ms.GRAPH_MODE)
    model, _ = train([[1, 1], [INF, 1]], DynamicLossScaleManager(1024, 2, 10))
    path = str(tmp_path / "step.ckpt")
    ms.save_checkpoint(model.train_network, path)
    saved = ms.load_checkpoint(path)
    assert saved["scale_sense"].asnumpy() == 512
    assert saved["current_iterator_step"].asnumpy() == 3
    assert saved["last_overflow_iterator_step"].asnumpy() == 2
    again, _ = train([[1, 1]], DynamicLossScaleManager(1024, 2, 10))
    ms.load_param_into_net(again.train_network, saved)
    records = Records()
    again.train(1, rows([[1, 1]]), records)
    assert records.scales == [512.0]


def test_bfloat16_and_float16_parameters_train_scaled():
    ms.set_context(mode=ms.GRAPH_MODE)
    for dtype in (ms.float16, ms.bfloat16, ms.float32):
        net = Dot(dtype=dtype)
        opt = nn.SGD(net.trainable_params(), 0.5)
        tiny = np.float32(2.0**-26)  # 0 in float16
        _, records = train([[1, tiny * 1024]] * 2, DynamicLossScaleManager(64), opt, net, dataset_sink_mode=True)
        assert records.skipped == [False, False]
        np.testing.assert_array_equal(net.w.asnumpy().astype(np.float32)[0], np.float32(0))


def test_a_step_that_never_comes_through_is_told_once(capfd):
    ms.set_context(mode=ms.GRAPH_MODE)
    net = Dot(dtype=ms.float16)
    before = net.w.asnumpy().copy()
    values = np.full((1000, 2), INF)
    model, records = train(values, DynamicLossScaleManager(), net=net, dataset_sink_mode=True)
    assert records.scales[-1] == 1.0 and all(records.skipped)
    np.testing.assert_array_equal(net.w.asnumpy(), before)
    err = capfd.readouterr().err
    assert err.count("in a row were skipped") == 1
    assert "lower the learning rate" in err


class HalfNet(nn.Cell):
    """A network that levels of mixed precision compute in half, with what they keep in float32."""

    def __init__(self):
        super().__init__()
        self.conv, self.bn = nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4)
        self.flatten, self.fc = nn.Flatten(), nn.Dense(64, 3)

    def construct(self, x):
        return self.fc(self.flatten(ops.relu(self.bn(self.conv(x)))))


def images(steps, bad):
    rng = np.random.default_rng(0)
    x = rng.random((steps * 4, 1, 4, 4), np.float32)
    y = rng.random((steps * 4, 3), np.float32)
    for step in bad:
        y[step * 4 + 1, 2] = INF
    return dataset.NumpySlicesDataset((x, y), ["x", "y"], shuffle=False).batch(4)


@pytest.mark.parametrize("half", [ms.float16, ms.bfloat16])
@pytest.mark.parametrize("level", ["O2", "O3"])
def test_levels_with_labels_that_are_inf(level, half):
    """F01: the scale falls to 1 and comes back, and 40 steps change nothing."""
    ms.set_context(mode=ms.GRAPH_MODE)
    net = amp.auto_mixed_precision(HalfNet(), level, half)
    opt = nn.Momentum(net.trainable_params(), 0.01, 0.9)
    model = ms.Model(net, nn.MSELoss(), opt, loss_scale_manager=DynamicLossScaleManager(2**24, 2, 2))
    state = [*net.get_parameters(), *opt.get_parameters()]
    before = [p.asnumpy().copy() for p in state]
    records = Records()
    model.train(1, images(40, range(40)), records, dataset_sink_mode=True)
    assert records.scales[-1] == 1.0 and all(records.skipped)
    for p, old in zip(state, before):
        np.testing.assert_array_equal(p.asnumpy(), old)
    model.train(1, images(4, ()), records, dataset_sink_mode=True)
    assert model.train_network.scale_sense.asnumpy() == 4.0
    assert records.skipped[40:] == [False] * 4
    assert opt.global_step.asnumpy() == 4
    assert any((p.asnumpy() != old).any() for p, old in zip(state, before))
    assert all(np.isfinite(p.asnumpy()).all() for p in state)


def test_level_o2_has_a_manager_unless_told():
    ms.set_context(mode=ms.GRAPH_MODE)

    def scales(**arguments):
        net = HalfNet()
        opt = nn.Momentum(net.trainable_params(), 0.01, 0.9)
        records = Records()
        model = ms.Model(net, nn.MSELoss(), opt, **arguments)
        model.train(1, images(2, ()), records, dataset_sink_mode=True)
        return records.scales

    assert scales(amp_level="O2")[0] == 2.0**24
    assert scales(amp_level="O2", loss_scale_manager=None) == [1.0, 1.0]
    assert scales(amp_level="O2", loss_scale_manager=FixedLossScaleManager(64)) == [64.0, 64.0]
    assert scales(amp_level="O3") == [1.0, 1.0]


def test_build_train_network_scales():
    x, y = next(images(1, ()).create_tuple_iterator())

    def cell(**arguments):
        net = HalfNet()
        opt = nn.Momentum(net.trainable_params(), 0.01, 0.9, loss_scale=arguments.pop("of_optimizer", 1.0))
        return amp.build_train_network(net, opt, nn.MSELoss(), **arguments)

    ms.set_context(mode=ms.PYNATIVE_MODE)
    loss, overflow, scale = cell(level="O2")(x, y)
    assert float(scale.asnumpy()) == 2.0**24 and np.isfinite(loss.asnumpy())
    assert isinstance(cell(level="O2", loss_scale_manager=None), nn.TrainOneStepCell)
    loss, overflow, scale = cell(loss_scale_manager=FixedLossScaleManager(8))(x, y)
    assert float(scale.asnumpy()) == 8 and not bool(overflow)
    fixed = cell(loss_scale_manager=FixedLossScaleManager(1024, False), of_optimizer=1024.0)
    assert isinstance(fixed, nn.TrainOneStepCell) and fixed.sens == 1024
    with pytest.raises(TypeError, match="'loss_scale_manager' must be a LossScaleManager"):
        cell(loss_scale_manager=3)


@pytest.mark.parametrize("bad", [0, -1, 0.5, float("inf"), float("nan")])
def test_bad_scales(bad):
    for make in (
        FixedLossScaleManager,
        DynamicLossScaleManager,
        amp.StaticLossScaler,
        lambda v: amp.DynamicLossScaler(v, 2, 10),
        lambda v: nn.DynamicLossScaleUpdateCell(v, 2, 10),
        nn.FixedLossScaleUpdateCell,
    ):
        with pytest.raises(ValueError, match="must be from 1 to 2"):
            make(bad)


def test_wrong_types():
    net = Dot()
    opt = nn.SGD(net.trainable_params())
    with pytest.raises(TypeError, match="loss_scale_manager.*LossScaleManager.*float"):
        ms.Model(net, optimizer=opt, loss_scale_manager=1024.0)
    for sense in (1024.0, "1024", None, nn.Dense(1, 1)):
        with pytest.raises(TypeError, match="scale_sense.*Tensor of one element or a Cell"):
            nn.TrainOneStepWithLossScaleCell(net, opt, sense)
    for sense in (ms.Tensor([1.0, 2.0]), ms.Tensor([[1.0]])):
        with pytest.raises(ValueError, match=r"shape \(\) or \(1,\)"):
            nn.TrainOneStepWithLossScaleCell(net, opt, sense)
    with pytest.raises(ValueError, match="positive"):
        nn.TrainOneStepWithLossScaleCell(net, opt, ms.Tensor(0.0))
    with pytest.raises(TypeError, match="loss_scale"):
        DynamicLossScaleManager("1024")
    with pytest.raises(TypeError, match="item 1"):
        amp.all_finite([ms.Tensor(1.0), 2.0])
