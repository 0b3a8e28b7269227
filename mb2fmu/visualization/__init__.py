"""Animation: pictures of a mechanism and its motion.

Input: ``Mechanism`` and ``EquationsOfMotion`` (:func:`build_scene`), or the bytes of a scene out of an FMU; a
``StateTrajectory``: times, states, inputs, parameters. Output: the bytes of one self-contained HTML page
(:func:`render_animation_page`), an element for another page (:func:`render_animation_element`), or one still picture
as SVG (:func:`render_still_picture`).

Promises: nothing is loaded over a network; bodies stand where the equations' own kinematics put them; every mechanism
with bodies shows something without a word from the user; the same input gives the same bytes. three.js comes out of the
installed package trimesh, with its licence.

Must not: integrate anything, judge, touch the disk, or run code that came with an FMU.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mb2fmu.deferred_imports import import_on_first_use

if TYPE_CHECKING:
    from mb2fmu.visualization.animation_page import (
        AnimationPageElement,
        render_animation_element,
        render_animation_page,
        render_print_picture,
    )
    from mb2fmu.visualization.scene.drawing_from_scene import draw_motion, draw_start_position
    from mb2fmu.visualization.scene.drawing_records import Drawing
    from mb2fmu.visualization.scene.mechanism_scene import SCENE_FILE, Scene
    from mb2fmu.visualization.scene.scene_building import build_scene, list_scene_variables
    from mb2fmu.visualization.scene.scene_pose_trajectories import PlotSignals, StateTrajectory
    from mb2fmu.visualization.scene.triangle_meshes import (
        TriangleMesh,
        decimate_meshes_to_budget,
        describe_mesh_decimation,
        read_triangle_mesh,
    )
    from mb2fmu.visualization.still_picture import (
        EMBEDDED_PICTURE_TRIANGLES,
        render_still_picture,
        render_video_frames,
    )

__all__ = [
    "EMBEDDED_PICTURE_TRIANGLES",
    "SCENE_FILE",
    "AnimationPageElement",
    "Drawing",
    "PlotSignals",
    "Scene",
    "StateTrajectory",
    "TriangleMesh",
    "build_scene",
    "decimate_meshes_to_budget",
    "describe_mesh_decimation",
    "draw_motion",
    "draw_start_position",
    "list_scene_variables",
    "read_triangle_mesh",
    "render_animation_element",
    "render_animation_page",
    "render_print_picture",
    "render_still_picture",
    "render_video_frames",
]

__getattr__ = import_on_first_use(
    __name__,
    {
        "animation_page": ("AnimationPageElement render_animation_element render_animation_page render_print_picture"),
        "scene.drawing_from_scene": "draw_motion draw_start_position",
        "scene.drawing_records": "Drawing",
        "scene.triangle_meshes": "TriangleMesh decimate_meshes_to_budget describe_mesh_decimation read_triangle_mesh",
        "scene.scene_pose_trajectories": "PlotSignals StateTrajectory",
        "scene.mechanism_scene": "SCENE_FILE Scene",
        "scene.scene_building": "build_scene list_scene_variables",
        "still_picture": "EMBEDDED_PICTURE_TRIANGLES render_video_frames render_still_picture",
    },
)
