"""What strangers hand over moves as SymPy's own equations of the very object say, by every formulation that applies."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
import readers_mechanisms
import sympy as sm
import textbook_mechanisms
from own_equations import Compared, by_another_method, compared, own_constraint_forces
from representatives import by_night, marked
from strangers import STRANGERS, axle, declared, world
from sympy.physics import mechanics as me

from mb2fmu import Model, pipeline
from mb2fmu.compiler.evaluation import make_evaluator
from mb2fmu.errors import MechanismError
from mb2fmu.mechanics.formulations import check_applicability_of_all_formulations

T = me.dynamicsymbols._t
assert textbook_mechanisms.__name__  # its mechanisms are among the strangers
assert readers_mechanisms.__name__  # and these
CLOSE = 1e-9  # relative; x' of both sides is known to 1e-13 at least, for matrices that are well conditioned


@cache
def by_auto(name: str) -> Compared:
    """A stranger by the method that is chosen for it."""
    return compared(STRANGERS[name]())


BY_NIGHT = {
    "force_in_the_joint_that_closes_a_loop": "unknown forces by day along a velocity constraint, below",
    "inertias_about_pivots": "against its own objects in test_independent_checks",
    "loop_whose_rates_are_given_twice": "against its own objects in test_independent_checks",
    "rolling_disc_generalized_contact": "as the rolling disc of SymPy's examples",
    "spherical_planar": "both joints move as Pinocchio's in test_pinocchio",
    "wheels_on_an_axle": "as those of the tests below",
}


@pytest.mark.parametrize("name", marked(STRANGERS, repeating=BY_NIGHT))
def test_the_fmu_moves_as_the_object_that_was_handed_over(name):
    auto = by_auto(name)
    assert auto.error < CLOSE
    _assert_balanced(auto)


BY_OTHER_METHODS = {"force_along_a_velocity_constraint", "rolling_disc_sympy", "system_joints_actuators"}
"""By day; ``tests/unit/mechanics/formulations`` compares the formulations with each other."""


@pytest.mark.parametrize("name", marked(STRANGERS, repeating=STRANGERS.keys() - BY_OTHER_METHODS))
def test_every_formulation_moves_as_the_object_that_was_handed_over(name):
    auto = by_auto(name)
    for method, applies in check_applicability_of_all_formulations(auto.derivation.mechanism).items():
        # Lagrange's is slow where others apply too, and tested for itself
        if applies.is_applicable and method not in {auto.derivation.equations.method, "lagrange"}:
            found = by_another_method(auto, method, count=2)
            assert found.error < CLOSE, method
            _assert_balanced(found)


def _assert_balanced(found: Compared) -> None:
    """The kinetic energy changes by the power of all loads, unless the unit says that something else works."""
    equations, program = found.derivation.equations, found.derivation.program
    if not equations.energy.balanced:
        return
    evaluate, n = make_evaluator(program, "energy"), len(found.names)
    labels = program.entries["energy"].labels
    kinetic, power = labels.index("kinetic"), labels.index("power") if "power" in labels else None
    inputs = [i.symbol for i in found.derivation.definition.inputs]
    parameters = [p.symbol for p in found.derivation.definition.parameters if not p.calculated]
    rhs = pipeline.right_hand_side(found.derivation)
    for values, x in zip(found.values, found.states, strict=True):
        r, p = [values[s] for s in inputs], [values[s] for s in parameters]
        rate, h = rhs(values[T], x, r, p), 1e-6
        ahead, behind = (evaluate(values[T] + s * h, x + s * h * rate, r, p)[kinetic] for s in (1, -1))
        expected = 0.0 if power is None else evaluate(values[T], x, r, p)[power]
        change = (ahead - behind) / (2 * h)
        assert abs(change - expected) < 1e-6 * (abs(change) + abs(expected)) + 1e-8, (n, change, expected)


@pytest.mark.parametrize(
    ("name", "method"),
    [
        *by_night(*(("force_in_the_joint_that_closes_a_loop", method) for method in ("kane", "tmt"))),
        *(("force_along_a_velocity_constraint", method) for method in ("kane", "tmt")),
    ],
)
def test_unknown_forces_are_those_of_the_auxiliary_equations(name, method):
    found = by_another_method(by_auto(name), method, count=5)
    own = own_constraint_forces(found)
    ours = np.stack([column for label, column in found.outputs.items() if label.startswith("force_")], axis=1)
    assert np.max(np.abs(own)) > 1.0
    assert np.allclose(ours, own, rtol=1e-9, atol=1e-9 * np.max(np.abs(own)))


def test_time_may_be_another_symbol_than_sympys_own(monkeypatch):
    t = sm.Symbol("t", real=True)
    monkeypatch.setattr(me.dynamicsymbols, "_t", t)
    q, u, r = me.dynamicsymbols("q u r")
    m, l, g = sm.symbols("m l g")
    N, A, O = me.ReferenceFrame("N"), me.ReferenceFrame("A"), me.Point("O")
    A.orient_axis(N, N.z, q)
    A.set_ang_vel(N, u * N.z)
    O.set_vel(N, 0)
    S = O.locatenew("S", r * N.x)
    S.set_vel(N, r.diff(t) * N.x)
    P = S.locatenew("P", -l * A.y)
    P.v2pt_theory(S, N, A)
    kane = me.KanesMethod(
        N, [q], [u], [q.diff(t) - u], bodies=[me.Particle("b", P, m)], forcelist=[(P, -m * g * N.y + sm.sin(t) * N.x)]
    )
    model = Model("P", kane)
    for s in (m, l, g):
        model.parameter(s, 1.0)
    for k in range(3):
        model.input(r.diff(t, k) if k else r, 0.0)
    model.coordinate(q, 0.3)
    model.speed(u, 0.0)
    assert compared(model).error < CLOSE


def test_the_name_of_a_speed_that_only_says_what_a_coordinate_does_is_kept():
    found = by_auto("quaternion_with_a_dependent_rate")
    names = list(found.names)
    assert "u0" not in names
    rate = found.own[:, names.index("q0")]
    assert np.allclose(found.outputs["u0"], rate, rtol=0, atol=1e-12)


@cache
def _three_rows() -> Compared:
    return compared(axle(rows=3, dependent=3))


@pytest.mark.parametrize("dependent", [3, 4])
def test_a_rolling_row_that_follows_from_others_changes_nothing(dependent):
    redundant = pipeline.derive(axle(rows=4, dependent=dependent))
    assert redundant.mechanism.redundant_constraints == ("nonholonomic[4]",)
    found = _three_rows()
    rhs = pipeline.right_hand_side(redundant)
    order = [found.names.index(name) for name in rhs.states]
    for values, x, expected in zip(found.values, found.states, found.own, strict=True):
        p = [values[s.symbol] for s in redundant.definition.parameters]
        assert np.allclose(rhs(values[T], x[order], [], p), expected[order], rtol=1e-9, atol=1e-9)


def test_too_few_dependent_speeds_are_reported():
    with pytest.raises(MechanismError, match="3 of them independent of each other, and 2 dependent speeds"):
        pipeline.derive(axle(rows=4, dependent=2))


@pytest.mark.parametrize("with_bodies", [True, False])
def test_a_state_that_moves_a_lagrangians_mechanism_is_refused(with_bodies):
    q, a = me.dynamicsymbols("q a")
    m, l, w = sm.symbols("m l w")
    N, O = world()
    F = N.orientnew("F", "Axis", [a, N.z])
    H = F.orientnew("H", "Axis", [q, F.y])
    P = O.locatenew("P", -l * H.z)
    P.set_vel(N, P.pos_from(O).dt(N))
    bob = me.Particle("p", P, m)
    method = me.LagrangesMethod(me.Lagrangian(N, bob), [q], bodies=[bob] if with_bodies else None, frame=N)
    model = declared("Bob", method, "m=1 l=1 w=3", {q: 0.3, q.diff(): 0.1})
    model.state(a, w * sm.cos(a), 0.2)
    with pytest.raises(MechanismError, match="a moves the mechanism of a LagrangesMethod"):
        pipeline.derive(model)
