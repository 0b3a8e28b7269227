"""``cut_mechanism``: assign states and bodies to parts, by the names of joints, loads or constraints to cut."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from dataclasses import replace

import sympy as sm

from mb2fmu.errors import Fault
from mb2fmu.mechanics.mechanism.records.mechanism_records import Mechanism
from mb2fmu.systems.splitting.body_motion_states import MechanismStateDependencies, Symbols
from mb2fmu.systems.splitting.joint_replacement import JointCompliance, replace_joint_by_coupling
from mb2fmu.systems.splitting.joint_replacement_records import TransmissionLineWave
from mb2fmu.systems.splitting.mechanism_cut_records import CutKind, CutMethod, MechanismCut
from mb2fmu.systems.splitting.splitting_settings import SplittingSettings
from mb2fmu.systems.wired_system import CouplingError

CUT_METHODS: dict[CutKind, tuple[CutMethod, ...]] = {
    "joint": ("force", "filter", "bushing", "line"),
    "load": ("motion", "force"),
    "constraint": ("bushing",),
}
"""Kind of element → methods by which it can be cut, the default first."""
_MAX_LISTED_NAMES = 20
"""Most names that are offered for one that is unknown."""
_LOOP_CUT_REMEDY = (
    "a chain that is closed to a loop has no cut: measure the bodies of one side from the ground, by coordinates of "
    "their own, hold the joints between the sides by constraints, and cut at all of these by bushing"
)


def cut_mechanism(
    mechanism: Mechanism,
    cut_names: Sequence[str],
    method: CutMethod | None = None,
    settings: SplittingSettings | None = None,
) -> MechanismCut:
    """Find the parts of a mechanism.

    Args:
        mechanism: A mechanism with bodies, without events.
        cut_names: Names: one joint or point (several by ``bushing`` or ``line``), or loads, or constraints.
        method: See :class:`MechanismCut`; None: the default of the kind of element.
        settings: Settings of bushings and lines at joints.

    Raises:
        CouplingError: If a name is unknown, or the mechanism stays in one piece.
    """
    headline = f"{mechanism.declared.name} cannot be cut:"
    if faults := [*_find_unsuitable_features(mechanism), *_find_unknown_names(mechanism, cut_names)]:
        raise CouplingError(headline, faults)
    resolved_names = [_resolve_name(mechanism, name) for name in cut_names]
    kinds = {kind for kind, _ in resolved_names}
    kind = resolved_names[0][0]
    opens_joints = kind == "joint" and method in {"bushing", "line"}
    if len(kinds) > 1 or (kind == "joint" and len(cut_names) > 1 and not opens_joints):
        problem = (
            f"{', '.join(cut_names)} are not of one kind" if len(kinds) > 1 else f"{len(cut_names)} joints at once"
        )
        raise CouplingError(
            headline,
            [Fault(problem, "--at", "name one joint, or loads, or constraints; several joints by bushing or line")],
        )
    chosen_method = method or CUT_METHODS[kind][0]
    if chosen_method not in CUT_METHODS[kind]:
        fault = Fault(f"a {kind} is not cut by {chosen_method}", "--by", f"take {' or '.join(CUT_METHODS[kind])}")
        raise CouplingError(headline, [fault])
    if opens_joints:
        return _cut_opened_joints(
            mechanism, cut_names, "line" if method == "line" else "bushing", settings or SplittingSettings(), headline
        )
    cut_indices = tuple(number for _, number in resolved_names)
    if kind == "joint":
        return _cut_at_joint(mechanism, cut_indices[0], cut_names[0], chosen_method, headline)
    return _cut_at_connections(mechanism, kind, cut_indices, cut_names, chosen_method, headline)


def select_joints_to_cut(mechanism: Mechanism, cut_names: Sequence[str]) -> tuple[str, ...]:
    """Return the names that are joints or points; :func:`cut_mechanism` reports unknown ones."""
    cuttable_names = _list_cuttable_names(mechanism)
    return tuple(name for name in cut_names if name in cuttable_names and cuttable_names[name][0] == "joint")


def choose_mechanism_cut_method(mechanism: Mechanism, cut_names: Sequence[str]) -> CutMethod | None:
    """Return the default method for the joint, constraint or load of the first name; None if it is unknown."""
    cuttable_names = _list_cuttable_names(mechanism)
    return CUT_METHODS[cuttable_names[cut_names[0]][0]][0] if cut_names and cut_names[0] in cuttable_names else None


def _cut_opened_joints(
    mechanism: Mechanism, cut_names: Sequence[str], method: JointCompliance, settings: SplittingSettings, headline: str
) -> MechanismCut:
    """Return the mechanism with opened joints, cut at the loads that replace them."""
    line_waves: list[TransmissionLineWave] = []
    joint_powers: list[tuple[str, ...]] = []
    output_states: dict[str, sm.Symbol] = {}
    cut_loads: set[str] = set()
    earlier_states = {*mechanism.q, *mechanism.u}
    for name in cut_names:
        point = _resolve_name(mechanism, name)[1]
        bodies = _cut_at_joint(mechanism, point, name, "force", headline).part_of_body
        opened_joint = replace_joint_by_coupling(mechanism, name, bodies, point, method, settings)
        mechanism = opened_joint.mechanism
        line_waves, joint_powers, output_states = (
            [*line_waves, *opened_joint.line_waves],
            [*joint_powers, *opened_joint.joint_powers],
            output_states | opened_joint.output_states,
        )
        cut_loads |= opened_joint.bushing_loads | opened_joint.loads_of_both_sides
    load_indices = [index for index, load in enumerate(mechanism.loads) if load.name in cut_loads]
    cut = _cut_at_connections(mechanism, "load", load_indices, cut_names, "motion", headline)
    flange_states = frozenset({*mechanism.q, *mechanism.u} - earlier_states)
    return replace(
        cut,
        method=method,
        flange_states=flange_states,
        line_waves=tuple(line_waves),
        output_states=output_states,
        joint_powers=tuple(joint_powers),
    )


def _find_unsuitable_features(mechanism: Mechanism) -> Iterator[Fault]:
    """Yield the reasons why a mechanism as a whole cannot be cut."""
    remedy = "hand over a System, a KanesMethod or Parts"
    if not mechanism.bodies:
        yield Fault("it has no bodies", remedy=remedy)
    if mechanism.lagrangian is not None:
        yield Fault("a Lagrangian does not say which body has which energy", remedy=remedy)
    if mechanism.has_event_sources:
        yield Fault(
            "it has events of its own, or impacts, which are not assigned to parts", remedy="cut the model without them"
        )
    if mechanism.motion_vectors:
        problem = "its loads or outputs name positions and velocities of points, which are not assigned to parts"
        yield Fault(problem, remedy="cut the model without position_of and velocity_of")
    if mechanism.constraint_forces or mechanism.u_auxiliary:
        yield Fault("it has auxiliary speeds", remedy="leave them out; request reactions by output_reaction")


def _list_cuttable_names(mechanism: Mechanism) -> dict[str, tuple[CutKind, int]]:
    """Return name → kind and number of each cuttable element; joints take precedence over points of the same name."""
    names: dict[str, tuple[CutKind, int]] = {
        point.name: ("joint", index) for index, point in enumerate(mechanism.points) if point.parent >= 0
    }
    for index, load in enumerate(mechanism.loads):
        names[load.name] = names[load.name.split(" at ")[0]] = ("load", index)
    if mechanism.velocity_constraints:
        names |= {name: ("constraint", index) for index, name in enumerate(mechanism.velocity_constraints.names)}
    return names | {joint.name: ("joint", joint.point) for joint in mechanism.joints}


def _find_unknown_names(mechanism: Mechanism, cut_names: Sequence[str]) -> Iterator[Fault]:
    """Yield a fault for each name that the mechanism does not have, with those that it has, similar ones first."""
    cuttable_names, joints_between_bodies = _list_cuttable_names(mechanism), _list_joints_between_bodies(mechanism)
    if not cut_names:
        yield Fault("nothing is named", "--at", "name a joint, a point, loads or constraints")
    for name in cut_names:
        if name not in cuttable_names:
            offered_names = [
                cuttable_name
                for cuttable_name, (kind, _) in cuttable_names.items()
                if kind != "joint" or cuttable_name in joints_between_bodies
            ]
            offered_names = [
                cuttable_name
                for cuttable_name in offered_names
                if cuttable_names[cuttable_name][0] != "load"
                or cuttable_name == mechanism.loads[cuttable_names[cuttable_name][1]].name
            ]
            offered_names = list(
                dict.fromkeys((*difflib.get_close_matches(name, offered_names, n=4, cutoff=0.3), *offered_names))
            )
            remainder = (
                f" and {len(offered_names) - _MAX_LISTED_NAMES} more" if len(offered_names) > _MAX_LISTED_NAMES else ""
            )
            yield Fault(
                f"there is no {name!r}", "--at", f"there are {', '.join(offered_names[:_MAX_LISTED_NAMES])}{remainder}"
            )


def _resolve_name(mechanism: Mechanism, name: str) -> tuple[CutKind, int]:
    """Return kind and number of a named element."""
    return _list_cuttable_names(mechanism)[name]


def _cut_at_joint(mechanism: Mechanism, point: int, name: str, method: CutMethod, headline: str) -> MechanismCut:
    """Return the cut at a joint: the outer part has all bodies that are located relative to the joint's point."""
    dependencies = MechanismStateDependencies(mechanism)
    is_beyond = _find_bodies_beyond(mechanism, dependencies, point)
    states_and_sides = [(dependencies.body_states(body), is_beyond_joint)
                        for body, is_beyond_joint in zip(mechanism.bodies, is_beyond, strict=True)]  # fmt: skip
    inner_states = frozenset().union(*(states for states, is_beyond_joint in states_and_sides if not is_beyond_joint))
    outer_states = (
        frozenset().union(*(states for states, is_beyond_joint in states_and_sides if is_beyond_joint)) - inner_states
    )
    if not any(is_beyond) or all(is_beyond) or not inner_states:
        problem = "no body hangs on it" if not any(is_beyond) else "all bodies hang on it, none is before it"
        names = _list_joints_between_bodies(mechanism)
        joint_proposal = f", at {' or '.join(names)}" if names else "; it has no such joint"
        raise CouplingError(headline, [Fault(f"{problem}: {name}", "--at", f"cut between two bodies{joint_proposal}")])
    if not outer_states:
        problem = "the bodies that hang on it have no states of their own: others before it move with the same"
        raise CouplingError(headline, [Fault(problem, name, "cut elsewhere")])
    while dependencies.point_states[point] & outer_states:
        point = mechanism.points[point].parent
    part_of_state = dict.fromkeys(dependencies.states, 0) | _extend_outer_states(mechanism, dependencies, outer_states)
    cut = MechanismCut(
        mechanism, dependencies, "joint", method, name, (point,), part_of_state, tuple(map(int, is_beyond)),
        _find_point_frame(mechanism, dependencies, point),
    )  # fmt: skip
    if constraint_names := [
        row for row, states in _list_constraint_states(mechanism, dependencies) if len(cut.parts_of_states(states)) > 1
    ]:
        problem = f"{', '.join(constraint_names)} {'hold' if len(constraint_names) > 1 else 'holds'} both sides"
        is_chain = len(_find_pieces(mechanism, dependencies, [])) < 2
        remedy = _LOOP_CUT_REMEDY if is_chain else "cut at all constraints and loads between the sides, by bushing"
        raise CouplingError(headline, [Fault(problem, name, remedy)])
    return cut


def _find_bodies_beyond(mechanism: Mechanism, dependencies: MechanismStateDependencies, point: int) -> list[bool]:
    """Return of each body whether it is located from a point."""
    return [point in list(dependencies.ancestors(body.masscenter))[1:] for body in mechanism.bodies]


def _list_joints_between_bodies(mechanism: Mechanism) -> list[str]:
    """Return the names of joints and points that have bodies on both sides."""
    dependencies = MechanismStateDependencies(mechanism)
    joints = [(name, number) for name, (kind, number) in _list_cuttable_names(mechanism).items() if kind == "joint"]
    return [name for name, point in joints if len(set(_find_bodies_beyond(mechanism, dependencies, point))) > 1]


def _extend_outer_states(
    mechanism: Mechanism, dependencies: MechanismStateDependencies, outer_states: Symbols
) -> dict[sm.Symbol, int]:
    """Return the outer states, with those tied to them by q' = K u, and auxiliary states that move only with them."""
    extended_states = set(outer_states)
    for coordinate_group in dependencies.coordinate_groups:
        if coordinate_group & extended_states:
            extended_states |= coordinate_group
    for auxiliary_state, rate in zip(mechanism.z, mechanism.z_dot, strict=True):
        states = dependencies.states_in(rate) - {auxiliary_state}
        if states & extended_states:
            extended_states.add(auxiliary_state)
    return dict.fromkeys(extended_states, 1)


def _find_point_frame(mechanism: Mechanism, dependencies: MechanismStateDependencies, point: int) -> int:
    """Return the frame in which a point's place is written nearest to it; N if there is none."""
    for ancestor in dependencies.ancestors(point):
        for frame, components in mechanism.points[ancestor].position or ():
            if any(components):
                return frame
    return 0


def _list_constraint_states(
    mechanism: Mechanism, dependencies: MechanismStateDependencies
) -> Iterator[tuple[str, Symbols]]:
    """Yield (name, states) of each constraint."""
    constraints = mechanism.velocity_constraints
    if constraints is None:
        return
    for row, name in enumerate(constraints.names):
        speeds = [speed for column, speed in enumerate(mechanism.u) if constraints.jacobian[row, column] != 0]
        position = mechanism.holonomic[row][1] if row < len(mechanism.holonomic) else sm.S.Zero
        yield (
            name,
            dependencies.states_in(position, constraints.offset[row, 0], *constraints.jacobian[row, :])
            | frozenset(speeds),
        )


def _cut_at_connections(
    mechanism: Mechanism,
    kind: CutKind,
    cut_indices: Sequence[int],
    cut_names: Sequence[str],
    method: CutMethod,
    headline: str,
) -> MechanismCut:
    """Return the parts that are still connected when some loads or constraints are left out."""
    dependencies = MechanismStateDependencies(mechanism)
    connections = list(_list_connections(mechanism, dependencies))
    remaining_connections = [
        states
        for connection_kind, number, states in connections
        if (connection_kind, number) not in {(kind, cut_index) for cut_index in cut_indices}
    ]
    pieces = _find_pieces(mechanism, dependencies, remaining_connections)
    if len(pieces) < 2:
        raise CouplingError(headline, [_one_piece_fault(mechanism, dependencies, cut_names)])
    part_of_state = {state: part for part, group in enumerate(pieces) for state in group}
    part_of_state |= dict.fromkeys(dependencies.states - set(part_of_state), 0)
    part_of_body = tuple(
        min((part_of_state[body_state] for body_state in dependencies.body_states(body)), default=0)
        for body in mechanism.bodies
    )
    return MechanismCut(
        mechanism, dependencies, kind, method, "_".join(cut_names), tuple(cut_indices), part_of_state, part_of_body
    )


def _find_pieces(
    mechanism: Mechanism, dependencies: MechanismStateDependencies, connections: Sequence[Symbols]
) -> list[Symbols]:
    """Return the states of each piece that has bodies, if only these connections remain."""
    groups = _merge_connected_states(
        (*mechanism.q, *mechanism.u, *mechanism.z), [*_list_inseparable_states(mechanism, dependencies), *connections]
    )
    return [group for group in groups if any(dependencies.body_states(body) & group for body in mechanism.bodies)]


def _one_piece_fault(mechanism: Mechanism, dependencies: MechanismStateDependencies, cut_names: Sequence[str]) -> Fault:
    """Return the fault of a cut that separates nothing; its remedy names connections that would, or joints."""
    free_pieces = _find_pieces(mechanism, dependencies, [])
    problem = f"without {', '.join(cut_names)} it is still one piece"
    if len(free_pieces) < 2:
        problem += ": its bodies are a chain, in which each moves with the coordinates of the one before it"
        has_loops = any(True for _ in _list_constraint_states(mechanism, dependencies))
        remedy = (
            f"cut the chain at {' or '.join(names)}"
            if (names := _list_joints_between_bodies(mechanism))
            else "it has nothing to cut"
        )
        return Fault(problem, "--at", _LOOP_CUT_REMEDY if has_loops else remedy)
    separating_names = [
        mechanism.loads[number].name
        if kind == "load"
        else list(_list_constraint_states(mechanism, dependencies))[number][0]
        for kind, number, states in _list_connections(mechanism, dependencies)
        if sum(bool(states & group) for group in free_pieces) > 1
    ]
    return Fault(problem, "--at", f"ties between bodies are {', '.join(separating_names)}; name all between two sides")


def _list_inseparable_states(mechanism: Mechanism, dependencies: MechanismStateDependencies) -> Iterator[Symbols]:
    """Yield states that always stay together: those of a body, of q' = K u, of z'."""
    yield from (dependencies.body_states(body) for body in mechanism.bodies)
    yield from dependencies.coordinate_groups
    yield from (
        dependencies.states_in(rate) | {auxiliary_state}
        for auxiliary_state, rate in zip(mechanism.z, mechanism.z_dot, strict=True)
    )


def _list_connections(
    mechanism: Mechanism, dependencies: MechanismStateDependencies
) -> Iterator[tuple[CutKind, int, Symbols]]:
    """Yield (kind, number, states) of the cuttable connections between bodies."""
    for number, load in enumerate(mechanism.loads):
        yield "load", number, dependencies.location_states(load) | dependencies.magnitude_states(load)
    for number, (_, states) in enumerate(_list_constraint_states(mechanism, dependencies)):
        yield "constraint", number, states


def _merge_connected_states(states: Sequence[sm.Symbol], connections: Sequence[Symbols]) -> list[Symbols]:
    """Return groups of states that are connected directly or through others, in order."""
    groups: list[set[sm.Symbol]] = [{state} for state in states]
    for connected_states in connections:
        joined_groups = [group for group in groups if group & connected_states]
        if len(joined_groups) > 1:
            for other in joined_groups[1:]:
                joined_groups[0] |= other
                groups.remove(other)
    return [frozenset(group) for group in groups]
