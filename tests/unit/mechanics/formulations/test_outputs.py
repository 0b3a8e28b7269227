"""Requested outputs against independent computations."""

from __future__ import annotations

import numpy as np
import pytest
import sympy as sm
from hypothesis import given
from hypothesis import strategies as st
from mechanisms import Evaluated, Numeric, cart_with_pathways, mechanism_of, model_of, moving_pivot, random_states
from sympy.physics import mechanics as me

from mb2fmu import Model, Parts
from mb2fmu.errors import FormulationError, MechanismError
from mb2fmu.mechanics.formulations import formulate
from mb2fmu.mechanics.formulations.outputs.output_expressions import euler_angles_from_matrix, quaternion_from_matrix

C_SYMBOLS = sm.ImmutableMatrix(3, 3, sm.symbols("c0:9"))
QUATERNION = sm.lambdify(list(C_SYMBOLS), quaternion_from_matrix(C_SYMBOLS))
SEQUENCES = [a + b + c for a in "xyz" for b in "xyz" for c in "xyz" if b not in (a, c)]
EULER = {
    sequence: sm.lambdify(list(C_SYMBOLS), euler_angles_from_matrix(C_SYMBOLS, sequence)) for sequence in SEQUENCES
}


def _about(axis: str, angle: float) -> np.ndarray:
    c, s = np.cos(angle), np.sin(angle)
    i = "xyz".index(axis)
    R = np.eye(3)
    j, k = (i + 1) % 3, (i + 2) % 3
    R[j, j] = R[k, k] = c
    R[j, k], R[k, j] = -s, s
    return R


@given(st.lists(st.floats(-1, 1), min_size=4, max_size=4).filter(lambda v: np.linalg.norm(v) > 0.1))
def test_quaternion_rotates_as_the_matrix(v):
    w, x, y, z = np.array(v) / np.linalg.norm(v)
    R = np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
            [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
            [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
        ]
    )
    found = np.array(QUATERNION(*R.ravel()))
    assert found[0] >= -1e-15
    assert np.linalg.norm(found) == pytest.approx(1, abs=1e-14)
    assert abs(abs(found @ (w, x, y, z)) - 1) < 1e-13


@given(st.sampled_from(SEQUENCES), st.floats(-3, 3), st.floats(0.05, 1.5), st.floats(-3, 3))
def test_euler_angles_of_any_sequence(sequence, a, b, c):
    R = _about(sequence[0], a) @ _about(sequence[1], b) @ _about(sequence[2], c)
    assert np.allclose(EULER[sequence](*R.ravel()), (a, b, c), atol=1e-9)


def test_vectors_and_accelerations():
    model = cart_with_pathways()
    system = model.mechanics
    bob = system.bodies[-1]
    model.output_position("place", bob.masscenter)
    model.output_velocity("velocity", bob.masscenter)
    model.output_acceleration("acceleration", bob.masscenter)
    model.output_position("seen", bob.masscenter, relative_to=system.bodies[1].masscenter, expressed_in=bob.frame)
    model.output_angular_velocity("turning", bob.frame)
    model.output_distance("gap", bob.masscenter, system.bodies[1].masscenter)
    mechanism = mechanism_of(model)
    numeric = Numeric(mechanism)
    point = next(body.masscenter for body in mechanism.bodies if body.name == bob.name)
    for method in ("kane", "tmt"):
        evaluated = Evaluated(mechanism, method)
        for state in random_states(mechanism, 5):
            u_dot = numeric.accelerations(state)
            motion = numeric.numeric.points[point]
            read = lambda name: np.array([evaluated.output(f"{name}.{axis}", state) for axis in "xyz"])  # noqa: B023, E731
            assert np.allclose(read("place"), motion.position, atol=1e-13)
            assert np.allclose(read("velocity"), motion.velocity, atol=1e-13)
            assert np.allclose(read("acceleration"), motion.acceleration0 + motion.partials @ u_dot, atol=1e-11)
            l = dict(zip([p.name for p in mechanism.p], state.p, strict=True))["l"]
            assert np.allclose(read("seen"), (0, -l, 0), atol=1e-13)
            assert read("turning")[2] == pytest.approx(state.x[3], abs=1e-14)
            assert evaluated.output("gap", state) == pytest.approx(l, abs=1e-13)


def test_levels_say_what_an_output_costs():
    model = cart_with_pathways()
    bob = model.mechanics.bodies[-1]
    model.output_position("place", bob.masscenter)
    model.output_velocity("velocity", bob.masscenter)
    model.output_acceleration("acceleration", bob.masscenter)
    model.output_kinetic_energy()
    model.output_potential_energy()
    levels = {o.name: o.level for o in formulate(mechanism_of(model), "tmt").outputs}
    assert levels["place.x"] == levels["potential_energy"] == "position"
    assert levels["velocity.x"] == levels["kinetic_energy"] == "velocity"
    assert levels["acceleration.x"] == "acceleration"


def pushed(load: sm.Expr) -> Model:
    """A mass on a level guide under a force."""
    x, v, push = me.dynamicsymbols("x v push")
    m, k = sm.symbols("m k")
    N, O = me.ReferenceFrame("N"), me.Point("O")
    P = O.locatenew("P", x * N.x)
    P.set_vel(N, v * N.x)
    force = load.subs(dict(zip(sm.symbols("x v push k"), (x, v, push, k), strict=True)))
    parts = Parts(
        frame=N, origin=O, q=[x], u=[v], kinematic_equations=[x.diff() - v], bodies=[me.Particle("P", P, m)],
        loads=[(P, force * N.x)],
    )  # fmt: skip
    model = model_of("Pushed", parts, [x], [v], m=2.0, k=3.0)
    model.input(push, 0.0, "N")
    model.output_potential_energy()
    return model


def test_what_acts_from_outside_only_has_no_potential():
    """Pushes and dampers have none; a spring that is written as a force has its own; of others nobody may know it."""
    found = formulate(mechanism_of(pushed(sm.sympify("push - k*v"))), "tmt").outputs
    assert found[0].expression == 0
    x, k = sm.symbols("x k")
    spring = formulate(mechanism_of(pushed(sm.sympify("push - k*x"))), "tmt").outputs
    assert sm.expand(spring[0].expression - k * x**2 / 2) == 0
    reported = r"potential energy is not known: nothing shows whether these have one: load\[1\] at P"
    with pytest.raises(FormulationError, match=reported):
        formulate(mechanism_of(pushed(sm.sympify("push - k*exp(-x**2)"))), "tmt")


def test_force_and_power_of_an_actuator():
    model = cart_with_pathways()
    damper = model.mechanics.actuators[1]
    model.output_force("F", damper)
    model.output_power("P", damper)
    mechanism = mechanism_of(model)
    evaluated = Evaluated(mechanism, "tmt")
    for state in random_states(mechanism, 5):
        c = dict(zip([p.name for p in mechanism.p], state.p, strict=True))["c"]
        force, power = evaluated.output("F", state), evaluated.output("P", state)
        assert power == pytest.approx(-(force**2) / c, rel=1e-12)
        assert power <= 0


def test_frames_that_hang_nowhere_are_all_named():
    model = moving_pivot()
    model.output_orientation("o", me.ReferenceFrame("loose"))
    model.output_angular_velocity("turning", me.ReferenceFrame("adrift"))
    with pytest.raises(FormulationError) as error:
        formulate(mechanism_of(model), "tmt")
    assert len(error.value.faults) == 2
    assert "loose" in str(error.value)
    assert "adrift" in str(error.value)


def test_points_that_hang_nowhere_are_named():
    model = moving_pivot()
    model.output_position("p", me.Point("nowhere"))
    with pytest.raises(MechanismError, match="nowhere"):
        mechanism_of(model)
