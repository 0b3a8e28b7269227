"""x' of spatial chains of revolute joints in generated C code, in one run with what CasADi generates for them.

The chain is ``models/chain.py``; CasADi is given the articulated-body algorithm in spatial vectors, as it stands in
Featherstone's book, its symbolic expressions shared (``cse``), and its C code is compiled by the system's compiler with
-O3 -march=native. Both sides have the parameters as arguments. Programs are timed in turns, the fastest of many rounds
counts; instructions are counted by callgrind. Accelerations of both sides are compared before anything is measured.
"""

from __future__ import annotations

import argparse
import dataclasses
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import casadi as ca
import numpy as np
from bench_native import COUNTED, counted

from mb2fmu import lowering, pipeline
from mb2fmu.emit import c
from mb2fmu.interface import Target, describe
from mb2fmu.lowering.native import RESULTS
from mb2fmu.lowering.passes import prune
from mb2fmu.lowering.program import Entry, Program
from mb2fmu.outcomes import Derivation
from mb2fmu.toolchain import compile_program
from mb2fmu.toolchain.compilers import Variant, compiling, find
from mb2fmu.toolchain.platforms import host

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "performance_chains.md"
JOINTS = (2, 6, 7, 12, 30, 100, 300)
CASADI_MOST = 30
"""Joints; its compiler takes minutes for more."""
ROUNDS = 25
BUILDS: dict[str, tuple[Variant, bool]] = {"any": ("any", False), "avx2": ("avx2", False), "fast": ("avx2", True)}
"""Variant of the equations, and whether multiply-adds are fused (``--fast``)."""


@dataclass(frozen=True, slots=True)
class Side:
    """One program.

    Attributes:
        file: The program.
        operations: Of x'.
    """

    file: Path
    operations: int


@dataclass(frozen=True, slots=True)
class Row:
    """One chain: ns and instructions by the name of a side, and what the derivatives cost in operations."""

    joints: int
    derive: float
    operations: dict[str, int]
    nanoseconds: dict[str, float]
    instructions: dict[str, float | None]
    tangent: int
    adjoint: int


def main(arguments: Sequence[str]) -> int:
    """Measures and writes the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--joints", type=int, nargs="+", default=JOINTS, help="lengths of chains")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="of which the fastest counts")
    parser.add_argument("--output", type=Path, default=PAGE, help="page to write")
    chosen = parser.parse_args(arguments)
    rows = []
    for n in sorted(chosen.joints):
        with tempfile.TemporaryDirectory() as folder:
            rows.append(row(n, Path(folder), chosen.rounds))
        print(line(rows[-1]), flush=True)
        chosen.output.write_text(page(rows), encoding="utf-8")
    return 0


def row(n: int, folder: Path, rounds: int) -> Row:
    """Derives, prints, compiles, compares, and measures a chain."""
    model = pipeline.load(ROOT / "models" / "chain.py", {"n": n})
    begin = time.perf_counter()
    derivation = pipeline.derive(model, method="recursive-articulated")
    derive = time.perf_counter() - begin
    sides = ours(derivation, n, folder)
    if n <= CASADI_MOST:
        sides["casadi"] = theirs(n, folder)
    said = {name: np.array(run(side, 1, "values").split(), dtype=float) for name, side in sides.items()}
    for name, values in said.items():
        np.testing.assert_allclose(values, said["any"], rtol=1e-8, err_msg=name)
    tangent = lowering.differentiate_forward(derivation.program, "rhs")
    adjoint = lowering.differentiate_reverse(derivation.program, "rhs")
    return Row(
        joints=n,
        derive=derive,
        operations={name: side.operations for name, side in sides.items()},
        nanoseconds=fastest(sides, n, rounds) | {"batch": many(derivation, n, rounds)},
        instructions={name: counted([str(sides[name].file)], COUNTED) for name in BUILDS},
        tangent=total(tangent, "jvp_rhs"),
        adjoint=total(adjoint, "vjp_rhs"),
    )


def total(program: Program, entry: str) -> int:
    """Operations of an entry point."""
    return sum(lowering.operation_count(program, entry).values())


def ours(derivation: Derivation, n: int, folder: Path) -> dict[str, Side]:
    """The unit's equations of x' in all builds."""
    native = motion_only(derivation.program)
    target = Target("2", "native")
    interface = describe(derivation.definition, derivation.equations, derivation.program, target)
    sources = c.emit(native, interface)
    for path in sources:
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(sources[path])
    values = [parameter.value for parameter in derivation.definition.parameters if not parameter.calculated]
    operations = total(derivation.program, "rhs")
    sides = {}
    for name, (variant, fast) in BUILDS.items():
        flags = [*compiling("zig", host(), fast=fast, variant=variant), f"-I{folder / 'sources'}"]
        units = [str(folder / "sources" / unit) for unit in c.translation_units(sources)[1:]]
        defines = [f"-DN={n}", f"-DPARAMETERS={','.join(map(repr, values))}"]
        program = folder / name
        command = [*find("zig").command, *flags, *defines, str(ROOT / "scripts" / "bench_chain.c"), *units]
        subprocess.run([*command, "-o", str(program), "-lm"], check=True, timeout=900)
        sides[name] = Side(program, operations)
    return sides


def motion_only(program: Program) -> lowering.NativeProgram:
    """A program that offers x' and no other results."""
    wanted = (*RESULTS, "tangent", "adjoint", "jacobian", "jacobian_time", "pivots", "divisors", "project")
    none = {name: Entry(name, (), ()) for name in wanted}
    kept = {name: program.entries[name] for name in ("rhs", "pivots", "divisors") if name in program.entries}
    small = prune(dataclasses.replace(program, entries=none | kept))
    nothing = np.array([], dtype=np.intp)
    return lowering.NativeProgram(small, nothing, nothing, nothing)


# --- CasADi -----------------------------------------------------------------------------------------------------------


def theirs(n: int, folder: Path) -> Side:
    """The same accelerations by CasADi's generated code."""
    q, u, torque, p = (ca.SX.sym(name, size) for name, size in (("q", n), ("u", n), ("t", n), ("p", 17)))
    function = ca.Function("fd", [q, u, torque, p], [ca.cse(articulated(n, q, u, torque, p))])
    here = Path.cwd()
    os.chdir(folder)  # CasADi writes into the current folder only
    try:
        function.generate("fd.c")
    finally:
        os.chdir(here)
    centre, inertia, mass = np.array([0.15, 0.02, 0.05]), [[0.1, 0.01, 0.02], [0.01, 0.2, 0.03], [0.02, 0.03, 0.3]], 1.5
    at_joint = np.array(inertia) + mass * (centre @ centre * np.eye(3) - np.outer(centre, centre))
    values = [0.3, 0.1, 0.2, *centre.tolist(), mass, *at_joint.ravel().tolist(), 9.81]
    compiler = [*find("cc").command, "-O3", "-march=native", "-fno-math-errno"]
    defines = [f"-DN={n}", "-DCASADI", f"-DWORK={function.sz_w() + 1}", f"-DPARAMETERS={','.join(map(repr, values))}"]
    program = folder / "casadi"
    subprocess.run([*compiler, "-c", str(folder / "fd.c"), "-o", str(folder / "fd.o")], check=True, timeout=900)
    command = [*compiler, *defines, str(ROOT / "scripts" / "bench_chain.c"), str(folder / "fd.o"), "-lm"]
    subprocess.run([*command, "-o", str(program)], check=True, timeout=900)
    return Side(program, function.n_instructions())


def articulated(n: int, q: Any, u: Any, torque: Any, p: Any) -> Any:
    """The articulated-body algorithm.

    Featherstone: Rigid Body Dynamics Algorithms, 2008, table 7.1; spatial vectors (angular, linear), body coordinates.
    """
    body = body_inertia(p)
    transforms: list[Any] = []
    axes, biases, inertias, forces = [], [], [], []
    velocity = ca.SX(6, 1)
    for i in range(n):
        axis = ca.SX(6, 1)
        axis[(2, 1, 0)[i % 3]] = 1
        offset = p[0:3] if i else ca.SX(3, 1)
        transforms.append(ca.sparsify(transform(rotation((2, 1, 0)[i % 3], q[i]), offset)))
        velocity = transforms[i] @ velocity + axis * u[i]
        axes.append(axis)
        biases.append(motion_product(velocity) @ (axis * u[i]))
        inertias.append(body)
        forces.append(-motion_product(velocity).T @ (body @ velocity))
    columns: list[Any] = [None] * n
    divisors, rests = columns.copy(), columns.copy()
    for i in reversed(range(n)):
        columns[i] = inertias[i] @ axes[i]
        divisors[i] = axes[i].T @ columns[i]
        rests[i] = torque[i] - axes[i].T @ forces[i]
        if i:
            rest = inertias[i] - columns[i] @ columns[i].T / divisors[i]
            force = forces[i] + rest @ biases[i] + columns[i] * (rests[i] / divisors[i])
            inertias[i - 1] = inertias[i - 1] + transforms[i].T @ rest @ transforms[i]
            forces[i - 1] = forces[i - 1] + transforms[i].T @ force
    acceleration, results = ca.SX(6, 1), []
    acceleration[5] = p[16]
    for i in range(n):
        acceleration = transforms[i] @ acceleration + biases[i]
        results.append((rests[i] - columns[i].T @ acceleration) / divisors[i])
        acceleration = acceleration + axes[i] * results[i]
    return ca.vertcat(*results)


def body_inertia(p: Any) -> Any:
    """6 × 6, about the joint: p[3:6] mass centre, p[6] mass, p[7:16] inertia."""
    inertia = ca.vertcat(ca.horzcat(p[7], p[8], p[9]), ca.horzcat(p[8], p[11], p[12]), ca.horzcat(p[9], p[12], p[15]))
    first = skew(p[6] * p[3:6])
    return ca.vertcat(ca.horzcat(inertia, first), ca.horzcat(first.T, p[6] * ca.SX.eye(3)))


def skew(v: Any) -> Any:
    """The matrix of v ×."""
    return ca.vertcat(ca.horzcat(0, -v[2], v[1]), ca.horzcat(v[2], 0, -v[0]), ca.horzcat(-v[1], v[0], 0))


def transform(rotated: Any, offset: Any) -> Any:
    """Motion vectors from parent to child coordinates, 6 × 6."""
    return ca.vertcat(ca.horzcat(rotated, ca.SX(3, 3)), ca.horzcat(-rotated @ skew(offset), rotated))


def motion_product(v: Any) -> Any:
    """The matrix of v × on motion vectors, 6 × 6."""
    return ca.vertcat(ca.horzcat(skew(v[:3]), ca.SX(3, 3)), ca.horzcat(skew(v[3:]), skew(v[:3])))


def rotation(axis: int, angle: Any) -> Any:
    """Components in the parent to components in the child, which is turned about an axis."""
    cosine, sine = ca.cos(angle), ca.sin(angle)
    rows = {
        0: ((1, 0, 0), (0, cosine, sine), (0, -sine, cosine)),
        1: ((cosine, 0, -sine), (0, 1, 0), (sine, 0, cosine)),
        2: ((cosine, sine, 0), (-sine, cosine, 0), (0, 0, 1)),
    }
    return ca.vertcat(*(ca.horzcat(*each) for each in rows[axis]))


# --- measuring --------------------------------------------------------------------------------------------------------


def run(side: Side, calls: int, *more: str) -> str:
    """What a program says."""
    command = [str(side.file), str(calls), *more]
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=600).stdout


def fastest(sides: dict[str, Side], n: int, rounds: int) -> dict[str, float]:
    """ns of one call, in turns."""
    calls = max(20, 20_000 // n)
    times: dict[str, list[float]] = {name: [] for name in sides}
    for _ in range(rounds):
        for name, side in sides.items():
            times[name].append(float(run(side, calls)))
    return {name: min(each) for name, each in times.items()}


def many(derivation: Derivation, n: int, rounds: int) -> float:
    """ns per instance of x' of 1,000 instances at once, from Python."""
    function = compile_program(derivation.program)
    x0, r0, p0 = pipeline.start_values(derivation)
    batch = x0 * np.linspace(0.5, 1.5, 1_000)[:, None]
    arrays = (np.zeros(1_000), batch, np.tile(r0, (1_000, 1)), p0)
    times = []
    for _ in range(max(3, min(rounds, 3_000 // n))):
        begin = time.perf_counter()
        function(*arrays)
        times.append(time.perf_counter() - begin)
    return 1e9 * min(times) / 1_000


def line(row: Row) -> str:
    """A row of the table."""
    cells = [f"{row.joints}", f"{row.derive:.2f}", f"{row.operations['any']:,}"]
    reference = row.nanoseconds.get("casadi")
    cells.append(f"{row.operations['casadi']:,}" if reference else "")
    for name in ("casadi", *BUILDS):
        if name not in row.nanoseconds:
            cells.append("")
            continue
        count = row.instructions.get(name)  # valgrind does not know all that -march=native may give
        ratio = f" **{row.nanoseconds[name] / reference:.2f}**" if reference and name != "casadi" else ""
        cells.append(f"{row.nanoseconds[name]:,.0f}{'' if count is None else f' ({count:,.0f})'}{ratio}")
    batch, one = row.nanoseconds["batch"], row.nanoseconds["avx2"]
    cells.append(f"{batch:,.0f} ({one / batch:.1f})")
    cells += [f"{value / row.operations['any']:.2f}" for value in (row.tangent, row.adjoint)]
    return f"| {' | '.join(cells)} |"


def page(rows: Sequence[Row]) -> str:
    """The page."""
    return f"""# Performance of chains

Written by `scripts/bench_chain`; do not edit. One run on one machine: times depend on it, ratios much less, numbers of
instructions not at all.

The chain of `models/chain.py`: n bodies in space on revolute joints about z, y, x, z, …, all ten inertial parameters
general, all of them tunable, by `--method recursive-articulated`. One x' in the generated C code, beside the
articulated-body algorithm in CasADi's generated C code (`cse`, compiled by the system's compiler with `-O3
-march=native`); accelerations of both agree.

- *derive*: from the model to the program, in s.
- *operations*: of x', and CasADi's instructions.
- *any*, *avx2*: ns of one x' (instructions by callgrind) **ratio to CasADi's** of the build that has the same bits
  everywhere, on any processor and on one with AVX2; *fast*: by `--fast`, with fused multiply-adds.
- *batch*: ns per instance of 1,000 at once from Python (`toolchain.compile_program`), same bits as *any*, and how many
  times the throughput of *avx2* that is.
- *tangent*, *adjoint*: operations of one directional derivative and of one adjoint of x' by states, inputs, parameters
  and time, as multiples of x'.

| joints | derive | operations | CasADi | CasADi ns | any | avx2 | fast | batch | tangent | adjoint |
|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|
{chr(10).join(map(line, rows))}
"""


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
