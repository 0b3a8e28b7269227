"""Impacts between bodies: a gap >= 0, restitution, rest after slow impacts, friction."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import sympy as sm
from sympy.physics.mechanics import Vector, dynamicsymbols

from mb2fmu.errors import Fault
from mb2fmu.model.checks.contact_loop_and_load_checks import ONE_TANGENT_REMEDY
from mb2fmu.model.declarations.contact_and_latch_declaration_records import DeclaredContact, DeclaredFriction
from mb2fmu.model.elements.element_base_class import NamedElement
from mb2fmu.model.quantity_declarations import ImpactOrder, RestitutionLaw

if TYPE_CHECKING:
    from mb2fmu.model import Model


@dataclass(frozen=True)
class Impact(NamedElement):
    """A gap that stays >= 0: where it closes, speeds jump; after a slow impact it stays closed.

    The FMU has ``name.impulse`` (of the last impact), ``name.impacts`` (how many there were), ``name.resting`` (1
    while the contact rests) and the output ``name.force`` (what it exerts while it rests). With a gap in m these are
    in N.s and N, positive as they part what touches; with one in rad in N.m.s and N.m.

    Example:
        A ball that bounces until it rests.

        >>> model.add(Impact("ground", h, restitution=0.7, rest_below=0.01))                     # doctest: +SKIP

    With ``slip`` and ``friction`` Coulomb's law holds in impacts and while it rests: what touches sticks as long as
    the force along the surface is no more than ``friction`` times the normal one, else it slides. Then there are
    ``name.sliding`` (1 or -1, the sense of slip; 0 where it sticks or is open), ``name.impulse_along`` and the outputs
    ``name.friction`` (the force, which does the power friction · slip) and ``name.slip``.

    Attributes:
        gap: An expression of coordinates, parameters, time and inputs that have rates, >= 0.
        restitution: Coefficient e in [0, 1], a number or an expression of parameters: 0 plastic, 1 elastic.
        rest_below: Speed after an impact below which the contact rests, in m/s or rad/s, > 0. It opens again when it
            would have to pull.
        law: ``newton``: the gap's rate after an impact is -e times that before; ``poisson``: impulses of restitution
            are e times those of compression. They differ only in simultaneous impacts.
        order: Of impacts at the same instant: ``sequential``, each by itself in the order of declaration until nothing
            approaches; ``simultaneous``, all together by complementarity, at most three contacts. The same for all
            contacts of a model.
        unit: Of the gap, ``m`` or ``rad``.
        starts_resting: Whether it rests at the start. It opens there at once where it has a gap or would have to pull.
        stabilization: Rate in 1/s at which what the integration errs in the gap is brought back while it rests; 0: not
            at all.
        slip: Speed at which what touches slides along the surface, in a plane: an expression that is linear in speeds,
            in m/s or rad/s as the gap's rate.
        friction: Coefficient of Coulomb's friction, a number or an expression of parameters.
    """

    gap: sm.Expr
    restitution: float | sm.Expr = 0.0
    rest_below: float | sm.Expr = 1e-3
    law: RestitutionLaw = "newton"
    order: ImpactOrder = "sequential"
    unit: str = "m"
    starts_resting: bool = False
    stabilization: float | sm.Expr = 10.0
    slip: sm.Expr | None = None
    friction: float | sm.Expr | None = None

    def faults(self, model: Model) -> Iterator[Fault]:  # noqa: ARG002 - others look at the model
        """Yield coefficients out of range, and choices that contradict each other."""
        if not isinstance(self.gap, sm.Expr | int | float):
            yield self.fault(f"its gap is {self.gap!r}", "give an expression of coordinates, zero where bodies touch")
        e, slow = sm.sympify(self.restitution), sm.sympify(self.rest_below)
        if e.is_number and not (e.is_finite and 0 <= e <= 1):
            yield self.fault(f"its restitution is {self.restitution}", "give a number from 0 (plastic) to 1 (elastic)")
        if slow.is_number and not (slow.is_finite and slow > 0):
            yield self.fault(f"rest_below is {self.rest_below}", "give a speed > 0, as small as you like")
        yield from self.negative("stabilization", self.stabilization)
        if self.law not in {"newton", "poisson"}:
            yield self.fault(f"the law {self.law!r} is not known", "take 'newton' or 'poisson'")
        if self.order not in {"sequential", "simultaneous"}:
            yield self.fault(f"the order {self.order!r} is not known", "take 'sequential' or 'simultaneous'")
        if self.unit not in {"m", "rad"}:
            yield self.fault(f"its gap is in {self.unit}", "take 'm' or 'rad'")
        yield from self._friction_faults()

    def _friction_faults(self) -> Iterator[Fault]:
        """Yield faults of slip and friction, which need each other."""
        yield from self.negative("friction", self.friction)
        if self.slip is not None and not isinstance(self.slip, sm.Expr):
            several = isinstance(self.slip, tuple | list | sm.MatrixBase | Vector)
            what = "its slip has several components" if several else f"its slip, {self.slip}, is no expression"
            yield self.fault(what, ONE_TANGENT_REMEDY)
        elif self.slip is None and self.friction is not None:
            yield self.fault("it has friction, and no slip", "say what slides: slip=u - R * omega, say")
        elif self.slip is not None and (self.friction is None or sm.sympify(self.friction).is_zero):
            yield self.fault("it has a slip, and no friction", "give the coefficient: friction=0.3, or leave both out")

    def declare(self, model: Model) -> None:
        """Declare parameters, states that only events change, the contact, and its force."""
        force = "N" if self.unit == "m" else "N.m"
        word = self.name.replace(".", "_")
        resting, impulse, count, push = dynamicsymbols(" ".join(f"{word}_{part}" for part in _CONTACT_VARIABLES))
        e = self.parameter(model, "restitution", self.restitution, "1", "coefficient of restitution", low=0.0, high=1.0)
        slowest = "speed below which it rests"
        slow = self.parameter(model, "rest_below", self.rest_below, f"{self.unit}/s", slowest, low=_MIN_REST_SPEED)
        owner = f"of {self.name}"
        back = f"rate {owner} against drift while it rests"
        stabilization = sm.sympify(self.stabilization)
        if stabilization.is_zero:
            stabilization = sm.S.Zero
        else:
            stabilization = self.parameter(model, "stabilization", self.stabilization, "1/s", back, low=0.0)
        rests = f"1 while the contact {owner} rests, 0.25 as it leaves"
        model.discrete(
            resting, float(self.starts_resting), name=f"{self.name}.resting", min=0.0, max=1.0, description=rests
        )
        last = f"impulse of the last impact {owner}"
        model.discrete(impulse, 0.0, f"{force}.s", name=f"{self.name}.impulse", description=last)
        model.discrete(count, 0.0, name=f"{self.name}.impacts", min=0.0, description=f"number of impacts {owner}")
        model.output(f"{self.name}.force", push, force, description=f"force {owner} while it rests")
        model.declared_contacts.append(
            DeclaredContact(
                name=self.name,
                gap=sm.sympify(self.gap) if isinstance(self.gap, sm.Expr | int | float) else sm.S.Zero,
                restitution=e,
                rest_below=slow,
                stabilization=stabilization,
                law=self.law,
                order=self.order,
                resting=resting,
                impulse=impulse,
                count=count,
                force=push,
                friction=self._declared_friction(model),
                where=self.where,
            )
        )

    def _declared_friction(self, model: Model) -> DeclaredFriction | None:
        """Declare the friction: its coefficient, states and outputs."""
        if self.slip is None or self.friction is None:
            return None
        force = "N" if self.unit == "m" else "N.m"
        word = self.name.replace(".", "_")
        mu = self.parameter(model, "friction_coefficient", self.friction, "1", "coefficient of friction", low=0.0)
        sliding, impulse, changes, along = dynamicsymbols(" ".join(f"{word}_{part}" for part in _FRICTION_VARIABLES))
        owner = f"of {self.name}"
        sense = f"sense of slip {owner}: 1 or -1; 0 where it sticks or is open"
        model.discrete(sliding, 0.0, name=f"{self.name}.sliding", min=-1.0, max=1.0, description=sense)
        last = f"impulse of friction in the last impact {owner}"
        model.discrete(impulse, 0.0, f"{force}.s", name=f"{self.name}.impulse_along", description=last)
        first = not any(contact.friction for contact in model.declared_contacts)
        if first:
            count = "changes between sticking, sliding and open of all contacts while they rest"
            model.discrete(changes, 0.0, name=f"{self.name}.changes", min=0.0, description=count)
        model.output(f"{self.name}.friction", along, force, description=f"friction {owner} while it rests")
        slip = sm.sympify(self.slip)
        model.output(f"{self.name}.slip", slip, f"{self.unit}/s", description=f"speed of sliding {owner}")
        return DeclaredFriction(slip, mu, sliding, impulse, changes if first else None, along)


_MIN_REST_SPEED = 1e-300
"""Lower bound of the speed of rest: it must be above zero, or bounces follow each other without end."""

_CONTACT_VARIABLES = ("resting", "impulse", "impacts", "force")
_FRICTION_VARIABLES = ("sliding", "impulse_along", "changes", "friction")
