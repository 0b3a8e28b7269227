"""What becomes of closed loops: treatments, and what is said where loops cannot close."""

import re
from dataclasses import replace

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from mb2fmu import model, pipeline
from mb2fmu.errors import FormulationError
from mb2fmu.mechanics import formulations, mechanism

FOUR_BAR = "models/four_bar.py"


def treated(*asked):
    read = mechanism.read_mechanism(model.check_model(model.load(FOUR_BAR)))
    return formulations.apply_constraint_treatment(formulations.formulate(read, "tmt"), read, *asked)


def test_auto_says_what_it_takes():
    equations, because = treated()
    assert equations.treatment == "attractor"
    assert "all coordinates and speeds are states" in because


def test_treatments_of_nothing_and_terms_that_do_not_belong_are_refused():
    read = mechanism.read_mechanism(model.check_model(model.load("models/simple_pendulum.py")))
    equations = formulations.formulate(read, "kane")
    assert formulations.apply_constraint_treatment(equations, read) == (equations, "")
    with pytest.raises(FormulationError, match="no holonomic constraints"):
        formulations.apply_constraint_treatment(equations, read, "multipliers")
    with pytest.raises(FormulationError, match="Baumgarte"):
        treated("attractor", 5.0)


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
    first = once.checked.mechanics.holonomic_constraints[0]
    twice = pipeline.derive(four_bar_with(lambda *_: 3 * first), method="tmt")
    # Either of two rows that say the same follows from the other.
    reported = r"redundant: holonomic\[[13]\]\. How holonomic\[1\], holonomic\[3\] share their forces is not"
    assert re.search(reported, twice.treated)
    f, g = pipeline.right_hand_side(once), pipeline.right_hand_side(twice)
    x = f.x0 + np.array([0, 0, 0, 0.3, 0.1, -0.2])
    assert g(0, x) == pytest.approx(f(0, x), rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("asked", ["attractor", "multipliers"])
def test_massless_links_only_transmit(asked):
    """With the mass at the end of the crank alone the linkage is a pendulum, whatever its loop does."""
    loaded = model.load(FOUR_BAR)
    loaded.mechanics = replace(loaded.mechanics, bodies=loaded.mechanics.bodies[:1], loads=loaded.mechanics.loads[:1])
    f = pipeline.right_hand_side(pipeline.derive(loaded, method="tmt", constraints=asked))
    assert f(0, f.x0)[3] == pytest.approx(-9.81 * np.cos(np.deg2rad(10)) / 0.8, rel=1e-12)


def test_the_rate_is_a_parameter_of_the_fmu():
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
