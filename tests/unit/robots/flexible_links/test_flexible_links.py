"""Links of a robot that bend: motion against all nodes and SymPy's joints, rigid limit, pictures, wrong input."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import sympy as sm
import sympy.physics.mechanics as me
from flexible_bodies import random_arrays
from mechanisms import Evaluated, State, random_states
from representatives import by_night
from scipy.integrate import solve_ivp
from scipy.optimize import fsolve
from sid_text import sid_text
from unit.robots.test_robot_equations import worst_of

from mb2fmu import BeamSection, FlexibleBody, Model, pipeline
from mb2fmu.errors import Mb2FmuError, ModelError
from mb2fmu.validation.independent_import.independent_robot_accelerations import sample_independent_robot_accelerations
from mb2fmu.validation.source_checks.nodal_inertia_check import compute_nodal_inertia_errors
from mb2fmu.validation.source_checks.source_acceleration_samples import INDEPENDENT_IMPORT

ARM = (Path(__file__).parent / "bending_arm.urdf").read_text()
BEAM = {
    "length": 0.7, "E": 70e9, "rho": 2700.0, "section": {"width": 0.02, "height": 0.03},
    "modes": {"bending_y": 2, "bending_z": 1}, "damping": 0.01,
}  # fmt: skip
TURNED = BEAM | {"axis": "z", "rpy": [0, np.pi / 2, 0], "modes": {"bending_x": 1}}
START = {"shoulder": 0.4, "elbow": 0.3, "wrist": 0.2}


@pytest.fixture
def arm(tmp_path: Path) -> Path:
    path = tmp_path / "arm.urdf"
    path.write_text(ARM)
    return path


@pytest.fixture(scope="module")
def bending(tmp_path_factory: pytest.TempPathFactory) -> pipeline.DerivationResult:
    """The arm whose forearm is the beam."""
    path = tmp_path_factory.mktemp("bending") / "arm.urdf"
    path.write_text(ARM)
    return pipeline.derive(path, arguments={"flexible": {"forearm": BEAM}}, method="recursive-composite")


def elastic_arrays(seed: int = 1, n: int = 6) -> dict[str, np.ndarray]:
    """Arrays with everything, whose node 0 stands still at the origin of the link, and damping as a matrix."""
    arrays = random_arrays(seed, n)
    arrays["modes"][:, 0], arrays["rotations"][:, 0], arrays["nodes"][0] = 0.0, 0.0, 0.0
    arrays["second_order"][:, :, 0] = 0.0
    return arrays | {"damping": np.diag([0.3, 0.4])}


@pytest.mark.parametrize(
    "more",
    [
        {"base": "floating", "flexible": {"forearm": TURNED}},
        {
            "locked": {"wrist": 0.3},
            "start": {},
            "flexible": {
                "forearm": BEAM | {"G": 26e9, "modes": {"torsion": 1, "extension": 1}},
                "upper_arm": BEAM | {"length": 0.6, "modes": {"bending_z": 1}},
            },
        },
        *by_night({"flexible": {"forearm": BEAM, "upper_arm": BEAM | {"length": 0.6}}}),
    ],
)
def test_accelerations_are_those_of_all_nodes(arm: Path, more: dict[str, object]) -> None:
    """Of the FMU's equations, at random states, with the full mass matrix of the nodes in an import of its own."""
    derivation = pipeline.derive(
        arm, arguments={"flexible": {"forearm": BEAM}, "start": START} | more, method="recursive-composite"
    )
    assert worst_of(derivation) < 1
    for link in derivation.checked.mechanics.flexible:
        assert max(compute_nodal_inertia_errors(derivation.checked, derivation.mechanism, link.body))[0] < 1


def test_arrays_with_everything_move_as_their_nodes_do(arm: Path) -> None:
    np.savez(arm.parent / "forearm.npz", **elastic_arrays(), faces=[[0, 1, 2], [2, 3, 4]])
    table = {"file": "forearm.npz", "offset": [0.01, 0.02, 0.0], "rpy": [0.1, 0.2, 0.3], "nodes": {"wrist": 5}}
    derivation = pipeline.derive(arm, arguments={"flexible": {"forearm": table}}, method="recursive-composite")
    assert worst_of(derivation) < 1
    (link,) = derivation.checked.mechanics.flexible
    assert link.nodes["wrist"] == 5


def test_a_file_of_standard_input_data_moves_as_its_nodes_do(arm: Path) -> None:
    arrays = elastic_arrays()
    data = {name: arrays[name] for name in ("nodes", "mass", "modes", "stiffness", "damping")}
    rotations = {"rotations": arrays["rotations"]}
    body = FlexibleBody("forearm", **data, **rotations)
    (arm.parent / "forearm.SID_FEM").write_text(sid_text(body, {"3": 3, "5": 5}))
    table = {"file": "forearm.SID_FEM", "nodes": {"wrist": "3", "mount": "5"}}
    derivation = pipeline.derive(arm, arguments={"flexible": {"forearm": table}}, method="recursive-composite")
    assert worst_of(derivation) < 1


MJCF = """<mujoco model="arm"><compiler angle="radian"/><worldbody>
<body name="upper_arm" pos="0 0 0.4"><joint name="shoulder" axis="0 -1 0" damping="1.0"/>
 <inertial pos="0.3 0 0" mass="3" diaginertia="0.004 0.09 0.09"/>
 <body name="forearm" pos="0.6 0 0"><joint name="elbow" axis="0 0 1" damping="0.5"/>
  <inertial pos="0.35 0 0" mass="1.2" diaginertia="0.001 0.05 0.05"/>
  <body name="hand" pos="0.7 0 0.02" euler="0.3 0 0"><joint name="wrist" axis="0 1 0" damping="0.1"/>
   <inertial pos="0.05 0.01 0" mass="0.8" diaginertia="0.001 0.002 0.002"/></body>
  <body name="sensor" pos="0.4 0 0.03"><inertial pos="0 0 0.02" mass="0.3" diaginertia="0.0002 0.0002 0.0001"/></body>
 </body></body></worldbody>
<actuator><motor joint="shoulder"/><motor joint="elbow"/><motor joint="wrist"/></actuator></mujoco>"""


@pytest.mark.repeats  # by day: in SDF
def test_another_format_gives_the_same_arm(arm: Path) -> None:
    arm.write_text(ARM.replace('rpy="0.3 0 0.2"', 'rpy="0.3 0 0"'))
    other = arm.with_suffix(".xml")
    other.write_text(MJCF)
    first, second = (
        pipeline.rhs(path, arguments={"flexible": {"forearm": BEAM}}, method="recursive-composite")
        for path in (arm, other)
    )
    x, tau = 0.05 * np.random.default_rng(1).normal(size=12), [0.3, -0.2, 0.1]
    assert second(0.0, x, tau) == pytest.approx(first(0.0, x, tau), rel=1e-11)


def inertial(mass: float, at: str, moments: tuple[float, float, float]) -> str:
    """Mass and inertia in SDF."""
    entries = "".join(f"<i{axis}{axis}>{moment}</i{axis}{axis}>" for axis, moment in zip("xyz", moments, strict=True))
    return f"<inertial><pose>{at} 0 0 0</pose><mass>{mass}</mass><inertia>{entries}</inertia></inertial>"


def hinge(name: str, parent: str, child: str, axis: str, damping: float) -> str:
    """A joint in SDF, at the origin of its child."""
    return (
        f'<joint name="{name}" type="revolute"><parent>{parent}</parent><child>{child}</child><axis><xyz>{axis}</xyz>'
        f"<limit><effort>200</effort></limit><dynamics><damping>{damping}</damping></dynamics></axis></joint>"
    )


SDF = f"""<sdf version="1.9"><model name="arm">
<link name="base">{inertial(4.0, "0 0 0.2", (0.06, 0.06, 0.02))}</link>
<joint name="hold" type="fixed"><parent>world</parent><child>base</child></joint>
<link name="upper_arm"><pose>0 0 0.4 0 0 0</pose>{inertial(3.0, "0.3 0 0", (0.004, 0.09, 0.09))}</link>
<link name="forearm"><pose>0.6 0 0.4 0 0 0</pose>{inertial(1.2, "0.35 0 0", (0.001, 0.05, 0.05))}</link>
<link name="hand"><pose>1.3 0 0.42 0.3 0 0.2</pose>{inertial(0.8, "0.05 0.01 0", (0.001, 0.002, 0.002))}</link>
<link name="sensor"><pose>1.0 0 0.43 0 0 0</pose>{inertial(0.3, "0 0 0.02", (0.0002, 0.0002, 0.0001))}</link>
{hinge("shoulder", "base", "upper_arm", "0 -1 0", 1.0)}{hinge("elbow", "upper_arm", "forearm", "0 0 1", 0.5)}
{hinge("wrist", "forearm", "hand", "0 1 0", 0.1)}
<joint name="mount" type="fixed"><parent>forearm</parent><child>sensor</child></joint></model></sdf>"""


def test_an_sdf_file_gives_the_same_arm_and_has_an_import_of_its_own(
    arm: Path, bending: pipeline.DerivationResult
) -> None:
    other = arm.with_suffix(".sdf")
    other.write_text(SDF)
    derivation = pipeline.derive(other, arguments={"flexible": {"forearm": BEAM}}, method="recursive-composite")
    assert worst_of(derivation) < 1
    first, second = (pipeline.right_hand_side(each) for each in (bending, derivation))
    x, tau = 0.05 * np.random.default_rng(1).normal(size=12), [0.3, -0.2, 0.1]
    assert second(0.0, x, tau) == pytest.approx(first(0.0, x, tau), rel=1e-11)


def test_mujoco_is_no_import_of_links_that_bend_and_says_so(arm: Path) -> None:
    other = arm.with_suffix(".xml")
    other.write_text(MJCF)
    derivation = pipeline.derive(other, arguments={"flexible": {"forearm": BEAM}}, method="recursive-composite")
    made = sample_independent_robot_accelerations(derivation.checked)
    assert made.missing == {INDEPENDENT_IMPORT: "MuJoCo has no links that bend as these do"}
    (link,) = derivation.checked.mechanics.flexible
    assert max(compute_nodal_inertia_errors(derivation.checked, derivation.mechanism, link.body))[0] < 1


LOOP_LENGTHS, LOOP_BASE = (0.3, 0.7, 0.5), 0.8
"""Of crank, coupler and rocker, and distance of the pins that stand still, m."""


def test_a_loop_with_a_link_that_bends_moves_as_its_nodes_do(tmp_path: Path) -> None:
    """A four-bar linkage whose coupler bends in its plane."""
    text = '<robot name="bars"><link name="base"/>'
    for i, length in enumerate(LOOP_LENGTHS):
        at, parent = (LOOP_LENGTHS[i - 1], f"bar{i - 1}") if i else (0.0, "base")
        text += f'<link name="bar{i}"><inertial><origin xyz="{length / 2} 0 0"/><mass value="1"/>'
        text += '<inertia ixx="0.001" iyy="0.01" izz="0.01" ixy="0" ixz="0" iyz="0"/></inertial></link>'
        text += f'<joint name="pin{i}" type="continuous"><parent link="{parent}"/><child link="bar{i}"/>'
        text += f'<origin xyz="{at} 0 0"/><axis xyz="0 1 0"/></joint>'
    path = tmp_path / "bars.urdf"
    path.write_text(text + "</robot>")

    def gap(angles: np.ndarray) -> list[float]:
        """Return where the rocker's end is beside its pin."""
        turned = np.cumsum([-1.2, *angles])
        return [LOOP_LENGTHS @ np.cos(turned) - LOOP_BASE, LOOP_LENGTHS @ np.sin(turned)]

    second, third = fsolve(gap, [1.0, 1.2], xtol=1e-14)
    derivation = pipeline.derive(
        path,
        arguments={
            "loops": [{"frames": ["bar2", "base"], "offset": [0.5, 0, 0], "other_offset": [LOOP_BASE, 0, 0]}],
            "start": {"pin0": -1.2, "pin1": float(second), "pin2": float(third)},
            "flexible": {"bar1": BEAM | {"modes": {"bending_z": 1}}},
        },
        method="recursive-composite",
    )
    assert worst_of(derivation) < 1
    (link,) = derivation.checked.mechanics.flexible
    assert max(compute_nodal_inertia_errors(derivation.checked, derivation.mechanism, link.body))[0] < 1
    object.__setattr__(link.body.data, "modes", 1.0001 * link.body.data.modes)
    assert worst_of(derivation) > 1e3


@pytest.mark.parametrize("method", ["recursive-composite", *by_night("recursive-articulated", "tmt")])
def test_quantities_have_rows_for_modes(arm: Path, method: str) -> None:
    """Efforts that take the arm's own accelerations are those that act; at rest they hold the weight; columns are M."""
    words = ["mass-matrix", "gravity-torques", "inverse-dynamics"]
    beam = BEAM | {"modes": {"bending_y": 1, "bending_z": 1}}
    derivation = pipeline.derive(arm, arguments={"flexible": {"forearm": beam}, "quantities": words}, method=method)
    evaluated = Evaluated(derivation.mechanism, method)
    names = evaluated.program.entries["outputs"].labels
    joints, modes = list(START), range(1, 3)
    efforts = [f"{name}.required_effort" for name in joints] + [f"forearm.required_effort[{k}]" for k in modes]
    weights = [f"{name}.gravity_effort" for name in joints] + [f"forearm.gravity_effort[{k}]" for k in modes]
    inputs = [item.name for item in derivation.mechanism.declared.inputs]
    wanted = [inputs.index(f"{name}.desired_acceleration") for name in joints]
    wanted += [inputs.index(f"forearm.desired_acceleration[{k}]") for k in modes]
    driven = [inputs.index(f"{name}.effort") for name in joints]

    def outputs(x: np.ndarray, r: np.ndarray, p: np.ndarray) -> dict[str, float]:
        """Return all outputs by name."""
        return dict(zip(names, evaluated("outputs", State(0.0, x, r, p)), strict=True))

    p = random_states(derivation.mechanism, 1)[0].p
    random = np.random.default_rng(2)
    x = random.normal(size=10) * np.array([1, 1, 1, 0.02, 0.02, 2, 2, 2, 0.5, 0.5])
    r = np.zeros(len(inputs))
    r[driven] = random.normal(size=3)
    r[wanted] = evaluated("rhs", State(0.0, x, r, p))[5:]
    found = outputs(x, r, p)
    size = max(abs(found[f"mass_matrix[{i},{j}]"] * r[wanted[j - 1]]) for i in range(1, 6) for j in range(1, 6))
    expected = dict(zip(efforts, [*r[driven], 0.0, 0.0], strict=True))
    assert {name: found[name] for name in efforts} == pytest.approx(expected, abs=1e-11 * size)
    still = np.concatenate([x[:3], np.zeros(7)])
    base = outputs(still, 0.0 * r, p)
    assert [base[name] for name in efforts] == pytest.approx([base[name] for name in weights], rel=1e-10)
    for j in range(5):
        unit = np.zeros(len(inputs))
        unit[wanted[j]] = 1.0
        column = outputs(still, unit, p)
        for i in range(5):
            change = column[efforts[i]] - base[efforts[i]]
            assert change == pytest.approx(base[f"mass_matrix[{i + 1},{j + 1}]"], abs=1e-9)


def test_the_import_of_its_own_finds_what_is_wrong(bending: pipeline.DerivationResult) -> None:
    assert worst_of(bending) < 1
    (link,) = bending.checked.mechanics.flexible
    data = link.body.data
    for fault in ("modes", "rotations", "second_order", "nodes"):
        right = getattr(data, fault)
        object.__setattr__(data, fault, 1.001 * right)
        assert worst_of(bending, 1) > 1e3, fault
        object.__setattr__(data, fault, right)
    nodes = link.nodes
    object.__setattr__(link, "nodes", nodes | {"wrist": nodes["mount"]})
    assert worst_of(bending, 1) > 1e3
    object.__setattr__(link, "nodes", nodes)


def arm_of_joints() -> Model:
    """The same arm by SymPy's joints, bodies and the flexible body's own points and frames."""
    angles, speeds = me.dynamicsymbols("a1:4"), me.dynamicsymbols("w1:4")
    torques, g = me.dynamicsymbols("tau1:4"), sm.Symbol("g")
    ground = me.RigidBody("ground")
    upper, hand, sensor = (me.RigidBody(name, mass=m) for name, m in (("upper", 3.0), ("hand", 0.8), ("sensor", 0.3)))
    for body, moments in ((upper, (0.004, 0.09, 0.09)), (hand, (0.001, 0.002, 0.002)), (sensor, (2e-4, 2e-4, 1e-4))):
        body.central_inertia = me.inertia(body.frame, *moments)
    fore = FlexibleBody.beam(
        "forearm", length=0.7, E=70e9, rho=2700.0, section=BeamSection.rectangle(0.02, 0.03),
        modes={"bending_y": 2, "bending_z": 1}, damping=0.01, stations=[0.4],
    )  # fmt: skip
    system = me.System.from_newtonian(ground)
    N, at = system.frame, fore.node_near((0.4, 0, 0))
    turned = me.ReferenceFrame("turned")
    turned.orient_explicit(fore.frame(-1), rotation(0.3, 0.0, 0.2))
    wrist_point = fore.point(-1).locatenew("wrist_point", 0.02 * fore.frame(-1).z)
    hand_point = hand.masscenter.locatenew("hand_point", -0.05 * hand.x - 0.01 * hand.y)
    joints = [
        me.PinJoint("shoulder", ground, upper, angles[0], speeds[0], parent_point=0.4 * N.z, joint_axis=-N.y,
                    child_point=-0.3 * upper.x),
        me.PinJoint("elbow", upper, fore.body, angles[1], speeds[1], parent_point=0.3 * upper.x,
                    child_point=fore.point(), joint_axis=upper.z),
        me.PinJoint("wrist", fore.interface(-1), hand, angles[2], speeds[2], parent_point=wrist_point,
                    parent_interframe=turned, child_point=hand_point, joint_axis=turned.y),
    ]  # fmt: skip
    sensor.frame.orient_axis(fore.frame(at), fore.frame(at).z, 0)
    sensor.masscenter.set_pos(fore.point(at), 0.05 * fore.frame(at).z)
    system.add_joints(*joints)
    system.add_bodies(sensor)
    fore.add_to_system(system)
    system.apply_uniform_gravity(-g * N.z)
    for joint, tau, speed, damping in zip(joints, torques, speeds, (1.0, 0.5, 0.1), strict=True):
        system.add_actuators(me.TorqueActuator.at_pin_joint(tau - damping * speed, joint))
    model = Model("Arm", system)
    model.parameter(g, 9.81, "m/s2")
    for i, name in enumerate(START):
        model.coordinate(angles[i], 0.0, "rad", name=f"{name}.angle")
        model.speed(speeds[i], 0.0, "rad/s", name=f"{name}.speed")
        model.input(torques[i], 0.0, "N.m", name=f"{name}.effort")
    model.add(fore)
    return model


def rotation(roll: float, pitch: float, yaw: float) -> sm.Matrix:
    """Return the rotation of URDF's rpy: about fixed x, then y, then z."""
    x, y, z = (sm.rot_ccw_axis1(roll), sm.rot_ccw_axis2(pitch), sm.rot_ccw_axis3(yaw))
    return z * y * x


@pytest.mark.repeats  # by day: those of all nodes, by an import of its own, above
def test_accelerations_are_those_of_the_same_arm_by_joints(bending: pipeline.DerivationResult) -> None:
    by_file, by_joints = pipeline.right_hand_side(bending), pipeline.rhs(arm_of_joints(), method="recursive-composite")
    assert by_file.states == by_joints.states
    random = np.random.default_rng(4)
    scale = np.array([1, 1, 1, 0.05, 0.02, 0.05, 2, 2, 2, 0.5, 0.5, 0.5])
    for _ in range(4):
        x, tau = scale * random.normal(size=12), random.normal(size=3)
        assert by_file(0.2, x, tau)[6:] == pytest.approx(by_joints(0.2, x, tau)[6:], rel=1e-9, abs=1e-9)


def motion(path: Path, arguments: dict[str, object]) -> np.ndarray:
    """Angles of the three joints after 0.3 s under gravity."""
    f = pipeline.rhs(path, arguments={"start": START} | arguments, method="recursive-composite")
    start = np.zeros(len(f.states))
    start[:3] = list(START.values())
    return solve_ivp(lambda t, x: f(t, x, np.zeros(3)), (0, 0.3), start, method="Radau", rtol=1e-11, atol=1e-13).y[
        :3, -1
    ]


@pytest.mark.repeats  # by day: a beam that is stiff, in ``model/flexible/test_beams``
def test_a_stiff_link_moves_as_a_rigid_one(arm: Path) -> None:
    """Angles differ by what weight and inertia bend: with the inverse of the stiffness."""
    damped = BEAM | {"modes": {"bending_y": 1, "bending_z": 1}, "damping": 1.0}
    stiff = [motion(arm, {"flexible": {"forearm": damped | {"E": 70e9 * factor}}}) for factor in (10.0, 1e3)]
    model = pipeline.Model.from_urdf(arm, flexible={"forearm": damped})
    inertial = model.mechanics.flexible[0].rest_inertia()
    rigid = arm.parent / "rigid.urdf"
    moments = np.diag(inertial.inertia).tolist()
    assert np.count_nonzero(inertial.inertia - np.diag(moments)) == 0
    given = '<mass value="1.2"/>\n      <inertia ixx="0.001" iyy="0.05" izz="0.05" ixy="0" ixz="0" iyz="0"/>'
    assert given in ARM
    now = f'<mass value="{inertial.mass!r}"/><inertia ixx="{moments[0]!r}" iyy="{moments[1]!r}" izz="{moments[2]!r}"'
    rigid.write_text(ARM.replace(given, f'{now} ixy="0" ixz="0" iyz="0"/>'))
    errors = np.max(np.abs(np.array(stiff) - motion(rigid, {})), axis=1)
    assert 1e-6 < errors[0] < 1e-4
    assert errors[1] == pytest.approx(errors[0] / 100.0, rel=0.1)


def test_notes_tell_what_is_replaced_and_names_stay(arm: Path) -> None:
    model = pipeline.Model.from_urdf(arm, flexible={"forearm": BEAM})
    assert any("mass 1.2 kg and inertia of the file are replaced" in note for note in model.mechanics.notes)
    names = {item.name for item in model.declared}
    assert {"elbow.angle", "forearm.eta[1]", "forearm.stiffness[3]", "forearm.strain_energy"} <= names
    called = ARM.replace('"elbow"', '"forearm"', 1).replace('<joint name="elbow"', '<joint name="forearm"')
    arm.write_text(called)
    names = {item.name for item in pipeline.Model.from_urdf(arm, flexible={"forearm": BEAM}).declared}
    assert {"forearm.angle", "forearm_link.eta[1]"} <= names


def test_fast_modes_take_an_implicit_solver(arm: Path) -> None:
    fast = BEAM | {"modes": {"bending_y": 2, "extension": 2}}
    model = pipeline.Model.from_urdf(arm, flexible={"forearm": fast})
    assert model.default_experiment.stiff
    assert any("the fastest mode of link forearm has" in note for note in model.mechanics.notes)
    assert not pipeline.Model.from_urdf(arm, flexible={"forearm": BEAM}, step=1e-3).default_experiment.stiff


def test_the_picture_bends(arm: Path) -> None:
    model = pipeline.Model.from_urdf(arm, flexible={"forearm": BEAM | {"scale": 5.0}})
    derivation = pipeline.derive(model, method="recursive-composite")
    (bending,) = derivation.mechanism.appearance.bendings
    assert bending.scale == 5.0
    assert np.ptp(bending.vertices, axis=0) == pytest.approx([0.7, 0.02, 0.03], rel=1e-12)
    assert len(bending.carriers) == 3
    assert "forearm" not in {shape.body for shape in derivation.mechanism.appearance.shapes}


WRONG = {
    "unknown link": ({"flexible": {"fore": BEAM}}, "'fore' is no link"),
    "no data": ({"flexible": {"forearm": {"damping": 0.1}}}, "no elastic data: give file"),
    "two kinds": ({"flexible": {"forearm": BEAM | {"file": "x.npz"}}}, "has file and those of a beam"),
    "half a beam": ({"flexible": {"forearm": {"length": 1.0, "E": 7e10}}}, "lacks rho, section, modes"),
    "unknown word": ({"flexible": {"forearm": BEAM | {"lenght": 1}}}, "has lenght"),
    "section": ({"flexible": {"forearm": BEAM | {"section": {"radius": -1}}}}, "give numbers > 0"),
    "number": ({"flexible": {"forearm": BEAM | {"E": "hard"}}}, "E is 'hard'"),
    "family": ({"flexible": {"forearm": BEAM | {"modes": {"bending_x": 1}}}}, "no modes 'bending_x'"),
    "joint": ({"flexible": {"forearm": BEAM | {"nodes": {"elbow": 0}}}}, "does not carry"),
    "node": ({"flexible": {"forearm": BEAM | {"nodes": {"wrist": 999}}}}, "has no node 999"),
    "no file": ({"flexible": {"forearm": {"file": "none.npz"}}}, "there is no such file"),
    "inverse": ({"flexible": {"forearm": BEAM}, "role": "inverse-dynamics"}, "no inverse dynamics of links that bend"),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG)
def test_wrong_settings_are_reported_with_what_where_and_what_to_do(arm: Path, case: str) -> None:
    settings, words = WRONG[case]
    with pytest.raises(Mb2FmuError) as caught:
        pipeline.Model.from_urdf(arm, **settings)
    (fault,) = caught.value.faults
    assert words in fault.what
    assert fault.where
    assert fault.remedy


def test_wrong_arrays_are_reported_by_file_and_name(arm: Path) -> None:
    (arm.parent / "a.npz").write_bytes(b"no archive")
    np.savez(arm.parent / "b.npz", nodes=np.zeros((2, 3)), mesh=[1.0])
    moving = elastic_arrays()
    moving["modes"][:, 0] = 1.0
    np.savez(arm.parent / "c.npz", **moving)
    for file, words in (
        ("a.npz", ["it is no archive of arrays"]),
        ("b.npz", ["no array mass", "no array modes", "no array stiffness", "the array mesh"]),
        ("c.npz", ["node 0 lies at the link's origin and moves"]),
    ):
        with pytest.raises(ModelError) as caught:
            pipeline.Model.from_urdf(arm, flexible={"forearm": {"file": file}})
        assert [w for w, fault in zip(words, caught.value.faults, strict=True) if w not in fault.what] == []
        assert all("[flexible.forearm]" in fault.where for fault in caught.value.faults)
