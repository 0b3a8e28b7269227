"""The reference's equations of small mechanisms with flexible bodies, written out as C without loops."""

from __future__ import annotations

from pathlib import Path

import pytest
from compiled_reference import largest_difference
from flexible_bodies import pinned_body, random_arrays
from mechanisms import closed_mechanism_of
from representatives import by_night

from mb2fmu import FlexibleBody
from mb2fmu.mechanics.formulations import form_equations_except_dynamics
from mb2fmu.mechanics.mechanism import Mechanism
from mb2fmu.validation.compiled import compiled_check_tables, unrolled_motion_equations
from mb2fmu.validation.reference_equations.newton_euler import NewtonEulerEquations

MODELS = Path(__file__).parents[4] / "models"


def compile_unrolled(mechanism: Mechanism, monkeypatch: pytest.MonkeyPatch) -> NewtonEulerEquations:
    """Compile a mechanism's equations, and be sure that they are written out."""
    texts: list[str] = []

    def kept(*given):
        texts.append(unrolled_motion_equations.write_unrolled_equations(*given))
        return texts[-1]

    monkeypatch.setattr(compiled_check_tables, "write_unrolled_equations", kept)
    numeric = NewtonEulerEquations(mechanism, form_equations_except_dynamics(mechanism))
    assert numeric.compile()
    assert len(texts) == 1
    return numeric


@pytest.mark.parametrize("model", ["flexible_robot_arm", *by_night("flexible_slider_crank", "rotating_blade")])
def test_x_dot_of_models_is_that_of_numpy(model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    mechanism = closed_mechanism_of(MODELS / f"{model}.py")
    assert largest_difference(compile_unrolled(mechanism, monkeypatch), mechanism, count=4, seed=2) < 1e-12


def test_ropes_pull_along_what_is_between_their_points(monkeypatch: pytest.MonkeyPatch) -> None:
    mechanism = closed_mechanism_of(MODELS / "bending_crane.py")
    assert largest_difference(compile_unrolled(mechanism, monkeypatch), mechanism, count=4, seed=2) < 1e-12


@pytest.mark.parametrize("fault", ["", "no gyroscopic moment", *by_night("momenta of half the size")])
def test_a_body_with_everything_is_right_and_faults_are_noticed(monkeypatch: pytest.MonkeyPatch, fault: str) -> None:
    writer = unrolled_motion_equations._MotionWriter
    if fault == "no gyroscopic moment":
        monkeypatch.setattr(writer, "_cross", lambda _self, _one, _other: (0.0, 0.0, 0.0))
    elif fault:
        add = writer._add_products

        def halved(self, j, momentum, partials, terms):
            add(self, j, momentum if j else self._scale(0.5, momentum), partials, terms)

        monkeypatch.setattr(writer, "_add_products", halved)
    mechanism = closed_mechanism_of(pinned_body(FlexibleBody("plate", **random_arrays())))
    difference = largest_difference(compile_unrolled(mechanism, monkeypatch), mechanism, count=4, seed=2)
    assert difference > 1e-4 if fault else difference < 1e-12


def test_rigid_and_large_mechanisms_keep_their_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    flexible = closed_mechanism_of(MODELS / "rotating_blade.py")
    assert unrolled_motion_equations.is_worth_unrolling(flexible)
    assert not unrolled_motion_equations.is_worth_unrolling(closed_mechanism_of(MODELS / "double_pendulum.py"))
    monkeypatch.setattr(unrolled_motion_equations, "MAX_UNROLLED_ENTRIES", 100)
    assert not unrolled_motion_equations.is_worth_unrolling(flexible)
