# SPDX-License-Identifier: Apache-2.0
"""Cell and Parameter: names, registration, hooks, copies, errors."""

import copy

import numpy as np
import pytest

import undertow as ut
from undertow import Parameter, ParameterTuple, Tensor, nn, ops


class Block(nn.Cell):
    def __init__(self, auto_prefix=True):
        super().__init__(auto_prefix)
        self.fc = nn.Dense(2, 2, weight_init="ones", bias_init="zeros")
        self.scale = Parameter(Tensor([2.0]), name="scale")

    def construct(self, x, offset=0.0):
        return self.fc(x) * self.scale + offset


X = Tensor(np.ones((1, 2), "f"))


def names(cell):
    return [p.name for p in cell.get_parameters()]


def test_auto_prefix():
    assert names(Block()) == ["scale", "fc.weight", "fc.bias"]
    assert names(Block(auto_prefix=False)) == ["scale", "weight", "bias"]
    outer = nn.SequentialCell(Block())
    assert names(outer) == ["0.scale", "0.fc.weight", "0.fc.bias"]
    assert outer[0].fc.param_prefix == "0.fc" and outer.param_prefix == ""
    assert list(outer.parameters_dict()) == names(outer)


def test_generated_names():
    a, b = Parameter(Tensor([1.0])), Parameter(Tensor([1.0]))
    assert a.name != b.name and a.name.startswith("Parameter#")
    cell = nn.Cell()
    cell.w = a
    assert a.name == "w", "an attribute's name replaces a generated one"
    cell.many = ParameterTuple((b, Parameter(Tensor([3.0]), name="third"), a))
    assert b.name == "Parameter$1"
    assert names(cell) == ["w", "Parameter$1", "third"]
    assert cell.many[2] is a


def test_parameter_tuple():
    p = ParameterTuple([Parameter(Tensor([1.0]), name="a"), Parameter(Tensor([2.0]), name="b")])
    zeros = p.clone("moments", "zeros")
    assert [x.name for x in zeros] == ["moments.a", "moments.b"] and zeros[1].item() == 0
    assert p.clone("copy")[1].item() == 2
    for bad in (p[0], "ab", 3, [p[0], "x"]):
        with pytest.raises(TypeError):
            ParameterTuple(bad)
    with pytest.raises(ValueError, match="'a'"):
        ParameterTuple([p[0], Parameter(Tensor([1.0]), name="a")])


@pytest.mark.parametrize(
    "make, error, words",
    [
        (lambda: Parameter(True, name="p"), ValueError, "default_input"),
        (lambda: Parameter(Tensor([1.0]), name=3), ValueError, "name"),
        (lambda: Parameter(Tensor([1.0]), name=Tensor([1.0])), ValueError, "name"),
        (lambda: Parameter(Tensor([1.0]), requires_grad=None), TypeError, "requires_grad"),
        (lambda: Parameter(Tensor([1.0]), requires_grad=1), TypeError, "requires_grad"),
        (lambda: Parameter(Tensor([1.0]), layerwise_parallel="x"), TypeError, "layerwise_parallel"),
        (lambda: Parameter(1, "n").set_data(1.2), TypeError, "'n'"),
        (lambda: Parameter(Tensor([1.0]), "n").set_data(Tensor([1.0, 2.0])), ValueError, "shape"),
        (lambda: nn.Cell().insert_param_to_cell("", Parameter(1.0)), KeyError, "empty"),
        (lambda: nn.Cell().insert_param_to_cell("a.b", Parameter(1.0)), KeyError, "dot"),
        (lambda: nn.Cell().insert_param_to_cell("a", Tensor([1.0])), TypeError, "Parameter"),
        (lambda: nn.Cell().insert_child_to_cell("a.b", nn.Cell()), KeyError, "dot"),
        (lambda: nn.Cell().insert_child_to_cell("a", Parameter(1.0)), TypeError, "Cell"),
        (lambda: nn.Cell().construct(), AttributeError, "construct"),
        (lambda: nn.Cell().get_sub_cell("a.b"), AttributeError, "a.b"),
        (lambda: nn.ReLU().register_forward_hook(3), TypeError, "hook"),
        (lambda: nn.ReLU().register_backward_hook(print), NotImplementedError, "gradients"),
        (lambda: nn.ReLU().to_float(ut.int32), ValueError, "to_float"),
    ],
)
def test_errors(make, error, words):
    with pytest.raises(error, match=words):
        make()


def test_parameter_values():
    p = Parameter(Tensor([1.0, 2.0]), name="p", requires_grad=False)
    assert p.data is p and not p.requires_grad and not p.layerwise_parallel
    p.layerwise_parallel = True
    assert p.layerwise_parallel
    for value in (Tensor([3, 4]), np.array([3.0, 4.0]), Tensor([3.0, 4.0], ut.float16)):
        p.set_data(value)
        assert p.tolist() == [3, 4]
    twin = p.copy()
    twin.set_data(Tensor([0.0, 0.0]))
    assert p.tolist() == [3, 4] and twin.name == "p" and not twin.requires_grad
    assert p.clone("ones").tolist() == [1, 1]
    scalar = Parameter(0.5, "s")
    scalar.set_data(1)
    assert scalar.dtype == ut.float32 and scalar.item() == 1


def test_tree():
    outer = nn.SequentialCell(Block(), nn.ReLU())
    assert outer.get_sub_cell("0.fc") is outer[0].fc
    outer.insert_child_to_cell("nothing", None)
    assert len(outer.cells()) == 2
    outer.requires_grad = False
    assert outer.trainable_params() == [] and not outer.requires_grad
    two = nn.Cell()
    two.a, two.b = Parameter(Tensor([1.0]), name="w"), Parameter(Tensor([1.0]), name="w")
    with pytest.raises(ValueError, match="'w'"):
        two.check_names()
    assert Block().add_flags(fast=True).get_flags() == {"fast": True}
    assert Block().set_grad().set_train().training


def test_hooks():
    block, seen = Block(), []

    def before(cell, inputs):
        seen.append((type(cell).__name__, len(inputs)))
        return inputs[0] * 2

    def after(cell, inputs, output):
        seen.append("after")
        return output + 1

    handle = block.register_forward_pre_hook(before)
    other = block.fc.register_forward_hook(after)
    np.testing.assert_allclose(block(X).asnumpy(), [[10, 10]])  # ((1 + 1) * 2 + 1) * 2
    np.testing.assert_allclose(ut.jit(block)(X).asnumpy(), [[10, 10]])
    np.testing.assert_allclose(block(X, offset=1.0).asnumpy(), [[11, 11]])
    assert seen[:2] == [("Block", 1), "after"]
    handle.remove()
    other.remove()
    np.testing.assert_allclose(block(X).asnumpy(), [[4, 4]])


def test_deepcopy():
    net = nn.SequentialCell(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), Block())
    net.note = ["plain"]
    net[1].set_train()
    twin = copy.deepcopy(net)
    assert type(twin[2]) is Block and names(twin) == names(net) and twin.note == ["plain"]
    assert [c.training for _, c in twin.cells_and_names()] == [c.training for _, c in net.cells_and_names()]
    for a, b in zip(net.get_parameters(), twin.get_parameters()):
        assert a is not b
        np.testing.assert_array_equal(a.asnumpy(), b.asnumpy())
    twin[2].fc.weight.set_data(Tensor(np.zeros((2, 2), "f")))
    twin[2].scale.set_data(Tensor([0.0]))
    assert twin[2](X).tolist() == [[0, 0]] and net[2](X).tolist() == [[4, 4]]
    image = Tensor(np.ones((1, 1, 4, 4), "f"))
    np.testing.assert_array_equal(twin[0](image).asnumpy(), net[0](image).asnumpy())
    with pytest.raises(TypeError, match="deepcopy"):
        copy.copy(net)
    with pytest.raises(TypeError, match="copied"):
        copy.deepcopy(nn.SGD(net.trainable_params()))


def test_deepcopy_keeps_sharing():
    class Shared(nn.Cell):
        def __init__(self):
            super().__init__()
            self.a = nn.Dense(2, 2)
            self.b = self.a
            self.w = self.a.weight

        def construct(self, x):
            return ops.matmul(self.b(self.a(x)), self.w)

    net = Shared()
    twin = copy.deepcopy(net)
    assert twin.a is twin.b and twin.w is twin.a.weight and twin.w is not net.w
    np.testing.assert_array_equal(twin(X).asnumpy(), net(X).asnumpy())


def test_notes_are_told_once():
    with pytest.warns(UserWarning, match="fc_list.*not registered"):
        cell = nn.Cell()
        cell.fc_list = [nn.Dense(1, 1)]
    assert nn.ReLU().recompute() is not None


def test_own_gradients_are_refused():
    class Own(nn.Cell):
        def construct(self, x):
            return x

        def bprop(self, x, out, dout):
            return (dout * 2,)

    with pytest.raises(NotImplementedError, match="bprop"):
        Own()(X)


def test_compile_ahead():
    block = Block()
    ut._cell_graph_executor.compile(block, X)
    assert block(X).tolist() == [[4, 4]]


def test_cell_dict():
    cells = nn.CellDict({"conv": nn.Conv2d(1, 1, 1), "keys": nn.ReLU()})
    cells["fc"] = nn.Dense(2, 2)
    assert list(cells) == ["conv", "keys", "fc"] and len(cells) == 3 and "fc" in cells
    assert [p.name for p in cells.get_parameters()] == ["conv.weight", "fc.weight", "fc.bias"]
    assert type(cells.pop("keys")) is nn.ReLU and list(cells.keys()) == ["conv", "fc"]
    assert cells["fc"](X).shape == (1, 2)
    del cells["conv"]
    cells.update([("act", nn.Tanh())])
    assert [k for k, _ in cells.items()] == ["fc", "act"]
    cells.clear()
    assert not cells
    for bad, error in ((3, TypeError), ("a.b", ValueError)):
        with pytest.raises(error):
            cells[bad] = nn.ReLU()
    with pytest.raises(TypeError, match="'x'"):
        cells["x"] = 3
    with pytest.raises(KeyError):
        cells["gone"]
    with pytest.raises(NotImplementedError):
        nn.CellDict()(X)
