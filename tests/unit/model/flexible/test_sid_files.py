"""Files of standard input data: the body that comes out moves as the one that was written."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from flexible_bodies import free_body, pinned_body, random_arrays
from sid_text import sid_text

from mb2fmu import FlexibleBody, rhs
from mb2fmu.errors import ModelError

NODES = {"17": 0, "23": 4, "31": 11}


def written(tmp_path: Path, *, sections: bool = False, **changes) -> tuple[FlexibleBody, Path]:
    arrays = random_arrays(5, 12, 2, consistent=False, sections=sections, second=False)
    arrays.pop("rotational_inertia", None)
    body = FlexibleBody("body", **arrays)
    path = tmp_path / "body.SID_FEM"
    path.write_text(sid_text(body, NODES, **changes))
    return body, path


@pytest.mark.parametrize("axes_within_modes", [True, pytest.param(False, marks=pytest.mark.repeats)])
def test_the_body_of_a_file_moves_as_the_one_it_was_made_of(tmp_path, axes_within_modes):
    """Every inertia term acts: the frame turns about all axes, all modes move."""
    body, path = written(tmp_path, axes_within_modes=axes_within_modes)
    read = FlexibleBody.from_sid("body", path)
    rng = np.random.default_rng(7)
    f, g = rhs(free_body(body)), rhs(free_body(read))
    for _ in range(3):
        x = rng.normal(size=len(f.x0))
        x[:4] /= np.linalg.norm(x[:4])
        x[7:9] *= 0.3
        assert g(0.0, x) == pytest.approx(f(0.0, x), rel=1e-9, abs=1e-9)


def test_weight_damping_and_nodes_are_the_file_s(tmp_path):
    body, path = written(tmp_path, sections=True)
    read = FlexibleBody.from_sid("body", path)
    x = np.array([0.4, 0.05, -0.1, 1.5, 0.3, -0.2])
    assert rhs(pinned_body(read))(0.0, x) == pytest.approx(rhs(pinned_body(body))(0.0, x), rel=1e-9)
    assert read.data.damping == pytest.approx(body.data.damping, rel=1e-12)
    for name, node in NODES.items():
        number = read.interfaces[name]
        assert read.data.nodes[number] == pytest.approx(body.data.nodes[node], rel=1e-12)
        assert read.data.modes[:, number] == pytest.approx(body.data.modes[:, node], rel=1e-12)
        assert read.data.rotations[:, number] == pytest.approx(body.data.rotations[:, node], rel=1e-12)
        assert read.frame(name) is not read.frame()


@pytest.mark.usefixtures("arrays_alone")
def test_the_file_s_damping_can_be_replaced(tmp_path):
    _, path = written(tmp_path)
    assert not np.any(FlexibleBody.from_sid("body", path, damping=0.0).data.damping)


def _edit(text: str, name: str, old: str, new: str) -> str:
    """The text with the first match behind the beginning of an array replaced."""
    head, mark, tail = text.partition(f"     {name}\n")
    assert mark
    assert old in tail
    return head + mark + tail.replace(old, new, 1)


@pytest.mark.usefixtures("arrays_alone")
@pytest.mark.parametrize(
    ("name", "old", "new", "message"),
    [
        (
            "Ct",
            "      structure = 3\n",
            "      structure = 3\n      m1( 1, 1, 1) = 1.0D-3\n",
            "geometric stiffness .*Ct",
        ),
        (
            "Cr",
            "      m1( 1, 2, 1) = ",
            "      m1( 1, 1, 1) = 1.0D-1\n      m1( 1, 2, 1) = ",
            "geometric stiffness .*Cr",
        ),
        (
            "Oe",
            "      m1( 1, 1, 1) = ",
            "      m1( 1, 1, 1) = 9.0D0\n      m1( 1, 2, 2) = ",
            "geometric stiffness .*Oe",
        ),
        ("ksigma", "      structure = 0\n", "      structure = 0\n      m0( 1, 1) = 2.0D0\n", "ksigma"),
        (
            "Ke",
            "      structure = 2\n",
            "      structure = 2\n      m1( 1, 1, 1) = 2.0D0\n",
            "Ke changes with the deformation",
        ),
        ("AP", "      m0( 1, 1) = 1", "      m0( 1, 1) = -1", "turned at rest"),
        (
            "phi",
            "      structure = 3\n",
            "      structure = 3\n      m1( 1, 1, 1) = 2.0D0\n",
            "phi of node 17 has a first order",
        ),
        ("Gr", "      m0( 1, 1) = ", "      m0( 1, 1) = 1", "do not agree"),
        ("Me", "      m0( 1, 1) = ", "      m0( 4, 1) = ", "does not fit"),
        ("Oe", "      ncol = 6", "      ncol = 7", "Oe has the shape"),
        ("J", "      m0( 1, 1) = ", "      m0( 1, 1) = x", "is no number"),
    ],
)
def test_what_is_not_read_is_refused_by_name(tmp_path, name, old, new, message):
    _, path = written(tmp_path, sections=True)
    path.write_text(_edit(path.read_text(), name, old, new))
    with pytest.raises(ModelError, match=message):
        FlexibleBody.from_sid("body", path)


@pytest.mark.usefixtures("arrays_alone")
def test_a_body_that_cannot_be_is_refused(tmp_path):
    _, path = written(tmp_path)
    path.write_text(path.read_text().replace("    mass = ", "    mass = 0.01D0\n    was = "))
    with pytest.raises(ModelError, match="no body has these inertia terms together"):
        FlexibleBody.from_sid("body", path)


def test_a_file_that_is_none_is_reported(tmp_path):
    with pytest.raises(ModelError, match="cannot be read"):
        FlexibleBody.from_sid("body", tmp_path / "missing.SID_FEM")
    (tmp_path / "text.SID_FEM").write_text("nothing\n")
    with pytest.raises(ModelError, match="it lacks mass, nelastq"):
        FlexibleBody.from_sid("body", tmp_path / "text.SID_FEM")
