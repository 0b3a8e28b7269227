"""Events and elements that cannot be right are reported with their names and a remedy."""

import pytest
import sympy as sm
import sympy.physics.mechanics as me
from event_models import particle

from mb2fmu import Impact, Latch, Model
from mb2fmu.errors import MechanismError, ModelError
from mb2fmu.mechanics.mechanism import read_mechanism
from mb2fmu.model import check_model

HALF = sm.Rational(1, 2)


def faults_of(model: Model) -> list[tuple[str, str]]:
    with pytest.raises((ModelError, MechanismError)) as caught:
        read_mechanism(check_model(model))
    return [(fault.what, fault.remedy) for fault in caught.value.faults]


def two_particles() -> tuple[Model, sm.Expr, sm.Expr]:
    x, y, v, w = me.dynamicsymbols("x y v w")
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    points = [O.locatenew(name, place * axis) for name, place, axis in (("P", x, N.x), ("Q", y, N.y))]
    for point, speed in zip(points, (v * N.x, w * N.y), strict=True):
        point.set_vel(N, speed)
    bodies = [me.Particle(f"mass at {point.name}", point, 1) for point in points]
    kane = me.KanesMethod(N, [x, y], [v, w], [x.diff() - v, y.diff() - w], bodies=bodies)
    model = Model("TwoParticles", kane)
    for symbol in (x, y):
        model.coordinate(symbol, 0.5, "m")
    for symbol in (v, w):
        model.speed(symbol, -1.0, "m/s")
    return model, x, y


@pytest.mark.parametrize("equality", [sm.Eq, sm.Ne])
def test_what_moves_is_equal_for_an_instant_that_nobody_sees(equality):
    model, x, v = particle(1.0, 0.0, lambda *_: -1)
    model.when(sm.And(equality(x, HALF), v < 0), {v: 0}, name="halfway")
    ((what, remedy),) = faults_of(model)
    assert "halfway: x(t) and 1/2 are equal for an instant at most" in what
    assert "<= or >=" in remedy


def test_what_only_events_change_may_be_compared_by_equality():
    model, x, v = particle(1.0, 0.0, lambda *_: -1)
    count, mass = me.dynamicsymbols("count"), sm.Symbol("limit")
    model.discrete(count)
    model.parameter(mass, 3.0)
    model.every(0.1, {count: count + 1})
    model.when(sm.Eq(count, mass), {v: 0})
    model.when(sm.And(sm.Eq(sm.floor(10 * x), 3), count > 1), {v: 1})
    check_model(model)


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ("x 2*x", "a.force_2 holds what a.force_1 holds already"),
        ("x y x+3*y", "a.force_3 holds what a.force_1, a.force_2 hold already"),
    ],
)
def test_rows_of_a_latch_that_follow_from_others_are_reported(rows, said):
    model, x, y = two_particles()
    model.add(Latch("a", [sm.sympify(row, {"x": x, "y": y}) for row in rows.split()], close=x <= 0.1, within=None))
    ((what, remedy),) = faults_of(model)
    assert what == f"{said}: how they share a force is not determined"
    assert remedy == "leave that row out"


def test_rows_that_are_alike_at_the_start_only_are_taken():
    model, x, y = two_particles()
    model.add(
        Latch("a", [x + y, x * y], close=x <= 0.1, within=None)
    )  # both slopes are (1/2, 1/2) times a number there
    assert len(read_mechanism(check_model(model)).latches.rows) == 2


def test_a_latch_may_hold_what_another_one_holds():
    model, x, y = two_particles()
    model.add(Latch("a", [x, y], close=x <= 0.1, within=None))
    model.add(Latch("b", [x - y], close=x <= 0.2, within=None))
    assert len(read_mechanism(check_model(model)).latches.rows) == 3


def test_two_elements_of_one_kind_and_name_are_one_fault():
    model, x, _ = particle(1.0, 0.0, lambda *_: -1)
    model.add(Impact("floor", x))
    model.add(Impact("floor", 2 - x))
    ((what, remedy),) = faults_of(model)
    assert "Impact floor: another Impact of this name is made at test_bad_events.py:" in what
    assert "another name" in remedy


def test_what_is_no_element_is_reported_as_such():
    model, *_ = particle(1.0, 0.0, lambda *_: -1)
    model.add(None)
    ((what, _),) = faults_of(model)
    assert what == "model.add: None is no element"


def test_a_load_by_an_output_that_depends_on_itself_is_no_advice_to_write_it_there():
    model, x, _ = particle(1.0, 0.0, lambda *_: -sm.Piecewise((2, me.dynamicsymbols("f") > 1), (0, True)))
    model.output("f", sm.Piecewise((2, me.dynamicsymbols("f") > 1), (x, True)), "N")
    ((what, remedy),) = faults_of(model)
    assert what.startswith("f(t) is not declared")
    assert remedy.startswith("the output f depends on itself")
