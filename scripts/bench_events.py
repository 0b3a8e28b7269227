"""Costs of events in Co-Simulation units: evaluations per event, ns per step with and without, impacts a second.

A ball bounces for ever (restitution 1), driven by ``bench_events.c``. Beside it, driven by the same loop and compiled
with the same options, the bouncing ball of the Reference FMUs (a folder with their sources is given): Euler's method
with a fixed step of 1 ms, that looks for impacts at the ends of its steps. So it is reported, too, what becomes of the
energy.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench_native import compiled_with, counted

from mb2fmu import load, pipeline
from mb2fmu.fmu.toolchain.compilers import compiler_options, find_compiler
from mb2fmu.fmu.toolchain.target_platforms import host_platform
from mb2fmu.model.model import Model

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "reference" / "performance_events.md"
STEP, LONG = 0.01, 1.0  # s
GRAVITY = 9.81
LOW, HIGH = 0.02, 1e9  # m: it strikes every 0.128 s, or never
STEPS, ROUNDS = 100_000, 7
LONG_STEPS = 10_000
COUNTED = (2_000, 12_000)
REFERENCE = ("fmi2Functions.c", "cosimulation.c")


@dataclass(frozen=True, slots=True)
class Ran:
    """What a run of the driver says.

    Attributes:
        nanoseconds: Per communication step, the fastest of some rounds.
        impacts: That were seen, at most one in a step.
        drift: Relative change of the energy.
        evaluations: Of x', indicators and events, all of the run.
    """

    nanoseconds: float
    impacts: int
    drift: float
    evaluations: tuple[int, int, int]


def run(program: Path, height: float, steps: int, *counting: str, step: float = STEP) -> Ran:
    """The driver's run."""
    said = [
        subprocess.run(
            [program, repr(height), repr(step), str(steps), *counting],
            check=True, capture_output=True, text=True, timeout=600,
        ).stdout.split()
        for _ in range(ROUNDS if not counting else 1)
    ]  # fmt: skip
    fastest = min(float(words[0]) for words in said)
    _, impacts, h, v, *evaluations = said[0]
    energy = GRAVITY * float(h) + float(v) ** 2 / 2
    rhs, indicators, events = map(int, evaluations)
    return Ran(fastest, int(impacts), energy / (GRAVITY * height) - 1.0, (rhs, indicators, events))


def ball(*, strikes: bool) -> Model:
    """The bouncing ball among the models; without its event if it does not strike."""
    model = load(ROOT / "models" / "bouncing_ball.py")
    if not strikes:
        model.declared_events.clear()
    return model


def ours(folder: Path, *, strikes: bool) -> Path:
    """Our FMU's sources with the driver, as a program."""
    build = pipeline.export(ball(strikes=strikes), folder).build
    references = {variable.name: variable.value_reference for variable in build.interface.variables}
    values = {"HEIGHT": references["h"], "SPEED": references["v"], "RESTITUTION": references["e"]}
    defined = [f"-D{name}={reference}u" for name, reference in values.items()]
    driver = ROOT / "scripts" / "bench_events.c"
    return compiled_with(driver, build.core, build.interface, folder, [*defined, "-DOURS", "-DVALUES=2"])


def theirs(folder: Path, sources: Path) -> Path:
    """The bouncing ball of the Reference FMUs with the driver, as a program."""
    model = sources / "BouncingBall"
    token = next(
        line.split('"')[1] for line in (model / "config.h").read_text().splitlines() if "INSTANTIATION_TOKEN" in line
    )
    program = folder / "theirs"
    files = [*(sources / "src" / name for name in REFERENCE), model / "model.c", ROOT / "scripts" / "bench_events.c"]
    options = [each for each in compiler_options("zig", host_platform(), fast=False) if not each.startswith("-std=")]
    command = [
        *find_compiler("zig").command, *options, "-std=gnu11",
        "-w", "-DFMI_VERSION=2", "-DHEIGHT=1", "-DSPEED=3", "-DRESTITUTION=6", "-DVALUES=2",
        f'-DTOKEN="{token}"', f"-I{sources / 'include'}", f"-I{model}", *map(str, files), "-o", str(program), "-lm",
    ]  # fmt: skip
    subprocess.run(command, check=True, capture_output=True, timeout=600)
    return program


def located(program: Path) -> tuple[float, float, float]:
    """Evaluations of x', of the indicators and of events that one impact takes, beside those of the steps without."""
    striking, flying = run(program, LOW, STEPS, "counted"), run(program, HIGH, STEPS, "counted")
    more = zip(striking.evaluations, flying.evaluations, strict=True)
    rhs, indicators, events = ((a - b) / striking.impacts for a, b in more)
    return rhs, indicators, events


def page(rows: Mapping[str, Sequence[str]], evaluations: tuple[float, float, float]) -> str:
    """The measurements as a Markdown document."""
    rhs, indicators, events = evaluations
    table = [f"| {name} | {' | '.join(cells)} |" for name, cells in rows.items()]
    text = (
        f"An impact takes {rhs:.1f} evaluations of x', {indicators:.1f} of the indicators and {events:.1f} of events "
        "more than as long a flight: the instant is found to the last digit, and the solver begins anew behind it."
    )
    return "\n".join([HEAD, *TABLE_HEAD, *table, "", text, ""])


HEAD = f"""\
# Performance of events

Written by `scripts/bench_events`; do not edit. One run on one machine: times depend on it, ratios and numbers of
evaluations much less.

`models/bouncing_ball.py` bounces for ever (restitution 1) from {LOW} m, as Co-Simulation of FMI 2 in communication
steps of {STEP} s, {STEPS:,} of them, at the model's tolerance of 1e-8; *flying*: it falls from {HIGH:g} m and never
strikes. Beside it the bouncing ball of the [Reference FMUs](https://github.com/modelica/Reference-FMUs), driven by the
same loop and compiled with the same options: Euler's method with steps of 1 ms, which looks for an impact at the end of
each and locates none. The last column says what that costs: the energy should stay. (Where it does not, the number of
impacts in a second is not that of this ball, and left out.)
"""
COLUMNS = (
    "unit",
    "ns per step, striking",
    "ns per step, flying (instructions)",
    "impacts",
    f"impacts per second of the processor, steps of {LONG:g} s",
    "change of the energy",
)
TABLE_HEAD = (f"| {' | '.join(COLUMNS)} |", "|---|---:|---:|---:|---:|---:|")


def cells(program: Path) -> list[str]:
    """A row of the table."""
    flying = run(program, HIGH, STEPS)
    count = counted([str(program), repr(HIGH), repr(STEP)], COUNTED)
    said = f"{flying.nanoseconds:,.0f}" + ("" if count is None else f" ({count:,.0f})")
    striking = run(program, LOW, STEPS)
    if not striking.impacts:
        return ["", said, "", "", ""]
    long = run(program, LOW, LONG_STEPS, step=LONG)
    flight = 2.0 * (2.0 * LOW / GRAVITY) ** 0.5
    rate = LONG / flight / (long.nanoseconds * 1e-9)
    return [
        f"{striking.nanoseconds:,.0f}",
        said,
        f"{striking.impacts:,}",
        f"{rate:,.0f}" if abs(long.drift) < 1e-3 else "",
        f"{striking.drift:.1e}",
    ]


def main(given: Sequence[str] | None = None) -> int:
    """Measures, prints the page and writes it."""
    parser = argparse.ArgumentParser(prog="scripts/bench_events", description=__doc__)
    parser.add_argument("--reference-fmus", type=Path, metavar="FOLDER", help="sources of the Reference FMUs")
    parser.add_argument("--output", type=Path, default=PAGE, help="(docs/reference/performance_events.md)")
    options = parser.parse_args(given)
    with tempfile.TemporaryDirectory() as name:
        folders = [Path(name) / each for each in ("with", "without", "theirs")]
        for folder in folders:
            folder.mkdir()
        program = ours(folders[0], strikes=True)
        rows = {"ours": cells(program), "ours, without the event": cells(ours(folders[1], strikes=False))}
        if options.reference_fmus:
            rows["Reference FMUs"] = cells(theirs(folders[2], options.reference_fmus))
        text = page(rows, located(program))
    print(text)
    options.output.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
