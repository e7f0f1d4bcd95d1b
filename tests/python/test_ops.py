# SPDX-License-Identifier: Apache-2.0
"""Every row of the op table against NumPy: values, gradients, compiled against eager, NaN, empty and size-1 shapes."""

import numpy as np
import op_cases
import op_cases_arrange
import op_cases_loss
import op_cases_math
import op_cases_nn
import pytest

import undertow as ut
from undertow import Tensor, ops

ALL = op_cases.ALL + op_cases_math.ALL + op_cases_arrange.ALL + op_cases_nn.ALL + op_cases_loss.ALL
SMALL_SHAPES = [(0,), (0, 3), (3, 0), (1,), (1, 1), ()]
SMALL = [(c, s) for c in op_cases.ELEMENTWISE for s in SMALL_SHAPES]
SMALL += [(c, s) for c in op_cases_math.ELEMENTWISE + op_cases_nn.ACTIVATIONS[:-1] for s in ((0, 3), ())]

# NumPy warns where these tests go on purpose.
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")


def expect(case, arrays, dtype):
    """The reference result from the values that survive `dtype`."""
    with np.errstate(all="ignore"):
        return np.asarray(case.ref(*[a.astype(dtype).astype(np.float64) for a in arrays]))


def check(got, want, tol):
    got = got.asnumpy()
    assert got.shape == want.shape
    if want.dtype.kind in "biu":
        np.testing.assert_array_equal(got.astype(want.dtype), want)
    else:
        np.testing.assert_allclose(got, want, rtol=tol, atol=tol)


def tolerance(case, dtype):
    return case.tol if dtype == "float32" else 1e-12


@pytest.mark.parametrize("case", ALL, ids=repr)
def test_values(case, device):
    for dtype in case.dtypes:
        arrays = case.inputs(np.random.default_rng(1))
        tensors = [Tensor(a, ut.common.dtype.dtype_of(dtype)) for a in arrays]
        got = case.op(*tensors)
        check(got, expect(case, arrays, dtype), tolerance(case, dtype))
        if got.dtype in ut.common.dtype.float_type:
            assert got.dtype == dtype


@pytest.mark.parametrize("case", ALL, ids=repr)
def test_compiled_equals_eager(case, device):
    tensors = [Tensor(a.astype(np.float32)) for a in case.inputs(np.random.default_rng(2))]
    np.testing.assert_allclose(ut.jit(case.op)(*tensors).asnumpy(), case.op(*tensors).asnumpy(), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("case", [c for c in ALL if c.grad], ids=repr)
def test_gradient(case, device):
    rng = np.random.default_rng(3)
    arrays = case.inputs(rng)
    weights = rng.uniform(0.5, 1.5, np.shape(expect(case, arrays, "float64")))
    w = Tensor(weights)

    def loss(*xs):
        return (case.op(*xs) * w).sum()

    grads = ut.grad(loss, tuple(range(len(arrays))))(*[Tensor(a) for a in arrays])
    step = 1e-5
    for i, (array, grad) in enumerate(zip(arrays, grads)):
        numeric = np.zeros_like(array)
        for at in np.ndindex(array.shape):
            ends = []
            for sign in (1, -1):
                moved = [a.copy() for a in arrays]
                moved[i][at] += sign * step
                ends.append(np.sum(case.ref(*moved) * weights))
            numeric[at] = (ends[0] - ends[1]) / (2 * step)
        np.testing.assert_allclose(grad.asnumpy(), numeric, rtol=1e-6, atol=1e-6, err_msg=f"input {i}")


@pytest.mark.parametrize(
    "case",
    [c for c in op_cases.ALL + op_cases_math.REDUCTIONS + op_cases_nn.ALL + op_cases_loss.ALL if c.grad],
    ids=repr,
)
def test_compiled_gradient_equals_eager(case):
    tensors = [Tensor(a.astype(np.float32)) for a in case.inputs(np.random.default_rng(4))]
    gradient = ut.grad(lambda *xs: ops.square(case.op(*xs)).sum(), tuple(range(len(tensors))))
    for got, want in zip(ut.jit(gradient)(*tensors), gradient(*tensors)):
        np.testing.assert_allclose(got.asnumpy(), want.asnumpy(), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("case", [c for c in ALL if c.nan], ids=repr)
def test_nan_is_kept(case, device):
    arrays = case.inputs(np.random.default_rng(5))
    arrays[0].flat[1] = np.nan
    want = expect(case, arrays, "float32")
    tensors = [Tensor(a.astype(np.float32)) for a in arrays]
    for got in (case.op(*tensors).asnumpy(), ut.jit(case.op)(*tensors).asnumpy()):
        np.testing.assert_array_equal(np.isnan(got.astype(np.float64)), np.isnan(want.astype(np.float64)))


@pytest.mark.parametrize("case, shape", SMALL, ids=str)
def test_empty_and_single_shapes(case, shape, device):
    rng = np.random.default_rng(6)
    arrays = case.inputs(rng, [shape] * len(case.shapes))
    tensors = [Tensor(np.asarray(a, np.float32)) for a in arrays]
    want = expect(case, [np.asarray(a) for a in arrays], "float32")
    check(case.op(*tensors), want, 5e-6)
    check(ut.jit(case.op)(*tensors), want, 5e-6)


@pytest.mark.parametrize("case", op_cases_nn.SAMPLES, ids=repr)
def test_any_number_of_samples(case, device):
    for samples in (0, 1):
        rng = np.random.default_rng(6)
        arrays = case.inputs(rng, [(samples, *case.shapes[0][1:]), *case.shapes[1:]])
        want = expect(case, arrays, "float32")
        tensors = [Tensor(a.astype(np.float32)) for a in arrays]
        check(case.op(*tensors), want, case.tol)
        check(ut.jit(case.op)(*tensors), want, case.tol)
        if case.grad:
            grads = ut.grad(lambda *xs: case.op(*xs).sum(), tuple(range(len(tensors))))(*tensors)
            grads = grads if isinstance(grads, tuple) else (grads,)
            assert [g.shape for g in grads] == [t.shape for t in tensors]
            assert samples or not any(g.asnumpy().any() for g in grads)


@pytest.mark.parametrize("name", ["sum", "mean", "prod", "amax", "amin"])
@pytest.mark.parametrize("shape, axis", [((1,), None), ((1, 1), 0), ((4, 1), 1), ((0, 3), 1), ((2, 0, 3), 2)])
def test_reductions_of_small_shapes(name, shape, axis, device):
    x = np.random.default_rng(7).uniform(1, 2, shape).astype(np.float32)
    ref = {"amax": np.max, "amin": np.min}.get(name) or getattr(np, name)
    np.testing.assert_allclose(getattr(ops, name)(Tensor(x), axis).asnumpy(), ref(x, axis=axis), rtol=1e-6)


@pytest.mark.parametrize("dtype", [ut.float16, ut.bfloat16])
def test_half_types(dtype, device):
    x = np.random.default_rng(8).uniform(0.5, 2, (4, 8)).astype(np.float32)
    half = Tensor(x, dtype)
    rounded = half.astype(ut.float32).asnumpy()
    tol = 2e-3 if dtype == ut.float16 else 1.6e-2
    for op, ref in ((ops.exp, np.exp), (ops.sqrt, np.sqrt), (ops.sigmoid, op_cases.np_sigmoid)):
        assert op(half).dtype == dtype
        np.testing.assert_allclose(op(half).astype(ut.float32).asnumpy(), ref(rounded), rtol=tol)
    product = half @ half.T
    assert product.dtype == dtype
    np.testing.assert_allclose(product.astype(ut.float32).asnumpy(), rounded @ rounded.T, rtol=tol)


def test_half_sums_are_float32_inside(device):
    assert ops.mean(Tensor(np.full(4096, 60), ut.float16)).item() == 60
    assert ops.sum(Tensor(np.ones(512), ut.bfloat16)).item() == 512


@pytest.mark.parametrize("name", ["add", "sub", "mul", "floor_div", "floor_mod", "maximum", "minimum"])
@pytest.mark.parametrize("dtype", [np.int8, np.int32, np.int64, np.uint8])
def test_integers(name, dtype, device):
    x, y = np.arange(-8, 8).astype(dtype), np.array([1, 2, 3, 7] * 4).astype(dtype)
    ref = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "floor_div": np.floor_divide, "floor_mod": np.mod}
    want = (ref.get(name) or getattr(np, name))(x, y)
    got = getattr(ops, name)(Tensor(x), Tensor(y)).asnumpy()
    assert got.dtype == dtype
    np.testing.assert_array_equal(got, want)


def test_max_and_min_give_positions():
    x = Tensor(np.array([[1, 5, 2], [7, 0, 3]], np.float32))
    values, positions = ops.max(x, 1)
    assert values.tolist() == [5, 7] and positions.tolist() == [1, 0]
    value, position = ops.min(x)
    assert value.item() == 0 and position.item() == 4


def test_creation():
    assert ops.zeros((2, 3), ut.int32).dtype == ut.int32 and ops.ones(2).tolist() == [1, 1]
    assert ops.full((2,), 7).dtype == ut.int64 and ops.full((2,), 0.5).tolist() == [0.5, 0.5]
    assert ops.arange(5).tolist() == [0, 1, 2, 3, 4] and ops.arange(7, 1, -2).tolist() == [7, 5, 3]
    assert ops.one_hot(Tensor([1, 0]), 3).tolist() == [[0, 1, 0], [1, 0, 0]]
    assert (
        ops.zeros_like(Tensor([1.5])).tolist() == [0] and ops.ones_like(Tensor([1.5]), dtype=ut.int32).dtype == ut.int32
    )


def test_dropout_keeps_the_scale():
    x = ops.ones((1000,))
    y = ops.dropout(x, 0.25).asnumpy()
    assert set(np.unique(y)) == {0, np.float32(1 / 0.75)} and 0.2 < (y == 0).mean() < 0.3
    assert ops.dropout(x, 0.25, training=False) is x


def test_ignored_targets():
    logits = Tensor(np.random.default_rng(9).normal(size=(3, 4)).astype(np.float32))

    def loss(x, target, reduction):
        return ops.cross_entropy(x, target, reduction=reduction)

    some, none = Tensor(np.array([-100, 1, 2], np.int32)), Tensor(np.array([-100] * 3, np.int32))
    rows = loss(logits, some, "none").asnumpy()
    assert rows[0] == 0 and loss(logits, some, "mean").item() == pytest.approx(rows[1:].mean(), rel=1e-6)
    assert np.isnan(loss(logits, none, "mean").item()) and loss(logits, none, "sum").item() == 0
    assert not ut.grad(lambda x: loss(x, some, "sum"))(logits).asnumpy()[0].any()


CLASSES = {
    "ReLU": (ops.ReLU(), lambda x: np.maximum(x, 0)),
    "ReduceSum": (lambda x: ops.ReduceSum(True)(x, 1), lambda x: x.sum(1, keepdims=True)),
    "ReduceMean": (lambda x: ops.ReduceMean(keep_dims=True)(x, (0, 1)), lambda x: x.mean(keepdims=True)),
    "ReduceMax": (lambda x: ops.ReduceMax()(x, 0), lambda x: x.max(0)),
    "Transpose": (lambda x: ops.Transpose()(x, (1, 0)), lambda x: x.T),
    "Reshape": (lambda x: ops.Reshape()(x, (-1,)), lambda x: x.reshape(-1)),
    "Concat": (lambda x: ops.Concat(axis=1)((x, x)), lambda x: np.concatenate([x, x], 1)),
    "MatMul": (lambda x: ops.MatMul(transpose_b=True)(x, x), lambda x: x @ x.T),
    "Cast": (lambda x: ops.Cast()(x, ut.int32), lambda x: x.astype(np.int32)),
    "Softmax": (ops.Softmax(0), lambda x: op_cases.np_softmax(x, 0)),
    "Tile": (lambda x: ops.Tile()(x, (2, 1)), lambda x: np.tile(x, (2, 1))),
    "Add": (lambda x: ops.Add()(x, 1), lambda x: x + 1),
    "Squeeze": (lambda x: ops.Squeeze(0)(ops.ExpandDims()(x, 0)), lambda x: x),
    "Split": (lambda x: ops.Split(1, 2)(x)[1], lambda x: x[:, 2:]),
    "Argmax": (lambda x: ops.Argmax(1)(x), lambda x: x.argmax(1)),
}


@pytest.mark.parametrize("name", CLASSES)
def test_class_forms(name):
    x = np.random.default_rng(10).normal(size=(3, 4)).astype(np.float32)
    op, ref = CLASSES[name]
    np.testing.assert_allclose(op(Tensor(x)).asnumpy(), ref(x), rtol=1e-5, atol=1e-6)


def test_class_form_refuses_unknown_arguments():
    with pytest.raises(TypeError, match="keepdims"):
        ops.ReduceSum(keepdims=True)


def test_shape_errors_name_the_op_and_both_shapes():
    with pytest.raises(ut.ShapeError, match=r"add.*\(2, 3\).*\(4,\)") as error:
        ops.add(Tensor(np.zeros((2, 3))), Tensor(np.zeros(4)))
    assert isinstance(error.value, ValueError) and "test_ops.py" in str(error.value)
    with pytest.raises(ut.ShapeError, match=r"\(2, 3\)"):
        ops.matmul(Tensor(np.zeros((2, 3))), Tensor(np.zeros((4, 5))))
