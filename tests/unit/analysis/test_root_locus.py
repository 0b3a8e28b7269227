"""Root loci: closed forms of critical values, cyclic coordinates, branches that go on."""

from __future__ import annotations

import json

import numpy as np
import pytest
import sympy as sm
import sympy.physics.mechanics as me
from click.testing import CliRunner

import mb2fmu
from mb2fmu import Model
from mb2fmu.cli import commands
from mb2fmu.errors import AnalysisError


def beck(damping: float = 0.4) -> Model:
    """A mass on a spring with a damper of c - d: it oscillates, and begins to grow where d passes c."""
    x, y, v, w = me.dynamicsymbols("x y v w")
    m, k, c, d = sm.symbols("m k c d")
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    P = O.locatenew("P", x * N.x + y * N.y)
    P.set_vel(N, v * N.x + w * N.y)
    force = (-k * x - (c - d) * v - x**3) * N.x - w * N.y
    kane = me.KanesMethod(
        N, [x, y], [v, w], [x.diff() - v, y.diff() - w], bodies=[me.Particle("P", P, m)], forcelist=[(P, force)]
    )
    model = Model("Beck", kane)
    for symbol, value, unit in ((m, 2.0, "kg"), (k, 18.0, "N/m"), (c, damping, "N.s/m"), (d, 0.0, "N.s/m")):
        model.parameter(symbol, value, unit)
    model.coordinate(x, 0.0, "m")
    model.coordinate(y, 0.0, "m")
    model.speed(v, 0.0, "m/s")
    model.speed(w, 0.0, "m/s")
    return model


def test_an_oscillation_grows_where_damping_passes_zero():
    found = mb2fmu.sweep(beck(), "d", np.linspace(0.0, 1.0, 12))
    (critical,) = found.critical
    assert critical.value == pytest.approx(0.4, rel=1e-12)
    assert critical.frequency == pytest.approx(3.0, rel=1e-12)
    assert critical.becomes == "unstable"
    assert found.cyclic == ("y",)
    assert set(found.states) == {"x", "v", "w"}
    np.testing.assert_array_equal(found.stable, found.values < 0.4)
    expected = -(0.4 - found.values) / 4
    pairs = found.eigenvalues[:, np.abs(found.eigenvalues[0].imag) > 1]
    np.testing.assert_allclose(pairs.real, np.stack([expected, expected], axis=1), rtol=1e-12, atol=1e-14)


def test_a_spring_that_gives_way_diverges_without_oscillation():
    found = mb2fmu.sweep(beck(), "k", [-6.0, -3.0, -0.5, 2.0, 5.0], at={"x": 0.0})
    (critical,) = found.critical
    assert critical.value == pytest.approx(0.0, abs=1e-11)
    assert (critical.frequency, critical.becomes) == (0.0, "stable")


def test_undamped_oscillations_cross_nothing():
    """Real parts are round-off on both sides of zero."""
    found = mb2fmu.sweep(beck(0.0), "k", np.linspace(1.0, 20.0, 9))
    assert found.critical == ()


def test_branches_go_on_through_where_they_meet():
    """From two real ones to a pair: every branch's steps stay small beside its range."""
    found = mb2fmu.sweep(beck(), "c", np.linspace(11.0, 13.0, 81))
    steps = np.abs(np.diff(found.eigenvalues, axis=0))
    assert steps.max() < 0.25 * np.ptp(np.abs(found.eigenvalues)) + 0.5


def test_the_command(tmp_path):
    def call(*more):
        return CliRunner().invoke(commands, ["linearize", "cart_pole", *map(str, more)], prog_name="mb2fmu")

    picture, file = tmp_path / "locus.svg", tmp_path / "locus.json"
    done = call("--sweep", "g=1:10:3", "--plot", picture, "--json", file)
    assert done.exit_code == 0, done.output
    assert "Eigenvalues in 1/s over g in m/s2" in done.output
    assert picture.read_bytes().startswith(b"<?xml")
    assert json.loads(file.read_text())["values"] == [1, 4, 7, 10]
    for wrong in ("g", "g=1", "g=2:1:1", "g=1:2:0", "=1:2:1", "g=0:1:1e-9"):
        assert call("--sweep", wrong).exit_code == 2
    unknown = call("--sweep", "wings=0:1:0.5")
    assert unknown.exit_code == 2
    assert "wings" in unknown.stderr


def test_values_that_do_not_increase():
    with pytest.raises(AnalysisError, match="do not increase"):
        mb2fmu.sweep(beck(), "k", [1.0, 1.0])
