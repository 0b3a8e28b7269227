"""Every row of the table of operations: its code in each language, its slopes and its SymPy class mean one function."""

from __future__ import annotations

import dataclasses
import itertools
import math
import shutil
import subprocess

import mpmath
import numpy as np
import pytest
import sympy as sm
from compiled_c import compile_explicit_integrator, missing
from markupsafe import escape
from source_programs import TARGETS, run_program
from source_programs import missing as missing_target

from mb2fmu.compiler.evaluation.numpy_evaluator import make_evaluator
from mb2fmu.compiler.lowering.sympy_lowering import LOWERING_RULES
from mb2fmu.compiler.program.program_builder import ProgramBuilder
from mb2fmu.compiler.program.scalar_program import ProgramEntryPoint, ProgramVariableLayout, ScalarProgram
from mb2fmu.fmu.emit_c.used_operation_c_code import list_included_c_files
from mb2fmu.fmu.packaged_templates import read_packaged_file
from mb2fmu.model.scalar_operation_table import OPERATIONS, Op
from mb2fmu.model.supported_functions import SUPPORTED_FUNCTIONS
from mb2fmu.report.equation_display.mathml import MathMLPrinter
from mb2fmu.targets.matlab.matlab_target_files import FIXED_FILES, MatlabFunctionPrinter

ROWS = [row for row in OPERATIONS.values() if row.op not in {Op.NEG, Op.FROZEN}]
POINTS = [
    point
    for number in (1, 2, 3)
    for point in itertools.product((-1.7, -0.6, 0.0, 0.3, 0.8, 1.0, 2.4), repeat=number)
    if number < 3 or point[1:] == (0.3, -0.6)
]
"""Operands of one, two and three."""


def program() -> tuple[ScalarProgram, list[str]]:
    """The value of every operation, then its slopes by each operand."""
    b = ProgramBuilder(ProgramVariableLayout(states=("x", "y", "z")))
    x = [b.state(i) for i in range(3)]
    values, slopes, labels = [], [], []
    for row in ROWS:
        operands = x[: row.arity]
        one, two = (lambda: b.unary(row.op, x[0])), (lambda: b.binary(row.op, *operands))  # noqa: B023
        value = b.select(*x) if row.arity == 3 else two() if row.arity == 2 else one()
        values.append(value)
        slopes += [slope(b, operands, value) for slope in row.slopes]
        labels += [f"d {row.op.name} / d{k}" for k in range(len(row.slopes))]
    b.entry("rhs", [row.op.name for row in ROWS], values)
    b.entry("slopes", labels, slopes)
    return b.build(), labels


def truth(row, point) -> float:
    """The value to the last bit; NaN where it is not defined or not real."""
    operands = [mpmath.mpf(value) for value in point[: row.arity]]
    with mpmath.workdps(40):
        try:
            value = row.digits(*operands)
        except (ZeroDivisionError, ValueError):
            return math.nan
        return math.nan if isinstance(value, mpmath.mpc) else float(value)


def defined(point) -> list[bool]:
    """Of which operations a point is in the domain; logic takes 0 and 1."""
    logic = {Op.NOT, Op.AND, Op.OR} if set(point) - {0.0, 1.0} else set()
    return [len(point) >= row.arity and row.op not in logic and math.isfinite(truth(row, point)) for row in ROWS]


def padded(point) -> list[float]:
    return [*point, 0.0, 0.0, 0.0][:3]


@pytest.mark.parametrize("compiler", ["gcc", "zig"])
def test_c_is_the_operation(compiler, tmp_path) -> None:
    if reason := missing(compiler):
        pytest.skip(reason)
    unit = compile_explicit_integrator(program()[0], compiler, tmp_path)
    for point in POINTS:
        found, known = unit.call("rhs", 0.0, np.array(padded(point)), np.zeros(0), np.zeros(0)), defined(point)
        expected = [truth(row, point) if known[i] else found[i] for i, row in enumerate(ROWS)]
        np.testing.assert_allclose(found, expected, rtol=5e-16, atol=1e-300, err_msg=f"{point}")


@pytest.mark.parametrize("batch", [False, True])
def test_python_is_the_operation(batch) -> None:
    f = make_evaluator(program()[0], "rhs")
    for point in POINTS:
        with np.errstate(all="ignore"):
            found = np.reshape(f(0.0, [padded(point)] if batch else padded(point), (), ()), -1)
        known = defined(point)
        expected = [truth(row, point) if known[i] else found[i] for i, row in enumerate(ROWS)]
        np.testing.assert_allclose(found, expected, rtol=2e-15, atol=1e-300, err_msg=f"{point}")


@pytest.mark.parametrize("target", TARGETS)
def test_code_of_targets_is_the_operation(target, tmp_path) -> None:
    if reason := missing_target(target):
        pytest.skip(reason)
    built, _ = program()
    operations = built.entries["rhs"]
    entries = {
        "rhs": ProgramEntryPoint("rhs", built.layout.states, operations.results[:3]),
        "outputs": dataclasses.replace(operations, name="outputs"),
    }
    points = [np.array(padded(point)) for point in POINTS]
    found = run_program(target, dataclasses.replace(built, entries=entries), points, tmp_path)
    for point, values in zip(POINTS, found, strict=True):
        known = defined(point)
        expected = [truth(row, point) if known[i] else values[i] for i, row in enumerate(ROWS)]
        np.testing.assert_allclose(values, expected, rtol=2e-15, atol=1e-300, err_msg=f"{point}")


@pytest.mark.skipif(shutil.which("octave-cli") is None, reason="octave-cli is not installed")
def test_matlab_is_the_operation(tmp_path) -> None:
    fixed = "\n".join(read_packaged_file("mb2fmu.targets.matlab", path).decode() for path in FIXED_FILES)
    printed = MatlabFunctionPrinter(program()[0], "values").function("rhs")
    rows = "; ".join(" ".join(map(repr, padded(point))) for point in POINTS)
    loop = (
        f"points = [{rows}];\nfor k = 1:{len(POINTS)}\n  printf('%.17g\\n', values(0, points(k, :)', [], [], []));\nend"
    )
    (tmp_path / "check.m").write_text(f"1;\n{printed}\n{fixed}\n{loop}\n", encoding="utf-8")
    command = ["octave-cli", "--no-gui", "--norc", "--quiet", "check.m"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=True)
    found = np.array(done.stdout.split(), dtype=float).reshape(len(POINTS), len(ROWS))
    for point, values in zip(POINTS, found, strict=True):
        known = defined(point)
        expected = [truth(row, point) if known[i] else values[i] for i, row in enumerate(ROWS)]
        np.testing.assert_allclose(values, expected, rtol=2e-15, atol=1e-300, err_msg=f"{point}")


def test_slopes_are_those_of_the_operation() -> None:
    """Compared with differences with 40 digits, where the operation is smooth."""
    built, labels = program()
    f = make_evaluator(built, "slopes")
    for point in itertools.product((-1.7, -0.6, 0.3, 0.8, 2.4), (-0.7, 0.45, 1.9)):
        with np.errstate(all="ignore"):
            found = dict(zip(labels, f(0.0, padded(point), (), ()), strict=True))
        for row in ROWS:
            if not row.slopes or not math.isfinite(truth(row, point)):
                continue
            for k in range(len(row.slopes)):
                order = tuple(int(i == k) for i in range(row.arity))
                with mpmath.workdps(40):
                    expected = float(mpmath.diff(row.digits, tuple(map(mpmath.mpf, point[: row.arity])), order))
                label = f"d {row.op.name} / d{k}"
                assert found[label] == pytest.approx(expected, rel=1e-13, abs=1e-15), (label, point)


@pytest.mark.parametrize("row", [row for row in ROWS if row.parity or row.symmetric], ids=lambda row: row.op.name)
def test_laws_of_folding_hold(row) -> None:
    for x, y in itertools.product((-1.7, -0.6, 0.3, 0.8), repeat=2):
        if row.symmetric:
            assert truth(row, (x, y)) == truth(row, (y, x))
        elif math.isfinite(truth(row, (x,))):
            assert truth(row, (-x,)) == (-1 if row.parity == "odd" else 1) * truth(row, (x,))


@pytest.mark.parametrize("row", [row for row in ROWS if row.sympy], ids=lambda row: row.op.name)
def test_sympys_class_is_the_operation(row) -> None:
    (kind,) = [
        kind
        for kind in LOWERING_RULES
        if kind.__name__ == row.sympy and kind.__module__.startswith(("sympy.f", "sympy.c", "sympy.l"))
    ]
    symbols = sm.symbols("x y", real=True)[: row.arity]
    if row.op is not Op.NOT:  # which takes truth values
        for point in itertools.product((-0.6, 0.3, 0.8, 2.4), repeat=row.arity):
            if math.isfinite(expected := truth(row, point)):
                value = kind(*symbols).subs(dict(zip(symbols, map(sm.Float, point), strict=True)))
                assert float(value.expand(func=True).evalf(25)) == pytest.approx(expected, rel=1e-14)
    if row.notation:
        assert str(escape(row.notation)) in MathMLPrinter().expression(kind(*symbols))


def test_the_documentation_lists_what_has_a_line() -> None:
    assert {row.sympy for row in ROWS if row.meaning} <= SUPPORTED_FUNCTIONS.keys()


def test_fmus_carry_the_code_of_what_they_use() -> None:
    for op, files in ((Op.HYPOT, ("hypot.h",)), (Op.ATAN2, ())):
        b = ProgramBuilder(ProgramVariableLayout(states=("x", "y")))
        b.entry("rhs", ["x"], [b.binary(op, b.state(0), b.state(1))])
        assert list_included_c_files(b.build()) == files
