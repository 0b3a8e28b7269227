"""SDF files: x' against the same robot in MuJoCo, and every fault at once with its line."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from representatives import by_night
from unit.robots.sdf_texts import ARM, twin
from unit.robots.test_robot_equations import worst_against_second_reading, worst_of

from mb2fmu import pipeline
from mb2fmu.errors import ModelError
from mb2fmu.robots.file_formats.sdf_import import read_sdf
from mb2fmu.robots.robot_loading import read_included_robot_file
from mb2fmu.validation.independent_import import independent_robot_accelerations
from mb2fmu.validation.independent_import.mujoco_equations import MujocoEquations
from mb2fmu.validation.source_checks import source_acceleration_samples

LINK = '<link name="{}"><inertial><mass>1</mass></inertial></link>'
HINGE = '<joint name="j" type="revolute"><parent>a</parent><child>b</child><axis><xyz>0 0 1</xyz></axis></joint>'
TWO = LINK.format("a") + LINK.format("b")


def faults(text: str) -> str:
    """What is wrong, in one line."""
    with pytest.raises(ModelError) as caught:
        read_sdf(text.encode(), Path("test.sdf"), read_included_robot_file)
    return " | ".join(f"{fault.where}: {fault.what}" for fault in caught.value.faults)


def model(*inside: str) -> str:
    """A file with one model, its contents a line each from line 2."""
    lines = "\n".join(inside)
    return f'<sdf version="1.9"><model name="m">\n{lines}\n</model></sdf>'


LOOSE = (
    ARM.replace('<joint name="hold" type="fixed"><parent>world</parent><child>base</child></joint>', "")
    .replace("<dynamics><damping>0.7</damping></dynamics>", "<dynamics><friction>0.2</friction></dynamics>")
    .replace('degrees="true">0.3 0 0 0 30 0', 'rotation_format="quat_xyzw">0.3 0 0 0.1 -0.7 0.1 0.7')
    .replace(
        "<axis><xyz>1 0 0</xyz></axis>",
        "<axis><xyz>1 0 0</xyz><use_parent_model_frame>1</use_parent_model_frame></axis>",
    )
)  # nothing holds it in the world; other words for poses and axes
"""The arm without its hold."""


@pytest.fixture(scope="module")
def arm(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, pipeline.DerivationResult]:
    """The arm's file, and what was derived of it."""
    file = tmp_path_factory.mktemp("arm") / "robot.sdf"
    file.write_text(ARM)
    return file, pipeline.derive(file, method="recursive-composite")


@pytest.mark.parametrize(
    ("text", "settings"),
    [
        (ARM, {}),
        (ARM, {"mimic": "free", "prescribed": ["cross_axis2"]}),
        (LOOSE, {"friction": "stick", "locked": {"cross_axis": 0.4}}),
        (LOOSE, {"base": "floating", "gravity": [1.0, 2.0, 3.0]}),
    ],
)
def test_the_second_reading_agrees(tmp_path: Path, text: str, settings: dict[str, object]) -> None:
    file = tmp_path / "robot.sdf"
    file.write_text(text)
    assert worst_against_second_reading(file, **settings) < 0.1


@pytest.mark.parametrize(
    ("given", "instead"),
    [
        ("<gravity>0.5 0 -9</gravity>", "<gravity>0.5 0.001 -9</gravity>"),
        ("0.1 0 0.3 0.2 0.3 0</pose></frame>", "0.1 0 0.3 0.2 0.30001 0</pose></frame>"),
        ('degrees="true"', 'degrees="false"'),
        ('expressed_in="l1"', ""),
        ("<xyz>0 0 -2</xyz>", "<xyz>0 0 2</xyz>"),
        ("<reference>0.1</reference>", ""),
        ("<spring_reference>0.1", "<spring_reference>0.1001"),
        ('<pose relative_to="shoulder"/>', ""),
        ("<pose>0 0 -0.1 0 0 0</pose><parent>l2", "<parent>l2"),
        ("<mass>0.5</mass>", "<mass>0.50001</mass>"),
    ],
)
def test_the_second_reading_notices_a_fault_of_the_first(
    arm: tuple[Path, pipeline.DerivationResult], given: str, instead: str
) -> None:
    """The file is changed before it is read again: as if the first reader had misread it."""
    file, derivation = arm
    assert given in ARM
    file.write_text(ARM.replace(given, instead, 1))
    assert worst_of(derivation) > 100


def test_every_element_moves_as_the_twin_does_in_mujoco(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source_acceleration_samples, "RANDOM_POINT_COUNT", 50)
    file, other = tmp_path / "robot.sdf", tmp_path / "twin.xml"
    file.write_text(ARM)
    other.write_text(twin())
    derivation = pipeline.derive(file, arguments={"outputs": "tip"}, method="recursive-composite")
    f, d = pipeline.right_hand_side(derivation), derivation.checked
    reading = MujocoEquations(other, [])
    made = independent_robot_accelerations._IndependentRobotAccelerations(d, d.mechanics, reading, ()).sample_all()
    names = [item.name for item in (*d.coordinates, *d.speeds)]
    worst = 0.0
    for sample in made.samples:
        values = sample.point.values
        x, p = [values[made.starts[n]] for n in names], [values[made.starts[q.name]] for q in d.parameters]
        rates = f(sample.point.time, x, [values[k] for k in made.inputs.values()], p)
        own = sample.rates[source_acceleration_samples.INDEPENDENT_IMPORT]
        worst = max(worst, *(abs(a - own[n]) / sample.bounds[n] for n, a in zip(names, rates, strict=True)))
    assert worst < 0.5
    assert "tip.position.x" in f.output_names


def test_without_a_joint_to_the_world_gravity_is_that_of_the_turned_root() -> None:
    text = model("<pose>0 0 0 1.5707963267948966 0 0</pose>", TWO)
    robot = read_sdf(text.replace("</model>", HINGE + "</model>").encode(), Path("test.sdf"), read_included_robot_file)
    assert robot.gravity == pytest.approx((0.0, -9.81, 0.0))  # the root's y axis points up
    assert any("stands fixed unless" in note for note in robot.notes)


@pytest.mark.parametrize(
    ("inside", "word"),
    [
        ('<joint name="j" type="screw"><parent>a</parent><child>b</child></joint>', "'screw'"),
        ('<joint name="j" type="revolute"><parent>a</parent><child>b</child></joint>', "no <axis>"),
        ('<joint name="j" type="fixed"><parent>a</parent><child>x</child></joint>', "'x'"),
        ('<joint name="j" type="fixed"><parent>a</parent></joint>', "no <child>"),
        (HINGE.replace("0 0 1", "0 0 0"), "is zero"),
        ('<link name="a"/>', "are called a"),
        ('<frame name="f"><pose relative_to="g"/></frame><frame name="g"><pose relative_to="f"/></frame>', "circle"),
        ('<frame name="f" attached_to="no"/>', "'no'"),
        ('<link name="c"><inertial><mass>nan</mass></inertial></link>', "nan"),
        ('<link name="c"><pose>0 0 0</pose></link>', "0 0 0"),
        ('<link name="c"><gravity>false</gravity></link>', "no weight"),
        ("<include><uri>model://x</uri></include>", "includes model://x, which is not there"),
        ("<static>true</static>", "static"),
        ('<lnk name="c"/>', "<lnk>"),
        ('<link name="c"><velocity_decay><linear>much</linear></velocity_decay></link>', "much"),
        ("<static>maybe</static>", "maybe"),
        (HINGE + '<joint name="k" type="fixed"><parent>a</parent><child>world</child></joint>', "k is the world"),
        (HINGE + '<joint name="k" type="fixed"><parent>b</parent><child>a</child></joint>', "circle: j → k → j"),
        (HINGE + '<joint name="k" type="fixed"><parent>b</parent><child>b</child></joint>', "k goes from b to itself"),
        (HINGE.replace("0 0 1", "0 0 1_0"), "1_0"),
    ],
)  # fmt: skip
def test_a_fault_is_reported_with_its_line(inside: str, word: str) -> None:
    found_faults = faults(model(TWO, inside))
    assert word in found_faults
    assert "test.sdf:" in found_faults
    for what, count in (("j goes", 1), ("circle", 1), ("(to ", 0), ("(behind ", 0)):  # once, in the file's own names
        assert found_faults.count(what) <= count


@pytest.mark.parametrize(
    "inside",
    [
        '<link name="a"/>',
        '<link name="a"/><link name="a"/>',
        '<frame name="b"/>',
        HINGE.replace('name="j"', 'name="a"').replace(">b<", ">c<") + '<link name="c"/>',
        HINGE.replace('name="j"', 'name="c"').replace(">b<", ">c<") + '<link name="c"/>',
    ],
)
def test_a_name_that_stands_twice_is_one_fault(inside: str) -> None:
    found_faults = faults(model(TWO, HINGE, inside))
    assert " | " not in found_faults
    assert found_faults.startswith("test.sdf:4: 2 links, joints or frames are called")


def test_a_link_without_inertial_weighs_what_sdf_says(tmp_path: Path) -> None:
    """The standard's default, 1 kg and 1 kg·m², which Drake 1.51.1 takes, too: its accelerations."""
    path = tmp_path / "robot.sdf"
    heavy = '<link name="c"><pose>0 0 2 0 0 0</pose><inertial><mass>2</mass></inertial></link>'
    hinge = (
        '<joint name="{0}" type="revolute"><parent>{1}</parent><child>{2}</child><axis><xyz>1 0 0</xyz></axis></joint>'
    )
    hinges = [hinge.format(*ends) for ends in (("x", "world", "b"), ("y", "b", "c"))]
    path.write_text(model('<link name="b"><pose>0 0 1 0 0 0</pose></link>', heavy, *hinges))
    derivation = pipeline.derive(path, method="recursive-composite")
    rates = pipeline.right_hand_side(derivation)(0.0, [0.3, 0.5, 0.1, 0.2], [0.0, 0.0])
    assert rates[2:] == pytest.approx([1.932702151565161, -1.932702151565161], rel=1e-12)
    assert any("link b has no <inertial>" in note for note in derivation.checked.mechanics.notes)
    assert worst_of(derivation) < 1.0


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        ("1.4", (5.9046581072087765, -3.3627103296665797)),
        ("1.5", (6.9474368328799185, -5.224105112951894)),
        *by_night(("1.12", (6.9474368328799185, -5.224105112951894))),
    ],
)
def test_axes_are_along_the_model_before_version_1_5(
    tmp_path: Path, version: str, expected: tuple[float, float]
) -> None:
    """Expected are Drake 1.51.1's accelerations."""
    path = tmp_path / "robot.sdf"
    first = "<xx>0.1</xx><yy>0.2</yy><zz>0.25</zz>".replace("<", "<i").replace("<i/", "</i")
    link = '<link name="{}"><pose>{}</pose><inertial><pose>{}</pose><mass>{}</mass>{}</inertial></link>'
    hinge = (
        HINGE.replace(' name="j"', ' name="{}"').replace(">a<", ">{}<").replace(">b<", ">{}<").replace("0 0 1", "{}")
    )
    text = model(
        link.format("a", "0.1 0.2 0.3 0.4 0.5 0.6", "0.1 0.02 0.3 0 0 0", 2, f"<inertia>{first}</inertia>"),
        link.format("b", "0.3 0 1 0 0.7 0", "0 0.1 0.1 0 0 0", 1, ""),
        hinge.format("x", "world", "a", "1 2 0"),
        hinge.format("y", "a", "b", "0 1 1"),
    )
    path.write_text(text.replace('"1.9"', f'"{version}"'))
    derivation = pipeline.derive(path, method="recursive-composite")
    rates = pipeline.right_hand_side(derivation)(0.0, [0.3, 0.5, 0.1, 0.2], [0.0, 0.0])
    assert rates[2:] == pytest.approx(expected, rel=1e-11)
    assert worst_of(derivation) < 1.0


def test_rotors_in_drakes_words_are_felt_at_their_joints(tmp_path: Path) -> None:
    """Expected are Drake 1.51.1's accelerations."""
    path = tmp_path / "robot.sdf"
    rotor = "<drake:rotor_inertia>{}</drake:rotor_inertia>{}</joint>"
    hinge = HINGE.replace(' name="j"', ' name="x"').replace(">a<", ">world<").replace(">b<", ">a<")
    slide = HINGE.replace(' name="j" type="revolute"', ' name="y" type="prismatic"').replace("0 0 1", "0 1 1")
    inertia = "<inertia><ixx>0.1</ixx><iyy>0.2</iyy><izz>0.25</izz></inertia>"
    text = model(
        '<link name="a"><pose>0.1 0.2 0.3 0.4 0.5 0.6</pose><inertial><pose>0.1 0.02 0.3 0 0 0</pose>'
        f"<mass>2</mass>{inertia}</inertial></link>",
        '<link name="b"><pose>0.3 0 1 0 0.7 0</pose><inertial><pose>0 0.1 0.1 0 0 0</pose></inertial></link>',
        hinge.replace("0 0 1", "1 2 0").replace(
            "</joint>", rotor.format(0.001, "<drake:gear_ratio>20</drake:gear_ratio>")
        ),
        slide.replace("</joint>", rotor.format(0.3, "")),
    )
    path.write_text(text.replace("<sdf", '<sdf xmlns:drake="http://drake.mit.edu"'))
    rates = pipeline.right_hand_side(pipeline.derive(path, method="recursive-composite"))(
        0.0, [0.3, 0.5, 0.1, 0.2], [0.0, 0.0]
    )
    assert rates[2:] == pytest.approx((4.584774662620683, -3.721667728427285), rel=1e-11)
    assert worst_against_second_reading(path) < 1.0


def test_versions_that_are_too_old_or_none_are_reported() -> None:
    text = model(TWO, HINGE)
    assert "version 1.0 of SDF" in faults(text.replace('"1.9"', '"1.0"'))
    assert 'version of <sdf> is "new"' in faults(text.replace('"1.9"', '"new"'))
    unsaid = read_sdf(text.replace(' version="1.9"', "").encode(), Path("test.sdf"), read_included_robot_file)
    assert any("does not say its version" in note for note in unsaid.notes)


def test_what_stands_still_in_a_world_is_left_out_and_reported(tmp_path: Path) -> None:
    path = tmp_path / "robot.sdf"
    ground = '<model name="ground"><static>true</static><link name="plane"/></model>'
    path.write_text(ARM.replace("<model name", f"{ground}<model name", 1))
    robot = read_sdf(path.read_bytes(), path, read_included_robot_file)
    alone = read_sdf(ARM.encode(), path, read_included_robot_file)
    assert [link.name for link in robot.links] == [link.name for link in alone.links]
    assert "model ground is static and left out: nothing touches it here" in robot.notes
    assert worst_against_second_reading(path) < 1.0


def test_what_a_world_does_to_its_models_is_refused() -> None:
    inside = model(TWO, HINGE).replace('<model name="m">', '<world name="w"><frame name="f"/><model name="m">')
    found_faults = faults(inside.replace("</sdf>", '<joint name="k" type="fixed"/></world></sdf>'))
    assert "<frame> in <world>" in found_faults
    assert "<joint> in <world>" in found_faults


def test_a_joint_that_moves_nothing_is_reported_by_its_link_in_the_file(tmp_path: Path) -> None:
    path = tmp_path / "robot.xml"
    body = '<body name="{}" pos="0 0 -1"><joint name="{}" pos="0.1 0 0" axis="1 0 0"/>{}</body>'
    bodies = body.format("arm", "a", '<geom size="0.1"/>') + body.format("flag", "b", "")
    path.write_text(f"<mujoco><worldbody>{bodies}</worldbody></mujoco>")
    with pytest.raises(ModelError, match="joint b moves link flag, which has no mass"):
        pipeline.derive(path)


@pytest.mark.parametrize("name", ["world", "__model__", "__root__"])
@pytest.mark.parametrize("kind", ["link", "frame"])
def test_a_name_that_sdf_keeps_for_itself_is_reported_with_its_remedy(kind: str, name: str) -> None:
    with pytest.raises(ModelError) as caught:
        read_sdf(model(f'<{kind} name="{name}"/>', TWO, HINGE).encode(), Path("test.sdf"), read_included_robot_file)
    fault = caught.value.faults[0]
    assert (fault.where, fault.what) == ("test.sdf:2", f"a link, joint or frame is called {name}")
    assert "rename it" in fault.remedy
    assert sum("called" in each.what for each in caught.value.faults) == 1


@pytest.mark.parametrize("joint", [HINGE.replace("revolute", "gearbox"), HINGE.replace(">a<", "><")])
def test_what_a_refused_joint_holds_is_no_second_root(joint: str) -> None:
    assert "no parent" not in faults(model(TWO, joint))


def test_all_faults_are_reported_at_once_and_several_models_are_refused() -> None:
    found_faults = faults(model(TWO, '<joint name="j" type="gearbox"/>', "<static>1</static>", '<link name="b"/>'))
    for word in ("'gearbox'", "static", "are called b"):
        assert word in found_faults
    assert "2 models" in faults('<sdf version="1.9"><model name="a"/><model name="b"/></sdf>')
    assert "root element" in faults("<robot/>")
    assert np.isfinite(read_sdf(ARM.encode(), Path("a.sdf"), read_included_robot_file).links[0].line)


def test_a_ball_has_the_damping_of_its_axis(tmp_path: Path) -> None:
    """As Drake takes it, on all three speeds; a spring has no direction there, and is refused."""
    path = tmp_path / "ball.sdf"
    path.write_text(
        ARM.replace(
            'type="ball"><pose>0 0 -0.1 0 0 0</pose>',
            'type="ball"><pose>0 0 -0.1 0 0 0</pose><axis><dynamics>'
            "<damping>0.5</damping><friction>0.2</friction></dynamics><limit><lower>-1</lower><upper>1</upper>"
            '<effort>5</effort></limit><mimic joint="hinge"/></axis>',
        )
    )
    derivation = pipeline.derive(path, method="recursive-composite")
    values = {p.name: p.value for p in derivation.checked.parameters}
    assert values["free.damping"] == 0.5
    f = pipeline.right_hand_side(derivation)
    names = [item.name for item in (*derivation.checked.coordinates, *derivation.checked.speeds)]
    turning = [names.index(f"free.angular_velocity.{axis}") for axis in "xyz"]
    x = np.array(f.x0)
    x[turning] = 1.0
    without = [0.0 if p.name == "free.damping" else p.value for p in derivation.checked.parameters]
    slower = np.array(f(0.0, x)) - np.array(f(0.0, x, None, without))
    assert np.all(slower[turning] < -0.1)
    notes = " ".join(derivation.checked.mechanics.notes)
    for word in ("range", "effort", "mimic"):
        assert f"the {word} of the ball joint free is left out" in notes
    assert "friction is left out" in notes
    path.write_text(path.read_text().replace("<friction>0.2</friction>", "<spring_stiffness>2</spring_stiffness>"))
    with pytest.raises(ModelError, match="spring_stiffness of the ball joint free is not honoured"):
        pipeline.derive(path)


def test_a_frame_attached_to_the_model_hangs_on_its_canonical_link(tmp_path: Path) -> None:
    """As one that is attached to nothing does, by the standard."""
    found = []
    for word in ("", 'attached_to="__model__"', 'attached_to="a"'):
        path = tmp_path / "robot.sdf"
        path.write_text(model(TWO, HINGE, f'<frame name="tip" {word}><pose>0.1 0.2 0.3 0.4 0 0</pose></frame>'))
        robot = pipeline.derive(path, method="recursive-composite").checked.mechanics.description
        held = next(joint for joint in robot.joints if joint.child == "tip")
        found.append((held.parent, *held.origin.position.round(12)))
    assert found[0] == found[1] == found[2] == ("a", 0.1, 0.2, 0.3)
