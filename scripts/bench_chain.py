"""x' of spatial chains of revolute joints in generated C code, in one run with CasADi's and Pinocchio's.

The chain is ``models/chain.py``. CasADi is given the articulated-body algorithm in spatial vectors, as it stands in
Featherstone's book, its symbolic expressions shared (``cse``), and its C code is compiled by the system's compiler with
-O3 -march=native; Pinocchio's algorithm, a library of templates, is compiled into ``bench_chain.cpp`` with the same
options (its headers come with the package ``pin``, Eigen's with ``casadi``). All have the parameters as
numbers that can be changed. Programs are timed in turns, the fastest of many rounds counts; instructions are
counted by callgrind. Accelerations of all are compared before anything is measured.
"""

from __future__ import annotations

import argparse
import dataclasses
import importlib.util
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import casadi as ca
import numpy as np
import sympy as sm
import sympy.physics.mechanics as me
from bench_native import COUNTED, counted

from mb2fmu import pipeline
from mb2fmu.compiler import derivatives
from mb2fmu.compiler.derivatives.derivative_entry_points import DIFFERENTIATED_ENTRIES
from mb2fmu.compiler.program import count_operations
from mb2fmu.compiler.program.program_pruning import prune_program
from mb2fmu.compiler.program.scalar_program import ProgramEntryPoint, ScalarProgram
from mb2fmu.fmu import emit_c
from mb2fmu.fmu.interface import FmuTarget, form_fmu_interface
from mb2fmu.fmu.toolchain import compile_entry_point
from mb2fmu.fmu.toolchain.compiled_batch_functions import find_widest_vector_variant
from mb2fmu.fmu.toolchain.compilers import Variant, compiler_options, find_compiler
from mb2fmu.fmu.toolchain.target_platforms import host_platform
from mb2fmu.pipeline.derivation.pipeline_results import DerivationResult

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "reference" / "performance_chains.md"
JOINTS = (2, 6, 7, 12, 30, 100, 300)
CASADI_MOST = 30
"""Joints; its compiler takes minutes for more."""
KANE_JOINTS = (2, 4, 6, 7)
"""SymPy takes minutes for more."""
DERIVATION = "\n## Derivation\n"
BATCH = 1_000
"""Instances."""
OPTIONS = ("-O3", "-march=native")
PINOCCHIO = (
    *("-std=c++17", "-DNDEBUG", "-DBOOST_MPL_LIMIT_LIST_SIZE=30", "-DBOOST_MPL_CFG_NO_PREPROCESSED_HEADERS"),
    *("-DBOOST_MPL_LIMIT_VECTOR_SIZE=30", "-DBOOST_FUSION_INVOKE_MAX_ARITY=12", "-w"),
)
"""What its own package says to its users' compilers."""
ROUNDS = 25
NUMBERS = (0.3, 0.1, 0.2, 0.15, 0.02, 0.05, 1.5, 0.1, 0.01, 0.02, 0.2, 0.03, 0.3, 9.81)
"""Of the chain: offset of the next joint, mass centre, mass, central inertia (xx, xy, xz, yy, yz, zz), gravity."""
OTHERS = ("casadi", "pinocchio", "kane")
BUILDS: dict[str, tuple[Variant, bool]] = {"any": ("any", False), "avx2": ("avx2", False), "fast": ("avx2", True)}
"""Variant of the equations, and whether multiply-adds are fused (``--fast``)."""


@dataclass(frozen=True, slots=True)
class Side:
    """One program.

    Attributes:
        file: The program.
        operations: Of x'; 0: not known.
        arguments: That come first.
    """

    file: Path
    operations: int = 0
    arguments: tuple[str, ...] = ()

    def command(self, calls: int) -> list[str]:
        """Runs so many calls."""
        return [str(self.file), *self.arguments, str(calls)]


@dataclass(frozen=True, slots=True)
class Row:
    """One chain: s of derivation, ns and instructions by the name of a side, operations, those of derivatives too."""

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
    parser.add_argument("--without", nargs="+", default=(), choices=OTHERS, help="what others not to measure")
    parser.add_argument("--derivation", action="store_true", help="only what the derivation takes, beside KanesMethod")
    parser.add_argument("--output", type=Path, default=PAGE, help="page to write")
    chosen = parser.parse_args(arguments)
    others = set(OTHERS) - set(chosen.without)
    derived(2)  # imports what is imported on first use
    written = chosen.output.read_text(encoding="utf-8") if chosen.output.exists() else ""
    before, mark, measured = written.partition(DERIVATION)
    if chosen.derivation:
        chosen.output.write_text(before + derivation_section(KANE_JOINTS), encoding="utf-8")
        return 0
    rows = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        library = compiled_pinocchio(folder) if "pinocchio" in others else None
        for n in sorted(chosen.joints):
            rows.append(row(n, folder / f"n{n}", chosen.rounds, others, library))
            print(line(rows[-1]), flush=True)
            chosen.output.write_text(page(rows) + mark + measured, encoding="utf-8")
    if "kane" in others:
        chosen.output.write_text(page(rows) + derivation_section(KANE_JOINTS), encoding="utf-8")
    return 0


def row(n: int, folder: Path, rounds: int, others: set[str], library: Path | None) -> Row:
    """Derives, prints, compiles, compares, and measures a chain."""
    folder.mkdir()
    derivation, derive = derived(n)
    sides = ours(derivation, n, folder)
    if "casadi" in others and n <= CASADI_MOST:
        sides["casadi"] = theirs(n, folder)
    if library:
        sides["pinocchio"] = Side(library, arguments=(str(n), *map(repr, NUMBERS)))
    said = {name: np.array(run(side, 1, "values").split(), dtype=float) for name, side in sides.items()}
    for name, values in said.items():
        np.testing.assert_allclose(values, said["any"], rtol=1e-8, err_msg=name)
    tangent = derivatives.differentiate_forward(derivation.program, "rhs")
    adjoint = derivatives.differentiate_reverse(derivation.program, "rhs")
    return Row(
        joints=n,
        derive=derive,
        operations={name: side.operations for name, side in sides.items()},
        nanoseconds=fastest(sides, n, rounds) | many(derivation, n, rounds),
        instructions={name: counted(sides[name].command(0)[:-1], COUNTED) for name in BUILDS},
        tangent=total(tangent, "jvp_rhs"),
        adjoint=total(adjoint, "vjp_rhs"),
    )


def derived(n: int) -> tuple[DerivationResult, float]:
    """A chain's program, and what it took from the model, in s."""
    model = pipeline.load(ROOT / "models" / "chain.py", {"n": n})
    begin = time.perf_counter()
    derivation = pipeline.derive(model, method="recursive-articulated")
    return derivation, time.perf_counter() - begin


def kanes_method(n: int) -> float:
    """What SymPy's own KanesMethod takes to form M and f of such a chain, its joints there already, in s."""
    m, g, *numbers = sm.symbols("m g p_x p_y p_z c_x c_y c_z I_xx I_yy I_zz I_xy I_yz I_xz")
    ground = me.RigidBody("ground")
    system = me.System.from_newtonian(ground)
    parent = ground
    for i in range(n):
        body = me.RigidBody(f"body{i}", mass=m)
        body.central_inertia = me.inertia(body.frame, *numbers[6:])
        frame = parent.frame
        offset = numbers[:3] if i else [0, 0, 0]
        centre = [0, 0, 0] if parent is ground else numbers[3:6]
        place = sum(((o - c) * axis for o, c, axis in zip(offset, centre, frame, strict=True)), me.Vector(0))
        behind = sum((-c * axis for c, axis in zip(numbers[3:6], body.frame, strict=True)), me.Vector(0))
        q, u, torque = me.dynamicsymbols(f"q{i} u{i} tau{i}")
        axis = (frame.z, frame.y, frame.x)[i % 3]
        joint = me.PinJoint(f"joint{i}", parent, body, q, u, parent_point=place, child_point=behind, joint_axis=axis)
        system.add_joints(joint)
        system.add_actuators(me.TorqueActuator(torque, axis, body, parent))
        parent = body
    system.apply_uniform_gravity(-g * ground.frame.z)
    begin = time.process_time()
    system.form_eoms()
    return time.process_time() - begin


def derivation_section(joints: Sequence[int]) -> str:
    """A table of what derivations take in s of CPU, which others that use the machine change least."""
    lines = []
    for n in joints:
        begin = time.process_time()
        derived(n)
        ours, theirs = time.process_time() - begin, kanes_method(n)
        lines.append(f"| {n} | {ours:.2f} | {theirs:.2f} | {theirs / ours:.0f} |")
        print(lines[-1], flush=True)
    return f"""{DERIVATION}
Seconds of CPU, after imports, of one run of `scripts/bench_chain --derivation`: here from the model's file to the
program of x', outputs and energies; by the own `KanesMethod` of SymPy {sm.__version__} to M and f, which are not yet
code, of the same chain with its joints built already.

| joints | here | KanesMethod | times |
|---:|---:|---:|---:|
{chr(10).join(lines)}
"""


def total(program: ScalarProgram, entry: str) -> int:
    """Operations of an entry point."""
    return sum(count_operations(program, entry).values())


def ours(
    derivation: DerivationResult, n: int, folder: Path, builds: Collection[str] = tuple(BUILDS)
) -> dict[str, Side]:
    """The FMU's equations of x' in some builds."""
    native = motion_only(derivation.program)
    target = FmuTarget("2", "native")
    interface = form_fmu_interface(derivation.definition, derivation.equations, derivation.program, target)
    sources = emit_c.emit_fmu_sources(native, interface)
    for path in sources:
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(sources[path])
    values = [parameter.value for parameter in derivation.definition.parameters if not parameter.calculated]
    operations = total(derivation.program, "rhs")
    sides = {}
    for name in builds:
        variant, fast = BUILDS[name]
        flags = [*compiler_options("zig", host_platform(), fast=fast, variant=variant), f"-I{folder / 'sources'}"]
        units = [str(folder / "sources" / unit) for unit in emit_c.list_translation_units(sources)[1:]]
        defines = [f"-DN={n}", f"-DPARAMETERS={','.join(map(repr, values))}"]
        program = folder / name
        command = [*find_compiler("zig").command, *flags, *defines, str(ROOT / "scripts" / "bench_chain.c"), *units]
        subprocess.run([*command, "-o", str(program), "-lm"], check=True, timeout=900)
        sides[name] = Side(program, operations)
    return sides


def motion_only(program: ScalarProgram) -> derivatives.ProgramWithDerivatives:
    """A program that offers x' and no other results."""
    wanted = (
        *DIFFERENTIATED_ENTRIES,
        "tangent",
        "adjoint",
        "jacobian",
        "jacobian_time",
        "pivots",
        "divisors",
        "project",
    )
    none = {name: ProgramEntryPoint(name, (), ()) for name in wanted}
    kept = {name: program.entries[name] for name in ("rhs", "pivots", "divisors") if name in program.entries}
    small = prune_program(dataclasses.replace(program, entries=none | kept))
    nothing = np.array([], dtype=np.intp)
    return derivatives.ProgramWithDerivatives(small, nothing, nothing, nothing)


# --- Pinocchio --------------------------------------------------------------------------------------------------------


def compiled_pinocchio(folder: Path, source: str = "bench_chain.cpp") -> Path:
    """A program of this folder with Pinocchio's algorithms: that of chains of any length; takes minutes to compile."""
    found = importlib.util.find_spec("pinocchio")
    assert found is not None
    assert found.origin is not None
    prefix = next(path for path in Path(found.origin).parents if path.name == "cmeel.prefix")
    includes = [f"-I{prefix / 'include'}", f"-I{Path(ca.__file__).parent / 'include' / 'eigen3'}"]
    program = folder / "pinocchio"
    command = ["c++", *OPTIONS, *PINOCCHIO, *includes, str(ROOT / "scripts" / source), "-o", str(program)]
    subprocess.run(command, check=True, timeout=1_800)
    return program


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
    centre, mass, (xx, xy, xz, yy, yz, zz) = np.array(NUMBERS[3:6]), NUMBERS[6], NUMBERS[7:13]
    inertia = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    at_joint = inertia + mass * (centre @ centre * np.eye(3) - np.outer(centre, centre))
    values = [*NUMBERS[:7], *at_joint.ravel().tolist(), NUMBERS[13]]
    compiler = [*find_compiler("cc").command, *OPTIONS, "-fno-math-errno"]
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
    command = [*side.command(calls), *more]
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=600).stdout


def fastest(sides: dict[str, Side], n: int, rounds: int) -> dict[str, float]:
    """ns of one call, in turns."""
    calls = max(20, 20_000 // n)
    times: dict[str, list[float]] = {name: [] for name in sides}
    for _ in range(rounds):
        for name, side in sides.items():
            times[name].append(float(run(side, calls)))
    return {name: min(each) for name, each in times.items()}


def many(derivation: DerivationResult, n: int, rounds: int) -> dict[str, float]:
    """ns per instance of x' of many instances at once, from Python: by AVX2, and by the widest vectors there are."""
    x0, r0, p0 = pipeline.start_values(derivation)
    x = x0 * np.linspace(0.5, 1.5, BATCH)[:, None]
    out = np.empty_like(x)
    found = {}
    variants: set[Variant] = (
        {"avx2", find_widest_vector_variant()} if find_widest_vector_variant() != "any" else {"any"}
    )
    for variant in sorted(variants):
        function = compile_entry_point(derivation.program, variant=variant)
        times = []
        for _ in range(max(5, min(20 * rounds, 20_000 // n))):
            begin = time.perf_counter()
            function(0.0, x, r0, p0, out=out)
            times.append(time.perf_counter() - begin)
        found[f"{variant} batch"] = 1e9 * min(times) / BATCH
    return found


def line(row: Row) -> str:
    """A row of the table."""
    cells = [f"{row.joints}", f"{row.derive:.2f}"]
    casadi = row.operations.get("casadi")
    cells.append(f"{row.operations['any']:,}" + (f" ({casadi:,})" if casadi else ""))
    reference = row.nanoseconds.get("casadi")
    for name in ("pinocchio", "casadi", *BUILDS):
        if name not in row.nanoseconds:
            cells.append("")
            continue
        count = row.instructions.get(name)
        ratio = f" **{row.nanoseconds[name] / reference:.2f}**" if reference and name in BUILDS else ""
        cells.append(f"{row.nanoseconds[name]:,.0f}{'' if count is None else f' ({count:,.0f})'}{ratio}")
    for name in ("avx2 batch", "avx512 batch"):
        if name in row.nanoseconds:
            cells.append(f"{row.nanoseconds[name]:,.0f} ({row.nanoseconds['avx2'] / row.nanoseconds[name]:.1f})")
        else:
            cells.append("")
    cells += [f"{value / row.operations['any']:.2f}" for value in (row.tangent, row.adjoint)]
    return f"| {' | '.join(cells)} |"


def page(rows: Sequence[Row]) -> str:
    """The page."""
    return f"""# Performance of chains

Written by `scripts/bench_chain`; do not edit. One run on one machine: times depend on it, ratios much less, numbers of
instructions not at all.

The chain of `models/chain.py`: n bodies in space on revolute joints about z, y, x, z, …, all ten inertial parameters
general, all of them tunable, by `--method recursive-articulated`. One x' in the generated C code, beside the
articulated-body algorithm of Pinocchio {version("pin")} (C++, `-O3 -march=native`) and the same in C code that
CasADi {version("casadi")} generates (`cse`, `-O3 -march=native`); accelerations of all agree.

- *derive*: from the model to the program, after imports, in s ([beside SymPy's](#derivation)).
- *operations*: of x' (CasADi's instructions).
- *Pinocchio*, *CasADi*: ns of the accelerations; callgrind does not know all that `-march=native` may give.
- *any*, *avx2*: ns of one x' (instructions by callgrind) **ratio to CasADi's** of the build that has the same bits
  everywhere, on any processor and on one with AVX2; *fast*: by `--fast`, with fused multiply-adds.
- *batch*: ns per instance of {BATCH:,} at once, the call from Python included ([many at once](batches.md)), with the
  bits of *any* (how many times the throughput of *avx2* that is): 4 side by side with AVX2, 8 with AVX-512.
- *tangent*, *adjoint*: operations of one directional derivative and of one adjoint of x' by states, inputs, parameters
  and time, as multiples of x'.

| joints | derive | operations | Pinocchio | CasADi | any | avx2 | fast | batch, AVX2 | AVX-512 | tangent | adjoint |
|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|
{chr(10).join(map(line, rows))}
"""


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
