"""Models in an SDF model move as their links, joints and frames written into the outer one by hand."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from unit.robots.sdf_texts import ARM as EVERYTHING
from unit.robots.test_robot_equations import worst_of

from mb2fmu import pipeline
from mb2fmu.errors import ModelError
from mb2fmu.robots.file_formats.sdf_import import read_sdf
from mb2fmu.robots.robot_loading import read_included_robot_file
from mb2fmu.validation.independent_import.robot_declaration_check import compare_joint_declarations_with_file

FILE = '<sdf version="1.9"><model name="cell">\n{}\n</model></sdf>'
INERTIAL = "<inertial><pose>0.1 0.02 0.05 0.1 0.2 0.3</pose><mass>{}</mass></inertial>"
CART = f"""<link name="cart"><pose>0 0 0.3 0 0.2 0</pose>{INERTIAL.format(3)}</link>
<joint name="rail" type="prismatic"><parent>world</parent><child>cart</child><axis><xyz>1 0 0</xyz></axis></joint>
<frame name="mount" attached_to="cart"><pose>0.1 0 0.2 0.3 0 0.1</pose></frame>"""
ARM = f"""<frame name="tool" attached_to="tip"><pose>0 0 0.1 0 0.4 0</pose></frame>
<link name="root">{INERTIAL.format(1)}</link>
<link name="tip"><pose>0 0.1 0.4 0.2 0 0.3</pose>{INERTIAL.format(0.5)}</link>
<link name="finger"><pose relative_to="tool">0 0 0.2 0 0 0</pose>{INERTIAL.format(0.2)}</link>
<joint name="elbow" type="revolute"><parent>root</parent><child>tip</child>
<axis><xyz expressed_in="__model__">0 0.6 0.8</xyz><dynamics><damping>0.3</damping></dynamics></axis></joint>
<joint name="grip" type="revolute"><pose relative_to="tool"/><parent>tool</parent><child>finger</child>
<axis><xyz>1 0 0</xyz><use_parent_model_frame>1</use_parent_model_frame></axis></joint>"""
POSE = '<pose relative_to="mount">0.2 0.1 0 0.1 0.5 0</pose>'
SHOULDER = """<joint name="shoulder" type="revolute"><parent>mount</parent><child>arm</child>
<axis><xyz expressed_in="arm">0 1 0</xyz></axis></joint>"""
NESTED = f'<model name="arm" canonical_link="root">{POSE}{ARM}</model>'
# By hand: the arm's frame is explicit, and every name says whose it is.
BY_HAND = f"""<frame name="arm" attached_to="arm_root">{POSE}</frame>
<frame name="arm_tool" attached_to="arm_tip"><pose>0 0 0.1 0 0.4 0</pose></frame>
<link name="arm_root"><pose relative_to="arm"/>{INERTIAL.format(1)}</link>
<link name="arm_tip"><pose relative_to="arm">0 0.1 0.4 0.2 0 0.3</pose>{INERTIAL.format(0.5)}</link>
<link name="arm_finger"><pose relative_to="arm_tool">0 0 0.2 0 0 0</pose>{INERTIAL.format(0.2)}</link>
<joint name="arm_elbow" type="revolute"><parent>arm_root</parent><child>arm_tip</child>
<axis><xyz expressed_in="arm">0 0.6 0.8</xyz><dynamics><damping>0.3</damping></dynamics></axis></joint>
<joint name="arm_grip" type="revolute"><pose relative_to="arm_tool"/><parent>arm_tool</parent><child>arm_finger</child>
<axis><xyz expressed_in="arm">1 0 0</xyz></axis></joint>"""


def write(path: Path, *parts: str) -> Path:
    """Write a file with one model."""
    path.write_text(FILE.format("\n".join(parts)))
    return path


def accelerations_of(path: Path) -> np.ndarray:
    """u' of the four joints, sorted, at one state with a value for each that its place in the file decides."""
    derivation = pipeline.derive(path, method="recursive-composite")
    f = pipeline.right_hand_side(derivation)
    values = {"rail": 0.1, "shoulder": 0.2, "elbow": 0.3, "grip": 0.4}
    names = [re.sub(r"arm_|\.(position|angle)", "", q.name) for q in derivation.checked.coordinates]
    state = [values[name] for name in names] + [2.0 * values[name] for name in names]
    rates = f(0.0, state)[len(names) :]
    return np.array([rate for _, rate in sorted(zip(names, rates, strict=True))])


def test_a_model_in_a_model_moves_as_written_by_hand(tmp_path: Path) -> None:
    nested = write(tmp_path / "nested.sdf", CART, NESTED, SHOULDER)
    by_hand = write(tmp_path / "by_hand.sdf", CART, BY_HAND, SHOULDER)
    assert accelerations_of(nested) == pytest.approx(accelerations_of(by_hand), rel=1e-12)
    derivation = pipeline.derive(nested, method="recursive-composite")
    compared = list(compare_joint_declarations_with_file(derivation.checked))
    assert ("joint arm::elbow: damping", True) in compared
    assert all(is_equal for _, is_equal in compared)
    assert worst_of(derivation) < 1.0
    for given, instead in (
        ("0.1 0.5 0</pose>", "0.1 0.50001 0</pose>"),
        ('"__model__"', '"root"'),
        (' relative_to="mount"', ""),
    ):
        write(nested, CART, NESTED.replace(given, instead), SHOULDER)
        assert (worst_of(derivation) > 100) == (given != '"__model__"')  # the root has the model's own axes


@pytest.mark.parametrize("version", ["1.4", "1.9"])
def test_all_that_moves_a_model_moves_it_inside_two_others(tmp_path: Path, version: str) -> None:
    """Joints to the world, of all kinds, a mimic, axes along the model before version 1.5, frames in frames."""
    text = (EVERYTHING if version == "1.9" else EVERYTHING.replace('expressed_in="l1"', "")).replace(
        '"1.9"', f'"{version}"'
    )
    nested = text.replace("<model", '<model name="o"><model name="p"><model', 1).replace(
        "</world>", "</model></model></world>"
    )
    rates = []
    for name, content in (("alone", text), ("nested", nested)):
        path = tmp_path / f"{name}.sdf"
        path.write_text(content)
        derivation = pipeline.derive(path, method="recursive-composite")
        f = pipeline.right_hand_side(derivation)
        rates.append(f(0.0, np.array(f.x0) + 0.1 * np.sin(np.arange(len(f.x0)))))
        assert worst_of(derivation) < 1.0
    assert rates[1] == pytest.approx(rates[0], rel=1e-11, abs=1e-11)


@pytest.mark.parametrize("merge", ["", ' merge="true"'])
def test_included_models_are_nested_or_merged(tmp_path: Path, merge: str) -> None:
    folder = tmp_path / "limb"
    folder.mkdir()
    (folder / "model.sdf").write_text(
        f'<sdf version="1.9"><model name="limb" canonical_link="root">{ARM}</model></sdf>'
    )
    include = f"<include{merge}><uri>limb</uri><name>arm</name>{POSE}</include>"
    shoulder = SHOULDER.replace(">arm<", ">root<").replace('"arm"', '"root"') if merge else SHOULDER
    path = write(tmp_path / "a.sdf", CART, include, shoulder)
    by_hand = write(tmp_path / "by_hand.sdf", CART, BY_HAND, SHOULDER)
    assert accelerations_of(path) == pytest.approx(accelerations_of(by_hand), rel=1e-12)
    derivation = pipeline.derive(path, method="recursive-composite")
    names = {joint.name for joint in derivation.checked.mechanics.description.joints}
    assert ("elbow" if merge else "arm::elbow") in names
    assert worst_of(derivation) < 1.0


def test_models_stand_in_models_of_models(tmp_path: Path) -> None:
    """The middle model has no link of its own: its frame is attached to the canonical link inside, not to the first."""
    root = f'<link name="root">{INERTIAL.format(1)}</link>'
    inner = NESTED.replace(' relative_to="mount"', "").replace(root, "").replace("</model>", f"{root}</model>")
    middle = f'<model name="middle"><pose>0 0 0.1 0.2 0 0</pose>{inner}</model>'
    shoulder = SHOULDER.replace(">arm<", ">middle<").replace('"arm"', '"middle::arm"')
    path = write(tmp_path / "a.sdf", CART, middle, shoulder)
    derivation = pipeline.derive(path, method="recursive-composite")
    links = {link.name for link in derivation.checked.mechanics.description.links}
    assert {"cart", "middle", "middle::arm", "middle::arm::tool"} <= links
    assert worst_of(derivation) < 1.0
    path.write_text(path.read_text().replace("0 0 0.1 0.2 0 0", "0 0 0.1 0.2001 0 0"))
    assert worst_of(derivation) > 100


def test_a_placement_frame_of_an_inner_model_has_its_pose(tmp_path: Path) -> None:
    """The tool is put where it is anyway, by hand from its poses in the arm: that moves nothing."""
    flat = ARM.replace("0 0.1 0.4 0.2 0 0.3", "0 0.1 0.4 0 0.3 0")  # the tip: turned about y only, as the tool in it
    turned = '<pose relative_to="mount">{} {} {} 0 0.7 0</pose>'
    x, z = 0.1 * np.sin(0.3), 0.4 + 0.1 * np.cos(0.3)
    placed = f'<model name="arm" canonical_link="root" placement_frame="tool">{turned.format(x, 0.1, z)}{flat}</model>'
    plain = f'<model name="arm" canonical_link="root"><pose relative_to="mount"/>{flat}</model>'
    path, other = write(tmp_path / "a.sdf", CART, placed, SHOULDER), write(tmp_path / "b.sdf", CART, plain, SHOULDER)
    assert accelerations_of(path) == pytest.approx(accelerations_of(other), rel=1e-11)
    derivation = pipeline.derive(path, method="recursive-composite")
    assert worst_of(derivation) < 1.0
    write(path, CART, placed.replace('frame="tool"', 'frame="tip"'), SHOULDER)
    assert worst_of(derivation) > 100


def test_placement_frames_stand_in_each_other(tmp_path: Path) -> None:
    inner = NESTED.replace(' relative_to="mount"', "")
    inner = inner.replace('name="arm"', 'name="arm" placement_frame="finger"')
    middle = f'<model name="middle" placement_frame="arm::tool">{POSE}{inner}</model>'
    shoulder = SHOULDER.replace(">arm<", ">middle<").replace('"arm"', '"middle::arm"')
    derivation = pipeline.derive(write(tmp_path / "a.sdf", CART, middle, shoulder), method="recursive-composite")
    assert worst_of(derivation) < 1.0
    write(tmp_path / "a.sdf", CART, middle.replace('"arm::tool"', '"arm::grip"'), shoulder)
    assert worst_of(derivation) < 1.0  # the joint stands in the tool's frame
    write(tmp_path / "a.sdf", CART, middle.replace('"arm::tool"', '"arm::tip"'), shoulder)
    assert worst_of(derivation) > 100


@pytest.mark.parametrize(
    ("inner", "word"),
    [
        ('<model name="arm" placement_frame="no">', "placement_frame 'arm::no' is no frame"),
        ('<model name="arm" placement_frame="mount">', "placement_frame 'arm::mount' is no frame"),
        ('<model name="arm"><static>1</static>', "arm, a model in a model, is static"),
        ('<model name="">', "name of <model> is empty"),
        ('<model name="cart">', "2 links, joints or frames are called cart"),
        ('<model name="arm"><frame name="f" attached_to="no"/>', "'arm::no' is no link"),
        ('<model name="arm"><lnk name="f"/>', "did you mean <link>?"),
    ],
)
def test_a_fault_in_an_inner_model_has_its_line(tmp_path: Path, inner: str, word: str) -> None:
    path = write(tmp_path / "a.sdf", CART, NESTED.replace('<model name="arm" canonical_link="root">', inner), SHOULDER)
    with pytest.raises(ModelError) as caught:
        read_sdf(path.read_bytes(), path, read_included_robot_file)
    found = [f"{fault.where}: {fault.what} {fault.remedy}" for fault in caught.value.faults]
    assert any(word in each and "a.sdf:" in each for each in found)
