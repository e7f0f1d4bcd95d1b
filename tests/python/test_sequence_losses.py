# SPDX-License-Identifier: Apache-2.0
"""Losses with more inputs than an output and a label, as cells; their formulas are tested in op_cases_loss.py."""

import numpy as np
import pytest

import undertow as ut
from undertow import Tensor, nn, ops

RNG = np.random.default_rng(3)
PROBS = ops.log_softmax(Tensor(RNG.normal(size=(6, 2, 4)).astype(np.float32)))
TARGETS = Tensor(np.array([[1, 2, 2], [3, 1, 0]], np.int32))


def test_ctc_loss_as_a_cell():
    loss = nn.CTCLoss(reduction="none")
    want = ops.ctc_loss(PROBS, TARGETS, Tensor([6, 5]), Tensor([3, 2]), reduction="none")
    got = loss(PROBS, TARGETS, (6, 5), (3, 2))
    np.testing.assert_array_equal(got.asnumpy(), want[0].asnumpy())
    assert want[1].shape == (2, 6, 7)
    one = loss(PROBS[:, 0], TARGETS[0], Tensor([6]), Tensor([3]))
    assert one.shape == () and one.item() == pytest.approx(got[0].item(), rel=1e-6)


def test_ctc_loss_of_what_is_too_short():
    lengths = Tensor([3, 5]), Tensor([3, 2])  # 1 2 2 needs four steps
    hard, soft = nn.CTCLoss(reduction="none"), nn.CTCLoss(reduction="none", zero_infinity=True)
    assert np.isinf(hard(PROBS, TARGETS, *lengths).asnumpy()).tolist() == [True, False]
    assert soft(PROBS, TARGETS, *lengths).asnumpy()[0] == 0
    for mode in (lambda f: f, ut.jit):
        grad = mode(ut.grad(lambda x: soft(x, TARGETS, *lengths).sum()))(PROBS).asnumpy()
        assert not grad[:, 0].any() and np.isfinite(grad).all() and grad[:5, 1].any() and not grad[5:].any()


def test_ctc_loss_of_empty_targets():
    alone = nn.CTCLoss(reduction="none")(PROBS, TARGETS, Tensor([6, 6]), Tensor([0, 2])).asnumpy()
    assert alone[0] == pytest.approx(-PROBS.asnumpy()[:, 0, 0].sum(), rel=1e-6)


@pytest.mark.parametrize("bad", [4, -1])
def test_ctc_loss_of_a_class_out_of_range(bad):
    targets = Tensor(np.array([[1, bad, 2], [3, 1, 0]], np.int32))
    with pytest.raises(IndexError):
        nn.CTCLoss()(PROBS, targets, Tensor([6, 6]), Tensor([3, 2])).asnumpy()


@pytest.mark.parametrize(
    "change, text",
    [
        ({"targets": Tensor(np.zeros(3, np.int32))}, r"targets must be \(N, S\) with N = 2"),
        ({"targets": Tensor(np.zeros((2, 3), np.float32))}, "targets must be integers"),
        ({"input_lengths": Tensor([6])}, r"input_lengths must hold one number a row, shape \(2,\)"),
        ({"log_probs": Tensor(np.zeros((6, 2, 4), np.int32))}, "log_probs must be floats"),
        ({"input_lengths": "six"}, "'input_lengths' must be a Tensor or integers"),
    ],
)
def test_ctc_loss_refuses(change, text):
    given = {"log_probs": PROBS, "targets": TARGETS, "input_lengths": Tensor([6, 6]), "target_lengths": Tensor([3, 2])}
    with pytest.raises((TypeError, ValueError), match=text):
        nn.CTCLoss()(**(given | change))
    with pytest.raises(ValueError, match="blank must be from 0 to 3 but is 4"):
        nn.CTCLoss(blank=4)(**given)


def test_multi_class_dice_loss():
    x = Tensor(np.array([[0.2, 0.5, 0.7], [0.3, 0.1, 0.5], [0.9, 0.6, 0.3]], np.float32))
    y = Tensor(np.array([[0, 1, 0], [1, 0, 0], [0, 0, 1]], np.float32))
    loss = nn.MultiClassDiceLoss(weights=None, ignore_indiex=None, activation="softmax")
    assert loss(x, y).item() == pytest.approx(0.54958105, rel=1e-6)  # MindSpore 2.10
    p = ops.softmax(x)
    each = [nn.DiceLoss()(p[:, c], y[:, c]).item() for c in range(3)]
    assert nn.MultiClassDiceLoss(ignore_indiex=1)(x, y).item() == pytest.approx((each[0] + each[2]) / 3, rel=1e-6)
    weights = Tensor(np.array([[1], [2], [3]], np.float32))
    weighted = nn.MultiClassDiceLoss(weights=weights)(x, y)
    assert weighted.shape == (1,) and weighted.item() == pytest.approx(np.dot(each, [1, 2, 3]) / 3, rel=1e-6)
    with pytest.raises(ValueError, match=r"a row for each of the 3 classes but has shape \(2, 1\)"):
        nn.MultiClassDiceLoss(weights=weights[:2])(x, y)


def test_sampled_softmax_loss():
    w = RNG.normal(size=(7, 5)).astype(np.float32)
    b, x = RNG.normal(size=7).astype(np.float32), RNG.normal(size=(3, 5)).astype(np.float32)
    labels, ids = np.array([0, 1, 2]), np.array([3, 1, 6])
    expected = np.full((3, 1), 0.5, np.float32), np.array([0.2, 0.4, 0.6], np.float32)
    loss = nn.SampledSoftmaxLoss(3, 7, sampled_values=(Tensor(ids), Tensor(expected[0]), Tensor(expected[1])))
    logits = x @ w.T + b
    for row, label in enumerate(labels):
        kept = ids != label
        all_logits = np.append(logits[row, label] - np.log(0.5), (logits[row, ids] - np.log(expected[1]))[kept])
        want = np.log(np.exp(all_logits - all_logits[0]).sum())
        got = loss(Tensor(w), Tensor(b), Tensor(labels), Tensor(x)).asnumpy()
        assert got.shape == (3,) and got[row] == pytest.approx(want, rel=1e-5)


def test_sampled_softmax_loss_of_all_classes_is_the_full_one():
    w, x = RNG.normal(size=(7, 5)).astype(np.float32), RNG.normal(size=(3, 5)).astype(np.float32)
    labels, b = Tensor([0, 1, 2]), ops.zeros(7)
    loss = nn.SampledSoftmaxLoss(num_sampled=7, num_classes=7, reduction="mean")
    full = ops.cross_entropy(Tensor(x) @ Tensor(w).T, labels)
    for run in (loss, ut.jit(lambda *a: loss(*a))):
        assert run(Tensor(w), b, labels, Tensor(x)).item() == pytest.approx(full.item(), rel=1e-5)
    with pytest.raises(ValueError, match="'num_sampled' must be from 1 to 'num_classes' \\(7\\) but is 8"):
        nn.SampledSoftmaxLoss(8, 7)
