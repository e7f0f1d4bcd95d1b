# SPDX-License-Identifier: Apache-2.0
"""Functions of neural networks with the names under which data/nn_reference.npz holds inputs, results and gradients.

The file was written by PyTorch 2 on a CPU; the gradients are those of sum(result * linspace(0.5, 1.5, size)).
"""

import numpy as np

from undertow import Tensor, ops

IDS = np.array([1, 0, 4, -100])
LABELS = np.array([[1, 0, -1, 2, 3], [4, -1, 0, 0, 0], [-1, 1, 1, 1, 1], [0, 1, 2, 3, 4]])
SIGNS = np.array([1, -1, 1, -1])

ACTIVATIONS = {
    "gelu": ops.gelu,
    "gelu_tanh": lambda x: ops.gelu(x, approximate="tanh"),
    "silu": ops.silu,
    "mish": ops.mish,
    "hardswish": ops.hardswish,
    "hardsigmoid": ops.hardsigmoid,
    "elu": lambda x: ops.elu(x, 0.7),
    "celu": lambda x: ops.celu(x, 1.3),
    "selu": ops.selu,
    "softplus": lambda x: ops.softplus(x, 2, 1.5),
    "softsign": ops.softsign,
    "logsigmoid": ops.logsigmoid,
    "hardshrink": ops.hardshrink,
    "softshrink": ops.softshrink,
    "tanhshrink": ops.tanhshrink,
    "leaky": lambda x: ops.leaky_relu(x, 0.2),
    "thr": lambda x: ops.threshold(x, 0.3, -2.0),
    "hardtanh": ops.hardtanh,
    "relu6": lambda x: ops.relu6(x * 4),
    "softmin": lambda x: ops.softmin(x, 1),
    "glu": lambda x: ops.glu(x, 1),
    "prelu": ops.prelu,
}

WINDOWS = {
    "conv1d": lambda x, w, b: ops.conv1d(x, w, b, 2, "pad", 2, 2, 2),
    "conv2d": lambda x, w: ops.conv2d(x, w, stride=2, pad_mode="pad", padding=(1, 0)),
    "conv3d": lambda x, w: ops.conv3d(x, w, stride=(1, 2, 2), pad_mode="pad", padding=1, groups=2),
    "convt1d": lambda x, w: ops.conv1d_transpose(x, w, "pad", 1, 2, output_padding=1),
    "convt2d": lambda x, w: ops.conv2d_transpose(x, w, "pad", 1, 2, group=2, output_padding=1),
    "convt3d": lambda x, w: ops.conv3d_transpose(x, w, "pad", 1, 2, output_padding=1),
    "maxp1": lambda x: ops.max_pool1d(x, 3, 2, 1, ceil_mode=True),
    "maxp2": lambda x: ops.max_pool2d(x, 3, 2, 1, dilation=2, ceil_mode=True),
    "maxp3": lambda x: ops.max_pool3d(x, (2, 3, 3), 2, 1, ceil_mode=True),
    "maxp2i": lambda x: ops.max_pool2d(x, 3, 2, 1, 2, return_indices=True, ceil_mode=True)[1],
    "maxp3i": lambda x: ops.max_pool3d(x, (2, 3, 3), 2, 1, (1, 2, 1), return_indices=True)[1],
    "avgp1": lambda x: ops.avg_pool1d(x, 4, 3, 1, ceil_mode=True),
    "avgp2": lambda x: ops.avg_pool2d(x, 3, 2, 1, ceil_mode=True),
    "avgp2x": lambda x: ops.avg_pool2d(x, 3, 2, 1, ceil_mode=True, count_include_pad=False),
    "avgp2d": lambda x: ops.avg_pool2d(x, 3, 2, 1, ceil_mode=True, divisor_override=5),
    "avgp3": lambda x: ops.avg_pool3d(x, (2, 3, 4), 2, 1, ceil_mode=True),
    "aavg2": lambda x: ops.adaptive_avg_pool2d(x, (4, 3)),
    "aavg3": lambda x: ops.adaptive_avg_pool3d(x, (2, 3, 7)),
    "amax2": lambda x: ops.adaptive_max_pool2d(x, (4, 3)),
    "amax2i": lambda x: ops.adaptive_max_pool2d(x, (4, 3), return_indices=True)[1],
    "lp2": lambda x: ops.lp_pool2d(x, 3, 2, 2),
}

IMAGES = {
    **{f"pad_{m}": lambda x, m=m: ops.pad(x, (1, 2, 3, 1), mode=m) for m in ("reflect", "replicate", "circular")},
    "pad_neg": lambda x: ops.pad(x, (-1, 2, 1, -3), value=1.5),
    **{f"int_{m}": lambda x, m=m: ops.interpolate(x, (13, 5), mode=m) for m in ("nearest", "bilinear", "area")},
    "int_nexact": lambda x: ops.interpolate(x, (13, 5), mode="nearest-exact"),
    "int_bilinear_a": lambda x: ops.interpolate(x, (13, 5), mode="bilinear", align_corners=True),
    "int_bicubic_a": lambda x: ops.interpolate(x, (13, 5), mode="bicubic", align_corners=True),
    "int_sf": lambda x: ops.interpolate(x, scale_factor=1.7, mode="bilinear"),
    "int_sfn": lambda x: ops.interpolate(x, scale_factor=2, mode="nearest"),
    "int_lin": lambda x: ops.interpolate(x, 4, mode="linear"),
    "int_tri": lambda x: ops.interpolate(x, (4, 9, 3), mode="trilinear"),
    "pshuf": lambda x: ops.pixel_shuffle(x, 2),
    "punshuf": lambda x: ops.pixel_unshuffle(x, 2),
    "cshuf": lambda x: ops.channel_shuffle(x, 2),
    "unfold": lambda x: ops.unfold(x, (3, 2), (2, 1), 1, 2),
    "fold": lambda x: ops.fold(x, (9, 8), (3, 2), (2, 1), 1, 2),
    **{
        f"grid_{p}_{a}": lambda x, g, p=p, a=a: ops.grid_sample(x, g, "bilinear", p, a)
        for p in ("zeros", "border", "reflection")
        for a in (False, True)
    },
}

NORMS = {
    "ln": lambda x, g, b: ops.layer_norm(x, (5,), g, b, 1e-5),
    "gn": lambda x, g, b: ops.group_norm(x, 2, g, b),
    "bn": lambda x, g, b: ops.batch_norm(x, ops.zeros(4), ops.ones(4), g, b, True),
    "bilinear": ops.bidense,
    "pdist": lambda x, y: ops.pairwise_distance(x, y, 3.0),
    "cossim": ops.cosine_similarity,
    "l_ce4": lambda x: ops.cross_entropy(x, Tensor(np.arange(40).reshape(2, 4, 5) % 3)),
}


def losses(reduction, weight, binary):
    r = {"reduction": reduction}
    w, signs = Tensor(weight), Tensor(binary * 2 - 1)
    table = {
        "smooth": lambda x, y: ops.smooth_l1_loss(x, y, beta=0.7, **r),
        "huber": lambda x, y: ops.huber_loss(x, y, delta=0.7, **r),
        "bce": lambda x, y: ops.binary_cross_entropy(x, y, **r),
        "bcel": lambda x, y: ops.binary_cross_entropy_with_logits(x, y, w, w, **r),
        "nll": lambda x: ops.nll_loss(x, Tensor(IDS), w, **r),
        "ce": lambda x: ops.cross_entropy(x, Tensor(IDS), w, label_smoothing=0.1, **r),
        "ce0": lambda x: ops.cross_entropy(x, Tensor(IDS), **r),
        "cep": lambda x, p: ops.cross_entropy(x, p, w, label_smoothing=0.1, **r),
        "kl": lambda x, y: ops.kl_div(x, y, **r),
        "sm": lambda x, y: ops.soft_margin_loss(x, y, **r),
        "mm": lambda x: ops.multi_margin_loss(x, Tensor(np.array([1, 0, 4, 2])), 2, 0.8, w, **r),
        "mlm": lambda x: ops.multilabel_margin_loss(x, Tensor(LABELS), **r),
        "mls": lambda x, y: ops.multilabel_soft_margin_loss(x, y, **r),
        "cos": lambda x, y: ops.cosine_embedding_loss(x, y, Tensor(SIGNS), 0.1, **r),
        "mr": lambda x, y: ops.margin_ranking_loss(x, y, signs, 0.3, **r),
        "tri": lambda x, y, z: ops.triplet_margin_loss(x, y, z, swap=True, **r),
        "hinge": lambda x, y: ops.hinge_embedding_loss(x, y, **r),
        "gau": lambda x, y, v: ops.gaussian_nll_loss(x, y, v, full=True, **r),
    }
    return {f"l_{name}_{reduction}": op for name, op in table.items()}
