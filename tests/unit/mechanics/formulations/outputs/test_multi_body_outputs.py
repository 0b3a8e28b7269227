"""Outputs of several bodies and of one body against another: SymPy's own sums, and rates of what is seen."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
import sympy as sm
import sympy.physics.mechanics as me
from mechanisms import Evaluated, Numeric, State, cart_with_pathways, mechanism_of, random_states
from representatives import by_night
from sympy.physics.mechanics.functions import center_of_mass

import mb2fmu
from mb2fmu import Model
from mb2fmu.errors import FormulationError, ModelError
from mb2fmu.mechanics.mechanism import Mechanism, read_mechanism
from mb2fmu.model import check_model
from mb2fmu.validation.evaluation_plans.kinematic_quantities import evaluate_kinematic_quantities
from mb2fmu.validation.reference_equations.observables import form_observable_expressions
from mb2fmu.validation.source_checks.source_accelerations import sample_source_accelerations

STEP = 1e-6


def sensed() -> Model:
    """Two rods about different axes, looked at from one another and all together."""
    model = mb2fmu.load("models/two_rods.py")
    rod_a, rod_b = model.mechanics.bodies
    A, B, Ao, Bo, N, O = rod_a.frame, rod_b.frame, rod_a.masscenter, rod_b.masscenter, *ground(model)
    tip = Bo.locatenew("end", 0.2 * B.x + 0.3 * B.y)
    tip.v2pt_theory(Bo, N, B)
    model.output_angular_acceleration("alpha", B)
    model.output_angular_acceleration("alpha_in_A", B, relative_to=A, expressed_in=A)
    model.output_pose("seen", (tip, B), relative_to=(Ao, A), representation="zxy")
    model.output_twist("seen", (tip, B), relative_to=(Ao, A))
    model.output_twist("back", (Ao, A), relative_to=(tip, B))
    model.output_pose("back", (Ao, A), relative_to=(tip, B))
    model.output_centre_of_mass("com")
    model.output_centre_of_mass("com_b", [rod_b])
    model.output_momenta("all")
    model.output_momenta("about_O", [rod_a, rod_b], about=O)
    model.output_momenta("in_B", [rod_b], expressed_in=B)
    model.output_angular_velocity("omega", B)
    model.output_angular_velocity("omega_in_A", B, relative_to=A, expressed_in=A)
    return model


def ground(model: Model) -> tuple[me.ReferenceFrame, me.Point]:
    return model.mechanics.frame, model.mechanics.origin


@cache
def mechanism() -> Mechanism:
    return mechanism_of(sensed())


@pytest.fixture(scope="module", params=["recursive-composite", *by_night("tmt")])
def unit(request: pytest.FixtureRequest) -> Evaluated:
    return Evaluated(mechanism(), request.param)


def read(unit: Evaluated, name: str, state: State, parts: str = "xyz") -> np.ndarray:
    return np.array([unit.output(f"{name}.{part}", state) for part in parts])


def moved(unit: Evaluated, state: State, by: float) -> State:
    """The state a moment later, by its derivative."""
    return State(state.t + by, state.x + by * unit("rhs", state), state.r, state.p)


def rate(unit: Evaluated, name: str, state: State) -> np.ndarray:
    return (read(unit, name, moved(unit, state, STEP)) - read(unit, name, moved(unit, state, -STEP))) / (2 * STEP)


def test_what_one_body_sees_of_the_other_moves_as_it_says(unit: Evaluated) -> None:
    """Velocity and angular acceleration are rates of components in the very frame that looks."""
    state = random_states(mechanism(), 1, seed=3)[0]
    for velocity, position in (("seen.velocity", "seen.position"), ("back.velocity", "back.position")):
        assert np.allclose(read(unit, velocity, state), rate(unit, position, state), atol=1e-8)
    assert np.allclose(read(unit, "alpha", state), rate(unit, "omega", state), atol=1e-7)
    assert np.allclose(read(unit, "alpha_in_A", state), rate(unit, "omega_in_A", state), atol=1e-7)
    assert np.linalg.norm(read(unit, "alpha", state) - read(unit, "alpha_in_A", state)) > 0.1
    assert np.allclose(read(unit, "com.velocity", state), rate(unit, "com.position", state), atol=1e-8)


def test_sums_over_bodies_are_sympys(unit: Evaluated) -> None:
    """Centre of mass and momenta by SymPy's own functions, of the objects that were handed over."""
    state, model = random_states(mechanism(), 1, seed=5)[0], sensed()
    N, O = ground(model)
    bodies, m = model.mechanics.bodies, mechanism()
    places = center_of_mass(O, *bodies)
    centre = O.locatenew("C", places)
    centre.set_vel(N, places.dt(N))
    vectors = {
        "com.position": places,
        "all.linear": me.linear_momentum(N, *bodies),
        "all.angular": me.angular_momentum(centre, N, *bodies),
        "about_O.angular": me.angular_momentum(O, N, *bodies),
        "com_b.velocity": bodies[1].masscenter.vel(N),
    }
    parameters = dict(zip([p.name for p in m.p], state.p, strict=True))
    parameters["I"] = parameters["m"] * parameters["l"] ** 2 / 12
    known = {q: state.x[i] for i, q in enumerate(model.mechanics.q)}
    known |= {u: state.x[2 + i] for i, u in enumerate(model.mechanics.u)}
    known |= {q.diff(): known[u] for q, u in zip(model.mechanics.q, model.mechanics.u, strict=True)}
    for name, vector in vectors.items():
        scalars = [sm.sympify(vector.dot(axis)) for axis in N]
        at_state = [e.subs(known) for e in scalars]
        wanted = [float(e.subs({s: parameters[s.name] for s in e.free_symbols})) for e in at_state]
        assert np.allclose(read(unit, name, state), wanted, atol=1e-12), name
    angular = read(unit, "in_B.angular", state)
    assert np.linalg.norm(angular) > 1e-3


def test_the_reference_reads_the_same(unit: Evaluated) -> None:
    """Every output from the numbers of the mechanism, written another way."""
    m, numeric = mechanism(), Numeric(mechanism())
    state = random_states(m, 1, seed=6)[0]
    u_dot = numeric.accelerations(state)
    reading = form_observable_expressions(m, unit.equations)
    numbers = evaluate_kinematic_quantities(reading.kinematic_quantities.all, numeric.numeric, u_dot)
    known = dict(zip(reading.kinematic_quantities.symbols, numbers, strict=True))
    values = [*state.p, *numeric.numeric.parameters(list(state.p))[len(m.p) :]]
    known |= dict(zip([*m.p, *(a.symbol for a in m.calculated_parameters)], values, strict=True))
    printed = [
        o
        for o in reading.outputs
        if o.name.split(".")[0] in {"alpha", "alpha_in_A", "seen", "back", "com", "all", "about_O", "in_B"}
        and not o.name.startswith("back.orientation")
    ]
    assert len(printed) == 6 + 12 + 9 + 4 * 6
    read_there = sm.lambdify(list(known), [output.expression for output in printed])(*known.values())
    for output, value in zip(printed, read_there, strict=True):
        assert unit.output(output.name, state) == pytest.approx(value, abs=1e-10), output.name


def test_a_joint_tells_what_its_coordinates_do() -> None:
    """Of a slider and a pin: the coordinate itself, nothing else."""
    model = cart_with_pathways()
    slide, pin = model.mechanics.joints
    model.output_joint_motion("slide", slide, representation="xyz")
    model.output_joint_motion("pin", pin, representation="xyz")
    unit = Evaluated(mechanism_of(model), "tmt")
    state = random_states(mechanism_of(model), 1)[0]
    x, q, v, u = state.x
    assert np.allclose(read(unit, "slide.position", state), (x, 0, 0), atol=1e-13)
    assert np.allclose(read(unit, "slide.velocity", state), (v, 0, 0), atol=1e-13)
    assert np.allclose(read(unit, "pin.position", state), 0, atol=1e-13)
    angles = [unit.output(f"pin.orientation[{i}]", state) for i in (1, 2, 3)]
    assert sorted(np.abs(angles)) == pytest.approx([0, 0, abs(q)], abs=1e-12)
    assert np.linalg.norm(read(unit, "pin.omega", state)) == pytest.approx(abs(u), abs=1e-13)


def test_what_cannot_be_reported_is_said_together() -> None:
    """Who asks for the wrong things hears all of it."""
    model = mb2fmu.load("models/two_rods.py")
    N, O = ground(model)
    model.output_centre_of_mass("com", [N])
    model.output_angular_acceleration("alpha", O)
    with pytest.raises(ModelError) as caught:
        mechanism_of(model)
    assert str(caught.value).count("is requested for") == 3
    sphere = mb2fmu.load("models/two_rods.py")
    stranger = me.RigidBody("stranger")
    sphere.output_momenta("p", [stranger])
    with pytest.raises(FormulationError, match="stranger is no moving body"):
        Evaluated(mechanism_of(sphere), "tmt")


def test_random_points_have_them_from_the_source_objects(unit: Evaluated) -> None:
    """The validation compares FMUs with these: where a model has events, FMU and reference share their formulas."""
    definition = check_model(sensed())
    accelerations = sample_source_accelerations(definition, read_mechanism(definition))
    m, slots = mechanism().declared, accelerations.starts
    states = [slots[item.name] for item in (*m.coordinates, *m.speeds)]
    parameters = [slots[item.name] for item in m.parameters if not item.calculated]
    assert len(accelerations.samples) > 8
    for sample in accelerations.samples:
        values = np.array(sample.point.values)
        state = State(sample.point.time, values[states], np.zeros(0), values[parameters])
        for quantity in (
            *("seen.velocity", "back.velocity", "com.position", "com.velocity", "com_b.velocity", "all.linear"),
            *("all.angular", "about_O.angular", "in_B.linear", "in_B.angular"),
        ):
            wanted, bounds = zip(*(sample.outputs[f"{quantity}.{axis}"] for axis in "xyz"), strict=True)
            assert np.all(np.abs(read(unit, quantity, state) - wanted) <= bounds), quantity
            assert max(bounds) < 1e-8 * max(1.0, *np.abs(wanted)), quantity
