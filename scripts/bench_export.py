"""To the compiled FMU: what each stage takes, for chains of ``models/chain.py`` and for robot files.

Every row is a process of its own with an empty cache; before it is timed, another model is exported, so that the
compiler has been used before (``--first``: has not). Of a chain SymPy's own construction of the joints is not counted;
of a robot everything is: what is imported, the file, the archive. Stages overlap: what is complete is compiled while
Python goes on, so that they may add up to more than the total. Seconds by the clock, but for those of processors.
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

ROOT = Path(__file__).parents[1]
JOINTS = ("30", "100", "300")
SMALL = "simple_pendulum"


def measure(what: str, fmi: Literal["2", "3"], *, first: bool) -> dict[str, Any]:
    """Seconds by stage, in all, and megabytes, of this process."""
    if not what.isdigit():
        return measure_robot(Path(what), fmi, first=first)
    from mb2fmu import model, pipeline

    joints = int(what)
    if not first:
        pipeline.build(pipeline.derive(ROOT / "models" / f"{SMALL}.py"), fmi=fmi)
    ready = model.load(ROOT / "models" / "chain.py", {"n": joints})
    begin, used = time.perf_counter(), time.process_time()
    build = pipeline.build(pipeline.derive(ready), fmi=fmi)
    total, python = time.perf_counter() - begin, time.process_time() - used
    stages = {t.stage: t.seconds for t in build.timings if t.stage != "load"}
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"joints": joints, **stages, "in all": total, "CPU of Python": python, "MB": memory}


def measure_robot(path: Path, fmi: Literal["2", "3"], *, first: bool) -> dict[str, Any]:
    """The same of a robot file, imports and archive too; what its inertias need is repaired."""
    with tempfile.TemporaryDirectory() as folder:
        if not first:
            small = [sys.executable, "-m", "mb2fmu", "export", str(ROOT / "models" / f"{SMALL}.py"), "--fmi", fmi]
            subprocess.run([*small, "-q", "-o", folder], check=True)
        begin, used, others = time.perf_counter(), time.process_time(), children()
        from mb2fmu import pipeline

        imported = time.perf_counter() - begin
        done = pipeline.export(path, folder, arguments={"inertia": "repair"}, fmi=fmi)
        total, python = time.perf_counter() - begin, time.process_time() - used
    stages: dict[str, float] = {}
    for each in done.timings:
        stages[each.stage] = stages.get(each.stage, 0.0) + each.seconds
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    processors = {"CPU of Python": python, "CPU of compilers": children() - others}
    return {"robot": path.stem, "import": imported, **stages, "in all": total, **processors, "MB": memory}


def children() -> float:
    """Processor time of all ended processes of this one's."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def apart(what: str, arguments: argparse.Namespace) -> dict[str, Any]:
    """The same in a process of its own with an empty cache."""
    with tempfile.TemporaryDirectory() as cache:
        command = [sys.executable, __file__, "--one", what, "--fmi", arguments.fmi]
        done = subprocess.run(
            command + ["--first"] * arguments.first,
            env=os.environ | {"MB2FMU_CACHE_DIR": cache},
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def shown(value: str | float) -> str:
    """A name, or a number of about three digits."""
    if isinstance(value, str):
        return value
    return f"{value:.2f}" if isinstance(value, float) and value < 100 else f"{value:.0f}"


def main() -> int:
    """Prints a table in Markdown."""
    parser = argparse.ArgumentParser(prog="bench_export", description=__doc__)
    parser.add_argument("what", nargs="*", default=JOINTS, help=f"numbers of joints of a chain, robot files: {JOINTS}")
    parser.add_argument("--fmi", choices=("2", "3"), default="2")
    parser.add_argument("--first", action="store_true", help="the compiler has never been used before")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        print(json.dumps(measure(arguments.one, arguments.fmi, first=arguments.first)))
        return 0
    rows = []
    for what in arguments.what:
        print(f"{what} …", file=sys.stderr)
        rows.append(apart(what, arguments))
    print("| " + " | ".join(rows[0]) + " |")
    print("|" + "---:|" * len(rows[0]))
    for row in rows:
        print("| " + " | ".join(map(shown, row.values())) + " |")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
