"""Find the part of each state and body from the names of joints, points, loads or constraints to cut."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from dataclasses import replace

import sympy as sm

from mb2fmu.errors import Fault
from mb2fmu.mechanics.mechanism.records.mechanism_records import Mechanism
from mb2fmu.systems.splitting.cut_records import Kind, MechanismCut, Way
from mb2fmu.systems.splitting.joint_cut import Compliance, open_joint
from mb2fmu.systems.splitting.joint_cut_records import LineWave
from mb2fmu.systems.splitting.moving_states import MovingStates, Symbols
from mb2fmu.systems.splitting.splitting_settings import SplittingSettings
from mb2fmu.systems.wired_system import CouplingError

WAYS: dict[Kind, tuple[Way, ...]] = {
    "joint": ("force", "filter", "bushing", "line"),
    "load": ("motion", "force"),
    "constraint": ("bushing",),
}
"""Kind of what is cut → ways in which it can be, the usual one first."""
_LISTED = 20
"""Most names that are offered for one that is unknown."""
_APART = (
    "a chain that is closed to a loop has no cut: measure the bodies of one side from the ground, by coordinates of "
    "their own, hold the joints between the sides by constraints, and cut at all of these by bushing"
)


def cut_mechanism(
    mechanism: Mechanism, at: Sequence[str], way: Way | None = None, settings: SplittingSettings | None = None
) -> MechanismCut:
    """Find the parts of a mechanism.

    Args:
        mechanism: With bodies, without events.
        at: Names: one joint or point (several by ``bushing`` or ``line``), or loads, or constraints.
        way: See :class:`MechanismCut`; None: the usual one of what is cut.
        settings: Of bushings and lines at joints.

    Raises:
        CouplingError: If a name is unknown, or the mechanism stays in one piece.
    """
    headline = f"{mechanism.declared.name} cannot be cut:"
    if faults := [*_unfit(mechanism), *_unknown(mechanism, at)]:
        raise CouplingError(headline, faults)
    found = [_resolved(mechanism, name) for name in at]
    kinds = {kind for kind, _ in found}
    kind = found[0][0]
    opens = kind == "joint" and way in {"bushing", "line"}
    if len(kinds) > 1 or (kind == "joint" and len(at) > 1 and not opens):
        what = f"{', '.join(at)} are not of one kind" if len(kinds) > 1 else f"{len(at)} joints at once"
        raise CouplingError(
            headline,
            [Fault(what, "--at", "name one joint, or loads, or constraints; several joints by bushing or line")],
        )
    chosen = way or WAYS[kind][0]
    if chosen not in WAYS[kind]:
        fault = Fault(f"a {kind} is not cut by {chosen}", "--by", f"take {' or '.join(WAYS[kind])}")
        raise CouplingError(headline, [fault])
    if opens:
        return _opened(mechanism, at, "line" if way == "line" else "bushing", settings or SplittingSettings(), headline)
    numbers = tuple(number for _, number in found)
    if kind == "joint":
        return _at_joint(mechanism, numbers[0], at[0], chosen, headline)
    return _at_ties(mechanism, kind, numbers, at, chosen, headline)


def find_joint_names(mechanism: Mechanism, at: Sequence[str]) -> tuple[str, ...]:
    """Return the names that are joints or points; :func:`cut_mechanism` reports unknown ones."""
    known = _names(mechanism)
    return tuple(name for name in at if name in known and known[name][0] == "joint")


def choose_cut_method(mechanism: Mechanism, at: Sequence[str]) -> Way | None:
    """Return the usual way to cut the joint, row or load of the first name; None if nothing has this name."""
    known = _names(mechanism)
    return WAYS[known[at[0]][0]][0] if at and at[0] in known else None


def _opened(
    m: Mechanism, at: Sequence[str], way: Compliance, settings: SplittingSettings, headline: str
) -> MechanismCut:
    """Return the mechanism with joints opened, and the loads that hold them cut."""
    waves: list[LineWave] = []
    powers: list[tuple[str, ...]] = []
    told: dict[str, sm.Symbol] = {}
    holding: set[str] = set()
    before = {*m.q, *m.u}
    for name in at:
        point = _resolved(m, name)[1]
        bodies = _at_joint(m, point, name, "force", headline).bodies
        done = open_joint(m, name, bodies, point, way, settings)
        m = done.mechanism
        waves, powers, told = [*waves, *done.waves], [*powers, *done.powers], told | done.told
        holding |= done.loads | done.between
    numbers = [k for k, load in enumerate(m.loads) if load.name in holding]
    made = _at_ties(m, "load", numbers, at, "motion", headline)
    added = frozenset({*m.q, *m.u} - before)
    return replace(made, way=way, added=added, waves=tuple(waves), told=told, powers=tuple(powers))


def _unfit(m: Mechanism) -> Iterator[Fault]:
    """Yield the reasons why a mechanism as a whole cannot be cut."""
    remedy = "hand over a System, a KanesMethod or Parts"
    if not m.bodies:
        yield Fault("it has no bodies", remedy=remedy)
    if m.lagrangian is not None:
        yield Fault("a Lagrangian does not say which body has which energy", remedy=remedy)
    if m.has_event_sources:
        yield Fault(
            "it has events of its own, or impacts, which are not assigned to parts", remedy="cut the model without them"
        )
    if m.sensed:
        what = "its loads or outputs name positions and velocities of points, which are not assigned to parts"
        yield Fault(what, remedy="cut the model without position_of and velocity_of")
    if m.constraint_forces or m.u_auxiliary:
        yield Fault("it has auxiliary speeds", remedy="leave them out; ask for reactions by output_reaction")


def _names(m: Mechanism) -> dict[str, tuple[Kind, int]]:
    """Return all names → kind and number; joints come before points of the same name."""
    names: dict[str, tuple[Kind, int]] = {p.name: ("joint", k) for k, p in enumerate(m.points) if p.parent >= 0}
    for k, load in enumerate(m.loads):
        names[load.name] = names[load.name.split(" at ")[0]] = ("load", k)
    if m.velocity_constraints:
        names |= {name: ("constraint", k) for k, name in enumerate(m.velocity_constraints.names)}
    return names | {joint.name: ("joint", joint.point) for joint in m.joints}


def _unknown(m: Mechanism, at: Sequence[str]) -> Iterator[Fault]:
    """Yield a fault for each name that the mechanism does not have, with those that it has, similar ones first."""
    known, between = _names(m), _between(m)
    if not at:
        yield Fault("nothing is named", "--at", "name a joint, a point, loads or constraints")
    for name in at:
        if name not in known:
            listed = [each for each, (kind, _) in known.items() if kind != "joint" or each in between]
            listed = [each for each in listed if known[each][0] != "load" or each == m.loads[known[each][1]].name]
            listed = list(dict.fromkeys((*difflib.get_close_matches(name, listed, n=4, cutoff=0.3), *listed)))
            more = f" and {len(listed) - _LISTED} more" if len(listed) > _LISTED else ""
            yield Fault(f"there is no {name!r}", "--at", f"there are {', '.join(listed[:_LISTED])}{more}")


def _resolved(m: Mechanism, name: str) -> tuple[Kind, int]:
    """Return what a name stands for: kind and number."""
    return _names(m)[name]


def _at_joint(m: Mechanism, point: int, name: str, way: Way, headline: str) -> MechanismCut:
    """Assign to the outer part all that is located from the joint's point."""
    movement = MovingStates(m)
    beyond = _beyond(m, movement, point)
    inner = frozenset().union(*(movement.of_body(b) for b, far in zip(m.bodies, beyond, strict=True) if not far))
    outer = frozenset().union(*(movement.of_body(b) for b, far in zip(m.bodies, beyond, strict=True) if far)) - inner
    if not any(beyond) or all(beyond) or not inner:
        what = "no body hangs on it" if not any(beyond) else "all bodies hang on it, none is before it"
        between = f", at {' or '.join(names)}" if (names := _between(m)) else "; it has no such joint"
        raise CouplingError(headline, [Fault(f"{what}: {name}", "--at", f"cut between two bodies{between}")])
    if not outer:
        what = "the bodies that hang on it have no states of their own: others before it move with the same"
        raise CouplingError(headline, [Fault(what, name, "cut elsewhere")])
    while movement.points[point] & outer:
        point = m.points[point].parent
    owners = dict.fromkeys(movement.states, 0) | _grown(m, movement, outer)
    made = MechanismCut(
        m, movement, "joint", way, name, (point,), owners, tuple(map(int, beyond)), _frame(m, movement, point)
    )
    if rows := [row for row, states in _rows(m, movement) if len(made.parts_of(states)) > 1]:
        what = f"{', '.join(rows)} {'hold' if len(rows) > 1 else 'holds'} both sides"
        chain = len(_pieces(m, movement, [])) < 2
        remedy = _APART if chain else "cut at all constraints and loads between the sides, by bushing"
        raise CouplingError(headline, [Fault(what, name, remedy)])
    return made


def _beyond(m: Mechanism, movement: MovingStates, point: int) -> list[bool]:
    """Return of each body whether it is located from a point."""
    return [point in list(movement.above(body.masscenter))[1:] for body in m.bodies]


def _between(m: Mechanism) -> list[str]:
    """Return the names of joints and points that have bodies on both sides."""
    movement = MovingStates(m)
    joints = [(name, number) for name, (kind, number) in _names(m).items() if kind == "joint"]
    return [name for name, point in joints if len(set(_beyond(m, movement, point))) > 1]


def _grown(m: Mechanism, movement: MovingStates, outer: Symbols) -> dict[sm.Symbol, int]:
    """Return the outer states, with those tied to them by q' = K u, and auxiliary states that move only with them."""
    grown = set(outer)
    for linked in movement.linked:
        if linked & grown:
            grown |= linked
    for z, rate in zip(m.z, m.z_dot, strict=True):
        states = movement.of(rate) - {z}
        if states & grown:
            grown.add(z)
    return dict.fromkeys(grown, 1)


def _frame(m: Mechanism, movement: MovingStates, point: int) -> int:
    """Return the frame in which a point's place is written nearest to it; N if there is none."""
    for each in movement.above(point):
        for frame, components in m.points[each].position or ():
            if any(components):
                return frame
    return 0


def _rows(m: Mechanism, movement: MovingStates) -> Iterator[tuple[str, Symbols]]:
    """Yield (name, states) of each constraint."""
    constraints = m.velocity_constraints
    if constraints is None:
        return
    for k, name in enumerate(constraints.names):
        speeds = [u for j, u in enumerate(m.u) if constraints.jacobian[k, j] != 0]
        position = m.holonomic[k][1] if k < len(m.holonomic) else sm.S.Zero
        yield name, movement.of(position, constraints.offset[k, 0], *constraints.jacobian[k, :]) | frozenset(speeds)


def _at_ties(
    m: Mechanism, kind: Kind, numbers: Sequence[int], at: Sequence[str], way: Way, headline: str
) -> MechanismCut:
    """Return the parts that are still connected when some loads or constraints are left out."""
    movement = MovingStates(m)
    ties = list(_ties(m, movement))
    bound = [states for what, number, states in ties if (what, number) not in {(kind, n) for n in numbers}]
    groups = _pieces(m, movement, bound)
    if len(groups) < 2:
        raise CouplingError(headline, [_one_piece(m, movement, at)])
    owners = {state: k for k, group in enumerate(groups) for state in group}
    owners |= dict.fromkeys(movement.states - set(owners), 0)
    bodies = tuple(min((owners[s] for s in movement.of_body(body)), default=0) for body in m.bodies)
    return MechanismCut(m, movement, kind, way, "_".join(at), tuple(numbers), owners, bodies)


def _pieces(m: Mechanism, movement: MovingStates, bound: Sequence[Symbols]) -> list[Symbols]:
    """Return the states of each piece that has bodies, if only some ties hold pieces together."""
    groups = _groups((*m.q, *m.u, *m.z), [*_firm(m, movement), *bound])
    return [group for group in groups if any(movement.of_body(body) & group for body in m.bodies)]


def _one_piece(m: Mechanism, movement: MovingStates, at: Sequence[str]) -> Fault:
    """Return the fault of a cut that separates nothing, with the ties that do, or joints where there are none."""
    free = _pieces(m, movement, [])
    what = f"without {', '.join(at)} it is still one piece"
    if len(free) < 2:
        what += ": its bodies are a chain, in which each moves with the coordinates of the one before it"
        closed = any(True for _ in _rows(m, movement))
        joints = f"cut the chain at {' or '.join(names)}" if (names := _between(m)) else "it has nothing to cut"
        return Fault(what, "--at", _APART if closed else joints)
    holding = [
        m.loads[number].name if kind == "load" else list(_rows(m, movement))[number][0]
        for kind, number, states in _ties(m, movement)
        if sum(bool(states & group) for group in free) > 1
    ]
    return Fault(what, "--at", f"ties between bodies are {', '.join(holding)}; name all between two sides")


def _firm(m: Mechanism, movement: MovingStates) -> Iterator[Symbols]:
    """Yield states that always stay together: those of a body, of q' = K u, of z'."""
    yield from (movement.of_body(body) for body in m.bodies)
    yield from movement.linked
    yield from (movement.of(rate) | {z} for z, rate in zip(m.z, m.z_dot, strict=True))


def _ties(m: Mechanism, movement: MovingStates) -> Iterator[tuple[Kind, int, Symbols]]:
    """Yield (kind, number, states) of the cuttable connections between bodies."""
    for number, load in enumerate(m.loads):
        yield "load", number, movement.of_place(load) | movement.of_magnitude(load)
    for number, (_, states) in enumerate(_rows(m, movement)):
        yield "constraint", number, states


def _groups(states: Sequence[sm.Symbol], bound: Sequence[Symbols]) -> list[Symbols]:
    """Return groups of states that are connected directly or through others, in order."""
    groups: list[set[sm.Symbol]] = [{state} for state in states]
    for some in bound:
        touched = [group for group in groups if group & some]
        if len(touched) > 1:
            for other in touched[1:]:
                touched[0] |= other
                groups.remove(other)
    return [frozenset(group) for group in groups]
