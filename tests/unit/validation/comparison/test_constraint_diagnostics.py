"""What an FMU tells of its own constraints, judged at its own states: right as it is, and found where 2 % are wrong."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache

import numpy as np
import pytest

from mb2fmu import model, pipeline
from mb2fmu.mechanics.formulations import formulate
from mb2fmu.mechanics.mechanism import read_mechanism, solve_loop_closure_start_values
from mb2fmu.model import check_model
from mb2fmu.validation.comparison.constraint_diagnostics import compare_constraint_diagnostics
from mb2fmu.validation.reference.reference_run import ReferenceRun, make_reference
from mb2fmu.validation.runs.fmu_run import FmuSimulationResult

DIAGNOSTICS = ("position_residual", "velocity_residual", "rank", "condition")
STRAY = 1e-6
"""How far the states are beside the constraints: rad and rad/s."""


@dataclass(frozen=True)
class RecordedDiagnostics:
    """What an FMU reported in an experiment, and the reference that judges it."""

    reference: ReferenceRun
    simulation: FmuSimulationResult

    def judged(self, name: str = "", factor: float = 1.0) -> dict[str, str]:
        """The verdict of each diagnostic, one of them reported wrongly."""
        names, values = self.simulation.names, self.simulation.values.copy()
        if name:
            values[:, names.index(f"diagnostics.{name}")] *= factor
        results = compare_constraint_diagnostics(self.reference, replace(self.simulation, values=values))
        return {result.name.removeprefix("diagnostics."): result.verdict for result in results}


@cache
def record_diagnostics(treatment: str, thrice: bool = False) -> RecordedDiagnostics:
    """A four-bar linkage whose states stray from the constraints, as its own right-hand side shows them."""
    loaded = model.load("models/four_bar.py")
    if thrice:
        rows = loaded.mechanics.holonomic_constraints
        loaded.mechanics = replace(loaded.mechanics, holonomic_constraints=(*rows, 3 * rows[0]))
    loaded.experiment(stop=0.2, step=0.02)
    definition = check_model(loaded)
    reference = make_reference(
        definition, formulate(solve_loop_closure_start_values(read_mechanism(definition)), "tmt")
    )
    f = pipeline.right_hand_side(pipeline.derive(loaded, method="recursive-composite", constraints=treatment))
    noise = STRAY * np.random.default_rng(5).uniform(-1, 1, reference.states.shape)
    states = reference.states + noise
    names = (*reference.trajectory.names[: states.shape[1]], *f.output_names)
    reported = [f.outputs(float(t), x, f.r0, f.p0) for t, x in zip(reference.trajectory.time, states, strict=True)]
    values = np.concatenate([states, np.array(reported)], axis=1)
    return RecordedDiagnostics(reference, FmuSimulationResult(names, reference.trajectory.time, values, (), 0.0))


@pytest.mark.parametrize(("treatment", "thrice"), [("attractor", False), ("multipliers", False), ("attractor", True)])
def test_what_is_reported_rightly_passes(treatment, thrice):
    assert record_diagnostics(treatment, thrice).judged() == dict.fromkeys(DIAGNOSTICS, "passed")


@pytest.mark.parametrize("name", DIAGNOSTICS)
@pytest.mark.parametrize("treatment", ["attractor", "multipliers"])
def test_two_hundredths_too_much_fail(treatment, name):
    assert record_diagnostics(treatment).judged(name, 1.02) == dict.fromkeys(DIAGNOSTICS, "passed") | {name: "failed"}


def test_no_number_fails():
    assert record_diagnostics("attractor").judged("rank", float("nan"))["rank"] == "failed"
