"""The files of a unit: a golden one, equal bytes for equal input, and no warning from any compiler."""

from __future__ import annotations

import dataclasses
import hashlib
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from compiled_c import ARITHMETIC, COMPILERS, WARNINGS, bare_interface, missing
from kept_compilations import compile_files
from representatives import by_night

from mb2fmu import model
from mb2fmu.compiler import lowering
from mb2fmu.compiler.derivatives.derivative_entry_points import DIFFERENTIATED_ENTRIES, add_fmu_derivatives
from mb2fmu.compiler.numerics.linear_solve import FactoredLinearSystem
from mb2fmu.compiler.program.program_builder import ProgramBuilder
from mb2fmu.compiler.program.scalar_program import Op, PiecewisePolynomial, ProgramVariableLayout, ScalarProgram
from mb2fmu.errors import EmitError
from mb2fmu.fmu import interface
from mb2fmu.fmu.emit_c import emit_equation_sources, emit_fmu_sources, list_translation_units
from mb2fmu.fmu.in_memory_file_tree import InMemoryFileTree
from mb2fmu.fmu.interface.fmu_interface import DefaultExperiment, FmuSolverSettings, FmuTarget
from mb2fmu.fmu.toolchain.fmu_platform_build import collect_included_files
from mb2fmu.mechanics import formulations, mechanism

ROOT = Path(__file__).parents[4]
GOLDEN = Path(__file__).parent / "golden_model.c"


def by_hand() -> ScalarProgram:
    """A program with something of everything that the printer knows."""
    b = ProgramBuilder(ProgramVariableLayout(states=("q", "*/ u"), inputs=("f",), parameters=("m", "k")))
    q, u, f, m, k = b.state(0), b.state(1), b.input(0), b.parameter(0), b.parameter(1)
    sine, cosine = b.unary(Op.SIN, q), b.unary(Op.COS, q)
    table = PiecewisePolynomial("spring", (0.0, 0.5, 1.0), ((1.0, 0.5), (-1.0, 2.0)))
    force = b.select(b.binary(Op.LT, q, b.constant(-0.1)), b.table(table, 0, u), b.binary(Op.MAX, f, b.mul(m, k)))
    system = FactoredLinearSystem(b, [[m, sine, k, u], [q, m, f, k], [k, cosine, m, u], [u, f, k, m]], 'a "matrix"')
    x = system.solve([force, u, b.time(), b.constant(1e-300)])
    for name in DIFFERENTIATED_ENTRIES:
        b.entry(name, [], [])
    b.entry("prepare", ["k m"], [b.mul(b.power(k, b.constant(0.3)), m)])
    b.entry("rhs", ["q", "*/ u"], [u, b.sum(x)])
    b.entry("position", ["y"], [b.unary(Op.SIN, b.add(q, u))])
    return b.build()


def unit(name: str, fmi: str) -> InMemoryFileTree:
    definition = model.check_model(model.load(ROOT / "models" / f"{name}.py"))
    equations = formulations.formulate(mechanism.read_mechanism(definition))
    program = lowering.lower_equations_to_program(equations)
    native = add_fmu_derivatives(program, adjoint=fmi != "2")
    return emit_fmu_sources(
        native, interface.form_fmu_interface(definition, equations, program, FmuTarget(fmi, "native"))
    )


def test_golden() -> None:
    """``MB2FMU_UPDATE_GOLDEN=1`` writes it anew."""
    sources = emit_fmu_sources(add_fmu_derivatives(by_hand()), bare_interface())
    text = b"".join(sources[f"sources/{name}.c"] for name in ("model", "equations", "derived"))
    if os.environ.get("MB2FMU_UPDATE_GOLDEN"):
        GOLDEN.write_bytes(text)
    assert text.decode() == GOLDEN.read_text(encoding="utf-8")


@pytest.mark.parametrize("part", [150, 3_000])
def test_accelerations_of_a_long_x_are_not_printed_again(part: int) -> None:
    """u' is read off x', be this one function or several."""
    b, random = ProgramBuilder(ProgramVariableLayout(states=("q", "u"))), np.random.default_rng(1)
    nodes = [b.state(0), b.state(1)]
    for _ in range(600):
        i, j = random.integers(len(nodes), size=2).tolist()
        nodes.append(b.binary(random.choice([Op.ADD, Op.SUB, Op.MUL]), nodes[i], b.unary(Op.SIN, nodes[j])))
    last = b.sum(nodes)
    for name in ("prepare", *DIFFERENTIATED_ENTRIES):
        b.entry(name, [], [])
    b.entry("rhs", ["q", "u"], [nodes[1], last])
    b.entry("accelerations", ["u"], [last])
    sources = emit_equation_sources(b.build(), bare_interface(), adjoint=False, part=part).sources
    text = b"".join(sources[f"sources/{name}"] for name in list_translation_units(sources)[1:]).decode()
    assert ("rhs_1" in text) is (part == 150)
    assert "equations_rhs(t, x, r, p, w, work, results)" in text
    assert "accelerations_1" not in text


@pytest.mark.repeats  # by day an FMU is the same with another one in unit/cli/test_cli
def test_the_hash_seed_changes_nothing() -> None:
    code = (
        "import importlib.util, sys; sys.path.insert(0, sys.argv[2])\n"
        "spec = importlib.util.spec_from_file_location('it', sys.argv[1]); it = importlib.util.module_from_spec(spec)\n"
        "spec.loader.exec_module(it); print(it.digest(it.unit('two_rods', '3')))"
    )
    seed = "0" if os.environ.get("PYTHONHASHSEED") == "77" else "77"  # another one than that of this process
    environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", code, __file__, str(ROOT / "tests")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == digest(unit("two_rods", "3"))


def digest(tree: InMemoryFileTree) -> str:
    return hashlib.sha256(repr([(path, tree[path]) for path in tree]).encode()).hexdigest()


def test_fmus_of_the_same_sizes_share_their_runtime() -> None:
    """Whatever they are called, how they begin and what their equations are."""
    other = dataclasses.replace(
        bare_interface(),
        model_name="Another",
        model_identifier="Another",
        token="fedcba98-89ab-5cde-8f01-23456789abcd",
        experiment=DefaultExperiment(1.0, 3.0, 0.1, 1e-4),
        solver=FmuSolverSettings("implicit", 1e-5),
    )
    files = []
    for described, operation in ((bare_interface(), Op.SIN), (other, Op.EXP)):
        b = ProgramBuilder(ProgramVariableLayout(states=("q", "u")))
        for name in DIFFERENTIATED_ENTRIES:
            b.entry(name, [], [])
        b.entry("rhs", ["q", "u"], [b.state(1), b.unary(operation, b.state(0))])
        files.append(
            collect_included_files(emit_fmu_sources(add_fmu_derivatives(b.build()), described), "sources/unit.c")
        )
    assert files[0] == files[1]
    assert "sources/solver_step_loop.c" in files[0]
    assert not {"sources/model_names.h", "sources/model.c"} & files[0].keys()


@pytest.mark.parametrize(
    ("compiler", "fmi"),
    [("zig", "3"), *by_night(("gcc", "2"), ("gcc", "3"), ("zig", "2"))],  # gcc warns of what test_functions compiles
)
def test_fmus_compile_without_warnings(compiler: str, fmi: str, tmp_path: Path) -> None:
    reason = missing(compiler)
    if reason:
        pytest.skip(reason)
    tree = unit("simple_pendulum", fmi)
    for path in tree:
        place = tmp_path / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(tree[path])
    public = []
    for name in list_translation_units(tree):
        command = [*COMPILERS[compiler], *WARNINGS, *ARITHMETIC, "-c", name, "-o", "it.o"]
        compile_files(tmp_path / "sources", command)
        names = subprocess.run(["nm", "it.o"], cwd=tmp_path / "sources", capture_output=True, text=True, check=True)
        public += [line.split()[-1] for line in names.stdout.splitlines() if line.split()[-2] in "TDBR"]
    assert len(public) > 30
    tables = ("SimplePendulum_any_", "SimplePendulum_settings", "SimplePendulum_variables")
    assert all(name.startswith((f"SimplePendulum_fmi{fmi}", *tables)) for name in public)


@pytest.mark.parametrize("fmi", ["2", "3"])
def test_only_the_shell_of_one_version_is_there(fmi: str) -> None:
    files = [path.removeprefix("sources/") for path in unit("simple_pendulum", fmi)]
    other = {"2": "fmi3", "3": "fmi2"}[fmi]
    assert not [name for name in files if other in name]
    assert {"unit.c", "model.c", "equations.c", "model_config.h", "CMakeLists.txt", f"fmi{fmi}Functions.h"} <= set(
        files
    )


def test_adjoint_derivatives_are_printed_where_they_can_be_asked_for() -> None:
    definition = model.check_model(model.load(ROOT / "models" / "simple_pendulum.py"))
    equations = formulations.formulate(mechanism.read_mechanism(definition))
    program = lowering.lower_equations_to_program(equations)
    without = add_fmu_derivatives(program, adjoint=False)
    described = {
        fmi: interface.form_fmu_interface(definition, equations, program, FmuTarget(fmi, "native"))
        for fmi in ("2", "3")
    }
    assert b"equations_adjoint" not in emit_fmu_sources(without, described["2"])["sources/equations.c"]
    with pytest.raises(EmitError, match="adjoint"):
        emit_fmu_sources(without, described["3"])


def test_missing_entry_points_are_named() -> None:
    native = add_fmu_derivatives(by_hand())
    entries = {name: entry for name, entry in native.program.entries.items() if name != "velocity"}
    broken = dataclasses.replace(native, program=dataclasses.replace(native.program, entries=entries))
    with pytest.raises(EmitError, match="velocity"):
        emit_fmu_sources(broken, bare_interface())
