"""Parameters and start values of a model from measured motions."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from mb2fmu import analysis
from mb2fmu.analysis.measured_and_fitted_curve import MeasuredAndFittedCurve
from mb2fmu.analysis.studies.model_fitting import FitResult, FitUnknown, fit_unknowns
from mb2fmu.errors import AnalysisError, Fault, ValidationError
from mb2fmu.pipeline.derivation.model_derivation import AnyModel, derive
from mb2fmu.pipeline.derivation.pipeline_results import DerivationResult, StageObserver
from mb2fmu.pipeline.derivation.stage_stopwatch import StageStopwatch
from mb2fmu.pipeline.simulation.input_signals import convert_times_to_seconds
from mb2fmu.units import are_compatible_units, display_unit_conversion

if TYPE_CHECKING:
    from mb2fmu.validation import ValidationDataTable

Floats = npt.NDArray[np.float64]

InputInterpolation = Literal["smooth", "lines"]
"""How inputs move from one row to the next: on Akima's cubics, or straight, as importers and ``simulate`` have them."""

_INTEGRATION_TOLERANCE = 1e-10
"""Of the integration: differences between motions count here."""
_TOLERANCE_WITH_INPUTS = 1e-8
"""The same where inputs were measured: between two rows they are not known better, and their joints cost steps."""


@dataclass(frozen=True, slots=True)
class _MeasuredMotion:
    """One measured motion.

    Attributes:
        time: s, increasing, shape (n_t,).
        names: FMU names of states and outputs that were measured.
        values: In their units, NaN where nothing was, shape (n_t, n_names).
        inputs: FMU name of an input → what it was, shape (n_t,).
        derivatives: Columns that are derivatives of states, no states, or margins of events, as simulated motions have
            them: they are not compared.
        between: How inputs move between rows.
    """

    time: Floats
    names: tuple[str, ...]
    values: Floats
    inputs: Mapping[str, Floats]
    derivatives: tuple[str, ...] = ()
    between: InputInterpolation = "smooth"


def identify_parameters(
    model: AnyModel,
    data: Sequence[Path],
    free: Sequence[str],
    *,
    bounds: Mapping[str, tuple[float, float]] | None = None,
    arguments: Mapping[str, Any] | None = None,
    between: InputInterpolation = "smooth",
    observer: StageObserver | None = None,
) -> FitResult:
    """Find parameters, and start values of states, for which the model moves as measured.

    Args:
        model: A model, or the file that has its function; its values are where the search begins.
        data: One CSV file per experiment: ``time``, and columns headed by FMU names of states, outputs and inputs, with
            their units in brackets if they are others (``theta [deg]``).
        free: FMU names. Parameters have one value; states have a start value in each experiment.
        bounds: FMU name → lowest and highest value; None: those of the model.
        arguments: Of the model's function, by name.
        between: How inputs move between rows: ``smooth`` (Akima's cubics), nearer to what a sensor has sampled of a
            smooth curve, or ``lines``, exact where an importer or ``mb2fmu simulate`` was given the same table.
        observer: Is notified of each stage.

    Raises:
        AnalysisError: With every fault; if nothing can be found.
        ValidationError: For tables that cannot be read.
    """
    derivation = derive(model, arguments=arguments, observer=observer)
    try:
        unknowns, places = _list_unknowns(derivation, free, bounds or {}, len(data))
    except AnalysisError as error:
        raise _add_table_faults(error, derivation, data) from None
    experiments = tuple(replace(each, between=between) for each in _read_measurements(derivation, data))
    measured = _FitResiduals(derivation, experiments, places)
    with StageStopwatch(observer)("fit"):
        precision = _TOLERANCE_WITH_INPUTS if any(each.inputs for each in experiments) else _INTEGRATION_TOLERANCE
        found = fit_unknowns(unknowns, measured.predict, measured.values, measured.columns, precision=precision)
        curves = measured.curves(found.values, [path.name for path in data])
        left = ", ".join(dict.fromkeys(name for each in experiments for name in each.derivatives))
        words = (f"{left}: derivatives of states, and what follows from them, are not compared",) if left else ()
        return replace(found, curves=curves, words=(*found.words, *words))


@dataclass(frozen=True)
class _FitResiduals:
    """All measured numbers of several experiments in one row, and the model's numbers in the same order.

    Attributes:
        derivation: The model.
        experiments: The tables; cells without a finite number are left out.
        places: (FMU name, experiment or -1: all of them, index) of each unknown.
    """

    derivation: DerivationResult
    experiments: tuple[_MeasuredMotion, ...]
    places: Sequence[tuple[str, int, int]]

    @property
    def finite_value_masks(self) -> list[npt.NDArray[np.bool_]]:
        """Masks of the finite numbers of each experiment."""
        return [np.isfinite(each.values) for each in self.experiments]

    @property
    def values(self) -> Floats:
        """The measured numbers."""
        return np.concatenate(
            [each.values[mask] for each, mask in zip(self.experiments, self.finite_value_masks, strict=True)]
        )

    @property
    def columns(self) -> list[str]:
        """FMU name of the quantity of each measured number."""
        return [
            name
            for each, mask in zip(self.experiments, self.finite_value_masks, strict=True)
            for name in np.broadcast_to(np.array(each.names), mask.shape)[mask].tolist()
        ]

    def _moved(self, values: Floats, experiment: int) -> tuple[analysis.Sensitivities, list[int]]:
        """Return the motion in one experiment with these values of the unknowns, and the unknowns that it has."""
        own = [(name, i) for name, where, i in self.places if where in {-1, experiment}]
        at = {name: float(values[i]) for name, i in own}
        return _compute_motion_sensitivities(self.derivation, self.experiments[experiment], at), [i for _, i in own]

    def predict(self, values: Floats) -> tuple[Floats, Floats]:
        """Simulate all experiments with these values; return measured quantities, and their derivatives."""
        parts, slopes = [], []
        for k, mask in enumerate(self.finite_value_masks):
            moved, own = self._moved(values, k)
            slope = np.zeros((int(mask.sum()), len(values)))
            slope[:, own] = moved.derivatives[mask]
            parts.append(moved.values[mask])
            slopes.append(slope)
        return np.concatenate(parts), np.concatenate(slopes)

    def curves(self, values: Floats, titles: Sequence[str]) -> tuple[MeasuredAndFittedCurve, ...]:
        """Return the measured columns of all experiments beside the model's with these values."""
        return tuple(
            curve
            for k, (title, each) in enumerate(zip(titles, self.experiments, strict=True))
            for curve in _form_fitted_curves(self.derivation, title, each, self._moved(values, k)[0].values)
        )


def _add_table_faults(error: AnalysisError, derivation: DerivationResult, data: Sequence[Path]) -> AnalysisError:
    """Return the error with the faults of the tables added, so that all are reported together."""
    try:
        _read_measurements(derivation, data)
    except (AnalysisError, ValidationError) as other:
        return AnalysisError(error.headline, [*error.faults, *other.faults])
    return error


def _form_fitted_curves(
    derivation: DerivationResult, file: str, experiment: _MeasuredMotion, found: Floats
) -> list[MeasuredAndFittedCurve]:
    """Return the columns of an experiment beside the fitted values."""
    units = _variable_units(derivation)
    return [
        MeasuredAndFittedCurve(file, name, units[name], experiment.time, experiment.values[:, j], found[:, j])
        for j, name in enumerate(experiment.names)
    ]


def _variable_units(derivation: DerivationResult) -> dict[str, str]:
    """Return FMU name of each state and output → unit."""
    d = derivation.definition
    declared = (*d.coordinates, *d.speeds, *d.auxiliary_states)
    return {each.name: each.unit for each in declared} | {o.name: o.unit for o in derivation.equations.outputs}


def _compute_motion_sensitivities(
    derivation: DerivationResult, experiment: _MeasuredMotion, at: Mapping[str, float]
) -> analysis.Sensitivities:
    """Return the motion with these values, and its derivatives by them, at the instants of an experiment."""
    definition, equations = derivation.definition, derivation.equations
    start = analysis.make_operating_point_start(definition, equations, at)
    tolerance = _TOLERANCE_WITH_INPUTS if experiment.inputs else _INTEGRATION_TOLERANCE
    study = analysis.make_sensitivity_request(
        definition, equations, start, experiment.names, tuple(at), tolerance=tolerance
    )
    ahead = int(experiment.time[0] > 0.0)
    time = np.concatenate([[0.0], experiment.time]) if ahead else experiment.time
    signals = analysis.make_experiment_input_signals(definition, start)
    given = {
        k: _interpolate_input(experiment.time, experiment.inputs[item.name], experiment.between)
        for k, item in enumerate(definition.inputs)
        if item.name in experiment.inputs
    }

    def inputs(t: float) -> Floats:
        """Return inputs at time t in s: measured ones by their curves, others by the experiment's signals."""
        r = signals(t)
        for k, curve in given.items():
            r[k] = curve(t)
        return r

    found = analysis.compute_sensitivities(derivation.program, start, inputs, replace(study, time=time))
    return replace(found, values=found.values[ahead:], derivatives=found.derivatives[ahead:])


def _interpolate_input(time: Floats, values: Floats, between: InputInterpolation) -> Callable[[float], float]:
    """Return an input from row to row, for single instants: SciPy's own curves take 50 times as long for these.

    Akima's cubic is nearer to what was smooth than a monotone one by an order, and beside a step it does not swing.
    Before the first row with a value it has that one, after the last the last. Source: H. Akima, J. ACM 17 (1970)
    589-602.
    """
    from scipy.interpolate import Akima1DInterpolator, PPoly

    known = np.isfinite(values)
    time, values = time[known], values[known]
    if len(time) == 1:
        return lambda _t: float(values[0])
    if between == "smooth":
        curve: PPoly = Akima1DInterpolator(time, values)
    else:
        slopes = np.diff(values) / np.diff(time)
        curve = PPoly(np.stack([0.0 * slopes, 0.0 * slopes, slopes, values[:-1]]), time)
    begins, pieces = curve.x[:-1].tolist(), curve.c.T.tolist()
    first, last = float(time[0]), float(time[-1])

    def at(t: float) -> float:
        """Return the cubic's value at time t in s; constant before the first and after the last row."""
        t = min(max(t, first), last)
        k = max(bisect_right(begins, t) - 1, 0)
        s = t - begins[k]
        a, b, c, d = pieces[k]
        return float(((a * s + b) * s + c) * s + d)

    return at


def _read_measurements(derivation: DerivationResult, data: Sequence[Path]) -> list[_MeasuredMotion]:
    """Read the tables.

    Raises:
        AnalysisError: For every column that the model does not have, and times that do not increase from 0 on.
    """
    from mb2fmu import validation

    d = derivation.definition
    seen = _variable_units(derivation)
    states = (*d.coordinates, *d.speeds, *d.auxiliary_states)
    e = derivation.equations
    dependent = {d.coordinates[i].name for i in e.q_dependent} | {d.speeds[i].name for i in e.u_dependent}
    derivatives = {f"der({each.name})" for each in states} | dependent
    inputs = {each.name: each.unit for each in d.inputs}
    faults, found = [], []
    for path in data:
        table = validation.read_validation_table(path)
        time, wrong = _read_times(table)
        faults += wrong
        known = []
        names_of_indicators = tuple(c.name for c in table.columns if c.name.startswith("event_indicator["))
        left = (*(each.name for each in table.columns if each.name in derivatives), *names_of_indicators)
        for column in (each for each in table.columns if each.name not in {"time", *left}):
            unit = seen.get(column.name, inputs.get(column.name))
            if unit is None:
                remedy = f"columns may be {', '.join((*seen, *inputs))}"
                faults.append(Fault(f"the model has no {column.name}", str(path), remedy))
                continue
            if column.unit and not are_compatible_units(unit, column.unit):
                faults.append(
                    Fault(f"{column.name} is in {unit}, not in {column.unit}", str(path), "give its own unit")
                )
                continue
            factor, offset = display_unit_conversion(unit, column.unit) if column.unit else (1.0, 0.0)
            known.append((column.name, (column.values - offset) / factor))
        for name, numbers in known:
            if name in inputs and not np.isfinite(numbers).any():
                faults.append(
                    Fault(f"{name} has no value in any row", str(path), "give it one, or leave the column out")
                )
        names = [name for name, _ in known if name in seen]
        values = [numbers for name, numbers in known if name in seen]
        if not names and not faults:
            faults.append(Fault("nothing in it can be compared with the motion", str(path), "add a state or an output"))
        grid = np.column_stack(values) if values else np.zeros((len(time), 0))
        found.append(_MeasuredMotion(time, tuple(names), grid, {n: v for n, v in known if n in inputs}, left))
    if faults:
        raise AnalysisError("the measurements cannot be used:", faults)
    return found


def _read_times(table: ValidationDataTable) -> tuple[Floats, list[Fault]]:
    """Return the column of times, in s, and its fault if it has one."""
    clock = table.column("time")
    if clock is None:
        return np.arange(float(table.rows)), [Fault("it has no column time", table.source, "add it, in s")]
    try:
        time, faults = convert_times_to_seconds(clock), []
    except ValueError as error:
        return clock.values, [Fault(f"time: {error}", table.source, "head it with time, in s, or with time [ms]")]
    if len(time) < 2:
        faults.append(Fault("it has fewer than two rows", table.source, "measure a motion, not an instant"))
    elif not np.isfinite(time).all():
        row = int(np.flatnonzero(~np.isfinite(time))[0]) + 1
        faults.append(Fault(f"time is empty in row {row}", table.source, "give each row its time, in s"))
    elif not (np.diff(time) > 0.0).all() or time[0] < 0.0:
        faults.append(Fault("its times do not increase from 0 on", table.source, "sort the rows; time is in s"))
    return time, faults


def _list_unknowns(
    derivation: DerivationResult, free: Sequence[str], bounds: Mapping[str, tuple[float, float]], experiments: int
) -> tuple[list[FitUnknown], list[tuple[str, int, int]]]:
    """Return the unknowns, with each one's FMU name, experiment (−1: all) and place."""
    d = derivation.definition
    parameters = {p.name: p for p in d.parameters if not p.calculated}
    start = analysis.make_operating_point_start(d, derivation.equations, {})
    states = dict(zip(start.names, start.x.tolist(), strict=True))
    declared = (*d.coordinates, *d.speeds, *d.auxiliary_states, *d.parameters)
    units = {each.name: each.unit for each in declared}
    faults = [
        Fault(f"{name} is no free parameter and no state", remedy=f"take some of {', '.join((*parameters, *states))}")
        for name in (*free, *bounds)
        if name not in parameters and name not in states
    ]
    faults += [
        Fault(f"{name} has a bound but is not free", remedy=f"--free {name}") for name in bounds if name not in free
    ]
    faults += [] if free else [Fault("nothing is free", remedy="name parameters: --free m,l")]
    unknowns: list[FitUnknown] = []
    places: list[tuple[str, int, int]] = []
    for name in [] if faults else dict.fromkeys(free):
        value = float(parameters[name].value) if name in parameters else states[name]
        own = (parameters[name].minimum, parameters[name].maximum) if name in parameters else (None, None)
        low, high = bounds.get(name, (-np.inf if own[0] is None else own[0], np.inf if own[1] is None else own[1]))
        if not low < high or not low <= value <= high:
            what = f"the search cannot begin at {value:g} between {low:g} and {high:g}"
            faults.append(Fault(what, name, "give other bounds, or another start by --at"))
        several = name in states and experiments > 1
        for k in range(experiments) if several else [0 if name in states else -1]:
            label = f"{name} ({k + 1})" if several else name
            places.append((name, k, len(unknowns)))
            unknowns.append(FitUnknown(label, value, float(low), float(high), units[name]))
    if faults:
        raise AnalysisError("nothing can be fitted:", faults)
    return unknowns, places
