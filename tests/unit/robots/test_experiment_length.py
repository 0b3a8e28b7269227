"""How long default experiments of robots are: by the rate at which they fall."""

from __future__ import annotations

import math

import numpy as np
import pytest
import sympy as sm
from hypothesis import given
from hypothesis import strategies as st
from sympy.physics.vector import dynamicsymbols

from mb2fmu import Model
from mb2fmu.robots.file_formats.urdf_import import read_urdf
from mb2fmu.robots.model_from_robot import MAX_DEVIATION_GROWTH, MAX_LENGTH_S
from mb2fmu.robots.robot_settings import RobotSettings
from mb2fmu.robots.tree.articulated_tree import build_articulated_tree
from mb2fmu.robots.tree.robot_inertia_and_stability import (
    compute_robot_damping_rate,
    compute_robot_inertia_and_weight,
    compute_robot_instability_rate,
    joint_damping_matrix,
)

LINK = """<link name="{0}"><inertial><origin xyz="0 0 {2}"/><mass value="{1}"/>
<inertia ixx="{3}" iyy="{3}" izz="{3}" ixy="0" ixz="0" iyz="0"/></inertial></link>"""
JOINT = """<joint name="j{1}" type="revolute"><parent link="{0}"/><child link="{1}"/><axis xyz="0 1 0"/>
<origin xyz="0 0 {2}"/><limit effort="50" velocity="9" lower="-3" upper="3"/></joint>"""


def pendulum(path, height, inertia=0.01):
    """One link of 2 kg on a hinge, its masscentre at this height above it."""
    parts = ['<link name="b"/>', LINK.format("l", 2.0, height, inertia), JOINT.format("b", "l", 0.0)]
    path.write_text(f'<robot name="p">{"".join(parts)}</robot>')
    return Model.from_urdf(path)


@pytest.mark.parametrize(("height", "inertia"), [(0.05, 0.001), (0.2, 0.01), (0.5, 0.02)])
def test_what_stands_upright_falls_as_a_pendulum_does(tmp_path, height, inertia):
    """Its deviation grows with exp(t √(m g h/J)): a thousandfold at the end."""
    rate = math.sqrt(2.0 * 9.81 * height / (inertia + 2.0 * height**2))
    found = pendulum(tmp_path / "p.urdf", height, inertia).default_experiment
    assert found.stop == pytest.approx(min(MAX_LENGTH_S, math.log(MAX_DEVIATION_GROWTH) / rate), abs=found.step)
    assert found.stop < MAX_LENGTH_S


def test_what_hangs_and_what_is_asked_for_is_not_shortened(tmp_path):
    path = tmp_path / "p.urdf"
    assert pendulum(path, -0.2).default_experiment.stop == MAX_LENGTH_S
    pendulum(path, 0.2)
    assert Model.from_urdf(path, stop=3.0).default_experiment.stop == 3.0
    assert Model.from_urdf(path, gravity=(0.0, 0.0, 0.0)).default_experiment.stop == MAX_LENGTH_S


@given(st.integers(1, 5), st.floats(0.0, 1e4), st.randoms(use_true_random=False))
def test_the_rate_is_that_of_the_linear_equations(n, braked, random):
    """M q'' + a M q' + K q = 0 with K = −M (X D X⁻¹): the largest λ² + a λ is the largest of D."""
    draw = np.random.default_rng(random.randrange(2**32))
    A = draw.normal(size=(n, n))
    M = A @ A.T + n * np.eye(n)
    squares, X = draw.uniform(-5.0, 5.0, n), draw.normal(size=(n, n)) + n * np.eye(n)
    K = -M @ X @ np.diag(squares) @ np.linalg.inv(X)
    largest, half = max(0.0, squares.max()), braked / 2.0
    expected = largest / (half + math.sqrt(half**2 + largest)) if largest else 0.0
    assert compute_robot_instability_rate(M, K, braked * M) == pytest.approx(expected, rel=1e-6, abs=1e-5)


def test_what_strong_dampers_hold_does_not_fall(tmp_path):
    """An upright pendulum that takes minutes to tip over is followed for as long as one that hangs."""
    path = braked(tmp_path / "p.urdf", 5e3)
    path.write_text(path.read_text().replace("0 0 -0.2", "0 0 0.2"))
    assert Model.from_urdf(path).default_experiment.stop == MAX_LENGTH_S


@given(
    st.tuples(*[st.sampled_from(["revolute", "prismatic"])] * 4), st.lists(st.floats(-2, 2), min_size=16, max_size=16)
)
def test_weights_change_by_their_derivatives(tmp_path_factory, kinds, numbers):
    """Against central differences: a chain of hinges and slides about axes of any direction."""
    parts = ['<link name="l0"/>']
    for k, kind in enumerate(kinds, 1):
        a, b, angle, _ = numbers[4 * k - 4 : 4 * k]
        parts.append(LINK.format(f"l{k}", 1.0 + 0.2 * k, 0.3 * b, 0.02))
        joint = JOINT.format(f"l{k - 1}", f"l{k}", 0.2).replace("revolute", kind)
        joint = joint.replace('"0 1 0"', f'"{a:.6f} 1 {b:.6f}"').replace(
            "<origin ", f'<origin rpy="{angle:.6f} 0 0.4" '
        )
        parts.append(joint)
    path = tmp_path_factory.getbasetemp() / "chain.urdf"
    tree = build_articulated_tree(
        read_urdf(f'<robot name="c">{"".join(parts)}</robot>'.encode(), path), RobotSettings()
    )
    gravity, here = np.array([1.0, -2.0, -9.0]), [numbers[4 * k + 3] for k in range(4)]

    def at(moved):
        return compute_robot_inertia_and_weight(tree, dict(enumerate(moved, 1)), gravity)

    h = 1e-5
    found = [(at(here + h * unit)[1] - at(here - h * unit)[1]) / (2 * h) for unit in np.eye(4)]
    np.testing.assert_allclose(at(here)[2], np.array(found).T, atol=1e-7)


def braked(path, damping, multiplier=0.0):
    """The pendulum behind a damper; of a second one that follows, with this multiplier."""
    follower = f'<mimic joint="jl" multiplier="{multiplier}"/><dynamics damping="{damping}"/>'
    own = f'<dynamics damping="{0.0 if multiplier else damping}"/>'
    parts = [
        '<link name="b"/>',
        LINK.format("l", 2.0, -0.2, 0.01),
        JOINT.format("b", "l", 0.0).replace("<axis", f"{own}<axis"),
    ]
    if multiplier:
        parts += [LINK.format("k", 1e-9, 0.0, 1e-9), JOINT.format("b", "k", 0.0).replace("<axis", f"{follower}<axis")]
    path.write_text(f'<robot name="p">{"".join(parts)}</robot>')
    return path


def test_dampers_brake_at_the_rate_of_damping_over_inertia(tmp_path):
    """Also of what follows: it turns, and is braked, multiplier times as fast."""
    inertia = 0.01 + 2.0 * 0.2**2
    for multiplier in (0.0, 3.0):
        path = braked(tmp_path / "p.urdf", 0.7, multiplier)
        tree = build_articulated_tree(read_urdf(path.read_bytes(), path), RobotSettings())
        M, _, _ = compute_robot_inertia_and_weight(tree, {1: 0.0}, np.zeros(3))
        damped = [i for i, part in enumerate(tree.parts) if i and part.moving_joint.damping]
        rate = compute_robot_damping_rate(M, joint_damping_matrix(tree, damped))
        assert rate == pytest.approx(0.7 * (multiplier or 1.0) ** 2 / inertia, rel=1e-6)


@pytest.mark.parametrize("multiplier", [0.0, 3.0])
@pytest.mark.parametrize("damping", [0.0, 0.1, 5.0])
def test_what_is_damped_swings_by_the_accelerations_asked_for(tmp_path, damping, multiplier):
    """As phasors, F = (m + d/(i w)) a: a strong damper does not hold the joint still."""
    path = braked(tmp_path / "p.urdf", damping, multiplier)
    model = Model.from_urdf(path, gravity=(0.0, 0.0, 0.0), excitation=0.7)
    ((_, effort),) = model.default_experiment.signals.items()
    (swing,) = effort.atoms(sm.sin)
    size, rate = float(effort.coeff(swing)), float(sm.diff(swing.args[0], dynamicsymbols._t))
    inertia = 0.01 + 2.0 * 0.2**2 + 1e-9 * multiplier**2
    assert abs(size / (inertia + damping * (multiplier or 1.0) ** 2 / (1j * rate))) == pytest.approx(0.7, rel=1e-5)


@pytest.mark.parametrize(("damping", "stiff"), [(1.0, False), (8e3, False), (1e4, True)])
def test_a_robot_is_stiff_where_dampers_stop_a_joint_at_once(tmp_path, damping, stiff):
    """By 1000 time constants of 0.09 kg·m² / damping in a step of 0.01 s; the notes tell it."""
    model = Model.from_urdf(braked(tmp_path / "p.urdf", damping))
    assert model.default_experiment.stiff is stiff
    assert any("--solver explicit" in note for note in model.mechanics.notes) is stiff
    control = Model.from_urdf(tmp_path / "p.urdf", role="inverse-dynamics")
    assert not control.default_experiment.stiff
    assert not any("implicit" in note for note in control.mechanics.notes)
