# SPDX-License-Identifier: Apache-2.0
"""Control flow and printing: against NumPy, numeric gradients, and eager against compiled on both devices."""

from contextlib import contextmanager

import numpy as np
import pytest

import undertow as ms
from undertow import Parameter, Tensor, nn, ops


@contextmanager
def reference():
    """Op by op, the CPU would compile each op for each shape."""
    before = ms.get_context("device_target")
    ms.set_context(device_target="reference")
    yield
    ms.set_context(device_target=before)


def both(f, *args):
    """The results of f run eagerly and compiled; arrays get Tensors of their own for each."""

    def run(g):
        return g(*(Tensor(a) for a in args))

    with reference():
        eager = run(f)
    return eager, run(ms.jit(f))


def arrays(tree):
    if isinstance(tree, Tensor):
        return [tree.asnumpy()]
    if isinstance(tree, dict):
        tree = list(tree.values())
    if isinstance(tree, (tuple, list)):
        return [a for item in tree for a in arrays(item)]
    return [np.asarray(tree)]


def same(f, args, expected, tol=1e-5):
    for got in both(f, *args):
        got = arrays(got)
        assert len(got) == len(expected)
        for g, e in zip(got, expected):
            e = np.asarray(e)
            assert g.shape == e.shape and g.dtype.kind == e.dtype.kind
            np.testing.assert_allclose(g, e, rtol=tol, atol=tol)


def numeric_grad(f, args, index, eps=1e-3):
    """Central differences of sum(f), evaluated by the library in float64."""
    with reference():
        return central_differences(f, args, index, eps)


def central_differences(f, args, index, eps):
    x = args[index].astype(np.float64)
    grad = np.zeros_like(x)
    for i in np.ndindex(*x.shape):
        values = []
        for sign in (1, -1):
            moved = x.copy()
            moved[i] += sign * eps
            call = [moved if k == index else a for k, a in enumerate(args)]
            values.append(
                float(f(*(Tensor(a.astype(np.float64) if a.dtype.kind == "f" else a) for a in call)).asnumpy().sum())
            )
        grad[i] = (values[0] - values[1]) / (2 * eps)
    return grad


def check_grads(f, args, wrt, tol=2e-3):
    """Gradients of f eagerly and compiled, against numeric ones."""
    g = ops.grad(f, wrt)
    for got in both(g, *args):
        got = got if isinstance(got, tuple) else (got,)
        for position, value in zip(wrt if isinstance(wrt, tuple) else (wrt,), got):
            np.testing.assert_allclose(value.asnumpy(), numeric_grad(f, args, position), rtol=tol, atol=tol)


RNG = np.random.default_rng(0)
X = RNG.normal(size=(3, 4)).astype(np.float32)
W = (RNG.normal(size=(4, 4)) * 0.5).astype(np.float32)
YES, NO = np.array(True), np.array(False)


def test_cond_runs_one_branch(device):
    def f(p, x):
        return ops.cond(p, lambda a: (a * 2, a.sum()), lambda a: (a - 1, a.mean()), x)

    same(f, (YES, X), [X * 2, X.sum()])
    same(f, (NO, X), [X - 1, X.mean()])


@pytest.mark.parametrize("p", [YES, NO])
def test_cond_gradient(device, p):
    def f(p, x, w):
        y = x.matmul(w)
        return ops.cond(p, lambda a: ops.tanh(a.matmul(w)) * x, lambda a: ops.exp(a * 0.1), y).sum()

    check_grads(f, (p, X, W), (1, 2))


def test_cond_without_operands_and_with_passed_through_results(device):
    def f(p, x, y):
        return ops.cond(p, lambda: (x, y, x), lambda: (y, x, y + 1))

    same(f, (YES, X, X * 3), [X, X * 3, X])
    same(f, (NO, X, X * 3), [X * 3, X, X * 3 + 1])


def test_nested_cond(device):
    def f(a, b, x):
        return ops.cond(
            a,
            lambda x: ops.cond(b, lambda x: x + 1, lambda x: x + 2, x) * 10,
            lambda x: ops.cond(b, lambda x: x + 3, lambda x: x + 4, x) * 100,
            x,
        )

    for a, b, e in [
        (YES, YES, (X + 1) * 10),
        (YES, NO, (X + 2) * 10),
        (NO, YES, (X + 3) * 100),
        (NO, NO, (X + 4) * 100),
    ]:
        same(f, (a, b, X), [e], 1e-4)


def test_while_counts(device):
    def f(x):
        return ops.while_loop(lambda s: s[0] < 100, lambda s: (s[0] * 2, s[1] + 1), (x, Tensor(0)))

    same(f, (np.float32(3),), [np.float32(192), 6])
    same(f, (np.float32(300),), [np.float32(300), 0])


def test_while_swaps_its_carries(device):
    def f(x, y):
        return ops.while_loop(
            lambda s: s["n"] < 3, lambda s: {"a": s["b"], "b": s["a"], "n": s["n"] + 1}, {"a": x, "b": y, "n": 0}
        )

    same(f, (X, X + 1), [X + 1, X, 3])


def test_while_gradient(device):
    def f(x, w):
        def step(s):
            n, v = s
            return n + 1, ops.tanh(v.matmul(w)) + x

        return ops.while_loop(lambda s: s[0] < 4, step, (0, x * 0.5))[1].sum()

    check_grads(f, (X, W), (0, 1))


def test_while_gradient_with_data_dependent_trips(device):
    def f(x):
        return ops.while_loop(lambda v: v.sum() < 50.0, lambda v: v * 1.5 + 0.1, x).sum()

    check_grads(f, (np.abs(X) + 0.1,), 0, tol=1e-2)


def test_scan_rows(device):
    def f(x):
        return ops.scan(lambda c, r: (c + r, c * 2), ops.zeros(4), x)

    same(f, (X,), [X.sum(0), np.stack([np.zeros(4), X[0], X[0] + X[1]]).astype(np.float32) * 2])


def test_scan_reverse_keeps_the_rows_places(device):
    def f(x):
        return ops.scan(lambda c, r: (c + r, c + r), ops.zeros(4), x, reverse=True)

    same(f, (X,), [X.sum(0), np.cumsum(X[::-1], 0)[::-1]])


def test_scan_over_dicts_and_trees(device):
    def f(x, m):
        def step(c, r):
            h = ops.where(r["m"], c["h"] + r["x"], c["h"])
            return {"h": h, "n": c["n"] + 1}, [h, None]

        return ops.scan(step, {"h": ops.zeros(4), "n": 0}, {"x": x, "m": m})

    mask = np.array([True, False, True])
    carry, (ys, nothing) = ms.jit(f)(Tensor(X), Tensor(mask))
    assert nothing is None
    np.testing.assert_allclose(carry["h"].asnumpy(), X[0] + X[2], rtol=1e-5)
    assert int(carry["n"]) == 3
    np.testing.assert_allclose(ys.asnumpy(), np.stack([X[0], X[0], X[0] + X[2]]), rtol=1e-5)


@pytest.mark.parametrize("unroll", [True, False])
def test_scan_over_a_list(device, unroll):
    def f(x):
        return ops.scan(lambda c, e: (c + e, c - e), x, [x, x * 2, x * 3], unroll=unroll)

    same(f, (X,), [X * 7, X * 0, X * 0, X * 1])


def test_scan_without_xs(device):
    def f(x):
        return ops.scan(lambda c, _: (c * 2, c), x, None, length=3, unroll=False)

    same(f, (X,), [X * 8, X, X * 2, X * 4])


def test_scan_like_mindspore_with_numbers():
    assert ops.scan(lambda r, e: (r + e, r + e), 0, [1, 2, 3, 4]) == (10, [1, 3, 6, 10])
    assert ops.while_loop(lambda v: v < 100, lambda v: v + 1, 10) == 100
    assert ops.fori_loop(0, 4, lambda i, r: i + r, 0) == 6
    assert ops.Scan()(lambda r, e: (r + e, r + e), 0, [1, 2, 3, 4]) == (10, [1, 3, 6, 10])
    assert ops.WhileLoop()(lambda v: v < 100, lambda v: v + 1, 10) == 100
    assert ops.ForiLoop()(0, 4, lambda i, r: i + r, 0, unroll=False) == 6


def test_a_scan_of_no_rows(device):
    def f(x):
        return ops.scan(lambda c, r: (c + r.sum(), r * 2), Tensor(np.float32(5)), x)

    same(f, (np.zeros((0, 4), np.float32),), [np.float32(5), np.zeros((0, 4), np.float32)])


def test_rows_without_elements(device):
    def f(x):
        return ops.scan(lambda c, r: (c + r, r), ops.zeros(0), x)

    same(f, (np.zeros((3, 0), np.float32),), [np.zeros(0, np.float32), np.zeros((3, 0), np.float32)])


def test_numbers_take_the_loops_dtype():
    def f(x):
        return ops.scan(lambda c, r: (c + r.sum(), c), 0, x)

    carry, ys = ms.jit(f)(Tensor(X))
    assert carry.dtype == ms.float32 and ys.dtype == ms.float32
    np.testing.assert_allclose(carry.asnumpy(), X.sum(), rtol=1e-5)


def rnn(x, h0, w, u):
    def step(h, r):
        h = ops.tanh(r.matmul(w) + h.matmul(u))
        return h, h * h

    h, ys = ops.scan(step, h0, x)
    return h.sum() + (ys * 0.5).sum()


XS = RNG.normal(size=(5, 2, 4)).astype(np.float32)
H0 = RNG.normal(size=(2, 4)).astype(np.float32)
U = (RNG.normal(size=(4, 4)) * 0.5).astype(np.float32)


def test_scan_gradient(device):
    check_grads(rnn, (XS, H0, W, U), (0, 1, 2, 3))


def test_scan_gradient_in_reverse(device):
    def f(x, w):
        return ops.scan(lambda h, r: (ops.sin(h * r) + w, h), w * 2, x, reverse=True)[1].sum()

    check_grads(f, (X, W[0]), (0, 1))


@pytest.mark.parametrize("unroll", [True, False])
def test_fori_loop(device, unroll):
    def f(x):
        return ops.fori_loop(1, 4, lambda i, v: ops.tanh(v) * i, x, unroll=unroll)

    e = X
    for i in range(1, 4):
        e = np.tanh(e) * i
    same(f, (X,), [e])
    check_grads(lambda x: f(x).sum(), (X,), 0)


def test_fori_loop_with_bounds_of_the_step(device):
    def f(n, x):
        return ops.fori_loop(0, n, lambda i, v: v * 2 + i, x)

    for n in (0, 3):
        e = X
        for i in range(n):
            e = e * 2 + i
        same(f, (np.int32(n), X), [e], 1e-4)
    check_grads(lambda n, x: f(n, x).sum(), (np.int32(3), X), 1)


def test_cond_in_scan(device):
    def f(x, w):
        def step(h, r):
            h = ops.cond(r.sum() > 0, lambda h: ops.tanh(h * w) + r, lambda h: h * 0.5 - r, h)
            return h, h.sum()

        h, ys = ops.scan(step, w, x)
        return (h * h).sum() + ys.sum()

    h, total = W[0], 0
    for r in X:
        h = np.tanh(h * W[0]) + r if r.sum() > 0 else h * 0.5 - r
        total += h.sum()
    same(f, (X, W[0]), [np.float32((h * h).sum() + total)], 1e-4)
    check_grads(f, (X, W[0]), (0, 1))


def test_scan_in_scan(device):
    def f(x, w):
        def outer(c, r):
            c, inner = ops.scan(lambda a, b: (ops.tanh(a * w + b), a), c, r)
            return c, inner.sum()

        c, ys = ops.scan(outer, w, x)
        return c.sum() + ys.sum()

    check_grads(f, (XS[:3], W[0]), (0, 1))


def test_while_in_cond(device):
    def f(p, x):
        return ops.cond(
            p, lambda x: ops.while_loop(lambda v: v.sum() < 40.0, lambda v: v * 2.0, x), lambda x: x * 3.0, x
        ).sum()

    check_grads(f, (YES, np.abs(X)), 1)
    check_grads(f, (NO, np.abs(X)), 1)


def test_second_order(device):
    def f(x):
        h, ys = ops.scan(lambda h, r: (ops.sin(h * r), h * h), x[0], x)
        return ops.cond(h.sum() > -100.0, lambda: (h * h).sum(), lambda: h.sum()) + ys.sum()

    def g(x):
        return (ops.grad(f)(x) ** 2).sum()

    x = X[:, :2]
    expected = numeric_grad(g, (x,), 0)
    np.testing.assert_allclose(ms.jit(ops.grad(g))(Tensor(x)).asnumpy(), expected, rtol=2e-3, atol=2e-3)


class Branches(nn.Cell):
    """Writes parameters in a branch and in a loop."""

    def __init__(self):
        super().__init__()
        self.a = Parameter(Tensor(np.zeros(2, np.float32)), "a")
        self.b = Parameter(Tensor(np.ones(2, np.float32)), "b")

    def construct(self, p, x):
        def yes(v):
            self.a = self.a + v
            return self.a * 1

        def no(v):
            self.b = self.b * v
            return self.b * 1

        y = ops.cond(p, yes, no, x)

        def step(s, _):
            self.b = self.b + self.a
            return s + self.b, None

        s, _ = ops.scan(step, y, None, length=3, unroll=False)
        return s, self.a + self.b


@pytest.mark.parametrize("compiled", [False, True])
def test_parameters_written_in_branches_and_loops(device, compiled):
    net = Branches()
    run = ms.jit(net) if compiled else net
    a, b = np.zeros(2, np.float32), np.ones(2, np.float32)
    for p in (True, False, True):
        x = np.array([2, 3], np.float32)
        if p:
            a = a + x
            s = a.copy()
        else:
            b = b * x
            s = b.copy()
        for _ in range(3):
            b = b + a
            s = s + b
        got, both = run(Tensor(p), Tensor(x))
        np.testing.assert_allclose(got.asnumpy(), s, rtol=1e-5)
        np.testing.assert_allclose(both.asnumpy(), a + b, rtol=1e-5)
        np.testing.assert_allclose(net.a.asnumpy(), a, rtol=1e-5)
        np.testing.assert_allclose(net.b.asnumpy(), b, rtol=1e-5)


def test_parameter_gradients_through_a_scan(device):
    w = Parameter(Tensor(W), "w")

    def loss(x):
        return ops.scan(lambda h, r: (ops.tanh(h.matmul(w)) + r, h.sum()), x[0], x)[1].sum()

    def by_hand(x, w):
        return ops.scan(lambda h, r: (ops.tanh(h.matmul(w)) + r, h.sum()), x[0], x)[1].sum()

    g = ms.jit(lambda x: ops.grad(loss, None, [w])(x))(Tensor(XS))
    np.testing.assert_allclose(g[0].asnumpy(), numeric_grad(by_hand, (XS, W), 1), rtol=2e-3, atol=2e-3)
