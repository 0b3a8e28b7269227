"""SDF files that include models: they move as the same model written in place, and a wrong pose is noticed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from unit.robots.sdf_texts import ARM
from unit.robots.test_robot_equations import worst_of

from mb2fmu import pipeline
from mb2fmu.errors import ModelError, ValidationError
from mb2fmu.robots.file_formats.sdf_import import read_sdf
from mb2fmu.robots.robot_loading import read_included_robot_file

OWN_POSE = "<pose>1 2 3 0.1 0.2 0.3</pose>"
OTHER_POSE = "<pose>0.3 0.1 -0.2 0.5 -0.4 0.2</pose>"
MODEL = ARM[ARM.index("<model") : ARM.index("</world>")].replace(
    '<joint name="hold" type="fixed"><parent>world</parent><child>base</child></joint>', ""
)  # nothing holds it in the world: its pose turns its weight
WORLD = '<sdf version="1.9"><world name="w"><gravity>0.5 0 -9</gravity>{}</world></sdf>'
CONFIG = '<model><name>arm</name><sdf version="1.4">old.sdf</sdf><sdf version="1.9">arm.sdf</sdf></model>'


def write_model(folder: Path, text: str = MODEL, version: str = "1.9") -> None:
    """Write the folder of a Gazebo model."""
    folder.mkdir(parents=True)
    (folder / "model.config").write_text(CONFIG)
    (folder / "arm.sdf").write_text(f'<sdf version="{version}">{text}</sdf>')
    (folder / "old.sdf").write_text("<sdf/>")


def write_world(path: Path, *include: str) -> Path:
    """Write a world with what an ``<include>`` has in it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(WORLD.format(f"<include>{''.join(include)}</include>"))
    return path


def rates_of(path: Path) -> list[float]:
    """x' at one state that is no rest."""
    f = pipeline.right_hand_side(pipeline.derive(path, method="recursive-composite"))
    state = np.array(f.x0) + 0.1 * np.sin(np.arange(len(f.x0)))
    return list(f(0.0, state))


def faults_of(path: Path) -> str:
    """What is wrong, in one line."""
    with pytest.raises(ModelError) as caught:
        read_sdf(path.read_bytes(), path, read_included_robot_file)
    return " | ".join(f"{fault.where}: {fault.what}" for fault in caught.value.faults)


def test_an_included_model_moves_as_the_one_written_in_place(tmp_path: Path) -> None:
    write_model(tmp_path / "models" / "arm")
    included = write_world(tmp_path / "a.sdf", "<uri>models/arm</uri>", "<name>b</name>", OTHER_POSE)
    in_place = tmp_path / "b.sdf"
    in_place.write_text(WORLD.format(MODEL.replace(OWN_POSE, OTHER_POSE)))
    derivation = pipeline.derive(included, method="recursive-composite")
    assert derivation.checked.mechanics.description.name == "b"
    assert worst_of(derivation) < 1.0
    assert rates_of(included) == rates_of(in_place)
    write_world(included, "<uri>models/arm</uri>", OTHER_POSE.replace("-0.4", "-0.40001"))
    assert worst_of(derivation) > 100  # the second reading has another pose than the first had


def test_a_placement_frame_has_the_pose(tmp_path: Path) -> None:
    """Gravity in the base's axes, by hand from the pose of the foot."""
    foot = '<frame name="foot"><pose>0.2 0 0 0 0.5 0</pose></frame>'
    write_model(tmp_path / "arm", MODEL.replace(OWN_POSE, OWN_POSE + foot))
    frame = "<placement_frame>foot</placement_frame>"
    included = write_world(tmp_path / "a.sdf", "<uri>model://arm</uri>", "<pose>0 0 1 0.3 0 0</pose>", frame)
    derivation = pipeline.derive(included, method="recursive-composite")
    gravity = np.array(derivation.checked.mechanics.description.gravity)
    turn = np.array([[1, 0, 0], [0, np.cos(0.3), -np.sin(0.3)], [0, np.sin(0.3), np.cos(0.3)]])
    back = np.array([[np.cos(0.5), 0, -np.sin(0.5)], [0, 1, 0], [np.sin(0.5), 0, np.cos(0.5)]])  # foot's axes in base's
    assert gravity == pytest.approx(back.T @ turn.T @ [0.5, 0, -9], abs=1e-12)
    assert worst_of(derivation) < 1.0
    write_world(included, "<uri>model://arm</uri>", "<pose>0 0 1 0.3 0 0</pose>")
    assert worst_of(derivation) > 100


def test_axes_are_those_of_the_included_files_version(tmp_path: Path) -> None:
    write_model(tmp_path / "arm", MODEL.replace('expressed_in="l1"', ""), version="1.4")
    included = write_world(tmp_path / "a.sdf", "<uri>arm</uri>")
    in_place = tmp_path / "b.sdf"
    in_place.write_text(WORLD.format(MODEL.replace('expressed_in="l1"', "")).replace("1.9", "1.4"))
    assert rates_of(included) == rates_of(in_place)
    assert worst_of(pipeline.derive(included, method="recursive-composite")) < 1.0
    in_place.write_text(in_place.read_text().replace("1.4", "1.9"))
    assert rates_of(included) != rates_of(in_place)


@pytest.mark.parametrize("variable", ["GZ_SIM_RESOURCE_PATH", "SDF_PATH"])
def test_models_are_found_where_gazebo_finds_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    mesh = '<visual name="m"><geometry><mesh><uri>part.stl</uri></mesh></geometry></visual>'
    write_model(tmp_path / "far" / "arm", MODEL.replace("</inertial>", f"</inertial>{mesh}", 1))
    write_model(tmp_path / "far" / "ground", '<model name="g"><static>1</static><link name="l"/></model>')
    (tmp_path / "far" / "sun").mkdir()
    (tmp_path / "far" / "sun" / "model.sdf").write_text('<sdf version="1.9"><light name="sun"/></sdf>')
    path = write_world(tmp_path / "near" / "a.sdf", "<uri>model://arm</uri>")
    others = "".join(f"<include><uri>model://{name}</uri></include>" for name in ("ground", "sun"))
    path.write_text(path.read_text().replace("</world>", f"{others}</world>"))
    assert "includes model://arm, which is not there" in faults_of(path)
    monkeypatch.setenv(variable, str(tmp_path / "far"))
    derivation = pipeline.derive(path, method="recursive-composite")
    assert worst_of(derivation) < 1.0
    shapes = derivation.checked.mechanics.description.links[0].shapes
    assert [shape.mesh for shape in shapes if shape.mesh] == ["package://arm/part.stl"]
    notes = " ".join(derivation.checked.mechanics.notes)
    assert "model g is static and left out" in notes
    assert "model://sun is left out" in notes


@pytest.mark.parametrize(
    "config",
    [
        '<model><sdf version="1.9"> arm.sdf </sdf><sdf version="1.13">old.sdf</sdf></model>',
        '<model><sdf>old.sdf</sdf><sdf version="new">old.sdf</sdf><sdf version="1.10">arm.sdf</sdf></model>',
        "<model/>",
        None,
    ],
)
def test_both_imports_choose_the_same_file_of_a_folder(tmp_path: Path, config: str | None) -> None:
    folder = tmp_path / "arm"
    write_model(folder)
    if config is None or "arm.sdf" not in config:
        (folder / "arm.sdf").rename(folder / "model.sdf")
    (folder / "model.config").write_text(config) if config else (folder / "model.config").unlink()
    derivation = pipeline.derive(
        write_world(folder / "world.sdf", "<uri>model://arm</uri>"), method="recursive-composite"
    )  # in the model's folder
    assert worst_of(derivation) < 1.0
    for file in folder.glob("*.sdf"):
        file.unlink() if file.name != "world.sdf" else None
    with pytest.raises(ValidationError, match="model://arm"):
        worst_of(derivation)


@pytest.mark.parametrize(
    ("include", "word"),
    [
        ("<uri>https://fuel.gazebosim.org/arm</uri>", "nothing is fetched"),
        ("<uri>../arm</uri>", "leaves its folder"),
        ("<uri>model://</uri>", "names no model"),
        (f"<uri>{300 * 'a'}</uri>", "which is not there"),
        ("<uri>arm/old.sdf</uri>", "arm/old.sdf has 0 models"),
        ("<name>b</name>", "has no <uri>"),
        ("<uri>arm</uri><params/>", "<params> of <include>"),
        ("<uri>arm</uri><pse>0</pse>", "did you mean <pose>?"),
        ("<uri>arm</uri><placement_frame>foot</placement_frame>", "has no <pose>"),
        ("<uri>arm</uri><pose/><placement_frame>no</placement_frame>", "'no' is no link, joint or frame"),
        ("<uri>arm</uri><pose relative_to='a'/>", "relative to a"),
        ("<uri>two</uri>", "two has 2 models"),
        ("<uri>bad</uri>", "arm.sdf:1: it is no XML"),
        ("<uri>faulty</uri>", "faulty/arm.sdf:1: joint j1 is of the type 'screw'"),
        ("<uri>itself</uri>", "includes itself"),
        ("<uri>arm.urdf</uri>", "arm.urdf:1: its root element is <robot>"),
        ("<uri>nested</uri>", "arm/arm.sdf:1: robot, a model in a model, is static"),
    ],
)
def test_a_fault_of_an_include_has_its_line(tmp_path: Path, include: str, word: str) -> None:
    write_model(tmp_path / "arm")
    write_model(tmp_path / "two", MODEL + MODEL)
    write_model(tmp_path / "bad", "<model>")
    write_model(tmp_path / "faulty", MODEL.replace("\n", " ").replace("revolute", "screw"))
    write_model(tmp_path / "itself", MODEL.replace(OWN_POSE, "<include><uri>model://itself</uri></include>"))
    write_model(
        tmp_path / "nested", MODEL.replace(OWN_POSE, "<include><uri>model://arm</uri><static>1</static></include>")
    )
    (tmp_path / "arm.urdf").write_text('<robot name="arm"/>')
    path = write_world(tmp_path / "a.sdf", include)
    with pytest.raises(ModelError) as caught:
        read_sdf(path.read_bytes(), path, read_included_robot_file)
    found = [f"{fault.where}: {fault.what} {fault.remedy}" for fault in caught.value.faults]
    assert word in " | ".join(found)
    assert not any("the file has 0 models" in each for each in found)  # that only follows
    assert all(".sdf:" in each or each.startswith("arm.urdf:") for each in found)
