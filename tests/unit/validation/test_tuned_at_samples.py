"""Parameters that are changed at the very instant of a sample: the FMU samples with them as it goes on."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import sympy as sm
import sympy.physics.mechanics as me
from event_models import particle
from mechanisms import mechanism_of

from mb2fmu import Model, export
from mb2fmu.fmu.package import read_archive
from mb2fmu.pipeline.run_and_report.validation_run import choose_reference_equations
from mb2fmu.validation.api_checks.api_call_plan import ApiCallPlan, choose_api_check_point
from mb2fmu.validation.api_checks.api_check_families import compare_api_checks, plan_api_calls
from mb2fmu.validation.experiment.perturbed_experiment import (
    add_perturbed_value_overrides,
    list_settable_fmu_variables,
)
from mb2fmu.validation.reference.experiment_values import form_experiment_values
from mb2fmu.validation.reference_and_bounds import make_reference_and_bounds
from mb2fmu.validation.runs.fmu_description_for_runs import read_fmu_description
from mb2fmu.validation.runs.fmu_run import FmuProcessResult, run_fmu_process
from mb2fmu.validation.validation_result import ApiCallFamilyResult

TUNING = "parameters changed during the run"


def sampled() -> Model:
    """A mass whose force is sampled at every communication point."""
    k, d, force = *sm.symbols("k d"), me.dynamicsymbols("force")
    model, x, v = particle(0.4, 0.1, lambda *_: force / 2)
    model.parameter(k, 8.0, "N/m")
    model.parameter(d, 3.0, "N.s/m")
    model.discrete(force, 0.0, "N")
    model.every(0.1, {force: -k * x - d * v}, name="sample")
    model.experiment(stop=2.0, step=0.1, tolerance=1e-8)
    return model


@pytest.fixture(scope="module")
def yardstick():
    read = mechanism_of(sampled())
    return read.declared, make_reference_and_bounds(read.declared, choose_reference_equations(read, None).equations)


@pytest.mark.parametrize("fmi", ["2", "3"])
def test_the_sample_has_the_new_parameters_and_is_not_lost(yardstick, tmp_path, fmi):
    definition, made = yardstick
    moved = made.perturbed
    unit = export(sampled(), tmp_path, fmi=fmi).path
    description = read_fmu_description(read_archive(unit))
    run = form_experiment_values(definition)
    reported = add_perturbed_value_overrides(
        moved.reference.experiment, run, definition, list_settable_fmu_variables(description)
    )
    chance = choose_api_check_point(definition, made.reference, moved.reference, reported, description, moved.limits)
    k, d = chance.changed_parameters
    assert chance.row in moved.limits.sides_near_events
    assert len(chance.tuned_parameters) == 2
    names = [variable.name for variable in moved.reference.variables]
    for kind in ("CoSimulation", "ModelExchange"):
        question = plan_api_calls(chance, definition, description, kind)
        question = replace(question, sequences={TUNING: question.sequences[TUNING]})

        def judged(found: FmuProcessResult, question: ApiCallPlan = question) -> ApiCallFamilyResult:
            results = compare_api_checks(definition, chance, question, found, moved.limits)
            return next(each for each in results if each.name == TUNING)

        driven = run_fmu_process(unit, [run, reported], names, kind=kind, sessions=question.operations)
        result = judged(driven)
        assert result.verdict == "passed", result.reason
        rows = driven.recorded_values[TUNING][5]
        at = driven.simulations[-1].values[chance.row]
        x, v, force = (names.index(name) for name in ("x", "v", "force"))
        assert rows[0][force] == pytest.approx(-k * at[x] - d * at[v], rel=1e-7)
        for wrong in (at[force], rows[0][force] * 1.001):  # the sample is lost; it has other parameters
            lost = np.array(rows)
            lost[0, force] = wrong
            answers = driven.recorded_values[TUNING].copy()
            answers[5] = lost.tolist()
            result = judged(replace(driven, recorded_values={TUNING: answers}))
            assert result.verdict == "failed"
            assert "force" in result.reason
        # The sample is taken, in the very event in which parameters change or behind it, with those of before.
        before = np.array(moved.reference.experiment.parameters)
        old = -before[0] * at[x] - before[1] * at[v]
        lost, then = np.array(rows), list(driven.recorded_values[TUNING][4])
        lost[0, force] = then[question.real_variables.index("force")] = old
        for answers in (
            [*driven.recorded_values[TUNING][:4], then, lost.tolist(), *driven.recorded_values[TUNING][6:]],
            [*driven.recorded_values[TUNING][:5], lost.tolist(), *driven.recorded_values[TUNING][6:]],
        ):
            result = judged(replace(driven, recorded_values={TUNING: answers}))
            assert result.verdict == "failed"
            assert "force" in result.reason
