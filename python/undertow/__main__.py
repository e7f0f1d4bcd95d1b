# SPDX-License-Identifier: Apache-2.0
"""python -m undertow script.py args...: runs a MindSpore script on Undertow, otherwise as a plain run would.

--check script.py lists the names that the script uses and Undertow lacks; --coverage DIR does so for a folder. Neither
runs anything.
"""

import atexit
import builtins
import os
import sys
import types

_USAGE = """usage: python -m undertow script.py [args...]     runs a MindSpore script on Undertow
       python -m undertow --check script.py      lists the names that it uses and Undertow lacks
       python -m undertow --coverage DIR         the same for all scripts of a folder, as a table
       python -m undertow mindrecord pack DIR    packs a folder of images for each class (mindrecord --help: more)
       python -m undertow mindrecord info FILE   tells what a MindRecord file holds"""


def _fail(text):
    print(f"undertow: {text}", file=sys.stderr)
    return 2


def _load(path):
    """The script's code object. Raises ValueError with what is wrong with the file."""
    if os.path.isdir(path):
        raise ValueError(f"{path} is a folder, not a Python script")
    try:
        with open(path, "rb") as file:
            source = file.read()
    except FileNotFoundError:
        raise ValueError(f"{path} does not exist") from None
    except OSError as error:
        raise ValueError(f"{path} cannot be read: {error.strerror}") from None
    if b"\0" in source:
        raise ValueError(f"{path} is not Python: it holds binary data")
    try:
        return compile(source, path, "exec", dont_inherit=True)
    except SyntaxError as error:
        where = f"line {error.lineno}: " if error.lineno else ""
        shown = f"\n    {error.text.strip()}" if error.text else ""
        raise ValueError(f"{path} is not Python that this version understands: {where}{error.msg}{shown}") from None


def _clear(names):
    """Drops the script's objects while the interpreter is still whole."""
    for name in list(names):
        if name != "__builtins__":
            names[name] = None


def _report(argv):
    from undertow import _coverage

    if len(argv) != 2:
        return _fail(f"{argv[0]} takes one path\n{_USAGE}")
    option, path = argv
    try:
        if option == "--coverage":
            if not os.path.isdir(path):
                raise ValueError(f"{path} is not a folder")
            return _coverage.coverage(path)
        _load(path)  # says what is wrong with the file
        return _coverage.check(path)
    except ValueError as error:
        return _fail(error)
    except BrokenPipeError:  # `| head`: nobody reads on
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


def main(argv):
    """Runs the script named by argv[0]; returns the exit status."""
    if not argv or argv[0] in ("-h", "--help"):
        print(_USAGE, file=sys.stdout if argv else sys.stderr)
        return 0 if argv else 2
    if argv[0] in ("--check", "--coverage"):
        return _report(argv)
    if argv[0] == "mindrecord":
        from undertow.mindrecord import cli

        return cli.main(argv[1:])
    if argv[0].startswith("-"):
        return _fail(f"unknown option {argv[0]}\n{_USAGE}")
    path = argv[0]
    try:
        code = _load(path)
    except ValueError as error:
        return _fail(error)

    from undertow import alias

    alias.install()
    module = types.ModuleType("__main__")
    module.__dict__.update(__file__=path, __builtins__=builtins, __cached__=None)
    sys.modules["__main__"] = module
    atexit.register(_clear, module.__dict__)
    sys.argv[:] = argv
    sys.path[0] = os.path.dirname(os.path.abspath(path))
    try:
        exec(code, module.__dict__)
    except SystemExit:
        raise
    except BaseException as error:
        # The traceback starts in the script, as in a plain run.
        trace = error.__traceback__.tb_next
        sys.excepthook(type(error), error.with_traceback(trace), trace)
        return 130 if isinstance(error, KeyboardInterrupt) else 1
    return 0


def entry():
    """The command `undertow`."""
    return main(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
