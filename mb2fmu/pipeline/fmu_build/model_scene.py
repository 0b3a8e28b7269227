"""What a mechanism looks like: its scene, and its picture.

Mesh files that a model names are read here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from mb2fmu import visualization
from mb2fmu.errors import Fault, ModelError
from mb2fmu.fmu.in_memory_file_tree import InMemoryFileTree
from mb2fmu.mechanics.mechanism.records.appearance_records import AppearanceRecords, MeshPlacement

if TYPE_CHECKING:
    from mb2fmu.mechanics.equations.equations_of_motion import EquationsOfMotion
    from mb2fmu.mechanics.mechanism import Mechanism
    from mb2fmu.pipeline.derivation.pipeline_results import DerivationResult
    from mb2fmu.visualization import Scene


class ModelScene(NamedTuple):
    """Appearance of a mechanism.

    Attributes:
        scene: Its bodies and shapes; None where nothing can be drawn.
        files: What an FMU carries of it.
        diagram: Its picture, as SVG; empty where there is none.
    """

    scene: Scene | None
    files: InMemoryFileTree
    diagram: str


def make_model_scene_and_picture(derivation: DerivationResult) -> ModelScene:
    """Describe the scene; the picture is the model's own drawing, or else the mechanism at its start."""
    scene, diagram = build_model_scene(derivation.mechanism, derivation.equations), derivation.definition.diagram
    if scene is None:
        return ModelScene(None, InMemoryFileTree({}), diagram)
    if "<svg" not in diagram:
        diagram = visualization.render_still_picture(
            visualization.draw_start_position(scene),
            background="#ffffff",
            faces=visualization.EMBEDDED_PICTURE_TRIANGLES,
        ).decode()
    return ModelScene(scene, InMemoryFileTree({visualization.SCENE_FILE: scene.to_json()}), diagram)


def build_model_scene(mechanism: Mechanism, equations: EquationsOfMotion) -> Scene | None:
    """Return the scene of a mechanism, with the mesh files of its model; None where nothing can be drawn.

    Raises:
        ModelError: If a mesh file cannot be read, naming each.
    """
    faults: list[Fault] = []
    scenery = mechanism.appearance or AppearanceRecords()
    meshes, notes = place_and_decimate_meshes(scenery.meshes)
    used = {mesh.key for mesh in scenery.meshes}
    folder = mechanism.declared.source.parent if mechanism.declared.source else Path()
    for shape in scenery.shapes:
        if not shape.mesh or shape.mesh in meshes or shape.mesh in used:
            continue
        try:
            content = (folder / shape.mesh).read_bytes()
            meshes[shape.mesh] = visualization.read_triangle_mesh(content, shape.mesh, shape.where)
        except OSError as error:
            what = f"the mesh {shape.mesh} cannot be read: {error.strerror or error}"
            faults.append(Fault(what, shape.where, "paths start at the model file's folder"))
        except ModelError as error:
            faults += error.faults
    if faults:
        raise ModelError("the appearance of the mechanism cannot be used:", faults)
    scene = visualization.build_scene(mechanism, equations, meshes)
    return scene and replace(scene, notes=(*scenery.notes, *notes))


MOST_TRIANGLES = 30_000
"""Of all meshes of a robot together: a page of it then stays below 5 MB."""


def place_and_decimate_meshes(
    uses: Sequence[MeshPlacement],
) -> tuple[dict[str, visualization.TriangleMesh], tuple[str, ...]]:
    """Return meshes turned and scaled, thinned to a budget, and notes on that and on unreadable ones."""
    found: dict[str, visualization.TriangleMesh] = {}
    read: dict[Path, visualization.TriangleMesh | None] = {}
    notes: list[str] = []
    for mesh in uses:
        if mesh.path not in read:
            try:
                read[mesh.path] = visualization.read_triangle_mesh(mesh.path.read_bytes(), mesh.path.name, most=None)
            except (ModelError, OSError) as error:
                read[mesh.path] = None
                what = error.faults[0].what if isinstance(error, ModelError) and error.faults else str(error)
                notes.append(f"a mesh is not drawn: {what}")
        triangles = read[mesh.path]
        if triangles is not None:
            matrix = np.array(mesh.matrix).reshape(3, 3)
            faces = triangles.faces[:, ::-1] if np.linalg.det(matrix) < 0 else triangles.faces
            found[mesh.key] = visualization.TriangleMesh((triangles.vertices @ matrix.T).astype(np.float32), faces)
    drawn = visualization.decimate_meshes_to_budget(found, MOST_TRIANGLES)
    kept, given = (sum(len(mesh.faces) for mesh in meshes.values()) for meshes in (drawn, found))
    if kept < given:
        notes.append(visualization.describe_mesh_decimation(kept, given, "all pictures"))
    return drawn, tuple(notes)
