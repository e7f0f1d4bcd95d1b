# SPDX-License-Identifier: Apache-2.0
"""mindcv's models give MindSpore's outputs from MindSpore's checkpoints. Run through `make test-interop`."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "python"))
from mindcv_models import MODELS  # noqa: E402

MINDSPORE = os.environ.get("UNDERTOW_PEER_MINDSPORE", str(ROOT / ".venv-peers" / "mindspore" / "bin" / "python"))
PROGRAM = str(Path(__file__).with_name("mindcv_forward.py"))


def run(*command):
    result = subprocess.run(command, capture_output=True, text=True, timeout=900)
    assert result.returncode == 0, result.stderr[-3000:]
    return result.stdout


@pytest.mark.parametrize("name", MODELS)
def test_forward_equals_mindspores(name, tmp_path):
    run(MINDSPORE, PROGRAM, name, str(tmp_path), "save")
    seen = json.loads(run(sys.executable, "-m", "undertow", PROGRAM, name, str(tmp_path), "load").splitlines()[-1])
    assert not seen["missing"] and not seen["unused"]
    assert seen["spread"] > 0 and seen["far"] <= 1e-4
