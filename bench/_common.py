# SPDX-License-Identifier: Apache-2.0
"""What the Python benchmarks, ours and the peers', share: the figure line, and repeated timing."""

import json
import time


def emit(name, value, unit, **params):
    """Prints one figure: {"name", "value", "unit", "params"}."""
    print(json.dumps({"name": name, "value": value, "unit": unit, "params": params}), flush=True)


def best_of(runs, work):
    """Seconds of the fastest of `runs` calls of work(): noise on a shared machine only ever adds time."""
    times = []
    for _ in range(runs):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


def best_epoch(batches, epochs, rows_in):
    """Rows a second of the fastest epoch after the first; each iteration over `batches` is one."""
    best = 0
    for epoch in range(epochs):
        start, rows = time.perf_counter(), 0
        for batch in batches:
            rows += rows_in(batch)
        if epoch:
            best = max(best, rows / (time.perf_counter() - start))
    return best


def best_rate(data, epochs, rows_in):
    """The same of a dataset, ours or MindSpore's."""
    return best_epoch(data.create_tuple_iterator(num_epochs=epochs, output_numpy=True), epochs, rows_in)
