"""Rows along which contacts and latches push: what the normal of a contact, its tangent and a latch have in common.

Of a row with the rate r and G = dr/du:

    r  = G u + b
    r' = G u' + c
    M u' + A^T mu = f + sum G^T force
    M (u+ - u-) + A^T Gamma = sum G^T impulse,    A (u+ - u-) = 0

Laws differ, and stand with ``UnilateralContact`` (open, or resting), ``ContactFriction`` (sticking, or sliding) and
``LatchedConstraintRow`` (released, or held): which of them are held, and what force and impulse then are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import sympy as sm


@dataclass(frozen=True, slots=True, kw_only=True)
class UnilateralRow:
    """A row along which a force acts in some modes only; its symbols are plain (no functions of time).

    Attributes:
        jacobian: G(q, t), shape (1, n_u).
        offset: b(q, t).
        bias: c(q, u, t).
        force: What holds it while it is held; else what its law says.
        impulse: State: of the last impact, or of the last closing.
        impact_impulse: Impulse at this instant; 0 where nothing happens.
    """

    jacobian: sm.ImmutableMatrix
    offset: sm.Expr
    bias: sm.Expr
    force: sm.Symbol
    impulse: sm.Symbol
    impact_impulse: sm.Symbol

    def rate(self, u: Sequence[sm.Symbol]) -> sm.Expr:
        """Return r at speeds u; of a contact's friction the slip in m/s."""
        return sm.Add(*(slope * speed for slope, speed in zip(self.jacobian, u, strict=True)), self.offset)

    def rate_derivative(self, u_dot: Sequence[sm.Symbol]) -> sm.Expr:
        """Return r' at rates of speeds."""
        return sm.Add(*(slope * rate for slope, rate in zip(self.jacobian, u_dot, strict=True)), self.bias)


@dataclass(frozen=True, slots=True, kw_only=True)
class UnilateralPositionRow(UnilateralRow):
    """A row whose rate is that of a position phi(q, t), which is kept where it is while the row is held.

    Attributes:
        name: For messages.
        position: phi.
        stabilization: s in 1/s, an expression of parameters.
    """

    name: str
    position: sm.Expr
    stabilization: sm.Expr

    @property
    def held_position(self) -> sm.Expr:
        """What phi is while the row is held."""
        return sm.S.Zero

    def stabilized_acceleration(self, u: Sequence[sm.Symbol], u_dot: Sequence[sm.Symbol]) -> sm.Expr:
        """Return the residual that is zero while the row is held: phi'', with terms that remove drift."""
        s = self.stabilization
        return self.rate_derivative(u_dot) + 2 * s * self.rate(u) + s**2 * (self.position - self.held_position)
