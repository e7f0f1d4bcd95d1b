# SPDX-License-Identifier: Apache-2.0
"""Worker processes: what C++ asks of Python around a fork, and exceptions as bytes."""

import gc
import os
import pickle
import sys
import traceback
import types

from undertow._core import DataError


def before_fork():
    """What is buffered would be written by both."""
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.flush()


def in_worker():
    """Called once in a fresh worker."""
    gc.freeze()  # else the collector writes into every object's header, and the pages stop being shared
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(line_buffering=True)  # a worker may be killed


def _picklable(value):
    try:
        pickle.loads(pickle.dumps(value))
    except Exception:
        return False
    return True


class _Shown:
    """Stands for an argument that cannot be pickled."""

    def __init__(self, value):
        self._text = repr(value)

    def __repr__(self):
        return self._text


def _whole(error):
    """The exception pickled as it is; None where it would come back as another."""
    try:
        whole = pickle.dumps(error)
        again = pickle.loads(whole)
    except Exception:
        return None
    return whole if type(again) is type(error) and str(again) == str(error) else None


def pack_exception(error):
    """Class, arguments, attributes, text and traceback, with whatever cannot be pickled left out."""
    cls = type(error)
    return pickle.dumps(
        {
            "whole": _whole(error),
            "id": id(cls),
            "name": (cls.__module__, cls.__qualname__),
            "args": tuple(a if _picklable(a) else _Shown(a) for a in error.args),
            "attributes": {k: v for k, v in vars(error).items() if k != "__notes__" and _picklable(v)},
            "text": str(error),
            "frames": [(f.filename, f.name, f.lineno) for f in traceback.extract_tb(error.__traceback__)],
            "notes": [*getattr(error, "__notes__", ()), f"in worker process {os.getpid()}"],
        }
    )


def _class_of(packed):
    """The same class here: it is the one at the same place if it was there before the fork."""
    found = None
    waiting = [BaseException]
    while waiting:
        cls = waiting.pop()
        if (cls.__module__, cls.__qualname__) == packed["name"]:
            if id(cls) == packed["id"]:
                return cls
            found = cls
        waiting.extend(cls.__subclasses__())
    return found


def _traceback_of(frames):
    """A traceback that shows these frames. They can only be made by raising in code that bears their names."""
    tb = None
    for filename, name, line in reversed(frames):
        code = compile("raise StopIteration", filename, "exec").replace(co_name=name, co_firstlineno=line)
        try:
            exec(code, {"__name__": "worker"})
        except StopIteration as stop:
            tb = types.TracebackType(tb, stop.__traceback__.tb_next.tb_frame, -1, line)
    return tb


def _again(packed):
    """The exception, as near as it can be had."""
    if packed["whole"] is not None:
        try:
            return pickle.loads(packed["whole"])
        except Exception:
            pass  # its module was imported in the worker only, and does not load here
    cls = _class_of(packed)
    if cls is not None:
        try:
            # Not by calling it: its __init__ may take other arguments than it passed on.
            error = cls.__new__(cls, *packed["args"])
            error.args = packed["args"]
            vars(error).update(packed["attributes"])
            if str(error) == packed["text"]:
                return error
        except Exception:
            pass  # it is not made like others
    return DataError(f"{packed['name'][1]}: {packed['text']}")


def unpack_exception(packed):
    """The exception that a worker has raised, with its class, arguments, attributes, text and traceback."""
    packed = pickle.loads(packed)
    error = _again(packed)
    error.__dict__.pop("__notes__", None)
    for note in packed["notes"]:
        error.add_note(note)
    return error.with_traceback(_traceback_of(packed["frames"]))
