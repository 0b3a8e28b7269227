"""From a ready ``Model`` to the compiled unit: what each stage takes for chains of ``models/chain.py``.

Every number of joints is a process of its own with an empty cache; before it is timed, another model is exported, so
that the compiler has been used before (``--first``: has not). SymPy's own construction of the joints is not counted.
Stages overlap: what is complete is compiled while Python goes on, so that they may add up to more than the total.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Literal

from mb2fmu import model, pipeline

ROOT = Path(__file__).parents[1]
JOINTS = (30, 100, 300)
SMALL = "simple_pendulum"


def measure(joints: int, fmi: Literal["2", "3"], *, first: bool) -> dict[str, Any]:
    """Seconds by stage, in all, and megabytes, of this process."""
    if not first:
        pipeline.build(pipeline.derive(ROOT / "models" / f"{SMALL}.py"), fmi=fmi)
    ready = model.load(ROOT / "models" / "chain.py", {"n": joints})
    begin, used = time.perf_counter(), time.process_time()
    build = pipeline.build(pipeline.derive(ready), fmi=fmi)
    total, python = time.perf_counter() - begin, time.process_time() - used
    stages = {t.stage: t.seconds for t in build.timings if t.stage != "load"}
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"joints": joints, **stages, "in all": total, "CPU of Python": python, "MB": memory}


def apart(joints: int, arguments: argparse.Namespace) -> dict[str, Any]:
    """The same in a process of its own with an empty cache."""
    with tempfile.TemporaryDirectory() as cache:
        command = [sys.executable, __file__, "--one", str(joints), "--fmi", arguments.fmi]
        done = subprocess.run(
            command + ["--first"] * arguments.first,
            env=os.environ | {"MB2FMU_CACHE_DIR": cache},
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def main() -> int:
    """Prints a table in Markdown."""
    parser = argparse.ArgumentParser(prog="bench_export", description=__doc__)
    parser.add_argument("joints", nargs="*", type=int, default=JOINTS, help=f"default: {JOINTS}")
    parser.add_argument("--fmi", choices=("2", "3"), default="2")
    parser.add_argument("--first", action="store_true", help="the compiler has never been used before")
    parser.add_argument("--one", type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        print(json.dumps(measure(arguments.one, arguments.fmi, first=arguments.first)))
        return 0
    rows = []
    for joints in arguments.joints:
        print(f"{joints} joints …", file=sys.stderr)
        rows.append(apart(joints, arguments))
    print("| " + " | ".join(rows[0]) + " |")
    print("|" + "---:|" * len(rows[0]))
    for row in rows:
        print(
            "| "
            + " | ".join(f"{v:.2f}" if isinstance(v, float) and v < 100 else f"{v:.0f}" for v in row.values())
            + " |"
        )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
