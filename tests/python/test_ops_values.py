# SPDX-License-Identifier: Apache-2.0
"""Functions of `ops` whose inputs are no plain float tables: other names, integers, logic, positions, writes, numbers.

Each row: the result on given arrays, eager and under jit, equals NumPy's.
"""

import math
import operator

import numpy as np
import pytest

import undertow as ut
from undertow import Parameter, Tensor, ops

RNG = np.random.default_rng(11)
A = RNG.uniform(0.3, 0.9, (3, 4)).astype(np.float32)
B = RNG.uniform(0.3, 0.9, (3, 4)).astype(np.float32)
V = RNG.uniform(-1, 1, 4).astype(np.float32)
W = RNG.uniform(-1, 1, 3).astype(np.float32)
M = RNG.permutation(24).reshape(2, 3, 4).astype(np.float32)
GAPS = np.array([[1, np.nan, 3, 4, 0], [5, 2, np.nan, 7, 9], [4, 3, 2, 1, 8]], np.float32)
P, Q = np.array([True, True, False, False]), np.array([True, False, True, False])
INTS, J = np.array([12, 10, -7, 5], np.int32), np.array([3, 2, 4, 1], np.int32)
ROWS = np.array([2, 0])
UPDATES = np.full((2, 4), 2, np.float32) + np.arange(4, dtype=np.float32)
POINTS = np.array([[0, 1], [2, 3]])
SEGMENTS = np.array([1, 0, 1])

# name → the name of which it is another.
SAME = {
    "absolute": "abs arccos:acos arccosh:acosh arcsin:asin arcsinh:asinh arctan:atan arctanh:atanh",
    "negative": "neg multiply:mul subtract:sub divide:div true_divide:div swish:silu inv:reciprocal sgn:sign",
    "clone": "copy identity:copy tensor_exp:exp tensor_expm1:expm1 tensor_add:add tensor_sub:sub tensor_mul:mul",
    "eq": "equal ne:not_equal lt:less le:less_equal gt:greater ge:greater_equal tensor_lt:less tensor_le:less_equal",
    "tensor_gt": "greater tensor_ge:greater_equal tensor_pow:pow tensor_div:div arctan2:atan2 floor_divide:floor_div",
    "floordiv": "floor_div tensor_floordiv:floor_div floormod:floor_mod tensor_mod:floor_mod remainder:floor_mod",
}
SAME = [pair.split(":") for first, rest in SAME.items() for pair in f"{first}:{rest}".split()]


@pytest.mark.parametrize("name, base", SAME, ids=lambda v: v)
def test_other_names(name, base):
    one, other = getattr(ops, name), getattr(ops, base)
    operands = (Tensor(A + (0.7 if "cosh" in name else 0)), Tensor(B))
    try:
        want = other(*operands)
        got = one(*operands)
    except TypeError:
        want, got = other(operands[0]), one(operands[0])
    np.testing.assert_array_equal(got.asnumpy(), want.asnumpy())


def written(table, rows, updates, op):
    out = table.copy()
    for row, update in zip(rows, updates):
        out[tuple(np.atleast_1d(row))] = op(out[tuple(np.atleast_1d(row))], update)
    return out


WRITES = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide, "min": np.minimum, "max": np.maximum}


def segments(reduce, start):
    out = np.full((2, 4), start, np.float32)
    for row, segment in zip(A, SEGMENTS):
        out[segment] = reduce(out[segment], row)
    return out


def np_addmv(x, m, v):
    return 0.5 * x + 2 * m @ v


VALUES = {
    "accumulate_n": (lambda x, y: ops.accumulate_n([x, y, x]), lambda x, y: x + y + x, A, B),
    "adaptive_max_pool1d": (lambda x: ops.adaptive_max_pool1d(x, 2), lambda x: x.reshape(2, 3, 2, 2).max(-1), M),
    "adaptive_max_pool3d": (
        lambda x: ops.adaptive_max_pool3d(x[None], (1, 3, 2)),
        lambda x: x.max(0).reshape(1, 1, 3, 2, 2).max(-1),
        M,
    ),
    "addmv": (lambda x, m, v: ops.addmv(x, m, v, beta=0.5, alpha=2.0), np_addmv, W, A, V),
    "addr": (lambda x, v, w: ops.addr(x, v, w, alpha=3.0), lambda x, v, w: x + 3 * np.outer(v, w), A, W, V),
    "allclose": (lambda x: ops.allclose(x, x + 1e-9), lambda x: np.array(True), A),
    "approximate_equal": (lambda x, y: ops.approximate_equal(x, y, 0.2), lambda x, y: np.abs(x - y) < 0.2, A, B),
    "atleast_1d": (lambda x: ops.atleast_1d(x.sum()), lambda x: x.sum().reshape(1), A),
    "atleast_2d": (ops.atleast_2d, np.atleast_2d, V),
    "atleast_3d": (ops.atleast_3d, np.atleast_3d, A),
    "batch_dot": (lambda x, y: ops.batch_dot(x, y, (2, 2)), lambda x, y: x @ y.swapaxes(1, 2), M, M + 1),
    "bias_add": (ops.bias_add, np.add, A, V),
    "bitwise_and": (ops.bitwise_and, np.bitwise_and, INTS, J),
    "bitwise_or": (ops.bitwise_or, np.bitwise_or, INTS, J),
    "bitwise_xor": (ops.bitwise_xor, np.bitwise_xor, INTS, J),
    "bitwise_not": (ops.bitwise_not, np.bitwise_not, INTS),
    "bitwise_left_shift": (ops.bitwise_left_shift, np.left_shift, INTS, J),
    "bitwise_right_shift": (ops.bitwise_right_shift, np.right_shift, INTS, J),
    "bmm": (ops.bmm, np.matmul, M, M.swapaxes(1, 2).copy()),
    "broadcast_arrays": (lambda x, y: ops.broadcast_arrays(x, y)[1], lambda x, y: np.broadcast_to(y, x.shape), A, V),
    "cartesian_prod": (
        lambda x, y: ops.cartesian_prod(x, y),
        lambda x, y: np.stack(np.meshgrid(x, y, indexing="ij"), -1).reshape(-1, 2),
        V,
        W,
    ),
    "cast": (lambda x: ops.cast(x * 10, ut.int32), lambda x: (x * 10).astype(np.int32), A),
    "clip_by_norm": (lambda x: ops.clip_by_norm(x, 0.5), lambda x: x * 0.5 / np.sqrt((x**2).sum()), A),
    "clip_by_value": (lambda x: ops.clip_by_value(x, 0.4, 0.6), lambda x: np.clip(x, 0.4, 0.6), A),
    "column_stack": (lambda x, y: ops.column_stack((x, y)), lambda x, y: np.column_stack((x, y)), V, V + 1),
    "depend": (lambda x: ops.depend(x, x + 1), lambda x: x, A),
    "diag": (ops.diag, np.diag, V),
    "diagflat": (lambda x: ops.diagflat(x, 1), lambda x: np.diagflat(x, 1), V),
    "div_no_nan": (ops.div_no_nan, lambda x, y: np.where(y == 0, 0, x / np.where(y == 0, 1, y)), V, V * [0, 1, 0, 1]),
    "dsplit": (lambda x: ops.dsplit(x, 2)[1], lambda x: np.dsplit(x, 2)[1], M),
    "hsplit": (lambda x: ops.hsplit(x, 2)[0], lambda x: np.hsplit(x, 2)[0], A),
    "vsplit": (lambda x: ops.vsplit(x, (1, 2))[2], lambda x: np.vsplit(x, (1, 2))[2], A),
    "fills": (lambda x: ops.fills(x, 7), lambda x: np.full_like(x, 7), A),
    "fliplr": (ops.fliplr, np.fliplr, A),
    "flipud": (ops.flipud, np.flipud, A),
    "gather_d": (
        lambda x, i: ops.gather_d(x, 1, i),
        lambda x, i: np.take_along_axis(x[:1], i, 1),
        A,
        INTS.reshape(1, 4) % 4,
    ),
    "ger": (ops.ger, np.outer, V, W),
    "index_select": (lambda x, i: ops.index_select(x, 0, i), lambda x, i: x[i], A, ROWS),
    "inplace_add": (lambda x, v: ops.inplace_add(x, v, (2, 0)), lambda x, v: written(x, ROWS, v, np.add), A, UPDATES),
    "inplace_sub": (
        lambda x, v: ops.inplace_sub(x, v, (2, 0)),
        lambda x, v: written(x, ROWS, v, np.subtract),
        A,
        UPDATES,
    ),
    "inplace_update": (
        lambda x, v: ops.inplace_update(x, v, (2, 0)),
        lambda x, v: written(x, ROWS, v, lambda _, new: new),
        A,
        UPDATES,
    ),
    "intopk": (
        lambda x, t: ops.intopk(x, t, 2),
        lambda x, t: np.array([t[i] in np.argsort(-x[i])[:2] for i in range(3)]),
        A,
        np.array([0, 3, 1], np.int32),
    ),
    "isin": (ops.isin, np.isin, INTS, np.array([5, 12], np.int32)),
    "isneginf": (ops.isneginf, np.isneginf, np.array([-np.inf, np.inf, np.nan, 0], np.float32)),
    "ldexp": (ops.ldexp, np.ldexp, V, J),
    "logical_and": (ops.logical_and, np.logical_and, P, Q),
    "logical_or": (ops.logical_or, np.logical_or, P, Q),
    "logical_xor": (ops.logical_xor, np.logical_xor, P, Q),
    "lp_pool1d": (
        lambda x: ops.lp_pool1d(x, 2, 2, 2),
        lambda x: np.sqrt((x.reshape(2, 3, 2, 2) ** 2).sum(-1)),
        M,
    ),
    "matrix_band_part": (lambda x: ops.matrix_band_part(x, 1, 0), lambda x: np.tril(x) - np.tril(x, -2), A),
    "mixed_precision_cast": (lambda x: ops.mixed_precision_cast(ut.float64, x), lambda x: x.astype(np.float64), A),
    "movedim": (lambda x: ops.movedim(x, 0, 2), lambda x: np.moveaxis(x, 0, 2), M),
    "msort": (ops.msort, lambda x: np.sort(x, 0), A),
    "nanmedian": (
        lambda x: ops.nanmedian(x, 1)[0],
        lambda x: np.array([np.sort(r[~np.isnan(r)])[(np.sum(~np.isnan(r)) - 1) // 2] for r in x]),
        GAPS,
    ),
    "nanquantile": (lambda x: ops.nanquantile(x, 0.3, 1), lambda x: np.nanquantile(x, 0.3, 1), GAPS),
    "repeat_elements": (lambda x: ops.repeat_elements(x, 2, 1), lambda x: np.repeat(x, 2, 1), A),
    "reshape_as": (ops.reshape_as, lambda x, y: x.reshape(y.shape), A, A.reshape(2, 6)),
    "view_as": (ops.view_as, lambda x, y: x.reshape(y.shape), A, A.reshape(2, 6)),
    "row_stack": (lambda x, y: ops.row_stack((x, y)), lambda x, y: np.vstack((x, y)), A, V),
    "select_scatter": (
        lambda x, v: ops.select_scatter(x, v, 1, 2),
        lambda x, v: np.concatenate([x[:, :2], v[:, None], x[:, 3:]], 1),
        A,
        W,
    ),
    "swapdims": (lambda x: ops.swapdims(x, 0, 2), lambda x: x.swapaxes(0, 2), M),
    "take": (lambda x, i: ops.take(x, i), np.take, A, np.array([[5, 0], [11, 3]])),
    "take_along_axis": (
        lambda x, i: ops.take_along_axis(x, i, 0),
        lambda x, i: np.take_along_axis(x, i, 0),
        A,
        np.array([[2, 0, 1, 1]]),
    ),
    "tensor_slice": (lambda x: ops.tensor_slice(x, (1, 0), (2, 3)), lambda x: x[1:3, :3], A),
    "top_k": (lambda x: ops.top_k(x, 2)[0], lambda x: -np.sort(-x, -1)[..., :2], A),
    "tril_indices": (lambda: ops.tril_indices(3, 4, -1), lambda: np.stack(np.tril_indices(3, -1, 4))),
    "triu_indices": (lambda: ops.triu_indices(3, 4, 1), lambda: np.stack(np.triu_indices(3, 1, 4))),
    "truncate_mod": (ops.truncate_mod, np.fmod, INTS, J),
    "upsample": (
        lambda x: ops.upsample(x[None], scale_factor=2.0, mode="nearest"),
        lambda x: x[None].repeat(2, -1),
        A,
    ),
    "vecdot": (ops.vecdot, lambda x, y: (x * y).sum(-1), A, B),
    "reduce_sum": (lambda x: ops.reduce_sum(x, 1), lambda x: x.sum(1), A),
    "reduce_mean": (lambda x: ops.reduce_mean(x, 1), lambda x: x.mean(1), A),
    "reduce_prod": (lambda x: ops.reduce_prod(x, 1), lambda x: x.prod(1), A),
    "reduce_max": (lambda x: ops.reduce_max(x, 1), lambda x: x.max(1), A),
    "reduce_min": (lambda x: ops.reduce_min(x, 1), lambda x: x.min(1), A),
    "unsorted_segment_min": (
        lambda x, s: ops.unsorted_segment_min(x, s, 2),
        lambda x, s: segments(np.minimum, np.inf),
        A,
        SEGMENTS,
    ),
    "unsorted_segment_prod": (
        lambda x, s: ops.unsorted_segment_prod(x, s, 2),
        lambda x, s: segments(np.multiply, 1),
        A,
        SEGMENTS,
    ),
    **{
        f"tensor_scatter_{kind}": (
            getattr(ops, f"tensor_scatter_{kind}"),
            lambda x, i, u, op=op: written(x, i, u, op),
            A,
            POINTS,
            np.array([0.5, 2], np.float32),
        )
        for kind, op in WRITES.items()
    },
}


@pytest.mark.parametrize("name", VALUES)
def test_values(name, device):
    op, ref, *arrays = VALUES[name]
    arrays = [np.asarray(a, np.float32) if a.dtype == np.float64 else a for a in arrays]
    want = np.asarray(ref(*arrays))
    tensors = [Tensor(a) for a in arrays]
    for got in (op(*tensors), ut.jit(op)(*tensors)):
        got = got.asnumpy() if isinstance(got, Tensor) else np.asarray(got)
        assert got.shape == want.shape and got.dtype.kind == want.dtype.kind
        np.testing.assert_allclose(got, want, rtol=2e-6, atol=1e-6)


@pytest.mark.parametrize("kind", [*WRITES, "update"])
@pytest.mark.parametrize("form", ["scatter", "scatter_nd"])
def test_writes_of_parameters(form, kind, device):
    """The write is seen in the Parameter, which the function gives back."""
    op = WRITES.get(kind, lambda _, new: new)
    places, updates = (ROWS, UPDATES) if form == "scatter" else (POINTS, np.array([0.5, 2], np.float32))
    p = Parameter(Tensor(A), name="p")
    getattr(ops, f"{form}_{kind}")(p, Tensor(places), Tensor(updates))
    np.testing.assert_allclose(p.asnumpy(), written(A, places, updates, op), rtol=1e-6)


def test_assignments():
    p = Parameter(Tensor(A), name="p")
    ops.assign_sub(p, Tensor(B))
    np.testing.assert_array_equal(p.asnumpy(), A - B)


def test_maximum_and_its_inverse():
    x = Tensor(M[:, :, ::-1].copy())
    for rank, kernel in ((1, 2), (2, (1, 2)), (3, (1, 1, 2))):
        planes = x if rank == 1 else x[None] if rank == 2 else x[None, None]
        pool, unpool = getattr(ops, f"max_pool{rank}d"), getattr(ops, f"max_unpool{rank}d")
        values, places = pool(planes, kernel, kernel, return_indices=True)
        back = unpool(values, places, kernel, kernel).asnumpy()
        kept = back != 0
        np.testing.assert_array_equal(back[kept], planes.asnumpy()[kept])
        assert set(values.asnumpy().ravel()) - {0} == set(back[kept])


def test_of_data_dependent_size():
    assert ops.argwhere(Tensor(INTS > 0)).tolist() == [[0], [1], [3]]
    values, inverse, counts = ops.unique_consecutive(Tensor([1, 1, 2, 2, 1]), True, True)
    assert values.tolist() == [1, 2, 1] and inverse.tolist() == [0, 0, 1, 1, 2] and counts.tolist() == [2, 2, 1]


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_dropout_of_channels(rank):
    ut.set_seed(3)
    x = ops.ones((4, 50) + (2,) * rank)
    y = getattr(ops, f"dropout{rank}d")(x, 0.4).asnumpy().reshape(4, 50, -1)
    assert (y == y[..., :1]).all()  # whole channels
    assert set(np.unique(y)) == {np.float32(0), np.float32(1 / 0.6)} and 0.25 < (y == 0).mean() < 0.55
    assert getattr(ops, f"dropout{rank}d")(x, 0.4, training=False).asnumpy().all()


@pytest.mark.parametrize(
    "draw, low, high",
    [
        (lambda x: ops.rand_like(x), 0, 1),
        (lambda x: ops.randint_like(x, 2, 5), 2, 4),
        (lambda x: ops.rrelu(-ops.ones_like(x)), -1 / 3, -1 / 8),
        (lambda x: ops.randn_like(x), -9, 9),
        (lambda x: ops.standard_laplace((40, 50)), -30, 30),
    ],
    ids=["rand_like", "randint_like", "rrelu", "randn_like", "standard_laplace"],
)
def test_draws(draw, low, high):
    ut.set_seed(5)
    x = ops.zeros((40, 50))
    first, second = draw(x).asnumpy(), draw(x).asnumpy()
    assert first.shape == (40, 50) and (first != second).any()
    assert first.min() >= low and first.max() <= high and len(np.unique(first)) > 2
    ut.set_seed(5)
    np.testing.assert_array_equal(draw(x).asnumpy(), first)
    if low == -9:
        assert abs(first.mean()) < 0.1 and abs(first.std() - 1) < 0.1
    if low == -30:
        assert abs(np.abs(first).mean() - 1) < 0.1  # of Laplace(0, 1)


ARITHMETIC = ["add", "sub", "mul", "pow", "mod", "floordiv", "div"]


@pytest.mark.parametrize("name", [*ARITHMETIC, "eq", "ne", "lt", "le", "gt", "ge"])
def test_numbers(name):
    name = f"scalar_{name}"
    op = getattr(operator, {"div": "truediv"}.get(name[7:], name[7:]))
    assert getattr(ops, name)(7, 2) == op(7, 2)


def test_small_helpers():
    assert (
        ops.scalar_uadd(2) == 2 and ops.scalar_usub(2) == -2 and ops.scalar_max(1, 3) == 3 and ops.scalar_min(1, 3) == 1
    )
    assert ops.scalar_cast(2.7, ut.int32) == 2 and ops.scalar_to_array(2.5).item() == 2.5
    assert ops.array_to_scalar(Tensor([4])) == 4 and ops.numel(Tensor(A)) == 12
    assert ops.is_floating_point(Tensor(A)) and not ops.is_floating_point(Tensor(INTS))
    assert ops.make_list(1, 2) == [1, 2] and ops.make_tuple(1, 2) == (1, 2)
    assert ops.list_len([1, 2]) == 2 and ops.tuple_len((1,)) == 1 and list(ops.tensor_range(0, 6, 2)) == [0, 2, 4]
    assert ops.in_dict("a", {"a": 1}) and ops.not_in_dict("b", {"a": 1})
    assert ops.typeof(Tensor(A)) == ut.float32 and ops.isconstant(3)

    @ops.add_flags(has_effect=True)
    def double(x):
        return 2 * x

    assert double(4) == 8


def test_value_and_gradient():
    value, gradient = ops.value_and_grad(lambda x: (x * x).sum())(Tensor(V))
    assert value.item() == pytest.approx(float((V * V).sum())) and math.isclose(gradient.asnumpy()[1], 2 * V[1])
