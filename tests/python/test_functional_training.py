# SPDX-License-Identifier: Apache-2.0
"""Training loops of users: value_and_grad with a scaler, jit, data_sink, and the training cells."""

import gc

import numpy as np
import pytest

import undertow as ms
from undertow import amp, dataset, nn, ops

INF = np.float32(np.inf)
STEPS = 24


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        rng = np.random.default_rng(2)
        self.fc = nn.Dense(4, 8, weight_init=ms.Tensor(rng.random((8, 4), np.float32) - 0.5), bias_init="zeros")
        self.out = nn.Dense(8, 1, weight_init=ms.Tensor(rng.random((1, 8), np.float32) - 0.5), bias_init="zeros")

    def construct(self, x):
        return self.out(ops.relu(self.fc(x)))


def batches(bad=(3, 10, 11)):
    rng = np.random.default_rng(1)
    x = rng.random((STEPS * 8, 4), np.float32)
    y = x.sum(1, keepdims=True) * np.float32(0.5)
    for step in bad:
        y[step * 8 + 1] = INF
    return dataset.NumpySlicesDataset((x, y), ["x", "y"], shuffle=False).batch(8)


def parts():
    net = Net()
    return net, nn.MSELoss(), nn.Momentum(net.trainable_params(), 0.05, 0.9)


def weights_of(net):
    return [p.asnumpy() for p in net.get_parameters()]


def by_model(sink):
    """What Model makes of it: (losses, weights, last scale)."""
    net, loss, opt = parts()
    model = ms.Model(net, loss, opt, loss_scale_manager=ms.amp.DynamicLossScaleManager(1024, 2, 4))
    losses = []
    record = ms.LambdaCallback(on_train_step_end=lambda c: losses.extend(c.original_args().step_losses))
    ms.set_context(mode=ms.GRAPH_MODE)
    model.train(1, batches(), record, dataset_sink_mode=sink)
    return losses, weights_of(net), float(model.train_network.scale_sense.asnumpy())


def make_step(net, loss_fn, opt, scaler, style):
    """A user's training step."""

    def forward(x, y):
        loss = loss_fn(net(x), y)
        return scaler.scale(loss), loss

    grad_fn = ms.value_and_grad(forward, None, opt.parameters, has_aux=True)

    def step_if(x, y):
        (_, loss), grads = grad_fn(x, y)
        finite = amp.all_finite(grads, amp.init_status())
        if finite:
            opt(scaler.unscale(grads))
        scaler.adjust(finite)
        return loss

    def step_not(x, y):
        (scaled, _), grads = grad_fn(x, y)
        overflow = ops.logical_not(amp.all_finite(grads))
        if not overflow:
            opt(scaler.unscale(grads))
        loss = scaler.unscale(scaled)
        scaler.adjust(ops.logical_not(overflow))
        return loss

    def step_cond(x, y):
        (_, loss), grads = grad_fn(x, y)
        finite = amp.all_finite(grads)

        def update():
            opt(scaler.unscale(grads))
            return ms.Tensor(True)

        ops.cond(finite, update, lambda: ms.Tensor(False))
        scaler.adjust(finite)
        return loss

    return {"if": step_if, "not": step_not, "cond": step_cond}[style]


def same(losses, expected, exact=True):
    assert len(losses) == len(expected)
    for i, (a, b) in enumerate(zip(losses, expected)):
        if np.isfinite(b):
            assert a == b if exact else abs(a - b) <= 1e-5 * max(1, abs(b)), i
        else:
            assert not np.isfinite(a), i


@pytest.mark.parametrize("style", ["if", "not", "cond"])
@pytest.mark.parametrize("how", ["jit", "eager", 1, 6, 24])
def test_a_step_of_ones_own_trains_as_model_does(style, how):
    losses, weights, scale = by_model(sink=how not in ("jit", "eager"))
    net, loss_fn, opt = parts()
    net.set_train()
    scaler = amp.DynamicLossScaler(1024, 2, 4)
    step = make_step(net, loss_fn, opt, scaler, style)
    if how in ("jit", "eager"):
        ms.set_context(mode=ms.GRAPH_MODE if how == "jit" else ms.PYNATIVE_MODE)
        run = ms.jit(step) if how == "jit" else step
        mine = [float(run(x, y).asnumpy()) for x, y in batches().create_tuple_iterator(num_epochs=1)]
        same(mine, losses, exact=how == "jit")
    else:
        ms._core._reset_stats()
        sunk = ms.data_sink(step, batches(), sink_size=how)
        mine = [float(sunk().asnumpy()) for _ in range(STEPS // how)]
        assert ms._core._stats()["commands"] == STEPS // how
        assert ms._core._stats()["steps"] == STEPS
        same(mine, losses[how - 1 :: how])
    assert float(scaler.scale_value.asnumpy()) == scale
    for a, b in zip(weights_of(net), weights):
        if how == "eager":
            np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)
        else:
            np.testing.assert_array_equal(a, b)


def test_both_ways_of_a_branch_share_what_they_have_in_common():
    net, loss_fn, opt = parts()
    scaler = amp.DynamicLossScaler(1024, 2, 4)
    steps = []

    def branched(x, y):
        steps.append("trace")
        return make_step(net, loss_fn, opt, scaler, "if")(x, y)

    ms.set_context(mode=ms.GRAPH_MODE)
    run = ms.jit(branched)
    x, y = next(batches(()).create_tuple_iterator())
    gc.collect()  # functions are traced again when cells go away
    gc.disable()
    try:
        first = float(run(x, y).asnumpy())
        assert steps == ["trace"] * 2
        assert float(run(x, y).asnumpy()) < first
        assert len(steps) == 2
    finally:
        gc.enable()


def test_what_a_branch_may_not_do():
    ms.set_context(mode=ms.GRAPH_MODE)
    x = ms.Tensor([1.0, 2.0])

    @ms.jit
    def other_results(x):
        return (x, x) if amp.all_finite([x]) else x

    with pytest.raises(TypeError, match="returns 2 tensors .* and 1"):
        other_results(x)

    @ms.jit
    def never_ends(x):
        while amp.all_finite([x]):
            x = x * 2
        return x

    with pytest.raises(ms.TraceError, match="more than 6 times.*while_loop"):
        never_ends(x)

    @ms.jit
    def on_a_value(x):
        return x if x.sum() > 0 else -x

    with pytest.raises(ms.TraceError, match="ops.cond"):
        on_a_value(x)

    @ms.jit
    def nested(x, y):
        if amp.all_finite([x]):
            return x * 2 if amp.all_finite([y]) else x * 3
        return x * 0 + 4 if not amp.all_finite([y]) else x * 0 + 5

    bad = ms.Tensor([1.0, INF])
    assert nested(x, x).asnumpy().tolist() == [2, 4]
    assert nested(x, bad).asnumpy().tolist() == [3, 6]
    assert np.isnan(nested(bad, bad).asnumpy()[1]) and nested(bad, bad).asnumpy()[0] == 4
    assert nested(bad, x).asnumpy()[0] == 5


# ---- cells


@pytest.mark.parametrize("mode", [ms.GRAPH_MODE, ms.PYNATIVE_MODE])
def test_train_one_step_with_loss_scale_cell(mode):
    losses, weights, scale = by_model(sink=True)
    ms.set_context(mode=mode)
    net, loss_fn, opt = parts()
    cell = nn.TrainOneStepWithLossScaleCell(
        nn.WithLossCell(net, loss_fn), opt, nn.DynamicLossScaleUpdateCell(1024, 2, 4)
    )
    cell.set_train()
    run = ms.jit(cell) if mode == ms.GRAPH_MODE else cell
    mine, overflows = [], []
    for x, y in batches().create_tuple_iterator(num_epochs=1):
        loss, overflow, had = run(x, y)
        mine.append(float(loss.asnumpy()))
        overflows.append(bool(overflow))
        assert had.dtype == ms.float32 and had.shape == ()
    assert [i for i, o in enumerate(overflows) if o] == [3, 10, 11]
    same(mine, losses, exact=mode == ms.GRAPH_MODE)
    assert float(cell.scale_sense.asnumpy()) == scale
    for a, b in zip(weights_of(net), weights):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)
    assert {"scale_sense", "current_iterator_step", "last_overflow_iterator_step"} <= {
        p.name for p in cell.get_parameters()
    }


def test_fixed_scale_as_a_tensor():
    ms.set_context(mode=ms.GRAPH_MODE)
    net, loss_fn, opt = parts()
    cell = nn.TrainOneStepWithLossScaleCell(nn.WithLossCell(net, loss_fn), opt, ms.Tensor([256.0]))
    x, y = next(batches((0,)).create_tuple_iterator())
    before = weights_of(net)
    loss, overflow, scale = cell(x, y)
    assert bool(overflow) and float(scale.asnumpy()) == 256
    for a, b in zip(weights_of(net), before):
        np.testing.assert_array_equal(a, b)
    cell.set_sense_scale(ms.Tensor(512.0))
    assert float(cell(x, y)[2].asnumpy()) == 512
    assert cell.loss_scaling_manager is None


class Clipping(nn.TrainOneStepWithLossScaleCell):
    """A step as users write it."""

    def construct(self, *inputs):
        loss = self.network(*inputs)
        status, scale = self.start_overflow_check(loss, self.scale_sense)
        filled = ops.ones_like(loss) * ops.cast(scale, loss.dtype)
        grads = self.grad(self.network, self.weights)(*inputs, filled)
        grads = self.hyper_map(lambda g: g / scale, grads)
        grads = self.grad_reducer(grads)
        overflow = self.process_loss_scale(self.get_overflow_status(status, grads))
        if not overflow:
            self.optimizer(ops.clip_by_global_norm(grads, 1.0))
        return loss, overflow, scale


def test_a_step_cell_of_ones_own_in_model():
    ms.set_context(mode=ms.GRAPH_MODE)
    results = []
    for sink in (False, True):
        net, loss_fn, opt = parts()
        cell = Clipping(nn.WithLossCell(net, loss_fn), opt, nn.DynamicLossScaleUpdateCell(1024, 2, 4))
        ms.Model(cell).train(1, batches(), dataset_sink_mode=sink)
        assert opt.global_step.asnumpy() == STEPS - 3
        results.append(weights_of(net))
        assert all(np.isfinite(w).all() for w in results[-1])
    for a, b in zip(*results):
        np.testing.assert_array_equal(a, b)


# ---- gradient helpers


@pytest.mark.parametrize("scale", [1.0, 1024.0, 65536.0])
def test_clipping_sees_unscaled_gradients(scale):
    """F04: gradients (3, 4), clipped to norm 1, one step of SGD with rate 1 from 0."""
    weight = ms.Parameter(ms.Tensor([0.0, 0.0]), name="w")
    opt = nn.SGD([weight], 1.0)
    scaler = amp.StaticLossScaler(scale)
    slope = ms.Tensor([3.0, 4.0])
    grad_fn = ms.value_and_grad(lambda: scaler.scale(ops.sum(weight * slope)), None, [weight])

    @ms.jit
    def step():
        _, grads = grad_fn()
        grads = ops.clip_by_global_norm(scaler.unscale(grads), 1.0)
        if amp.all_finite(grads):
            opt(grads)
        return grads[0]

    ms.set_context(mode=ms.GRAPH_MODE)
    step()
    np.testing.assert_allclose(weight.asnumpy(), [-0.6, -0.8], rtol=1e-6)


@pytest.mark.parametrize("bad", [[INF, 1.0], [np.nan, 1.0], [2e19, 2e19]])
def test_a_norm_that_is_not_finite_is_an_overflow(bad):
    """F04: it does not become an update by 0."""
    ms.set_context(mode=ms.GRAPH_MODE)
    grads = (ms.Tensor(np.float32(bad)), ms.Tensor(np.float32([1.0])))
    clipped = ops.clip_by_global_norm(grads, 1.0)
    assert not bool(amp.all_finite(clipped))


def test_gradients_are_accumulated_over_batches():
    net, loss_fn, opt = parts()
    sums = [ms.Parameter(ops.zeros_like(p), name=f"sum.{p.name}") for p in opt.parameters]
    count = ms.Parameter(ms.Tensor(0, ms.int32), name="count")
    grad_fn = ms.value_and_grad(lambda x, y: loss_fn(net(x), y), None, opt.parameters)

    def step(x, y):
        loss, grads = grad_fn(x, y)
        for s, g in zip(sums, grads):
            ops.assign_add(s, g / 3)
        ops.assign_add(count, ms.Tensor(1, ms.int32))

        def update():
            opt(tuple(s.value() for s in sums))
            for s in sums:
                ops.assign(s, ops.zeros_like(s))
            return ms.Tensor(True)

        ops.cond(count % 3 == 0, update, lambda: ms.Tensor(False))
        return loss

    ms.set_context(mode=ms.GRAPH_MODE)
    sunk = ms.data_sink(step, batches(()), sink_size=12)
    sunk(), sunk()
    assert opt.global_step.asnumpy() == STEPS // 3

    whole, _, whole_opt = parts()
    data = list(batches(()).create_tuple_iterator(num_epochs=1))

    def mean_of(three):
        return sum(loss_fn(whole(x), y) for x, y in three) / 3

    for i in range(0, STEPS, 3):
        _, grads = ms.value_and_grad(mean_of, None, whole_opt.parameters)(data[i : i + 3])
        whole_opt(grads)
    for a, b in zip(weights_of(net), weights_of(whole)):
        np.testing.assert_allclose(a, b, rtol=2e-5, atol=1e-6)


def test_gradient_centralisation_of_a_group():
    weight = ms.Parameter(ms.Tensor(np.zeros((2, 16), np.float32)), name="w")
    opt = nn.SGD([{"params": [weight], "grad_centralization": True}], 1.0)
    grad = np.arange(32, dtype=np.float32).reshape(2, 16)
    opt((ms.Tensor(grad),))
    np.testing.assert_allclose(weight.asnumpy(), grad.mean(1, keepdims=True) - grad, rtol=1e-6)


@pytest.mark.parametrize(
    "make",
    [
        lambda p: nn.Adam(p, 1e-3, eps=1e-8),
        lambda p: nn.Momentum(p, 1e-3, 0.9),
        lambda p: nn.RMSProp(p, 1e-3),
        lambda p: nn.AdamWeightDecay(p, 1e-3),
    ],
)
@pytest.mark.parametrize("grad", [0.0, 1e-4])
def test_float16_parameters_and_small_gradients(make, grad):
    """F05: no 0/0 in the state of half parameters."""
    weight = ms.Parameter(ms.Tensor([1.0, -2.0, 0.5], ms.float16), name="w")
    opt = make([weight])
    for _ in range(3):
        opt((ms.Tensor([grad] * 3, ms.float16),))
    now = weight.asnumpy().astype(np.float32)
    if grad == 0:
        np.testing.assert_array_equal(now, np.float32([1, -2, 0.5]))
    assert np.isfinite(now).all() and np.abs(now - [1, -2, 0.5]).max() < 0.05


# ---- data_sink


def test_data_sink_returns_the_last_step_and_goes_on():
    data = dataset.NumpySlicesDataset((np.arange(10, dtype=np.float32),), ["x"], shuffle=False).batch(2)
    sunk = ms.data_sink(lambda x: {"sum": x.sum(), "all": (x, [x * 2])}, data, sink_size=3)
    ms.set_context(mode=ms.GRAPH_MODE)
    sums = []
    for _ in range(5):  # 15 steps: three passes
        out = sunk()
        sums.append(float(out["sum"].asnumpy()))
        assert out["all"][1][0].asnumpy().tolist() == [2 * v for v in out["all"][0].asnumpy()]
    assert sums == [9.0, 1.0, 13.0, 5.0, 17.0]


def test_data_sink_with_a_short_last_batch():
    data = dataset.NumpySlicesDataset((np.arange(10, dtype=np.float32),), ["x"], shuffle=False).batch(4)
    sunk = ms.data_sink(lambda x: x, data, sink_size=3)
    assert [sunk().asnumpy().tolist() for _ in range(2)] == [[8.0, 9.0]] * 2


def test_data_sink_refuses():
    data = dataset.NumpySlicesDataset((np.arange(4, dtype=np.float32),), ["x"])
    with pytest.raises(TypeError, match="'fn'"):
        ms.data_sink(3, data)
    with pytest.raises(TypeError, match="'dataset' must be a Dataset, got list"):
        ms.data_sink(lambda x: x, [1, 2])
    for size in (0, -1):
        with pytest.raises(ValueError, match="at least 1"):
            ms.data_sink(lambda x: x, data, sink_size=size)
    with pytest.raises(TypeError, match="integer"):
        ms.data_sink(lambda x: x, data, sink_size=1.5)
    with pytest.raises(ValueError, match="0 batches"):
        ms.data_sink(lambda x: x, data.batch(8, drop_remainder=True))

    class Broken:
        def __len__(self):
            return 4

        def __getitem__(self, i):
            if i == 2:
                raise KeyError("row 2")
            return (np.float32(i),)

    sunk = ms.data_sink(lambda x: x, dataset.GeneratorDataset(Broken(), ["x"], shuffle=False), sink_size=4)
    with pytest.raises(KeyError, match="row 2"):
        sunk()
