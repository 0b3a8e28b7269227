"""``MechanismCut``: a mechanism, the places where it is cut, and the part of each state and body."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

import sympy as sm

from mb2fmu.mechanics.mechanism.records.mechanism_records import Mechanism
from mb2fmu.systems.splitting.body_motion_states import MechanismStateDependencies, Symbols
from mb2fmu.systems.splitting.joint_replacement_records import TransmissionLineWave

CutMethod = Literal["force", "motion", "filter", "bushing", "line"]


CutKind = Literal["joint", "load", "constraint"]


@dataclass(frozen=True)
class MechanismCut:
    """A mechanism and its cuts.

    Attributes:
        mechanism: The whole mechanism.
        dependencies: States on which its frames, points, bodies and loads depend.
        kind: Kind of element that is cut.
        method: ``force``: one side takes motion and gives force; ``motion``: both sides take motion; ``filter``: as
            ``force``, the motion through a filter that makes its own accelerations; ``bushing``: a spring and damper;
            ``line``: waves with a delay. A joint that is cut by the last two is opened first: what is cut then are the
            loads that hold it (kind ``load``).
        name: Name of the cut, for terminals.
        cut_indices: Numbers of the cut loads or constraint rows; for a joint, of its point on the inner side.
        part_of_state: State → number of its part.
        part_of_body: Number of the part of each body.
        joint_frame: For a joint, the frame of the inner body in which its point is fixed.
        flange_states: States of flanges, which the whole mechanism does not have.
        line_waves: Wave variables of transmission lines.
        output_states: Output of an opened joint → a state of the part that computes it.
        joint_powers: Per opened joint: name, outputs of force and velocity of the inner side, of the outer side.
    """

    mechanism: Mechanism
    dependencies: MechanismStateDependencies
    kind: CutKind
    method: CutMethod
    name: str
    cut_indices: tuple[int, ...]
    part_of_state: dict[sm.Symbol, int]
    part_of_body: tuple[int, ...]
    joint_frame: int = -1
    flange_states: Symbols = frozenset()
    line_waves: tuple[TransmissionLineWave, ...] = ()
    output_states: Mapping[str, sm.Symbol] = field(default_factory=dict)
    joint_powers: tuple[tuple[str, ...], ...] = ()

    @property
    def part_names(self) -> tuple[str, ...]:
        """Names of the parts."""
        if self.kind == "joint":
            return ("inner", "outer")
        return tuple(f"part{index + 1}" for index in range(len(set(self.part_of_body))))

    def parts_of_states(self, states: Iterable[sm.Symbol]) -> frozenset[int]:
        """Return the numbers of the parts that states belong to."""
        return frozenset(self.part_of_state[state] for state in states)
