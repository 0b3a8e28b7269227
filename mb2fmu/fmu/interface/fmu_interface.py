"""FmuInterface: everything an importer can see of an FMU, decided once.

Value references, causality, variability, initial, start values, units, dependencies and the token stand here and
nowhere else; the backends print them. The laws of the FMI standards that concern them (2.0.5 sections 2.2.3 to 2.2.8,
3.0.2 section 2.4) are checked when the record is built, all at once.
"""

from __future__ import annotations

import math
import re
import uuid
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

from mb2fmu.errors import Fault, InterfaceError
from mb2fmu.fmu.integration_method_table import SOLVERS, find_integration_method_by_kind
from mb2fmu.fmu.interface.fmu_types_arrays_terminals import FmuArray, Terminal, TypeDefinition
from mb2fmu.units import BASE_UNITS

Causality = Literal["independent", "parameter", "calculatedParameter", "input", "output", "local"]
Variability = Literal["fixed", "tunable", "discrete", "continuous"]
Initial = Literal["exact", "approx", "calculated"]
FmiDependencyKind = Literal["constant", "fixed", "tunable", "dependent"]
VariableSource = Literal[
    "time",
    "state",
    "input",
    "parameter",
    "prepare",
    "dependent_speeds",
    "rhs",
    "accelerations",
    "position",
    "velocity",
    "acceleration",
    "indicators",
    "mode",
    "solver",
    "solver_step",
]
ValueKind = Literal["real", "enumeration"]
InterfaceKind = Literal["ModelExchange", "CoSimulation"]
FmiVersion = Literal["2", "3"]
FmuBackend = Literal["native", "python"]

STORED_SOURCES: tuple[VariableSource, ...] = ("time", "state", "input", "parameter", "solver", "solver_step")
"""Sources that the FMU stores; the others are entry points of the Program, evaluated on demand."""

_LEGAL_ATTRIBUTES = {
    ("independent", "continuous", None),
    ("parameter", "fixed", "exact"),
    ("parameter", "tunable", "exact"),
    ("calculatedParameter", "fixed", "calculated"),
    ("calculatedParameter", "tunable", "calculated"),
    ("input", "continuous", "exact"),
    ("output", "continuous", "exact"),
    ("output", "continuous", "approx"),
    ("output", "continuous", "calculated"),
    ("local", "continuous", "exact"),
    ("local", "continuous", "calculated"),
    ("local", "discrete", "calculated"),
}
"""Combinations of causality, variability and initial that FMUs of ours use: a part of the standard's table."""

_QUOTED_NAME_PATTERN = r"""'(?:[A-Za-z0-9_!#$%&()*+,\-./:;<>=?@\[\]^{}|~ ]|\\['"?\\abfnrtv])+'"""
_NAME_PART_PATTERN = rf"(?:[A-Za-z_][A-Za-z0-9_]*|{_QUOTED_NAME_PATTERN})(?:\[\d+(?:,\d+)*\])?"
_VARIABLE_NAME_PATTERN = re.compile(
    rf"{_NAME_PART_PATTERN}(?:\.{_NAME_PART_PATTERN})*|der\({_NAME_PART_PATTERN}(?:\.{_NAME_PART_PATTERN})*(?:,\d+)?\)"
)
_UNPRINTABLE_PATTERN = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")
"""Line breaks, control characters and what XML cannot hold."""


@dataclass(frozen=True, slots=True)
class FmuTarget:
    """FMI version, interface types and backend that an FMU is built for.

    Attributes:
        fmi: Major version of the standard: 2.0 or 3.0.
        backend: ``native``: C code, Model Exchange and Co-Simulation; ``python``: Co-Simulation by pythonfmu, FMI 2.0.
        solver: Of a native FMU, unless its parameter says otherwise; None: what the model's experiment requests.
        compiler: Of a native FMU: ``zig``, whose binaries move alike everywhere, or ``cc``: the system's, whatever
            that is set to do.
        fast: Of a native FMU: fused multiply-adds are allowed, so that it moves alike on equal processors only.
    """

    fmi: FmiVersion = "2"
    backend: FmuBackend = "python"
    solver: str | None = None
    compiler: Literal["zig", "cc"] = "zig"
    fast: bool = False

    def __post_init__(self) -> None:
        faults = []
        if self.backend == "python" and self.fmi != "2":
            faults.append(Fault("FMUs of Python are built for FMI 2.0 only", "FMI", "use 2.0, or the native backend"))
        names = [row.name for row in SOLVERS]
        if self.solver is not None and self.solver not in names:
            faults.append(Fault(f"there is no solver {self.solver!r}", "solver", f"take one of {', '.join(names)}"))
        if self.backend == "python" and self.solver is not None:
            faults.append(Fault("the solver of an FMU of Python is the experiment's", "solver", "leave it out"))
        if faults:
            raise InterfaceError("no such FMU can be built:", faults)


@dataclass(frozen=True, slots=True)
class DisplayUnit:
    """shown value = ``factor`` · value + ``offset``."""

    name: str
    factor: float
    offset: float


@dataclass(frozen=True, slots=True)
class InterfaceUnit:
    """A unit of measurement that variables use.

    Attributes:
        name: Modelica style.
        factor: base value = factor · value + offset.
        offset: See ``factor``.
        exponents: Of kg, m, s, A, K, mol, cd, rad; None if one is no whole number: then it has no base unit.
        display_units: In the order of their first use.
    """

    name: str
    factor: float
    offset: float
    exponents: tuple[int, ...] | None
    display_units: tuple[DisplayUnit, ...] = ()

    @property
    def powers(self) -> tuple[tuple[str, int], ...]:
        """(base unit, exponent) for the exponents that are not 0."""
        exponents = self.exponents or (0,) * len(BASE_UNITS)
        return tuple((base, power) for base, power in zip(BASE_UNITS, exponents, strict=True) if power)


@dataclass(frozen=True, slots=True)
class VariableDependency:
    """An unknown depends on the variable ``on``.

    Attributes:
        on: Name of the variable.
        kind: Linear with a factor that is a number (``constant``), made of fixed parameters (``fixed``) or of
        parameters (``tunable``); else ``dependent``.
    """

    on: str
    kind: FmiDependencyKind = "dependent"


@dataclass(frozen=True, slots=True, kw_only=True)
class FmuVariable:
    """One variable of the FMU.

    Attributes:
        name: FMI structured naming.
        value_reference: Unique in the FMU.
        causality: As in FMI.
        variability: As in FMI.
        initial: As in FMI; None for the independent variable.
        start: In ``unit``; None exactly where the value is calculated or independent.
        unit: Name of a declared unit.
        display_unit: Name of one of that FMU's display units.
        minimum: In ``unit``.
        maximum: In ``unit``.
        nominal: Typical magnitude, > 0.
        description: One line.
        derivative_of: Name of the continuous state whose time derivative this is.
        source: Where the value lives, or the Program's entry point that computes it.
        index: Which element of ``source``: of t, x, r or p, or of the entry point's results.
        dependencies: On time, states, inputs and free parameters, directly or through other variables; in the order of
            the variables. Of a state that is ``approx``: those of its start value. What a standard does not want to see
            is left out when it is printed.
        start_dependencies: Further ones in Initialization Mode, where modes are found from what switches look at.
        kind: Real number, or a value of the enumeration type ``declared_type`` (its ``unit`` is then of no meaning).
        declared_type: Name of a type definition.
    """

    name: str
    value_reference: int
    causality: Causality
    variability: Variability = "continuous"
    initial: Initial | None
    start: float | None = None
    unit: str = "1"
    display_unit: str | None = None
    minimum: float | None = None
    maximum: float | None = None
    nominal: float | None = None
    description: str = ""
    derivative_of: str | None = None
    source: VariableSource
    index: int = 0
    dependencies: tuple[VariableDependency, ...] = ()
    start_dependencies: tuple[VariableDependency, ...] = field(default=(), repr=False)
    kind: ValueKind = "real"
    declared_type: str | None = None

    def faults(self) -> Iterator[str]:
        """Yield the rules of the standards that a single variable breaks."""
        if not _VARIABLE_NAME_PATTERN.fullmatch(self.name):
            yield "is not a structured FMI name (letters, digits, _, parts joined by '.', indices in [])"
        if (self.causality, self.variability, self.initial) not in _LEGAL_ATTRIBUTES:
            combination = f"causality {self.causality}, variability {self.variability}, initial {self.initial}"
            yield f"{combination} do not go together"
        if (self.start is not None) != (self.initial in ("exact", "approx")):
            yield f"initial={self.initial} goes {'without' if self.start is not None else 'with'} a start value"
        numbers = {"start": self.start, "min": self.minimum, "max": self.maximum, "nominal": self.nominal}
        given = {key: value for key, value in numbers.items() if value is not None}
        yield from (
            f"{key} is {value}, not a finite number" for key, value in given.items() if not math.isfinite(value)
        )
        if self.nominal is not None and not self.nominal > 0.0:
            yield f"nominal {self.nominal!r} is not positive"
        low, high = given.get("min", -math.inf), given.get("max", math.inf)
        if low > high:
            yield f"min {low!r} is above max {high!r}"
        elif self.start is not None and not low <= self.start <= high:
            yield f"start {self.start!r} is outside of [{low!r}, {high!r}]"
        if _UNPRINTABLE_PATTERN.search(self.description):
            yield "the description holds a line break or control character"


@dataclass(frozen=True, slots=True)
class LogCategory:
    """A kind of message that an importer can request."""

    name: str
    description: str


@dataclass(frozen=True, slots=True)
class DefaultExperiment:
    """Times in s; ``tolerance`` is relative."""

    start: float
    stop: float
    step: float
    tolerance: float


@dataclass(frozen=True, slots=True)
class FmuSolverSettings:
    """How a co-simulation FMU integrates.

    Attributes:
        kind: Of a row of :data:`mb2fmu.fmu.integration_method_table.SOLVERS`. Python FMUs have ``explicit``,
            ``implicit`` and ``fixed``.
        tolerance: Relative.
        internal_step: Largest step of the solvers with fixed steps in s; None: the communication step.
    """

    kind: str
    tolerance: float
    internal_step: float | None = None

    @property
    def solver_enumeration_value(self) -> int:
        """The value of the enumeration parameter that chooses the solver of a native FMU."""
        return find_integration_method_by_kind(self.kind).number


@dataclass(frozen=True, slots=True)
class FmuCapabilities:
    """Optional abilities of an FMU.

    Attributes:
        needs_execution_tool: Something must be installed on the importer's machine (a Python host).
        state: The whole state can be read, set and serialized.
        model_exchange: Model Exchange besides Co-Simulation.
        directional_derivatives: Of everything computed, by everything settable.
        adjoint_derivatives: The same, transposed; FMI 3.0 only.
        input_derivatives: Inputs may be linear over a communication step; FMI 2.0 only.
        output_derivative_order: Highest time derivative of outputs at communication points.
        intermediate_update: Inputs and outputs can be accessed within a communication step; FMI 3.0 only.
        early_return: A step ends after an intermediate update if the importer wants; FMI 3.0 only.
        event_mode: Co-Simulation steps end at events if the importer handles them; FMI 3.0 only.
        remembers: Something is kept from one accepted step to the next: the importer must announce accepted steps.
    """

    needs_execution_tool: bool
    state: bool
    model_exchange: bool = False
    directional_derivatives: bool = False
    adjoint_derivatives: bool = False
    input_derivatives: bool = False
    output_derivative_order: int = 0
    intermediate_update: bool = False
    early_return: bool = False
    event_mode: bool = False
    remembers: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class FmuInterface:
    """Everything that an importer sees of an FMU.

    Attributes:
        model_name: As the user calls it.
        model_identifier: C identifier; names binaries and classes.
        description: One line.
        token: UUID of interface and program: equal input, equal token.
        variables: In the order of the description file; ``variables[0]`` is time.
        units: In the order of their first use.
        experiment: The default experiment.
        solver: Of the co-simulation.
        log_categories: What the FMU may log.
        capabilities: Beyond the least.
        generation_tool: Name and version of the exporter.
        target: Standard and backend.
        types: In the order of their first use.
        terminals: Where other FMUs may be connected with all that belongs together.
        arrays: Of FMI 3.0, with value references behind those of ``variables``.
    """

    model_name: str
    model_identifier: str
    description: str
    token: str
    variables: tuple[FmuVariable, ...]
    units: tuple[InterfaceUnit, ...]
    experiment: DefaultExperiment
    solver: FmuSolverSettings
    log_categories: tuple[LogCategory, ...]
    capabilities: FmuCapabilities
    generation_tool: str
    target: FmuTarget = FmuTarget()
    types: tuple[TypeDefinition, ...] = ()
    terminals: tuple[Terminal, ...] = ()
    arrays: tuple[FmuArray, ...] = ()

    def __post_init__(self) -> None:
        faults = [
            *self._head_faults(),
            *(Fault(text, variable.name) for variable in self.variables for text in variable.faults()),
            *self._uniqueness_faults(),
            *self._unit_faults(),
            *self._link_faults(),
            *self._type_faults(),
            *self._terminal_faults(),
            *self._array_faults(),
        ]
        if faults:
            raise InterfaceError(f"{self.model_name} cannot be described as an FMU:", faults)

    @property
    def kinds(self) -> tuple[InterfaceKind, ...]:
        """The interface types of the FMU."""
        return ("ModelExchange", "CoSimulation") if self.capabilities.model_exchange else ("CoSimulation",)

    @property
    def scalars(self) -> tuple[FmuVariable, ...]:
        """Variables that do not stand in arrays only."""
        gone = {name for array in self.arrays if array.replaces for name in array.elements}
        return tuple(variable for variable in self.variables if variable.name not in gone) if gone else self.variables

    def variables_from_sources(self, *sources: VariableSource) -> tuple[FmuVariable, ...]:
        """Return the variables that live in, or are computed by, ``sources``, in their order."""
        return tuple(variable for variable in self.variables if variable.source in sources)

    def named(self, name: str) -> FmuVariable:
        """Return the variable of that name.

        Raises:
            KeyError: If there is none.
        """
        for variable in self.variables:
            if variable.name == name:
                return variable
        raise KeyError(name)

    def _head_faults(self) -> Iterator[Fault]:
        """Yield faults of identifier, token, description and default experiment."""
        if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", self.model_identifier):
            yield Fault(f"{self.model_identifier!r} is not a C identifier", "model name", "use letters, digits and _")
        try:
            canonical = str(uuid.UUID(self.token)) == self.token
        except ValueError:
            canonical = False
        if not canonical:
            yield Fault(f"{self.token!r} is not a UUID", "token")
        if _UNPRINTABLE_PATTERN.search(self.description):
            yield Fault("the description holds a line break or control character", "model", "write one line")
        run = self.experiment
        finite = all(map(math.isfinite, (run.start, run.stop, run.step, run.tolerance)))
        if not finite or not (run.start < run.stop and run.step > 0.0 and run.tolerance > 0.0):
            yield Fault(
                f"start {run.start!r} s, stop {run.stop!r} s, step {run.step!r} s and tolerance {run.tolerance!r} "
                "make no experiment",
                "experiment",
                "stop must be after start, step and tolerance positive",
            )
        step = self.solver.internal_step
        if step is not None and not (math.isfinite(step) and step > 0.0):
            yield Fault(f"the internal step {step!r} s is not positive", "experiment")

    def _uniqueness_faults(self) -> Iterator[Fault]:
        """Yield names and value references that occur twice, and a missing or second independent variable."""
        for name, count in Counter(variable.name for variable in self.variables).items():
            if count > 1:
                yield Fault(f"{count} variables have this name", name, "rename all but one (time is always there)")
        for reference, count in Counter(variable.value_reference for variable in self.variables).items():
            if count > 1:
                yield Fault(f"{count} variables have the value reference {reference}", "value references")
        independent = sum(variable.causality == "independent" for variable in self.variables)
        if independent != 1:
            yield Fault(f"{independent} independent variables", "time")

    def _unit_faults(self) -> Iterator[Fault]:
        """Yield units and display units that variables use and that are not declared."""
        declared = {unit.name: {shown.name for shown in unit.display_units} for unit in self.units}
        if len(declared) != len(self.units):
            yield Fault("an FMU is declared twice", "units")
        for variable in self.variables:
            if variable.kind == "enumeration":
                continue
            if variable.unit not in declared:
                yield Fault(f"its unit {variable.unit!r} is not declared", variable.name)
            elif variable.display_unit is not None and variable.display_unit not in declared[variable.unit]:
                yield Fault(f"its display unit {variable.display_unit!r} is not declared", variable.name)

    def _link_faults(self) -> Iterator[Fault]:
        """Yield faults of links: states without exactly one derivative, dependencies on unknown variables."""
        states = {variable.name for variable in self.variables_from_sources("state")}
        known = {variable.name for variable in self.variables if variable.source in STORED_SOURCES}
        derived = Counter(variable.derivative_of for variable in self.variables if variable.derivative_of is not None)
        for state in sorted(states):
            if derived[state] != 1:
                yield Fault(f"{derived[state]} variables are its derivative, not one", state)
        strangers: dict[int, list[str]] = {}  # of each list of dependencies, which many variables share
        for variable in self.variables:
            if variable.derivative_of is not None and variable.derivative_of not in states:
                yield Fault(f"is the derivative of {variable.derivative_of!r}, which is no state", variable.name)
            key = id(variable.dependencies)
            if key not in strangers:
                strangers[key] = [each.on for each in variable.dependencies if each.on not in known]
            if unknown := strangers[key]:
                yield Fault(f"depends on {', '.join(unknown)}, not known to the FMU", variable.name)

    def _type_faults(self) -> Iterator[Fault]:
        """Yield types with a taken name, and variables that contradict their type."""
        names = [*(variable.name for variable in self.variables), *(item.name for item in self.types)]
        count = Counter(names)
        units = {unit.name for unit in self.units}
        for item in self.types:
            if count[item.name] > 1:
                yield Fault("a type has the name of another type or of a variable", item.name)
            if item.unit is not None and item.unit not in units:
                yield Fault(f"its unit {item.unit!r} is not declared", item.name)
        types = {item.name: item for item in self.types}
        for variable in self.variables:
            declared = types.get(variable.declared_type or "")
            if declared is None:
                if variable.kind == "enumeration" or variable.declared_type is not None:
                    yield Fault(f"its type {variable.declared_type!r} is not declared", variable.name)
            elif variable.kind == "enumeration":
                if variable.start not in {item.value for item in declared.items}:
                    yield Fault(f"its start {variable.start!r} is no value of {declared.name}", variable.name)
            elif declared.unit != variable.unit:
                yield Fault(f"its unit {variable.unit!r} is not that of its type {declared.name}", variable.name)

    def _terminal_faults(self) -> Iterator[Fault]:
        """Yield terminals with a taken name, doubled members, or members that cannot be connected."""
        causality = {variable.name: variable.causality for variable in self.variables}
        for name, count in Counter(terminal.name for terminal in self.terminals).items():
            if count > 1:
                yield Fault(f"{count} terminals have this name", name)
        for terminal in self.terminals:
            members = [member.name for member in terminal.members]
            if len(set(members)) != len(members):
                yield Fault("two members have one name", terminal.name)
            for member in terminal.members:
                if causality.get(member.variable) not in ("input", "output", "parameter", "calculatedParameter"):
                    yield Fault(f"its member {member.variable!r} is no variable that can be connected", terminal.name)

    def _array_faults(self) -> Iterator[Fault]:
        """Yield faults of arrays: their names, value references and elements."""
        names = {variable.name for variable in self.variables} | {item.name for item in self.types}
        free = 1 + max((variable.value_reference for variable in self.variables), default=-1)
        for array in self.arrays:
            if (
                not re.fullmatch(_NAME_PART_PATTERN + rf"(?:\.{_NAME_PART_PATTERN})*", array.name)
                or array.name in names
            ):
                yield Fault("an array has the name of another variable, or one that FMI has not", array.name)
            if self.target.fmi != "3" or array.value_reference != free:
                yield Fault("an array's value reference is not the next one, or the FMU is none of FMI 3.0", array.name)
            if math.prod(array.dimensions) != len(array.elements) or not names.issuperset(array.elements):
                yield Fault("the array has not one variable per place", array.name)
            names.add(array.name)
            free += len(array.elements)
