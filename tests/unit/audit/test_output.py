"""What the auditor writes: text, JSON, a page, annotations, exit codes, the list of rules."""

from __future__ import annotations

import json
import subprocess
import sys
import zipfile
from pathlib import Path

import ball
import pytest
from click.testing import CliRunner
from lxml import html

from mb2fmu.audit import audit, audit_rules_by_id
from mb2fmu.cli import commands
from mb2fmu.report.pages.audit_ci_reports import format_github_annotations
from mb2fmu.report.pages.audit_page import format_audit_rules_as_markdown, render_audit_page

DOCS = Path(__file__).parents[3] / "docs" / "reference" / "audit_rules.md"


@pytest.fixture
def wrong(tmp_path: Path) -> Path:
    members = ball.contents(3)
    text = members["modelDescription.xml"].decode()
    members["modelDescription.xml"] = (
        text.replace('name="g"', 'name="g &lt;b&gt;"').replace('unit="kg"', 'unit="lump"').encode()
    )
    return ball.pack(members, tmp_path / "wrong.fmu")


def run(*arguments: str | Path) -> tuple[int, str]:
    done = CliRunner().invoke(commands, ["audit", *map(str, arguments)], obj={})
    return done.exit_code, done.output


def test_the_text_says_what_where_and_what_to_do(wrong: Path) -> None:
    code, short = run(wrong, "--no-run", "--no-checkers")
    assert code == 1
    assert "wrong.fmu failed: 2 errors, 1 note" in short.splitlines()[0]
    assert len(short.splitlines()) <= 30
    assert "-> Add it to UnitDefinitions" in short
    code, text = run(wrong, "--no-run", "--no-checkers", "-v")
    assert code == 1
    assert text.endswith(short.split("\n", 1)[1])  # the summary stands last
    for part in (
        "units.declared",
        '"lump"',
        "modelDescription.xml:",
        "2.4.3 Physical Units",
        "→ Add it to UnitDefinitions",
    ):
        assert part in text


def test_json_holds_everything(wrong: Path, tmp_path: Path) -> None:
    code, text = run(wrong, "--no-run", "--no-checkers", "--json", "-")
    whole = json.loads(text)
    assert code == 1
    assert whole["version"] == "3.0"
    assert whole["counts"]["error"] == sum(each["severity"] == "error" for each in whole["findings"]) > 0
    assert {each["rule"] for each in whole["findings"]} >= {"units.declared", "variables.name"}
    run(wrong, "--no-run", "--no-checkers", "--json", tmp_path / "out.json", "--html", tmp_path / "out.html")
    assert json.loads((tmp_path / "out.json").read_text())["sha256"] == whole["sha256"]
    assert b"units.declared" in (tmp_path / "out.html").read_bytes()


def test_the_page_is_self_contained_and_escapes(wrong: Path) -> None:
    page = render_audit_page(audit(wrong, run=False, run_checkers=False))
    tree = html.fromstring(page)
    assert not tree.xpath("//script|//link|//img[not(starts-with(@src, 'data:'))]|//*[@src[starts-with(., 'http')]]")
    assert b"<b>" not in page
    assert len(tree.xpath("//article[contains(@class, 'error')]")) >= 2
    assert tree.xpath("count(//details)") > 5


def test_annotations_are_one_line_each(wrong: Path) -> None:
    lines = list(format_github_annotations(audit(wrong, run=False, run_checkers=False)))
    assert all("\n" not in line for line in lines)
    assert any(line.startswith("::error file=wrong.fmu,title=units.declared::") for line in lines)


def test_exit_codes_tell_what_happened(wrong: Path, tmp_path: Path) -> None:
    right = ball.pack(ball.contents(2), tmp_path / "right.fmu")
    (tmp_path / "no.fmu").write_bytes(b"not an archive")
    assert run(right, "--no-run", "--no-checkers")[0] == 0
    assert run(right, "--only", "life.calls")[0] == 0
    assert run(wrong, "--no-run", "--only", "units.*")[0] == 1
    assert run(wrong, "--no-run", "--only", "header.*")[0] == 0
    assert run(tmp_path / "no.fmu")[0] == 2
    assert run(tmp_path / "none.fmu")[0] == 2
    assert run(right, "--only", "nothing")[0] == 2


@pytest.mark.parametrize(
    ("version", "words"),
    [("3.0-beta.1", "is FMI 3.0-beta.1, a draft"), ("4.0", "is FMI 4.0"), ("", "of no version")],
)
def test_an_fmu_of_another_version_is_no_failed_one(version: str, words: str, tmp_path: Path) -> None:
    members = ball.contents(3)
    text = members["modelDescription.xml"].replace(b'fmiVersion="3.0"', f'fmiVersion="{version}"'.encode())
    path = ball.pack(members | {"modelDescription.xml": text}, tmp_path / "other.fmu")
    code, told = run(path, "--no-checkers")
    assert code == 2
    assert words in told
    assert "export the FMU as FMI 2.0 or 3.0" in told


def test_warnings_fail_on_request(tmp_path: Path) -> None:
    members = ball.contents(2)
    members["documentation/licenses/x.txt"] = b"x"
    path = ball.pack(members, tmp_path / "warned.fmu")
    assert run(path, "--no-run", "--no-checkers")[0] == 0
    assert run(path, "--no-run", "--no-checkers", "--fail-on", "warning")[0] == 1


def test_archives_are_judged_as_such(tmp_path: Path) -> None:
    path = tmp_path / "ball.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_LZMA) as file:
        for name, content in ball.contents(2).items():
            file.writestr(name, content)
    found = {each.rule for each in audit(path, run=False, run_checkers=False).findings}
    assert {"archive.suffix", "archive.compression"} <= found


def test_nothing_large_is_loaded_before_a_fmu_runs() -> None:
    """Neither by the command and its summary, nor by the processes that watch and run an FMU."""
    modules = "mb2fmu.cli, mb2fmu.audit.audit_run, mb2fmu.audit.behaviour.runner.fmu_process_supervisor"
    modules += ", mb2fmu.audit.behaviour.runner.trial_worker_process, mb2fmu.report.pages.audit_page"
    large = {"numpy", "scipy", "sympy", "lief", "fmpy", "matplotlib"}
    code = f"import sys, {modules}; print(*({large} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


def test_the_command_leaves_standard_error_empty(tmp_path: Path) -> None:
    """The library that reads binaries reports there what is left of its objects at the end."""
    unit = ball.pack(ball.contents(2), tmp_path / "ball.fmu")
    command = [sys.executable, "-m", "mb2fmu", "audit", str(unit), "--only", "binary.*", "--no-checkers", "--no-run"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert "passed" in done.stdout
    assert done.stderr == ""


def test_every_rule_is_listed_and_documented() -> None:
    code, text = run("--list-rules")
    assert code == 0
    documented = DOCS.read_text(encoding="utf-8")
    for rule in audit_rules_by_id().values():
        assert rule.id in text
        for section in rule.sections.values():
            assert section in text
    assert format_audit_rules_as_markdown() in documented


def test_attributes_that_no_trial_can_refute_are_named(tmp_path: Path) -> None:
    members = ball.contents(3, ("CoSimulation",))
    text, claim = members["modelDescription.xml"].decode(), '<CoSimulation modelIdentifier="ball"'
    reported = ' fixedInternalStepSize="0.001" needsExecutionTool="true" mightReturnEarlyFromDoStep="false"'
    members["modelDescription.xml"] = text.replace(claim, claim + reported).encode()
    found = audit(ball.pack(members, tmp_path / "claims.fmu"), only=["flags.true"], run_checkers=False)
    (line,) = (each for each in found.skipped if "no trial says" in each)
    assert "needsExecutionTool, fixedInternalStepSize" in line
    assert "mightReturnEarlyFromDoStep" not in line  # false claims nothing
