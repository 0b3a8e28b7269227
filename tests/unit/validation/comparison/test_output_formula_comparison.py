"""Formulas of outputs that FMU and reference share with events: wrong factors are found in every mode."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
import sympy as sm
from event_models import dropped
from representatives import by_night
from sympy.physics import mechanics as me

from mb2fmu import CoulombFriction, Latch
from mb2fmu.mechanics import formulations
from mb2fmu.mechanics.formulations.outputs import output_expressions
from mb2fmu.mechanics.mechanism import Mechanism, read_mechanism
from mb2fmu.mechanics.mechanism.records.mechanism_records import list_load_components
from mb2fmu.model import Model, check_model
from mb2fmu.model.supported_functions import StickingSign
from mb2fmu.validation import independent_checks, make_reference
from mb2fmu.validation.comparison.output_formula_comparison import compare_output_formulas
from mb2fmu.validation.reference.reference_run import ReferenceRun

FACTOR = sm.Rational(1001, 1000)
SWINGING = ("a", "a_rod", "alpha", "pin_load", "both", "p", "turning_power", "turning_torque", "spring_force")


def _swing() -> Model:
    """A pendulum on a dry hinge, and a bob on a spring that its rod carries: it swings, sticks, and is let go."""
    q, s = me.dynamicsymbols("q s")
    u, v = me.dynamicsymbols("u v")
    push = me.dynamicsymbols("push")
    ground = me.RigidBody("ground")
    rod, bob = me.RigidBody("rod", mass=2), me.RigidBody("bob", mass=0.5)
    for body in (rod, bob):
        body.central_inertia = me.inertia(body.frame, 0.1, 0.2, 0.15)
    system = me.System.from_newtonian(ground)
    pin = me.PinJoint("pin", ground, rod, q, u, joint_axis=ground.z, child_point=0.4 * rod.y)
    slide = me.PrismaticJoint("slide", rod, bob, s, v, joint_axis=rod.y)
    system.add_joints(pin, slide)
    system.apply_uniform_gravity(-9.81 * ground.y)
    spring = me.Force(bob, (-40 * s - 0.5 * v) * rod.y)
    system.add_loads(spring, me.Force(rod, (40 * s + 0.5 * v) * rod.y))
    turning = me.TorqueActuator(push * sm.sin(3 * me.dynamicsymbols._t), ground.z, rod.frame, ground.frame)
    system.add_actuators(turning)
    model = Model("Swing", system)
    model.coordinate(q, 0.4, "rad")
    model.coordinate(s, 0.0, "m")
    model.speed(u, 0.0, "rad/s")
    model.speed(v, 0.0, "m/s")
    model.input(push, 6.0)
    model.add(CoulombFriction("dry", pin, kinetic=1.5, static=2.0))
    model.output_acceleration("a", bob.masscenter)
    model.output_acceleration("a_rod", bob.masscenter, expressed_in=rod.frame)
    model.output_angular_acceleration("alpha", rod.frame)
    model.output_reaction("pin_load", pin)
    model.output_reaction("both", [rod, bob], at=rod.masscenter)
    model.output_momentum("p", u, unit="kg.m2/s")
    model.output_power("turning_power", turning)
    model.output_force("turning_torque", turning, unit="N.m")
    model.output_force("spring_force", spring)
    model.output_total_energy()
    model.experiment(stop=3.0, step=0.05)
    return model


def _latched_loop() -> Model:
    """A bead on a circle in coordinates that the circle ties: held for a while, then let go."""
    x, y, v, w = me.dynamicsymbols("x y v w")
    t = me.dynamicsymbols._t
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    P = O.locatenew("P", x * N.x + y * N.y)
    P.set_vel(N, v * N.x + w * N.y)
    circle = (x**2 + y**2 - 1) / 2
    kane = me.KanesMethod(
        N, [x], [v], [x.diff() - v, y.diff() - w], q_dependent=[y], u_dependent=[w],
        configuration_constraints=[circle], velocity_constraints=[x * v + y * w],
        bodies=[me.Particle("bead", P, 2)], forcelist=[(P, -9.81 * 2 * N.y)],
    )  # fmt: skip
    model = Model("LatchedLoop", kane)
    for symbol, value in ((x, 0.6), (y, -0.8)):
        model.coordinate(symbol, value, "m")
    for symbol in (v, w):
        model.speed(symbol, 0.0, "m/s")
    model.add(Latch("hold", x, close=t >= 0.2, open=t >= 0.5, within=2.0))
    model.output_multiplier("circle", circle)
    model.output_acceleration("a", P)
    model.experiment(stop=0.8, step=0.05)
    return model


def _import_and_integrate(model: Model) -> tuple[Mechanism, ReferenceRun]:
    definition = check_model(model)
    mechanism = read_mechanism(definition)
    return mechanism, make_reference(definition, formulations.formulate(mechanism, "tmt"))


def _list_errors(model: Model) -> dict[str, list[float]]:
    """Return the errors over bounds of each scalar output, instant by instant; all of them were evaluated."""
    mechanism, reference = _import_and_integrate(model)
    comparison = compare_output_formulas(mechanism, [reference])
    assert comparison is not None
    assert not comparison.left_out
    errors: dict[str, list[float]] = {}
    for ratio, place in comparison.errors:
        errors.setdefault(place.partition(" at ")[0], []).append(ratio)
    return errors


@pytest.fixture
def plant(monkeypatch) -> Callable[[sm.Expr], None]:
    """Multiplies every requested output by a factor, where FMU and reference take their formulas from."""
    right = output_expressions._expand_request

    def multiply(factor: sm.Expr) -> None:
        def wrong(*args) -> Iterator[tuple[str, sm.Expr]]:
            yield from ((name, factor * expression) for name, expression in right(*args))

        monkeypatch.setattr(output_expressions, "_expand_request", wrong)

    return multiply


def _bouncing() -> Model:
    model = dropped()
    point = model.mechanics.bodylist[0].masscenter
    model.output_acceleration("a", point)
    return model


@pytest.mark.parametrize("make", [*by_night(_swing, _latched_loop), _bouncing])
def test_right_outputs_pass_in_every_mode(make):
    assert max(max(ratios) for ratios in _list_errors(make()).values()) < 0.01


@pytest.mark.parametrize(("make", "names"), [(_swing, SWINGING), (_latched_loop, ("circle", "a")), (_bouncing, ("a",))])
def test_a_wrong_factor_of_each_kind_is_found(make, names, plant):
    plant(FACTOR)
    errors = _list_errors(make())
    for name in names:
        assert max(max(ratios) for each, ratios in errors.items() if each.partition(".")[0] == name) > 1e3, name


def test_a_factor_is_found_that_is_wrong_while_it_sticks_only(plant):
    loads = read_mechanism(check_model(_swing())).loads
    (sign,) = {sign for load in loads for each in list_load_components(load) for sign in each.atoms(StickingSign)}
    plant(1 + (1 - sign**2) / 1000)
    ratios = _list_errors(_swing())["pin_load.force.y"]
    assert 0 < sum(ratio > 1 for ratio in ratios) < len(ratios)


def test_the_verdict_names_the_output_and_how_far_it_is_off(plant):
    plant(FACTOR)
    mechanism, reference = _import_and_integrate(_bouncing())
    (check,) = independent_checks._check_output_formulas(mechanism, [reference])
    assert check.verdict == "failed"
    assert "a.x at t = " in check.reason


def test_nothing_is_compared_where_the_reference_writes_the_outputs_itself_or_there_are_none():
    mechanism, reference = _import_and_integrate(dropped())
    assert independent_checks._check_output_formulas(mechanism, [reference]) == []
