# SPDX-License-Identifier: Apache-2.0
"""Learning rates, parameter groups, optimizers written in Python, and training cells."""

import numpy as np
import pytest
from test_optimizers import STEPS, parameters, run, start

import undertow as ut
from undertow import Parameter, Tensor, nn, ops

# ---- Learning rates


class Triangle(nn.LearningRateSchedule):
    """Written by a user: 0.1 up to step 2, then 0.01."""

    def construct(self, global_step):
        return ops.where(global_step < 2, Tensor(0.1), Tensor(0.01))


def frozen(x):
    return float(np.float32(x))


# (rate, its values at steps 0, 1, 2, 3)
RATES = [
    (0.5, [0.5] * 4),
    (1, [1.0] * 4),
    ([0.4, 0.3, 0.2, 0.1], [0.4, 0.3, 0.2, 0.1]),
    ((0.4, 0.3, 0.2, 0.1), [0.4, 0.3, 0.2, 0.1]),
    (np.array([0.4, 0.3, 0.2, 0.1]), [0.4, 0.3, 0.2, 0.1]),
    (Tensor([0.4, 0.3, 0.2, 0.1]), [0.4, 0.3, 0.2, 0.1]),
    (Tensor(0.25), [0.25] * 4),
    (nn.ExponentialDecayLR(0.1, 0.9, 4), [0.1 * 0.9 ** (i / 4) for i in range(4)]),
    (nn.ExponentialDecayLR(0.1, 0.9, 2, True), [0.1 * 0.9 ** (i // 2) for i in range(4)]),
    (nn.NaturalExpDecayLR(0.1, 0.9, 4), [0.1 * np.exp(-0.9 * i) for i in range(4)]),
    (nn.NaturalExpDecayLR(0.1, 0.9, 2, True), [0.1 * np.exp(-0.9 * (i // 2) * 2) for i in range(4)]),
    (nn.InverseDecayLR(0.1, 0.9, 4), [0.1 / (1 + 0.9 * i / 4) for i in range(4)]),
    (nn.InverseDecayLR(0.1, 0.9, 2, True), [0.1 / (1 + 0.9 * (i // 2)) for i in range(4)]),
    (nn.CosineDecayLR(0.01, 0.1, 2), [0.01 + 0.045 * (1 + np.cos(np.pi * min(i, 2) / 2)) for i in range(4)]),
    (nn.PolynomialDecayLR(0.1, 0.01, 2, 0.5), [0.09 * (1 - min(i, 2) / 2) ** 0.5 + 0.01 for i in range(4)]),
    (
        nn.PolynomialDecayLR(0.1, 0.01, 2, 0.5, True),
        [0.09 * (1 - i / (2 * max(np.ceil(i / 2), 1))) ** 0.5 + 0.01 for i in range(4)],
    ),
    (nn.WarmUpLR(0.1, 2), [0.1 * min(i, 2) / 2 for i in range(4)]),
    (Triangle(), [0.1, 0.1, 0.01, 0.01]),
]


@pytest.mark.parametrize("sink", [False, True], ids=["steps", "sunk"])
@pytest.mark.parametrize("rate, values", RATES, ids=[f"{i}-{type(r[0]).__name__}" for i, r in enumerate(RATES)])
def test_rates_in_training(rate, values, sink):
    """The rate comes from global_step inside the (sunk) step, and is what the records say."""
    net = nn.Dense(1, 1, weight_init="zeros", has_bias=False)
    opt = nn.SGD(net.trainable_params(), rate)
    seen, weights = [], []

    class Watch(ut.Callback):
        def on_train_step_end(self, run_context):
            seen.extend(run_context.original_args().step_learning_rates)
            weights.append(net.weight.item())

    data = ut.dataset.GeneratorDataset([(np.ones(1, "f"),)] * 4, ["x"], shuffle=False).batch(1)
    step = ut.Model(Sum(net), optimizer=opt)
    step.train(1, data, [Watch()], dataset_sink_mode=sink)
    np.testing.assert_allclose(seen, values, rtol=1e-5)
    np.testing.assert_allclose(net.weight.item(), -np.sum(values), rtol=1e-5)
    assert sink or len(weights) == 4


class Sum(nn.Cell):
    """A loss whose gradient is 1 for each weight of a (1, 1) layer."""

    def __init__(self, net):
        super().__init__()
        self.net = net

    def construct(self, x):
        return self.net(x).sum()


def test_get_lr_and_set_lr():
    opt = nn.SGD(parameters(), [0.4, 0.3, 0.2, 0.1])
    assert frozen(opt.get_lr().item()) == frozen(0.4)
    opt(tuple(Tensor(g) for g in start()[1][0].values()))
    assert frozen(opt.get_lr().item()) == frozen(0.3)
    with pytest.raises(ValueError, match="one number"):
        opt.set_lr(0.1)
    fixed = nn.SGD(parameters(), 0.5)
    fixed.learning_rate = Tensor(0.25)
    assert fixed.get_lr().item() == 0.25
    ops.assign(fixed.learning_rate, Tensor(0.125))
    assert fixed.get_lr().item() == 0.125


@pytest.mark.parametrize("sink", [False, True])
def test_list_of_rates_too_short(sink):
    net = nn.Dense(1, 1, weight_init="zeros", has_bias=False)
    model = ut.Model(Sum(net), optimizer=nn.SGD(net.trainable_params(), [0.1, 0.1, 0.1]))
    data = ut.dataset.GeneratorDataset([(np.ones(1, "f"),)] * 4, ["x"], shuffle=False).batch(1)
    with pytest.raises(ValueError, match="list of 3"):
        model.train(1, data, dataset_sink_mode=sink)
    assert net.weight.item() == 0, "nothing was trained"


def test_list_of_rates_used_up_eagerly():
    _, opt = run(lambda p: nn.SGD(p, [0.1, 0.1]), steps=2)
    with pytest.raises(ValueError, match="list of 2 values"):
        opt(tuple(Tensor(g) for g in start()[1][0].values()))


def test_weight_decay_as_a_schedule():
    class Decay(nn.Cell):
        def construct(self, global_step):
            return 0.1 * (global_step.astype(ut.float32) + 1)

    for compiled in (False, True):
        history, opt = run(lambda p: nn.Momentum(p, 0.1, 0.0, weight_decay=Decay()), compiled)
        w, grads = start()
        x = w["fc.bias"].astype("d")
        for t in range(STEPS):
            x = x - 0.1 * (grads[t]["fc.bias"] + 0.1 * (t + 1) * x)
        np.testing.assert_allclose(history[-1][1], x, rtol=1e-5)
        assert opt.dynamic_weight_decay


# ---- Groups


def test_groups():
    p = parameters()
    opt = nn.Momentum(
        [
            {"params": p[:1], "lr": 0.5, "weight_decay": 0.1},
            {"params": p[1:]},
            {"order_params": [p[2], p[0], p[1]]},
        ],
        learning_rate=0.1,
        momentum=0.9,
        weight_decay=0.2,
    )
    assert opt.is_group and opt.is_group_lr and opt.is_group_params_ordered and not opt.dynamic_lr
    assert [x.name for x in opt.parameters] == ["bn.gamma", "fc.weight", "fc.bias"]
    assert [x.name for x in opt.learning_rate] == ["learning_rate", "learning_rate_group_0", "learning_rate"]
    assert [frozen(x.item()) for x in opt.get_lr()] == [frozen(v) for v in (0.1, 0.5, 0.1)]
    assert [frozen(x.item()) for x in opt.weight_decay] == [frozen(v) for v in (0.2, 0.1, 0.2)]
    assert opt.decay_flags == (True, True, True), "groups decay what their names hold"
    assert opt.get_lr_parameter(p[0]).name == "learning_rate_group_0"
    assert [x.name for x in opt.get_lr_parameter([p[1]])] == ["learning_rate"]


def test_grad_centralization():
    w = Parameter(Tensor(np.zeros((2, 16, 1, 1), "f")), name="conv")
    odd = Parameter(Tensor(np.zeros((2, 3), "f")), name="odd")
    opt = nn.SGD([{"params": [w, odd], "grad_centralization": True}], 1.0)
    g = np.arange(32, dtype="f").reshape(2, 16, 1, 1)
    opt((Tensor(g), Tensor(np.ones((2, 3), "f"))))
    np.testing.assert_allclose(w.asnumpy(), -(g - g.mean((1, 2, 3), keepdims=True)))
    np.testing.assert_allclose(odd.asnumpy(), -np.ones((2, 3)))


P = parameters()
OTHER = Parameter(Tensor([1.0]), name="other")


@pytest.mark.parametrize(
    "make, error, words",
    [
        (lambda: nn.SGD(None), ValueError, "SGD"),
        (lambda: nn.SGD([]), ValueError, "empty"),
        (lambda: nn.SGD(P[0]), TypeError, "one Tensor"),
        (lambda: nn.SGD([P[0], P[0]]), RuntimeError, "fc.weight.*twice"),
        (lambda: nn.SGD([P[0], Parameter(Tensor([1.0]), name="fc.weight")]), ValueError, "fc.weight"),
        (lambda: nn.SGD([P[0], {"params": P}]), TypeError, r"params\[1\]"),
        (lambda: nn.SGD([{"params": P}, P[0]]), TypeError, "item 1"),
        (lambda: nn.SGD([{"params": P, "momentum": 0.9}]), KeyError, "momentum"),
        (lambda: nn.SGD([{"lr": 0.1}]), KeyError, "params"),
        (lambda: nn.SGD([{"params": []}]), ValueError, "empty"),
        (lambda: nn.SGD([{"params": P[:1]}, {"params": P[:2]}]), RuntimeError, "twice"),
        (lambda: nn.SGD([{"params": P}, {"order_params": P[:1]}]), ValueError, "order_params"),
        (lambda: nn.SGD([{"params": P}, {"order_params": [*P[:2], OTHER]}]), ValueError, "other"),
        (lambda: nn.SGD([{"params": P}, {"order_params": P, "lr": 1.0}]), ValueError, "order_params"),
        (lambda: nn.SGD([{"params": P, "grad_centralization": 1}]), TypeError, "grad_centralization"),
        (lambda: nn.SGD([{"params": P, "lr": np.array(1)}]), TypeError, "lr"),
        (lambda: nn.SGD([{"params": P, "weight_decay": np.array(1)}]), TypeError, "weight_decay"),
        (lambda: nn.SGD([{"params": P, "lr": -1.0}]), ValueError, "learning_rate"),
        (lambda: nn.SGD([{"params": P, "lr": [0.1, 0.2]}], [0.1, 0.2, 0.3]), ValueError, "2 and 3|3 and 2"),
        (lambda: nn.SGD(P, "fast"), TypeError, "learning_rate"),
        (lambda: nn.SGD(P, [0.1, "fast"]), TypeError, r"learning_rate\[1\]"),
        (lambda: nn.SGD(P, []), ValueError, "empty"),
        (lambda: nn.SGD(P, [0.1, -0.1]), ValueError, "step 1"),
        (lambda: nn.SGD(P, Tensor([[0.1]])), ValueError, "rank 2"),
        (lambda: nn.SGD(P, -0.5), ValueError, "-0.5"),
        (lambda: nn.SGD(P, weight_decay=[0.1]), TypeError, "weight_decay"),
        (lambda: nn.SGD(P, loss_scale=0.0), ValueError, "loss_scale"),
        (lambda: nn.Adam(P, beta1=1.0), ValueError, "beta1"),
        (lambda: nn.Adam(P, lazy=True), KeyError, "lazy"),
        (lambda: nn.FTRL(P, learning_rate=[0.1]), ValueError, "FTRL"),
        (lambda: nn.Rprop(P, etas=[0.5, 1.2]), TypeError, "etas"),
        (lambda: nn.Rprop(P, etas=(0.5, 0.9)), ValueError, "etas"),
        (lambda: nn.AdaFactor(P, learning_rate=0.1), ValueError, "relative_step"),
        (lambda: nn.SGD([Parameter(Tensor([1]), name="n")])((Tensor([1.0]),)), TypeError, "'n'.*Int"),
        (lambda: nn.SGD(P)((Tensor([1.0]),)), RuntimeError, "1 gradients for 3"),
        (lambda: nn.Optimizer(0.1, P)(tuple(P)), RuntimeError, "construct"),
        (lambda: nn.Optimizer(0.1, P).construct(), NotImplementedError, "construct"),
    ],
)
def test_bad_arguments(make, error, words):
    with pytest.raises(error, match=words):
        make()


# ---- Written in Python


class Own(nn.Optimizer):
    """A user's momentum, with MindSpore's means."""

    @nn.opt_init_args_register
    def __init__(self, params, learning_rate, momentum=0.9, weight_decay=0.0, loss_scale=1.0):
        super().__init__(learning_rate, params, weight_decay, loss_scale)
        self.moments = self.parameters.clone(prefix="moments", init="zeros")
        self.mu = momentum

    def construct(self, gradients):
        gradients = self.flatten_gradients(gradients)
        gradients = self.decay_weight(gradients)
        gradients = self.gradients_centralization(gradients)
        gradients = self.scale_grad(gradients)
        lr = self.get_lr()
        self.assignadd(self.global_step, self.global_step_increase_tensor)
        for i, (p, m, g) in enumerate(zip(self.parameters, self.moments, gradients)):
            v = self.mu * m + g
            ops.assign(m, v)
            ops.assign(p, p - (lr[i] if self.is_group_lr else lr) * v)
        return True


@pytest.mark.parametrize("rate", [0.1, [0.4, 0.3, 0.2, 0.1], nn.CosineDecayLR(0.01, 0.1, 4)])
@pytest.mark.parametrize("compiled", [False, True])
def test_own_optimizer(rate, compiled):
    own, opt = run(lambda p: Own(p, rate, weight_decay=0.05, loss_scale=2.0), compiled)
    ours, _ = run(lambda p: nn.Momentum(p, rate, 0.9, weight_decay=0.05, loss_scale=2.0), compiled)
    for a, b in zip(own[-1], ours[-1]):
        np.testing.assert_allclose(a, b, rtol=1e-6)
    assert "moments.fc.weight" in opt.parameters_dict() and opt.global_step.item() == STEPS
    assert opt.init_args == {"momentum": 0.9, "weight_decay": 0.05, "loss_scale": 2.0}


@pytest.mark.parametrize("sink", [False, True])
def test_own_optimizer_in_a_model(sink):
    results = []
    for make in (lambda p: Own(p, 0.1), lambda p: nn.Momentum(p, 0.1, 0.9)):
        net = nn.Dense(1, 1, weight_init="zeros", has_bias=False)
        data = ut.dataset.GeneratorDataset([(np.ones(1, "f"),)] * 4, ["x"], shuffle=False).batch(1)
        ut.Model(Sum(net), optimizer=make(net.trainable_params())).train(2, data, dataset_sink_mode=sink)
        results.append(net.weight.item())
    assert results[0] == pytest.approx(results[1], rel=1e-6)


# ---- TrainOneStepCell and its kin


@pytest.mark.parametrize("compiled", [False, True])
def test_train_one_step(compiled):
    net = nn.Dense(2, 1, weight_init="ones", bias_init="zeros")
    step = nn.TrainOneStepCell(nn.WithLossCell(net, nn.MSELoss()), nn.SGD(net.trainable_params(), 0.1))
    step.set_train()
    assert net.training
    call = ut.jit(step) if compiled else step
    x, y = np.array([[1, 2], [3, -1]], "f"), np.array([[1], [0]], "f")
    w, b = np.ones((1, 2)), np.zeros(1)
    for _ in range(3):
        d = x @ w.T + b - y
        loss = call(Tensor(x), Tensor(y))
        np.testing.assert_allclose(loss.item(), (d**2).mean(), rtol=1e-5)
        w, b = w - 0.1 * (d.T @ x) * 2 / 2, b - 0.1 * d.mean(0) * 2
        np.testing.assert_allclose(net.weight.asnumpy(), w, rtol=1e-5)
    assert net.weight.name == "weight" and step.network.backbone_network is net
    assert [p.name for p in step.trainable_params()] == ["weight", "bias"]


def test_train_one_step_options():
    net = nn.Dense(2, 1, weight_init="ones", has_bias=False)
    x = Tensor(np.ones((1, 2), "f"))
    step = nn.TrainOneStepCell(Sum(net), nn.SGD(net.trainable_params(), 0.1), sens=2.0, return_grad=True)
    loss, grads = step(x)
    assert loss.item() == 2 and grads[net.weight.name].tolist() == [[2, 2]]
    np.testing.assert_allclose(net.weight.asnumpy(), [[0.8, 0.8]], rtol=1e-6)
    with pytest.raises(ValueError, match="sens"):
        nn.TrainOneStepCell(Sum(net), nn.SGD(net.trainable_params()), sens=0)
    with pytest.raises(TypeError, match="optimizer"):
        nn.TrainOneStepCell(Sum(net), 0.1)
    with pytest.raises(TypeError, match="loss_fn"):
        nn.WithLossCell(net, None)


def test_eval_cell_and_forward_value_and_grad():
    net = nn.Dense(2, 1, weight_init="ones", has_bias=False)
    x, y = Tensor(np.ones((1, 2), "f")), Tensor(np.zeros((1, 1), "f"))
    loss, out, label = nn.WithEvalCell(net, nn.MSELoss())(x, y)
    assert (loss.item(), out.item(), label.item()) == (4, 2, 0)
    value, grads = nn.ForwardValueAndGrad(net, weights=net.trainable_params(), get_by_list=True)(x)
    assert value.item() == 2 and grads[0].tolist() == [[1, 1]]
    value, grad = nn.ForwardValueAndGrad(net, sens_param=True)(x, Tensor(3.0))
    assert value.item() == 2 and grad.tolist() == [[3, 3]]


# ---- Lists of rates


@pytest.mark.parametrize(
    "made, values",
    [
        (nn.piecewise_constant_lr([2, 5], [0.1, 0.05]), [0.1, 0.1, 0.05, 0.05, 0.05]),
        (nn.exponential_decay_lr(0.1, 0.9, 6, 2, 1), [0.1 * 0.9 ** (i // 2) for i in range(6)]),
        (nn.exponential_decay_lr(0.1, 0.9, 6, 1, 2, True), [0.1 * 0.9 ** (i // 2) for i in range(6)]),
        (nn.natural_exp_decay_lr(0.1, 0.9, 6, 2, 1), [0.1 * np.exp(-0.9 * (i // 2)) for i in range(6)]),
        (nn.inverse_decay_lr(0.1, 0.5, 6, 1, 2), [0.1 / (1 + 0.5 * i / 2) for i in range(6)]),
        (
            nn.cosine_decay_lr(0.01, 0.1, 6, 2, 2),
            [0.01 + 0.045 * (1 + np.cos(np.pi * min(i // 2, 2) / 2)) for i in range(6)],
        ),
        (
            nn.polynomial_decay_lr(0.1, 0.01, 6, 2, 2, 0.5),
            [0.09 * (1 - min(i // 2, 2) / 2) ** 0.5 + 0.01 for i in range(6)],
        ),
        (
            nn.polynomial_decay_lr(0.1, 0.01, 6, 1, 2, 0.5, True),
            [0.09 * (1 - i / (2 * max(np.ceil(i / 2), 1))) ** 0.5 + 0.01 for i in range(6)],
        ),
        (nn.warmup_lr(0.1, 6, 2, 2), [0.1 * min(i // 2, 2) / 2 for i in range(6)]),
    ],
)
def test_lists_of_rates(made, values):
    assert made == pytest.approx(values)
