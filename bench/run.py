# SPDX-License-Identifier: Apache-2.0
"""Runs every benchmark at one stated thread count, prints a table with ratios to the peers, keeps the figures as JSON.

A benchmark is a program in build/bench, or a bench/*.py; each prints a line {"name", "value", "unit", "params"} a
figure (Google Benchmark's JSON is understood too). A peer is a bench/peers/<system>_*.py, run by the Python of
.venv-peers/<system>; it prints the same names and params, and the ratio is the peer's figure against ours.
"""

import argparse
import datetime
import json
import os
import platform
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
OURS = "undertow"
# Units in which more is better; all others are times or sizes.
RATES = ("/s", "GFLOP/s", "x")


def programs(build):
    """(system, name, command) of all that can run here."""
    built = build / "bench"
    for path in sorted(built.iterdir()) if built.is_dir() else []:
        if path.is_file() and os.access(path, os.X_OK):
            yield OURS, path.name, [path]
    for path in sorted((ROOT / "bench").glob("*.py")):
        if path.name != "run.py" and not path.name.startswith("_"):
            yield OURS, path.name, [sys.executable, path]
    for path in sorted((ROOT / "bench" / "peers").glob("*.py")):
        system = path.stem.split("_")[0]
        python = ROOT / ".venv-peers" / system / "bin" / "python"
        if python.exists():
            yield system, path.name, [python, path]
        else:
            print(f"note: {path.name} is left out, {system} is not installed; `make bench-peers` installs the peers")


def records(text):
    """The figures in a program's output."""
    try:
        whole = json.loads(text)
        if "benchmarks" in whole:
            for b in whole["benchmarks"]:
                yield {"name": b["name"], "value": b["real_time"], "unit": b["time_unit"], "params": {}}
            return
    except (ValueError, TypeError):
        pass
    for line in text.splitlines():
        if line.startswith("{"):
            record = json.loads(line)
            yield {"params": {}} | {key: record[key] for key in ("name", "value", "unit", "params") if key in record}


def run(chosen, threads, limit):
    """(figures, failures) of the chosen programs, one after the other."""
    env = os.environ | {"OMP_NUM_THREADS": str(threads), "BENCHMARK_FORMAT": "json"}
    figures, failures = [], 0
    for system, name, command in chosen:
        print(f"running {name}", flush=True)
        try:
            done = subprocess.run(command, cwd=ROOT, env=env, stdout=subprocess.PIPE, text=True, timeout=limit)
            if done.returncode:
                raise RuntimeError(f"exit status {done.returncode}")
            figures += [{"system": system, "program": name} | r for r in records(done.stdout)]
        except (subprocess.TimeoutExpired, RuntimeError, ValueError, KeyError, OSError) as error:
            print(f"failed: {name}: {error}", flush=True)
            failures += 1
    return figures, failures


def table(figures):
    """One row a figure of ours, with each peer's figure and ratio; above 1x we are better."""
    peers = sorted({f["system"] for f in figures} - {OURS})
    found = {}
    for f in figures:
        params = " ".join(f"{k}={v}" for k, v in f["params"].items())
        found.setdefault((f["name"], params, f["unit"]), {})[f["system"]] = f["value"]
    rows = [["name", "params", OURS, "unit", *(c for p in peers for c in (p, "ratio"))]]
    for (name, params, unit), by_system in found.items():
        ours = by_system.get(OURS)
        row = [name, params, "-" if ours is None else f"{ours:.4g}", unit]
        for peer in peers:
            theirs = by_system.get(peer)
            row.append("-" if theirs is None else f"{theirs:.4g}")
            if ours and theirs:
                row.append(f"{ours / theirs if unit.endswith(RATES) else theirs / ours:.2f}x")
            else:
                row.append("-")
        rows.append(row)
    widths = [max(len(r[i]) for r in rows) for i in range(len(rows[0]))]
    return "\n".join("  ".join(c.ljust(w) for c, w in zip(r, widths)).rstrip() for r in rows)


def machine():
    model = ""
    if (info := Path("/proc/cpuinfo")).exists():
        model = next((t.split(":")[1].strip() for t in info.read_text().splitlines() if t.startswith("model name")), "")
    return {"cpu": model, "cores": os.cpu_count(), "python": platform.python_version()}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("only", nargs="*", help="run only programs whose name contains one of these")
    parser.add_argument("--build", type=Path, default=ROOT / "build")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--limit", type=float, default=900, help="seconds that one program may take")
    parser.add_argument("--out", type=Path, default=ROOT / "bench" / "results" / "latest.json")
    args = parser.parse_args()

    chosen = [p for p in programs(args.build) if not args.only or any(o in p[1] for o in args.only)]
    figures, failures = run(chosen, args.threads, args.limit)
    if figures:
        print(f"\n{table(figures)}\n")
        args.out.parent.mkdir(parents=True, exist_ok=True)
        head = {"date": datetime.date.today().isoformat(), "machine": machine(), "threads": args.threads}
        lines = ",\n".join("  " + json.dumps(f) for f in figures)
        args.out.write_text(json.dumps(head)[:-1] + ', "figures": [\n' + lines + "\n]}\n")
    print(f"{len(chosen)} programs, {len(figures)} figures, {failures} failed; {args.threads} threads")
    return failures != 0


if __name__ == "__main__":
    sys.exit(main())
