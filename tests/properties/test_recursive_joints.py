"""Joints that no SymPy class is: slanted axes, screws, universal joints, massless arms, prescribed motion, by links."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import sympy as sm
from mechanisms import Evaluated, Numeric, close, mechanism_of, model_of, random_states
from representatives import by_night
from sympy.physics import mechanics as me

from mb2fmu.mechanics.formulations import check_applicability_of_all_formulations
from mb2fmu.model.model import Parts

VARIANTS = ("recursive-articulated", "recursive-composite")
m, J, l, g = sm.symbols("m J l g")


class _Bench:
    """A carrier that turns about a slanted axis; the joint under test hangs at its end."""

    def __init__(self) -> None:
        self.N, self.A = me.ReferenceFrame("N"), me.ReferenceFrame("A")
        self.O = me.Point("O")
        self.q, self.u = list(me.dynamicsymbols("q1:5")), list(me.dynamicsymbols("u1:5"))
        axis = (self.N.x + 2 * self.N.y + 2 * self.N.z) / 3
        self.A.orient_axis(self.N, axis, self.q[0])
        self.A.set_ang_vel(self.N, self.u[0] * axis)
        self.end = self.O.locatenew("end", l * self.A.x - l / 3 * self.A.y)
        self.bodies = [self.body("carrier", self.O.locatenew("centre", l / 2 * self.A.x), self.A)]
        self.loads: list[tuple[object, object]] = []
        self.equations = [qi.diff() - ui for qi, ui in zip(self.q, self.u, strict=True)]

    def body(self, name: str, point: me.Point, frame: me.ReferenceFrame) -> me.RigidBody:
        inertia = me.inertia(frame, J, 2 * J, 1.5 * J, 0.1 * J, -0.2 * J, 0.05 * J)
        return me.RigidBody(name, point, frame, m, (inertia, point))

    def frame(self, name: str, parent: me.ReferenceFrame, axis: object, i: int) -> me.ReferenceFrame:
        frame = me.ReferenceFrame(name)
        frame.orient_axis(parent, axis, self.q[i])
        frame.set_ang_vel(parent, self.u[i] * axis)  # type: ignore[operator]
        return frame

    def hang(self, point: me.Point, frame: me.ReferenceFrame) -> None:
        centre = point.locatenew("mass", l / 4 * frame.x + l / 5 * frame.z)
        self.bodies.append(self.body("last", centre, frame))

    def model(self, count: int):
        weights = [(body.masscenter, -g * body.mass * self.N.z) for body in self.bodies]
        parts = Parts(
            frame=self.N,
            origin=self.O,
            q=self.q[:count],
            u=self.u[:count],
            kinematic_equations=self.equations[:count],
            bodies=self.bodies,
            loads=[*weights, *self.loads],
        )
        return model_of("Bench", parts, self.q[:count], self.u[:count], m=1.2, J=0.1, l=0.8, g=9.81)


def slanted(b: _Bench) -> int:
    b.hang(b.end, b.frame("B", b.A, (b.A.x - b.A.z) / sm.sqrt(2), 1))
    return 2


def universal(b: _Bench) -> int:
    b.hang(b.end, _cross(b))
    return 3


def _cross(b: _Bench) -> me.ReferenceFrame:
    first = b.frame("B", b.A, b.A.x, 1)
    return b.frame("C", first, first.y, 2)


def ball_by_three_frames(b: _Bench) -> int:
    second = _cross(b)
    b.hang(b.end, b.frame("D", second, second.z, 3))
    return 4


def torque_between(b: _Bench) -> int:
    """A torque on the cross of a universal joint, which has no mass."""
    first = b.frame("B", b.A, b.A.x, 1)
    last = b.frame("C", first, first.y, 2)
    b.hang(b.end, last)
    b.loads += [(first, 0.3 * first.z), (last, -0.2 * first.x)]
    return 3


def screw(b: _Bench) -> int:
    b.hang(b.end.locatenew("nut", 0.1 * b.q[1] * b.A.z), b.frame("B", b.A, b.A.z, 1))
    return 2


def slider_on_massless_arm(b: _Bench) -> int:
    arm = b.frame("B", b.A, b.A.y, 1)
    b.hang(b.end.locatenew("slider", (l + b.q[2]) * arm.x), b.frame("C", arm, arm.z, 3))
    return 4


def prescribed(b: _Bench) -> int:
    t = me.dynamicsymbols._t
    turning = me.ReferenceFrame("B")
    turning.orient_axis(b.A, b.A.z, 0.4 * sm.sin(3 * t))
    b.hang(b.end.locatenew("shaken", 0.1 * sm.cos(2 * t) * turning.y), b.frame("C", turning, turning.x, 1))
    return 2


def absolute(b: _Bench) -> int:
    """Angular velocity in N by components along the body, angles relative to N: nothing is said against the carrier."""
    last = me.ReferenceFrame("B")
    last.orient_body_fixed(b.N, b.q[1:4], "XYZ")
    omega = b.u[1] * last.x + b.u[2] * last.y + b.u[3] * last.z
    rates = last.ang_vel_in(b.N)
    b.equations[1:] = [(rates - omega).dot(axis) for axis in last]
    last.set_ang_vel(b.N, omega)
    b.hang(b.end, last)
    return 4


JOINTS = (slanted, ball_by_three_frames, torque_between, screw, slider_on_massless_arm, prescribed, absolute)


@pytest.mark.parametrize("joint", [*JOINTS, *by_night(universal)])  # by day a torque is on such a joint
def test_joint(joint: Callable[[_Bench], int]):
    bench = _Bench()
    mechanism = mechanism_of(bench.model(joint(bench)))
    assert check_applicability_of_all_formulations(mechanism)["recursive-articulated"].is_applicable
    numeric, tmt = Numeric(mechanism), Evaluated(mechanism, "tmt")
    for method in VARIANTS:
        one = Evaluated(mechanism, method)
        for state in random_states(mechanism, 4):
            expected = numeric.accelerations(state)
            assert close(one("accelerations", state), expected, numeric.condition()), method
            assert np.allclose(one("energy", state), tmt("energy", state), rtol=1e-11, atol=1e-11)
