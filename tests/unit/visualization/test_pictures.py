"""Rotations, ellipsoids, numbers as characters, stills: laws, and the numbers of simple cases."""

from __future__ import annotations

import re
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from animation_channels import decode_animation_channels
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from lxml import etree
from scipy.spatial.transform import Rotation

from mb2fmu import visualization
from mb2fmu.errors import ModelError
from mb2fmu.model import Box
from mb2fmu.visualization.animation_page import QUANTIZATION_STEPS, encode_animation_channels
from mb2fmu.visualization.scene.drawing_from_scene import (
    BODY_COLOURS,
    choose_viewpoint,
    compute_anchor_positions,
    inertia_ellipsoid,
    is_motion_of_spheres_only,
)
from mb2fmu.visualization.scene.drawing_records import WORLD_POSE, DrawnSolid, PoseAnchorPoint
from mb2fmu.visualization.scene.scene_rotation_quaternions import (
    align_quaternion_signs,
    quaternion_matrix,
    quaternion_product,
    quaternions_from_matrices,
    rotate_vector,
    rotation_from_y_axis,
)
from mb2fmu.visualization.scene.triangle_meshes import decimate_mesh

SVG = "{http://www.w3.org/2000/svg}"
finite = st.floats(-1e6, 1e6)
angles = arrays(np.float64, 3, elements=st.floats(-4, 4))


@given(arrays(np.float64, (5, 3), elements=st.floats(-4, 4)))
def test_quaternions_are_those_of_the_rotations(vectors):
    rotations = Rotation.from_rotvec(vectors)
    found = quaternions_from_matrices(rotations.as_matrix())
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1, rtol=1e-14)
    np.testing.assert_allclose([quaternion_matrix(q) for q in found], rotations.as_matrix(), atol=1e-14)


@given(angles, angles, arrays(np.float64, 3, elements=st.floats(-9, 9)))
def test_products_turn_one_after_another(a, b, vector):
    p, q = (quaternions_from_matrices(Rotation.from_rotvec(v).as_matrix()[None])[0] for v in (a, b))
    together = rotate_vector(quaternion_product(p, q)[None], vector)[0]
    np.testing.assert_allclose(together, rotate_vector(p[None], rotate_vector(q[None], vector)[0])[0], atol=1e-13)


def test_a_turning_body_has_no_jumps():
    turns = quaternions_from_matrices(
        Rotation.from_rotvec(np.outer(np.linspace(0, 20, 400), [0, 0.6, 0.8])).as_matrix()
    )
    assert np.abs(np.diff(turns, axis=0)).max() > 1
    assert np.abs(np.diff(align_quaternion_signs(turns), axis=0)).max() < 0.03


@given(arrays(np.float64, 3, elements=st.floats(-3, 3)))
def test_y_is_turned_into_a_direction(direction):
    size = np.linalg.norm(direction)
    expected = direction / size if size > 0 else np.array([0.0, 1.0, 0.0])
    np.testing.assert_allclose(quaternion_matrix(np.array(rotation_from_y_axis(direction)))[:, 1], expected, atol=1e-7)


@given(arrays(np.float64, 3, elements=st.floats(0.01, 2)), angles, st.floats(0.1, 50))
@settings(max_examples=50)
def test_the_ellipsoid_has_the_mass_and_the_inertia_of_its_body(half, vector, mass):
    """Forward: I_a = m/5 (b² + c²), turned; back through ``ellipsoid``; forward again."""
    R = Rotation.from_rotvec(vector).as_matrix()
    tensor = R @ np.diag(mass / 5 * (np.sum(half**2) - half**2)) @ R.T
    found, turn = inertia_ellipsoid(mass, tensor[[0, 1, 2, 0, 1, 0], [0, 1, 2, 1, 2, 2]])
    Q = quaternion_matrix(np.array(turn))
    np.testing.assert_allclose(Q @ np.diag(mass / 5 * (np.sum(found**2) - found**2)) @ Q.T, tensor, atol=1e-9 * mass)


def test_a_thin_rod_has_no_thickness_and_nothing_has_no_ellipsoid():
    half, _ = inertia_ellipsoid(3.0, np.array([0.25, 0.0, 0.25, 0, 0, 0]))  # of length 1
    np.testing.assert_allclose(half, [0, np.sqrt(5 / 12), 0], atol=1e-15)
    assert inertia_ellipsoid(1.0, np.zeros(6)) is None
    assert inertia_ellipsoid(0.0, np.ones(6)) is None


@given(arrays(np.float64, (7, 2), elements=finite))
def test_what_is_sent_is_what_was_to_the_width_of_a_step(values):
    found = decode_animation_channels(encode_animation_channels(values), 7)
    span = np.ptp(values, axis=0)
    size = np.abs(values).max(axis=0)
    assert np.all(np.abs(found - values) <= 0.51 * span / QUANTIZATION_STEPS + 6e-9 * size + 1e-30)


def test_smooth_motion_takes_few_characters():
    t = np.linspace(0, 10, 1000)[:, None]
    values = np.sin(t * np.arange(1, 11) / 3)
    assert len(encode_animation_channels(values)["data"]) < 0.45 * 4 / 3 * values.size * 4  # base64 of float32
    assert encode_animation_channels(np.full((1000, 2), 3.5))["ranges"] == [[3.5], [3.5]]


def test_what_is_fixed_in_a_body_moves_with_it(scene, motion, drawing):
    """Every solid, wherever it was fixed, is where the scene's own points and rotations put it."""
    where = visualization.scene.scene_pose_trajectories.evaluate_scene_poses(scene, motion)
    for shape, solid in zip(scene.shapes, drawing.solids, strict=False):
        offset = where.sizes[shape.offset : shape.offset + 3]
        expected = where.points[:, shape.point] + where.rotations[:, shape.frame] @ offset
        np.testing.assert_allclose(compute_anchor_positions(drawing.poses, solid.anchor), expected, atol=1e-9)
    trace = drawing.traces[0]
    np.testing.assert_allclose(
        compute_anchor_positions(drawing.poses, trace.anchor), where.points[:, scene.traces[0].point], atol=1e-9
    )


def test_only_what_moves_by_itself_has_a_pose(drawing):
    """Cart and bob, and no third: joints, shapes, springs and the traced point are fixed in them or in the ground."""
    assert drawing.poses.positions.shape[1] == 2
    assert {solid.anchor.pose for solid in drawing.solids} <= {WORLD_POSE, 0, 1}


def ground(solid):
    return replace(solid, anchor=PoseAnchorPoint(WORLD_POSE, solid.anchor.local))


def seen_from_z(drawing, solid):
    return replace(
        drawing,
        solids=(solid,),
        lines=(),
        traces=(),
        arrows=(),
        up=np.array([0.0, 1.0, 0.0]),
        view_direction=np.array([0.0, 0.0, 1.0]),
    )


def test_outlines_of_an_ellipsoid_and_a_cylinder_are_exact(drawing):
    """An ellipsoid turned by 30° about the line of sight; a cylinder that is seen from its end, and from its side."""
    turn = tuple(quaternions_from_matrices(Rotation.from_euler("z", 30, degrees=True).as_matrix()[None])[0])
    ball = DrawnSolid(
        "ellipsoid", (2.0, 1.0, 5.0), PoseAnchorPoint(WORLD_POSE, (0, 0, 0)), turn, BODY_COLOURS[0], 1.0, "shape"
    )
    shown = etree.fromstring(visualization.render_still_picture(seen_from_z(drawing, ball), triad=False)).find(
        f".//{SVG}ellipse"
    )
    assert float(shown.get("rx")) / float(shown.get("ry")) == pytest.approx(2, abs=2e-3)
    angle = float(re.search(r"rotate\((\S+)", shown.get("transform"))[1])
    assert angle % 180 == pytest.approx(150)  # the picture's y points down
    end = DrawnSolid(
        "cylinder",
        (3.0, 0.5),
        PoseAnchorPoint(WORLD_POSE, (0, 0, 0)),
        rotation_from_y_axis(np.array([0, 0, 1.0])),
        BODY_COLOURS[0],
        1.0,
        "rod",
    )
    shown = etree.fromstring(visualization.render_still_picture(seen_from_z(drawing, end), triad=False)).find(
        f".//{SVG}ellipse"
    )
    assert shown.get("rx") == shown.get("ry")
    side = replace(end, turn=(1.0, 0.0, 0.0, 0.0))
    picture = etree.fromstring(visualization.render_still_picture(seen_from_z(drawing, side), triad=False))
    assert picture.find(f".//{SVG}ellipse") is None
    numbers = [float(n) for n in re.findall(r"-?[\d.]+", picture.find(f".//{SVG}path").get("d"))]
    assert numbers  # a rectangle three times as high as it is wide
    xs, ys = [numbers[0], numbers[-2]], [numbers[1], numbers[-1]]
    assert abs(xs[0] - xs[1]) < 0.2
    assert abs(ys[0] - ys[1]) / (2 * abs(xs[0] - float(picture.get("width")) / 2)) == pytest.approx(3, rel=5e-3)


def test_a_still_is_a_picture_the_same_each_time_and_of_its_instant(scene, motion, drawing):
    first = visualization.render_still_picture(drawing, 0.0, strobe=0)
    assert first == visualization.render_still_picture(visualization.draw_motion(scene, motion), 0.0)
    assert first != visualization.render_still_picture(drawing, 1.3)
    root = etree.fromstring(visualization.render_still_picture(drawing, 1.3, strobe=3, background="#ffffff"))
    assert len(root.findall(f"{SVG}g")) == 4
    width, height = float(root.get("width")), float(root.get("height"))
    for shown in root.iter(f"{SVG}ellipse"):
        assert 0 <= float(shown.get("cx")) <= width
        assert 0 <= float(shown.get("cy")) <= height


@pytest.mark.parametrize("speed", [0.0, 400.0])
def test_a_film_keeps_its_scale_and_its_eye_unless_it_follows(drawing, speed):
    """A sphere is as large in every picture; where nothing travels, what stands in N stays where it is."""
    ball = DrawnSolid(
        "sphere", (0.3,), PoseAnchorPoint(0, (0, 0, 0)), (1.0, 0.0, 0.0, 0.0), BODY_COLOURS[0], 1.0, "ball"
    )
    post = replace(ball, anchor=PoseAnchorPoint(WORLD_POSE, (0, 0, 0)))
    poses = drawing.poses
    away = np.outer(speed * (poses.time - poses.time[0]), [1.0, 0.0, 0.0])
    moving = replace(poses, positions=poses.positions + away[:, None, :])
    beside = replace(ball, anchor=PoseAnchorPoint(0, (0, 1, 0)))
    solids = (ball, beside) if speed else (ball, post)
    some = replace(drawing, solids=solids, lines=(), traces=(), arrows=(), poses=moving)
    times = np.linspace(poses.time[0], poses.time[-1], 7).tolist()
    pictures = [etree.fromstring(each) for each in visualization.render_video_frames(some, times)]
    assert len({picture.get("viewBox") for picture in pictures}) == 1
    circles = [picture.findall(f".//{SVG}ellipse") for picture in pictures]
    assert len({circle.get("rx") for some in circles for circle in some}) == 1
    if speed:
        assert len({some[0].get("cx") for some in circles}) == 1
        return
    shared = set.intersection(*({(c.get("cx"), c.get("cy")) for c in some} for some in circles))
    assert len(shared) == 1


def test_a_ball_alone_is_not_followed(drawing):
    """From near a ball shows nothing of its motion: the whole way is in the picture, and the ball moves in it."""
    ball = DrawnSolid(
        "sphere", (0.02,), PoseAnchorPoint(0, (0, 0, 0)), (1.0, 0.0, 0.0, 0.0), BODY_COLOURS[0], 1.0, "shape"
    )
    assert is_motion_of_spheres_only(
        (ball, replace(ball, sizes=(0.01,)), replace(ball, anchor=PoseAnchorPoint(WORLD_POSE, (0, 0, 0))))
    )
    assert not is_motion_of_spheres_only((ball, replace(ball, anchor=PoseAnchorPoint(0, (0, 1, 0)))))
    assert not is_motion_of_spheres_only((replace(ball, kind="box", sizes=(1.0, 1.0, 1.0)),))
    poses = drawing.poses
    away = np.outer(poses.time - poses.time[0], 2.0 * drawing.up)
    moving = replace(poses, positions=poses.positions + away[:, None, :])
    some = replace(drawing, solids=(ball,), lines=(), traces=(), arrows=(), poses=moving)
    pictures = [
        etree.fromstring(each) for each in visualization.render_video_frames(some, [poses.time[0], poses.time[-1]])
    ]
    first, last = (float(picture.find(f".//{SVG}ellipse").get("cy")) for picture in pictures)
    assert first - last > 0.5 * float(pictures[0].get("height"))


def test_gravity_says_where_up_is_and_a_plane_is_seen_from_the_front(drawing, scene_of):
    np.testing.assert_allclose(drawing.up, [0, 1, 0], atol=1e-15)
    assert not drawing.flat  # a spring comes from the side
    from mechanisms import moving_pivot

    model = moving_pivot()
    N, O = model.mechanics.frame, model.mechanics.origin
    model.visual(N, Box(2, 1, 0.1), at=O.locatenew("wall", -0.4 * N.z))  # scenery tells nothing of the motion
    scene = scene_of(model)
    time = np.linspace(0, 2, 30)
    states = np.stack([np.sin(time), np.cos(time)], axis=1)
    p = np.array([v.start for v in scene.parameters])
    flat = visualization.draw_motion(scene, visualization.StateTrajectory(time, states, np.zeros((30, 0)), p))
    assert flat.flat
    np.testing.assert_allclose(flat.view_direction, [0, 0, 1], atol=1e-12)


@pytest.mark.parametrize(("place", "seen_from"), [(-1.0, 1.0), (0.0, -1.0), (1.0, -1.0)])
def test_what_stands_still_is_not_looked_at_from_behind(place, seen_from):
    """A forearm hides the hand from behind: the eye is on the other side. What stands elsewhere changes nothing."""
    moving = np.array([[0.0, y, z] for y in (-0.4, 0.0, 0.4) for z in (0.0, 0.3)])
    where = SimpleNamespace(points=np.stack([moving, moving + np.array([0.1, 0.0, 0.2])]), up=None)
    _, toward, flat = choose_viewpoint(where, range(6), moving, np.array([[0.0, place, 0.0]]))
    assert not flat
    assert np.sign(toward[1]) == seen_from


def test_a_way_much_longer_than_the_mechanism_leaves_the_picture(drawing):
    """A traveller is as large in its still as at rest, and the page knows its size; a short way stays in it."""
    poses, far = drawing.poses, np.array([400.0, 0.0, 0.0])
    way = np.linspace(0, 1, len(poses.time))[:, None, None] * far
    moving = tuple(solid for solid in drawing.solids if solid.anchor.pose != WORLD_POSE)
    lines = tuple(line for line in drawing.lines if all(anchor.pose != WORLD_POSE for anchor in line.anchors))
    alone = replace(drawing, solids=moving, lines=lines, arrows=())
    sizes = []
    for some in (replace(alone, traces=()), replace(alone, poses=replace(poses, positions=poses.positions + way))):
        root = etree.fromstring(visualization.render_still_picture(some))
        sizes.append((root.get("width"), root.get("height")))
    assert sizes[0] == sizes[1]
    assert not drawing.travels_far
    reach = np.linalg.norm(np.ptp(poses.positions, axis=1), axis=1).max()
    assert reach < drawing.near


def sphere_mesh():
    import trimesh

    return trimesh.creation.icosphere(subdivisions=5, radius=2.0)


@pytest.mark.parametrize("kind", ["stl", "obj", "ply"])
def test_meshes_come_out_of_files_as_they_went_in(kind):
    mesh = sphere_mesh()
    content = mesh.export(file_type=kind)
    found = visualization.read_triangle_mesh(content.encode() if isinstance(content, str) else content, f"ball.{kind}")
    assert len(found.faces) == len(mesh.faces)
    np.testing.assert_allclose(np.linalg.norm(found.vertices, axis=1), 2, rtol=1e-5)


def test_a_mesh_is_thinned_out_without_losing_its_shape():
    mesh = visualization.read_triangle_mesh(sphere_mesh().export(file_type="stl"), "ball.stl")
    few = decimate_mesh(mesh, 2500)
    assert 300 < len(few.faces) <= 2500
    np.testing.assert_allclose(np.linalg.norm(few.vertices, axis=1), 2, rtol=1e-5)
    assert decimate_mesh(few, 2500) is few


def test_a_mesh_that_is_too_fine_is_refused():
    with pytest.raises(ModelError, match=r"20,480 triangles[\s\S]*thin it out to 100"):
        visualization.read_triangle_mesh(sphere_mesh().export(file_type="stl"), "ball.stl", most=100)
