"""Costs of chains of 2 to 8 links by each formulation, in one run: derivation, operations, evaluation, step.

Every cell is measured in a process of its own, one at a time, so that no cache is warm. Times depend on the machine;
what is written down beside them is their ratio to the shortest chain by Kane's method in the same run.
"""

from __future__ import annotations

import argparse
import json
import platform
import subprocess
import sys
import tempfile
import timeit
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import sympy as sm
import sympy.physics.mechanics as me

from mb2fmu import pipeline
from mb2fmu.fmu import package
from mb2fmu.mechanics.equations.equations_of_motion import Method
from mb2fmu.validation import form_experiment_values, simulate_fmu

METHODS: tuple[Method, ...] = ("kane", "tmt", "lagrange")
CHAINS = {
    "planar": "bodies on pins with parallel axes",
    "spatial": "bodies on pins, each axis perpendicular to the one before, three different moments of inertia",
}
PAGE = Path(__file__).parents[1] / "docs" / "reference" / "performance.md"


@dataclass(frozen=True, slots=True)
class Cell:
    """What one chain costs by one formulation.

    Attributes:
        chain: Key of ``CHAINS``.
        links: Number of bodies.
        method: Formulation.
        derive: From the SymPy objects to the equations of motion, s.
        lower: From the equations to the program, s.
        operations: Of x' in the program, solves included.
        evaluation: One x' by the NumPy evaluator, µs.
        step: One communication step of 10 ms of the Python FMU, µs.
    """

    chain: str
    links: int
    method: str
    derive: float
    lower: float
    operations: int
    evaluation: float
    step: float


def chain(kind: str, links: int) -> pipeline.Model:
    """A chain of equal bodies hanging from the ground, released from a bent shape."""
    q, u = me.dynamicsymbols(f"q1:{links + 1}"), me.dynamicsymbols(f"u1:{links + 1}")
    m, l, g, Ix, Iy, Iz = sm.symbols("m l g Ix Iy Iz", positive=True)
    ground = me.RigidBody("ground")
    system = me.System.from_newtonian(ground)
    parent, where = ground, 0 * system.frame.x
    for i in range(links):
        frame = me.ReferenceFrame(f"B{i + 1}")
        centre = me.Point(f"C{i + 1}")
        inertia = (me.inertia(frame, Ix, Iy, Iz), centre)
        body = me.RigidBody(f"link{i + 1}", centre, frame, m, inertia)
        axis = parent.frame.x if kind == "spatial" and i % 2 else parent.frame.z
        system.add_joints(
            me.PinJoint(
                f"pin{i + 1}",
                parent,
                body,
                q[i],
                u[i],
                parent_point=where,
                child_point=l / 2 * frame.y,
                joint_axis=axis,
            )
        )
        parent, where = body, -l / 2 * frame.y
    system.apply_uniform_gravity(-g * system.frame.y)
    model = pipeline.Model(f"Chain{links}", system, description=CHAINS[kind])
    for symbol, value, unit in ((m, 1.0, "kg"), (l, 0.5, "m"), (g, 9.81, "m/s2")):
        model.parameter(symbol, value, unit)
    for symbol, value in ((Ix, 0.021), (Iy, 0.002), (Iz, 0.02)):
        model.parameter(symbol, value, "kg.m2")
    for i in range(links):
        model.coordinate(q[i], 0.3 / (i + 1), "rad")
        model.speed(u[i], 0.0, "rad/s")
    model.output("last", q[-1], "rad")
    model.experiment(stop=0.5, step=0.01, tolerance=1e-6)
    return model


def measure(kind: str, links: int, method: Method) -> Cell:
    """Measures one cell in this process."""
    derivation = pipeline.derive(chain(kind, links), method=method)
    spent = {timing.stage: timing.seconds for timing in derivation.timings}
    f = pipeline.right_hand_side(derivation)
    with tempfile.TemporaryDirectory() as folder:
        fmu = Path(folder) / "chain.fmu"
        package.write_fmu_archive(pipeline.build(derivation, backend="python").core, fmu)
        seconds_per_step = simulate_fmu(
            fmu, form_experiment_values(derivation.definition), [f"q{links}"]
        ).seconds_per_step
    return Cell(
        chain=kind,
        links=links,
        method=method,
        derive=sum(spent.values()) - spent["lower"],
        lower=spent["lower"],
        operations=derivation.operations,
        evaluation=1e6 * fastest(lambda: f(0.0, f.x0)),
        step=1e6 * seconds_per_step,
    )


def fastest(call: Callable[[], object]) -> float:
    """Seconds of one call: the fastest of five rounds of about 50 ms."""
    timer = timeit.Timer(call)
    number = max(timer.autorange()[0] // 4, 1)
    return min(timer.repeat(5, number)) / number


def measured_apart(kind: str, links: int, method: str, limit: float) -> Cell | str:
    """The cell, measured in a process of its own; or, in a few words, why there is none."""
    command = [sys.executable, __file__, "--cell", kind, str(links), method]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=limit, check=False)
    except subprocess.TimeoutExpired:
        return f"over {limit:g} s"
    if done.returncode:
        return f"failed: {done.stderr.strip().splitlines()[-1] if done.stderr.strip() else done.returncode}"
    return Cell(**json.loads(done.stdout))


def page(cells: Sequence[Cell], missing: Sequence[tuple[str, int, str, str]]) -> str:
    """The measurements as a Markdown document."""
    lines = [HEAD.format(python=platform.python_version(), numpy=np.__version__, sympy=sm.__version__)]
    for kind, text in CHAINS.items():
        here = [cell for cell in cells if cell.chain == kind]
        if not here:
            continue
        base = here[0]
        lines += [f"## {kind.capitalize()} chains", "", f"{text.capitalize()}.", "", *TABLE_HEAD]
        gaps = [(links, method, why) for chain_kind, links, method, why in missing if chain_kind == kind]
        rows = [(cell.links, METHODS.index(cell.method), row(cell, base)) for cell in here]
        rows += [(n, METHODS.index(method), f"| {n} | {method} | {why} |||||") for n, method, why in gaps]
        lines += [text for _, _, text in sorted(rows)]
        lines += ["", f"Ratios are to {base.links} links by {base.method} in the same run.", ""]
    return "\n".join(lines)


def row(cell: Cell, base: Cell) -> str:
    """One line of a table: value and ratio."""
    columns = [
        f"{cell.derive:.2f} ({cell.derive / base.derive:.1f})",
        f"{cell.lower:.3f} ({cell.lower / base.lower:.1f})",
        f"{cell.operations:,} ({cell.operations / base.operations:.1f})",
        f"{cell.evaluation:.1f} ({cell.evaluation / base.evaluation:.1f})",
        f"{cell.step:.0f} ({cell.step / base.step:.1f})",
    ]
    return f"| {cell.links} | {cell.method} | {' | '.join(columns)} |"


HEAD = """\
# Performance

Written by `scripts/bench`; do not edit. Python {python}, NumPy {numpy}, SymPy {sympy}, one run on one machine, every
row in a process of its own. Times depend on the machine, the ratios in brackets much less.

- *derive*: load, check, read and formulate: from SymPy objects to the equations of motion, in s.
- *lower*: from the equations to the program, in s.
- *operations*: of x' in the program, the linear solve included.
- *evaluation*: one x' by the NumPy evaluator, in µs.
- *step*: one communication step of 10 ms of the Python FMU, tolerance 1e-6, through fmpy, in µs.
"""
TABLE_HEAD = (
    "| links | method | derive | lower | operations | evaluation | step |",
    "|---:|---|---:|---:|---:|---:|---:|",
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measures all cells, prints the page and writes it."""
    parser = argparse.ArgumentParser(prog="scripts/bench", description=__doc__)
    parser.add_argument("--links", type=int, nargs="+", default=list(range(2, 9)), metavar="N")
    parser.add_argument("--chains", nargs="+", choices=list(CHAINS), default=list(CHAINS))
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    parser.add_argument("--limit", type=float, default=300.0, metavar="SECONDS", help="for one row (300)")
    parser.add_argument("--output", type=Path, default=PAGE, help="(docs/reference/performance.md)")
    parser.add_argument("--cell", nargs=3, metavar=("CHAIN", "N", "METHOD"), help="measure one row in this process")
    options = parser.parse_args(arguments)
    if options.cell:
        kind, links, method = options.cell
        print(json.dumps(asdict(measure(kind, int(links), method))))
        return 0
    cells: list[Cell] = []
    missing: list[tuple[str, int, str, str]] = []
    for kind in options.chains:
        hopeless: set[str] = set()
        for links in options.links:
            for method in (method for method in options.methods if method not in hopeless):
                result = measured_apart(kind, links, method, options.limit)
                print(result, file=sys.stderr, flush=True)
                if isinstance(result, Cell):
                    cells.append(result)
                else:
                    missing.append((kind, links, method, result))
                    hopeless.add(method)
                options.output.write_text(page(cells, missing), encoding="utf-8")  # what is measured is kept
    print(page(cells, missing))
    return 0 if cells and not any(why.startswith("failed") for *_, why in missing) else 1


if __name__ == "__main__":
    sys.exit(main())
