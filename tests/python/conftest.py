# SPDX-License-Identifier: Apache-2.0
"""Every test starts from the same context and seed."""

import sys
from pathlib import Path

import pytest

import undertow as ut

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(Path(__file__).parent))
sys.path.append(str(ROOT / "bench"))  # _networks


@pytest.fixture(autouse=True)
def fresh_context():
    ut.set_context(mode=ut.PYNATIVE_MODE, device_target="CPU")
    ut.set_seed(11)
    yield
    ut.set_context(mode=ut.PYNATIVE_MODE, device_target="CPU")


@pytest.fixture(params=["CPU", "reference"])
def device(request):
    ut.set_context(device_target=request.param)
    return request.param
