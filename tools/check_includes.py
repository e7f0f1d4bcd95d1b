# SPDX-License-Identifier: Apache-2.0
"""Includes follow the arrows of docs/layout.md, libraries stay behind their folder, and public headers need none."""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# What a folder names; it may also include what those name. `backend.h`: the headers right in undertow/backend.
ARROWS = {
    "base": [],
    "tensor": ["base"],
    "ir": ["tensor"],
    "ops": ["ir"],
    "transforms": ["ops"],
    "codegen": ["ir", "ops"],
    "backend.h": ["ops"],
    "backend": ["codegen", "backend.h"],
    "runtime": ["transforms", "backend.h"],
    "data": ["formats"],
    "formats": ["tensor"],
    "train": ["runtime", "data", "formats"],
    "parallel": ["runtime"],
    "undertow.h": ["train", "parallel"],
    "python": ["train", "parallel"],
}
# The only folder (or folders) that may see the headers of a library.
LIBRARIES = {
    "llvm": ["undertow/codegen/"],
    "llvm-c": ["undertow/codegen/"],
    "dnnl": ["undertow/backend/cpu/"],
    "google": ["undertow/formats/"],
    "spdlog": ["undertow/base/"],
    "jpeglib.h": ["undertow/data/vision/"],
    "jerror.h": ["undertow/data/vision/"],
    "png.h": ["undertow/data/vision/"],
    "unicode": ["undertow/data/text/"],
    "sqlite3.h": ["undertow/formats/"],
    "nlohmann": ["undertow/formats/"],
    "nanobind": ["python/src/"],
    "Python.h": ["python/src/"],
}
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^">]+)[">]')


def reach(folder):
    return {folder}.union(*(reach(f) for f in ARROWS[folder]))


def folder_of(path):
    """undertow/ir/graph.h -> ir; headers right in backend/ -> backend.h; python/src/* -> python."""
    parts = path.split("/")
    if parts[0] == "python":
        return "python"
    if parts[1] == "backend" and len(parts) == 3 and path.endswith(".h"):
        return "backend.h"
    return parts[1]


def includes(path):
    """(line, header, ours): header is a path from the root where the file is one of ours."""
    for number, text in enumerate((ROOT / path).read_text().splitlines(), 1):
        if found := INCLUDE.match(text):
            header = found[2]
            beside = (ROOT / path).parent / header
            if found[1] == '"' and beside.is_file():
                header = beside.resolve().relative_to(ROOT).as_posix()
            yield number, header, header.startswith(("undertow/", "python/"))


def library_of(header):
    if re.fullmatch(r"(oneapi/dnnl/)?dnnl\w*\.hp*|oneapi/dnnl/.*", header):
        return "dnnl"
    return header.split("/")[0]


def check_file(path):
    if folder_of(path) not in ARROWS:
        yield f"{path}: its folder has no arrows in tools/check_includes.py"
        return
    allowed = reach(folder_of(path))
    for line, header, ours in includes(path):
        if ours and folder_of(header) not in allowed:
            yield f"{path}:{line}: {folder_of(path)} may not include {header}"
        if not ours and not path.startswith(tuple(LIBRARIES.get(library_of(header), [""]))):
            yield f"{path}:{line}: {header} belongs to {', '.join(LIBRARIES[library_of(header)])} only"


def check_public():
    """What undertow/undertow.h reaches is installed: only headers of ours and of the C++ standard library."""
    pending, seen = ["undertow/undertow.h"], set()
    while pending:
        path = pending.pop()
        if path in seen or not (ROOT / path).is_file():
            continue
        seen.add(path)
        for line, header, ours in includes(path):
            if ours:
                pending.append(header)
            elif not re.fullmatch(r"[a-z_0-9]+", header):
                yield f"{path}:{line}: a public header may not need {header}"
            if ours and folder_of(header) in ("codegen", "backend"):
                yield f"{path}:{line}: a public header may not include the internal {header}"


def main():
    files = [p for d in ("undertow", "python/src") for p in sorted((ROOT / d).rglob("*")) if p.suffix in (".h", ".cpp")]
    errors = [e for p in files for e in check_file(p.relative_to(ROOT).as_posix())] + list(check_public())
    print("\n".join(errors) or f"includes: {len(files)} files follow the arrows")
    return bool(errors)


if __name__ == "__main__":
    sys.exit(main())
