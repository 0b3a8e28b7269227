"""Kane's quantities, TMT's and Lagrange's: laws at the unit's own x', and expressions as they are published."""

from __future__ import annotations

import numpy as np
import pytest
import sympy as sm
from mechanisms import Evaluated, Numeric, State, mechanism_of, random_states

import mb2fmu
from mb2fmu.errors import FormulationError
from mb2fmu.mechanics.equations.equations_of_motion import SymbolAssignment
from mb2fmu.mechanics.equations.theory_quantities import TheoryQuantities
from mb2fmu.mechanics.formulations.kane_tmt_lagrange_theory_quantities import SECTION_TITLES, form_theory_quantities
from mb2fmu.mechanics.mechanism import Mechanism
from mb2fmu.report.equation_display.theory_quantity_text import format_theory_quantities

MODELS = (
    pytest.param("double_pendulum", marks=pytest.mark.repeats),
    pytest.param("two_rods", marks=pytest.mark.repeats),
    "chaplygin_sleigh",
)
ALL = tuple(SECTION_TITLES)
KANE = ALL[:3]


class Values:
    """The quantities of one model, in numbers at one random state and at the program's u'."""

    def __init__(self, name: str, kinds: tuple[str, ...] = ALL) -> None:
        self.mechanism: Mechanism = mechanism_of(mb2fmu.load(f"models/{name}.py"))
        self.shown = form_theory_quantities(self.mechanism, kinds)
        m, self.numeric = self.mechanism, Numeric(self.mechanism)
        state = random_states(m, 1, seed=4)[0]
        u = self.numeric.move(state)
        u_dot = self.numeric.accelerations(state)
        program = Evaluated(m, "tmt")("rhs", state)  # the unit's x'
        self.u_dot = u_dot
        q_dot = self.numeric.numeric.kinematic_matrices()[0] @ u + self.numeric.numeric.kinematic_matrices()[1]
        self.unit_u_dot = program[len(m.q) : len(m.q) + len(m.u_independent)]
        self.known = self._known(m, state, u, u_dot, q_dot)
        self.values = self._evaluate(self.shown, self.known)

    def _known(self, m: Mechanism, state: State, u: np.ndarray, u_dot: np.ndarray, q_dot: np.ndarray) -> dict:
        parameters = self.numeric.numeric.parameters(list(state.p))
        names = [*m.p, *(a.symbol for a in m.calculated_parameters)]
        known = {m.t: state.t, **dict(zip(m.q, state.x, strict=False)), **dict(zip(names, parameters, strict=True))}
        known |= {**dict(zip(m.u, u, strict=True)), **dict(zip(m.u_dot, u_dot, strict=True))}
        known |= dict(zip(m.r, state.r, strict=True))
        second = q_second(m, known, q_dot)
        for symbol, (of, times) in self.shown.rates.items():
            if of in m.q:
                known[symbol] = (q_dot, second)[times - 1][m.q.index(of)]
        return known

    @staticmethod
    def _evaluate(shown: TheoryQuantities, known: dict) -> dict:
        known = {symbol: sm.Float(value) for symbol, value in known.items()}
        for item in shown.intermediates:
            if isinstance(item, SymbolAssignment):
                known[item.symbol] = sm.Float(float(item.expression.xreplace(known)))
            else:
                solved = np.linalg.solve(number(item.matrix, known), number(item.right_hand_side, known))
                known |= dict(zip(item.unknowns, map(sm.Float, solved.ravel()), strict=True))
        return {(q.letter, q.of, q.index): number(q.value, known) for s in shown.sections for q in s.quantities}

    def of(self, letter: str) -> dict:
        """All of one letter by (part, speed)."""
        return {(of, index): value for (known, of, index), value in self.values.items() if known == letter}


def number(value: sm.Basic, known: dict) -> np.ndarray:
    there = value.xreplace(known)
    return np.array(there.tolist() if isinstance(there, sm.MatrixBase) else float(there), float)


def q_second(m: Mechanism, known: dict, q_dot: np.ndarray) -> np.ndarray:
    """q'' by the chain rule from K and k0, apart from what is tested."""
    rates = m.kinematics.matrix * sm.Matrix(m.u) + m.kinematics.offset
    along = [*zip(m.q, q_dot, strict=True), *((u, known[v]) for u, v in zip(m.u, m.u_dot, strict=True)), (m.t, 1)]
    return np.array([float(sum(rate.diff(s) * v for s, v in along).subs(known)) for rate in rates])


@pytest.fixture(scope="module", params=MODELS)
def values(request: pytest.FixtureRequest) -> Values:
    return Values(request.param)


def test_kane_holds_at_the_motion_of_the_fmu(values: Values) -> None:
    """F_r + F_r* = 0; with dependent speeds for the independent ones, and not for each of all."""
    m = values.mechanism
    assert np.allclose(values.unit_u_dot, values.u_dot[list(m.u_independent)], rtol=1e-10, atol=1e-12)
    constrained = len(m.u_independent) < len(m.u)
    active, inertia = (values.of("F~" + star if constrained else "F" + star) for star in ("", "*"))
    for r in m.u_independent:
        size = sum(abs(v) for (_, u), v in values.of("F*").items() if u == m.u[r]) + 1
        assert abs(active["", m.u[r]] + inertia["", m.u[r]]) < 1e-11 * size
    if constrained:
        whole = values.of("F"), values.of("F*")
        assert max(abs(whole[0]["", u] + whole[1]["", u]) for u in m.u) > 1e-3


def test_partial_velocities_and_forces_are_those_of_the_numbers(values: Values) -> None:
    """Against the Newton-Euler equations in NumPy: partials, F_r, M and f."""
    m, numeric = values.mechanism, values.numeric.numeric
    points, frames = {p.name: i for i, p in enumerate(m.points)}, {f.name: i for i, f in enumerate(m.frames)}
    for letter, numbers, motions in (("v", points, numeric.points), ("omega", frames, numeric.frames)):
        for (of, u), column in values.of(letter).items():
            assert np.allclose(column.ravel(), motions[numbers[of]].partials[:, m.u_all.index(u)], atol=1e-12)
    forces = numeric.generalized_forces()
    assert np.allclose([values.of("F")["", u] for u in m.u], forces[: len(m.u)], atol=1e-11)
    T, M = values.of("T"), values.of("M")
    mass, f = numeric.unconstrained_mass_and_forcing()
    assert np.allclose(sum(T[body].T @ M[body] @ T[body] for body in T), mass, atol=1e-11)
    assert np.allclose(sum([*values.of("Q*").values(), *tmt_loads(values)]).ravel(), f, atol=1e-10)


def tmt_loads(values: Values) -> list[np.ndarray]:
    """Loads that act on no mass centre and no body's frame."""
    return [value for (of, index), value in values.of("Q").items() if index is None]


def test_lagrange_holds_where_it_applies(values: Values) -> None:
    """p' - ∂T/∂q - Q = Aᵀ-multipliers: zero without constraints, on every allowed velocity with them.

    What is called ∂L/∂q is that of an L that is shown; where V is shown its forces are among Q.
    """
    m = values.mechanism
    slopes = {**values.of("dL"), **values.of("dT")}
    assert bool(values.of("dL")) == bool(values.of("L")) != bool(values.of("dT"))
    left = np.array([values.of("dp")["", q] - slopes["", q] for q in m.q])
    for (of, q), value in values.of("Q").items():
        if q is not None and of:
            left[m.q.index(q)] -= value
    K, _ = values.numeric.numeric.kinematic_matrices()
    A, _, _ = values.numeric.numeric.velocity_constraint_terms()
    projected = K.T @ left
    free = np.eye(len(m.u)) if not len(A) else np.linalg.svd(A)[2][len(A) :].T
    assert np.allclose(free.T @ projected, 0, atol=1e-10)


def test_expressions_are_those_of_the_two_rods_of_the_textbook() -> None:
    """Moore, "Generalized Forces": F_1, F_2 of the two rods with torsion springs, written by hand."""
    mechanism = mechanism_of(mb2fmu.load("models/two_rods.py"))
    shown = form_theory_quantities(mechanism, ["generalized-active-forces"])
    known = {symbol.name: symbol for symbol in (*mechanism.q, *mechanism.p)}
    q1, q2, m, g, k, l = (known[name] for name in ("q1", "q2", "m", "g", "k", "l"))
    total = {str(q.index): q.value for q in shown["generalized-active-forces"].quantities if not q.of}
    assert sm.expand(total["u1"] + 3 * m * g * l * sm.sin(q1) / 2 + k * q1) == 0
    assert sm.expand(total["u2"] + k * q2) == 0


def test_listings_name_everything() -> None:
    """Text and LaTeX: what is defined comes with its name, and nothing is left undefined."""
    shown = form_theory_quantities(mechanism_of(mb2fmu.load("models/chaplygin_sleigh.py")), KANE)
    text, latex = format_theory_quantities(shown), format_theory_quantities(shown, "latex")
    assert "v[G, v] = (cos(theta), sin(theta), 0)" in text
    assert "F~*[v] = " in text
    assert r"{}^{N}\boldsymbol{\omega}^{\text{B}}_{\omega}" in latex
    assert latex.count(r"\begin{align*}") == latex.count(r"\end{align*}") == len(KANE) + 1
    assert shown._repr_latex_().startswith(r"$\displaystyle \begin{aligned}")


def test_faults_are_reported_together() -> None:
    """What there is not, and what a Lagrangian alone does not have."""
    mechanism = mechanism_of(mb2fmu.load("models/rolling_sphere.py"))
    with pytest.raises(FormulationError) as caught:
        form_theory_quantities(mechanism, ["lagrange", "partial-speeds", "masses"])
    text = str(caught.value)
    assert "'partial-speeds' cannot be shown" in text
    assert "'masses' cannot be shown" in text
    assert "lagrange: " in text


def test_what_cancels_in_a_column_is_not_shown() -> None:
    """Of the first of three masses l (−g m − m l u² cos q) sin q + m l² u² cos q sin q is −g m l sin q."""
    shown = format_theory_quantities(mb2fmu.quantities("triple_pendulum", "transformation"))
    assert "T'(f - M g)[particle1] = (-g*l1*m1*sin(q1), 0, 0)" in shown
    assert "l2*m2*(-g*sin(q2) + l1*u1**2*sin(q1 - q2))" in shown
