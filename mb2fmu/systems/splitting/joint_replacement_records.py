"""Records of an opened joint: results, waves of a line, and renumbered frames and points."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import sympy as sm

from mb2fmu.mechanics.mechanism.records.mechanism_records import Frame, KinematicPoint, Mechanism, VectorTerms
from mb2fmu.systems.splitting.needed_frames_and_points import FramesAndPointsOfPart

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class TransmissionLineWave:
    """Wave variable that one end of a line receives from the other.

    Attributes:
        name: Name of the input.
        symbol: Symbol of the input.
        unit: Unit of measure, N or N.m.
        start: Value before the first one arrives.
        expression: Expression that the other end sends, in its own symbols.
        receiver_state: A state of the part that receives it.
        sender_state: A state of the part that sends it.
    """

    name: str
    symbol: sm.Symbol
    unit: str
    start: float
    expression: sm.Expr
    receiver_state: sm.Symbol
    sender_state: sm.Symbol


@dataclass(frozen=True)
class MechanismWithOpenedJoint:
    """A mechanism with an opened joint.

    Attributes:
        mechanism: The mechanism with the flange.
        bushing_loads: Names of the bushing's loads.
        loads_of_both_sides: Names of loads that depend on states of both sides.
        line_waves: Wave variables of the line.
        output_states: Output of one side → a state of the part that computes it.
        joint_powers: Per axis: name, outputs of force and velocity of the inner side, of the outer side.
    """

    mechanism: Mechanism
    bushing_loads: frozenset[str]
    loads_of_both_sides: frozenset[str]
    line_waves: tuple[TransmissionLineWave, ...]
    output_states: dict[str, sm.Symbol]
    joint_powers: tuple[tuple[str, ...], ...]


class RenumberedFramesAndPoints(FramesAndPointsOfPart):
    """Frames and points of a mechanism, numbers raised by one except the ground's; some replaced by the flange's."""

    def __init__(self, mechanism: Mechanism, frames: dict[int, int], points: dict[int, int]) -> None:
        self._mechanism = mechanism
        fixed_numbers = {-1: -1, 0: 0}
        self._new_frame_numbers = {
            **fixed_numbers,
            **{number: number + 1 for number in range(1, len(mechanism.frames))},
            **frames,
        }
        self._new_point_numbers = {
            **fixed_numbers,
            **{number: number + 1 for number in range(1, len(mechanism.points))},
            **points,
        }

    def renumber_frame(self, frame: Frame) -> Frame:
        """Return a frame with the new numbers."""
        return replace(
            frame,
            parent=self._new_frame_numbers[frame.parent],
            reference=self._new_frame_numbers[frame.reference],
            angular_velocity=self.renumber_terms(frame.angular_velocity),
        )

    def renumber_point(self, point: KinematicPoint) -> KinematicPoint:
        """Return a point with the new numbers."""

        def renumber(terms: VectorTerms | None) -> VectorTerms | None:
            return None if terms is None else self.renumber_terms(terms)

        return replace(point, parent=self._new_point_numbers[point.parent], position=renumber(point.position),
                       velocity=renumber(point.velocity))  # fmt: skip


def rotation_by_vector(vector: Floats) -> Floats:
    """Return the rotation by a vector."""
    from scipy.spatial.transform import Rotation

    return np.asarray(Rotation.from_rotvec(vector).as_matrix())


def rotation_about_frame_axis(axis: int, angle: float) -> Floats:
    """Return the rotation about an axis of the frame."""
    return rotation_by_vector(angle * np.eye(3)[axis])
