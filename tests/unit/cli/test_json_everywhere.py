"""``--json``: every command has it, with one meaning: into a file beside the text, or on stdout instead of it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from mb2fmu.cli import commands


def call(*arguments: object) -> Result:
    return CliRunner().invoke(commands, [str(argument) for argument in arguments], prog_name="mb2fmu")


@pytest.mark.parametrize("command", sorted(commands.commands.keys() - {"watch", "mcp"}))  # they have no end, no result
def test_every_command_has_it_with_the_same_words(command: str) -> None:
    (option,) = [each for each in commands.commands[command].params if "--json" in each.opts]
    (known,) = [each for each in commands.commands["run"].params if "--json" in each.opts]
    assert option.name == known.name
    assert option.help == known.help  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("words", "key"),
    [
        (["list"], "models"),
        (["equations", "simple_pendulum"], "sections"),
        (["equations", "simple_pendulum", "--format", "latex"], "text"),
        pytest.param(["equations", "simple_pendulum", "--show", "momenta"], "sections", marks=pytest.mark.repeats),
        (["animate", "simple_pendulum", "--svg", "still.svg"], "files"),
    ],
    ids=lambda words: "-".join(words[:1] + words[2:3]) if isinstance(words, list) else words,
)
def test_into_a_file_beside_the_text_or_alone_on_stdout(
    words: list[str], key: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    plain, alone = call(*words), call(*words, "--json")
    beside = call(*words, "--json", "facts/all.json")
    assert [done.exit_code for done in (plain, alone, beside)] == [0, 0, 0], (alone.output, beside.output)
    facts = json.loads(alone.stdout)
    assert facts[key]
    assert beside.stdout == plain.stdout
    assert json.loads((tmp_path / "facts" / "all.json").read_text()) == facts


def test_equations_are_the_ones_of_the_text() -> None:
    facts = json.loads(call("equations", "simple_pendulum", "--json").stdout)
    text = call("equations", "simple_pendulum").stdout
    rows = [f"  {left} = {right}" for section in facts["sections"] for left, right in section["rows"]]
    assert rows
    assert set(rows) <= set(text.splitlines())
    assert facts["states"] == ["theta", "omega"]


def test_what_was_written_is_there(tmp_path: Path) -> None:
    made = json.loads(call("new", "crane", "-o", tmp_path, "--json").stdout)
    assert Path(made["model"]) == tmp_path / "crane.py"
    assert (tmp_path / "crane.py").is_file()
    code = json.loads(call("equations", "simple_pendulum", "--format", "c", "-o", tmp_path / "c", "--json").stdout)
    on_disk = {path for path in (tmp_path / "c").rglob("*") if path.is_file()}
    assert {Path(path) for path in code["files"]} == on_disk
    drawn = json.loads(call("equations", "simple_pendulum", "--graph", tmp_path / "g.svg", "--json").stdout)
    assert Path(drawn["graph"]).read_text().startswith("<svg")
