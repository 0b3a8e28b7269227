"""Declarations of a model's quantities: one frozen record each, in the user's own symbols.

All records share: the SymPy ``symbol`` (a ``Symbol`` for parameters, a ``dynamicsymbols`` function of time for the
others), the FMU variable ``name`` (FMI structured naming, ``shoulder.q``), ``unit`` in Modelica style (``"N.m"``,
``"rad/s"``, ``"1"``), an optional ``display_unit`` (``"deg"``), bounds, ``nominal`` (> 0) and a ``description``.
``where`` is the ``file:line`` of the declaration, for messages.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

import sympy as sm

RestitutionLaw = Literal["newton", "poisson"]
ImpactOrder = Literal["sequential", "simultaneous"]
StartKind = Literal["fixed", "guess"]
OutputLevel = Literal["position", "velocity", "acceleration"]

MODE_THRESHOLD = 0.5
"""A mode is on above this: 1 is on, 0 is off, and so is the quarter of a contact that is about to part.

It holds for states of contacts and latches and for conditions; the sense of a friction contact is 1, -1 or 0, and it
slides where the magnitude is above this.
"""


def format_symbol_as_word(symbol: object) -> str:
    """Return the name of a symbol or function of time as one word: ``q`` for q(t), ``q_dot``, ``q_ddot`` for rates.

    FMI writes ``der(q)`` for q', but that is the derivative variable of the state q; a speed that is q' itself (there
    is no other in a ``LagrangesMethod``) is a state of its own and needs a name of its own.
    """
    if isinstance(symbol, sm.Derivative):
        return f"{format_symbol_as_word(symbol.expr)}_{'d' * symbol.derivative_count}ot"
    function = getattr(symbol, "func", None)
    return str(getattr(symbol, "name", None) or getattr(function, "__name__", symbol))


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclaredVariable:
    """Fields common to all variables. Numbers are in ``unit`` (not in ``display_unit``)."""

    name: str
    unit: str = "1"
    display_unit: str | None = None
    minimum: float | None = None
    maximum: float | None = None
    nominal: float | None = None
    description: str = ""
    where: str = field(default="", compare=False)


MISSING_VALUE = float("nan")
"""The value of a parameter that is still to be filled in (``model.parameter(m, ...)``), known by its identity."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter(DeclaredVariable):
    """A constant of the mechanism.

    Attributes:
        symbol: The symbol as it stands in the mechanics.
        value: A number, or an expression of other parameters: then it is a calculated parameter, evaluated in
            ``prepare`` and never set from outside.
        tunable: True: may be changed between steps. False: fixed after initialization.
    """

    symbol: sm.Symbol
    value: float | sm.Expr
    tunable: bool = True

    @property
    def calculated(self) -> bool:
        """True if the value is an expression of other parameters."""
        return isinstance(self.value, sm.Expr)


@dataclass(frozen=True, slots=True, kw_only=True)
class Input(DeclaredVariable):
    """A signal from outside: continuous, with the value ``start`` until it is set."""

    symbol: sm.Expr
    start: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Coordinate(DeclaredVariable):
    """A generalized coordinate q; ``start`` is kept if ``kind`` is ``fixed``, solved for if it is a ``guess``."""

    symbol: sm.Expr
    start: float
    kind: StartKind = "fixed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Speed(DeclaredVariable):
    """A generalized speed u; ``start`` as for ``Coordinate``. Dependent speeds are solved for from the others."""

    symbol: sm.Expr
    start: float
    kind: StartKind = "fixed"


@dataclass(frozen=True, slots=True, kw_only=True)
class AuxiliaryState(DeclaredVariable):
    """A state z with its own differential equation z' = ``derivative`` (activation, bristle friction, controller)."""

    symbol: sm.Expr
    start: float
    derivative: sm.Expr


@dataclass(frozen=True, slots=True, kw_only=True)
class ConstraintForce(DeclaredVariable):
    """An unknown (noncontributing) force or torque, made visible by an auxiliary speed; usable in outputs."""

    symbol: sm.Expr


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclaredConstraint(DeclaredVariable):
    """Declarations for one constraint of the mechanics; ``name`` is for messages, no variable of the FMU.

    Attributes:
        row: The constraint as it stands in the mechanics: phi(q, t), or an expression linear in the speeds.
        symbol: Its multiplier, a function of time for outputs to contain; None: not wanted.
        acts: (point, vector), (frame, vector), (point, vector, body whose particle is there): where the constraint's
            force acts. Applied force or torque = −λ · vector, at the point or on the frame.
    """

    row: sm.Expr
    symbol: sm.Expr | None = None
    acts: tuple[tuple[Any, ...], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Output(DeclaredVariable):
    """A quantity computed from state, inputs, parameters and time.

    Attributes:
        expression: In the user's symbols; derivatives of coordinates and speeds are allowed (accelerations).
        drives: Of an effort of an element that pushes: the distance or angle that a positive effort drives up. The
            animation shows such an effort where it acts.
    """

    expression: sm.Expr
    drives: sm.Expr | None = None
