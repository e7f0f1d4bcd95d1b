# SPDX-License-Identifier: Apache-2.0
"""Optimizers step by step against NumPy's formulas and against values of MindSpore 2.10 on a CPU; rates and groups."""

import numpy as np
import pytest

import undertow as ut
from undertow import Parameter, Tensor, nn

NAMES = {"fc.weight": (2, 3), "fc.bias": (2,), "bn.gamma": (3,)}
STEPS = 4


def start():
    """Weights and gradients, the same in every test (and in the program that gave the pinned values)."""
    rng = np.random.RandomState(0)  # noqa: NPY002
    weights = {name: rng.randn(*shape).astype("f") for name, shape in NAMES.items()}
    grads = [{name: rng.randn(*shape).astype("f") for name, shape in NAMES.items()} for _ in range(STEPS)]
    return weights, grads


def parameters():
    return [Parameter(Tensor(w.copy()), name=name) for name, w in start()[0].items()]


def run(make, compiled=False, steps=STEPS):
    """The parameters after each step."""
    params = parameters()
    opt = make(params)
    call = ut.jit(opt) if compiled else opt
    history = []
    for g in start()[1][:steps]:
        call(tuple(Tensor(g[p.name]) for p in params))
        history.append([p.asnumpy().copy() for p in params])
    return history, opt


def adam(g, s, t, lr, b1=0.9, b2=0.999, eps=1e-8, nesterov=False, amsgrad=False):
    m, v = s.get("m", 0) * b1 + (1 - b1) * g, s.get("v", 0) * b2 + (1 - b2) * g * g
    top = np.maximum(s.get("top", 0), v)
    s.update(m=m, v=v, top=top)
    d = b1 * m + (1 - b1) * g if nesterov else m
    return lr * np.sqrt(1 - b2**t) / (1 - b1**t) * d / (np.sqrt(top if amsgrad else v) + eps)


def sgd(g, s, t, lr, momentum=0.0, dampening=0.0, nesterov=False):
    v = g if t == 1 else momentum * s["v"] + (1 - dampening) * g
    s["v"] = v
    return lr * (g + momentum * v if nesterov else v if momentum else g)


def rmsprop(g, s, t, lr, decay=0.9, momentum=0.0, eps=1e-10, centered=False):
    s["s"] = decay * s.get("s", 1) + (1 - decay) * g * g
    s["a"] = decay * s.get("a", 0) + (1 - decay) * g
    s["v"] = momentum * s.get("v", 0) + lr * g / np.sqrt(s["s"] - (s["a"] ** 2 if centered else 0) + eps)
    return s["v"]


def adagrad(g, s, t, lr, accum=0.1, update=True):
    if update:
        s["h"] = s.get("h", accum) + g * g
    return lr * g / np.sqrt(s.get("h", accum))


def adadelta(g, s, t, lr, rho=0.9, eps=1e-6):
    s["a"] = rho * s.get("a", 0) + (1 - rho) * g * g
    u = np.sqrt(s.get("b", 0) + eps) / np.sqrt(s["a"] + eps) * g
    s["b"] = rho * s.get("b", 0) + (1 - rho) * u * u
    return lr * u


def adamax(g, s, t, lr, b1=0.9, b2=0.999, eps=1e-8):
    s["m"], s["v"] = b1 * s.get("m", 0) + (1 - b1) * g, np.maximum(b2 * s.get("v", 0), np.abs(g))
    return lr / (1 - b1**t) * s["m"] / (s["v"] + eps)


def lamb(g, s, t, lr, w, wd=0.0, b1=0.9, b2=0.999, eps=1e-6):
    s["m"], s["v"] = b1 * s.get("m", 0) + (1 - b1) * g, b2 * s.get("v", 0) + (1 - b2) * g * g
    r = s["m"] / (1 - b1**t) / (np.sqrt(s["v"] / (1 - b2**t)) + eps) + wd * w
    return lr * np.linalg.norm(w) / np.linalg.norm(r) * r


def adamw(g, s, t, lr, w, wd=0.0, b1=0.9, b2=0.999, eps=1e-6):
    s["m"], s["v"] = b1 * s.get("m", 0) + (1 - b1) * g, b2 * s.get("v", 0) + (1 - b2) * g * g
    return lr * (s["m"] / (np.sqrt(s["v"]) + eps) + wd * w)


def ftrl(g, s, t, lr, w, l1=0.0, l2=0.0):
    n = s.get("n", 0.1) + g * g
    z = s.get("z", 0) + g - (np.sqrt(n) - np.sqrt(s.get("n", 0.1))) / lr * w
    s.update(n=n, z=z)
    return w - np.where(np.abs(z) > l1, (np.sign(z) * l1 - z) / (np.sqrt(n) / lr + 2 * l2), 0)


def proximal(g, s, t, lr, w, l1=0.0, l2=0.0):
    s["h"] = s.get("h", 0.1) + g * g
    r = lr / np.sqrt(s["h"])
    v = w - r * g
    return w - np.sign(v) * np.maximum(np.abs(v) - r * l1, 0) / (1 + r * l2)


def lars(g, s, t, lr, w, name="", wd=0.0, clip=False, coefficient=0.001, momentum=0.9):
    if "bias" not in name:
        nw, ng = np.linalg.norm(w), np.linalg.norm(g)
        decay = 0 if "gamma" in name else wd
        ratio = coefficient * nw / (ng + decay * nw + 1e-5)
        g = (min(ratio / lr, 1) if clip else ratio) * (g + decay * w)
    s["v"] = momentum * s.get("v", 0) + g
    return lr * s["v"]


# (name, optimizer, NumPy's step, weight decay added to the gradient, what the step needs beside the gradient)
CASES = [
    ("SGD", lambda p: nn.SGD(p, 0.1, weight_decay=0.05), lambda *a: sgd(*a, 0.1), 0.05, ""),
    (
        "SGD momentum",
        lambda p: nn.SGD(p, 0.1, momentum=0.9, dampening=0.1, weight_decay=0.05),
        lambda *a: sgd(*a, 0.1, 0.9, 0.1),
        0.05,
        "",
    ),
    (
        "SGD nesterov",
        lambda p: nn.SGD(p, 0.1, momentum=0.9, nesterov=True, loss_scale=2.0),
        lambda g, s, t: sgd(g / 2, s, t, 0.1, 0.9, 0, True),
        0,
        "",
    ),
    ("Momentum", lambda p: nn.Momentum(p, 0.1, 0.9, weight_decay=0.05), lambda *a: sgd(*a, 0.1, 0.9), 0.05, ""),
    ("Adam", lambda p: nn.Adam(p, 0.1, weight_decay=0.05), lambda *a: adam(*a, 0.1), 0.05, ""),
    ("Adam amsgrad", lambda p: nn.Adam(p, 0.1, use_amsgrad=True), lambda *a: adam(*a, 0.1, amsgrad=True), 0, ""),
    ("Adam nesterov", lambda p: nn.Adam(p, 0.1, use_nesterov=True), lambda *a: adam(*a, 0.1, nesterov=True), 0, ""),
    ("LazyAdam", lambda p: nn.LazyAdam(p, 0.1), lambda *a: adam(*a, 0.1), 0, ""),
    ("AdamOffload", lambda p: nn.AdamOffload(p, 0.1), lambda *a: adam(*a, 0.1), 0, ""),
    (
        "AdamWeightDecay",
        lambda p: nn.AdamWeightDecay(p, 0.1, weight_decay=0.05),
        lambda g, s, t, w, name: adamw(g, s, t, 0.1, w, 0 if "gamma" in name else 0.05),
        0,
        "w",
    ),
    (
        "Lamb",
        lambda p: nn.Lamb(p, 0.1, weight_decay=0.05),
        lambda g, s, t, w, name: lamb(g, s, t, 0.1, w, 0 if "gamma" in name else 0.05),
        0,
        "w",
    ),
    ("RMSProp", lambda p: nn.RMSProp(p, 0.1, momentum=0.5), lambda *a: rmsprop(*a, 0.1, momentum=0.5), 0, ""),
    (
        "RMSProp centered",
        lambda p: nn.RMSProp(p, 0.1, centered=True, weight_decay=0.05),
        lambda *a: rmsprop(*a, 0.1, centered=True),
        0.05,
        "",
    ),
    ("Adagrad", lambda p: nn.Adagrad(p, learning_rate=0.1), lambda *a: adagrad(*a, 0.1), 0, ""),
    (
        "Adagrad fixed",
        lambda p: nn.Adagrad(p, learning_rate=0.1, update_slots=False),
        lambda *a: adagrad(*a, 0.1, update=False),
        0,
        "",
    ),
    ("Adadelta", lambda p: nn.Adadelta(p, weight_decay=0.05), lambda *a: adadelta(*a, 1.0), 0.05, ""),
    ("AdaMax", lambda p: nn.AdaMax(p, 0.1), lambda *a: adamax(*a, 0.1), 0, ""),
    (
        "FTRL",
        lambda p: nn.FTRL(p, learning_rate=0.1, l1=0.01, l2=0.02),
        lambda g, s, t, w, name: ftrl(g, s, t, 0.1, w, 0.01, 0.02),
        0,
        "w",
    ),
    (
        "ProximalAdagrad",
        lambda p: nn.ProximalAdagrad(p, learning_rate=0.1, l1=0.01, l2=0.02),
        lambda g, s, t, w, name: proximal(g, s, t, 0.1, w, 0.01, 0.02),
        0,
        "w",
    ),
    (
        "LARS",
        lambda p: nn.LARS(nn.Momentum(p, 0.1, 0.9, weight_decay=0.05)),
        lambda g, s, t, w, name: lars(g, s, t, 0.1, w, name, 0.05),
        0,
        "w",
    ),
    (
        "LARS clip",
        lambda p: nn.LARS(nn.Momentum(p, 0.1, 0.9), use_clip=True, coefficient=0.02),
        lambda g, s, t, w, name: lars(g, s, t, 0.1, w, name, 0, True, 0.02),
        0,
        "w",
    ),
]


@pytest.mark.parametrize("make, step, decay, needs", [c[1:] for c in CASES], ids=[c[0] for c in CASES])
def test_formula(make, step, decay, needs):
    check(make, step, decay, needs, compiled=False)


# Compiling takes most of the time: one of each kind.
@pytest.mark.parametrize("name", ["SGD momentum", "Adam amsgrad", "Lamb", "RMSProp centered", "FTRL", "LARS clip"])
def test_formula_compiled(name):
    check(*next(c[1:] for c in CASES if c[0] == name), compiled=True)


def check(make, step, decay, needs, compiled):
    history, opt = run(make, compiled)
    weights, grads = start()
    for i, (name, w) in enumerate(weights.items()):
        w, state = w.astype("d"), {}
        for t in range(1, STEPS + 1):
            g = grads[t - 1][name].astype("d")
            g = g + (0 if "gamma" in name else decay) * w
            w = w - (step(g, state, t, w, name) if needs else step(g, state, t))
            np.testing.assert_allclose(history[t - 1][i], w, rtol=2e-4, atol=2e-5, err_msg=f"{name}, step {t}")
    assert opt.global_step.tolist() == [STEPS]
    assert next(iter(opt.get_parameters())).name == "global_step"


# fc.bias after four steps, and the states' names, as MindSpore 2.10 gives them on a CPU.
PINNED = [
    (
        "SGD",
        lambda p: nn.SGD(p, 0.1, momentum=0.9, dampening=0.1, weight_decay=0.05),
        [0.7404487133026123, -0.46343567967414856],
        "global_step learning_rate momentum accum.<p> stat.<p>",
    ),
    (
        "SGD_nesterov",
        lambda p: nn.SGD(p, 0.1, momentum=0.9, nesterov=True, weight_decay=0.05, loss_scale=2.0),
        [0.8003073930740356, -0.34932103753089905],
        "global_step learning_rate momentum accum.<p> stat.<p>",
    ),
    (
        "Momentum",
        lambda p: nn.Momentum(p, 0.1, 0.9, weight_decay=0.05, loss_scale=2.0),
        [0.8094238042831421, -0.315387487411499],
        "global_step learning_rate momentum moments.<p>",
    ),
    (
        "Adam",
        lambda p: nn.Adam(p, 0.1, weight_decay=0.05),
        [0.9382641911506653, -0.3804681897163391],
        "global_step learning_rate beta1_power beta2_power moment1.<p> moment2.<p>",
    ),
    (
        "Adam_amsgrad",
        lambda p: nn.Adam(p, 0.1, use_amsgrad=True),
        [0.950689435005188, -0.38325467705726624],
        "global_step learning_rate beta1_power beta2_power moment1.<p> moment2.<p> vhat.<p>",
    ),
    (
        "AdamWeightDecay",
        lambda p: nn.AdamWeightDecay(p, 0.1, weight_decay=0.05),
        [0.8009543418884277, -1.0609960556030273],
        "global_step learning_rate adam_m.<p> adam_v.<p>",
    ),
    (
        "RMSProp_centered",
        lambda p: nn.RMSProp(p, 0.1, centered=True, momentum=0.5),
        [0.8654425144195557, -0.3550110459327698],
        "global_step learning_rate mean_grad.<p> mean_square.<p> moment.<p>",
    ),
    (
        "Adagrad",
        lambda p: nn.Adagrad(p, learning_rate=0.1, weight_decay=0.05),
        [0.9587585926055908, -0.2790282368659973],
        "global_step learning_rate accum.<p>",
    ),
    (
        "Adadelta",
        lambda p: nn.Adadelta(p, weight_decay=0.05),
        [0.9529105424880981, -0.1567518711090088],
        "global_step learning_rate accum.<p> accum_update.<p>",
    ),
    (
        "AdaMax",
        lambda p: nn.AdaMax(p, 0.1, weight_decay=0.05),
        [0.9760185480117798, -0.3427655100822449],
        "global_step learning_rate beta1_power moment1.<p> moment2.<p>",
    ),
    (
        "ASGD",
        lambda p: nn.ASGD(p, 0.1, weight_decay=0.05, t0=2.0, lambd=0.01),
        [0.9156810641288757, -0.25811299681663513],
        "global_step learning_rate mu_<p> eta_<p> ax_.<p>",
    ),
    (
        "Rprop",
        lambda p: nn.Rprop(p, 0.1, weight_decay=0.05),
        [1.160088300704956, -0.431357204914093],
        "global_step learning_rate prev.<p> step_size.<p>",
    ),
    (
        "LazyAdam",
        lambda p: nn.LazyAdam(p, 0.1, weight_decay=0.05),
        [0.9382641911506653, -0.3804681897163391],
        "global_step learning_rate beta1_power beta2_power moment1.<p> moment2.<p>",
    ),
    (
        "ProximalAdagrad",
        lambda p: nn.ProximalAdagrad(p, learning_rate=0.1, l1=0.01, l2=0.02, weight_decay=0.05),
        [0.945431649684906, -0.2730959951877594],
        "global_step learning_rate accum.<p>",
    ),
    (
        "AdaFactor",
        lambda p: nn.AdaFactor(p),
        [0.9516722559928894, -0.15458185970783234],
        "global_step learning_rate exp_avg.<p> exp_avg_sq_row_<p> exp_avg_sq_col_<p> exp_avg_sq_<p> afactor_step",
    ),
    (
        "Adam_list",
        lambda p: nn.Adam(p, [0.1, 0.2, 0.3, 0.4]),
        [0.819187343120575, -0.5870741605758667],
        "global_step beta1_power beta2_power moment1.<p> moment2.<p> learning_rate",
    ),
    (
        "Adam_sched",
        lambda p: nn.Adam(p, nn.CosineDecayLR(0.01, 0.1, 4)),
        [0.9740055799484253, -0.3429849147796631],
        "global_step beta1_power beta2_power moment1.<p> moment2.<p>",
    ),
    (
        "Group",
        lambda p: nn.Momentum(
            [{"params": p[:1], "lr": 0.5, "weight_decay": 0.1}, {"params": p[1:]}, {"order_params": p}], 0.1, 0.9
        ),
        [0.7522433400154114, -0.4966825842857361],
        "global_step learning_rate_group_0 learning_rate momentum moments.<p>",
    ),
    (
        "Group_dyn",
        lambda p: nn.Momentum(
            [{"params": p[:1], "lr": [0.5, 0.4, 0.3, 0.2], "weight_decay": 0.1}, {"params": p[1:]}], 0.1, 0.9
        ),
        [0.7522433400154114, -0.49668267369270325],
        "global_step momentum moments.<p> learning_rate_group_0 learning_rate",
    ),
]


@pytest.mark.parametrize("make, bias, states", [c[1:] for c in PINNED], ids=[c[0] for c in PINNED])
def test_mindspore_values(make, bias, states):
    history, opt = run(make)
    np.testing.assert_allclose(history[-1][1], bias, rtol=1e-4, atol=1e-5)
    dots = [name.replace("fc.bias", "<p>") for name in opt.parameters_dict() if "fc.weight" not in name]
    assert [n for n in dots if "gamma" not in n and n != "<p>"] == states.split()
