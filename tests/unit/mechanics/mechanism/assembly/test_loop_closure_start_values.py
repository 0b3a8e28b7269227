"""Start values on closed loops: the branch of the guesses, singular positions, and faults distinguished."""

from dataclasses import replace

import numpy as np
import pytest
from representatives import by_night
from scipy.integrate import solve_ivp

from mb2fmu import model
from mb2fmu.compiler import evaluation, lowering
from mb2fmu.errors import FormulationError, MechanismError
from mb2fmu.mechanics import formulations, mechanism

LENGTHS = np.array([0.8, 2.0, 1.0])  # of crank, coupler and rocker; the ground pins are 2 m apart
FLAT = {"la": 1.0, "lb": 2.0, "lc": 1.0, "ln": 2.0, "q1": 0.0, "q2": 0.0, "q3": -np.pi, "u1": 1.0}
"""A parallelogram whose links all lie on the line of the ground pins, its crank turning."""


@pytest.fixture(scope="module")
def read():
    return mechanism.read_mechanism(model.check_model(model.load("models/four_bar.py")))


@pytest.fixture(scope="module")
def slider():
    """Crank 50 mm, coupler 150 mm."""
    return mechanism.read_mechanism(model.check_model(model.load("models/crank_slider.py")))


def changed(read, **values):
    """The mechanism with other values of parameters, start values (``q1``) and kinds of these (``q1_kind``)."""
    d = read.declared
    parameters = tuple(replace(p, value=values.get(p.name, p.value)) for p in d.parameters)
    coordinates, speeds = (
        tuple(
            replace(c, start=values.get(c.name, c.start), kind=values.get(f"{c.name}_kind", c.kind)) for c in declared
        )
        for declared in (d.coordinates, d.speeds)
    )
    return replace(read, declared=replace(d, parameters=parameters, coordinates=coordinates, speeds=speeds))


def closed(read, **values):
    """Start values of q and u on the constraints."""
    d = mechanism.solve_loop_closure_start_values(changed(read, **values)).declared
    return np.array([[c.start for c in d.coordinates], [s.start for s in d.speeds]])


def refused(read, **values):
    with pytest.raises(MechanismError) as error:
        closed(read, **values)
    return [str(fault) for fault in error.value.faults]


def with_rows(*more):
    """The four-bar with further closing conditions, made from its coordinates and its first condition."""
    loaded = model.load("models/four_bar.py")
    parts = loaded.mechanics
    rows = [*parts.holonomic_constraints, *(row(parts.q, parts.holonomic_constraints[0]) for row in more)]
    loaded.mechanics = replace(parts, holonomic_constraints=rows)
    return mechanism.read_mechanism(model.check_model(loaded))


def test_rough_guesses_are_solved_for_and_fixed_start_values_kept(read):
    q, _ = closed(read, q2=0.3, q3=-2.3)
    # J. K. Moore, Learn Multibody Dynamics, chapter "Equations of Motion with Holonomic Constraints"
    assert np.rad2deg(q) == pytest.approx([10.0, 6.57526576, -151.3836336], abs=1e-7)


@pytest.mark.parametrize("seed", [*range(3), *by_night(3, 4, 5)])
def test_no_guess_is_left_for_another_branch(read, seed):
    """The loop's Jacobian by q2, q3 has the determinant lb lc sin(q3): branches lie on either side of its zeros."""
    q2, q3 = np.random.default_rng(seed).uniform([-1.5, -3.0], [1.5, 3.0])
    try:
        q, _ = closed(read, q2=q2, q3=q3)
    except MechanismError as error:
        reported = str(error)
    else:
        assert abs(LENGTHS @ np.exp(1j * np.cumsum(q)) - 2.0) < 1e-12
        assert np.floor(q[2] / np.pi) == np.floor(q3 / np.pi)
        return
    assert "on no branch" in reported


def test_guesses_on_no_branch_are_reported_with_the_branches_that_there_are(read):
    (fault,) = refused(read, q2=2.0, q3=2.0)
    assert "the guesses q2 = 2, q3 = 2 are on no branch" in fault
    assert "a singular position, q2 = 2.26073, q3 = 3.13532, where branches meet" in fault
    assert "holonomic[1] by -1.98, holonomic[2] by 0.783 from closed" in fault
    assert "q2 = 0.11476, q3 = 3.64104, and where q2 = -0.69204, q3 = 2.64214" in fault
    assert "give one of these as guesses if it is meant, or guesses nearer to what is; or correct q1" in fault


def test_a_loop_that_cannot_close_is_reported_how_far_it_is_from_it(read):
    (fault,) = refused(read, lb=9.0)
    assert "no coordinates near the start values close the loops: holonomic[1] by " in fault
    assert "with q1 kept as they are" in fault
    (fault,) = refused(read, q3_kind="fixed", q3=-2.5)
    assert "with q1, q3 kept as they are; they would close with q1 = " in fault


def test_all_that_fixed_start_values_contradict_is_reported_at_once(read):
    faults = refused(read, q1=0.5, q2_kind="fixed", q3_kind="fixed")
    assert len(faults) == 2
    for i, fault in enumerate(faults):
        assert f"the fixed start values of q1, q2, q3 contradict holonomic[{i + 1}], which is " in fault
    (fault,) = refused(read, u1=1.0, u2_kind="fixed", u3_kind="fixed")
    assert "the fixed start values of u1, u2, u3 contradict the velocity constraints: holonomic[2] by " in fault


def test_over_specified_contradictory_and_redundant_constraints_are_distinguished():
    """As many as coordinates: nothing moves. Twice the same with other constants: they contradict. Else they share."""
    (fault,) = refused(with_rows(lambda q, _: q[0] - 0.17453292519943295))
    assert "the 3 constraints leave the 3 speeds nothing to move: holonomic[1], holonomic[2], holonomic[3]" in fault
    (fault,) = refused(with_rows(lambda _, first: 3 * first - 1))
    assert "holonomic[1], holonomic[3] contradict each other" in fault
    redundant = mechanism.solve_loop_closure_start_values(with_rows(lambda _, first: 3 * first))
    reported = formulations.plan_constraint_treatment(redundant).reason
    assert "redundant" in reported
    assert "holonomic[1]" in reported


def test_in_a_singular_position_speeds_say_which_branch_is_meant(read):
    """Parallelogram: the coupler does not turn. The other: 1 + 2 w² = (1 + 2 w)², so that it turns at w = −2."""
    parallel, crossed = [1.0, -1.0, 1.0], [1.0, -3.0, -1.0]
    for guesses, branch in (((0.0, 0.0), parallel), ((-3.0, -0.5), crossed)):
        q, u = closed(read, **FLAT, u2=guesses[0], u3=guesses[1])
        assert q == pytest.approx([0.0, 0.0, -np.pi], abs=1e-13)
        assert u == pytest.approx(branch, abs=1e-12)
    (fault,) = refused(read, **FLAT, u2=-2.0, u3=0.0)
    assert "the speeds are on none of them: with u2 = -2, u3 = 0 the rates of the constraints cannot vanish" in fault
    assert "the branches have u2 = -3, u3 = -1, and u2 = -1, u3 = 1" in fault
    assert np.all(closed(read, **{**FLAT, "u1": 0.0})[1] == 0.0)  # at rest all branches are one


def test_what_each_treatment_makes_of_a_singular_start(read):
    """All coordinates as states start in it; independent ones have no chart, a closed form has no branch."""
    flat = mechanism.solve_loop_closure_start_values(changed(read, **FLAT))
    for asked in ("attractor", "multipliers"):
        assert "the start is a singular position" in formulations.plan_constraint_treatment(flat, asked).reason
    with pytest.raises(FormulationError, match="not independent at the start, a singular position"):
        formulations.plan_constraint_treatment(flat, "partition")
    with pytest.raises(FormulationError, match="lies flat, where its two branches meet: start it elsewhere"):
        formulations.plan_constraint_treatment(flat, "explicit")


def test_a_parallelogram_that_starts_flat_swings_as_one(read):
    """By both treatments that start there: 2 m l² q'' = −2 m g l cos(q), the coupler stays parallel."""
    flat = mechanism.solve_loop_closure_start_values(changed(read, **FLAT))
    p = np.array([item.value for item in flat.declared.parameters])
    energy = lambda q, u: u**2 + 2 * 9.81 * np.sin(q)  # noqa: E731
    for asked in ("attractor", "multipliers"):
        equations, _ = formulations.apply_constraint_treatment(formulations.formulate(flat, "tmt"), flat, asked)
        f = evaluation.make_evaluator(lowering.lower_equations_to_program(equations), "rhs")
        rate = [10.0] if len(equations.p) > len(p) else []
        x = np.array([item.start for item in (*flat.declared.coordinates, *flat.declared.speeds)])
        rhs = lambda t, x, f=f, rate=rate: f(t, x, [0.0], np.array([*p, *rate]))  # noqa: E731
        assert rhs(0.0, x)[3:] == pytest.approx([-9.81, 9.81, -9.81], rel=1e-9)
        end = solve_ivp(rhs, (0.0, 0.4), x, method="DOP853", rtol=1e-9, atol=1e-9).y[:, -1]
        assert end[0] < -0.2
        assert end[0] + end[1] == pytest.approx(0.0, abs=1e-7)
        assert energy(end[0], end[3]) == pytest.approx(energy(x[0], x[3]), abs=1e-6)


def test_at_the_dead_centre_the_slider_says_nothing_of_the_crank(slider):
    """It cannot be the independent coordinate; the crank can. Where it is fixed, the crank is found nevertheless."""
    dead = mechanism.solve_loop_closure_start_values(changed(slider, crank=0.0))
    with pytest.raises(FormulationError, match="crank, coupler do not follow from the others at the start"):
        formulations.plan_constraint_treatment(dead, "partition", independent=["slider"])
    with pytest.raises(FormulationError, match="it lies flat, where its two branches meet: start it elsewhere"):
        formulations.plan_constraint_treatment(dead, "explicit", independent=["slider"])
    for asked in ("partition", "explicit"):
        assert formulations.plan_constraint_treatment(dead, asked, independent=["crank"]).treatment == asked
    given = {"slider": 0.2, "slider_kind": "fixed", "crank": 0.1, "crank_kind": "guess", "coupler": -0.03}
    still = {"v": 0.0, "v_kind": "fixed", "omega_kind": "guess"}
    q, u = closed(slider, **given, **still)
    assert q == pytest.approx([0.0, 0.0, 0.2], abs=1e-6)
    assert u == pytest.approx([29.88, -9.96, 0.0], abs=1e-4)  # the nearest to (30, -9.6) with 50 ω + 150 ν = 0
    (fault,) = refused(slider, **given, **{**still, "v": 0.5})
    assert "the fixed start values of v contradict the velocity constraints" in fault
    (fault,) = refused(slider, **{**given, "slider": 0.21}, **still)
    assert "from closed, with slider kept as they are; they would close with slider = 0." in fault
