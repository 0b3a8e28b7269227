"""Models each of which stands for a kind, for what is tried with one backend or importer after the other.

A model validates itself as a native FMU in the suite (``end_to_end/test_models.py``) if it stands for a kind. The same
once more, in Python's own time or through other importers, shows something new for the few kinds only that are told
apart there. The rest carries the mark ``repeats``: ``scripts/validate_models`` runs it, each night.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import settings

REPRESENTATIVES = {
    "chain": "many bodies: code printed as loops, no symbolic mass matrix",
    "double_pendulum": "an open chain with an input",
    "four_bar": "a closed loop, solved by Newton's method",
    "muscle_arm": "an auxiliary state, curves",
    "rolling_disc": "velocity constraints, speeds that are no derivatives",
}

KINDS = ("double_pendulum", "four_bar", "muscle_arm", "rolling_disc")
"""An input, a closed loop by Newton's method, an auxiliary state with curves, velocity constraints: what units of
another backend, importers and formulations may get wrong, each for itself."""

OF_A_KIND_THAT_IS_PROVEN = {
    "andrews": "as four_bar; its motion is known in test_closed_loops",
    "backlash_gear": "as stick_slip_belt; its end is known in test_published_friction",
    "bicycle": "as rolling_disc and four_bar; its motion is known in test_models",
    "chaplygin_sleigh": "as rolling_disc; its motion is known in test_models",
    "clutch_line": "as stick_slip_belt; its instants and end are known in test_published_friction",
    "crank_slider": "as four_bar, whose unit stays on its constraints in test_closed_loops",
    "double_simple_pendulum": "as two_rods; its tensions are known in test_book_models",
    "earth_and_moon": "as two_rods; its motion is known in test_models",
    "hexapod": "as four_bar; its accelerations are known in test_loops_against_attractor",
    "bending_crane": "as rotating_blade; its rest is known in test_flexible_models",
    "flexible_robot_arm": "as rotating_blade; its sag is known in test_flexible_models",
    "flexible_slider_crank": "as turntable_ball and rotating_blade; its motion is known in test_slider_crank_test_set",
    "bowl": "as heavy_top and four_bar; its equations are known in test_formulations_agree",
    "driven_crank": "as four_bar and turntable_ball; its outputs are checked in test_independent_checks",
    "governor": "a stiff FMU is validated in test_right_models; its motion is known in test_models",
    "quadrotor_slung_load": "quaternions and inputs are validated in test_declared_constraints and double_pendulum",
    "steering_linkage": "as four_bar",
    "transmission": "as four_bar, linear in the coordinates; its motion is known in test_models",
    "rotating_blade": "as double_pendulum; flexible bodies are known in unit/model/flexible",
    "particle_on_slope": "as four_bar; its motion is known in test_models",
    "sliding_rod": "as double_pendulum; its motion is known in test_models",
    "turntable_ball": "as rolling_disc; its motion is known in test_known_equations, its bits in native/platforms",
    "triple_pendulum": "as double_pendulum; its equations are known in test_book_models",
    "excavator_arm": "as four_bar; its motion is known in test_models",
    "msl_double_pendulum": "as double_pendulum; the motion of msl_pendulum is known in test_models",
    "msl_pendulum": "as double_pendulum; its motion is known in test_models",
    "rigid_body": "as heavy_top; its motion is known in test_models",
    "rolling_sphere": "as rolling_disc; its motion is known in test_models",
    "simple_pendulum": "its unit is validated in test_native_units; its motion is known in test_models",
    "valve_train": "as four_bar; its motion is known in test_models",
    "snakeboard": "as rolling_disc; its motion is known in test_models",
    "cart_pole": "as double_pendulum",
    "dry_friction_oscillator": "as stick_slip_belt; it rests where it should in test_events",
    "gripper": "latches are validated in test_latches; what it does is known in test_gripper",
    "hand": "as chain; its pathways as muscle_arm",
    "heavy_top": "a Lagrangian without bodies; its motion is known in test_known_equations",
    "msl_planar_four_bar": "as four_bar; its end is known in test_closed_loops",
    "n_four_bar": "as four_bar; its motion is known in test_closed_loops",
    "n_link_pendulum": "as double_pendulum",
    "robot_arm": "as chain; its equations are known in test_published_arms",
    "rocking_block": "latches are validated in test_latches, which knows its numbers",
    "sampled_cart_pole": "as bouncing_ball; its motion is known in test_sampled_control",
    "compass_walker": "as bouncing_ball; its gait is known in test_compass_walker",
    "simplest_walker": "as bouncing_ball; its gait is known in test_simplest_walker",
    "slider_crank_clearance": "as woodpecker; its impacts are known in test_slider_crank_clearance",
    "three_body_pendulum": "as double_pendulum; its numbers are known in test_published_tables",
    "two_rods": "as double_pendulum; its equations are known in test_known_equations",
    "woodpecker": "contacts with friction are validated in test_contact_friction; its cycle in test_woodpecker",
}
"""Models whose FMU is validated each night only, with what holds their law in the suite."""


def by_night(*cases: Any) -> list[Any]:
    """Parameters of a test marked ``repeats``; a tuple is one case of several arguments."""
    return [pytest.param(*(each if isinstance(each, tuple) else (each,)), marks=pytest.mark.repeats) for each in cases]


def examples(count: int) -> settings:
    """Random examples of a costly law: so many by day, as many times more by night as the profiles have."""
    by_day = settings.get_profile("project").max_examples
    return settings(max_examples=count * settings.default.max_examples // by_day)


def marked(
    models: Iterable[Any], *, slow: frozenset[str] | None = None, repeating: Iterable[str] | None = None
) -> list[Any]:
    """Parameters of a test, those of models that stand for no kind of their own marked ``repeats``.

    Args:
        models: Names, or paths of model files.
        slow: Names that are marked ``slow`` as well.
        repeating: Names that are marked ``repeats``; by default all but the representatives.
    """
    found = []
    for model in models:
        name = getattr(model, "stem", model)
        repeats = name not in REPRESENTATIVES if repeating is None else name in repeating
        marks = [pytest.mark.repeats] if repeats else []
        marks += [pytest.mark.slow] if slow and name in slow else []
        found.append(pytest.param(model, id=name, marks=marks))
    return found
