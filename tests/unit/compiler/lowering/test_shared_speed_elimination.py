"""Speeds that move several links: the particles of a flexible body do not each go to the ground by themselves."""

from __future__ import annotations

import pytest
import sympy.physics.mechanics as me
from representatives import by_night

import mb2fmu
from mb2fmu import BeamSection, FlexibleBody, Model


def beam_at_the_end_of_a_chain(rods: int, *, rotary_inertia: bool) -> tuple[int, int]:
    """Operations of x' by composite bodies, and the number of the beam's particles."""
    q, u = me.dynamicsymbols(f"q1:{rods + 2}"), me.dynamicsymbols(f"u1:{rods + 2}")
    parent = me.RigidBody("ground")
    system = me.System.from_newtonian(parent)
    at = parent.masscenter
    for k in range(rods):
        rod = me.RigidBody(f"rod{k}", mass=1.0)
        rod.central_inertia = me.inertia(rod.frame, 0.1, 0.2, 0.3)
        root, tip = (rod.masscenter.locatenew(f"{end}{k}", s * rod.x) for end, s in (("root", -0.5), ("tip", 0.5)))
        joint = me.PinJoint(f"pin{k}", parent, rod, q[k], u[k], parent_point=at, child_point=root, joint_axis=parent.z)
        system.add_joints(joint)
        parent, at = rod, tip
    beam = FlexibleBody.beam(
        "beam", length=1.0, E=70e9, rho=2700.0, section=BeamSection.rectangle(0.05, 0.01), modes={"bending_y": 3},
        rotary_inertia=rotary_inertia, foreshortening=False,
    )  # fmt: skip
    system.add_joints(
        me.PinJoint(
            "pin", parent, beam.body, q[-1], u[-1], parent_point=at, child_point=beam.point(), joint_axis=parent.z
        )
    )
    beam.add_to_system(system)
    model = Model("Chain", system)
    for coordinate, speed in zip(q, u, strict=True):
        model.coordinate(coordinate, 0.1, "rad")
        model.speed(speed, 0.0, "rad/s")
    model.add(beam)
    return mb2fmu.derive(model, method="recursive-composite").operations, len(beam.particles)


@pytest.mark.parametrize("rods", [1, *by_night(2, 3)])
def test_a_longer_chain_costs_the_same_whatever_the_number_of_particles_is(rods):
    growth, particles = [], []
    for rotary_inertia in (False, True):
        near, count = beam_at_the_end_of_a_chain(rods, rotary_inertia=rotary_inertia)
        far, _ = beam_at_the_end_of_a_chain(rods + 1, rotary_inertia=rotary_inertia)
        growth.append(far - near)
        particles.append(count)
    assert particles[1] == 2 * particles[0]
    assert growth[0] == growth[1]
