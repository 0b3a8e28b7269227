"""``MechanismPartDraft``: bodies, loads and constraints of one part, and the states of other parts that it needs."""

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
from mb2fmu.mechanics.mechanism.records.symbol_replacement_and_derivatives import coordinate_rates
from mb2fmu.systems.splitting.body_motion_states import list_frames_turned_by_load
from mb2fmu.systems.splitting.exchanged_part_forces import (
    ExchangedForce,
    find_mechanism_parts_under_load,
    replace_magnitude_by_input,
)
from mb2fmu.systems.splitting.mechanism_cut_records import MechanismCut
from mb2fmu.systems.splitting.splitting_settings import SplittingSettings

VALUE, RATE, ACCELERATION = range(3)
"""Levels of a state that another part needs."""


class MechanismPartDraft:
    """One part: its loads, and the states of others that it needs.

    Args:
        cut: The cut of the whole mechanism.
        number: Number of the part.
        settings: Settings of the cut.
        forces: All exchanged forces.
    """

    def __init__(
        self, cut: MechanismCut, number: int, settings: SplittingSettings, forces: Sequence[ExchangedForce]
    ) -> None:
        self.cut, self.number, self.settings = cut, number, settings
        self.mechanism: Mechanism = cut.mechanism
        self.own_states = frozenset(state for state, part in cut.part_of_state.items() if part == number)
        self.bodies = [
            body for body, part in zip(self.mechanism.bodies, cut.part_of_body, strict=True) if part == number
        ]
        self.received_forces = [force for force in forces if force.receiver == number]
        self.sent_forces = [force for force in forces if force.sender == number]
        self.rate_of_coordinate = dict(
            zip(self.mechanism.q, coordinate_rates(self.mechanism.kinematics, self.mechanism.u), strict=True)
        )
        self.acceleration_of_speed = dict(zip(self.mechanism.u, self.mechanism.u_dot, strict=True))
        declared = self.mechanism.declared
        self.declaration_of_state = dict(
            zip(
                (*self.mechanism.q, *self.mechanism.u, *self.mechanism.z),
                (*declared.coordinates, *declared.speeds, *declared.auxiliary_states),
                strict=True,
            )
        )
        self.constraint_rows = self._find_kept_rows()
        self.bushing_rows = [row for row in cut.cut_indices if cut.kind == "constraint"]
        self.loads = [*self._list_loads(), *self._list_bushing_loads(), *self._list_joint_reactions()]
        self.joint_socket = self._make_joint_socket()
        self.needed_states = self._find_needed_states()

    # --- loads

    def _list_loads(self) -> Iterator[Load]:
        """Yield loads of the whole that act on this part; forces of other parts are inputs."""
        for load_index, load in enumerate(self.mechanism.loads):
            parts_acted_on = find_mechanism_parts_under_load(self.cut, load)
            if self.number not in parts_acted_on or (
                self.cut.kind == "joint" and self.number == 0 and len(parts_acted_on) > 1
            ):
                continue  # what crosses a joint acts through it: see ``_socket``
            received_forces = [force for force in self.received_forces if force.load_index == load_index]
            yield (
                replace_magnitude_by_input(
                    load, {force.expression or _find_load_magnitude(load): force.symbol for force in received_forces}
                )
                if received_forces
                else load
            )

    def _list_joint_reactions(self) -> Iterator[Load]:
        """Yield the force of the outer part at a joint, as loads on the inner one."""
        if self.cut.kind != "joint" or self.number != 0:
            return
        symbol_by_axis = {force.name.rsplit("_", 1)[1]: force.symbol for force in self.received_forces}
        for letter in "fm":
            components = tuple(symbol_by_axis.get(letter + axis, sm.S.Zero) for axis in "xyz")
            if not any(components):
                continue
            vector = ((0, (components[0], components[1], components[2])),)
            name = f"{'force' if letter == 'f' else 'torque'} at {self.cut.name}"
            yield (
                ForceLoad(name, self.cut.cut_indices[0], vector)
                if letter == "f"
                else TorqueLoad(name, self.cut.joint_frame, vector)
            )

    def _list_bushing_loads(self) -> Iterator[Load]:
        """Yield spring and damper in place of constraints, where they act on this part."""
        for row in self.bushing_rows:
            force = -self._express_bushing_force(row)
            for application in self.mechanism.force_applications[row]:
                moving_states = (
                    self.cut.dependencies.frame_states if application.is_torque else self.cut.dependencies.point_states
                )
                if not moving_states[application.point_or_frame] & self.own_states:
                    continue
                vector = tuple(
                    (frame, tuple(force * component for component in components))
                    for frame, components in application.vector
                )
                name = f"bushing of {self._row_name(row)}"
                yield (
                    TorqueLoad(name, application.point_or_frame, vector)
                    if application.is_torque
                    else ForceLoad(name, application.point_or_frame, vector)
                )

    def _express_bushing_force(self, row: int) -> sm.Expr:
        """Return the multiplier of a spring and damper: λ = k φ + d φ'."""
        constraints = self.mechanism.velocity_constraints
        assert constraints is not None
        rate = sum(
            (constraints.jacobian[row, column] * speed for column, speed in enumerate(self.mechanism.u)),
            constraints.offset[row, 0],
        )
        stiffness, damping = _make_bushing_symbols()
        position = self.mechanism.holonomic[row][1] if row < len(self.mechanism.holonomic) else sm.S.Zero
        return stiffness * position + damping * rate

    def _row_name(self, row: int) -> str:
        """Return the name of a velocity constraint."""
        assert self.mechanism.velocity_constraints is not None
        return self.mechanism.velocity_constraints.names[row]

    def _make_joint_socket(self) -> Body | None:
        """Make a massless body at the joint; loads across the joint attach their inner end to it."""
        if self.cut.kind != "joint" or self.number != 1 or not any(self._list_crossing_loads()):
            return None
        return Body(
            f"{self.cut.name} socket",
            self.cut.cut_indices[0],
            self.cut.joint_frame,
            sm.S.Zero,
            sm.zeros(3).as_immutable(),
        )

    def _list_crossing_loads(self) -> list[Load]:
        """Return the loads that act on several parts."""
        return [load for load in self.mechanism.loads if len(find_mechanism_parts_under_load(self.cut, load)) > 1]

    # --- states of other parts

    def _find_needed_states(self) -> dict[sm.Symbol, int]:
        """Return state of another part → level that is needed: value, rate or acceleration."""
        dependencies = self.cut.dependencies
        needed_levels: list[tuple[frozenset[sm.Symbol], int]] = [
            (dependencies.body_states(body), ACCELERATION) for body in self.bodies
        ]
        for load in self.loads:
            needed_levels += [(dependencies.location_states(load), RATE), (dependencies.magnitude_states(load), VALUE)]
        needed_levels += [
            (dependencies.states_in(rate), VALUE)
            for auxiliary_state, rate in zip(self.mechanism.z, self.mechanism.z_dot, strict=True)
            if auxiliary_state in self.own_states
        ]
        needed_levels += [
            (dependencies.states_in(force.expression), VALUE)
            for force in self.sent_forces
            if force.expression is not None
        ]
        needed_levels += [
            (dependencies.location_states(self.mechanism.loads[force.load_index]), RATE)
            for force in self.sent_forces
            if force.load_index >= 0
        ]
        needed_states: dict[sm.Symbol, int] = {}
        for states, level in needed_levels:
            for state in states - self.own_states:
                needed_states[state] = max(needed_states.get(state, VALUE), level)
        for coordinate in [
            coordinate
            for coordinate in needed_states
            if coordinate in self.rate_of_coordinate and needed_states[coordinate] > VALUE
        ]:
            for speed in self.rate_of_coordinate[coordinate].free_symbols & set(self.mechanism.u):
                needed_states[speed] = max(
                    needed_states.get(speed, VALUE),
                    ACCELERATION if needed_states[coordinate] == ACCELERATION else VALUE,
                )
        order = {state: index for index, state in enumerate((*self.mechanism.q, *self.mechanism.u, *self.mechanism.z))}
        return dict(sorted(needed_states.items(), key=lambda item: order[item[0]]))

    def find_faults(self) -> Iterator[Fault]:
        """Yield requests that no input can satisfy."""
        undetermined = set(self.mechanism.z) & {state for state, level in self.needed_states.items() if level > VALUE}
        for coordinate, level in self.needed_states.items():
            if (
                coordinate in self.rate_of_coordinate
                and level > VALUE
                and self.rate_of_coordinate[coordinate] not in self.acceleration_of_speed
            ):
                problem = f"{coordinate}' is not a speed of the model itself, but {self.rate_of_coordinate[coordinate]}"
                yield Fault(problem, self.name, "cut where coordinates before it have q' = u, or use such speeds")
        for auxiliary_state in undetermined:
            yield Fault(f"the auxiliary state {auxiliary_state} moves a body of another part", self.name)
        for load in self._list_crossing_loads() if self.joint_socket else ():
            frames_before_joint = [
                frame
                for frame in list_frames_turned_by_load(load)
                if not self.cut.parts_of_states(self.cut.dependencies.frame_states[frame]) & {1}
            ]
            if isinstance(load, PathwayLoad) or any(
                frame not in {self.cut.joint_frame, 0} for frame in frames_before_joint
            ):
                problem = f"{load.name} acts across the joint on another body than the one that holds it"
                yield Fault(problem, self.name, "cut where it does not, or make it act between neighbours")
        for row in self.bushing_rows:
            if not self.mechanism.force_applications[row]:
                problem = f"where the force of {self._row_name(row)} acts is not known"
                yield Fault(problem, self.name, self.mechanism.form_acts_remedy(self._row_name(row)))
        dependent = len(self.speed_indices) - len(self._list_independent_speeds())
        if len(self.constraint_rows) not in {0, dependent}:
            yield Fault("its remaining constraints do not fit its dependent speeds", self.name, "cut all of one loop")

    @property
    def name(self) -> str:
        """Name of the component."""
        return self.cut.part_names[self.number]

    # --- the part's records

    def _find_kept_rows(self) -> list[int]:
        """Return the constraint rows that this part keeps: on its own speeds, and not cut."""
        constraints = self.mechanism.velocity_constraints
        if constraints is None:
            return []
        cut_rows = set(self.cut.cut_indices) if self.cut.kind == "constraint" else set()
        kept_rows = []
        for row in range(len(constraints.names)):
            speeds = {speed for column, speed in enumerate(self.mechanism.u) if constraints.jacobian[row, column] != 0}
            if row not in cut_rows and speeds & self.own_states:
                kept_rows.append(row)
        return kept_rows

    @property
    def speed_indices(self) -> list[int]:
        """Columns of the part's speeds in the whole mechanism."""
        return [column for column, speed in enumerate(self.mechanism.u) if speed in self.own_states]

    def _list_independent_speeds(self) -> list[int]:
        """Return the part's speeds that are independent in the whole."""
        return [column for column in self.speed_indices if column in self.mechanism.u_independent]

    @property
    def filters_motion(self) -> bool:
        """Whether the motion of other parts passes through a filter."""
        return self.cut.method == "filter" and any(level == ACCELERATION for level in self.needed_states.values())


def _find_load_magnitude(load: Load) -> sm.Expr:
    """Return the scalar of a pathway or actuator."""
    return (
        load.force
        if isinstance(load, PathwayLoad)
        else load.torque
        if isinstance(load, TorqueActuatorLoad)
        else sm.S.Zero
    )


def _make_bushing_symbols() -> tuple[sm.Symbol, sm.Symbol]:
    """Return the symbols of the bushing's stiffness and damping."""
    return sm.Symbol("bushing_stiffness"), sm.Symbol("bushing_damping")
