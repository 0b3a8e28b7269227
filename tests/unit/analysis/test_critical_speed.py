"""Spinning shafts against closed forms: eigenvalues over the speed, critical speeds, and where a shaft diverges.

A pinned shaft of Euler and Bernoulli, seen from axes that turn with it at Ω, has for each pair of modes of the
frequencies ω_y and ω_z, whose damping turns with it (F. M. Dimentberg, Flexural Vibrations of Rotating Shafts,
Butterworths 1961, ch. 1),

    y'' + 2 ζ ω_y y' + (ω_y² − Ω²) y − 2 Ω z' = 0,    z'' + 2 ζ ω_z z' + (ω_z² − Ω²) z + 2 Ω y' = 0

It diverges between ω_z and ω_y; of a round one damping within it makes it unstable beyond ω. Sections with rotational
inertia (Rayleigh's shaft, β = (k π i / L)² in each plane) turn with it, too: 1 + β is the mass, and Ω² (1 − β) softens.
For a round one these are the whirling speeds p of (1 + β) p² − 2 β Ω p = ω² in the ground's axes (same source, ch. 2).
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
import sympy.physics.mechanics as me
from click.testing import CliRunner
from representatives import by_night

import mb2fmu
from mb2fmu.cli import commands

LENGTH, E, RHO = 1.0, 210e9, 7850.0
ROUND = mb2fmu.BeamSection.circle(0.01)
FLAT = mb2fmu.BeamSection.rectangle(0.02, 0.021)
THICK, THICK_FLAT = mb2fmu.BeamSection.circle(0.05), mb2fmu.BeamSection.rectangle(0.08, 0.1)
PAGE = Path(__file__).parents[3] / "docs" / "how_to" / "critical_speed.md"
SPEEDS = [0.0, 240.0, 310.0, 600.0]


def spinning_shaft(
    section: mb2fmu.BeamSection, damping: float, *, rotary_inertia: bool = False, count: int = 2
) -> mb2fmu.Model:
    """A shaft between two bearings, so many modes in each plane; the rotor of its motor turns with it."""
    angle, speed = me.dynamicsymbols("angle speed")
    shaft = mb2fmu.FlexibleBody.beam(
        "shaft", length=LENGTH, E=E, rho=RHO, section=section, ends=("pinned", "pinned"),
        modes={"bending_y": count, "bending_z": count}, rotary_inertia=rotary_inertia, damping=damping,
    )  # fmt: skip
    ground, motor = me.RigidBody("ground"), me.RigidBody("motor", mass=0)
    motor.central_inertia = me.inertia(motor.frame, 0.01, 0, 0)
    system = me.System.from_newtonian(ground)
    bearing = me.PinJoint("bearing", ground, motor, angle, speed, joint_axis=system.frame.x)
    system.add_joints(bearing, me.WeldJoint("coupling", motor, shaft.body, child_point=shaft.point()))
    shaft.add_to_system(system)
    model = mb2fmu.Model("Shaft", system)
    model.coordinate(angle, 0.0, "rad", name="shaft.angle")
    model.speed(speed, 0.0, "rad/s", name="shaft.speed")
    model.add(shaft)
    return model


def round_shaft() -> mb2fmu.Model:
    """A round shaft with 0.5 % of critical damping in its material."""
    return spinning_shaft(ROUND, 0.005)


def frequencies(section: mb2fmu.BeamSection, mode: int) -> tuple[float, float]:
    """Return the closed form's angular frequencies of bending along y and along z."""
    wave = (mode * np.pi / LENGTH) ** 2
    return tuple(wave * np.sqrt(E * second / (RHO * section.area)) for second in (section.I_z, section.I_y))


def gyration(section: mb2fmu.BeamSection, mode: int) -> np.ndarray:
    """Return β = (k π i / L)² of bending along y and along z, i the radius of gyration."""
    return np.array([section.I_z, section.I_y]) / section.area * (mode * np.pi / LENGTH) ** 2


def closed_form(
    section: mb2fmu.BeamSection, damping: float, speed: float, *, rotary_inertia: bool, count: int
) -> np.ndarray:
    """Return the eigenvalues of all pairs of modes, sorted."""
    found = []
    for mode in range(1, count + 1):
        beta = gyration(section, mode) * rotary_inertia
        plain = np.array(frequencies(section, mode))
        M, K = 1.0 + beta, plain**2 - speed**2 * (1.0 - beta)
        D = np.diag(2 * damping * plain * np.sqrt(M)) + 2 * speed * np.array([[0, -1], [1, 0]])
        found.extend(np.linalg.eigvals(np.block([[np.zeros((2, 2)), np.eye(2)], [-np.diag(K / M), -D / M[:, None]]])))
    return np.sort_complex(np.round(found, 9))


@pytest.mark.parametrize(
    ("section", "damping", "rotary_inertia", "count"),
    [  # rotary inertia by day in the page's command
        (FLAT, 0.005, False, 1),
        *by_night(
            (ROUND, 0.005, False, 2), (FLAT, 0.0, False, 2), (THICK, 0.005, True, 2), (THICK_FLAT, 0.01, True, 2)
        ),
    ],
)
def test_eigenvalues_over_the_speed_are_the_closed_forms(section, damping, rotary_inertia, count):
    model = spinning_shaft(section, damping, rotary_inertia=rotary_inertia, count=count)
    speeds = np.array(SPEEDS) * frequencies(section, 1)[0] / frequencies(ROUND, 1)[0]
    found = mb2fmu.sweep(model, "shaft.speed", speeds)
    assert {"shaft.angle", "shaft.speed"} == set(found.cyclic)
    for speed, eigenvalues in zip(speeds, found.eigenvalues, strict=True):
        expected = closed_form(section, damping, speed, rotary_inertia=rotary_inertia, count=count)
        own = np.sort_complex(np.round(eigenvalues, 9))
        assert np.max(np.abs(own - expected)) < 1e-7 * np.max(np.abs(expected)), speed


@pytest.mark.repeats  # by day the page's shaft, whose frequency has a closed form too
def test_a_round_shaft_becomes_unstable_at_its_frequency():
    (critical,) = mb2fmu.sweep(round_shaft(), "shaft.speed", np.linspace(0.0, 600.0, 13)).critical
    assert critical.value == pytest.approx(frequencies(ROUND, 1)[0], rel=1e-9)
    assert (critical.frequency, critical.becomes) == (0.0, "unstable")


@pytest.mark.repeats  # by day all its eigenvalues are the closed forms, at four speeds
def test_a_flat_shaft_diverges_between_its_two_frequencies():
    first, second = sorted(frequencies(FLAT, 1))
    places = np.array([0.99 * first, first * (1 + 1e-6), 0.5 * (first + second), second * (1 - 1e-6), 1.01 * second])
    found = mb2fmu.sweep(spinning_shaft(FLAT, 0.0), "shaft.speed", places)
    growing = np.max(found.eigenvalues.real, axis=1)
    assert np.all(growing[1:4] > 0.05)
    assert np.all(growing[[0, 4]] < 1e-6)


def test_the_page_s_command_names_the_critical_speed_and_draws_the_diagram(tmp_path: Path):
    text = re.search(r"```python\n(.*?)```", PAGE.read_text(), flags=re.DOTALL)[1]
    (tmp_path / "shaft.py").write_text(text)
    words = [
        "linearize",
        str(tmp_path / "shaft.py"),
        "--sweep",
        "rotor.speed=0:3000:500",
        "--plot",
        str(tmp_path / "c.svg"),
    ]
    done = CliRunner().invoke(commands, words)
    assert done.exit_code == 0, done.output
    named = re.search(r"rotor.speed = (\S+) rad/s: a motion without oscillation becomes unstable", done.output)
    expected = frequencies(THICK, 1)[0] / np.sqrt(1.0 - gyration(THICK, 1)[0])
    assert float(named[1]) == pytest.approx(expected, rel=1e-9)
    assert f"{expected:.6g} rad/s" in PAGE.read_text()
    assert "<svg" in (tmp_path / "c.svg").read_text()
