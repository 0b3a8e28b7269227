"""Dry friction on a loop whose coordinates are found by Newton's method: its units offer derivatives, too.

What holds a surface at rest is solved for from rates of slip, which are derivatives of what Newton's method finds; an
FMU's own derivatives are second ones of that. Such models could not be exported.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from representatives import by_night

from mb2fmu import CoulombFriction, derive, load
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
