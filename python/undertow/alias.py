# SPDX-License-Identifier: Apache-2.0
"""`import mindspore` and every submodule of it give Undertow's modules of the same names, once install() was called."""

import importlib.abc
import importlib.machinery
import sys

from undertow import _modules

_NAME = "mindspore"


class _Finder(importlib.abc.MetaPathFinder):
    def find_spec(self, fullname, path=None, target=None):
        if fullname != _NAME and not fullname.startswith(_NAME + "."):
            return None
        try:
            module = _modules.load(fullname[len(_NAME) + 1 :])
        except ModuleNotFoundError as error:
            if error.name and error.name.startswith("undertow"):
                raise ModuleNotFoundError(f"Undertow has no module '{fullname}'", name=fullname) from None
            raise
        # A package whatever it is of ours: MindSpore may have modules below it.
        return importlib.machinery.ModuleSpec(fullname, _modules.Loader(module), is_package=True)


def install():
    """From now on `mindspore` is Undertow, whether or not MindSpore itself is installed. Idempotent."""
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())
