# SPDX-License-Identifier: Apache-2.0
"""value_and_grad, grad and jit."""

import numpy as np
import pytest

import undertow as ut
from undertow import Parameter, Tensor, nn, ops


def vec(*values):
    return Tensor(np.array(values, np.float32))


@pytest.fixture(params=["eager", "compiled"])
def run(request):
    """Runs a function of tensors as it is, or compiled."""
    return (lambda f, *args: f(*args)) if request.param == "eager" else (lambda f, *args: ut.jit(f)(*args))


def test_positions(run):
    def f(x, y):
        return (x * x * y).sum()

    x, y = vec(1, 2), vec(3, 4)
    value, grad = run(ut.value_and_grad(f), x, y)
    assert value.item() == 19 and grad.tolist() == [6, 16]
    assert run(ut.grad(f, 1), x, y).tolist() == [1, 4]
    gx, gy = run(ut.grad(f, (0, 1)), x, y)
    assert gx.tolist() == [6, 16] and gy.tolist() == [1, 4]
    assert [g.tolist() for g in run(ut.grad(f, (1,)), x, y)] == [[1, 4]]


def test_the_same_tensor_twice(run):
    x = vec(2, 3)
    gx, gy = run(lambda t: ut.grad(lambda a, b: (a * a * b).sum(), (0, 1))(t, t), x)
    assert gx.tolist() == [8, 18] and gy.tolist() == [4, 9]


def test_weights(run):
    w, b = Parameter(vec(2, 3), name="w"), Parameter(vec(1), name="b")

    def f(x):
        return (x * w).sum() + b.sum()

    x = vec(5, 7)
    value, grads = run(ut.value_and_grad(f, None, [w, b]), x)
    assert value.item() == 32 and [g.tolist() for g in grads] == [[5, 7], [1]]
    assert run(ut.grad(f, None, w), x).tolist() == [5, 7]
    inputs, weights = run(ut.grad(f, 0, ut.ParameterTuple([w, b])), x)
    assert inputs.tolist() == [2, 3] and len(weights) == 2
    unused = Parameter(vec(9), name="unused")
    assert run(ut.grad(f, None, [unused]), x)[0].tolist() == [0]


def test_has_aux(run):
    def f(x):
        return (x * x).sum(), x + 1, {"kept": x * 100}

    x = vec(1, 2)
    value, grad = run(ut.value_and_grad(f, has_aux=True), x)
    assert value[0].item() == 5 and value[1].tolist() == [2, 3] and value[2]["kept"].tolist() == [100, 200]
    assert grad.tolist() == [2, 4]
    grad, aux = ut.grad(f, has_aux=True)(x)
    assert grad.tolist() == [2, 4] and aux[0].tolist() == [2, 3]


def test_several_outputs_are_summed(run):
    assert run(ut.grad(lambda x: (x * 2, x * x)), vec(1, 3)).tolist() == [4, 8]
    assert run(ut.grad(lambda x: x * x), vec(1, 3)).tolist() == [2, 6]


def test_second_order(run):
    cube = lambda x: (x * x * x).sum()  # noqa: E731
    assert run(ut.grad(lambda x: ut.grad(cube)(x).sum()), vec(2, 3)).tolist() == [12, 18]


def test_ids_and_stopped_gradients(run):
    w = Parameter(vec(1), name="net.w")
    (inner, outer) = ut.grad(lambda x: (x * w).sum(), 0, [w], return_ids=True)(vec(3))
    assert inner[0] == 0 and outer[0][0] == "net.w" and outer[0][1].tolist() == [3]
    assert run(ut.grad(lambda x: (ops.stop_gradient(x) * x).sum()), vec(3)).tolist() == [3]


@pytest.mark.parametrize(
    "call, error",
    [
        (lambda: ut.grad(lambda x: x, None), ValueError),
        (lambda: ut.grad(3), TypeError),
        (lambda: ut.grad(lambda x: x)(3.0), TypeError),
        (lambda: ut.grad(lambda x: x, 2)(vec(1)), ValueError),
        (lambda: ut.grad(lambda x: 1.0)(vec(1)), TypeError),
        (lambda: ut.grad(lambda x: x.astype(ut.int32))(vec(1)), TypeError),
        (lambda: ut.grad(lambda x: x, 0, [vec(1)]), TypeError),
    ],
)
def test_bad_gradients(call, error):
    with pytest.raises(error):
        call()


def test_a_training_step_by_hand():
    """MindSpore's functional style: forward, value_and_grad, optimizer; eager and compiled give the same weights."""
    rng = np.random.default_rng(0)
    x, y = Tensor(rng.normal(size=(8, 3)).astype(np.float32)), Tensor(rng.normal(size=(8, 1)).astype(np.float32))
    results = []
    for compiled in (False, True):
        net = nn.Dense(3, 1, weight_init="ones", bias_init="zeros")
        opt = nn.Momentum(net.trainable_params(), 0.1, 0.9)
        gradient = ut.value_and_grad(lambda a, b, net=net: nn.MSELoss()(net(a), b), None, opt.parameters)

        def step(a, b, gradient=gradient, opt=opt):
            loss, grads = gradient(a, b)
            opt(grads)
            return loss

        run = ut.jit(step) if compiled else step
        losses = [run(x, y).item() for _ in range(20)]
        assert losses[-1] < losses[0] and opt.global_step.asnumpy().item() == 20
        results.append((losses, net.weight.asnumpy()))
    np.testing.assert_allclose(results[0][0], results[1][0], rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(results[0][1], results[1][1], rtol=1e-5, atol=1e-6)


def test_failed_gradient_writes_nothing():
    p = Parameter(vec(1), name="p")

    def f(x):
        ops.assign(p, x)
        raise RuntimeError("later")

    with pytest.raises(RuntimeError, match="later"):
        ut.grad(f)(vec(5))
    assert p.tolist() == [1]


# ---- jit


def counted():
    calls = []

    @ut.jit
    def f(x, y=1, flag=True):
        calls.append(1)
        return x * y if flag else x - y

    return f, calls


def test_keyed_by_shape_dtype_and_values():
    f, calls = counted()
    assert f(vec(1, 2), 3).tolist() == [3, 6] and f(vec(5, 6), 3).tolist() == [15, 18] and len(calls) == 1
    f(vec(1, 2, 3), 3)
    f(Tensor([1, 2]), 3)
    assert f(vec(1, 2), 4).tolist() == [4, 8] and f(vec(1, 2), 3, flag=False).tolist() == [-2, -1] and len(calls) == 5
    ut.set_context(device_target="reference")
    f(vec(1, 2), 3)
    assert len(calls) == 6


def test_keyed_by_training_flag_and_attributes():
    class Net(nn.Cell):
        def __init__(self):
            super().__init__()
            self.drop = nn.Dropout(p=0.5)
            self.factor = 2

        def construct(self, x):
            return self.drop(x) * self.factor

    net = Net()
    f = ut.jit(lambda x: net(x))
    x = ops.ones((100,))
    assert set(f(x).tolist()) == {2}
    net.set_train()
    assert set(f(x).tolist()) == {0, 4}
    net.set_train(False)
    net.factor = 3
    assert set(f(x).tolist()) == {3}


def test_structures():
    @ut.jit
    def f(pair, options):
        a, b = pair
        return {"sum": a + b, "list": [a, options["k"], None, "text"]}, (a,)

    out, (a,) = f((vec(1), vec(2)), {"k": vec(7)})
    assert out["sum"].item() == 3 and out["list"][1].item() == 7 and out["list"][2:] == [None, "text"] and a.item() == 1


def test_captured_tensors_are_read_at_every_call():
    held = vec(1)
    f = ut.jit(lambda x: x + held)
    assert f(vec(1)).item() == 2
    held[0] = 10
    assert f(vec(1)).item() == 11


def test_decorator_forms_and_methods():
    class Net(nn.Cell):
        def __init__(self):
            super().__init__()
            self.fc = nn.Dense(1, 1, weight_init="ones", has_bias=False)

        @ut.jit
        def construct(self, x):
            return self.fc(x) + 1

    @ut.jit(jit_level="O1", fullgraph=True)
    def double(x):
        """Doubles."""
        return x * 2

    assert Net()(Tensor([[4.0]])).item() == 5 and double(vec(3)).item() == 6 and double.__doc__ == "Doubles."
    assert ut.jit(Net())(Tensor([[4.0]])).item() == 5
    with pytest.raises(TypeError):
        ut.jit(3)


def test_an_error_while_tracing_can_be_mended():
    state = {"bad": True}

    @ut.jit
    def f(x):
        if state["bad"]:
            raise ValueError("bad state")
        return x

    with pytest.raises(ValueError, match="bad state"):
        f(vec(1))
    state["bad"] = False
    assert f(vec(1)).item() == 1


def test_one_compile_for_equal_graphs():
    ut.runtime.reset_stats()
    for _ in range(3):
        ut.jit(lambda x: ops.tanh(x) * 1.2345)(vec(1, 2, 3))
    stats = ut.runtime.stats()
    assert stats["compiles"] <= 1 and stats["compiles"] + stats["program_hits"] == 3
