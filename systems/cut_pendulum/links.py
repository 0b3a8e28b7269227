"""Links of a planar pendulum for the models of this folder: uniform rods, absolute angles from the downward line."""

from __future__ import annotations

from typing import Any

import sympy as sm
import sympy.physics.mechanics as me

from mb2fmu import Model

m, length, g = sm.symbols("m l g")
STARTS = (0.4, 0.3, 0.2, 0.1)


class Links:
    """Some links that hang from a point.

    Args:
        numbers: Of the links, from 0.
        N: Inertial frame; y is upward.
        base: Point from which the first one hangs; its position and velocity are set.
        origin: At rest.
    """

    def __init__(self, numbers: range, N: me.ReferenceFrame, base: me.Point, origin: me.Point) -> None:
        self.numbers = numbers
        self.q = [me.dynamicsymbols(f"q{i + 1}") for i in numbers]
        self.u = [me.dynamicsymbols(f"u{i + 1}") for i in numbers]
        self.bodies: list[me.RigidBody] = []
        self.loads: list[tuple[Any, Any]] = []
        point = base
        for i, q, u in zip(numbers, self.q, self.u, strict=True):
            frame = N.orientnew(f"A{i + 1}", "Axis", (q, N.z))
            frame.set_ang_vel(N, u * N.z)
            centre = point.locatenew(f"C{i + 1}", -length / 2 * frame.y)
            centre.v2pt_theory(point, N, frame)
            body = me.RigidBody(f"link{i + 1}", centre, frame, m, (me.inertia(frame, 0, 0, m * length**2 / 12), centre))
            self.bodies.append(body)
            self.loads.append((centre, -m * g * N.y))
            end = point.locatenew(f"P{i + 1}", -length * frame.y)
            end.v2pt_theory(point, N, frame)
            point = end
        self.end = point
        self.N, self.origin = N, origin

    def kane(self, loads: list[tuple[Any, Any]]) -> me.KanesMethod:
        """The method, set up with further loads."""
        rates = [q.diff() - u for q, u in zip(self.q, self.u, strict=True)]
        return me.KanesMethod(self.N, self.q, self.u, rates, bodies=self.bodies, forcelist=[*self.loads, *loads])

    def declare(self, model: Model) -> None:
        """Parameters, states and experiment."""
        model.parameter(m, 1.0, "kg", min=1e-6, description="of each link")
        model.parameter(length, 0.5, "m", min=1e-6, description="of each link")
        model.parameter(g, 9.81, "m/s2")
        for i, q, u in zip(self.numbers, self.q, self.u, strict=True):
            model.coordinate(q, STARTS[i], "rad", description="from the downward line")
            model.speed(u, 0.0, "rad/s")
        model.experiment(stop=5.0, step=0.01, tolerance=1e-11)
