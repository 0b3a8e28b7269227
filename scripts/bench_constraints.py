"""Operations and instructions of a right-hand side by each treatment of holonomic constraints.

Of models with loops, and of N four-bars that share nothing but the ground. Operations are those of the program, a
Newton iteration counted once. Instructions are those of the compiled unit at its start, on the constraints, where one
iteration is enough, counted by valgrind's callgrind; neither depends on the machine's load. ns do.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path
from typing import get_args

import bench_native
import sympy as sm
import sympy.physics.mechanics as me

from mb2fmu import Model, Parts, formulation, pipeline
from mb2fmu.errors import FormulationError
from mb2fmu.outcomes import Derivation

ROOT = Path(__file__).parents[1]
MODELS = ("four_bar", "msl_planar_four_bar", "crank_slider", "transmission", "bowl", "andrews")
LOOPS = (1, 2, 5, 10, 20, 50, 100)
TREATMENTS = tuple(t for t in get_args(formulation.Constraints) if t != "auto")


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


def cost(derivation: Derivation) -> str:
    """Operations; instructions and ns of one x' of the compiled unit."""
    built = pipeline.build(derivation)
    with tempfile.TemporaryDirectory() as folder:
        program = bench_native.compiled(built.core, built.interface, Path(folder), by_hand=False)
        count = bench_native.instructions(program, "model")
        spent = bench_native.fastest(program, ["model"], rounds=3)["model"]
    return f"{derivation.operations:,} / {'–' if count is None else f'{count:,.0f}'} / {spent:,.0f}"


def row(model: Path | Model, name: str, method: str) -> str:
    """A line of the table."""
    cells = []
    for treatment in TREATMENTS:
        try:
            derivation = pipeline.derive(model, method=method, constraints=treatment)  # type: ignore[arg-type]
        except FormulationError:
            cells.append("–")
            continue
        cells.append(cost(derivation))
    return f"| {name} | {' | '.join(cells)} |"


def main() -> int:
    """Prints Markdown tables."""
    parser = argparse.ArgumentParser(prog="bench_constraints", description=__doc__)
    parser.add_argument("--models", nargs="*", default=MODELS, help="of models/NAME.py (default: %(default)s)")
    parser.add_argument("--loops", nargs="*", type=int, default=LOOPS, help="numbers of four-bars (%(default)s)")
    parser.add_argument("--method", default="tmt", help="formulation (default: %(default)s)")
    given = parser.parse_args()
    head = [f"| | {' | '.join(TREATMENTS)} |", f"|---|{'---:|' * len(TREATMENTS)}"]
    print("\n".join(head), flush=True)
    for name in given.models:
        print(row(ROOT / "models" / f"{name}.py", name, given.method), flush=True)
    for n in given.loops:
        print(row(four_bars(n), f"{n} four-bars", given.method), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
