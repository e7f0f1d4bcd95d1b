# SPDX-License-Identifier: Apache-2.0
"""tidy.py <build folder>: clang-tidy over our .cpp files; one that passed is not read again until an input changes."""

import hashlib
import json
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TIDY = "clang-tidy-19"


def headers(build):
    """object file -> the headers of ours that it was built from, as ninja recorded them."""
    text = subprocess.run(["ninja", "-C", build, "-t", "deps"], check=True, capture_output=True, text=True).stdout
    found, current = {}, []
    for line in text.splitlines():
        if line.startswith("    "):
            path = (build / line.strip()).resolve()
            if path.is_relative_to(ROOT):
                current.append(path)
        elif ": #deps" in line:
            current = found[line.split(":")[0]] = []
    return found


def digest(entry, deps):
    state = hashlib.sha256(entry["command"].encode())
    for path in [ROOT / ".clang-tidy", Path(__file__), *sorted({Path(entry["file"]), *deps})]:
        state.update(path.read_bytes() if path.is_file() else b"")
    return state.hexdigest()


def main(build):
    # omp.h is among GCC's own headers, so they come last in the search; it gives `malloc` an argument unknown to Clang.
    gcc = subprocess.run(["g++", "-print-file-name=include"], capture_output=True, text=True).stdout.strip()
    passed, deps, work = build / "tidy", headers(build), []
    passed.mkdir(exist_ok=True)
    for entry in json.loads((build / "compile_commands.json").read_text()):
        source = Path(entry["file"])
        if (
            source.suffix != ".cpp"
            or not source.is_relative_to(ROOT)
            or source.is_relative_to(build)
            or ".venv" in source.parts
        ):
            continue
        stamp = passed / digest(entry, deps.get(re.search(r" -o (\S+)", entry["command"])[1], []))
        if not stamp.exists():
            work.append((source, stamp))

    def run(item):
        extra = ["--extra-arg=-D__malloc__(x)=__malloc__", f"--extra-arg=-idirafter{gcc}"]
        if item[0].is_relative_to(ROOT / "tests"):  # which copy, and look at what was moved from, on purpose
            extra.append("--checks=-bugprone-use-after-move,-performance-unnecessary-copy-initialization")
        command = [TIDY, "-p", build, "--quiet", *extra, item[0]]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            noise = ("warnings generated", "warnings treated as errors", "Suppressed ", "Use -header-filter")
            kept = [t for t in (done.stdout + done.stderr).splitlines() if not any(n in t for n in noise)]
            print("\n".join(kept) or f"{item[0]}: {TIDY} ended with {done.returncode}", flush=True)
        else:
            item[1].touch()
        return done.returncode

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        failures = sum(code != 0 for code in pool.map(run, work))
    print(f"clang-tidy: {len(work)} files read, {failures} with findings")
    return failures != 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]).resolve()))
