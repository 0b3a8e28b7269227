"""Operations and instructions of a right-hand side by each treatment of holonomic constraints.

Of models with loops, and of N four-bars that share nothing but the ground. Operations are those of the program, a
Newton iteration counted once. Instructions are those of the compiled FMU at its start, on the constraints, where one
iteration is enough, counted by valgrind's callgrind; neither depends on the machine's load. ns do, and the seconds of
processor time that the derivation takes. What was measured is kept in a file, so that a run that was stopped goes on
where it was, and the picture can be drawn of what is there.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import get_args

import bench_native
import matplotlib as mpl
import sympy as sm
import sympy.physics.mechanics as me
from matplotlib.figure import Figure

from mb2fmu import Model, Parts, pipeline
from mb2fmu.errors import FormulationError
from mb2fmu.mechanics import formulations

ROOT = Path(__file__).parents[1]
MODELS = ("four_bar", "msl_planar_four_bar", "crank_slider", "transmission", "bowl", "andrews")
LOOPS = (1, 2, 5, 10, 20, 50, 100)
TREATMENTS = tuple(t for t in get_args(formulations.TreatmentOption) if t != "auto")


def four_bars(n: int) -> Model:
    """N four-bars of the book beside each other."""
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    g, m = sm.symbols("g m")
    lengths = (0.8, 2, 1)
    parts: dict[str, list[object]] = {name: [] for name in ("q", "u", "kinematic_equations", "bodies", "loads")}
    rows, dependent = [], []
    for i in range(n):
        q, u = me.dynamicsymbols(f"q{i}_1:4"), me.dynamicsymbols(f"u{i}_1:4")
        frame, point = N, O
        for j, length in enumerate(lengths):
            after = me.ReferenceFrame(f"F{i}_{j}")
            after.orient_axis(frame, frame.z, q[j])
            after.set_ang_vel(frame, u[j] * frame.z)
            frame, point = after, point.locatenew(f"P{i}_{j}", sm.nsimplify(length) * after.x)
            if j < 2:
                mass = me.Particle(f"M{i}_{j}", point, m)
                parts["bodies"].append(mass)
                parts["loads"].append(me.Force(mass.masscenter, -m * g * N.y))
        loop = point.pos_from(O) - 2 * N.x
        rows += [loop.dot(N.x), loop.dot(N.y)]
        dependent.append((q[1:], u[1:]))
        parts["q"] += q
        parts["u"] += u
        parts["kinematic_equations"] += [a.diff() - b for a, b in zip(q, u, strict=True)]
    given = Parts(
        frame=N,
        origin=O,
        **parts,
        holonomic_constraints=rows,
        q_dependent=[q for pair in dependent for q in pair[0]],
        u_dependent=[u for pair in dependent for u in pair[1]],
    )
    model = Model(f"FourBars{n}", given)
    model.parameter(m, 1.0, "kg")
    model.parameter(g, 9.81, "m/s2")
    starts = (0.17453292519943295, 0.11476003622, -2.6421428385)
    for k, (q, u) in enumerate(zip(parts["q"], parts["u"], strict=True)):
        kind = "guess" if k % 3 else "fixed"
        model.coordinate(q, starts[k % 3], "rad", kind=kind)  # type: ignore[arg-type]
        model.speed(u, 0.0, "rad/s", kind=kind)  # type: ignore[arg-type]
    return model


@dataclass(frozen=True, slots=True)
class Cost:
    """Of one x', and of its derivation.

    Attributes:
        operations: Of the program.
        derived: Processor time of the derivation, s.
        instructions: Of the compiled FMU; None where they were not counted.
        ns: Of the compiled FMU; None where they were not measured.
    """

    operations: int
    derived: float
    instructions: float | None = None
    ns: float | None = None

    def __str__(self) -> str:
        """A cell of the table."""
        parts = (self.operations, self.instructions, self.ns)
        return f"{' / '.join('–' if part is None else f'{part:,.0f}' for part in parts)}, {self.derived:.0f} s"


Costs = dict[str, dict[str, Cost | None]]
"""By name and treatment; None where the treatment does not apply."""


def measured(model: Path | Model, method: str, treatment: str, *, compiled: bool) -> Cost | None:
    """What one treatment costs; None where it does not apply."""
    begun = time.process_time()
    try:
        derivation = pipeline.derive(model, method=method, constraints=treatment)  # type: ignore[arg-type]
    except FormulationError:
        return None
    derived = time.process_time() - begun
    if not compiled:
        return Cost(derivation.operations, derived)
    built = pipeline.build(derivation)
    with tempfile.TemporaryDirectory() as folder:
        program = bench_native.compiled(built.core, built.interface, Path(folder), by_hand=False)
        count = bench_native.instructions(program, "model")
        spent = bench_native.fastest(program, ["model"], rounds=3)["model"]
    return Cost(derivation.operations, derived, count, spent)


def load(path: Path) -> Costs:
    """What was measured before."""
    if not path.exists():
        return {}
    stored = json.loads(path.read_text(encoding="utf-8"))
    return {name: {t: c and Cost(**c) for t, c in costs.items()} for name, costs in stored.items()}


def save(path: Path, found: Costs) -> None:
    """Keeps it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    plain = {name: {t: c and asdict(c) for t, c in costs.items()} for name, costs in found.items()}
    path.write_text(json.dumps(plain, indent=1), encoding="utf-8")


def picture(found: Mapping[str, Mapping[str, Cost | None]], path: Path) -> None:
    """Operations and ns of x' over the number of four-bars, both axes logarithmic, a line per treatment."""
    mpl.rcParams["svg.hashsalt"] = "mb2fmu"
    figure = Figure(figsize=(8.5, 3.6), layout="constrained")
    left, right = figure.subplots(1, 2, sharex=True)
    for treatment, color in zip(TREATMENTS, ("#1f77b4", "#d62728", "#2ca02c", "#9467bd"), strict=True):
        costs = {n: found.get(_four_bars(n), {}).get(treatment) for n in LOOPS}
        for axes, what in ((left, "operations"), (right, "ns")):
            points = [(n, getattr(c, what)) for n, c in costs.items() if c is not None and getattr(c, what) is not None]
            axes.loglog(*zip(*points, strict=True), "o-", color=color, label=treatment, markersize=4)
    for axes, title in ((left, "operations of x'"), (right, "ns of x' in the native FMU")):
        axes.set(xlabel="number of four-bars", title=title)
        axes.grid(which="both", alpha=0.25)
        axes.set_xticks(LOOPS, [str(n) for n in LOOPS])
        axes.minorticks_off()
    left.legend(frameon=False)
    figure.savefig(path, metadata={"Date": None})


def _four_bars(n: int) -> str:
    return f"{n} four-bars" if n > 1 else "1 four-bar"


def main() -> int:
    """Prints a Markdown table."""
    parser = argparse.ArgumentParser(prog="bench_constraints", description=__doc__)
    parser.add_argument("--models", nargs="*", default=MODELS, help="of models/NAME.py (default: %(default)s)")
    parser.add_argument("--loops", nargs="*", type=int, default=LOOPS, help="numbers of four-bars (%(default)s)")
    parser.add_argument("--method", default="tmt", help="formulation (default: %(default)s)")
    parser.add_argument("--operations", action="store_true", help="count operations only: nothing is compiled")
    parser.add_argument("--store", type=Path, default=ROOT / "out" / "bench_constraints.json", help="(%(default)s)")
    parser.add_argument("--picture", type=Path, help="also draw operations and ns over the number of four-bars")
    given = parser.parse_args()
    sources: dict[str, Path | int] = {name: ROOT / "models" / f"{name}.py" for name in given.models}
    sources |= {_four_bars(n): n for n in given.loops}
    found = load(given.store)
    print("\n".join([f"| | {' | '.join(TREATMENTS)} |", f"|---|{'---:|' * len(TREATMENTS)}"]), flush=True)
    for name, source in sources.items():
        costs = found.setdefault(name, {})
        for treatment in TREATMENTS:
            if treatment not in costs:
                model = four_bars(source) if isinstance(source, int) else source
                costs[treatment] = measured(model, given.method, treatment, compiled=not given.operations)
                save(given.store, found)
        cells = [str(costs[treatment] or "–") for treatment in TREATMENTS]
        print(f"| {name} | {' | '.join(cells)} |", flush=True)
    if given.picture:
        picture(found, given.picture)
    return 0


if __name__ == "__main__":
    sys.exit(main())
