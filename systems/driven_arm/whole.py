"""Arm and drives as one model: the truth."""

from pathlib import Path

import sympy.physics.mechanics as me
from drive import Law
from system import DRIVES

import mb2fmu


def whole() -> mb2fmu.Model:
    """The arm of the robot's file, with rotors as auxiliary states."""
    model = mb2fmu.Model.from_urdf(Path(__file__).with_name("arm.urdf"), inputs="none", friction="ignore")
    arm = model.mechanics
    for joint, (kind, *numbers) in DRIVES.items():
        place, effort, mass = ("rad", "N.m", "kg.m2") if kind == "hinge" else ("m", "N", "kg")
        phi, omega = me.dynamicsymbols(f"phi_{joint} omega_{joint}")
        law = Law(f"_{joint}")
        gear = law.gear(phi, omega, arm.position[joint], arm.speed[joint])
        arm.add_effort(joint, gear)
        law.declare(model, place, effort, mass, tuple(numbers))
        model.state(phi, omega, 0.0, place)
        model.state(omega, (law.motor(phi, omega) - gear) / law.J, 0.0, f"{place}/s")
    model.experiment(stop=2.0, step=0.01, tolerance=1e-10)
    return model
