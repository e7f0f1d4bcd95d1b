# SPDX-License-Identifier: Apache-2.0
"""Operations on columns of any kind, against NumPy."""

import numpy as np
import pytest
import undertow.dataset as ds
from undertow.dataset import transforms as t

X = np.arange(24, dtype=np.int32).reshape(2, 3, 4)

ROWS = [
    (t.TypeCast(np.int32), (np.float32([1.9, -1.9]),), np.int32([1, -1])),
    (t.OneHot(3), (np.int32(2),), np.int32([0, 0, 1])),
    (t.OneHot(3), (np.uint8([[0], [2]]),), np.eye(3, dtype=np.uint8)[[[0], [2]]]),
    (t.OneHot(5, 0.1), (np.int64(1),), np.float64([0.02, 0.92, 0.02, 0.02, 0.02])),
    (t.Fill(3), (X,), np.full_like(X, 3)),
    (t.Fill(True), (np.array([False, True]),), np.array([True, True])),
    (t.Mask(t.Relational.GE, 5), (X,), X >= 5),
    (t.Mask(t.Relational.EQ, 5, np.float32), (X,), (X == 5).astype(np.float32)),
    (t.Mask(t.Relational.NE, 5), (X.astype(np.float16),), X != 5),
    (t.Mask(t.Relational.LT, 5), (X,), X < 5),
    (t.Mask(t.Relational.LE, 5), (X,), X <= 5),
    (t.Mask(t.Relational.GT, 5), (X,), X > 5),
    (t.Slice(0), (X,), X[:1]),
    (t.Slice(-1, [0, -1]), (X,), X[-1:, [0, -1]]),
    (t.Slice(None, slice(2, None, -1), ...), (X,), X[:, 2::-1]),
    (t.Slice(slice(5, 9)), (X,), X[5:9]),
    (t.Slice([], slice(1, -1)), (X,), X[:0, 1:-1]),
    (t.Concatenate(), (np.int64([1]), np.int64([2, 3])), np.int64([1, 2, 3])),
    (t.Concatenate(0, np.int32([9]), np.int32([7, 8])), (np.int32([1]),), np.int32([9, 1, 7, 8])),
    (t.PadEnd([4]), (np.float32([1, 2]),), np.float32([1, 2, 0, 0])),
    (t.PadEnd([None, 2, 5], -1), (X,), np.pad(X[:, :2], ((0, 0), (0, 0), (0, 1)), constant_values=-1)),
    (t.PadEnd([]), (np.int32(4),), np.int32(4)),
]


@pytest.mark.parametrize("number", range(len(ROWS)))
def test_rows(number):
    op, inputs, want = ROWS[number]
    got = op(*inputs)
    assert got.dtype == want.dtype and got.shape == want.shape and np.allclose(got, want)
    if len(inputs) == 1 and np.ndim(inputs[0]):
        data = ds.GeneratorDataset(lambda: iter([(inputs[0],)]), ["x"]).map(op, "x")
        (row,) = next(iter(data.create_tuple_iterator(num_epochs=1, output_numpy=True)))
        assert row.dtype == want.dtype and np.array_equal(row, got)


def test_columns_from_one():
    a, b = t.Duplicate()(X)
    assert np.array_equal(a, X) and np.array_equal(b, X)
    values, index, counts = t.Unique()(np.float32([2, np.nan, 1, 2, np.nan]))
    assert np.array_equal(values, np.float32([2, np.nan, 1]), equal_nan=True)
    assert index.tolist() == [0, 1, 2, 0, 1] and counts.tolist() == [2, 2, 1] and index.dtype == np.int32


BAD = [
    (lambda: t.OneHot(0), ValueError, "num_classes"),
    (lambda: t.OneHot(3)(np.int32(3)), RuntimeError, "OneHot.*3"),
    (lambda: t.OneHot(3)(np.int32(-1)), RuntimeError, "OneHot.*-1"),
    (lambda: t.OneHot(3)(np.float32(1)), RuntimeError, "OneHot takes integers.*float32"),
    (lambda: t.Fill(300)(np.uint8([1])), RuntimeError, "Fill.*300.*uint8"),
    (lambda: t.Slice(5)(X), RuntimeError, "Slice.*5"),
    (lambda: t.Slice(0, 0, 0, 0)(X), RuntimeError, "4 slices"),
    (lambda: t.Slice("a"), TypeError, "a slice"),
    (lambda: t.Concatenate(1), ValueError, "axis"),
    (lambda: t.Concatenate()(X), RuntimeError, "1-D"),
    (lambda: t.Concatenate()(np.int32([1]), np.int64([1])), RuntimeError, "int32 and int64"),
    (lambda: t.PadEnd([3])(X), RuntimeError, "PadEnd"),
    (lambda: t.PadEnd([-1]), ValueError, "pad_shape"),
    (lambda: t.Mask("=", 3), TypeError, "Relational"),
    (lambda: t.RandomApply([], 0.5), ValueError, "transforms"),
    (lambda: t.RandomApply([t.Fill(1)], 2.0), ValueError, "prob"),
    (lambda: t.Compose([3]), TypeError, "callable"),
]


@pytest.mark.parametrize("number", range(len(BAD)))
def test_errors(number):
    make, kind, match = BAD[number]
    with pytest.raises(kind, match=match):
        make()


def test_texts_are_sliced_whole():
    texts = np.array([["a", "bcd"], ["", "ef"]])
    data = ds.GeneratorDataset([(texts,)], ["x"]).map(t.Slice(None, [1]), "x")
    (row,) = data.create_tuple_iterator(num_epochs=1, output_numpy=True)
    for got in (t.Slice(None, [1])(texts), row[0]):
        assert got.tolist() == [["bcd"], ["ef"]]
