# SPDX-License-Identifier: Apache-2.0
"""`import mindspore` and every submodule of it give Undertow's modules of the same names, once install() was called."""

import importlib
import importlib.abc
import importlib.machinery
import sys

_NAME = "mindspore"


class _Loader(importlib.abc.Loader):
    """Hands out a module that is loaded already, unchanged."""

    def __init__(self, module):
        self.module, self.spec = module, module.__spec__

    def create_module(self, spec):
        return self.module

    def exec_module(self, module):
        module.__spec__ = self.spec  # the import system has put the alias's own there


class _Finder(importlib.abc.MetaPathFinder):
    def find_spec(self, fullname, path=None, target=None):
        if fullname != _NAME and not fullname.startswith(_NAME + "."):
            return None
        ours = "undertow" + fullname[len(_NAME) :]
        try:
            module = importlib.import_module(ours)
        except ModuleNotFoundError as error:
            if error.name and (ours + ".").startswith(error.name + "."):
                raise ModuleNotFoundError(f"Undertow has no module '{fullname}'", name=fullname) from None
            raise
        return importlib.machinery.ModuleSpec(fullname, _Loader(module), is_package=hasattr(module, "__path__"))


def install():
    """From now on `mindspore` is Undertow, whether or not MindSpore itself is installed. Idempotent."""
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())
