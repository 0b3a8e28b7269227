"""Processor time of ``mb2fmu run`` and of other commands, in units of an import of SymPy's mechanics (S).

S is the processor time of ``python -c "import sympy.physics.mechanics"``, measured beside: machines differ by a factor
of three, the ratio does not. Counted is user and system time of the process and of all that it starts, with compiled
bytecode and warm caches: each model and command is run twice, and the second run counts. The tables are Markdown.
"""

from __future__ import annotations

import argparse
import compileall
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from bench_mechanisms import MECHANISMS

ROOT = Path(__file__).parents[1]
MODELS = ROOT / "models"
BENCH_MECHANISMS = ROOT / "scripts" / "bench_mechanisms.py"
WARM_MODEL = MODELS / "simple_pendulum.py"
STAGES = ("reference", "simulate", "compare", "conformance")
"""Stages of a validation, as its JSON names their times."""

STUDY = ("--vary", "l=0.4:0.6", "--count", "20", "--out", "{new}", "--scheduler", "none")
"""Options of a study."""

COMMANDS = {
    "--help": ("--help",),
    "list": ("list",),
    "export": ("export", str(WARM_MODEL), "-o", "{folder}"),
    "simulate": ("simulate", str(WARM_MODEL), "--csv", "{folder}/motion.csv"),
    "linearize": ("linearize", str(WARM_MODEL)),
    "audit": ("audit", "{fmu}"),
    "simulate 1 s": ("simulate", str(WARM_MODEL), "--stop", "1", "--csv", "{folder}/second.csv"),
    "fit to 1 s": ("fit", str(WARM_MODEL), "--data", "{folder}/second.csv", "--free", "l", "--at", "l=0.45"),
    "study of an FMU": ("study", "{fmu}", *STUDY),
    "study of a model": ("study", str(WARM_MODEL), *STUDY),
    "system": ("system", str(ROOT / "systems" / "two_masses" / "system.py"), "-o", "{new}"),
}
"""Commands that are measured beside ``run``; ``{fmu}`` is an FMU that was exported before, ``{new}`` no folder yet."""


def measure_processor_time(command: Sequence[str], cache: Path) -> float:
    """Return the processor time of a command and of all that it starts, in s.

    Raises:
        subprocess.CalledProcessError: If it fails; a failed validation does, too.
    """
    variables = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(
        [sys.executable, *command], env=variables | {"MB2FMU_CACHE_DIR": str(cache)}, check=True,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def measure_unit(cache: Path) -> float:
    """Return S, the median processor time of three imports of SymPy's mechanics, in s."""
    imports = (measure_processor_time(("-c", "import sympy.physics.mechanics"), cache) for _ in range(3))
    return statistics.median(imports)


def measure_run(model: str, arguments: Sequence[str], cache: Path) -> tuple[float, dict[str, float]]:
    """Return the processor time of ``mb2fmu run`` in s, and the wall-clock time of stages of its validation."""
    with tempfile.TemporaryDirectory(prefix="mb2fmu-bench-") as name:
        facts = Path(name) / "facts.json"
        command = ("-m", "mb2fmu", "run", model, "-o", str(Path(name) / "out"), "--json", str(facts), *arguments)
        spent = [measure_processor_time(command, cache) for _ in range(2)][1]
        return spent, json.loads(facts.read_text(encoding="utf-8"))["timings"]


def measure_commands(unit: float, cache: Path) -> list[str]:
    """Return a table of the other commands, for a simple pendulum."""
    rows = ["| Command | S |", "| --- | ---: |"]
    with tempfile.TemporaryDirectory(prefix="mb2fmu-bench-") as name:
        fmu = next(iter(sorted(cache.parent.glob("out/*.fmu"))))
        for label, words in COMMANDS.items():
            for k in range(2):  # the second time caches are warm
                command = [word.format(folder=name, fmu=fmu, new=Path(name) / label / str(k)) for word in words]
                spent = measure_processor_time(("-m", "mb2fmu", *command), cache)
            rows.append(f"| {label} | {spent / unit:.1f} |")
    return rows


def main() -> None:
    """Measures, prints, writes."""
    parser = argparse.ArgumentParser(prog="bench_validation", description=__doc__)
    parser.add_argument(
        "models",
        nargs="*",
        metavar="MODEL",
        help="names in models/, or files; default: all of models/, unless other mechanisms are requested",
    )
    parser.add_argument("--joints", type=int, nargs="*", default=[], help="chains of so many joints, too")
    parser.add_argument("--further", action="store_true", help="the ten mechanisms of bench_mechanisms.py, too")
    parser.add_argument("--commands", action="store_true", help="measure other commands, too")
    parser.add_argument("--before", type=Path, help="JSON of an earlier --write")
    parser.add_argument("--write", type=Path, help="JSON: name → S")
    arguments = parser.parse_args()
    names = arguments.models
    if not (names or arguments.further or arguments.joints):
        names = sorted(path.stem for path in MODELS.glob("*.py"))
    measured: list[tuple[str, str, Sequence[str]]]
    measured = [(Path(name).stem, name if Path(name).is_file() else str(MODELS / f"{name}.py"), ()) for name in names]
    measured += [(f"chain, {n} joints", str(MODELS / "chain.py"), ("--set", f"n={n}")) for n in arguments.joints]
    if arguments.further:
        measured += [(name, str(BENCH_MECHANISMS), ("--set", f"name={name}")) for name in MECHANISMS]
    before: dict[str, float] = json.loads(arguments.before.read_text(encoding="utf-8")) if arguments.before else {}
    compileall.compile_dir(ROOT / "mb2fmu", quiet=2)
    after: dict[str, float] = {}
    rows = [f"| Model | S before | S | of it, by the clock in s: {' | '.join(STAGES)} |"]
    rows.append(f"| --- | ---: | ---: |{' ---: |' * len(STAGES)}")
    with tempfile.TemporaryDirectory(prefix="mb2fmu-bench-") as name:
        cache = Path(name) / "cache"
        measure_processor_time(("-m", "mb2fmu", "run", str(WARM_MODEL), "-o", str(cache.parent / "out")), cache)
        for label, model, words in measured:
            unit = measure_unit(cache)
            spent, stages = measure_run(model, words, cache)
            unit = (unit + measure_unit(cache)) / 2.0  # other work on the machine makes both slower
            after[label] = spent / unit
            old = f"{before[label]:.1f}" if label in before else ""
            shares = " | ".join(f"{stages.get(stage, 0.0):.1f}" for stage in STAGES)
            rows.append(f"| {label} | {old} | {after[label]:.1f} | {shares} |")
            print(f"{label}: {after[label]:.1f} S", file=sys.stderr, flush=True)
        other_rows = measure_commands(unit, cache) if arguments.commands else []
    if arguments.write:
        arguments.write.write_text(json.dumps(after, indent=2) + "\n", encoding="utf-8")
    print("\n".join([f"S = {unit:.2f} s", "", *rows, *(["", *other_rows] if other_rows else [])]))


if __name__ == "__main__":
    main()
