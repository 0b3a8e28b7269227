"""Recipes of docs/how_to: short, begin with a question, and every command and block of Python in them works."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from end_to_end.test_pages_as_typed import Reader, blocks, model_file, typed
from representatives import marked
from unit.robots.robot_texts import ARM

from mb2fmu import pipeline

ROOT = Path(__file__).parents[2]
RECIPES = [
    page
    for page in sorted((ROOT / "docs" / "how_to").glob("*.md"))
    if page.read_text(encoding="utf-8").splitlines()[0].endswith("?")
]
MOST_WORDS, FEWEST_RECIPES = 300, 25
MODEL_EDIT = "# in crane.py\n"
NIGHTLY = {
    "animate": "README draws a motion; pictures are written in unit/cli",
    "audit": "README has the same commands, as for those of couple_fmus, fit_parameters, formula_as_input, plot, study",
    "bending_link": "test_robots has a link that bends",
    "change_a_value": "values at the start are given in unit/cli, and in README to fit",
    "closed_loop": "treatments of constraints are chosen in unit/cli and test_explicit_loops",
    "couple_fmus": "as audit",
    "critical_speed": "critical speeds are known in unit/analysis",
    "fit_parameters": "as audit",
    "fmi_3": "README exports it, test_native_units runs it",
    "formula_as_input": "as audit",
    "joint_friction": "as joint_stop",
    "linearize": "as audit; values and tables in unit/cli/test_linearize",
    "other_languages": "README writes C, unit/targets has the languages",
    "other_platforms": "test_native_units has two platforms by one command, native/platforms has all",
    "output_expression": "as reaction_force_of_a_pin",
    "plot": "as audit",
    "robot": "as the tutorial of robots",
    "root_locus": "values are swept in unit/cli/test_linearize",
    "solver": "test_native_life chooses solvers",
    "split_a_model": "README has the same commands",
    "study": "as audit",
}
"""Recipes that take seconds, and what shows the same by day."""


@pytest.fixture(scope="module")
def crane(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the model that recipes begin from, and its FMU."""
    folder = tmp_path_factory.mktemp("recipes")
    for words in (["new", "crane", "-o", folder], ["export", folder / "crane.py", "-o", folder / "out"]):
        done = typed(["mb2fmu", *map(str, words)])
        assert done.exit_code == 0, done.output
    (folder / "arm.urdf").write_text(ARM)
    return folder


def test_there_are_enough_recipes_and_the_index_has_all() -> None:
    assert len(RECIPES) >= FEWEST_RECIPES
    index = (ROOT / "docs" / "how_to" / "index.md").read_text(encoding="utf-8")
    for page in RECIPES:
        title = page.read_text(encoding="utf-8").splitlines()[0].removeprefix("# ")
        assert f"[{title}]({page.name})" in index


@pytest.mark.parametrize("page", RECIPES, ids=lambda page: page.stem)
def test_a_recipe_is_short(page: Path) -> None:
    assert len(page.read_text(encoding="utf-8").split()) <= MOST_WORDS


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")
@pytest.mark.parametrize("page", marked(RECIPES, repeating=NIGHTLY))
def test_a_recipe_works(page: Path, crane: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import matplotlib as mpl

    mpl.use("Agg")
    folder = tmp_path / "folder"
    shutil.copytree(crane, folder)
    monkeypatch.chdir(folder)
    reader = Reader(proving=set())
    shown = blocks(page)
    for k, (language, text) in enumerate(shown):
        if language == "sh":
            for line in text.splitlines():
                reader.type(line)
        elif language == "python" and text.startswith(MODEL_EDIT):
            lines = "".join(f"    {line}\n" if line else "\n" for line in text.splitlines()[1:])
            place = "    # 4. The experiment"
            model = Path("crane.py").read_text()
            assert model.count(place) == 1
            Path("crane.py").write_text(model.replace(place, lines + place))
            before = len(pipeline.derive(crane / "crane.py").equations.outputs)
            assert len(pipeline.derive("crane.py").equations.outputs) >= before
        elif language == "python" and ("-> mb2fmu.Model" in text or "-> CoupledSystem" in text):
            Path(model_file(shown[k:])).write_text(text)
        elif language == "python":
            reader.run(text)
