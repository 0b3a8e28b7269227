"""Running FMUs: exact inputs and times, and every way in which one can fail reported in plain words."""

from __future__ import annotations

import zipfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from mb2fmu.audit.external_checkers import check_with_fmpy
from mb2fmu.errors import PackageError, ToolError, ValidationError
from mb2fmu.fmu.in_memory_file_tree import InMemoryFileTree
from mb2fmu.validation import ExperimentValues, run_external_checkers, simulate_fmu, validate
from mb2fmu.validation.runs.fmu_description_for_runs import find_platform_folder, read_fmu_description
from mb2fmu.validation.runs.fmu_run import run_fmu_process
from mb2fmu.validation.validation_result import PerturbedExperimentResult

OUTPUTS = ("q", "u", "acceleration")


def experiment(steps: int = 100, step: float = 0.01, torque: float = 0.0, **overridden: float) -> ExperimentValues:
    return ExperimentValues(
        time=np.arange(steps + 1) * step,
        inputs=np.full((steps, 1), torque),
        input_names=("tau",),
        parameters=(9.81,),
        q=(2.0,),
        u=(0.0,),
        z=(),
        tolerance=1e-6,
        overridden_values=overridden,
    )


def changed(fmu: Path, folder: Path, **edits: tuple[str, str] | None) -> Path:
    """A copy with edits of its description (old, new), or without files whose path holds a word."""
    copy = folder / "changed.fmu"
    with zipfile.ZipFile(fmu) as old, zipfile.ZipFile(copy, "w") as new:
        for name in old.namelist():
            content = old.read(name)
            if name == "modelDescription.xml":
                for edit in edits.values():
                    if edit:
                        assert edit[0].encode() in content
                        content = content.replace(edit[0].encode(), edit[1].encode())
            if not any(edit is None and word in name for word, edit in edits.items()):
                new.writestr(name, content)
    return copy


def test_inputs_are_held_from_the_beginning_of_each_step(pendulum_fmu):
    run = experiment()
    torque = np.sin(np.arange(100) * 0.3)[:, None]
    found = simulate_fmu(pendulum_fmu, replace(run, inputs=torque), OUTPUTS)
    # The output after a step shows the input of that step: acceleration + g sin(q) = tau.
    seen = found["acceleration"] + 9.81 * np.sin(found["q"])
    assert seen[1:] == pytest.approx(torque[:, 0], abs=1e-12)
    assert seen[0] == pytest.approx(torque[0, 0], abs=1e-12)
    assert found.time is not None
    assert found.seconds_per_step > 0


def test_overridden_parameters_reach_the_fmu(pendulum_fmu):
    found = simulate_fmu(pendulum_fmu, experiment(10, g=1.62), OUTPUTS)
    assert found["acceleration"] == pytest.approx(-1.62 * np.sin(found["q"]), rel=1e-12)


def test_an_honest_fmu_passes_except_where_a_checker_objects(pendulum_fmu, cases):
    case = cases["pendulum"](stop=2.0, step=0.01)
    result = validate(pendulum_fmu, case.definition, case.equations, method="kane")
    assert {v.verdict for v in result.variables} == {"passed"}
    assert {i.verdict for i in result.invariants} == {"passed"}
    # pythonfmu's own description lacks InitialUnknowns: fmpy sees that, and so does the auditor.
    errors = [f for f in result.conformance if f.severity == "error"]
    assert {f.checker.split()[0] for f in errors} == {"fmpy", "auditor"}
    assert all("InitialUnknowns" in error.message for error in errors[:2])
    assert not result.passed
    assert validate(pendulum_fmu, case.definition, case.equations, conformance=False).passed
    assert any("no second formulation" in note for note in result.notes)


def test_a_fmu_with_another_gravity_fails_and_says_where(pendulum_fmu, cases):
    case = cases["pendulum"](stop=1.0, step=0.02)
    definition = replace(case.definition, parameters=(replace(case.definition.parameters[0], value=9.80665),))
    result = validate(pendulum_fmu, definition, case.equations, conformance=False)
    assert not result.passed
    assert {v.verdict for v in result.variables} == {"failed"}
    assert '"passed": false' in result.to_json()
    assert result.to_json() == validate(pendulum_fmu, definition, case.equations, conformance=False).to_json()


def test_a_crash_is_reported_with_what_the_fmu_said(pendulum_fmu):
    with pytest.raises(ToolError, match="SIGABRT") as caught:
        simulate_fmu(pendulum_fmu, experiment(mood=1.0), OUTPUTS)
    assert "about to abort" in str(caught.value)
    assert caught.value.exit_code == 3


def test_a_crash_behind_the_end_is_reported_as_such(pendulum_fmu):
    with pytest.raises(ToolError, match="ran to its end, and then its process was killed by SIGABRT as it ended"):
        simulate_fmu(pendulum_fmu, experiment(mood=4.0), OUTPUTS)


def test_a_hang_ends_at_the_time_limit(pendulum_fmu):
    with pytest.raises(ToolError, match="not finish within 1 s"):
        simulate_fmu(pendulum_fmu, experiment(mood=2.0), OUTPUTS, time_limit=1.0)


def test_a_refused_step_is_reported_with_its_time(pendulum_fmu):
    with pytest.raises(ToolError, match=r"fmi2DoStep returned \w+ in the step from t = 0.5 s"):
        simulate_fmu(pendulum_fmu, experiment(mood=3.0), OUTPUTS)


def test_a_fmu_that_refuses_its_last_experiment_is_judged_and_no_tools_failure(pendulum_fmu):
    done = run_fmu_process(pendulum_fmu, [experiment(), experiment(mood=3.0)], OUTPUTS, sessions={"none": []})
    assert "in the step from t = 0.5 s" in done.refusal
    right, refused = done.simulations
    assert np.isfinite(right.values).all()
    assert np.isfinite(refused.values[0]).all()
    assert np.isnan(refused.values[-1]).all()
    assert done.recorded_values == {}
    second = PerturbedExperimentResult(
        kinds=(), reference=None, perturbations=(), part=1.0, text="", refusals=(done.refusal,)
    )
    assert not second.passed


def test_all_that_is_missing_is_named_at_once(pendulum_fmu):
    run = replace(experiment(), input_names=("force",), overridden_values={"mass": 1.0})
    with pytest.raises(ValidationError) as caught:
        simulate_fmu(pendulum_fmu, run, ("q", "theta", "omega"))
    assert [fault.where for fault in caught.value.faults] == ["theta", "omega", "force", "mass"]
    assert caught.value.exit_code == 2


def test_an_output_is_no_input(pendulum_fmu):
    with pytest.raises(ValidationError, match="is output, not input"):
        simulate_fmu(pendulum_fmu, replace(experiment(), input_names=("q",)), ("u",))


def test_a_fmu_for_another_platform_is_refused(pendulum_fmu, tmp_path):
    here = find_platform_folder(2)[0]
    there = changed(pendulum_fmu, tmp_path, **{f"binaries/{here}": None})
    with pytest.raises(ValidationError, match=rf"no binary for this machine \({here}\): it has win"):
        simulate_fmu(there, experiment(), OUTPUTS)
    renamed = changed(pendulum_fmu, tmp_path, name=('modelIdentifier="', 'modelIdentifier="My'))
    with pytest.raises(ValidationError, match=rf"binaries/{here}: it has (\w+)\.\w+, not My\1"):
        simulate_fmu(renamed, experiment(), OUTPUTS)
    nothing = changed(pendulum_fmu, tmp_path, binaries=None)
    with pytest.raises(ValidationError, match="it has none at all"):
        simulate_fmu(nothing, experiment(), OUTPUTS)


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (('fmiVersion="2.0"', 'fmiVersion="1.0"'), "is FMI 1.0"),
        (('fmiVersion="2.0"', 'fmiVersion="3.0-beta.3"'), "is FMI 3.0-beta.3, a draft"),
        (("CoSimulation", "ScheduledExecution"), "offers neither Co-Simulation nor Model Exchange"),
        (("</fmiModelDescription>", ""), "is not well-formed"),
    ],
)
def test_what_cannot_be_run_is_refused(pendulum_fmu, tmp_path, edit, message):
    with pytest.raises(ValidationError, match=message):
        simulate_fmu(changed(pendulum_fmu, tmp_path, one=edit), experiment(), OUTPUTS)


def test_a_variable_that_is_no_double_is_refused(pendulum_fmu, tmp_path):
    integer = changed(pendulum_fmu, tmp_path, one=("<Real", "<Integer"))
    with pytest.raises(ValidationError, match="no scalar of doubles"):
        simulate_fmu(integer, experiment(), OUTPUTS)


def test_no_fmu_is_refused(tmp_path):
    path = tmp_path / "letter.fmu"
    path.write_bytes(b"Dear reader,")
    with pytest.raises((PackageError, ValidationError)):
        simulate_fmu(path, experiment(), OUTPUTS)


def test_an_fmi3_description_is_read():
    folder, extension = find_platform_folder(3)
    xml = b"""<fmiModelDescription fmiVersion="3.0" instantiationToken="{token}">
      <CoSimulation modelIdentifier="arm"/>
      <ModelVariables>
        <!-- a comment -->
        <Float64 name="q" valueReference="7" causality="output"/>
        <Float64 name="list" valueReference="8"><Dimension start="3"/></Float64>
        <Int32 name="count" valueReference="9" causality="parameter"/>
      </ModelVariables></fmiModelDescription>"""
    tree = InMemoryFileTree({"modelDescription.xml": xml, f"binaries/{folder}/arm{extension}": b""})
    found = read_fmu_description(tree)
    assert (found.version, found.identifiers, found.token) == (3, {"CoSimulation": "arm"}, "{token}")
    read = {name: (v.reference, v.is_double, v.causality) for name, v in found.variables.items()}
    assert read == {"q": (7, True, "output"), "list": (8, False, "local"), "count": (9, False, "parameter")}


def test_checkers_have_nothing_to_say_of_no_fmu_but_that(tmp_path):
    path = tmp_path / "letter.fmu"
    path.write_bytes(b"Dear reader,")
    errors = {f.checker.split()[0] for f in run_external_checkers(path) if f.severity == "error"}
    assert errors == {"fmpy", "fmutool"}


@pytest.mark.parametrize("name", ["1q", "an angle", "der(der(q))", "q."])
def test_fmpy_finds_names_that_no_grammar_has(pendulum_fmu, tmp_path, name):
    wrong = changed(pendulum_fmu, tmp_path, one=('name="acceleration"', f'name="{name}"'))
    found = [f.message for f in check_with_fmpy(wrong) if f.severity == "error"]
    assert any(
        message.startswith(f'"{name}" (line ') and "is not a legal variable name" in message for message in found
    )


def test_a_checker_that_hangs_is_given_up(pendulum_fmu):
    with pytest.raises(ToolError, match="not finish within"):
        run_external_checkers(pendulum_fmu, time_limit=0.01)
