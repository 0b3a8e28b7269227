"""Animation: pictures of a mechanism and its motion.

Input: ``Mechanism`` and ``EquationsOfMotion`` (:func:`describe`), or the bytes of a scene out of an FMU; a
``StateTrajectory``: times, states, inputs, parameters. Output: the bytes of one self-contained HTML page
(:func:`page`), an element for another page (:func:`element`), or one still picture as SVG (:func:`still`).

Promises: nothing is loaded over a network; bodies stand where the equations' own kinematics put them; every mechanism
with bodies shows something without a word from the user; the same input gives the same bytes. three.js comes out of the
installed package trimesh, with its licence.

Must not: integrate anything, judge, touch the disk, or run code that came with a unit.
"""

from mb2fmu.visualization.animation_page import AnimationElement, ReferenceOverlay, element, page
from mb2fmu.visualization.scene.drawing import draw, draw_start
from mb2fmu.visualization.scene.drawing_records import Drawing
from mb2fmu.visualization.scene.mesh_decimation import thinned_together, thinning_note
from mb2fmu.visualization.scene.mesh_files import TriangleMesh, triangles
from mb2fmu.visualization.scene.poses import PlotSignals, StateTrajectory
from mb2fmu.visualization.scene.scene import FILE, Scene
from mb2fmu.visualization.scene.scene_building import describe, variables
from mb2fmu.visualization.still_picture import SMALL, still, stills

__all__ = [
    "FILE",
    "SMALL",
    "AnimationElement",
    "Drawing",
    "PlotSignals",
    "ReferenceOverlay",
    "Scene",
    "StateTrajectory",
    "TriangleMesh",
    "describe",
    "draw",
    "draw_start",
    "element",
    "page",
    "still",
    "stills",
    "thinned_together",
    "thinning_note",
    "triangles",
    "variables",
]
