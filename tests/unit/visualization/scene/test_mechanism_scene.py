"""Scenes: what stands where, against kinematics in NumPy; the same through JSON; what is refused."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
import sympy as sm
import sympy.physics.mechanics as me
from mechanisms import Numeric, cart_with_pathways, mechanism_of, moving_pivot, random_states, sympy_rolling_disc
from representatives import by_night

from mb2fmu import Model, visualization
from mb2fmu.errors import FormulationError, MechanismError, ModelError, PackageError
from mb2fmu.mechanics.formulations import formulate
from mb2fmu.mechanics.mechanism import read_mechanism
from mb2fmu.mechanics.mechanism.symbolic.symbolic_kinematics import SymbolicKinematics
from mb2fmu.model import Box, Cylinder, Mesh, Sphere, check_model
from mb2fmu.visualization.scene.scene_pose_trajectories import evaluate_scene_poses, sample_experiment_inputs
from mb2fmu.visualization.scene.scene_rotation_quaternions import quaternion_matrix


@pytest.mark.parametrize("build", [cart_with_pathways, moving_pivot, sympy_rolling_disc])
@pytest.mark.parametrize("method", [*by_night("kane"), "tmt"])
def test_points_and_rotations_are_those_of_the_mechanism(build, method):
    """Against Newton and Euler's kinematics in NumPy, which know nothing of Program."""
    mechanism = mechanism_of(build())
    scene = visualization.build_scene(mechanism, formulate(mechanism, method))
    numeric = Numeric(mechanism)
    located = [i for i, place in enumerate(mechanism.points) if place.located]
    if build is sympy_rolling_disc:  # it has no positions: turned rightly, about its contact point
        located = []
    for state in random_states(mechanism, 4):
        numeric.move(state)
        motion = visualization.StateTrajectory(np.array([state.t]), state.x[None], state.r[None], state.p)
        found = evaluate_scene_poses(scene, motion)
        expected = np.array([numeric.numeric.points[i].position for i in located])
        if located:
            np.testing.assert_allclose(found.points[0], expected, atol=1e-12)
        for body, record in zip(mechanism.bodies, scene.bodies, strict=True):
            if body.frame >= 0:
                turned = found.rotations[0, record.frame]
                np.testing.assert_allclose(turned, numeric.numeric.frames[body.frame].rotation, atol=1e-12)


def test_a_scene_is_the_same_through_json(scene, motion):
    content = scene.to_json()
    again = visualization.Scene.from_json(content, "unit.fmu")
    assert again.to_json() == content
    a, b = evaluate_scene_poses(scene, motion), evaluate_scene_poses(again, motion)
    for name in ("points", "rotations", "vectors", "sizes"):
        np.testing.assert_array_equal(getattr(a, name), getattr(b, name))


def test_arrows_are_the_loads(scene, motion):
    """Gravity is constant; torque and reaction are opposite; a pair is its vector."""
    found = evaluate_scene_poses(scene, motion).vectors
    p = {parameter.name: parameter.start for parameter in scene.parameters}
    np.testing.assert_allclose(found[:, 0], np.tile([0, -p["m"] * 2 * p["g"], 0], (len(motion.time), 1)), rtol=1e-12)
    np.testing.assert_allclose(found[:, 1], -found[:, 2], rtol=1e-12)
    assert [arrow.torque for arrow in scene.arrows] == [False, True, True, False]
    v = motion.states[:, [state.name for state in scene.states].index("v")]
    np.testing.assert_allclose(np.linalg.norm(found[:, 3] - np.stack([0 * v, v, 0 * v], axis=1), axis=1), 3, rtol=1e-12)


def test_signals_are_those_of_the_experiment():
    model = cart_with_pathways()
    F = me.dynamicsymbols("F")
    model.mechanics.add_loads((model.mechanics.bodies[1].masscenter, F * model.mechanics.x))
    model.input(F, 0.5, "N")
    t = me.dynamicsymbols._t
    model.experiment(stop=1.0, signals={F: 2 * sm.sin(3 * t)})
    mechanism = mechanism_of(model)
    scene = visualization.build_scene(mechanism, formulate(mechanism, "auto"))
    time = np.linspace(0, 1, 7)
    np.testing.assert_allclose(sample_experiment_inputs(scene, time), 2 * np.sin(3 * time)[:, None], rtol=1e-14)


def test_names_of_intermediates_do_not_meet():
    """What the poses name anew is not what the equations named: the same names may stand for other things."""
    mechanism = mechanism_of(cart_with_pathways())
    equations = formulate(mechanism, "kane")
    taken = {item.symbol.name for item in equations.intermediates}
    kinematics = SymbolicKinematics(mechanism, taken)
    for i in range(len(mechanism.points)):
        kinematics.position(i)
    assert kinematics.assignments
    assert not {a.symbol.name for a in kinematics.assignments} & taken


def lagrangian_alone(*, ground=True):
    q = me.dynamicsymbols("q")
    N, A, O = me.ReferenceFrame("N"), me.ReferenceFrame("A"), me.Point("O")
    A.orient_axis(N, N.z, q)
    tip = O.locatenew("tip", -2 * A.y)
    model = Model("Alone", me.LagrangesMethod(q.diff() ** 2 / 2 + sm.cos(q), [q]))
    model.coordinate(q, 0.3, "rad")
    model.speed(q.diff(), 0.0, "rad/s")
    if ground:
        model.place_in(N, O)
    model.visual(A, Cylinder(2.0, 0.1), at=O.locatenew("middle", -A.y))
    model.trace(tip)
    return model


def test_a_lagrangian_alone_can_be_drawn_on_frames_of_the_user_s(scene_of):
    scene = scene_of(lagrangian_alone())
    motion = visualization.StateTrajectory(
        np.array([0.0, 1.0]), np.array([[0.3, 0], [1.1, 0]]), np.zeros((2, 0)), np.zeros(0)
    )
    tip = evaluate_scene_poses(scene, motion).points[:, scene.traces[0].point]
    np.testing.assert_allclose(tip, [[2 * np.sin(q), -2 * np.cos(q), 0] for q in (0.3, 1.1)], rtol=1e-14)


def test_a_link_reaches_from_point_to_point(scene_of):
    """The ends of its cylinder are the two points, whatever they are given relative to."""
    model = lagrangian_alone()
    A, (_, O) = model.appearance_items[0].body, model.ground
    start, end = O.locatenew("start", 0.3 * A.x), O.locatenew("finish", 1.5 * A.x - 1.6 * A.y)
    model.link(A, start, end, radius=0.05)
    scene = scene_of(model)
    motion = visualization.StateTrajectory(
        np.array([0.0, 1.0]), np.array([[0.3, 0], [1.1, 0]]), np.zeros((2, 0)), np.zeros(0)
    )
    drawing = visualization.draw_motion(scene, motion)
    rod = drawing.solids[1]  # in the pose of A at the middle of the first shape, -A.y
    np.testing.assert_allclose(rod.sizes, (2.0, 0.05))
    along = quaternion_matrix(np.array(rod.turn))[:, 1] * rod.sizes[0] / 2
    np.testing.assert_allclose(np.array(rod.anchor.local) - along, [0.3, 1, 0], atol=1e-12)
    np.testing.assert_allclose(np.array(rod.anchor.local) + along, [1.5, -0.6, 0], atol=1e-12)


def test_a_lagrangian_alone_without_looks_has_no_scene(scene_of):
    model = lagrangian_alone()
    model.appearance_items.clear()
    assert scene_of(model) is None


def test_looks_are_judged_with_everything_else():
    model = cart_with_pathways()
    cart = model.mechanics.bodies[1]
    model.visual(cart, "a box")
    model.visual(cart, Sphere(-1))
    model.visual(cart, Cylinder(sm.Symbol("height"), 1), color="red")
    model.visual(cart.frame, Sphere(1))
    model.visual(cart, Sphere(1), opacity=0)
    model.trace(cart)
    model.arrow((cart.masscenter, 3))
    with pytest.raises(ModelError) as raised:
        check_model(model)
    text = str(raised.value)
    for part in ("'a box' is no shape", "size of -1", "height, which is no parameter", "no color 'red'"):
        assert part in text
    for part in ("frame cart_frame needs a point", "opacity of 0", "cannot be traced", "an arrow is requested for"):
        assert part in text
    with pytest.raises(ModelError, match="need an inertial frame"):
        check_model(lagrangian_alone(ground=False))


def test_what_is_not_fixed_in_its_body_is_refused():
    model = cart_with_pathways()
    cart, bob = model.mechanics.bodies[1:]
    model.visual(bob, Sphere(0.1), at=0.1 * cart.x)
    with pytest.raises(MechanismError, match="not fixed in the body"):
        read_mechanism(check_model(model))


def test_a_shape_at_a_point_without_a_position_is_refused(scene_of):
    model = cart_with_pathways()
    loose = me.Point("loose")
    loose.set_vel(model.mechanics.frame, 0)
    model.visual(model.mechanics.bodies[1].frame, Sphere(0.1), at=loose)
    with pytest.raises(FormulationError, match="without a position"):
        scene_of(model)


def test_mesh_files_that_cannot_be_read_are_named_all_at_once(scene_of, tmp_path):
    (tmp_path / "text.stl").write_text("no mesh")
    (tmp_path / "odd.xyzw").write_text("no mesh")
    model = cart_with_pathways()
    for name in ("missing.stl", "text.stl", "odd.xyzw"):
        model.visual(model.mechanics.bodies[1], Mesh(tmp_path / name))
    with pytest.raises(ModelError) as raised:
        scene_of(model)
    assert len(raised.value.faults) == 3
    assert "missing.stl cannot be read" in str(raised.value)


def _binary(triangles):
    return bytes(80) + (3).to_bytes(4, "little") + bytes(50 * triangles)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("cut.stl", _binary(2), "announces 3 triangles, which take 234 bytes, and has 184"),
        ("head.stl", _binary(0)[:60], "has 60 bytes"),
        ("text.stl", b"solid a\nfacet normal 0 0 1\nouter loop\n", "ends before endsolid"),
        ("face.obj", b"v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 9\nf 1 2 3\n", "line 4 names the vertex 9, and there are 3"),
        ("zero.obj", b"v 0 0 0\nv 1 0 0\nv 0 1 0\nf 0/1 1 2\n", "line 4 names the vertex 0"),
        ("back.obj", b"v 0 0 0\nv 1 0 0\nf -1 -2 -3\nv 0 1 0\n", "line 3 names the vertex -3, where 2 are known"),
        ("nan.obj", b"v 0 0 0\nv nan 0 0\nv 0 1 0\nf 1 2 3\n", "line 2 holds no place"),
    ],
)
def test_a_damaged_mesh_file_is_refused_with_its_place(name, content, message):
    with pytest.raises(ModelError, match=message):
        visualization.read_triangle_mesh(content, name)


@pytest.mark.parametrize(
    "damage",
    [
        lambda record: record.update(version=99),
        lambda record: record["bodies"][0].update(point=500),
        lambda record: record["program"].update(op=[1, 2]),
        lambda record: record["program"]["operations"].__setitem__(7, "EXECUTE"),
        lambda record: record.pop("shapes"),
        lambda record: record["meshes"][0].update(faces="AAAA"),
        lambda record: record["states"].pop(),
        lambda record: record["shapes"][0].update(color="red; background: url(x)"),
        lambda record: record["shapes"][0].update(color="#12345"),
        lambda record: record["shapes"][0].update(color=7),
        lambda record: record["shapes"][0].update(opacity="much"),
        lambda record: record["shapes"][0].update(kind="teapot"),
        lambda record: record["bodies"][0].update(name=None),
        lambda record: record["bodies"][0].update(point=0.5),
        lambda record: record["bodies"][0].update(mass=True),
        lambda record: record["states"][0].update(start="here"),
        lambda record: record.update(name=["a"]),
        lambda record: record.update(stop="5"),
        lambda record: record.update(step=0.0),
        lambda record: record.update(step=1e-300),
    ],
)
def test_a_damaged_scene_is_refused_in_plain_words(scene, damage):
    record = json.loads(scene.to_json())
    damage(record)
    with pytest.raises(PackageError, match="cannot be animated"):
        visualization.Scene.from_json(json.dumps(record).encode(), "unit.fmu")


def test_what_is_not_finite_stays_where_it_was(scene, motion):
    broken = motion.states.copy()
    broken[10:12] = np.nan
    found = evaluate_scene_poses(scene, replace(motion, states=broken)).points
    assert np.isfinite(found).all()
    np.testing.assert_array_equal(found[11], found[9])


def test_a_box_needs_no_more_than_its_edges():
    assert Box(1, 2, 3).sizes == (1, 2, 3)
