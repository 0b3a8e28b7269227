"""``make_model_from_robot``: a robot description and its settings → ``Model``, with everything declared.

Its default experiment is short where the motion becomes chaotic, since a chaotic motion shows little. Where its steps
are far longer than what dampers take to stop a joint, a note says so.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
import sympy as sm
from sympy.physics.vector import dynamicsymbols

from mb2fmu.errors import Fault, ModelError
from mb2fmu.model.flexible.flexible_body import FlexibleBody
from mb2fmu.model.model import Model
from mb2fmu.model.quantity_declarations import Coordinate, DeclaredVariable, Input, Parameter, Speed
from mb2fmu.model.variable_naming import suggest_identifier
from mb2fmu.robots.description.ignored_robot_features import describe_ignored_features
from mb2fmu.robots.description.robot_description import RobotDescription, RobotLoop
from mb2fmu.robots.flexible_links.flexible_link import (
    FlexibleLink,
    describe_stiff_modes,
    make_flexible_links,
    set_flexible_link_inertias,
)
from mb2fmu.robots.joints.inverse_dynamics_setup import (
    choose_excitation_frequency,
    make_joint_excitation_signals,
    request_joint_efforts,
    select_prescribed_joints,
)
from mb2fmu.robots.joints.joint_effort_laws import JointEffortLaws, form_tendon_efforts
from mb2fmu.robots.joints.joint_friction_and_stops import (
    JointFrictionAndRange,
    find_joint_friction_and_ranges,
    make_hard_stops,
    make_joint_friction,
    select_bounded_joints,
)
from mb2fmu.robots.joints.link_load_inputs import add_requested_link_loads, declare_load_inputs, make_link_load_signals
from mb2fmu.robots.joints.robot_joint_variables import (
    RobotJointVariables,
    UniqueVariableNames,
    declare_robot_joint_variables,
    drop_infinite_bound,
)
from mb2fmu.robots.outputs.joint_space_outputs import declare_joint_space_outputs
from mb2fmu.robots.outputs.robot_array_variables import ARRAY_NAMES, declare_robot_arrays
from mb2fmu.robots.outputs.robot_motion_and_reaction_outputs import (
    find_reaction_setting_faults,
    request_joint_reactions,
    request_link_frame_outputs,
)
from mb2fmu.robots.robot_appearance import list_mesh_uses
from mb2fmu.robots.robot_settings import RobotSettings
from mb2fmu.robots.tree.articulated_tree import GROUND_NAMES, RobotPartTree, build_articulated_tree
from mb2fmu.robots.tree.robot_inertia_and_stability import (
    MassMatrixAndWeightAtStart,
    check_massless_joints,
    compute_robot_damping_rate,
    compute_robot_inertia_and_weight,
    compute_robot_instability_rate,
    joint_damping_matrix,
    list_tree_motion_directions,
)
from mb2fmu.robots.tree.robot_loop_list import list_robot_loops
from mb2fmu.robots.tree.robot_mechanics_records import RobotJointSymbols, RobotMechanics

MAX_LENGTH_S = 2.0
"""Of the default experiment, s."""

MAX_DEVIATION_GROWTH = 1000.0
"""What a small deviation may become within the default experiment."""

MIN_STEP_COUNT = 25
"""Communication steps at least."""

_STIFFNESS_LIMIT = 1000.0
"""Times that what dampers stop may die away within a step; beyond that an explicit method takes many small steps."""


STANDARD_GRAVITY = 9.81
"""m/s²; what robot simulators take."""
_RESERVED_NAMES = {"time", "gravity"}
_EFFORT_LIMIT_FRACTION = 0.9
"""Part of an effort's limit that the default experiment uses."""
_FRICTION_EXCITATION_FACTOR = 2.0
"""Part of a joint's friction that the default experiment's efforts swing with, so that it slides and sticks."""
ModelKind = TypeVar("ModelKind", bound=Model)
GravityVector = tuple[sm.Expr, sm.Expr, sm.Expr]


def _choose_experiment_duration(settings: RobotSettings, fall: float, *, by_laws: bool) -> float:
    """Return the length in s: as requested, else 2 s or until small deviations have grown a thousandfold.

    Args:
        settings: What is requested.
        fall: Rate of the fastest exponential at the start, 1/s; 0 where nothing falls.
        by_laws: Drives with laws of their own hold the robot.
    """
    if settings.stop is not None:
        return settings.stop
    if by_laws or settings.role == "inverse-dynamics" or fall * MAX_LENGTH_S <= math.log(MAX_DEVIATION_GROWTH):
        return MAX_LENGTH_S
    steps = max(MIN_STEP_COUNT, round(math.log(MAX_DEVIATION_GROWTH) / (fall * settings.step)))
    return float(f"{min(MAX_LENGTH_S, steps * settings.step):.12g}")


def _describe_stiff_dampers(settings: RobotSettings, rate: float) -> tuple[str, ...]:
    """Return a note if dampers stop joints at such a rate, in 1/s, that an explicit method takes very small steps."""
    if settings.role != "plant" or rate * settings.step <= _STIFFNESS_LIMIT:
        return ()
    when = f"dampers stop joints within {1.0 / rate:.1g} s, far below a step"
    return (f"{when}: the FMU's own solver is implicit (--solver explicit: it is not)",)


def make_model_from_robot(
    description: RobotDescription, settings: RobotSettings, kind: type[ModelKind], format_: str
) -> ModelKind:
    """Make the model of a robot: all variables, and an experiment that moves every joint.

    The order of the steps, each of which needs those before it: the tree of parts; variables of gravity, joints,
    actuators and loads; mechanics of them; the model with its outputs; elements, whose stiffness follows from inertias
    at the start; the experiment, which moves every input.

    Args:
        description: Description from the file.
        settings: Settings for what the file leaves open.
        kind: Class of the model.
        format_: Of the file, in words, such as ``a URDF file``.

    Raises:
        ModelError: If the two do not fit, or the robot cannot move.
    """
    if settings.role == "inverse-dynamics":
        settings = replace(settings, prescribed=select_prescribed_joints(description, settings), inputs=())
    flexible = make_flexible_links(description, settings, _RESERVED_NAMES)
    description = set_flexible_link_inertias(description, flexible)
    tree = build_articulated_tree(description, settings, flexible)
    check_massless_joints(tree, description.format_location())
    robot = _declare_variables(description, settings, tree, flexible)
    mechanics = _form_mechanics(robot, format_)
    model = _form_model(robot, mechanics, kind)
    for link in flexible:
        link.body.declare_variables(model)
        link.draw(model)
    _request_outputs(model, robot, mechanics)
    if settings.arrays:
        declare_robot_arrays(model)
    inertia = _compute_inertia(robot)
    for each in robot.joints_with_sticking:
        model.add(make_joint_friction(each))
    for each in robot.joints_with_stops:
        model.add(make_hard_stops(each, inertia.joint_inertia(each.part_number)))
    stop = _choose_experiment_duration(settings, inertia.falling_rate, by_laws=bool(robot.actuation.controls))
    stiffness_notes = _describe_stiff_dampers(settings, inertia.braking_rate)
    stiffness_notes += tuple(describe_stiff_modes(flexible, settings.step))
    mechanics.notes += stiffness_notes
    signals = _excite_joints(robot, mechanics, inertia) | _excite_links(robot, mechanics, inertia)
    model.experiment(stop=stop, step=settings.step, signals=signals, stiff=bool(stiffness_notes))
    return model


@dataclass(frozen=True, slots=True)
class _RobotModelDeclarations:
    """Everything that a robot declares before its model is made.

    Attributes:
        description: Description from the file.
        settings: Settings for what the file leaves open.
        tree: Of the robot's parts.
        gravity: Acceleration in m/s², components in the ground.
        joints: Variables of the joints.
        actuation: Efforts of actuators and tendons along joints.
        loops: Closed loops.
        joints_with_sticking: Joints with dry friction that sticks.
        joints_with_stops: Joints with hard stops.
        named_loads: Names of the settings' loads in the FMU.
        load_inputs: Their components.
        declared: Parameters, coordinates, speeds and inputs of all of these, in this order.
        notes: Ignored, assumed or renamed items, one sentence each.
        flexible: Links that bend.
    """

    description: RobotDescription
    settings: RobotSettings
    tree: RobotPartTree
    gravity: GravityVector
    joints: RobotJointVariables
    actuation: JointEffortLaws
    loops: tuple[RobotLoop, ...]
    joints_with_sticking: tuple[JointFrictionAndRange, ...]
    joints_with_stops: tuple[JointFrictionAndRange, ...]
    named_loads: tuple[str, ...]
    load_inputs: tuple[Input, ...]
    declared: tuple[DeclaredVariable, ...]
    notes: tuple[str, ...]
    flexible: tuple[FlexibleLink, ...]

    @property
    def start_values(self) -> dict[sm.Expr, float]:
        """Start value of each coordinate and input."""
        return {item.symbol: item.start for item in self.declared if isinstance(item, Coordinate | Input)}


def _declare_variables(
    description: RobotDescription,
    settings: RobotSettings,
    tree: RobotPartTree,
    flexible: tuple[FlexibleLink, ...],
) -> _RobotModelDeclarations:
    """Declare the variables of gravity, joints, actuators and loads; names and notes are made in this order."""
    reserved = {*_RESERVED_NAMES, *(link.body.name for link in flexible)}
    names = UniqueVariableNames(reserved, [*description.notes, *tree.notes])
    if settings.arrays:
        names.taken_names |= ARRAY_NAMES
        names.notes.append("arrays are there in FMUs of FMI 3.0 (--fmi 3); FMUs of FMI 2.0 have the scalars")
    parameters, gravity = _declare_gravity(description, settings)
    joints = declare_robot_joint_variables(description, settings, tree, names)
    controls, actuation = _declare_actuators(joints)
    passive = find_joint_friction_and_ranges(tree, joints.variables)
    loops = list_robot_loops(description, settings, names.choose_name)
    notes = [*names.notes, *describe_ignored_features(description, settings, tree, joints.variables)]
    links = [link.name for link in description.links]
    named_loads, load_inputs = declare_load_inputs(settings.loads, links, notes)
    return _RobotModelDeclarations(
        description=description,
        settings=settings,
        tree=tree,
        gravity=gravity,
        joints=joints,
        actuation=actuation,
        loops=loops,
        joints_with_sticking=tuple(each for each in passive if each.friction) if settings.friction == "stick" else (),
        joints_with_stops=tuple(select_bounded_joints(passive)) if settings.limits == "stop" else (),
        named_loads=named_loads,
        load_inputs=load_inputs,
        declared=(*parameters, *joints.declared, *controls, *load_inputs),
        notes=tuple(notes),
        flexible=flexible,
    )


def _declare_gravity(
    description: RobotDescription, settings: RobotSettings
) -> tuple[tuple[Parameter, ...], GravityVector]:
    """Return the size of gravity as a parameter, and its vector in m/s²; no parameter where it is zero.

    ``RobotMechanics.gravity`` takes the vector on; ``tree/mechanism_from_robot.py`` makes a weight of each link of it,
    a load like any other.
    """
    given = settings.gravity or description.gravity or (0.0, 0.0, -STANDARD_GRAVITY)
    size = float(np.linalg.norm(given))
    if size == 0.0:
        return (), (sm.S.Zero, sm.S.Zero, sm.S.Zero)
    symbol = sm.Symbol("gravity")
    x, y, z = (sm.Rational(c / size) * symbol for c in given)
    parameter = Parameter(symbol=symbol, name="gravity", value=size, unit="m/s2", description="acceleration of gravity")
    return (parameter,), (x, y, z)


def _declare_actuators(joints: RobotJointVariables) -> tuple[list[Input], JointEffortLaws]:
    """Return the inputs of actuators, and the efforts of actuators and tendons along joints."""
    description, controls = joints.description, list[Input]()
    actuation = JointEffortLaws(joints.list_joint_motions())
    inverse = joints.settings.role == "inverse-dynamics"
    for actuator in () if inverse else description.actuators:
        name = joints.names.choose_name(actuator.name, "actuator")
        symbol = dynamicsymbols(f"control_{name}")
        low, high = actuator.control
        controls.append(
            Input(
                symbol=symbol, name=f"{name}.control", unit="1",
                minimum=drop_infinite_bound(low), maximum=drop_infinite_bound(high),
                start=float(np.clip(0.0, low, high)),
                where=description.format_location(actuator.line), description=f"control of actuator {actuator.name}",
            )
        )  # fmt: skip
        actuation.add_actuator(actuator, symbol)
    bounds = {part.moving_joint.name: part.moving_joint.actuated for part in joints.tree.parts[1:]}
    actuation.limit_and_add_tendons(bounds, description.tendons)
    return controls, actuation


def _form_mechanics(robot: _RobotModelDeclarations, format_: str) -> RobotMechanics:
    """Return the mechanics of the model, with the loads of its settings."""
    description, variables = robot.description, robot.joints.variables
    links = tuple(link.name for link in description.links)
    meshes, missing = list_mesh_uses(description, robot.tree, robot.settings.packages)
    ground = next(name for name in GROUND_NAMES if name not in links)
    movers: list[RobotJointSymbols | FlexibleBody] = [*variables.values(), *(link.body for link in robot.flexible)]
    q = tuple(symbol for each in movers for symbol in each.q)
    u = tuple(symbol for each in movers for symbol in each.u)
    single = {
        robot.tree.parts[i].moving_joint.name: each for i, each in variables.items() if len(each.q) == len(each.u) == 1
    }
    mechanics = RobotMechanics(
        kind=format_,
        coordinates=q,
        speeds=u,
        ground=ground,
        frames=(ground, *links),
        notes=tuple(dict.fromkeys((*robot.notes, *missing))),
        position={name: each.q[0] for name, each in single.items()},
        speed={name: each.u[0] for name, each in single.items()},
        description=description,
        settings=robot.settings,
        tree=robot.tree,
        variables=variables,
        damping=robot.joints.damping,
        friction={e.joint: (f"{e.name}.friction.kinetic", e.friction) for e in robot.joints_with_sticking},
        joints_with_stops=tuple(each.joint for each in robot.joints_with_stops),
        actuator_efforts=robot.actuation.efforts,
        controls=robot.actuation.controls,
        passive_efforts=form_tendon_efforts(robot.joints.list_joint_motions(), description.tendons),
        named_loads=robot.named_loads,
        loops=robot.loops,
        meshes=meshes,
        missing_mesh_notes=missing,
        gravity=robot.gravity,
        flexible=robot.flexible,
    )
    add_requested_link_loads(mechanics, robot.load_inputs)
    return mechanics


def _form_model(robot: _RobotModelDeclarations, mechanics: RobotMechanics, kind: type[ModelKind]) -> ModelKind:
    """Return the model with all variables and terminals, without requested outputs and experiment."""
    description = robot.description
    name = robot.settings.name or description.name or (description.source.stem if description.source else "")
    text = f"{description.name or name}: {len(robot.joints.variables)} joints, from {mechanics.kind}"
    model = kind(suggest_identifier(name, "Robot"), mechanics, description=text)
    model.source = description.source
    model.where = description.format_location()
    model.declared += [*robot.declared, *robot.joints.outputs]
    for label, members, flow in robot.joints.terminals:
        model.terminal(label, members, inflow=[flow])
    return model


def _request_outputs(model: Model, robot: _RobotModelDeclarations, mechanics: RobotMechanics) -> None:
    """Request the outputs of the settings; raise with all links that do not exist."""
    settings, faults = robot.settings, []
    if settings.role == "inverse-dynamics":
        model.declared += request_joint_efforts(robot.tree, robot.joints.variables, robot.description)
    for item in settings.outputs:
        if item.frame in mechanics.frames:
            request_link_frame_outputs(model, mechanics, item)
        else:
            near = ", ".join(mechanics.frames)
            faults.append(
                Fault(f"an output is requested for {item.frame!r}, which is no link", "", f"there are {near}")
            )
    faults += find_reaction_setting_faults(mechanics)
    if faults:
        raise ModelError("the robot's settings do not fit it:", faults)
    request_joint_reactions(model, mechanics, robot.joints.part_names)
    speeds = [item for item in model.declared if isinstance(item, Speed)]
    joint_space = declare_joint_space_outputs(settings, speeds, mechanics)
    mechanics.desired_accelerations = tuple(item.symbol for item in joint_space.inputs)
    model.declared += [*joint_space.inputs, *joint_space.requests]
    if settings.energy:
        model.output_kinetic_energy()
        model.output_potential_energy()
        model.output_total_energy()


def _compute_inertia(robot: _RobotModelDeclarations) -> MassMatrixAndWeightAtStart:
    """Return inertias and weights along the speeds at the start; floating parts carry no weight."""
    size = next((p.value for p in robot.declared if isinstance(p, Parameter) and p.name == "gravity"), 0.0)
    pull = np.array([float(g.subs(sm.Symbol("gravity"), size)) for g in robot.gravity])
    tree, starts = robot.tree, robot.start_values
    positions = {i: starts[each.q[0]] for i, each in robot.joints.variables.items() if len(each.q) == 1}
    M, weight, K = compute_robot_inertia_and_weight(tree, positions, pull)
    row = {part: j for j, (part, k) in enumerate(list_tree_motion_directions(tree)) if k == 0}
    loose = [i for i, part in enumerate(tree.parts) if part.joint and part.joint.kind == "floating"]
    falling = tree.list_carried_parts(loose)
    carried = [j for j, (part, _) in enumerate(list_tree_motion_directions(tree)) if part in falling]
    weight[carried], K[carried], K[:, carried] = 0.0, 0.0, 0.0
    D = joint_damping_matrix(tree, robot.joints.damping)
    return MassMatrixAndWeightAtStart(
        M, weight, row, compute_robot_instability_rate(M, K, D), D, compute_robot_damping_rate(M, D)
    )


def _excite_links(
    robot: _RobotModelDeclarations, mechanics: RobotMechanics, inertia: MassMatrixAndWeightAtStart
) -> dict[sm.Expr, sm.Expr]:
    """Return forces and torques on links that move every joint they reach, each at its own frequency."""
    starts = robot.start_values
    single = {i: (each.prescribed or each.q)[0] for i, each in robot.joints.variables.items() if len(each.q) < 2}
    positions = {i: starts[symbol] for i, symbol in single.items()}
    before = len(starts) - len(robot.load_inputs)
    return make_link_load_signals(mechanics, robot.load_inputs, positions, inertia.M, robot.settings.excitation, before)


def _excite_joints(
    robot: _RobotModelDeclarations, mechanics: RobotMechanics, inertia: MassMatrixAndWeightAtStart
) -> dict[sm.Expr, sm.Expr]:
    """Return efforts that hold the robot at the start and move every joint at its own frequency."""
    tree, variables, starts = robot.tree, robot.joints.variables, robot.start_values
    if robot.settings.role == "inverse-dynamics":
        inputs = {item.symbol: item.start for item in robot.declared if isinstance(item, Input)}
        return make_joint_excitation_signals(tree, variables, inputs, robot.settings.excitation)
    driven = [i for i, each in variables.items() if each.effort is not None]
    rubbing = {each.part_number: each.friction for each in robot.joints_with_sticking}
    size, weight, row = robot.settings.excitation, inertia.weight, inertia.row
    t, signals = dynamicsymbols._t, {}  # noqa: SLF001 - SymPy has no public name for it
    for k, i in enumerate(driven):
        most = _EFFORT_LIMIT_FRACTION * tree.parts[i].moving_joint.limits.effort
        hold = float(f"{np.clip(weight[row[i]], -most, most):.6g}")
        rate = choose_excitation_frequency(k)
        wanted = size * (
            inertia.effort_per_acceleration(row[i], rate) + _FRICTION_EXCITATION_FACTOR * rubbing.get(i, 0.0)
        )
        swing = float(f"{min(wanted, most - abs(hold)):.6g}")
        effort = variables[i].effort
        assert effort is not None
        signals[effort] = hold + swing * sm.sin(rate * t)
    signals |= {
        a: size * sm.sin(choose_excitation_frequency(k) * t) for k, a in enumerate(mechanics.desired_accelerations)
    }
    rows = {p.moving_joint.name: row[p.coordinate[0]] for p in tree.parts[1:] if p.coordinate is not None}
    holding = {name: float(weight[j]) for name, j in rows.items() if j < len(weight)}
    dry = {each.joint: _FRICTION_EXCITATION_FACTOR * each.friction for each in robot.joints_with_sticking}

    def swinging(joint: str, rate: float) -> float:
        """Return the effort that swings a joint at an angular frequency."""
        return (
            size * (inertia.effort_per_acceleration(rows[joint], rate) + dry.get(joint, 0.0)) if joint in rows else 0.0
        )

    return signals | robot.actuation.make_control_signals(starts, holding, swinging)
