# SPDX-License-Identifier: Apache-2.0
"""B15: memory, open files, threads and worker processes over many epochs, trainings and broken-off iterators.

Each test is a program of its own, so that what other tests keep in memory does not count.
"""

import subprocess
import sys
import textwrap

import pytest

PRELUDE = """
    import ctypes, gc, os, time
    from pathlib import Path
    import numpy as np
    import undertow as ut
    from undertow import Model, nn
    from undertow import dataset as ds

    LIMIT = 2 << 20
    trim = ctypes.CDLL(None).malloc_trim

    def children():
        found = []
        for task in Path("/proc/self/task").iterdir():
            try:
                found += map(int, (task / "children").read_text().split())
            except FileNotFoundError:  # a thread that has just ended
                pass
        return found

    def memory():
        '''Bytes of memory of this process and its workers together; what they share counts once, files do not.'''
        gc.collect()
        trim(0)
        total = 0
        for pid in (os.getpid(), *children()):
            for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
                if line.startswith(("Pss_Anon:", "Pss_Shmem:")):
                    total += int(line.split()[1]) << 10
        return total

    def held():
        '''Open files, threads and worker processes. The least of a few looks: Linux lists a thread a little longer
        than its end, after it has been joined.'''
        looks = []
        for _ in range(20):
            threads = len(os.listdir("/proc/self/task"))
            looks.append((len(os.listdir("/proc/self/fd")), threads, len(children())))
            time.sleep(0.001)
        return tuple(map(min, zip(*looks)))

    class Rows:
        def __init__(self, n):
            self.n = n

        def __len__(self):
            return self.n

        def __getitem__(self, i):
            return np.full(1024, i, np.float32), np.float32([i])

    def pipeline(processes, n=2000):
        options = dict(num_parallel_workers=2, python_multiprocessing=processes)
        rows = ds.GeneratorDataset(Rows(n), ["x", "y"], shuffle=True, **options)
        return rows.map(lambda x: x / 2000, "x", **options).batch(50)

    def flat(seen, first):
        '''What was held and used at the last of the rounds against round `first`.'''
        (held_then, then), (held_now, now) = seen[first], seen[-1]
        assert held_now == held_then, (held_then, held_now)
        assert now - then <= LIMIT, [used >> 10 for _, used in seen]
"""


def run(code, processes):
    code = textwrap.dedent(PRELUDE) + f"\nprocesses = {processes}\n" + textwrap.dedent(code)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr


WORKERS = pytest.mark.parametrize("processes", [False, True])


@WORKERS
def test_epochs(processes):
    run(
        """
        epochs = 20 if processes else 40
        seen = []
        iterator = pipeline(processes).create_tuple_iterator(num_epochs=epochs, output_numpy=True)
        for epoch in range(epochs):
            rows = 0
            for n, (x, y) in enumerate(iterator):
                rows += len(x)
                if n == 20:  # in the middle of the epoch, where workers and buffers are all in use
                    seen.append((held(), memory()))
            assert rows == 2000
        flat(seen, 9)
        """,
        processes,
    )


@WORKERS
def test_an_iterator_for_every_epoch(processes):
    run(
        """
        seen = []
        data = pipeline(processes)
        for epoch in range(20):
            assert sum(len(x) for x, y in data.create_tuple_iterator(num_epochs=1)) == 2000
            seen.append((held(), memory()))
        assert held()[2] == 0
        flat(seen, 9)
        """,
        processes,
    )


@WORKERS
@pytest.mark.parametrize("sink", [False, True])
def test_trainings_and_evaluations(processes, sink):
    run(
        f"""
        net = nn.Dense(1024, 1)
        model = Model(net, nn.MSELoss(), nn.SGD(net.trainable_params(), 1e-4), metrics={{"loss"}})
        data = pipeline(processes, 500)
        seen = []
        for _ in range(20):
            model.train(1, data, dataset_sink_mode={sink})
            assert np.isfinite(model.eval(data, dataset_sink_mode={sink})["loss"])
            seen.append((held(), memory()))
        assert held()[2] == 0
        flat(seen, 9)
        """,
        processes,
    )


@WORKERS
def test_iterators_that_are_broken_off(processes):
    run(
        """
        data = pipeline(processes)
        before = None
        for i in range(20 if processes else 200):
            iterator = data.create_tuple_iterator(num_epochs=1 + i % 2)
            for n, _ in enumerate(iterator):
                if n == i % 7:
                    break
            del iterator
            before = before or held()
        assert held() == before and before[1:] == (before[1], 0)
        """,
        processes,
    )
