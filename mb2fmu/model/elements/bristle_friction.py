"""Friction along two tangents that sticks: elastic bristles, which yield at Coulomb's limit."""

from __future__ import annotations

from dataclasses import dataclass

import sympy as sm

from mb2fmu.model.elements.contact_surfaces import MIN_SQUARED_LENGTH
from mb2fmu.model.supported_functions import no_event

_ELASTIC_RANGE = sm.Rational(1, 2)
"""|z|² up to which nothing yields: vibrations below 0.7 of Coulomb's limit do not make a contact creep."""


@dataclass(frozen=True, slots=True)
class BristleFriction:
    """Bristles of a contact in a plane: their deflection, and what moves them.

    The friction on a body that slides with v is T = -μ F p with the normal force F,

        p = z + (1 - z·z)/2 v/√(v·v + v_s²)    and    d z' = v - max(0, z·v) h z,    h = (max(0, z·z - ½) / ½)²

    z is the deflection in units of d, at which Coulomb's limit is reached: |z| ≤ 1 and |p| ≤ 1 always, and p is v/|v|
    where it slides steadily. Under a load below the limit it rests: z' = 0 has v = 0 as its only solution. The second
    term of p is the bristles' damper; it vanishes where they slide.

    Attributes:
        deflection: (z₁, z₂), without unit.
        slip: (v₁, v₂) in m/s.
        presliding: d in m.
        slip_speed: v_s in m/s.

    Source: P. Dupont, V. Hayward, B. Armstrong and F. Altpeter, Single state elastoplastic friction models, IEEE
    Transactions on Automatic Control 47 (2002) 787-792, with two directions and a deflection in units of its limit.
    """

    deflection: sm.Matrix
    slip: sm.Matrix
    presliding: sm.Expr
    slip_speed: sm.Expr

    @property
    def force_ratio(self) -> sm.Matrix:
        """Return p: the friction is -μ F p."""
        z, v = self.deflection, self.slip
        damper = (1 - z.dot(z)) / (2 * sm.sqrt(v.dot(v) + self.slip_speed**2))
        return z + damper * v

    def rates(self, is_closed: sm.Expr) -> sm.Matrix:
        """Return z'; off the surface the bristles spring back against their damper, without a force.

        Args:
            is_closed: Condition of the contact.
        """
        z, v = self.deflection, self.slip
        excess = no_event(sm.Max(0, z.dot(z) - _ELASTIC_RANGE)) / (1 - _ELASTIC_RANGE)  # its square has a slope
        yielding = no_event(sm.Max(0, z.dot(v))) * excess**2
        closed = (v - yielding * z) / self.presliding
        opened = -2 * self.slip_speed / self.presliding * z
        return sm.Matrix([sm.Piecewise((a, is_closed), (b, True)) for a, b in zip(closed, opened, strict=True)])

    @property
    def magnitude(self) -> sm.Expr:
        """Return |p|."""
        p = self.force_ratio
        return sm.sqrt(p.dot(p) + MIN_SQUARED_LENGTH)
