# SPDX-License-Identifier: Apache-2.0
"""Class forms of the neural network functions. See operations.py for what a row is."""

from functools import partial

from undertow._core import ops as f
from undertow.ops._primitive import define

__all__ = []
_define = partial(define, globals())

_UNARY = {
    "GeLU": lambda x: f.gelu(x, "tanh"), "FastGeLU": f.fast_gelu, "FastGelu": f.fast_gelu, "SeLU": f.selu,
    "HSwish": f.hardswish, "HSigmoid": f.hardsigmoid, "Mish": f.mish, "SiLU": f.silu, "ReLU6": f.relu6,
    "Softplus": f.softplus, "Softsign": f.softsign, "PReLU": f.prelu,
}  # fmt: skip
for _name, _function in _UNARY.items():
    _define(_name, _function)
_define("Elu", lambda x, alpha: f.elu(x, alpha), alpha=1.0)
_define("HShrink", lambda x, lambd: f.hardshrink(x, lambd), lambd=0.5)
_define("SoftShrink", lambda x, lambd: f.softshrink(x, lambd), lambd=0.5)
_define("LeakyReLU", lambda x, alpha: f.leaky_relu(x, alpha), alpha=0.2)
_define("GLU", lambda x, axis: f.glu(x, axis), axis=-1)


def _only(name, argument, value, allowed):
    if value not in allowed:
        raise ValueError(f"ops.{name}: {argument} must be one of {', '.join(map(repr, allowed))}, got {value!r}")


def _conv(rank):
    conv = {2: f.conv2d, 3: f.conv3d}[rank]

    def call(x, w, out_channel, kernel_size, mode, pad_mode, pad, stride, dilation, group, data_format):
        _only(f"Conv{rank}D", "data_format", data_format, ("NCHW", "NCDHW"))
        return conv(x, w, None, _last(stride, rank), pad_mode, pad, _last(dilation, rank), group)

    return call


def _last(value, rank):
    """Primitives also take one number a dimension of the whole tensor."""
    return value[-rank:] if isinstance(value, (tuple, list)) else value


_define(
    "Conv2D", _conv(2), out_channel=None, kernel_size=None, mode=1, pad_mode="valid", pad=0, stride=1, dilation=1,
    group=1, data_format="NCHW",
)  # fmt: skip
_define(
    "Conv3D", _conv(3), out_channel=None, kernel_size=None, mode=1, pad_mode="valid", pad=0, stride=1, dilation=1,
    group=1, data_format="NCDHW",
)  # fmt: skip


def _conv_input(
    dy, w, size, out_channel, kernel_size, pad_mode, pad, pad_list, mode, stride, dilation, group, data_format
):
    _only("Conv2DTranspose", "data_format", data_format, ("NCHW",))
    padding = pad if pad_list is None else pad_list
    return f._conv_input(dy, w, size, _last(stride, 2), pad_mode, padding, _last(dilation, 2), group)


for _name in ("Conv2DTranspose", "Conv2DBackpropInput"):
    _define(
        _name, _conv_input, out_channel=None, kernel_size=None, pad_mode="valid", pad=0, pad_list=None, mode=1,
        stride=1, dilation=1, group=1, data_format="NCHW",
    )  # fmt: skip
_define(
    "BiasAdd", lambda x, b, data_format: f._bias_add(x, b, data_format == "NHWC"), data_format="NCHW"
)  # fmt: skip


def _pool(name, is_max):
    def call(x, kernel_size, strides, pad_mode, data_format):
        _only(name, "data_format", data_format, ("NCHW",))
        return f._pool(x, is_max, _last(kernel_size, 2), _last(strides, 2), pad_mode)

    return call


_define("MaxPool", _pool("MaxPool", True), kernel_size=1, strides=1, pad_mode="valid", data_format="NCHW")
_define("AvgPool", _pool("AvgPool", False), kernel_size=1, strides=1, pad_mode="valid", data_format="NCHW")
_define(
    "MaxPool3D",
    lambda x, kernel_size, strides, pad_mode, pad_list, ceil_mode, data_format: f._pool(
        x, True, _last(kernel_size, 3), _last(strides, 3), pad_mode, pad_list, bool(ceil_mode)
    ),
    kernel_size=1, strides=1, pad_mode="valid", pad_list=0, ceil_mode=None, data_format="NCDHW",
)  # fmt: skip
_define(
    "AvgPool3D",
    lambda x, kernel_size, strides, pad_mode, pad, ceil_mode, count_include_pad, divisor_override, data_format: f._pool(
        x, False, _last(kernel_size, 3), _last(strides, 3), pad_mode, pad, ceil_mode, count_include_pad,
        divisor_override,
    ),
    kernel_size=1, strides=1, pad_mode="valid", pad=0, ceil_mode=False, count_include_pad=True, divisor_override=0,
    data_format="NCDHW",
)  # fmt: skip
_define(
    "MaxPoolWithArgmaxV2",
    lambda x, kernel_size, strides, pads, dilation, ceil_mode, argmax_type: f.max_pool2d(
        x, _last(kernel_size, 2), None if strides is None else _last(strides, 2), pads, dilation, True, ceil_mode
    ),
    kernel_size=1, strides=None, pads=0, dilation=1, ceil_mode=False, argmax_type="int64",
)  # fmt: skip
_define("AdaptiveAvgPool2D", lambda x, output_size: f.adaptive_avg_pool2d(x, output_size), output_size=None)
_define("AdaptiveMaxPool2D", lambda x, output_size: f.adaptive_max_pool2d(x, output_size, True), output_size=None)


def _batch_norm(x, gamma, beta, mean, variance, is_training, epsilon, momentum, data_format):
    _only("BatchNorm", "data_format", data_format, ("NCHW",))
    y = f.batch_norm(x, mean, variance, gamma, beta, is_training, momentum, epsilon)
    return y, mean, variance, mean, variance


_define("BatchNorm", _batch_norm, is_training=False, epsilon=1e-5, momentum=0.1, data_format="NCHW")


def _layer_norm(x, gamma, beta, begin_norm_axis, begin_params_axis, epsilon):
    axis = begin_norm_axis % x.ndim
    axes = tuple(range(axis, x.ndim))
    mean = f.mean(x, axes, True)
    return f._layer_norm(x, gamma, beta, axis, epsilon), mean, f.mean(f.square(f.sub(x, mean)), axes, True)


_define("LayerNorm", _layer_norm, begin_norm_axis=1, begin_params_axis=1, epsilon=1e-7)
_define("GroupNorm", lambda x, groups, w=None, b=None, eps=1e-5: f.group_norm(x, groups, w, b, eps))
_define("L2Normalize", lambda x, axis, epsilon: f._l2_normalize(x, axis, epsilon), axis=0, epsilon=1e-4)
_define(
    "LRN",
    lambda x, depth_radius, bias, alpha, beta, norm_region: f.lrn(x, depth_radius, bias, alpha, beta, norm_region),
    depth_radius=5, bias=1.0, alpha=1.0, beta=0.5, norm_region="ACROSS_CHANNELS",
)  # fmt: skip
for _rank in (2, 3):
    _define(
        f"Dropout{_rank}D",
        lambda x, keep_prob, _f={2: f.dropout2d, 3: f.dropout3d}[_rank]: (_f(x, 1 - keep_prob), None),
        keep_prob=0.5,
    )

_define("Pad", lambda x, paddings: f.pad(x, paddings), paddings=None)
_define("MirrorPad", lambda x, paddings, mode: f.pad(x, paddings, mode.lower()), mode="REFLECT")
_define(
    "PadV3",
    lambda x, paddings, value=None, *, mode, paddings_contiguous: f.pad(
        x, paddings, mode, value if mode == "constant" else None
    ),
    mode="constant", paddings_contiguous=True,
)  # fmt: skip


def _resize(mode):
    def call(x, size, align_corners, half_pixel_centers):
        return f._resize(x, size, mode, align_corners, half_pixel_centers)

    return call


for _name, _mode in (
    ("ResizeBilinearV2", "bilinear"), ("ResizeNearestNeighborV2", "nearest"), ("ResizeBicubic", "bicubic"),
):  # fmt: skip
    _define(_name, _resize(_mode), align_corners=False, half_pixel_centers=False)
for _name, _mode in (("ResizeBilinear", "bilinear"), ("ResizeNearestNeighbor", "nearest")):
    _define(
        _name,
        lambda x, size, align_corners, half_pixel_centers, _mode=_mode: f._resize(
            x, size, _mode, align_corners, half_pixel_centers
        ),
        size=None, align_corners=False, half_pixel_centers=False,
    )  # fmt: skip
_define(
    "GridSampler2D",
    lambda x, grid, interpolation_mode, padding_mode, align_corners: f.grid_sample(
        x, grid, interpolation_mode, padding_mode, align_corners
    ),
    interpolation_mode="bilinear", padding_mode="zeros", align_corners=False,
)  # fmt: skip

_define(
    "BCEWithLogitsLoss",
    lambda x, t, w=None, p=None, *, reduction: f.binary_cross_entropy_with_logits(x, t, w, p, reduction),
    reduction="mean",
)
_define(
    "BinaryCrossEntropy",
    lambda x, t, w=None, *, reduction: f.binary_cross_entropy(x, t, w, reduction),
    reduction="mean",
)
_define("KLDivLoss", lambda x, t, reduction: f.kl_div(x, t, reduction), reduction="mean")
_define(
    "SmoothL1Loss", lambda x, t, beta, reduction: f.smooth_l1_loss(x, t, beta, reduction), beta=1.0, reduction="none"
)
_define("SoftMarginLoss", lambda x, t, reduction: f.soft_margin_loss(x, t, reduction), reduction="mean")
_define(
    "SigmoidCrossEntropyWithLogits",
    lambda x, t: f.binary_cross_entropy_with_logits(x, t, None, None, "none"),
)
