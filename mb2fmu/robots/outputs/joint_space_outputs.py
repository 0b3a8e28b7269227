"""A robot's equations as outputs: mass matrix, Jacobians, gravity efforts, efforts of a given motion."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import get_args

import sympy as sm
from sympy.physics.vector import dynamicsymbols

from mb2fmu.errors import Fault, ModelError
from mb2fmu.model.declarations.declared_outputs import OutputRequest
from mb2fmu.model.quantity_declarations import Input, Speed
from mb2fmu.robots.robot_settings import JointSpaceWord, RobotSettings
from mb2fmu.robots.tree.robot_mechanics_records import RobotMechanics

_LINEAR_JACOBIAN_UNITS = {True: "m", False: "1"}
_ANGULAR_JACOBIAN_UNITS = {True: "1", False: "rad/m"}
"""Units of a Jacobian's upper and lower rows, of speeds that turn and that do not."""


@dataclass(frozen=True, slots=True)
class _NamedJointSpeed:
    """One speed: ``base`` is the joint's name, ``axis`` such as ``.x`` where the joint has several.

    Of a modal speed ``base`` is the name of the link that bends, ``axis`` the number of the mode, such as ``[1]``.
    """

    speed: sm.Expr
    base: str
    axis: str
    turns: bool
    several: bool

    @property
    def effort(self) -> str:
        """Kind of effort along the speed, in words of names."""
        return ("torque" if self.turns else "force") if self.several else "effort"

    @property
    def effort_unit(self) -> str:
        return "N.m" if self.turns else "N"

    @property
    def acceleration(self) -> str:
        turning = self.turns and self.several
        return f"{self.base}.desired_{'angular_' * turning}acceleration{self.axis}"


@dataclass(frozen=True, slots=True)
class JointSpaceOutputDeclarations:
    """Declared variables of the requested quantities.

    Attributes:
        inputs: Requested accelerations, one per speed; only for ``inverse-dynamics``.
        requests: Requested outputs.
    """

    inputs: tuple[Input, ...] = ()
    requests: tuple[OutputRequest, ...] = ()


def declare_joint_space_outputs(
    settings: RobotSettings, speeds: Sequence[Speed], mechanics: RobotMechanics
) -> JointSpaceOutputDeclarations:
    """Return outputs and inputs for ``settings.quantities``.

    Args:
        settings: Of the robot.
        speeds: As declared, in their order.
        mechanics: Has frames and points.

    Raises:
        ModelError: With everything that is requested and is not there.
    """
    if not settings.quantities:
        return JointSpaceOutputDeclarations()
    _check_quantities(settings, speeds, mechanics)
    writer = _JointSpaceOutputWriter(mechanics, [_parse_direction(speed) for speed in speeds])
    for word in dict.fromkeys(settings.quantities):
        name, _, frame = word.partition(":")
        writer.request_quantity(name, frame)
    return JointSpaceOutputDeclarations(tuple(writer.inputs), tuple(writer.requests))


def _check_quantities(settings: RobotSettings, speeds: Sequence[Speed], mechanics: RobotMechanics) -> None:
    """Raise if quantities are requested for a robot that cannot have them, with all faults."""
    where = mechanics.description.format_location()
    requested = ", ".join(settings.quantities)
    faults = []
    if settings.role != "plant":
        what = f"{requested}: a unit of inverse dynamics has no states, which they need"
        faults.append(Fault(what, where, "they are outputs of a plant: leave --as out"))
    elif not speeds:
        faults.append(Fault(f"{requested}: no joint moves by itself", where, "leave a joint free"))
    if mechanics.loops and "inverse-dynamics" in settings.quantities:
        what = f"inverse-dynamics: {', '.join(loop.name for loop in mechanics.loops)} closes a loop"
        remedy = "the efforts of a closed loop are not determined by its motion alone: use a robot without loops"
        faults.append(Fault(what, where, remedy))
    for word in settings.quantities:
        name, sign, frame = word.partition(":")
        if name == "jacobian" and sign and frame not in mechanics.frames:
            near = difflib.get_close_matches(frame, mechanics.frames, n=1)
            remedy = f"did you mean {near[0]}?" if near else f"there are {', '.join(mechanics.frames)}"
            faults.append(Fault(f"a Jacobian is requested for {frame!r}, which is no link", where, remedy))
    if faults:
        raise ModelError("the robot's settings do not fit it:", faults)


def _parse_direction(speed: Speed) -> _NamedJointSpeed:
    """Return the direction that a name says, such as ``elbow.speed``, ``base.velocity.x`` or ``arm.eta_dot[1]``."""
    pattern = r"(.+)\.(speed|velocity|angular_velocity|eta_dot)(\.[xyz]|\[\d+\])?"
    base, word, axis = re.fullmatch(pattern, speed.name).groups()  # type: ignore[union-attr]
    return _NamedJointSpeed(speed.symbol, base, axis or "", speed.unit == "rad/s", word.endswith("velocity"))


@dataclass(slots=True)
class _JointSpaceOutputWriter:
    mechanics: RobotMechanics
    directions: list[_NamedJointSpeed]
    inputs: list[Input] = field(default_factory=list)
    requests: list[OutputRequest] = field(default_factory=list)

    def request_quantity(self, name: str, frame: str) -> None:
        """Request all outputs of one quantity word."""
        declarations: dict[str, Callable[[], None]] = {
            "mass-matrix": self._request_mass_matrix,
            "gravity-torques": self._request_gravity,
            "inverse-dynamics": self._request_inverse_dynamics,
            "jacobian": lambda: self._request_jacobian(frame),
        }
        assert declarations.keys() == set(get_args(JointSpaceWord))
        declarations[name]()

    def _request_mass_matrix(self) -> None:
        """Request the entries of the mass matrix, in kg, kg·m or kg·m² as rows and columns turn."""
        for i, row in enumerate(self.directions, 1):
            for j, column in enumerate(self.directions, 1):
                unit = ("kg", "kg.m", "kg.m2")[row.turns + column.turns]
                text = f"mass matrix, {row.base}{row.axis} and {column.base}{column.axis}"
                self.requests.append(
                    OutputRequest(
                        name=f"mass_matrix[{i},{j}]", kind="mass_matrix", subject=(row.speed, column.speed), unit=unit,
                        description=text,
                    )
                )  # fmt: skip

    def _request_gravity(self) -> None:
        """Request the effort that holds the weight along each direction."""
        for one in self.directions:
            self.requests.append(
                OutputRequest(
                    name=f"{one.base}.gravity_{one.effort}{one.axis}", kind="gravity_effort", subject=(one.speed,),
                    unit=one.effort_unit, description=f"holds the robot's weight along {one.base}{one.axis}",
                )
            )  # fmt: skip

    def _request_inverse_dynamics(self) -> None:
        """Declare a desired acceleration per direction, and request the efforts that they need."""
        for one in self.directions:
            symbol = dynamicsymbols(re.sub(r"\W", "_", one.acceleration))
            unit = "rad/s2" if one.turns else "m/s2"
            self.inputs.append(
                Input(
                    symbol=symbol, name=one.acceleration, unit=unit,
                    description=f"acceleration along {one.base}{one.axis} whose efforts are asked for",
                )
            )  # fmt: skip
            self.requests.append(
                OutputRequest(
                    name=f"{one.base}.required_{one.effort}{one.axis}", kind="inverse_effort", subject=(one.speed,),
                    unit=one.effort_unit, description=f"takes the desired accelerations, along {one.base}{one.axis}",
                )
            )  # fmt: skip

    def _request_jacobian(self, frame: str) -> None:
        """Request six rows: velocity of the frame's origin and angular velocity, in the ground's axes."""
        name = re.sub(r"\W+", "_", frame)
        blocks = (
            ("partial_velocity", self.mechanics.point(frame), _LINEAR_JACOBIAN_UNITS, "velocity"),
            ("partial_angular_velocity", self.mechanics.frame(frame), _ANGULAR_JACOBIAN_UNITS, "angular velocity"),
        )
        for block, (kind, subject, units, word) in enumerate(blocks):
            for row, axis in enumerate("xyz"):
                for j, one in enumerate(self.directions, 1):
                    self.requests.append(
                        OutputRequest(
                            name=f"{name}.jacobian[{3 * block + row + 1},{j}]", kind=kind, component=row,  # type: ignore[arg-type]
                            subject=(subject, one.speed), unit=units[one.turns],
                            description=f"{axis} of the {word} of {frame} per {one.base}{one.axis}",
                        )
                    )  # fmt: skip
