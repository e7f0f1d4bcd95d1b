#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs MindSpore's own tests against Undertow: `import mindspore` is Undertow there.

    tools/peer_tests.py CHECKOUT IDS [--only PART ...] [--verbose]

CHECKOUT is a folder with MindSpore's tests (tests/ut/python, tests/st). IDS is a file of test ids, one a line
("tests/ut/python/nn/test_cell.py::test_basic"). Prints a table: of each file, how many ids passed; with --verbose also
each id that did not, with the last line of its error. Ends with 0 whatever the tests did: docs/peer-tests.md says what
is expected. The file is pytest's plugin too, which installs the alias before a test is imported.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import types
from collections import defaultdict
from pathlib import Path

_REPORT = "UNDERTOW_PEER_REPORT"


# ---- As pytest's plugin


def _install():
    """At import: pytest loads the tests' conftest before it configures plugins."""
    sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python"))
    from undertow import alias

    alias.install()
    _give_private_names()
    # Their package loads an interpreter of operators for builds without kernels; nothing here needs it.
    stand_in = types.ModuleType("tests.vm_impl")
    stand_in.vm = None
    sys.modules["tests.vm_impl"] = stand_in


def _give_private_names():
    """Names private to MindSpore that a test file imports at its top: without them none of its tests could run."""
    from undertow.train import callback, checkpoint

    def private(*args, **kwargs):
        raise NotImplementedError("private to MindSpore")

    callback._checkpoint_cb_for_save_op = callback._set_cur_net = private
    callback._chg_ckpt_file_name_if_same_exist = checkpoint._free_prefix


if _REPORT in os.environ:
    _install()


def _write(nodeid, outcome, text):
    if _REPORT in os.environ:
        with open(os.environ[_REPORT], "a", encoding="utf-8") as out:
            out.write(json.dumps([nodeid, outcome, text]) + "\n")


def _last_line(report):
    lines = [line for line in str(report.longrepr or "").splitlines() if line.startswith("E ")]
    return lines[0][1:].strip() if lines else str(report.longrepr or "")[-200:]


def pytest_runtest_logreport(report):
    if report.when == "call" or report.outcome != "passed":
        _write(report.nodeid, report.outcome, "" if report.passed else _last_line(report))


def pytest_collectreport(report):
    if report.failed:
        _write(report.nodeid, "failed", _last_line(report))


# ---- As a program


def run_file(checkout, name, ids, timeout):
    """{id: (outcome, error)} of one file's ids."""
    ut = "tests/ut/python/"
    folder = checkout / ut if name.startswith(ut) else checkout
    local = {i: (i[len(ut) :] if name.startswith(ut) else i) for i in ids}
    with tempfile.TemporaryDirectory() as scratch:
        report = Path(scratch) / "report"
        report.touch()
        env = dict(os.environ, **{_REPORT: str(report)}, PYTHONDONTWRITEBYTECODE="1")
        env["PYTHONPATH"] = os.pathsep.join([str(Path(__file__).parent), str(folder), str(checkout)])
        command = [sys.executable, "-m", "pytest", "-q", "-p", "peer_tests", "-p", "no:cacheprovider", "--no-header"]
        command += ["--rootdir", str(folder), "-W", "ignore", *local.values()]
        try:
            done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, timeout=timeout)
            trouble = (done.stderr or done.stdout)[-300:].strip()
        except subprocess.TimeoutExpired:
            trouble = f"no end after {timeout} s"
        seen = {nodeid: (outcome, text) for nodeid, outcome, text in map(json.loads, report.read_text().splitlines())}
    whole = seen.get(name[len(ut) :] if name.startswith(ut) else name)
    missing = whole or ("failed", trouble)
    return {i: seen.get(n, missing) for i, n in local.items()}


def main():
    parser = argparse.ArgumentParser(description="MindSpore's own tests against Undertow")
    parser.add_argument("checkout", type=Path)
    parser.add_argument("ids", type=Path)
    parser.add_argument("--only", nargs="*", default=[], help="parts of file names")
    parser.add_argument("--timeout", type=int, default=600, help="seconds for one file")
    parser.add_argument("--verbose", action="store_true")
    options = parser.parse_args()
    by_file = defaultdict(list)
    for line in options.ids.read_text().split("\n"):
        name = line.split("::")[0]
        if line.strip() and (not options.only or any(part in name for part in options.only)):
            by_file[name].append(line.strip())
    total = passed = 0
    print("| file | passed | ids |\n|---|---|---|")
    failures = []
    for name, ids in by_file.items():
        results = run_file(options.checkout.resolve(), name, ids, options.timeout)
        good = sum(outcome == "passed" for outcome, _ in results.values())
        failures += [(i, text) for i, (outcome, text) in results.items() if outcome != "passed"]
        print(f"| {name} | {good} | {len(ids)} |", flush=True)
        total, passed = total + len(ids), passed + good
    print(f"| all | {passed} | {total} |")
    if options.verbose:
        for test, text in failures:
            print(f"{test}\n    {text}")


if __name__ == "__main__":
    main()
