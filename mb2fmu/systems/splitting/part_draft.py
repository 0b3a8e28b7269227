"""One part of a cut mechanism while it is made: its loads, and the states of other parts that it needs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import sympy as sm

from mb2fmu.errors import Fault
from mb2fmu.mechanics.mechanism.records.mechanism_records import (
    Body,
    ForceLoad,
    Load,
    Mechanism,
    PathwayLoad,
    TorqueActuatorLoad,
    TorqueLoad,
)
from mb2fmu.mechanics.mechanism.records.plain_symbols import coordinate_rates
from mb2fmu.systems.splitting.cut_records import MechanismCut
from mb2fmu.systems.splitting.exchanged_forces import ExchangedForce, find_parts_acted_on, replace_magnitude_by_input
from mb2fmu.systems.splitting.splitting_settings import SplittingSettings

VALUE, RATE, ACCELERATION = range(3)
"""Levels of a state that another part needs."""


class PartDraft:
    """One part: its loads, and the states of others that it needs.

    Args:
        cut: Of the whole.
        number: Of the part.
        settings: Numbers.
        forces: All that are exchanged.
    """

    def __init__(
        self, cut: MechanismCut, number: int, settings: SplittingSettings, forces: Sequence[ExchangedForce]
    ) -> None:
        self.cut, self.number, self.settings = cut, number, settings
        self.m: Mechanism = cut.mechanism
        self.own = frozenset(s for s, k in cut.owners.items() if k == number)
        self.bodies = [b for b, k in zip(self.m.bodies, cut.bodies, strict=True) if k == number]
        self.takes = [f for f in forces if f.taker == number]
        self.gives = [f for f in forces if f.giver == number]
        self.rate = dict(zip(self.m.q, coordinate_rates(self.m.kinematics, self.m.u), strict=True))
        self.dot = dict(zip(self.m.u, self.m.u_dot, strict=True))
        d = self.m.declared
        self.record = dict(zip((*self.m.q, *self.m.u, *self.m.z),
                               (*d.coordinates, *d.speeds, *d.auxiliary_states), strict=True))  # fmt: skip
        self.rows = self._rows_kept()
        self.bushings = [k for k in cut.numbers if cut.kind == "constraint"]
        self.loads = [*self._loads(), *self._bushing_loads(), *self._reaction_loads()]
        self.socket = self._socket()
        self.wanted = self._wanted()

    # --- loads

    def _loads(self) -> Iterator[Load]:
        """Yield loads of the whole that act on this part; forces of other parts are inputs."""
        for number, load in enumerate(self.m.loads):
            on = find_parts_acted_on(self.cut, load)
            if self.number not in on or (self.cut.kind == "joint" and self.number == 0 and len(on) > 1):
                continue  # what crosses a joint acts through it: see ``_socket``
            sizes = [f for f in self.takes if f.load == number]
            yield (
                replace_magnitude_by_input(load, {f.expression or load_magnitude(load): f.symbol for f in sizes})
                if sizes
                else load
            )

    def _reaction_loads(self) -> Iterator[Load]:
        """Yield the force of the outer part at a joint, as loads on the inner one."""
        if self.cut.kind != "joint" or self.number != 0:
            return
        by_name = {f.name.rsplit("_", 1)[1]: f.symbol for f in self.takes}
        for letter in "fm":
            components = tuple(by_name.get(letter + axis, sm.S.Zero) for axis in "xyz")
            if not any(components):
                continue
            vector = ((0, (components[0], components[1], components[2])),)
            name = f"{'force' if letter == 'f' else 'torque'} at {self.cut.name}"
            yield (
                ForceLoad(name, self.cut.numbers[0], vector)
                if letter == "f"
                else TorqueLoad(name, self.cut.frame, vector)
            )

    def _bushing_loads(self) -> Iterator[Load]:
        """Yield spring and damper in place of constraints, where they act on this part."""
        for row in self.bushings:
            force = -self._bushing_force(row)
            for act in self.m.acts[row]:
                moved = self.cut.movement.frames if act.torque else self.cut.movement.points
                if not moved[act.at] & self.own:
                    continue
                vector = tuple((frame, tuple(force * c for c in cs)) for frame, cs in act.vector)
                name = f"bushing of {self._row_name(row)}"
                yield TorqueLoad(name, act.at, vector) if act.torque else ForceLoad(name, act.at, vector)

    def _bushing_force(self, row: int) -> sm.Expr:
        """Return the multiplier of a spring and damper: λ = k φ + d φ'."""
        constraints = self.m.velocity_constraints
        assert constraints is not None
        rate = sum((constraints.jacobian[row, j] * u for j, u in enumerate(self.m.u)), constraints.offset[row, 0])
        stiffness, damping = _bushing_symbols()
        position = self.m.holonomic[row][1] if row < len(self.m.holonomic) else sm.S.Zero
        return stiffness * position + damping * rate

    def _row_name(self, row: int) -> str:
        """Return the name of a velocity constraint."""
        assert self.m.velocity_constraints is not None
        return self.m.velocity_constraints.names[row]

    def _socket(self) -> Body | None:
        """Make a massless body at the joint; loads across the joint attach their inner end to it."""
        if self.cut.kind != "joint" or self.number != 1 or not any(self._crossing()):
            return None
        return Body(
            f"{self.cut.name} socket", self.cut.numbers[0], self.cut.frame, sm.S.Zero, sm.zeros(3).as_immutable()
        )

    def _crossing(self) -> list[Load]:
        """Return the loads that act on several parts."""
        return [load for load in self.m.loads if len(find_parts_acted_on(self.cut, load)) > 1]

    # --- what is wanted of others

    def _wanted(self) -> dict[sm.Symbol, int]:
        """Return states of other parts → whether value, rate or acceleration is needed too."""
        movement = self.cut.movement
        needs: list[tuple[frozenset[sm.Symbol], int]] = [(movement.of_body(body), ACCELERATION) for body in self.bodies]
        for load in self.loads:
            needs += [(movement.of_place(load), RATE), (movement.of_magnitude(load), VALUE)]
        needs += [(movement.of(rate), VALUE) for z, rate in zip(self.m.z, self.m.z_dot, strict=True) if z in self.own]
        needs += [(movement.of(f.expression), VALUE) for f in self.gives if f.expression is not None]
        needs += [(movement.of_place(self.m.loads[f.load]), RATE) for f in self.gives if f.load >= 0]
        found: dict[sm.Symbol, int] = {}
        for states, level in needs:
            for state in states - self.own:
                found[state] = max(found.get(state, VALUE), level)
        for q in [q for q in found if q in self.rate and found[q] > VALUE]:
            for u in self.rate[q].free_symbols & set(self.m.u):
                found[u] = max(found.get(u, VALUE), ACCELERATION if found[q] == ACCELERATION else VALUE)
        order = {state: k for k, state in enumerate((*self.m.q, *self.m.u, *self.m.z))}
        return dict(sorted(found.items(), key=lambda item: order[item[0]]))

    def faults(self) -> Iterator[Fault]:
        """Yield requests that no input can satisfy."""
        unknown = set(self.m.z) & {state for state, level in self.wanted.items() if level > VALUE}
        for q, level in self.wanted.items():
            if q in self.rate and level > VALUE and self.rate[q] not in self.dot:
                what = f"{q}' is not a speed of the model itself, but {self.rate[q]}"
                yield Fault(what, self.name, "cut where coordinates before it have q' = u, or use such speeds")
        for z in unknown:
            yield Fault(f"the auxiliary state {z} moves a body of another part", self.name)
        for load in self._crossing() if self.socket else ():
            inner = [k for k in list_frames_turned(load) if not self.cut.parts_of(self.cut.movement.frames[k]) & {1}]
            if isinstance(load, PathwayLoad) or any(k not in {self.cut.frame, 0} for k in inner):
                what = f"{load.name} acts across the joint on another body than the one that holds it"
                yield Fault(what, self.name, "cut where it does not, or make it act between neighbours")
        for row in self.bushings:
            if not self.m.acts[row]:
                what = f"where the force of {self._row_name(row)} acts is not known"
                yield Fault(what, self.name, "say it by model.constraint(row, acts=[(point, vector), …])")
        dependent = len(self.speeds) - len(self._independent())
        if len(self.rows) not in {0, dependent}:
            yield Fault("its remaining constraints do not fit its dependent speeds", self.name, "cut all of one loop")

    @property
    def name(self) -> str:
        """Name of the component."""
        return self.cut.names[self.number]

    # --- the part's records

    def _rows_kept(self) -> list[int]:
        """Return the constraint rows that this part keeps: on its own speeds, and not cut."""
        constraints = self.m.velocity_constraints
        if constraints is None:
            return []
        gone = set(self.cut.numbers) if self.cut.kind == "constraint" else set()
        kept = []
        for k in range(len(constraints.names)):
            speeds = {u for j, u in enumerate(self.m.u) if constraints.jacobian[k, j] != 0}
            if k not in gone and speeds & self.own:
                kept.append(k)
        return kept

    @property
    def speeds(self) -> list[int]:
        """The columns of its speeds in the whole."""
        return [j for j, u in enumerate(self.m.u) if u in self.own]

    def _independent(self) -> list[int]:
        """Return the part's speeds that are independent in the whole."""
        return [j for j in self.speeds if j in self.m.u_independent]

    @property
    def follows(self) -> bool:
        """Whether motion of others is followed through a filter."""
        return self.cut.way == "filter" and any(level == ACCELERATION for level in self.wanted.values())


def load_magnitude(load: Load) -> sm.Expr:
    """Return the scalar of a pathway or actuator."""
    return (
        load.force
        if isinstance(load, PathwayLoad)
        else load.torque
        if isinstance(load, TorqueActuatorLoad)
        else sm.S.Zero
    )


def list_frames_turned(load: Load) -> tuple[int, ...]:
    """Return the frames that a load turns."""
    from mb2fmu.systems.splitting.moving_states import list_turned_frames

    return list_turned_frames(load)


def _bushing_symbols() -> tuple[sm.Symbol, sm.Symbol]:
    """Return the symbols of the bushing's stiffness and damping."""
    return sm.Symbol("bushing_stiffness"), sm.Symbol("bushing_damping")
