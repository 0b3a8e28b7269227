"""Costs of native FMUs, in one run: instructions and ns per call, ratios, export times, sizes of binaries.

Calls are made by ``bench_native.c``, compiled together with each FMU's sources by zig with the flags of an FMU.
Instructions are counted by valgrind's callgrind, as the difference of two runs of different length: they are the same
each time, and do not depend on what else the machine does. Times depend on the machine; their ratios much less.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from mb2fmu import pipeline
from mb2fmu.fmu import package
from mb2fmu.fmu.in_memory_file_tree import InMemoryFileTree
from mb2fmu.fmu.interface import FmuInterface
from mb2fmu.fmu.toolchain import CompilationSettings
from mb2fmu.fmu.toolchain.compilers import compiler_options, find_compiler
from mb2fmu.fmu.toolchain.fmu_platform_build import MAIN_TRANSLATION_UNIT, list_platform_translation_units
from mb2fmu.fmu.toolchain.target_platforms import PLATFORMS, host_platform
from mb2fmu.pipeline.derivation.pipeline_results import DerivationResult
from mb2fmu.validation import form_experiment_values, simulate_fmu

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "reference" / "performance_native.md"
CALLS = ("model", "exchange", "step", "get", "set")
COUNTED = (200, 600)
TIMED = {"step": 2_000}
USUALLY_TIMED = 200_000
ROUNDS = 15
BY_HAND = "double_pendulum"


@dataclass(frozen=True, slots=True)
class Cost:
    """Of one call: ns (the fastest of some rounds), and instructions (None: no valgrind)."""

    nanoseconds: float
    instructions: float | None

    def __str__(self) -> str:
        count = "" if self.instructions is None else f" ({self.instructions:,.0f})"
        return f"{self.nanoseconds:,.0f}{count}"


@dataclass(frozen=True, slots=True)
class Row:
    """What one model's FMU costs.

    Attributes:
        model: Name of the model file.
        operations: Of x' in the program.
        export: From the model file to the archive with warm caches, s.
        stages: Of that, by stage, s.
        costs: Call → cost.
        python_step: One communication step of the Python FMU through fmpy, µs.
        native_step: The same of the native FMU through fmpy, µs.
    """

    model: str
    operations: int
    export: float
    stages: Mapping[str, float]
    costs: Mapping[str, Cost]
    python_step: float
    native_step: float


def measure(model: str) -> Row:
    """All of one model."""
    path = ROOT / "models" / f"{model}.py"
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        pipeline.export(path, folder)  # warms the caches
        begin = time.perf_counter()
        exported = pipeline.export(path, folder)
        spent = time.perf_counter() - begin
        derivation = exported.build.derivation
        costs = calls(exported.build.core, exported.build.interface, folder, by_hand=model == BY_HAND)
        native = seconds_per_step(exported.path, derivation)
        package.write_fmu_archive(pipeline.build(derivation, backend="python").core, folder / "python.fmu")
        hosted = seconds_per_step(folder / "python.fmu", derivation)
    return Row(
        model=model,
        operations=derivation.operations,
        export=spent,
        stages={timing.stage: timing.seconds for timing in exported.timings},
        costs=costs,
        python_step=1e6 * hosted,
        native_step=1e6 * native,
    )


def seconds_per_step(fmu: Path, derivation: DerivationResult) -> float:
    """One communication step as Co-Simulation through fmpy, over the default experiment."""
    state = derivation.definition.coordinates[0].name
    return simulate_fmu(
        fmu, form_experiment_values(derivation.definition), [state], kind="CoSimulation"
    ).seconds_per_step


def calls(core: InMemoryFileTree, interface: FmuInterface, folder: Path, *, by_hand: bool) -> dict[str, Cost]:
    """Compiles the FMU's sources with ``bench_native.c`` and calls it."""
    program = compiled(core, interface, folder, by_hand=by_hand)
    names = [*CALLS, *(["hand", "own"] if by_hand else [])]
    times = fastest(program, names)
    return {name: Cost(times[name], instructions(program, name)) for name in names}


def compiled(core: InMemoryFileTree, interface: FmuInterface, folder: Path, *, by_hand: bool) -> Path:
    """The FMU's sources with ``bench_native.c``, as a program in ``folder``."""
    states, inputs = interface.variables_from_sources("state"), interface.variables_from_sources("input")
    settable = [*inputs, *(v for v in interface.variables_from_sources("parameter") if v.variability == "tunable")]
    defined = [
        *(["-DHAND"] if by_hand else []),
        f"-DFIRST_STATE={states[0].value_reference}u",
        f"-DFIRST_INPUT={settable[0].value_reference}u",
        f"-DSTEP={interface.experiment.step!r}",
    ]
    return compiled_with(ROOT / "scripts" / "bench_native.c", core, interface, folder, defined)


def compiled_with(
    driver: Path, core: InMemoryFileTree, interface: FmuInterface, folder: Path, defined: Sequence[str]
) -> Path:
    """The FMU's sources with a driver that includes ``unit.c``, as a program in ``folder``."""
    for path in core:
        if path.startswith("sources/"):
            file = folder / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(core[path])
    zig = find_compiler("zig").command
    objects = []
    for unit in list_platform_translation_units(core, CompilationSettings(interface.model_identifier), host_platform()):
        if unit.source == MAIN_TRANSLATION_UNIT:
            continue
        target = folder / unit.name
        command = [*zig, *unit.arguments, "-c", str(folder / unit.source), "-o", str(target)]
        subprocess.run(command, check=True, capture_output=True, timeout=600)
        objects.append(target)
    command = [
        *zig,
        *compiler_options("zig", host_platform(), fast=False, dispatching=True),
        *defined,
        f"-I{folder / 'sources'}",
        str(driver),
        *map(str, objects),
        "-o",
        str(folder / "bench"),
        "-lm",
    ]
    subprocess.run(command, check=True, capture_output=True, timeout=600)
    return folder / "bench"


def fastest(program: Path, names: Sequence[str], rounds: int = ROUNDS) -> dict[str, float]:
    """Call → the fastest of some rounds, in ns; all calls take turns, so that what disturbs one disturbs all."""
    times = dict.fromkeys(names, float("inf"))
    for _ in range(rounds):
        for name in names:
            command: list[str | Path] = [program, name, str(TIMED.get(name, USUALLY_TIMED))]
            said = subprocess.run(command, check=True, capture_output=True, text=True, timeout=300).stdout
            times[name] = min(times[name], float(said.split()[0]))
    return times


def instructions(program: Path, call: str) -> float | None:
    """Of one call; None where there is no valgrind."""
    return counted([str(program), call], COUNTED)


def counted(command: Sequence[str], numbers: tuple[int, int]) -> float | None:
    """Instructions of one call of a program whose last argument is the number of calls; None without valgrind."""
    if not shutil.which("valgrind"):
        return None
    totals = []
    for number in numbers:
        watched = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", *command, str(number)]
        said = subprocess.run(watched, check=True, capture_output=True, text=True, timeout=600).stderr
        found = re.search(r"Collected : (\d+)", said)
        assert found, said
        totals.append(int(found[1]))
    return (totals[1] - totals[0]) / (numbers[1] - numbers[0])


def sizes() -> dict[str, tuple[int, int]]:
    """Platform → bytes of the double pendulum's binary, FMI 2 and FMI 3."""
    derivation = pipeline.derive(ROOT / "models" / f"{BY_HAND}.py")
    found: dict[str, list[int]] = {platform.name: [] for platform in PLATFORMS}
    for number, fmi in ((2, "2"), (3, "3")):
        built = pipeline.build(derivation, fmi="2" if fmi == "2" else "3", platforms="all")
        for platform in PLATFORMS:
            (path,) = [p for p in built.binaries if p.startswith(f"binaries/{platform.folder(number)}/")]
            found[platform.name].append(len(built.binaries[path]))
    return {name: (two, three) for name, (two, three) in found.items()}


def page(rows: Sequence[Row], bytes_by_platform: Mapping[str, tuple[int, int]]) -> str:
    """The measurements as a Markdown document."""
    lines = [HEAD, "## Calls", "", CALLS_TEXT, "", *CALLS_HEAD]
    for row in rows:
        costs = " | ".join(str(row.costs[name]) for name in CALLS)
        ratio = row.python_step * 1e3 / row.costs["step"].nanoseconds
        lines.append(
            f"| {row.model} | {row.operations} | {costs} | {row.python_step:,.0f} | {ratio:,.0f} "
            f"| {row.python_step / row.native_step:,.0f} |"
        )
    for row in rows:
        if "hand" in row.costs:
            lines += ["", by_hand_text(row.costs)]
    lines += ["", "## Exports", "", EXPORT_TEXT, "", "| model | s | of that |", "|---|---:|---|"]
    for row in rows:
        slow = sorted(row.stages.items(), key=lambda item: -item[1])[:4]
        lines.append(f"| {row.model} | {row.export:.2f} | {', '.join(f'{name} {s:.2f}' for name, s in slow)} |")
    if bytes_by_platform:
        note = "Of the double pendulum, in kB. FMI 2's for x86_64-darwin holds both processors' code."
        lines += ["", "## Binaries", "", note, ""]
        lines += ["| platform | FMI 2 | FMI 3 |", "|---|---:|---:|"]
        lines += [f"| {name} | {old / 1e3:.0f} | {new / 1e3:.0f} |" for name, (old, new) in bytes_by_platform.items()]
    return "\n".join([*lines, ""])


def by_hand_text(costs: Mapping[str, Cost]) -> str:
    """The generated right-hand side beside the one that a person wrote."""
    parts = []
    for name, what in (("own", "the FMU's own sine and cosine"), ("hand", "the system's sine and cosine")):
        model, hand = costs["model"], costs[name]
        ratio = f"{model.nanoseconds / hand.nanoseconds:.2f} times its time"
        if model.instructions is not None and hand.instructions is not None:
            ratio += f", {model.instructions / hand.instructions:.2f} times its instructions"
        parts.append(f"with {what} {hand} (the FMU: {ratio})")
    return (
        f"The double pendulum's x' in the FMU takes {costs['model']}; the same function written by hand "
        f"(`scripts/bench_native.c`) takes {'; '.join(parts)}."
    )


HEAD = """\
# Performance of native FMUs

Written by `scripts/bench_native`; do not edit. One run on one machine: times depend on it, ratios and numbers of
instructions much less.
"""
CALLS_TEXT = """\
Each cell: ns (instructions) of one call from C. *x'*: the generated function alone. *x' through FMI*: set time, set
states, get derivatives. *step*: one communication step of the model's experiment by the default solver, to its
tolerance. *get*, *set*: one value (an input, or a tunable parameter where there is none). *Python FMU*: the same step
of the Python FMU through fmpy, in µs, and how many times longer that is than the native FMU's step from C, and
through fmpy, where most of the native step is fmpy."""
CALLS_HEAD = (
    "| model | operations of x' | x' | x' through FMI | step | get | set | Python FMU | ratio | ratio in fmpy |",
    "|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|",
)
EXPORT_TEXT = "From the model file to the archive for the host, in s, caches warm; starting Python comes on top."


def main(given: Sequence[str] | None = None) -> int:
    """Measures, prints the page and writes it."""
    models = sorted(path.stem for path in (ROOT / "models").glob("*.py"))
    parser = argparse.ArgumentParser(prog="scripts/bench_native", description=__doc__)
    parser.add_argument("--models", nargs="+", choices=models, default=models, metavar="NAME")
    parser.add_argument("--no-platforms", action="store_true", help="leave out the binaries of other platforms")
    parser.add_argument("--output", type=Path, default=PAGE, help="(docs/reference/performance_native.md)")
    options = parser.parse_args(given)
    rows = []
    for model in options.models:
        rows.append(measure(model))
        print(rows[-1], file=sys.stderr, flush=True)
        options.output.write_text(page(rows, {}), encoding="utf-8")
    text = page(rows, {} if options.no_platforms else sizes())
    print(text)
    options.output.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
