"""Stops and play: springs with dampers that push and never pull."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import sympy as sm

from mb2fmu.elements.attachment import Attachment, On, attached, attachment_fault
from mb2fmu.elements.element import NamedElement
from mb2fmu.errors import Fault

if TYPE_CHECKING:
    from mb2fmu.model import Model


@dataclass(frozen=True)
class _Pushing(NamedElement):
    """A spring and damper behind each of two bounds; the damper takes no more than the spring, so that none pulls."""

    on: On
    stiffness: float | sm.Expr
    damping: float | sm.Expr = 0.0
    position: sm.Expr | None = None

    def faults(self, model: Model) -> Iterator[Fault]:
        """Of attachment, stiffness and damping."""
        attachment = [*attachment_fault(self.on, model)]
        yield from (self.fault(what, remedy) for what, remedy in attachment)
        for part in ("stiffness", "damping"):
            yield from self.negative(part, getattr(self, part))
        if not attachment and self.position is None and attached(self.on, model).position is None:
            yield self.fault("the angle between the frames is not known", "give it as position, or give the joint")

    def _pushes(self, model: Model, at: Attachment, bounds: tuple[sm.Expr | None, sm.Expr | None]) -> None:
        """Adds what pushes from the bounds inwards, and its output."""
        c = self.parameter(
            model, "stiffness", self.stiffness, f"{at.effort_unit}/{at.position_unit}", "stiffness", low=0.0
        )
        d = sm.S.Zero
        if self.damping != 0:
            unit = "N.m.s/rad" if at.turns else "N.s/m"
            d = self.parameter(model, "damping", self.damping, unit, "damping, limited by the spring", low=0.0)
        here = at.position if self.position is None else self.position
        effort = sm.S.Zero
        for bound, sense in zip(bounds, (1, -1), strict=True):
            if bound is not None:
                spring = c * sm.Max(sense * (bound - here), 0)
                damper = sm.Min(sm.Max(-sense * d * at.speed, -spring), spring) if d != 0 else 0
                effort += sense * (spring + damper)
        at.load(model, effort)
        model.output(f"{self.name}.{at.effort}", effort, at.effort_unit, description="push on the second")


@dataclass(frozen=True)
class HardStop(_Pushing):
    """End stops of a joint or between two points: a stiff spring with a damper beyond each bound, which never pulls.

    Beyond the bound by p the push is c p + d p', its second part between −c p and c p, so that it begins and ends at
    zero: the ElastoGap of the Modelica Standard Library.

    Attributes:
        name: In front of the names of its variables.
        on: What it acts on, as for ``CoulombFriction``.
        stiffness: c in N/m or N.m/rad.
        damping: d in N.s/m or N.m.s/rad.
        position: Of the second against the first, where ``on`` does not say it: the angle between two frames.
        lower: Smallest position; None: there is no stop.
        upper: Largest position; None: there is no stop.
    """

    lower: float | sm.Expr | None = None
    upper: float | sm.Expr | None = None

    def faults(self, model: Model) -> Iterator[Fault]:
        """Of the bounds too."""
        yield from super().faults(model)
        given = [sm.sympify(bound) for bound in (self.lower, self.upper) if bound is not None]
        if not given:
            yield self.fault("it has no bound", "give lower, upper, or both")
        if len(given) == 2 and all(bound.is_number for bound in given) and given[0] >= given[1]:
            yield self.fault(f"lower {given[0]} is not below upper {given[1]}", "exchange them")

    def declare(self, model: Model) -> None:
        """Its load, parameters and output."""
        at = attached(self.on, model)
        given = (("lower", self.lower), ("upper", self.upper))
        bounds = [
            None if bound is None else self.parameter(model, part, bound, at.position_unit, f"{part} stop")
            for part, bound in given
        ]
        self._pushes(model, at, (bounds[0], bounds[1]))


@dataclass(frozen=True)
class Backlash(_Pushing):
    """Play between two parts: nothing within it, a spring with a damper at both ends, which never pulls.

    Attributes:
        name: In front of the names of its variables.
        on: What it acts on, as for ``CoulombFriction``.
        stiffness: Beyond the play, in N.m/rad or N/m.
        damping: Beyond the play, in N.m.s/rad or N.s/m; it takes no more than the spring.
        position: Of the second against the first, where ``on`` does not say it.
        play: From one end to the other, in rad or m.
        middle: Position in the middle of it.
    """

    play: float | sm.Expr = 0.0
    middle: float | sm.Expr = 0.0

    def faults(self, model: Model) -> Iterator[Fault]:
        """Of the play too."""
        yield from super().faults(model)
        yield from self.negative("play", self.play)

    def declare(self, model: Model) -> None:
        """Its load, parameters and output."""
        at = attached(self.on, model)
        play = self.parameter(model, "play", self.play, at.position_unit, "from one end to the other", low=0.0)
        middle = sm.S.Zero
        if self.middle != 0:
            middle = self.parameter(model, "middle", self.middle, at.position_unit, "middle of the play")
        self._pushes(model, at, (middle - play / 2, middle + play / 2))
