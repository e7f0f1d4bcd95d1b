# SPDX-License-Identifier: Apache-2.0
"""Layers: what they compute beyond the functions of ops, parameters and their names, options, errors."""

import inspect

import numpy as np
import pytest
from undertow.common import initializer as init

import undertow as ut
from undertow import Parameter, Tensor, nn, ops


def data(*shape, seed=0):
    return Tensor(np.random.default_rng(seed).normal(size=shape).astype(np.float32))


IMAGE, LINE, VOLUME = (2, 4, 9, 8), (2, 4, 7), (2, 4, 5, 6, 7)

# layer, shape of the input, shape of the output
SHAPES = {
    "Conv1d": (lambda: nn.Conv1d(4, 6, 3, stride=2), LINE, (2, 6, 4)),
    "Conv2d": (lambda: nn.Conv2d(4, 6, 3, dilation=2, pad_mode="valid"), IMAGE, (2, 6, 5, 4)),
    "Conv3d": (lambda: nn.Conv3d(4, 6, 3, group=2), VOLUME, (2, 6, 5, 6, 7)),
    "Conv1dTranspose": (lambda: nn.Conv1dTranspose(4, 6, 3, 2), LINE, (2, 6, 14)),
    "Conv2dTranspose": (lambda: nn.Conv2dTranspose(4, 6, 3, 2, has_bias=True), IMAGE, (2, 6, 18, 16)),
    "Conv2dTranspose_valid": (lambda: nn.Conv2dTranspose(4, 6, 4, 2, "valid"), IMAGE, (2, 6, 20, 18)),
    "Conv2dTranspose_pad": (lambda: nn.Conv2dTranspose(4, 6, 3, 2, "pad", 1, 1), IMAGE, (2, 6, 18, 16)),
    "Conv3dTranspose": (lambda: nn.Conv3dTranspose(4, 6, 2, 2, "pad"), VOLUME, (2, 6, 10, 12, 14)),
    "MaxPool1d": (lambda: nn.MaxPool1d(3, 2), LINE, (2, 4, 3)),
    "MaxPool2d": (lambda: nn.MaxPool2d(3, 2, "pad", 1, ceil_mode=True), IMAGE, (2, 4, 5, 5)),
    "MaxPool2d_same": (lambda: nn.MaxPool2d(3, 2, "same"), IMAGE, (2, 4, 5, 4)),
    "MaxPool3d": (lambda: nn.MaxPool3d(2, 2), VOLUME, (2, 4, 2, 3, 3)),
    "AvgPool1d": (lambda: nn.AvgPool1d(3, 2), LINE, (2, 4, 3)),
    "AvgPool2d_unbatched": (lambda: nn.AvgPool2d(2, 2), IMAGE[1:], (4, 4, 4)),
    "AvgPool3d": (lambda: nn.AvgPool3d(2, 2, divisor_override=3), VOLUME, (2, 4, 2, 3, 3)),
    "AdaptiveAvgPool1d": (lambda: nn.AdaptiveAvgPool1d(3), LINE, (2, 4, 3)),
    "AdaptiveAvgPool2d": (lambda: nn.AdaptiveAvgPool2d((None, 3)), IMAGE, (2, 4, 9, 3)),
    "AdaptiveMaxPool3d": (lambda: nn.AdaptiveMaxPool3d((2, 3, 4)), VOLUME, (2, 4, 2, 3, 4)),
    "LPPool2d": (lambda: nn.LPPool2d(2.0, 2), IMAGE, (2, 4, 4, 4)),
    "BatchNorm1d": (lambda: nn.BatchNorm1d(4), LINE, LINE),
    "BatchNorm3d": (lambda: nn.BatchNorm3d(4), VOLUME, VOLUME),
    "SyncBatchNorm": (lambda: nn.SyncBatchNorm(4), IMAGE, IMAGE),
    "LayerNorm": (lambda: nn.LayerNorm((9, 8), begin_norm_axis=2, begin_params_axis=2), IMAGE, IMAGE),
    "GroupNorm": (lambda: nn.GroupNorm(2, 4), IMAGE, IMAGE),
    "InstanceNorm2d": (lambda: nn.InstanceNorm2d(4), IMAGE, IMAGE),
    "LRN": (lambda: nn.LRN(), IMAGE, IMAGE),
    "Norm": (lambda: nn.Norm(1, True), IMAGE, (2, 1, 9, 8)),
    "Pad": (lambda: nn.Pad(((0, 0), (0, 0), (1, 2), (3, 0)), "REFLECT"), IMAGE, (2, 4, 12, 11)),
    "ConstantPad1d": (lambda: nn.ConstantPad1d(2, 0.5), LINE, (2, 4, 11)),
    "ReflectionPad2d": (lambda: nn.ReflectionPad2d((1, 2, 3, 0)), IMAGE, (2, 4, 12, 11)),
    "ReplicationPad3d": (lambda: nn.ReplicationPad3d(1), VOLUME, (2, 4, 7, 8, 9)),
    "ZeroPad2d": (lambda: nn.ZeroPad2d((1, -1, 0, 2)), IMAGE, (2, 4, 11, 8)),
    "Upsample": (lambda: nn.Upsample(scale_factor=(2.0, 3.0), recompute_scale_factor=True), IMAGE, (2, 4, 18, 24)),
    "PixelShuffle": (lambda: nn.PixelShuffle(2), IMAGE, (2, 1, 18, 16)),
    "Unfold": (lambda: nn.Unfold([1, 3, 3, 1], [1, 2, 2, 1], [1, 1, 1, 1]), IMAGE, (2, 36, 4, 3)),
    "Unflatten": (lambda: nn.Unflatten(1, (2, -1)), IMAGE, (2, 2, 2, 9, 8)),
    "ChannelShuffle": (lambda: nn.ChannelShuffle(2), IMAGE, IMAGE),
    "Roll": (lambda: nn.Roll(3, 2), IMAGE, IMAGE),
    "ReduceLogSumExp": (lambda: nn.ReduceLogSumExp(1), IMAGE, (2, 9, 8)),
    "Identity": (lambda: nn.Identity(7, what="ever"), IMAGE, IMAGE),
    "GLU": (lambda: nn.GLU(), IMAGE, (2, 4, 9, 4)),
    "PReLU": (lambda: nn.PReLU(4, [0.1, 0.2, 0.3, 0.4]), IMAGE, IMAGE),
}


@pytest.mark.parametrize("name", SHAPES)
def test_shapes_and_compiled_equals_eager(name):
    make, shape, want = SHAPES[name]
    net, x = make(), data(*shape)
    assert type(net).__name__ == name.split("_")[0]
    y = net(x)
    assert y.shape == want
    np.testing.assert_allclose(ut.jit(net)(x).asnumpy(), y.asnumpy(), rtol=1e-5, atol=1e-5)


def test_activations_by_name():
    x = data(3, 4)
    for name in ("relu", "relu6", "gelu", "hswish", "hsigmoid", "leakyrelu", "mish", "silu", "logsoftmax", "prelu"):
        assert nn.get_activation(name)(x).shape == x.shape
    assert nn.get_activation(None) is None
    with pytest.raises(KeyError, match="swish9.*relu"):
        nn.get_activation("swish9")
    assert nn.GELU().approximate is True and nn.LeakyReLU().alpha == 0.2
    np.testing.assert_allclose(nn.Dense(4, 2, activation=ops.ReLU())(x).asnumpy().min(), 0, atol=1)
    assert nn.Dense(4, 2, activation=ops.relu)(x).shape == (3, 2)


def test_rrelu_draws_a_slope_for_each_element():
    y = nn.RReLU(0.25, 0.5)(Tensor(-np.ones(1000, np.float32))).asnumpy()
    assert len(np.unique(y)) > 500 and y.min() >= -0.5 and y.max() <= -0.25


def test_batch_statistics_of_lines():
    net = nn.BatchNorm1d(4, momentum=0.8)
    net.set_train()
    x = data(*LINE)
    net(x)
    mean = x.asnumpy().mean((0, 2))
    np.testing.assert_allclose(net.moving_mean.asnumpy(), 0.2 * mean, rtol=1e-5, atol=1e-6)
    always = nn.BatchNorm1d(4, use_batch_statistics=True, affine=False)
    np.testing.assert_allclose(always(x).asnumpy().mean((0, 2)), 0, atol=1e-5)
    assert not always.trainable_params()


def test_names_of_parameters():
    names = {
        nn.BatchNorm3d(2): ["bn2d.moving_mean", "bn2d.moving_variance", "bn2d.gamma", "bn2d.beta"],
        nn.LayerNorm((2,)): ["gamma", "beta"],
        nn.Embedding(3, 2): ["embedding_table"],
        nn.SequentialCell(nn.Conv1d(1, 1, 1, has_bias=True)): ["0.weight", "0.bias"],
        nn.MultiheadAttention(4, 2): ["in_proj_weight", "in_proj_bias", "out_proj.weight", "out_proj.bias"],
        nn.GRU(2, 2): ["weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0"],
    }
    for net, want in names.items():
        assert [n for n, _ in net.parameters_and_names()] == want
    assert nn.PReLU().w.name == "a" and nn.Conv1d(4, 6, 3).weight.shape == (6, 4, 1, 3)
    assert nn.Conv2dTranspose(4, 6, 3, group=2).weight.shape == (4, 3, 3, 3)


def test_max_unpool():
    x = data(1, 2, 4, 6)
    pooled, where = nn.MaxPool2d(2, 2, "pad", return_indices=True)(x)
    back = nn.MaxUnpool2d(2)(pooled, where).asnumpy()
    kept = back != 0
    assert kept.sum() == 12
    np.testing.assert_array_equal(back[kept], x.asnumpy()[kept])


def test_output_padding_is_zeros_around_two_dimensions():
    net = nn.Conv2dTranspose(4, 6, 3, 2, "pad", 1, 1, has_bias=True, bias_init="ones")
    y = net(data(*IMAGE)).asnumpy()
    assert not y[:, :, -1].any() and not y[:, :, :, -1].any() and y[:, :, 0, :-1].all()


def test_what_programs_look_at():
    conv = nn.Conv2d(3, 4, 3)
    assert conv.bias is None and nn.Dense(2, 2, has_bias=False).bias is None
    assert conv.kernel_size == (3, 3) and conv.stride == (1, 1) and conv.padding == 0
    assert nn.Conv2d(3, 4, 3, has_bias=True).bias.shape == (4,)
    norm, x = nn.LayerNorm((8,)), data(*IMAGE)
    y, _, _ = norm.layer_norm(x, norm.gamma, norm.beta)
    np.testing.assert_allclose(y.asnumpy(), norm(x).asnumpy(), atol=1e-6)
    assert list(inspect.signature(nn.Dropout(p=0.1).__init__).parameters)[:2] == ["keep_prob", "p"]
    assert "size" in inspect.signature(ops.interpolate).parameters
    assert "split_size_or_sections" in inspect.signature(ops.split).parameters


def test_embedding():
    net = nn.Embedding(5, 3, padding_idx=2)
    assert not net.embedding_table.asnumpy()[2].any()
    ids = Tensor(np.array([[1, 2], [4, 0]], np.int32))
    np.testing.assert_array_equal(net(ids).asnumpy(), net.embedding_table.asnumpy()[ids.asnumpy()])
    same = nn.Embedding(5, 3, use_one_hot=True, embedding_table=Tensor(net.embedding_table.asnumpy()))
    np.testing.assert_allclose(same(ids).asnumpy(), net(ids).asnumpy())
    with pytest.raises(IndexError, match="5"):
        net(Tensor(np.array([5], np.int32)))
    table = Parameter(data(4, 2))
    gradient = ut.grad(lambda t: ops.embedding(Tensor([1, 1, 3]), t, padding_idx=3).sum())(table)
    np.testing.assert_array_equal(gradient.asnumpy(), [[0, 0], [2, 2], [0, 0], [0, 0]])


def test_dropout_of_channels():
    for net, shape in (
        (nn.Dropout1d(0.5), (4, 50, 3)),
        (nn.Dropout2d(0.5), (4, 50, 3, 3)),
        (nn.Dropout3d(), (4, 50, 2, 2, 2)),
    ):
        x = Tensor(np.ones(shape, np.float32))
        assert net(x) is x
        y = net.set_train()(x).asnumpy().reshape(200, -1)
        assert (y == y[:, :1]).all() and set(np.unique(y)) == {0, 2} and 60 < (y[:, 0] == 0).sum() < 140


class OwnLoss(nn.LossBase):
    def construct(self, x, y):
        return self.get_loss(ops.abs(x - y), 2.0)


def test_losses_as_cells():
    x, y = data(3, 4), data(3, 4, seed=1)
    assert isinstance(nn.HuberLoss(), nn.LossBase)
    np.testing.assert_allclose(OwnLoss("sum")(x, y).item(), 2 * np.abs((x - y).asnumpy()).sum(), rtol=1e-6)
    np.testing.assert_allclose(nn.RMSELoss()(x, y).item(), np.sqrt(np.mean((x - y).asnumpy() ** 2)), rtol=1e-6)
    np.testing.assert_allclose(nn.MAELoss()(x, y).item(), np.abs((x - y).asnumpy()).mean(), rtol=1e-6)
    labels = Tensor(np.array([1, 0, 3]))
    p = ops.softmax(x).asnumpy()[np.arange(3), [1, 0, 3]]
    np.testing.assert_allclose(nn.CrossEntropyLoss()(x, labels).item(), -np.log(p).mean(), rtol=1e-5)
    focal = nn.FocalLoss(gamma=2.0)(x, labels.reshape(3, 1))
    np.testing.assert_allclose(focal.item(), np.mean(-((1 - p) ** 2) * np.log(p)), rtol=1e-5)
    t = np.abs(y.asnumpy())
    dice = 1 - 2 * (x.asnumpy() * t).sum() / ((x.asnumpy() ** 2).sum() + (t**2).sum() + 1e-5)
    np.testing.assert_allclose(nn.DiceLoss()(x, Tensor(t)).item(), dice, rtol=1e-5)
    assert nn.KLDivLoss("batchmean")(x, Tensor(t)).shape == ()
    with pytest.raises(ValueError, match="reduction.*'avg'"):
        nn.MSELoss("avg")
    with pytest.raises(IndexError, match="7"):
        nn.CrossEntropyLoss()(x, Tensor(np.array([1, 7, 0])))


ERRORS = {
    "channels": (lambda: nn.Conv2d(3, 4, 3)(data(*IMAGE)), ut.ShapeError, r"Conv2d.*in_channels = 3.*\(2, 4, 9, 8\)"),
    "window": (lambda: nn.Conv1d(4, 4, 9, pad_mode="valid")(data(*LINE)), ut.ShapeError, r"Conv1d.*9.*\(2, 4, 7\)"),
    "padding": (lambda: nn.MaxPool2d(2, padding=1), ValueError, "MaxPool2d.*padding.*pad_mode"),
    "ceil": (lambda: nn.AvgPool2d(2, ceil_mode=True), ValueError, "ceil_mode.*pad"),
    "format": (lambda: nn.Conv2d(3, 4, 3, data_format="NHWC"), ValueError, "NHWC.*NCHW"),
    "kernel": (lambda: nn.Conv2d(3, 4, (3, 3, 3)), ValueError, "Conv2d: kernel_size.*one integer or 2"),
    "groups": (lambda: nn.GroupNorm(3, 4), ValueError, "num_channels.*num_groups.*4 and 3"),
    "norm": (lambda: nn.LayerNorm((7,))(data(*IMAGE)), ut.ShapeError, r"LayerNorm.*\(7,\).*\(2, 4, 9, 8\)"),
    "count": (lambda: nn.ReLU()(data(2), data(2)), TypeError, "ReLU.*takes 1 input, but got 2"),
    "name": (lambda: nn.LSTM(4, 3)(data(5, 2, 4), h=1), TypeError, "no input 'h'.*hx"),
    "state": (lambda: nn.GRU(4, 3)(data(5, 2, 4), data(1, 1, 3)), ut.ShapeError, r"hx.*\(1, 2, 3\).*\(1, 1, 3\)"),
    "mode": (lambda: ops.interpolate(data(*IMAGE), 3, mode="cubic"), ValueError, "mode.*'cubic'"),
    "reflect": (lambda: nn.ReflectionPad1d(7)(data(*LINE)), ValueError, "reflect.*at most 6"),
    "heads": (lambda: nn.MultiheadAttention(6, 4), ValueError, "embed_dim.*num_heads.*6 and 4"),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors(name):
    call, kind, text = ERRORS[name]
    with pytest.raises(kind, match=text):
        call()


def test_errors_name_the_cell():
    class Net(nn.Cell):
        def __init__(self):
            super().__init__()
            self.loss = nn.MSELoss()

        def construct(self, x):
            return self.loss(x, x[1:])

    with pytest.raises(ut.ShapeError, match=r"(?s)\(2, 4, 7\).*\(1, 4, 7\).*loss"):
        Net()(data(*LINE))


def test_empty_and_nan():
    for make, shape in (
        (lambda: nn.Conv3d(4, 6, 3), VOLUME),
        (lambda: nn.AvgPool2d(2), IMAGE),
        (lambda: nn.GELU(), LINE),
    ):
        assert make()(data(0, *shape[1:])).shape[0] == 0
    x = data(1, 1, 6, 6).asnumpy()
    x[0, 0, 0, 4] = np.nan
    for net in (nn.MaxPool2d(2, 2, "pad", dilation=2), nn.HShrink(), nn.SoftShrink(), nn.Threshold(9.0, 0.0), nn.ELU()):
        assert np.isnan(net(Tensor(x)).asnumpy()).sum() == 1, type(net).__name__


INITIALIZERS = [
    "zeros",
    "Zero",
    "ONES",
    "normal",
    "Uniform",
    "xavier_uniform",
    "XavierUniform",
    "he_normal",
    "HeUniform",
]


@pytest.mark.parametrize("name", [*INITIALIZERS, "truncatedNormal", "xavier_normal", "orthogonal"])
def test_initializers_by_name(name):
    assert init.initializer(name, (6, 4), ut.float16).dtype == ut.float16


class Own(init.Initializer):
    def __init__(self, value):
        super().__init__(value=value)

    def _initialize(self, arr):
        arr[:] = np.arange(arr.size).reshape(arr.shape) + self.value


def test_initializers():
    q = init.initializer(init.Orthogonal(2.0), (3, 5)).asnumpy()
    np.testing.assert_allclose(q @ q.T, 4 * np.eye(3), atol=1e-5)
    d = init.initializer(init.Dirac(2), (4, 2, 3, 3)).asnumpy()
    assert d.sum() == 4 and d[0, 0, 1, 1] == d[3, 1, 1, 1] == 1
    s = init.initializer(init.Sparse(0.3, 1.0), (10, 20)).asnumpy()
    assert ((s == 0).sum(0) == 3).all()
    v = init.initializer(init.VarianceScaling(2.0, "fan_out", "uniform"), (50, 40)).asnumpy()
    assert abs(v.var() - 2 / 50) < 0.004 and np.abs(v).max() <= np.sqrt(6 / 50)
    v = init.initializer(init.VarianceScaling(), (300, 40)).asnumpy()
    assert abs(v.var() - 1 / 40) < 0.002
    assert nn.Dense(2, 3, weight_init=Own(1.0)).weight.asnumpy().tolist() == [[1, 2], [3, 4], [5, 6]]
    assert init.initializer(Own(0), (2,), ut.float16).dtype == ut.float16
    array = np.zeros((2, 3), np.float32)
    init.Constant(3)(array)
    assert (array == 3).all()
    assert init._calculate_fan_in_and_fan_out((6, 4, 3, 3)) == (36, 54)
    assert init._calculate_correct_fan((6, 4), "fan_out") == 6 and init.calculate_gain("tanh") == pytest.approx(5 / 3)
    with pytest.raises(ValueError, match="nothing"):
        init.initializer("nothing", (2,))
    with pytest.raises(TypeError, match="list"):
        init.initializer([1], (1,))
    with pytest.raises(TypeError, match="value"):
        init.Constant()


CLASS_FORMS = {
    "Conv2D": (lambda x: ops.Conv2D(3, 3, pad_mode="same")(x, ops.ones((3, 4, 3, 3))), (2, 3, 9, 8)),
    "Conv2DTranspose": (
        lambda x: ops.Conv2DTranspose(4, 3, "pad", 1, stride=2)(x, ops.ones((4, 5, 3, 3)), (2, 5, 17, 15)),
        (2, 5, 17, 15),
    ),
    "MaxPool": (lambda x: ops.MaxPool(kernel_size=3, strides=2, pad_mode="same")(x), (2, 4, 5, 4)),
    "AvgPool": (lambda x: ops.AvgPool(2, 2, "VALID")(x), (2, 4, 4, 4)),
    "BiasAdd": (lambda x: ops.BiasAdd()(x, ops.ones(4)), IMAGE),
    "LayerNorm": (lambda x: ops.LayerNorm(3, 3)(x, ops.ones(8), ops.zeros(8))[0], IMAGE),
    "BatchNorm": (lambda x: ops.BatchNorm()(x, ops.ones(4), ops.zeros(4), ops.zeros(4), ops.ones(4))[0], IMAGE),
    "L2Normalize": (lambda x: ops.L2Normalize(axis=1)(x), IMAGE),
    "Pad": (lambda x: ops.Pad(((0, 0), (0, 0), (1, 1), (2, 2)))(x), (2, 4, 11, 12)),
    "MirrorPad": (lambda x: ops.MirrorPad()(x, Tensor([[0, 0], [0, 0], [1, 1], [2, 2]])), (2, 4, 11, 12)),
    "ResizeBilinear": (lambda x: ops.ResizeBilinear((5, 6))(x), (2, 4, 5, 6)),
    "ResizeNearestNeighbor": (lambda x: ops.ResizeNearestNeighbor((18, 16))(x), (2, 4, 18, 16)),
    "GeLU": (lambda x: ops.GeLU()(x), IMAGE),
    "HSwish": (lambda x: ops.HSwish()(x), IMAGE),
    "Elu": (lambda x: ops.Elu()(x), IMAGE),
}


@pytest.mark.parametrize("name", CLASS_FORMS)
def test_class_forms(name):
    call, shape = CLASS_FORMS[name]
    assert call(data(*IMAGE)).shape == shape


def test_bicubic_is_mindspores():
    x = Tensor((np.arange(120).reshape(2, 3, 4, 5) % 7).astype(np.float32) - 3)
    y = ops.interpolate(x, (7, 3), mode="bicubic").asnumpy()
    np.testing.assert_allclose(y.ravel()[:4], [-3.1741, -0.8416, 0.9174, -1.0886], atol=2e-3)


@pytest.mark.parametrize("name", ["lstm_classifier", "transformer"])
def test_examples_learn(name):
    import importlib.util
    from pathlib import Path

    path = Path(__file__).resolve().parents[2] / "examples" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert module.main() > 0.85
