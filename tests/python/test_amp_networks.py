# SPDX-License-Identifier: Apache-2.0
"""Mixed precision on whole networks: accuracy, the casts that are left, reports, and half cases of numeric faults."""

import collections
import functools
import os

import numpy as np
import pytest
from _networks import LeNet, ResNet50
from undertow.dataset import transforms, vision

import undertow as ut
from undertow import amp, dataset, nn, ops

FASHION = "/usr/share/datasets/fashion-mnist"
DEVICES = ["CPU", "reference"]


@pytest.fixture(autouse=True)
def _context():
    yield
    ut.context.reset_context()


def model_of(net, level="O0", lr=0.01, **options):
    loss = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
    opt = nn.Momentum(net.trainable_params(), lr, 0.9)
    return ut.Model(net, loss, opt, {"accuracy"}, amp_level=level, **options)


def fashion(usage):
    data = dataset.FashionMnistDataset(FASHION, usage, shuffle=usage == "train")
    data = data.map([vision.Rescale(1 / 255, 0), vision.HWC2CHW()], "image").map(transforms.TypeCast(ut.int32), "label")
    return data.batch(32)


@functools.cache
def lenet_accuracy(level, half):
    """Of two epochs on Fashion-MNIST, from one seed; the rate falls to 0, so that the last steps do not decide."""
    ut.set_context(mode=ut.GRAPH_MODE, half=half)
    ut.set_seed(1)
    train, net = fashion("train"), LeNet()
    loss = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
    rate = nn.CosineDecayLR(0.0, 0.02, 2 * train.get_dataset_size())
    model = ut.Model(net, loss, nn.Momentum(net.trainable_params(), rate, 0.9), {"accuracy"}, amp_level=level)
    model.train(2, train, dataset_sink_mode=True)
    return model.eval(fashion("test"), dataset_sink_mode=True)["accuracy"]


@pytest.mark.skipif(not os.path.isdir(FASHION), reason="needs Debian's package dataset-fashion-mnist")
@pytest.mark.parametrize("half", ["bfloat16", "float16"])
@pytest.mark.parametrize("level", ["O2", "O3"])
def test_lenet_is_as_accurate(level, half):
    full = lenet_accuracy("O0", "auto")
    assert full > 0.87
    assert abs(lenet_accuracy(level, half) - full) < 0.005


class SimpleNet(nn.Cell):
    def __init__(self, size):
        super().__init__()
        self.conv = nn.Conv2d(3, 64, 3, pad_mode="valid")
        self.bn = nn.BatchNorm2d(64)
        self.relu = nn.ReLU()
        self.flatten = nn.Flatten()
        self.fc = nn.Dense(64 * (size - 2) ** 2, 10)

    def construct(self, x):
        return self.fc(self.flatten(self.relu(self.bn(self.conv(x)))))


@pytest.mark.parametrize("half", ["auto", "float16"])
def test_article_program_at_o2(half):
    """224 x 224 images, O2, on the target that is not there."""
    ut.set_context(mode=ut.GRAPH_MODE, device_target="Ascend", enable_graph_kernel=True, half=half)
    ut.set_seed(1)
    size = 224

    def images():
        rng = np.random.default_rng(1)
        for i in range(64):
            yield rng.uniform(0, 255, (size, size, 3)).astype(np.float32), np.array(i % 10, np.int32)

    data = dataset.GeneratorDataset(images, ["image", "label"], num_parallel_workers=4, shuffle=True)
    data = data.map([vision.Rescale(1 / 255, 0), vision.HWC2CHW()], "image", num_parallel_workers=4)
    data = data.map(transforms.TypeCast(ut.int32), "label", num_parallel_workers=4).batch(32, drop_remainder=True)
    losses = []

    class Keep(ut.Callback):
        def on_train_step_end(self, run_context):
            loss, overflow, scale = run_context.original_args().net_outputs  # as O2 scales its loss
            losses.append(loss.asnumpy())

    callbacks = [ut.TimeMonitor(data_size=data.get_dataset_size()), ut.LossMonitor(), Keep()]
    model_of(SimpleNet(size), "O2").train(1, data, callbacks, dataset_sink_mode=True)
    assert len(losses) == 1 and np.isfinite(losses[0]).all()


@pytest.mark.parametrize("half", ["bfloat16", "float16"])
def test_resnet50_casts_at_its_edges_only(half):
    ut.set_context(mode=ut.GRAPH_MODE, half=half)
    x = np.zeros((2, 3, 64, 64), np.float32)
    data = dataset.NumpySlicesDataset((x, np.zeros(2, np.int32)), shuffle=False).batch(2)
    net = ResNet50()
    ut.runtime.reset_stats()
    model_of(net, "O2").build(data)
    stats = ut.runtime.stats()
    report = amp.report(net)
    assert report.compiled
    edges = [c.edge for c in report.casts]
    assert set(edges) == {"input", "weight"}, [(c.edge, c.cell, c.bytes) for c in report.casts if c.edge == "inside"]
    assert edges.count("input") == 1
    # Each convolution's weight and the dense layer's two parameters once.
    assert edges.count("weight") == 53 + 2
    assert stats["inside_casts"] == 0 and stats["edge_casts"] == len(edges)
    assert stats["cast_bytes"] == sum(c.bytes for c in report.casts)


def test_report_names_dtypes_and_reasons():
    dense = nn.Dense(32, 2).to_float(ut.float32)
    parts = {"reported": nn.Conv2d(1, 2, 3), "norm": nn.BatchNorm2d(2), "flat": nn.Flatten(), "dense": dense}
    net = nn.SequentialCell(collections.OrderedDict(parts))
    assert [c.dtype for c in amp.report(net).cells] == ["Float32"] * 5
    amp.auto_mixed_precision(net, "O2", ut.bfloat16)
    report = amp.report(net)
    rows = {c.path: (c.cls_name, c.dtype, c.why) for c in report.cells}
    assert rows["reported"] == ("Conv2d", "BFloat16", "level O2")
    assert rows["norm"][1] == "Float32" and "normalises in float32" in rows["norm"][2]
    assert rows["dense"] == ("Dense", "Float32", "to_float")
    assert "no step of this network" in str(report) and "BatchNorm2d" in str(report)
    with pytest.raises(TypeError, match="must be a Cell"):
        amp.report(1)


@pytest.mark.parametrize("sink", [False, True])
def test_watch_shows_the_largest_values(sink, capfd):
    ut.set_context(mode=ut.GRAPH_MODE, half="float16")
    net = nn.SequentialCell(nn.Dense(2, 1, weight_init=ut.Tensor(np.array([[1.0, 0.0]], np.float32)), has_bias=False))
    model = ut.Model(net, nn.MSELoss(), nn.SGD(net.trainable_params(), 0.0), amp_level="O2")
    x = np.array([[1, 2], [-60, 5], [3, 4], [200, 0]], np.float32)
    data = dataset.NumpySlicesDataset((x, np.zeros((4, 1), np.float32)), shuffle=False).batch(1)
    watched = amp.watch(model, 3)
    model.train(1, data.take(3), dataset_sink_mode=sink)
    row = next(r for r in watched.rows if r.path == "0")
    assert (row.cls_name, row.dtype, row.largest, row.limit) == ("Dense", ut.float16, 60.0, 65504.0)
    assert watched.done
    model.train(1, data, dataset_sink_mode=sink)
    assert next(r for r in watched.rows if r.path == "0").largest == 60.0, "it has ended"
    assert "Dense" in capfd.readouterr().out
    with pytest.raises(ValueError, match="at least 1"):
        amp.watch(model, 0)
    with pytest.raises(TypeError, match="must be a Model"):
        amp.watch(net, 1)


# ---- Reported faults of others that half types bring.


def half_tensor(values, dtype):
    return ut.Tensor(np.asarray(values, np.float32)).astype(dtype)


def value(t):
    return t.astype(ut.float32).asnumpy()


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("mode", [ut.GRAPH_MODE, ut.PYNATIVE_MODE])
def test_half_sums(mode, device):
    ut.set_context(mode=mode, device_target=device)
    run = ut.jit if mode == ut.GRAPH_MODE else (lambda f: f)
    f16, bf16 = ut.float16, ut.bfloat16
    assert value(run(lambda x: ops.mean(x))(half_tensor(np.full(4096, 60), f16))) == 60
    assert value(run(lambda x: ops.sum(x))(half_tensor(np.ones(512), bf16))) == 512
    assert (value(run(lambda x: ops.softmax(x))(half_tensor(np.full(512, 3), bf16))) == 0.001953125).all()
    loss = nn.MSELoss()
    two = half_tensor(np.full((64, 256), 2), f16)
    assert value(run(lambda a: loss(a, -a))(two)) == 16
    dense = nn.Dense(4096, 1, weight_init="ones", has_bias=False).to_float(f16)
    assert value(run(lambda x: dense(x))(half_tensor(np.ones((1, 4096)), f16))) == 4096


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("level", ["O2", "O3"])
@pytest.mark.parametrize("mode", [ut.GRAPH_MODE, ut.PYNATIVE_MODE])
def test_half_batch_norm(mode, level, device):
    ut.set_context(mode=mode, device_target=device)
    norm = nn.BatchNorm2d(1)
    net = amp.auto_mixed_precision(nn.SequentialCell(norm), level, ut.float16).set_train()
    run = ut.jit(lambda x: net(x)) if mode == ut.GRAPH_MODE else net
    y = run(half_tensor([-300, 300, -300, 300], ut.float16).reshape(4, 1, 1, 1))
    np.testing.assert_array_equal(value(y).ravel(), [-1, 1, -1, 1])
    assert norm.moving_variance.dtype == ut.float32
    np.testing.assert_allclose(norm.moving_variance.asnumpy(), [0.9 + 0.1 * 90000 * 4 / 3], rtol=1e-6)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("mode", [ut.GRAPH_MODE, ut.PYNATIVE_MODE])
def test_half_log_functions(mode, device):
    ut.set_context(mode=mode, device_target=device)
    run = ut.jit if mode == ut.GRAPH_MODE else (lambda f: f)
    f16, inf = ut.float16, np.inf
    assert value(run(lambda x: ops.logsigmoid(x))(half_tensor([-1e4], f16))) == -10000
    assert value(run(lambda x: ops.softplus(x))(half_tensor([1e4], f16))) == 10000
    np.testing.assert_array_equal(value(run(lambda x: ops.log_softmax(x))(half_tensor([[-1, -inf]], f16))), [[0, -inf]])
    rows = value(run(lambda x: ops.softmax(x))(half_tensor([[-inf, -inf], [0, 0]], f16)))
    np.testing.assert_array_equal(rows, [[0, 0], [0.5, 0.5]])
    masked = run(lambda s: ops.softmax(s + half_tensor([[0, -65504]], f16)))(half_tensor([[-100, -100]], f16))
    np.testing.assert_array_equal(value(masked), [[1, 0]])
    all_masked = run(lambda s: ops.softmax(s + half_tensor([[-65504, -65504]], f16)))(half_tensor([[-100, -100]], f16))
    assert not np.isnan(value(all_masked)).any()
    loss = nn.BCEWithLogitsLoss()
    assert np.isfinite(value(run(lambda x: loss(x, half_tensor([1, 0], f16)))(half_tensor([1e4, -1e4], f16))))
