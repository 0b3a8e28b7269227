"""Common part of all elements: a name, the line of the declaration, quantities under that name."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import sympy as sm
from sympy.physics.vector import dynamicsymbols

from mb2fmu.errors import Fault
from mb2fmu.model.source_location import find_user_source_line
from mb2fmu.model.variable_naming import is_variable_name

if TYPE_CHECKING:
    from mb2fmu.model import Model


@dataclass(frozen=True)
class NamedElement(ABC):
    """An element with a name; subclasses report their faults and declare themselves.

    Attributes:
        name: In front of the names of its variables: ``brake`` gives ``brake.torque``.
        where: ``file:line`` where it was made.
    """

    name: str
    where: str = field(default_factory=find_user_source_line, compare=False, kw_only=True, repr=False)

    def add_to(self, model: Model) -> Iterable[Fault]:
        """Declare the element, or return the faults that prevent it."""
        key = (type(self).__name__, self.name)
        if key in model.named_elements:  # else all its variables would be reported as declared twice
            what = f"another {key[0]} of this name is made at {model.named_elements[key]}"
            return [self.fault(what, "give one of them another name")]
        model.named_elements[key] = self.where
        faults = [*self._name_faults(), *self.faults(model)]
        if not faults:
            self.declare(model)
        return faults

    @abstractmethod
    def faults(self, model: Model) -> Iterator[Fault]:
        """Yield the faults of the element in this model, in the user's words."""

    @abstractmethod
    def declare(self, model: Model) -> None:
        """Add loads, parameters, events and outputs; only for elements without faults."""

    def parameter(
        self,
        model: Model,
        part: str,
        value: float | sm.Expr,
        unit: str,
        description: str,
        *,
        low: float | None = None,
        high: float | None = None,
        nominal: float | None = None,
    ) -> sm.Expr:
        """Return a number as a parameter ``name.part`` of the model; expressions stay unchanged.

        Args:
            model: That the element is added to.
            part: Last part of the name.
            value: What the user gave.
            unit: Of the number.
            description: One line.
            low: Lower bound.
            high: Upper bound.
            nominal: Its magnitude, where 0 stands for "not there" and the unit says nothing.

        Returns:
            The parameter's symbol, or the expression.
        """
        given: sm.Expr = sm.sympify(value)
        if not given.is_number:
            return given
        symbol = sm.Symbol(f"{self.name}_{part}".replace(".", "_"), real=True)
        name = f"{self.name}.{part}"
        model.parameter(
            symbol, float(given), unit, name=name, min=low, max=high, nominal=nominal, description=description
        )
        return symbol

    def state(self, part: str) -> sm.Expr:
        """Return the symbol of an auxiliary state ``name.part``, for its rate; :meth:`declare_state` declares it."""
        return dynamicsymbols(f"{self.name}_{part}".replace(".", "_"))

    def declare_state(
        self,
        model: Model,
        part: str,
        rate: sm.Expr,
        start: float,
        unit: str,
        description: str,
        *,
        nominal: float | None = None,
    ) -> None:
        """Declare the state of :meth:`state` with its derivative.

        Args:
            model: That the element is added to.
            part: As for :meth:`state`.
            rate: Its derivative by time: of coordinates, speeds, states, inputs, parameters.
            start: Its value at the start.
            unit: Of the state.
            description: One line.
            nominal: Typical magnitude, for the tolerance of integrators.
        """
        name = f"{self.name}.{part}"
        model.state(self.state(part), rate, start, unit, name=name, nominal=nominal, description=description)

    def negative(self, part: str, value: float | sm.Expr | None) -> Iterator[Fault]:
        """Yield a fault if the value is a negative or infinite number, or text; None is no value."""
        if isinstance(value, str):
            yield self._text_fault(part, value)
            return
        given = sm.sympify(value)
        if value is not None and given.is_number and not (given.is_finite and given >= 0):
            yield self.fault(f"{part} is {float(given):g}", f"give a number >= 0 as {part}")

    def not_positive(self, part: str, value: float | sm.Expr) -> Iterator[Fault]:
        """Yield a fault if the value is a number that is not finite and above zero, or text."""
        if isinstance(value, str):
            yield self._text_fault(part, value)
            return
        given = sm.sympify(value)
        if given.is_number and not (given.is_finite and given > 0):
            yield self.fault(f"{part} is {float(given):g}", f"give a number > 0 as {part}")

    def _text_fault(self, part: str, value: str) -> Fault:
        """Return the fault of text in place of a number; SymPy would take it for a symbol."""
        return self.fault(f"{part} is the text {value!r}", f"give a number or an expression as {part}")

    def fault(self, what: str, remedy: str) -> Fault:
        """Return a fault of this element."""
        return Fault(f"{type(self).__name__} {self.name}: {what}", self.where, remedy)

    def _name_faults(self) -> Iterator[Fault]:
        """Yield a fault if the name cannot begin the names of variables."""
        if not is_variable_name(self.name) or "(" in self.name:
            yield self.fault("the name cannot stand in front of a variable's", "take letters, digits, _ and dots")
