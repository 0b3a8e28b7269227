"""Flexible bodies of random arrays, and their accelerations from the full nodal mass matrix."""

from __future__ import annotations

import numpy as np
import sympy as sm
import sympy.physics.mechanics as me

from mb2fmu import FlexibleBody, Model, Parts, orient_by_quaternion

t = me.dynamicsymbols._t


def random_arrays(
    seed: int = 1, n: int = 12, m: int = 2, *, consistent: bool = True, sections: bool = True, second: bool = True
) -> dict[str, np.ndarray]:
    """Arrays of a flexible body that has everything: consistent masses, sections with inertia, second-order fields."""
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(n, n))
    M = (root @ root.T / n + np.eye(n)) * 0.1
    arrays = {
        "nodes": rng.normal(size=(n, 3)),
        "mass": M if consistent else np.diag(M).copy(),
        "modes": 0.3 * rng.normal(size=(m, n, 3)),
        "stiffness": np.diag(rng.uniform(20.0, 80.0, m)) + 3.0 * (np.ones((m, m)) - np.eye(m)),
        "damping": 0.02,
    }
    if sections:
        moments = rng.normal(size=(n, 3, 3))
        seconds = 0.002 * moments @ moments.transpose(0, 2, 1)
        arrays["rotational_inertia"] = np.trace(seconds, axis1=1, axis2=2)[:, None, None] * np.eye(3) - seconds
        arrays["rotations"] = 0.3 * rng.normal(size=(m, n, 3))
    if second:
        S = 0.1 * rng.normal(size=(m, m, n, 3))
        arrays["second_order"] = S + S.transpose(1, 0, 2, 3)
    return arrays


def pinned_body(body: FlexibleBody, kind: str = "system", *, gravity: float = 9.81) -> Model:
    """A body whose frame turns on a pin about N.z at its origin, in gravity along -N.y."""
    theta, omega = me.dynamicsymbols("theta omega")
    g = sm.Symbol("g")
    if kind == "system":
        ground = me.RigidBody("ground")
        system = me.System.from_newtonian(ground)
        system.add_joints(
            me.PinJoint("pin", ground, body.body, theta, omega, child_point=body.point(), joint_axis=system.frame.z)
        )
        body.add_to_system(system)
        system.apply_uniform_gravity(-g * system.frame.y)
        mechanics = system
    else:
        N, O = me.ReferenceFrame("N"), me.Point("O")
        O.set_vel(N, 0)
        body.frame().orient_axis(N, N.z, theta)
        body.point().set_pos(O, 0)
        kinematic = [theta.diff(t) - omega, *body.kinematic_equations]
        loads, q, u = [*body.loads, *body.weight(-g * N.y)], [theta, *body.q], [omega, *body.u]
        if kind == "parts":
            mechanics = Parts(
                frame=N, origin=O, q=q, u=u, kinematic_equations=kinematic, bodies=body.bodies, loads=loads
            )
        else:
            mechanics = me.KanesMethod(N, q, u, kd_eqs=kinematic, forcelist=loads, bodies=list(body.bodies))
    model = Model("PinnedBody", mechanics)
    model.parameter(g, gravity, "m/s2")
    model.coordinate(theta, 0.3, "rad", name="theta")
    model.speed(omega, 0.0, "rad/s", name="omega")
    model.add(body)
    return model


def nodal_accelerations(body: FlexibleBody, state: np.ndarray, gravity: float = 9.81) -> np.ndarray:
    """Accelerations of ``pinned_body`` from the full nodal mass matrix: M u' = f with the Jacobian of every node.

    Args:
        body: Its arrays only are used.
        state: (theta, η, omega, η').
        gravity: Along -N.y.

    Returns:
        (omega', η'').
    """
    data, m = body.data, body.data.mode_count
    theta, eta, omega, rate = state[0], state[1 : m + 1], state[m + 1], state[m + 2 :]
    mass = data.mass.toarray() if hasattr(data.mass, "toarray") else data.mass
    c, s = np.cos(theta), np.sin(theta)
    gravity_in_body = gravity * np.array([-s, -c, 0.0])
    axis = np.array([0.0, 0.0, 1.0])
    S = np.zeros((m, m, len(mass), 3)) if data.second_order is None else data.second_order
    place = data.nodes + np.einsum("knj,k->nj", data.modes, eta) + np.einsum("klnj,k,l->nj", S, eta, eta) / 2
    fields = data.modes + np.einsum("klnj,l->knj", S, eta)
    velocity = np.einsum("knj,k->nj", fields, rate)
    bias = np.cross(axis, np.cross(axis, place)) * omega**2 + 2 * omega * np.cross(axis, velocity)
    bias = bias + np.einsum("klnj,k,l->nj", S, rate, rate)
    J = np.concatenate([np.cross(axis, place)[None], fields])
    M = np.einsum("anj,np,bpj->ab", J, mass, J)
    f = np.einsum("anj,np,pj->a", J, mass, gravity_in_body - bias)
    if data.rotational_inertia is not None:
        seconds = np.trace(data.rotational_inertia, axis1=1, axis2=2)[:, None, None] * np.eye(3) / 2
        seconds = seconds - data.rotational_inertia
        turned = np.stack([np.cross(data.rotations, e) for e in np.eye(3)], axis=2)  # (m, n, 3 arms, 3)
        arms = np.eye(3) + np.einsum("knij,k->nij", turned, eta)
        own = np.zeros_like(arms)
        if data.second_order is not None:  # ½ θ × (θ × e), with θ = Σ ψ η
            theta, spin = (np.einsum("knj,k->nj", data.rotations, x)[:, None] for x in (eta, rate))
            arms = arms + np.cross(theta, np.cross(theta, np.eye(3))) / 2
            own = np.cross(spin, np.cross(spin, np.eye(3)))
            psi = data.rotations[:, :, None]
            turned = turned + (np.cross(psi, np.cross(theta, np.eye(3))) + np.cross(theta, turned)) / 2
        arm_rate = np.einsum("knij,k->nij", turned, rate)
        arm_bias = np.cross(axis, np.cross(axis, arms)) * omega**2 + 2 * omega * np.cross(axis, arm_rate) + own
        K = np.concatenate([np.cross(axis, arms)[None], turned])
        M += np.einsum("anij,nik,bnkj->ab", K, seconds, K)
        f -= np.einsum("anij,nik,nkj->a", K, seconds, arm_bias)
    f[1:] -= data.stiffness @ eta + data.damping @ rate
    return np.linalg.solve(M, f)


def free_body(body: FlexibleBody) -> Model:
    """A body that floats freely, tumbling and deformed at the start; its momenta and energy are outputs."""
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    e = me.dynamicsymbols("e0:4")
    w, x, v = me.dynamicsymbols("w1:4"), me.dynamicsymbols("x1:4"), me.dynamicsymbols("v1:4")
    B = body.frame()
    kinematic = [*orient_by_quaternion(B, N, e, w)]
    body.point().set_pos(O, sum((a * b for a, b in zip(x, N, strict=True)), me.Vector(0)))
    kinematic += [a.diff(t) - b for a, b in zip(x, v, strict=True)]
    parts = Parts(
        frame=N,
        origin=O,
        q=[*e, *x, *body.q],
        u=[*w, *v, *body.u],
        kinematic_equations=[*kinematic, *body.kinematic_equations],
        bodies=body.bodies,
        loads=body.loads,
    )
    model = Model("FreeBody", parts)
    for symbol, start in zip((*e, *x), (1.0, 0.0, 0.0, 0.0, 0.1, 0.2, 0.3), strict=True):
        model.coordinate(symbol, start)
    for symbol, start in zip((*w, *v), (0.2, 0.5, 0.7, 0.3, -0.2, 0.1), strict=True):
        model.speed(symbol, start)
    body.start[:] = 0.1
    model.add(body)
    model.output_momenta("momenta")
    model.output_total_energy()
    return model
