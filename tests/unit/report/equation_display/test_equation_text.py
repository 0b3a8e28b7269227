"""Listings: what is printed as code gives the numbers of what was printed."""

from __future__ import annotations

import numpy as np
import pytest
import sympy as sm
from hypothesis import given
from hypothesis import strategies as st

from mb2fmu.mechanics.equations.equations_of_motion import (
    EnergyBalance,
    EquationsOfMotion,
    KinematicEquations,
    LinearSystemAssignment,
    MassMatrixDynamics,
    SymbolAssignment,
    VelocityConstraints,
)
from mb2fmu.report.equation_display.equation_text import count_operations_by_section, format_equations

x, y, v, w, vd, wd, a, F, t, m, lam, f, s, h = sm.symbols("x y v w vd wd a F t m lambda f s h")


def constrained(*, reduced: bool) -> EquationsOfMotion:
    """A particle on a slope that grows with time, w = sin(t) v, pulled by F, with a first-order lag and odd names."""
    A = sm.ImmutableMatrix([[sm.sin(t), -1]])
    M = sm.ImmutableMatrix([[m, 0], [0, m]])
    forcing = sm.ImmutableMatrix([s * sm.cos(x), -lam * f])
    if reduced:
        T = sm.Matrix([1, sm.sin(t)])
        M, forcing = sm.ImmutableMatrix(T.T * M), sm.ImmutableMatrix(T.T * forcing)
    return EquationsOfMotion(
        method="kane",
        t=t,
        q=(x, y),
        u=(v, w),
        u_independent=(0,),
        u_dot=(vd, wd),
        z=(a,),
        p=(m, lam),
        r=(F,),
        calculated_parameters=(SymbolAssignment(f, 2 * m),),
        intermediates=(
            SymbolAssignment(h, sm.erf(x) + F),
            LinearSystemAssignment((s,), sm.ImmutableMatrix([[m + 1]]), sm.ImmutableMatrix([[h]]), "lag"),
        ),
        kinematics=KinematicEquations(sm.ImmutableMatrix([[1, 0], [0, 1]]), sm.ImmutableMatrix([0, 0])),
        z_dot=(vd - a,),
        velocity_constraints=VelocityConstraints(
            ("slope",), A, sm.ImmutableMatrix([0]), sm.ImmutableMatrix([sm.cos(t) * v])
        ),
        dynamics=MassMatrixDynamics(M, forcing),
        energy=EnergyBalance(kinetic=m * (v**2 + w**2) / 2),
    )


@pytest.mark.parametrize("reduced", [False, True])
@given(time=st.floats(0, 3), state=st.lists(st.floats(-2, 2), min_size=4, max_size=4))
def test_python_listing_moves_as_the_equations_do(reduced: bool, time: float, state: list[float]) -> None:
    """x' of the printed code is the solution that the constrained Newton equations have by hand."""
    code: dict[str, object] = {}
    exec(format_equations(constrained(reduced=reduced), "Slope", "python"), code)
    mass, gain, pull = 1.5, 0.7, 0.3
    x_, _, v_, a_ = state
    got = code["rhs"](time, np.array(state), [pull], [mass, gain])  # type: ignore[operator]
    sine, cosine = np.sin(time), np.cos(time)
    s_ = (float(sm.erf(x_)) + pull) / (mass + 1)
    force = s_ * np.cos(x_) + sine * (-gain * 2 * mass - mass * cosine * v_)
    acceleration = force / (mass * (1 + sine**2))
    np.testing.assert_allclose(got, [v_, sine * v_, acceleration, acceleration - a_], rtol=1e-12, atol=1e-12)


def test_text_names_every_part_and_zero_entries_stay_away() -> None:
    text = format_equations(constrained(reduced=False), "Slope")
    assert text.startswith("Slope: M u' = f by kane\nstates: x, y, v, a\n")
    for line in ("x' = v", "f = 2*m", "M[1,1] = m", "f[2] = -f*lambda", "0 (slope) = ", "a' = v' - a", "T = "):
        assert f"  {line}" in text, line
    assert "M[2,1]" not in text
    assert "Holonomic" not in text


def test_latex_shows_derivatives_as_dots_and_balances_its_environments() -> None:
    text = format_equations(constrained(reduced=False), "Slope", "latex")
    assert r"\dot{x} &= v \\" in text
    assert r"\dot{a} &= \dot{v} - a \\" in text
    assert r"M_{1,1} &= m \\" in text
    assert text.count(r"\begin{align*}") == text.count(r"\end{align*}") >= 5


def test_operations_are_counted_by_part() -> None:
    counts = count_operations_by_section(constrained(reduced=False))
    assert counts["mass matrix"] == 0
    assert counts["forcing"] == 4  # a cosine and a product; a product and the sign
    assert counts["kinematics"] == 0
