"""The tutorial notebook runs from its first cell to its last, and shows what it says."""

from __future__ import annotations

from pathlib import Path

import nbclient
import nbformat
import pytest

NOTEBOOK = Path(__file__).parents[2] / "docs" / "tutorial.ipynb"


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning", "ignore::RuntimeWarning")
def test_the_tutorial_runs_and_shows_itself(tmp_path: Path) -> None:
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    assert not any(cell.get("outputs") for cell in notebook.cells)  # stored without results: they would grow stale
    nbclient.NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(tmp_path)}}).execute()
    shown = [
        output["data"]
        for cell in notebook.cells
        for output in cell.get("outputs", ())
        if output.get("output_type") == "execute_result"
    ]
    assert not any(output.get("name") == "stderr" for cell in notebook.cells for output in cell.get("outputs", ()))
    model, equations, motion, _, _, proof = shown
    assert "force on the trolley" in model["text/html"]
    assert equations["text/latex"].startswith("$\\displaystyle")
    assert "animation-data" in motion["text/html"]
    assert "quantities within their bounds" in proof["text/html"]
    assert (tmp_path / "out" / "Crane.fmu").is_file()
