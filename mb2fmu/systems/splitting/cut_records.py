"""Records of a mechanism that is cut into parts, and of the parts while they are made."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

import sympy as sm

from mb2fmu.mechanics.mechanism.records.mechanism_records import Mechanism
from mb2fmu.systems.splitting.joint_cut_records import LineWave
from mb2fmu.systems.splitting.moving_states import MovingStates, Symbols

Way = Literal["force", "motion", "filter", "bushing", "line"]


Kind = Literal["joint", "load", "constraint"]


@dataclass(frozen=True)
class MechanismCut:
    """A mechanism and its cuts.

    Attributes:
        mechanism: The whole.
        movement: Of it.
        kind: What is cut.
        way: ``force``: one side takes motion and gives force; ``motion``: both sides take motion; ``filter``: as
            ``force``, the motion through a filter that makes its own accelerations; ``bushing``: a spring and damper;
            ``line``: waves with a delay. A joint that is cut by the last two is opened first: what is cut then are the
            loads that hold it (kind ``load``).
        name: Of the cut, for terminals.
        numbers: Of the loads, or of the constraints' rows; of the joint's point on the inner side.
        owners: State → number of its part.
        bodies: Number of the part of each body.
        frame: Of a joint: the frame of the inner body in which its point is fixed.
        added: States of flanges, which the whole does not have.
        waves: Of lines.
        told: Output of an opened joint → a state of the part that tells it.
        powers: Of opened joints: name, output of the inner force, of its velocity, the same of the outer side.
    """

    mechanism: Mechanism
    movement: MovingStates
    kind: Kind
    way: Way
    name: str
    numbers: tuple[int, ...]
    owners: dict[sm.Symbol, int]
    bodies: tuple[int, ...]
    frame: int = -1
    added: Symbols = frozenset()
    waves: tuple[LineWave, ...] = ()
    told: Mapping[str, sm.Symbol] = field(default_factory=dict)
    powers: tuple[tuple[str, ...], ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the parts."""
        if self.kind == "joint":
            return ("inner", "outer")
        return tuple(f"part{k + 1}" for k in range(len(set(self.bodies))))

    def parts_of(self, states: Iterable[sm.Symbol]) -> frozenset[int]:
        """Return the numbers of the parts that states belong to."""
        return frozenset(self.owners[each] for each in states)
