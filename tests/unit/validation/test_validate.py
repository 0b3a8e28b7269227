"""The choice of the reference's formulation, constraint residuals of the FMU, and what the result says as JSON."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
import sympy as sm

from mb2fmu.mechanics.equations.equations_of_motion import VelocityConstraints
from mb2fmu.validation import (
    ExternalCheckerFinding,
    FmuSimulationResult,
    ValidationResult,
    choose_reference_formulation,
    make_reference,
    measure_start_error_growth,
)
from mb2fmu.validation.comparison.motion_comparison import (
    compare_variables,
    compute_error_bounds,
    compute_invariant_results,
)


@pytest.mark.parametrize(
    ("used", "applicable", "expected"),
    [
        ("tmt", ["tmt", "kane", "lagrange"], "kane"),
        ("kane", ["tmt", "kane", "lagrange"], "lagrange"),
        ("kane", ["tmt", "kane"], "tmt"),
        ("lagrange", ["lagrange"], "lagrange"),
        (None, ["tmt", "lagrange"], "lagrange"),
    ],
)
def test_the_reference_takes_another_formulation_where_there_is_one(used, applicable, expected):
    assert choose_reference_formulation(used, applicable) == expected


def test_without_a_formulation_there_is_no_reference():
    with pytest.raises(ValueError, match="no formulation applies"):
        choose_reference_formulation("kane", [])


@pytest.fixture(scope="module")
def locked(cases):
    """The double pendulum with u2 = 2 u1 kept by a constraint."""
    case = cases["double_pendulum"]((0.5, 0.2), stop=1.0, step=0.05)
    equations = replace(
        case.equations,
        u_independent=(0,),
        velocity_constraints=VelocityConstraints(
            ("gear",), sm.ImmutableMatrix([[2, -1]]), sm.ImmutableMatrix([[0]]), sm.ImmutableMatrix([[0]])
        ),
    )
    reference = make_reference(case.definition, equations)
    return reference, compute_error_bounds(reference, measure_start_error_growth(reference))


def result(locked, values) -> ValidationResult:
    reference, limits = locked
    simulation = FmuSimulationResult(reference.trajectory.names, reference.trajectory.time, values, (), 1e-5)
    return ValidationResult(
        model="Locked",
        variables=compare_variables(reference, limits, simulation),
        invariants=compute_invariant_results(reference, simulation),
        conformance=(),
        reference=reference,
        simulation=simulation,
        timings={"simulate": 1.0},
        provenance={},
    )


def test_constraint_forces_do_no_work_and_dependent_speeds_follow(locked):
    reference, _ = locked
    trajectory = reference.trajectory
    assert trajectory["u2"] == pytest.approx(2 * trajectory["u1"], rel=1e-14)
    assert {b.name: b.worst < 1e-12 for b in reference.balances} == {"energy": True, "velocity constraints": True}
    assert result(locked, trajectory.values).passed


def test_a_fmu_that_leaves_its_constraint_is_caught(locked):
    values = locked[0].trajectory.values.copy()
    values[:, 3] += 1e-3
    found = result(locked, values)
    assert not found.passed
    assert {i.name for i in found.invariants if i.verdict == "failed"} == {"velocity constraints"}


def test_one_error_of_a_checker_is_enough_and_warnings_are_not(locked):
    good = result(locked, locked[0].trajectory.values)
    assert replace(
        good,
        conformance=(ExternalCheckerFinding("tool 1", "warning", "hm"), ExternalCheckerFinding("tool 1", "note", "ok")),
    ).passed
    assert not replace(good, conformance=(ExternalCheckerFinding("tool 1", "error", "no"),)).passed


def test_json_has_all_numbers_and_no_times_unless_asked(locked):
    values = locked[0].trajectory.values.copy()
    values[5, 0] = np.nan
    text = result(locked, values).to_json()
    read = json.loads(text)
    assert "timings" not in read
    assert json.loads(result(locked, values).to_json(timings=True))["timings"] == {"simulate": 1.0}
    assert [v["name"] for v in read["variables"]] == ["q1", "q2", "u1", "u2"]
    assert read["variables"][0]["ratio"] == "inf"
    assert set(read["variables"][1]) >= {"max_error", "at", "error", "bound", "ratio", "horizon", "range", "verdict"}
    assert read["reference"]["uncertainty"].keys() == {"q1", "q2", "u1", "u2"}
    assert read["passed"] is False
