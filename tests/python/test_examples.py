# SPDX-License-Identifier: Apache-2.0
"""The examples run as a newcomer would run them."""

import re
import subprocess
import sys
from pathlib import Path

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
EPOCH_TIME = re.compile(r"Train epoch time: \d+\.\d{3} ms, per step time: \d+\.\d{3} ms")
LOSS = re.compile(r"epoch: (\d+) step: (\d+), loss is (\d+\.\d+)")


def run(name, *args):
    command = [sys.executable, "-m", "undertow", str(EXAMPLES / name), *args]
    return subprocess.run(command, capture_output=True, text=True, timeout=300)


def lines(name, *args):
    result = run(name, *args)
    assert result.returncode == 0, result.stderr
    return result.stdout.splitlines()


def test_simple_net_prints_an_epoch_as_mindspore_does():
    out = lines("simple_net.py", "--images", "70", "--size", "16")
    assert out[0] == "batches: 2" and len(out) == 5
    for epoch, (loss, time) in enumerate(zip(out[1::2], out[2::2]), 1):
        found = LOSS.fullmatch(loss)
        assert found and (found[1], found[2]) == (str(epoch), "2")
        assert EPOCH_TIME.fullmatch(time)


def test_simple_net_with_the_default_padding_says_what_would_fit():
    result = run("simple_net.py", "--images", "32", "--size", "224", "--pad-mode", "same")
    assert result.returncode == 1
    message = result.stderr
    assert "SimpleNet.fc" in message and "3154176" in message and "3211264" in message
    assert 'pad_mode="valid"' in message
    assert "loss is" not in result.stdout


def test_debugging_session():
    out = lines("debugging.py")
    assert re.fullmatch(r"units off at each step: \[(\d, ){9}\d\]", out[0])
    found = LOSS.fullmatch(out[-1])
    assert found and found[1] == "20" and float(found[3]) < 0.1


def test_linear_regression():
    found = re.search(r"y = (\S+) x \+ (\S+)", "\n".join(lines("linear_regression.py")))
    assert abs(float(found[1]) - 2) < 0.15 and abs(float(found[2]) - 3) < 0.4
