"""Scene: the visible parts of a mechanism, and a program that locates them at any state.

A scene knows no numbers: it is a list of things, each bound to points, rotations, vectors and sizes that the program
computes from time, states, inputs and parameters. As JSON it travels in an FMU (``extra/``), so that the FMU can be
looked at wherever it goes; it holds tables only, no code.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields
from functools import cache
from types import UnionType
from typing import Any, Literal, get_args, get_origin, get_type_hints

from mb2fmu.compiler.program import convert_program_to_record, restore_program_from_record
from mb2fmu.compiler.program.scalar_program import ScalarProgram
from mb2fmu.errors import Fault, PackageError
from mb2fmu.visualization.scene.scene_contacts import SceneContact
from mb2fmu.visualization.scene.triangle_meshes import TriangleMesh

SCENE_FILE = "extra/org.mb2fmu.scene/scene.json"
"""Where an FMU carries its scene."""

SCENE_VERSION = 1

ShapeKind = Literal["cylinder", "box", "sphere", "ellipsoid", "mesh"]
LinkKind = Literal["rod", "rail", "pathway"]


@dataclass(frozen=True, slots=True)
class SceneBodyInertia:
    """A body of the mechanics.

    Attributes:
        name: Of the body.
        point: Index of its mass centre among the points.
        frame: Index of its rotation; 0 does not turn.
        mass: Index among the sizes, kg.
        inertia: Index of the first of xx, yy, zz, xy, yz, xz among the sizes, kg·m²; -1 for a particle.
    """

    name: str
    point: int
    frame: int
    mass: int
    inertia: int


@dataclass(frozen=True, slots=True)
class SceneShape:
    """A shape that the model adds.

    Attributes:
        body: Name of what it belongs to.
        point, frame: What it moves with.
        kind: Of the shape.
        sizes: Indices among the sizes.
        offset, along: Index of the first of three components in ``frame`` among the sizes.
        mesh: Index among the meshes, or -1.
        color: ``#rrggbb`` or empty.
        opacity: 0 … 1.
    """

    body: str
    point: int
    frame: int
    kind: ShapeKind
    sizes: tuple[int, ...]
    offset: int
    along: int
    mesh: int
    color: str
    opacity: float


@dataclass(frozen=True, slots=True)
class SceneFlexibleMesh:
    """A surface that bends: vertices move by mode shapes times modal coordinates.

    Attributes:
        body: Name of what it belongs to.
        point, frame: What it moves with.
        carriers: Points whose distances from ``point`` along the frame's x axis are the modal coordinates, m.
        mesh: Index among the meshes.
        scale: Factor of the displacements.
        color: ``#rrggbb`` or empty.
        opacity: 0 … 1.
    """

    body: str
    point: int
    frame: int
    carriers: tuple[int, ...]
    mesh: int
    scale: float
    color: str
    opacity: float


@dataclass(frozen=True, slots=True)
class SceneLine:
    """A line through points; a ``rod`` is fixed in ``frame``."""

    kind: LinkKind
    points: tuple[int, ...]
    frame: int


@dataclass(frozen=True, slots=True)
class SceneJoint:
    """A joint: its point, and the first of three components of its axis in ``frame`` among the sizes."""

    name: str
    kind: Literal["pin", "slide", "other"]
    point: int
    frame: int
    axis: int


@dataclass(frozen=True, slots=True)
class SceneTrace:
    """A point whose path is drawn."""

    name: str
    point: int
    color: str


@dataclass(frozen=True, slots=True)
class SceneArrow:
    """A vector drawn at a point.

    Attributes:
        name: For the legend.
        point: Where it acts.
        vector: Index among the vectors.
        torque: True: N·m, else N.
        scale: m per unit; None: chosen.
        color: ``#rrggbb`` or empty.
    """

    name: str
    point: int
    vector: int
    torque: bool
    scale: float | None
    color: str


@dataclass(frozen=True, slots=True)
class SceneFmuVariable:
    """A variable of the FMU; ``start`` means nothing for an output."""

    name: str
    unit: str
    start: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """Everything to draw.

    Attributes:
        name: Of the model.
        description: One line.
        states, inputs, parameters: FMU variables behind the program's layout, in its order.
        outputs: What else a plot can show.
        stop, step, tolerance: Of the default experiment, s.
        bodies, shapes, links, joints, traces, arrows: What there is to be seen.
        touches: Contacts, latches and frictions.
        bendings: Surfaces of flexible bodies.
        meshes: Triangles of the shapes that come from files.
        program: Entry points ``points`` (x, y, z of each, m), ``rotations`` (N_C_B of each frame row by row),
            ``vectors`` (components in N of each arrow), ``sizes`` (of parameters alone), ``gravity`` (direction, empty
            where it is not known), ``signals`` (the inputs of the default experiment, of time) and, where there are
            touches, ``gaps``.
        notes: What is simplified or not drawn, one sentence each; an FMU does not carry them.
    """

    name: str
    description: str
    states: tuple[SceneFmuVariable, ...]
    inputs: tuple[SceneFmuVariable, ...]
    parameters: tuple[SceneFmuVariable, ...]
    outputs: tuple[SceneFmuVariable, ...]
    stop: float
    step: float
    tolerance: float
    bodies: tuple[SceneBodyInertia, ...]
    shapes: tuple[SceneShape, ...] = ()
    links: tuple[SceneLine, ...] = ()
    joints: tuple[SceneJoint, ...] = ()
    traces: tuple[SceneTrace, ...] = ()
    arrows: tuple[SceneArrow, ...] = ()
    touches: tuple[SceneContact, ...] = ()
    bendings: tuple[SceneFlexibleMesh, ...] = ()
    meshes: tuple[TriangleMesh, ...] = ()
    program: ScalarProgram = field(repr=False)
    notes: tuple[str, ...] = ()

    def to_json(self) -> bytes:
        """Return JSON for an FMU; the same scene gives the same bytes."""
        record: dict[str, Any] = {"version": SCENE_VERSION}
        for item in fields(self):
            value = getattr(self, item.name)
            if item.name == "notes" or (item.name in _OPTIONAL and not value):
                continue  # scenes without such parts are as they were before there were any
            if item.name == "program":
                record[item.name] = convert_program_to_record(value)
            elif item.name == "meshes":
                record[item.name] = [mesh.to_record() for mesh in value]
            else:
                record[item.name] = [asdict(part) for part in value] if isinstance(value, tuple) else value
        return (json.dumps(record, separators=(",", ":"), sort_keys=True, ensure_ascii=False) + "\n").encode()

    @classmethod
    def from_json(cls, content: bytes, where: str) -> Scene:
        """Return the scene of :meth:`to_json`.

        Args:
            content: The file.
            where: For messages.

        Raises:
            PackageError: If it is none, is of another version, or is damaged.
        """
        try:
            record = json.loads(content)
            scene = cls(**_scene_fields(record))
            _check_scene(scene)
        except (ValueError, TypeError, KeyError, IndexError, AttributeError, OverflowError, RecursionError) as error:
            fault = Fault(f"is no scene that this version reads: {error}", SCENE_FILE, "export the FMU once more")
            raise PackageError(f"{where} cannot be animated:", [fault]) from error
        return scene


_RECORD_TYPES: Mapping[str, type] = {
    "states": SceneFmuVariable,
    "inputs": SceneFmuVariable,
    "parameters": SceneFmuVariable,
    "outputs": SceneFmuVariable,
    "bodies": SceneBodyInertia,
    "shapes": SceneShape,
    "links": SceneLine,
    "joints": SceneJoint,
    "traces": SceneTrace,
    "arrows": SceneArrow,
    "touches": SceneContact,
    "bendings": SceneFlexibleMesh,
}

_OPTIONAL = ("touches", "bendings")
"""Parts that a scene's JSON leaves out where there are none."""


def _scene_fields(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a scene read from JSON; raise if its version is another."""
    if record["version"] != SCENE_VERSION:
        raise ValueError(f"version {record['version']}, not {SCENE_VERSION}")
    values: dict[str, Any] = {name: record[name] for name in ("name", "description", "stop", "step", "tolerance")}
    for name, kind in _RECORD_TYPES.items():
        values[name] = tuple(
            kind(**{key: tuple(value) if isinstance(value, list) else value for key, value in part.items()})
            for part in (record.get(name, []) if name in _OPTIONAL else record[name])
        )
    values["meshes"] = tuple(TriangleMesh.from_record(mesh) for mesh in record["meshes"])
    values["program"] = restore_program_from_record(record["program"])
    return values


def _check_scene(scene: Scene) -> None:
    """Check types of all fields, and that references exist.

    Raises:
        ValueError: If it is not.
    """
    if not (isinstance(scene.name, str) and isinstance(scene.description, str)):
        raise ValueError("its name and description are no texts")  # noqa: TRY004 - as for all that is no scene
    _check_experiment_numbers(scene.stop, scene.step, scene.tolerance)
    for name in _RECORD_TYPES:
        _check_record_types(getattr(scene, name))
    entries = {name: len(entry.results) for name, entry in scene.program.entries.items()}
    points, frames = entries["points"] // 3, entries["rotations"] // 9
    sizes, vectors = entries["sizes"], entries["vectors"] // 3
    used: list[tuple[int, int]] = []
    for body in scene.bodies:
        used += [(body.point, points), (body.frame, frames), (body.mass, sizes), (body.inertia + 5, sizes + 4)]
    for shape in scene.shapes:
        used += [(shape.point, points), (shape.frame, frames), (shape.offset + 2, sizes), (shape.along + 2, sizes)]
        used += [(index, sizes) for index in shape.sizes] + [(max(shape.mesh, 0), max(len(scene.meshes), 1))]
    used += _bending_references(scene, points, frames)
    used += [(index, points) for link in scene.links for index in link.points]
    used += [(link.frame, frames) for link in scene.links]
    used += [(joint.point, points) for joint in scene.joints] + [(trace.point, points) for trace in scene.traces]
    used += [(joint.axis + 2, sizes) for joint in scene.joints] + [(arrow.point, points) for arrow in scene.arrows]
    used += [(arrow.vector, vectors) for arrow in scene.arrows]
    used += [(gap, entries.get("gaps", 0)) for touch in scene.touches for gap in touch.gaps]
    if any(not len(touch.efforts) == len(touch.units) == (len(touch.gaps) or 1) for touch in scene.touches):
        raise ValueError("efforts of a touch are not those of its gaps")
    if any(not 0 <= index < size for index, size in used):
        raise ValueError("it refers to what is not there")
    layout = scene.program.layout
    if len(layout.states) != len(scene.states) or len(layout.inputs) != len(scene.inputs):
        raise ValueError("its variables are not those of its program")
    if len(layout.parameters) != len(scene.parameters) or entries["signals"] != len(scene.inputs):
        raise ValueError("its parameters or signals are not those of its program")


def _bending_references(scene: Scene, points: int, frames: int) -> list[tuple[int, int]]:
    """Return (index, number of what it counts) of surfaces that bend.

    Raises:
        ValueError: If one has not as many shapes as modal coordinates.
    """
    used: list[tuple[int, int]] = []
    for bending in scene.bendings:
        used += [(bending.point, points), (bending.frame, frames), (bending.mesh, len(scene.meshes))]
        used += [(index, points) for index in bending.carriers]
        shapes = scene.meshes[bending.mesh].shapes
        if shapes is None or len(shapes) != len(bending.carriers):
            raise ValueError("a surface does not bend by its modes")
    return used


MAX_EXPERIMENT_STEPS = 10_000_000
"""Of an experiment that is animated."""
_COLOUR_PATTERN = re.compile(r"(#[0-9a-fA-F]{6})?\Z")


def _check_record_types(records: Iterable[object]) -> None:
    """Check the values of records against the types of their fields.

    Args:
        records: Dataclasses with numbers, texts, and tuples and choices of them.

    Raises:
        ValueError: Naming the first field that has another type, no finite number, or is called a colour and is none.
    """
    for record in records:
        kind: type = type(record)
        for item in fields(kind):
            value = getattr(record, item.name)
            if not _has_type(value, _field_types(kind)[item.name]):
                raise ValueError(f"{kind.__name__}.{item.name} cannot be {_format_value(value)}")
            if item.name == "color" and not _COLOUR_PATTERN.match(value):
                raise ValueError(f"{_format_value(value)} is no colour: #rrggbb")


def _check_experiment_numbers(stop: object, step: object, tolerance: object) -> None:
    """Check an experiment's numbers.

    Raises:
        ValueError: If one is no positive number, or there are too many steps.
    """
    for name, value in (("stop", stop), ("step", step), ("tolerance", tolerance)):
        if not _has_type(value, float) or not float(value) > 0.0:  # type: ignore[arg-type]
            raise ValueError(f"{name} cannot be {_format_value(value)}")
    if float(stop) > MAX_EXPERIMENT_STEPS * float(step):  # type: ignore[arg-type]
        raise ValueError(f"more than {MAX_EXPERIMENT_STEPS} steps")


@cache
def _field_types(kind: type) -> dict[str, Any]:
    """Return the types of a record's fields."""
    return get_type_hints(kind)


def _has_type(value: object, wanted: Any) -> bool:
    """Return whether a value is of a type; whole numbers are numbers, truth values are none."""
    if get_origin(wanted) is Literal:
        return value in get_args(wanted) and isinstance(value, str)
    if get_origin(wanted) is UnionType:
        return any(_has_type(value, each) for each in get_args(wanted))
    if get_origin(wanted) is tuple:
        return isinstance(value, tuple) and all(_has_type(each, get_args(wanted)[0]) for each in value)
    if wanted is type(None):
        return value is None
    if wanted is float:
        return isinstance(value, float | int) and not isinstance(value, bool) and abs(value) < math.inf
    return type(value) is wanted


def _format_value(value: object) -> str:
    """Return a value as it is written, cut where it is long."""
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:37]}…"
