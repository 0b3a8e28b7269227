"""Recorded runs in the form of the FMI cross-check: repeated, met or not met; files that cannot be used."""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import ball
import numpy as np
import pytest
from click.testing import CliRunner
from fmpy import simulate_fmu
from representatives import by_night

from mb2fmu.audit import (
    AuditReferenceRun,
    AuditResult,
    audit,
    find_reference_run_of_fmu,
    read_audit_reference_run,
)
from mb2fmu.audit.behaviour.fixture.shared_trial_results import RecordedTrialRun
from mb2fmu.audit.behaviour.trials.recorded_run_trials import _find_deviations
from mb2fmu.audit.recorded_reference_run import RecordedReferenceTable
from mb2fmu.cli import commands
from mb2fmu.errors import Mb2FmuError

Base = Callable[[str], dict[str, bytes]]
RULE = "experiment.reference"
STOP = 1.0
COLUMNS = ["x", "theta"]
FOLDER = "extra/org.fmi-standard.fmi-ls-ref"
MANIFEST = """<fmiReferences xmlns:fmi-ls="http://fmi-standard.org/fmi-ls-manifest"
fmi-ls:fmi-ls-name="org.fmi-standard.fmi-ls-ref" fmi-ls:fmi-ls-version="1.0.0-beta.1"
fmi-ls:fmi-ls-description="Layered Standard providing information on related files included in an FMU."
>RELATED</fmiReferences>"""


@pytest.fixture
def unit(base: Base, tmp_path: Path) -> Path:
    return ball.pack(base("cart2"), tmp_path / "cart.fmu")


def written(path: Path, names: list[str], rows: object) -> Path:
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([["time", *names], *rows])
    return path


def recorded(unit: Path, *, gain: float = 1.0, end: float = STOP, **starts: float) -> None:
    """Files beside the FMU, the result as fmpy finds it; the force is a ramp that jumps at 0.5 s.

    fmpy holds inputs between output points, also in Model Exchange: these are close together.
    """
    rows = [(0.0, 0.0), (0.5, 4.0), (0.5, -2.0), (end, -2.0)]
    signal = np.array([(t, gain * f) for t, f in rows], dtype=[("time", float), ("force", float)])
    found = simulate_fmu(
        str(unit), fmi_type="ModelExchange", stop_time=STOP, output_interval=0.001, relative_tolerance=1e-8,
        input=signal, output=COLUMNS, start_values=starts,
    )  # fmt: skip
    written(unit.with_name("cart_ref.csv"), COLUMNS, ([row["time"], *(row[c] for c in COLUMNS)] for row in found))
    written(unit.with_name("cart_in.csv"), ["force"], rows)
    unit.with_name("cart_ref.opt").write_text(f"StartTime, 0.0\nStopTime, {STOP}\nStepSize, 0.002\nRelTol, 1e-8\n")


def judged(unit: Path) -> AuditResult:
    return audit(unit, only=[RULE], run_checkers=False, recorded=find_reference_run_of_fmu(unit))


def test_a_right_fmu_meets_its_recorded_run_in_both_kinds(unit: Path) -> None:
    recorded(unit)
    result = judged(unit)
    assert [str(each) for each in result.findings] == []
    assert RULE in result.judged
    assert {"ModelExchange: repeating the recorded run", "CoSimulation: repeating the recorded run"} <= set(
        result.tried
    )


@pytest.mark.parametrize(
    "wrong",
    [{"gain": -1.0}, *by_night({"gain": 1.2}, {"m": 1.3}, {"theta": 0.4})],
    ids=["sign of the input", "size of the input", "parameter", "start value"],
)
def test_what_is_not_met_is_reported_with_its_variable(unit: Path, wrong: dict[str, float]) -> None:
    recorded(unit, **wrong)
    found = judged(unit).findings
    assert found
    assert {each.rule for each in found} == {RULE}
    assert any('"x"' in each.where or '"theta"' in each.where for each in found)


def test_names_that_the_fmu_does_not_have_are_reported(unit: Path) -> None:
    recorded(unit)
    written(unit.with_name("cart_in.csv"), ["x", "gust"], [(0, 0, 0), (1, 0, 0)])
    text = " ".join(str(each) for each in judged(unit).findings)
    assert "no variable gust" in text
    assert 'no input: "x"' in text


@pytest.mark.parametrize(("phase", "expected"), [(0.0, False), (0.1, False), (0.6, True), (np.pi, True)])
def test_what_goes_to_and_fro_is_not_right_with_any_phase(phase: float, expected: bool) -> None:
    """A hundred periods in a run: 2 % of its length are two of them."""
    times = np.linspace(0.0, 1.0, 5001)
    truth, found = np.sin(200 * np.pi * times), np.sin(200 * np.pi * times + phase)
    recorded = AuditReferenceRun(
        RecordedReferenceTable(["x"], times.tolist(), [[v] for v in truth.tolist()]), None, 0.0, 1.0
    )
    run = RecordedTrialRun(times.tolist(), [[v] for v in found.tolist()])
    stage = SimpleNamespace(typical_magnitude=lambda _variable: 1.0)
    assert bool(list(_find_deviations(stage, recorded, [SimpleNamespace(name="x")], run))) is expected


def test_a_result_that_is_not_there_for_the_whole_run_is_refused(tmp_path: Path) -> None:
    reference = written(tmp_path / "c_ref.csv", ["x"], [(0, 0), (1, 1)])
    (tmp_path / "c_ref.opt").write_text("StartTime, 2\nStopTime, 5\n")
    with pytest.raises(Mb2FmuError, match="times from 0 to 1, and the run goes from 2 to 5"):
        read_audit_reference_run(reference, None, tmp_path / "c_ref.opt")


def test_without_a_recorded_run_nothing_is_judged(unit: Path) -> None:
    result = judged(unit)
    assert "no recorded result was given" in result.unjudged[RULE]
    done = CliRunner().invoke(commands, ["audit", str(unit), "--input", str(unit)], obj={})
    assert done.exit_code == 2
    assert "--reference" in done.output


def test_all_faults_of_all_files_are_reported_at_once(tmp_path: Path) -> None:
    reference = written(tmp_path / "a_ref.csv", ["x", "x"], [(0, 1, 1), (1, 2, 2)])
    inputs = written(tmp_path / "a_in.csv", ["force"], [(1, 0), (0, "much"), (2,)])
    options = tmp_path / "a_ref.opt"
    options.write_text("StopTime, soon\nColour, red\n")
    with pytest.raises(Mb2FmuError) as error:
        read_audit_reference_run(reference, inputs, options)
    text = str(error.value)
    for part in ("occur twice: x", "row 3", "row 4", 'StopTime is no number: "soon"'):
        assert part in text


@pytest.mark.parametrize(
    ("manner", "gain"),
    [("experiment", 1.0), ("result", -1.0), *by_night(("experiment", -1.0), ("result", 1.0))],
)
def test_a_run_that_the_fmu_carries_is_repeated(base: Base, tmp_path: Path, manner: str, gain: float) -> None:
    """After fmi-ls-ref: with stimuli in an experiment, or a result of the default experiment alone."""
    unit = ball.pack(base("cart2"), tmp_path / "cart.fmu")
    if manner == "experiment":
        recorded(unit, gain=gain)
    else:
        recorded(unit, gain=0.0, theta=0.1 if gain > 0.0 else 0.4)
    members = dict(base("cart2"))
    for name in ("cart_ref.csv", "cart_in.csv"):
        members[f"{FOLDER}/{name}"] = unit.with_name(name).read_bytes()
    related = '<Related type="text/csv" source="cart_ref.csv" role="result"/>'
    if manner == "experiment":
        related = '<Related type="text/xml" source="runs.exp" role="experiment/validation"/>'
        members[f"{FOLDER}/runs.exp"] = (
            f'<Experiments><Experiment name="a" startTime="0" stopTime="{STOP}" stepSize="0.002">'
            '<Stimuli source="cart_in.csv"/><References source="cart_ref.csv"/></Experiment></Experiments>'
        ).encode()
    members[f"{FOLDER}/fmi-ls-manifest.xml"] = MANIFEST.replace("RELATED", related).encode()
    carrying = ball.pack(members, tmp_path / "carrying.fmu")
    result = judged(carrying)
    assert RULE in result.judged
    assert bool(result.findings) == (gain < 0)


def test_references_that_cannot_be_read_are_reported_and_not_repeated(base: Base, tmp_path: Path) -> None:
    related = '<Related type="text/csv" source="none.csv" role="result"/>'
    related += '<Related type="text/csv" source="bad.csv" role="result"/><Related source="bad.csv" role="picture"/>'
    members = {**base("cart2"), f"{FOLDER}/bad.csv": b"x,y\n1,2\n"}
    members[f"{FOLDER}/fmi-ls-manifest.xml"] = MANIFEST.replace("RELATED", related).encode()
    unit = ball.pack(members, tmp_path / "cart.fmu")
    assert find_reference_run_of_fmu(unit) is None
    messages = [each.message for each in audit(unit, only=["archive.manifest"], run=False, run_checkers=False).findings]
    assert len(messages) == 3
    for part in ("no such file", "first column is not time", 'role "picture"'):
        assert any(part in message for message in messages)


def test_a_jump_is_taken_at_its_time(tmp_path: Path) -> None:
    written(tmp_path / "b_ref.csv", ["x"], [(0, 0), (2, 1)])
    written(tmp_path / "b_in.csv", ["force", "on"], [(0, 0, "true"), (1, 1, "true"), (1, 5, "false"), (2, 6, "false")])
    found = find_reference_run_of_fmu(tmp_path / "b.fmu")
    assert found is not None
    assert found.inputs is not None
    assert (found.start, found.stop, found.step) == (0.0, 2.0, None)
    assert found.inputs.rows == [[0.0, 1.0], [1.0, 1.0], [5.0, 0.0], [6.0, 0.0]]
