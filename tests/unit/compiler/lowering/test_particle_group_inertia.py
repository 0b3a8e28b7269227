"""Particles of a flexible body, taken together: the same motion as by other formulations, at a cost that is counted."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import sympy as sm
import sympy.physics.mechanics as me
from flexible_bodies import pinned_body, random_arrays
from mechanisms import Numeric, State, mechanism_of
from representatives import by_night

from mb2fmu import FlexibleBody, Model, Parts, pipeline
from mb2fmu.mechanics.formulations.recursive_formulation import formulate_composite

VARIANTS = ("recursive-composite", "recursive-articulated")
INERTIAL = (
    '<inertial><origin xyz="{0} 0.02 0.03"/><mass value="{1}"/>'
    '<inertia ixx="0.014" iyy="0.09" izz="0.09" ixy="0.001" ixz="0.002" iyz="0.0015"/></inertial>'
)
JOINTS = (("0 0 1", 0.1), ("0 1 0", 0.1), ("0 1 0", 0.7), ("1 0 0", 0.6), ("0 1 0", 0.05), ("1 0 0", 0.08))
"""Axis, and distance from the joint before, m."""


def beam(length: float, modes: dict[str, int], **more: object) -> dict[str, object]:
    """A square beam of aluminium, as the side file of a robot gives it."""
    section = {"width": 0.03, "height": 0.03}
    return {"length": length, "E": 70e9, "rho": 2700.0, "section": section, "modes": modes, "damping": 0.01} | more


def arm(folder: Path) -> Path:
    """A robot arm of six joints, with general inertias and offsets."""
    text = f'<robot name="arm"><link name="base">{INERTIAL.format(0, 4)}</link>'
    parent = "base"
    for i, (axis, x) in enumerate(JOINTS):
        name, offset = f"l{i + 1}", "0 0" if x in (0.6, 0.7) else "0.03 0.04"
        text += f'<link name="{name}">{INERTIAL.format(0.1, 3 - 0.4 * i)}</link>'
        text += f'<joint name="j{i + 1}" type="revolute"><parent link="{parent}"/><child link="{name}"/>'
        text += f'<origin xyz="{x} {offset}"/><axis xyz="{axis}"/>'
        text += '<limit lower="-3" upper="3" effort="200" velocity="5"/></joint>'
        parent = name
    path = folder / "arm.urdf"
    path.write_text(text + "</robot>")
    return path


@pytest.mark.repeats  # by day: the cost of particles in ``test_shared_speed_elimination``
def test_an_arm_with_two_links_of_four_modes_costs_at_most_six_times_the_rigid_one(tmp_path):
    path, modes = arm(tmp_path), {"bending_y": 2, "bending_z": 2}
    rigid = pipeline.derive(path).operations
    flexible = pipeline.derive(path, arguments={"flexible": {"l2": beam(0.7, modes), "l3": beam(0.6, modes)}})
    assert len(flexible.equations.u) == 14
    assert flexible.operations <= 6 * rigid


@pytest.mark.repeats  # by day: the bodies below
@pytest.mark.parametrize("foreshortening", [False, True])
@pytest.mark.parametrize("method", VARIANTS)
def test_an_arm_moves_as_by_another_formulation(tmp_path, method, foreshortening):
    more = {"foreshortening": foreshortening}
    links = {
        "l2": beam(0.7, {"bending_y": 1, "bending_z": 1}, **more),
        "l3": beam(0.6, {"bending_z": 1, "torsion": 1}, G=26e9, **more),
    }
    one, other = (pipeline.rhs(arm(tmp_path), arguments={"flexible": links}, method=way) for way in (method, "tmt"))
    random = np.random.default_rng(1)
    for _ in range(3):
        x = random.normal(size=len(one.states)) * [0.01 if "eta" in name else 1.0 for name in one.states]
        expected = other(0.2, x)
        assert np.max(np.abs(one(0.2, x) - expected)) < 1e-11 * np.max(np.abs(expected))


def pinned_and_fixed_bodies() -> Model:
    """A body on a pin at a node of one that is fixed in the inertial frame; loads at nodes of both, and a spring."""
    fixed = FlexibleBody("fixed", **random_arrays(1, n=5, m=1, sections=False, second=False))
    pinned = FlexibleBody("pinned", **random_arrays(2, n=5, m=1))
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    theta, omega = me.dynamicsymbols("theta omega")
    fixed.frame().orient_axis(N, N.x, 0.3)
    fixed.point().set_pos(O, 0.1 * N.x)
    pinned.frame().orient_axis(fixed.frame(), fixed.frame().z, theta)
    pinned.point().set_pos(fixed.point(3), 0.2 * fixed.frame().y)
    spring = me.LinearPathway(fixed.point(1), pinned.point(2))
    loads = [*fixed.loads, *pinned.loads, *fixed.weight(-9.81 * N.y), *pinned.weight(-9.81 * N.y)]
    loads += [(pinned.point(4), 3 * N.x), (pinned.frame(2), 2 * N.y)]
    loads += spring.to_loads(-50 * (spring.length - 1))
    parts = Parts(
        frame=N, origin=O, q=[*fixed.q, *pinned.q, theta], u=[*fixed.u, *pinned.u, omega],
        kinematic_equations=[*fixed.kinematic_equations, *pinned.kinematic_equations, theta.diff() - omega],
        bodies=[*fixed.bodies, *pinned.bodies], loads=loads,
    )  # fmt: skip
    model = Model("Bodies", parts)
    model.coordinate(theta, 0.3, "rad")
    model.speed(omega, 0.0, "rad/s")
    model.add(fixed)
    model.add(pinned)
    return model


@pytest.mark.parametrize("method", ["recursive-articulated", *by_night("recursive-composite")])
def test_bodies_on_the_ground_and_on_each_other_move_as_by_newton_and_euler(method):
    derivation = pipeline.derive(pinned_and_fixed_bodies(), method=method)
    one, other = pipeline.right_hand_side(derivation), Numeric(derivation.mechanism)
    random, n = np.random.default_rng(1), len(derivation.mechanism.q)
    for _ in range(3):
        x = 0.3 * random.normal(size=len(one.states))
        expected = other.accelerations(State(0.0, x, one.r0, one.p0))
        assert np.max(np.abs(one(0.0, x)[n:] - expected)) < 1e-11 * np.max(np.abs(expected))


def test_all_particles_of_a_body_are_one_group():
    body = FlexibleBody("arm", **random_arrays(n=9, m=2, second=False))
    mechanism = mechanism_of(pinned_body(body))
    (group,) = formulate_composite(mechanism).recursion.particle_groups
    assert [mechanism.bodies[number].name for number in group.particles] == [one.name for one in body.particles]
    assert [mechanism.u[j] for j in group.speeds] == list(mechanism.u)[-2:]


def test_particles_that_move_otherwise_are_links_of_their_own():
    """On a circle, against each other, or each by its own coordinate: no group."""
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    q, u = me.dynamicsymbols("q1:4"), me.dynamicsymbols("u1:4")
    places = [sm.cos(q[0]) * N.x + sm.sin(q[0]) * N.y, q[1] * N.x, q[2] * N.y, q[0] ** 3 * N.z]
    bodies = [me.Particle(f"p{i}", O.locatenew(f"P{i}", place), 1.0) for i, place in enumerate(places)]
    kinematic = [a.diff() - b for a, b in zip(q, u, strict=True)]
    model = Model("Particles", Parts(frame=N, origin=O, q=q, u=u, kinematic_equations=kinematic, bodies=bodies))
    for a, b in zip(q, u, strict=True):
        model.coordinate(a, 0.5)
        model.speed(b, 0.0)
    assert formulate_composite(mechanism_of(model)).recursion.particle_groups == ()
