"""Unilateral contacts of equations of motion: gaps that never become negative, struck by impacts and held by forces.

Of contact k with the gap g_k(q, t) >= 0 and G_k = dg_k'/du:

    g_k'  = G_k u + b_k                    rate of the gap
    g_k'' = G_k u' + c_k                   where the contact rests: -2 s g' - s^2 g, by the force N_k >= 0
    M u' + A^T lambda = f + sum G_k^T N_k
    M (u+ - u-) + A^T Gamma = sum G_k^T Lambda_k,    A (u+ - u-) = 0       at an impact

What the impulses Lambda_k are is the law of the impact; ``docs/impacts.md`` derives it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import sympy as sm

from mb2fmu.variables import ImpactOrder, Restitution

SETTLED = sm.Rational(1, 1000)
"""Part of the speed below which a contact rests, by which a resting one must approach before it is struck again."""

LEAVING = sm.Rational(1, 4)
"""What ``resting`` is from where a contact opens to where it parts: its rate is still round-off."""


@dataclass(frozen=True, slots=True)
class UnilateralContact:
    """One contact; its symbols are plain.

    Attributes:
        name: For messages.
        gap: g(q, t).
        jacobian: G(q, t), shape (1, n_u).
        offset: b(q, t).
        bias: c(q, u, t).
        restitution: Coefficient e in [0, 1], an expression of parameters.
        rest_below: Where it leaves an impact more slowly than this it rests, in the gap's unit per second, > 0.
        stabilization: s in 1/s, an expression of parameters.
        law: What e is a ratio of: rates of the gap (Newton), or impulses of restitution and compression (Poisson).
        resting: State: 1 while the contact rests, :data:`LEAVING` as it leaves, else 0.
        impulse: State: Lambda of its last impact.
        count: State: number of its impacts.
        force: N while it rests, else 0.
        blow: Lambda of an impact at this instant; 0 where the contact is not struck.
        rests: What ``resting`` is after an impact at this instant.
    """

    name: str
    gap: sm.Expr
    jacobian: sm.ImmutableMatrix
    offset: sm.Expr
    bias: sm.Expr
    restitution: sm.Expr
    rest_below: sm.Expr
    stabilization: sm.Expr
    law: Restitution
    resting: sm.Symbol
    impulse: sm.Symbol
    count: sm.Symbol
    force: sm.Symbol
    blow: sm.Symbol
    rests: sm.Symbol

    def rate(self, u: Sequence[sm.Symbol]) -> sm.Expr:
        """The rate of the gap."""
        return sm.Add(*(slope * speed for slope, speed in zip(self.jacobian, u, strict=True)), self.offset)

    def acceleration(self, u: Sequence[sm.Symbol], u_dot: Sequence[sm.Symbol]) -> sm.Expr:
        """What is zero while it rests: the second rate of the gap, with the terms that bring back what has drifted."""
        s = self.stabilization
        second = sm.Add(*(slope * rate for slope, rate in zip(self.jacobian, u_dot, strict=True)), self.bias)
        return second + 2 * s * self.rate(u) + s**2 * self.gap

    @property
    def closed(self) -> sm.Basic:
        """Whether the bodies touch; where the contact rests they do, whatever round-off makes of the gap."""
        rests = self.resting * (self.resting - LEAVING) / (1 - LEAVING)  # 1, 0 while it leaves and else
        return (1 - rests) * self.gap - rests <= 0  # and no Piecewise, out of which SymPy takes the comparison

    def approach(self, u: Sequence[sm.Symbol]) -> sm.Expr:
        """Negative where a closed contact is struck: while it rests or leaves round-off strikes nothing."""
        return self.rate(u) + SETTLED * self.rest_below * self.resting

    def gone(self, u: Sequence[sm.Symbol]) -> sm.Basic:
        """Whether a contact that leaves parts so fast that no round-off strikes it; the gap says that much later.

        While it does not leave this is far from true, so that nothing happens at the top of each bounce.
        """
        parts = self.rate(u) - SETTLED * self.rest_below * LEAVING
        return sm.Piecewise((parts, sm.Eq(self.resting, LEAVING)), (-1, True)) > 0  # an equality is no switch

    @property
    def pull(self) -> sm.Expr:
        """Negative where a resting contact would have to pull; 1 where it does not rest."""
        return self.force * self.resting + 1 - self.resting


@dataclass(frozen=True, slots=True)
class Contacts:
    """All contacts of a mechanism.

    Attributes:
        each: In order of declaration.
        order: Of impacts at the same instant: one after the other, or all at once.
        jumps: Symbols of u+ - u- of an impact at this instant, one per speed.
    """

    each: tuple[UnilateralContact, ...]
    order: ImpactOrder
    jumps: tuple[sm.Symbol, ...]

    @property
    def symbols(self) -> tuple[sm.Symbol, ...]:
        """What is solved for: forces, blows, what rests, jumps."""
        parts = ([getattr(c, part) for c in self.each] for part in ("force", "blow", "rests"))
        return (*(symbol for part in parts for symbol in part), *self.jumps)
