# SPDX-License-Identifier: Apache-2.0
"""Seconds that `import undertow` takes in a fresh interpreter, above an empty one."""

import subprocess
import sys

from _common import best_of, emit


def run(code):
    subprocess.run([sys.executable, "-c", code], check=True)


def main():
    run("import undertow")
    empty = best_of(5, lambda: run("pass"))
    emit("import", best_of(5, lambda: run("import undertow")) - empty, "s")


if __name__ == "__main__":
    main()
