"""``RecordedMechanics``: mechanics that are plain records from the start, such as a robot file's.

Its frames and points are names, not SymPy objects; whoever made it can read it (``mb2fmu.robots``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import sympy as sm


@dataclass(frozen=True, slots=True)
class RecordedFrame:
    """A frame by its name; used for orientations, angular velocities and components."""

    name: str


@dataclass(frozen=True, slots=True)
class RecordedPoint:
    """A point by the frame it is fixed in and its ``offset`` from that frame's origin, in m, in its axes."""

    frame: str
    offset: tuple[float, float, float] = (0.0, 0.0, 0.0)

    @property
    def name(self) -> str:
        """A name for messages."""
        return f"{self.frame}{list(self.offset) if any(self.offset) else ''}"


@dataclass(frozen=True, slots=True)
class RecordedJoint:
    """A joint by its name."""

    name: str


@dataclass(frozen=True, slots=True)
class RecordedBody:
    """A body by its name."""

    name: str


@dataclass(eq=False, kw_only=True)
class RecordedMechanics:
    """Protocol: what every kind of recorded mechanics offers to a ``Model``.

    Attributes:
        kind: In words, such as ``a URDF file``.
        coordinates: Functions of time.
        speeds: Functions of time.
        ground: Name of the inertial frame.
        frames: Names of all frames.
        efforts: Joint → expressions of efforts that were added to it, N·m or N.
        notes: What was left out or assumed when it was read, one sentence each.
    """

    kind: str
    coordinates: tuple[sm.Expr, ...]
    speeds: tuple[sm.Expr, ...]
    ground: str
    frames: tuple[str, ...]
    efforts: dict[str, list[sm.Expr]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    position: Mapping[str, sm.Expr] = field(default_factory=dict)
    """Joint → its coordinate q(t); joints with one coordinate only."""
    speed: Mapping[str, sm.Expr] = field(default_factory=dict)
    """Joint → its speed u(t)."""

    def point(self, frame: str, offset: tuple[float, float, float] = (0.0, 0.0, 0.0)) -> RecordedPoint:
        """Return a point fixed in a frame, for outputs; ``offset`` in m along the frame's axes.

        Raises:
            KeyError: If there is no such frame.
        """
        x, y, z = map(float, offset)
        return RecordedPoint(self.frame(frame).name, (x, y, z))

    def frame(self, name: str) -> RecordedFrame:
        """Return a frame, for outputs.

        Raises:
            KeyError: If there is no such frame.
        """
        if name not in self.frames:
            raise KeyError(f"there is no frame {name!r}; there are {', '.join(self.frames)}")
        return RecordedFrame(name)

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

    def added(self) -> Iterator[tuple[str, sm.Expr]]:
        """Yield (place in words, expression) of all efforts that were added."""
        for joint, expressions in self.efforts.items():
            yield from ((f"the effort added to joint {joint}", expression) for expression in expressions)
