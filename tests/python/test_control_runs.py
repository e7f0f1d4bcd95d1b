# SPDX-License-Identifier: Apache-2.0
"""Control flow and printing in whole runs: draws, errors, a recurrent network, what is printed."""

import numpy as np
import pytest

import undertow as ms
from undertow import Parameter, Tensor, nn, ops

X = np.random.default_rng(0).normal(size=(3, 4)).astype(np.float32)
W = np.eye(4, dtype=np.float32)

# ---- random draws


def test_draws_differ_by_trip_and_agree_between_modes(device):
    class Net(nn.Cell):
        def __init__(self):
            super().__init__()
            self.w = Parameter(Tensor(np.ones((), np.float32)), "w")
            self.seen = Parameter(Tensor(np.zeros((4, 2, 8), np.float32)), "seen", requires_grad=False)
            self.after = Parameter(Tensor(np.zeros(8, np.float32)), "after", requires_grad=False)
            self.drop = nn.Dropout(p=0.5)

        def construct(self, x):
            one = x[:1].sum() * 0 + ops.ones(8)

            def step(c, _):
                inner = ops.scan(lambda c, _: (c, self.drop(one)), c, None, length=2, unroll=False)[1]
                inner = ops.stack(inner)
                return c + ops.cond(c[0] >= 0, lambda: self.drop(one), lambda: one).sum() * 0, inner

            _, ys = ops.scan(step, ops.zeros(1), None, length=4, unroll=False)
            self.seen = ops.stack(ys)
            self.after = self.drop(one)
            return (self.w * x).mean()

    seen = []
    for sink, mode in ((True, ms.GRAPH_MODE), (False, ms.PYNATIVE_MODE)):
        ms.set_context(mode=mode)
        ms.set_seed(7)
        net = Net()
        net.set_train()
        data = ms.dataset.NumpySlicesDataset({"x": np.ones((6, 2), np.float32)}, shuffle=False).batch(2)
        model = ms.Model(net, optimizer=nn.SGD(net.trainable_params(), 0.0))
        model.train(1, data, dataset_sink_mode=sink)
        seen.append((net.seen.asnumpy(), net.after.asnumpy()))
    np.testing.assert_array_equal(seen[0][0], seen[1][0])
    np.testing.assert_array_equal(seen[0][1], seen[1][1])
    masks = {m.tobytes() for m in seen[0][0].reshape(8, 8)}
    assert len(masks) > 5


# ---- errors


def test_branches_that_differ_are_named():
    def f(p, x):
        return ops.cond(p, lambda x: x, lambda x: x.sum(), x)

    with pytest.raises(TypeError, match=r"(?s)Float32\(3, 4\).*Float32\(\).*test_control_runs.py"):
        ms.jit(f)(Tensor(True), Tensor(X))

    def g(p, x):
        return ops.cond(p, lambda x: (x, x), lambda x: x, x)

    with pytest.raises(TypeError, match=r"\(Tensor, Tensor\).*returned Tensor"):
        ms.jit(g)(Tensor(True), Tensor(X))


def test_a_carry_that_changes_is_named(device):
    def f(x):
        return ops.while_loop(lambda v: v.sum() < 1e9, lambda v: v.sum(), x)

    for run in (f, ms.jit(f)):
        with pytest.raises(TypeError, match=r"(?s)while_loop.*carry was"):
            run(Tensor(X))

    def g(x):
        return ops.scan(lambda c, r: (r, c), Tensor(1.0), x)

    for run in (g, ms.jit(g)):
        with pytest.raises(TypeError, match=r"(?s)scan.*carry was"):
            run(Tensor(X))


def test_wrong_arguments():
    x = Tensor(X)
    for call, error, text in [
        (lambda: ops.cond(x, 1, 2), TypeError, "takes two functions"),
        (lambda: ops.while_loop(1, lambda v: v, x), TypeError, "'cond_func' must be a function"),
        (lambda: ops.while_loop(lambda v: True, None, x), TypeError, "'loop_func' must be a function"),
        (lambda: ops.scan(1, x, [x]), TypeError, "'loop_func' must be a function"),
        (lambda: ops.scan(lambda c, e: (c, e), x, 3), TypeError, "'xs' must be"),
        (lambda: ops.scan(lambda c, e: (c, e), x, None), ValueError, "number of trips"),
        (lambda: ops.scan(lambda c, e: (c, e), x, [x], length=2), ValueError, "length"),
        (lambda: ops.scan(lambda c, e: (c, e), x, [x], unroll=1), TypeError, "'unroll' must be a bool"),
        (lambda: ops.scan(lambda c, e: c, x, [x]), TypeError, r"must return \(carry, result\)"),
        (lambda: ops.fori_loop(0.5, 2, lambda i, v: v, x), TypeError, "'lower' must be an int or a Tensor"),
    ]:
        with pytest.raises(error, match=text):
            call()


def test_a_tensor_that_leaves_its_function():
    kept = []

    def f(p, x):
        y = ops.cond(p, lambda x: kept.append(x * 2) or x, lambda x: x, x)
        return y + kept[0]

    with pytest.raises(ms.TraceError, match="within a function of ops.cond"):
        ms.jit(f)(Tensor(True), Tensor(X))


def test_a_gradient_within_a_function_that_misses_a_path_is_refused():
    w = Parameter(Tensor(W), "w")

    def f(x):
        y = (w * 2).sum()

        def step(c, r):
            return c + ops.grad(lambda r: (y * r).sum(), None, [w])(r)[0].sum(), None

        return ops.scan(step, Tensor(np.float32(0)), x)[0]

    with pytest.raises(ms.TraceError, match="computed outside of it"):
        ms.jit(f)(Tensor(X))


def test_an_index_out_of_range_in_a_loop_changes_nothing(device):
    class Net(nn.Cell):
        def __init__(self):
            super().__init__()
            self.w = Parameter(Tensor(np.ones(4, np.float32)), "w")
            self.count = Parameter(Tensor(np.zeros((), np.float32)), "count", requires_grad=False)

        def construct(self, index):
            def step(c, i):
                self.count = self.count + 1
                return c + ops.gather(self.w, i, 0).sum(), None

            return ops.scan(step, Tensor(np.float32(0)), index.reshape(-1))[0]

    for sink in (True, False):
        net = Net()
        rows = np.zeros((6, 3), np.int32)
        rows[4, 1] = 9
        data = ms.dataset.NumpySlicesDataset({"i": rows}, shuffle=False).batch(1)
        model = ms.Model(net, optimizer=nn.SGD(net.trainable_params(), 0.1))
        with pytest.raises(IndexError, match=r"index 9 at row 0 is .*-4 to 3.*gather"):
            model.train(1, data, dataset_sink_mode=sink)
        assert net.count.asnumpy() == 12
        np.testing.assert_allclose(net.w.asnumpy(), [1 - 4 * 0.1 * 3, 1, 1, 1], rtol=1e-5)


# ---- a network


class Recurrent(nn.Cell):
    """A small RNN written with ops.scan."""

    def __init__(self, unroll=None):
        super().__init__()
        rng = np.random.default_rng(1)
        self.w = Parameter(Tensor(rng.normal(size=(3, 8)).astype(np.float32) * 0.5), "w")
        self.u = Parameter(Tensor(rng.normal(size=(8, 8)).astype(np.float32) * 0.3), "u")
        self.out = nn.Dense(8, 1, has_bias=False)
        self.out.weight.set_data(Tensor(rng.normal(size=(1, 8)).astype(np.float32) * 0.3))
        self.unroll = unroll

    def construct(self, x):
        x = x.transpose(1, 0, 2)

        def step(h, r):
            h = ops.tanh(r.matmul(self.w) + h.matmul(self.u))
            return h, None

        h = ops.zeros((x.shape[1], 8))
        if self.unroll:
            for i in range(x.shape[0]):
                h, _ = step(h, x[i])
        else:
            h, _ = ops.scan(step, h, x)
        return self.out(h)


def train_recurrent(sink, unroll=None, epochs=6):
    rng = np.random.default_rng(2)
    x = rng.normal(size=(64, 5, 3)).astype(np.float32)
    y = x[:, :, 0].sum(1, keepdims=True)
    data = ms.dataset.NumpySlicesDataset({"x": x, "y": y}, shuffle=False).batch(16)
    net = Recurrent(unroll)
    model = ms.Model(net, nn.MSELoss(), nn.SGD(net.trainable_params(), 0.1))
    losses = []

    class Keep(ms.Callback):
        def on_train_step_end(self, run_context):
            losses.extend(run_context.original_args().step_losses)

    model.train(epochs, data, callbacks=[Keep()], dataset_sink_mode=sink)
    return np.array(losses), [p.asnumpy() for p in net.trainable_params()]


def test_a_recurrent_net_trains_sunk_as_step_by_step_as_unrolled(device):
    losses, params = train_recurrent(True)
    assert losses[-4:].mean() < 0.5 * losses[:4].mean()
    for other in (train_recurrent(False), train_recurrent(True, unroll=True)):
        np.testing.assert_allclose(losses, other[0], rtol=1e-3, atol=1e-4)
        for a, b in zip(params, other[1]):
            np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-4)


# ---- printing


class Printing(nn.Cell):
    def __init__(self):
        super().__init__()
        self.w = Parameter(Tensor(np.ones(2, np.float32)), "w")

    def construct(self, x):
        print("row", x[0], "of", x.shape[0])
        y = (x * self.w).mean()

        def step(c, r):
            ops.print_("in", r.sum())
            return c + 1, None

        ops.scan(step, Tensor(0), x)
        print(y, "mean", sep=" | ")
        return y


@pytest.mark.parametrize("sink, mode", [(True, 0), (False, 0), (False, 1)])
def test_prints_of_a_run(device, capsys, sink, mode):
    ms.set_context(mode=mode)
    x = np.arange(16, dtype=np.float32).reshape(8, 2)
    data = ms.dataset.NumpySlicesDataset({"x": x}, shuffle=False).batch(2)
    net = Printing()
    model = ms.Model(net, optimizer=nn.SGD(net.trainable_params(), 0.0))
    model.train(2, data, dataset_sink_mode=sink)
    lines = []
    for _ in range(2):
        for b in x.reshape(4, 2, 2):
            m = b.mean()
            lines.append(f"row {b[0]} of 2")
            for r in b:
                lines += ["in", str(r.sum())]
            lines.append(f"{m} | mean")
    assert capsys.readouterr().out.splitlines() == lines
    ms.set_context(mode=ms.PYNATIVE_MODE)


def test_print_shows_values_as_numpy_does(device, capsys):
    values = [
        np.arange(6, dtype=np.int32).reshape(2, 3),
        np.linspace(0, 1, 7, dtype=np.float32),
        np.array([1e-9, 1.0, np.nan, -np.inf], np.float32),
        np.array(True),
        np.arange(2000, dtype=np.float64),
    ]

    def f(*xs):
        for x in xs:
            print(x)
        ops.print_("{text}", xs[0], 3, (xs[3], "t"))
        return xs[0] + 1

    ms.jit(f)(*map(Tensor, values))
    expected = [str(v) for v in values] + ["{text}", str(values[0]), "3", "(True, 't')"]
    assert capsys.readouterr().out == "\n".join(expected) + "\n"


def test_a_branch_prints_only_when_it_runs_and_gradients_pass_by(capsys):
    def f(p, x):
        def yes(x):
            print("yes", x.sum())
            return x * x

        return ops.cond(p, yes, lambda x: x, x).sum()

    g = ms.jit(ops.grad(f, 1))
    for p, lines in ((True, ["yes 6.0"]), (False, [])):
        out = g(Tensor(p), Tensor([1.0, 2.0, 3.0]))
        np.testing.assert_allclose(out.asnumpy(), [2, 4, 6] if p else [1, 1, 1])
        assert capsys.readouterr().out.splitlines() == lines


def test_prints_before_a_failure_are_kept(device, capsys):
    def f(x, i):
        print("before", x.sum())
        y = ops.gather(x, i, 0)
        print("after", y.sum())
        return y

    with pytest.raises(IndexError):
        ms.jit(f)(Tensor([1.0, 2.0]), Tensor([5]))
    assert capsys.readouterr().out == "before 3.0\n"


def test_more_prints_than_the_queue_holds(capsys):
    def f(x):
        def step(c, r):
            print(c, r)
            return c + 1, None

        return ops.scan(step, Tensor(0), x)[0]

    rows = np.zeros((400, 8192), np.float32)
    assert int(ms.jit(f)(Tensor(rows))) == 400
    assert capsys.readouterr().out.splitlines() == [f"{i} {rows[0]}" for i in range(400)]


def test_print_is_given_back():
    import builtins

    before = builtins.print
    ms.jit(lambda x: x + 1)(Tensor(X))
    with pytest.raises(ms.TraceError):
        ms.jit(lambda x: float(x.sum()))(Tensor(X))
    assert builtins.print is before
