"""x' of robots in generated C code, in one run with Pinocchio's: scripts/bench_robots [FILE.urdf …].

Without arguments: the robots of ``docs/pictures``. Pinocchio's articulated-body algorithm, a library of templates, is
compiled with -O3 -march=native (its headers come with the package ``pin``, Eigen's with ``casadi``). Ours is what an
FMU has, for any processor and for AVX2; damping is part of both, the rates of coordinates of ours only. Joints that
mimic others move by themselves, since ``aba`` leaves mimics out. Accelerations are compared before anything is
measured; the programs are timed in turns by the processor's time, since a busy machine interrupts the slower one more
often; the fastest of many rounds counts.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pinocchio as pin
from bench_chain import BUILDS, ROOT, compiled_pinocchio, motion_only, total

from mb2fmu import pipeline
from mb2fmu.fmu import emit_c
from mb2fmu.fmu.interface import FmuTarget, form_fmu_interface
from mb2fmu.fmu.toolchain.compilers import compiler_options, find_compiler
from mb2fmu.fmu.toolchain.target_platforms import host_platform
from mb2fmu.robots.tree.robot_mechanics_records import RobotMechanics

ROBOTS = ("arm", "quadruped", "humanoid", "hand")
Array = npt.NDArray[np.float64]
_AGREE = 1e-10
"""Of the largest acceleration, and of the condition of the mass matrix in millions where that is more than 1."""


@dataclass(frozen=True, slots=True)
class Timed:
    """One program, and what it reads."""

    file: Path
    text: str = ""

    def run(self, calls: int, *more: str) -> list[float]:
        """The numbers that it says."""
        command = [str(self.file), str(calls), *more]
        done = subprocess.run(command, input=self.text, check=True, capture_output=True, text=True, timeout=600)
        return [float(word) for word in done.stdout.split()]


def main(arguments: Sequence[str]) -> int:
    """A line per robot."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--rounds", type=int, default=40)
    options = parser.parse_args(arguments)
    files = options.files or [ROOT / "docs" / "pictures" / f"{name}.urdf" for name in ROBOTS]
    print("| robot | speeds | operations of x' | any processor | AVX2 | Pinocchio | ratio (AVX2) |")
    print("|---|---:|---:|---:|---:|---:|---:|")
    with tempfile.TemporaryDirectory() as folder:
        theirs = compiled_pinocchio(Path(folder), "bench_robots.cpp")
        for file in files:
            print(row(file, theirs, Path(folder) / file.stem, options.rounds), flush=True)
    return 0


def row(file: Path, program: Path, folder: Path, rounds: int) -> str:
    """Compares and times one robot."""
    derivation = pipeline.derive(file, arguments={"mimic": "free"})
    floating = any(item.name == "base.orientation.w" for item in derivation.checked.coordinates)
    model = pin.buildModelFromUrdf(str(file), *([pin.JointModelFreeFlyer()] if floating else []))
    random = np.random.default_rng(1)
    q, v, effort = pin.randomConfiguration(model), *(0.3 * random.normal(size=(2, model.nv)))
    q[: 3 if floating else 0] = 0.1
    effort[: 6 if floating else 0] = 0.0  # no drive holds the base
    damping = np.zeros(model.nv)
    names = names_in_file(derivation)
    for parameter in derivation.checked.parameters:
        if parameter.name.endswith(".damping"):
            joint = names[parameter.name.removesuffix(".damping")]
            damping[model.idx_vs[model.getJointId(joint)]] = float(parameter.value)
    theirs = Timed(program, said(model, q, v, effort, damping))
    sides = ours(derivation, model, (q, v, effort), folder)
    accelerations = np.array(theirs.run(1, "say"))
    speeds = [at(item.name, model, model.idx_vs, names) for item in derivation.checked.speeds]
    bound = _AGREE * max(1.0, float(np.linalg.cond(mass_matrix(model, q))) / 1e6)
    for name, side in sides.items():
        found = np.array(side.run(1, "say"))[-len(speeds) :]
        error = np.max(np.abs(found - accelerations[speeds])) / np.max(np.abs(accelerations))
        assert error < bound, f"{file.name}, {name}: {error:.2g} of the largest acceleration apart, allowed {bound:.2g}"
    times: dict[str, list[float]] = {name: [] for name in (*sides, "pinocchio")}
    calls = max(100, 100_000 // model.nv)
    for _ in range(rounds):
        for name, side in {**sides, "pinocchio": theirs}.items():
            times[name] += side.run(calls)
    best = {name: min(each) / 1e3 for name, each in times.items()}
    operations = total(derivation.program, "rhs")
    cells = [f"{best[name]:.2f} µs" for name in (*sides, "pinocchio")]
    ratio = best["avx2"] / best["pinocchio"]
    return f"| {file.stem} | {model.nv} | {operations:,} | {' | '.join(cells)} | {ratio:.2f} |"


def names_in_file(derivation: pipeline.DerivationResult) -> Mapping[str, str]:
    """Name of a joint in our variables → its name in the file, which may have signs that FMI does not allow."""
    robot = derivation.checked.mechanics
    assert isinstance(robot, RobotMechanics)
    return {each.name: robot.tree.parts[i].moving_joint.name for i, each in robot.variables.items()}


def at(name: str, model: pin.Model, places: Sequence[int], names: Mapping[str, str]) -> int:
    """Where a variable of ours stands among Pinocchio's: ``elbow.speed``, ``base.orientation.w``."""
    base, _, word = name.partition(".")
    if names[base] in model.names and base != "base":
        return int(places[model.getJointId(names[base])])
    order = {"position": 0, "velocity": 0, "orientation": 3, "angular_velocity": 3}
    kind, axis = word.split(".")
    return order[kind] + "xyzw".index(axis)


def mass_matrix(model: pin.Model, q: Array) -> Array:
    """All of it; Pinocchio fills the upper triangle."""
    upper: Array = np.triu(pin.crba(model, model.createData(), q))
    whole: Array = upper + np.triu(upper, 1).T
    return whole


def said(model: pin.Model, q: Array, v: Array, effort: Array, damping: Array) -> str:
    """A robot and its state, as ``bench_robots.cpp`` reads them."""
    lines = [str(model.njoints - 1)]
    for i in range(1, model.njoints):
        name = model.joints[i].shortname()
        kind = "floating" if name == "JointModelFreeFlyer" else name.removeprefix("JointModel")
        if kind == "RevoluteUnaligned":
            kind = " ".join(["R", *map(repr, map(float, model.joints[i].extract().axis))])
        assert re.fullmatch(r"floating|[RP][XYZ]|R .*", kind), f"{model.names[i]} is {name}, which is not compared"
        place, inertia = model.jointPlacements[i], model.inertias[i]
        numbers = [*place.rotation.ravel(), *place.translation, inertia.mass, *inertia.lever, *inertia.inertia.ravel()]
        lines.append(" ".join([kind, str(model.parents[i]), *map(repr, map(float, numbers))]))
    return "\n".join([*lines, *(" ".join(map(repr, map(float, each))) for each in (q, v, effort, damping))])


def ours(
    derivation: pipeline.DerivationResult, model: pin.Model, state: tuple[Array, Array, Array], folder: Path
) -> Mapping[str, Timed]:
    """The FMU's equations of x' for any processor and for AVX2."""
    q, v, effort = state
    d = derivation.checked
    interface = form_fmu_interface(
        derivation.definition, derivation.equations, derivation.program, FmuTarget("2", "native")
    )
    sources = emit_c.emit_fmu_sources(motion_only(derivation.program), interface)
    for path in sources:
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(sources[path])
    names = names_in_file(derivation)
    places = [at(item.name, model, model.idx_qs, names) for item in d.coordinates]
    last = places.index(model.nq - 1)  # which theirs moves
    x = [*q[places], *(v[at(item.name, model, model.idx_vs, names)] for item in d.speeds)]
    given = {
        "PARAMETERS": [p.value for p in derivation.definition.parameters if not p.calculated],
        "STATES": x,
        "INPUTS": [effort[at(item.name, model, model.idx_vs, names)] for item in d.inputs],
    }
    defines = [f"-D{name}={','.join(repr(float(value)) for value in values)}" for name, values in given.items()]
    sides = {}
    for name in ("any", "avx2"):
        variant, fast = BUILDS[name]
        flags = [*compiler_options("zig", host_platform(), fast=fast, variant=variant), f"-I{folder / 'sources'}"]
        units = [str(folder / "sources" / unit) for unit in emit_c.list_translation_units(sources)[1:]]
        command = [*find_compiler("zig").command, *flags, *defines, f"-DMOVED={last}"]
        command += [str(ROOT / "scripts" / "bench_robots.c"), *units, "-o", str(folder / name), "-lm"]
        subprocess.run(command, check=True, timeout=900)
        sides[name] = Timed(folder / name)
    return sides


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
