"""Declares the variables of a robot's joints: coordinates, speeds, efforts, dampers, and outputs of followers."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import sympy as sm
from sympy.physics.vector import dynamicsymbols

from mb2fmu.model.quantity_declarations import Coordinate, DeclaredVariable, Input, Output, Parameter, Speed, StartKind
from mb2fmu.model.variable_naming import suggest_identifier
from mb2fmu.robots.description.robot_description import RobotDescription, RobotJoint
from mb2fmu.robots.robot_display_names import format_variable_name_as_words
from mb2fmu.robots.robot_settings import RobotSettings
from mb2fmu.robots.tree.articulated_tree import RigidLinkGroup, RobotPartTree
from mb2fmu.robots.tree.robot_mechanics_records import RobotJointSymbols


@dataclass(slots=True)
class UniqueVariableNames:
    """Names of an FMU's variables: legal, each once.

    Attributes:
        taken_names: Names in use; extended.
        notes: A sentence on each name that differs from the file's; extended.
    """

    taken_names: set[str]
    notes: list[str] = field(default_factory=list)

    def choose_name(self, name: str, what: str) -> str:
        """Return a legal name that nothing has yet; ``what`` has the name in the file."""
        found = suggest_identifier(name, what)
        number = 2
        while found in self.taken_names:
            found = f"{suggest_identifier(name, what)}_{number}"
            number += 1
        self.taken_names.add(found)
        if found != name:
            self.notes.append(f"{what} {name!r} is called {found} in the FMU")
        return found


def declare_robot_joint_variables(
    description: RobotDescription, settings: RobotSettings, tree: RobotPartTree, names: UniqueVariableNames
) -> RobotJointVariables:
    """Declare the variables of all joints: first of those that have coordinates, then of those that follow them."""
    joints = RobotJointVariables(description, settings, tree, names)
    followers = []
    for i, part in enumerate(tree.parts[1:], 1):
        if part.section:  # moved by the modes of a link that bends
            continue
        if part.coordinate is None or part.coordinate[0] == i:
            joints.declare_joint(i, part)
        else:
            followers.append((i, part))
    for i, part in followers:
        joints.declare_follower(i, part)
    return joints


@dataclass(slots=True)
class RobotJointVariables:
    """Variables of a robot's joints; complete when :func:`declare_robot_joint_variables` returns.

    Attributes:
        description: Description from the file.
        settings: Settings for what the file leaves open.
        tree: Of the robot's parts.
        names: Of variables; joints take theirs.
        declared: Coordinates, speeds, inputs and parameters, in the order of the tree.
        outputs: Positions and speeds of followers.
        terminals: Name, members and flow of each driven joint's terminal.
        variables: Part → variables of its joint; followers have none.
        part_names: Part → name of its joint's variables, followers included.
        damping: Part → coefficient of its joint's damper.
    """

    description: RobotDescription
    settings: RobotSettings
    tree: RobotPartTree
    names: UniqueVariableNames
    declared: list[DeclaredVariable] = field(default_factory=list)
    outputs: list[Output] = field(default_factory=list)
    terminals: list[tuple[str, dict[str, sm.Expr], str]] = field(default_factory=list)
    variables: dict[int, RobotJointSymbols] = field(default_factory=dict)
    part_names: dict[int, str] = field(default_factory=dict)
    damping: dict[int, sm.Symbol] = field(default_factory=dict)

    def list_joint_motions(self) -> dict[str, tuple[sm.Expr, sm.Expr]]:
        """Return position and speed of every joint with one coordinate, fixed ones included."""
        found = {name: (sm.Float(held), sm.S.Zero) for name, held in self.tree.held_joints.items()}
        for part in self.tree.parts[1:]:
            if part.coordinate is None:
                continue
            owner, factor, offset = part.coordinate
            each = self.variables[owner]
            q, u = (each.q[0], each.u[0]) if each.prescribed is None else each.prescribed[:2]
            own = (q, u) if (factor, offset) == (1.0, 0.0) else (factor * q + offset, factor * u)
            found[part.moving_joint.name] = own
        return found

    def declare_joint(self, i: int, part: RigidLinkGroup) -> None:
        """Declare the variables of a part's joint, and its damper."""
        joint = part.moving_joint
        name = self.names.choose_name(joint.name, "joint")
        match joint.kind:
            case "revolute" | "prismatic":
                variables = self._declare_single_axis(joint, name)
            case "planar":
                variables = self._declare_planar(joint, name)
            case _:
                variables = self._declare_free(joint, name)
        self.variables[i], self.part_names[i] = variables, name
        self._declare_damping(i, joint, name)

    def _declare_single_axis(self, joint: RobotJoint, name: str) -> RobotJointSymbols:
        """Declare angle or position, speed and, if the joint is driven, effort of a joint with one axis."""
        turns = joint.kind == "revolute"
        units = ("rad", "rad/s", "N.m") if turns else ("m", "m/s", "N")
        word, where = ("angle" if turns else "position"), self.description.format_location(joint.line)
        if joint.name in self.settings.prescribed:
            return self._declare_prescribed(joint, name, word, units)
        q, u = dynamicsymbols(f"q_{name}"), dynamicsymbols(f"u_{name}")
        limits = joint.limits
        stops = self.settings.limits == "stop"  # which are soft: a position may be a little beyond its bound
        start = float(np.clip(joint.start, limits.lower, limits.upper))
        self.declared.append(
            Coordinate(
                symbol=q, name=f"{name}.{word}", kind=self._start_kind(joint), start=start, unit=units[0],
                minimum=None if stops else drop_infinite_bound(limits.lower),
                maximum=None if stops else drop_infinite_bound(limits.upper), where=where,
                description=f"{word} of joint {joint.name}",
            )
        )  # fmt: skip
        speed = float(self.settings.speeds.get(joint.name, 0.0))
        bound = limits.velocity if limits.velocity > abs(speed) else np.inf
        self.declared.append(
            Speed(
                symbol=u, name=f"{name}.speed", kind=self._start_kind(joint), start=speed, unit=units[1],
                minimum=drop_infinite_bound(-bound),
                maximum=drop_infinite_bound(bound), where=where, description=f"speed of joint {joint.name}",
            )
        )  # fmt: skip
        effort = None
        if joint.driven if self.settings.inputs is None else joint.name in self.settings.inputs:
            effort = dynamicsymbols(f"tau_{name}")
            self.declared.append(
                Input(
                    symbol=effort, name=f"{name}.effort", unit=units[2], minimum=drop_infinite_bound(-limits.effort),
                    maximum=drop_infinite_bound(limits.effort), where=where,
                    description=f"{'torque' if turns else 'force'} along joint {joint.name}",
                )
            )  # fmt: skip
            members = {"tau": effort, "phi": q, "w": u} if turns else {"f": effort, "s": q, "v": u}
            self.terminals.append((name, members, next(iter(members))))
        return RobotJointSymbols(name=name, q=(q,), u=(u,), effort=effort)

    def _start_kind(self, joint: RobotJoint) -> StartKind:
        """Return fixed, or guess on closed loops for starts that nobody gave: they may move until loops close."""
        closed = self.settings.loops or self.description.loops
        return "guess" if closed and joint.name not in self.settings.start else "fixed"

    def _declare_damping(self, i: int, joint: RobotJoint, name: str) -> None:
        """Declare the damper of a joint; floating joints have none."""
        unmoved = joint.name in self.settings.prescribed and self.settings.role == "plant"
        if not joint.damping or joint.kind == "floating" or unmoved:
            return
        unit = "N.m.s/rad" if joint.kind in {"revolute", "ball"} else "N.s/m"
        symbol = sm.Symbol(f"damping_{name}")
        self.declared.append(
            Parameter(
                symbol=symbol, name=f"{name}.damping", value=joint.damping, unit=unit, minimum=0.0,
                where=self.description.format_location(joint.line),
                description=f"viscous damping of joint {joint.name}",
            )
        )  # fmt: skip
        self.damping[i] = symbol

    def _declare_prescribed(self, joint: RobotJoint, name: str, word: str, units: tuple[str, ...]) -> RobotJointSymbols:
        """Declare position, speed and acceleration of a joint as inputs."""
        where, q = self.description.format_location(joint.line), dynamicsymbols(f"q_{name}")
        t = dynamicsymbols._t  # noqa: SLF001 - SymPy has no public name for it
        symbols = (q, q.diff(t), q.diff(t, 2))
        limits = joint.limits
        start = float(np.clip(joint.start, limits.lower, limits.upper))
        parts = (
            (word, start, units[0], drop_infinite_bound(limits.lower), drop_infinite_bound(limits.upper)),
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
        return RobotJointSymbols(name=name, prescribed=symbols)

    def _declare_planar(self, joint: RobotJoint, name: str) -> RobotJointSymbols:
        """Declare position, angle and their rates of a planar joint."""
        where = self.description.format_location(joint.line)
        q = tuple(dynamicsymbols(f"{part}_{name}") for part in ("x", "y", "phi"))
        u = tuple(dynamicsymbols(f"{part}_{name}") for part in ("vx", "vy", "w"))
        parts = (("position.x", "m"), ("position.y", "m"), ("angle", "rad"))
        rates = (("velocity.x", "m/s"), ("velocity.y", "m/s"), ("speed", "rad/s"))
        for kind, symbols, named in ((Coordinate, q, parts), (Speed, u, rates)):
            for symbol, (word, unit) in zip(symbols, named, strict=True):
                text = f"{format_variable_name_as_words(word)} of joint {joint.name}"
                self.declared.append(
                    kind(symbol=symbol, name=f"{name}.{word}", start=0.0, unit=unit, where=where, description=text)
                )
        return RobotJointSymbols(name=name, q=q, u=u)

    def _declare_free(self, joint: RobotJoint, name: str) -> RobotJointSymbols:
        """Declare floating joints and balls; speeds are along the axes of the moving part."""
        from scipy.spatial.transform import Rotation  # as long to import as a robot to read

        where, floats = self.description.format_location(joint.line), joint.kind == "floating"
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
                axes = ", along the moving axes" if kind is Speed else ""
                text = f"{format_variable_name_as_words(word)} of joint {joint.name}{axes}"
                self.declared.append(
                    kind(
                        symbol=symbol, name=f"{name}.{word}", kind=self._start_kind(joint), start=value, unit=unit,
                        where=where, description=text,
                    )
                )  # fmt: skip
        return RobotJointSymbols(name=name, q=tuple(r[0] for r in q), u=tuple(r[0] for r in u))

    def declare_follower(self, i: int, part: RigidLinkGroup) -> None:
        """Declare the position of a joint that mimics another as an output."""
        joint = part.moving_joint
        assert part.coordinate is not None
        owner, factor, offset = part.coordinate
        leader = self.variables[owner]
        q, u = (leader.q[0], leader.u[0]) if leader.prescribed is None else leader.prescribed[:2]
        name, turns = self.names.choose_name(joint.name, "joint"), joint.kind == "revolute"
        self.part_names[i] = name
        if leader.prescribed is None or self.settings.role == "inverse-dynamics":
            self._declare_damping(i, joint, name)
        text = f"joint {joint.name}, which follows {leader.name}"
        word, units = ("angle", ("rad", "rad/s")) if turns else ("position", ("m", "m/s"))
        rows = ((word, factor * q + offset, units[0]), ("speed", factor * u, units[1]))
        for label, expression, unit in rows:
            self.outputs.append(
                Output(
                    expression=sm.sympify(expression), name=f"{name}.{label}", unit=unit,
                    where=self.description.format_location(joint.line), description=f"{label} of {text}",
                )
            )  # fmt: skip


def drop_infinite_bound(value: float) -> float | None:
    """Return a bound; None if it is infinite."""
    return float(value) if np.isfinite(value) else None
