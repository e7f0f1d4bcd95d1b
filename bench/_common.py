# SPDX-License-Identifier: Apache-2.0
"""What the Python benchmarks share: the figure line, and repeated timing."""

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
