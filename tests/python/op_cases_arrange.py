# SPDX-License-Identifier: Apache-2.0
"""Rows of the op table: shapes, indexing, scattering, products of tensors."""

import numpy as np
from op_cases import Case, _tensor, distinct, wide

from undertow import ops


def row(name, op, ref, *shapes, **more):
    """What only moves elements is the same in every dtype."""
    return Case(name, op, ref, list(shapes), **({"dtypes": ("float32",)} | more))


ROWS = np.array([2, 0, 2])
ELEMENTS = np.array([[0, 2, 1, 1], [2, -1, 0, 0]])
POINTS = np.array([[0, 1], [2, 3], [-1, 0]])


def np_scatter(x, at, value, add=False):
    y = x.copy()
    if add:
        np.add.at(y, at, value)
    else:
        y[at] = value
    return y


def assign(key, *indices):
    """x[key] = v as an op of x and v; the key may hold arrays."""

    def op(x, v):
        y = x * 1
        y[tensors(key)] = v
        return y

    def ref(x, v):
        y = x * 1
        y[key] = v
        return y

    return op, ref


def tensors(key):
    if isinstance(key, tuple):
        return tuple(tensors(k) for k in key)
    return _tensor(key) if isinstance(key, np.ndarray) else key


def take(key):
    return (lambda x: x[tensors(key)]), (lambda x: x[key])


I, J = np.array([[0, 1], [2, -1]]), np.array([1, 3])  # noqa: E741
ARRANGE = [
    row("tile_all", lambda x: ops.tile(x, (2, 3)), lambda x: np.tile(x, (2, 3)), (2, 3)),
    row("repeat", lambda x: ops.repeat_interleave(x, 2, 1), lambda x: np.repeat(x, 2, 1), (2, 3)),
    row("repeat_each", lambda x: ops.repeat_interleave(x, [2, 0, 1], 0), lambda x: np.repeat(x, [2, 0, 1], 0), (3, 2)),
    row("repeat_flat", lambda x: ops.repeat_interleave(x, 2), lambda x: np.repeat(x, 2), (2, 3), nan=False),
    row("flip", lambda x: ops.flip(x, (0, 2)), lambda x: np.flip(x, (0, 2)), (2, 3, 4)),
    row("roll", lambda x: ops.roll(x, (1, -2), (0, 1)), lambda x: np.roll(x, (1, -2), (0, 1)), (3, 4)),
    row("roll_flat", lambda x: ops.roll(x, 5), lambda x: np.roll(x, 5), (3, 4)),
    row("rot90", lambda x: ops.rot90(x, 3, (0, 1)), lambda x: np.rot90(x, 3), (3, 4)),
    row("moveaxis", lambda x: ops.moveaxis(x, (0, 1), (-1, 0)), lambda x: np.moveaxis(x, (0, 1), (-1, 0)), (2, 3, 4)),
    row("expand", lambda x: ops.broadcast_to(x, (2, -1, 4)), lambda x: np.broadcast_to(x, (2, 3, 4)), (3, 1)),
    row("split_sizes", lambda x: ops.split(x, [1, 3], 1)[1], lambda x: x[:, 1:], (2, 4), nan=False),
    row("tensor_split", lambda x: ops.tensor_split(x, 3, 1)[0], lambda x: np.array_split(x, 3, 1)[0], (2, 5)),
    row(
        "tensor_split_at", lambda x: ops.tensor_split(x, [1, 3])[1], lambda x: np.split(x, [1, 3])[1], (5, 2), nan=False
    ),
    row("unstack", lambda x: ops.unstack(x, 1)[1], lambda x: x[:, 1], (2, 3)),
    row("narrow", lambda x: ops.narrow(x, 1, 1, 2), lambda x: x[:, 1:3], (2, 4)),
    row("hstack", lambda x, y: ops.hstack([x, y]), lambda x, y: np.hstack([x, y]), (2, 3), (2, 1)),
    row("vstack", lambda x, y: ops.vstack([x, y]), lambda x, y: np.vstack([x, y]), (3,), (3,)),
    row("dstack", lambda x, y: ops.dstack([x, y]), lambda x, y: np.dstack([x, y]), (2, 3), (2, 3)),
    row("meshgrid", lambda x, y: ops.meshgrid(x, y)[0] * 2, lambda x, y: np.meshgrid(x, y)[0] * 2, (3,), (2,)),
    row("diff", lambda x: ops.diff(x, 2), lambda x: np.diff(x, 2), (2, 5), tol=5e-6),
    row("tril", lambda x: ops.tril(x, 1), lambda x: np.tril(x, 1), (2, 3, 4)),
    row("triu", lambda x: ops.triu(x, -1), lambda x: np.triu(x, -1), (4, 3)),
    row("diagonal", lambda x: ops.diagonal(x, 1, 0, 2), lambda x: np.diagonal(x, 1, 0, 2), (3, 2, 4), nan=False),
    row("diagonal_low", lambda x: ops.diagonal(x, -1), lambda x: np.diagonal(x, -1), (3, 4), nan=False),
    row("diag_embed", lambda x: ops.diag_embed(x, 1), lambda x: np.stack([np.diag(r, 1) for r in x]), (2, 3)),
    row("trace", ops.trace, np.trace, (3, 4), nan=False),
    row(
        "block_diag",
        ops.block_diag,
        lambda x, y: np.block([[x, np.zeros((2, 1))], [np.zeros((3, 2)), y]]),
        (2, 2),
        (3, 1),
    ),
    row("fill_diagonal", lambda x: ops.fill_diagonal(x, 2.5), lambda x: np.where(np.eye(3, 4), 2.5, x), (3, 4)),
    row(
        "strided_slice",
        lambda x: ops.strided_slice(x, (0, 1), (3, 4), (2, 1), shrink_axis_mask=1),
        lambda x: x[0, 1:4],
        (3, 5),
    ),
    row("slice_box", lambda x: ops.slice(x, (1, 0), (2, -1)), lambda x: x[1:3], (3, 4), nan=False),
    row(
        "reverse_sequence",
        lambda x: ops.reverse_sequence(x, _tensor(np.array([2, 3])), 1),
        lambda x: np.stack([x[0, [1, 0, 2]], x[1, [2, 1, 0]]]),
        (2, 3),
    ),
    row("where_scalar", lambda x: ops.where(x > 0, x, 0.0), lambda x: np.where(x > 0, x, 0), (3, 4), nan=False),
]

INDEXING = [
    row(
        "take_elements",
        lambda x: ops.gather_elements(x, 0, _tensor(ELEMENTS)),
        lambda x: np.take_along_axis(x, ELEMENTS, 0),
        (3, 4),
    ),
    row("gather_nd", lambda x: ops.gather_nd(x, _tensor(POINTS)), lambda x: x[tuple(POINTS.T)], (3, 4, 2)),
    row(
        "gather_batch",
        lambda x: ops.gather(x, _tensor(np.array([[1, 0], [2, 2]])), 1, 1),
        lambda x: np.stack([x[0, [1, 0]], x[1, [2, 2]]]),
        (2, 3, 2),
        nan=False,
    ),
    row(
        "scatter_nd",
        lambda u: ops.scatter_nd(_tensor(POINTS), u, (3, 4)),
        lambda u: np_scatter(np.zeros((3, 4)), tuple(POINTS.T), u, True),
        (3,),
    ),
    row(
        "tensor_scatter_update",
        lambda x, u: ops.tensor_scatter_update(x, _tensor(POINTS), u),
        lambda x, u: np_scatter(x, tuple(POINTS.T), u),
        (3, 4),
        (3,),
        nan=False,
    ),
    row(
        "tensor_scatter_add",
        lambda x, u: ops.tensor_scatter_add(x, _tensor(POINTS[[0, 1, 0]]), u),
        lambda x, u: np_scatter(x, tuple(POINTS[[0, 1, 0]].T), u, True),
        (3, 4),
        (3,),
        tol=5e-6,
    ),
    row(
        "scatter_rows_last",
        lambda x, u: ops.scatter_update(x, _tensor(ROWS), u),
        lambda x, u: np_scatter(x, ROWS, u),
        (3, 4),
        (3, 4),
        nan=False,
    ),
    row(
        "scatter_sub",
        lambda x, u: ops.scatter_sub(x, _tensor(ROWS), u),
        lambda x, u: np_scatter(x, ROWS, -u, True),
        (3, 4),
        (3, 4),
        tol=5e-6,
    ),
    row(
        "scatter_max",
        lambda x, u: ops.scatter_max(x, _tensor(np.array([1, 0])), u + 0.02),
        lambda x, u: np.stack([np.maximum(x[0], u[1] + 0.02), np.maximum(x[1], u[0] + 0.02), x[2]]),
        (3, 4),
        (2, 4),
        make=distinct,
        nan=False,
    ),
    row(
        "scatter_elements",
        lambda x, u: ops.scatter(x, 1, _tensor(np.array([[0, 2], [1, 0]])), u),
        lambda x, u: np.stack([[u[0, 0], x[0, 1], u[0, 1]], [u[1, 1], u[1, 0], x[1, 2]]]),
        (2, 3),
        (2, 2),
        nan=False,
    ),
    row(
        "scatter_elements_add",
        lambda x, u: ops.tensor_scatter_elements(x, _tensor(np.array([[0, 0]])), u, 1, "add"),
        lambda x, u: np.concatenate([x[:, :1] + np.array([[1], [0]]) * u.sum(), x[:, 1:]], 1),
        (2, 3),
        (1, 2),
        nan=False,
    ),
    row(
        "index_add",
        lambda x, u: ops.index_add(x, _tensor(np.array([2, 2], np.int32)), u, 1),
        lambda x, u: x + np.stack([0 * u[:, 0], 0 * u[:, 0], u.sum(1)], 1),
        (2, 3),
        (2, 2),
        nan=False,
    ),
    row(
        "index_fill",
        lambda x: ops.index_fill(x, 1, _tensor(np.array([0, 2])), 7.0),
        lambda x: np.stack([0 * x[:, 1] + 7, x[:, 1], 0 * x[:, 1] + 7], 1),
        (2, 3),
        nan=False,
    ),
    row(
        "segment_sum",
        lambda x: ops.unsorted_segment_sum(x, _tensor(np.array([1, -1, 1])), 3),
        lambda x: np.stack([0 * x[0], x[0] + x[2], 0 * x[0]]),
        (3, 4),
        nan=False,
    ),
    row(
        "segment_max",
        lambda x: ops.unsorted_segment_max(x, _tensor(np.array([1, 0, 1])), 2),
        lambda x: np.stack([x[1], np.maximum(x[0], x[2])]),
        (3, 4),
        make=distinct,
    ),
    *(
        row(f"take[{name}]", *take(key), (3, 4, 5))
        for name, key in {
            "two": (I, J),
            "int_and": (0, slice(None), I),
            "apart": (I, slice(None), J),
            "middle": (slice(None), I, J),
            "last": (Ellipsis, J),
            "mask": np.arange(12).reshape(3, 4) % 2 == 0,
            "mask_axis": (slice(None), np.arange(4) > 1),
            "mask_and": (np.array([True, False, True]), J),
            "new": (None, I, slice(1, None, 2)),
            "reverse": slice(None, None, -1),
        }.items()
    ),
    *(
        row(f"put[{name}]", *assign(key), (3, 4, 5), shape, nan=False)
        for name, key, shape in [
            ("int", 1, (4, 5)),
            ("slice", (slice(None), slice(1, 3)), (3, 2, 5)),
            ("step", (Ellipsis, slice(None, None, 2)), (4, 3)),
            ("reverse", (slice(None, None, -1), 0), (3, 5)),
            ("rows", np.array([2, 0]), (2, 4, 5)),
            ("points", (I, J), (2, 2, 5)),
            ("apart", (np.array([0, 2]), slice(None), 1), (2, 4)),
            ("mask", np.arange(12).reshape(3, 4) % 3 == 0, (5,)),
            ("mask_values", np.arange(3) > 0, (2, 4, 5)),
            ("all", Ellipsis, (4, 5)),
        ]
    ),
]

PRODUCTS = [
    *(
        row(f"einsum[{e}]", lambda *xs, e=e: ops.einsum(e, *xs), lambda *xs, e=e: np.einsum(e, *xs), *shapes, tol=1e-5)
        for e, shapes in [
            ("bij,bjk->bik", [(2, 3, 4), (2, 4, 2)]),
            ("ij,jk", [(2, 3), (3, 2)]),
            ("ii->i", [(3, 3)]),
            ("ij->", [(2, 3)]),
            ("bhqd,bkhd->bhqk", [(2, 2, 3, 2), (2, 4, 2, 2)]),
            ("i,j->ij", [(3,), (2,)]),
            ("...ij,...jk->...ik", [(2, 1, 2, 3), (3, 3, 2)]),
            ("ab,bc,cd->ad", [(2, 3), (3, 2), (2, 4)]),
            ("ij,ij->j", [(3, 2), (3, 2)]),
            ("ijk->kji", [(2, 3, 2)]),
        ]
    ),
    row(
        "tensordot",
        lambda x, y: ops.tensor_dot(x, y, ((1, 2), (0, 1))),
        lambda x, y: np.tensordot(x, y, ((1, 2), (0, 1))),
        (2, 3, 2),
        (3, 2, 4),
        tol=1e-5,
    ),
    row("dot", ops.dot, np.dot, (2, 3), (3, 2), tol=5e-6),
    row("outer", ops.outer, np.outer, (3,), (4,)),
    row("inner", ops.inner, np.inner, (2, 3), (4, 3), tol=5e-6),
    row("kron", ops.kron, np.kron, (2, 3), (3, 2)),
    row("cross", ops.cross, np.cross, (2, 3), (2, 3), tol=5e-6),
    row(
        "addmm",
        lambda x, a, b: ops.addmm(x, a, b, beta=0.5, alpha=2.0),
        lambda x, a, b: 0.5 * x + 2 * a @ b,
        (2, 4),
        (2, 3),
        (3, 4),
        tol=1e-5,
    ),
    row("baddbmm", ops.baddbmm, lambda x, a, b: x + a @ b, (2, 3, 4), (2, 3, 2), (2, 2, 4), tol=1e-5),
    row("addbmm", ops.addbmm, lambda x, a, b: x + (a @ b).sum(0), (3, 4), (2, 3, 2), (2, 2, 4), tol=1e-5),
    row("mv", ops.mv, np.matmul, (3, 4), (4,), tol=5e-6),
    row("cdist", ops.cdist, lambda x, y: np.sqrt(((x[:, None] - y[None]) ** 2).sum(-1)), (3, 4), (2, 4), tol=5e-6),
    row(
        "cdist1",
        lambda x, y: ops.cdist(x, y, 1.0),
        lambda x, y: np.abs(x[:, None] - y[None]).sum(-1),
        (3, 4),
        (2, 4),
        make=[wide, distinct],
        tol=5e-6,
    ),
    row("matmul_vector", ops.matmul, np.matmul, (2, 3, 4), (4,), tol=5e-6),
    row(
        "matmul_transposed",
        lambda a, b: ops.BatchMatMul(transpose_b=True)(a, b),
        lambda a, b: a @ b.swapaxes(1, 2),
        (2, 3, 4),
        (2, 5, 4),
        tol=5e-6,
    ),
    row("matrix_power", lambda x: ops.matrix_power(x, 3), lambda x: x @ x @ x, (3, 3), tol=2e-5),
]

ALL = ARRANGE + INDEXING + PRODUCTS
