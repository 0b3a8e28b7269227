"""Processor seconds of ``mb2fmu run`` by model: user and system time of the process and of all that it starts.

Each run has a cache of its own with what is the same for every model, and compiled once on a machine: parts of zig's C
library, and the functions in C that the validation's reference is integrated by (1.1 to 1.3 s together). Nothing of the
model, its FMU or its reference's equations is compiled already. The table is Markdown.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
MODELS = ROOT / "models"
WARM = """
from mb2fmu.validation.compiled.compiled_equations import compile_equations_runtime
compile_equations_runtime()
"""


def seconds(model: str, joints: int | None = None) -> float:
    """Processor seconds of one run.

    Args:
        model: Name of a file in models/.
        joints: Of models/chain.py.

    Raises:
        subprocess.CalledProcessError: If the run fails; the verdict counts as failure too.
    """
    with tempfile.TemporaryDirectory(prefix="mb2fmu-bench-") as name:
        folder = Path(name)
        variables = os.environ | {"MB2FMU_CACHE_DIR": str(folder / "cache")}
        subprocess.run([sys.executable, "-c", WARM], env=variables, check=True)
        command = [sys.executable, "-m", "mb2fmu", "run", str(MODELS / f"{model}.py"), "-o", str(folder / "out")]
        command += ["--set", f"n={joints}"] if joints else []
        before = _used()
        subprocess.run(command, env=variables, check=True, stdout=subprocess.DEVNULL)
        return _used() - before


def _used() -> float:
    """Processor seconds of all processes that this one has waited for, and of theirs."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def table(after: dict[str, float], before: dict[str, float]) -> str:
    """Rows of model, seconds before and after."""
    rows = ["| Model | before, s | after, s |", "| --- | ---: | ---: |"]
    for name, value in after.items():
        old = f"{before[name]:.1f}" if name in before else ""
        rows.append(f"| {name} | {old} | {value:.1f} |")
    return "\n".join(rows)


def main() -> None:
    """Runs, prints, writes."""
    parser = argparse.ArgumentParser(prog="bench_validation", description=__doc__)
    parser.add_argument("models", nargs="*", metavar="MODEL", help="default: all")
    parser.add_argument("--joints", type=int, nargs="*", default=[], help="chains of so many joints too")
    parser.add_argument("--before", type=Path, help="JSON of an earlier --write")
    parser.add_argument("--write", type=Path, help="JSON: name → seconds")
    arguments = parser.parse_args()
    names = arguments.models or sorted(path.stem for path in MODELS.glob("*.py"))
    asked: list[tuple[str, str, int | None]] = [(name, name, None) for name in names]
    asked += [(f"chain, {joints} joints", "chain", joints) for joints in arguments.joints]
    before: dict[str, float] = json.loads(arguments.before.read_text(encoding="utf-8")) if arguments.before else {}
    after = {}
    for label, model, joints in asked:
        after[label] = seconds(model, joints)
        print(f"{label}: {after[label]:.1f} s", file=sys.stderr, flush=True)
    if arguments.write:
        arguments.write.write_text(json.dumps(after, indent=2) + "\n", encoding="utf-8")
    print(table(after, before))


if __name__ == "__main__":
    main()
