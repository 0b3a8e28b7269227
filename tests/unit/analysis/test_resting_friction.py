"""Linear equations with dry friction: it acts where something slides, and is left out where nothing does."""

from __future__ import annotations

import numpy as np
import pytest
import sympy as sm
from sympy.physics import mechanics as me

import mb2fmu
from mb2fmu import Model
from mb2fmu.errors import AnalysisError
from mb2fmu.report.figures.eigenvalue_figure import format_eigenvalues

MASS, FRICTION, DAMPING = 2.0, 1.5, 0.5


def sledge(*, stiffness: float = 0.0, speed: float = 0.0, place: float = 0.1) -> Model:
    """A mass with dry and viscous friction, a spring, and a force."""
    x, v, force = me.dynamicsymbols("x v force")
    m, k, c, F = sm.symbols("m k c F")
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    P = O.locatenew("P", x * N.x)
    P.set_vel(N, v * N.x)
    loads = [(P, (force - k * x - c * v - F * sm.sign(v)) * N.x)]
    kane = me.KanesMethod(N, [x], [v], [x.diff() - v], bodies=[me.Particle("P", P, m)], forcelist=loads)
    model = Model("Sledge", kane)
    for symbol, value in ((m, MASS), (k, stiffness), (c, DAMPING), (F, FRICTION)):
        model.parameter(symbol, value)
    model.input(force, 0.0, "N")
    model.coordinate(x, place, "m")
    model.speed(v, speed, "m/s")
    return model


@pytest.mark.parametrize("speed", [0.0, 0.3, -0.3])
def test_the_equilibrium_does_not_depend_on_the_side_it_is_sought_from(speed: float) -> None:
    """m x'' + c x' + k x = 0 at x = 0, not at ± F / k."""
    found = mb2fmu.linearize(sledge(stiffness=50.0, speed=speed))
    assert found.point.motion == "equilibrium"
    assert found.point.x == pytest.approx([0.0, 0.0], abs=1e-9)
    assert found.resting_friction == ("v",)
    assert np.sort_complex(found.eigenvalues) == pytest.approx(np.sort_complex(np.roots([MASS, DAMPING, 50.0])))
    assert "Dry friction left out, since nothing slides there: v = 0" in format_eigenvalues(found)
    assert '"resting_friction"' in found.to_json()


@pytest.mark.parametrize("way", [1.0, -1.0])
def test_what_slides_has_its_friction(way: float) -> None:
    """A force beyond F drives it at (force - F) / c; the force that keeps a speed is F + c v."""
    driven = mb2fmu.linearize(sledge(), at={"force": way * 3.0})
    assert driven.point.x[1] == pytest.approx(way * (3.0 - FRICTION) / DAMPING)
    trimmed = mb2fmu.linearize(sledge(), at={"v": way * 2.0}, trim=("force",))
    assert trimmed.point.r == pytest.approx([way * (FRICTION + DAMPING * 2.0)])
    assert driven.resting_friction == trimmed.resting_friction == ()
    assert "riction" not in format_eigenvalues(driven)


@pytest.mark.parametrize("place", [0.1, 1e-7])
def test_what_counts_as_no_slip_is_a_part_of_what_is_typical(place: float) -> None:
    """A speed of 5e-10 m/s is none of a sledge that is moved by centimetres, and one of a thing of a tenth of a µm."""
    found = mb2fmu.linearize(sledge(place=place), at={"v": 5e-10}, trim=("force",))
    assert found.resting_friction == (("v",) if place > 1e-3 else ())
    wanted = 0.0 if place > 1e-3 else FRICTION
    assert found.point.r == pytest.approx([wanted + DAMPING * 5e-10])


def test_a_load_that_friction_holds_has_no_linear_motion() -> None:
    with pytest.raises(AnalysisError, match="where friction holds, nothing moves"):
        mb2fmu.linearize(sledge(), at={"force": 0.5 * FRICTION})


def test_a_sweep_treats_friction_alike() -> None:
    """Over the speed through zero: the friction's force is trimmed where it slides, and the eigenvalue stays."""
    found = mb2fmu.sweep(sledge(), "v", [-1.0, 0.0, 1.0], trim=("force",))
    assert found.eigenvalues == pytest.approx(np.full((3, 1), -DAMPING / MASS))
