"""Stops and play: springs with dampers that push but never pull."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import sympy as sm
from sympy.physics.mechanics import ReferenceFrame

from mb2fmu.errors import Fault
from mb2fmu.model.elements.element_attachment import (
    AttachmentPlace,
    ElementAttachment,
    find_attachment_faults,
    make_element_attachment,
)
from mb2fmu.model.elements.element_base_class import NamedElement
from mb2fmu.model.elements.rigid_impact import Impact

if TYPE_CHECKING:
    from mb2fmu.model import Model


_MIN_REST_SPEED = 1e-300
"""Lower bound of the speed of rest: it must be above zero, or rebounds follow each other without end."""


@dataclass(frozen=True)
class _TwoSidedStop(NamedElement):
    """A spring and damper behind each of two bounds; the damper force is limited so that no bound pulls."""

    on: AttachmentPlace
    stiffness: float | sm.Expr | None = None
    damping: float | sm.Expr = 0.0
    position: sm.Expr | tuple[sm.Expr, sm.Expr] | None = None

    def faults(self, model: Model) -> Iterator[Fault]:
        """Yield faults of attachment, stiffness and damping."""
        attachment = [*find_attachment_faults(self.on, model)]
        yield from (self.fault(what, remedy) for what, remedy in attachment)
        for part in ("stiffness", "damping"):
            yield from self.negative(part, getattr(self, part))
        if not attachment and self.position is None and make_element_attachment(self.on, model).position is None:
            yield self.fault("the angle between the frames is not known", "give it as position, or give the joint")

    def _pushes(self, model: Model, at: ElementAttachment, bounds: tuple[sm.Expr | None, sm.Expr | None]) -> None:
        """Add the forces from the bounds inwards, and their output."""
        assert self.stiffness is not None  # or it has faults
        c = self.parameter(
            model, "stiffness", self.stiffness, f"{at.effort_unit}/{at.position_unit}", "stiffness", low=0.0
        )
        d = sm.S.Zero
        if self.damping != 0:
            unit = "N.m.s/rad" if at.turns else "N.s/m"
            d = self.parameter(model, "damping", self.damping, unit, "damping, limited by the spring", low=0.0)
        here = _relative_position(self.position, at)
        effort = sm.S.Zero
        for bound, sense in zip(bounds, (1, -1), strict=True):
            if bound is not None:
                spring = c * sm.Max(sense * (bound - here), 0)
                damper = sm.Min(sm.Max(-sense * d * at.speed, -spring), spring) if d != 0 else 0
                effort += sense * (spring + damper)
        at.load(model, effort)
        model.output(f"{self.name}.{at.effort}", effort, at.effort_unit, drives=here, description="push on the second")


@dataclass(frozen=True)
class HardStop(_TwoSidedStop):
    """End stops of a joint or between two points: compliant (never pulling), or rigid with rebound.

    With a stiffness there is a spring with a damper beyond each bound: beyond it by p the push is c p + d p', its
    second part between −c p and c p, so that it begins and ends at zero, the ElastoGap of the Modelica Standard
    Library. With a restitution each bound is an :class:`Impact`, ``name.lower_stop`` and ``name.upper_stop``: the speed
    is reversed and multiplied by it, until it rests at the bound.

    Attributes:
        name: In front of the names of its variables.
        on: What it acts on, as for ``CoulombFriction``.
        stiffness: c in N/m or N.m/rad.
        damping: d in N.s/m or N.m.s/rad.
        position: Of the second against the first, where ``on`` does not say it: the angle between two frames.
        lower: Smallest position; None: there is no stop.
        upper: Largest position; None: there is no stop.
        restitution: In place of stiffness, from 0 to 1.
        rest_below: Speed after an impact below which it rests at the bound, in m/s or rad/s.
        stabilization: Of a rigid one: rate in 1/s at which what the integration errs is brought back while it rests.
    """

    lower: float | sm.Expr | None = None
    upper: float | sm.Expr | None = None
    restitution: float | sm.Expr | None = None
    rest_below: float | sm.Expr = 1e-3
    stabilization: float | sm.Expr = 10.0

    def faults(self, model: Model) -> Iterator[Fault]:
        """Yield faults, those of the bounds included."""
        yield from super().faults(model)
        given = [sm.sympify(bound) for bound in (self.lower, self.upper) if bound is not None]
        if not given:
            yield self.fault("it has no bound", "give lower, upper, or both")
        if any(bound.is_number and not bound.is_finite for bound in given):
            yield self.fault(f"its bounds are {self.lower} and {self.upper}", "give finite numbers, or leave one out")
        elif len(given) == 2 and all(bound.is_number for bound in given) and given[0] >= given[1]:
            yield self.fault(f"lower {self.lower} is not below upper {self.upper}", "exchange them")
        if (self.stiffness is None) == (self.restitution is None):
            has = "neither stiffness nor restitution" if self.stiffness is None else "both stiffness and restitution"
            yield self.fault(f"it has {has}", "give a stiffness (compliant) or a restitution (rigid)")
        elif self.restitution is not None:
            if self.damping != 0:
                yield self.fault("it has damping and is rigid", "leave the damping out, or give a stiffness")
            rebound = Impact(
                "stop",
                sm.S.One,
                restitution=self.restitution,
                rest_below=self.rest_below,
                stabilization=self.stabilization,
            )
            for fault in rebound.faults(model):
                yield self.fault(fault.what.removeprefix("Impact stop: "), fault.remedy)

    def declare(self, model: Model) -> None:
        """Declare load, parameters and output."""
        at = make_element_attachment(self.on, model)
        given = (("lower", self.lower), ("upper", self.upper))
        bounds = [
            None if bound is None else self.parameter(model, part, bound, at.position_unit, f"{part} stop")
            for part, bound in given
        ]
        if self.restitution is None:
            self._pushes(model, at, (bounds[0], bounds[1]))
        else:
            self._rebounds(model, at, (bounds[0], bounds[1]))

    def _rebounds(self, model: Model, at: ElementAttachment, bounds: tuple[sm.Expr | None, sm.Expr | None]) -> None:
        """Add an impact at each bound, with one restitution."""
        assert self.restitution is not None  # or it is compliant
        here = _relative_position(self.position, at)
        e = self.parameter(model, "restitution", self.restitution, "1", "coefficient of restitution", low=0.0, high=1.0)
        slow = self.parameter(
            model, "rest_below", self.rest_below, at.speed_unit, "speed below which it rests", low=0.0
        )
        back = sm.S.Zero
        if not sm.sympify(self.stabilization).is_zero:
            back = self.parameter(model, "stabilization", self.stabilization, "1/s", "rate against drift", low=0.0)
        for part, bound, sense in zip(("lower", "upper"), bounds, (1, -1), strict=True):
            if bound is not None:
                gap = sense * (here - bound)
                stop = Impact(
                    f"{self.name}.{part}_stop",
                    gap,
                    restitution=e,
                    rest_below=slow,
                    stabilization=back,
                    unit=at.position_unit,
                    where=self.where,
                )
                stop.declare(model)


@dataclass(frozen=True)
class Backlash(_TwoSidedStop):
    """Play between two parts: no force inside, a spring with a damper at both ends, never pulling.

    Attributes:
        name: In front of the names of its variables.
        on: What it acts on, as for ``CoulombFriction``.
        stiffness: Beyond the play, in N.m/rad or N/m.
        damping: Beyond the play, in N.m.s/rad or N.s/m; it takes no more than the spring.
        position: Of the second against the first, where ``on`` does not say it.
        play: From one end to the other, in rad or m, of the second.
        middle: Position in the middle of it.
        ratio: Of a gear, whose housing is the ground: the first turns so many times as fast as the second. It is
            between two frames, and ``position`` is (angle of the first, angle of the second).
    """

    play: float | sm.Expr = 0.0
    middle: float | sm.Expr = 0.0
    ratio: float | sm.Expr | None = None

    def faults(self, model: Model) -> Iterator[Fault]:
        """Yield faults, those of play and ratio included."""
        yield from super().faults(model)
        if self.stiffness is None:
            yield self.fault("it has no stiffness", "give that of the teeth")
        yield from self.negative("play", self.play)
        if self.ratio is None:
            if isinstance(self.position, tuple):
                yield self.fault("it has two positions and no ratio", "give ratio=…, or one position")
            return
        if sm.sympify(self.ratio).is_zero:
            yield self.fault("ratio is 0", "give how many times as fast the first turns")
        if not (isinstance(self.on, tuple) and isinstance(self.on[0], ReferenceFrame)):
            yield self.fault("a gear with a ratio is between two frames", "give (frame, frame, axis)")
        if not (isinstance(self.position, tuple) and len(self.position) == 2):
            yield self.fault("a gear with a ratio needs both angles", "give position=(of the first, of the second)")

    def declare(self, model: Model) -> None:
        """Declare load, parameters and output."""
        at = make_element_attachment(self.on, model) if self.ratio is None else self._geared(model)
        play = self.parameter(model, "play", self.play, at.position_unit, "from one end to the other", low=0.0)
        middle = sm.S.Zero
        if self.middle != 0:
            middle = self.parameter(model, "middle", self.middle, at.position_unit, "middle of the play")
        self._pushes(model, at, (middle - play / 2, middle + play / 2))

    def _geared(self, model: Model) -> ElementAttachment:
        """Return the attachment seen from the second; the first gets its part of the torque by the ratio."""
        assert isinstance(self.on, tuple)  # or it has faults
        assert isinstance(self.position, tuple)
        assert self.ratio is not None
        ratio = self.parameter(model, "ratio", self.ratio, "1", "how many times as fast the first turns")
        first, second, axis = self.on
        fast, slow = (make_element_attachment((None, frame, axis), model) for frame in (first, second))
        position = sm.sympify(self.position[1]) - sm.sympify(self.position[0]) / ratio
        return _GearedAttachment(
            turns=True,
            speed=slow.speed - fast.speed / ratio,
            position=position,
            places=slow.places,
            fast=fast,
            ratio=ratio,
        )


@dataclass(frozen=True)
class _GearedAttachment(ElementAttachment):
    """The second side of a gear; the first is seen through the ratio."""

    fast: ElementAttachment | None = None
    ratio: sm.Expr = sm.S.One

    def load(self, model: Model, effort: sm.Expr) -> None:
        """Add the effort on the second, and its balance on the first; the housing takes the rest."""
        super().load(model, effort)
        assert self.fast is not None
        self.fast.load(model, -effort / self.ratio)


def _relative_position(given: sm.Expr | tuple[sm.Expr, sm.Expr] | None, at: ElementAttachment) -> sm.Expr:
    """Return the position of the second relative to the first."""
    here = at.position if given is None or isinstance(given, tuple) else given
    assert here is not None  # or it has faults
    return sm.sympify(here)
