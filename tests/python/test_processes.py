# SPDX-License-Identifier: Apache-2.0
"""Worker processes: the rows of threads, exceptions, ends."""

import contextlib
import os
import random
import signal
import subprocess
import sys
import textwrap
import time
import traceback
from pathlib import Path

import numpy as np
import pytest

import undertow as ut
from undertow import Model, nn
from undertow import dataset as ds


class Rows:
    def __init__(self, n=8):
        self.n = n

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        return np.int32(i)


def children(pid="self"):
    """Process ids of the children that a process has now."""
    found = []
    for task in Path(f"/proc/{pid}/task").iterdir():
        with contextlib.suppress(FileNotFoundError):  # a thread that has just ended
            found += map(int, (task / "children").read_text().split())
    return found


@pytest.fixture(autouse=True)
def no_child_is_left():
    yield
    assert children() == []


def values(dataset, epochs=1):
    it = dataset.create_tuple_iterator(num_epochs=epochs, output_numpy=True)
    return [[np.asarray(row[0]).tolist() for row in it] for _ in range(epochs)]


def mapped(function, n=8, workers=2, **options):
    rows = ds.GeneratorDataset(Rows(n), ["x"], shuffle=False)
    return rows.map(function, "x", num_parallel_workers=workers, python_multiprocessing=True, **options)


def test_lambdas_run_elsewhere():
    assert values(mapped(lambda x: x * 2)) == [[2 * i for i in range(8)]]
    pids = set(values(mapped(lambda x: os.getpid()), epochs=3)[0])
    assert os.getpid() not in pids and 1 <= len(pids) <= 2
    source = ds.GeneratorDataset(Rows(), ["x"], shuffle=False, num_parallel_workers=2)
    assert values(source.batch(4)) == [[[0, 1, 2, 3], [4, 5, 6, 7]]]


def test_sources_run_in_processes_from_two_workers_on():
    class Pids(Rows):
        def __getitem__(self, i):
            return np.int64(os.getpid())

    def pids(**options):
        return set(values(ds.GeneratorDataset(Pids(), ["x"], **options))[0])

    assert os.getpid() not in pids(num_parallel_workers=2)
    assert pids(num_parallel_workers=2, python_multiprocessing=False) == {os.getpid()} == pids()


def test_native_operations_need_no_process():
    rows = ds.NumpySlicesDataset(np.zeros((4, 2, 2, 3), np.uint8), "image")
    data = rows.map([ds.vision.HWC2CHW()], "image", python_multiprocessing=True)
    it = data.create_tuple_iterator(num_epochs=1)
    next(it)
    assert children() == []


def draws(x):
    return np.array([x, np.random.randint(2**30), random.randrange(2**30), np.random.randint(2**30)])  # noqa: NPY002


class Drawing(Rows):
    def __getitem__(self, i):
        return draws(i)


def test_draws_are_those_of_threads():
    """B04; and random operations called within a function draw alike."""
    flip = ds.vision.RandomCrop(2)
    image = np.arange(75, dtype=np.uint8).reshape(5, 5, 3)

    def run(workers, processes, batch_function=False):
        ds.config.set_seed(7)
        source = ds.GeneratorDataset(Drawing(), ["x"], num_parallel_workers=workers, python_multiprocessing=processes)
        data = source.map(
            [lambda x: np.concatenate([x, draws(x[0]), flip(image).ravel()])],
            "x",
            num_parallel_workers=workers,
            python_multiprocessing=processes,
        )
        data = data.batch(
            3,
            per_batch_map=lambda rows, info: [np.append(r, np.random.randint(2**30)) for r in rows],  # noqa: NPY002
            num_parallel_workers=workers,
            python_multiprocessing=processes,
        )
        return values(data, epochs=2)

    expected = run(1, False)
    drawn = [n for epoch in expected for batch in epoch for row in batch for n in (*row[1:4], *row[5:8])]
    assert len(set(drawn)) == len(drawn)
    for workers in (1, 2, 3, 4):
        for processes in (False, True):
            assert run(workers, processes) == expected, (workers, processes)


def test_draws_leave_the_callers_generators_alone():
    np.random.seed(3)  # noqa: NPY002
    expected = np.random.randint(2**30, size=3).tolist()  # noqa: NPY002
    np.random.seed(3)  # noqa: NPY002
    for processes in (False, True):
        rows = ds.GeneratorDataset(Rows(), ["x"])
        values(rows.map(draws, "x", num_parallel_workers=2, python_multiprocessing=processes))
    assert np.random.randint(2**30, size=3).tolist() == expected  # noqa: NPY002


class Special(Exception):
    def __init__(self, a, b):
        super().__init__(f"special {a} {b}")
        self.pair = (a, b)


def raise_special(x):
    if x == 3:
        raise Special("p", "q")  # the user's line
    return x


@pytest.mark.parametrize("workers", [1, 2, 4])
def test_exceptions_keep_type_text_and_line(workers):
    """B10."""

    class Local(Exception):
        pass

    def raise_local(x):
        if x == 3:
            raise Local("local text")
        return x

    data = mapped(raise_special, workers=workers)
    with pytest.raises(Special) as caught:
        values(data.batch(2))
    assert str(caught.value) == "special p q"
    assert caught.value.pair == ("p", "q")
    shown = "".join(traceback.format_exception(caught.value))
    assert "in worker process" in shown and 'raise Special("p", "q")  # the user\'s line' in shown
    frames = traceback.extract_tb(caught.value.__traceback__)
    assert frames[-1].name == "raise_special" and frames[-1].filename == __file__
    with pytest.raises(Local, match="local text"):
        values(mapped(raise_local, workers=workers))
    assert values(data.take(3)) == [[0, 1, 2]]
    with pytest.raises(KeyError, match="gone"):
        values(mapped(lambda x: {}["gone"] if x == 3 else x, workers=workers))
    with pytest.raises(FileNotFoundError, match="no/such/file") as caught:
        values(mapped(lambda x: os.stat("no/such/file") if x == 3 else x, workers=workers))
    assert caught.value.errno == 2


def test_what_cannot_travel():
    """B10: an exception that cannot be pickled, and a result that is no array."""

    def bad(x):
        if x == 3:
            raise ValueError("holds", lambda: 1)
        return x

    with pytest.raises(ValueError, match="holds"):
        values(mapped(bad))
    with pytest.raises(TypeError, match=r"(?s)object.*row 3"):
        values(mapped(lambda x: object() if x == 3 else x))


def test_a_killed_worker_is_named():
    parent = os.getpid()

    def kill(x):
        if x == 3 and os.getpid() != parent:
            os.kill(os.getpid(), signal.SIGKILL)
        return x

    start = time.monotonic()
    with pytest.raises(ut.DataError, match=r"worker process \d+ of kill was killed by signal 9.*row 3 of epoch 1"):
        values(mapped(kill))
    with pytest.raises(ut.DataError, match=r"ended with status 7"):
        values(mapped(lambda x: os._exit(7) if x == 3 and os.getpid() != parent else x))
    assert time.monotonic() - start < 10
    assert values(mapped(kill).take(3)) == [[0, 1, 2]]


def test_training_sees_a_workers_error():
    def bad(x):
        if x[0] == 3:
            raise Special("p", "q")
        return x

    x = np.arange(8, dtype=np.float32).reshape(-1, 1)
    data = ds.NumpySlicesDataset((x, x), ["x", "y"], shuffle=False)
    data = data.map(bad, "x", num_parallel_workers=2, python_multiprocessing=True).batch(2)
    net = nn.Dense(1, 1)
    model = Model(net, nn.MSELoss(), nn.SGD(net.trainable_params(), 0.001))
    for sink in (False, True):
        with pytest.raises(Special, match="special p q"):
            model.train(1, data, dataset_sink_mode=sink)


def test_after_a_large_product():
    """B12: OpenMP's threads run when the workers are forked; NumPy and our own operations work in them."""
    x = np.random.default_rng(0).standard_normal((512, 512), np.float32)
    np.testing.assert_allclose(ut.ops.matmul(ut.Tensor(x), ut.Tensor(x)).asnumpy(), x @ x, rtol=1e-2, atol=1e-3)
    small = x[:64, :64]

    def product(i):
        return np.float32(i) * (small @ small)

    def ours(i):
        return (ut.ops.matmul(ut.Tensor(small), ut.Tensor(small)) * float(i)).asnumpy()

    start = time.monotonic()
    for function in (product, ours):
        made = np.array(values(mapped(function, workers=4))[0])
        np.testing.assert_allclose(made, np.arange(8).reshape(-1, 1, 1) * (small @ small), rtol=1e-3, atol=1e-3)
    assert time.monotonic() - start < 20


SCRIPT = """
    import os, sys, time
    import numpy as np
    from undertow import dataset as ds

    class Rows:
        def __len__(self):
            return 1000
        def __getitem__(self, i):
            time.sleep(0.01 if i < 20 else 60)
            return np.int32(i)

    data = ds.GeneratorDataset(Rows(), ["x"], shuffle=False, num_parallel_workers=4)
    print("ready", flush=True)
    for row in data.create_tuple_iterator(num_epochs=1):
        print("row", flush=True)
"""


def alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL, signal.SIGTERM])
def test_no_child_outlives_its_parent(how):
    """B12: Ctrl-C goes to the whole group; a parent that is killed takes its workers along."""
    run = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(SCRIPT)], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        start_new_session=True, text=True,
    )  # fmt: skip
    try:
        while "row" not in run.stdout.readline():
            assert run.poll() is None, run.stderr.read()
        time.sleep(0.5)
        pids = children(run.pid)
        assert len(pids) == 4
        if how == signal.SIGINT:
            os.killpg(run.pid, how)
        else:
            os.kill(run.pid, how)
        run.wait(3)
        if how == signal.SIGINT:
            assert "KeyboardInterrupt" in run.stderr.read()
        until = time.monotonic() + 1
        while any(map(alive, pids)) and time.monotonic() < until:
            time.sleep(0.02)
        assert not any(map(alive, pids))
    finally:
        run.kill()
        run.stdout.close()
        run.stderr.close()
        run.wait()


def test_prints_of_workers_are_seen():
    code = """
        import numpy as np
        from undertow import dataset as ds
        print("before", end="")
        data = ds.NumpySlicesDataset(np.arange(3), shuffle=False)
        data = data.map(lambda x: print("row", x) or x, num_parallel_workers=1, python_multiprocessing=True)
        list(data.create_tuple_iterator(num_epochs=1))
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("before") == 1 and done.stdout.count("row 2") == 1
