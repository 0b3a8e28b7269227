"""Problems of the zoo with solutions that need no integration."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from native_models.zoo import Kind, Unit
from scipy.special import ellipj


@dataclass(frozen=True, slots=True)
class Case:
    """A problem, its parameters, and x(t)."""

    kind: Kind
    exact: Callable[[float], list[float]]
    a: float = 0.0
    b: float = 0.0
    r0: float = 0.0
    r1: float | None = None

    def unit(self, library, solver, **options):
        return Unit(library, solver, self.kind, self.a, self.b, r0=self.r0, r1=self.r1, **options)


def pendulum(t: float) -> list[float]:
    """Released at 2 rad: sin(q/2) = k cd(t, k), k = sin 1 (Whittaker: Analytical Dynamics, § 44)."""
    k = math.sin(1.0)
    sn, cn, dn, _ = ellipj(t, k * k)
    s = k * cn / dn
    return [2.0 * math.asin(s), 0.0, -2.0 * k * (1.0 - k * k) * sn / dn**2 / math.sqrt(1.0 - s * s), 0.0]


def kepler(t: float) -> list[float]:
    """Eccentricity 0.3, semi-major axis 1, from the pericentre: E − e sin E = t."""
    e, anomaly = 0.3, t
    for _ in range(60):
        anomaly -= (anomaly - e * math.sin(anomaly) - t) / (1.0 - e * math.cos(anomaly))
    rate, minor = 1.0 / (1.0 - e * math.cos(anomaly)), math.sqrt(1.0 - e * e)
    return [
        math.cos(anomaly) - e,
        minor * math.sin(anomaly),
        -math.sin(anomaly) * rate,
        minor * math.cos(anomaly) * rate,
    ]


CASES = {
    "oscillator": Case(
        Kind.OSCILLATOR,
        lambda t: [math.cos(2 * t), math.sin(3 * t), -2 * math.sin(2 * t), 3 * math.cos(3 * t)],
        a=2.0,
        b=3.0,
    ),
    "pendulum": Case(Kind.PENDULUM, pendulum),
    "kepler": Case(Kind.KEPLER, kepler),
    "forced": Case(Kind.FORCED, lambda t: [math.sin(2 * t), 0.0, math.cos(3 * t), 0.0], a=4.0, b=0.5),
    "driven by a ramp": Case(Kind.DRIVEN, lambda t: [0.0, 0.0, math.exp(0.5 * t + 0.4 * t * t), 0.0], r0=0.5, r1=0.8),
    "speeds that are not q'": Case(
        Kind.KINEMATIC,
        lambda t: [math.tan(0.7 * (1.0 - math.exp(-t)) + math.atan(0.1)), 0.0, 0.7 * math.exp(-t), 0.0],
    ),
}
