"""Masses that shapes and meshes give their links: MuJoCo's, closed forms, and the independent import's."""

from __future__ import annotations

from pathlib import Path

import mujoco
import numpy as np
import pytest
import trimesh
from unit.robots.test_robot_equations import worst_of

from mb2fmu import pipeline
from mb2fmu.errors import ModelError
from mb2fmu.robots.description.robot_description import RobotDescription
from mb2fmu.robots.file_formats.mjcf_import import read_mjcf
from mb2fmu.robots.file_formats.sdf_import import read_sdf
from mb2fmu.robots.robot_loading import read_included_robot_file

_OUTLINE = np.array([[0, 0], [3, 0], [3, 1], [1, 1], [1, 2], [0, 2.0]])
VERTICES = np.vstack([np.c_[_OUTLINE, np.zeros(6)], np.c_[_OUTLINE, np.ones(6)]]) * 0.1
_CAPS = [(0, 2, 1), (0, 3, 2), (0, 4, 3), (0, 5, 4)]
FACES = np.array(
    _CAPS
    + [(a + 6, c + 6, b + 6) for a, b, c in _CAPS]
    + [(i, (i + 1) % 6, (i + 1) % 6 + 6) for i in range(6)]
    + [(i, (i + 1) % 6 + 6, i + 6) for i in range(6)]
)
"""An L of 3 × 2 with a thickness of 1, in 0.1 m: closed, not convex; its volume is 4e-3 m³."""
POSE = "0.1 0.2 -0.3 0.3 -0.4 0.5"
HINGE = '<joint name="j" type="revolute"><parent>world</parent><child>a</child><axis><xyz>0 1 0</xyz></axis></joint>'


def write_mesh(path: Path, faces: np.ndarray = FACES, vertices: np.ndarray = VERTICES) -> None:
    """Write a mesh file, its format by its name."""
    path.parent.mkdir(parents=True, exist_ok=True)
    trimesh.Trimesh(vertices, faces, process=False).export(path)


def mjcf(mesh: str, geom: str = "", joint: str = "<freejoint/>") -> str:
    """A body with a geom of the mesh l.obj."""
    return (
        f'<mujoco><asset><mesh name="l" {mesh}/></asset><worldbody><body name="b" pos="1 2 3" euler="10 20 30">{joint}'
        f'<geom type="mesh" mesh="l" pos="0.3 0.1 -0.2" euler="40 50 60" {geom}/></body></worldbody></mujoco>'
    )


def inline(faces: np.ndarray = FACES) -> str:
    """The mesh, written out."""
    numbers = (" ".join(map(repr, table.ravel().tolist())) for table in (VERTICES, faces))
    return 'vertex="{}" face="{}"'.format(*numbers)


def inertial_of(robot: RobotDescription, link: str) -> tuple[float, np.ndarray, np.ndarray]:
    """Mass, centre and inertia of a link."""
    own = next(each.inertial for each in robot.links if each.name == link)
    return own.mass, own.center, own.inertia


@pytest.mark.parametrize("rule", ["legacy", "convex", "exact", "shell"])
@pytest.mark.parametrize("more", ["", 'scale="1 -1.5 2"', 'refpos="0.3 0 0.1" refquat="1 2 3 4" scale="2 1 1"'])
@pytest.mark.parametrize("geom", ["", 'mass="3"', 'density="50"'])
def test_a_mesh_gives_its_body_the_mass_that_mujoco_gives_it(rule: str, more: str, geom: str, tmp_path: Path) -> None:
    write_mesh(tmp_path / "meshes" / "l.stl")
    path = tmp_path / "a.xml"
    text = mjcf(f'file="l.stl" inertia="{rule}" {more}', geom).replace(
        "<mujoco>", '<mujoco><compiler meshdir="meshes"/>'
    )
    path.write_text(text)
    own = mujoco.MjModel.from_xml_path(str(path))
    mass, center, inertia = inertial_of(read_mjcf(text.encode(), path, read_included_robot_file), "b")
    axes = np.zeros(9)
    mujoco.mju_quat2Mat(axes, own.body_iquat[1])
    axes = axes.reshape(3, 3)
    size = float(np.max(own.body_inertia[1]))
    assert mass == pytest.approx(own.body_mass[1], rel=1e-14)
    assert center == pytest.approx(own.body_ipos[1], abs=1e-14)
    assert np.linalg.eigvalsh(inertia)[::-1] == pytest.approx(own.body_inertia[1], rel=1e-13)
    assert inertia == pytest.approx(axes @ np.diag(own.body_inertia[1]) @ axes.T, abs=1e-7 * size)


@pytest.mark.parametrize("rule", ["legacy", "exact"])
def test_a_body_of_meshes_moves_as_in_mujoco(rule: str, tmp_path: Path) -> None:
    """MuJoCo's own principal axes of a mesh are exact to 1e-7; a mesh that is 1e-4 longer is noticed."""
    path = tmp_path / "a.xml"
    text = mjcf(f'file="l.stl" inertia="{rule}" refquat="1 2 3 4"', joint='<joint name="j" axis="1 2 3"/>')
    path.write_text(text)
    write_mesh(tmp_path / "l.stl")
    derivation = pipeline.derive(path, method="recursive-composite")
    assert worst_of(derivation) < 1.0
    write_mesh(tmp_path / "longer.stl", vertices=VERTICES * [1.0, 1.0, 1.0001])
    path.write_text(text.replace("l.stl", "longer.stl"))  # MuJoCo keeps what it read of a file by its name
    assert worst_of(derivation) > 5


def test_a_mesh_written_out_weighs_its_closed_form() -> None:
    """Two boxes, 3 × 1 × 1 and 1 × 1 × 1, in 0.1 m."""
    text = mjcf(inline() + ' inertia="exact"').replace(' pos="0.3 0.1 -0.2" euler="40 50 60"', "")
    mass, center, inertia = inertial_of(read_mjcf(text.encode(), Path("a.xml"), read_included_robot_file), "b")
    assert mass == pytest.approx(4.0)
    assert center == pytest.approx([0.125, 0.075, 0.05])
    about_y = 3 * (0.09 + 0.01) / 12 + 3 * 0.025**2 + (0.01 + 0.01) / 12 + 0.075**2
    assert inertia[1, 1] == pytest.approx(about_y)


def test_an_open_mesh_is_refused_or_noted_with_what_to_do(tmp_path: Path) -> None:
    def read(text: str) -> RobotDescription:
        return read_mjcf(text.encode(), tmp_path / "a.xml", read_included_robot_file)

    opened = inline(FACES[:-1])
    for text, word in (
        (mjcf(opened + ' inertia="exact"'), "3 edges have no neighbour"),
        (mjcf(inline(FACES[:, ::-1]) + ' inertia="exact"'), "face inward"),
        (mjcf('file="no.stl"'), "no.stl is not there"),
        (mjcf('builtin="sphere"'), "builtin"),
        (mjcf('vertex="0 0 0 1 0 0 0 1 0 1 1 0"'), "in a plane"),
    ):
        with pytest.raises(ModelError, match=word):
            read(text)
        assert read(mjcf(opened + ' inertia="exact"', joint="")).links  # it stands still: nothing depends on it
    assert any("not watertight" in note and "convex" in note for note in read(mjcf(opened)).notes)
    assert not any("watertight" in note for note in read(mjcf(inline())).notes)


def sdf(collisions: str, inertial: str = '<inertial auto="true"/>', joint: str = HINGE) -> str:
    """A model with one link on a hinge."""
    return (
        f'<sdf version="1.11"><model name="m"><link name="a">{inertial}{collisions}</link>{joint}'
        '<frame name="f" attached_to="a"><pose>0.5 0 0 0 0 1</pose></frame></model></sdf>'
    )


def collision(geometry: str, pose: str = POSE, density: str = "") -> str:
    """A collision of a link."""
    return f'<collision name="c{len(geometry)}">{density}<pose>{pose}</pose><geometry>{geometry}</geometry></collision>'


MESH = "<mesh><uri>l.stl</uri><scale>1 -1 2</scale></mesh>"
SHAPES = (
    collision("<box><size>0.1 0.2 0.3</size></box>")
    + collision("<sphere><radius>0.1</radius></sphere>", "0.2 0 0 0 0 0", "<density>2700</density>")
    + collision("<cylinder><radius>0.1</radius><length>0.3</length></cylinder>")
    + collision("<capsule><radius>0.05</radius><length>0.3</length></capsule>").replace(
        "<pose>", '<pose relative_to="f">'
    )
    + collision("<ellipsoid><radii>0.1 0.2 0.3</radii></ellipsoid>")
    + collision(MESH)
)


def read(text: str, path: Path = Path("a.sdf")) -> RobotDescription:
    """The content of an SDF file."""
    return read_sdf(text.encode(), path, read_included_robot_file)


@pytest.mark.parametrize("inertial", ['<inertial auto="true"/>', '<inertial auto="1"><mass>3</mass></inertial>'])
def test_collisions_weigh_what_the_independent_import_says(inertial: str, tmp_path: Path) -> None:
    write_mesh(tmp_path / "l.stl")
    path = tmp_path / "a.sdf"
    path.write_text(sdf(SHAPES, inertial))
    derivation = pipeline.derive(path, method="recursive-composite")
    assert worst_of(derivation) < 1.0
    write_mesh(tmp_path / "l.stl", vertices=VERTICES * [1.0, 1.0, 1.0001])
    assert worst_of(derivation) > 100  # the independent import reads the mesh again


def test_densities_and_masses_of_sdf_have_their_precedence() -> None:
    """A ball of 1 L; and two, of which the denser draws the centre to itself."""
    ball = f"<sphere><radius>{(3 / (4000 * np.pi)) ** (1 / 3)!r}</radius></sphere>"
    dense = "<density>3000</density>"
    inertial = '<inertial auto="true">{}<pose>9 9 9 0 0 0</pose></inertial>'
    two = collision(ball, "0.4 0 0 0 0 0", dense) + collision(ball + " ", "0 0 0 0 0 0")
    for collisions, own, mass, x in (
        (collision(ball), "", 1.0, 0.1),
        (collision(ball), "<density>500</density>", 0.5, 0.1),
        (collision(ball, density=dense), "<density>500</density>", 3.0, 0.1),
        (collision(ball, density=dense), "<mass>7</mass>", 7.0, 0.1),
        (two, "", 4.0, 0.3),
        (two, "<density>3000</density>", 6.0, 0.2),
        (two, "<mass>8</mass>", 8.0, 0.3),
    ):
        found = inertial_of(read(sdf(collisions, inertial.format(own))), "a")
        assert found[0] == pytest.approx(mass)
        assert found[1][0] == pytest.approx(x)


@pytest.mark.parametrize(
    ("collisions", "word"),
    [
        ("", "no <collision>"),
        (collision("<plane><normal>0 0 1</normal></plane>"), "<plane> is no solid"),
        (collision("<mesh><uri>l.stl</uri></mesh>"), "not watertight"),
        (collision("<mesh><uri>model://x/no.stl</uri></mesh>"), "--package x=DIR"),
        (collision("<sphere><radius>1</radius></sphere>", density="<density>-1</density>"), "density is -1"),
        (collision("<mesh><uri>l.stl</uri><submesh><name>a</name></submesh></mesh>"), "<submesh>"),
    ],
)
def test_a_collision_that_gives_no_mass_is_refused_where_it_moves(collisions: str, word: str, tmp_path: Path) -> None:
    write_mesh(tmp_path / "l.stl", FACES[:-1])
    path = tmp_path / "a.sdf"
    path.write_text(sdf(collisions))
    with pytest.raises(ModelError, match=word):
        pipeline.derive(path)
    assert read(sdf(collisions, joint=HINGE.replace("revolute", "fixed")), path).links


def test_packages_say_where_meshes_and_included_models_are(tmp_path: Path) -> None:
    write_mesh(tmp_path / "far" / "things" / "l.stl")
    folder = tmp_path / "far" / "arms" / "arm"
    folder.mkdir(parents=True)
    (folder / "model.config").write_text('<model><sdf version="1.11">arm.sdf</sdf></model>')
    (folder / "arm.sdf").write_text(sdf(collision("<mesh><uri>package://things/l.stl</uri></mesh>")))
    path = tmp_path / "here" / "a.sdf"
    path.parent.mkdir()
    path.write_text('<sdf version="1.11"><world name="w"><include><uri>model://arms/arm</uri></include></world></sdf>')
    packages = {"arms": "../far/arms", "things": str(tmp_path / "far" / "things")}
    with pytest.raises(ModelError, match="--package NAME=DIR"):
        pipeline.derive(path)
    derivation = pipeline.derive(path, arguments={"packages": packages}, method="recursive-composite")
    assert inertial_of(derivation.checked.mechanics.description, "a")[0] == pytest.approx(4.0)
    assert worst_of(derivation) < 1.0
