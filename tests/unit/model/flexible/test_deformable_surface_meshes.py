"""Surfaces that bend in pictures: where the mode shapes put them, and what cannot be drawn."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from mb2fmu import BeamSection, FlexibleBody, Model, pipeline, visualization
from mb2fmu.errors import ModelError
from mb2fmu.pipeline.fmu_build.model_scene import make_model_scene_and_picture
from mb2fmu.visualization.scene.flexible_mesh_vertices import compute_flexible_mesh_vertices
from mb2fmu.visualization.scene.mechanism_scene import Scene
from mb2fmu.visualization.scene.scene_pose_trajectories import StateTrajectory

MODELS = Path(__file__).parents[4] / "models"


def blade_scene() -> tuple[pipeline.DerivationResult, Scene]:
    """Return the shipped blade and its scene."""
    derivation = pipeline.derive(MODELS / "rotating_blade.py")
    scene = make_model_scene_and_picture(derivation).scene
    assert scene is not None
    return derivation, scene


def beam() -> FlexibleBody:
    """Return a beam of 1 m along x."""
    section = BeamSection.rectangle(width=0.04, height=0.005)
    return FlexibleBody.beam("beam", length=1.0, E=70e9, rho=2700.0, section=section, modes={"bending_z": 2})


def test_the_tip_of_the_tube_is_where_the_modes_put_it():
    derivation, scene = blade_scene()
    f = pipeline.right_hand_side(derivation)
    x = f.x0.copy()
    etas = [f.states.index(f"blade.eta[{k}]") for k in (1, 2, 3)]
    x[etas] = 0.02, -0.005, 0.01
    x[0] = 0.7
    motion = StateTrajectory(np.zeros(1), x[None], np.asarray(f.r0)[None], np.asarray(f.p0))
    drawing = visualization.draw_motion(scene, motion)
    (solid,) = (each for each in drawing.solids if each.modes)
    mesh = drawing.meshes[solid.mesh]
    moved = compute_flexible_mesh_vertices(solid, mesh, drawing.poses, 0) - mesh.vertices
    expected = np.einsum("k,knj->nj", x[etas], mesh.shapes)
    np.testing.assert_allclose(moved, expected, atol=1e-7)
    tip = mesh.vertices[:, 0] > 0.999
    # tips of modes are 1: of the two that bend in z 0.02 − 0.005, of the one in y 0.01
    assert np.abs(moved[tip].mean(axis=0)[1:]) == pytest.approx([0.01, 0.015], rel=1e-5)


def test_a_scene_with_a_bending_surface_is_the_same_through_json():
    _, scene = blade_scene()
    again = Scene.from_json(scene.to_json(), "here")
    assert again.bendings == scene.bendings
    np.testing.assert_array_equal(again.meshes[-1].shapes, scene.meshes[-1].shapes)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "one of faces, radius and box"),
        ({"radius": 0.01, "box": (0.1, 0.1)}, "one of faces, radius and box"),
        ({"faces": [[0, 1]]}, "faces have the shape"),
        ({"faces": [[0, 1, 100_000]]}, "faces name node 100000"),
    ],
)
def test_what_cannot_be_drawn_is_refused(given, said):
    with pytest.raises(ModelError, match=said):
        beam().draw(Model("Beam", None), **given)
