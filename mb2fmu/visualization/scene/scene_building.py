"""From a mechanism to its scene: the parts to draw, and the program that locates them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
import sympy as sm

from mb2fmu.compiler.lowering import AuxiliaryProgramBuilder
from mb2fmu.compiler.program.scalar_program import ScalarProgram
from mb2fmu.errors import Fault, FormulationError
from mb2fmu.mechanics.equations.equations_of_motion import EquationsOfMotion, LinearSystemAssignment
from mb2fmu.mechanics.formulations.applied_loads import (
    express_in_inertial_frame,
    split_load_into_vectors,
)
from mb2fmu.mechanics.mechanism.records.appearance_records import AppearanceRecords, DrawnFlexibleMesh, DrawnLoad
from mb2fmu.mechanics.mechanism.records.mechanism_records import Components, Mechanism, PathwayLoad
from mb2fmu.mechanics.mechanism.symbolic.gravity_detection import find_gravity
from mb2fmu.mechanics.mechanism.symbolic.symbolic_kinematics import SymbolicKinematics
from mb2fmu.model.declarations.declared_content_and_experiment import DeclaredModelContent
from mb2fmu.model.quantity_declarations import AuxiliaryState, Coordinate, Speed
from mb2fmu.visualization.scene.mechanism_scene import (
    Scene,
    SceneArrow,
    SceneBodyInertia,
    SceneFlexibleMesh,
    SceneFmuVariable,
    SceneJoint,
    SceneLine,
    SceneShape,
    SceneTrace,
)
from mb2fmu.visualization.scene.scene_contacts import list_scene_contacts
from mb2fmu.visualization.scene.triangle_meshes import TriangleMesh

_INERTIA_ENTRIES = ((0, 0), (1, 1), (2, 2), (0, 1), (1, 2), (0, 2))


def build_scene(
    mechanism: Mechanism, equations: EquationsOfMotion, meshes: Mapping[str, TriangleMesh] | None = None
) -> Scene | None:
    """Return the scene of a mechanism.

    Args:
        mechanism: Its frames, points, bodies, loads and looks.
        equations: By any formulation: they say what is a state, and what follows from the states.
        meshes: Path as the model gives it → triangles; a mesh that is not there is left out.

    Returns:
        None where there is nothing to be drawn: no body, and no shape of the model's own, has a position.
    """
    scenery = mechanism.appearance or AppearanceRecords()
    if not mechanism.frames:
        if not scenery.frames:
            return None
        mechanism = replace(mechanism, frames=scenery.frames, points=scenery.points)
    describer = _SceneBuilder(mechanism, equations, scenery, dict(meshes or {}))
    scene = describer.scene()
    return scene if scene.bodies or scene.shapes or scene.bendings or scene.traces else None


class _SceneBuilder:
    """Numbers the parts in use, and collects their expressions."""

    def __init__(
        self,
        mechanism: Mechanism,
        equations: EquationsOfMotion,
        scenery: AppearanceRecords,
        meshes: dict[str, TriangleMesh],
    ) -> None:
        self.mechanism = mechanism
        self.equations = equations
        self.scenery = scenery
        self.meshes = meshes
        self.points: dict[int, int] = {}
        self.frames: dict[int, int] = {0: 0}
        self.vectors: list[Components] = []
        self.sizes: list[sm.Expr] = []
        self.gaps: list[sm.Expr] = []
        self.used_meshes: dict[str, int] = {}

    @cached_property
    def kinematics(self) -> SymbolicKinematics:
        """Kinematics for loads; built only if there are arrows, since it is slow for long chains."""
        return SymbolicKinematics(self.mechanism, _intermediate_names(self.equations))

    def scene(self) -> Scene:
        """Return the scene: bodies, shapes, links, arrows, traces and the kinematics that move them."""
        m, d = self.mechanism, self.mechanism.declared
        located = [i for i, place in enumerate(m.points) if place.located]
        if m.bodies and not any(m.points[body.masscenter].located for body in m.bodies):
            # Only velocities are known (a contact point at rest that is another at each instant): seen from that point.
            located = [*range(len(m.points))]
        for i in located:
            self.points[i] = len(self.points)
        bodies, shapes = tuple(self._bodies()), tuple(self._shapes())
        bendings = tuple(self._bendings())
        links, joints = tuple(self._links()), tuple(self._joints())
        traces, arrows = tuple(self._traces()), tuple(self._arrows())
        states, inputs, parameters = list_scene_variables(d, self.equations)
        names = dict(zip(self.equations.states, (state.name for state in states), strict=True))
        touches, self.gaps = list_scene_contacts(self.equations, names)
        return Scene(
            name=d.name,
            description=d.description,
            states=states,
            inputs=inputs,
            parameters=parameters,
            outputs=tuple(SceneFmuVariable(o.name, o.unit, 0.0) for o in self.equations.outputs),
            stop=d.experiment.stop,
            step=d.experiment.step,
            tolerance=d.experiment.tolerance,
            bodies=bodies,
            shapes=shapes,
            links=links,
            joints=joints,
            traces=traces,
            arrows=arrows,
            touches=tuple(touches),
            bendings=bendings,
            meshes=(
                *(self.meshes[path] for path in self.used_meshes),
                *(_bending_mesh(bending) for bending in self.scenery.bendings),
            ),
            program=self._program(located),
        )

    def _program(self, located: Sequence[int]) -> ScalarProgram:
        """Return the program: positions and rotations composed from local relations, the rest as expressions."""
        beside = AuxiliaryProgramBuilder(self.equations)
        if self.vectors:
            beside.define(self.kinematics.assignments)
        rotations: list[list[int]] = []
        for frame in self.mechanism.frames:
            local = beside.nodes(frame.rotation)
            rotations.append(local if frame.parent <= 0 else beside.product(rotations[frame.parent], local))
        points: list[list[int]] = []
        for place in self.mechanism.points:
            where = points[place.parent] if place.parent >= 0 else beside.nodes([sm.S.Zero] * 3)
            for number, components in place.position or ():
                arm = beside.nodes(components)
                where = beside.added(where, arm if number == 0 else beside.product(rotations[number], arm))
            points.append(where)
        beside.entry("points", [node for i in located for node in points[i]])
        beside.entry("rotations", [node for i in self.frames for node in rotations[i]])
        beside.entry("vectors", beside.nodes([c for vector in self.vectors for c in vector]))
        beside.entry("sizes", beside.nodes(self.sizes))
        if self.gaps:
            beside.entry("gaps", beside.nodes(self.gaps))
        beside.entry("gravity", beside.nodes(find_gravity(self.mechanism).constant_force or ()))
        signals = self._signals()
        beside.entry("signals", beside.nodes([signal for _, signal in signals]), [name for name, _ in signals])
        return beside.program()

    def _frame(self, number: int) -> int:
        """Return the scene's number of a frame, a new one if it has none yet."""
        return self.frames.setdefault(number, len(self.frames))

    def _size(self, *expressions: sm.Expr) -> int:
        """Return the index of the first size."""
        self.sizes += expressions
        return len(self.sizes) - len(expressions)

    def _bodies(self) -> Iterator[SceneBodyInertia]:
        """Yield the bodies whose mass centre has a position; the inertia's place is −1 for a particle."""
        for body in self.mechanism.bodies:
            if body.masscenter not in self.points or body.name in self.scenery.hidden_bodies:
                continue
            inertia = body.inertia
            first = -1 if inertia is None else self._size(*(inertia[i, j] for i, j in _INERTIA_ENTRIES))
            frame = self._frame(max(body.frame, 0))
            yield SceneBodyInertia(body.name, self.points[body.masscenter], frame, self._size(body.mass), first)

    def _shapes(self) -> Iterator[SceneShape]:
        """Yield the user's shapes; raise with all that stand at a point without a position."""
        faults = []
        for shape in self.scenery.shapes:
            if shape.point not in self.points:
                what = f"the shape of {shape.body} stands at a point without a position"
                faults.append(Fault(what, shape.where, "locate the point by set_pos or locatenew"))
                continue
            if shape.mesh and shape.mesh not in self.meshes:
                continue
            yield SceneShape(
                body=shape.body,
                point=self.points[shape.point],
                frame=self._frame(shape.frame),
                kind=shape.kind,
                sizes=tuple(self._size(size) for size in shape.sizes),
                offset=self._size(*shape.offset),
                along=self._size(*shape.along),
                mesh=self.used_meshes.setdefault(shape.mesh, len(self.used_meshes)) if shape.mesh else -1,
                color=shape.color,
                opacity=shape.opacity,
            )
        if faults:
            raise FormulationError("the mechanism cannot be drawn:", faults)

    def _bendings(self) -> Iterator[SceneFlexibleMesh]:
        """Yield the surfaces of flexible bodies; their meshes stand behind those of the shapes."""
        for index, bending in enumerate(self.scenery.bendings, len(self.used_meshes)):
            yield SceneFlexibleMesh(
                body=bending.body,
                point=self.points[bending.point],
                frame=self._frame(bending.frame),
                carriers=tuple(self.points[carrier] for carrier in bending.carriers),
                mesh=index,
                scale=float(bending.scale),
                color=bending.color,
                opacity=bending.opacity,
            )

    def _links(self) -> Iterator[SceneLine]:
        """Yield rods between located points, and lines along pathways."""
        m = self.mechanism
        moving = {m.t, *m.q}
        only_looks = {shape.point for shape in self.scenery.shapes} - {body.masscenter for body in m.bodies}
        only_looks -= {place.parent for place in m.points}
        for i, place in enumerate(m.points):
            if i not in self.points or place.parent < 0 or not place.position or i in only_looks:
                continue
            frame, components = place.position[-1]
            rigid = len(place.position) == 1 and not any(c.free_symbols & moving for c in components)
            if not rigid and (len(place.position) > 1 or sum(c != 0 for c in components) > 1):
                continue  # it moves freely, not along a rail
            kind: Literal["rod", "rail"] = "rod" if rigid else "rail"
            yield SceneLine(kind, (self.points[place.parent], self.points[i]), self._frame(frame))
        for load in m.loads:
            if isinstance(load, PathwayLoad) and all(p in self.points for p in load.points):
                yield SceneLine("pathway", tuple(self.points[p] for p in load.points), 0)

    def _joints(self) -> Iterator[SceneJoint]:
        """Yield the joints whose point has a position."""
        for joint in self.scenery.joints:
            if joint.point in self.points:
                frame, axis = self._frame(joint.frame), self._size(*joint.axis)
                yield SceneJoint(joint.name, joint.kind, self.points[joint.point], frame, axis)

    def _traces(self) -> Iterator[SceneTrace]:
        """Yield the traced points that have a position."""
        for trace in self.scenery.traces:
            if trace.point in self.points:
                yield SceneTrace(trace.name, self.points[trace.point], trace.color)

    def _arrows(self) -> Iterator[SceneArrow]:
        """Yield the arrows whose point has a position, and add their vectors to the program."""
        for arrow in self.scenery.arrows:
            for point, torque, vector in self._acting(arrow):
                if point in self.points:
                    self.vectors.append(vector)
                    index = len(self.vectors) - 1
                    yield SceneArrow(arrow.name, self.points[point], index, torque, arrow.scale, arrow.color)

    def _acting(self, arrow: DrawnLoad) -> Iterator[tuple[int, bool, Components]]:
        """Yield (point, whether a torque, components in N); a torque is drawn at its body's mass centre."""
        k = self.kinematics
        if arrow.load < 0:
            yield arrow.point, False, express_in_inertial_frame(arrow.vector, k)
            return
        centres = {body.frame: body.masscenter for body in self.mechanism.bodies}
        for at, torque, vector in split_load_into_vectors(self.mechanism.loads[arrow.load], k):
            yield (centres.get(at, 0) if torque else at), torque, vector

    def _signals(self) -> list[tuple[str, sm.Expr]]:
        """Return plain expressions of time, one per input."""
        d = self.mechanism.declared
        return [(i.name, sm.sympify(d.experiment.signals.get(i.symbol, i.start))) for i in d.inputs]


def _bending_mesh(bending: DrawnFlexibleMesh) -> TriangleMesh:
    """Return the triangles of a surface that bends, in the precision of pages."""
    return TriangleMesh(
        bending.vertices.astype(np.float32), bending.faces.astype(np.uint32), bending.shapes.astype(np.float32)
    )


SceneVariables = tuple[SceneFmuVariable, ...]


def list_scene_variables(
    definition: DeclaredModelContent, equations: EquationsOfMotion
) -> tuple[SceneVariables, SceneVariables, SceneVariables]:
    """Return the FMU's names of states, inputs and parameters, in the order of the equations."""
    d, e = definition, equations
    declared: dict[Any, Coordinate | Speed | AuxiliaryState] = dict(zip(e.q, d.coordinates, strict=True))
    declared |= dict(zip(e.u, d.speeds, strict=True)) | dict(zip(e.z, d.auxiliary_states, strict=True))
    states = tuple(SceneFmuVariable(declared[s].name, declared[s].unit, declared[s].start) for s in e.states)
    inputs = tuple(SceneFmuVariable(i.name, i.unit, i.start) for i in d.inputs)
    free = [p for p in d.parameters if not p.calculated]
    return states, inputs, tuple(SceneFmuVariable(p.name, p.unit, float(p.value)) for p in free)


def _intermediate_names(equations: EquationsOfMotion) -> set[str]:
    """Return names of the equations' intermediates; poses must avoid them."""
    names: set[str] = set()
    for item in equations.intermediates:
        if isinstance(item, LinearSystemAssignment):
            names.update(symbol.name for symbol in item.unknowns)
        else:
            names.add(item.symbol.name)
    return names
