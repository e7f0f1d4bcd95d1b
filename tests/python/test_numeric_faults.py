# SPDX-License-Identifier: Apache-2.0
"""Numbers that other systems have got wrong: ignored targets, sums in half precision, unstable logarithms, size."""

import numpy as np
import pytest

import undertow as ms
from undertow import Tensor, nn, ops

MODES = pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])


def call(f, *args, compiled):
    return ms.jit(f)(*args) if compiled else f(*args)


def array(x):
    return x.astype(ms.float32).asnumpy()


@MODES
@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_all_targets_ignored(compiled, dtype):
    logits = Tensor(np.array([[1.0, 2.0, 3.0], [0.5, 0.0, -1.0]], np.float32))
    none, one = Tensor(np.array([-100, -100], dtype)), Tensor(np.array([-100, 1], dtype))
    row = float(np.log(np.exp([0.5, 0.0, -1.0]).sum()) - 0.0)
    for targets, reduction, right in (
        (none, "mean", np.nan),
        (none, "sum", 0.0),
        (none, "none", [0.0, 0.0]),
        (one, "mean", row),
        (one, "sum", row),
        (one, "none", [0.0, row]),
    ):
        loss = nn.CrossEntropyLoss(reduction=reduction)
        value, grads = call(ms.value_and_grad(lambda x, t=targets, f=loss: f(x, t).sum()), logits, compiled=compiled)
        np.testing.assert_allclose(array(call(loss, logits, targets, compiled=compiled)), right, rtol=1e-6)
        np.testing.assert_allclose(array(value), np.sum(right), rtol=1e-6)
        ignored = [0, 1] if targets is none else [0]
        np.testing.assert_array_equal(array(grads)[ignored], 0)
    # A value to ignore may lie outside of the classes.
    far = Tensor(np.array([255, 1], dtype))
    loss = nn.CrossEntropyLoss(ignore_index=255)
    np.testing.assert_allclose(array(call(loss, logits, far, compiled=compiled)), row, rtol=1e-6)


@MODES
def test_sums_in_half_precision(compiled):
    def full(value, shape, dtype):
        return Tensor(np.full(shape, value, np.float32)).astype(dtype)

    assert array(call(ops.mean, full(60, 4096, ms.float16), compiled=compiled)) == 60
    assert array(call(lambda x: x.sum(), full(1, 512, ms.bfloat16), compiled=compiled)) == 512
    assert (array(call(lambda x: ops.softmax(x, -1), full(3, 512, ms.bfloat16), compiled=compiled)) == 2**-9).all()
    mse = nn.MSELoss()
    assert array(call(mse, full(2, (64, 256), ms.float16), full(-2, (64, 256), ms.float16), compiled=compiled)) == 16
    dense = nn.Dense(4096, 1, "ones", has_bias=False, dtype=ms.float16)
    assert array(call(dense, full(1, (1, 4096), ms.float16), compiled=compiled)) == 4096


@MODES
def test_logarithms_far_out_and_masked_rows(compiled):
    def of(f, *values):
        return array(call(f, *(Tensor(np.array(v, np.float32)) for v in values), compiled=compiled))

    inf = np.inf
    assert of(ops.logsigmoid, [-1e4]) == -1e4
    assert of(nn.LogSigmoid(), [-1e4]) == -1e4
    assert of(ops.softplus, [1e4]) == 1e4
    bce = nn.BCEWithLogitsLoss("none")
    np.testing.assert_allclose(of(bce, [1e4, -1e4, 1e4, -1e4], [1.0, 0.0, 0.0, 1.0]), [0, 0, 1e4, 1e4])
    np.testing.assert_array_equal(of(lambda x: ops.log_softmax(x, -1), [-1.0, -inf]), [0, -inf])
    np.testing.assert_array_equal(
        of(lambda x: ops.softmax(x, -1), [[-inf, -inf], [0.0, 0.0], [-inf, 2.0]]), [[0, 0], [0.5, 0.5], [0, 1]]
    )
    scores = Tensor(np.full((2, 4), -100, np.float16)) + Tensor(np.array([-65504, -65504, 0, 0], np.float16))
    masked = array(call(lambda x: ops.softmax(x, -1), scores, compiled=compiled))
    np.testing.assert_allclose(masked, [[0, 0, 0.5, 0.5]] * 2)
    all_masked = Tensor(np.full((1, 4), -100, np.float16)) + Tensor(np.full(4, -65504, np.float16))
    assert np.isfinite(array(call(lambda x: ops.softmax(x, -1), all_masked, compiled=compiled))).all()


def test_more_elements_than_32_bits_count():
    shape = (65536, 32769)
    x = ops.ones(shape, ms.int8)
    assert x.size == 2147549184 and x.shape == shape
    assert x.sum().dtype == ms.int64 and x.sum().item() == 2147549184
    assert x[-1, -1].item() == 1
    row = ops.gather(x, Tensor(np.array([65535], np.int32)), 0)
    assert row.shape == (1, 32769) and row.asnumpy().min() == 1


def test_more_rows_than_32_bits_count():
    class Rows:
        def __getitem__(self, i):
            return (np.int64(i),)

        def __len__(self):
            return 2**31 + 1

    data = ms.dataset.GeneratorDataset(Rows(), ["i"], shuffle=False)
    assert data.get_dataset_size() == 2**31 + 1
    assert data.batch(2**20, drop_remainder=True).get_dataset_size() == 2**11
    last = ms.dataset.GeneratorDataset(Rows(), ["i"], sampler=ms.dataset.SubsetSampler([2**31]))
    assert [row[0].item() for row in last.create_tuple_iterator(num_epochs=1)] == [2**31]
