"""Energies and powers of a mechanism.

Potential energy of the loads: known, absent or unknown for each load.

Only what a load does at rest and without inputs can have a potential; dampers and motors have none. Then

- a constant force, written in a frame that does not turn, has -F·r, whatever frame that is (a tilted ground),
- a force along a pathway that depends on its length l alone has -∫ F dl,
- all others are turned into generalized forces along the coordinates and integrated (``potential_energy_search``):
  springs that are written as torques or as forces. A torque on one frame and its opposite on another only work on what
  turns between the two, so what comes before both cancels, and the expressions stay small.

What is left is judged by numbers: generalized forces that are not symmetric, ∂F_i/∂q_j ≠ ∂F_j/∂q_i, have no potential
(a force that follows a body); else it is not known.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import sympy as sm

from mb2fmu.mechanics.equations.equations_of_motion import EnergyBalance
from mb2fmu.mechanics.formulations.applied_loads import express_in_inertial_frame, form_load_power
from mb2fmu.mechanics.formulations.energies.potential_energy_search import (
    MAX_OPERATIONS,
    GeneralizedForces,
    find_potential_energy,
    has_more_operations_than,
    integrate_expression,
    is_conservative,
)
from mb2fmu.mechanics.mechanism.numeric.numeric_mechanism_evaluation import MechanismEvaluator
from mb2fmu.mechanics.mechanism.numeric.random_states import draw_random_states
from mb2fmu.mechanics.mechanism.records.mechanism_records import (
    Components,
    ForceLoad,
    Lagrangian,
    Load,
    Mechanism,
    PathwayLoad,
    TorqueActuatorLoad,
    TorqueLoad,
    VectorTerms,
)
from mb2fmu.mechanics.mechanism.records.symbol_replacement_and_derivatives import (
    replace_squared_sines,
    replace_symbols,
)
from mb2fmu.mechanics.mechanism.symbolic.component_vector_arithmetic import (
    add_vector_components,
    dot_product,
    scale_components,
)
from mb2fmu.mechanics.mechanism.symbolic.symbolic_kinematics import SymbolicKinematics
from mb2fmu.model.expression_traversal import partial_derivative
from mb2fmu.model.numpy_lambdify import lambdify_for_numpy

_FORCE_TOLERANCE = 1e-8  # relative, of generalized forces of both sides
_MAX_LOAD_OPERATIONS = 5 * MAX_OPERATIONS  # operations of a load, speeds and all
_MAX_SUBSET_LOADS = 4  # loads without a potential of their own whose sums are tried


_PRESCRIBED_WORK_REASON = "a prescribed motion (time or a rate in the kinematics, a constraint that moves) does work"


@dataclass(frozen=True, slots=True)
class LoadPotentialEnergy:
    """The potential energy of all loads.

    Attributes:
        energy: V in J, the sum of what was found.
        unknown_loads: Names of loads without a known potential: then ``energy`` is incomplete.
        loads_without_potential: Names of loads that have no potential, though they act at rest.
    """

    energy: sm.Expr
    unknown_loads: tuple[str, ...] = ()
    loads_without_potential: tuple[str, ...] = ()


@dataclass(slots=True)
class _ActionReactionGroup:
    """A vector applied at points or frames, each with a sign; these do work together.

    Attributes:
        is_torque: True: on frames.
        vector: At rest.
        count_by_node: Number of a point or frame → how often it acts there.
        load_names: Names.
    """

    is_torque: bool
    vector: VectorTerms
    count_by_node: dict[int, int] = field(default_factory=dict)
    load_names: dict[str, None] = field(default_factory=dict)


class _UnknownGeneralizedForceError(Exception):
    """The generalized force is unknown, or too long to write."""


def find_load_potential_energy(kinematics: SymbolicKinematics) -> LoadPotentialEnergy:
    """Return the potential energy of the loads of a mechanism."""
    m = kinematics.mechanism
    terms: list[sm.Expr] = []
    names_of_unknown: dict[str, None] = {}
    names_without_potential: dict[str, None] = {}
    actions: dict[tuple[bool, VectorTerms], _ActionReactionGroup] = {}
    element_potentials = _element_potentials(m)
    terms += [energy for _, energy in element_potentials]
    places = {
        s for motion_vector in m.motion_vectors if motion_vector.kind == "position" for s in motion_vector.symbols
    }
    element_loads = frozenset().union(*(names for names, _ in element_potentials))
    for load in m.loads:
        if load.name in element_loads:
            continue
        pieces = any(sm.sympify(c).has(sm.Piecewise) for c in list_load_magnitude_scalars(load))
        if has_more_operations_than(
            list_load_magnitude_scalars(load), MAX_OPERATIONS if pieces else _MAX_LOAD_OPERATIONS
        ):
            names_of_unknown[load.name] = None
            continue
        scalars = [_evaluate_load_at_rest(m, load, c) for c in list_load_magnitude_scalars(load)]
        symbols: set[sm.Basic] = set().union(*(s.free_symbols for s in scalars)) if scalars else set()
        if all(s == 0 for s in scalars):
            continue
        if symbols & ({*m.z} | places):
            names_of_unknown[load.name] = None
        elif m.t in symbols:
            names_without_potential[load.name] = None
        elif isinstance(load, PathwayLoad):
            energy = _pathway_potential(load, scalars[0], m)
            if energy is None:
                names_of_unknown[load.name] = None
            else:
                kinematics.assign_pathway(load)
                terms.append(energy)
        elif (weight := _constant_force_potential(load, kinematics)) is not None:
            terms += weight
        else:
            _collect_action(load, m, actions)
    energies, further_unknown, further_without = _integrate_actions(m, actions.values())
    return LoadPotentialEnergy(
        sm.Add(*terms, *energies), (*names_of_unknown, *further_unknown), (*names_without_potential, *further_without)
    )


def _element_potentials(m: Mechanism) -> list[tuple[frozenset[str], sm.Expr]]:
    """Return potentials that elements state for their loads, if -∂V/∂q are the loads' generalized forces."""
    potentials = []
    for names, energy in m.known_potentials:
        loads = tuple(load for load in m.loads if load.name in names)
        mechanism_of_element = replace(m, loads=loads, potential_forces=(), lagrangian=None)
        if len(loads) == len(names) and is_load_potential(mechanism_of_element, energy):
            potentials.append((names, energy))
    return potentials


@np.errstate(all="ignore")  # random places may be where a force has no value
def is_load_potential(m: Mechanism, energy: sm.Expr) -> bool:
    """Return whether -∂V/∂q are the generalized forces of all loads at rest, at random places and parameters."""
    arguments = [*m.q, *m.p, *(a.symbol for a in m.calculated_parameters)]
    if not energy.free_symbols <= set(arguments):
        return False
    slopes = lambdify_for_numpy(arguments, [partial_derivative(energy, q) for q in m.q], cse=True)
    numeric = MechanismEvaluator(m)
    for sample in draw_random_states(numeric, without_zeros=True):
        numeric.set_state(sample.t, sample.q, np.zeros(len(m.u_all)), sample.z, 0.0 * sample.r, sample.parameters)
        forces = numeric.generalized_forces()[: len(m.u)]
        generalized_forces = (
            -np.array(slopes(*sample.q, *sample.parameters), dtype=float) @ numeric.kinematic_matrices()[0]
        )
        if np.max(np.abs(forces - generalized_forces)) > _FORCE_TOLERANCE * np.max(
            np.abs([*forces, *generalized_forces])
        ):
            return False
    return True


def _integrate_generalized_forces(forces: GeneralizedForces, name: str) -> LoadPotentialEnergy:
    """Return the potential of known generalized forces whose loads share one name."""
    energy = find_potential_energy(forces)
    if energy is not None:
        return LoadPotentialEnergy(energy)
    return (
        LoadPotentialEnergy(sm.S.Zero, (name,))
        if is_conservative(forces)
        else LoadPotentialEnergy(sm.S.Zero, (), (name,))
    )


def _evaluate_load_at_rest(m: Mechanism, load: Load, expression: sm.Expr) -> sm.Expr:
    """Return a load's scalar without inputs, speeds and unknown forces."""
    moving = {*m.r, *m.u_all, *m.constraint_forces}
    moving |= {
        s for motion_vector in m.motion_vectors if motion_vector.kind != "position" for s in motion_vector.symbols
    }
    moving |= {load.rate} if isinstance(load, PathwayLoad) else set()
    return replace_symbols(sm.sympify(expression), dict.fromkeys(moving, sm.S.Zero))


def list_load_magnitude_scalars(load: Load) -> list[sm.Expr]:
    """Return the scalars that the magnitude of a load depends on."""
    match load:
        case ForceLoad():
            return [c for _, vector in load.force for c in vector]
        case TorqueLoad():
            return [c for _, vector in load.torque for c in vector]
        case PathwayLoad():
            return [load.force]
        case TorqueActuatorLoad():
            return [load.torque]
    raise TypeError(load)


def _constant_symbols(m: Mechanism) -> set[sm.Symbol]:
    """Return the symbols that do not change while the FMU runs: free and calculated parameters."""
    return {*m.p, *(a.symbol for a in m.calculated_parameters)}


def _pathway_potential(load: PathwayLoad, force: sm.Expr, m: Mechanism) -> sm.Expr | None:
    """Return the potential of a force that depends on the length of its pathway alone."""
    if load.potential is not None:
        return load.potential
    if not force.free_symbols <= {load.length, *_constant_symbols(m)}:
        return None
    return integrate_expression(-force, load.length)


def _constant_force_potential(load: Load, kinematics: SymbolicKinematics) -> list[sm.Expr] | None:
    """Return -F·r of a force that is constant in a non-rotating frame, at a point that moves as its position does."""
    m = kinematics.mechanism
    if (
        not isinstance(load, ForceLoad)
        or not m.points[load.point].located
        or _velocity_differs_from_rate(m, load.point)
    ):
        return None
    rest = _vector_at_rest(load, load.force, m)
    constants = _constant_symbols(m)
    for frame, components in rest:
        if not all(c.free_symbols <= constants for c in components) or _may_rotate(m, frame):
            return None
    force = express_in_inertial_frame(rest, kinematics)
    return [-c * r for c, r in zip(force, kinematics.position(load.point), strict=True) if c != 0]


def _vector_at_rest(load: Load, vector: VectorTerms, m: Mechanism) -> VectorTerms:
    """Evaluate the components of a load with all speeds zero; frames without any are left out."""
    terms = []
    for frame, components in vector:
        x, y, z = (_evaluate_load_at_rest(m, load, c) for c in components)
        if (x, y, z) != (0, 0, 0):
            terms.append((frame, (x, y, z)))
    return tuple(terms)


def _may_rotate(m: Mechanism, frame: int) -> bool:
    """Return whether a frame turns against the inertial one, or may."""
    constants = _constant_symbols(m)
    while frame > 0:
        record = m.frames[frame]
        if not record.oriented or not record.rotation.free_symbols <= constants:
            return True
        frame = record.parent
    return False


def _velocity_differs_from_rate(m: Mechanism, point: int) -> bool:
    """Return whether a point's velocity is not the rate of its position."""
    while point >= 0:
        if m.points[point].is_instantaneous:
            return True
        point = m.points[point].parent
    return False


# ---------------------------------------------------------------------- loads as actions


def _collect_action(load: Load, m: Mechanism, actions: dict[tuple[bool, VectorTerms], _ActionReactionGroup]) -> None:
    """Add a load to the action that has the same or the opposite vector."""
    if isinstance(load, ForceLoad):
        torque, vector, loaded_nodes = False, _vector_at_rest(load, load.force, m), [(load.point, 1)]
    elif isinstance(load, TorqueLoad):
        torque, vector, loaded_nodes = True, _vector_at_rest(load, load.torque, m), [(load.frame, 1)]
    else:
        assert isinstance(load, TorqueActuatorLoad)
        size = _evaluate_load_at_rest(m, load, load.torque)
        torque, vector = True, tuple((frame, scale_components(size, axis)) for frame, axis in load.axis)
        loaded_nodes = [(load.frame, 1), *([(load.reaction, -1)] if load.reaction >= 0 else [])]
    opposite = tuple((frame, scale_components(sm.S.NegativeOne, components)) for frame, components in vector)
    sign = -1 if (torque, opposite) in actions else 1
    action = actions.setdefault((torque, vector if sign == 1 else opposite), _ActionReactionGroup(torque, vector))
    for node, count in loaded_nodes:
        action.count_by_node[node] = action.count_by_node.get(node, 0) + sign * count
    action.load_names[load.name] = None


def _integrate_actions(
    m: Mechanism, actions: Iterable[_ActionReactionGroup]
) -> tuple[list[sm.Expr], list[str], list[str]]:
    """Return the potentials, the names of loads with unknown potential, and of loads without one."""
    energies: list[sm.Expr] = []
    unknown: list[str] = []
    unintegrated: list[tuple[_ActionReactionGroup, GeneralizedForces]] = []
    for action in actions:
        try:
            forces = _GeneralizedCoordinateForces(m).form_forces(action)
        except _UnknownGeneralizedForceError:
            unknown += action.load_names
            continue
        energy = find_potential_energy(forces)
        if energy is None:
            unintegrated.append((action, forces))
        else:
            energies.append(energy)
    if not unintegrated:
        return energies, unknown, []
    joint_energy = find_potential_energy(
        _add_generalized_forces(forces for _, forces in unintegrated)
    )  # springs whose ends are given one by one
    if joint_energy is not None:
        return [*energies, joint_energy], unknown, []
    names = [name for action, _ in unintegrated for name in action.load_names]
    if len(unintegrated) > _MAX_SUBSET_LOADS or unknown:
        return energies, [*unknown, *names], []
    subsets = [
        s
        for n in range(1, len(unintegrated) + 1)
        for s in itertools.combinations((forces for _, forces in unintegrated), n)
    ]
    if any(is_conservative(_add_generalized_forces(forces)) for forces in subsets):
        return energies, names, []
    return energies, [], names


def _add_generalized_forces(forces: Iterable[GeneralizedForces]) -> GeneralizedForces:
    """Add generalized forces by coordinate, expanded."""
    total: dict[sm.Symbol, sm.Expr] = {}
    for summand in forces:
        for q, force in summand.items():
            total[q] = total.get(q, sm.S.Zero) + force
    return {q: sm.expand(force) for q, force in total.items()}


class _GeneralizedCoordinateForces:
    """Generalized forces along the coordinates, from local relations; given velocities are not used."""

    def __init__(self, mechanism: Mechanism) -> None:
        self.m = mechanism

    def form_forces(self, action: _ActionReactionGroup) -> GeneralizedForces:
        """Return coordinate → generalized force; zero for coordinates that occur only in other forces."""
        forces = self._project_torque(action) if action.is_torque else self._project_force(action)
        forces = {q: sm.expand(force) for q, force in forces.items()}
        symbols_at_rest: set[sm.Basic] = set().union(*(force.free_symbols for force in forces.values()))
        if symbols_at_rest - {*self.m.q, *_constant_symbols(self.m)}:
            raise _UnknownGeneralizedForceError
        return {q: forces.get(q, sm.S.Zero) for q in self.m.q if q in symbols_at_rest or forces.get(q, sm.S.Zero) != 0}

    def _project_torque(self, action: _ActionReactionGroup) -> GeneralizedForces:
        """T·∂w/∂q' along all frames that turn."""
        steps: dict[int, int] = {}
        for frame, count in action.count_by_node.items():
            k = frame
            while k > 0:
                if not self.m.frames[k].oriented:
                    raise _UnknownGeneralizedForceError
                steps[k] = steps.get(k, 0) + count
                k = self.m.frames[k].parent
        total: dict[sm.Symbol, sm.Expr] = {}
        for frame, count in sorted(steps.items()):
            turning = [q for q in self.m.q if q in self.m.frames[frame].rotation.free_symbols] if count else []
            for q in turning:
                axis = _rotation_axis(sm.ImmutableMatrix(self.m.frames[frame].rotation), q)
                for k, components in action.vector:
                    axis_components = self._express_in_frame(axis, frame, k)
                    total[q] = total.get(q, sm.S.Zero) + count * dot_product(components, axis_components)
        return total

    def _project_force(self, action: _ActionReactionGroup) -> GeneralizedForces:
        """F·∂r/∂q along all points that move."""
        steps: dict[int, int] = {}
        for point, count in action.count_by_node.items():
            if not self.m.points[point].located or _velocity_differs_from_rate(self.m, point):
                raise _UnknownGeneralizedForceError
            k = point
            while k > 0:
                steps[k] = steps.get(k, 0) + count
                k = self.m.points[k].parent
        place: Components = (sm.S.Zero, sm.S.Zero, sm.S.Zero)
        for point, count in sorted(steps.items()):
            for frame, components in self.m.points[point].position or () if count else ():
                place = add_vector_components(
                    place, scale_components(sm.Integer(count), self._express_in_frame(components, frame, 0))
                )
        force: Components = (sm.S.Zero, sm.S.Zero, sm.S.Zero)
        for frame, components in action.vector:
            force = add_vector_components(force, self._express_in_frame(components, frame, 0))
        moving: set[sm.Basic] = set().union(*(c.free_symbols for c in place))
        return {
            q: dot_product(force, _make_vector_component_tuple(c.diff(q) for c in place))
            for q in self.m.q
            if q in moving
        }

    def _express_in_frame(self, vector: Components, frame: int, target_frame: int) -> Components:
        """Return a vector's components in another frame: up to the frame that both hang on, and down from there."""
        m, frame_path, target_path = self.m, _frame_ancestors(self.m, frame), _frame_ancestors(self.m, target_frame)
        common = next(k for k in frame_path if k in target_path)
        column = sm.Matrix(vector)
        for k in frame_path[: frame_path.index(common)]:
            column = self._check_length(m.frames[k].rotation * column)
        for k in reversed(target_path[: target_path.index(common)]):
            column = self._check_length(m.frames[k].rotation.T * column)
        return (column[0], column[1], column[2])

    def _check_length(self, column: sm.Matrix) -> sm.Matrix:
        """Return a short column of expressions; raise where it is too long to integrate."""
        if not _is_short(column):
            raise _UnknownGeneralizedForceError
        return column


@functools.lru_cache(maxsize=1000)  # asked once more where a reference is formulated
def _rotation_axis(rotation: sm.ImmutableMatrix, q: sm.Symbol) -> Components:
    """∂w/∂q' of a frame in its parent, in its own components: of the direction cosines' derivative."""
    skew = rotation.T * rotation.diff(q)
    return _make_vector_component_tuple(
        replace_squared_sines(e) if _is_short([e]) else e for e in (skew[2, 1], skew[0, 2], skew[1, 0])
    )


def _make_vector_component_tuple(components: Iterable[sm.Expr]) -> Components:
    """Return three components as a tuple."""
    x, y, z = components
    return (x, y, z)


def _is_short(expressions: Iterable[sm.Expr]) -> bool:
    """Return whether expressions together have at most `LARGEST` operations."""
    return bool(sum(sm.count_ops(e) for e in expressions) <= MAX_OPERATIONS)


def _frame_ancestors(m: Mechanism, frame: int) -> Sequence[int]:
    """Return a frame, its parent, and so on to the inertial frame (number 0)."""
    chain = [frame]
    while chain[-1] > 0:
        chain.append(m.frames[chain[-1]].parent)
    return chain


def form_energy_balance(kinematics: SymbolicKinematics) -> EnergyBalance:
    """Return kinetic and potential energy, and the power of every load.

    T = sum of m v·v/2 + w·I w/2. V: see :func:`potential_energy`. Unknown forces have no power: all of them together do
    no work on the motion, so of each load what is known is counted.
    """
    m = kinematics.mechanism
    if m.lagrangian is not None and m.is_lagrangian_only:
        return _lagrangian_energy(kinematics, m.lagrangian)
    zero_forces = dict.fromkeys(m.constraint_forces, sm.S.Zero)
    powers = []
    for number, load in enumerate(m.loads):
        load_power = form_load_power(number, kinematics)
        powers.append((load.name, load_power.xreplace(zero_forces) if zero_forces else load_power))
    if m.potential_forces:
        total = sm.Add(*(force * u for force, u in zip(m.potential_forces, m.u, strict=True)))
        powers.append(("potential", total))
    prescribed = m.is_rheonomic or m.prescribed
    energies = kinetic_energy(kinematics), potential_energy(kinematics)
    return EnergyBalance(*energies, tuple(powers), not prescribed, _PRESCRIBED_WORK_REASON if prescribed else "")


def kinetic_energy(kinematics: SymbolicKinematics) -> sm.Expr:
    """Return T in J."""
    m = kinematics.mechanism
    if m.lagrangian is not None and m.is_lagrangian_only:
        return _quadratic_rate_part(m, m.lagrangian.expression)
    return kinematics.kinetic_energy()


def potential_energy(kinematics: SymbolicKinematics) -> sm.Expr | None:
    """Return V in J: as the user gave it, else of the Lagrangian, springs and all loads; None if one is unknown.

    Where loads leave it open, what the bodies declare is V if its derivatives are all the loads' generalized forces.
    """
    m = kinematics.mechanism
    given_potential = m.given_potential
    if given_potential is not None:
        return given_potential
    load_energy = potential_energy_of_loads(kinematics)
    if not load_energy.unknown_loads:
        return sm.Add(load_energy.energy, m.spring_potential, _lagrangian_potential(m))
    return _declared_potential(m) if m.lagrangian is None and not load_energy.loads_without_potential else None


def potential_energy_of_loads(kinematics: SymbolicKinematics) -> LoadPotentialEnergy:
    """Return the known potential energy of the loads; computed once."""
    m = kinematics.mechanism

    def find(_: int) -> LoadPotentialEnergy:
        """Return the potential; of a Lagrangian only the generalized forces are known."""
        if m.lagrangian is None or not m.is_lagrangian_only:
            return find_load_potential_energy(kinematics)
        zero_speeds = dict.fromkeys([*m.u, *m.r], sm.S.Zero)
        forces = {q: force.xreplace(zero_speeds) for q, force in zip(m.q, m.lagrangian.forces, strict=True)}
        symbols_at_rest: set[sm.Basic] = set().union(*(force.free_symbols for force in forces.values()))
        if symbols_at_rest & {m.t, *m.z}:
            return LoadPotentialEnergy(sm.S.Zero, ("the loads",))
        return _integrate_generalized_forces(forces, "the loads")

    return kinematics.compute_once("potential energy", find)


def _declared_potential(m: Mechanism) -> sm.Expr | None:
    """Return the potential energies of the bodies, if ∂V/∂q are the generalized forces of all loads at rest."""
    total = m.declared_potential
    return total if total != 0 and is_load_potential(m, total) else None


def _lagrangian_potential(m: Mechanism) -> sm.Expr:
    """Return V of the Lagrangian itself: -L at q' = 0."""
    return sm.S.Zero if m.lagrangian is None else -m.lagrangian.expression.xreplace(dict.fromkeys(m.u, sm.S.Zero))


def _lagrangian_energy(kinematics: SymbolicKinematics, lagrangian: Lagrangian) -> EnergyBalance:
    """Return T and V from L = T2 + T1 - V by degree in q'.

    Only loads change T2 + V, unless L contains time, or a constraint does.
    """
    m = kinematics.mechanism
    kinetic = _quadratic_rate_part(m, lagrangian.expression)
    potential = _lagrangian_potential(m)
    powers = (
        ("potential", -sm.Add(*(potential.diff(q) * u for q, u in zip(m.q, m.u, strict=True)))),
        ("loads", sm.Add(*(force * u for force, u in zip(lagrangian.forces, m.u, strict=True)))),
    )
    reason = ""
    if {m.t, *m.r, *m.z} & lagrangian.expression.free_symbols:
        reason = "time stands in the Lagrangian: a prescribed motion does work"
    elif m.has_rheonomic_constraints:
        reason = _PRESCRIBED_WORK_REASON
    return EnergyBalance(kinetic, potential_energy(kinematics), powers, not reason, reason)


def _quadratic_rate_part(m: Mechanism, expression: sm.Expr) -> sm.Expr:
    """Return the part of degree two in q', the kinetic energy where nothing moves by prescription."""
    slopes = [expression.diff(u) for u in m.u]
    return sm.Add(*(a.diff(v) * u * v for a, u in zip(slopes, m.u, strict=True) for v in m.u)) / 2
