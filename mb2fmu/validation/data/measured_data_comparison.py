"""Compare an FMU with the user's data: measured over time, or published numbers at given points.

Data: the FMU steps exactly to the times of the table, in steps that are no longer than its experiment's. Columns that
are inputs drive it: straight lines between the rows, over each step held at their value in its middle (so that the
area is right), and set to their own value before a row is read. All other columns are compared.

Points: each has an instance of its own. Its parameters are set before initialization; then time, states and inputs are
set as Model Exchange has it, and derivatives and outputs are read. An FMU of Co-Simulation alone starts from the states
and is read after initialization, at time 0.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from mb2fmu.errors import Fault, ToolError, ValidationError
from mb2fmu.fmu.package import read_archive
from mb2fmu.model.experiment_defaults import DEFAULT_STEP_COUNT, DEFAULT_TOLERANCE
from mb2fmu.units import UnitOfMeasurement
from mb2fmu.validation.data.validation_data_tables import (
    TIME_COLUMN,
    ValidationDataColumn,
    ValidationDataTable,
    ValidationDataTolerance,
)
from mb2fmu.validation.runs.fmu_description_for_runs import InterfaceType, read_fmu_description
from mb2fmu.validation.runs.fmu_run import Operations, run_fmu_process
from mb2fmu.validation.runs.fmu_variables import FmuScalarVariable, FmuVariables, read_fmu_variables

Floats = npt.NDArray[np.float64]
DataVerdict = Literal["passed", "failed"]

MAX_COMMUNICATION_STEPS = 10_000_000
"""Of one table, communication steps."""
_EQUAL_STEP_TOLERANCE = 1e-9
"""Part of a step by which equal steps may differ, as written times do."""


@dataclass(frozen=True, slots=True)
class MeasuredDataRunSettings:
    """Settings of an FMU for a table.

    Attributes:
        starts: FMU name → value in the FMU's unit, of parameters and start values.
        tolerances: Column → how far it may be off, instead of what the table says.
        default_tolerance: Of columns that neither names; None: they must be named.
        step: Longest communication step in s; None: as the FMU's default experiment says.
        tolerance: Relative, of the FMU's integration.
    """

    starts: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))
    tolerances: Mapping[str, ValidationDataTolerance] = field(default_factory=lambda: MappingProxyType({}))
    default_tolerance: ValidationDataTolerance | None = None
    step: float | None = None
    tolerance: float = DEFAULT_TOLERANCE


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredColumnComparison:
    """Comparison of one column with the FMU.

    Attributes:
        name: FMU name.
        unit: Of all numbers here: the column's.
        count: Numbers compared.
        error: Largest |FMU - table|; infinite where the FMU gives no finite number.
        tolerance: What it may be.
        row: Row of the largest error, from 1.
        time: In s, there.
        expected: Of the table, there.
        found: Of the FMU, there.
    """

    name: str
    unit: str
    count: int
    error: float
    tolerance: float
    row: int
    time: float
    expected: float
    found: float

    @property
    def ratio(self) -> float:
        """``error`` over ``tolerance``; above 1 the column failed."""
        return self.error / self.tolerance

    @property
    def verdict(self) -> DataVerdict:
        """Passed if the error is within the tolerance, else failed."""
        return "passed" if self.error <= self.tolerance else "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredTableComparison:
    """Comparison of a table with an FMU of one interface type.

    Attributes:
        source: The table's file.
        kind: How the FMU was run.
        points: The rows are points of their own, not moments of one motion.
        columns: One per compared column.
        set_columns: Names of the columns that were set.
    """

    source: str
    kind: InterfaceType
    points: bool
    columns: tuple[MeasuredColumnComparison, ...]
    set_columns: tuple[str, ...]

    @property
    def passed(self) -> bool:
        """Every column within its tolerance."""
        return all(column.verdict == "passed" for column in self.columns)

    def to_record(self) -> dict[str, Any]:
        """Return the result as JSON values; infinities and NaN become their names."""
        return {
            "source": self.source,
            "kind": self.kind,
            "points": self.points,
            "passed": self.passed,
            "driven": list(self.set_columns),
            "columns": [_form_column_record(column) for column in self.columns],
        }


def _form_column_record(column: MeasuredColumnComparison) -> dict[str, Any]:
    """Return a column's numbers by name, with its ratio and verdict."""
    values = {name: getattr(column, name) for name in (*column.__slots__, "ratio", "verdict")}
    return {n: str(v) if isinstance(v, float) and not math.isfinite(v) else v for n, v in values.items()}


def compare_fmu_with_measurements(
    fmu: Path, table: ValidationDataTable, settings: MeasuredDataRunSettings | None = None
) -> tuple[MeasuredTableComparison, ...]:
    """Run an FMU along measured data, as each of its interface types.

    Args:
        fmu: The archive.
        table: With a column ``time``, which rises and begins at 0 s or later.
        settings: Start values, tolerances, steps.

    Raises:
        PackageError: If the file is no FMU archive.
        ValidationError: If table and FMU do not fit together, with every fault.
        ToolError: If the FMU fails.
    """
    return _compare_table(fmu, table, settings or MeasuredDataRunSettings(), points=False)


def compare_derivatives_at_table_points(
    fmu: Path, table: ValidationDataTable, settings: MeasuredDataRunSettings | None = None
) -> tuple[MeasuredTableComparison, ...]:
    """Set an FMU to each row of a table of published states and inputs, and compare derivatives and outputs there.

    Columns of states, inputs, parameters and ``time`` are set; all others are compared.
    """
    return _compare_table(fmu, table, settings or MeasuredDataRunSettings(), points=True)


def _compare_table(
    fmu: Path, table: ValidationDataTable, settings: MeasuredDataRunSettings, *, points: bool
) -> tuple[MeasuredTableComparison, ...]:
    """Run every interface type of an FMU along a table, or at its points, and judge each column."""
    tree = read_archive(fmu)
    description = read_fmu_description(tree)
    plan = _MeasuredDataRunPlan(table, read_fmu_variables(description), settings, points=points)
    interface_types = tuple(description.identifiers)
    if points:
        interface_types = ("ModelExchange",) if "ModelExchange" in interface_types else interface_types
    results = []
    if not points and "CoSimulation" in interface_types and not description.any_step:
        plan.check_even_steps()
    for interface_type in interface_types:
        sessions = plan.plan_point_sessions(interface_type) if points else {"data": plan.plan_motion_session()}
        fmu_result = run_fmu_process(fmu, [], (), kind=interface_type, sessions=sessions, tolerance=settings.tolerance)
        results.append(
            plan.judge_columns(interface_type, _read_recorded_values(fmu_result.recorded_values, plan, fmu.name))
        )
    return tuple(results)


def _read_recorded_values(
    recorded_values: Mapping[str, list[Any]], plan: _MeasuredDataRunPlan, fmu_name: str
) -> Floats:
    """Return the values that were read, shape (n_rows, n_compared).

    Raises:
        ToolError: If the FMU refused anything, with the row.
    """
    rows: list[list[float]] = []
    faults = []
    for name, values_of_session in recorded_values.items():
        last = values_of_session[-1]
        if isinstance(last, dict):
            place = f"{plan.table.source}: row {name}" if plan.points else plan.table.source
            faults.append(Fault(str(last["failed"]), place))
        else:
            rows += [last] if plan.points else last
    if faults:
        raise ToolError(f"running {fmu_name} in fmpy failed:", faults)
    return np.array(rows, dtype=np.float64).reshape(plan.table.rows, len(plan.compared))


class _MeasuredDataRunPlan:
    """Which columns are set and which are compared, and the calls that do it.

    Args:
        table: The user's.
        fmu_variables: Of the FMU.
        settings: Start values, tolerances, steps.
        points: The rows are points of their own.

    Raises:
        ValidationError: If they do not fit together, with every fault.
    """

    def __init__(
        self,
        table: ValidationDataTable,
        fmu_variables: FmuVariables,
        settings: MeasuredDataRunSettings,
        *,
        points: bool,
    ) -> None:
        self.table, self.fmu_variables, self.settings, self.points = table, fmu_variables, settings, points
        self.faults: list[Fault] = []
        self.time = self._read_times()
        self.set_columns: list[tuple[FmuScalarVariable, Floats]] = []
        self.compared: list[tuple[ValidationDataColumn, FmuScalarVariable, UnitOfMeasurement | None]] = []
        for column in table.columns:
            scalar = self._find_scalar(column.name, table.source) if column.name != TIME_COLUMN else None
            if scalar is not None:
                self._assign_column(column, scalar)
        if not self.compared and not self.faults:
            self._add_fault("no column is an output or derivative: nothing is compared", table.source, "add one")
        self.starts = [(scalar, value) for scalar, value in self._iterate_start_values() if scalar is not None]
        self.tolerances = [self._choose_tolerance(column) for column, _, _ in self.compared]
        self._check_tolerance_names()
        if self.faults:
            raise ValidationError(f"{table.source} and the FMU do not fit together:", self.faults)

    def _add_fault(self, problem: str, place: str, remedy: str = "") -> None:
        """Add a fault of the table."""
        self.faults.append(Fault(problem, place, remedy))

    def _read_times(self) -> Floats:
        """Return times in s; 0 for points without a time."""
        column, source = self.table.column(TIME_COLUMN), self.table.source
        if column is None:
            if not self.points:
                self._add_fault("it has no column time", source, "head the column of times with time, or time [ms]")
            return np.zeros(self.table.rows)
        unit = self.fmu_variables.unit(column.unit or "s")
        if unit is None or unit.powers != {"s": 1}:
            self._add_fault(f"{column.unit!r} is no unit of time", f"{source}: time", "s, ms, min, h")
            return np.zeros(self.table.rows)
        times = column.values * unit.factor
        if self.points:
            return np.where(np.isnan(times), 0.0, times)
        is_wrong = np.isnan(times) | ~(np.diff(times, prepend=-np.inf) > 0.0) | (times < 0.0)
        if is_wrong.any():
            place = self.table.describe_row(int(np.argmax(is_wrong)))
            self._add_fault(
                "times must be in every row, rise, and begin at 0 or later", f"{place}: time", "sort the rows"
            )
        return times

    def _find_scalar(self, name: str, place: str) -> FmuScalarVariable | None:
        """Return the FMU's variable; one that is absent is a fault with similar names."""
        scalar = self.fmu_variables.scalars.get(name)
        if scalar is None:
            similar_names = difflib.get_close_matches(name, self.fmu_variables.scalars, n=3, cutoff=0.5)
            remedy = (
                f"did you mean {' or '.join(similar_names)}?"
                if similar_names
                else "write its name as the FMU's description does"
            )
            self._add_fault("the FMU has no such variable of doubles", f"{place}: {name}", remedy)
        return scalar

    def _assign_column(self, column: ValidationDataColumn, scalar: FmuScalarVariable) -> None:
        """Set or compare a column, in the right unit."""
        source = f"{self.table.source}: {column.name}"
        fmu_unit, column_unit = self.fmu_variables.unit(scalar.unit or "1"), None
        if column.unit and column.unit != scalar.unit:
            column_unit = self.fmu_variables.unit(column.unit)
            if column_unit is None or fmu_unit is None or column_unit.exponents != fmu_unit.exponents:
                fmu_unit_name = scalar.unit or "none"
                self._add_fault(
                    f"unit {column.unit!r} does not measure what the FMU's unit does: {fmu_unit_name}",
                    source,
                    f"take {fmu_unit_name}",
                )
                return
        is_set = scalar.role in {"input", "parameter"} or (self.points and scalar.role == "state")
        if not is_set:
            if np.isnan(column.values).all():
                self._add_fault("the column is empty", source, "leave it out")
            self.compared.append((column, scalar, column_unit))
            return
        values = column.values
        if column_unit is not None and fmu_unit is not None:
            values = (values * column_unit.factor + column_unit.offset - fmu_unit.offset) / fmu_unit.factor
        if scalar.role == "parameter" and not self.points:
            self._add_fault("is a parameter, which does not change", source, f"set it: --at {column.name}=VALUE")
        elif scalar.role == "input" and not self.points and np.isnan(values).any():
            place = f"{self.table.describe_row(int(np.argmax(np.isnan(values))))}: {column.name}"
            self._add_fault("is an input, and has empty cells", place, "an input needs a value in every row")
        self.set_columns.append((scalar, values))

    def _iterate_start_values(self) -> Iterator[tuple[FmuScalarVariable | None, float]]:
        """Yield values to set before initialization in every session."""
        for name, value in self.settings.starts.items():
            scalar = self._find_scalar(name, "--at")
            if scalar is not None and not scalar.settable_before_initialization:
                self._add_fault(
                    "cannot be set before the FMU starts", f"--at {name}", "name a parameter or start value"
                )
            yield scalar, value

    def _choose_tolerance(self, column: ValidationDataColumn) -> float:
        """Return how far a column may be off, in its unit."""
        tolerance_setting = (
            self.settings.tolerances.get(column.name) or column.tolerance or self.settings.default_tolerance
        )
        if tolerance_setting is None:
            remedy = f"a second row that begins with tolerance, or --tolerance {column.name}=0.01 (or 1%)"
            self._add_fault("it has no tolerance", f"{self.table.source}: {column.name}", remedy)
            return math.nan
        tolerance = (
            tolerance_setting.absolute_tolerance(column.values) if not np.isnan(column.values).all() else math.nan
        )
        if tolerance == 0.0:
            remedy = f"--tolerance {column.name}=0.01, in its unit"
            self._add_fault(
                "is 0 everywhere, and so is any percentage of it", f"{self.table.source}: {column.name}", remedy
            )
        return tolerance

    def _check_tolerance_names(self) -> None:
        """Add faults for tolerances of columns that do not exist."""
        column_names = {column.name for column, _, _ in self.compared}
        for name in self.settings.tolerances:
            if name not in column_names:
                self._add_fault(
                    "no compared column has this name",
                    f"--tolerance {name}",
                    f"one of {', '.join(sorted(column_names))}",
                )

    def plan_motion_session(self) -> Operations:
        """Return the calls of one session along all rows."""
        inputs = [(scalar, values) for scalar, values in self.set_columns if scalar.role == "input"]
        references = [scalar.reference for scalar, _ in inputs]
        grid, rows = self._form_time_grid()
        middles = (grid[:-1] + grid[1:]) / 2.0
        input_middles = [np.interp(middles, self.time, values) for _, values in inputs]
        input_values = [np.interp(grid, self.time, values) for _, values in inputs]
        steps = np.column_stack([grid, *input_values]).tolist()
        input_rows = np.column_stack(input_middles).tolist() if input_middles else [[] for _ in middles]
        output_references = [scalar.reference for _, scalar, _ in self.compared]
        experiment_record = self._form_experiment_record(float(grid[-1]), [scalar for scalar, _ in inputs])
        return [
            ["open", experiment_record, steps[0][1:]],
            ["follow", references, steps, input_rows, rows, output_references],
        ]

    def _form_time_grid(self) -> tuple[Floats, list[int]]:
        """Return communication points from 0 on that include all times of the table, and their indices."""
        longest = self.settings.step or max(float(self.time[-1]), 1e-9) / DEFAULT_STEP_COUNT
        points, rows = [0.0], []
        if self.time[-1] / longest > MAX_COMMUNICATION_STEPS:
            problem = f"more than {MAX_COMMUNICATION_STEPS} steps of {longest} s"
            raise ValidationError(
                "the data cannot be followed:", [Fault(problem, self.table.source, "take a larger step")]
            )
        for time in self.time.tolist():
            last_point, count = points[-1], max(1, math.ceil((time - points[-1]) / longest * (1 - 1e-9)))
            if time > last_point:
                points += [last_point + (time - last_point) * k / count for k in range(1, count)] + [time]
            rows.append(len(points) - 1)
        if len(points) == 1:
            points.append(longest)
        return np.array(points), rows

    def check_even_steps(self) -> None:
        """Raise where communication points are uneven and the FMU takes one step size only.

        Raises:
            ValidationError: If the table's times cannot be met by such steps.
        """
        steps = np.diff(self._form_time_grid()[0])
        if float(np.ptp(steps)) > _EQUAL_STEP_TOLERANCE * float(steps.max()):
            remedy = "equally spaced rows that begin at 0 (or one step later)"
            fault = Fault("the FMU makes steps of one size only, and the times are uneven", self.table.source, remedy)
            raise ValidationError("the data cannot be followed:", [fault])

    def _form_experiment_record(
        self,
        stop: float,
        inputs: Sequence[FmuScalarVariable],
        further_starts: Sequence[tuple[FmuScalarVariable, float]] = (),
    ) -> dict[str, Any]:
        """Return an experiment as the driver reads it; inputs are set besides."""
        starts = [*self.starts, *further_starts]
        return {
            "tolerance": self.settings.tolerance,
            "stop": max(stop, 1.0e-9),
            "starts": {
                "references": [scalar.reference for scalar, _ in starts],
                "values": [value for _, value in starts],
            },
            "inputs": [scalar.reference for scalar in inputs],
        }

    def plan_point_sessions(self, kind: InterfaceType) -> dict[str, Operations]:
        """Return the calls of one session per point, by its number.

        Raises:
            ValidationError: If an FMU of Co-Simulation alone is requested at another time than 0.
        """
        is_model_exchange = kind == "ModelExchange"
        if not is_model_exchange and (self.time != 0.0).any():
            remedy = "export it with Model Exchange, or leave the times out"
            raise ValidationError(
                "the points cannot be reached:", [Fault("Co-Simulation alone begins at 0 s", self.table.source, remedy)]
            )
        order = {name: index for index, name in enumerate(self.fmu_variables.states)}
        output_references = [scalar.reference for _, scalar, _ in self.compared]
        sessions: dict[str, Operations] = {}
        for row, time in enumerate(self.time.tolist()):
            set_values = [
                (scalar, float(column[row])) for scalar, column in self.set_columns if not math.isnan(column[row])
            ]
            inputs = [scalar_and_value for scalar_and_value in set_values if scalar_and_value[0].role == "input"]
            states = {order[scalar.name]: value for scalar, value in set_values if scalar.role == "state"}
            start_values = [
                scalar_and_value
                for scalar_and_value in set_values
                if scalar_and_value[0].role != "input" and scalar_and_value[0].settable_before_initialization
            ]
            values = [value for _, value in inputs]
            scalars = [scalar for scalar, _ in inputs]
            operations: list[list[Any]] = [["open", self._form_experiment_record(time, scalars, start_values), values]]
            if is_model_exchange:
                references = [scalar.reference for scalar in scalars]
                operations.append(["moment", time, {str(k): value for k, value in states.items()}, references, values])
            sessions[str(row + 1)] = [*operations, ["get", output_references]]
        return sessions

    def judge_columns(self, kind: InterfaceType, recorded: Floats) -> MeasuredTableComparison:
        """Return the verdict on each column."""
        columns = []
        for k, (column, scalar, column_unit) in enumerate(self.compared):
            fmu_unit = self.fmu_variables.unit(scalar.unit or "1")
            values = recorded[:, k]
            if column_unit is not None and fmu_unit is not None:
                values = (values * fmu_unit.factor + fmu_unit.offset - column_unit.offset) / column_unit.factor
            errors = np.abs(values - column.values)
            errors[~np.isfinite(values) & ~np.isnan(column.values)] = math.inf
            row = int(np.nanargmax(errors))
            columns.append(
                MeasuredColumnComparison(
                    name=column.name,
                    unit=column.unit or scalar.unit,
                    count=int(np.sum(~np.isnan(column.values))),
                    error=float(errors[row]),
                    tolerance=self.tolerances[k],
                    row=row + 1,
                    time=float(self.time[row]),
                    expected=float(column.values[row]),
                    found=float(values[row]),
                )
            )
        set_columns = tuple(scalar.name for scalar, _ in self.set_columns)
        return MeasuredTableComparison(
            source=self.table.source, kind=kind, points=self.points, columns=tuple(columns), set_columns=set_columns
        )
