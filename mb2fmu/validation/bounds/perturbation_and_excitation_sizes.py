"""Size of the moves of free parameters and start values, and the excitation of inputs.

Moves are generic: fixed fractions between 10 and 30 % that follow the golden ratio, so that no two are equal, and signs
that follow another irrational number. What is zero by default gets a size from its nominal value, its bounds, what it
does to the accelerations, or others of its unit, in this order. Numbers are rounded, so that they can be read.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np
import numpy.typing as npt

from mb2fmu.model.declarations.declared_content_and_experiment import DeclaredModelContent
from mb2fmu.model.quantity_declarations import DeclaredVariable, Input, Parameter
from mb2fmu.model.scales.characteristic_units import CharacteristicUnits, estimate_characteristic_units
from mb2fmu.validation.reference.reference_run import ReferenceRun
from mb2fmu.validation.reference_equations.numeric_equations import NumericEquations

Floats = npt.NDArray[np.float64]

SMALLEST_PERTURBATION_FRACTION, LARGEST_PERTURBATION_FRACTION = 0.1, 0.3
_BOUNDED_INPUT_FACTOR = 30.0
"""Most by which an input with bounds is moved, in parts of what changes some acceleration by its own size."""

_GOLDEN_RATIO_RECIPROCAL = 0.6180339887498949
_PLASTIC_NUMBER_RECIPROCAL = (
    0.7548776662466927  # the reciprocal of the plastic number: signs that follow no pattern of the moves
)
_REFERENCE_ANGLE_RAD = 0.5  # rad: an angle that is zero is moved by 10 to 30 % of this
_SAMPLED_STATE_COUNT = 8
_PROBE_FRACTION = 1e-6
_SIGNIFICANT_DIGITS = 6


def choose_perturbation_fraction(index: int) -> float:
    """Return a signed fraction between 10 and 30 %, different for each index."""
    size = SMALLEST_PERTURBATION_FRACTION + (LARGEST_PERTURBATION_FRACTION - SMALLEST_PERTURBATION_FRACTION) * (
        (index + 1) * _GOLDEN_RATIO_RECIPROCAL % 1.0
    )
    return math.copysign(size, (index + 1) * _PLASTIC_NUMBER_RECIPROCAL % 1.0 - 0.5)


def round_to_significant_digits(value: float, digits: int = _SIGNIFICANT_DIGITS) -> float:
    """Return a number rounded to so many significant digits."""
    return float(f"{value:.{digits - 1}e}")


@dataclass(frozen=True, slots=True)
class PerturbationEffects:
    """Effects of small changes on the mechanism, at some states of the default experiment.

    Attributes:
        reference: The default experiment.
        rows: Which of its states are looked at.
        rates: How fast each state changes at most, > 0, shape (n_x,).
        ranges: How far each output goes at most, shape (n_y,); 0 where it stands still.
        natural_units: Natural units of the mechanism.
    """

    reference: ReferenceRun
    rows: tuple[int, ...]
    rates: Floats
    ranges: Floats
    natural_units: CharacteristicUnits

    @staticmethod
    def sample_reference(definition: DeclaredModelContent, reference: ReferenceRun) -> PerturbationEffects:
        """Sample up to eight states of a reference."""
        last = len(reference.states) - 1
        rows = tuple(sorted({round(k * last / (_SAMPLED_STATE_COUNT - 1)) for k in range(_SAMPLED_STATE_COUNT)}))
        numeric, run = reference.numeric, reference.experiment
        prepared = numeric.prepare(run.parameters)
        rates_and_outputs = [_evaluate_at_state(numeric, reference, k, run.inputs_at(k), prepared) for k in rows]
        fastest = np.max(np.abs([x_dot for x_dot, _ in rates_and_outputs]), axis=0)
        # What stands still by default may yet be moved: by its magnitude within the experiment.
        rates = np.maximum(fastest, 2.0 * reference.state_scales / float(run.time[-1]))
        values = reference.trajectory.values[:, len(reference.variables) - len(rates_and_outputs[0][1]) :]
        return PerturbationEffects(
            reference, rows, rates, np.ptp(values, axis=0), estimate_characteristic_units(definition)
        )

    def parameter_change(self, index: int, probe: float) -> float:
        """Return how much a parameter must change to change accelerations or outputs by their own size; 0: unknown.

        Args:
            index: Of the parameter among the free ones.
            probe: A change that is small.
        """
        numeric, run = self.reference.numeric, self.reference.experiment
        changed_parameters = list(run.parameters)
        changed_parameters[index] += probe
        before, after = numeric.prepare(run.parameters), numeric.prepare(changed_parameters)
        return self._compute_effective_change(
            lambda k: _evaluate_at_state(numeric, self.reference, k, run.inputs_at(k), before),
            lambda k: _evaluate_at_state(numeric, self.reference, k, run.inputs_at(k), after),
            probe,
        )

    def input_change(self, index: int, probe: float) -> float:
        """Return how much an input must change to change accelerations or outputs by their own size; 0: unknown."""
        numeric, run = self.reference.numeric, self.reference.experiment
        prepared = numeric.prepare(run.parameters)

        def after(k: int) -> tuple[Floats, Floats]:
            """Return accelerations and outputs at point k with the input changed."""
            inputs = run.inputs_at(k).copy()
            inputs[index] += probe
            return _evaluate_at_state(numeric, self.reference, k, inputs, prepared)

        return self._compute_effective_change(
            lambda k: _evaluate_at_state(numeric, self.reference, k, run.inputs_at(k), prepared), after, probe
        )

    def _compute_effective_change(
        self,
        before: Callable[[int], tuple[Floats, Floats]],
        after: Callable[[int], tuple[Floats, Floats]],
        probe: float,
    ) -> float:
        """Return the change that moves the most affected state's rate (or else output) by its own size."""
        rates, outputs = np.zeros_like(self.rates), np.zeros_like(self.ranges)
        for k in self.rows:
            try:
                value_before, value_after = before(k), after(k)
            except (ArithmeticError, ValueError):  # leaves the domain of an expression
                continue
            rates = np.maximum(rates, np.abs(value_after[0] - value_before[0]) / abs(probe))
            outputs = np.maximum(outputs, np.abs(value_after[1] - value_before[1]) / abs(probe))
        noise = 1e-9
        is_affected = rates * abs(probe) > noise * self.rates
        if np.any(is_affected):
            return float(np.min(self.rates[is_affected] / rates[is_affected]))
        is_output_affected = outputs * abs(probe) > noise * self.ranges
        is_output_affected &= self.ranges > 0
        return (
            float(np.min(self.ranges[is_output_affected] / outputs[is_output_affected]))
            if np.any(is_output_affected)
            else 0.0
        )


def _evaluate_at_state(
    numeric: NumericEquations, reference: ReferenceRun, row: int, inputs: Floats, prepared: Sequence[float]
) -> tuple[Floats, Floats]:
    """Return x' and outputs at a state of the reference."""
    t = float(reference.experiment.time[row])
    motion = numeric.motion(t, reference.states[row], inputs.tolist(), prepared)
    return motion.x_dot, motion.outputs


def choose_parameter_perturbations(definition: DeclaredModelContent, scale_of_change: PerturbationEffects) -> Floats:
    """Return how much each free parameter is to be moved, shape (n_p,); 0 where bounds leave no room."""
    free = [p for p in definition.parameters if not p.calculated]
    values = [float(p.value) for p in free]
    perturbations = np.zeros(len(free))
    for k, parameter in enumerate(free):
        fraction = choose_perturbation_fraction(k)
        size = abs(values[k]) or _choose_size_for_zero_parameter(parameter, k, free, scale_of_change)
        target = mirror_perturbed_value_into_bounds(
            parameter, values[k], round_to_significant_digits(values[k] + fraction * size)
        )
        perturbations[k] = target - values[k]
    return perturbations


def _choose_size_for_zero_parameter(
    parameter: Parameter, index: int, free: Sequence[Parameter], scale_of_change: PerturbationEffects
) -> float:
    """Return the reference size for the move of a parameter that is zero."""
    if parameter.nominal:
        return parameter.nominal
    if parameter.minimum is not None and parameter.maximum is not None:
        return parameter.maximum - parameter.minimum
    same_unit_values = [abs(float(p.value)) for p in free if p.unit == parameter.unit and float(p.value)]
    typical_size = (
        median(same_unit_values) if same_unit_values else scale_of_change.natural_units.magnitude(parameter.unit)
    )
    probe = _PROBE_FRACTION * typical_size
    return scale_of_change.parameter_change(index, probe if parameter.maximum is None else -probe) or typical_size


def mirror_perturbed_value_into_bounds(quantity: DeclaredVariable, value: float, target: float) -> float:
    """Return the target, mirrored at the value or moved half-way to the bound where it lies outside of the bounds."""
    low = -math.inf if quantity.minimum is None else quantity.minimum
    high = math.inf if quantity.maximum is None else quantity.maximum
    for candidate in (target, 2 * value - target):
        if low <= candidate <= high:
            return candidate
    return value + (high - value if target > value else low - value) / 2


def choose_start_perturbations(definition: DeclaredModelContent, reference: ReferenceRun) -> Floats:
    """Return how much each coordinate, independent speed and auxiliary state is to be moved, shape (n_x,)."""
    numeric = reference.numeric
    records: list[DeclaredVariable] = [
        *definition.coordinates,
        *(definition.speeds[i] for i in numeric.equations.u_independent),
        *definition.auxiliary_states,
    ]
    values = reference.states[0]
    perturbations = np.zeros(len(records))
    columns = list(reference.state_columns)
    typical_sizes = reference.typical[columns]
    # Less than that is what round-off leaves of nothing.
    ranges = np.ptp(reference.states, axis=0)
    ranges = np.where(ranges > 1e-6 * typical_sizes, ranges, 0.0)
    for k, record in enumerate(records):
        if record.nominal:
            size = record.nominal
        elif record.unit == "rad":
            size = _REFERENCE_ANGLE_RAD
        else:
            size = abs(float(values[k])) or float(ranges[k]) or float(typical_sizes[k])
        target = mirror_perturbed_value_into_bounds(
            record,
            float(values[k]),
            round_to_significant_digits(float(values[k]) + choose_perturbation_fraction(k + 7) * size),
        )
        perturbations[k] = target - values[k]
    return perturbations


@dataclass(frozen=True, slots=True)
class InputExcitationSignal:
    """centre + size · (0.5 sin(a t + b) + 0.3 sin(c t + d) + (0.4 from ``jump_time`` on)), or a fraction of ``size``.

    Attributes:
        centre: About which it moves.
        size: Amplitude, ≥ 0, such that the whole stays within the bounds.
        rates: a and c in rad/s.
        phases: b and d in rad.
        jump_time: In s.
    """

    centre: float
    size: float
    rates: tuple[float, float]
    phases: tuple[float, float]
    jump_time: float

    def values(self, time: Floats, fraction: float) -> Floats:
        """Return the values at times, with that fraction of its size."""
        (a, c), (b, d) = self.rates, self.phases
        oscillation = 0.5 * np.sin(a * time + b) + 0.3 * np.sin(c * time + d)
        return np.asarray(self.centre + fraction * self.size * (oscillation + 0.4 * (time >= self.jump_time)))

    def text(self, fraction: float) -> str:
        """Return the signal as a formula."""
        (a, c), (b, d) = self.rates, self.phases
        oscillation = f"0.5 sin({a:g} t + {b:g}) + 0.3 sin({c:g} t + {d:g})"
        return f"{self.centre:g} + {fraction * self.size:g} ({oscillation} + 0.4 [t ≥ {self.jump_time:g}])"


EXCITATION_REACH = 1.2  # of a signal: the largest value of the sum of its parts


def make_excitation_signals(
    definition: DeclaredModelContent, scale_of_change: PerturbationEffects, stop: float
) -> tuple[InputExcitationSignal, ...]:
    """Return one signal per input: two sines and a step, with different rates for each."""
    run = scale_of_change.reference.experiment
    signals = []
    for k, record in enumerate(definition.inputs):
        default_values = run.inputs[:, k]
        centre, size = _choose_centre_and_size(record, default_values, k, scale_of_change)
        phase = (k + 1) * _GOLDEN_RATIO_RECIPROCAL % 1.0
        rate = 2 * math.pi / stop * (1.1 + 0.8 * phase)
        rates = (round_to_significant_digits(rate, 4), round_to_significant_digits(2.618 * rate, 4))
        phases = (round_to_significant_digits(0.4 + phase, 3), round_to_significant_digits(1.0 + 2 * phase, 3))
        signals.append(
            InputExcitationSignal(
                round_to_significant_digits(centre),
                round_to_significant_digits(size, 3),
                rates,
                phases,
                round_to_significant_digits(stop * (0.3 + 0.4 * phase), 3),
            )
        )
    return tuple(signals)


def _choose_centre_and_size(
    record: Input, default_values: Floats, index: int, scale_of_change: PerturbationEffects
) -> tuple[float, float]:
    """Return centre and size of a signal, within the input's bounds."""
    centre = float(np.mean(default_values))
    low = -math.inf if record.minimum is None else record.minimum
    high = math.inf if record.maximum is None else record.maximum
    if math.isfinite(low) and math.isfinite(high):
        # A drive may be a million times as strong as its light joint needs: a quarter of its bounds would be too much.
        effective_change = scale_of_change.input_change(
            index, _PROBE_FRACTION * scale_of_change.natural_units.magnitude(record.unit)
        )
        size = min(0.25 * (high - low), _BOUNDED_INPUT_FACTOR * effective_change or math.inf)
    else:
        largest = float(np.max(np.abs(default_values)))
        size = record.nominal or 0.6 * largest
        if not size:
            natural_size = scale_of_change.natural_units.magnitude(record.unit)
            size = 0.5 * (scale_of_change.input_change(index, _PROBE_FRACTION * natural_size) or natural_size)
    centre = min(max(centre, low + EXCITATION_REACH * size), high - EXCITATION_REACH * size)
    return centre, size
