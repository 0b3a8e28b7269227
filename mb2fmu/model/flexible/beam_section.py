"""BeamSection: what beam theory needs of a cross-section."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from mb2fmu.errors import Fault, ModelError
from mb2fmu.model.source_location import find_user_source_line


@dataclass(frozen=True, slots=True)
class BeamSection:
    """A cross-section of a straight beam along x, in its principal axes y and z through the centre of area.

    Attributes:
        area: A, m².
        I_y: ∫ z² dA, m⁴; resists bending in the plane of x and z.
        I_z: ∫ y² dA, m⁴; resists bending in the plane of x and y.
        torsion_constant: J of Saint-Venant's torsion, m⁴; None: I_y + I_z, which is that of a circle or ring only.
        shear_coefficient: Timoshenko's κ: the share of the area that takes the shear force.
    """

    area: float
    I_y: float
    I_z: float
    torsion_constant: float | None = None
    shear_coefficient: float = 5.0 / 6.0

    @classmethod
    def circle(cls, radius: float, inner_radius: float = 0.0) -> Self:
        """Return a full circle, or a ring; κ of G. R. Cowper (1966) for ν = 0.3.

        Args:
            radius: Outer radius, m.
            inner_radius: Of the hole, m.

        Raises:
            ModelError: Unless 0 ≤ inner_radius < radius.
        """
        hollow = _is_length(radius) and (inner_radius == 0.0 or (_is_length(inner_radius) and inner_radius < radius))
        if not hollow:
            what = f"a circle has the radius {radius!r} and the inner radius {inner_radius!r}"
            raise _section_error(what, "give radius > inner_radius >= 0, in m")
        second = math.pi / 4.0 * (radius**4 - inner_radius**4)
        ratio, nu = inner_radius / radius, 0.3
        square = (1.0 + ratio**2) ** 2
        kappa = 6.0 * (1.0 + nu) * square / ((7.0 + 6.0 * nu) * square + (20.0 + 12.0 * nu) * ratio**2)
        return cls(math.pi * (radius**2 - inner_radius**2), second, second, 2.0 * second, kappa)

    @classmethod
    def rectangle(cls, width: float, height: float) -> Self:
        """Return a full rectangle; J by the series of Saint-Venant (S. Timoshenko, J. Goodier, Theory of Elasticity).

        Args:
            width: Along y, m.
            height: Along z, m.

        Raises:
            ModelError: Unless both are > 0.
        """
        if not (_is_length(width) and _is_length(height)):
            raise _section_error(f"a rectangle has the edges {width!r} and {height!r}", "give two lengths > 0, in m")
        a, b = max(width, height), min(width, height)
        series = sum(math.tanh(n * math.pi * a / (2.0 * b)) / n**5 for n in range(1, 40, 2))
        torsion = a * b**3 * (1.0 / 3.0 - 64.0 * b / (math.pi**5 * a) * series)
        return cls(width * height, width * height**3 / 12.0, height * width**3 / 12.0, torsion)

    @property
    def polar_moment(self) -> float:
        """I_y + I_z, m⁴."""
        return self.I_y + self.I_z

    @property
    def torsional_stiffness_constant(self) -> float:
        """J, m⁴."""
        return self.polar_moment if self.torsion_constant is None else self.torsion_constant


def _is_length(value: Any) -> bool:
    """Return whether a value is a finite number > 0."""
    return isinstance(value, int | float | np.number) and 0.0 < float(value) < math.inf


def _section_error(what: str, remedy: str) -> ModelError:
    """Return the error of a section that does not exist."""
    return ModelError("the section of a beam cannot be used:", [Fault(what, find_user_source_line(), remedy)])
