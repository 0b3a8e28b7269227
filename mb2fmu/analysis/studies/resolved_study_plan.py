"""A plan resolved for an FMU: variables to set, variables to read, and the cases as numbers."""

from __future__ import annotations

import difflib
import hashlib
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from mb2fmu.analysis.studies.study_case_runner import StudyCaseResultColumn, StudyCaseRunSettings
from mb2fmu.analysis.studies.study_plan import MAX_CASES, StudyPlan, StudyResultRequest, Value, VariedQuantity
from mb2fmu.analysis.studies.study_plan_words import Method
from mb2fmu.errors import AnalysisError, Fault, Mb2FmuError
from mb2fmu.model.experiment_defaults import DEFAULT_STEP_COUNT, DEFAULT_STOP_S, DEFAULT_TOLERANCE
from mb2fmu.units import display_unit_conversion, parse_value_in_unit

if TYPE_CHECKING:
    from mb2fmu.audit.description.description_records import DescribedVariable
    from mb2fmu.validation.data.validation_data_tables import ValidationDataTable
    from mb2fmu.validation.runs.fmu_description_for_runs import FmuDescription, InterfaceType


Floats = npt.NDArray[np.float64]


InputSignal = Callable[[float], float]
ReadSignals = Callable[[Mapping[str, Value], Mapping[str, str], float], Mapping[str, InputSignal]]
RESERVED_COLUMNS = ("case", "message")


@dataclass(frozen=True, slots=True)
class VariedQuantityValues:
    """Values of one varied quantity, as numbers in its unit.

    Attributes:
        law: See ``study_plan.VariedQuantity``.
        numbers: Likewise.
        count: Likewise.
    """

    law: str
    numbers: tuple[float, ...]
    count: int = 0

    def fault(self) -> str:
        """Return what is wrong with the numbers; empty if nothing is."""
        first, last = self.numbers[0], self.numbers[-1]
        if self.law in {"uniform", "log"} and not first < last:
            return f"there is nothing between {first:g} and {last:g}" + (": it goes downward" if last < first else "")
        if self.law == "log" and first <= 0.0:
            return f"a logarithmic scale cannot begin at {first:g}"
        if self.law == "normal" and last <= 0.0:
            return f"the standard deviation {last:g} is not positive"
        return ""

    def grid_values(self) -> Floats:
        """Return its values on a grid."""
        if self.law == "values":
            return np.array(self.numbers)
        spread = np.geomspace if self.law == "log" else np.linspace
        return np.asarray(spread(self.numbers[0], self.numbers[1], self.count))

    def values_at_probabilities(self, u: Floats) -> Floats:
        """Return values with cumulative probabilities ``u``, of any shape, between 0 and 1."""
        first, last = self.numbers
        if self.law == "normal":
            from scipy.special import ndtri

            # 0 is a point of Sobol's sequence; its quantile is not finite.
            return first + last * np.asarray(ndtri(np.clip(u, 2.0**-32, 1.0 - 2.0**-32)))
        if self.law == "log":
            return np.asarray(np.exp(math.log(first) + u * (math.log(last) - math.log(first))))
        return first + u * (last - first)


def sample_study_cases(
    method: Method, axes: Sequence[VariedQuantityValues], count: int, seed: int, *, indices: bool = False
) -> Floats:
    """Return the cases, one row each, shape (n, n_axes).

    With ``indices`` the rows are those of ``sensitivity_indices``: two samples A and B of ``count`` rows, then for each
    axis A with this column from B (Saltelli and others, Comput. Phys. Commun. 181 (2010), table 1).

    Args:
        method: ``grid`` (the last axis changes fastest), ``latin-hypercube`` or ``sobol`` (scrambled).
        axes: What varies.
        count: Rows; of a grid it does not matter.
        seed: Equal seeds give equal cases.
        indices: Of ``sobol`` only.
    """
    if method == "grid":
        grids = np.meshgrid(*(axis.grid_values() for axis in axes), indexing="ij")
        return np.stack([grid.ravel() for grid in grids], axis=1)
    d = len(axes)
    rng = np.random.default_rng(seed)
    if method == "latin-hypercube":
        u = _sample_latin_hypercube(count, d, rng)
    else:
        from scipy.stats import qmc

        u = qmc.Sobol(2 * d if indices else d, rng=rng).random(count)
    if indices:
        A, B = u[:, :d], u[:, d:]
        mixed = [np.where(np.arange(d) == i, B, A) for i in range(d)]
        u = np.concatenate([A, B, *mixed])
    return np.stack([axis.values_at_probabilities(u[:, i]) for i, axis in enumerate(axes)], axis=1)


def _sample_latin_hypercube(n: int, d: int, rng: np.random.Generator) -> Floats:
    """Return points, shape (n, d): on each axis one in each of n equal parts of 0 … 1.

    The same numbers as those of ``scipy.stats.qmc``, whose import takes half as long as all else of a small study.
    """
    (own,) = rng.spawn(1)
    within = own.uniform(size=(n, d))
    parts = np.column_stack([own.permutation(n) for _ in range(d)])
    return (parts + 1 - within) / n


@dataclass(frozen=True, slots=True, eq=False)
class ResolvedStudy:
    """A resolved study.

    Attributes:
        plan: As written.
        model: Name of the FMU's model.
        varied: FMU names of what varies, with their units.
        cases: Shape (n, n_varied).
        results: What is kept, with units.
        job: What all cases have in common.
        fixed: FMU name → value in all cases, as numbers.
        inputs: FMU name of an input → formula or number, as written.
        units: FMU name → unit of what is read.
        driven: FMU name of an input that follows the model's experiment → its value in each step, shape (n_steps,).
    """

    plan: StudyPlan
    model: str
    varied: Mapping[str, str]
    cases: Floats
    results: Mapping[str, str]
    wanted: tuple[StudyResultRequest, ...]
    job: StudyCaseRunSettings
    fixed: Mapping[str, float]
    inputs: Mapping[str, Value]
    units: Mapping[str, str]
    driven: Mapping[str, Floats]

    @property
    def stop(self) -> float:
        """End of the experiment, s."""
        return self.job.step * len(self.job.held)

    def content_hashes(self) -> dict[str, str]:
        """Return name → SHA-256 of each thing that must be unchanged when an interrupted study continues."""
        request = json.dumps(self.job.request, sort_keys=True).encode()
        j = self.job
        rest = repr(
            (j.step, j.tolerance, j.references, j.fixed, j.input_references, j.varied_inputs, j.order, j.read,
             j.columns, j.kept, tuple(self.results))
        ).encode()  # fmt: skip
        parts = {"cases": repr(tuple(self.varied)).encode() + self.cases.tobytes(), "inputs": j.held.tobytes(),
                 "experiment and results": request + rest}  # fmt: skip
        return {name: hashlib.sha256(content).hexdigest() for name, content in parts.items()}


def resolve_study_names(
    plan: StudyPlan,
    fmu: FmuDescription,
    table: ValidationDataTable | None,
    defaults: Mapping[str, InputSignal],
    read_signals: ReadSignals,
    earlier: Sequence[Fault] = (),
) -> ResolvedStudy:
    """Look up all names of the plan.

    Args:
        plan: What is wanted.
        fmu: Its description.
        table: Of the cases, if the plan names one.
        defaults: FMU name of an input → what it follows where the plan says nothing.
        read_signals: Makes functions of time from formulas, given the units of all inputs and the end in s.
        earlier: What is wrong with the plan itself, and left out of it.

    Raises:
        AnalysisError: With every fault, the earlier ones first.
    """
    return _StudyResolver(plan, fmu, earlier).study(table, defaults, read_signals)


def _constant_signal(value: float) -> InputSignal:
    """Return an input that keeps one value."""
    return lambda _t: value


class _StudyResolver:
    """Looks up names, and collects faults."""

    def __init__(self, plan: StudyPlan, fmu: FmuDescription, earlier: Sequence[Fault]) -> None:
        self._plan, self._described, self._fmu = plan, fmu.model, fmu
        self._variables = {variable.name: variable for variable in fmu.model.variables}
        self._earlier = tuple(earlier)
        self._faults: list[Fault] = []

    def study(
        self,
        table: ValidationDataTable | None,
        defaults: Mapping[str, InputSignal],
        read_signals: ReadSignals,
    ) -> ResolvedStudy:
        """Return the whole study: variables, results and cases."""
        self._plan = plan = self._spread(self._plan)
        step, steps = self._times()
        names, cases = self._cases(table)
        fixed = self._fixed(names)
        wanted = plan.results or self._outputs()
        columns, read = self._columns(wanted)
        signals = {**defaults, **self._signals(read_signals, step * steps)}
        kind = self._kind()
        self._refuse_faults()
        used = [name for name in self._entrances() if name in {*signals, *fixed, *names}]
        tolerance = self._described.experiment_number("tolerance", DEFAULT_TOLERANCE)
        job = StudyCaseRunSettings(
            request=self._fmu.driver_request(kind, tolerance), step=step, tolerance=tolerance,
            **self._places(names, fixed, signals, used, (step, steps)),
            read=tuple(self._fmu.variables[name].reference for name in read), names=tuple(read), columns=columns,
            kept=tuple(read.index(name) for name in plan.trajectories), time_limit=plan.time_limit,
        )  # fmt: skip
        return ResolvedStudy(
            plan, str(self._described.attributes.get("modelName", "")), {name: self._unit_of(name) for name in names},
            cases,
            {each.name: "s" if each.take == "first-crossing" else self._unit_of(each.of) for each in wanted}, wanted,
            job, fixed, plan.inputs, {name: self._unit_of(name) for name in read},
            {name: job.held[:, k] for k, name in enumerate(used)
             if name in defaults and name not in {*plan.inputs, *fixed, *names}},
        )  # fmt: skip

    def _fixed(self, names: Sequence[str]) -> dict[str, float]:
        """Return what is the same in all cases, in the variables' units; ``names`` vary."""
        plan = self._plan
        fixed = {name: self._number(name, value, "set") for name, value in plan.fixed.items() if self._set(name, "set")}
        self._bounds(list(fixed), np.array([list(fixed.values())]), "set")
        for name in sorted({*plan.fixed, *plan.inputs} & set(names)):
            self._fault(f"{name} varies, and is given as well", "set", "keep one of both")
        return fixed

    def _entrances(self) -> list[str]:
        """Return the names of the FMU's inputs that are real numbers."""
        return [name for name, v in self._fmu.variables.items() if v.causality == "input" and v.is_double]

    def _signals(self, read: ReadSignals, stop: float) -> Mapping[str, InputSignal]:
        """Return the plan's inputs as functions of time; their faults are reported with the others."""
        try:
            return read(self._plan.inputs, {name: self._unit_of(name) for name in self._entrances()}, stop)
        except Mb2FmuError as error:
            self._faults += error.faults
            return {}

    def _kind(self) -> InterfaceType:
        """Return the interface type that is requested, or the FMU's first; add a fault if the FMU lacks it."""
        offered = self._fmu.identifiers
        kind: InterfaceType = next(iter(offered)) if self._plan.kind is None else self._plan.kind
        if kind not in offered:
            self._fault(f"the FMU offers no {kind}", "kind", f"it offers {', '.join(offered)}")
        return kind

    def _refuse_faults(self) -> None:
        """Raise with every fault so far, those of the plan itself first."""
        if self._earlier:
            raise AnalysisError("the plan cannot be used:", [*self._earlier, *self._faults])
        if self._faults:
            raise AnalysisError("the plan does not fit the FMU:", self._faults)

    def _places(
        self,
        names: Sequence[str],
        fixed: Mapping[str, float],
        signals: Mapping[str, InputSignal],
        used: Sequence[str],
        steps: tuple[float, int],
    ) -> dict[str, Any]:
        """Return where numbers of a case go: start values and parameters, then inputs: :class:`StudyCaseRunSettings`.

        Args:
            names: What varies.
            fixed: What is the same in all cases.
            signals: Inputs as functions of time.
            used: Inputs that a case sets, in the order of the FMU.
            steps: Communication step in s, and how many.
        """
        variables, entrances = self._fmu.variables, self._entrances()
        step, count = steps
        signals = {**signals, **{name: _constant_signal(value) for name, value in fixed.items() if name in entrances}}
        varied = [name for name in names if name in entrances]
        starts = [name for name in names if name not in entrances]
        others = [name for name in fixed if name not in entrances]
        held = np.array([[signals[n](k * step) if n in signals else 0.0 for n in used] for k in range(count)])
        return {
            "references": tuple(variables[name].reference for name in (*starts, *others)),
            "fixed": tuple(fixed[name] for name in others),
            "input_references": tuple(variables[name].reference for name in used),
            "held": held.reshape(count, len(used)),
            "varied_inputs": tuple(used.index(name) for name in varied),
            "order": tuple(names.index(name) for name in (*starts, *varied)),
        }

    def _spread(self, plan: StudyPlan) -> StudyPlan:
        """Return the plan with every parameter that can vary by a part of its value, within its bounds."""
        if not plan.spread:
            return plan
        found = []
        for name, variable in self._variables.items():
            if not (self._is_free_parameter(name) and name not in plan.fixed):
                continue
            value = variable.number("start") or 0.0
            ends = sorted((value * (1.0 - plan.spread), value * (1.0 + plan.spread)))
            low, high = variable.number("min"), variable.number("max")
            first = ends[0] if low is None else max(ends[0], low)
            last = ends[1] if high is None else min(ends[1], high)
            if np.isfinite(value) and first < last:
                found.append(VariedQuantity(name, "uniform", (first, last)))
        if not found:
            what = "the FMU has no parameter with a value other than 0 that can be set"
            self._fault(what, "cases.spread", "name what varies: [vary] in a plan, --vary on the command line")
        if plan.count * (len(found) + 2 if plan.indices else 1) > MAX_CASES:
            self._fault(f"more than {MAX_CASES:,} cases", "cases.count", "take fewer")
        return replace(plan, varied=tuple(found))

    def _is_free_parameter(self, name: str) -> bool:
        """Return whether a name is a real parameter that can be set."""
        found = self._fmu.variables[name]
        return found.causality == "parameter" and found.is_double and found.settable

    def _cases(self, table: ValidationDataTable | None) -> tuple[list[str], Floats]:
        """Return the varied quantities, and their values."""
        if table is not None:
            return self._from_table(table)
        plan = self._plan
        names = [each.name for each in plan.varied]
        axes = []
        for each in plan.varied:
            if not self._set(each.name, "vary") or not each.numbers:
                continue
            before = len(self._faults)
            axis = VariedQuantityValues(each.law, self._scaled(each.name, each.numbers, each.law), each.count)
            if len(self._faults) > before:
                continue
            if axis.fault():
                self._fault(axis.fault(), f"vary.{each.name}", "give other numbers")
                continue
            axes.append(axis)
            if self._earlier and each.law != "normal":  # there will be no cases
                self._bounds([each.name], np.array([axis.numbers]).T)
        if self._earlier or len(axes) < len(names) or not axes:
            return names, np.zeros((0, len(names)))
        n = int(np.prod([float(len(axis.numbers) if axis.law == "values" else axis.count) for axis in axes]))
        if plan.method == "grid" and n > MAX_CASES:
            self._fault(f"the grid has {n:.3g} cases", "vary", "take fewer points, or latin-hypercube")
            return names, np.zeros((0, len(names)))
        cases = sample_study_cases(plan.method, axes, plan.count, plan.seed, indices=plan.indices)
        self._bounds(names, cases)
        return names, cases

    def _from_table(self, table: ValidationDataTable) -> tuple[list[str], Floats]:
        """Read cases from a file: a column for each quantity that varies; a column ``case`` is ignored."""
        names, columns = [], []
        for column in table.columns:
            if column.name == "case" or not self._set(column.name, table.source):
                continue
            values = column.values
            if column.unit:
                try:
                    factor, offset = display_unit_conversion(self._unit_of(column.name), column.unit)
                except ValueError as error:
                    self._fault(f"{column.name}: {error}", table.source, "give the unit of the variable")
                    continue
                values = (values - offset) / factor
            for row in np.flatnonzero(~np.isfinite(values))[:3]:
                self._fault(f"{column.name} is empty in case {row}", table.source, "give a number")
            names.append(column.name)
            columns.append(values)
        cases = np.column_stack(columns) if columns else np.zeros((table.rows, 0))
        if not columns and not self._faults:
            self._fault("no column varies anything", table.source, "head columns with FMU names")
        self._bounds(names, cases)
        return names, cases

    def _bounds(self, names: list[str], cases: Floats, where: str = "vary") -> None:
        """Add faults for values outside of the FMU's bounds."""
        for column, name in enumerate(names):
            low, high = self._variables[name].number("min"), self._variables[name].number("max")
            values = cases[:, column]
            if not len(values):
                continue
            for bound, beyond in ((low, values.min() < (low or 0.0)), (high, values.max() > (high or 0.0))):
                if bound is not None and beyond:
                    ends = dict.fromkeys(f"{end:.6g}" for end in (values.min(), values.max()))
                    what = f"{name} {'goes from' if len(ends) > 1 else 'is'} {' to '.join(ends)}, beyond {bound:g}"
                    self._fault(what, f"{where}.{name}", "the FMU allows no more")

    def _scaled(self, name: str, numbers: tuple[Value, ...], law: str) -> tuple[float, ...]:
        """Return numbers in the variable's unit; a standard deviation is a difference, without the FMU's offset."""
        found = [self._number(name, value, "vary") for value in numbers]
        if law == "normal" and isinstance(numbers[1], str):
            found[1] -= self._number(name, f"0 {numbers[1].split(maxsplit=1)[-1]}", "vary")
        return tuple(found)

    def _columns(self, wanted: tuple[StudyResultRequest, ...]) -> tuple[tuple[StudyCaseResultColumn, ...], list[str]]:
        """Return results in the runner's form, and the variables to read for them."""
        names = [*(each.of for each in wanted), *self._plan.trajectories]
        for name in dict.fromkeys(names):
            found = self._fmu.variables.get(name)
            if found is None or not found.is_double:
                self._fault(f"{name} is no variable that can be read", "results", self._like(name, self._readable()))
        read = list(dict.fromkeys(names))
        for each in wanted:
            if each.name in RESERVED_COLUMNS or each.name in {varied.name for varied in self._plan.varied}:
                self._fault("a column is called so already", f"results.{each.name}", "give another name")
        columns = []
        for each in wanted:
            level = 0.0
            if each.take == "first-crossing" and each.of in self._variables:
                level = self._number(each.of, each.level, f"results.{each.name}", "level")
            columns.append(StudyCaseResultColumn(read.index(each.of), each.take, level, each.direction))
        return tuple(columns), read

    def _outputs(self) -> tuple[StudyResultRequest, ...]:
        """Return all outputs at the end; of an FMU without outputs its continuous variables."""
        reals = {name: v for name, v in self._fmu.variables.items() if v.is_double}
        found = [name for name, v in reals.items() if v.causality == "output"]
        found = found or [n for n, v in reals.items() if v.variability == "continuous" and v.causality == "local"]
        if not found:
            self._fault("the FMU has nothing that changes", "results", "is it the right FMU?")
        return tuple(
            StudyResultRequest(f"{name} at the end" if name in RESERVED_COLUMNS else name, name, "end")
            for name in found
        )

    def _readable(self) -> list[str]:
        """Return the names of all real variables except time."""
        return [name for name, v in self._fmu.variables.items() if v.is_double and v.causality != "independent"]

    def _set(self, name: str, where: str) -> bool:
        """Return whether a variable can be set; add a fault if not."""
        found = self._fmu.variables.get(name)
        if found is not None and found.is_double and (found.causality == "input" or found.settable):
            return True
        can = [n for n, v in self._fmu.variables.items() if v.is_double and (v.causality == "input" or v.settable)]
        what = f"there is no variable {name}" if found is None else f"{name} cannot be set: it is {found.causality}"
        self._fault(what, where, self._like(name, can))
        return False

    def _like(self, name: str, names: list[str]) -> str:
        """Return a remedy: similar names, or all of them."""
        near = difflib.get_close_matches(name, names, n=3)
        return f"did you mean {' or '.join(near)}?" if near else f"there are {', '.join(names)}"

    def _number(self, name: str, value: Value, where: str, key: str = "") -> float:
        """Return a value in the variable's unit; add a fault, and return 0, if it cannot be read."""
        try:
            return parse_value_in_unit(value, self._unit_of(name))
        except ValueError as error:
            self._fault(
                str(error), f"{where}.{key or name}", f"write a number in {self._unit_of(name)}, or one with a unit"
            )
            return 0.0

    def _unit_of(self, name: str) -> str:
        """Return the unit of a variable, "1" if it has none."""
        variable: DescribedVariable | None = self._variables.get(name)
        return (variable.get("unit") if variable is not None else None) or "1"

    def _times(self) -> tuple[float, int]:
        """Return the communication step and the number of steps."""
        stop = self._plan.stop or self._described.experiment_number("stopTime", DEFAULT_STOP_S)
        step = self._plan.step or self._described.experiment_number("stepSize", stop / DEFAULT_STEP_COUNT)
        if not 0.0 < step <= stop:
            if any(fault.where in {"stop", "step"} for fault in self._earlier):  # one of them is not what was meant
                return 1.0, 1
            self._fault(f"a step of {step:g} s in {stop:g} s", "step", "give a step between 0 and stop")
            return 1.0, 1
        return step, max(1, round(stop / step))

    def _fault(self, what: str, where: str, remedy: str) -> None:
        """Add a fault of the plan, once."""
        fault = Fault(what, where, remedy)
        if fault not in self._faults:
            self._faults.append(fault)
