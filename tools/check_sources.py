# SPDX-License-Identifier: Apache-2.0
"""Every .cpp stands in a CMake list, every file names its licence, and none is longer than 500 lines."""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MAX_LINES = 500


def tracked(*patterns):
    command = [
        "git",
        "-c",
        "safe.directory=*",
        "ls-files",
        "-z",
        "--cached",
        "--others",
        "--exclude-standard",
        *patterns,
    ]
    names = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout.split("\0")
    return sorted(n for n in set(names) if n and (ROOT / n).is_file())


def is_listed(source):
    """Whether a CMakeLists.txt at or above the file names it by its path from there (without .cpp where it loops)."""
    for folder in (ROOT / source).parents:
        lists = folder / "CMakeLists.txt"
        text = lists.read_text() if lists.is_file() else ""
        name = re.escape((ROOT / source).relative_to(folder).with_suffix("").as_posix())
        ending = r"(\.cpp)?" if "}.cpp" in text else r"\.cpp"
        if re.search(rf"(?<![\w/.-]){name}{ending}(?![\w.])", text):
            return True
        if folder == ROOT:
            return False
    return False


def main():
    errors = [f"{s}: in no CMake list, so it is never built" for s in tracked("*.cpp") if not is_listed(s)]
    files = tracked("*.cpp", "*.h", "*.c", "*.py")
    for name in files:
        lines = (ROOT / name).read_text().splitlines()
        if len(lines) > MAX_LINES:
            errors.append(f"{name}: {len(lines)} lines; split it (at most {MAX_LINES})")
        if lines and "SPDX-License-Identifier: Apache-2.0" not in "".join(lines[:2]):
            errors.append(f"{name}: its first line must be the SPDX-License-Identifier")
    print("\n".join(errors) or f"sources: {len(files)} files are listed, licensed and short enough")
    return bool(errors)


if __name__ == "__main__":
    sys.exit(main())
