"""Numbers of one experiment: communication points, held inputs, parameters, start values."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt
import sympy as sm
from sympy.physics.mechanics import dynamicsymbols

from mb2fmu.errors import Fault, ValidationError
from mb2fmu.model.declarations.declared_content_and_experiment import DeclaredModelContent
from mb2fmu.validation.evaluation_plans.lambdified_scalar_functions import compile_scalar_function

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class ExperimentValues:
    """Numbers of an experiment, the same for the FMU and for its reference.

    Attributes:
        time: Communication points in s, shape (n + 1,), from 0 on, equally spaced.
        inputs: Held over step k: row k, shape (n, n_r); the FMU gets row k at ``time[k]``.
        input_names: FMU names, one per column of ``inputs``.
        parameters: Values of the free parameters, in the model's order.
        q: Start values of the coordinates.
        u: Start values of all speeds; those of dependent ones are solved for.
        z: Start values of the auxiliary states.
        tolerance: Relative tolerance that the FMU promises.
        stiff: True: an implicit method integrates the reference.
        overridden_values: FMU name → value, of parameters and start values that differ from the FMU's own.
        signals: FMU name of an input → what its signal is, in words or as a formula.
    """

    time: Floats
    inputs: Floats
    input_names: tuple[str, ...]
    parameters: tuple[float, ...]
    q: tuple[float, ...]
    u: tuple[float, ...]
    z: tuple[float, ...]
    tolerance: float
    stiff: bool = False
    overridden_values: Mapping[str, float] = field(default_factory=dict)
    signals: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.time.ndim != 1 or len(self.time) < 2 or self.time[0] != 0.0:
            raise ValueError("communication points start at 0 and are at least two")
        if self.inputs.shape != (len(self.time) - 1, len(self.input_names)):
            raise ValueError(f"{self.inputs.shape} input values for {len(self.time) - 1} steps")
        if not self.tolerance > 0:
            raise ValueError(f"tolerance {self.tolerance} is not positive")

    @property
    def step(self) -> float:
        """Communication step size in s."""
        return float(self.time[1])

    @property
    def has_constant_inputs(self) -> bool:
        """True if no input changes."""
        return bool(np.all(self.inputs == self.inputs[0]))

    def inputs_at(self, k: int | npt.NDArray[np.int64]) -> Floats:
        """Return the inputs for outputs at ``time[k]``: those of the step that ends there (at 0: of the first).

        Args:
            k: A communication point, or many, for each of which there is a row then.
        """
        return np.asarray(self.inputs[np.maximum(k - 1, 0)])

    def form_points(self, states: Floats) -> Floats:
        """Return rows (t, state, inputs as :meth:`inputs_at` has them) at all communication points.

        Args:
            states: Of any kind, shape (n_t, n).
        """
        return np.column_stack([self.time, states, self.inputs_at(np.arange(len(self.time)))])

    def select_points(
        self, point_count: int, further_points: npt.ArrayLike = ()
    ) -> tuple[ExperimentValues, npt.NDArray[np.int64]]:
        """Return the experiment at about ``point_count`` points and ``further_points``, and their indices.

        Where an input changes all points are kept.
        """
        last = len(self.time) - 1
        stride = max(1, last // max(point_count, 1)) if self.has_constant_inputs else 1
        rows = np.union1d(np.append(np.arange(0, last, stride), last), np.asarray(further_points, dtype=np.int64))
        return replace(self, time=self.time[rows], inputs=self.inputs[rows[:-1]]), rows


def form_experiment_values(
    definition: DeclaredModelContent, parameters: Mapping[str, float] | None = None
) -> ExperimentValues:
    """Return the default experiment of a model, as numbers.

    Args:
        definition: The checked model.
        parameters: FMU name → value, instead of the default.

    Raises:
        ValidationError: If a name is no free parameter, or a signal gives no finite number.
    """
    overridden = dict(parameters or {})
    free = [p for p in definition.parameters if not p.calculated]
    faults = [
        Fault(f"{name} is no free parameter of {definition.name}", name, f"one of {', '.join(p.name for p in free)}")
        for name in sorted(overridden.keys() - {p.name for p in free})
    ]
    experiment = definition.experiment
    steps = max(1, math.floor(experiment.stop / experiment.step * (1 + 1e-12) + 1e-9))
    time = np.arange(steps + 1, dtype=np.float64) * np.float64(experiment.step)
    inputs = np.empty((steps, len(definition.inputs)))
    for column, record in enumerate(definition.inputs):
        samples, fault = _sample_signal(experiment.signals.get(record.symbol, record.start), time[:-1], record.name)
        inputs[:, column] = samples
        faults += [fault] if fault else []
    if faults:
        raise ValidationError("the experiment cannot be run:", faults)
    return ExperimentValues(
        time=time,
        inputs=inputs,
        input_names=tuple(record.name for record in definition.inputs),
        parameters=tuple(float(overridden.get(p.name, p.value)) for p in free),
        q=tuple(c.start for c in definition.coordinates),
        u=tuple(s.start for s in definition.speeds),
        z=tuple(s.start for s in definition.auxiliary_states),
        tolerance=experiment.tolerance,
        stiff=experiment.stiff,
        overridden_values=MappingProxyType({name: float(value) for name, value in overridden.items()}),
        signals=MappingProxyType(
            {record.name: str(experiment.signals.get(record.symbol, record.start)) for record in definition.inputs}
        ),
    )


def evaluate_calculated_parameters(definition: DeclaredModelContent, parameters: Sequence[float]) -> dict[str, float]:
    """Return FMU names of the calculated parameters → values that follow from the free ones; nan: undefined."""
    free = [p for p in definition.parameters if not p.calculated]
    values = {p.symbol: sm.Float(v, 17) for p, v in zip(free, parameters, strict=True)}
    calculated_values = {}
    for parameter in definition.parameters:
        if parameter.calculated:
            value = sm.sympify(parameter.value).xreplace(values).evalf()
            values[parameter.symbol] = value
            calculated_values[parameter.name] = float(value) if value.is_number and value.is_real else math.nan
    return calculated_values


def _sample_signal(signal: Any, time: Floats, name: str) -> tuple[Floats, Fault | None]:
    """Return the signal at each time (shape of ``time``), and its fault if it has one."""
    expression = sm.sympify(signal).subs(dynamicsymbols._t, sm.Symbol("t", real=True))  # noqa: SLF001  SymPy's time
    unknown = {str(s) for s in expression.free_symbols} - {"t"}
    if unknown:
        return np.zeros_like(time), Fault(
            f"its signal uses {', '.join(sorted(unknown))}",
            name,
            "write it as an expression of dynamicsymbols._t alone",
        )
    function = compile_scalar_function([sm.Symbol("t", real=True)], [expression])
    try:
        samples = np.array([float(function(t)[0]) for t in time.tolist()])
    except (ArithmeticError, ValueError, TypeError) as error:
        return np.zeros_like(time), Fault(f"its signal cannot be evaluated: {error}", name, "make it finite everywhere")
    if not np.all(np.isfinite(samples)):
        return samples, Fault("its signal is not finite everywhere", name, "make it so")
    return samples, None
