"""Random trees of SymPy joints: every formulation and the numeric equations agree, and so does SymPy's own System."""

from __future__ import annotations

import numpy as np
import sympy as sm
from hypothesis import given, settings
from hypothesis import strategies as st
from mechanisms import Evaluated, Numeric, close, mechanism_of, model_of, random_states
from sympy.physics import mechanics as me

from mb2fmu.formulation import applicable

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


@settings(max_examples=12)
@given(
    st.lists(
        st.tuples(st.sampled_from(KINDS), st.sampled_from(AXES), st.integers(0, 3)), min_size=1, max_size=3
    ).filter(lambda kinds: 1 <= sum(DEGREES[kind] for kind, *_ in kinds) <= 4 and kinds[-1][0] != "weld"),
    st.booleans(),
)
def test_random_trees(kinds, tilted):
    system = build(kinds, tilted=tilted)
    model = model_of("Tree", system, list(system.q), list(system.u), m=1.2, J=0.05, g=9.81, T=0.3)
    mechanism = mechanism_of(model)
    numeric = Numeric(mechanism)
    methods = [method for method, answer in applicable(mechanism).items() if answer.yes]
    assert set(methods) == {"kane", "tmt", "lagrange", "recursive", "recursive-articulated", "recursive-composite"}
    methods.remove("recursive")  # is one of its variants
    if len(mechanism.u) > 3:
        methods.remove("lagrange")  # SymPy expands for minutes
    evaluated = [Evaluated(mechanism, method) for method in methods]
    for state in random_states(mechanism, 5):
        expected = numeric.accelerations(state)
        for one in evaluated:
            assert close(one("accelerations", state), expected, numeric.condition()), one.equations.method


def test_sympy_itself_gives_the_same():
    system = build([("pin", "z", 0), ("spherical", "x", 1)], tilted=True)
    model = model_of("Tree", system, list(system.q), list(system.u), m=1.2, J=0.05, g=9.81, T=0.3)
    mechanism = mechanism_of(model)
    system.form_eoms()
    arguments = [*system.q, *system.u, *(sm.Symbol(p.name) for p in mechanism.p)]
    equations = sm.lambdify(arguments, [system.mass_matrix_full, system.forcing_full], cse=True)
    for state in random_states(mechanism, 5):
        M, f = equations(*state.x, *state.p)
        expected = np.linalg.solve(M, f).ravel()
        for method in ("kane", "tmt"):
            assert np.allclose(Evaluated(mechanism, method)("rhs", state), expected, rtol=1e-11, atol=1e-11)
