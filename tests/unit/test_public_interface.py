"""``import mb2fmu``: its names, its examples, its types, and the results that its functions return."""

from __future__ import annotations

import doctest
import inspect
import runpy
import sys
import tomllib
from pathlib import Path

import pytest
from representatives import marked
from shorter_validations import shorten_validations

import mb2fmu
from mb2fmu.model import elements

ROOT = Path(__file__).parents[2]
MAX_NAMES = 40  # beside elements, of which there may be any number
TYPED = {"adopt", "audit_fmu", "couple", "run", "validate"}
"""Functions whose examples take a second and more: by day README has their commands typed."""
FUNCTIONS = [name for name in mb2fmu.__all__ if inspect.isroutine(getattr(mb2fmu, name))]


def test_names_are_few_and_there() -> None:
    assert len({*mb2fmu.__all__} - {*elements.__all__}) <= MAX_NAMES
    assert sorted(mb2fmu.__all__) == sorted(set(mb2fmu.__all__))
    for name in mb2fmu.__all__:
        assert name in dir(mb2fmu)  # what tab completion offers
        assert getattr(mb2fmu, name).__doc__


def test_each_command_has_a_function() -> None:
    from mb2fmu.cli import commands

    named = {"audit": "audit_fmu", "system": "couple", "equations": "quantities"}
    named |= dict.fromkeys(["new", "list", "watch", "mcp"], "")  # these are for a terminal or an agent
    for command in commands.commands:
        function = named.get(command, command)
        assert not function or function in FUNCTIONS


def run_examples(name: str, value: object, monkeypatch: pytest.MonkeyPatch) -> doctest.TestResults:
    monkeypatch.chdir(ROOT)
    shorten_validations(monkeypatch)
    results = doctest.TestResults(0, 0)
    for test in doctest.DocTestFinder(recurse=False).find(value, name, globs={}):
        assert "+SKIP" not in (test.docstring or "")
        results = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE).run(test)
    return results


@pytest.mark.parametrize("name", marked(FUNCTIONS, repeating=TYPED))
def test_every_function_has_an_example_that_runs(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    results = run_examples(name, getattr(mb2fmu, name), monkeypatch)
    assert results.attempted > 0
    assert results.failed == 0


def test_the_first_example_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    results = run_examples("mb2fmu", mb2fmu, monkeypatch)
    assert results.attempted > 0
    assert results.failed == 0


def test_a_typed_script_of_a_user_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its types are checked with those of the project, strictly: see ``files`` of mypy in ``pyproject.toml``."""
    script = ROOT / "tests" / "user_script.py"
    assert len(script.read_text().splitlines()) <= 50
    assert "tests/user_script.py" in tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["mypy"]["files"]
    shorten_validations(monkeypatch)
    monkeypatch.setattr(sys, "argv", [str(script), str(tmp_path)])
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(str(script), run_name="__main__")
    printed = capsys.readouterr().out
    assert ended.value.code == 0
    assert printed.startswith("<RunResult Slider: passed; ")
    assert len(printed.splitlines()) == 1


def test_the_result_of_run_is_a_line_and_its_errors_a_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shorten_validations(monkeypatch, perturb=True)
    result = mb2fmu.run("simple_pendulum", tmp_path)
    assert (result.path, result.report) == (tmp_path / "SimplePendulum.fmu", tmp_path / "SimplePendulum.html")
    assert repr(result).count("\n") == 0
    errors = result.errors
    assert [row.ratio for row in errors] == sorted((row.ratio for row in errors), reverse=True)
    assert {row.name for row in errors} == {v.name for v in result.validated.result.variables}
    assert {row.run for row in errors} >= {"CoSimulation", "ModelExchange", "CoSimulation, perturbed"}
    assert len(repr(errors).splitlines()) == len(errors) + 1
    assert list(errors.to_pandas()["ratio"]) == [row.ratio for row in errors]
