# SPDX-License-Identifier: Apache-2.0
"""Levels of mixed precision: what computes in which dtype, and that nothing else does."""

import copy
import os
import subprocess
import sys

import numpy as np
import pytest

import undertow as ut
from undertow import amp, dataset, nn, ops

HALVES = [ut.float16, ut.bfloat16]
DEVICES = ["CPU", "reference"]


@pytest.fixture(autouse=True)
def _context():
    yield
    ut.context.reset_context()


class Probe(nn.Cell):
    """conv, bn, relu, dense, ln, softmax; keeps the dtypes that it sees on the way."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 4, 3, pad_mode="valid", has_bias=True)
        self.bn = nn.BatchNorm2d(4)
        self.relu = nn.ReLU()
        self.flatten = nn.Flatten()
        self.fc = nn.Dense(16, 8)
        self.ln = nn.LayerNorm((8,))
        self.softmax = nn.Softmax()
        self.seen = []

    def construct(self, x):
        self.seen.clear()
        for cell in (self.conv, self.bn, self.relu, self.flatten, self.fc, self.ln, self.softmax):
            x = cell(x)
            self.seen.append(x.dtype)
        return x


def image(n=2):
    return ut.Tensor(np.random.default_rng(0).standard_normal((n, 1, 4, 4)).astype(np.float32))


@pytest.mark.parametrize("half", HALVES)
@pytest.mark.parametrize(
    "level, expected", [("O0", "fffffff"), ("O1", "fffffff"), ("O2", "hhhhhhh"), ("O3", "hhhhhhh"), ("auto", "fffffff")]
)
def test_dtypes_between_layers(level, expected, half):
    net = amp.auto_mixed_precision(Probe(), level, half)
    y = net(image())
    # In "auto" a product is half, and the float32 bias that is added to it promotes it.
    assert "".join("h" if d == half else "f" for d in net.seen) == expected
    assert y.dtype == ut.float32
    assert all(p.dtype == ut.float32 for p in net.get_parameters())


def test_auto_products_are_half():
    def f(x, w):
        y = ops.matmul(x, w)
        return y, ops.exp(y), ops.softmax(y), y + y

    dtypes = []

    def keep(*args):
        out = f(*args)
        dtypes.extend(t.dtype for t in out)
        return out

    auto = amp.auto_mixed_precision(keep, "auto", ut.bfloat16)
    results = auto(ut.Tensor(np.ones((2, 3), np.float32)), ut.Tensor(np.ones((3, 2), np.float32)))
    assert dtypes == [ut.bfloat16, ut.float32, ut.float32, ut.bfloat16]
    assert all(t.dtype == ut.float32 for t in results)


def rounded(x, half):
    return ut.Tensor(x).astype(half).astype(ut.float32).asnumpy()


@pytest.mark.parametrize("half", HALVES)
@pytest.mark.parametrize("level", ["O1", "O2", "O3"])
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("mode", [ut.GRAPH_MODE, ut.PYNATIVE_MODE])
def test_products_take_rounded_operands(mode, device, level, half):
    ut.set_context(mode=mode, device_target=device)
    rng = np.random.default_rng(1)
    x, w = rng.standard_normal((5, 7)).astype(np.float32), rng.standard_normal((3, 7)).astype(np.float32)
    net = nn.Dense(7, 3, weight_init=ut.Tensor(w), has_bias=False)
    model = ut.Model(amp.auto_mixed_precision(net, level, half))
    exact = rounded(x, half).astype(np.float64) @ rounded(w, half).astype(np.float64).T
    np.testing.assert_array_equal(
        model.predict(ut.Tensor(x)).asnumpy(), rounded(exact.astype(np.float32), half), strict=False
    )


@pytest.mark.parametrize("half", HALVES)
@pytest.mark.parametrize("level", ["O2", "O3"])
@pytest.mark.parametrize("device", DEVICES)
def test_statistics_are_those_of_float32(device, level, half):
    ut.set_context(mode=ut.GRAPH_MODE, device_target=device)
    x = np.random.default_rng(2).standard_normal((8, 3, 5, 5)).astype(np.float32) * 300
    norm, full = nn.BatchNorm2d(3), nn.BatchNorm2d(3)
    amp.auto_mixed_precision(nn.SequentialCell(norm), level, half).set_train()(ut.Tensor(x))
    full.set_train()(ut.Tensor(rounded(x, half)))
    assert norm.moving_variance.dtype == ut.float32
    np.testing.assert_array_equal(norm.moving_mean.asnumpy(), full.moving_mean.asnumpy())
    np.testing.assert_array_equal(norm.moving_variance.asnumpy(), full.moving_variance.asnumpy())


def test_to_float_is_left_alone_by_levels():
    class Net(nn.Cell):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.Dense(4, 4), nn.Dense(4, 4).to_float(ut.float32)

        def construct(self, x):
            a = self.a(x)
            b = self.b(a)
            self.dtypes = [a.dtype, b.dtype]
            return b

    net = amp.auto_mixed_precision(Net(), "O3", ut.bfloat16)
    net(ut.Tensor(np.ones((1, 4), np.float32)))
    assert net.dtypes == [ut.bfloat16, ut.float32]


def test_own_parameters_are_read_in_half():
    class Net(nn.Cell):
        def __init__(self):
            super().__init__()
            self.w = ut.Parameter(np.full((2, 2), 1 / 3, np.float32))
            self.count = ut.Parameter(np.float32(0.1))

        def construct(self, x):
            self.count = self.count + 1e-3
            y = ops.matmul(x, self.w.T) * self.w
            self.dtype = y.dtype
            return y

    net = amp.auto_mixed_precision(Net(), "O3", ut.float16)
    net(ut.Tensor(np.ones((2, 2), np.float32)))
    assert net.dtype == ut.float16 and net.w.dtype == ut.float32
    np.testing.assert_array_equal(net.count.asnumpy(), np.float32(0.1) + np.float32(1e-3))


def test_custom_lists():
    net = amp.custom_mixed_precision(Probe(), black_list=[nn.Dense], dtype=ut.float16)
    net(image())
    assert [str(d) for d in net.seen] == ["Float16"] * 7
    white = amp.custom_mixed_precision(
        nn.SequentialCell(nn.Dense(3, 3), nn.ReLU()), white_list=[nn.Dense], dtype=ut.float16
    )
    x = np.full((1, 3), 1 / 3, np.float32)
    w = white[0].weight.asnumpy()
    exact = (rounded(x, ut.float16) @ rounded(w, ut.float16).T).astype(np.float32)
    got = white(ut.Tensor(x)).asnumpy()
    np.testing.assert_allclose(
        got,
        np.maximum(rounded(rounded(exact, ut.float16) + rounded(white[0].bias.asnumpy(), ut.float16), ut.float16), 0),
        atol=2e-3,
    )


def test_unmatched_names_warn(capfd):
    net = nn.SequentialCell(nn.Dense(3, 3))
    amp.custom_mixed_precision(net, white_list=[nn.Conv2d, nn.Dense, nn.BiDense], dtype=ut.float16)
    err = capfd.readouterr().err
    assert "'Conv2d' (near it: Conv2D" in err and "'BiDense' (near it: Dense" in err and "'Dense'" not in err
    assert err.count("custom_mixed_precision") == 1


def test_lists_are_classes():
    white, black = amp.get_white_list(), amp.get_black_list()
    assert nn.Dense in white and nn.Conv2d in white and ops.MatMul in white
    assert black == [nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d, nn.LayerNorm]
    net = amp.custom_mixed_precision(Probe(), black_list=black, dtype=ut.bfloat16)
    assert {c.path: c.dtype for c in amp.report(net).cells}["bn"] == "Float32"
    net = amp.custom_mixed_precision(Probe(), white_list=white, dtype=ut.bfloat16)
    dtypes = {c.path: c.dtype for c in amp.report(net).cells}
    assert (dtypes["conv"], dtypes["fc"], dtypes["bn"]) == ("BFloat16", "BFloat16", "Float32")


def test_operators_of_a_white_list():
    class Net(nn.Cell):
        def construct(self, x, w):
            return ops.MatMul()(x, w), x * w.T

    net = amp.custom_mixed_precision(Net(), white_list=[ops.MatMul], dtype=ut.float16)
    third = np.full((1, 3), 1 / 3, np.float32)
    product, plain = net(ut.Tensor(third), ut.Tensor(third.T))
    assert product.dtype == plain.dtype == ut.float32
    exact = (rounded(third, ut.float16).astype(np.float64) ** 2).sum().astype(np.float32)
    assert product.asnumpy() == rounded(exact, ut.float16) != np.float32(1 / 3)
    np.testing.assert_array_equal(plain.asnumpy(), third * third)


def test_bad_input():
    net = nn.Dense(2, 2)
    with pytest.raises(ValueError, match="amp level 'O4'"):
        amp.auto_mixed_precision(net, "O4")
    with pytest.raises(ValueError, match="amp level 'O4'"):
        ut.Model(net, amp_level="O4")
    with pytest.raises(TypeError, match="float16 or bfloat16"):
        amp.auto_mixed_precision(net, "O2", ut.float32)
    with pytest.raises(TypeError, match="must be a Cell"):
        amp.auto_mixed_precision(3, "O2")
    with pytest.raises(ValueError, match="half must be"):
        ut.set_context(half="float64")
    with pytest.raises(ValueError, match="to_float takes"):
        net.to_float(ut.int32)
    with pytest.raises(ValueError, match="either a white_list or a black_list"):
        amp.custom_mixed_precision(net)
    with pytest.raises(TypeError, match="classes of cells"):
        amp.custom_mixed_precision(net, black_list=["Dense"])
    amp.auto_mixed_precision(net, "O2", ut.float16)
    amp.auto_mixed_precision(net, "O2", ut.float16)
    with pytest.raises(ValueError, match="at level O2 in Float16 already"):
        amp.auto_mixed_precision(net, "O3", ut.float16)
    with pytest.raises(ValueError, match="in BFloat16"):
        amp.auto_mixed_precision(net, "O2", ut.bfloat16)


def test_auto_half_without_hardware_is_float32():
    ut.set_context(device_target="reference")
    net = amp.auto_mixed_precision(Probe(), "O2")
    net(image())
    assert net.seen == [ut.float32] * 7


@pytest.mark.parametrize("level", ["O1", "O2", "O3", "auto"])
@pytest.mark.parametrize("half", ["float16", "bfloat16"])
@pytest.mark.parametrize("mode, sink", [(ut.GRAPH_MODE, False), (ut.GRAPH_MODE, True), (ut.PYNATIVE_MODE, False)])
def test_training_follows_float32(mode, sink, half, level):
    ut.set_context(mode=mode, half=half)
    rng = np.random.default_rng(0)
    x = rng.standard_normal((64, 1, 4, 4)).astype(np.float32)
    y = (x.reshape(64, -1).sum(1) > 0).astype(np.int32)
    losses = {}
    for at in ("O0", level):
        ut.set_seed(3)
        net = nn.SequentialCell(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Dense(64, 2))
        loss = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
        opt = nn.Momentum(net.trainable_params(), 0.1, 0.9)
        model = ut.Model(net, loss, opt, {"loss"}, amp_level=at)
        data = dataset.NumpySlicesDataset((x, y), shuffle=False).batch(16)
        model.train(10, data, dataset_sink_mode=sink)
        losses[at] = model.eval(data, dataset_sink_mode=sink)["loss"]
        assert all(
            p.dtype == ut.float32 for p in [*net.get_parameters(), *opt.get_parameters()] if "step" not in p.name
        )
    assert losses["O0"] < 0.3 and abs(losses[level] - losses["O0"]) < 0.05
    assert losses[level] != losses["O0"]


@pytest.mark.parametrize("level, scaled", [("O0", False), ("O1", False), ("O2", True), ("O3", False)])
def test_build_train_network(level, scaled):
    net = nn.SequentialCell(nn.Dense(3, 2))
    opt = nn.SGD(net.trainable_params(), 0.1)
    step = amp.build_train_network(net, opt, nn.MSELoss(), level, cast_model_type=ut.float16)
    before = net[0].weight.asnumpy().copy()
    x, y = ut.Tensor(np.ones((4, 3), np.float32)), ut.Tensor(np.zeros((4, 2), np.float32))
    for _ in range(20):  # the scale starts high: the first steps overflow
        result = step(x, y)
    assert isinstance(result, tuple) == scaled
    loss = result[0] if scaled else result
    assert loss.dtype == ut.float32 and net[0].weight.dtype == ut.float32
    assert (net[0].weight.asnumpy() != before).all() and np.isfinite(net[0].weight.asnumpy()).all()
    with pytest.raises(ValueError, match="unknown argument 'nothing'"):
        amp.build_train_network(net, opt, nothing=1)


def layers():
    rng = np.random.default_rng(0)
    ids = ut.Tensor(rng.integers(0, 9, (2, 5)).astype(np.int32))
    x = ut.Tensor(rng.standard_normal((2, 5, 8)).astype(np.float32))
    image_ = ut.Tensor(rng.standard_normal((2, 4, 6, 6)).astype(np.float32))
    return {
        "Embedding": (nn.Embedding(9, 8), ids),
        "LSTM": (nn.LSTM(8, 4), x),
        "GRUCell": (nn.GRUCell(8, 4), x[:, 0], ut.Tensor(np.zeros((2, 4), np.float32))),
        "Conv2dTranspose": (nn.Conv2dTranspose(4, 3, 3, has_bias=True), image_),
        "Conv1d": (nn.Conv1d(5, 3, 3), x),
        "GroupNorm": (nn.GroupNorm(2, 4), image_),
        "PReLU": (nn.PReLU(4), image_),
        "MultiheadAttention": (nn.MultiheadAttention(8, 2, batch_first=True), x, x, x),
        "TransformerEncoderLayer": (nn.TransformerEncoderLayer(8, 2, 16, 0.0, batch_first=True), x),
        "AvgPool2d": (nn.AvgPool2d(2, 2), image_),
        "GELU": (nn.GELU(), x),
    }


@pytest.mark.parametrize("half, tolerance", [(ut.float16, 4e-3), (ut.bfloat16, 3e-2)])
@pytest.mark.parametrize("name", layers())
def test_layers_give_half_results(name, half, tolerance):
    cell, *inputs = layers()[name]

    def first(value):
        while isinstance(value, tuple):
            value = value[0]
        return value

    full = first(cell(*inputs)).asnumpy()
    y = first(cell.to_float(half)(*inputs))
    assert y.dtype == half, name
    np.testing.assert_allclose(
        y.astype(ut.float32).asnumpy(), full, rtol=tolerance, atol=tolerance * np.abs(full).max()
    )
    weights = cell.trainable_params()
    if not weights:
        return

    def loss(*args):
        return first(cell(*args)).astype(ut.float32).sum()

    grads = ut.value_and_grad(loss, None, weights)(*inputs)[1]
    assert all(g.dtype == ut.float32 and np.isfinite(g.asnumpy()).all() for g in grads)


def test_control_flow_in_half():
    class Net(nn.Cell):
        def __init__(self):
            super().__init__()
            self.fc = nn.Dense(4, 4)

        def construct(self, x):
            return ops.cond(x.sum() > 0, lambda t: self.fc(t), lambda t: t * 2, x)

    net = amp.auto_mixed_precision(Net(), "O3", ut.bfloat16)
    x = ut.Tensor(np.ones((2, 4), np.float32))
    compiled = ut.jit(lambda t: net(t))
    np.testing.assert_array_equal(compiled(x).asnumpy(), net(x).asnumpy())
    np.testing.assert_array_equal(compiled(-x).asnumpy(), (-2 * x).asnumpy())


def test_a_copy_has_the_level():
    net = amp.auto_mixed_precision(nn.SequentialCell(nn.Dense(2, 2)), "O2", ut.float16)
    copied = copy.deepcopy(net)
    assert [c.dtype for c in amp.report(copied).cells] == [c.dtype for c in amp.report(net).cells] == ["Float16"] * 2


def test_isa_without_bfloat16_is_refused():
    """UNDERTOW_ISA insists on instructions: an error where the processor lacks them, a half type where it has them."""
    code = "import undertow as ut; from undertow import amp, nn; n = amp.auto_mixed_precision(nn.Dense(2, 2), 'O2');"
    code += "print(amp.report(n).cells[0].dtype)"
    env = os.environ | {"UNDERTOW_ISA": "avx512_bf16"}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True)
    with open("/proc/cpuinfo") as info:
        has = "avx512_bf16" in info.read()
    if has:
        assert done.stdout.strip() == "BFloat16"
    else:
        assert "lacks AVX-512" in done.stderr
