"""Declared content of a model, as plain data for all later stages: quantities, names and the experiment."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypeAlias

import sympy as sm
from sympy.physics.mechanics import dynamicsymbols

from mb2fmu.model.declarations.declared_terminals import DeclaredArray, DeclaredTerminal
from mb2fmu.model.experiment_defaults import DEFAULT_STEP_COUNT, DEFAULT_STEP_S, DEFAULT_STOP_S, DEFAULT_TOLERANCE
from mb2fmu.model.quantity_declarations import AuxiliaryState, Coordinate, Input, Parameter, Speed

Number: TypeAlias = float | int | sm.Expr
Signal: TypeAlias = float | sm.Expr


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclaredExperiment:
    """The default experiment; the validation runs it too.

    Attributes:
        stop: Stop time in s; the start time is 0.
        step: Communication step size in s (see :func:`choose_communication_step`).
        tolerance: Relative tolerance of the integration.
        stiff: True: an implicit method integrates the FMU.
        solver: ``adaptive`` (error control) or ``fixed`` (classical Runge-Kutta of order 4 with ``internal_step``).
        internal_step: Step of the fixed-step solver in s; None: the communication step.
        signals: Input symbol → constant or expression of ``dynamicsymbols._t``, sampled at the start of each
            communication step and held over it.
        where: ``file:line`` of the declaration, for messages.
    """

    stop: float = DEFAULT_STOP_S
    step: float = DEFAULT_STEP_S
    tolerance: float = DEFAULT_TOLERANCE
    stiff: bool = False
    solver: Literal["adaptive", "fixed"] = "adaptive"
    internal_step: float | None = None
    signals: Mapping[sm.Expr, Signal] = field(default_factory=dict)
    where: str = field(default="", compare=False)


def choose_communication_step(stop: float) -> float:
    """Return a communication step in s for an experiment that gives only its end.

    0.01 s, as long as this makes 20 to 20,000 steps; else the longest of 1, 2 or 5 times a power of ten that makes at
    least 1,000: a resonator that is looked at for 0.2 ms and a planet for a year need no step of their own.

    Args:
        stop: Stop time in s.
    """
    usual = DEFAULT_STEP_S
    if not (math.isfinite(stop) and stop > 0.0) or 20.0 * usual <= stop <= 20_000.0 * usual:
        return usual
    longest = stop / DEFAULT_STEP_COUNT
    power = math.floor(math.log10(longest))
    return max(step for digit in (1, 2, 5) if (step := float(f"{digit}e{power}")) <= longest * (1.0 + 1e-12))


def map_inputs_to_rates(inputs: Sequence[Input]) -> dict[Input, Input]:
    """Return input → the input that is its derivative by time, in the order s, s', of those that have one."""
    by_order = {_split_derivative(item.symbol): item for item in inputs}
    pairs = ((by_order.get((base, order - 1)), item) for (base, order), item in by_order.items())
    return {item: rate for item, rate in sorted(pairs, key=lambda pair: _split_derivative(pair[1].symbol)[1]) if item}


def _split_derivative(symbol: sm.Expr) -> tuple[sm.Expr, int]:
    """Return a function of time and how often it is differentiated."""
    return (symbol.expr, int(symbol.derivative_count)) if isinstance(symbol, sm.Derivative) else (symbol, 0)


def derive_rate_signals(
    signals: Mapping[sm.Expr, Signal], inputs: Sequence[Input], given: Collection[str] = ()
) -> dict[sm.Expr, sm.Expr]:
    """Return input symbol → signal, of rates without a signal whose input has one that changes: its derivative.

    Args:
        signals: Of the experiment.
        inputs: All there are.
        given: FMU names of inputs that keep a value of their own.
    """
    found: dict[sm.Expr, sm.Expr] = {}
    for item, rate in map_inputs_to_rates(inputs).items():
        signal = sm.sympify(found.get(item.symbol, signals.get(item.symbol, 0.0)))
        if rate.symbol not in signals and rate.name not in given and signal.has(dynamicsymbols._t):  # noqa: SLF001
            found[rate.symbol] = signal.diff(dynamicsymbols._t)  # noqa: SLF001 - SymPy has no public name for it
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclaredModelContent:
    """Quantities of a mechanism, its names and its experiment: all that stages after the reading need of a model.

    Attributes:
        name: FMU model name, a C identifier.
        description: One line.
        parameters: Free and calculated, calculated ones after all they depend on.
        inputs: In order of declaration.
        coordinates: In the order of the mechanism's q.
        speeds: In the order of the mechanism's u (independent before dependent, as SymPy keeps them).
        auxiliary_states: In order of declaration.
        experiment: The default experiment.
        source: The model file, if there is one.
        diagram: An SVG or text picture of what the coordinates mean; may be empty.
        terminals: Declared ones, their members by the names of variables.
        arrays: Declared ones, their elements by the names of variables.
        given: FMU name → value that was set instead of the model file's, by ``Model.at``.
        dependent: Names of the coordinates and speeds that the mechanics name as dependent.
        origin: What the mechanism was read from, a noun phrase for the report: ``a SymPy System``.
    """

    name: str
    description: str
    parameters: tuple[Parameter, ...]
    inputs: tuple[Input, ...]
    coordinates: tuple[Coordinate, ...]
    speeds: tuple[Speed, ...]
    auxiliary_states: tuple[AuxiliaryState, ...]
    experiment: DeclaredExperiment
    source: Path | None = None
    diagram: str = ""
    terminals: tuple[DeclaredTerminal, ...] = ()
    arrays: tuple[DeclaredArray, ...] = ()
    given: Mapping[str, float] = field(default_factory=dict)
    dependent: tuple[str, ...] = ()
    origin: str = "parts"

    @property
    def quantities(self) -> tuple[Parameter | Input | Coordinate | Speed | AuxiliaryState, ...]:
        """All of them: parameters, inputs, coordinates, speeds, auxiliary states."""
        return (*self.parameters, *self.inputs, *self.coordinates, *self.speeds, *self.auxiliary_states)
