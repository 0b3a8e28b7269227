"""``StudyPlan``: a plan's file, checked as far as possible without the FMU."""

from __future__ import annotations

import difflib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, cast

from mb2fmu.analysis.studies.study_plan_words import (
    CROSSING_DIRECTIONS,
    REDUCTION_KINDS,
    SAMPLING_METHODS,
    Direction,
    Method,
    Take,
)
from mb2fmu.errors import AnalysisError, Fault

Format = Literal["parquet", "zarr"]
Value = float | str

WORST_ENDS = ("largest", "smallest")
MAX_CASES = 100_000_000
_PLAN_KEYS = (
    *("model", "fmu", "arguments", "kind", "stop", "step", "time_limit", "set", "inputs", "cases", "vary", "results"),
    *("trajectories", "trajectory_format"),
)
_CASES_KEYS = ("method", "count", "seed", "indices", "file", "spread")
_VARY_KEYS = ("values", "from", "to", "count", "scale", "mean", "deviation")
_RESULT_KEYS = ("of", "take", "level", "direction", "worst")
TRAJECTORY_FORMATS: tuple[Format, ...] = ("parquet", "zarr")
_INTERFACE_KINDS = {"cs": "CoSimulation", "me": "ModelExchange"}


@dataclass(frozen=True, slots=True)
class VariedQuantity:
    """A quantity that differs between cases.

    Attributes:
        name: FMU name of a parameter, a start value or an input (which keeps the value).
        law: ``values``: these; ``uniform``, ``log``: between two; ``normal``: mean and standard deviation.
        numbers: Accordingly, each a number in the variable's unit, or text with a unit; none where the plan is wrong.
        count: Of a grid: how many between the two, ends included.
    """

    name: str
    law: Literal["values", "uniform", "log", "normal"]
    numbers: tuple[Value, ...]
    count: int = 0


@dataclass(frozen=True, slots=True)
class StudyResultRequest:
    """One kept number of a case.

    Attributes:
        name: Of the column.
        of: FMU name of a variable.
        take: What of its values at communication points.
        level: Of ``first-crossing``: a number in its unit, or text with a unit.
        direction: Of ``first-crossing``.
        worst: Which end of the results is looked at first.
    """

    name: str
    of: str
    take: Take
    level: Value = 0.0
    direction: Direction = "either"
    worst: str = "largest"


@dataclass(frozen=True, slots=True)
class StudyPlan:
    """A plan.

    Attributes:
        source: Model file or unit, as written.
        source_is_fmu: It is an FMU.
        arguments: Of the model's function.
        kind: How an FMU is run; None: as Co-Simulation if it can do that.
        stop: s; None: as the experiment.
        step: Communication step in s; None: as the experiment.
        time_limit: For one case, s of the clock on the wall.
        fixed: FMU name → value in all cases.
        inputs: FMU name → formula of time or number.
        method: How cases are chosen.
        count: How many; of Sobol' indices the base sample.
        seed: Of what is drawn by chance.
        indices: Cases are chosen so that Sobol' indices can be estimated.
        table: CSV file of cases; empty for other methods.
        spread: All parameters vary by this part of their value, upward and downward; 0: those in ``varied`` do.
        varied: What differs.
        results: What is kept; empty: the outputs at the end.
        trajectories: FMU names of what is kept at all communication points.
        trajectory_format: Of the files that these are kept in.
    """

    source: str
    source_is_fmu: bool
    arguments: Mapping[str, Any]
    kind: Literal["CoSimulation", "ModelExchange"] | None
    stop: float | None
    step: float | None
    time_limit: float
    fixed: Mapping[str, Value]
    inputs: Mapping[str, Value]
    method: Method
    count: int
    seed: int
    indices: bool
    table: str
    spread: float
    varied: tuple[VariedQuantity, ...]
    results: tuple[StudyResultRequest, ...]
    trajectories: tuple[str, ...]
    trajectory_format: Format = "parquet"


def parse_study_plan(content: Mapping[str, Any]) -> tuple[StudyPlan, tuple[Fault, ...]]:
    """Check a plan's file.

    Args:
        content: As ``tomllib`` reads it.

    Returns:
        The plan, of which what is wrong is left out, so that the rest can be compared with the FMU; every fault.
    """
    reader = _StudyPlanReader()
    return reader.plan(content), tuple(reader.faults)


def read_study_plan(content: Mapping[str, Any]) -> StudyPlan:
    """Read a plan without faults.

    Args:
        content: As ``tomllib`` reads it.

    Raises:
        AnalysisError: With every fault.
    """
    plan, faults = parse_study_plan(content)
    if faults:
        raise AnalysisError("the plan cannot be used:", faults)
    return plan


def is_study_target_missing(plan: StudyPlan, faults: Sequence[Fault]) -> bool:
    """Return whether a faulty plan names no FMU or model, so that nothing can be checked against one."""
    of_arguments = [fault for fault in faults if fault.where == "arguments" or fault.what.startswith("argu")]
    return not plan.source or bool(of_arguments and not plan.source_is_fmu)


class _StudyPlanReader:
    """Reads the parts of a plan, and collects faults."""

    def __init__(self) -> None:
        self.faults: list[Fault] = []

    def plan(self, content: Mapping[str, Any]) -> StudyPlan:
        """Return the whole plan; faulty parts are replaced by harmless ones."""
        self._known(content, _PLAN_KEYS, "the plan")
        source, is_fmu = self._source(content)
        kind = self._choice(content, "kind", (*_INTERFACE_KINDS, ""), "", "")
        cases = self._table(content, "cases")
        self._known(cases, _CASES_KEYS, "cases")
        method = cast("Method", self._choice(cases, "method", SAMPLING_METHODS, "grid", "cases"))
        known = cases.get("method", "grid") in SAMPLING_METHODS
        if not known:  # nothing follows from it
            method = cast("Method", "")
        indices = self._indices(cases, method)
        before = len(self.faults)
        count = int(self._number(cases, "count", 0, "cases", whole=True, least=0))
        known = known and len(self.faults) == before
        spread = self._spread(cases, method)
        varied = self._varied(self._table(content, "vary"), method, spread="spread" in cases)
        if known:
            self._counted(method, count, indices, len(varied))
        file = self._table_file(cases, method)
        return StudyPlan(
            source=source,
            source_is_fmu=is_fmu,
            arguments=self._table(content, "arguments"),
            kind=cast("Any", _INTERFACE_KINDS.get(kind)),
            stop=self._positive(content, "stop"),
            step=self._positive(content, "step"),
            time_limit=self._positive(content, "time_limit") or 300.0,
            fixed=self._values(content, "set"),
            inputs=self._values(content, "inputs"),
            method=method,
            count=count,
            seed=int(self._number(cases, "seed", 0, "cases", whole=True, least=0)),
            indices=indices,
            table=file if method == "table" else "",
            spread=spread,
            varied=varied,
            results=self._results(self._table(content, "results")),
            trajectories=self._names(content, "trajectories"),
            trajectory_format=cast(
                "Format", self._choice(content, "trajectory_format", TRAJECTORY_FORMATS, "parquet", "")
            ),
        )

    def _source(self, content: Mapping[str, Any]) -> tuple[str, bool]:
        """Return the model file or FMU as written, and whether it is an FMU."""
        sources = [key for key in ("model", "fmu") if key in content]
        if len(sources) != 1:
            what = "both model and fmu are given" if sources else "neither model nor fmu is given"
            self._fault(what, "", 'write model = "NAME.py" or fmu = "NAME.fmu"')
        source = self._text(content, sources[0], "") if len(sources) == 1 else ""
        is_fmu = "fmu" in sources or source.endswith(".fmu")
        if is_fmu and "arguments" in content:
            self._fault("an FMU has no arguments", "arguments", "give the model, or leave [arguments] out")
        return source, is_fmu

    def _indices(self, cases: Mapping[str, Any], method: Method) -> bool:
        """Return whether Sobol' indices are requested; ``method`` is empty where it is unknown."""
        indices = cases.get("indices", False)
        if not isinstance(indices, bool):
            self._fault(f"{indices!r} is neither true nor false", "cases.indices", "write indices = true")
        elif indices and method and method != "sobol":
            self._fault("indices need cases of their own", "cases.indices", 'write method = "sobol"')
        return indices is True

    def _table_file(self, cases: Mapping[str, Any], method: Method) -> str:
        """Return the file of a table of cases; empty for other methods."""
        file = self._text(cases, "file", "cases") if "file" in cases else ""
        if method and (method == "table") != bool(file):
            self._fault(
                "a table of cases is a file" if method == "table" else f"cases of {method} come from no file",
                "cases.file", 'write method = "table" and file = "cases.csv"',
            )  # fmt: skip
        return file

    def _spread(self, cases: Mapping[str, Any], method: Method) -> float:
        """Return the part of their values by which all parameters vary."""
        if "spread" not in cases:
            return 0.0
        found = cases["spread"]
        if not _is_number(found) or not 0.0 < found < 1.0:
            self._fault(f"{found!r} is no part of a value", "cases.spread", "write spread = 0.1 for ± 10 %")
        elif method in {"grid", "table"}:
            remedy = 'write method = "latin-hypercube" or "sobol"'
            self._fault(f"a {method} says itself which values there are", "cases.spread", remedy)
        else:
            return float(found)
        return 0.0

    def _counted(self, method: Method, count: int, indices: bool, n: int) -> None:
        """Add a fault if the number of cases does not fit the method."""
        if method in {"grid", "table"}:
            if count:
                self._fault(f"a {method} determines the number of cases itself", "cases.count", "leave it out")
            return
        if count < 1:
            self._fault("the number of cases is missing", "cases.count", "write count = 1024")
        elif method == "sobol" and count & (count - 1):
            below = 1 << (count.bit_length() - 1)
            what = f"{count} is no power of two, which Sobol's sequence needs to be balanced"
            self._fault(what, "cases.count", f"write {below} or {2 * below}")
        if count * (n + 2 if indices else 1) > MAX_CASES:
            self._fault(f"more than {MAX_CASES:,} cases", "cases.count", "take fewer")

    def _varied(self, table: Mapping[str, Any], method: Method, *, spread: bool) -> tuple[VariedQuantity, ...]:
        """Return the quantities that differ between cases."""
        if spread and table:
            self._fault("all parameters vary by the spread already", "vary", "keep [vary] or cases.spread")
        elif not spread and (method == "table") == bool(table):
            what = "a table of cases says what varies" if table else "nothing varies"
            remedy = (
                "leave [vary] out" if table
                else "write [vary] and a line m = { from = 0.5, to = 2 }, or spread = 0.1 in [cases]"
            )  # fmt: skip
            self._fault(what, "vary", remedy)
        return tuple(self._one_varied(name, entry, method) for name, entry in table.items())

    def _one_varied(self, name: str, entry: Any, method: Method) -> VariedQuantity:
        """Read one line of ``[vary]``."""
        where = f"vary.{name}"
        if isinstance(entry, list):
            entry = {"values": entry}
        if not isinstance(entry, dict):
            self._fault(f"{entry!r} is one value", where, "write a list, or { from = …, to = … }; [set] keeps a value")
            return VariedQuantity(name, "values", ())
        self._known(entry, _VARY_KEYS, where)
        given = [set(keys) & set(entry) for keys in (("values",), ("from", "to"), ("mean", "deviation"))]
        if sum(map(bool, given)) != 1 or any(len(keys) == 1 for keys in given[1:]):
            self._fault("does not say which values", where, "give values; or from and to; or mean and deviation")
            return VariedQuantity(name, "values", ())
        scale = self._choice(entry, "scale", ("linear", "log"), "linear", where)
        count = int(self._number(entry, "count", 0, where, whole=True, least=2)) if "count" in entry else 0
        law: Any = "values" if given[0] else "normal" if given[2] else "log" if scale == "log" else "uniform"
        keys = ("values",) if given[0] else ("from", "to") if given[1] else ("mean", "deviation")
        numbers = entry["values"] if given[0] else [entry[key] for key in keys]
        if not isinstance(numbers, list) or not numbers or not all(_is_value(number) for number in numbers):
            self._fault(f"{numbers!r} are no numbers", where, 'write numbers, or texts with a unit: "30 deg"')
            numbers = []
        if method == "grid" and law == "normal":
            self._fault("a grid draws nothing at random", where, "give values, or from, to and count")
        if method == "grid" and law in {"uniform", "log"} and not count:
            self._fault("a grid needs the number of points", where, "add count = 11")
        if method in {"latin-hypercube", "sobol"} and (law == "values" or count):
            self._fault(f"{method} draws between bounds", where, "give from and to, or mean and deviation")
        return VariedQuantity(name, law, tuple(numbers), count)

    def _results(self, table: Mapping[str, Any]) -> tuple[StudyResultRequest, ...]:
        """Return the results to keep."""
        found = []
        for name, given in table.items():
            where = f"results.{name}"
            entry = {"of": given} if isinstance(given, str) else given
            if not isinstance(entry, dict) or not isinstance(entry.get("of"), str):
                self._fault("does not say of which variable", where, 'write { of = "tip.y", take = "largest" }')
                continue
            self._known(entry, _RESULT_KEYS, where)
            take = cast("Take", self._choice(entry, "take", REDUCTION_KINDS, "end", where))
            level = entry.get("level", 0.0)
            if not _is_value(level) or ("level" in entry and take != "first-crossing"):
                self._fault("a level is a number, of first-crossing", f"{where}.level", "write level = 0.5")
                level = 0.0
            direction = cast("Direction", self._choice(entry, "direction", CROSSING_DIRECTIONS, "either", where))
            if "direction" in entry and take != "first-crossing":
                self._fault("only first-crossing has a direction", f"{where}.direction", 'add take = "first-crossing"')
            worst = self._choice(entry, "worst", WORST_ENDS, "largest", where)
            found.append(StudyResultRequest(name, entry["of"], take, level, direction, worst))
        return tuple(found)

    def _fault(self, what: str, where: str, remedy: str) -> None:
        """Add a fault of the plan."""
        self.faults.append(Fault(what, where, remedy))

    def _known(self, table: Mapping[str, Any], keys: Sequence[str], where: str) -> None:
        """Add faults for unknown keys."""
        for key in table:
            if key not in keys:
                near = difflib.get_close_matches(key, keys, n=1)
                remedy = f"did you mean {near[0]}?" if near else f"there are {', '.join(keys)}"
                self._fault(f"{key} means nothing", where, remedy)

    def _table(self, content: Mapping[str, Any], key: str) -> Mapping[str, Any]:
        """Return a table of the plan; empty, with a fault, if it is something else."""
        found = content.get(key, {})
        if isinstance(found, dict):
            return found
        self._fault("is no table", key, f"write [{key}]")
        return {}

    def _text(self, content: Mapping[str, Any], key: str, where: str) -> str:
        """Return a text that must be there; empty, with a fault, if it is not."""
        found = content.get(key)
        if isinstance(found, str) and found:
            return found
        self._fault("is no text", f"{where}.{key}".lstrip("."), f'write {key} = "…"')
        return ""

    def _choice(self, content: Mapping[str, Any], key: str, choices: Sequence[str], default: str, where: str) -> str:
        """Return one of the choices; the default, with a fault, if it is none."""
        found = content.get(key, default)
        if found in choices:
            return str(found)
        offered = ", ".join(each for each in choices if each)
        self._fault(f"{found!r} is no {key}", f"{where}.{key}".lstrip("."), f"take one of {offered}")
        return default

    def _number(
        self, content: Mapping[str, Any], key: str, default: float, where: str, *, whole: bool, least: float
    ) -> float:
        """Return a number from `least` on; the default, with a fault, if it is none."""
        found = content.get(key, default)
        good = _is_number(found) and found >= least and (isinstance(found, int) or not whole)
        if good:
            return float(found)
        kind = "whole number" if whole else "number"
        self._fault(f"{found!r} is no {kind} from {least:g} on", f"{where}.{key}".lstrip("."), f"write {key} = 10")
        return default

    def _positive(self, content: Mapping[str, Any], key: str) -> float | None:
        """Return a time above zero in s; None if absent, or, with a fault, if it is none."""
        if key not in content:
            return None
        found = content[key]
        if _is_number(found) and found > 0:
            return float(found)
        self._fault(f"{found!r} is no positive number of seconds", key, f"write {key} = 1.0")
        return None

    def _values(self, content: Mapping[str, Any], key: str) -> Mapping[str, Value]:
        """Return a table of numbers and texts with units; faults for anything else."""
        table = self._table(content, key)
        for name, value in table.items():
            if not _is_value(value):
                self._fault(f"{value!r} is no number and no text", f"{key}.{name}", 'write 2.0, or "30 deg"')
        return {name: value for name, value in table.items() if _is_value(value)}

    def _names(self, content: Mapping[str, Any], key: str) -> tuple[str, ...]:
        """Return a list of names without doubles; empty, with a fault, if it is none."""
        found = content.get(key, [])
        if isinstance(found, list) and all(isinstance(name, str) for name in found):
            return tuple(dict.fromkeys(found))
        self._fault("is no list of names", key, f'write {key} = ["tip.x"]')
        return ()


def _is_number(value: Any) -> bool:
    """Return whether a value is a finite number; truth values are none."""
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _is_value(value: Any) -> bool:
    """Return whether a value is a text or a finite number."""
    return isinstance(value, str) or _is_number(value)
