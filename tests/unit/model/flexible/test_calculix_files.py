"""Files that CalculiX 2.20 wrote of a steel bar, 6 elements C3D8: its own eigenfrequencies, and what is refused."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
from finite_elements import box_model

from mb2fmu import FlexibleBody
from mb2fmu.errors import ModelError
from mb2fmu.model.flexible.calculix_files import REFUSED_KEYWORDS, read_calculix_files

FOLDER = Path(__file__).parent / "calculix"
LENGTH, WIDTH, HEIGHT, DENSITY = 0.3, 0.02, 0.01, 7850.0


def calculix_frequencies() -> np.ndarray:
    """Eigenfrequencies of the bar held at its root, of the table that CalculiX wrote, in Hz."""
    rows = [line.split() for line in (FOLDER / "clamped_bar.dat").read_text().splitlines()]
    return np.array([float(row[3]) for row in rows if len(row) == 5 and row[0].isdecimal()])


@pytest.mark.usefixtures("arrays_alone")
def test_the_frequencies_are_those_that_calculix_finds():
    body = FlexibleBody.from_calculix("bar", FOLDER / "bar", interfaces=["ROOT"], modes=8)
    assert body.data.frequencies() / (2 * np.pi) == pytest.approx(calculix_frequencies()[:8], rel=1e-6)  # 7 digits


def test_the_matrices_are_those_of_bricks_that_are_assembled_here():
    model = read_calculix_files(FOLDER / "bar")
    K, M, nodes = box_model((LENGTH, WIDTH, HEIGHT), (6, 1, 1), 210e9, 0.3, DENSITY)
    order = np.argmin(np.linalg.norm(nodes[:, None] - model.nodes, axis=2), axis=1)
    rows = (3 * order[:, None] + np.arange(3)).ravel()
    for found, wanted in ((model.K, K), (model.M, M)):
        assert abs(found[rows][:, rows] - wanted).max() < 1e-12 * abs(wanted).max()


def test_mass_interfaces_and_nodes_are_those_of_the_mesh():
    body = FlexibleBody.from_calculix("bar", FOLDER / "bar", interfaces=["Root", "tip"], modes=4)
    assert body.data.total_mass == pytest.approx(DENSITY * LENGTH * WIDTH * HEIGHT, rel=1e-9)
    assert body.data.centre == pytest.approx([LENGTH / 2, 0.0, 0.0], abs=1e-9)
    assert body.data.nodes[body.find_node_number("tip")] == pytest.approx([LENGTH, 0.0, 0.0], abs=1e-12)
    assert body.frame("tip") is not body.frame()


@pytest.fixture
def job(tmp_path: Path) -> Path:
    """A copy of the files, to be changed."""
    for suffix in ("inp", "sti", "mas", "dof"):
        shutil.copy(FOLDER / f"bar.{suffix}", tmp_path)
    return tmp_path / "bar"


def test_a_model_in_millimetres_is_the_same(job):
    """Lengths · 10³, stiffness · 10⁻³, mass · 10⁻³; rows and nodes in another order change nothing."""
    lines = (job.with_suffix(".inp")).read_text().splitlines()
    nodes = [line.split(",") for line in lines[2:30]]
    scaled = [", ".join([number, *(f"{1e3 * float(x):.9g}" for x in place)]) for number, *place in nodes]
    job.with_suffix(".inp").write_text("\n".join([*lines[:2], *scaled[::-1], *lines[30:]]))
    for suffix in (".sti", ".mas"):
        rows = [line.split() for line in job.with_suffix(suffix).read_text().splitlines()]
        job.with_suffix(suffix).write_text("\n".join(f"{b} {a} {1e-3 * float(c):.14e}" for a, b, c in rows))
    model, expected = read_calculix_files(job, millimetres=True), read_calculix_files(FOLDER / "bar")
    assert model.nodes == pytest.approx(expected.nodes, abs=1e-12)
    for found, wanted in ((model.K, expected.K), (model.M, expected.M)):
        assert abs(found - wanted).max() < 1e-12 * abs(wanted).max()
    assert model.node_sets == expected.node_sets | {"ALL": model.node_sets["ALL"]}


@pytest.mark.parametrize("keyword", REFUSED_KEYWORDS)
def test_what_changes_the_meaning_of_rows_is_refused_by_name(job, keyword):
    path = job.with_suffix(".inp")
    path.write_text(path.read_text() + f"{keyword}, NSET=ROOT\n")
    with pytest.raises(ModelError, match=rf"\{keyword} is not read"):
        read_calculix_files(job)


@pytest.mark.parametrize(
    ("suffix", "old", "new", "message"),
    [
        (".dof", "28.3\n", "28.4\n", "node 28 has rows of direction 1, 2, 4"),
        (".dof", "28.", "77.", "node 77 has rows, but is not in the input file"),
        (".inp", "*NODE", "*NODEX", "node 1 has rows, but is not in the input file"),
        (".inp", "\n1, 0,", "\n1, zero,", "'1, zero, -0.01, -0.005' is no line of \\*NODE"),
        (".sti", "1 1 ", "1 ", "its lines are not row, column and value"),
        (".mas", "1 1 ", "1 900 ", "its lines are not row, column and value"),
    ],
)
def test_files_that_do_not_fit_are_refused(job, suffix, old, new, message):
    path = job.with_suffix(suffix)
    path.write_text(path.read_text().replace(old, new))
    with pytest.raises(ModelError, match=message):
        read_calculix_files(job)


def test_a_file_and_a_set_that_are_not_there_are_named(job):
    with pytest.raises(ModelError, match="the sets of the file are ALL, ROOT, TIP"):
        FlexibleBody.from_calculix("bar", job, interfaces=["FLANGE"])
    job.with_suffix(".sti").unlink()
    with pytest.raises(ModelError, match="SOLVER=MATRIXSTORAGE"):
        read_calculix_files(job)
