"""Contacts that are said to rest at the start, and do not: pulled off, or with a gap. They let go at once.

Neither did once: a condition that is true at the start did not become true, so that what was pulled stayed glued.
"""

from __future__ import annotations

import functools

import fmpy
import pytest
import sympy as sm
import sympy.physics.mechanics as me
from mechanisms import closed_mechanism_of

from mb2fmu import Impact, Model, export
from mb2fmu.mechanics import formulations
from mb2fmu.validation.reference.reference_run import make_reference

GRAVITY, PULL, LEFT = 9.81, 25.0, 0.01
RISEN = 0.5 * (PULL / 2 - GRAVITY) * 0.3**2
"""m, after 0.3 s, of 2 kg that are pulled up from the start."""


def block(pull: float = 0.0, height: float = 0.05, **rubbing: float) -> Model:
    """A block of 2 kg that is said to rest on a floor which is 0.05 m high."""
    y, x, v, u = me.dynamicsymbols("y x v u")
    F, floor = sm.symbols("F floor")
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    P = O.locatenew("P", x * N.x + y * N.y)
    P.set_vel(N, u * N.x + v * N.y)
    loads = [(P, (F - 2 * sm.Float(GRAVITY)) * N.y)]
    rates = [x.diff() - u, y.diff() - v]
    kane = me.KanesMethod(N, [x, y], [u, v], rates, bodies=[me.Particle("block", P, 2)], forcelist=loads)
    model = Model("Block", kane)
    model.parameter(F, pull, "N")
    model.parameter(floor, 0.05, "m")
    model.coordinate(x, 0.0, "m")
    model.coordinate(y, height, "m")
    model.speed(u, 0.0, "m/s")
    model.speed(v, 0.0, "m/s")
    slip = {"slip": u, **rubbing} if rubbing else {}
    model.add(Impact("floor", y - floor, restitution=0.4, rest_below=0.05, starts_resting=True, **slip))
    model.experiment(stop=0.3, step=0.05, tolerance=1e-9)
    return model


with_and_without_friction = pytest.mark.parametrize(
    "rubbing", [pytest.param({}, id="smooth", marks=pytest.mark.repeats), pytest.param({"friction": 0.3}, id="rough")]
)


@functools.cache
def unit(folder, **rubbing: float) -> str:
    return str(export(block(**rubbing), folder).path)


@with_and_without_friction
@pytest.mark.parametrize("kind", ["CoSimulation", "ModelExchange"])
def test_what_is_pulled_from_the_start_leaves_at_once(tmp_path_factory, kind, rubbing):
    end = fmpy.simulate_fmu(
        unit(tmp_path_factory.getbasetemp(), **rubbing), fmi_type=kind, stop_time=0.3, output_interval=0.05,
        relative_tolerance=1e-9, start_values={"F": PULL}, output=["y", "floor.resting"],
    )[-1]  # fmt: skip
    assert end["y"] - 0.05 == pytest.approx(RISEN, rel=1e-6)
    assert end["floor.resting"] == 0


@with_and_without_friction
@pytest.mark.parametrize("kind", ["CoSimulation", "ModelExchange"])
def test_what_hangs_over_its_floor_at_the_start_falls(tmp_path_factory, kind, rubbing):
    """As one that was lifted: it falls the 0.01 m within 0.0452 s, is struck, and bounces."""
    found = fmpy.simulate_fmu(
        unit(tmp_path_factory.getbasetemp(), **rubbing), fmi_type=kind, stop_time=0.04, output_interval=0.02,
        relative_tolerance=1e-9, start_values={"floor": 0.05 - LEFT}, output=["y", "floor.impacts"],
    )  # fmt: skip
    assert found["y"][-1] == pytest.approx(0.05 - 0.5 * GRAVITY * 0.04**2, rel=1e-7)
    later = fmpy.simulate_fmu(
        unit(tmp_path_factory.getbasetemp(), **rubbing), fmi_type=kind, stop_time=0.06, output_interval=0.02,
        relative_tolerance=1e-9, start_values={"floor": 0.05 - LEFT}, output=["y", "floor.impacts"],
    )  # fmt: skip
    assert later["floor.impacts"][-1] == 1


@with_and_without_friction
def test_the_reference_lets_go_at_once(rubbing):
    def end(model: Model, name: str) -> float:
        mechanism = closed_mechanism_of(model)
        found = make_reference(mechanism.declared, formulations.formulate(mechanism, "lagrange"))
        return float(found.trajectory.values[-1, found.trajectory.column(name)])

    assert end(block(pull=PULL, **rubbing), "y") - 0.05 == pytest.approx(RISEN, rel=1e-9)
    assert end(block(height=0.05 + LEFT, **rubbing), "floor.impacts") >= 1
    assert end(block(**rubbing), "floor.impacts") == 0
