"""Outputs as the random points have them: attitudes by other formulas than the reference's, momenta and energies."""

from __future__ import annotations

import numpy as np
import pytest
import sympy as sm
from mechanisms import cart_with_pathways, model_of, pendulum_with_reactions
from representatives import by_night
from scipy.spatial.transform import Rotation
from strangers import STRANGERS
from sympy.physics import mechanics as me

from mb2fmu import Model
from mb2fmu.mechanics.mechanism import read_mechanism
from mb2fmu.model import check_model
from mb2fmu.model.declarations.declared_outputs import OutputRequest
from mb2fmu.validation.reference_equations.observables import convert_rotation_to_quaternion, euler_angles
from mb2fmu.validation.source_checks.numeric_kane_equations import PointAndFrameMotion
from mb2fmu.validation.source_checks.source_accelerations import sample_source_accelerations
from mb2fmu.validation.source_checks.source_output_evaluation import _evaluate_orientation


@pytest.mark.parametrize("representation", ["quaternion", "zxy", "XYZ", "313", "yxy"])
@pytest.mark.parametrize("relative", ["A", *by_night(None)])
def test_attitudes_are_those_of_the_reference(representation, relative):
    compared = 0
    for seed in range(12):
        frame, base = (Rotation.random(random_state=2 * seed + k).as_matrix() for k in (0, 1))
        asked = PointAndFrameMotion({}, {}, {}, {"B": frame, "A": base})
        request = OutputRequest(
            name="a", kind="orientation", subject=("B",), representation=representation,
            relative_to=relative,
        )  # fmt: skip
        found = _evaluate_orientation(request, asked)
        turned = sm.Matrix(base.T @ frame if relative else frame)
        quaternion = representation == "quaternion"
        wanted = convert_rotation_to_quaternion(turned) if quaternion else euler_angles(turned, representation)
        names = [f"a.{part}" for part in "wxyz"] if quaternion else [f"a[{k}]" for k in (1, 2, 3)]
        if found:
            assert list(found) == names
            assert [value for value, _ in found.values()] == pytest.approx([float(w) for w in wanted], abs=1e-12)
            compared += 1
    assert compared > 8


def test_nothing_is_said_where_numbers_jump():
    half = Rotation.from_euler("z", 180.0, degrees=True).as_matrix()
    for representation in ("quaternion", "zxy"):
        request = OutputRequest(name="a", kind="orientation", subject=("B",), representation=representation)
        assert _evaluate_orientation(request, PointAndFrameMotion({}, {}, {}, {"B": half})) == {}


@pytest.mark.parametrize("given", [False, True])
def test_momenta_and_energies_of_a_lagrangian_without_bodies_are_its_derivatives(given):
    """A bead on a turning hoop: T has a part without q', so Jacobi's integral is not T + V."""
    theta = me.dynamicsymbols("theta")
    rate, m, turning = theta.diff(), sm.Rational(3, 2), 4
    L = m * (rate**2 + turning**2 * sm.sin(theta) ** 2) / 2 - 9.81 * m * (1 - sm.cos(theta))
    model = model_of("Hoop", me.LagrangesMethod(L, [theta], frame=me.ReferenceFrame("N")), [theta], [rate])
    if given:
        model.potential_energy(7 * theta**2)
    model.output_momentum("p", theta, unit="kg.m2/s")
    model.output_momentum("p_of_speed", rate, unit="kg.m2/s")
    model.output_jacobi_integral("H")
    model.output_kinetic_energy("T")
    model.output_potential_energy("V")
    model.output_total_energy("E")
    definition = check_model(model)
    samples = sample_source_accelerations(definition, read_mechanism(definition)).samples
    assert len(samples) > 20
    for sample in samples:
        q, u = sample.states.values()
        V = 7 * q**2 if given else 9.81 * 1.5 * (1 - np.cos(q)) - 1.5 * 16 * np.sin(q) ** 2 / 2
        T, H = 1.5 * u**2 / 2, 1.5 * (u**2 - 16 * np.sin(q) ** 2) / 2 + 9.81 * 1.5 * (1 - np.cos(q))
        values = {name: value for name, (value, _) in sample.outputs.items()}
        assert values == pytest.approx({"p": 1.5 * u, "p_of_speed": 1.5 * u, "H": H, "T": T, "V": V, "E": T + V})


def test_multipliers_of_a_lagrangian_without_bodies_are_those_of_its_own_equations():
    """A particle on a rope, M u' + A^T λ = f: λ = m (v² - g y) / (2 l²), whatever the formulation made of it."""
    (x, y), m, g = me.dynamicsymbols("x y"), sm.Rational(3, 2), 9.81
    row = x**2 + y**2 - 1
    L = m * (x.diff() ** 2 + y.diff() ** 2) / 2 - m * g * y
    method = me.LagrangesMethod(L, [x, y], hol_coneqs=[row], frame=me.ReferenceFrame("N"))
    model = Model("Rope", method)
    for q, start, kind in ((x, 0.6, "fixed"), (y, -0.8, "guess")):
        model.coordinate(q, start, "m", kind=kind)
        model.speed(q.diff(), 0.1, "m/s", kind=kind)
    model.output_multiplier("tension", row, unit="N/m")
    force = me.dynamicsymbols("force")
    model.constraint(row, "rope", multiplier=force)
    model.output("pull", 2 * force + x, "N")
    definition = check_model(model)
    samples = sample_source_accelerations(definition, read_mechanism(definition)).samples
    assert len(samples) > 20
    for sample in samples:
        (a, b, v, w), (value, bound) = sample.states.values(), sample.outputs["tension"]
        assert value == pytest.approx(1.5 * (v**2 + w**2 - g * b) / 2, rel=1e-9)
        assert 0.0 < bound < 1e-6 * (abs(value) + 1.0)
        assert sample.outputs["pull"][0] == pytest.approx(2 * value + a, rel=1e-12)


def test_a_potential_energy_that_the_model_gives_is_evaluated_as_it_is_given():
    model = cart_with_pathways()
    q = model.mechanics.q[0]
    model.potential_energy(3 * q**2)
    model.output_potential_energy("V")
    definition = check_model(model)
    for sample in sample_source_accelerations(definition, read_mechanism(definition)).samples[:3]:
        assert sample.outputs["V"][0] == pytest.approx(3 * next(iter(sample.states.values())) ** 2)


def test_constraint_forces_are_those_of_the_auxiliary_equations():
    """A rod on a pin: m a of its centre, and its weight."""
    model, (fx, fy) = pendulum_with_reactions()
    model.output("pushes", sm.Piecewise((1, fy > 0), (0, True)), "1")
    model.output("ratio", fx / fy, "1")
    definition = check_model(model)
    made = sample_source_accelerations(definition, read_mechanism(definition))
    assert len(made.samples) > 20
    for sample in made.samples:
        q, u, m, l, g = (sample.point.values[made.starts[name]] for name in ("q", "u", "m", "l", "g"))
        u_dot = -3 / 2 * g * np.cos(q) / l
        wanted = {
            "reaction_x": -m * l / 2 * (u_dot * np.sin(q) + u**2 * np.cos(q)),
            "reaction_y": m * g + m * l / 2 * (u_dot * np.cos(q) - u**2 * np.sin(q)),
        }
        wanted["pushes"] = float(wanted["reaction_y"] > 0)
        wanted["ratio"] = wanted["reaction_x"] / wanted["reaction_y"]
        assert {name: value for name, (value, _) in sample.outputs.items()} == pytest.approx(wanted, rel=1e-9)
        assert all(0.0 <= bound < 1e-6 * (abs(value) + 1.0) for value, bound in sample.outputs.values())


@pytest.mark.parametrize(
    "name", ["force_along_a_velocity_constraint", *by_night("force_in_the_joint_that_closes_a_loop")]
)
def test_constraint_forces_are_known_where_auxiliary_speeds_stand_in_velocity_constraints(name):
    definition = check_model(STRANGERS[name]())
    for sample in sample_source_accelerations(definition, read_mechanism(definition)).samples:
        assert "force_0" in sample.outputs
