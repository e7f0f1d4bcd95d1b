# SPDX-License-Identifier: Apache-2.0
"""python -m undertow script.py: MindSpore's names, plain behaviour of the script, clear refusals."""

import os
import subprocess
import sys

import pytest


def run(tmp_path, text, *args):
    path = tmp_path / "script.py"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    command = [sys.executable, "-m", "undertow", str(path), *args]
    # Objects that outlive the interpreter are reported on stderr.
    env = os.environ | {"UNDERTOW_LEAK_CHECK": "1"}
    return subprocess.run(command, capture_output=True, text=True, timeout=120, env=env)


def good(result):
    assert result.returncode == 0 and not result.stderr, result.stderr
    return result.stdout


def test_names(tmp_path):
    out = good(run(tmp_path, """
import mindspore
import mindspore as ms
import mindspore.nn as nn
import mindspore.dataset as ds
import mindspore.dataset.vision as vision
import mindspore.dataset.transforms as transforms
import mindspore.common.dtype as mstype
import mindspore.ops.operations as P
import mindspore.ops.functional as F
from mindspore import Tensor, Parameter, ParameterTuple, Model, ops, context, dataset, jit, value_and_grad, Callback
from mindspore.train.callback import LossMonitor, TimeMonitor
from mindspore.train import Model as Other
from mindspore.common.initializer import initializer, Normal
from mindspore.common import set_seed
from mindspore.nn import Cell
assert "undertow" in ms.__file__ and mindspore is ms and Other is Model and ms.nn is nn
assert nn.Cell is Cell and ds is dataset and vision.Rescale and mstype.float32 is ms.float32
assert P.ReLU()(F.neg(Tensor([-1.0]))).item() == 1
import undertow
assert undertow is ms and undertow.__spec__.name == "undertow" and undertow.nn.__name__ == "undertow.nn"
print("all there")
"""))  # fmt: skip
    assert out == "all there\n"


def test_a_script_trains(tmp_path):
    out = good(run(tmp_path, """
import numpy as np
import mindspore as ms
from mindspore import nn, dataset as ds
from mindspore.train import Model
from mindspore.train.callback import LossMonitor

ms.set_context(mode=ms.GRAPH_MODE, device_target="CPU")
ms.set_seed(1)

def rows(n=160):
    for _ in range(n):
        x = np.random.uniform(-1, 1)
        yield np.array([x], np.float32), np.array([2 * x + 3], np.float32)

class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.fc = nn.Dense(1, 1, ms.common.initializer.Normal(0.02), "zeros")
    def construct(self, x):
        return self.fc(x)

net = Net()
data = ds.GeneratorDataset(list(rows()), ["x", "y"]).batch(16)
model = Model(net, nn.MSELoss(), nn.Momentum(net.trainable_params(), 0.1, 0.9), metrics={"loss"})
model.train(20, data, callbacks=[LossMonitor(100)], dataset_sink_mode=True)
print("%.2f %.2f" % (net.fc.weight.asnumpy().item(), net.fc.bias.asnumpy().item()))
"""))  # fmt: skip
    assert out.splitlines()[-1] == "2.00 3.00" and "loss is" in out


def test_the_script_sees_what_a_plain_run_shows(tmp_path):
    (tmp_path / "beside.py").write_text("value = 'from beside'\n")
    out = good(run(tmp_path, """
import sys, os
import beside
print(__name__, os.path.basename(__file__), sys.argv[1:], beside.value, os.path.basename(sys.argv[0]))
print(sys.modules["__main__"].__dict__ is globals(), sys.path[0] == os.path.dirname(os.path.abspath(__file__)))
""", "a", "--b=1"))  # fmt: skip
    assert out.splitlines() == ["__main__ script.py ['a', '--b=1'] from beside script.py", "True True"]


def test_tracebacks_and_exit_codes(tmp_path):
    text = "def f():\n    raise LookupError('gone')\nf()\n"
    ours = run(tmp_path, text)
    plain = subprocess.run([sys.executable, str(tmp_path / "script.py")], capture_output=True, text=True)
    assert (ours.returncode, ours.stderr) == (plain.returncode, plain.stderr) == (1, plain.stderr)
    assert run(tmp_path, "import sys; sys.exit(7)").returncode == 7
    assert run(tmp_path, "raise SystemExit('bye')").stderr == "bye\n"


@pytest.mark.parametrize(
    "text, name",
    [
        ("import mindspore.nonsense", "mindspore.nonsense"),
        ("import mindspore.nn.nonsense as n", "mindspore.nn.nonsense"),
        ("from mindspore import nonsense", "nonsense"),
        ("from mindspore.nn import Nonsense", "Nonsense"),
        ("import mindspore as ms; ms.nonsense", "nonsense"),
        ("import mindspore as ms; ms.ops.nonsense(1)", "nonsense"),
    ],
)
def test_missing_names(tmp_path, text, name):
    result = run(tmp_path, text)
    assert result.returncode == 1 and name in result.stderr.splitlines()[-1]


@pytest.mark.parametrize(
    "content, words",
    [(b"\x00\x01binary", "binary"), ("this is no Python at all\n", "line 1"), (b"\xff\xfe bad bytes", "not Python")],
)
def test_not_python(tmp_path, content, words):
    result = run(tmp_path, content)
    assert result.returncode == 2 and words in result.stderr and "Traceback" not in result.stderr


def test_no_such_file(tmp_path):
    for path, words in ((str(tmp_path / "missing.py"), "does not exist"), (str(tmp_path), "folder")):
        result = subprocess.run([sys.executable, "-m", "undertow", path], capture_output=True, text=True)
        assert result.returncode == 2 and words in result.stderr and path in result.stderr
    result = subprocess.run([sys.executable, "-m", "undertow"], capture_output=True, text=True)
    assert result.returncode == 2 and "usage" in result.stderr


def test_importing_is_light():
    code = (
        "import sys, os, undertow; "
        "assert os.environ['OMP_WAIT_POLICY'] == 'PASSIVE' and os.environ['OMP_DYNAMIC'] == 'FALSE'; "
        "print([m for m in sys.modules if m.startswith('undertow.')])"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert "'undertow._core'" in out and "'undertow.nn'" not in out and "'undertow.dataset'" not in out
    kept = "import os; os.environ['OMP_WAIT_POLICY'] = 'ACTIVE'; import undertow; print(os.environ['OMP_WAIT_POLICY'])"
    assert subprocess.run([sys.executable, "-c", kept], capture_output=True, text=True).stdout == "ACTIVE\n"


def test_nothing_is_leaked(tmp_path):
    result = run(tmp_path, """
import numpy as np
import mindspore as ms
from mindspore import nn, ops, dataset as ds

class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.fc = nn.Dense(1, 1)
    def construct(self, x):
        return self.fc(x)

class Own(ms.Callback):
    def on_train_step_end(self, context):
        self.params = context.original_args()

net = Net()
rows = lambda: ((np.float32([i]), np.float32([i])) for i in range(8))
data = ds.GeneratorDataset(rows, ["x", "y"]).map(lambda x: x, "x").batch(2)
model = ms.Model(net, nn.MSELoss(), nn.Adam(net.trainable_params()), metrics={"loss"})
model.train(1, data, [Own(), ms.LossMonitor(0)], dataset_sink_mode=True)
model.eval(data)
iterator = data.create_dict_iterator()
next(iterator)
f = ms.jit(lambda x: net(x).sum())
f(ms.Tensor([[1.0]]))
print(ms.value_and_grad(f)(ms.Tensor([[1.0]]))[0].shape)
""")  # fmt: skip
    assert good(result) == "()\n"


def test_paths_of_mindspores_own_modules(tmp_path):
    out = good(run(tmp_path, """
from mindspore.nn.optim.optimizer import Adam
from mindspore.nn.layer.basic import Dense
from mindspore.nn.loss.loss import MSELoss
from mindspore.train.serialization import load_checkpoint, load_param_into_net
from mindspore.common.parameter import Parameter, ParameterTuple
from mindspore.common.api import jit
from mindspore.communication.management import init, get_rank, get_group_size
from mindspore.train.callback._loss_monitor import LossMonitor
from mindspore import log as logger
from mindspore.context import ParallelMode
import undertow, mindspore
from undertow.nn.optim.optimizer import Adam as Same
assert Same is Adam is undertow.nn.Adam and Dense is mindspore.nn.Dense
init()
assert (get_rank(), get_group_size(), ParallelMode.DATA_PARALLEL) == (0, 1, "data_parallel")
mindspore.set_auto_parallel_context(parallel_mode=ParallelMode.DATA_PARALLEL, gradients_mean=True)
assert mindspore.get_auto_parallel_context("gradients_mean")
try:
    import mindspore.nn.nothing
except ModuleNotFoundError as error:
    print(error)
try:
    from mindspore.nn import Nothing
except ImportError as error:
    print("Nothing" in str(error))
from mindspore.boost import AutoBoost
try:
    AutoBoost()
except NotImplementedError as error:
    print(error)
"""))  # fmt: skip
    assert out.splitlines()[:2] == ["Undertow has no module 'mindspore.nn.nothing'", "True"]
    assert "AutoBoost is not available in Undertow" in out


SCRIPT = """
import mindspore as ms
import mindspore.nn as nn
from mindspore import ops as P, Tensor
from mindspore.nn import NoSuchLayer
import mindspore.no_such_module
from numpy import array

class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.mine = nn.AlsoNone(3)
        self.relu = P.ReLU()

    def construct(self, x: Tensor):
        self.set_train()
        return self.relu(x).anything + x.nothing_like_it() + ms.ops.exp(x)

array(1).whatever
"""


def report(*args):
    return subprocess.run([sys.executable, "-m", "undertow", *args], capture_output=True, text=True, timeout=120)


def test_check_names_what_is_missing(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    result = report("--check", str(script))
    assert result.returncode == 1 and not result.stderr
    found = [line.removeprefix(f"{script}:") for line in result.stdout.splitlines()[:-1]]
    assert found == [
        "5: mindspore.nn.NoSuchLayer",
        "6: mindspore.no_such_module",
        "12: mindspore.nn.AlsoNone",
        "17: mindspore.Tensor.nothing_like_it",
    ]
    assert result.stdout.splitlines()[-1] == "4 names that Undertow does not have"
    script.write_text("import mindspore as ms\nprint(ms.Tensor([1]))\n")
    result = report("--check", str(script))
    assert result.returncode == 0 and "Undertow has every name" in result.stdout and "[1]" not in result.stdout
    assert "does not exist" in report("--check", str(tmp_path / "no.py")).stderr
    assert "takes one path" in report("--check").stderr


def test_coverage_of_a_folder(tmp_path):
    (tmp_path / "below").mkdir()
    (tmp_path / "below" / "a.py").write_text(SCRIPT)
    (tmp_path / "b.py").write_text("from mindspore import nn\nnn.Dense(1, 1), nn.Dense(2, 2), nn.AlsoNone()\n")
    (tmp_path / "broken.py").write_text("def\n")
    result = report("--coverage", str(tmp_path))
    assert result.returncode == 0 and "broken.py is not Python" in result.stdout
    rows = {line.split()[0]: line.split()[1:] for line in result.stdout.splitlines() if line.startswith("mindspore.")}
    assert rows["mindspore.nn.AlsoNone"] == ["2", "2", "missing"] and rows["mindspore.nn.Dense"] == ["2", "1", "yes"]
    assert "Undertow has" in result.stdout.splitlines()[-1]
    assert "is not a folder" in report("--coverage", str(tmp_path / "b.py")).stderr


def test_old_names_work_with_one_note_each(tmp_path):
    result = run(tmp_path, """
import mindspore.dataset.vision.c_transforms as C
from mindspore.dataset.vision.c_transforms import Rescale
import mindspore.dataset.transforms.c_transforms as C2
from mindspore import ms_function
from mindspore._checkparam import Validator, Rel
import mindspore as ms
assert C.Rescale is Rescale and ms_function is ms.jit and C2.TypeCast
assert Validator.check_positive_int(3, "x", "Net") == 3
for check in (lambda: Validator.check_int(3, 5, Rel.GE, "x", "Net"), lambda: Validator.check_bool(1, "y")):
    try:
        check()
    except (ValueError, TypeError) as error:
        print(error)
""")  # fmt: skip
    assert result.returncode == 0
    assert result.stdout.splitlines() == ["Net: 'x' must be >= 5, got 3", "'y' must be bool, got int"]
    assert result.stderr.count("is an old name") == 3
