# SPDX-License-Identifier: Apache-2.0
"""Names that scripts import but that Undertow does not offer (yet): importing one works, using it says why not.

A name that is not listed here is simply missing, and importing it fails.
"""


class _Meta(type):
    def __call__(cls, *args, **kwargs):
        raise NotImplementedError(f"{cls.__qualname__} is not available in Undertow: {cls._undertow_refused}")

    def __getattr__(cls, name):
        if name.startswith("__"):
            raise AttributeError(name)
        raise NotImplementedError(f"{cls.__qualname__} is not available in Undertow: {cls._undertow_refused}")


def refused(name, reason):
    """A class that stands for `name` and raises NotImplementedError with the reason when it is used."""
    return _Meta(name.rsplit(".", 1)[-1], (), {"_undertow_refused": reason, "__qualname__": name, "__doc__": reason})


def refuse(module, reasons):
    """The classes for a module's refused names: `globals().update(refuse(__name__, {...}))`."""
    return {name: refused(f"{module}.{name}", reason) for name, reason in reasons.items()}
