"""Accelerations of robots: published numbers, Pinocchio, every formulation, and the independent import of the file."""

from __future__ import annotations

import runpy
from pathlib import Path

import numpy as np
import pinocchio as pin
import pytest
import sympy as sm
import sympy.physics.mechanics as me
from representatives import by_night
from unit.robots.robot_texts import ARM, CASE, joint, link, robot

from mb2fmu import pipeline
from mb2fmu.errors import ModelError
from mb2fmu.validation.independent_import.independent_robot_accelerations import sample_independent_robot_accelerations
from mb2fmu.validation.source_checks import source_acceleration_samples
from mb2fmu.validation.source_checks.source_acceleration_samples import INDEPENDENT_IMPORT

PUBLISHED = {
    "j2": ("free", (0.3, -0.7, 0.05, 0.4), (0.5, -0.2, 0.3, 0.8), (1.0, 2.0, -3.0, 0.25),
           (28.06476806669442, 3.331890812172285, -10.62179591287484, 29.89370156861626), 1e-13),
    "j1": ("couple", (0.3, -0.7, 0.05), (0.5, -0.2, 0.3), (1.0, 2.0, -3.0),
           (26.85254172, 3.22920369, -11.00550445), 1e-9),
}  # fmt: skip
"""Leader of the last joint → mimic, q, v, efforts, accelerations without dampers, what their digits let one ask."""

HIP = robot(
    link("trunk", 3.0),
    *(link(f"l{i}") for i in range(1, 6)),
    joint("hip1", "continuous", "trunk", "l1"),
    '<joint name="hip2" type="continuous"><parent link="l1"/><child link="l2"/><axis xyz="1 0 0"/></joint>\n',
    '<joint name="hip3" type="continuous"><parent link="l2"/><child link="l3"/><axis xyz="0 1 0"/></joint>\n',
    joint("knee", "continuous", "l3", "l4"),
    joint("ankle", "continuous", "l4", "l5"),
)
"""Three axes meet in a point, as in a humanoid's hips and wrists; every link between them has mass."""

ANY_JOINT = robot(
    link("base", 3.0),
    link("a"),
    link("b", 0.5),
    link("c", 0.8),
    joint("slide", "planar", "base", "a", axis="1 2 2"),
    joint("hinge", "revolute", "a", "b", '<dynamics damping="0.2"/>', axis="0 0 -1"),
    joint("loose", "floating", "b", "c"),
)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "arm.urdf"
    path.write_text(ARM)
    return path


def worst_against_second_reading(path: Path, **settings: object) -> float:
    """Largest error of x' over its bound, at random points as those of the validation."""
    return worst_of(pipeline.derive(path, arguments=settings, method="recursive-composite"))


def worst_of(derivation: pipeline.DerivationResult, points: int = 3) -> float:
    """The same of what was derived; the file is read again now."""
    f, d = pipeline.right_hand_side(derivation), derivation.checked
    with pytest.MonkeyPatch.context() as fewer:
        fewer.setattr(source_acceleration_samples, "RANDOM_POINT_COUNT", points)
        made = sample_independent_robot_accelerations(d, derivation.mechanism)  # as `run` does
    assert not made.missing
    assert len(made.samples) == points
    names = [item.name for item in (*d.coordinates, *d.speeds, *d.auxiliary_states)]
    worst = 0.0
    for sample in made.samples:
        values = sample.point.values
        known = {str(q.symbol): values[made.starts[q.name]] for q in d.parameters if not q.calculated}
        x, p = (
            [values[made.starts[n]] for n in names],
            [known.get(n, v) for n, v in zip(f.program.layout.parameters, f.p0, strict=True)],
        )
        rates = f(sample.point.time, x, [values[k] for k in made.inputs.values()], p)
        own = sample.rates[INDEPENDENT_IMPORT]
        errors = {n: abs(a - own[n]) for n, a in zip(names, rates, strict=True)}
        worst = max(worst, *(error / sample.bounds[n] if error else 0.0 for n, error in errors.items()))
    return worst


def test_where_three_axes_meet_each_joint_turns_its_own_link(tmp_path: Path) -> None:
    """Else articulated bodies do not apply, and x' of a whole humanoid costs four times as much."""
    path = tmp_path / "hip.urdf"
    path.write_text(HIP)
    derivation = pipeline.derive(path, method="recursive-articulated")
    recursion = derivation.equations.recursion
    assert recursion is not None
    assert all(
        len(recursion.list_joint_speeds(i)) == 1
        for i, each in enumerate(recursion.links)
        if each.carries_mass_or_load and i
    )
    assert worst_of(derivation) < 1


@pytest.mark.parametrize("leader", list(PUBLISHED))
def test_published_accelerations(tmp_path: Path, leader: str) -> None:
    mimic, q, v, efforts, expected, near = PUBLISHED[leader]
    path = tmp_path / "arm.urdf"
    path.write_text(CASE.format(leader=leader))
    drives = ["j1", "j2", "j3", "jm"][: len(q)]
    derivation = pipeline.derive(path, arguments={"mimic": mimic, "inputs": drives}, method="recursive-composite")
    free = [p for p in derivation.definition.parameters if not p.calculated]
    values = [0.0 if p.name.endswith(".damping") else float(p.value) for p in free]
    found = pipeline.right_hand_side(derivation)(0.0, [*q, *v], efforts, values)[len(q) :]
    assert found == pytest.approx(expected, rel=near)


@pytest.mark.parametrize("method", ["auto", "recursive-composite", "tmt", *by_night("kane", "lagrange")])
def test_all_formulations_agree_with_pinocchio(file: Path, method: str) -> None:
    """CRBA and RNEA, with damping, dry friction and the mimic, which ``aba`` leaves out."""
    f = pipeline.rhs(file, method=method, arguments={"friction": "stick"})
    model = pin.buildModelFromUrdf(str(file), mimic=True)
    data, random = model.createData(), np.random.default_rng(3)
    damping, friction = np.array([0.3, 0.1, 0.0]), np.array([0.1, 0.0, 0.0])
    for _ in range(20):
        q, u, tau = random.normal(size=(3, 3))
        place = np.array([q[0], np.cos(q[1]), np.sin(q[1]), q[2]])
        M = pin.crba(model, data, place)
        M = np.triu(M) + np.triu(M, 1).T
        h = pin.rnea(model, data, place, u, np.zeros(3))
        expected = np.linalg.solve(M, tau - h - damping * u - friction * np.sign(u))
        assert f(0.0, [*q, *u], tau)[3:] == pytest.approx(expected, rel=1e-11, abs=1e-11 * np.max(np.abs(expected)))


@pytest.mark.parametrize(
    "settings",
    [
        {"friction": "stick"},
        {"locked": {"j2": 0.4}, "inputs": "none", "mimic": "free"},
        {"prescribed": ["j1"], "gravity": [1.0, -2.0, 9.0]},
    ],
)
def test_the_second_reading_agrees(file: Path, settings: dict[str, object]) -> None:
    assert worst_against_second_reading(file, **settings) < 0.1


@pytest.mark.parametrize("method", ["kane", *by_night("lagrange", "tmt")])
def test_prescribed_joints_move_alike_by_every_formulation(file: Path, method: str) -> None:
    """The rate of a joint's given speed is its given acceleration, for SymPy's own methods, too."""
    settings = {"prescribed": ["j1"], "locked": {"j2": 0.4}}
    assert worst_of(pipeline.derive(file, method=method, arguments=settings)) < 0.1


@pytest.mark.parametrize("base", ["floating", "planar"])
def test_every_kind_of_joint_on_a_moving_base(tmp_path: Path, base: str) -> None:
    path = tmp_path / "any.urdf"
    path.write_text(ANY_JOINT)
    assert worst_against_second_reading(path, base=base) < 0.1


def test_the_second_reading_notices_a_fault_of_the_first(file: Path) -> None:
    """The file is changed between the two: as if the first reader had misread it."""
    derivation = pipeline.derive(file, arguments={"friction": "stick"}, method="recursive-composite")
    for given, instead in (
        ('rpy="0.1 0.2 0.3"', 'rpy="0.1 0.2 0.30001"'),
        ('axis xyz="0 0 -1"', 'axis xyz="0 0 1"'),
        ('multiplier="0.5"', 'multiplier="0.50001"'),
        ('mass value="0.2"', 'mass value="0.20001"'),
        ('type="continuous"', 'type="prismatic"'),
        ('friction="0.1"', 'friction="0.1001"'),
        ('multiplier="0.5" offset="0.1"/>', 'multiplier="0.5" offset="0.1"/><dynamics friction="0.001"/>'),
    ):
        file.write_text(ARM.replace(given, instead, 1))
        assert worst_of(derivation) > 100, instead


DRAKE = 'xmlns:drake="http://drake.mit.edu"'
ROTORS = {
    "text": "<mechanicalReduction>50</mechanicalReduction><motorInertia>0.0002</motorInertia>",
    "Drake's": f'<mechanicalReduction>1</mechanicalReduction><drake:gear_ratio {DRAKE} value="50"/>'
    f'<drake:rotor_inertia {DRAKE} value="0.0002"/>',
    "Drake's, its prefix declared nowhere": '<drake:gear_ratio value="50"/><drake:rotor_inertia value="0.0002"/>',
}


@pytest.mark.parametrize("expected", ROTORS)
def test_rotors_add_their_inertia_times_the_reduction_squared(tmp_path: Path, expected: str) -> None:
    text = f'<transmission name="t"><joint name="j"/><actuator name="m">{ROTORS[expected]}</actuator></transmission>'
    path = tmp_path / "one.urdf"
    path.write_text(robot(link("a"), link("b"), joint("j", "revolute", "a", "b")))
    bare = pipeline.rhs(path, method="recursive-composite")
    path.write_text(robot(link("a"), link("b"), joint("j", "revolute", "a", "b"), text))
    derivation = pipeline.derive(path, method="recursive-composite")
    geared = pipeline.right_hand_side(derivation)
    at = [0.0, [0.3, 0.0], [0.0], [0.0]]  # without gravity and at rest u' = tau / inertia
    inertia = [1.0 / float(f(at[0], at[1], [1.0], at[3])[1]) for f in (bare, geared)]
    assert inertia[1] - inertia[0] == pytest.approx(0.0002 * 50**2, rel=1e-12)
    assert worst_of(derivation) < 0.1


def test_impossible_inertias_are_refused_repaired_or_kept(tmp_path: Path) -> None:
    path = tmp_path / "odd.urdf"
    path.write_text(robot(link("a"), link("b").replace('izz="0.02"', 'izz="0.2"'), joint("j", "revolute", "a", "b")))
    with pytest.raises(ModelError, match=r"link b cannot be a body.*A \+ B ≥ C is broken"):
        pipeline.Model.from_urdf(path)
    model = pipeline.Model.from_urdf(path, inertia="repair")
    inertial = model.mechanics.tree.parts[1].inertia
    moments = np.linalg.eigvalsh(inertial.inertia)
    assert moments[0] + moments[1] == pytest.approx(moments[2])
    assert any("repaired" in note for note in model.mechanics.notes)
    kept = pipeline.Model.from_urdf(path, inertia="keep").mechanics.tree.parts[1].inertia
    assert np.linalg.eigvalsh(kept.inertia)[2] > moments[2]


def test_friction_of_followers_is_felt_by_their_leader(tmp_path: Path) -> None:
    path = tmp_path / "rub.urdf"
    path.write_text(ARM.replace('offset="0.1"/>', 'offset="0.1"/><dynamics friction="0.4"/>'))
    model = pipeline.Model.from_urdf(path, friction="stick")
    kinetic = [p.value for p in model.declared if p.name == "j1.friction.kinetic"]
    assert kinetic == pytest.approx([0.1 + 0.5 * 0.4])
    assert worst_against_second_reading(path, friction="stick") < 0.1
    ignored = pipeline.Model.from_urdf(path, friction="ignore")
    assert not ignored.added_loads
    assert "Coulomb friction is left out: joints j1, jm" in ignored.mechanics.notes


def test_hard_stops_push_as_their_parameters_say(tmp_path: Path) -> None:
    """One hinge: (u' beyond the bound − u' without stops) × inertia = stiffness × depth, inwards, at both ends."""
    path = tmp_path / "one.urdf"
    limit = '<limit lower="-0.5" upper="0.7" effort="9" velocity="9"/>'
    path.write_text(robot(link("a"), link("b"), joint("j", "revolute", "a", "b", limit)))
    model = pipeline.Model.from_urdf(path, limits="stop")
    stiffness = next(p.value for p in model.declared if p.name == "j.stop.stiffness")
    f, free = model.rhs(), pipeline.rhs(path, arguments={"limits": "ignore"}, method="recursive-composite")
    inertia = 1.0 / float(free(0.0, [0.0, 0.0], [1.0])[1] - free(0.0, [0.0, 0.0], [0.0])[1])
    assert stiffness == pytest.approx(inertia * 200.0**2, rel=5e-3)
    for angle, depth in ((-0.51, 0.01), (0.0, 0.0), (0.69, 0.0), (0.72, -0.02)):
        push = inertia * (f(0.0, [angle, 0.0], [0.0])[1] - free(0.0, [angle, 0.0], [0.0])[1])
        assert push == pytest.approx(stiffness * depth, abs=1e-9)
    declared = [pipeline.Model.from_urdf(path).declared, model.declared]
    assert [c.maximum for each in declared for c in each if c.name == "j.angle"] == [0.7, None]


def test_what_makes_the_mass_matrix_singular_is_named(tmp_path: Path) -> None:
    path = tmp_path / "light.urdf"
    path.write_text(robot(link("a"), '<link name="b"/>', joint("j", "revolute", "a", "b")))
    with pytest.raises(ModelError, match="joint j moves link b, which has no mass"):
        pipeline.Model.from_urdf(path)
    path.write_text(robot('<link name="a"/>', link("b"), joint("j", "revolute", "a", "b")))
    with pytest.raises(ModelError, match="joint base moves link a, which no inertia resists"):
        pipeline.Model.from_urdf(path, base="floating")


@pytest.mark.parametrize(("angle", "place"), [("0", "0 0 0.3"), ("1.5707963", "0.3 0 0"), ("0.7853982", "0.3 0 0.3")])
def test_mass_on_an_axis_but_for_the_digits_of_the_file_is_named(tmp_path: Path, angle: str, place: str) -> None:
    moments = 'ixx="{i}" iyy="{i}" izz="{i}" ixy="0" ixz="0" iyz="0"'
    mass = f'<inertial><origin xyz="{place}"/><mass value="2"/><inertia {moments}/></inertial>'
    turning = '<joint name="j" type="continuous"><parent link="a"/><child link="b"/><axis xyz="0 0 1"/></joint>'
    fixed = '<joint name="f" type="fixed"><parent link="b"/><child link="c"/>'
    fixed += f'<origin rpy="0 -{angle} 0"/></joint>'
    text = robot('<link name="a"/>', '<link name="b"/>', f'<link name="c">{mass}</link>', turning, fixed)
    path = tmp_path / "axis.urdf"
    path.write_text(text.format(i=0))
    with pytest.raises(ModelError, match="joint j moves link b, which no inertia resists"):
        pipeline.Model.from_urdf(path)
    path.write_text(text.format(i=1e-9))
    assert pipeline.Model.from_urdf(path)


def test_settings_are_judged_together(file: Path) -> None:
    with pytest.raises(ModelError) as caught:
        pipeline.Model.from_urdf(file, bsae="floating", limits="soft", gravity="1 2")
    assert len(caught.value.faults) == 3
    with pytest.raises(ModelError, match="joint j9, which does not exist"):
        pipeline.Model.from_urdf(file, locked={"j9": 0.0})


def test_a_side_file_is_read_and_arguments_come_before_it(file: Path) -> None:
    file.with_name("robot.toml").write_text('base = "planar"\ninputs = ["j1"]\n[[outputs]]\nframe = "tool"\n')
    model = pipeline.Model.from_urdf(file)
    assert model.mechanics.settings.base == "planar"
    assert [o.name for o in model.declared if type(o).__name__ == "OutputRequest"] == [
        "tool.position",
        "tool.orientation",
    ]
    assert pipeline.Model.from_urdf(file, base="fixed").mechanics.settings.base == "fixed"
    file.with_name("robot.toml").write_text("base = [1")
    with pytest.raises(ModelError, match="settings cannot be read"):
        pipeline.Model.from_urdf(file)


def test_outputs_states_and_efforts_can_be_added(file: Path) -> None:
    model = pipeline.Model.from_urdf(file, inputs="none")
    j1 = model.mechanics.position["j1"]
    model.mechanics.add_effort("j1", -40 * j1)
    model.output_position("tip", model.mechanics.point("tool", (0, 0, 0.1)))
    model.output_velocity("tip_velocity", model.mechanics.point("tool", (0, 0, 0.1)))
    f = model.rhs()
    x = [0.2, 0.1, 0.3, 0.5, -0.4, 0.7]
    step, y = 1e-6, f.outputs(0.0, x)
    ahead = f.outputs(0.0, [*(np.array(x[:3]) + step * np.array(x[3:])), *x[3:]])
    names = list(f.output_names)
    tip, rate = names.index("tip.x"), names.index("tip_velocity.x")
    assert (ahead[tip : tip + 3] - y[tip : tip + 3]) / step == pytest.approx(y[rate : rate + 3], abs=1e-5)
    bare = pipeline.Model.from_urdf(file, inputs="none").rhs()
    assert f(0.0, x)[3] < bare(0.0, x)[3] - 1.0


def test_names_are_legal_and_unique(tmp_path: Path) -> None:
    path = tmp_path / "names.urdf"
    parts = [
        link("a"),
        link("b"),
        link("c"),
        joint("left hip-1", "revolute", "a", "b"),
        joint("left.hip.1", "revolute", "b", "c"),
    ]
    path.write_text(robot(*parts, name="My Robot!"))
    model = pipeline.Model.from_urdf(path)
    assert model.name == "My_Robot"
    names = [item.name for item in model.declared]
    assert "left_hip_1.angle" in names
    assert "left_hip_1_2.angle" in names
    assert any("'left hip-1' is called left_hip_1" in note for note in model.mechanics.notes)


@pytest.mark.parametrize("base", ["fixed", *by_night("floating")])
def test_the_script_that_holds_robots_against_pinocchio_judges(tmp_path: Path, base: str) -> None:
    script = runpy.run_path(str(Path(__file__).parents[3] / "scripts" / "check_robots"))
    path = tmp_path / "arm.urdf"
    path.write_text(ARM)
    assert script["judged"](path, base, "refuse", 6)[0] == "right"
    other = script["loaded"](path, pin.JointModelFreeFlyer() if base == "floating" else None)[1]
    heavy = next(i for i in range(1, other.njoints) if other.names[i] == "j2")
    other.inertias[heavy].mass *= 1.0 + 1e-6
    derivation = pipeline.derive(path, arguments={"base": base, "friction": "ignore"}, method="recursive-composite")
    assert script["largest_error"](derivation, other, 6)[0] > 1.0


def test_a_sampled_controller_acts_on_a_robot(file: Path) -> None:
    """Events of a model were left out where its mechanics are a robot's, and nothing said so."""
    model = pipeline.Model.from_urdf(file, inputs="none", friction="ignore", stop=1.5)
    arm, torque, top = model.mechanics, me.dynamicsymbols("torque"), sm.Symbol("top")
    model.parameter(top, 9.0, "rad/s")
    model.discrete(torque, 0.0, "N.m")
    arm.add_effort("j1", torque)
    model.every(0.1, {torque: 1 - 4 * arm.position["j1"]}, name="sample")
    model.when(arm.speed["j2"] > top, {arm.speed["j2"]: 0}, name="brake")
    equations = pipeline.derive(model, method="recursive-composite").equations
    assert [event.name for event in equations.events] == ["sample", "brake"]
    result = pipeline.simulate(model)
    held = result["torque"]
    assert held[0] == pytest.approx(1 - 4 * result["j1.angle"][0])
    assert len(np.unique(np.round(held, 12))) > 10

    model.when(arm.speed["j2"] > top, {top: 1}, name="wrong")
    with pytest.raises(ModelError, match="wrong sets top"):
        pipeline.derive(model)
