"""What acts only where an experiment goes is read right, or the difference is found: points lie there, too."""

from __future__ import annotations

from typing import Any

import sympy as sm
from mechanisms import mechanism_of, model_of
from sympy.physics import mechanics as me

from mb2fmu import Model
from mb2fmu.model import check_model
from mb2fmu.pipeline.run_and_report.validation_run import choose_reference_equations
from mb2fmu.validation import make_reference
from mb2fmu.validation.source_checks.source_accelerations import sample_source_accelerations


def walled() -> Model:
    """A pendulum that is let go at one side and is damped by a wall at the other."""
    q, u = me.dynamicsymbols("q u")
    m, l, g, k, c = sm.symbols("m l g k c")
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    A = N.orientnew("A", "Axis", [q, N.z])
    A.set_ang_vel(N, u * N.z)
    P = O.locatenew("P", -l * A.y)
    P.v2pt_theory(O, N, A)
    wall = sm.Piecewise((-k * (q - sm.Rational(1, 2)) - c * u, q > sm.Rational(1, 2)), (0, True))
    kane = me.KanesMethod(N, [q], [u], [q.diff() - u])
    kane.kanes_equations([me.Particle("bob", P, m)], [(P, -m * g * N.y), (A, wall * N.z)])
    model = model_of("Walled", kane, [], [], m=1.0, l=1.0, g=9.81, k=900.0, c=3.0)
    model.coordinate(q, -1.0, "rad")
    model.speed(u, 0.0, "rad/s")
    model.experiment(stop=2.0, step=0.01)
    return model


def test_points_are_beyond_the_wall():
    """A damper of twice the strength there had passed: all points lay about the start, at the other side."""
    checked, mechanism = check_model(walled()), mechanism_of(walled())
    reference = make_reference(mechanism.declared, choose_reference_equations(mechanism, None).equations)
    visited = reference.visited_coordinates
    assert max(place["q"] for place in visited) > 0.5
    assert min(place["q"] for place in visited) < 0.0

    def beyond(**more: Any) -> list[float]:
        return [
            s.states["q"]
            for s in sample_source_accelerations(checked, mechanism, **more).samples
            if s.states["q"] > 0.5
        ]

    assert not beyond()
    assert len(beyond(visited_coordinates=visited)) >= 2
