"""Bicycle and rider as one model: the truth."""

from dataclasses import replace
from pathlib import Path

import sympy as sm
import sympy.physics.mechanics as me
from rider import Rider

import mb2fmu

BICYCLE = Path(__file__).parents[2] / "models" / "bicycle.py"


def whole(speed: float = 3.5) -> mb2fmu.Model:
    """The benchmark bicycle; the rider's torque comes on top of that which is an input."""
    model = mb2fmu.load(BICYCLE, {"speed": speed})
    parts = model.mechanics
    one = Rider(parts.frame, (parts.q[3], parts.u[3], parts.u[5]))
    steer = me.dynamicsymbols("steer_torque")
    pushed = {steer: steer + one.torque}
    loads = [
        me.Torque(load.frame, load.torque.subs(pushed)) if isinstance(load, me.Torque) else load for load in parts.loads
    ]
    model.mechanics = replace(
        parts,
        q=[*parts.q, one.reach],
        u=[*parts.u, one.reach_rate],
        kinematic_equations=[*parts.kinematic_equations, one.reach.diff() - one.reach_rate],
        bodies=[*parts.bodies, one.body(parts.origin)],
        loads=[*loads, one.load],
    )
    one.declare(model)
    weights = (b.mass * b.masscenter.pos_from(parts.origin).dot(parts.frame.z) for b in parts.bodies)
    model.potential_energy(-sm.Symbol("g") * sum(weights) + one.torque * one.reach / 2)
    model.experiment(stop=2.0, step=0.01, tolerance=1e-10)
    return model
