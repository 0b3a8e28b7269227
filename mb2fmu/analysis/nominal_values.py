"""Nominals of states and inputs without declared ones: their magnitudes in the experiment.

An FMU's integrator, and that of an importer of Model Exchange, keep the error of a state near zero below a part of its
nominal. FMI's default is 1 of whatever the unit is, which is nothing to a mechanism of micrometres: a state of 1e-6 m
would be off by as much as it moves. So the experiment is followed roughly, and the nominal is the largest magnitude
that the state has on the way, as a power of ten. Of a state that stays below a ten-thousandth of its typical magnitude
(see ``model.scales.characteristic_units``) this may be error alone: the experiment is followed again, with errors kept
below a part of what was seen. What stays below 1e-9 of its typical magnitude is at rest, and that is its nominal.
An input's is its largest magnitude in the experiment, or typical if it is zero.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from mb2fmu.analysis.operating_point_start import make_operating_point_start
from mb2fmu.analysis.sensitivity_request import make_experiment_input_signals, make_scalar_input_signals
from mb2fmu.compiler.arithmetic.python_newton import SingularMatrixError
from mb2fmu.compiler.evaluation import make_evaluator
from mb2fmu.compiler.program import count_operations
from mb2fmu.compiler.program.scalar_program import ScalarProgram
from mb2fmu.fmu.emit_python.runtime.dormand_prince import DormandPrince
from mb2fmu.fmu.emit_python.runtime.integrator_base import IntegratorMemory, Tolerance
from mb2fmu.mechanics.equations.equations_of_motion import EquationsOfMotion
from mb2fmu.model.declarations.declared_content_and_experiment import DeclaredModelContent
from mb2fmu.model.quantity_declarations import AuxiliaryState, Coordinate, Speed
from mb2fmu.model.scales.characteristic_units import estimate_characteristic_units

Floats = npt.NDArray[np.float64]

INTEGRATION_TOLERANCE = 1e-6
MAX_OPERATIONS = 4_000_000
"""Of all evaluations together, about: half a second in Python at most."""
MAX_EVALUATIONS, MIN_EVALUATIONS = 4_000, 100
"""Evaluations; where fewer are within reach, it is not tried."""
_ERROR_WEIGHT = 100.0  # of a nominal, so that the solver, which takes a hundredth of it, adds the whole magnitude
_SIGNAL_SAMPLES = 50  # at which inputs are looked at
AT_REST_RATIO = 1e-4
"""Part of the typical magnitude below which what is seen of a state may be error alone."""
RESOLVED_RATIO = 1e-9
"""Part of the typical magnitude below which a state is at rest: an integrator that resolves less follows round-off."""
UNFINISHED_RATIO, UNFINISHED_GROWTH = 1e-3, 10.0
"""Where the experiment was not followed to its end a nominal is at least the smaller of this part of the typical
magnitude and this multiple of what was seen."""


def add_nominal_values(
    definition: DeclaredModelContent, equations: EquationsOfMotion, program: ScalarProgram
) -> DeclaredModelContent:
    """Return the definition with a nominal for each state and input that has none and whose magnitude is not about 1.

    Args:
        definition: The checked model.
        equations: Which coordinates and speeds are states.
        program: The lowered equations.
    """
    d, natural = definition, estimate_characteristic_units(definition)
    states: list[Coordinate | Speed | AuxiliaryState] = [
        *(d.coordinates[i] for i in equations.q_independent),
        *(d.speeds[i] for i in equations.u_independent),
        *d.auxiliary_states,
    ]
    typical = np.array([natural.typical(item) for item in states])
    if not states:
        return d
    sizes = _estimate_sizes(definition, equations, program, typical)
    found: dict[str, float] = {}
    for item, size in zip(states, sizes.tolist(), strict=True):
        exponent = round(math.log10(size))
        if item.nominal is None and exponent:
            found[item.name] = float(f"1e{exponent}")
    signals = make_experiment_input_signals(d, make_operating_point_start(d, equations, {}))
    times = np.linspace(0.0, d.experiment.stop, _SIGNAL_SAMPLES)
    given = [0.0] * len(d.inputs)
    with suppress(ArithmeticError, ValueError), np.errstate(all="ignore"):
        given = np.max(np.abs([signals(t) for t in times.tolist()]), axis=0).tolist()
    for signal, size in zip(d.inputs, given, strict=True):
        exponent = round(math.log10(size if 0.0 < size < math.inf else natural.typical(signal)))
        if signal.nominal is None and exponent:
            found[signal.name] = float(f"1e{exponent}")
    return replace(
        d,
        inputs=tuple(replace(r, nominal=found.get(r.name, r.nominal)) for r in d.inputs),
        coordinates=tuple(replace(c, nominal=found.get(c.name, c.nominal)) for c in d.coordinates),
        speeds=tuple(replace(s, nominal=found.get(s.name, s.nominal)) for s in d.speeds),
        auxiliary_states=tuple(replace(z, nominal=found.get(z.name, z.nominal)) for z in d.auxiliary_states),
    )


def _estimate_sizes(
    definition: DeclaredModelContent, equations: EquationsOfMotion, program: ScalarProgram, typical: Floats
) -> Floats:
    """Return the size of each state in the experiment, the typical one where it is at rest, shape (n_x,)."""
    largest, finished = _find_largest_magnitudes(definition, equations, program, typical)
    is_known = largest > AT_REST_RATIO * typical
    is_small = ~is_known & (largest > RESOLVED_RATIO * typical)
    if is_small.any():
        seen = np.where(is_small, largest, typical)
        largest, finished = _find_largest_magnitudes(definition, equations, program, seen)
        is_known |= is_small & (largest > np.maximum(AT_REST_RATIO * seen, RESOLVED_RATIO * typical))
    sizes = np.where(is_known, largest, typical)
    return sizes if finished else np.maximum(sizes, np.minimum(UNFINISHED_RATIO * typical, UNFINISHED_GROWTH * sizes))


def _find_largest_magnitudes(
    definition: DeclaredModelContent, equations: EquationsOfMotion, program: ScalarProgram, weights: Floats
) -> tuple[Floats, bool]:
    """Return each state's largest magnitude, as far as the experiment could be followed, and whether it ended.

    Args:
        definition: The checked model.
        equations: Which coordinates and speeds are states.
        program: The lowered equations.
        weights: What the error of each state is a part of, shape (n_x,).
    """
    start = make_operating_point_start(definition, equations, {})
    largest = np.abs(start.x)
    evaluations = min(MAX_EVALUATIONS, MAX_OPERATIONS // max(1, count_operations(program, "rhs").total()))
    if evaluations < MIN_EVALUATIONS:
        return largest, False
    f, signals = make_evaluator(program, "rhs"), make_scalar_input_signals(definition, start)
    first = np.where(largest > AT_REST_RATIO * weights, np.minimum(largest, weights), weights)
    recorder = _StateMagnitudeRecorder(lambda t, x: f(t, x, signals(t), start.p), evaluations, largest)
    solver = DormandPrince(Tolerance(INTEGRATION_TOLERANCE, tuple((_ERROR_WEIGHT * first).tolist())))
    # Where x' has no value, or grows without bounds, what was seen before counts.
    ends = ArithmeticError, ValueError, SingularMatrixError, _EvaluationBudgetSpentError
    with suppress(*ends), np.errstate(all="ignore"):
        if np.isfinite(f(0.0, start.x, signals(0.0), start.p)).all():
            solver.advance(
                recorder.slope,
                0.0,
                start.x.tolist(),
                definition.experiment.stop,
                IntegratorMemory(),
                recorder.record_step_magnitudes,
            )
            return recorder.largest, True
    return recorder.largest, False


class _EvaluationBudgetSpentError(Exception):
    """As many evaluations as are allowed are spent."""


@dataclass
class _StateMagnitudeRecorder:
    """Counts evaluations of x', and keeps the largest magnitude of each state.

    Attributes:
        function: (t, x) → x'.
        remaining: Evaluations that are left.
        largest: Largest magnitudes so far.
    """

    function: Callable[[float, Sequence[float]], Floats]
    remaining: int
    largest: Floats

    def slope(self, t: float, x: Sequence[float]) -> list[float]:
        """Return x'.

        Raises:
            _EvaluationBudgetSpentError: If no evaluation is left.
        """
        if not self.remaining:
            raise _EvaluationBudgetSpentError
        self.remaining -= 1
        slopes: list[float] = self.function(t, x).tolist()
        return slopes

    def record_step_magnitudes(self, _: float, x: Sequence[float]) -> None:
        """Look at the state at the end of a step."""
        if np.isfinite(x).all():
            self.largest = np.maximum(self.largest, np.abs(x))
