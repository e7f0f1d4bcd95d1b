# SPDX-License-Identifier: Apache-2.0
"""Neural network functions, recurrent layers and attention against values and gradients of PyTorch (nn_cases.py)."""

from pathlib import Path

import nn_cases
import numpy as np
import pytest

import undertow as ut
from undertow import Tensor, nn, ops

DATA = np.load(Path(__file__).parent / "data" / "nn_reference.npz")
BINARY = DATA["l_bcel_mean/in1"]
CASES = nn_cases.ACTIVATIONS | nn_cases.WINDOWS | nn_cases.IMAGES | nn_cases.NORMS
CASES |= nn_cases.losses("mean", DATA["weight"], BINARY) | nn_cases.losses("none", DATA["weight"], BINARY)
STORED = {name: f"act_{name}" if name in nn_cases.ACTIVATIONS else name for name in CASES}


def stored(name, kind):
    out = {}
    for key in DATA.files:
        if key.startswith(f"{name}/{kind}"):
            out[key[len(name) + len(kind) + 1 :]] = DATA[key]
    return out


def weighted(out):
    return (out * Tensor(np.linspace(0.5, 1.5, out.size).reshape(out.shape).astype(np.float32))).sum()


def close(got, want, tol=1e-4):
    got = got.asnumpy()
    assert got.shape == want.shape
    np.testing.assert_allclose(got, want, rtol=tol, atol=tol)


def check(name):
    op, name = CASES[name], STORED[name]
    inputs = [Tensor(a) for _, a in sorted(stored(name, "in").items())]
    want = DATA[f"{name}/out"]
    close(op(*inputs), want, 3e-5)
    grads = {int(i): g for i, g in stored(name, "grad").items()}
    if not grads:
        close(ut.jit(op)(*inputs), want, 3e-5)
        return
    gradient = ut.jit(ut.value_and_grad(lambda *xs: weighted(op(*xs)), tuple(sorted(grads))))
    got = gradient(*inputs)[1]
    for (_, g), mine in zip(sorted(grads.items()), got):
        close(mine, g, 2e-3 if name.startswith(("grid", "conv")) else 2e-4)


@pytest.mark.parametrize("name", CASES)
def test_values_and_compiled_gradients(name):
    check(name)


@pytest.mark.parametrize("name", ["conv1d", "conv3d", "convt3d", "maxp2", "maxp3i", "avgp2d", "avgp3"])
def test_reference_device(name):
    ut.set_context(device_target="reference")
    check(name)


def load(net, name, rename=lambda k: k):
    params = dict(net.parameters_and_names())
    for key, value in stored(name, "param/").items():
        params.pop(rename(key)).set_data(Tensor(value))
    assert not params


@pytest.mark.parametrize("lengths", [False, True])
@pytest.mark.parametrize("kind", ["LSTM", "GRU", "RNN"])
def test_recurrent_layers(kind, lengths):
    name = f"rnn_{kind}_{lengths}"
    net = getattr(nn, kind)(5, 6, 2, bidirectional=True)
    load(net, name)
    h0, c0 = Tensor(DATA[f"{name}/h0"]), Tensor(DATA[f"{name}/c0"])
    state = (h0, c0) if kind == "LSTM" else h0
    length = Tensor(DATA[f"{name}/lengths"]) if lengths else None
    x = Tensor(DATA[f"{name}/x"])
    out, last = net(x, state, length)
    close(out, DATA[f"{name}/out"])
    for i, h in enumerate(last if kind == "LSTM" else (last,)):
        close(h, DATA[f"{name}/last{i}"])
    assert [p.name for p in net.get_parameters()][:2] == ["weight_ih_l0", "weight_ih_l0_reverse"]
    some = [net.weight_hh_l0, net.bias_ih_l1_reverse]
    gradient = ut.jit(ut.grad(lambda x: weighted(net(x, state, length)[0]), 0, some))
    gx, gw = gradient(x)
    close(gx, DATA[f"{name}/gx"], 2e-4)
    for p, g in zip(some, gw):
        close(g, DATA[f"{name}/gw/{p.name}"], 2e-4)


def test_steps_are_the_layer():
    layer, step = nn.LSTM(3, 4), nn.LSTMCell(3, 4)
    for p, q in zip(step.get_parameters(), layer.get_parameters()):
        p.set_data(q)
    x = Tensor(np.random.default_rng(1).normal(size=(3, 2, 3)).astype(np.float32))
    h, c = ops.zeros((2, 4)), ops.zeros((2, 4))
    out, (hn, cn) = layer(x)
    for t in range(3):
        h, c = step(x[t], (h, c))
        close(h, out[t].asnumpy(), 1e-6)
    close(hn[0], h.asnumpy(), 1e-6)
    close(cn[0], c.asnumpy(), 1e-6)
    batch_first = nn.LSTM(3, 4, batch_first=True)
    for p, q in zip(batch_first.get_parameters(), layer.get_parameters()):
        p.set_data(q)
    close(batch_first(x.swapaxes(0, 1))[0], out.asnumpy().swapaxes(0, 1), 1e-6)


def renamed(key):
    for i in (1, 2):
        key = key.replace(f"linear{i}", f"dense{i}")
    for norm in ("norm1", "norm2", "norm3", "coder.norm"):
        key = key.replace(f"{norm}.weight", f"{norm}.gamma").replace(f"{norm}.bias", f"{norm}.beta")
    return key


@pytest.mark.parametrize("first", [False, True])
def test_transformer(first):
    name = f"trf_{first}_{first}"
    net = nn.Transformer(8, 2, 2, 2, 16, 0.0, batch_first=first, norm_first=first)
    load(net, name, renamed)
    src, tgt, mask, padding = (Tensor(DATA[f"{name}/{k}"]) for k in ("src", "tgt", "mask", "padding"))

    def run(src, tgt):
        return net(src, tgt, tgt_mask=mask, src_key_padding_mask=padding, memory_key_padding_mask=padding)

    close(run(src, tgt), DATA[f"{name}/out"])
    close(ut.jit(run)(src, tgt), DATA[f"{name}/out"])


@pytest.mark.parametrize("extra", [False, True])
def test_attention(extra):
    name = f"mha_{extra}"
    net = nn.MultiheadAttention(8, 2, add_bias_kv=extra, add_zero_attn=extra, kdim=6 if extra else None)
    load(net, name)
    q, k, v, mask = (Tensor(DATA[f"{name}/{n}"]) for n in ("q", "k", "v", "mask"))
    out, weights = net(q, k, v, attn_mask=mask, average_attn_weights=False)
    close(out, DATA[f"{name}/out"])
    close(weights, DATA[f"{name}/weights"])
    assert len(net(q, k, v, need_weights=False)) == 1
    with pytest.raises(ut.ShapeError, match="attn_mask"):
        net(q, k, v, attn_mask=mask[1:])
