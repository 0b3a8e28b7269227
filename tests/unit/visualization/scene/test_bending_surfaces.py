"""Surfaces of flexible bodies: in pictures their vertices are where the mechanics have the nodes."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from finite_elements import box_model
from flexible_bodies import pinned_body

from mb2fmu import BeamSection, FlexibleBody
from mb2fmu.errors import ModelError
from mb2fmu.visualization.scene.drawing_from_scene import draw_motion
from mb2fmu.visualization.scene.flexible_mesh_vertices import compute_flexible_mesh_vertices
from mb2fmu.visualization.scene.mechanism_scene import Scene
from mb2fmu.visualization.scene.scene_pose_trajectories import StateTrajectory, evaluate_scene_poses
from mb2fmu.visualization.scene.scene_rotation_quaternions import rotate_vector

STATES = np.array([[0.3, 0.02, -0.01, 0.005, 0.0, 0.0, 0.0, 0.0], [1.2, -0.03, 0.02, 0.01, 0.0, 0.0, 0.0, 0.0]])


bricks = cache(box_model)


def box() -> tuple[FlexibleBody, np.ndarray]:
    """A body of bricks, and the triangles of its end."""
    K, M, nodes = bricks((1.0, 0.1, 0.05), (4, 1, 1))
    root, tip = (np.flatnonzero(nodes[:, 0] == x) for x in (0.0, 1.0))
    body = FlexibleBody.from_finite_elements("box", K=K, M=M, nodes=nodes, interfaces={"root": root}, modes=3)
    return body, np.array([tip[[0, 1, 3]], tip[[0, 3, 2]]])


def beam() -> FlexibleBody:
    section = BeamSection.rectangle(0.04, 0.02)
    return FlexibleBody.beam(
        "beam",
        length=1.0,
        E=70e9,
        rho=2700.0,
        section=section,
        modes={"bending_y": 2, "bending_z": 1},
        foreshortening=False,  # pictures leave it out
    )


def motion_of(scene: Scene) -> StateTrajectory:
    parameters = np.array([parameter.start for parameter in scene.parameters])
    return StateTrajectory(np.array([0.0, 1.0]), STATES, np.zeros((2, 0)), parameters)


def drawn(scene: Scene, row: int) -> np.ndarray:
    """Places of the surface's vertices in N."""
    drawing = draw_motion(scene, motion_of(scene))
    (solid,) = (solid for solid in drawing.solids if solid.modes)
    local = compute_flexible_mesh_vertices(solid, drawing.meshes[solid.mesh], drawing.poses, row)
    pose = solid.anchor.pose
    return drawing.poses.positions[row, pose] + rotate_vector(drawing.poses.turns[row, pose][None], local)


def test_vertices_of_a_mesh_are_the_nodes(scene_of):
    body, faces = box()
    model = pinned_body(body)
    used = np.unique(faces)
    for node in used:
        model.trace(body.point(int(node)))
    body.draw(model, faces=faces)
    scene = scene_of(model)
    places = evaluate_scene_poses(scene, motion_of(scene)).points[:, [trace.point for trace in scene.traces]]
    for row in (0, 1):
        assert drawn(scene, row) == pytest.approx(places[row], abs=1e-6)


def test_a_tube_turns_with_the_sections(scene_of):
    body = beam()
    model = pinned_body(body)
    tip, section = body.point(-1), body.frame(-1)
    corner = tip.locatenew("corner", 0.02 * section.y - 0.01 * section.z)
    model.trace(corner)
    body.draw(model, box=(0.04, 0.02))
    scene = scene_of(model)
    places = evaluate_scene_poses(scene, motion_of(scene)).points[:, scene.traces[0].point]
    for row in (0, 1):
        gaps = np.linalg.norm(drawn(scene, row) - places[row], axis=1)
        assert np.min(gaps) < 5e-4  # the arm of 22 mm turns by 0.1: 2 mm if it did not


def test_displacements_are_enlarged_on_request(scene_of):
    def moved(scale: float) -> np.ndarray:
        body, faces = box()
        model = pinned_body(body)
        body.draw(model, faces=faces, scale=scale)
        scene = scene_of(model)
        drawing = draw_motion(scene, motion_of(scene))
        (solid,) = (solid for solid in drawing.solids if solid.modes)
        mesh = drawing.meshes[solid.mesh]
        return compute_flexible_mesh_vertices(solid, mesh, drawing.poses, 0) - mesh.vertices

    once = moved(1.0)
    assert moved(20.0) == pytest.approx(20.0 * once, rel=1e-6)
    assert np.max(np.abs(once)) > 1e-3


def test_a_scene_comes_back_from_its_file(scene_of):
    body = beam()
    model = pinned_body(body)
    body.draw(model, radius=0.02, color="#1f77b4")
    scene = scene_of(model)
    back = Scene.from_json(scene.to_json(), "scene")
    assert back.bendings == scene.bendings
    assert np.array_equal(back.meshes[0].shapes, scene.meshes[0].shapes)
    assert drawn(back, 1) == pytest.approx(drawn(scene, 1), abs=1e-12)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "one of faces, radius and box"),
        ({"radius": 0.1, "box": (0.1, 0.1)}, "one of faces, radius and box"),
        ({"faces": [[0, 1]]}, "faces have the shape"),
        ({"faces": [[0, 1, 9999]]}, "faces name node 9999"),
    ],
)
def test_what_is_no_surface_is_reported(given, message):
    body, _ = box()
    with pytest.raises(ModelError, match=message):
        body.draw(pinned_body(body), **given)
