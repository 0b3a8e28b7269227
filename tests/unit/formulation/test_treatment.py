"""What becomes of closed loops: treatments, and what is said where loops cannot close."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from mb2fmu import formulation, mechanism, model, pipeline
from mb2fmu.errors import FormulationError, MechanismError

FOUR_BAR = "models/four_bar.py"


def four_bar(**values):
    """The four-bar's definition with other values of parameters and start values of coordinates."""
    definition = model.check(model.load(FOUR_BAR))
    parameters = tuple(replace(p, value=values.get(p.name, p.value)) for p in definition.parameters)
    coordinates = tuple(
        replace(c, start=values.get(c.name, c.start), kind=values.get(f"{c.name}_kind", c.kind))
        for c in definition.coordinates
    )
    return replace(definition, parameters=parameters, coordinates=coordinates)


def treated(definition, *asked):
    read = mechanism.read(definition)
    return formulation.treat(formulation.formulate(read, "tmt"), read, *asked)


def test_auto_says_what_it_takes():
    equations, because = treated(four_bar())
    assert equations.treatment == "attractor"
    assert "all coordinates and speeds are states" in because


@pytest.mark.parametrize("values", [{"lb": 9.0}, {"q2_kind": "fixed", "q3_kind": "fixed", "q1": 0.5}])
def test_a_loop_that_cannot_close_is_refused(values):
    with pytest.raises(MechanismError, match=r"no coordinates near the start values close the loops: holonomic.* by"):
        mechanism.close_loops(mechanism.read(four_bar(**values)))


def test_rough_guesses_are_solved_for_and_fixed_start_values_kept():
    rough = mechanism.close_loops(mechanism.read(four_bar(q2=0.3, q3=-2.3))).definition
    q = [c.start for c in rough.coordinates]
    # J. K. Moore, Learn Multibody Dynamics, chapter "Equations of Motion with Holonomic Constraints"
    assert np.rad2deg(q) == pytest.approx([10.0, 6.57526576, -151.3836336], abs=1e-7)


def test_the_other_branch_is_where_its_guess_is():
    other = mechanism.close_loops(mechanism.read(four_bar(q2=-0.6, q3=2.6))).definition
    angles = np.cumsum([c.start for c in other.coordinates])
    assert angles[2] > angles[1]  # the rocker turns the other way from the coupler
    lengths = np.array([0.8, 2.0, 1.0])
    assert lengths @ np.exp(1j * angles) == pytest.approx(2.0, abs=1e-12)


def test_fixed_speeds_that_contradict_the_loop_are_refused():
    definition = four_bar()
    speeds = tuple(replace(s, kind="fixed", start=1.0) for s in definition.speeds)
    with pytest.raises(MechanismError, match="contradict"):
        mechanism.close_loops(mechanism.read(replace(definition, speeds=speeds)))


def test_treatments_of_nothing_and_terms_that_do_not_belong_are_refused():
    read = mechanism.read(model.check(model.load("models/simple_pendulum.py")))
    equations = formulation.formulate(read, "kane")
    assert formulation.treat(equations, read) == (equations, "")
    with pytest.raises(FormulationError, match="no holonomic constraints"):
        formulation.treat(equations, read, "multipliers")
    with pytest.raises(FormulationError, match="Baumgarte"):
        treated(four_bar(), "attractor", 5.0)


def test_baumgarte_draws_the_loop_together():
    distances = []
    for rate in (None, 20.0):
        derivation = pipeline.derive(FOUR_BAR, method="tmt", constraints="multipliers", baumgarte=rate)
        f = pipeline.right_hand_side(derivation)
        angles = np.cumsum(solve_ivp(f, (0, 5), f.x0, rtol=1e-6, atol=1e-6).y[:3], axis=0)
        lengths = np.array([0.8, 2.0, 1.0])
        x, y = lengths @ np.cos(angles) - 2.0, lengths @ np.sin(angles)
        distances.append(np.hypot(x, y)[-1])
    assert distances[1] < 0.1 * distances[0]


def four_bar_with(*more):
    """The four-bar with further closing conditions, expressions of its coordinates."""
    loaded = model.load(FOUR_BAR)
    parts = loaded.mechanics
    rows = tuple(row(*parts.q) for row in more)
    loaded.mechanics = replace(parts, holonomic_constraints=(*parts.holonomic_constraints, *rows))
    return loaded


def test_redundant_rows_are_named_and_change_no_motion():
    once = pipeline.derive(FOUR_BAR, method="tmt")
    first = once.definition.mechanics.holonomic_constraints[0]
    twice = pipeline.derive(four_bar_with(lambda *_: 3 * first), method="tmt")
    assert "redundant, so that they share their forces: holonomic[1]" in twice.treated
    f, g = pipeline.right_hand_side(once), pipeline.right_hand_side(twice)
    x = f.x0 + np.array([0, 0, 0, 0.3, 0.1, -0.2])
    assert g(0, x) == pytest.approx(f(0, x), rel=1e-9, abs=1e-9)


def test_more_constraints_than_coordinates_are_refused():
    with pytest.raises(MechanismError, match="the 3 constraints leave the 3 speeds nothing to move"):
        pipeline.derive(four_bar_with(lambda q1, *_: q1 - 0.17453292519943295))


@pytest.mark.parametrize("asked", ["attractor", "multipliers"])
def test_massless_links_only_transmit(asked):
    """With the mass at the end of the crank alone the linkage is a pendulum, whatever its loop does."""
    loaded = model.load(FOUR_BAR)
    loaded.mechanics = replace(loaded.mechanics, bodies=loaded.mechanics.bodies[:1], loads=loaded.mechanics.loads[:1])
    f = pipeline.right_hand_side(pipeline.derive(loaded, method="tmt", constraints=asked))
    assert f(0, f.x0)[3] == pytest.approx(-9.81 * np.cos(np.deg2rad(10)) / 0.8, rel=1e-12)


def test_the_rate_is_a_parameter_of_the_unit():
    derivation = pipeline.derive(FOUR_BAR, method="tmt")
    rate = derivation.definition.parameters[-1]
    assert (rate.name, rate.unit, rate.value, rate.minimum, rate.tunable) == (
        "constraints.rate",
        "1/s",
        10.0,
        0.0,
        True,
    )
    f = pipeline.right_hand_side(derivation)
    x = f.x0 + np.array([0.01, -0.02, 0.03, 0.3, 0.1, -0.2])
    slopes = {a: f(0, x, p=np.array([*f.p0[:-1], a])) for a in (0.0, 10.0, 25.0)}
    assert np.abs(slopes[10.0] - slopes[0.0]).min() > 1e-3
    assert slopes[25.0] - slopes[0.0] == pytest.approx(2.5 * (slopes[10.0] - slopes[0.0]), rel=1e-12)


def test_baumgartes_rate_is_a_parameter_where_it_is_asked_for():
    with_terms = pipeline.derive(FOUR_BAR, method="tmt", constraints="multipliers", baumgarte=7.0)
    without = pipeline.derive(FOUR_BAR, method="tmt", constraints="multipliers")
    assert with_terms.definition.parameters[:-1] == without.definition.parameters
    assert with_terms.definition.parameters[-1].value == 7.0
    f, g = pipeline.right_hand_side(with_terms), pipeline.right_hand_side(without)
    x = f.x0 + np.array([0.01, -0.02, 0.03, 0.3, 0.1, -0.2])
    none = f(0, x, p=np.array([*f.p0[:-1], 0.0]))
    assert none == pytest.approx(g(0, x), rel=1e-12)
    assert not np.allclose(f(0, x), none, rtol=1e-3)


def test_the_rate_does_not_take_a_name_that_is_taken():
    loaded = model.load(FOUR_BAR)
    loaded.output("constraints.rate", loaded.mechanics.u[0], "rad/s")
    assert pipeline.derive(loaded, method="tmt").definition.parameters[-1].name == "constraints.rate_"
