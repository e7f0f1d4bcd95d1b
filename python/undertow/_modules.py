# SPDX-License-Identifier: Apache-2.0
"""MindSpore's module paths that scripts import from, though the names in them are public elsewhere.

`undertow.nn.optim.optimizer` is `undertow.nn`: a finder hands out the public module under every path of this table, so
that the package itself needs no file for them. The alias `mindspore` goes through the same table.
"""

import fnmatch
import importlib
import importlib.abc
import importlib.machinery
import sys
import warnings

# Path without the package's name (patterns of fnmatch) -> module that holds its names. The first match counts.
_PATHS = {
    "nn.layer": "nn",
    "nn.layer.*": "nn",
    "nn.cell": "nn",
    "nn.loss": "nn",
    "nn.loss.*": "nn",
    "nn.optim": "nn",
    "nn.optim.*": "nn",
    "nn.wrap": "nn",
    "nn.wrap.*": "nn",
    "nn.grad": "nn",
    "nn.grad.*": "nn",
    "nn.metrics": "train.metrics",
    "nn.metrics.*": "train.metrics",
    "nn.dynamic_lr": "nn",
    "nn.learning_rate_schedule": "nn",
    "nn.transformer": "nn",
    "ops.composite": "ops",
    "ops.composite.*": "ops",
    "ops.primitive": "ops",
    "ops.function": "ops",
    "ops.function.*": "ops",
    "ops.operations.*": "ops.operations",
    "ops.auto_generate": "ops",
    "ops.auto_generate.*": "ops",
    "ops._grad": "ops",
    "ops.op_info_register": "ops",
    "common.api": "",
    "common.seed": "common",
    "common.mutable": "common",
    "common.np_dtype": "common.dtype",
    "train.model": "train",
    "train.loss_scale_manager": "amp",
    "train.train_thor": "train",
    "train.dataset_helper": "train",
    "train.callback.*": "train.callback",
    "train.metrics.*": "train.metrics",
    "train.amp": "amp",
    "amp.*": "amp",
    "communication.management": "communication",
    "communication._comm_helper": "communication",
    "parallel._auto_parallel_context": "parallel",
    "parallel._utils": "parallel",
    "parallel.*": "parallel",
    "context.*": "context",
    "numpy.*": "numpy",
    "dataset.engine": "dataset",
    "dataset.engine.*": "dataset",
    "dataset.vision.transforms": "dataset.vision",
    "dataset.transforms.c_transforms": "dataset.transforms",
    "dataset.transforms.py_transforms": "dataset.transforms",
    "dataset.transforms.transforms": "dataset.transforms",
    "profiler.profiling": "profiler",
    "dataset.transforms.vision": "dataset.vision",
    "dataset.transforms.vision.c_transforms": "dataset.vision.c_transforms",
    "dataset.transforms.vision.py_transforms": "dataset.vision.py_transforms",
    "dataset.core": "dataset",
    "dataset.core.config": "dataset.config",
    "mindrecord.*": "mindrecord",
    "boost.*": "boost",
    "log.*": "log",
}

# Paths that MindSpore had before and has no longer: said once each.
_OLD = {
    "dataset.transforms.c_transforms",
    "dataset.transforms.py_transforms",
    "profiler.profiling",
}
_told = set()
quiet = False  # set while names are looked up without running a script


def note(old, new):
    """Tells the user, once a process, that a name is an old one."""
    if old not in _told and not quiet:
        _told.add(old)
        warnings.warn(f"'{old}' is an old name; MindSpore now has '{new}'", stacklevel=3)


def home(path):
    """The path whose module holds the names of `path` (both without the package's name), or None."""
    for pattern, target in _PATHS.items():
        if path == target or fnmatch.fnmatchcase(path, pattern):
            return target if path != target else None
    return None


def load(path):
    """Our module for a path without the package's name. Raises ModuleNotFoundError where there is none."""
    name = f"undertow.{path}" if path else "undertow"
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        # Only a missing part of this very path means that there is no such module.
        if not error.name or not (name + ".").startswith(error.name + "."):
            raise
        raise ModuleNotFoundError(f"Undertow has no module '{name}'", name=name) from None


def below(package, name):
    """The module that holds the names of a path of MindSpore's: below("nn", "cell") is undertow.nn.

    Raises AttributeError where there is no such path.
    """
    where = home(f"{package}.{name}")
    if where is None:
        raise AttributeError(f"undertow.{package} has no '{name}'")
    return load(where)


class Loader(importlib.abc.Loader):
    """Hands out a module that is loaded already, unchanged."""

    def __init__(self, module):
        self.module, self.spec = module, module.__spec__

    def create_module(self, spec):
        return self.module

    def exec_module(self, module):
        module.__spec__ = self.spec  # the import system has put the new name's own there


class _Finder(importlib.abc.MetaPathFinder):
    """Comes last: only for paths that have no file."""

    def find_spec(self, fullname, path=None, target=None):
        if not fullname.startswith("undertow."):
            return None
        path = fullname[len("undertow.") :]
        where = home(path)
        if where is None:
            return None
        module = load(where)
        if path in _OLD:
            note(f"mindspore.{path}", f"mindspore.{where}")
        return importlib.machinery.ModuleSpec(fullname, Loader(module), is_package=True)


def install():
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.append(_Finder())
