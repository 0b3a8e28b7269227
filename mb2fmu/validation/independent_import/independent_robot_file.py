"""What a robot's file and its side file say, read again: equations, added forces and states, closed loops."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import sympy as sm
from sympy.physics.vector import dynamicsymbols

from mb2fmu.errors import Fault, ValidationError
from mb2fmu.model.checked_model import CheckedModel
from mb2fmu.model.checks.expression_symbols import differentiate_by_time
from mb2fmu.model.sources.record_based_mechanics import NamedFramePoint
from mb2fmu.robots import MJCF, URDF
from mb2fmu.validation.independent_import.independent_flexible_links import NodalFlexibleLink
from mb2fmu.validation.independent_import.independent_loads import (
    GROUND_POSE,
    AddedGeneralizedForces,
    LinkLoad,
    LoadMotionVectorSymbols,
    read_independent_link_loads,
    read_load_tables,
)
from mb2fmu.validation.independent_import.independent_loop_constraints import (
    LinkFrameConnection,
    read_loop_closure_frames,
    read_loop_tables,
)
from mb2fmu.validation.independent_import.independent_sdf import read_sdf_tree
from mb2fmu.validation.independent_import.independent_urdf_equations import (
    IndependentRobotImport,
    Pose,
    read_urdf_tree,
)
from mb2fmu.validation.independent_import.mujoco_equations import MujocoEquations

if TYPE_CHECKING:
    from mb2fmu.robots import RobotMechanics


RobotImport = IndependentRobotImport | MujocoEquations


def reread_robot_file(robot: RobotMechanics, source: Path, content: bytes) -> RobotImport | str:
    """Return the file read again; or why it cannot be."""
    s = robot.settings
    inverse = s.role == "inverse-dynamics"
    prescribed = () if inverse else s.prescribed  # efforts are M u' − f of joints that move by themselves
    free = s.mimic == "free"
    if robot.kind == MJCF:
        moving_joints = [joint.name for joint in robot.description.joints if joint.kind != "fixed"]
        actuators = [] if inverse else [actuator.name for actuator in robot.description.actuators]
        try:
            return MujocoEquations(source, moving_joints, actuators, s.locked, free, prescribed)
        except ValueError as error:  # a mesh that is not there, a name that stands twice, …
            return f"MuJoCo does not load the file: {' '.join(str(error).split())}"
    read_tree = read_urdf_tree if robot.kind == URDF else partial(read_sdf_tree, path=source, packages=s.packages)
    bending = {
        each.name: NodalFlexibleLink(
            each.body.data.arrays() | {"second_order_pairs": each.body.data.second_order_pairs()},
            (each.pose.rotation, each.pose.position),
            each.nodes,
        )
        for each in robot.flexible
    }
    return IndependentRobotImport(content, read_tree, s.base, s.locked, free, prescribed, bending)


def list_loops_of_settings(robot: RobotMechanics) -> list[Mapping[str, Any]]:
    """Return the loops of the settings, from the side file itself where they stand in one."""
    if not robot.settings.loops:
        return []
    if robot.settings_file is None or "loops" in robot.arguments:
        return [asdict(loop) for loop in robot.settings.loops]
    return read_loop_tables(_read_side_file(robot.settings_file))


def _read_side_file(side_file: Path) -> bytes:
    """Return the content of a side file, read again."""
    try:
        return side_file.read_bytes()
    except OSError as error:
        fault = Fault(str(error.strerror or error), side_file.name, "keep the file until the FMU is validated")
        raise ValidationError("the robot's settings cannot be read again:", [fault]) from None


def form_added_forces(
    definition: CheckedModel, robot: RobotMechanics, independent_import: RobotImport
) -> AddedGeneralizedForces:
    """Return the forces beside those of the file: loads of the settings, loads and efforts of the model.

    Raises:
        ValueError: If something of it is not known to the independent import.
    """
    links = [link.name for link in robot.description.links]
    inputs = {item.name: item.symbol for item in definition.inputs}
    side_file = None if "loads" in robot.arguments else robot.settings_file
    tables = (
        read_load_tables(_read_side_file(side_file)) if side_file else [asdict(each) for each in robot.settings.loads]
    )
    loads = read_independent_link_loads(tables, robot.named_loads, links, inputs) if robot.settings.loads else []
    for load in robot.loads[len(loads) :]:
        offset = load.at.offset if isinstance(load.at, NamedFramePoint) else (0.0, 0.0, 0.0)
        axes = load.axes if load.axes in links else ""
        loads.append(LinkLoad(load.load_kind == "torque", load.frame, offset, axes, load.components))
    motion_vectors = list_link_vectors(robot)
    link_names = [*(name for each in loads for name in (each.link, each.axes)), *(each.link for each in motion_vectors)]
    unknown_names = [name for name in link_names if name and not independent_import.has_frame(name)]
    if unknown_names:
        raise ValueError(f"there is no frame {', '.join(dict.fromkeys(unknown_names))} in it")
    efforts = []
    for joint, joint_efforts in robot.efforts.items():
        if joint in robot.friction and len(joint_efforts) > 1:
            raise ValueError(f"efforts beside the dry friction of joint {joint}")
        efforts += [
            (independent_import.column[joint], effort) for effort in joint_efforts if joint not in robot.friction
        ]
    rates = {differentiate_by_time(each.q[0]): each.u[0] for each in robot.variables.values() if len(each.q) == 1}
    rates |= {differentiate_by_time(symbol): rate for symbol, rate in robot.motion_symbols.items() if rate is not None}
    calculated_values = {p.symbol: p.value for p in definition.parameters if p.calculated}
    states = definition.auxiliary_states
    return AddedGeneralizedForces(
        loads,
        efforts,
        motion_vectors,
        [*list_evaluation_point_symbols(definition), *(state.symbol for state in states)],
        calculated_values | rates,
        find_link_places(independent_import),
        [state.derivative for state in states],
    )


def find_link_places(independent_import: RobotImport) -> Callable[[str], Pose]:
    """Return a function: a link's name → its frame in the frame that the independent import moves for it."""
    tree = independent_import.tree if isinstance(independent_import, IndependentRobotImport) else None
    frames: Mapping[str, Pose] = tree.frames if tree else {}
    return lambda name: frames.get(name, GROUND_POSE)


def list_link_vectors(robot: RobotMechanics) -> list[LoadMotionVectorSymbols]:
    """Return the vectors of the motion of links or the ground that expressions contain, for the independent import."""
    links, vectors = {link.name for link in robot.description.links}, []
    for (quantity, place), symbols in robot.sensed.items():
        offset = place.offset if isinstance(place, NamedFramePoint) else (0.0, 0.0, 0.0)
        name = place.frame if isinstance(place, NamedFramePoint) else place.name
        vectors.append(LoadMotionVectorSymbols(quantity, name if name in links else "", offset, symbols))
    return vectors


def list_evaluation_point_items(definition: CheckedModel) -> list[Any]:
    """Return free parameters, states and inputs: one value each makes a point, behind that of time."""
    free = [p for p in definition.parameters if not p.calculated]
    return [*free, *definition.coordinates, *definition.speeds, *definition.inputs]


def list_evaluation_point_symbols(definition: CheckedModel) -> list[sm.Expr]:
    """Return the symbol of each value of a point."""
    t = dynamicsymbols._t  # noqa: SLF001 - SymPy has no public name for it
    return [t, *(item.symbol for item in list_evaluation_point_items(definition))]


def list_loop_closures(
    independent_import: RobotImport, loop_tables: Sequence[Mapping[str, Any]]
) -> list[LinkFrameConnection]:
    """Return loops of the file, then of the settings."""
    tree = independent_import.tree if isinstance(independent_import, IndependentRobotImport) else None
    place_of_link = find_link_places(independent_import)
    closures = [
        LinkFrameConnection(*each)
        for each in (independent_import.loop_closures if isinstance(independent_import, MujocoEquations) else ())
    ]
    closures += [LinkFrameConnection(*each) for each in (tree.closing if tree else ())]
    return [
        *closures,
        *(read_loop_closure_frames(each, place_of_link) for each in loop_tables),
    ]
