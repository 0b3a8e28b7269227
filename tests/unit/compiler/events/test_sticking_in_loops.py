"""Dry friction on loops: what holds at rest, and its derivatives, on the loop and beside it.

Where coordinates are found by Newton's method, what holds a surface at rest is solved for from rates of slip, which are
derivatives of what Newton's method finds; an FMU's own derivatives are second ones of that. Such models could not be
exported.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from representatives import by_night

from mb2fmu import CoulombFriction, Model, derive, load
from mb2fmu.compiler.derivatives import add_fmu_derivatives
from mb2fmu.compiler.evaluation import make_evaluator
from mb2fmu.compiler.events import convert_switches_to_modes
from mb2fmu.compiler.program.scalar_program import ScalarProgram

CRANK_SLIDER = Path(__file__).parents[4] / "models" / "crank_slider.py"
ANGLE, RADIUS, LENGTH, STEP = 0.9, 0.05, 0.15, 1e-5


def place(program: ScalarProgram, mode: float) -> tuple[list[float], list[float]]:
    """States a little off the loop, and memory with the mode of the sign."""
    coupler = -np.arcsin(RADIUS * np.sin(ANGLE) / LENGTH)
    slider = RADIUS * np.cos(ANGLE) + LENGTH * np.cos(coupler)
    known = {"crank": ANGLE, "coupler": coupler + 1e-3, "slider": slider, "omega": 7.0}
    known |= {"last coupler": coupler, "last slider": slider}
    x = [known.get(name, 0.0) for name in program.layout.states]
    return x, [known.get(label, mode) for label in program.layout.memory]


@pytest.mark.parametrize(
    ("treatment", "mode"),  # it sticks in the mode 0
    [("attractor", 0.0), *by_night(("attractor", -1.0), ("partition", 0.0), ("partition", -1.0))],
)
def test_the_jacobian_is_that_of_differences(treatment, mode):
    model = load(CRANK_SLIDER)
    parts = model.mechanics
    pin = parts.bodies[1].masscenter
    model.add(CoulombFriction("guide", (parts.origin, pin, parts.frame.x), kinetic=50.0, static=60.0, stribeck=0.2))
    derivation = derive(model, constraints=treatment)
    known = {str(p.symbol): p.value for p in derivation.definition.parameters}
    program = convert_switches_to_modes(derivation.program)
    x, memory = place(program, mode)
    given = ([10.0, -40.0], [known[name] for name in program.layout.parameters], memory)
    native = add_fmu_derivatives(program)
    found = np.zeros((len(x), len(x)))
    found[native.rows, native.columns] = make_evaluator(native.program, "jacobian")(0.3, x, *given)
    rhs = make_evaluator(program, "rhs")
    expected = np.zeros_like(found)
    for j, moved in enumerate(STEP * np.eye(len(x))):
        expected[:, j] = (rhs(0.3, x + moved, *given) - rhs(0.3, x - moved, *given)) / (2 * STEP)
    assert np.abs(expected).max() > 1.0
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-7 * np.abs(expected).max())


SHARING = {"shaft": (2.0, 3.0), "guide": (50.0, 60.0), "crank_pin": (0.4, 0.8)}
"""Kinetic and static friction of those that hold the one motion of the loop."""


def rub(count: int) -> Model:
    """The machine with friction in several of its joints."""
    model = load(CRANK_SLIDER)
    parts = model.mechanics
    wheel, piston, rod = parts.bodies
    axis = parts.frame.z
    places = {
        "shaft": (parts.frame, wheel.frame, axis),
        "guide": (parts.origin, piston.masscenter, parts.frame.x),
        "crank_pin": (wheel.frame, rod.frame, axis),
    }
    for name in [*SHARING][:count]:
        kinetic, static = SHARING[name]
        model.add(CoulombFriction(name, places[name], kinetic=kinetic, static=static))
    return model


@pytest.mark.parametrize(
    ("count", "treatment"), [(2, "attractor"), *by_night((3, "attractor"), (3, "multipliers"), (2, "explicit"))]
)
def test_frictions_that_hold_one_motion_have_slopes(count, treatment):
    """At 7 rad/s no forces stop all rates of slip at once: what nothing can hold has no share, and makes no noise.

    All bear the same part of their limits. Before, that part was off by a tenth, and its slopes were noise.
    """
    derivation = derive(rub(count), constraints=treatment)
    known = {str(p.symbol): p.value for p in derivation.definition.parameters}
    program = convert_switches_to_modes(derivation.program)
    x, memory = place(program, 0.0)
    given = ([10.0, -40.0], [known[name] for name in program.layout.parameters], memory)
    labels = program.entries["velocity"].labels
    rows = [i for i, label in enumerate(labels) if label.endswith((".torque", ".force"))]
    evaluate = make_evaluator(program, "velocity")

    def hold(states):
        return np.array(evaluate(0.3, states, *given))[rows]

    parts = np.abs(hold(x)) / [SHARING[labels[i].split(".")[0]][1] for i in rows]
    assert len(parts) == count
    np.testing.assert_allclose(parts, parts[0], rtol=1e-9)

    native = add_fmu_derivatives(program).program
    seeds, results = native.layout.seeds, native.entries["tangent"].labels
    wanted = [results.index(f"velocity {labels[i]}") for i in rows]
    tangent = make_evaluator(native, "tangent")

    def slope(direction):
        seed = np.zeros(len(seeds))
        seed[[seeds.index(f"d {name}") for name in program.layout.states]] = direction
        return np.array(tangent(0.3, x, *given, seed))[wanted]

    directions = np.eye(len(x))
    found = np.array([slope(direction) for direction in directions])
    steps = STEP * directions
    expected = np.array([(hold(x + step) - hold(x - step)) / (2 * STEP) for step in steps])
    scale = np.abs(expected).max(axis=0)
    assert scale.min() > 0.0
    np.testing.assert_allclose(found / scale, expected / scale, rtol=0, atol=1e-6)
    weights = np.linspace(-1.0, 2.0, len(x))
    np.testing.assert_allclose(slope(weights) / scale, weights @ found / scale, rtol=0, atol=1e-11)
