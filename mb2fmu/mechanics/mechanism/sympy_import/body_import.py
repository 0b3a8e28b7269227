"""Read bodies of the user's mechanics: needed frames and points, mass and inertia of each body."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import sympy as sm
from sympy.physics.mechanics import Point, ReferenceFrame
from sympy.physics.mechanics.body_base import BodyBase

from mb2fmu.errors import Fault, MechanismError
from mb2fmu.mechanics.mechanism.records.dyadic_components import dyadic_components, simplify_constant_matrix
from mb2fmu.mechanics.mechanism.records.mechanism_records import Body
from mb2fmu.mechanics.mechanism.records.symbol_replacement_and_derivatives import DynamicsymbolMap
from mb2fmu.mechanics.mechanism.sympy_import.constraint_import import list_constraint_force_locations
from mb2fmu.mechanics.mechanism.sympy_import.declared_appearance_import import list_appearance_points
from mb2fmu.mechanics.mechanism.sympy_import.kinematic_tree import SympyFrameAndPointTree
from mb2fmu.mechanics.mechanism.sympy_import.load_import import list_curved_pathway_loads
from mb2fmu.model.checked_model import CheckedModel
from mb2fmu.model.declarations.declared_outputs import OUTPUT_KINDS, OutputRequest
from mb2fmu.model.sources import mechanics_source
from mb2fmu.model.sources.mechanics_source import Mechanics


def list_frames_to_import(definition: CheckedModel) -> dict[ReferenceFrame, ReferenceFrame | None]:
    """Return the frames that are needed, some for their angular velocity only; also those of bodies' inertias."""
    mechanics = definition.mechanics
    axes_of_frame: dict[Any, ReferenceFrame | None] = {}
    for body in mechanics_source.bodies(mechanics):
        terms = getattr(getattr(body, "inertia", (None,))[0], "args", ())
        axes_of_frame[getattr(body, "frame", None)] = terms[0][1].args[0][1] if terms else None
    other_frames: list[Any] = [load[0] for load in mechanics_source.loads(mechanics)]
    for actuator in mechanics_source.actuators(mechanics):
        other_frames += [getattr(actuator, name, None) for name in ("target_frame", "reaction_frame")]
    for request in definition.outputs:
        if isinstance(request, OutputRequest) and OUTPUT_KINDS[request.kind].subject == "frame":
            other_frames += request.subject
    for frame in other_frames:
        axes_of_frame.setdefault(frame, None)
    return {frame: axes for frame, axes in axes_of_frame.items() if isinstance(frame, ReferenceFrame)}


def list_points_to_import(definition: CheckedModel) -> list[Point]:
    """Return the points that are needed: mass centres, loads, pathways, outputs, joints."""
    mechanics = definition.mechanics
    points: list[Point] = [body.masscenter for body in mechanics_source.bodies(mechanics)]
    load_places = [load[0] for load in mechanics_source.loads(mechanics)]
    points += [load_place.masscenter if isinstance(load_place, BodyBase) else load_place for load_place in load_places]
    for actuator in mechanics_source.actuators(mechanics):
        points += getattr(getattr(actuator, "pathway", None), "attachments", ())
        points += [load[0] for load in list_curved_pathway_loads(actuator)]
    for request in definition.outputs:
        if isinstance(request, OutputRequest):
            points += [*request.subject, request.relative_to]
    points += list_constraint_force_locations(definition.constraints)
    for joint in mechanics_source.joints(mechanics):
        points += [joint.parent_point, joint.child_point]
    points += list_appearance_points(definition)
    return list(dict.fromkeys(point for point in points if isinstance(point, Point)))


def read_sympy_bodies(
    mechanics: Mechanics, trees: SympyFrameAndPointTree, plain: DynamicsymbolMap, moving: Collection[sm.Symbol]
) -> tuple[Body, ...]:
    """Read mass, mass centre, frame and central inertia of each body; raise with the faults of all."""
    bodies, faults = [], []
    for body in mechanics_source.bodies(mechanics):
        point, mass = trees.point_of[body.masscenter], plain(body.mass)
        if not mechanics_source.is_rigid_body(body):
            bodies.append(Body(body.name, point, -1, mass, None))
            continue
        if body.frame not in trees.frame_of:
            problem = f"the frame {body.frame.name} of body {body.name} is not connected to the inertial frame"
            faults.append(Fault(problem, remedy="orient it, or give its angular velocity by set_ang_vel"))
            continue
        axes = trees.find_axes_frame(body.frame)
        if not mechanics_source.needs_rotational_inertia_values(body, mechanics_source.inertial_frame(mechanics)):
            bodies.append(Body(body.name, point, trees.frame_of[body.frame], mass, sm.ImmutableMatrix.zeros(3)))
            continue
        matrix = sm.ImmutableMatrix(3, 3, list(map(plain, dyadic_components(body.central_inertia, axes))))
        constant = simplify_constant_matrix(matrix, moving)
        if constant is None and axes != body.frame:
            problem = f"frame {body.frame.name} of body {body.name} has an angular velocity only"
            faults.append(Fault(f"{problem}, and its inertia moves in {axes.name}", remedy="write it in one frame"))
        elif constant is None:
            varying_names = ", ".join(sorted(s.name for s in matrix.free_symbols & set(moving)))
            problem = f"the inertia of body {body.name} changes in its own frame {body.frame.name} with {varying_names}"
            faults.append(Fault(problem, remedy=f"write it along {body.frame.name}, or correct the body's frame"))
        bodies.append(Body(body.name, point, trees.frame_of[body.frame], mass, constant))
    if faults:
        raise MechanismError("the bodies cannot be read:", faults)
    return tuple(bodies)
