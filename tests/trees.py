"""Trees of SymPy joints for tests: any kinds, axes and parents, with interpoints, gravity and a torque."""

from __future__ import annotations

import sympy as sm
from sympy.physics import mechanics as me

KINDS = ("pin", "prismatic", "cylindrical", "planar", "spherical", "weld")
DEGREES = {"pin": 1, "prismatic": 1, "cylindrical": 2, "planar": 3, "spherical": 3, "weld": 0}
AXES = ("x", "y", "z")


def _joint(kind: str, name: str, parent: me.RigidBody, child: me.RigidBody, axis: str) -> me.mechanics.Joint:  # type: ignore[name-defined]
    places = {
        "parent_point": 0.3 * parent.x - 0.1 * parent.z,
        "child_point": -0.2 * child.x + 0.15 * child.y,
    }
    along = getattr(parent, axis)
    match kind:
        case "pin":
            return me.PinJoint(name, parent, child, joint_axis=along, **places)
        case "prismatic":
            return me.PrismaticJoint(name, parent, child, joint_axis=along, **places)
        case "cylindrical":
            return me.CylindricalJoint(name, parent, child, joint_axis=along, **places)
        case "planar":
            return me.PlanarJoint(name, parent, child, **places)
        case "spherical":
            # three different axes: not singular near zero
            order = {"x": "xyz", "y": "yzx", "z": "zxy"}[axis]
            return me.SphericalJoint(name, parent, child, rot_order=order, **places)
    return me.WeldJoint(name, parent, child, **places)


def build(kinds: list[tuple[str, str, int]], *, tilted: bool):
    """A tree; each entry: joint kind, axis, which earlier body is the parent."""
    ground = me.RigidBody("ground")
    system = me.System.from_newtonian(ground)
    bodies = [ground]
    for i, (kind, axis, parent) in enumerate(kinds):
        body = me.RigidBody(f"body{i}", mass=sm.Symbol("m") * (1 + i / 3))
        J = sm.Symbol("J")
        body.central_inertia = me.inertia(body.frame, J, 2 * J, 2.5 * J, 0.1 * J, 0.2 * J, 0.3 * J)
        system.add_joints(_joint(kind, f"joint{i}", bodies[parent % len(bodies)], body, axis))
        bodies.append(body)
    direction = (0.6 * ground.x - 0.8 * ground.z) if tilted else -ground.z
    system.apply_uniform_gravity(sm.Symbol("g") * direction)
    system.add_loads(me.Torque(bodies[-1].frame, sm.Symbol("T") * bodies[-1].y))
    return system
