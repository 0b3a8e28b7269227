"""What was not exercised and what was called wrongly is said: in the page's headline and tables, in the terminal."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import pytest
from lxml import etree

from mb2fmu.report import render_validation_page
from mb2fmu.report.terminal_verdict_tables import format_terminal_verdict_blocks, format_verdict_line
from mb2fmu.validation import (
    ApiCallFamilyResult,
    ExercisedQuantityResult,
    InterfaceTypeResult,
    PerturbedExperimentResult,
    PerturbedExperimentValue,
)


def call(name: str, verdict: str, kind: str = "CoSimulation", reason: str = "") -> ApiCallFamilyResult:
    return ApiCallFamilyResult(
        name=name, kind=kind, formula="against differences", value=1.0, bound=2.0, ratio=0.5, where="q in direction 1",
        count=7, verdict=verdict, reason=reason,
    )  # fmt: skip


def exercised(result, *, calls=(), failing=False):
    """Three quantities, one of which is not exercised; ``failing``: the perturbed experiment is out of bounds."""
    moves = (
        PerturbedExperimentValue(name="m", role="parameter", unit="kg", default=1.5, moved=1.83),
        PerturbedExperimentValue(
            name="g<", role="parameter", unit="m/s2", default=9.81, moved=9.81, reason="its bounds leave no room"
        ),
        PerturbedExperimentValue(name="torque", role="input", unit="N.m", default=0.0, moved=2.5),
    )
    influences = (
        ExercisedQuantityResult(name="m", role="parameter", ratio=1234.5, most="hinge.angle"),
        ExercisedQuantityResult(name="g<", role="parameter", ratio=0.0, most="", reason="its bounds leave no room"),
        ExercisedQuantityResult(name="torque", role="input", ratio=77.0, most="hinge.speed"),
    )
    variables = result.variables
    if failing:
        variables = (replace(variables[0], verdict="failed", ratio=12.0), *variables[1:])
    kind = InterfaceTypeResult(variables=variables, invariants=result.invariants, simulation=result.simulation)
    moved = PerturbedExperimentResult(
        kinds=(kind,), reference=result.reference, perturbations=moves, part=0.5, text="3 moved by a half"
    )
    return replace(result, perturbed_experiment=moved, exercised_quantities=influences, api_checks=tuple(calls))


def page(case, result):
    text = render_validation_page(case.definition, case.equations, case.interface, result).decode()
    text = re.sub(r"<(meta|img)\b([^>]*)>", r"<\1\2/>", text.removeprefix("<!doctype html>\n"))
    return etree.fromstring(text)


def said(root, path: str) -> str:
    return " ".join("".join(element.itertext()) for element in root.iterfind(path))


def test_no_influence_is_not_exercised_and_never_passed(pendulum):
    case = pendulum()
    result = exercised(case.result)
    assert result.passed  # errors decide on the FMU
    assert [item.name for item in result.not_exercised] == ["g<"]
    root = page(case, result)
    headline = said(root, ".//h2[@id='verdict']")
    assert "2 of 3 parameters, start values and inputs exercised; not exercised: g<" in headline
    table = root.find(".//div[@aria-label='Table of influence']")
    rows = [[" ".join(cell.itertext()) for cell in row] for row in table.iterfind(".//tbody/tr")]
    assert [(row[0], row[1].split("  ")[0]) for row in rows] == [
        ("g<", "not exercised its bounds leave no room"),
        ("torque", "exercised"),
        ("m", "exercised"),
    ]
    assert "2 of 3 parameters" in str(format_verdict_line(result))
    lines = [str(block) for block in format_terminal_verdict_blocks(result, 120)]
    assert "not exercised: parameter g<: its bounds leave no room" in lines


@pytest.mark.parametrize("verdict", ["failed", "unjudged"])
def test_a_call_that_is_wrong_fails_and_one_that_is_not_offered_does_not(pendulum, verdict):
    case = pendulum()
    wrong = call("adjoint derivatives", verdict, reason="because")
    result = exercised(case.result, calls=(call("reset", "passed"), wrong))
    assert result.passed == (verdict == "unjudged")
    root = page(case, result)
    assert ("adjoint derivatives" in said(root, ".//h2[@id='verdict']")) == (verdict == "failed")
    assert ("adjoint derivatives" in str(format_verdict_line(result))) == (verdict == "failed")
    calls = root.find(".//div[@aria-label='Table of calls']")
    assert "because" in "".join(calls.itertext())
    lines = [str(block) for block in format_terminal_verdict_blocks(result, 120)]
    assert "API checks during the run, Co-Simulation: 1 of 2 agree with the reference" in lines


def test_the_moved_experiment_fails_the_verdict(pendulum):
    case = pendulum()
    result = exercised(case.result, failing=True)
    assert not result.passed
    assert "perturbed experiment" in said(page(case, result), ".//h2[@id='verdict']")
    assert result.variables[0].name in str(format_verdict_line(result))
    read = json.loads(result.to_json())
    assert read["moved"]["passed"] is False
    assert [item["exercised"] for item in read["influences"]] == [True, False, True]


def test_without_an_exercise_nothing_is_said_of_it(pendulum):
    case = pendulum()
    assert page(case, case.result).find(".//h2[@id='exercise']") is None
    assert "exercised" not in str(format_verdict_line(case.result))
