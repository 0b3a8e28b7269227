"""Robots whose links are connected beside their tree: MuJoCo's Jacobians, motion without drift, and the same in SDF."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import pytest
from representatives import by_night
from scipy.integrate import solve_ivp
from unit.robots.test_robot_equations import worst_of

from mb2fmu import pipeline
from mb2fmu.errors import ModelError
from mb2fmu.robots.description.robot_description import RobotLoop
from mb2fmu.robots.file_formats import sdf_import, urdf_import
from mb2fmu.robots.tree import robot_loop_list
from mb2fmu.robots.tree.loop_constraint_rows import LoopConstraintWriter
from mb2fmu.validation.independent_checks import MIN_POINTS
from mb2fmu.validation.independent_import.independent_urdf_equations import RobotEvaluationPoint
from mb2fmu.validation.independent_import.mujoco_equations import MujocoEquations

PARALLEL = """<mujoco model="parallel"><compiler angle="radian"/><worldbody>
  <body name="plate" pos="0 0 0.5"><freejoint name="plate"/><geom type="cylinder" size="0.2 0.02"/></body>
  <body name="leg1" pos="0.3 0 0"><joint name="a1" type="ball" damping="0.1"/>
    <geom type="capsule" size="0.02" fromto="0 0 0 -0.05 0 0.25"/>
    <body name="rod1" pos="-0.05 0 0.25"><joint name="s1" type="slide" axis="-0.05 0 0.25" damping="2" stiffness="400"/>
      <geom type="capsule" size="0.01" fromto="0 0 0 -0.05 0 0.25"/></body></body>
  <body name="leg2" pos="-0.15 0.26 0"><joint name="a2" axis="1 0.5 0.3" damping="0.1"/>
    <geom type="capsule" size="0.02" fromto="0 0 0 0.025 -0.043 0.25"/>
    <body name="rod2" pos="0.025 -0.043 0.25">
      <joint name="s2" type="slide" axis="0.025 -0.043 0.25" damping="2" stiffness="400"/>
      <geom type="capsule" size="0.01" fromto="0 0 0 0.025 -0.043 0.25"/></body></body>
  </worldbody>
  <equality><connect name="c1" body1="rod1" body2="plate" anchor="-0.05 0 0.25"/>
    <weld name="c2" body1="rod2" body2="plate"/></equality>
  <actuator><motor name="m1" joint="s1"/><motor name="m2" joint="s2"/></actuator></mujoco>
"""

WELDED = """<mujoco model="welded"><compiler angle="radian"/><worldbody>
  <body name="plate" pos="0 0 0.5"><freejoint name="plate"/><geom type="cylinder" size="0.2 0.02"/></body>
  <body name="leg" pos="-0.15 0.26 0"><joint name="a" axis="1 0.5 0.3"/>
    <geom type="capsule" size="0.02" fromto="0 0 0 0.025 -0.043 0.25"/></body></worldbody>
  <equality><weld name="c" body1="leg" body2="plate"/></equality></mujoco>
"""

_BAR = '<inertial><origin xyz="{0} 0 0"/><mass value="{1}"/><inertia ixx=".001" iyy="{2}" izz="{2}"/>'


def bar(name: str, middle: float, mass: float, moment: float) -> str:
    return f'<link name="{name}">{_BAR.format(middle, mass, moment)}</inertial></link>'


def hinge(name: str, parent: str, child: str, x: float) -> str:
    ends = f'<parent link="{parent}"/><child link="{child}"/><origin xyz="{x} 0 0"/>'
    return f'<joint name="{name}" type="continuous">{ends}<axis xyz="0 1 0"/></joint>'


FOUR_BAR = f"""<robot name="four"><link name="base"/>{bar("a", 0.1, 1, 0.01)}{bar("b", 0.2, 2, 0.03)}
{bar("c", 0.15, 1.5, 0.02)}{hinge("j1", "base", "a", 0)}{hinge("j2", "a", "b", 0.2)}{hinge("j3", "base", "c", 0.35)}
</robot>"""
SIDE_FILE = """inputs = ["j1"]
start = { j1 = -1.2 }
[[outputs]]
frame = "b"
of = "position"
offset = [0.4, 0, 0]
[[outputs]]
frame = "c"
of = "position"
offset = [0.3, 0, 0]
[[loops]]
frames = ["b", "c"]
by = "hinge"
offset = [0.4, 0, 0]
other_offset = [0.3, 0, 0]
axis = [0, 1, 0]
"""


def closed_rows(reading: MujocoEquations) -> tuple[np.ndarray, np.ndarray]:
    """A and A' u of both loops, in MuJoCo's speeds, from its own Jacobians: shape (9, nv), (9,)."""
    m, d = reading._model, reading._data
    body = {name: mujoco.mj_name2id(m, mujoco.mjtObj.mjOBJ_BODY, name) for name in ("plate", "rod1", "rod2")}
    rows, bias = [], []
    for first, anchor, weld in (("rod1", m.eq_data[0][:3], False), ("rod2", m.eq_data[1][:3], True)):
        at = body["plate"] if weld else body[first]
        point = d.xpos[at] + d.xmat[at].reshape(3, 3) @ anchor
        J, K = ([np.zeros((3, m.nv)) for _ in range(4)] for _ in range(2))
        for k, one in enumerate((first, "plate")):
            mujoco.mj_jac(m, d, J[2 * k], J[2 * k + 1], point, body[one])
            mujoco.mj_jacDot(m, d, K[2 * k], K[2 * k + 1], point, body[one])
        for part in (0, 1) if weld else (0,):
            rows.append(J[part] - J[2 + part])
            bias.append((K[part] - K[2 + part]) @ d.qvel)
    return np.vstack(rows), np.concatenate(bias)


def test_loops_of_an_mjcf_file_move_as_mujocos_jacobians_say(tmp_path: Path) -> None:
    """M u' + Aᵀλ = f, A u' = −A' u, along a motion."""
    path = tmp_path / "parallel.xml"
    path.write_text(PARALLEL)
    derivation = pipeline.derive(path, method="recursive-composite", constraints="attractor")
    robot, f = derivation.checked.mechanics, pipeline.right_hand_side(derivation)
    joints = [robot.tree.parts[i].moving_joint.name for i in robot.variables]
    reading = MujocoEquations(path, joints, ["m1", "m2"])
    place = {str(s): k for k, s in enumerate(f.program.layout.states)}
    control = [30.0, -20.0]
    run = solve_ivp(
        lambda t, x: f(t, x, control), (0, 0.03), f.x0, rtol=1e-10, atol=1e-10, t_eval=[0, 0.01, 0.02, 0.03]
    )
    damping = {"a1": 0.1, "a2": 0.1, "s1": 2.0, "s2": 2.0}
    assert run.y.shape[1] == 4
    for x in run.y.T:
        q, u, rates = {}, {}, np.zeros(reading.size)
        found = f(0.0, x, control)
        for i, each in robot.variables.items():
            name = robot.tree.parts[i].moving_joint.name
            rows = [place[s.func.__name__] for s in each.u]
            q[name], u[name] = x[[place[s.func.__name__] for s in each.q]], x[rows]
            rates[reading.column[name] : reading.column[name] + len(rows)] = found[rows]
        at = RobotEvaluationPoint(q, u, {}, {}, damping, np.array([0, 0, -9.81]), {"m1": 30.0, "m2": -20.0})
        M, force = reading.equations(at)
        S, s0 = reading._set_state(at)
        A, bias = closed_rows(reading)
        A, bias = A @ S, bias + A @ s0
        size = len(A)
        whole = np.block([[M, A.T], [A, np.zeros((size, size))]])
        expected = np.linalg.solve(whole, np.concatenate([force, -bias]))[: reading.size]
        assert rates == pytest.approx(expected, abs=1e-6 * np.max(np.abs(expected)))


def test_a_loop_of_a_side_file_stays_closed(tmp_path: Path) -> None:
    path = tmp_path / "four.urdf"
    path.write_text(FOUR_BAR)
    path.with_name("robot.toml").write_text(SIDE_FILE)
    derivation = pipeline.derive(path, method="recursive-composite")
    assert [name for name, _ in derivation.mechanism.holonomic] == ["b_c.x", "b_c.z"]  # the others say nothing
    f = pipeline.right_hand_side(derivation)
    fast = f.compile()
    assert f.x0[0] == -1.2
    times = np.linspace(0, 6, 31)
    run = solve_ivp(lambda t, x: fast(t, x, [0.0]), (0, 6), f.x0, rtol=1e-9, atol=1e-9, t_eval=times)
    names = list(f.output_names)
    ends = [[names.index(f"{link}.position.{axis}") for axis in "xyz"] for link in "bc"]
    worst = 0.0
    for x in run.y.T:
        y = np.array(f.outputs(0.0, x, [0.0]))
        worst = max(worst, float(np.max(np.abs(y[ends[0]] - y[ends[1]]))))
    assert worst <= 1e-9
    assert np.ptp(run.y[0]) > 0.5  # it moved


def test_what_is_wrong_with_a_loop_is_named(tmp_path: Path) -> None:
    path = tmp_path / "four.urdf"
    path.write_text(FOUR_BAR)
    side = path.with_name("robot.toml")
    for text, words in (
        (SIDE_FILE.replace('["b", "c"]', '["b", "z"]'), "'z', which is no link"),
        (SIDE_FILE.replace('["b", "c"]', '["b"]'), "two links"),
        (SIDE_FILE.replace('"hinge"', '"glue"'), "one of point, hinge, weld"),
        (SIDE_FILE.replace("axis = [0, 1, 0]", "axis = [0, 0, 0]"), "not zero"),
        ('prescribed = ["j1"]\n' + SIDE_FILE.replace('inputs = ["j1"]\n', ""), "prescribed: j1"),
        ('prescribed = ["j1"]\n' + SIDE_FILE, "inputs and prescribed name the joint j1"),
    ):
        side.write_text(text)
        with pytest.raises(ModelError, match=words):
            pipeline.Model.from_urdf(path)


def test_a_joint_that_closes_a_loop_in_sdf_is_that_loop(tmp_path: Path) -> None:
    """A parallelogram of three moving links in SDF, and the tree with the loop in a side file."""
    from mb2fmu.robots.file_formats.sdf_import import read_sdf
    from mb2fmu.robots.robot_loading import read_included_robot_file

    path = tmp_path / "four.sdf"
    path.write_text(four_in_sdf())
    loop = read_sdf(path.read_bytes(), path, read_included_robot_file).loops[0]
    assert (loop.kind, loop.first, loop.second) == ("hinge", "c", "b")
    assert loop.at.position == pytest.approx([-0.15, 0, 0])  # the joint is at the origin of b
    assert loop.at.rotation[:, 2] == pytest.approx([0, 1, 0])
    derivation = pipeline.derive(path, arguments={"gravity": [0, 0, -9.81]}, method="recursive-composite")
    assert [name for name, _ in derivation.mechanism.holonomic] == ["j4.x", "j4.z"]
    path.write_text(path.read_text().replace('name="j4" type="revolute"', 'name="j4" type="prismatic"'))
    with pytest.raises(ModelError, match="closes a loop and is of the type 'prismatic'"):
        pipeline.derive(path)


@pytest.mark.parametrize(
    ("axis", "rotor", "what"),
    [
        ("<dynamics><damping>1</damping></dynamics>", "", "dynamics"),
        ("", "<drake:rotor_inertia>1e-3</drake:rotor_inertia>", "dynamics"),
        ("<limit><upper>1</upper></limit>", "", "range"),
    ],
)
@pytest.mark.parametrize("kind", ["revolute", "ball"])
def test_what_a_joint_that_closes_a_loop_cannot_have_is_named(
    tmp_path: Path, kind: str, axis: str, rotor: str, what: str
) -> None:
    """Neither a damper nor a rotor or a range is dropped without a word."""
    path = tmp_path / "four.sdf"
    begin, closing = four_in_sdf().rsplit('<joint name="j4" type="revolute">', 1)
    path.write_text(
        f'{begin}<joint name="j4" type="{kind}">{closing}'.replace(
            "</axis></joint></model>", f"{axis}</axis>{rotor}</joint></model>"
        )
    )
    if what == "dynamics" and not (kind == "ball" and rotor):
        with pytest.raises(ModelError, match="j4 closes a loop, and its dynamics are not honoured"):
            pipeline.derive(path)
        return
    notes = " ".join(pipeline.derive(path, method="recursive-composite").checked.mechanics.notes)
    left_out = {
        "dynamics": "the rotor of joint j4",
        "range": f"the range of {'the ball ' if kind == 'ball' else ''}joint j4",
    }
    assert f"{left_out[what]} is left out" in notes


def four_in_sdf(at: str = "") -> str:
    """Three moving links, the second of which two joints move; ``at``: the pose of the joint that closes."""
    link = '<link name="{0}"><pose>{1} 0 0 0 0 0</pose><inertial><mass>1</mass></inertial></link>'
    joint = (
        '<joint name="{0}" type="revolute"><parent>{1}</parent><child>{2}</child><axis><xyz>0 1 0</xyz></axis></joint>'
    )
    parts = [link.format(*each) for each in (("base", 0), ("a", 0), ("b", 0.2), ("c", 0.35))]
    if at:
        parts[2] = parts[2].replace("0.2 0 0", "0.1 0 0.2")
    parts += [
        joint.format(*each) for each in (("j1", "base", "a"), ("j2", "a", "b"), ("j3", "base", "c"), ("j4", "c", "b"))
    ]
    parts[-1] = parts[-1].replace("<parent>", f"{at}<parent>")
    return f'<sdf version="1.9"><model name="four">{"".join(parts)}</model></sdf>'


FAULTS_OF_READING = [
    "none", "a row is missing", "rounded offset",
    *(pytest.param(each, marks=pytest.mark.repeats) for each in ("none in SDF", "another place")),
]  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS_OF_READING)
def test_what_is_misread_of_a_loop_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: str) -> None:
    """Of a side file, of MJCF and of SDF: the unit's x' is not what the independent import has."""
    if fault in {"none", "rounded offset"}:
        path = tmp_path / "four.urdf"
        path.write_text(FOUR_BAR)
        path.with_name("robot.toml").write_text(SIDE_FILE.replace("[0.3, 0, 0]\naxis", "[0.31, 0, 0]\naxis"))
    elif fault == "a row is missing":
        path = tmp_path / "welded.xml"
        path.write_text(WELDED)
    else:
        path = tmp_path / "four.sdf"
        path.write_text(four_in_sdf("<pose>0.2 0 0.05 0 0 0</pose>"))
    if fault == "rounded offset":
        pose = robot_loop_list.Pose
        monkeypatch.setattr(robot_loop_list, "Pose", lambda R, p: pose(R, np.round(p, 1)))
    elif fault == "a row is missing":
        rows = LoopConstraintWriter.form_rows
        monkeypatch.setattr(LoopConstraintWriter, "form_rows", lambda self, loop: rows(self, loop)[:5])
    elif fault == "another place":
        record = sdf_import.RobotLoop

        def misplaced(**loop: Any) -> RobotLoop:
            return record(**loop | {"at": replace(loop["at"], position=loop["at"].position + 1e-3)})

        monkeypatch.setattr(sdf_import, "RobotLoop", misplaced)
    worst = worst_of(pipeline.derive(path, method="recursive-composite"))
    assert (worst < 1) == fault.startswith("none")
    assert worst < 1 or worst > 1e6


@pytest.mark.parametrize("turn", ["1 0.1 -0.2 0.3", *by_night("0 0 0 0")])
def test_a_weld_holds_the_pose_that_it_is_given(tmp_path: Path, turn: str) -> None:
    """A quaternion of zeros is MuJoCo's word for the pose that the file draws; else it is that of the anchor."""
    path = tmp_path / "welded.xml"
    path.write_text(WELDED.replace("/></equality>", f' relpose="0.1 0.2 0.3 {turn}" anchor="0.1 0 0.2"/></equality>'))
    derivation = pipeline.derive(path, method="recursive-composite")
    assert worst_of(derivation) < 1.0
    drawn = mujoco.MjModel.from_xml_path(str(path)).eq_data[0]
    loop = derivation.checked.mechanics.description.loops[0]
    assert loop.at.position == pytest.approx(drawn[3:6], abs=1e-12)


def carried_platform(cranks: int) -> tuple[str, str]:
    """A floating plate carried by cranks with two rods each: URDF and side file. Nothing of the start fits."""
    inertia = '<mass value="{0}"/><inertia ixx="{1}" ixy="0" ixz="0" iyy="{1}" iyz="0" izz="{1}"/></inertial></link>'
    link = '<link name="{0}"><inertial><origin xyz="{1}"/>' + inertia.replace("{0}", "{2}").replace("{1}", "{3}")
    joint = '<joint name="{0}" type="{1}"><parent link="{2}"/><child link="{3}"/><origin xyz="{4}" rpy="0 0 {5}"/>'
    joint += '<axis xyz="{6}"/></joint>'
    parts = ['<link name="base"/>', link.format("plate", "0 0 0", 0.5, 0.002)]
    parts.append(joint.format("float", "floating", "base", "plate", "0 0 -0.5", 0, "0 0 1"))
    loops = []
    for k in range(cranks):
        turn = 2 * np.pi * k / 3
        c, s = np.cos(turn), np.sin(turn)
        parts += [link.format(f"crank{k}", "0.1 0 0", 0.6, 0.004)]
        parts += [joint.format(f"drive{k}", "revolute", "base", f"crank{k}", f"{0.2 * c} {0.2 * s} 0", turn, "0 1 0")]
        parts[-1] = parts[-1].replace("</joint>", '<limit lower="-3" upper="3" effort="30" velocity="20"/></joint>')
        for side, y in (("a", 0.04), ("b", -0.04)):
            name = f"{k}{side}"
            parts += [link.format(f"fork{name}", "0 0 0", 0.05, 1e-4), link.format(f"rod{name}", "0 0 -0.2", 0.1, 1e-3)]
            parts += [joint.format(f"swing{name}", "continuous", f"crank{k}", f"fork{name}", f"0.2 {y} 0", 0, "0 1 0")]
            parts += [joint.format(f"tilt{name}", "continuous", f"fork{name}", f"rod{name}", "0 0 0", 0, "1 0 0")]
            loops.append(f'[[loops]]\nframes = ["rod{name}", "plate"]\noffset = [0, 0, -0.4]\n')
            loops[-1] += f"other_offset = [{0.08 * c - y * s}, {0.08 * s + y * c}, 0]\n"
    names = [f"drive{k}" for k in range(cranks)]
    drives = f"inputs = {names}\nstart = {{ {', '.join(f'{name} = 0.3' for name in names)} }}\n"
    return f'<robot name="carried">{"".join(parts)}</robot>', drives + "".join(loops)


@pytest.mark.parametrize(("fault", "cranks"), [("none", 1), *by_night(("none", 2), ("a mass", 2), ("a length", 2))])
def test_a_robot_of_several_loops_has_a_second_reading_far_from_its_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: str, cranks: int
) -> None:
    """What the file draws is 0.3 m and 1 rad from closed: points are found all the same, and faults of 1e-3 there."""
    path = tmp_path / "carried.urdf"
    robot, side = carried_platform(cranks)
    path.write_text(robot)
    path.with_suffix(".toml").write_text(side)
    if fault == "a mass":
        inertial = urdf_import.LinkInertia
        monkeypatch.setattr(
            urdf_import, "LinkInertia", lambda m, *rest: inertial(m * (1.001 if m == 0.6 else 1.0), *rest)
        )
    elif fault == "a length":
        pose = robot_loop_list.Pose
        monkeypatch.setattr(robot_loop_list, "Pose", lambda R, p: pose(R, p * (1 + 1e-3 * (p[2] != 0))))
    worst = worst_of(pipeline.derive(path, method="recursive-composite"), MIN_POINTS)
    assert (worst < 1) == (fault == "none")
    assert worst < 1 or worst > 1e6
