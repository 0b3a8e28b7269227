"""All formulations give the same accelerations wherever they apply, and say where they do not."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import sympy as sm
from mechanisms import (
    Evaluated,
    Numeric,
    cart_with_pathways,
    close,
    lagrangian_with_bodies,
    mechanism_of,
    moving_pivot,
    pendulum_with_reactions,
    random_states,
    sympy_rolling_disc,
)
from representatives import marked

from mb2fmu.errors import FormulationError
from mb2fmu.mechanics.formulations import check_applicability_of_all_formulations, formulate
from mb2fmu.mechanics.formulations.equations_assembly import form_constraint_force_system
from mb2fmu.mechanics.mechanism import read_mechanism
from mb2fmu.model import check_model, load
from mb2fmu.validation import is_too_large_for_symbols

MODELS = sorted((Path(__file__).parents[2] / "models").glob("*.py"))
BUILT = {
    "pathways": cart_with_pathways,
    "lagrangian_with_bodies": lagrangian_with_bodies,
    "moving_pivot": moving_pivot,
    "sympy_rolling_disc": sympy_rolling_disc,
    "pendulum_with_reactions": lambda: pendulum_with_reactions()[0],
}


def _agree(mechanism):
    methods = [
        method
        for method, answer in check_applicability_of_all_formulations(mechanism).items()
        if answer.is_applicable and method != "recursive"
    ]
    large = is_too_large_for_symbols(mechanism)
    if large:  # SymPy would expand for hours
        methods = [method for method in methods if method not in {"kane", "lagrange"}]
    evaluated = {method: Evaluated(mechanism, method) for method in methods}
    closed = bool(mechanism.holonomic)  # projected onto the constraints by the program: only methods compare
    touching = bool(mechanism.contacts or mechanism.latches)  # whose forces the mechanism alone does not have
    numeric = None if mechanism.lagrangian or closed or touching else Numeric(mechanism)
    assert len(methods) + (numeric is not None) >= 2 or mechanism.lagrangian
    for state in random_states(mechanism, 6, spread=1e-3 if closed else 1.0):
        results = {method: e("accelerations", state) for method, e in evaluated.items()}
        condition = 1.0
        if numeric:
            results["numeric"] = numeric.accelerations(state)
            condition = numeric.condition()
        first = next(iter(results.values()))
        for method, result in results.items():
            assert np.all(np.isfinite(result)), (method, state)
            assert close(result, first, condition), (method, result, first)


# A closed loop, a point on a surface, a motion that is prescribed, couplings within loops; a disc that rolls is below.
# The validation of each representative compares two formulations, too.
DAILY = {"four_bar", "bowl"}


@pytest.mark.parametrize("path", marked(MODELS, repeating={path.stem for path in MODELS} - DAILY))
def test_models(path):
    _agree(read_mechanism(check_model(load(path))))


@pytest.mark.parametrize("name", BUILT)
def test_built(name):
    _agree(mechanism_of(BUILT[name]()))


def test_lagrange_refuses_a_velocity_that_uses_its_constraint():
    mechanism = mechanism_of(sympy_rolling_disc())
    answers = check_applicability_of_all_formulations(mechanism)
    assert answers["kane"].is_applicable
    assert answers["tmt"].is_applicable
    assert not answers["lagrange"].is_applicable
    assert "centre" in answers["lagrange"].reason
    with pytest.raises(FormulationError, match="use tmt or kane"):
        formulate(mechanism, "lagrange")


@pytest.mark.parametrize("axes", ["xy", "x", "y"])
def test_reaction_force_of_a_pendulum_in_closed_form(axes):
    model, _ = pendulum_with_reactions(axes)
    mechanism = mechanism_of(model)
    for method in ("kane", "tmt"):
        evaluated = Evaluated(mechanism, method)
        for state in random_states(mechanism, 10):
            q, u = state.x
            m, l, g = (dict(zip([p.name for p in mechanism.p], state.p, strict=True))[k] for k in "mlg")
            # rod about its end: u' = -3 g cos(q) / (2 l); force = m (a_centre + g)
            alpha = -1.5 * g * np.cos(q) / l
            ax = l / 2 * (-alpha * np.sin(q) - u**2 * np.cos(q))
            ay = l / 2 * (alpha * np.cos(q) - u**2 * np.sin(q))
            expected = {"x": m * ax, "y": m * (ay + g)}
            found = {axis: evaluated.output(f"reaction_{axis}", state) for axis in axes}
            assert found == pytest.approx({axis: expected[axis] for axis in axes}, rel=1e-12, abs=1e-12)


def test_forces_along_the_same_speed_are_refused():
    """Two unknown forces, one equation."""
    mechanism = mechanism_of(pendulum_with_reactions()[0])
    fx, fy = mechanism.constraint_forces
    with pytest.raises(FormulationError, match=f"contain them: 1; constraint forces: {fx}, {fy}"):
        form_constraint_force_system(mechanism, sm.Matrix([fx + 2 * fy - 1, 1]))


def test_power_of_all_loads_is_the_change_of_kinetic_energy():
    """dT/dt = sum of powers, by a central difference of T along the motion."""
    for build in (cart_with_pathways, lambda: read_mechanism(check_model(load(MODELS[0].with_name("cart_pole.py"))))):
        built = build()
        mechanism = built if hasattr(built, "bodies") else mechanism_of(built)
        evaluated = Evaluated(mechanism, "tmt")
        labels = evaluated.program.entries["energy"].labels
        for state in random_states(mechanism, 5):
            slope = evaluated("rhs", state)
            h = 1e-6
            sides = [
                evaluated("energy", type(state)(state.t + s * h, state.x + s * h * slope, state.r, state.p))
                for s in (1, -1)
            ]
            rate = (sides[0] - sides[1])[labels.index("kinetic")] / (2 * h)
            power = evaluated("energy", state)[labels.index("power")]
            assert rate == pytest.approx(power, rel=1e-6, abs=1e-6)


def test_mass_matrix_is_symmetric_and_gives_the_kinetic_energy():
    mechanism = mechanism_of(cart_with_pathways())
    evaluated = Evaluated(mechanism, "tmt")
    n = len(mechanism.u)
    for state in random_states(mechanism, 10):
        M = evaluated("equations", state)[: n * n].reshape(n, n)
        u = state.x[n : 2 * n]
        kinetic = evaluated("energy", state)[evaluated.program.entries["energy"].labels.index("kinetic")]
        assert np.allclose(M, M.T, rtol=0, atol=1e-14)
        assert 0.5 * u @ M @ u == pytest.approx(kinetic, rel=1e-12)


def test_a_lagrangian_with_bodies_is_open_to_every_method():
    model = lagrangian_with_bodies()
    model.output_position("place", model.mechanics.bodies[0].masscenter)
    model.output_total_energy()
    mechanism = mechanism_of(model)
    assert all(answer.is_applicable for answer in check_applicability_of_all_formulations(mechanism).values())
    tmt = Evaluated(mechanism, "tmt")
    for method in ("lagrange", "recursive-articulated", "recursive-composite"):
        other = Evaluated(mechanism, method)
        for state in random_states(mechanism, 5):
            assert np.allclose(other("outputs", state), tmt("outputs", state), rtol=1e-12, atol=1e-12)
            assert np.allclose(other("energy", state), tmt("energy", state), rtol=1e-12, atol=1e-12)


def test_bodies_that_are_not_the_lagrangians_are_not_used():
    model = lagrangian_with_bodies()
    method = model.mechanics
    L = method._L[0] + sum(q.diff() ** 2 for q in method.q)
    model.mechanics = type(method)(L, list(method.q), bodies=method.bodies, frame=method.inertial)
    answers = check_applicability_of_all_formulations(mechanism_of(model))
    assert answers["lagrange"].is_applicable
    assert not answers["tmt"].is_applicable
