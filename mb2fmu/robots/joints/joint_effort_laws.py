"""``JointEffortLaws``: efforts of actuators and tendons along joints as expressions, and the control signals."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np
import sympy as sm
from sympy.physics.vector import dynamicsymbols

from mb2fmu.robots.description.robot_description import UNBOUNDED_RANGE, RobotActuator, RobotTendon

_CONTROL_RANGE_FRACTION = 0.45
"""Part of a control's range that the default experiment swings in, to either side of its middle."""


@dataclass(slots=True)
class JointEffortLaws:
    """Efforts along joints.

    Attributes:
        motions: Joint → its position and speed.
        efforts: Joint → effort along it, N·m or N.
        controls: Actuator → its input.
    """

    motions: Mapping[str, tuple[sm.Expr, sm.Expr]] = field(default_factory=dict)
    efforts: dict[str, sm.Expr] = field(default_factory=dict)
    controls: dict[str, sm.Expr] = field(default_factory=dict)
    _actuators: list[RobotActuator] = field(default_factory=list)

    def add_actuator(self, actuator: RobotActuator, control: sm.Expr) -> None:
        """Add the force of an actuator to the joints that it acts on."""
        b0, b1, b2 = actuator.bias
        length, rate = self._tendon_length(actuator.terms)
        force = _multiply(actuator.gain, control) + b0 + _multiply(b1, length) + _multiply(b2, rate)
        self._add_effort(actuator.terms, _clamp_force(force, actuator.force))
        self.controls[actuator.name] = control
        self._actuators.append(actuator)

    def limit_and_add_tendons(self, bounds: Mapping[str, tuple[float, float]], tendons: Iterable[RobotTendon]) -> None:
        """Limit the sum of the actuators along each joint, then add the springs and dampers of tendons."""
        for joint, effort in self.efforts.items():
            self.efforts[joint] = _clamp_force(effort, bounds.get(joint, UNBOUNDED_RANGE))
        for tendon in tendons:
            length, rate = self._tendon_length(tendon.terms)
            short, long = tendon.rest
            stretch = length - short if short == long else sm.Max(0, length - long) + sm.Min(0, length - short)
            self._add_effort(tendon.terms, -_multiply(tendon.stiffness, stretch) - _multiply(tendon.damping, rate))

    def _tendon_length(self, terms: Iterable[tuple[str, float]]) -> tuple[sm.Expr, sm.Expr]:
        """Return Σ factor × position, and its rate."""
        parts = [(_multiply(factor, self.motions[joint][0]), _multiply(factor, self.motions[joint][1]))
                 for joint, factor in terms]  # fmt: skip
        return sm.Add(*(part[0] for part in parts)), sm.Add(*(part[1] for part in parts))

    def _add_effort(self, terms: Iterable[tuple[str, float]], force: sm.Expr) -> None:
        """Add a force to the efforts of joints, each times its factor."""
        for joint, factor in terms:
            self.efforts[joint] = self.efforts.get(joint, sm.S.Zero) + _multiply(factor, force)

    def make_control_signals(
        self, start: Mapping[sm.Expr, float], hold: Mapping[str, float], swing: Callable[[str, float], float]
    ) -> dict[sm.Expr, sm.Expr]:
        """Return controls that hold the joints against gravity and move each at its own frequency.

        Args:
            start: Coordinate → value.
            hold: Joint → effort that its weight requires.
            swing: Joint, angular frequency in rad/s → effort that moves it.
        """
        t, found = dynamicsymbols._t, {}  # noqa: SLF001 - SymPy has no public name for it
        for k, actuator in enumerate(self._actuators):
            low, high = actuator.control
            b0, b1, _ = actuator.bias
            length = float(self._tendon_length(actuator.terms)[0].subs(start))
            squares = sum(factor**2 for _, factor in actuator.terms) or 1.0
            gain = actuator.gain or 1.0
            wanted = sum(factor * hold.get(joint, 0.0) for joint, factor in actuator.terms) / squares
            frequency = round(2.0 + 3.0 * ((0.618034 * (k + 1)) % 1.0), 3)
            moving = sum(abs(factor) * swing(joint, frequency) for joint, factor in actuator.terms) / squares
            middle = float(np.clip((wanted - b0 - b1 * length) / gain, low, high))
            room = _CONTROL_RANGE_FRACTION * (high - low) if np.isfinite(high - low) else np.inf
            size = float(f"{min(abs(moving / gain), room):.6g}")
            middle = float(f"{np.clip(middle, low + size, high - size):.6g}")
            found[self.controls[actuator.name]] = middle + size * sm.sin(frequency * t)
        return found


def form_tendon_efforts(
    motions: Mapping[str, tuple[sm.Expr, sm.Expr]], tendons: Iterable[RobotTendon]
) -> dict[str, sm.Expr]:
    """Return joint → effort of the tendons' springs and dampers along it, N·m or N.

    Args:
        motions: Joint → its position and speed.
        tendons: Of the file.
    """
    laws = JointEffortLaws(motions)
    laws.limit_and_add_tendons({}, tendons)
    return laws.efforts


def _clamp_force(force: sm.Expr, bounds: tuple[float, float]) -> sm.Expr:
    """Return a force between its bounds."""
    low, high = bounds
    force = sm.Min(force, high) if np.isfinite(high) else force
    return sm.Max(force, low) if np.isfinite(low) else force


def _multiply(factor: float, expression: sm.Expr) -> sm.Expr:
    """Return a product; plain numbers 0 and ±1 leave no floating factor."""
    if factor in (0.0, 1.0, -1.0):
        return int(factor) * expression
    return sm.Float(factor) * expression
