"""``CoupledSystem``: the user's declaration of several connected FMUs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypedDict, Unpack

from mb2fmu.model.experiment_defaults import DEFAULT_COMPONENT_TOLERANCE, DEFAULT_STEP_S, DEFAULT_STOP_S
from mb2fmu.model.source_location import find_user_source_line
from mb2fmu.systems.port_and_bond_records import CommunicationStepSettings, SteppingMethod

DeclaredValue = float | tuple[float, str]
"""A number in the variable's own unit, or a number and its unit."""


@dataclass(frozen=True, slots=True)
class DeclaredSystemComponent:
    """A component as the user wrote it; see :meth:`CoupledSystem.component`."""

    name: str
    source: Any
    arguments: Mapping[str, Any]
    values: Mapping[str, DeclaredValue]
    fmi: Literal["2", "3"]
    where: str


@dataclass(frozen=True, slots=True)
class DeclaredSystemConnection:
    """A connection as the user wrote it; see :meth:`CoupledSystem.connect`."""

    source: str
    target: str
    where: str
    transformation: tuple[float, float] | None = None
    convert: bool = True
    delay: float = 0.0


@dataclass(frozen=True, slots=True)
class SystemParameterTarget:
    """A variable of a component that follows a parameter of the system.

    Attributes:
        variable: ``component.variable``.
        factor: Multiplies the value after its unit of measure is converted.
        offset: Is added to the value, in the variable's unit.
        convert: If false, numbers are passed without conversion of units.
    """

    variable: str
    factor: float = 1.0
    offset: float = 0.0
    convert: bool = True


@dataclass(frozen=True, slots=True)
class DeclaredSystemParameter:
    """A parameter of the system as the user wrote it; see :meth:`CoupledSystem.parameter`."""

    name: str
    value: DeclaredValue
    targets: tuple[SystemParameterTarget, ...]
    where: str


@dataclass(frozen=True, slots=True)
class DeclaredPowerBond:
    """A bond as the user wrote it; see :meth:`CoupledSystem.bond`."""

    name: str
    sides: tuple[str, ...]
    where: str


@dataclass(frozen=True, slots=True)
class _DeclaredMonolithicReference:
    """The reference: the whole system as one model."""

    source: Any
    reference_names: Mapping[str, str]
    arguments: Mapping[str, Any]
    where: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _SystemExperiment:
    """Run time of a system, and tolerance of its components.

    Attributes:
        stop: Stop time in s; the start time is 0.
        tolerance: Relative tolerance of the components' own solvers.
        stepping: Settings of the master.
        bound: Largest error against the monolith that is accepted, of each variable's own size; None: none is stated.
    """

    stop: float = DEFAULT_STOP_S
    tolerance: float = DEFAULT_COMPONENT_TOLERANCE
    stepping: CommunicationStepSettings = field(default_factory=lambda: CommunicationStepSettings(step=DEFAULT_STEP_S))
    bound: float | None = None


class _CommunicationStepOptions(TypedDict, total=False):
    """Options of :meth:`CoupledSystem.experiment` for :class:`~.port_and_bond_records.CommunicationStepSettings`."""

    method: SteppingMethod
    order: int
    passes: int
    converged: float
    jacobian: bool
    accuracy: float | None
    longest: float | None
    substeps: int
    loops: Literal["refuse", "solve"]
    unstable: Literal["refuse", "run"]
    sequence: tuple[str, ...]


class CoupledSystem:
    """Several connected FMUs, and the settings of their run; docs/how_to/systems.md shows how.

    Declarations are collected, each with the line it stands in, and checked together when the system is wired.

    Args:
        name: Name of the system, an identifier.
        description: One line.

    Example:
        >>> system = CoupledSystem("TwoMasses")                              # doctest: +SKIP
        >>> system.component("left", "left.py")                              # doctest: +SKIP
        >>> system.component("right", "right.fmu", values={"m": 2.0})        # doctest: +SKIP
        >>> system.connect("left.x", "right.s")                              # doctest: +SKIP
        >>> system.connect("right.force", "left.F")                          # doctest: +SKIP
        >>> system.experiment(stop=1.0, step=0.001, order=2)                 # doctest: +SKIP
    """

    def __init__(self, name: str, *, description: str = "") -> None:
        self.name, self.description = name, description
        self.components: list[DeclaredSystemComponent] = []
        self.connections: list[DeclaredSystemConnection] = []
        self.parameters: list[DeclaredSystemParameter] = []
        self.bonds: list[DeclaredPowerBond] = []
        self.reference_model: _DeclaredMonolithicReference | None = None
        self.run_settings = _SystemExperiment()
        self.source: Path | None = None
        self.where = find_user_source_line()

    def component(
        self,
        name: str,
        source: Any,
        *,
        arguments: Mapping[str, Any] | None = None,
        values: Mapping[str, DeclaredValue] | None = None,
        fmi: Literal["2", "3"] = "2",
    ) -> None:
        """Add an FMU.

        Args:
            name: Name in the system, an identifier.
            source: A ``Model``, the file that has its function (``.py``), or any FMU (``.fmu``); paths count from the
                folder of the system's file.
            arguments: Arguments of the model file's function.
            values: Variable → parameter or start value in the variable's unit, or ``(value, unit)``.
            fmi: FMI version of FMUs that are made of models. SSP tools and libcosim import FMI 2.
        """
        self.components.append(
            DeclaredSystemComponent(
                name, source, dict(arguments or {}), dict(values or {}), fmi, find_user_source_line()
            )
        )

    def parameter(self, name: str, value: DeclaredValue, to: Sequence[str] | Mapping[str, tuple[float, float]]) -> None:
        """Set one value for parameters and start values of several components; ``.ssp`` files map it (SSM).

        Args:
            name: Name of the parameter in the system.
            value: Number in each variable's own unit, or ``(value, unit)``, which is converted to each.
            to: ``component.variable`` of each, or a mapping of them to (factor, offset), which follow the conversion:
                ``{"drive.ratio": (1.0, 0.0), "arm.load": (-0.5, 2.0)}``.
        """
        transformations = to if isinstance(to, Mapping) else dict.fromkeys(to, (1.0, 0.0))
        targets = tuple(
            SystemParameterTarget(variable, float(factor), float(offset))
            for variable, (factor, offset) in transformations.items()
        )
        self.parameters.append(DeclaredSystemParameter(name, value, targets, find_user_source_line()))

    def connect(
        self,
        source: str,
        target: str,
        *,
        transformation: tuple[float, float] | None = None,
        convert: bool = True,
        delay: float = 0.0,
    ) -> None:
        """Connect two variables, or two terminals.

        Args:
            source: ``component.output``, or ``component.terminal``.
            target: ``component.input``, or ``component.terminal``. Of two terminals each member is connected with that
                of its name: flows sum to zero, the others are equal; on each pair one side is an output.
            transformation: (factor, offset) that is applied after units of measure are converted.
            convert: If false, numbers are passed without conversion of units.
            delay: Delay in s, at least a communication step: the input is the output of that time ago, at first the
                input's start value. A line's waves are passed so.
        """
        self.connections.append(
            DeclaredSystemConnection(source, target, find_user_source_line(), transformation, convert, float(delay))
        )

    def bond(self, name: str, *sides: str) -> None:
        """Name a connection over which power flows, so that its energy defect is reported.

        Connected terminals are bonds by themselves; this is for variables that are connected one by one.

        Args:
            name: Name in the report.
            sides: Power into each component, effort times flow: ``"left.F * left.v"``,
                ``"-right.force * der(right.s)"``.
        """
        self.bonds.append(DeclaredPowerBond(name, sides, find_user_source_line()))

    def monolith(self, source: Any, same: Mapping[str, str], *, arguments: Mapping[str, Any] | None = None) -> None:
        """Set the reference: the whole as one model, with which the system is compared.

        Args:
            source: A ``Model`` or the file that has its function.
            same: ``component.variable`` → the same variable of the reference.
            arguments: Arguments of the model file's function.
        """
        self.reference_model = _DeclaredMonolithicReference(
            source, dict(same), dict(arguments or {}), find_user_source_line()
        )

    def experiment(
        self,
        *,
        stop: float = DEFAULT_STOP_S,
        step: float = DEFAULT_STEP_S,
        tolerance: float = DEFAULT_COMPONENT_TOLERANCE,
        bound: float | None = None,
        **stepping: Unpack[_CommunicationStepOptions],
    ) -> None:
        """Set the length of the run, and how the system is stepped.

        Args:
            stop: Stop time in s.
            step: Communication step in s.
            tolerance: Relative tolerance of the components' own solvers.
            bound: Largest error against the monolith that is accepted, of each variable's own size.
            stepping: See the attributes of :class:`~.port_and_bond_records.CommunicationStepSettings`.
        """
        self.run_settings = _SystemExperiment(
            stop=float(stop),
            tolerance=float(tolerance),
            bound=bound,
            stepping=CommunicationStepSettings(step=float(step), **stepping),
        )
