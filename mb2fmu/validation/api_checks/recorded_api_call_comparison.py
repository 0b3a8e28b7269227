"""Compare the values that API calls during the perturbed run recorded with the reference: what all families share.

Numbers that come of the same calls (a parameter read, a row of the run) must have the same bits. Numbers that the
reference knows may differ by the agreement = 1e-5 + 10 · FACTOR · tolerance of their size (the FMU's state may be off
by FACTOR · tolerance), plus twenty times the difference of the reference's own finite differences with two step sizes;
numbers that the reference knows no better than to 5 % are left out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from mb2fmu.errors import ValidationError
from mb2fmu.model.declarations.declared_content_and_experiment import DeclaredModelContent
from mb2fmu.validation.api_checks.api_call_plan import ApiCallPlan, ApiCheckPoint, compute_largest_state_rates
from mb2fmu.validation.bounds.differences_with_bounds import BoundedDifferences
from mb2fmu.validation.bounds.one_step_flow import start_flow_in_modes
from mb2fmu.validation.comparison.motion_comparison import CONTRADICTED_MARGIN, ErrorBounds, find_fmu_switch_modes
from mb2fmu.validation.modes.hybrid_equations_recognition import is_hybrid
from mb2fmu.validation.reference.experiment_values import evaluate_calculated_parameters
from mb2fmu.validation.reference.variable_scales import ERROR_BOUND_FACTOR
from mb2fmu.validation.runs.fmu_run import FmuSimulationResult

if TYPE_CHECKING:
    from mb2fmu.validation.modes.mode_equations import SwitchModes

Floats = npt.NDArray[np.float64]
RecordedValues = Mapping[str, Any]
"""Label of a call → the values that it recorded."""

UNCERTAINTY_FACTOR = 20.0
KNOWN_FRACTION = 0.05
NOISE_FRACTION = 1e-8
_RELATIVE_AGREEMENT = 1e-5


@dataclass(slots=True)
class RecordedApiCallComparison:
    """Compares the API checks of one interface type with the reference.

    Attributes:
        definition: The checked model.
        check_point: Where the calls were made.
        plan: The requested calls.
        limits: Bounds of the perturbed experiment.
        simulation: The FMU's uninterrupted run of it.
        rates: The largest |x'| of each state in the experiment, > 0.
        modes: Point near an event → modes of the side on which the FMU was.
    """

    definition: DeclaredModelContent
    check_point: ApiCheckPoint
    plan: ApiCallPlan
    limits: ErrorBounds
    simulation: FmuSimulationResult
    rates: Floats = field(init=False)
    modes: dict[int, SwitchModes] = field(init=False)

    def __post_init__(self) -> None:
        self.rates = compute_largest_state_rates(self.check_point.reference)
        self.modes = find_fmu_switch_modes(self.check_point.reference, self.limits, self.simulation)

    @property
    def agreement(self) -> float:
        """The largest relative difference from the reference that is no fault."""
        return _RELATIVE_AGREEMENT + 10 * ERROR_BOUND_FACTOR * self.check_point.reference.experiment.tolerance

    def magnitudes(self) -> Floats:
        """Return each compared variable's magnitude, > 0, shape (n,), for bounds of round-off."""
        reference = self.check_point.reference
        return np.asarray(np.maximum(np.max(np.abs(reference.trajectory.values), axis=0), reference.scales))

    def state_places(self) -> dict[str, int]:
        """Return name of a state of the reference → its place in x."""
        reference = self.check_point.reference
        return {reference.trajectory.names[c]: j for j, c in enumerate(reference.state_columns)}

    def own_state(self, row: int) -> Floats:
        """Return x of the FMU's own run at a point, shape (n_x,)."""
        reference = self.check_point.reference
        columns = [self.simulation.names.index(reference.trajectory.names[c]) for c in reference.state_columns]
        return np.asarray(self.simulation.values[row, columns])

    def find_modes(self, point: int) -> SwitchModes | None:
        """Return the modes at a point: of the FMU's side of an event, or in which the reference sticks; else None.

        While it sticks an integrator leaves a slip of round-off (a block on a plate that shakes), which is none. An FMU
        that slides is off by the whole difference then.
        """
        modes, reference = self.modes.get(point), self.check_point.reference
        numeric, run = reference.numeric, reference.experiment
        if modes is not None or not reference.modes or not is_hybrid(numeric):
            return modes
        sticking = reference.modes[point]
        if not any(sticking.values[i] == 0.0 for i in numeric.signs):
            return None
        state, inputs = self.own_state(point), run.inputs_at(point).tolist()
        prepared = numeric.prepare(run.parameters)
        contradiction = numeric.mode_contradiction(float(run.time[point]), state, inputs, prepared, sticking)
        return sticking if contradiction <= CONTRADICTED_MARGIN else None

    def compare_parameters_and_inputs(
        self, values: Mapping[str, float], row: int, parameters: Sequence[float], error_table: BoundedDifferences
    ) -> None:
        """Compare parameters (calculated ones too) and inputs with the values that were set."""
        check_point, experiment_settings = self.check_point, self.check_point.experiment_settings
        free = [p.name for p in self.definition.parameters if not p.calculated]
        for name, value in zip(free, parameters, strict=True):
            if name in experiment_settings.overridden_values and name in values:
                error_table.add_identical(values[name], value, name)
        for name, value in evaluate_calculated_parameters(self.definition, parameters).items():
            if name in values and set(free) <= set(values):
                error_table.add(abs(values[name] - value), 1e-12 * abs(value) + 1e-300, name)
        for name, value in zip(self.plan.inputs, check_point.reference.experiment.inputs_at(row).tolist(), strict=True):
            error_table.add_identical(values[name], value, name)

    def compare_rates_and_outputs(
        self,
        values: Mapping[str, float],
        point_and_modes: tuple[int, SwitchModes | None],
        parameters: Sequence[float],
        error_table: BoundedDifferences,
        situation: str,
        parameters_before: Sequence[float] | None = None,
    ) -> None:
        """Compare rates and outputs with the reference's at the FMU's own state.

        Args:
            values: All that the FMU shows.
            point_and_modes: Number of the point, and the modes there where they do not follow from the state.
            parameters: Free ones.
            error_table: Takes the comparisons.
            situation: For people.
            parameters_before: Parameters before the event just now, the modes behind which are the FMU's; None: there
                was none.
        """
        reference, (row, modes) = self.check_point.reference, point_and_modes
        numeric, run = reference.numeric, reference.experiment
        x = np.array([values[reference.trajectory.names[c]] for c in reference.state_columns])
        t = float(run.time[row])
        try:
            r = run.inputs_at(row).tolist()
            prepared = numeric.prepare(list(parameters))
            prepared_before = prepared if parameters_before is None else numeric.prepare(list(parameters_before))
            prepared_after = None if parameters_before is None else prepared
            with start_flow_in_modes(numeric, modes), numeric.keep_modes(t, x, r, prepared_before, prepared_after):
                motion = numeric.motion(t, x, r, prepared)
        except (ValidationError, ArithmeticError, ValueError):
            return
        scale = ERROR_BOUND_FACTOR * run.tolerance
        places = self.state_places()
        for state, rate in zip(self.plan.states, self.plan.rates, strict=True):
            if state in places and rate in values:
                j = places[state]
                expected = float(motion.x_dot[j])
                error_table.add(
                    abs(values[rate] - expected), scale * max(self.rates[j], abs(expected)), f"{rate} {situation}"
                )
        outputs = [v.name for v in reference.variables if v.kind == "output"]
        for name, expected in zip(outputs, motion.outputs.tolist(), strict=True):
            allowed = float(self.limits.values[row, reference.trajectory.column(name)])
            error_table.add(abs(values[name] - expected), max(allowed, scale * abs(expected)), f"{name} {situation}")
