"""Contacts, latches and frictions in the moving picture: where they push, what they are, when they are struck."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import numpy as np
import pytest
import sympy as sm
import sympy.physics.mechanics as me
from representatives import by_night

from mb2fmu import Backlash, CoulombFriction, HardStop, Impact, Latch, Model, pipeline, visualization
from mb2fmu.errors import PackageError
from mb2fmu.pipeline.display.fmu_motion_drawings import get_model_scene
from mb2fmu.visualization.scene.contact_overlay import STATE_OPEN, STATE_SLIDING, STATE_STICKING, form_contact_overlay
from mb2fmu.visualization.scene.drawing_from_scene import locate_scene_contacts
from mb2fmu.visualization.scene.mechanism_scene import Scene
from mb2fmu.visualization.scene.scene_pose_trajectories import StateTrajectory

ALPHA = 0.3


@pytest.fixture(scope="module")
def scene() -> Scene:
    """Two masses in a plane: one against a wall that leans, one against the other, a bolt, a slide; an odd gap."""
    x, y, s, v, w, r = me.dynamicsymbols("x y s v w r")
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    P, Q = O.locatenew("P", x * N.x + y * N.y), O.locatenew("Q", s * N.x)
    P.set_vel(N, v * N.x + w * N.y)
    Q.set_vel(N, r * N.x)
    bodies = [me.Particle("first", P, 1), me.Particle("second", Q, 2)]
    rates = [x.diff() - v, y.diff() - w, s.diff() - r]
    kane = me.KanesMethod(N, [x, y, s], [v, w, r], rates, bodies=bodies, forcelist=[(P, -9.81 * N.y)])
    model = Model("Touching", kane)
    for coordinate, start in ((x, 0.5), (y, 0.2), (s, 2.0)):
        model.coordinate(coordinate, start, "m")
    for speed in (v, w, r):
        model.speed(speed, 0.1, "m/s")
    tangent = -sm.sin(ALPHA) * v + sm.cos(ALPHA) * w
    model.add(Impact("wall", x * sm.cos(ALPHA) + y * sm.sin(ALPHA), slip=tangent, friction=0.3))
    model.add(Impact("other", sm.sqrt((s - x) ** 2 + y**2) - sm.Rational(1, 2)))
    model.add(Impact("far", 3 * s - x**2))
    model.add(Latch("bolt", [s - x - 1], within=0.1, close=s - x <= 1))
    model.add(CoulombFriction("slide", (O, Q, N.x), kinetic=0.2))
    return get_model_scene(pipeline.derive(model))


def motion_of(scene: Scene) -> tuple[StateTrajectory, visualization.PlotSignals]:
    """Ten instants made by hand: the wall is struck in the step to the fourth, slides from there and sticks at last."""
    n, names = 10, [state.name for state in scene.states]
    time = np.arange(n) * 0.1
    values = np.tile([state.start for state in scene.states], (n, 1))
    values[:, names.index("x")] += 0.03 * np.arange(n)
    values[:, names.index("y")] += 0.02 * np.arange(n)
    columns = dict(zip(names, values.T, strict=True))
    columns["wall.impacts"][3:], columns["wall.impulse"][3:] = 1, 2.5
    columns["wall.resting"][3:], columns["wall.sliding"][3:7] = 1, -1
    columns["bolt.engaged"][5:] = 1
    outputs = {output.name: np.zeros(n) for output in scene.outputs}
    outputs["wall.force"][3:], outputs["bolt.force"][5:] = 4.0, -8.0
    outputs["slide.force"][:], outputs["slide.sticking"][:5] = 0.2, 1
    values = np.stack([columns[name] for name in names], axis=1)
    signals = visualization.PlotSignals(
        (*names, *outputs), ("1",) * (len(names) + len(outputs)), np.column_stack([values, *outputs.values()])
    )
    return StateTrajectory(time, values, np.zeros((n, 0)), np.array([p.start for p in scene.parameters])), signals


def test_a_touch_is_where_a_point_moves_as_its_gap(scene):
    motion, _ = motion_of(scene)
    found = {}
    for place in locate_scene_contacts(scene, motion):
        found.setdefault(scene.touches[place.touch].name, []).append(place)
    assert sorted(found) == ["bolt", "other", "wall"]  # "far" is no distance, "slide" has no gap
    (wall,) = found["wall"]
    assert wall.directions == pytest.approx(np.tile([np.cos(ALPHA), np.sin(ALPHA), 0.0], (10, 1)), abs=1e-8)
    first, second = found["other"]
    names = [state.name for state in scene.states]
    x, y, s = (motion.states[:, names.index(name)] for name in "xys")
    line = np.stack([s - x, -y, 0 * x], axis=1) / np.hypot(s - x, y)[:, None]
    pushes = {p.point: p.directions for p in (first, second)}
    assert np.allclose(sorted([d[0, 0] for d in pushes.values()]), sorted([-line[0, 0], line[0, 0]]), atol=1e-6)
    for directions in pushes.values():
        assert np.allclose(directions, line * np.sign(directions[0, 0]), atol=1e-6)
    assert [p.directions[0].round(6).tolist() for p in found["bolt"]] in (
        [[1, 0, 0], [-1, 0, 0]],
        [[-1, 0, 0], [1, 0, 0]],
    )


def test_efforts_states_and_impacts_are_the_variables(scene):
    motion, signals = motion_of(scene)
    drawing = visualization.draw_motion(scene, motion)
    found = form_contact_overlay(drawing, signals)
    each = {touch["name"]: touch for touch in found.parts["each"]}
    assert list(each) == ["wall", "other", "far", "bolt", "slide"]
    assert each["wall"]["impacts"] == [[0.3, 1.0, 2.5]]
    assert each["wall"]["words"] == ["open", "sticks", "slides"]
    states = dict(zip(each, found.values[:, 0 : 2 * len(each) : 2].T.tolist(), strict=True))
    assert states["wall"] == [STATE_OPEN] * 3 + [STATE_SLIDING] * 4 + [STATE_STICKING] * 3
    assert states["bolt"] == [STATE_OPEN] * 5 + [STATE_STICKING] * 5
    assert states["slide"] == [STATE_STICKING] * 5 + [STATE_OPEN] * 5
    sizes = dict(zip(each, found.values[:, 1 : 2 * len(each) : 2].T.tolist(), strict=True))
    assert sizes["wall"][-1] == 4.0
    assert sizes["bolt"][-1] == 8.0
    arrows = found.values[-1, 2 * len(each) :].reshape(-1, 3)
    lengths = {
        each_place["touch"]: np.linalg.norm(a) for each_place, a in zip(found.parts["pushed"], arrows, strict=True)
    }
    assert lengths[3] == pytest.approx(0.25 * max(drawing.span))  # the largest force
    assert lengths[0] == pytest.approx(lengths[3] / 2)
    assert form_contact_overlay(drawing, None) is None
    assert form_contact_overlay(drawing, replace(signals, names=tuple(f"no {name}" for name in signals.names))) is None


def test_scenes_travel_with_touches_and_read_those_without(scene):
    content = scene.to_json()
    assert visualization.Scene.from_json(content, "unit").touches == scene.touches
    record = json.loads(content)
    del record["touches"]
    assert visualization.Scene.from_json(json.dumps(record).encode(), "unit").touches == ()
    record["touches"] = json.loads(content)["touches"]
    record["touches"][0]["gaps"] = [99]
    with pytest.raises(PackageError, match="refers to what is not there"):
        visualization.Scene.from_json(json.dumps(record).encode(), "unit")


@pytest.mark.parametrize(
    ("t", "expected"),
    [
        (0.31, ["wall: slides 4 N ⚡ 2.5 N.s", "other: open", "far: open", "bolt: open", "slide: sticks 0.2 N"]),
        *by_night((0.85, ["wall: sticks 4 N", "other: open", "far: open", "bolt: closed 8 N", "slide: slides"])),
    ],
)
def test_in_a_browser_words_and_flashes_follow_the_motion(scene, browser, t, expected):
    motion, signals = motion_of(scene)
    page = visualization.render_animation_page(visualization.draw_motion(scene, motion), signals)
    shown = browser(page, "--dump-dom", fragment=f"#t={t}&pause")
    found = re.findall(r'<li data-state="(\w+)" data-impact="(\w+)">([^<]*)</li>', shown)
    assert [text for _, _, text in found] == expected
    states = {"wall: slides": "slides", "wall: sticks": "held", "bolt: closed": "held", "slide: sticks": "held"}
    for state, impact, text in found:
        assert state == states.get(" ".join(text.split()[:2]), "open"), text
        assert impact == ("yes" if "⚡" in text else "no"), text


def stopped(lever: float) -> Scene:
    """A mass between two compliant stops, and an arm with play at its joint, whose end is ``lever`` m away."""
    x, v, phi, omega = me.dynamicsymbols("x v phi omega")
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    A = N.orientnew("A", "Axis", (phi, N.z))
    A.set_ang_vel(N, omega * N.z)
    P = O.locatenew("P", x * N.x)
    P.set_vel(N, v * N.x)
    B = O.locatenew("B", lever * A.x)
    B.v2pt_theory(O, N, A)
    bodies = [me.Particle("cart", P, 1), me.Particle("bob", B, 1)]
    kane = me.KanesMethod(N, [x, phi], [v, omega], [x.diff() - v, phi.diff() - omega], bodies=bodies)
    model = Model("Stopped", kane)
    model.coordinate(x, 0.0, "m")
    model.coordinate(phi, 0.0, "rad")
    model.speed(v, 1.0, "m/s")
    model.speed(omega, 1.0, "rad/s")
    model.add(HardStop("stop", (O, P, N.x), stiffness=1e3, damping=1.0, lower=-0.2, upper=0.1))
    model.add(Backlash("play", (None, A, N.z), stiffness=50.0, position=phi, play=0.1))
    return get_model_scene(pipeline.derive(model))


@pytest.mark.parametrize("lever", [0.7, 1.0])
def test_compliant_stops_and_play_push_where_they_act(lever):
    scene = stopped(lever)
    n, names = 6, [state.name for state in scene.states]
    values = np.tile([state.start for state in scene.states], (n, 1))
    values[:, names.index("x")] = np.linspace(-0.25, 0.15, n)
    values[:, names.index("phi")] = np.linspace(0.0, 0.1, n)
    x, phi = values[:, names.index("x")], values[:, names.index("phi")]
    motion = StateTrajectory(
        np.arange(n) * 0.1, values, np.zeros((n, 0)), np.array([p.start for p in scene.parameters])
    )
    (stop,) = locate_scene_contacts(
        scene, motion
    )  # a torque is no arrow, though the end of a lever of 1 m moves as the angle
    assert scene.touches[stop.touch].name == "stop"
    assert stop.directions == pytest.approx(np.tile([1.0, 0.0, 0.0], (n, 1)), abs=1e-8)
    force = 1e3 * (np.maximum(-0.2 - x, 0) - np.maximum(x - 0.1, 0))
    torque = -50.0 * np.maximum(phi - 0.05, 0)
    columns = (*names, "stop.force", "play.torque")
    signals = visualization.PlotSignals(columns, ("1",) * len(columns), np.column_stack([values, force, torque]))
    found = form_contact_overlay(visualization.draw_motion(scene, motion), signals)
    assert [(each["name"], each["unit"]) for each in found.parts["each"]] == [("stop", "N"), ("play", "N.m")]
    assert {word for each in found.parts["each"] for word in each["words"]} == {"open", "rests", "touches"}
    assert np.array_equal(found.values[:, 0] == STATE_SLIDING, force != 0)
    assert np.array_equal(found.values[:, 2] == STATE_SLIDING, torque != 0)
    assert np.array_equal(np.sign(found.values[:, 4]), np.sign(force))  # inwards, along x
