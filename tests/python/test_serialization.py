# SPDX-License-Identifier: Apache-2.0
"""Checkpoints: MindSpore's files read and written, options, all-or-nothing loading."""

import os
from pathlib import Path

import numpy as np
import pytest

import undertow as ms
from undertow import nn

DATA = Path(__file__).resolve().parent.parent / "formats" / "data"


def net():
    return nn.SequentialCell(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.Flatten(), nn.Dense(4, 2))


def test_a_file_of_mindspore():
    loaded = ms.load_checkpoint(str(DATA / "sample_adam.ckpt"))
    truth = np.load(DATA / "sample_adam.npz")
    assert set(truth.files) <= set(loaded)
    for name in set(truth.files) - {"note"}:
        np.testing.assert_array_equal(loaded[name].asnumpy(), truth[name])
        assert loaded[name].asnumpy().dtype == truth[name].dtype and loaded[name].name == name
    assert loaded["note"] == "hello" and loaded["epoch_num"].item() == 7 and loaded["flag"].item() is True
    assert loaded["lr"].item() == 0.5
    assert ms.load_checkpoint(str(DATA / "sample_adam_crc.ckpt"), crc_check=True).keys() <= loaded.keys()


def test_round_trip(tmp_path):
    a, b = net(), net()
    path = str(tmp_path / "net")
    ms.save_checkpoint(a, path, append_dict={"epoch": 3, "rate": 0.5, "note": "é中", "done": True})
    assert os.listdir(tmp_path) == ["net.ckpt"]
    loaded = ms.load_checkpoint(path + ".ckpt", b)
    for p, q in zip(a.get_parameters(), b.get_parameters()):
        np.testing.assert_array_equal(p.asnumpy(), q.asnumpy())
    assert list(loaded)[: len(list(a.get_parameters()))] == [p.name for p in a.get_parameters()]
    assert (loaded["epoch"].item(), loaded["rate"].item(), loaded["note"], loaded["done"].item()) == (
        3,
        0.5,
        "é中",
        True,
    )
    ms.save_checkpoint({"x": ms.Tensor([1.0, 2.0])}, path, choice_func=lambda name: name == "x", async_save=True)
    assert ms.load_checkpoint_async(path + ".ckpt").result()["x"].asnumpy().tolist() == [1, 2]
    ms.save_checkpoint([{"name": "y", "data": ms.Tensor(1)}, a[3].weight], path)
    assert list(ms.load_checkpoint(path + ".ckpt")) == ["y", "3.weight"]
    assert list(ms.load_checkpoint(path + ".ckpt", specify_prefix="3.")) == ["3.weight"]
    assert list(ms.load_checkpoint(path + ".ckpt", filter_prefix=["3."])) == ["y"]


def test_a_training_run_goes_on(tmp_path):
    def one(steps, state=None):
        ms.set_seed(3)
        layer = nn.Dense(2, 1)
        optimizer = nn.Adam(layer.trainable_params(), 0.1)
        step = ms.value_and_grad(lambda x: (layer(x) ** 2).sum(), None, optimizer.parameters)
        if state:
            both = nn.CellList([layer, optimizer])
            missing, unused = ms.load_param_into_net(both, ms.load_checkpoint(state))
            assert not missing and not unused
        for _ in range(steps):
            optimizer(step(ms.Tensor([[1.0, 2.0]]))[1])
        return layer, optimizer

    whole = one(6)[0]
    layer, optimizer = one(3)
    path = str(tmp_path / "half.ckpt")
    ms.save_checkpoint(nn.CellList([layer, optimizer]), path)
    resumed = one(3, path)[0]
    np.testing.assert_array_equal(whole.weight.asnumpy(), resumed.weight.asnumpy())


def test_loading_is_all_or_nothing(tmp_path):
    small, large = nn.SequentialCell(nn.Dense(2, 2), nn.Dense(2, 3)), nn.SequentialCell(nn.Dense(2, 2), nn.Dense(2, 4))
    before = [p.asnumpy().copy() for p in large.get_parameters()]
    parameters = {p.name: p for p in small.get_parameters()}
    with pytest.raises(ms.ShapeError, match=r"'1.weight' has shape \(4, 2\), the checkpoint's has \(3, 2\)"):
        ms.load_param_into_net(large, parameters)
    for p, q in zip(large.get_parameters(), before):
        np.testing.assert_array_equal(p.asnumpy(), q)
    half = {n: ms.Parameter(p.astype(ms.float16), name=n) for n, p in parameters.items()}
    with pytest.raises(TypeError, match="'0.weight' is Float32, the checkpoint's is Float16"):
        ms.load_param_into_net(small, half, strict_load=True)
    assert ms.load_param_into_net(small, half) == ([], [])
    del parameters["0.bias"]
    with pytest.warns(UserWarning, match="no value for 0.bias"):
        assert ms.load_param_into_net(small, parameters | {"z": ms.Parameter(1.0, name="z")}) == (["0.bias"], ["z"])


def test_bad_input(tmp_path):
    path = tmp_path / "a.ckpt"
    with pytest.raises(FileNotFoundError, match="a.ckpt cannot be read: No such file"):
        ms.load_checkpoint(str(path))
    path.write_bytes(b"no checkpoint at all")
    with pytest.raises(ValueError, match="a.ckpt, offset 0: .*not a checkpoint"):
        ms.load_checkpoint(str(path))
    with pytest.raises(ValueError, match="must end with '.ckpt'"):
        ms.load_checkpoint("nope")
    ms.save_checkpoint(nn.Dense(1, 1), str(path))
    with pytest.raises(ValueError, match="nothing of .* is left"):
        ms.load_checkpoint(str(path), specify_prefix="x")
    with pytest.raises(TypeError, match="save_obj must be a Cell"):
        ms.save_checkpoint(3, str(path))
    with pytest.raises(FileNotFoundError, match="cannot be written"):
        ms.save_checkpoint(nn.Dense(1, 1), str(tmp_path / "no" / "a.ckpt"))
    with pytest.raises(NotImplementedError, match="encrypted"):
        ms.save_checkpoint(nn.Dense(1, 1), str(path), enc_key=b"0" * 16)
    with pytest.raises(NotImplementedError, match="MindIR"):
        ms.export(nn.Dense(1, 1), ms.Tensor(1.0), file_name="x")
