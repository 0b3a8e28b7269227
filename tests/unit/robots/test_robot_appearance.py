"""What of a robot is drawn, and which files its meshes may be."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import trimesh
from unit.robots.robot_texts import joint, link, robot

from mb2fmu import pipeline, visualization
from mb2fmu.pipeline.fmu_build import model_scene
from mb2fmu.pipeline.fmu_build.model_scene import place_and_decimate_meshes
from mb2fmu.robots.file_formats.mesh_file_search import MeshNotFoundError, find_mesh_file

TRIANGLE = b"v 0 0 0\nv 1 0 0\nv 0 2 0\nf 1 2 3\n"


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A robot's file in a package with one mesh."""
    (tmp_path / "toy" / "meshes").mkdir(parents=True)
    (tmp_path / "toy" / "urdf").mkdir()
    (tmp_path / "toy" / "meshes" / "part.obj").write_bytes(TRIANGLE)
    (tmp_path / "secret.obj").write_bytes(TRIANGLE)
    return tmp_path / "toy" / "urdf" / "toy.urdf"


def test_packages_are_found_by_name_beside_the_file_or_by_option(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mesh = place.parents[1] / "meshes" / "part.obj"
    assert find_mesh_file("package://toy/meshes/part.obj", place, {}) == mesh
    assert find_mesh_file("package://other/meshes/part.obj", place, {"other": str(place.parents[1])}) == mesh
    assert find_mesh_file(f"file://{mesh}", place, {}) == mesh
    with pytest.raises(MeshNotFoundError, match="--package other=DIR"):
        find_mesh_file("package://other/meshes/part.obj", place, {})
    monkeypatch.setenv("ROS_PACKAGE_PATH", f"/nowhere:{place.parents[2]}")
    elsewhere = Path("/somewhere/else.urdf")
    assert find_mesh_file("package://toy/meshes/part.obj", elsewhere, {}) == mesh


@pytest.mark.parametrize(
    "name",
    [
        "../../secret.obj",
        "package://toy/../secret.obj",
        "package://toy/meshes/../../secret.obj",
        "https://example.org/part.obj",
        "/etc/passwd",
        "package://toy/meshes/part.obj; rm -rf /",
        "javascript:alert(1)",
        "part.obj\x00.txt",
    ],
)
def test_names_that_leave_their_folder_are_refused(place: Path, name: str) -> None:
    with pytest.raises(MeshNotFoundError):
        find_mesh_file(name, place, {})


def visual(shape: str, rpy: str = "0 0 0") -> str:
    return f'<visual><origin xyz="0.1 0.2 0.3" rpy="{rpy}"/><geometry>{shape}</geometry></visual></link>'


def test_shapes_and_meshes_stand_where_the_file_says(place: Path) -> None:
    parts = [
        link("a").replace("</link>", visual('<cylinder radius="0.1" length="0.5"/>', "0 1.5707963267948966 0")),
        link("b").replace("</link>", visual('<mesh filename="package://toy/meshes/part.obj" scale="1 -1 2"/>')),
        link("c").replace("</link>", visual('<mesh filename="package://toy/meshes/none.stl"/>')),
        joint("j1", "revolute", "a", "b", axis="0 0 1"),
        joint("j2", "revolute", "b", "c", axis="0 0 1"),
    ]
    place.write_text(robot(*parts))
    derivation = pipeline.derive(place, method="recursive-composite")
    scenery = derivation.mechanism.appearance
    cylinder, mesh = scenery.shapes
    assert [float(c) for c in cylinder.along] == pytest.approx([1, 0, 0], abs=1e-15)  # its z axis, turned about y
    assert [float(size) for size in cylinder.sizes] == [0.5, 0.1]
    assert [float(c) for c in mesh.offset] == pytest.approx([0.1, 0.2, 0.3])
    (triangles,) = place_and_decimate_meshes(scenery.meshes)[0].values()
    assert triangles.vertices[2] == pytest.approx([0, -2, 0])
    a, b, c = triangles.vertices[triangles.faces[0].astype(int)]
    assert np.cross(b - a, c - a)[2] > 0  # mirrored, and still seen from the same side
    assert any("none.stl is not there" in note for note in derivation.checked.mechanics.notes)


def test_what_is_not_drawn_or_simplified_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ball = trimesh.creation.icosphere(subdivisions=3)
    (tmp_path / "ball.stl").write_bytes(ball.export(file_type="stl"))
    (tmp_path / "torn.stl").write_bytes(b"solid torn\nfacet")
    meshes = "".join(
        f'<visual><geometry><mesh filename="{name}"/></geometry></visual>'
        for name in ("ball.stl", "torn.stl", "gone.stl", "&lt;script>alert(1)&lt;/script>.stl")
    )
    path = tmp_path / "arm.urdf"
    arm = link("arm").replace("</link>", f"{meshes}</link>")
    path.write_text(robot(link("base"), arm, joint("j", "continuous", "base", "arm")))
    monkeypatch.setattr(model_scene, "MOST_TRIANGLES", 200)
    drawing, _ = pipeline.animate(path)
    reported = "\n".join(drawing.notes)
    assert "gone.stl is not there" in reported
    assert "torn.stl is damaged" in reported
    assert f"of their {len(ball.faces):,} triangles" in reported
    page = visualization.render_animation_page(drawing).decode()
    assert "4 notes on what is drawn" in page
    assert "<script>alert" not in page
