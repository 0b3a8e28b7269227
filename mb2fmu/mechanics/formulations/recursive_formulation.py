"""Recursive formulation: local relations, evaluated link by link; two variants.

``recursive-articulated``: u' by articulated bodies, cost linear in the number of links (R. Featherstone, Rigid Body
Dynamics Algorithms, Springer 2008, ch. 7). It asks that every speed moves one link against the one before it, or
deforms one (a group of particles), and that nothing constrains the speeds.

``recursive-composite``: M and f by recursion, semi-explicit (P. Fisette, J. C. Samin, Robotran: symbolic generation of
multibody system dynamic equations, 1993; Featherstone ch. 6: composite rigid bodies for M, Newton-Euler for f). It
applies to any mechanism with bodies, and is what velocity constraints and short chains need.

Nothing is expanded, or even multiplied, by SymPy: the equations hold the relations (``LinkRecursion``), ``lowering``
evaluates them.
"""

from __future__ import annotations

import sympy as sm

from mb2fmu.mechanics.equations.equations_of_motion import EquationsOfMotion, MassMatrixDynamics
from mb2fmu.mechanics.equations.link_recursion import (
    ArticulatedBodyStructure,
    LinkBody,
    LinkForce,
    LinkLoad,
    LinkPathwayForce,
    LinkRecursion,
    LinkTorque,
)
from mb2fmu.mechanics.formulations.equations_assembly import assemble_equations
from mb2fmu.mechanics.formulations.formulation_applicability import (
    FormulationApplicability,
    check_projection_applicability,
    declare_formulation_applicable,
    declare_formulation_inapplicable,
)
from mb2fmu.mechanics.formulations.mechanism_link_tree import (
    LocalTimeDerivatives,
    MechanismLinkTree,
    build_mechanism_link_tree,
)
from mb2fmu.mechanics.formulations.particle_groups import find_particle_groups
from mb2fmu.mechanics.formulations.requested_recursion_quantities import RequestedRecursionQuantities
from mb2fmu.mechanics.mechanism.records.mechanism_records import (
    ForceLoad,
    Mechanism,
    PathwayLoad,
    TorqueActuatorLoad,
    TorqueLoad,
)
from mb2fmu.mechanics.mechanism.symbolic.gravity_detection import find_gravity

_MAX_COMPOSITE_SPEEDS = 6
"""Speeds up to which M and f are usually shorter than articulated bodies; the pipeline counts where it matters."""


def check_applicability(mechanism: Mechanism) -> FormulationApplicability:
    """Return whether one of the two variants applies: there must be bodies."""
    return check_applicability_composite(mechanism)


def check_applicability_composite(mechanism: Mechanism) -> FormulationApplicability:
    """Return whether the composite variant applies: it needs bodies and no auxiliary speeds."""
    answer = check_projection_applicability(mechanism)
    if answer.is_applicable and mechanism.u_auxiliary:
        return declare_formulation_inapplicable(
            "auxiliary speeds, which bring reactions to light, are projected by kane and tmt only"
        )
    return answer


def check_applicability_articulated(mechanism: Mechanism) -> FormulationApplicability:
    """Return whether articulated bodies apply: trees without constraints, each speed in one link, motor or group."""
    answer = check_applicability_composite(mechanism)
    if not answer.is_applicable:
        return answer
    if mechanism.velocity_constraints is not None:
        return declare_formulation_inapplicable(
            "velocity constraints need the mass matrix: recursive-composite gives it"
        )
    recursion = _build_kinematics(mechanism)[1]
    geared = _find_geared_links(recursion)
    grouped = {j for group in recursion.particle_groups for j in group.speeds}
    owners: dict[int, str] = {}
    for number in recursion.list_carrying_links():
        name = recursion.links[number].name
        for j in recursion.list_joint_speeds(number) - grouped if number not in geared else ():
            if j in owners:
                return declare_formulation_inapplicable(
                    f"{mechanism.u[j]} moves both {owners[j]} and {name} against what comes before them"
                )
            owners[j] = name
    return declare_formulation_applicable("every speed moves one link against the one before it, or deforms one")


def formulate(mechanism: Mechanism) -> EquationsOfMotion:
    """Return the variant that is usually cheaper: articulated bodies beyond a handful of speeds, where they apply."""
    if len(mechanism.u) > _MAX_COMPOSITE_SPEEDS and check_applicability_articulated(mechanism).is_applicable:
        return formulate_articulated(mechanism)
    return formulate_composite(mechanism)


def formulate_articulated(mechanism: Mechanism) -> EquationsOfMotion:
    """Return equations without a mass matrix."""
    kinematics, recursion = _build_kinematics(mechanism)
    geared = _find_geared_links(recursion)
    grouped = {j for group in recursion.particle_groups for j in group.speeds}
    bodies_with_joint = [number for number in recursion.list_carrying_links() if number not in geared]
    joints = [tuple(sorted(recursion.list_joint_speeds(number) - grouped)) for number in bodies_with_joint]
    joints += [group.speeds for group in recursion.particle_groups]
    dynamics = ArticulatedBodyStructure(tuple(joints), tuple(geared))
    return assemble_equations("recursive-articulated", kinematics, dynamics, recursion=recursion)


def formulate_composite(mechanism: Mechanism) -> EquationsOfMotion:
    """Return equations whose mass matrix, shape (n_u, n_u), and forcing are evaluated by recursion."""
    kinematics, recursion = _build_kinematics(mechanism)
    M = kinematics.mass_matrix()
    forcing = kinematics.define("forcing", [f"f_{u.name}" for u in mechanism.u])
    dynamics = MassMatrixDynamics(M, sm.ImmutableMatrix(len(mechanism.u), 1, forcing))
    return assemble_equations("recursive-composite", kinematics, dynamics, recursion=recursion)


def _build_kinematics(mechanism: Mechanism) -> tuple[RequestedRecursionQuantities, LinkRecursion]:
    """Grow the tree of links; pathways are named before, since the tree needs their rates."""
    kinematics = RequestedRecursionQuantities(mechanism)
    for load in mechanism.loads:
        if isinstance(load, PathwayLoad):
            kinematics.assign_pathway(load)
    rates = LocalTimeDerivatives(mechanism, kinematics.q_dot_names())
    return kinematics, _build_recursion(mechanism, build_mechanism_link_tree(mechanism, rates), rates)


def _find_geared_links(recursion: LinkRecursion) -> list[int]:
    """Return the grounded links that a speed of another link's joint also moves."""
    massive = recursion.list_carrying_links()
    joint_speeds = {number: recursion.list_joint_speeds(number) for number in massive}
    root: dict[int, int] = {}
    moved_by: dict[int, set[int]] = {}
    for number in massive:
        parent = recursion.links[number].parent
        root[number] = root.get(parent, number)
        moved_by.setdefault(root[number], set()).update(joint_speeds[number])
    single_joint_speeds = {number: speeds for number, speeds in moved_by.items() if len(speeds) == 1}
    geared: set[int] = set()
    for j in sorted(set().union(*single_joint_speeds.values())) if single_joint_speeds else ():
        trees = [number for number, speeds in single_joint_speeds.items() if speeds == {j}]
        joints = [number for number in massive if j in joint_speeds[number] and root[number] not in trees]
        if len(joints) == 1:
            geared.update(trees)
        elif not joints:
            geared.update(trees[1:])
    return [number for number in massive if root[number] in geared]


def _build_recursion(mechanism: Mechanism, tree: MechanismLinkTree, rates: LocalTimeDerivatives) -> LinkRecursion:
    """Collect what the recursion passes.

    Weights are left out of the loads, as gravity stands for them: ``find_gravity`` divides each load on a mass centre
    by the mass; where all bodies get the same acceleration, that is gravity.
    """
    gravity = find_gravity(mechanism)
    loads = [load for number, load in enumerate(mechanism.loads) if number not in gravity.weight_loads]
    bodies = tuple(
        LinkBody(body.name, place, body.frame, body.mass, body.inertia)
        for body, place in zip(mechanism.bodies, tree.bodies, strict=True)
    )
    return LinkRecursion(
        frames=tree.frames,
        links=tree.links,
        points=tree.points,
        bodies=bodies,
        loads=tuple(_express_load(load, mechanism, tree) for load in loads),
        gravity=gravity.acceleration,
        generalized_forces=mechanism.potential_forces,
        pathways={i: load.points for i, load in enumerate(mechanism.loads) if isinstance(load, PathwayLoad)},
        particle_groups=find_particle_groups(mechanism, tree, bodies, rates),
    )


def _express_load(load: object, mechanism: Mechanism, tree: MechanismLinkTree) -> LinkLoad:
    """Express a load by links and points of the tree."""

    def link(frame: int) -> int:
        """Number of the link that turns as a frame does; -1 where there is no frame."""
        return tree.link_of_axes[tree.frames[frame].axes] if frame >= 0 else -1

    match load:
        case ForceLoad():
            return LinkForce(tree.points[load.point], load.force)
        case TorqueLoad():
            return LinkTorque(link(load.frame), load.torque)
        case TorqueActuatorLoad():
            return LinkTorque(link(load.frame), load.axis, link(load.reaction), load.torque)
        case PathwayLoad():
            return LinkPathwayForce(mechanism.loads.index(load), load.points, load.force)
    raise TypeError(load)
