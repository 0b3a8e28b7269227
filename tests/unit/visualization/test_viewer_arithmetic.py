"""The arithmetic of pages: operations, tables and all that is solved for, as NumPy evaluates the same program."""

from __future__ import annotations

import html
import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Literal

import numpy as np
import pytest

from mb2fmu import visualization
from mb2fmu.compiler.evaluation import make_evaluator
from mb2fmu.compiler.program.program_builder import ProgramBuilder
from mb2fmu.compiler.program.scalar_program import (
    EquationSolveBlock,
    PiecewisePolynomial,
    ProgramVariableLayout,
    ScalarProgram,
)
from mb2fmu.model.scalar_operation_table import OPERATIONS, Op
from mb2fmu.visualization.interactive_fmu import form_scene_program_tables, format_script_safe_json

SCRIPT = (Path(visualization.__file__).parent / "templates" / "viewer_arithmetic.js").read_text()
PAGE = """<!doctype html><meta charset="utf-8"><pre id="told"></pre><script>{script}
const told = {cases}.map(({{ record, t, x, p }}) => {{
  const tables = new mb2fmuArithmetic.Tables(record);
  tables.evaluate(["points", "remember"], t, x, [], p, record.memory);
  return [tables.get("points"), tables.get("remember")].map((row) => row.map(String));
}});
document.getElementById("told").textContent = JSON.stringify(told);
</script>"""
N = 5
PARAMETERS = (2.5,)


Factor = Literal["lu_factor", "ldlt_factor", "least_norm_factor"]
FACTORS: tuple[Factor, ...] = ("lu_factor", "ldlt_factor", "least_norm_factor")


def matrix(kind: Factor) -> tuple[ScalarProgram, list[float]]:
    """A solve, the result of which another solve with the same factors reads; and a state: the matrix, b."""
    rng = np.random.default_rng(7)
    A = rng.normal(size=(N, N))
    if kind == "lu_factor":
        A[0, 0] = 0.0  # rows change places
    elif kind == "ldlt_factor":
        A = A @ A.T
    else:
        A = A[:, :3] @ A[:, :3].T  # of rank 3
    entries = A.ravel() if kind == "lu_factor" else A[np.tril_indices(N)]
    b = ProgramBuilder(ProgramVariableLayout(states=tuple(map(str, range(len(entries) + N)))))
    leaves = [b.state(i) for i in range(len(entries) + N)]
    rank = 3 if kind == "least_norm_factor" else -1
    factor = b.block(EquationSolveBlock(kind, N, tuple(leaves[:-N]), name="A", rank=rank))
    first = b.solution(factor, leaves[-N:])
    b.entry("points", tuple(map(str, range(2 * N))), [*first, *b.solution(factor, first)])
    return b.build(), [*entries.tolist(), *rng.normal(size=N).tolist()]


def operations() -> tuple[ScalarProgram, list[float]]:
    """Every operation of one, two and three operands, at values where it is defined."""
    b = ProgramBuilder(ProgramVariableLayout(states=("a", "b", "c"), parameters=("p",)))
    a, other, c = (b.state(i) for i in range(3))
    nodes = []
    for op, row in OPERATIONS.items():
        if op is Op.ACOSH:
            nodes.append(b.unary(op, b.add(a, b.constant(1.5))))
        elif row.arity == 1 and op is not Op.NEG:
            nodes.append(b.unary(op, a))
        elif row.arity == 2:
            nodes.append(b.binary(op, a, other))
    nodes += [b.neg(a), b.select(b.binary(Op.LT, a, other), c, b.parameter(0)), b.time()]
    b.entry("points", tuple(map(str, range(len(nodes)))), nodes)
    return b.build(), [0.3, 0.7, -1.25]


def curve() -> tuple[ScalarProgram, list[float]]:
    """A lookup table and its derivatives, in pieces, at a break, and outside on either side."""
    table = PiecewisePolynomial("lift", (0.0, 0.5, 2.0), ((1.0, 2.0), (0.5, -1.0), (3.0, 0.25)))
    b = ProgramBuilder(ProgramVariableLayout(states=tuple("abcde")))
    nodes = [b.table(table, order, b.state(i)) for order in range(4) for i in range(5)]
    b.entry("points", tuple(map(str, range(len(nodes)))), nodes)
    return b.build(), [-1.0, 0.2, 0.5, 1.3, 4.0]


def newton() -> tuple[ScalarProgram, list[float]]:
    """The root of y³ + y = a, from what is remembered: far away, so that steps are halved."""
    inner = ProgramBuilder(ProgramVariableLayout(states=("y",), parameters=("a",)))
    y, a = inner.state(0), inner.parameter(0)
    residual = inner.sub(inner.add(inner.mul(inner.mul(y, y), y), y), a)
    slope = inner.add(inner.mul(inner.constant(3.0), inner.mul(y, y)), inner.constant(1.0))
    for name, node in (("residual", residual), ("step", inner.neg(inner.div(residual, slope))), ("jacobian", slope)):
        inner.entry(name, ("0",), [node])
    b = ProgramBuilder(ProgramVariableLayout(states=("a",), memory=("last y",)))
    (root,) = b.newton(inner.build(), [b.state(0)], [b.memory(0)], "y")
    b.entry("points", ("y", "2y"), [root, b.mul(b.constant(2.0), root)])
    b.entry("remember", ("last y",), [root])
    b.entry("first_memory", ("last y",), [b.constant(0.5)])
    b.entry("first_place", ("a",), [b.constant(0.625)])
    return b.build(), [3.0]


def test_pages_compute_what_numpy_does(tmp_path: Path) -> None:
    name = shutil.which("chromium") or shutil.which("chromium-browser")
    if name is None:
        pytest.skip("chromium is not installed on this machine")
    made: dict[str, tuple[ScalarProgram, list[float]]] = {kind: matrix(kind) for kind in FACTORS}
    made |= {"operations": operations(), "curve": curve(), "newton": newton()}
    given = [
        {"record": form_scene_program_tables(program), "t": 0.125, "x": x, "p": list(PARAMETERS)}
        for program, x in made.values()
    ]
    page = tmp_path / "page.html"
    page.write_text(PAGE.format(script=SCRIPT, cases=format_script_safe_json(given)))
    words = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--dump-dom"]
    done = subprocess.run([name, *words, page.as_uri()], capture_output=True, text=True, timeout=120, check=False)
    printed = re.search(r'<pre id="told">(.*?)</pre>', done.stdout, flags=re.DOTALL)
    assert printed, done.stderr[-2000:]
    rows = json.loads(html.unescape(printed[1]))
    for (case, (program, x)), (points, remembered) in zip(made.items(), rows, strict=True):
        wanted = make_evaluator(program, "points")(0.125, x, (), PARAMETERS)
        numbers = np.array([float(value) for value in points])
        assert np.all(np.isfinite(wanted)), case
        tolerance = 5e-7 if case == "operations" else 1e-9  # erf is a fit there
        np.testing.assert_allclose(numbers, wanted, rtol=tolerance, atol=tolerance, err_msg=case)
        assert [float(value) for value in remembered] == ([numbers[0]] if case == "newton" else [])
