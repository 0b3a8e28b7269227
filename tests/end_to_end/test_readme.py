"""What the documentation shows is what happens."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from shorter_validations import shorten_validations

import mb2fmu
from mb2fmu import pipeline

ROOT = Path(__file__).parents[2]
PAGES = sorted([ROOT / "README.md", *ROOT.glob("docs/**/*.md")])


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", page.read_text(), flags=re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize(
    "page", [ROOT / "README.md", ROOT / "docs" / "reference" / "models.md"], ids=lambda page: page.name
)
def test_the_model_shown_works(page: Path, tmp_path: Path) -> None:
    """It is derived and built, and moves as the textbook's pendulum."""
    path = tmp_path / "pendulum.py"
    path.write_text(next(block for block in blocks(page, "python") if "-> Model" in block))
    assert len(pipeline.build(pipeline.derive(path)).core) > 0
    f = mb2fmu.rhs(path)
    np.testing.assert_allclose(f(0.0, [0.3, 0.7], [0.2]), [0.7, -9.81 / 0.5 * np.sin(0.3) + 0.2 / 0.25], rtol=1e-13)


@pytest.mark.repeats  # by day its motion, in test_pages_as_typed
def test_the_model_shown_is_proven_for_its_input(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its default experiment leaves the torque at 0; the validation does not."""
    shorten_validations(monkeypatch, perturb=True)
    path = tmp_path / "pendulum.py"
    path.write_text(next(block for block in blocks(ROOT / "README.md", "python") if "-> Model" in block))
    result = pipeline.run(path, tmp_path).validated.result
    assert result.passed
    assert [(item.role, item.name) for item in result.not_exercised] == []
    assert ("input", "torque") in {(item.role, item.name) for item in result.exercised_quantities}


def test_the_commands_shown_are_there() -> None:
    """Every `mb2fmu …` of the README is a command, every `scripts/…` a script that can be run."""
    from mb2fmu.cli import commands

    text = (ROOT / "README.md").read_text()
    shown = set(re.findall(r"^mb2fmu (\w+)", text, flags=re.MULTILINE))
    assert shown == set(commands.commands)
    for script in set(re.findall(r"scripts/\w+", text)):
        assert (ROOT / script).stat().st_mode & 0o111, script


MOST_WORDS, MOST_README_LINES = 2500, 120
GENERATED = {"audit_rules.md"}
"""Pages that code writes."""


def test_pages_are_of_a_length_that_is_read() -> None:
    counts = {
        str(page.relative_to(ROOT)): len(page.read_text().split()) for page in PAGES if page.name not in GENERATED
    }
    assert {name: count for name, count in counts.items() if count > MOST_WORDS} == {}
    assert len((ROOT / "README.md").read_text().splitlines()) <= MOST_README_LINES


def test_the_pipeline_page_shows_what_is_there() -> None:
    """Its Python of the stages runs, with the results that its comments promise."""
    block = next(
        block for block in blocks(ROOT / "docs" / "explanation" / "pipeline.md", "python") if "pipeline.derive" in block
    )
    names: dict[str, object] = {}
    exec(block.replace('"models/', f'"{ROOT}/models/'), names)
    derivation = names["derivation"]
    assert isinstance(derivation, pipeline.DerivationResult)
    assert derivation.equations.dynamics.mass_matrix.shape == (2, 2)
    assert derivation.program.entries["rhs"].labels == ("q1", "q2", "u1", "u2")
