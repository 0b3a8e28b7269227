"""Compliant contact of a robot's links with surfaces of the ground, and springs between points of links."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import sympy as sm
import sympy.physics.mechanics as me
from representatives import by_night
from unit.robots.robot_texts import ARM
from unit.robots.test_robot_equations import worst_of

from mb2fmu import (
    Contact,
    CylinderSurface,
    HeightSurface,
    Impact,
    Latch,
    PlaneSurface,
    SphereSurface,
    SpringDamper,
    pipeline,
)
from mb2fmu.errors import ModelError
from mb2fmu.pipeline.derivation.right_hand_side import RightHandSide
from mb2fmu.validation.independent_import.independent_robot_accelerations import sample_independent_robot_accelerations

Array = npt.NDArray[np.float64]
FOOT, RADIUS = (0.1, 0.0, 0.2), 0.05
NORMAL = np.array([0.2, -0.1, 1.0]) / np.linalg.norm([0.2, -0.1, 1.0])
AXIS = np.array([0.6, 0.8, 0.0])
HEIGHT = 0.45
MIDDLE = (0.8, -0.2, 0.7)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "arm.urdf"
    path.write_text(ARM)
    return path


def model_of(file: Path) -> pipeline.Model:
    return pipeline.Model.from_urdf(file, friction="ignore", inputs="none")


def on_a_plane(p: Array) -> tuple[float, Array]:
    return float((p - [0, 0, HEIGHT]) @ NORMAL), NORMAL


def in_a_sphere(p: Array) -> tuple[float, Array]:
    d = p - MIDDLE
    return 0.6 - float(np.linalg.norm(d)), -d / np.linalg.norm(d)


def on_a_cylinder(p: Array) -> tuple[float, Array]:
    d = p - MIDDLE
    d = d - (d @ AXIS) * AXIS
    return float(np.linalg.norm(d)) - 0.4, d / np.linalg.norm(d)


def on_a_slope(p: Array) -> tuple[float, Array]:
    out = np.array([-0.3, 0.0, 1.0]) / np.hypot(0.3, 1.0)
    return float((p - [0, 0, HEIGHT]) @ out), out


@pytest.fixture(scope="module")
def pushed_arm(tmp_path_factory: pytest.TempPathFactory) -> RightHandSide:
    """The arm with a force and a torque at its tool as inputs."""
    path = tmp_path_factory.mktemp("pushed") / "arm.urdf"
    path.write_text(ARM)
    asked: dict[str, Any] = {
        "inputs": "none",
        "friction": "ignore",
        "loads": [{"frame": "tool", "of": ["force", "torque"], "offset": FOOT}],
        "outputs": [
            {"frame": "tool", "of": ["position", "velocity"], "offset": FOOT},
            {"frame": "tool", "of": "angular_velocity", "name": "turn"},
        ],
    }
    return pipeline.right_hand_side(pipeline.derive(path, arguments=asked, method="recursive-composite"))


@pytest.mark.parametrize("shape", [on_a_cylinder, on_a_slope, *by_night(on_a_plane, in_a_sphere)])
def test_a_link_is_pushed_as_the_law_says(
    file: Path, pushed_arm: RightHandSide, shape: Callable[[Array], tuple[float, Array]]
) -> None:
    """Hunt and Crossley's law in NumPy, put in as forces of another unit of the robot, moves it in the same way."""
    model = model_of(file)
    arm = model.mechanics
    low, middle = arm.point("ground", (0, 0, HEIGHT)), arm.point("ground", MIDDLE)
    surface = {
        on_a_plane: PlaneSurface(low, tuple(3 * NORMAL)),
        in_a_sphere: SphereSurface(middle, 0.6, inside=True),
        on_a_cylinder: CylinderSurface(middle, tuple(AXIS), 0.4),
        on_a_slope: HeightSurface(low, arm.frame("ground"), lambda x, _: 0.3 * x),
    }[shape]
    law = {"stiffness": 3e3, "dissipation": 0.4, "radius": RADIUS, "kinetic": 0.5, "slip_speed": 0.02}
    model.add(Contact("floor", "tool", surface, at=arm.point("tool", FOOT), **law))
    f, g = pipeline.right_hand_side(pipeline.derive(model, method="recursive-composite")), pushed_arm
    random, pressed = np.random.default_rng(2), 0
    for _ in range(30):
        x = random.uniform(-1, 1, 6)
        seen = dict(zip(g.output_names, g.outputs(0.0, x), strict=True))
        p, v, w = (
            np.array([seen[f"{name}.{i}"] for i in "xyz"])
            for name in ("tool.position", "tool.velocity", "turn.angular_velocity")
        )
        distance, out = shape(p)
        depth, arm_ = RADIUS - distance, -distance * out
        approach = -float(v @ out)
        force = 3e3 * max(depth, 0.0) ** 1.5 * max(0.0, 1 + 0.4 * approach)
        slip = v + np.cross(w, arm_)
        slip -= (slip @ out) * out
        rub = -0.5 * force * slip / np.sqrt(slip @ slip + 0.02**2)
        wanted = g(0.0, x, [*(force * out + rub), *np.cross(arm_, rub)])
        assert f(0.0, x) == pytest.approx(wanted, abs=1e-10 * np.abs(wanted).max())
        reported = dict(zip(f.output_names, f.outputs(0.0, x), strict=True))
        assert reported["floor.gap"] == pytest.approx(-depth, abs=1e-12)
        assert reported["floor.force"] == pytest.approx(force, abs=1e-8)
        assert reported["floor.friction"] == pytest.approx(float(np.linalg.norm(rub)), rel=1e-6, abs=1e-8)
        pressed += force > 0
    assert 3 < pressed < 27


def test_feet_with_bristles_are_pushed_as_the_law_says(file: Path, pushed_arm: RightHandSide) -> None:
    """Friction that sticks, along two tangents of a tilted plane, against the law in NumPy."""
    model = model_of(file)
    arm = model.mechanics
    floor = PlaneSurface(arm.point("ground", (0, 0, HEIGHT)), tuple(3 * NORMAL))
    law = {"stiffness": 3e3, "radius": RADIUS, "kinetic": 0.5, "slip_speed": 0.02, "presliding": 1e-3}
    model.add(Contact("floor", "tool", floor, at=arm.point("tool", FOOT), **law))
    derivation = pipeline.derive(model, method="recursive-composite")
    f, g = pipeline.right_hand_side(derivation), pushed_arm
    along = np.array([1.0, 0.0, 0.0]) - NORMAL[0] * NORMAL
    tangents = np.array([along / np.linalg.norm(along), np.cross(NORMAL, along) / np.linalg.norm(along)])
    random, pressed = np.random.default_rng(2), 0
    for _ in range(30):
        x = np.append(random.uniform(-1, 1, 6), random.uniform(-0.7, 0.7, 2))
        seen = dict(zip(g.output_names, g.outputs(0.0, x[:6]), strict=True))
        p, v, w = (
            np.array([seen[f"{name}.{i}"] for i in "xyz"])
            for name in ("tool.position", "tool.velocity", "turn.angular_velocity")
        )
        distance, out = on_a_plane(p)
        arm_, force = -distance * out, 3e3 * max(RADIUS - distance, 0.0) ** 1.5
        slip, z = tangents @ (v + np.cross(w, arm_)), x[6:]
        ratio = z + 0.5 * (1.0 - z @ z) * slip / np.sqrt(slip @ slip + 0.02**2)
        rub = -0.5 * force * ratio @ tangents
        wanted = g(0.0, x[:6], [*(force * out + rub), *np.cross(arm_, rub)])
        rates = f(0.0, x)
        assert rates[:6] == pytest.approx(wanted, abs=1e-10 * np.abs(wanted).max())
        yielding = max(0.0, z @ slip) * (max(0.0, z @ z - 0.5) / 0.5) ** 2
        bristles = (slip - yielding * z) / 1e-3 if force > 0 else -2 * 0.02 / 1e-3 * z
        assert rates[6:] == pytest.approx(bristles, rel=1e-9, abs=1e-9 * np.abs(bristles).max())
        pressed += force > 0
    assert 3 < pressed < 27
    assert worst_of(derivation) < 1


def test_points_at_which_an_added_state_has_no_value_are_drawn_again(file: Path) -> None:
    """Of z' = √(z + 0.2) − z about half of the random points have one."""
    model = model_of(file)
    z = sm.Function("z")(me.dynamicsymbols._t)
    torque, rate = sm.symbols("torque rate")
    model.parameter(torque, 2.0, "N.m")
    model.parameter(rate, 3.0, "1/s")
    model.state(z, rate * (sm.sqrt(z + sm.Rational(1, 5)) - z), 0.0, "1")
    model.mechanics.add_torque("tool", (torque * z, 0, 0))
    derivation = pipeline.derive(model, method="recursive-composite")
    made = sample_independent_robot_accelerations(derivation.checked, derivation.mechanism)
    assert len(made.samples) == 24
    assert worst_of(derivation) < 1


CARRIED = (0.1, 0.3, 0.0)
ACROSS = np.array([0.6, 0.8, 0.0])


@pytest.mark.parametrize("shape", [*by_night("plane"), "sphere"])
def test_two_links_push_each_other_as_the_law_says(file: Path, shape: str) -> None:
    """A surface that another link carries, against the law in NumPy: both links are pushed, at one place."""
    model = model_of(file)
    arm = model.mechanics
    place = arm.point("l1", CARRIED)
    surface = PlaneSurface(place, tuple(3 * ACROSS)) if shape == "plane" else SphereSurface(place, 0.5)
    law = {"stiffness": 3e3, "dissipation": 0.4, "radius": RADIUS, "kinetic": 0.5, "slip_speed": 0.02}
    model.add(Contact("pair", "tool", surface, at=arm.point("tool", FOOT), **law))
    derivation = pipeline.derive(model, method="recursive-composite")
    f = pipeline.right_hand_side(derivation)
    tip = tuple((np.array(CARRIED) + ACROSS).tolist())
    asked: dict[str, Any] = {
        "inputs": "none",
        "friction": "ignore",
        "loads": [
            {"frame": "tool", "of": ["force", "torque"], "offset": FOOT},
            {"frame": "l1", "of": ["force", "torque"], "offset": CARRIED},
        ],
        "outputs": [
            {"frame": "tool", "of": ["position", "velocity", "angular_velocity"], "offset": FOOT},
            {"frame": "l1", "of": ["position", "velocity", "angular_velocity"], "offset": CARRIED},
            {"frame": "l1", "of": "position", "offset": tip, "name": "tip"},
        ],
    }
    g = pipeline.right_hand_side(pipeline.derive(file, arguments=asked, method="recursive-composite"))
    random, pressed = np.random.default_rng(2), 0
    for _ in range(30):
        x = random.uniform(-1, 1, 6)
        seen = dict(zip(g.output_names, g.outputs(0.0, x), strict=True))
        (p, v, w), (p0, v0, w0), (p1,) = (
            [np.array([seen[f"{frame}.{name}.{i}"] for i in "xyz"]) for name in names]
            for frame, *names in (
                ("tool", "position", "velocity", "angular_velocity"),
                ("l1", "position", "velocity", "angular_velocity"),
                ("tip", "position"),
            )
        )
        p, v = p - p0, v - v0
        out = p1 - p0 if shape == "plane" else p / np.linalg.norm(p)
        distance = float(p @ out) - (0.0 if shape == "plane" else 0.5)
        arm_ = -distance * out
        depth, approach = RADIUS - distance, -float((v - np.cross(w0, p)) @ out)
        force = 3e3 * max(depth, 0.0) ** 1.5 * max(0.0, 1 + 0.4 * approach)
        slip = v + np.cross(w, arm_) - np.cross(w0, p + arm_)
        slip -= (slip @ out) * out
        rub = -0.5 * force * slip / np.sqrt(slip @ slip + 0.02**2)
        whole = force * out + rub
        wanted = g(0.0, x, [*whole, *np.cross(arm_, rub), *-whole, *-np.cross(p + arm_, whole)])
        assert f(0.0, x) == pytest.approx(wanted, abs=1e-10 * np.abs(wanted).max())
        pressed += force > 0
    assert 3 < pressed < 27
    assert worst_of(derivation) < 1


def test_the_second_reading_has_the_contact(file: Path) -> None:
    model = model_of(file)
    arm = model.mechanics
    points = (arm.point("tool", FOOT), arm.point("tool"))
    floor = PlaneSurface(arm.point("base", (0, 0, 1.0)), (0, 0, 1))  # a link that stands in the ground
    model.add(Contact("floor", "tool", floor, at=points, stiffness=3e3, kinetic=0.5, slip_speed=0.02))
    model.add(SpringDamper("rope", (arm.point("ground", (1, 0, 0)), points[0]), stiffness=90.0, damping=2.0, rest=0.3))
    derivation = pipeline.derive(model, method="recursive-composite")
    names = [item.name for item in derivation.checked.outputs]
    assert {"floor.point1.gap", "floor.point2.force"} <= {*names}
    assert worst_of(derivation) < 1


def test_a_spring_between_links_pulls_along_the_line(file: Path) -> None:
    model = model_of(file)
    arm = model.mechanics
    ends = (arm.point("l1", (0, 0.3, 0)), arm.point("tool", FOOT))
    model.add(SpringDamper("rope", ends, stiffness=90.0, damping=2.0, rest=0.3))
    f = pipeline.right_hand_side(pipeline.derive(model, method="recursive-composite"))
    asked = {
        "inputs": "none",
        "friction": "ignore",
        "loads": [{"frame": "l1", "offset": (0, 0.3, 0)}, {"frame": "tool", "offset": FOOT}],
        "outputs": [
            {"frame": "l1", "of": ["position", "velocity"], "offset": (0, 0.3, 0)},
            {"frame": "tool", "of": ["position", "velocity"], "offset": FOOT},
        ],
    }
    g = pipeline.right_hand_side(pipeline.derive(file, arguments=asked, method="recursive-composite"))
    x = np.random.default_rng(3).uniform(-1, 1, 6)
    p, v, q, w = g.outputs(0.0, x)[-12:].reshape(4, 3)
    way, length = q - p, np.linalg.norm(q - p)
    pull = 90.0 * (length - 0.3) + 2.0 * (w - v) @ way / length
    wanted = g(0.0, x, [*(pull * way / length), *(-pull * way / length)])
    assert f(0.0, x) == pytest.approx(wanted, abs=1e-12 * np.abs(wanted).max())
    reported = dict(zip(f.output_names, f.outputs(0.0, x), strict=True))
    assert reported["rope.force"] == pytest.approx(pull)


def test_what_cannot_touch_is_reported_at_once(file: Path) -> None:
    model = model_of(file)
    arm, z = model.mechanics, (0, 0, 1)
    floor = PlaneSurface(arm.point("ground"), z)
    model.add(Contact("a", "tol", floor, stiffness=1e4))
    model.add(Contact("b", "tool", PlaneSurface(arm.point("tool", (0, 0, 1)), z), stiffness=1e4))
    heights = HeightSurface(arm.point("l1"), arm.frame("ground"), lambda x, _: x)
    model.add(Contact("bb", "tool", heights, stiffness=1e4))
    model.add(Contact("bc", "tool", PlaneSurface(arm.point("l1"), (0, 0, 0)), stiffness=1e4))
    model.add(Contact("c", "tool", PlaneSurface(arm.point("ground"), 3), stiffness=-1.0))
    model.add(Contact("d", "tool", floor, at=arm.point("l1"), stiffness=1e4))
    model.add(Contact("e", "tool", floor, stiffness=1e4, kinetic=0.3, plane=z))
    model.add(Contact("f", "tool", "floor", stiffness=1e4))
    model.add(SpringDamper("g", (arm.point("ground"), arm.point("base")), stiffness=1.0))
    model.add(Impact("h", arm.velocity_of("tool")[2]))
    model.add(Latch("i", arm.velocity_of("tool")[2], close=arm.position_of("tool")[2] < 0, within=None))
    with pytest.raises(ModelError) as caught:
        pipeline.derive(model)
    for part in (
        "Contact a: what touches is 'tol'",
        "give the name of a link that moves: l1, l2, l3, tool, l4",
        "Contact b: its surface is carried by tool itself",
        "Contact bb: heights are carried by the link l1",
        "Contact bc: the normal of its surface",
        "Contact c: the normal of its surface is 3",
        "Contact c: stiffness is -1",
        "Contact d: it touches with l1, a point of another link",
        "give slip_speed=1e-2, and presliding=1e-3 if it sticks",
        "Contact f: its surface is 'floor'",
        "SpringDamper g: both ends stand still",
        "the gap of h contains velocity_of_tool_z(t), and must contain no speeds",
        "what i.force holds contains velocity_of_tool_z(t), and must contain no speeds",
    ):
        assert part in str(caught.value)


def test_a_contact_that_opens_is_an_event(file: Path) -> None:
    """A force of its own holds the tool on a floor and lets it go."""
    model = model_of(file)
    arm = model.mechanics
    floor = PlaneSurface(arm.point("ground", (0, 0, 0.72)), (0, 0, 1))
    model.add(Contact("floor", "tool", floor, at=arm.point("tool", FOOT), stiffness=1e4, exponent=1))
    result = pipeline.simulate(model)
    gaps = np.array(result["floor.gap"])
    assert gaps.min() < 0 < gaps.max()
    assert np.all((np.array(result["floor.force"]) > 0) == (gaps < 0))
