# SPDX-License-Identifier: Apache-2.0
"""Tensor and Parameter: construction from any memory, conversion, operators, indexing, printing, errors."""

import copy
import gc
import pickle
import weakref

import numpy as np
import pytest

import undertow as ut
from undertow import Parameter, Tensor, ops


def base():
    return np.arange(6, dtype=np.float32).reshape(2, 3)


ODD = {
    "negative strides": lambda: base()[:, ::-1],
    "both negative": lambda: base()[::-1, ::-1],
    "negative stride of a length-1 axis": lambda: np.zeros((1, 4), np.float32)[::-1],
    "transpose": lambda: base().T,
    "fortran": lambda: np.asfortranarray(base()),
    "big-endian": lambda: base().astype(">f4"),
    "big-endian ints": lambda: np.arange(5, dtype=">i2"),
    "every second": lambda: np.arange(10)[::2],
    "broadcast": lambda: np.broadcast_to(np.float32([1, 2, 3]), (2, 3)),
    "0-d": lambda: np.array(2.5, np.float32),
    "bool": lambda: np.array([True, False, True]),
    "empty": lambda: np.zeros((0, 3), np.int16),
    "half": lambda: np.array([1.5, -2], np.float16),
    "uint64": lambda: np.array([2**64 - 1], np.uint64),
    "structured field": lambda: np.array([(1, 2.5), (3, 4.5)], [("a", "i4"), ("b", "f4")])["b"],
}


@pytest.mark.parametrize("make", ODD.values(), ids=ODD)
def test_odd_memory(make):
    a = make()
    t = Tensor(a)
    assert t.shape == a.shape and t.dtype == a.dtype.newbyteorder("=")
    np.testing.assert_array_equal(t.asnumpy(), a)
    assert t.strides == np.zeros(a.shape, a.dtype).strides or a.size == 0


def test_read_only_source_stays_as_it_is():
    a = base()
    a.flags.writeable = False
    t = Tensor(a)
    t += 1
    t[0, 0] = 50
    np.testing.assert_array_equal(a, base())
    assert t.tolist() == [[50, 2, 3], [4, 5, 6]]


def test_the_source_is_copied():
    a = base()
    t = Tensor(a)
    a[:] = 9
    assert t.tolist() == base().tolist()
    view = t.asnumpy()
    view[:] = 7
    assert t.tolist() == base().tolist()


@pytest.mark.parametrize(
    "value, dtype",
    [(1, ut.int64), (1.0, ut.float32), (True, ut.bool_), ([1.0, 2.0], ut.float32), ([[1, 2]], ut.int64)]
    + [(np.float64(1), ut.float32), (np.int8(1), ut.int8), ([np.float32(1)], ut.float32), (np.zeros(1), ut.float64)],
)
def test_default_dtypes(value, dtype):
    assert Tensor(value).dtype == dtype


def test_dtypes():
    assert ut.float32 == np.float32 == ut.float32 and ut.float32 == np.dtype("float32") and ut.float32 == "float32"
    assert ut.float32 != ut.float64 and ut.int32 != None and len({ut.float32, ut.float32}) == 1  # noqa: E711
    assert str(ut.float32) == "Float32" and repr(ut.bool_) == "undertow.bool" and ut.int16.itemsize == 2
    for d in (ut.int8, np.int8, np.dtype("int8"), "int8", "Int8"):
        assert Tensor([1], d).dtype == ut.int8
    assert Tensor(2.7, ut.int32).item() == 2 and Tensor([0, 3], bool).tolist() == [False, True]
    assert Tensor(2**53 + 1, ut.int64).item() == 2**53 + 1
    assert pickle.loads(pickle.dumps(ut.bfloat16)) is ut.bfloat16


@pytest.mark.parametrize(
    "bad", ["text", None, {"a": 1}, 1j, [1, "x"], object(), np.array(["a"]), np.zeros(2, "M8[s]"), 2**70]
)
def test_what_is_no_tensor(bad):
    with pytest.raises(TypeError):
        Tensor(bad)


def test_ragged_lists_and_ranks():
    with pytest.raises(ValueError):
        Tensor([[1, 2], [3]])
    with pytest.raises(ut.ShapeError, match="8 dimensions"):
        Tensor(np.zeros((1,) * 9))
    with pytest.raises(TypeError, match="complex"):
        Tensor(np.zeros(2, complex))
    with pytest.raises(TypeError, match="not a dtype"):
        Tensor(1, "float33")


def test_properties():
    t = Tensor(np.zeros((2, 3), np.float64))
    assert (t.shape, t.ndim, t.size, t.itemsize, t.nbytes, t.strides, len(t)) == ((2, 3), 2, 6, 8, 48, (24, 8), 2)


def test_python_numbers():
    assert (
        float(Tensor(2.5)) == 2.5 and int(Tensor(3)) == 3 and [10, 20][Tensor(1)] == 20 and bool(Tensor([0])) is False
    )
    assert Tensor([2.5]).item() == 2.5 and type(Tensor(True).item()) is bool and type(Tensor(3).item()) is int
    assert f"{Tensor(2.5):.2f}" == "2.50"
    with pytest.raises(ValueError, match="ambiguous"):
        bool(Tensor([1, 2]))
    with pytest.raises(ValueError, match="one element"):
        Tensor([1, 2]).item()
    with pytest.raises(TypeError):
        [1, 2][Tensor(1.0)]
    with pytest.raises(TypeError):
        len(Tensor(1))


OPERATORS = [
    lambda x, y: x + y, lambda x, y: x - y, lambda x, y: x * y, lambda x, y: x / y, lambda x, y: x // y,
    lambda x, y: x % y, lambda x, y: x**y, lambda x, y: x < y, lambda x, y: x <= y, lambda x, y: x > y,
    lambda x, y: x >= y, lambda x, y: x == y, lambda x, y: x != y,
]  # fmt: skip


@pytest.mark.parametrize("op", OPERATORS)
@pytest.mark.parametrize("other", [2, 2.0, np.float32(2), np.array([1, 2, 3], np.float32), [1.0, 2.0, 3.0]])
def test_operators_with_numbers_and_arrays(op, other):
    a = np.array([1.5, 2, 4], np.float32)
    for got, want in (
        (op(Tensor(a), other), op(a, np.asarray(other))),
        (op(other, Tensor(a)), op(np.asarray(other), a)),
    ):
        assert isinstance(got, Tensor)
        np.testing.assert_allclose(got.asnumpy(), want, rtol=1e-6)
        assert got.dtype in (ut.float32, ut.bool_)


def test_other_operators():
    t = Tensor([1.0, -2.0])
    assert (-t).tolist() == [-1, 2] and abs(t).tolist() == [1, 2] and (+t) is t
    assert (Tensor([[1.0, 2.0]]) @ Tensor([[3.0], [4.0]])).item() == 11
    assert (Tensor([True, False]) & Tensor([True, True])).tolist() == [True, False]
    assert (~Tensor([True, False])).tolist() == [False, True]
    assert (t == None) is False and (t != "x") is True  # noqa: E711
    assert (Tensor([1]) / 2).dtype == ut.float32 and (Tensor([1]) + 0.5).dtype == ut.float32
    with pytest.raises(TypeError):
        t + "x"


KEYS = [
    0, -1, slice(None), slice(None, None, -1), slice(1, None, 2), (0, 1), (slice(None), 1), (..., 0), (None, 0),
    (0, None, 1),
    (slice(3, 0, -2), slice(None)), [0, 2], np.array([2, 0]), (slice(None), [1, 0]), ([0, 1], [1, 2]), (..., None),
    np.array([[0, 1], [2, 3]]), slice(10, 20), np.array([True, False, True, False]), slice(-3, -1), (), [],
]  # fmt: skip


@pytest.mark.parametrize("key", KEYS, ids=repr)
def test_indexing(key):
    a = np.arange(24, dtype=np.float32).reshape(4, 3, 2)
    np.testing.assert_array_equal(
        Tensor(a)[key].asnumpy(), a[key if not isinstance(key, list) or key else np.array([], int)]
    )


def test_indexing_with_tensors():
    a = np.arange(12).reshape(4, 3)
    t = Tensor(a)
    np.testing.assert_array_equal(t[Tensor([3, 0])].asnumpy(), a[[3, 0]])
    np.testing.assert_array_equal(t[t > 4].asnumpy(), a[a > 4])
    np.testing.assert_array_equal(t[Tensor(1)].asnumpy(), a[1])
    np.testing.assert_array_equal(t[Tensor(1) : Tensor(3)].asnumpy(), a[1:3])
    assert [row.tolist() for row in t] == a.tolist()
    with pytest.raises(IndexError):
        t[4]
    with pytest.raises(IndexError):
        t[Tensor([5])]
    with pytest.raises(IndexError):
        t[0, 0, 0]


def test_item_assignment():
    a = np.zeros((3, 3), np.float32)
    t = Tensor(a)
    for target in (a, t):
        target[0] = 1
        target[:, 1] = np.array([5, 6, 7])
    t[t > 4] = -1
    a[a > 4] = -1
    np.testing.assert_array_equal(t.asnumpy(), a)


METHODS = {
    "sum": lambda x: x.sum(0), "mean": lambda x: x.mean(1), "max": lambda x: x.max(), "min": lambda x: x.min(axis=1),
    "argmax": lambda x: x.argmax(), "argmin": lambda x: x.argmin(1), "prod": lambda x: x.prod(0),
    "std": lambda x: x.std(),
    "var": lambda x: x.var(1), "reshape": lambda x: x.reshape(3, 2), "reshape2": lambda x: x.reshape((-1,)),
    "T": lambda x: x.T, "transpose": lambda x: x.transpose(), "transpose2": lambda x: x.transpose(1, 0),
    "swapaxes": lambda x: x.swapaxes(0, 1), "flatten": lambda x: x.flatten(), "squeeze": lambda x: x[None].squeeze(0),
    "any": lambda x: x.any(), "all": lambda x: x.all(1), "astype": lambda x: x.astype("int32"),
    "copy": lambda x: x.copy(),
    "ravel": lambda x: x.ravel(), "round": lambda x: x.round(), "clip": lambda x: x.clip(1, 3),
}  # fmt: skip


@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
def test_methods_as_in_numpy(method):
    a = np.array([[1.5, 0, 3], [4, 2.5, -1]], np.float32)
    np.testing.assert_allclose(method(Tensor(a)).asnumpy(), method(a), rtol=1e-6)


def test_keyword_spellings():
    t = Tensor(np.ones((2, 3), np.float32))
    assert (
        t.sum(axis=1, keepdims=True).shape == t.mean(axis=1, keep_dims=True).shape == t.max(axis=1, keepdims=True).shape
    )
    assert t.expand_dims(0).shape == (1, 2, 3) and t.view(6).shape == (6,) and t.permute(1, 0).shape == (3, 2)
    assert t.exp().log().sqrt().pow(2).abs().dtype == ut.float32 and t.int().dtype == ut.int32


def test_array_protocols():
    t = Tensor(base())
    np.testing.assert_array_equal(np.asarray(t), base())
    np.testing.assert_array_equal(np.mean(t), base().mean())
    assert np.array(t, dtype=np.int32).dtype == np.int32
    np.testing.assert_array_equal(np.from_dlpack(t), base())
    np.testing.assert_array_equal(ut.from_dlpack(base().T).asnumpy(), base().T)
    np.testing.assert_array_equal(ut.from_numpy(base()).asnumpy(), base())
    p = Parameter(Tensor(base()), name="p")
    view = np.from_dlpack(p)
    p.set_data(Tensor(base() + 1))
    np.testing.assert_array_equal(view, base())
    assert t.__dlpack_device__() == (1, 0)


def test_dlpack_shares_and_pins_the_memory():
    t = Tensor(base())
    view = np.from_dlpack(t)
    t[0, 0] = 42
    assert view[0, 0] == 42
    del t
    gc.collect()
    assert view[0, 0] == 42


def test_bfloat16_to_numpy():
    t = Tensor([1.0, 2.5, -3.0], ut.bfloat16)
    assert t.asnumpy().astype(np.float32).tolist() == [1, 2.5, -3] and t.itemsize == 2


def test_printing():
    assert str(Tensor([1, 2])) == "[1 2]"
    assert repr(Tensor([1.0, 2.0])) == "Tensor(shape=[2], dtype=Float32, value= [ 1.00000000e+00,  2.00000000e+00])"
    assert repr(Tensor(3)) == "Tensor(shape=[], dtype=Int64, value= 3)"
    p = Parameter(Tensor([1.0]), name="w")
    assert repr(p) == "Parameter (name=w, shape=(1,), dtype=Float32, requires_grad=True)"


def test_copies_and_pickles():
    t, p = Tensor([1.0, 2.0]), Parameter(Tensor([3.0]), name="w", requires_grad=False)
    for twin in (copy.copy(t), copy.deepcopy(t), pickle.loads(pickle.dumps(t))):
        assert twin is not t and twin.tolist() == [1, 2]
    for twin in (copy.deepcopy(p), pickle.loads(pickle.dumps(p))):
        assert isinstance(twin, Parameter) and (twin.name, twin.requires_grad, twin.tolist()) == ("w", False, [3])


def test_parameter():
    p = Parameter(Tensor([1.0, 2.0]), name="w")
    assert isinstance(p, Tensor) and p.requires_grad and p.name == "w"
    p += 1
    assert isinstance(p, Parameter) and p.tolist() == [2, 3]
    held = p
    p.set_data(Tensor([5.0, 6.0]))
    ops.assign_add(p, Tensor([1.0, 1.0]))
    assert held is p and held.tolist() == [6, 7] and type(p + 1) is Tensor
    before = p.asnumpy()
    p -= 1
    assert before.tolist() == [6, 7]
    with pytest.raises(ut.ShapeError, match="'w'"):
        p.set_data(Tensor([1.0]))
    with pytest.raises(TypeError, match="Parameter"):
        ops.assign(Tensor([1.0]), Tensor([1.0]))
    assert p.clone().name == "w" and p.value().tolist() == p.tolist()


def test_parameter_tuple():
    a, b = Parameter(Tensor([1.0]), name="a"), Parameter(Tensor([2.0]), name="b")
    pair = ut.ParameterTuple([a, b])
    assert [p.name for p in pair.clone("m", "zeros")] == ["m.a", "m.b"] and pair.clone("m")[1].item() == 2
    with pytest.raises(TypeError, match="item 1"):
        ut.ParameterTuple([a, Tensor([1.0])])


def test_one_python_object_for_one_tensor():
    net = ut.nn.Dense(2, 2)
    assert net.weight is net.weight and net.weight in list(net.get_parameters())
    w = net.weight
    w.note = "kept while somebody holds it"
    assert net.weight.note and hash(w) == hash(net.weight)
    gone = weakref.ref(w)
    del w
    assert gone() is None


def test_traced_tensors_refuse_values_and_name_the_line():
    cases = {
        "ops.where": lambda x: 1 if x > 0 else 2,
        "item": lambda x: x.item(),
        "asnumpy": lambda x: x.asnumpy(),
        "float": lambda x: float(x),
        "index": lambda x: x[x > 0],
    }
    for text, body in cases.items():

        def function(x, body=body):
            return body(x)

        with pytest.raises(ut.TraceError, match=rf"(?s)test_tensor.py:\d+.*{text}|{text}.*test_tensor.py:\d+") as error:
            ut.jit(function)(Tensor([1.0]) if text != "index" else Tensor([1.0, 2.0]))
        assert isinstance(error.value, RuntimeError)


def test_printing_a_traced_tensor_is_harmless():
    seen = []
    ut.jit(lambda x: seen.append(str(x)) or x)(Tensor([1.0, 2.0]))
    assert "traced" in seen[0] and "[2]" in seen[0]
