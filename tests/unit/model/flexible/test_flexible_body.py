"""Flexible bodies: the same inertia as the nodes have, in every formulation and kind of mechanics."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from flexible_bodies import nodal_accelerations, pinned_body, random_arrays
from hypothesis import given, settings
from hypothesis import strategies as st
from mechanisms import mechanism_of

from mb2fmu import BeamSection, FlexibleBody, rhs
from mb2fmu.model import check_model
from mb2fmu.model.flexible.flexible_body_equivalent import find_particle_equivalent
from mb2fmu.model.flexible.modal_data import make_modal_data
from mb2fmu.validation.source_checks.nodal_inertia_check import compute_nodal_inertia_errors

KINDS = ("system", "parts", "kane")
METHODS = ("kane", "tmt", "lagrange", "recursive-composite", "recursive-articulated")


@given(st.integers(0, 1000), st.integers(1, 14), st.integers(1, 4), st.booleans(), st.booleans(), st.booleans())
@settings(max_examples=30, deadline=None)
def test_rigid_body_and_particles_have_the_gram_matrix_of_the_nodes(seed, n, m, consistent, sections, second):
    arrays = random_arrays(seed, n + m, m, consistent=consistent, sections=sections, second=second)
    data = make_modal_data(**arrays)
    parts = find_particle_equivalent(data.gram_factor(), m)
    assert parts.total_mass == pytest.approx(data.total_mass, rel=1e-12)
    size = np.max(np.abs(data.nodes))
    assert np.max(np.abs(parts.centre - data.centre)) <= 1e-12 * size
    assert np.max(np.abs(parts.inertia - data.inertia)) <= 1e-12 * np.max(np.abs(data.inertia))
    assert np.all(parts.masses > 0.0)
    assert np.sum(parts.masses) >= 0.25 * data.total_mass * (1 - 1e-12)
    columns = [np.ones((len(parts.masses), 1)), parts.positions, *parts.modes]
    if second:
        columns += [parts.second_order[k, l] for k in range(m) for l in range(k, m)]
    F = np.column_stack(columns)
    gram, scale = data.gram(), np.sqrt(np.diag(data.gram()))
    rest = gram - F.T @ (parts.masses[:, None] * F)
    assert np.max(np.abs(rest[:, 4:]) / np.outer(scale, scale[4:])) <= 1e-12 * len(gram)
    assert np.min(np.linalg.eigvalsh((rest / np.outer(scale, scale))[:4, :4])) >= -1e-12  # a rigid body's


PLANES = [{"bending_y": 2, "bending_z": 1}, {"bending_y": 3, "bending_z": 2}, {"bending_y": 4}]


@pytest.mark.usefixtures("arrays_alone")
@pytest.mark.parametrize(
    "modes", [*(pytest.param(each, marks=pytest.mark.repeats) for each in PLANES[1:2]), PLANES[0], PLANES[2]]
)
def test_planes_with_nearly_the_same_shapes_keep_all_digits(modes):
    """Shapes of both planes differ by rotary inertia alone; what a Gram matrix has of that is lost in rounding."""
    section = BeamSection.rectangle(0.02, 0.03)
    data = FlexibleBody.beam("b", length=0.7, E=70e9, rho=2700.0, section=section, modes=modes).data
    m = data.mode_count
    parts = find_particle_equivalent(data.gram_factor(), m)
    S = [parts.second_order[k, l] for k in range(m) for l in range(k, m)]
    F = np.column_stack([np.ones((len(parts.masses), 1)), parts.positions, *parts.modes, *S])
    gram = data.gram()
    scale = np.sqrt(np.diag(gram))
    scale = np.where(scale > 0.0, scale, 1.0)
    rest = (gram - F.T @ (parts.masses[:, None] * F)) / np.outer(scale, scale)
    linear = 4 + 3 * m
    assert np.max(np.abs(rest[:, 4:linear])) <= 1e-14  # mode shapes
    assert np.max(np.abs(rest[:, linear:])) <= 2e-9  # second-order fields: below the rank's tolerance


@pytest.mark.parametrize("modes", [PLANES[0], *(pytest.param(each, marks=pytest.mark.repeats) for each in PLANES[1:])])
def test_beams_of_many_modes_have_the_inertia_of_their_nodes(modes):
    section = BeamSection.rectangle(0.02, 0.03)
    body = FlexibleBody.beam("b", length=0.7, E=70e9, rho=2700.0, section=section, modes=modes)
    model = pinned_body(body)
    assert max(compute_nodal_inertia_errors(check_model(model), mechanism_of(model), body))[0] < 1.0


def test_modes_without_momentum_need_one_particle_more():
    """A free beam's modes: the fields have no mass of their own, so that a point mass joins them."""
    x, w = np.polynomial.legendre.leggauss(12)
    phi = np.zeros((1, 12, 3))
    phi[0, :, 1] = (3 * x**2 - 1) / 2  # Legendre's polynomial: no momentum, no angular momentum
    data = make_modal_data(nodes=np.column_stack([x, 0 * x, 0 * x]), mass=w, modes=phi, stiffness=[1.0])
    parts = find_particle_equivalent(data.gram_factor(), 1)
    assert len(parts.masses) == 2
    assert np.sum(parts.masses) == pytest.approx(0.5, rel=1e-12)
    assert parts.rigid_mass == pytest.approx(1.5, rel=1e-12)
    assert parts.masses @ parts.modes[0, :, 1] == pytest.approx(0.0, abs=1e-14)


@pytest.mark.parametrize(
    ("kind", "m"), [("parts", 1), *(pytest.param(kind, 2, marks=pytest.mark.repeats) for kind in KINDS)]
)
def test_all_formulations_move_as_the_full_nodal_mass_matrix_does(kind, m):
    rng = np.random.default_rng(3)
    body = FlexibleBody("arm", **random_arrays(n=2 if kind == "parts" else 4, m=m, sections=kind == "parts"))
    model = pinned_body(body, kind)
    states = [rng.normal(size=2 + 2 * m) * np.array([1, *[0.3] * m, 2, *[1] * m]) for _ in range(3)]
    expected = [nodal_accelerations(body, state) for state in states]
    numbers = range(1, m + 1)
    names = ("theta", *(f"arm.eta[{k}]" for k in numbers), "omega", *(f"arm.eta_dot[{k}]" for k in numbers))
    # By day two of different kinds; by night all.
    for method in METHODS if m > 1 else ("tmt", "recursive-composite"):
        f = rhs(model, method=method)
        assert f.states == names
        for state, accelerations in zip(states, expected, strict=True):
            assert f(0.0, state)[1 + m :] == pytest.approx(accelerations, rel=1e-9, abs=1e-9)


@pytest.mark.repeats  # by day: what is planted in links of a robot, ``robots/flexible_links``
def test_one_mode_off_is_seen_in_the_nodal_mass_matrix():
    """The check above has teeth: 1 % of one shape, or one sign of the second-order field, is far beyond 1e-9."""
    arrays = random_arrays(n=3, m=1)
    state = np.array([0.4, 0.2, 1.5, 0.5])
    right = nodal_accelerations(FlexibleBody("arm", **arrays), state)
    for name, factor in (("modes", 1.01), ("second_order", -1.0), ("stiffness", 1.01), ("rotations", 1.01)):
        wrong = rhs(pinned_body(FlexibleBody("arm", **{**arrays, name: factor * arrays[name]})))
        assert np.max(np.abs(wrong(0.0, state)[2:] - right)) > 1e-4, name


def test_the_example_of_the_page_is_a_good_model():
    page = (Path(__file__).parents[4] / "docs" / "tutorials" / "flexible.md").read_text(encoding="utf-8")
    names: dict = {}
    exec(compile(re.search(r"```python\n(.*?)```", page, re.DOTALL)[1], "flexible.md", "exec"), names)
    model = names["hinged_beam"]()
    f = rhs(model)
    assert f.states[1:3] == ("beam.eta[1]", "beam.eta[2]")
    accelerations = nodal_accelerations(model.flexible_bodies[0], f.x0)
    assert f(0.0, f.x0)[3:] == pytest.approx(accelerations, rel=1e-9)


def test_a_mode_without_damping_has_no_parameter_of_it():
    section = BeamSection.circle(0.01)
    beam = FlexibleBody.beam(
        "arm", length=1.0, E=7e10, rho=2700.0, section=section, modes={"bending_y": 2}, damping=[0.0, 0.02]
    )
    names = [item.name for item in mechanism_of(pinned_body(beam)).declared.parameters]
    assert [name for name in names if "damping" in name] == ["arm.damping[2]"]


def test_pictures_do_not_show_the_particles():
    body = FlexibleBody("arm", **random_arrays(n=3, m=1, sections=False))
    appearance = mechanism_of(pinned_body(body)).appearance
    assert appearance.hidden_bodies == tuple(particle.name for particle in body.particles)
