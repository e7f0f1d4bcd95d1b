# SPDX-License-Identifier: Apache-2.0
"""`python -m undertow mindrecord`: packs a folder of images, and tells what a file holds."""

import argparse
import os
import sys
import time

from undertow._core import Error
from undertow._core import data as _data


def main(argv):
    """Returns the exit status."""
    parser = argparse.ArgumentParser(prog="undertow mindrecord", description="MindRecord files")
    commands = parser.add_subparsers(dest="command", required=True)
    pack = commands.add_parser("pack", help="packs a folder with a folder of images for each class")
    pack.add_argument("folder", metavar="DIR")
    pack.add_argument("--shards", type=int, default=1, metavar="N", help="number of files (1)")
    pack.add_argument("--output", metavar="FILE", help="default: DIR.mindrecord")
    pack.add_argument("--overwrite", action="store_true", help="replaces files that are there")
    info = commands.add_parser("info", help="tells schema, rows and files")
    info.add_argument("file", metavar="FILE")
    options = parser.parse_args(argv)
    try:
        return _pack(options) if options.command == "pack" else _info(options.file)
    except (Error, ValueError, TypeError, RuntimeError, OSError) as error:
        print(f"undertow mindrecord: {error}", file=sys.stderr)
        return 1


class _Progress:
    """A bar on the terminal, at most ten times a second; nothing where the output is not one."""

    def __init__(self, total):
        self.total, self.shown, self.bar = total, 0.0, sys.stderr.isatty()

    def show(self, done, size):
        now = time.monotonic()
        if not self.bar or (now - self.shown < 0.1 and done < self.total):
            return
        self.shown = now
        filled = 30 * done // max(self.total, 1)
        end = "\n" if done == self.total else ""
        text = f"\r[{'#' * filled}{'.' * (30 - filled)}] {done}/{self.total} images, {size / 1e6:.1f} MB"
        print(text, end=end, file=sys.stderr, flush=True)


def _pack(options):
    from undertow.mindrecord.files import FileWriter

    folder = os.path.normpath(options.folder)
    if not os.path.isdir(folder):
        raise ValueError(f"there is no folder '{options.folder}'")
    classes = sorted(entry.name for entry in os.scandir(folder) if entry.is_dir())
    images = [
        (os.path.join(name, image), label)
        for label, name in enumerate(classes)
        for image in sorted(os.listdir(os.path.join(folder, name)))
        if os.path.isfile(os.path.join(folder, name, image))
    ]
    if not images:
        raise ValueError(f"'{options.folder}' has no folders with images, which would be the classes")
    output = options.output or folder + ".mindrecord"
    writer = FileWriter(output, options.shards, options.overwrite)
    desc = "classes: " + ", ".join(classes)
    types = {"label": {"type": "int32"}, "image": {"type": "bytes"}, "file_name": {"type": "string"}}
    writer.add_schema(types, desc)
    writer.add_index(["label", "file_name"])
    progress, size, waiting, bytes_waiting = _Progress(len(images)), 0, [], 0
    for done, (path, label) in enumerate(images, 1):
        with open(os.path.join(folder, path), "rb") as file:
            image = file.read()
        waiting.append({"label": label, "image": image, "file_name": path})
        bytes_waiting += len(image)
        if len(waiting) == 1024 or bytes_waiting > 64 << 20 or done == len(images):
            writer.write_raw_data(waiting)
            size, waiting, bytes_waiting = size + bytes_waiting, [], 0
        progress.show(done, size)
    writer.commit()
    number = "1 file" if options.shards == 1 else f"{options.shards} files"
    print(f"{len(images)} images of {len(classes)} classes, {size} bytes, in {number}: {output}")
    return 0


def _info(path):
    reader = _data.MindRecordReader([path])
    print(f"{len(reader)} rows in {len(reader.files())} file(s)")
    for file, rows in zip(reader.files(), reader.file_rows(), strict=True):
        print(f"  {file}: {rows} rows, {os.stat(file).st_blocks * 512} bytes on disk")
    print("fields")
    index = reader.index()
    for name, field in reader.schema().items():
        shape = f" {field['shape']}" if "shape" in field else ""
        print(f"  {name}: {field['type']}{shape}{' (index)' if name in index else ''}")
    if reader.description():
        print(f"description: {reader.description()}")
    return 0
