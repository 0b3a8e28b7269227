"""Outputs that the mechanism computes: whether the import requests the same points, frames and rows as the model."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from sympy.physics.mechanics.joint import Joint as SympyJoint

from mb2fmu.mechanics.mechanism import Mechanism
from mb2fmu.mechanics.mechanism.records.mechanism_records import ForceLoad, PathwayLoad, TorqueActuatorLoad, TorqueLoad
from mb2fmu.mechanics.mechanism.records.requested_quantities import RequestedOutput
from mb2fmu.model.declarations.output_requests import OutputRequest
from mb2fmu.model.model_definition import ModelDefinition

_POINT_OUTPUT_KINDS = {"position", "distance", "velocity", "acceleration", "relative_velocity"}
_FRAME_OUTPUT_KINDS = {"angular_velocity", "angular_acceleration", "orientation"}
_BODY_OUTPUT_KINDS = {"centre_of_mass", "centre_of_mass_velocity", "linear_momentum"}


def compare_output_requests(definition: ModelDefinition, mechanism: Mechanism) -> Iterator[tuple[str, bool]]:
    """Yield each request, and whether the imported numbers denote the objects that the model names.

    Points, frames, bodies and joints are recognized by their names, loads by the places that they act on; what has no
    name (a constraint row) is compared by ``event_import_check``.

    Args:
        definition: The checked model.
        mechanism: The mechanism imported from it.
    """
    imported = {output.name: output for output in mechanism.outputs if isinstance(output, RequestedOutput)}
    for item in definition.outputs:
        imported_output = imported.get(item.name)
        if not isinstance(item, OutputRequest) or imported_output is None:
            continue
        is_equal = (item.component, item.representation, item.unit) == (
            imported_output.component,
            imported_output.representation,
            imported_output.unit,
        )
        yield (
            f"{item.name}: what is requested",
            is_equal and imported_output.kind in {item.kind, f"coordinate_{item.kind}"},
        )
        for number, (model_names, names) in _pair_model_and_import_objects(
            definition, mechanism, item, imported_output
        ).items():
            is_same_object = model_names == names
            description = f"{item.name}: subject {number}"
            yield (
                (
                    description
                    if is_same_object
                    else f"{description} is {', '.join(map(str, model_names))}, {names} was read"
                ),
                is_same_object,
            )


def _pair_model_and_import_objects(
    definition: ModelDefinition, mechanism: Mechanism, item: OutputRequest, imported_output: RequestedOutput
) -> dict[str, tuple[Any, Any]]:
    """Return, for subjects, reference and axes, the model's object and the object of the number that was read."""
    name = _make_name_lookup(definition, mechanism, item)
    pairs: dict[str, tuple[Any, Any]] = {}
    if name is not None:
        pairs |= {
            str(k): (_name_model_objects(definition, model_object), name(number))
            for k, (model_object, number) in enumerate(zip(item.subject, imported_output.subject, strict=True), 1)
        }
    if item.relative_to is not None and imported_output.relative_to is not None:
        of_frame = item.kind in {*_FRAME_OUTPUT_KINDS, "relative_velocity"}
        nodes: Any = mechanism.frames if of_frame else mechanism.points
        pairs["relative to"] = ((item.relative_to.name,), (nodes[imported_output.relative_to].name,))
    axes: Any = item.expressed_in
    axis_names = () if axes is None else (axes.name,)
    pairs["axes"] = (
        axis_names,
        (() if imported_output.expressed_in is None else (mechanism.frames[imported_output.expressed_in].name,)),
    )
    return pairs


def _make_name_lookup(
    definition: ModelDefinition, mechanism: Mechanism, item: OutputRequest
) -> Callable[[int], tuple[str, ...]] | None:
    """Return a function from a number to names; None for subjects without names."""
    m = mechanism
    if item.kind in {"force", "power"}:
        return lambda k: _name_load_places(m, m.loads[k])
    records: Any = None
    if item.kind in _POINT_OUTPUT_KINDS:
        records = m.points
    elif item.kind in _FRAME_OUTPUT_KINDS:
        records = m.frames
    elif item.kind.startswith("reaction") and isinstance(item.subject[0], SympyJoint):
        records = m.joints
    elif item.kind in _BODY_OUTPUT_KINDS or item.kind.startswith("reaction"):
        records = m.bodies
    elif item.kind in {"mass_matrix", "momentum"} and item.subject[0] in {s.symbol for s in definition.speeds}:
        records = m.declared.speeds
    return None if records is None else lambda k: (records[k].name,)


def _name_model_objects(definition: ModelDefinition, model_object: Any) -> tuple[Any, ...]:
    """Return the names of the model's objects; for a load those of the points or frames it acts on."""
    speeds = {s.symbol: s.name for s in definition.speeds}
    if getattr(model_object, "is_Function", False) or getattr(model_object, "is_Derivative", False):
        return (speeds[model_object],)
    if hasattr(model_object, "pathway"):
        return tuple(point.name for point in model_object.pathway.attachments)
    if hasattr(model_object, "target_frame"):
        return (
            model_object.target_frame.name,
            *([model_object.reaction_frame.name] if model_object.reaction_frame else []),
        )
    if isinstance(model_object, tuple):
        place: Any = getattr(model_object[0], "masscenter", model_object[0])
        return (place.name,)
    return (model_object.name,)


def _name_load_places(m: Mechanism, load: Any) -> tuple[str, ...]:
    """Return the points or frames that a load acts on."""
    if isinstance(load, ForceLoad):
        return (m.points[load.point].name,)
    if isinstance(load, PathwayLoad):
        return tuple(m.points[k].name for k in (load.points[0], load.points[-1]))
    if isinstance(load, TorqueActuatorLoad):
        return (m.frames[load.frame].name, *([m.frames[load.reaction].name] if load.reaction >= 0 else []))
    assert isinstance(load, TorqueLoad)
    return (m.frames[load.frame].name,)
