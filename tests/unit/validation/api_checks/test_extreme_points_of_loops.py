"""Points beyond the experiments where a loop may branch: neither an FMU nor the reference knows x' there."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from mb2fmu import pipeline
from mb2fmu.mechanics.formulations import formulate
from mb2fmu.validation.api_checks.api_call_plan import compute_largest_state_rates
from mb2fmu.validation.api_checks.extreme_state_checks import choose_extreme_state_points
from mb2fmu.validation.reference.reference_run import ReferenceRun, make_reference
from mb2fmu.validation.reference_equations.numeric_equations import NumericEquations

MODELS = Path(__file__).parents[4] / "models"


@pytest.fixture(scope="module")
def parallelograms() -> ReferenceRun:
    """Two parallelograms side by side; each could leave its shape where all its rods lie in one line."""
    derivation = pipeline.derive(MODELS / "n_four_bar.py", method="recursive-composite")
    return make_reference(derivation.definition, formulate(derivation.mechanism, "tmt"))


def test_no_point_lies_where_a_parallelogram_is_folded(parallelograms: ReferenceRun) -> None:
    """Newton's method ends within 1e-6 rad of such places, and the direction of a row there is round-off."""
    definition = pipeline.derive(MODELS / "n_four_bar.py", method="recursive-composite").definition
    coordinates = [record.name for record in definition.coordinates]
    settable = {record.name for record in (*definition.parameters, *definition.coordinates, *definition.speeds)}
    rates = compute_largest_state_rates(parallelograms)
    points = choose_extreme_state_points(definition, parallelograms, len(parallelograms.states) - 1, settable, rates)
    assert len(points) > 20
    for loop in ("crank[0]", "crank[1]"), ("crank[1]", "crank[2]"):
        cranks = [coordinates.index(name) for name in loop]
        assert all(np.abs(np.sin(point.expected.x[cranks])).max() > 1e-3 for point in points), loop


def test_a_row_that_all_but_vanishes_shows(parallelograms: ReferenceRun) -> None:
    """Over its own length it looks as good as any."""
    numeric: NumericEquations = parallelograms.numeric
    prepared = numeric.prepare(parallelograms.experiment.parameters)
    upright = parallelograms.states[0]
    for angle in (0.8, 0.01, 1e-6):
        x = upright.copy()
        x[:5] = [angle, angle, angle, 0.0, 0.0]
        over_own, over_usual = (
            numeric.row_singular_values(0.0, x, [], prepared, usual_x=usual).min() for usual in (None, upright)
        )
        assert over_own > 0.1
        assert over_usual == over_own if angle > 1e-3 else over_usual < 1e-5
