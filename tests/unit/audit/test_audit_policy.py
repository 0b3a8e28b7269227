"""audit.toml, baselines, SARIF, JUnit, exit codes; and the action that runs all of it."""

from __future__ import annotations

import datetime as dt
import json
import os
import re
import subprocess
import sys
import zipfile
from dataclasses import replace
from pathlib import Path
from urllib.parse import unquote
from xml.etree import ElementTree as ET

import ball
import pytest
from click.testing import CliRunner
from lxml import etree

from mb2fmu.audit import audit, read_audit_policy
from mb2fmu.cli import commands
from mb2fmu.errors import Mb2FmuError
from mb2fmu.report.pages.audit_ci_reports import format_github_annotations, format_junit, format_sarif
from mb2fmu.report.pages.audit_page import format_audit_for_terminal, format_audit_headline, render_audit_page

ROOT = Path(__file__).parents[3]
TODAY = dt.date(2027, 1, 15)


@pytest.fixture
def wrong(tmp_path: Path) -> Path:
    members = ball.contents(3)
    text = (
        members["modelDescription.xml"].decode().replace('unit="kg"', 'unit="lump"').replace('name="g"', 'name="g g"')
    )
    members["modelDescription.xml"] = text.encode()
    return ball.pack(members, tmp_path / "wrong.fmu")


def policy(tmp_path: Path, text: str):
    path = tmp_path / "audit.toml"
    path.write_text(text)
    return read_audit_policy(path, None, TODAY)


def test_rules_are_skipped_graded_and_waived(wrong: Path, tmp_path: Path) -> None:
    found = policy(tmp_path, """
skip = ["archive.*"]
[severity]
"units.*" = "note"
[[waive]]
rule = "variables.name"
reason = "the customer's name"
expires = 2027-01-31
""")  # fmt: skip
    result = audit(wrong, run=False, run_checkers=False, policy=found)
    assert [each.severity for each in result.findings if each.rule == "units.declared"] == ["note"]
    assert [(each.rule, why) for each, why in result.waived] == [("variables.name", "the customer's name")]
    assert not result.fails("error")
    assert "archive.suffix" not in {*result.judged, *result.unjudged}


def test_an_expired_waiver_covers_nothing(wrong: Path, tmp_path: Path) -> None:
    found = policy(tmp_path, '[[waive]]\nrule = "variables.name"\nreason = "for now"\nexpires = 2027-01-14\n')
    result = audit(wrong, run=False, run_checkers=False, policy=found)
    assert "variables.name" in {each.rule for each in result.findings}
    assert any("has expired" in each.message for each in result.findings)


@pytest.mark.parametrize(
    ("about", "idle"),
    [
        ('message = "*nothing like it*"', True),
        ('where = "modelDescription.xml"', True),  # the whole place would be compared: *modelDescription.xml*
        ('unit = "other.fmu"', False),  # a policy is for many FMUs
        ('where = "*modelDescription.xml*"', False),
    ],
)
def test_a_waiver_that_fits_nothing_is_reported(wrong: Path, tmp_path: Path, about: str, idle: bool) -> None:
    found = policy(tmp_path, f'[[waive]]\nrule = "variables.name"\nreason = "for now"\n{about}\n')
    result = audit(wrong, run=False, run_checkers=False, policy=found)
    assert bool(result.idle) == idle
    text = "".join(str(block) for block in format_audit_for_terminal(result))
    assert ("matches no finding" in text) == idle
    assert (b"matches no finding" in render_audit_page(result)) == idle


def test_the_headline_tells_what_is_waived(wrong: Path, tmp_path: Path) -> None:
    bare = audit(wrong, run=False, run_checkers=False)
    assert "waived" not in format_audit_headline(bare)
    every = policy(tmp_path, '[[waive]]\nrule = "*"\nreason = "for now"\n')
    assert format_audit_headline(audit(wrong, run=False, run_checkers=False, policy=every)) == (
        f"nothing new found, {len(bare.findings)} waived"
    )


def test_what_is_wrong_in_a_policy_is_reported_at_once(tmp_path: Path) -> None:
    text = 'skip = ["nothing.*"]\nother = 1\n[severity]\n"units.*" = "bad"\n'
    text += '[[waive]]\nrule = "units.*"\nexpires = "soon"\n'
    with pytest.raises(Mb2FmuError) as error:
        policy(tmp_path, text)
    assert len(error.value.faults) == 5


def test_only_what_is_new_fails(wrong: Path, tmp_path: Path) -> None:
    old = tmp_path / "old.json"
    old.write_text(audit(wrong, run=False, run_checkers=False).to_json())
    known = read_audit_policy(None, old, TODAY)
    result = audit(wrong, run=False, run_checkers=False, policy=known)
    assert result.exit_code() == 0
    assert {why for _, why in result.waived} == {"in the baseline too"}
    with zipfile.ZipFile(wrong) as file:
        members = {name: file.read(name) for name in file.namelist()}
    members["modelDescription.xml"] = members["modelDescription.xml"].replace(b'stopTime="2"', b'stopTime="-1"')
    newer = audit(ball.pack(members, tmp_path / "wrong.fmu"), run=False, run_checkers=False, policy=known)
    assert {each.rule for each in newer.findings if each.severity == "error"} == {"experiment.values"}


def test_machines_read_it(wrong: Path) -> None:
    result = audit(wrong, run=False, run_checkers=False)
    whole = json.loads(format_sarif(result))
    assert whole["version"] == "2.1.0"
    run = whole["runs"][0]
    rules = [each["id"] for each in run["tool"]["driver"]["rules"]]
    assert all(rules[each["ruleIndex"]] == each["ruleId"] for each in run["results"])
    suite = ET.fromstring(format_junit(result)).find("testsuite")
    assert suite is not None
    cases = suite.findall("testcase")
    assert int(suite.get("tests", "0")) == len(cases)
    assert int(suite.get("failures", "0")) == len(suite.findall("testcase/failure")) >= 2
    assert int(suite.get("skipped", "0")) == len(suite.findall("testcase/skipped")) == len(result.unjudged)
    lines = list(format_github_annotations(result))
    assert len(lines) == len({each.rule for each in result.findings})


def test_code_hosts_find_the_file_by_its_address(wrong: Path) -> None:
    """A SARIF address is a URI reference: no spaces, no bare per cent sign, no colon that makes a scheme of it."""
    name = "a unit: 100 % ü [x].fmu"
    places = [
        each["physicalLocation"]["artifactLocation"]["uri"]
        for entry in json.loads(
            format_sarif(audit(wrong.rename(wrong.with_name(name)), run=False, run_checkers=False))
        )["runs"]
        for found in entry["results"]
        for each in found["locations"]
    ]
    assert places
    for each in places:
        assert re.fullmatch(r"([\w.~!$&'()*+,;=@/-]|%[0-9A-F]{2})+", each, re.ASCII), each
        assert unquote(each) == name


SCHEMAS = os.environ.get("MB2FMU_REPORT_SCHEMAS", "")


@pytest.mark.repeats
@pytest.mark.skipif(not SCHEMAS, reason="MB2FMU_REPORT_SCHEMAS names no folder of schemas")
def test_reports_are_of_their_schemas(wrong: Path, tmp_path: Path) -> None:
    """Those of SARIF (oasis-tcs/sarif-spec) and of JUnit (junit-10.xsd of jenkinsci/xunit-plugin).

    With findings, with waived ones, with a fault of the auditor, and with none at all.
    """
    validator = pytest.importorskip("jsonschema").Draft7Validator
    schema = json.loads((Path(SCHEMAS) / "sarif-schema-2.1.0.json").read_text(encoding="utf-8"))
    cases = etree.XMLSchema(etree.parse(str(Path(SCHEMAS) / "junit-10.xsd")))
    found = audit(wrong, run=False, run_checkers=False)
    known = policy(tmp_path, '[[waive]]\nrule = "variables.name"\nreason = "known"\n')
    right = audit(ball.pack(ball.contents(2), tmp_path / "right.fmu"), run=False, run_checkers=False)
    for each in (found, known.apply_to(found), replace(found, faults=("Traceback\nValueError: \x01",)), right):
        assert list(validator(schema).iter_errors(json.loads(format_sarif(each)))) == []
        cases.assertValid(etree.fromstring(format_junit(each)))


def test_exit_codes_of_fmus_that_cannot_be_run(tmp_path: Path) -> None:
    members = ball.contents(2)
    members["binaries/win64/ball.dll"] = members.pop(ball.BINARIES[2])
    elsewhere = ball.pack(members, tmp_path / "elsewhere.fmu")
    first = ball.pack({"modelDescription.xml": FMI1.encode()}, tmp_path / "first.fmu")
    run = CliRunner().invoke
    skip = ["--skip", "binary.*", "--no-checkers"]
    assert run(commands, ["audit", str(elsewhere), *skip], obj={}).exit_code == 4
    done = run(commands, ["audit", str(first), "--no-checkers"], obj={})
    assert done.exit_code == 2
    assert "all but schema and variables" in done.output


@pytest.mark.usefixtures("wrong")
def test_the_action_s_script_audits_a_folder(tmp_path: Path) -> None:
    """As action.yml runs it: all FMUs below a folder, one summary, the worst exit code."""
    text = (ROOT / "action.yml").read_text(encoding="utf-8")
    script = ROOT / "scripts" / "audit_action"
    assert "scripts/audit_action" in text
    summary = tmp_path / "summary.md"
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "GITHUB_STEP_SUMMARY": str(summary)}
    environment |= {"AUDIT_OPTIONS": "--no-run --no-checkers", "AUDIT_FMUS": "*.fmu"}
    environment |= {"AUDIT_FOLDER": str(tmp_path / "found"), "AUDIT_PYTHON": sys.executable}
    ball.pack(ball.contents(2), tmp_path / "right.fmu")
    done = subprocess.run([script], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "::error file=wrong.fmu" in done.stdout
    assert {each.name for each in (tmp_path / "found").iterdir()} == {
        "right.sarif", "right.xml", "right.html", "wrong.sarif", "wrong.xml", "wrong.html",
    }  # fmt: skip
    assert "wrong.fmu" in summary.read_text()


@pytest.mark.parametrize("path", ["action.yml", ".github/workflows/users.yml", ".github/workflows/release.yml"])
def test_what_nobody_ran_installs_what_it_runs(path: str) -> None:
    """`mb2fmu run` and `mb2fmu audit` end with 3 where the extra is missing; a copy from an sdist has no workflows."""
    if not (ROOT / path).is_file():
        pytest.skip("this copy has no workflows")
    text = (ROOT / path).read_text(encoding="utf-8")
    assert "mb2fmu run" in text or "mb2fmu audit" in text
    installs = [line for line in text.splitlines() if re.search(r"pip install .*whl|default: mb2fmu", line)]
    assert installs
    assert all(re.search(r"\[[\w,]*audit", line) for line in installs), installs


FMI1 = """<?xml version="1.0" encoding="UTF-8"?>
<fmiModelDescription fmiVersion="1.0" modelName="m" modelIdentifier="m" guid="{1}" numberOfContinuousStates="0"
 numberOfEventIndicators="0"><ModelVariables><ScalarVariable name="x" valueReference="0"><Real/></ScalarVariable>
</ModelVariables></fmiModelDescription>"""
