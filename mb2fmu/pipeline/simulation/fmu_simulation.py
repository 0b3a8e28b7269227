"""Run any FMU by fmpy through the user's experiment: values, inputs and times as requested."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np
import numpy.typing as npt

from mb2fmu import visualization
from mb2fmu.errors import Fault, ToolError, ValidationError
from mb2fmu.model.experiment_defaults import DEFAULT_STEP_COUNT, DEFAULT_STOP_S, DEFAULT_TOLERANCE
from mb2fmu.model.value_overrides import OverrideValue
from mb2fmu.pipeline.simulation.input_signals import InputSignal, InputValue, read_input_signals
from mb2fmu.pipeline.simulation.simulation_times import choose_stop_time_and_step
from mb2fmu.pipeline.simulation.simulation_trajectories import FmuSimulation, SimulationStoppedError
from mb2fmu.units import parse_value_in_unit

if TYPE_CHECKING:
    from mb2fmu.audit.description.description_records import DescribedModel, DescribedVariable
    from mb2fmu.validation.runs.fmu_description_for_runs import InterfaceType

Floats = npt.NDArray[np.float64]

InterfaceTypeName = Literal["CoSimulation", "ModelExchange", "cs", "me"]
INTERFACE_TYPES: Mapping[str, InterfaceType] = {
    "cs": "CoSimulation",
    "me": "ModelExchange",
    "CoSimulation": "CoSimulation",
    "ModelExchange": "ModelExchange",
}
"""What a kind may be called, on the command line and from Python → what the standard calls it."""

_REAL_TYPES = frozenset({"Real", "Float64"})
_MAX_LISTED_NAMES = 30
_SETTABLE_INITIALS = frozenset({"exact", "approx"})


def simulate_fmu_file(
    path: Path,
    *,
    at: Mapping[str, OverrideValue] | None = None,
    inputs: Mapping[str, InputValue] | None = None,
    tables: tuple[Path, ...] = (),
    stop: float | None = None,
    step: float | None = None,
    kind: InterfaceTypeName | None = None,
) -> FmuSimulation:
    """Run an FMU from its own start values; nothing is judged.

    Args:
        path: The archive, FMI 2 or 3.
        at: FMU name of a parameter, start value or input → value in its unit, or text with a unit. An input keeps it.
        inputs: FMU name of an input → formula of ``t``, number, or function of time. The FMU gets it at the
            beginning of each communication step.
        tables: CSV files with inputs.
        stop: In s; None: as the FMU says.
        step: Communication step in s; None: as the FMU says.
        kind: How it is run, ``cs`` and ``me`` for short; None: as Co-Simulation if it can do that.

    Raises:
        ValidationError: For all names and values that do not fit.
        ToolError: If the FMU fails before the first communication step is done.
        SimulationStoppedError: If it fails later, or returns a value that is no number: the error has the trajectories
            up to there.
    """
    from mb2fmu import validation
    from mb2fmu.fmu import package
    from mb2fmu.validation.runs.fmu_description_for_runs import read_fmu_description
    from mb2fmu.validation.runs.fmu_run import run_fmu_process

    files = package.read_archive(path)
    description = read_fmu_description(files)
    used = next(iter(description.identifiers)) if kind is None else _parse_interface_type(kind)
    described = description.model
    reals = {v.name: v for v in described.variables if v.type in _REAL_TYPES and not v.dimensions}
    time = _communication_points(described, stop, step)
    entrances = {name: _variable_unit(v) for name, v in reals.items() if v.causality == "input"}
    starts, constants = _split_values(reals, at or {})
    signals = read_input_signals({**constants, **(inputs or {})}, tables, entrances, float(time[-1]))
    held = _inputs_per_step(signals, time[:-1])
    run = validation.ExperimentValues(
        time=time, inputs=held, input_names=tuple(s.name for s in signals), parameters=(), q=(), u=(), z=(),
        tolerance=described.experiment_number("tolerance", DEFAULT_TOLERANCE), overridden_values=starts,
    )  # fmt: skip
    shown = tuple(name for name, v in reals.items() if v.variability == "continuous" and v.causality != "independent")
    if not shown:
        raise ValidationError(
            f"{path.name} cannot be shown:", [Fault("it has no continuous variable", remedy="is it the right FMU?")]
        )
    process = run_fmu_process(path, [run], shown, kind=used, keep_partial=True)
    found = process.simulations[0]
    finite_rows = np.isfinite(found.values).all(axis=1)
    count = len(time) if finite_rows.all() else int(np.argmin(finite_rows))
    if not count:
        first = int(np.flatnonzero(~np.isfinite(found.values[0]))[0])
        fault = Fault(f"{shown[first]} is {found.values[0, first]} at t = {time[0]:g} s", path.name)
        raise ToolError("the FMU returns a value that is no number:", [fault])
    time, held = time[:count], held[:count]
    simulation = FmuSimulation(
        name=described.attributes.get("modelName", path.stem), path=path, files=files, kind=used, time=time,
        signals=visualization.PlotSignals(
            shown, tuple(_variable_unit(reals[name]) for name in shown), found.values[:count]
        ),
        inputs=np.concatenate([held, held[-1:]])[:count], input_names=run.input_names,
        parameters={name: starts.get(name, v.number("start") or 0.0) for name, v in reals.items()
                    if v.causality in {"parameter", "input"} or v.start},
        ranges={name: _variable_range(reals[name]) for name in shown},
    )  # fmt: skip
    if process.refusal:
        raise SimulationStoppedError(process.refusal, simulation)
    return simulation


def _parse_interface_type(kind: InterfaceTypeName) -> InterfaceType:
    """Return the interface type of a name, ``cs`` or ``me`` for short; raise for any other."""
    if kind not in INTERFACE_TYPES:
        fault = Fault(f"{kind!r} is no kind of FMU", "kind", f"take one of {', '.join(INTERFACE_TYPES)}")
        raise ValidationError("the FMU cannot be run as requested:", [fault])
    return INTERFACE_TYPES[kind]


def _communication_points(described: DescribedModel, stop: float | None, step: float | None) -> Floats:
    """Return communication points from 0 on.

    Raises:
        ValidationError: If they are none, or too many.
    """
    usual = described.experiment_number("stopTime", DEFAULT_STOP_S)
    step_of_count = (usual if stop is None else stop) / DEFAULT_STEP_COUNT
    usual_step = described.experiment_number("stepSize", step_of_count)
    end, size = choose_stop_time_and_step(stop, step, usual_stop=usual, usual_step=usual_step)
    return np.arange(max(1, round(end / size)) + 1, dtype=np.float64) * np.float64(size)


def _split_values(
    variables: Mapping[str, DescribedVariable], at: Mapping[str, OverrideValue]
) -> tuple[dict[str, float], dict[str, float]]:
    """Return values to set before the start, and inputs to keep.

    Raises:
        ValidationError: With every fault.
    """
    starts: dict[str, float] = {}
    constants: dict[str, float] = {}
    faults = []
    for name, value in at.items():
        variable = variables.get(name)
        if variable is None:
            faults.append(_unknown_name_fault(name, variables))
            continue
        if variable.causality != "input" and variable.initial not in _SETTABLE_INITIALS:
            what = f"{name} is {variable.causality}, {variable.initial or variable.variability}: it cannot be set"
            faults.append(Fault(what, remedy="set parameters and start values"))
            continue
        try:
            number = parse_value_in_unit(value, _variable_unit(variable))
        except ValueError as error:
            unit = _variable_unit(variable)
            remedy = f"write {name}=NUMBER in {unit}, or with a unit: {name}='NUMBER UNIT'"
            faults.append(Fault(f"{name} cannot be set: {error}", remedy=remedy))
            continue
        (constants if variable.causality == "input" else starts)[name] = number
    if faults:
        raise ValidationError("the FMU cannot be set as requested:", faults)
    return starts, constants


def _unknown_name_fault(name: str, variables: Mapping[str, DescribedVariable]) -> Fault:
    """Return the fault of an unknown name, with similar names."""
    names = [each for each, v in variables.items() if v.causality == "input" or v.initial in _SETTABLE_INITIALS]
    near = difflib.get_close_matches(name, names)
    more = f" and {len(names) - _MAX_LISTED_NAMES} more" if len(names) > _MAX_LISTED_NAMES else ""
    remedy = f"there are {', '.join(names[:_MAX_LISTED_NAMES])}{more}" if names else "nothing of this FMU can be set"
    return Fault(f"there is no variable {name}", remedy=f"did you mean {' or '.join(near)}?" if near else remedy)


def _variable_unit(variable: DescribedVariable) -> str:
    """Return a variable's unit: its own, else that of its declared type, else "1"."""
    return variable.get("unit") or "1"


def _variable_range(variable: DescribedVariable) -> tuple[float | None, float | None]:
    """Return a variable's ``min`` and ``max``: its own, else those of its declared type; None where there is none."""
    return variable.number("min"), variable.number("max")


def _inputs_per_step(signals: tuple[InputSignal, ...], time: Floats) -> Floats:
    """Return the inputs set at the beginning of each communication step, shape (n_t, n_r)."""
    return np.array([[signal.at(t) for signal in signals] for t in time.tolist()]).reshape(len(time), len(signals))
