"""``RecordBasedMechanics``: mechanics that are plain records from the start, such as a robot file's.

Its frames and points are names, not SymPy objects; whoever made it can read it (``mb2fmu.robots``).
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import sympy as sm
from sympy.physics.vector import dynamicsymbols

from mb2fmu.errors import Fault
from mb2fmu.model.source_location import find_user_source_line

Components = tuple[sm.Expr, sm.Expr, sm.Expr]
MotionVectorWord = Literal["position", "velocity", "angular velocity"]


@dataclass(frozen=True, slots=True)
class FrameReference:
    """A frame by its name; used for orientations, angular velocities and components."""

    name: str


@dataclass(frozen=True, slots=True)
class NamedFramePoint:
    """A point by the frame it is fixed in and its ``offset`` from that frame's origin, in m, in its axes."""

    frame: str
    offset: tuple[float, float, float] = (0.0, 0.0, 0.0)

    @property
    def name(self) -> str:
        """A name for messages."""
        return f"{self.frame}{list(self.offset) if any(self.offset) else ''}"


@dataclass(frozen=True, slots=True)
class JointReference:
    """A joint by its name."""

    name: str


@dataclass(frozen=True, slots=True)
class BodyReference:
    """A body by its name."""

    name: str


@dataclass(frozen=True, slots=True)
class RecordedLoad:
    """A force (N) at a point of a frame, or a torque (N·m) on a frame.

    Attributes:
        at: A point: the load is a force; a frame: it is a torque.
        components: Expressions of coordinates, speeds, inputs, states, parameters and time, along ``axes``; anything
            else that was given as them is judged by :meth:`RecordBasedMechanics.load_faults`.
        axes: Name of a frame.
        where: ``file:line`` where it was made.
    """

    at: NamedFramePoint | FrameReference
    components: Components
    axes: str
    where: str = field(default="", compare=False)

    @property
    def load_kind(self) -> str:
        """``force`` or ``torque``."""
        return "force" if isinstance(self.at, NamedFramePoint) else "torque"

    @property
    def frame(self) -> str:
        """Name of the frame that it acts on."""
        return self.at.frame if isinstance(self.at, NamedFramePoint) else self.at.name

    def __str__(self) -> str:
        """Return it in words."""
        return f"the {self.load_kind} on {self.frame}"


@dataclass(eq=False, kw_only=True)
class RecordBasedMechanics:
    """Protocol: what every kind of recorded mechanics offers to a ``Model``.

    Attributes:
        kind: In words, such as ``a URDF file``.
        coordinates: Functions of time.
        speeds: Functions of time.
        ground: Name of the inertial frame.
        frames: Names of all frames.
        efforts: Joint → expressions of efforts that were added to it, N·m or N.
        loads: Forces and torques that were added to frames.
        sensed: (what, point or frame) → its symbols: what expressions name of the motion.
        notes: What was left out or assumed when it was read, one sentence each.
    """

    kind: str
    coordinates: tuple[sm.Expr, ...]
    speeds: tuple[sm.Expr, ...]
    ground: str
    frames: tuple[str, ...]
    efforts: dict[str, list[sm.Expr]] = field(default_factory=dict)
    loads: list[RecordedLoad] = field(default_factory=list)
    sensed: dict[tuple[MotionVectorWord, NamedFramePoint | FrameReference], Components] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    position: Mapping[str, sm.Expr] = field(default_factory=dict)
    """Joint → its coordinate q(t); joints with one coordinate only."""
    speed: Mapping[str, sm.Expr] = field(default_factory=dict)
    """Joint → its speed u(t)."""

    def point(self, frame: str, offset: tuple[float, float, float] = (0.0, 0.0, 0.0)) -> NamedFramePoint:
        """Return a point fixed in a frame, for outputs; ``offset`` in m along the frame's axes.

        Raises:
            KeyError: If there is no such frame.
        """
        x, y, z = map(float, offset)
        return NamedFramePoint(self.frame(frame).name, (x, y, z))

    def frame(self, name: str) -> FrameReference:
        """Return a frame, for outputs.

        Raises:
            KeyError: If there is no such frame.
        """
        if name not in self.frames:
            raise KeyError(f"there is no frame {name!r}; there are {', '.join(self.frames)}")
        return FrameReference(name)

    def position_of(self, frame: str, offset: tuple[float, float, float] = (0.0, 0.0, 0.0)) -> Components:
        """Return the position of a point fixed in a frame, for expressions of loads, efforts, outputs, states, events.

        Three functions of time, m, along the ground's axes; their derivatives are those of :meth:`velocity_of`.

        Example:
            A spring from the tool to a place in the world.

            >>> place = arm.position_of("tool")                                                 # doctest: +SKIP
            >>> arm.add_force("tool", [k * (a - x) for a, x in zip(anchor, place)])             # doctest: +SKIP

        Args:
            frame: Its name.
            offset: m, along the frame's axes.

        Raises:
            KeyError: If there is no such frame.
        """
        self.velocity_of(frame, offset)
        return self._sensed("position", self.point(frame, offset))

    def velocity_of(self, frame: str, offset: tuple[float, float, float] = (0.0, 0.0, 0.0)) -> Components:
        """Return the velocity of a point fixed in a frame, m/s, as :meth:`position_of` returns its position."""
        return self._sensed("velocity", self.point(frame, offset))

    def angular_velocity_of(self, frame: str) -> Components:
        """Return the angular velocity of a frame, rad/s, along the ground's axes, for expressions."""
        return self._sensed("angular velocity", self.frame(frame))

    def _sensed(self, what: MotionVectorWord, at: NamedFramePoint | FrameReference) -> Components:
        """Return the symbols of a vector of the motion, made when it is requested first."""
        if (what, at) not in self.sensed:
            name = re.sub(r"\W+", "_", f"{what}_of_{at.name}").strip("_")
            taken = {str(components[0].func)[:-2] for components in self.sensed.values()}
            names = (name, *(f"{name}_{k}" for k in range(2, len(taken) + 3)))
            free = next(each for each in names if each not in taken)
            x, y, z = (dynamicsymbols(f"{free}_{axis}") for axis in "xyz")
            self.sensed[what, at] = (x, y, z)
        return self.sensed[what, at]

    @property
    def motion_symbols(self) -> dict[sm.Expr, sm.Expr | None]:
        """What expressions name of the motion → its derivative by time where that has a name, too."""
        found: dict[sm.Expr, sm.Expr | None] = {}
        for (what, at), components in self.sensed.items():
            rates = self.sensed.get(("velocity", at)) if what == "position" else None
            found |= dict(zip(components, rates or (None,) * 3, strict=True))
        return found

    def add_effort(self, joint: str, expression: sm.Expr) -> None:
        """Add an effort along a joint: an expression of coordinates, speeds, inputs, states, parameters and time.

        Args:
            joint: Its name.
            expression: N·m, or N along a slide; positive in the direction of the joint's axis.

        Raises:
            KeyError: If no joint of that name has one coordinate of its own.
        """
        if joint not in self.speed:
            raise KeyError(
                f"there is no joint {joint!r} with a coordinate of its own; there are {', '.join(self.speed)}"
            )
        self.efforts.setdefault(joint, []).append(sm.sympify(expression))

    def _axes(self, name: str) -> str:
        """Return the frame of some axes: the ground has more names than one."""
        return self.ground if name in {"", "ground", "world"} - {*self.frames} else name

    def force(
        self, frame: str, components: Sequence[Any], *, offset: Sequence[float] = (0.0, 0.0, 0.0), axes: str = ""
    ) -> RecordedLoad:
        """Return a force at a point of a link, for ``model.add_loads``; :meth:`add_force` adds it at once.

        What is wrong with it is reported with all other faults of the model.

        Args:
            frame: Name of the link or frame that the point is fixed in.
            components: Three, N: expressions of coordinates, speeds, inputs, states, parameters and time.
            offset: Of the point from the frame's origin, m, in the frame's axes.
            axes: Name of the frame along whose axes the components are; empty: the ground's.
        """
        point = NamedFramePoint(frame, _read_three_values(offset, float))
        return RecordedLoad(
            point, _read_three_values(components, sm.sympify), self._axes(axes), find_user_source_line()
        )

    def torque(self, frame: str, components: Sequence[Any], *, axes: str = "") -> RecordedLoad:
        """Return a torque on a link, N·m, for ``model.add_loads``; the arguments are those of :meth:`force`."""
        return RecordedLoad(
            FrameReference(frame), _read_three_values(components, sm.sympify), self._axes(axes), find_user_source_line()
        )

    def add_force(
        self, frame: str, components: Sequence[Any], *, offset: Sequence[float] = (0.0, 0.0, 0.0), axes: str = ""
    ) -> RecordedLoad:
        """Add a force at a point of a link, and return it; see :meth:`force`.

        Example:
            >>> arm.add_force("tool", (0, 0, push), offset=(0, 0, 0.1), axes="tool")            # doctest: +SKIP
        """
        self.loads.append(self.force(frame, components, offset=offset, axes=axes))
        return self.loads[-1]

    def add_torque(self, frame: str, components: Sequence[Any], *, axes: str = "") -> RecordedLoad:
        """Add a torque on a link, N·m, and return it; the arguments are those of :meth:`force`."""
        self.loads.append(self.torque(frame, components, axes=axes))
        return self.loads[-1]

    def load_faults(self, loads: Iterable[RecordedLoad]) -> Iterator[Fault]:
        """Yield every fault of forces and torques."""
        there = f"there are {', '.join(self.frames)}"
        for load in loads:
            if load.frame not in self.frames:
                yield Fault(f"a {load.load_kind} acts on {load.frame!r}, which is no link", load.where, there)
            elif self.is_fixed_in_ground(load.frame):
                what = f"a {load.load_kind} acts on {load.frame}, which stands still"
                yield Fault(what, load.where, "name a link that moves")
            if load.axes not in self.frames:
                what = f"the components of {load} are along the axes of {load.axes!r}, which is no link"
                yield Fault(what, load.where, there)
            yield from _component_faults(load)

    def is_fixed_in_ground(self, frame: str) -> bool:
        """Return whether a frame is fixed in the ground."""
        return frame == self.ground

    def list_added_load_expressions(self) -> Iterator[tuple[str, sm.Expr]]:
        """Yield (place in words, expression) of all efforts, forces and torques that were added."""
        for joint, expressions in self.efforts.items():
            yield from ((f"the effort added to joint {joint}", expression) for expression in expressions)
        for load in self.loads:
            if _are_three_of(load.components, sm.Expr):
                yield from ((str(load), component) for component in load.components)


def _read_three_values(values: Any, read: Callable[[Any], Any]) -> Any:
    """Return three values as read; unchanged where they are not three, or cannot be read: that is reported later."""
    try:
        x, y, z = map(read, values)
    except (TypeError, ValueError, sm.SympifyError):
        return values
    return (x, y, z)


def _component_faults(load: RecordedLoad) -> Iterator[Fault]:
    """Yield what is wrong with the offset and the components of a load."""
    offset = load.at.offset if isinstance(load.at, NamedFramePoint) else (0.0, 0.0, 0.0)
    if not (_are_three_of(offset, float) and all(map(math.isfinite, offset))):
        yield Fault(f"the offset of {load} is {offset!r}", load.where, "give three numbers, in m")
    if not _are_three_of(load.components, sm.Expr):
        yield Fault(f"{load} is {load.components!r}", load.where, "give three components, numbers or expressions")


def _are_three_of(values: Any, kind: type[Any]) -> bool:
    """Return whether values are three of a kind."""
    return isinstance(values, tuple) and len(values) == 3 and all(isinstance(each, kind) for each in values)
