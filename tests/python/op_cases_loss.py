# SPDX-License-Identifier: Apache-2.0
"""Rows of the op table: losses."""

import functools
import itertools

import numpy as np
from op_cases import _tensor, distinct, nonzero, np_softmax, positive, wide
from op_cases_nn import np_softplus, probability, row

from undertow import nn, ops


def reduced(name, op, each, *shapes, **more):
    """Rows for the three reductions of `each`, a loss of every element or row."""
    kinds = {"none": lambda x: x, "sum": np.sum, "mean": np.mean}
    return [
        row(
            f"{name}_{kind}",
            lambda *xs, kind=kind: op(*xs, reduction=kind),
            lambda *xs, reduce=reduce: reduce(each(*xs)),
            *shapes,
            tol=1e-5,
            **more,
        )
        for kind, reduce in kinds.items()
    ]


TARGET = np.array([1, 0, 4])
SIGNS = np.array([1, -1, 1])
PAIR = [(3, 5), (3, 5)]


def np_huber(x, y, delta=0.7):
    d = np.abs(x - y)
    return np.where(d <= delta, d * d / 2, delta * (d - delta / 2))


def np_margins(x):
    at = x[np.arange(3), TARGET][:, None]
    margins = np.maximum(0, 0.8 - at + x) ** 2
    margins[np.arange(3), TARGET] = 0
    return margins.sum(1) / 5


def np_cosine(x, y):
    return (x * y).sum(1) / np.sqrt((x * x).sum(1) * (y * y).sum(1))


def np_triplet(x, p, n):
    distance = [np.sqrt(((x - other + 1e-6) ** 2).sum(1)) for other in (p, n)]
    return np.maximum(0, distance[0] - distance[1] + 1)


LETTERS, HEARD, SAID = np.array([[1, 1, 2], [2, 1, -7]]), np.array([5, 4]), np.array([3, 2])


def np_ctc(x):
    """By looking at every alignment; blank is 0."""
    log_p = np.log(np_softmax(x))
    losses = []
    for n in range(2):
        total = 0.0
        for path in itertools.product(range(3), repeat=int(HEARD[n])):
            letters = [c for i, c in enumerate(path) if c and (i == 0 or path[i - 1] != c)]
            if letters == list(LETTERS[n, : SAID[n]]):
                total += np.exp(sum(log_p[t, n, c] for t, c in enumerate(path)))
        losses.append(-np.log(total))
    return np.array(losses)


def ctc(x, reduction):
    lengths = _tensor(HEARD), _tensor(SAID)
    return ops.ctc_loss(ops.log_softmax(x), _tensor(LETTERS), *lengths, reduction=reduction)[0]


LOSSES = [
    row("ctc_loss_none", lambda x: ctc(x, "none"), np_ctc, (5, 2, 3), tol=1e-5, nan=False),
    row("ctc_loss_sum", lambda x: ctc(x, "sum"), lambda x: np_ctc(x).sum(), (5, 2, 3), tol=1e-5),
    row("ctc_loss_mean", lambda x: ctc(x, "mean"), lambda x: (np_ctc(x) / SAID).mean(), (5, 2, 3), tol=1e-5),
    *reduced("l1_loss", ops.l1_loss, lambda x, y: np.abs(x - y), *PAIR),
    *reduced(
        "smooth_l1_loss", functools.partial(ops.smooth_l1_loss, beta=0.7), lambda x, y: np_huber(x, y) / 0.7, *PAIR
    ),
    *reduced("huber_loss", functools.partial(ops.huber_loss, delta=0.7), np_huber, *PAIR),
    *reduced(
        "binary_cross_entropy",
        ops.binary_cross_entropy,
        lambda x, y: -(y * np.log(x + 1e-12) + (1 - y) * np.log(1 - x + 1e-12)),
        *PAIR,
        make=probability,
    ),
    *reduced(
        "binary_cross_entropy_with_logits",
        ops.binary_cross_entropy_with_logits,
        lambda x, y: np_softplus(x) - x * y,
        *PAIR,
        make=[wide, probability],
    ),
    *reduced(
        "nll_loss", lambda x, **r: ops.nll_loss(x, _tensor(TARGET), **r), lambda x: -x[np.arange(3), TARGET], (3, 5)
    ),
    *reduced(
        "cross_entropy_classes",
        lambda x, **r: ops.cross_entropy(x, _tensor(TARGET), **r),
        lambda x: -np.log(np_softmax(x))[np.arange(3), TARGET],
        (3, 5),
    ),
    *reduced("kl_div", ops.kl_div, lambda x, y: y * (np.log(y) - x), *PAIR, make=[wide, probability]),
    *reduced(
        "soft_margin_loss",
        lambda x, **r: ops.soft_margin_loss(x, ops.ones((3, 5), x.dtype), **r),
        lambda x: np_softplus(-x),
        (3, 5),
    ),
    *reduced(
        "multi_margin_loss",
        lambda x, **r: ops.multi_margin_loss(x, _tensor(TARGET), 2, 0.8, **r),
        np_margins,
        (3, 5),
        make=distinct,
    ),
    *reduced(
        "multilabel_soft_margin_loss",
        ops.multilabel_soft_margin_loss,
        lambda x, y: (np_softplus(x) - x * y).mean(1),
        *PAIR,
        make=[wide, probability],
    ),
    *reduced(
        "cosine_embedding_loss",
        lambda x, y, **r: ops.cosine_embedding_loss(x, y, _tensor(SIGNS), 0.1, **r),
        lambda x, y: np.where(SIGNS == 1, 1 - np_cosine(x, y), np.maximum(0, np_cosine(x, y) - 0.1)),
        *PAIR,
        make=[positive, wide],
    ),
    *reduced(
        "margin_ranking_loss",
        lambda x, y, **r: ops.margin_ranking_loss(x, y, _tensor(SIGNS.astype(np.float32)).astype(x.dtype), 0.3, **r),
        lambda x, y: np.maximum(0, -SIGNS * (x - y) + 0.3),
        (3,),
        (3,),
        make=distinct,
    ),
    *reduced("triplet_margin_loss", ops.triplet_margin_loss, np_triplet, *PAIR, (3, 5)),
    *reduced(
        "hinge_embedding_loss",
        lambda x, **r: ops.hinge_embedding_loss(
            x, _tensor(np.array([[1], [-1], [1]]) * np.ones((1, 5))).astype(x.dtype), **r
        ),
        lambda x: np.where(np.array([[1], [-1], [1]]) == 1, x, np.maximum(0, 1 - x)),
        (3, 5),
        make=nonzero,
    ),
    *reduced(
        "gaussian_nll_loss",
        ops.gaussian_nll_loss,
        lambda x, y, v: (np.log(v) + (x - y) ** 2 / v) / 2,
        *PAIR,
        (3, 5),
        make=[wide, wide, positive],
    ),
    *reduced(
        "poisson_nll_loss",
        lambda x, y, reduction: nn.PoissonNLLLoss(reduction=reduction)(x, y),
        lambda x, y: np.exp(x) - y * x,
        *PAIR,
        make=[wide, positive],
    ),
]

ALL = LOSSES
