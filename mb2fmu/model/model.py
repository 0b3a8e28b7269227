"""Model: the declarations of the user, and CheckedModel: the frozen record that the pipeline reads.

A ``Model`` collects declarations without judging them; ``model_definition_checks.check_model`` judges all of them at
once and returns a ``CheckedModel``. Nothing about FMI is said here, nothing of SymPy is wrapped: the mechanics
are used as they are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import EllipsisType
from typing import Any, Literal, Self

import sympy as sm
from sympy.physics.mechanics import JointsMethod

from mb2fmu.model.checks.expression_symbols import differentiate_by_time
from mb2fmu.model.declarations.added_loads_and_elements import AddedLoadDeclarations
from mb2fmu.model.declarations.appearance_declarations import AppearanceDeclarations
from mb2fmu.model.declarations.declared_content_and_experiment import (
    DeclaredExperiment,
    Number,
    Signal,
    choose_communication_step,
)
from mb2fmu.model.declarations.declared_events import EventDeclarations
from mb2fmu.model.declarations.declared_loop_closed_forms import LoopClosedFormDeclarations
from mb2fmu.model.declarations.declared_outputs import OutputDeclarations, OutputKind, OutputRequest
from mb2fmu.model.declarations.declared_terminals import DeclaredArray, DeclaredTerminal, TerminalAndArrayDeclarations
from mb2fmu.model.experiment_defaults import DEFAULT_STEP_S, DEFAULT_STOP_S, DEFAULT_TOLERANCE
from mb2fmu.model.quantity_declarations import (
    MISSING_VALUE,
    AuxiliaryState,
    ConstraintForce,
    Coordinate,
    DeclaredConstraint,
    DeclaredVariable,
    Input,
    Output,
    Parameter,
    Speed,
    StartKind,
    format_symbol_as_word,
)
from mb2fmu.model.source_location import find_user_source_line
from mb2fmu.model.sources.mechanics_source import Mechanics
from mb2fmu.model.sources.parts_mechanics_source import Parts, get_method_of_joints_method
from mb2fmu.model.value_overrides import OverrideValue, override_values
from mb2fmu.model.variable_naming import strip_latex
from mb2fmu.units import convert_unit_to_modelica, derive_rate_unit, parse_value_in_unit

__all__ = [
    "DeclaredExperiment",
    "Mechanics",
    "Model",
    "Number",
    "OutputKind",
    "OutputRequest",
    "Parts",
    "Signal",
]


class Model(
    OutputDeclarations,
    TerminalAndArrayDeclarations,
    LoopClosedFormDeclarations,
    EventDeclarations,
    AddedLoadDeclarations,
    AppearanceDeclarations,
):
    """A mechanism and the declarations of its quantities; docs/reference/models.md shows how.

    Declarations are collected, each with the line it stands in, and judged together by ``mb2fmu.model.check_model``.
    Numbers are in the declared unit; units are written as Modelica does.

    Args:
        name: FMU model name, an identifier of C and Python such as ``DoublePendulum``.
        mechanics: A ``System``, a ``KanesMethod`` or ``LagrangesMethod`` already set up, or ``Parts``; of a
            ``JointsMethod`` the method that it holds, or Kane's if it holds none yet.
        description: One line.
        diagram: SVG or text picture of what the coordinates mean.

    Attributes:
        declared: Everything declared, in order.
        potential: The potential energy given by :meth:`potential_energy`, or None.
        default_experiment: As :meth:`experiment` sets it.
        source: The model file, set by ``model_loading.load``.
        where: ``file:line`` where the model was made.
        given: Values set by :meth:`at`.
    """

    def __init__(
        self, name: str, mechanics: Mechanics | JointsMethod, *, description: str = "", diagram: str = ""
    ) -> None:
        self.name = name
        self.mechanics = get_method_of_joints_method(mechanics) if isinstance(mechanics, JointsMethod) else mechanics
        self.description = description
        self.diagram = diagram
        super().__init__()
        self.declared: list[DeclaredVariable | OutputRequest] = []
        self.potential: sm.Expr | None = None
        self.default_experiment = DeclaredExperiment()
        self.terminals: list[DeclaredTerminal] = []
        self.arrays: list[DeclaredArray] = []
        self.source: Path | None = None
        self.given: Mapping[str, float] = {}
        self.where = find_user_source_line()

    def at(self, values: Mapping[str, OverrideValue] | None = None, **named: OverrideValue) -> Self:
        """Return a copy of the model with other values of parameters, start values and inputs.

        Args:
            values: FMU name → number in its unit, or text with a unit (``"30 deg"``). An input keeps the value:
                the experiment's signal of it is dropped.
            named: The same, where a name has no dots: ``model.at(m=2.0)``.

        Raises:
            ModelError: For every name that cannot be set and every value that is no number.
        """
        return override_values(self, {**(values or {}), **named})

    # The keywords of these methods are written out in each: editors and help() show them where a user types.

    def parameter(
        self,
        symbol: sm.Symbol,
        value: Number | str | EllipsisType,
        unit: str = "1",
        *,
        name: str | None = None,
        tunable: bool = True,
        min: float | None = None,
        max: float | None = None,
        nominal: float | None = None,
        display_unit: str | None = None,
        description: str = "",
    ) -> None:
        """Declare a parameter; a ``value`` with symbols in it makes it a calculated one.

        Args:
            symbol: As it stands in the mechanics.
            value: A number in ``unit``, text with a unit of its own that is converted (``"500 mm"``), or an expression
                of other parameters; ``...`` where it is still to be filled in, which is reported as a fault.
            unit: Modelica style, e.g. ``"kg.m2"``.
            name: FMU name; the symbol's name if None.
            tunable: False: fixed once the simulation has started.
            min: Lower bound in ``unit``.
            max: Upper bound in ``unit``.
            nominal: Typical magnitude, > 0.
            display_unit: Unit for people, e.g. ``"deg"``.
            description: One line.
        """
        expression = sm.sympify(0.0 if value is ... else _read_number(value, unit) if isinstance(value, str) else value)
        if not isinstance(expression, sm.Expr):
            raise TypeError(f"the value of {symbol} is {value!r}, which is no number and no expression")
        number = expression if expression.free_symbols else float(expression)
        self.declared.append(
            Parameter(
                symbol=symbol,
                value=MISSING_VALUE if value is ... else number,
                tunable=tunable,
                **_quantity_arguments(symbol, name, unit, display_unit, min, max, nominal, description),
            )
        )

    def input(
        self,
        symbol: sm.Expr,
        start: float | str = 0.0,
        unit: str = "1",
        *,
        name: str | None = None,
        min: float | None = None,
        max: float | None = None,
        nominal: float | None = None,
        display_unit: str | None = None,
        description: str = "",
        rates: bool = False,
    ) -> None:
        """Declare an input signal; arguments as for :meth:`parameter`, ``start`` holds until the input is set.

        ``rates``: of a prescribed motion, also declare its first and second derivatives by time as inputs, called
        ``<name>_dot`` and ``<name>_ddot``. A formula of the input sets them alike, unless they have their own; a table
        or an importer has to set all of them.
        """
        self.declared.append(
            Input(
                symbol=symbol,
                start=_read_number(start, unit),
                **_quantity_arguments(symbol, name, unit, display_unit, min, max, nominal, description),
            )
        )
        rate_unit = convert_unit_to_modelica(unit)
        for order in (1, 2) if rates else ():
            derivative, rate_unit = differentiate_by_time(symbol, order), derive_rate_unit(rate_unit)
            rate_name = None if name is None else f"{name}_{'d' * order}ot"
            self.declared.append(Input(symbol=derivative, **_quantity_arguments(derivative, rate_name, rate_unit)))

    def coordinate(
        self,
        symbol: sm.Expr,
        start: float | str,
        unit: str = "1",
        *,
        kind: StartKind = "fixed",
        name: str | None = None,
        min: float | None = None,
        max: float | None = None,
        nominal: float | None = None,
        display_unit: str | None = None,
        description: str = "",
    ) -> None:
        """Declare a generalized coordinate with its start value (``fixed``: kept; ``guess``: may be solved for).

        The start value is a number in ``unit``, or text with a unit of its own: ``"30 deg"``.
        """
        self.declared.append(
            Coordinate(
                symbol=symbol,
                start=_read_number(start, unit),
                kind=kind,
                **_quantity_arguments(symbol, name, unit, display_unit, min, max, nominal, description),
            )
        )

    def speed(
        self,
        symbol: sm.Expr,
        start: float | str = 0.0,
        unit: str = "1",
        *,
        kind: StartKind = "fixed",
        name: str | None = None,
        min: float | None = None,
        max: float | None = None,
        nominal: float | None = None,
        display_unit: str | None = None,
        description: str = "",
    ) -> None:
        """Declare a generalized speed with its start value; a dependent speed's start is a ``guess``.

        ``symbol`` is a speed u of the mechanics, or ``q.diff()`` where q' is the speed (always in a
        ``LagrangesMethod``): then the FMU name is ``q_dot`` unless ``name`` is given.
        """
        self.declared.append(
            Speed(
                symbol=symbol,
                start=_read_number(start, unit),
                kind=kind,
                **_quantity_arguments(symbol, name, unit, display_unit, min, max, nominal, description),
            )
        )

    def state(
        self,
        symbol: sm.Expr,
        derivative: sm.Expr,
        start: float | str = 0.0,
        unit: str = "1",
        *,
        name: str | None = None,
        min: float | None = None,
        max: float | None = None,
        nominal: float | None = None,
        display_unit: str | None = None,
        description: str = "",
    ) -> None:
        """Declare an auxiliary state z with z' = ``derivative``."""
        self.declared.append(
            AuxiliaryState(
                symbol=symbol,
                derivative=sm.sympify(derivative),
                start=_read_number(start, unit),
                **_quantity_arguments(symbol, name, unit, display_unit, min, max, nominal, description),
            )
        )

    def constraint_force(
        self, symbol: sm.Expr, unit: str = "N", *, name: str | None = None, description: str = ""
    ) -> None:
        """Declare an unknown force or torque of a load at an auxiliary speed; outputs may contain it."""
        self.declared.append(
            ConstraintForce(symbol=symbol, **_quantity_arguments(symbol, name, unit=unit, description=description))
        )

    def constraint(
        self,
        row: sm.Expr,
        name: str = "",
        *,
        multiplier: sm.Expr | None = None,
        acts: Sequence[tuple[Any, ...]] = (),
    ) -> None:
        """Add to a constraint of the mechanics: its name in messages, its multiplier, the place of its force.

        Args:
            row: The constraint, the expression that was given to the mechanics.
            name: For messages, such as ``loop.x``; holonomic[1], nonholonomic[1], … otherwise.
            multiplier: A function of time that outputs may then contain; it stands for λ in M u' + A^T λ = f.
            acts: Where the constraint's force acts: (point, vector) and (frame, vector) pairs, such that the sum of
                the points' velocities (and frames' angular velocities) times the vectors is the row, or its rate.
                The particle of a body that is at a point now, as where a wheel touches: (point, vector, body).
                For a loop closed between points P and Q by (Q - P)·N.x: ``[(Q, N.x), (P, -N.x)]``. Reactions of joints
                in closed loops, and of those that carry wheels, need it.
        """
        self.declared.append(
            DeclaredConstraint(
                row=sm.sympify(row),
                symbol=multiplier,
                acts=tuple(tuple(act) for act in acts),
                name=name,
                where=find_user_source_line(),
            )
        )

    def output(
        self,
        name: str,
        expression: sm.Expr,
        unit: str = "1",
        *,
        nominal: float | None = None,
        display_unit: str | None = None,
        description: str = "",
        drives: sm.Expr | None = None,
    ) -> None:
        """Declare an output: any expression of state, inputs, parameters, time, and derivatives of q and u.

        Of a force or torque that pushes where something touches, ``drives`` is the distance or angle that a positive
        one drives up: the animation shows it as a contact, where it acts along a line with an arrow.
        """
        self.declared.append(
            Output(
                expression=sm.sympify(expression),
                drives=None if drives is None else sm.sympify(drives),
                **_quantity_arguments(
                    None, name, unit=unit, display_unit=display_unit, nominal=nominal, description=description
                ),
            )
        )

    def potential_energy(self, expression: sm.Expr) -> None:
        """Set the potential energy in J, where it cannot be derived from the loads."""
        self.potential = sm.sympify(expression)

    def experiment(
        self,
        *,
        stop: float = DEFAULT_STOP_S,
        step: float | None = None,
        tolerance: float = DEFAULT_TOLERANCE,
        stiff: bool = False,
        solver: Literal["adaptive", "fixed"] = "adaptive",
        internal_step: float | None = None,
        signals: Mapping[sm.Expr, Signal] | None = None,
    ) -> None:
        """Set the default experiment (see :class:`DeclaredExperiment`), which the validation runs too.

        Without ``step`` it is 0.01 s, or what suits a very short or long experiment
        (:func:`choose_communication_step`); not more than 0.01 s where it is the integration's step, too.
        """
        if step is None:
            step = choose_communication_step(float(stop))
            step = min(step, DEFAULT_STEP_S) if solver == "fixed" and internal_step is None else step
        self.default_experiment = DeclaredExperiment(
            stop=float(stop),
            step=float(step),
            tolerance=float(tolerance),
            stiff=stiff,
            solver=solver,
            internal_step=None if internal_step is None else float(internal_step),
            signals=dict(signals or {}),
            where=find_user_source_line(),
        )


def _read_number(value: float | str, unit: str) -> float:
    """Return a value as a number in ``unit``; text may have a unit of its own."""
    return parse_value_in_unit(value, convert_unit_to_modelica(unit)) if isinstance(value, str) else float(value)


def _quantity_arguments(
    symbol: sm.Expr | None,
    name: str | None,
    unit: str,
    display_unit: str | None = None,
    minimum: float | None = None,
    maximum: float | None = None,
    nominal: float | None = None,
    description: str = "",
) -> dict[str, Any]:
    """Return the arguments common to all ``DeclaredVariable`` records; bounds and nominals may be SymPy numbers."""
    numbers = {"minimum": minimum, "maximum": maximum, "nominal": nominal}
    return {
        "name": strip_latex(format_symbol_as_word(symbol)) if name is None else name,
        "where": find_user_source_line(),
        "unit": convert_unit_to_modelica(unit),
        "display_unit": None if display_unit is None else convert_unit_to_modelica(display_unit),
        **{key: None if value is None else float(value) for key, value in numbers.items()},
        "description": description,
    }
