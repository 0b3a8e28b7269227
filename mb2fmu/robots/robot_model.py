"""``make_robot_model``: a robot description and its settings → ``Model``, with everything declared.

Length of a robot's default experiment: short where the motion becomes chaotic, since a chaotic motion tells little.

And a note where its steps are far longer than what dampers take to stop a joint.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import numpy as np
import sympy as sm
from sympy.physics.vector import dynamicsymbols

from mb2fmu.errors import Fault, ModelError
from mb2fmu.model.model import Model
from mb2fmu.model.quantity_declarations import Coordinate, Input, Output, Parameter, Speed, StartKind
from mb2fmu.model.variable_naming import suggest_identifier
from mb2fmu.robots.description.ignored_features import describe_ignored_features
from mb2fmu.robots.description.robot_description import JointRecord, RobotDescription
from mb2fmu.robots.display_names import spell_out_name
from mb2fmu.robots.joints.inverse_dynamics import (
    excitation_rate,
    excite_joint_motions,
    request_joint_efforts,
    select_prescribed_joints,
)
from mb2fmu.robots.joints.joint_effort_laws import JointEffortLaws, tendon_efforts
from mb2fmu.robots.joints.joint_elements import (
    JointPassiveEffort,
    find_joint_passive_efforts,
    make_hard_stops,
    make_joint_friction,
    select_bounded_joints,
)
from mb2fmu.robots.joints.link_loads import add_requested_loads, declare_load_inputs, excite_link_loads
from mb2fmu.robots.outputs.joint_space_outputs import declare_joint_space_outputs
from mb2fmu.robots.outputs.link_outputs import reaction_faults, request_frame_outputs, request_reactions
from mb2fmu.robots.outputs.robot_arrays import ARRAY_NAMES, declare_arrays
from mb2fmu.robots.robot_appearance import find_meshes
from mb2fmu.robots.robot_settings import RobotSettings
from mb2fmu.robots.tree.articulated_tree import GROUND_NAMES, ArticulatedTree, TreePart, build_articulated_tree
from mb2fmu.robots.tree.loop_list import list_loops
from mb2fmu.robots.tree.robot_mechanics import JointVariables, RobotMechanics
from mb2fmu.robots.tree.tree_inertia import (
    TreeInertia,
    check_singular_joints,
    compute_braking_rate,
    compute_falling_rate,
    compute_inertia_and_weight,
    joint_damping_matrix,
    motion_directions,
)

MAX_LENGTH_S = 2.0
"""s."""

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


def choose_experiment_length(settings: RobotSettings, fall: float, *, by_laws: bool) -> float:
    """Return the length in s: as requested, else 2 s or until small deviations have grown a thousandfold.

    Args:
        settings: What is asked for.
        fall: Rate of the fastest exponential at the start, 1/s; 0 where nothing falls.
        by_laws: Drives with laws of their own hold the robot.
    """
    if settings.stop is not None:
        return settings.stop
    if by_laws or settings.role == "inverse-dynamics" or fall * MAX_LENGTH_S <= math.log(MAX_DEVIATION_GROWTH):
        return MAX_LENGTH_S
    steps = max(MIN_STEP_COUNT, round(math.log(MAX_DEVIATION_GROWTH) / (fall * settings.step)))
    return float(f"{min(MAX_LENGTH_S, steps * settings.step):.12g}")


def note_stiffness(settings: RobotSettings, rate: float) -> tuple[str, ...]:
    """Return a note if dampers stop joints at such a rate, in 1/s, that an explicit method takes very small steps."""
    if settings.role != "plant" or rate * settings.step <= _STIFFNESS_LIMIT:
        return ()
    when = f"dampers stop joints within {1.0 / rate:.1g} s, far below a step"
    return (f"{when}: the FMU's own solver is implicit (--solver explicit: it is not)",)


def make_robot_model(
    description: RobotDescription, settings: RobotSettings, kind: type[ModelKind], format_: str
) -> ModelKind:
    """Make the model of a robot: all variables, and an experiment that moves every joint.

    Args:
        description: What the file says.
        settings: What it leaves open.
        kind: Class of the model.
        format_: Of the file, in words, such as ``a URDF file``.

    Raises:
        ModelError: If the two do not fit, or the robot cannot move.
    """
    if settings.role == "inverse-dynamics":
        settings = replace(settings, prescribed=select_prescribed_joints(description, settings), inputs=())
    tree = build_articulated_tree(description, settings)
    check_singular_joints(tree, description.source.name if description.source else description.name)
    return _RobotModelBuilder(description, settings, tree).model(kind, format_)


@dataclass(slots=True)
class _RobotModelBuilder:
    description: RobotDescription
    settings: RobotSettings
    tree: ArticulatedTree
    declared: list[Any] = field(default_factory=list)
    taken: set[str] = field(default_factory=lambda: set(_RESERVED_NAMES))
    notes: list[str] = field(default_factory=list)
    variables: dict[int, JointVariables] = field(default_factory=dict)
    names: dict[int, str] = field(default_factory=dict)  # part → name of its joint's variables
    damping: dict[int, sm.Symbol] = field(default_factory=dict)
    outputs: list[Output] = field(default_factory=list)
    signals: dict[int, sm.Expr] = field(default_factory=dict)
    terminals: list[tuple[str, dict[str, sm.Expr], str]] = field(default_factory=list)
    actuation: JointEffortLaws = field(default_factory=JointEffortLaws)
    rubbing: tuple[JointPassiveEffort, ...] = ()
    stopped: tuple[JointPassiveEffort, ...] = ()
    desired: tuple[sm.Expr, ...] = ()
    loaded: tuple[tuple[str, ...], tuple[Input, ...]] = ((), ())  # names of the settings' loads, and their components

    def model(self, kind: type[ModelKind], format_: str) -> ModelKind:
        """Return the whole model."""
        self.notes += [*self.description.notes, *self.tree.notes]
        if self.settings.arrays:
            self.taken |= ARRAY_NAMES
            self.notes.append("arrays are there in FMUs of FMI 3.0 (--fmi 3); FMUs of FMI 2.0 have the scalars")
        gravity = self._gravity()
        for i, part in enumerate(self.tree.parts[1:], 1):
            if part.coordinate is None or part.coordinate[0] == i:
                self.variables[i] = self._declare(part)
                self.names[i] = self.variables[i].name
                self._declare_damping(i, part.moving_joint, self.variables[i].name)
        for i, part in enumerate(self.tree.parts[1:], 1):
            if i not in self.variables:
                self._declare_follower(i, part)
        self._declare_actuators()
        felt = find_joint_passive_efforts(self.tree, self.variables)
        if self.settings.friction == "stick":
            self.rubbing = tuple(each for each in felt if each.friction)
        if self.settings.limits == "stop":
            self.stopped = tuple(select_bounded_joints(felt))
        self.notes += describe_ignored_features(self.description, self.settings, self.tree, self.variables)
        self.loaded = declare_load_inputs(
            self.settings.loads, [link.name for link in self.description.links], self.notes
        )
        self.declared += self.loaded[1]
        mechanics = self._mechanics(gravity, format_)
        add_requested_loads(mechanics, self.loaded[1])
        name = self.settings.name or self.description.name or self._stem
        text = f"{self.description.name or name}: {len(self.variables)} joints, from {format_}"
        model = kind(suggest_identifier(name, "Robot"), mechanics, description=text)
        model.source = self.description.source
        model.where = self._where(0)
        model.declared += [*self.declared, *self.outputs]
        for label, members, flow in self.terminals:
            model.terminal(label, members, inflow=[flow])
        self._ask_for_outputs(model, mechanics)
        if self.settings.arrays:
            declare_arrays(model)
        weights = self._weights(gravity)
        self._add_elements(model, weights)
        stop = choose_experiment_length(self.settings, weights.falling_rate, by_laws=bool(self.actuation.controls))
        told = note_stiffness(self.settings, weights.braking_rate)
        mechanics.notes += told
        signals = self._experiment(weights) | self._swinging_loads(weights, mechanics)
        model.experiment(stop=stop, step=self.settings.step, signals=signals, stiff=bool(told))
        return model

    def _add_elements(self, model: Model, weights: TreeInertia) -> None:
        """Add dry friction and hard stops."""
        for each in self.rubbing:
            model.add(make_joint_friction(each))
        for each in self.stopped:
            model.add(make_hard_stops(each, weights.joint_inertia(each.part)))

    @property
    def _stem(self) -> str:
        """The name of the robot file without its suffix."""
        return self.description.source.stem if self.description.source else ""

    def _where(self, line: int) -> str:
        """Return file and line for a message; no line if it is 0."""
        file = self.description.source.name if self.description.source else self.description.name
        return f"{file}:{line}" if line else file

    def _legal(self, name: str, what: str) -> str:
        """Return a legal, unique FMI name; add a note where it differs from the file's."""
        found = suggest_identifier(name, what)
        number = 2
        while found in self.taken:
            found = f"{suggest_identifier(name, what)}_{number}"
            number += 1
        self.taken.add(found)
        if found != name:
            self.notes.append(f"{what} {name!r} is called {found} in the FMU")
        return found

    def _gravity(self) -> tuple[sm.Expr, sm.Expr, sm.Expr]:
        """Declare the size of gravity as a parameter, and return its vector in m/s²."""
        given = self.settings.gravity or self.description.gravity or (0.0, 0.0, -STANDARD_GRAVITY)
        size = float(np.linalg.norm(given))
        if size == 0.0:
            return (sm.S.Zero, sm.S.Zero, sm.S.Zero)
        symbol = sm.Symbol("gravity")
        self.declared.append(
            Parameter(symbol=symbol, name="gravity", value=size, unit="m/s2", description="acceleration of gravity")
        )
        x, y, z = (sm.Rational(c / size) * symbol for c in given)
        return (x, y, z)

    # --- joints ------------------------------------------------------------------------------------------------------

    def _declare(self, part: TreePart) -> JointVariables:
        """Declare the variables of a part's joint."""
        joint = part.moving_joint
        name = self._legal(joint.name, "joint")
        match joint.kind:
            case "revolute" | "prismatic":
                return self._single(joint, name)
            case "planar":
                return self._planar(joint, name)
        return self._free(joint, name)

    def _single(self, joint: JointRecord, name: str) -> JointVariables:
        """Declare angle or position, speed and, if the joint is driven, effort of a joint with one axis."""
        turns = joint.kind == "revolute"
        units = ("rad", "rad/s", "N.m") if turns else ("m", "m/s", "N")
        word, where = ("angle" if turns else "position"), self._where(joint.line)
        if joint.name in self.settings.prescribed:
            return self._prescribed(joint, name, word, units)
        q, u = dynamicsymbols(f"q_{name}"), dynamicsymbols(f"u_{name}")
        limits = joint.limits
        stops = self.settings.limits == "stop"  # which are soft: a position may be a little beyond its bound
        start = float(np.clip(joint.start, limits.lower, limits.upper))
        self.declared.append(
            Coordinate(
                symbol=q, name=f"{name}.{word}", kind=self._start_kind(joint), start=start, unit=units[0],
                minimum=None if stops else _finite_or_none(limits.lower),
                maximum=None if stops else _finite_or_none(limits.upper), where=where,
                description=f"{word} of joint {joint.name}",
            )
        )  # fmt: skip
        speed = float(self.settings.speeds.get(joint.name, 0.0))
        bound = limits.velocity if limits.velocity > abs(speed) else np.inf
        self.declared.append(
            Speed(
                symbol=u, name=f"{name}.speed", kind=self._start_kind(joint), start=speed, unit=units[1],
                minimum=_finite_or_none(-bound),
                maximum=_finite_or_none(bound), where=where, description=f"speed of joint {joint.name}",
            )
        )  # fmt: skip
        effort = None
        if joint.driven if self.settings.inputs is None else joint.name in self.settings.inputs:
            effort = dynamicsymbols(f"tau_{name}")
            self.declared.append(
                Input(
                    symbol=effort, name=f"{name}.effort", unit=units[2], minimum=_finite_or_none(-limits.effort),
                    maximum=_finite_or_none(limits.effort), where=where,
                    description=f"{'torque' if turns else 'force'} along joint {joint.name}",
                )
            )  # fmt: skip
            members = {"tau": effort, "phi": q, "w": u} if turns else {"f": effort, "s": q, "v": u}
            self.terminals.append((name, members, next(iter(members))))
        return JointVariables(name=name, q=(q,), u=(u,), effort=effort)

    def _start_kind(self, joint: JointRecord) -> StartKind:
        """Return fixed, or guess on closed loops for starts that nobody gave: they may move until loops close."""
        closed = self.settings.loops or self.description.loops
        return "guess" if closed and joint.name not in self.settings.start else "fixed"

    def _declare_damping(self, i: int, joint: JointRecord, name: str) -> None:
        """Declare the damper of a joint; floating joints have none."""
        unmoved = joint.name in self.settings.prescribed and self.settings.role == "plant"
        if not joint.damping or joint.kind == "floating" or unmoved:
            return
        unit = "N.m.s/rad" if joint.kind in {"revolute", "ball"} else "N.s/m"
        symbol = sm.Symbol(f"damping_{name}")
        self.declared.append(
            Parameter(
                symbol=symbol, name=f"{name}.damping", value=joint.damping, unit=unit, minimum=0.0,
                where=self._where(joint.line), description=f"viscous damping of joint {joint.name}",
            )
        )  # fmt: skip
        self.damping[i] = symbol

    def _prescribed(self, joint: JointRecord, name: str, word: str, units: tuple[str, ...]) -> JointVariables:
        """Declare position, speed and acceleration of a joint as inputs."""
        where, q = self._where(joint.line), dynamicsymbols(f"q_{name}")
        t = dynamicsymbols._t  # noqa: SLF001 - SymPy has no public name for it
        symbols = (q, q.diff(t), q.diff(t, 2))
        limits = joint.limits
        start = float(np.clip(joint.start, limits.lower, limits.upper))
        parts = (
            (word, start, units[0], _finite_or_none(limits.lower), _finite_or_none(limits.upper)),
            ("speed", 0.0, units[1], None, None),
            ("acceleration", 0.0, f"{units[0]}/s2", None, None),
        )
        for symbol, (part, value, unit, low, high) in zip(symbols, parts, strict=True):
            self.declared.append(
                Input(
                    symbol=symbol, name=f"{name}.{part}", start=value, unit=unit, minimum=low, maximum=high,
                    where=where, description=f"{part} of joint {joint.name}, prescribed",
                )
            )  # fmt: skip
        return JointVariables(name=name, prescribed=symbols)

    def _planar(self, joint: JointRecord, name: str) -> JointVariables:
        """Declare position, angle and their rates of a planar joint."""
        where = self._where(joint.line)
        q = tuple(dynamicsymbols(f"{part}_{name}") for part in ("x", "y", "phi"))
        u = tuple(dynamicsymbols(f"{part}_{name}") for part in ("vx", "vy", "w"))
        parts = (("position.x", "m"), ("position.y", "m"), ("angle", "rad"))
        rates = (("velocity.x", "m/s"), ("velocity.y", "m/s"), ("speed", "rad/s"))
        for kind, symbols, named in ((Coordinate, q, parts), (Speed, u, rates)):
            for symbol, (word, unit) in zip(symbols, named, strict=True):
                text = f"{spell_out_name(word)} of joint {joint.name}"
                self.declared.append(
                    kind(symbol=symbol, name=f"{name}.{word}", start=0.0, unit=unit, where=where, description=text)
                )
        return JointVariables(name=name, q=q, u=u)

    def _free(self, joint: JointRecord, name: str) -> JointVariables:
        """Declare floating joints and balls; speeds are along the axes of the moving part."""
        from scipy.spatial.transform import Rotation  # as long to import as a robot to read

        where, floats = self._where(joint.line), joint.kind == "floating"
        places = "xyz" if floats else ""
        w, x, y, z = np.roll(Rotation.from_matrix(joint.start_pose.rotation).as_quat(), 1)
        start = dict(zip("wxyz", map(float, np.array([w, x, y, z]) * (-1.0 if w < 0 else 1.0)), strict=True))
        at = dict(zip("xyz", map(float, joint.start_pose.position), strict=True))
        q = [(dynamicsymbols(f"{axis}_{name}"), f"position.{axis}", "m", at[axis]) for axis in places]
        u = [(dynamicsymbols(f"v{axis}_{name}"), f"velocity.{axis}", "m/s", 0.0) for axis in places]
        q += [(dynamicsymbols(f"e{axis}_{name}"), f"orientation.{axis}", "1", start[axis]) for axis in "wxyz"]
        u += [(dynamicsymbols(f"w{axis}_{name}"), f"angular_velocity.{axis}", "rad/s", 0.0) for axis in "xyz"]
        for kind, rows in ((Coordinate, q), (Speed, u)):
            for symbol, word, unit, value in rows:
                text = (
                    f"{spell_out_name(word)} of joint {joint.name}{', along the moving axes' if kind is Speed else ''}"
                )
                self.declared.append(
                    kind(
                        symbol=symbol, name=f"{name}.{word}", kind=self._start_kind(joint), start=value, unit=unit,
                        where=where, description=text,
                    )
                )  # fmt: skip
        return JointVariables(name=name, q=tuple(r[0] for r in q), u=tuple(r[0] for r in u))

    def _declare_follower(self, i: int, part: TreePart) -> None:
        """Declare the position of a joint that mimics another as an output."""
        joint = part.moving_joint
        assert part.coordinate is not None
        owner, factor, offset = part.coordinate
        leader = self.variables[owner]
        q, u = (leader.q[0], leader.u[0]) if leader.prescribed is None else leader.prescribed[:2]
        name, turns = self._legal(joint.name, "joint"), joint.kind == "revolute"
        self.names[i] = name
        if leader.prescribed is None or self.settings.role == "inverse-dynamics":
            self._declare_damping(i, joint, name)
        text = f"joint {joint.name}, which follows {leader.name}"
        word, units = ("angle", ("rad", "rad/s")) if turns else ("position", ("m", "m/s"))
        rows = ((word, factor * q + offset, units[0]), ("speed", factor * u, units[1]))
        for label, expression, unit in rows:
            self.outputs.append(
                Output(
                    expression=sm.sympify(expression), name=f"{name}.{label}", unit=unit, where=self._where(joint.line),
                    description=f"{label} of {text}",
                )
            )  # fmt: skip

    def _declare_actuators(self) -> None:
        """Declare the inputs of actuators, and the efforts of actuators and tendons along joints."""
        self.actuation = JointEffortLaws(self._joint_motions())
        inverse = self.settings.role == "inverse-dynamics"
        for actuator in () if inverse else self.description.actuators:
            name = self._legal(actuator.name, "actuator")
            symbol = dynamicsymbols(f"control_{name}")
            low, high = actuator.control
            self.declared.append(
                Input(
                    symbol=symbol, name=f"{name}.control", unit="1",
                    minimum=_finite_or_none(low), maximum=_finite_or_none(high),
                    start=float(np.clip(0.0, low, high)),
                    where=self._where(actuator.line), description=f"control of actuator {actuator.name}",
                )
            )  # fmt: skip
            self.actuation.drive(actuator, symbol)
        bounds = {part.moving_joint.name: part.moving_joint.actuated for part in self.tree.parts[1:]}
        self.actuation.finish(bounds, self.description.tendons)

    def _joint_motions(self) -> dict[str, tuple[sm.Expr, sm.Expr]]:
        """Return position and speed of every joint with one coordinate, fixed ones included."""
        found = {name: (sm.Float(held), sm.S.Zero) for name, held in self.tree.held.items()}
        for part in self.tree.parts[1:]:
            if part.coordinate is None:
                continue
            owner, factor, offset = part.coordinate
            each = self.variables[owner]
            q, u = (each.q[0], each.u[0]) if each.prescribed is None else each.prescribed[:2]
            own = (q, u) if (factor, offset) == (1.0, 0.0) else (factor * q + offset, factor * u)
            found[part.moving_joint.name] = own
        return found

    # --- the rest ----------------------------------------------------------------------------------------------------

    def _mechanics(self, gravity: tuple[sm.Expr, sm.Expr, sm.Expr], format_: str) -> RobotMechanics:
        """Return the mechanics of the model."""
        links = tuple(link.name for link in self.description.links)
        meshes, missing = find_meshes(self.description, self.tree, self.settings.packages)
        ground = next(name for name in GROUND_NAMES if name not in links)
        q = tuple(symbol for each in self.variables.values() for symbol in each.q)
        u = tuple(symbol for each in self.variables.values() for symbol in each.u)
        single = {
            self.tree.parts[i].moving_joint.name: each
            for i, each in self.variables.items()
            if len(each.q) == len(each.u) == 1
        }
        return RobotMechanics(
            kind=format_,
            coordinates=q,
            speeds=u,
            ground=ground,
            frames=(ground, *links),
            notes=tuple(dict.fromkeys((*self.notes, *missing))),
            position={name: each.q[0] for name, each in single.items()},
            speed={name: each.u[0] for name, each in single.items()},
            description=self.description,
            settings=self.settings,
            tree=self.tree,
            variables=self.variables,
            damping=self.damping,
            friction={each.joint: f"{each.name}.friction.kinetic" for each in self.rubbing},
            stops=tuple(each.joint for each in self.stopped),
            laws=self.actuation.efforts,
            controls=self.actuation.controls,
            passive=tendon_efforts(self._joint_motions(), self.description.tendons),
            named_loads=self.loaded[0],
            loops=list_loops(self.description, self.settings, self._legal),
            meshes=meshes,
            missing_mesh_notes=missing,
            gravity=gravity,
        )

    def _ask_for_outputs(self, model: Model, mechanics: RobotMechanics) -> None:
        """Ask for the outputs of the settings; raise with all links that do not exist."""
        faults = []
        if self.settings.role == "inverse-dynamics":
            model.declared += request_joint_efforts(self.tree, self.variables, self._where)
        for item in self.settings.outputs:
            if item.frame in mechanics.frames:
                request_frame_outputs(model, mechanics, item)
            else:
                near = ", ".join(mechanics.frames)
                faults.append(Fault(f"an output is asked of {item.frame!r}, which is no link", "", f"there are {near}"))
        faults += reaction_faults(mechanics)
        if faults:
            raise ModelError("the robot's settings do not fit it:", faults)
        request_reactions(model, mechanics, self.names)
        speeds = [item for item in self.declared if isinstance(item, Speed)]
        asked = declare_joint_space_outputs(self.settings, speeds, mechanics)
        self.desired = mechanics.desired = tuple(item.symbol for item in asked.inputs)
        model.declared += [*asked.inputs, *asked.requests]
        if self.settings.energy:
            model.output_kinetic_energy()
            model.output_potential_energy()
            model.output_total_energy()
            springs = [joint.name for joint in self.description.joints if joint.stiffness]
            springs += [tendon.name for tendon in self.description.tendons if tendon.stiffness]
            if springs:
                what = f"the potential energy is that of weights: springs along {', '.join(springs[:3])} are not in it"
                mechanics.notes += (f"{what}; model.potential_energy gives the whole",)

    def _weights(self, gravity: Iterable[sm.Expr]) -> TreeInertia:
        """Return inertias and weights along the speeds at the start; floating parts carry no weight."""
        size = next((p.value for p in self.declared if isinstance(p, Parameter) and p.name == "gravity"), 0.0)
        pull = np.array([float(g.subs(sm.Symbol("gravity"), size)) for g in gravity])
        starts = {item.symbol: item.start for item in self.declared if isinstance(item, Coordinate)}
        positions = {i: starts[each.q[0]] for i, each in self.variables.items() if len(each.q) == 1}
        M, weight, K = compute_inertia_and_weight(self.tree, positions, pull)
        row = {part: j for j, (part, k) in enumerate(motion_directions(self.tree)) if k == 0}
        loose = [i for i, part in enumerate(self.tree.parts) if part.joint and part.joint.kind == "floating"]
        falling = self.tree.behind(loose)
        carried = [j for j, (part, _) in enumerate(motion_directions(self.tree)) if part in falling]
        weight[carried], K[carried], K[:, carried] = 0.0, 0.0, 0.0
        D = joint_damping_matrix(self.tree, self.damping)
        return TreeInertia(M, weight, row, compute_falling_rate(M, K, D), D, compute_braking_rate(M, D))

    def _swinging_loads(self, weights: TreeInertia, mechanics: RobotMechanics) -> dict[sm.Expr, sm.Expr]:
        """Return forces and torques on links that move every joint they reach, each at its own frequency."""
        starts = {item.symbol: item.start for item in self.declared if isinstance(item, Coordinate | Input)}
        single = {i: (each.prescribed or each.q)[0] for i, each in self.variables.items() if len(each.q) < 2}
        positions = {i: starts[symbol] for i, symbol in single.items()}
        before = len(starts) - len(self.loaded[1])
        return excite_link_loads(mechanics, self.loaded[1], positions, weights.M, self.settings.excitation, before)

    def _experiment(self, weights: TreeInertia) -> dict[sm.Expr, sm.Expr]:
        """Return efforts that hold the robot at the start and move every joint at its own frequency."""
        if self.settings.role == "inverse-dynamics":
            starts = {item.symbol: item.start for item in self.declared if isinstance(item, Input)}
            return excite_joint_motions(self.tree, self.variables, starts, self.settings.excitation)
        driven = [i for i, each in self.variables.items() if each.effort is not None]
        rubbing = {each.part: each.friction for each in self.rubbing}
        size, weight, row = self.settings.excitation, weights.weight, weights.row
        t, signals = dynamicsymbols._t, {}  # noqa: SLF001 - SymPy has no public name for it
        for k, i in enumerate(driven):
            most = _EFFORT_LIMIT_FRACTION * self.tree.parts[i].moving_joint.limits.effort
            hold = float(f"{np.clip(weight[row[i]], -most, most):.6g}")
            rate = excitation_rate(k)
            wanted = size * (
                weights.effort_per_acceleration(row[i], rate) + _FRICTION_EXCITATION_FACTOR * rubbing.get(i, 0.0)
            )
            swing = float(f"{min(wanted, most - abs(hold)):.6g}")
            effort = self.variables[i].effort
            assert effort is not None
            signals[effort] = hold + swing * sm.sin(rate * t)
        signals |= {a: size * sm.sin(excitation_rate(k) * t) for k, a in enumerate(self.desired)}
        starts = {item.symbol: item.start for item in self.declared if isinstance(item, Coordinate | Input)}
        rows = {p.moving_joint.name: row[p.coordinate[0]] for p in self.tree.parts[1:] if p.coordinate is not None}
        holding = {name: float(weight[j]) for name, j in rows.items() if j < len(weight)}
        dry = {each.joint: _FRICTION_EXCITATION_FACTOR * each.friction for each in self.rubbing}

        def swinging(joint: str, rate: float) -> float:
            """Return the effort that swings a joint at an angular frequency."""
            return (
                size * (weights.effort_per_acceleration(rows[joint], rate) + dry.get(joint, 0.0))
                if joint in rows
                else 0.0
            )

        return signals | self.actuation.signals(starts, holding, swinging)


def _finite_or_none(value: float) -> float | None:
    """Return a bound; None if it is infinite."""
    return float(value) if np.isfinite(value) else None
