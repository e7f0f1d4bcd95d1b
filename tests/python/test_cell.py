# SPDX-License-Identifier: Apache-2.0
"""Cells: registration, names, trees, Python and C++ cells calling each other, lifetime, errors."""

import gc
import weakref
from collections import OrderedDict

import numpy as np
import pytest

import undertow as ut
from undertow import Parameter, Tensor, nn, ops


class Block(nn.Cell):
    def __init__(self, n=3):
        super().__init__()
        self.fc = nn.Dense(n, n)
        self.bn = nn.BatchNorm1d(n)
        self.scale = Parameter(Tensor(np.ones(n, np.float32)))

    def construct(self, x):
        return self.bn(self.fc(x)) * self.scale


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.block = Block()
        self.seq = nn.SequentialCell(nn.Dense(3, 4), nn.ReLU(), nn.Dense(4, 2))
        self.items = nn.CellList([nn.Dense(2, 2), Block(2)])
        self.number = 7

    def construct(self, x):
        x = self.seq(self.block(x))
        for item in self.items:
            x = item(x)
        return x


def ones(*shape):
    return Tensor(np.ones(shape, np.float32))


def test_parameter_names():
    names = [name for name, _ in Net().parameters_and_names()]
    assert names == [
        "block.scale", "block.fc.weight", "block.fc.bias",
        "block.bn.moving_mean", "block.bn.moving_variance", "block.bn.gamma", "block.bn.beta",
        "seq.0.weight", "seq.0.bias", "seq.2.weight", "seq.2.bias",
        "items.0.weight", "items.0.bias", "items.1.scale", "items.1.fc.weight", "items.1.fc.bias",
        "items.1.bn.moving_mean", "items.1.bn.moving_variance", "items.1.bn.gamma", "items.1.bn.beta",
    ]  # fmt: skip
    assert [p.name for p in Net().get_parameters()] == names


def test_trainable_and_untrainable():
    net = Net()
    assert {p.name.split(".")[-1] for p in net.untrainable_params()} == {"moving_mean", "moving_variance"}
    net.block.fc.weight.requires_grad = False
    assert "block.fc.weight" not in [p.name for p in net.trainable_params()]
    assert len(net.trainable_params()) + len(net.untrainable_params()) == len(list(net.get_parameters()))


def test_explicit_names_hold_at_the_top_only():
    class Own(nn.Cell):
        def __init__(self):
            super().__init__()
            self.w = Parameter(ones(1), name="mine")

    assert Own().w.name == "mine"
    assert nn.SequentialCell(Own())[0].w.name == "0.w"


def test_walks():
    net = Net()
    assert [name for name, _ in net.cells_and_names()][:4] == ["", "block", "block.fc", "block.bn"]
    assert [type(c).__name__ for c in net.cells()] == ["Block", "SequentialCell", "CellList"]
    assert list(net.name_cells()) == ["block", "seq", "items"] and net.name_cells()["block"] is net.block
    assert dict(net.cells_and_names())["items.1"] is net.items[1]
    assert net.cls_name == "Net" and net.block.param_prefix == "block"
    assert list(net.parameters_dict())[0] == "block.scale"
    seen = []
    assert net.apply(lambda c: seen.append(type(c).__name__)) is net
    assert seen[-1] == "Net" and len(seen) == len(list(net.cells_and_names()))


def test_training_flag():
    net = Net()
    assert not net.training and not net.block.bn.training
    assert net.set_train() is net and all(c.training for _, c in net.cells_and_names())
    net.block.set_train(False)
    assert net.training and not net.block.bn.training


def test_repr():
    assert repr(Block()) == (
        "Block<\n  (fc): Dense<input_channels=3, output_channels=3, has_bias=True>\n"
        "  (bn): BatchNorm1d<num_features=3>\n  >"
    )


def test_attributes():
    net = Net()
    assert net.number == 7 and "block" in dir(net) and "weight" in dir(net.block.fc)
    new = nn.Dense(3, 3)
    net.block.fc = new
    assert net.block.fc is new and new.weight.name == "block.fc.weight"
    del net.block.fc
    assert not hasattr(net.block, "fc") and "block.fc.weight" not in net.parameters_dict()
    net.block = None
    assert net.block is None and "block" not in net.name_cells()
    with pytest.raises(AttributeError, match="nothing"):
        net.nothing  # noqa: B018
    with pytest.raises(AttributeError):
        del net.nothing


def test_a_tensor_set_on_a_parameter_writes_it():
    block = Block()
    scale = block.scale
    block.scale = Tensor(np.full(3, 2, np.float32))
    assert block.scale is scale and scale.tolist() == [2, 2, 2]
    with pytest.raises(ut.ShapeError):
        block.scale = ones(4)
    with pytest.raises(TypeError, match="scale is a Parameter"):
        block.scale = 3
    assert scale.tolist() == [2, 2, 2]


def test_init_must_be_called_first():
    class Late(nn.Cell):
        def __init__(self):
            self.fc = nn.Dense(1, 1)

    with pytest.raises(AttributeError, match=r"super\(\).__init__\(\)"):
        Late()


def test_cells_in_a_plain_list_are_warned_about():
    class Listed(nn.Cell):
        def __init__(self):
            super().__init__()
            self.layers = [nn.Dense(1, 1)]

    with pytest.warns(UserWarning, match="Listed.layers.*CellList"):
        Listed()


def test_calls_between_languages():
    class Double(nn.Cell):
        def construct(self, x, factor=2):
            return x * factor

    double = Double()
    assert double(ones(1)).item() == 2 and double(ones(1), factor=5).item() == 5
    assert nn.SequentialCell(double, nn.ReLU(), Double())(ones(1)).item() == 4

    class Tree(nn.Cell):
        def construct(self, x, options, flag):
            assert options["k"] == [1, "two", None] and flag is True
            return {"sum": x[0] + x[1], "rest": (x, 3.5)}

    class Outer(nn.SequentialCell):
        def construct(self, x):
            return super().construct(x) + 1

    out = Tree()((ones(1), ones(1)), {"k": [1, "two", None]}, True)
    assert out["sum"].item() == 2 and out["rest"][1] == 3.5
    assert Outer(nn.ReLU())(ones(1)).item() == 2

    class Wide(nn.Dense):
        def construct(self, x):
            return super().construct(x) * 10

    wide = Wide(1, 1, weight_init="ones", has_bias=False)
    assert wide(ones(1, 1)).item() == 10 and nn.SequentialCell(wide)(ones(1, 1)).item() == 10


def test_construct_missing_or_wrongly_called():
    class Empty(nn.Cell):
        pass

    with pytest.raises(TypeError, match="Empty"):
        Empty()(ones(1))
    with pytest.raises(TypeError):
        nn.ReLU()(ones(1), ones(1))
    with pytest.raises(TypeError, match="by position"):
        nn.ReLU()(x=ones(1))
    with pytest.raises(TypeError):
        nn.ReLU()(object())


def test_errors_name_the_cell_and_the_line():
    net = Net()
    with pytest.raises(ut.ShapeError) as error:
        net(ones(2, 5))
    text = str(error.value)
    assert "block.fc" in text and "(2, 5)" in text and "test_cell.py:" in text


def test_python_errors_keep_their_traceback():
    class Broken(nn.Cell):
        def construct(self, x):
            raise KeyError("from construct")

    with pytest.raises(KeyError, match="from construct") as error:
        nn.SequentialCell(nn.ReLU(), Broken())(ones(1))
    assert error.traceback[-1].name == "construct"


def test_a_trace_that_fails_restores_attributes():
    class Keeps(nn.Cell):
        def __init__(self):
            super().__init__()
            self.count = 1

        def construct(self, x):
            self.count = 2
            self.extra = x
            if x.sum() > 0:
                return x
            return -x

    net = Keeps()
    with pytest.raises(ut.TraceError):
        ut.jit(lambda x: net(x))(ones(1))
    assert net.count == 1 and not hasattr(net, "extra")


def test_a_symbol_outside_of_its_trace():
    class Leaks(nn.Cell):
        def construct(self, x):
            self.kept = x * 2
            return self.kept

    net = Leaks()
    ut.jit(lambda x: net(x))(ones(1))
    with pytest.raises(ut.TraceError, match="trace"):
        net.kept + 1  # noqa: B018
    with pytest.raises(ut.TraceError):
        net.kept.asnumpy()


def test_lifetime():
    net = Net()
    dead = [weakref.ref(c) for _, c in net.cells_and_names()]
    net(ones(2, 3))
    del net
    gc.collect()
    assert not [r() for r in dead if r() is not None]

    class Loop(nn.Cell):
        def __init__(self):
            super().__init__()
            self.fc = nn.Dense(1, 1)
            self.hold = {"me": (lambda: self)}

    loop = Loop()
    gone = weakref.ref(loop)
    del loop
    gc.collect()
    assert gone() is None


def test_children_outlive_the_python_variable():
    seq = nn.SequentialCell(Block(), Block())
    gc.collect()
    assert isinstance(seq[0], Block) and seq[0] is seq[0] and seq(ones(2, 3)).shape == (2, 3)


def test_containers():
    a, b, c = nn.Dense(1, 1), nn.ReLU(), nn.Dense(1, 1)
    seq = nn.SequentialCell([a, b])
    seq.append(c)
    assert len(seq) == 3 and seq[-1] is c and list(seq) == [a, b, c] and isinstance(seq[:2], nn.SequentialCell)
    seq.insert(1, nn.Tanh())
    assert [type(x).__name__ for x in seq] == ["Dense", "Tanh", "ReLU", "Dense"] and c.weight.name == "3.weight"
    del seq[1]
    seq[1] = nn.Sigmoid()
    assert [type(x).__name__ for x in seq] == ["Dense", "Sigmoid", "Dense"]
    named = nn.SequentialCell(OrderedDict([("first", nn.Dense(1, 1)), ("second", nn.ReLU())]))
    assert [n for n, _ in named.parameters_and_names()] == ["first.weight", "first.bias"]
    cells = nn.CellList([a])
    cells.extend([b, c])
    assert len(cells) == 3 and cells[1] is b
    with pytest.raises(IndexError):
        cells[3]
    with pytest.raises(TypeError):
        nn.CellList([1])


def test_shared_cells_and_parameters_appear_once():
    class Tied(nn.Cell):
        def __init__(self):
            super().__init__()
            self.a = nn.Dense(2, 2)
            self.b = nn.Dense(2, 2)
            self.b.weight = self.a.weight

    assert len(Tied().trainable_params()) == 3


LAYERS = [
    (
        nn.Dense,
        {
            "in_channels": 2,
            "out_channels": 3,
            "weight_init": "ones",
            "bias_init": 0.5,
            "has_bias": True,
            "activation": "relu",
        },
        (2, 2),
    ),
    (
        nn.Conv2d,
        {
            "in_channels": 1,
            "out_channels": 2,
            "kernel_size": (3, 2),
            "stride": 2,
            "pad_mode": "pad",
            "padding": 1,
            "dilation": 1,
            "group": 1,
            "has_bias": True,
            "weight_init": "normal",
            "bias_init": "zeros",
            "data_format": "NCHW",
        },
        (1, 1, 5, 5),
    ),
    (
        nn.BatchNorm2d,
        {"num_features": 2, "eps": 1e-3, "momentum": 0.8, "affine": True, "gamma_init": "ones"},
        (2, 2, 3, 3),
    ),
    (nn.MaxPool2d, {"kernel_size": 2, "stride": 2, "pad_mode": "valid"}, (1, 1, 4, 4)),
    (nn.AvgPool2d, {"kernel_size": 2, "stride": 2, "pad_mode": "same"}, (1, 1, 5, 5)),
    (nn.Flatten, {"start_dim": 1, "end_dim": -1}, (2, 3, 4)),
    (nn.Softmax, {"axis": 0}, (2, 2)),
]


@pytest.mark.parametrize("layer, options, shape", LAYERS, ids=lambda v: getattr(v, "__name__", ""))
def test_layer_arguments(layer, options, shape):
    by_name = layer(**options)
    assert (
        by_name(ones(*shape)).shape == layer(*options.values())(ones(*shape)).shape if layer is not nn.Dropout else True
    )


def test_layer_defaults():
    conv = nn.Conv2d(2, 3, 3)
    assert conv(ones(1, 2, 5, 5)).shape == (1, 3, 5, 5) and [n for n, _ in conv.parameters_and_names()] == ["weight"]
    assert nn.MaxPool2d(2)(ones(1, 1, 4, 4)).shape == (1, 1, 3, 3)
    assert nn.Dense(2, 3).weight.shape == (3, 2) and nn.Dense(2, 3).bias.shape == (3,)
    w = Tensor(np.arange(6, dtype=np.float32).reshape(3, 2))
    assert nn.Dense(2, 3, weight_init=w).weight.tolist() == w.tolist()
    bound = 1 / np.sqrt(1000)
    weight = nn.Dense(1000, 10).weight.asnumpy()
    assert abs(weight).max() <= bound and abs(weight).max() > 0.95 * bound


@pytest.mark.parametrize(
    "make, words",
    [
        (lambda: nn.Dense(0, 1), "in_channels"),
        (lambda: nn.Dense(2, 2, weight_init="nonsense"), "nonsense"),
        (lambda: nn.Dense(2, 2, activation="nonsense"), "nonsense"),
        (lambda: nn.Conv2d(1, 1, 3, padding=1), "pad"),
        (lambda: nn.Conv2d(1, 1, 3, pad_mode="odd"), "odd"),
        (lambda: nn.Dropout(p=1.5), "p"),
        (lambda: nn.MSELoss("average"), "average"),
        (lambda: nn.Conv2d(1, 1, (1, 2, 3)), "kernel_size"),
    ],
)
def test_bad_layer_arguments(make, words):
    with pytest.raises(ValueError, match=words):
        make()


def test_initializers():
    from undertow.common.initializer import Constant, HeUniform, Normal, One, TruncatedNormal, Zero, initializer

    assert initializer("zeros", (2, 2)).tolist() == [[0, 0], [0, 0]] and initializer(One(), (1,)).item() == 1
    assert initializer(Constant(3), [2], ut.int32).dtype == ut.int32 and initializer(0.5, (1,)).item() == 0.5
    assert 0.08 < initializer(Normal(0.1), (100, 100)).asnumpy().std() < 0.12
    assert abs(initializer(TruncatedNormal(sigma=1.0), (1000,)).asnumpy()).max() <= 2
    assert initializer(HeUniform(mode="fan_out"), (4, 9)).shape == (4, 9) and initializer(Zero(), (1,)).item() == 0
    ut.set_seed(5)
    first = initializer("normal", (3,)).tolist()
    ut.set_seed(5)
    assert initializer("normal", (3,)).tolist() == first != initializer("normal", (3,)).tolist()
    with pytest.raises(ValueError, match="nonsense"):
        initializer("nonsense", (1,))
    with pytest.raises(TypeError, match="sgima"):
        Normal(sgima=1)


def test_parameter_writes_in_construct():
    class Counter(nn.Cell):
        def __init__(self):
            super().__init__()
            self.count = Parameter(Tensor(0, ut.int32))

        def construct(self, x):
            self.count = self.count + 1
            self.count += 1
            ops.assign_add(self.count, 1)
            return x * self.count

    net = Counter()
    assert net(ones(1)).item() == 3 and net.count.item() == 3
    compiled = ut.jit(lambda x: net(x))
    assert compiled(ones(1)).item() == 6 and compiled(ones(1)).item() == 9 and net.count.item() == 9


def test_any_truth_value_as_auto_prefix():
    class Net(nn.Cell):
        def __init__(self):
            super().__init__(Net)
            self.layer = nn.Dense(2, 2)

    assert [p.name for p in Net().get_parameters()] == ["layer.weight", "layer.bias"]
