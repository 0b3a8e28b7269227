"""Equations as C and as MATLAB code: they run by themselves, and give what the FMU and the program give."""

from __future__ import annotations

import csv
import ctypes
import io
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import sympy.physics.mechanics as me
from click.testing import CliRunner
from source_programs import QUICKLY, compile_c

from mb2fmu import Latch, Model, pipeline, validation
from mb2fmu.cli import commands
from mb2fmu.compiler import derivatives
from mb2fmu.compiler.evaluation import make_evaluator
from mb2fmu.compiler.program.program_builder import ProgramBuilder
from mb2fmu.compiler.program.scalar_program import (
    PiecewisePolynomial,
    ProgramVariableLayout,
    read_initial_discrete_memory,
)
from mb2fmu.errors import EmitError
from mb2fmu.fmu.package import write_fmu_archive
from mb2fmu.fmu.packaged_templates import read_packaged_file
from mb2fmu.targets import SOURCE_TARGETS
from mb2fmu.targets.matlab.matlab_target_files import FIXED_FILES, MatlabFunctionPrinter

MODELS = Path(__file__).parents[3] / "models"

# A plain chain with inputs, projected loops, remembered loops, stiff muscles with tables of states, quaternions.
CASES = [
    ("cart_pole", "auto"),
    ("four_bar", "attractor"),
    ("four_bar", "partition"),
    ("muscle_arm", "auto"),
    ("rigid_body", "auto"),
]
C_BY_DAY = {("four_bar", "partition")}  # remembered loops; emit_c has the bits of other functions
REPEATED_BY_OCTAVE = {("cart_pole", "auto"), ("four_bar", "attractor"), ("rigid_body", "auto")}


EVENT_SOURCES = {
    "stick_slip_belt": "friction that sticks",
    "bouncing_ball": "event impact",
    "latched": "latch catch",
}
"""Models whose motion is more than x', and what the refusal names."""

WITHOUT_EVENTS = [row.name for row in SOURCE_TARGETS.values() if not row.has_events]


@cache
def derived(name: str, constraints: str = "auto") -> pipeline.DerivationResult:
    """One of the models, or the mass that is caught."""
    return pipeline.derive(latched() if name == "latched" else MODELS / f"{name}.py", constraints=constraints)


@pytest.mark.parametrize(
    ("name", "constraints"),
    [pytest.param(*case, marks=pytest.mark.repeats if case not in C_BY_DAY else ()) for case in CASES],
)
@pytest.mark.skipif(sys.platform == "win32", reason="the library is loaded by its POSIX name")
def test_c_has_the_bits_of_the_fmu(name: str, constraints: str, tmp_path: Path) -> None:
    derivation = derived(name, constraints)
    pipeline.export_target_source_code(derivation, "c", tmp_path / "c")
    printed = subprocess.run([compile_c(tmp_path / "c", "experiment")], capture_output=True, check=True, text=True)
    names, *rows = csv.reader(io.StringIO(printed.stdout))
    table = np.array(rows, dtype=float)

    build, path = pipeline.build(derivation, fmi="3"), tmp_path / "unit.fmu"
    write_fmu_archive(build.core, path)
    run = validation.form_experiment_values(derivation.definition)
    interface = build.interface
    states = [v.name for v in sorted(interface.variables_from_sources("state"), key=lambda v: v.index)]
    assert names[1 : len(states) + 1] == states
    unit = validation.simulate_fmu(path, run, states, kind="CoSimulation")
    np.testing.assert_array_equal(table[:, 1 : len(states) + 1], unit.values)


def test_c_functions_are_those_of_the_program(tmp_path: Path) -> None:
    derivation = derived("cart_pole")
    pipeline.export_target_source_code(derivation, "c", tmp_path)
    library = ctypes.CDLL(str(compile_c(tmp_path, "cart_pole.so", "-shared", "-fPIC", *QUICKLY)))
    name = derivation.definition.name
    create = library[f"{name}_create"]
    create.restype = ctypes.c_void_p
    model = ctypes.c_void_p(create())
    program = derivation.program
    slopes = derivatives.form_jacobian(program, "rhs", ("states",))
    n, m = len(program.layout.states), len(program.entries["outputs"].labels)
    generator = np.random.default_rng(5)
    _, r0, p0 = pipeline.start_values(derivation)
    for _ in range(20):
        p = p0 * generator.uniform(0.7, 1.3, len(p0))
        x, r, t = generator.uniform(-1.0, 1.0, n), generator.uniform(-2.0, 2.0, len(r0)), generator.uniform(0.0, 3.0)
        arrays = [np.ascontiguousarray(a) for a in (x, r)]
        inputs = [ctypes.c_double(t), *(a.ctypes.data_as(ctypes.c_void_p) for a in arrays)]
        assert library[f"{name}_set_parameters"](model, p.ctypes.data_as(ctypes.c_void_p)) == 0
        dense = np.zeros((n, n))
        dense[slopes.rows, slopes.columns] = make_evaluator(slopes.program, slopes.entry)(t, x, r, p)
        for function, size, expected in (
            ("derivatives", n, make_evaluator(program, "rhs")(t, x, r, p)),
            ("outputs", m, make_evaluator(program, "outputs")(t, x, r, p)),
            ("jacobian", n * n, dense.ravel()),
        ):
            result = np.empty(size)
            assert library[f"{name}_{function}"](model, *inputs, result.ctypes.data_as(ctypes.c_void_p)) == 0
            np.testing.assert_allclose(result, expected, rtol=1e-12, atol=1e-12)
    library[f"{name}_destroy"](model)


OCTAVE = shutil.which("octave-cli")


def octave(folder: Path, code: str) -> str:
    assert OCTAVE
    done = subprocess.run(
        [OCTAVE, "--no-gui", "--norc", "--eval", code],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=600,
        check=True,
    )
    return done.stdout


@pytest.mark.skipif(OCTAVE is None, reason="octave-cli is not installed")
@pytest.mark.parametrize(
    ("name", "constraints"),
    [pytest.param(*case, marks=pytest.mark.repeats if case in REPEATED_BY_OCTAVE else ()) for case in CASES],
)
def test_matlab_code_runs_in_octave(name: str, constraints: str, tmp_path: Path) -> None:
    derivation = derived(name, constraints)
    pipeline.export_target_source_code(derivation, "matlab", tmp_path)
    program, definition = derivation.program, derivation.definition
    x0, r0, p0 = pipeline.start_values(derivation)
    memory = "m.m0" if program.layout.memory else ""
    generator = np.random.default_rng(7)
    slopes = derivatives.form_jacobian(program, "rhs", ("states",))
    code = [f"m = {definition.name}();"]
    expected = []
    first = read_initial_discrete_memory(program)
    for _ in range(5):
        x = x0 + generator.uniform(-0.05, 0.05, len(x0))
        r, t = r0 + generator.uniform(-1.0, 1.0, len(r0)), float(generator.uniform(0.0, 3.0))
        numbers = ", ".join(f"[{'; '.join(map(repr, vector.tolist()))}]" for vector in (x, r, p0))
        arguments = f"{t!r}, {numbers}" + (f", {memory}" if memory else "")
        code += [f"printf('%.17g\\n', m.{name}({arguments}));" for name in ("rhs", "outputs", "jacobian")]
        dense = np.zeros(slopes.shape)
        dense[slopes.rows, slopes.columns] = make_evaluator(slopes.program, slopes.entry)(t, x, r, p0, first)
        expected += [make_evaluator(program, e)(t, x, r, p0, first) for e in ("rhs", "outputs")] + [dense.T.ravel()]
    found = np.array(octave(tmp_path, "\n".join(code)).split(), dtype=float)
    wanted = np.concatenate(expected)
    np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-9 * (1.0 + np.abs(wanted).max()))


@pytest.mark.skipif(OCTAVE is None, reason="octave-cli is not installed")
def test_matlab_tables_are_those_of_the_program(tmp_path: Path) -> None:
    b = ProgramBuilder(ProgramVariableLayout(states=("x",)))
    curve = PiecewisePolynomial("curve", (-1.0, 0.5, 1.0, 2.0), ((1.0, -2.0, 0.5), (0.3, 0.1, -0.7), (2.0, 0.0, 1.5)))
    b.entry("outputs", ("y", "slope"), [b.table(curve, order, b.state(0)) for order in (0, 1)])
    program, points = b.build(), (-1.5, -0.2, 0.5, 0.8, 1.0, 3.0)
    fixed = "\n".join(read_packaged_file("mb2fmu.targets.matlab", path).decode() for path in FIXED_FILES)
    code = f"1;\n{MatlabFunctionPrinter(program, 'values').function('outputs')}\n{fixed}"
    (tmp_path / "check.m").write_text(code, encoding="utf-8")
    calls = [f"printf('%.17g\\n', values(0, {x!r}, [], [], []));" for x in points]
    found = np.array(octave(tmp_path, "\n".join(["source check.m", *calls])).split(), dtype=float)
    wanted = np.ravel([make_evaluator(program, "outputs")(0.0, [x], (), ()) for x in points])
    np.testing.assert_allclose(found, wanted, rtol=1e-14)


@pytest.mark.skipif(OCTAVE is None, reason="octave-cli is not installed")
def test_matlab_experiment_moves_as_the_fmu_does(tmp_path: Path) -> None:
    model = pipeline.load(MODELS / "cart_pole.py")
    model.experiment(stop=1.0, step=0.05, tolerance=1e-6, signals=model.default_experiment.signals)
    derivation = pipeline.derive(model)
    pipeline.export_target_source_code(derivation, "matlab", tmp_path)
    build, path = pipeline.build(derivation, fmi="3"), tmp_path / "unit.fmu"
    write_fmu_archive(build.core, path)
    name = derivation.definition.name
    text = octave(tmp_path, f"[t, x, y] = {name}_experiment(); printf('%.17g\\n', x');")
    names = [v.name for v in sorted(build.interface.variables_from_sources("state"), key=lambda v: v.index)]
    unit = validation.simulate_fmu(
        path, validation.form_experiment_values(derivation.definition), names, kind="CoSimulation"
    )
    states = np.array(text.split(), dtype=float).reshape(unit.values.shape)
    np.testing.assert_allclose(states, unit.values, atol=2e-4)


def test_the_command_writes_files_and_refuses_a_folder_for_text(tmp_path: Path) -> None:
    runner, model = CliRunner(), str(MODELS / "simple_pendulum.py")
    done = runner.invoke(commands, ["equations", model, "--format", "matlab", "-o", str(tmp_path / "m")])
    assert done.exit_code == 0, done.output
    assert {path.suffix for path in (tmp_path / "m").iterdir()} == {".m"}
    refused = runner.invoke(commands, ["equations", model, "-o", str(tmp_path / "n")])
    assert refused.exit_code == 2
    assert not (tmp_path / "n").exists()


@pytest.mark.parametrize(
    ("name", "target"),
    [(name, target) for name in EVENT_SOURCES for target in WITHOUT_EVENTS],
)
def test_what_equations_alone_do_not_tell_is_not_printed(name, target, tmp_path):
    """Events, and modes of friction that sticks and of latches, are more than x'; Modelica has them."""
    derivation = derived(name)
    with pytest.raises(EmitError, match=EVENT_SOURCES[name]):
        pipeline.export_target_source_code(derivation, target, tmp_path)
    assert not any(tmp_path.iterdir())


def test_fmus_of_python_refuse_friction_that_sticks(tmp_path):
    with pytest.raises(EmitError, match="friction that sticks, which FMUs of Python do not have"):
        pipeline.export(MODELS / "stick_slip_belt.py", tmp_path, backend="python")


def latched() -> Model:
    """A mass that is caught."""
    x, v = me.dynamicsymbols("x v")
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    P = O.locatenew("P", x * N.x)
    P.set_vel(N, v * N.x)
    model = Model("Latched", me.KanesMethod(N, [x], [v], [x.diff() - v], bodies=[me.Particle("mass", P, 2)]))
    model.coordinate(x, 0.0, "m")
    model.speed(v, 1.0, "m/s")
    model.add(Latch("catch", x - 1, close=x >= 1, within=1e-9))
    return model


def test_the_command_of_fmus_writes_source_code_with_their_treatment_of_loops(tmp_path: Path) -> None:
    """Options that only FMUs have are refused, each by name, and nothing is written."""

    def exported(*words: str) -> tuple[int, str]:
        given = ["export", str(MODELS / "four_bar.py"), "--target", "c", "-o", str(tmp_path / "four"), *words]
        done = CliRunner().invoke(commands, given)
        return done.exit_code, done.output

    code, said = exported("--fmi", "3", "--fast")
    assert code == 2
    assert "--fmi, --fast: only an FMU has this" in said
    assert not (tmp_path / "four").exists()
    assert exported("--constraints", "explicit")[0] == 0
    derivation = pipeline.derive(MODELS / "four_bar.py", constraints="explicit")
    pipeline.export_target_source_code(derivation, "c", tmp_path / "wanted")
    found = {path.relative_to(tmp_path / "four"): path.read_bytes() for path in (tmp_path / "four").rglob("*.[ch]")}
    assert found == {p.relative_to(tmp_path / "wanted"): p.read_bytes() for p in (tmp_path / "wanted").rglob("*.[ch]")}
    assert len(found) > 3
