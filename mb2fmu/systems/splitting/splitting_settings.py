"""``Settings``: the numbers of a cut, and what is known of the whole at its start."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import sympy as sm

from mb2fmu.mechanism.records import Mechanism
from mb2fmu.variables import AuxiliaryState, Coordinate, Input, Speed


@dataclass(frozen=True)
class Settings:
    """Numbers of a cut.

    Attributes:
        bandwidth: Of the filter that motion passes through, rad/s.
        stiffness: Of a bushing, force per violation of its constraint; at a joint along each axis (N/m). Of a line: its
            impedance divided by its delay.
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
    stiffness: float = 1e7
    damping: float = 1e4
    angular_stiffness: float = 1e4
    angular_damping: float = 1.0
    delay: float = 1e-3
    flange_mass: float = 0.0
    flange_inertia: float = 1e-4
    accelerations: Mapping[str, float] = field(default_factory=dict)
    starts: Mapping[str, float] = field(default_factory=dict)
    reactions: Mapping[str, tuple[float, ...]] = field(default_factory=dict)

    def start_of(self, m: Mechanism) -> dict[sm.Symbol, sm.Expr]:
        """Everything that expressions of a mechanism contain → its number at the start."""
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
