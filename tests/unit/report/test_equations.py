"""Equations of motion are shown in full as long as they can be read, and counted beyond."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import sympy as sm
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree

from mb2fmu import pipeline
from mb2fmu.mechanics.equations.equations_of_motion import (
    KinematicEquations,
    LinearSystemAssignment,
    MassMatrixDynamics,
    SymbolAssignment,
)
from mb2fmu.report.equation_display.equation_html import (
    MAX_MATRIX_DIMENSION,
    MAX_VISIBLE_LINES,
    MAX_WRITTEN_OPERATIONS,
    ExpressionOperationCounter,
    form_equation_blocks,
)

a, b = sm.symbols("a b")


def blocks_of(equations):
    return {block.title: block for block in form_equation_blocks(equations)}


def text_of(line):
    return "".join(etree.fromstring(f"<div>{line}</div>").itertext()).replace("\u2061", "")


def wide(equations, count):
    """The pendulum's equations, ``count`` times side by side."""
    q = sm.symbols(f"q1:{count + 1}")
    u = sm.symbols(f"u1:{count + 1}")
    return replace(
        equations,
        q=q,
        u=u,
        u_independent=tuple(range(count)),
        u_dot=sm.symbols(f"w1:{count + 1}"),
        kinematics=KinematicEquations(sm.ImmutableMatrix(sm.eye(count)), sm.ImmutableMatrix(sm.zeros(count, 1))),
        dynamics=MassMatrixDynamics(sm.ImmutableMatrix(sm.eye(count)), sm.ImmutableMatrix([sm.sin(s) for s in q])),
        energy=replace(equations.energy, kinetic=None, potential=None),
        outputs=(),
    )


def test_a_pendulum_is_shown_in_full(pendulum):
    blocks = blocks_of(pendulum().equations)
    assert list(blocks) == ["Kinematics", "Dynamics: M u̇ = f", "Kinetic and potential energy"]
    assert text_of(blocks["Kinematics"].lines[0]) == "θ˙=ω"
    assert text_of(blocks["Dynamics: M u̇ = f"].lines[0]) == "mrodω˙ =−gmrodsinθ+τ"
    assert "1 × 1 entries" in blocks["Dynamics: M u̇ = f"].note


def test_long_entries_stand_below_and_very_long_ones_are_folded(pendulum):
    equations = pendulum().equations
    theta = equations.q[0]
    long = sm.Add(*(sm.cos(k * theta) for k in range(1, 12)))
    endless = sm.Add(*(sm.cos(k * theta) for k in range(1, 200)))
    dynamics = MassMatrixDynamics(sm.ImmutableMatrix([[long]]), sm.ImmutableMatrix([[endless]]))
    block = blocks_of(replace(equations, dynamics=dynamics))["Dynamics: M u̇ = f"]
    whole, mass, force = (text_of(line) for line in block.lines)
    assert whole == "Mω˙ =f"
    assert mass.startswith("M= cosθ +cos(2θ)")
    assert force.startswith(f"f=an expression of {ExpressionOperationCounter().of(endless):,} operationscosθ +")
    assert block.lines[2].count("<details>") == 1
    cut = next(
        b for b in form_equation_blocks(replace(equations, dynamics=dynamics), 0) if b.title.startswith("Dynamics")
    )
    assert text_of(cut.lines[2]) == f"f=an expression of {ExpressionOperationCounter().of(endless):,} operations"
    assert ExpressionOperationCounter().of(endless) > MAX_WRITTEN_OPERATIONS


def test_large_matrices_are_folded(pendulum):
    equations = wide(pendulum().equations, MAX_MATRIX_DIMENSION + 1)
    block = blocks_of(equations)["Dynamics: M u̇ = f"]
    assert not block.lines
    assert "9 × 9 entries; M and f written out have 9 operations" in block.note
    assert [text_of(line)[:4] for line in block.folded_lines[:2]] == ["M11=", "M22="]
    assert not next(b for b in form_equation_blocks(equations, 0) if b.title.startswith("Dynamics")).folded_lines
    assert blocks_of(wide(pendulum().equations, MAX_MATRIX_DIMENSION))["Dynamics: M u̇ = f"].lines


def test_symmetric_entries_are_listed_once(pendulum):
    equations = wide(pendulum().equations, 2)
    long = sm.Add(*(sm.cos(k * equations.q[0]) for k in range(1, 20)))
    M = sm.ImmutableMatrix([[1, long], [long, 2]])
    dynamics = MassMatrixDynamics(M, equations.dynamics.forcing)
    block = blocks_of(replace(equations, dynamics=dynamics))["Dynamics: M u̇ = f"]
    assert [text_of(line)[:4] for line in block.lines[1:]] == ["M12="]


def test_linear_solves_are_named_and_long_lists_folded(pendulum):
    equations = pendulum().equations
    many = tuple(SymbolAssignment(sm.Symbol(f"s{k}"), equations.q[0] + k) for k in range(MAX_VISIBLE_LINES + 5))
    x, y = sm.symbols("x y")
    identity = sm.ImmutableMatrix(sm.eye(2))
    solve = LinearSystemAssignment(
        (x, y), identity, sm.ImmutableMatrix([a, b]).subs({a: 1, b: 2}), "<dependent> speeds"
    )
    block = blocks_of(replace(equations, intermediates=(solve, *many)))["Intermediates, in order of evaluation"]
    assert text_of(block.lines[0]) == "x, y, from 2 linear equations: <dependent> speeds"
    assert (len(block.lines), len(block.folded_lines), block.note) == (MAX_VISIBLE_LINES, 6, "")
    cut = next(b for b in form_equation_blocks(replace(equations, intermediates=(solve, *many)), 0) if b.dense)
    assert (len(cut.folded_lines), cut.note) == (0, "6 further intermediates: mb2fmu equations writes them all.")


@given(st.integers(1, 60))
def test_operations_are_counted_as_written_out_but_looked_at_once(depth):
    expression = a
    for _ in range(depth):
        expression = sm.Mul(sm.sin(expression), expression + 1, evaluate=False)
    # n(k + 1) = (n(k) + 1) + (n(k) + 1) + 1
    expected = 0
    for _ in range(depth):
        expected = 2 * expected + 3
    assert ExpressionOperationCounter().of(expression) == expected


@pytest.mark.parametrize(("expression", "count"), [(a, 0), (a + b, 1), (a + b + 1, 2), (a**2, 1), (sm.sin(a * b), 2)])
def test_operation_counts(expression, count):
    assert ExpressionOperationCounter().of(expression) == count


def test_a_recursion_shows_its_links():
    path = Path(__file__).parents[3] / "models" / "three_body_pendulum.py"
    blocks = form_equation_blocks(pipeline.derive(path, method="recursive-articulated").equations)
    links = next(block for block in blocks if block.title.startswith("Links"))
    assert len(links.lines) == 3
    assert "A on ground" in links.lines[0]
    assert "3 links" in next(block for block in blocks if block.title == "Dynamics").note
