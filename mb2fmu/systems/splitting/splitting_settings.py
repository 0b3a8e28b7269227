"""``SplittingSettings``: numbers of a cut, and known start values of the whole."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import sympy as sm

from mb2fmu.errors import Fault
from mb2fmu.mechanics.mechanism.records.mechanism_records import Mechanism
from mb2fmu.model.quantity_declarations import AuxiliaryState, Coordinate, Input, Speed
from mb2fmu.systems.wired_system import CouplingError


@dataclass(frozen=True)
class SplittingSettings:
    """Numbers of a cut.

    Attributes:
        bandwidth: Of the filter that motion passes through, rad/s.
        stiffness: Of a bushing, force per violation of its constraint; at a joint along each axis (N/m). Of a line: its
            impedance divided by its delay. 0, here and in the next three: :func:`choose_bushing_stiffness` gives it.
        damping: Of a bushing, force per rate of the violation (N·s/m).
        angular_stiffness: Of a bushing or line at a joint, about each axis (N·m/rad).
        angular_damping: Of a bushing at a joint, about each axis (N·m·s/rad).
        delay: Of a line, s.
        flange_mass: Of the flange that hangs on a bushing or line at a joint, kg.
        flange_inertia: Of the same, kg·m².
        accelerations: Speed → u' at the start, where it is known.
        starts: State → its value at the start, where guesses were solved for.
        reactions: Joint → force and torque of the inner side on the outer one at the start, in N, shape (6,).
    """

    bandwidth: float = 400.0
    stiffness: float = 0.0
    damping: float = 0.0
    angular_stiffness: float = 0.0
    angular_damping: float = 0.0
    delay: float = 1e-3
    flange_mass: float = 0.0
    flange_inertia: float = 1e-4
    accelerations: Mapping[str, float] = field(default_factory=dict)
    starts: Mapping[str, float] = field(default_factory=dict)
    reactions: Mapping[str, tuple[float, ...]] = field(default_factory=dict)

    def start_of(self, m: Mechanism) -> dict[sm.Symbol, sm.Expr]:
        """Return everything that expressions of a mechanism contain → its number at the start."""
        d = m.declared
        values: dict[sm.Symbol, sm.Expr] = {m.t: sm.Float(0.0)}
        free = [each.value for each in d.parameters if not each.calculated]
        for symbol, value in zip(m.p, free, strict=True):
            values[symbol] = sm.Float(float(value))
        declared: tuple[Coordinate | Speed | AuxiliaryState | Input, ...] = (
            *d.coordinates, *d.speeds, *d.auxiliary_states, *d.inputs,
        )  # fmt: skip
        starts: list[float] = [each.start for each in declared]
        for symbol, start in zip((*m.q, *m.u, *m.z, *m.r), starts, strict=True):
            values[symbol] = sm.Float(self.starts.get(symbol.name, start))
        for assignment in m.calculated_parameters:
            values[assignment.symbol] = assignment.expression.xreplace(values)
        return values


RESOLVED = 0.1
"""Frequency of the lightest part on a bushing or line that nobody chose, times the communication step or the delay."""
DAMPED = 0.1
"""Damping ratio of the same."""


def choose_bushing_stiffness(
    settings: SplittingSettings, m: Mechanism, parts: Sequence[int], period: float
) -> SplittingSettings:
    """Choose stiffness for elements without one, such that the steps resolve it.

    The lightest part has then 0.1 rad of its motion on the element within a step; a line has a hundredth of that part's
    mass as parasitic inertia, k T² = 0.01 m. Stiffer elements are nearer to the joint and worse followed.

    Args:
        settings: With zeros where nothing was chosen.
        m: The whole.
        parts: Number of the part of each body.
        period: Communication step or delay in s.

    Raises:
        CouplingError: If something must be chosen, and the bodies of a part have no mass.
    """
    known = settings.start_of(m)
    mass: dict[int, float] = {}
    inertia: dict[int, float] = {}
    for body, part in zip(m.bodies, parts, strict=True):
        mass[part] = mass.get(part, 0.0) + float(body.mass.xreplace(known))
        own = 0.0 if body.inertia is None else max(float(body.inertia[k, k].xreplace(known)) for k in range(3))
        inertia[part] = inertia.get(part, 0.0) + own
    lightest, least = min(mass.values(), default=0.0), min(inertia.values(), default=0.0)
    if not (settings.stiffness and settings.damping) and not lightest > 0.0:
        fault = Fault("a part has no mass, so no stiffness follows from it", "--stiffness", "give it, and --damping")
        raise CouplingError(f"{m.declared.name} cannot be cut:", [fault])
    k = settings.stiffness or RESOLVED**2 * lightest / period**2
    turned = settings.angular_stiffness or RESOLVED**2 * max(least, settings.flange_inertia) / period**2
    return replace(
        settings,
        stiffness=k,
        damping=settings.damping or 2.0 * DAMPED * math.sqrt(k * lightest),
        angular_stiffness=turned,
        angular_damping=settings.angular_damping
        or 2.0 * DAMPED * math.sqrt(turned * max(least, settings.flange_inertia)),
    )
