"""Residuals, rank and condition as a unit tells them, against the same by hand and by NumPy."""

from dataclasses import replace

import numpy as np
import pytest

from mb2fmu import model, pipeline
from mb2fmu.errors import FormulationError

FOUR_BAR = "models/four_bar.py"
LENGTHS = np.array([0.8, 2.0, 1.0])
GROUND = 2.0


def diagnosed(path=FOUR_BAR, more=(), energy=True, **said):
    """The diagnostics as a function of time, states and parameters."""
    loaded = model.load(path)
    if more:
        rows = (*loaded.mechanics.holonomic_constraints, *(row(loaded.mechanics) for row in more))
        loaded.mechanics = replace(loaded.mechanics, holonomic_constraints=rows)
    loaded.output_diagnostics("told", energy=energy)
    f = pipeline.right_hand_side(pipeline.derive(loaded, method="tmt", **said))

    def values(x, **changed):
        p = [changed.get(name, value) for name, value in zip(f.parameters, f.p0, strict=True)]
        found = dict(zip(f.output_names, f.outputs(0.0, x, f.r0, np.array(p)), strict=True))
        return {name.split(".")[1]: value for name, value in found.items() if name.startswith("told.")}

    return f, values


def closure(q):
    end = LENGTHS @ np.exp(1j * np.cumsum(q)) - GROUND
    return np.array([end.real, end.imag])


def jacobian(q):
    return np.array([(closure(q + h) - closure(q - h)) / 2e-6 for h in 1e-6 * np.eye(3)]).T


@pytest.mark.parametrize("treatment", ["attractor", "multipliers"])
def test_residuals_are_of_the_states_themselves(treatment):
    f, values = diagnosed(constraints=treatment)
    there = values(f.x0)
    assert there["position_residual"] < 1e-13
    assert there["velocity_residual"] < 1e-13
    x = f.x0 + np.array([0.01, -0.02, 0.03, 0.3, 0.1, -0.2])
    off = values(x)
    assert off["position_residual"] == pytest.approx(np.abs(closure(x[:3])).max(), rel=1e-12)
    q = x[:3] if treatment == "multipliers" else f.x0[:3]
    x = np.concatenate([q, x[3:]])
    assert values(x)["velocity_residual"] == pytest.approx(np.abs(jacobian(q) @ x[3:]).max(), rel=1e-8)


def test_rank_falls_and_condition_grows_where_the_linkage_lies_flat():
    f, values = diagnosed()
    true = np.linalg.cond(jacobian(f.x0[:3]))
    upright = values(f.x0)
    assert upright["rank"] == 2
    assert 0.5 * true < upright["condition"] <= true * (1 + 1e-6)  # an estimate from below
    flat = values(np.array([0.0, 0.0, np.pi, 0, 0, 0]), ln=1.8)
    assert flat["rank"] == 1
    assert flat["condition"] > 1e6
    conditions = [values(np.array([*closed_by(tilt), 0, 0, 0]), ln=1.8)["condition"] for tilt in (1e-2, 1e-3, 1e-4)]
    assert conditions[1:] == pytest.approx([10 * conditions[0], 100 * conditions[0]], rel=0.01)


def closed_by(crank):
    """Angles of the linkage of 0.8, 2, 1 and 1.8 m near its flat position."""
    pin = 0.8 * np.exp(1j * crank)
    reach = 1.8 - pin
    d = abs(reach)
    beside = np.arccos((d**2 + 4 - 1) / (4 * d))
    coupler = np.angle(reach) + beside
    rocker = np.angle(1.8 - pin - 2 * np.exp(1j * coupler))
    return np.array([crank, coupler - crank, rocker - coupler])


def test_a_redundant_row_is_not_counted():
    f, values = diagnosed(more=[lambda parts: 3 * parts.holonomic_constraints[0]])
    upright, true = values(f.x0), np.linalg.cond(jacobian(f.x0[:3]))
    assert upright["rank"] == 2
    assert 0.5 * true < upright["condition"] <= true * (1 + 1e-6)  # that of the others
    flat = values(np.array([0.0, 0.0, np.pi, 0, 0, 0]), ln=1.8)
    assert flat["rank"] == 1
    assert flat["condition"] > 1e6


def test_wheels_have_no_position_residual():
    f, values = diagnosed("models/chaplygin_sleigh.py", energy=False)
    there = values(f.x0)
    assert "position_residual" not in there
    assert there["rank"] == 1
    assert there["condition"] == 1.0
    assert there["velocity_residual"] < 1e-12


def test_without_constraints_there_is_nothing_to_diagnose():
    with pytest.raises(FormulationError, match="the mechanism has no constraints"):
        diagnosed("models/simple_pendulum.py")
