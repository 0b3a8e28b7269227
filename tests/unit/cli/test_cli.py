"""The command line: what it prints where, and its exit codes, in this process and in one of its own."""

from __future__ import annotations

import io
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result
from representatives import by_night
from shorter_validations import PRELUDE, shorten_validations, shorter_validations

from mb2fmu import cli, pipeline
from mb2fmu.cli import commands
from mb2fmu.cli.stage_progress_display import StageProgressDisplay
from mb2fmu.errors import Fault, ToolError
from mb2fmu.fmu.in_memory_file_tree import InMemoryFileTree
from mb2fmu.fmu.package import read_archive, write_fmu_archive
from mb2fmu.model.model_loading import load, shipped_models_folder
from mb2fmu.pipeline.derivation.pipeline_results import StageTime
from mb2fmu.validation.experiment import perturbed_experiment

SHORTER = "stop=0.5"


def call(*arguments: object) -> Result:
    return CliRunner().invoke(commands, [str(argument) for argument in arguments], prog_name="mb2fmu")


def process(
    *arguments: object, cwd: Path, started: tuple[str, str] = ("-m", "mb2fmu"), **environment: str
) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, *started, *map(str, arguments)]
    return subprocess.run(
        command, cwd=cwd, env=os.environ | environment, capture_output=True, text=True, timeout=300, check=False
    )


@pytest.fixture(scope="module")
def swing(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The model that ``new`` writes, with a short experiment."""
    folder = tmp_path_factory.mktemp("swing")
    assert call("new", "swing", "-o", folder).exit_code == 0
    path = folder / "swing.py"
    text = path.read_text()
    assert "stop=5.0" in text
    path.write_text(text.replace("stop=5.0", SHORTER))
    return path


SHORTER_PROOF = ("-c", f"{PRELUDE}\nimport mb2fmu.cli\nmb2fmu.cli.main()")


@pytest.fixture(scope="module")
def finished(swing: Path) -> Result:
    """What ``run`` said of it, to no terminal."""
    with shorter_validations():
        return call("run", swing, "-o", swing.parent / "out", "--method", "kane")


def test_run_goes_the_whole_way(finished: Result, swing: Path) -> None:
    out = swing.parent / "out"
    assert finished.exit_code == 0, finished.output
    assert finished.stderr == ""  # progress is for terminals
    assert "\x1b" not in finished.stdout  # and so are colours
    lines = finished.stdout.splitlines()
    assert "Swing passed" in lines[0]
    assert len(lines) <= 14
    assert f"FMU        {out / 'Swing.fmu'}" in lines[1]
    assert lines[-1].endswith(str(out / "Swing.html"))
    page = (out / "Swing.html").read_text()
    inside = read_archive(out / "Swing.fmu")["documentation/index.html"].decode()
    assert page.startswith("<!doctype html>")
    assert inside.startswith("<!doctype html>")
    assert "formulate" in page  # timings stand in the page beside the FMU only
    assert "formulate" not in inside


def test_run_gives_the_same_fmu_again(finished: Result, swing: Path) -> None:
    """Report included: no time, folder, or order of a set in it; in a process of its own, piped."""
    assert finished.exit_code == 0
    first = (swing.parent / "out" / "Swing.fmu").read_bytes()
    elsewhere = swing.parent / "elsewhere"
    other = {"PYTHONHASHSEED": "7", "TZ": "Asia/Tokyo"}
    words = ("run", swing, "-o", elsewhere, "--method", "kane")
    again = process(*words, cwd=swing.parent, started=SHORTER_PROOF, **other)
    assert (again.returncode, again.stderr) == (0, "")
    assert "\x1b" not in again.stdout
    assert (elsewhere / "Swing.fmu").read_bytes() == first


def test_export_describes_itself_as_json(swing: Path, tmp_path: Path) -> None:
    result = call("export", swing, "-o", tmp_path / "new" / "folder", "--method", "lagrange", "--json")
    assert result.exit_code == 0, result.stderr
    facts = json.loads(result.stdout)
    assert Path(facts["fmu"]).stat().st_size > 0
    assert (facts["model"], facts["method"], facts["states"]) == ("Swing", "lagrange", 2)


def test_nothing_exercised_ends_with_exit_code_1_unless_it_is_accepted(
    finished: Result, swing: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert finished.exit_code == 0
    monkeypatch.setattr(perturbed_experiment, "_start_experiment", lambda *_: None)
    unit, page = swing.parent / "out" / "Swing.fmu", tmp_path / "page.html"
    shorten_validations(monkeypatch, perturb=True)
    result = call("validate", unit, "--model", swing, "--report", page)
    assert (result.exit_code, "validated at the default experiment only" in result.output) == (1, True), result.output
    assert "cannot be started with other values" in " ".join(result.output.split())
    assert call("validate", "--check-report", page, unit).exit_code == 1
    assert call("validate", unit, "--model", swing, "--default-only").exit_code == 0
    assert call("validate", unit, "--default-only", "--data", "x.csv").exit_code == 2


def test_validate_judges_a_fmu_of_other_parameters_short(
    swing: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shorten_validations(monkeypatch)
    other = tmp_path / "swing.py"
    text = swing.read_text()
    assert "9.81" in text
    other.write_text(text.replace("9.81", "9.80"))
    assert call("export", other, "-o", tmp_path).exit_code == 0
    verdict, page = tmp_path / "verdict.json", tmp_path / "page.html"
    result = call("validate", tmp_path / "Swing.fmu", "--model", swing, "--json", verdict, "--report", page)
    assert result.exit_code == 1
    lines = result.stdout.splitlines()
    assert "Swing failed: " in lines[0]
    assert "times its tolerance" in lines[0]
    assert "Cause      likely: " in result.stdout
    assert len(lines) <= 30
    content = json.loads(verdict.read_text())
    assert content["passed"] is False
    assert page.read_bytes().startswith(b"<!doctype html>")
    assert call("validate", tmp_path / "Swing.fmu", "--model", swing, "--at", "g=9.80").exit_code == 0


def test_a_fmu_that_fails_to_run_is_a_failed_tool(swing: Path, tmp_path: Path) -> None:
    broken = tmp_path / "Swing.fmu"
    exported = call("export", swing, "-o", tmp_path, "--backend", "python")
    assert exported.exit_code == 0
    assert "or one that loads libpython" in exported.stdout
    tree = read_archive(broken)
    script = next(
        path for path in tree if path.startswith("resources/") and path.count("/") == 1 and path.endswith(".py")
    )
    write_fmu_archive(InMemoryFileTree({**tree.files, script: b"raise RuntimeError('broken on purpose')\n"}), broken)
    result = call("validate", broken, "--model", swing)
    assert result.exit_code == 3, result.output
    assert "Swing.fmu" in result.stderr
    assert "Traceback" not in result.stderr.split("broken on purpose")[0].splitlines()[0]


def test_equations_as_text_count_operations(swing: Path) -> None:
    result = call("equations", swing, "--method", "kane")
    assert result.exit_code == 0, result.stderr
    assert result.stdout.startswith("Swing: M u' = f by kane")
    assert "M[1" in result.stdout
    assert "Operations" in result.stdout


@pytest.mark.parametrize("method", ["kane", *by_night("tmt", "lagrange")])
def test_equations_as_python_move_as_the_model_does(swing: Path, method: str) -> None:
    """The printed NumPy code alone gives the x' of the program."""
    result = call("equations", swing, "--method", method, "--format", "python")
    assert result.exit_code == 0, result.stderr
    code: dict[str, object] = {}
    exec(result.stdout, code)
    x = np.array([0.4, -1.3])
    got = code["rhs"](0.1, x, [0.2], code["p0"])  # type: ignore[operator]
    np.testing.assert_allclose(got, pipeline.rhs(swing)(0.1, x, [0.2]), rtol=1e-13)


def test_equations_as_latex(swing: Path) -> None:
    result = call("equations", swing, "--format", "latex")
    assert result.exit_code == 0
    assert result.stdout.count(r"\begin{align*}") == result.stdout.count(r"\end{align*}") > 0


def test_who_waits_long_is_reported_for_what_in_a_pipe_too(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with StageProgressDisplay() as progress:
        progress.started("read")
        progress.finished(StageTime("read", 1.0))
        monkeypatch.setattr("mb2fmu.cli.stage_progress_display.QUIET_LOG_SECONDS", -1.0)
        progress.started("validate")
        progress.report_activity("validate", "run the FMU")
        progress.finished(StageTime("validate", 99.5))
    assert capfd.readouterr().err.splitlines() == ["validate …", "validate: run the FMU …", "validate: 99.50 s"]


def test_platforms_are_reported_in_a_pipe_too(swing: Path, tmp_path: Path) -> None:
    names = "x86_64-linux,aarch64-linux"
    for platforms, reported in ((names, names.split(",")), ("host", [])):
        result = call("export", swing, "-o", tmp_path, "--platform", platforms)
        assert result.exit_code == 0, result.stderr
        lines = [line.split(":")[0].split(" (")[0] for line in result.stderr.splitlines()]
        assert sorted(lines) == sorted(f"compile for {name}" for name in reported)


def test_list_shows_a_line_each(swing: Path) -> None:
    result = call("list", swing.parent)
    assert result.exit_code == 0
    assert result.stdout.splitlines() == [
        "swing  Swing: a rod on a damped pin with a motor. Replace the mechanics by yours, step by step."
    ]


def test_list_without_models_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    empty = call("list", tmp_path)
    assert (empty.exit_code, empty.stdout) == (0, "")
    assert "mb2fmu new NAME" in empty.stderr
    missing = call("list", "nowhere")
    assert missing.exit_code == 2
    assert "nowhere" in missing.stderr
    assert "→" in missing.stderr
    monkeypatch.chdir(tmp_path)
    assert "double_pendulum" in call("list").stdout


def test_a_name_is_a_file_here_then_a_model_of_mb2fmu(tmp_path, monkeypatch):
    """And never a folder of that name, which hid the model."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "simple_pendulum").mkdir()
    assert load("simple_pendulum").name == "SimplePendulum"
    shipped = (shipped_models_folder() / "simple_pendulum.py").read_text(encoding="utf-8")
    (tmp_path / "simple_pendulum.py").write_text(shipped.replace('"SimplePendulum"', '"Mine"'), encoding="utf-8")
    assert load("simple_pendulum").name == "Mine"


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["run", "no_such_model.py"], "no_such_model.py"),
        (["export", "{swing}", "--backend", "python", "--fmi", "3"], "FMI 2.0"),
        (["export", "{swing}", "--backend", "python", "--platform", "all"], "--platform"),
        (["export", "{swing}", "--platform", "x86_64-linux,sparc"], "sparc"),
        (["export", "{swing}", "--method", "newton"], "--method"),
        (["export", "{swing}", "--backend", "fortran"], "--backend"),
        (["run", "{swing}", "--set", "n:4"], "NAME=VALUE"),
        (["run", "{swing}", "--set", "n=4"], "no parameter n"),
        (["export", "{swing}", "-o", "{swing}/below"], "below"),
        (["validate", "{swing}", "--model", "{swing}"], "swing.py"),
        (["validate", "nowhere.fmu", "--model", "{swing}"], "nowhere.fmu"),
        (["new", "2nd"], "2nd"),
        (["new", "swing", "-o", "{folder}"], "there already"),
        (["frobnicate"], "frobnicate"),
        (["crane.py"], "mb2fmu run crane.py"),
        (["Crane.fmu"], "mb2fmu simulate Crane.fmu"),
        (["animate", "{swing}", "-o", "swing.mov"], "--webm swing.webm"),
        (["animate", "{swing}", "-o", "swing.jpg"], "--png swing.png"),
        (["validate", "nowhere.fmu"], "mb2fmu audit"),
        (["run"], "MODEL.py"),
    ],
)
def test_wrong_input_ends_with_2_and_names_it(swing: Path, arguments: list[str], expected: str) -> None:
    filled = [argument.format(swing=swing, folder=swing.parent) for argument in arguments]
    result = call(*filled)
    assert result.exit_code == 2, result.output
    assert expected in result.stderr
    assert result.stdout == ""
    assert "Traceback" not in result.stderr


def test_a_failed_tool_ends_with_3_and_shows_its_words(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def fail(*_: object, **__: object) -> None:
        raise ToolError("the importer failed:", [Fault("exit code 139", "importer --run")])

    monkeypatch.setattr(pipeline, "compare_with_data", lambda *_, **__: ())
    monkeypatch.setattr(pipeline, "validate", fail)
    result = call("validate", tmp_path / "x.fmu", "--model", tmp_path / "x.py")
    assert result.exit_code == 3
    assert result.stderr == "mb2fmu: the importer failed:\n  • importer --run: exit code 139\n"


def test_debug_shows_where(tmp_path: Path) -> None:
    missing = tmp_path / "missing.py"
    quiet, loud = (call("run", missing, *more) for more in ([], ["--debug"]))
    assert (quiet.exit_code, loud.exit_code) == (2, 2)
    assert "Traceback" not in quiet.stderr
    assert "Traceback" in loud.stderr
    assert loud.stderr.endswith(quiet.stderr)


def test_a_fault_of_ours_is_not_taken_for_a_verdict(tmp_path: Path) -> None:
    """What nothing catches ends with 70, not with 1."""
    code = "import mb2fmu.cli, mb2fmu.pipeline\nmb2fmu.pipeline.run = None\nmb2fmu.cli.main()"
    result = subprocess.run(
        [sys.executable, "-c", code, "run", "x.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert result.returncode == 70
    assert "a fault of mb2fmu" in result.stderr
    assert "Traceback" not in result.stderr


def test_interrupting_is_clean(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(pipeline, "run", interrupt)
    result = call("run", "x.py")
    assert result.exit_code == 130
    assert result.stderr == "mb2fmu: interrupted\n"


def test_interrupting_while_commands_are_imported_is_clean(monkeypatch, capsys) -> None:
    """Seen: Ctrl-C within the first 0.3 s showed a traceback of imports."""

    class Interrupting:
        @staticmethod
        def find_spec(name: str, *_: object) -> None:
            if name == "mb2fmu.cli.cli_application":
                raise KeyboardInterrupt

    monkeypatch.setattr(sys, "meta_path", [Interrupting, *sys.meta_path])
    monkeypatch.delitem(sys.modules, "mb2fmu.cli.cli_application")
    monkeypatch.delattr(cli, "cli_application")
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert (ended.value.code, capsys.readouterr().err) == (130, "mb2fmu: interrupted\n")


@pytest.mark.parametrize("command", [None, "run", "export", "validate", "equations", "new", "list"])
def test_help_needs_no_manual(command: str | None) -> None:
    result = call(*([command] if command else []), "--help")
    assert result.exit_code == 0
    assert "mb2fmu" in result.stdout
    if command not in {None, "list"}:
        assert "Example" in result.stdout


@pytest.mark.parametrize("command", sorted(commands.commands))
def test_examples_in_the_help_run_after_pip(command: str) -> None:
    """Without a copy of the repository: models by the names that come with mb2fmu, or files of the reader's."""
    lines = [line.strip() for line in call(command, "--help").output.splitlines()]
    examples = [line.split()[2:] for line in lines if line.startswith(f"mb2fmu {command} ")]
    shipped = {path.stem for path in shipped_models_folder().glob("*.py")}
    takes_model = command not in {"new", "list", "system", "study", "split", "audit"}
    for words in examples:
        assert command == "system" or not any(word.startswith(("models/", "systems/")) for word in words), words
        if takes_model and words[0].isidentifier():
            assert words[0] in shipped, words


def test_quiet_says_nothing(swing: Path) -> None:
    for command in (["equations", swing], ["equations", swing, "--show", "momenta"], ["list"], ["linearize", swing]):
        done = call(*command, "--quiet")
        assert done.exit_code == 0, done.output
        assert done.stdout == ""


def test_tables_fit_a_narrow_terminal(swing: Path, finished: Result, monkeypatch: pytest.MonkeyPatch) -> None:
    from rich.console import Console

    from mb2fmu.report.terminal_verdict_tables import format_terminal_verdict_blocks

    assert finished.exit_code == 0
    shorten_validations(monkeypatch)
    result = pipeline.validate(swing.parent / "out" / "Swing.fmu", swing).result
    for width in (60, 100):
        console = Console(width=width, record=True, file=io.StringIO())
        for block in format_terminal_verdict_blocks(result, width):
            console.print(block)
        text = console.export_text()
        assert max(map(len, text.splitlines())) <= width
        assert "pin.angle" in text
        assert ("predictable" in text) == (width == 100)


def test_options_that_pages_for_users_name_exist() -> None:
    """Those in code that begins with an option or with a command; other programs have options, too."""
    options = {"mb2fmu": set(commands.params[0].opts)}
    for name, command in commands.commands.items():
        options[name] = {"--help", *(word for each in command.params for word in (*each.opts, *each.secondary_opts))}
    some = set().union(*options.values())
    pages = [*(Path(__file__).parents[3] / "docs").rglob("*.md"), *Path(__file__).parents[3].glob("*.md")]
    wrong = []
    for page in (each for each in pages if "explanation" not in each.parts):
        text = page.read_text(encoding="utf-8")
        for command, rest in re.findall(r"mb2fmu ([a-z]+)((?: [^`|;#\n]*)?)", text):
            asked = re.findall(r"(?<![\w-])--[a-z][\w-]*", rest) if command in options else []
            wrong += [f"{page.name}: {command} {word}" for word in asked if word not in options[command]]
        alone = re.findall(r"`(--[a-z][\w-]*)", text)
        wrong += [f"{page.name}: {word}" for word in alone if word not in some]
    assert wrong == []


@pytest.mark.parametrize(("wrong", "meant"), [("--outt", "--output"), ("--out", "--output"), ("--metod", "--method")])
def test_an_option_that_is_misspelt_is_answered_with_the_nearest_alone(wrong: str, meant: str) -> None:
    result = call("run", "crane.py", wrong, "x")
    assert result.exit_code == 2
    assert f"Did you mean '{meant}'?" in result.output
