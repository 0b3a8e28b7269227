"""The notebooks run from their first cells to their last, by night, and show what they say."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import nbclient
import nbformat
import pytest

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.parametrize("path", sorted((DOCS / "tutorials").glob("*.ipynb")), ids=lambda path: path.stem)
def test_a_notebook_is_stored_without_results(path: Path) -> None:
    """They would grow stale."""
    assert not any(cell.get("outputs") for cell in nbformat.read(path, as_version=4).cells)


def executed(name: str, folder: Path) -> list[dict[str, str]]:
    """What a notebook shows when it is run in a folder."""
    notebook = nbformat.read(DOCS / name, as_version=4)
    nbclient.NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(folder)}}).execute()
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", ())]
    assert not any(output.get("name") == "stderr" for output in outputs)
    return [output["data"] for output in outputs if output.get("output_type") == "execute_result"]


@pytest.mark.slow
@pytest.mark.repeats
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning", "ignore::RuntimeWarning")
def test_the_tutorial_runs_and_shows_itself(tmp_path: Path) -> None:
    model, equations, motion, _, proof = executed("tutorials/tutorial.ipynb", tmp_path)
    assert "force on the trolley" in model["text/html"]
    assert equations["text/latex"].startswith("$\\displaystyle")
    assert "animation-data" in motion["text/html"]
    assert "quantities within their bounds" in proof["text/html"]
    assert "wasm-unsafe-eval" in proof["text/html"]  # the FMU runs there: sliders
    assert (tmp_path / "out" / "Crane.fmu").is_file()


@pytest.mark.slow
@pytest.mark.repeats
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning", "ignore::RuntimeWarning")
def test_the_notebook_of_a_robot_runs(tmp_path: Path) -> None:
    (tmp_path / "pictures").mkdir()
    (tmp_path / "tutorials").mkdir()
    for name in ("arm.urdf", "arm.toml"):
        shutil.copy(DOCS / "pictures" / name, tmp_path / "pictures")
    _, holding, standing, moving, motion, unit = executed("tutorials/robots.ipynb", tmp_path / "tutorials")
    assert "nan" not in holding["text/plain"]
    fallen, held = (float(word) for word in re.findall(r"([\d.e+-]+) rad/s2", standing["text/plain"]))
    assert held < 1e-9
    assert fallen > 1
    assert " J, " in moving["text/plain"]
    assert "animation-data" in motion["text/html"]
    assert unit["text/plain"].startswith("('arm.fmu'")
