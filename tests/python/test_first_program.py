# SPDX-License-Identifier: Apache-2.0
"""A whole MindSpore script, written for another device: linear regression, sunk in commands of 100 steps."""

import subprocess
import sys

SCRIPT = """
import mindspore as ms
import numpy as np
from mindspore import dataset as ds, nn

ms.set_context(mode=ms.GRAPH_MODE, device_target="Ascend")


def rows(count):
    for _ in range(count):
        x = np.random.uniform(-10.0, 10.0)
        y = 2.0 * x + 3.0 + np.random.normal(0, 1)
        yield np.array([x]).astype(np.float32), np.array([y]).astype(np.float32)


data = ds.GeneratorDataset(list(rows(1600)), column_names=["data", "label"]).batch(16)
net = nn.Dense(1, 1)
model = ms.Model(net, nn.MSELoss(), nn.Adam(net.trainable_params(), learning_rate=0.01))
model.train(epoch=10, train_dataset=data, dataset_sink_mode=True, sink_size=100)
print(net.weight.asnumpy().item(), net.bias.asnumpy().item())
"""


def test_it_runs_unchanged_and_finds_the_line(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    for _ in range(3):  # its data are drawn anew each time
        result = subprocess.run(
            [sys.executable, "-m", "undertow", str(script)], capture_output=True, text=True, timeout=120
        )
        assert result.returncode == 0, result.stderr
        assert result.stderr.count("Ascend") == 1  # one warning
        w, b = map(float, result.stdout.split())
        assert abs(w - 2) <= 0.15 and abs(b - 3) <= 0.4
