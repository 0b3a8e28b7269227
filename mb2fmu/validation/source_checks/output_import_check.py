"""Outputs that the mechanism computes: whether what was read asks for the very points, frames and rows of the model."""

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
    """Yield each request, and whether the numbers that were read mean the objects that the model names.

    Points, frames, bodies and joints are told by their names, loads by the places that they act on; what has no name
    (a constraint row) is looked at by ``events_read``.

    Args:
        definition: The checked model.
        mechanism: What was read from it.
    """
    read = {output.name: output for output in mechanism.outputs if isinstance(output, RequestedOutput)}
    for item in definition.outputs:
        there = read.get(item.name)
        if not isinstance(item, OutputRequest) or there is None:
            continue
        same = (item.component, item.representation, item.unit) == (there.component, there.representation, there.unit)
        yield f"{item.name}: what is asked", same and there.kind in {item.kind, f"coordinate_{item.kind}"}
        for number, (said, names) in _pair_model_and_import_objects(definition, mechanism, item, there).items():
            right = said == names
            told = f"{item.name}: subject {number}"
            yield (told if right else f"{told} is {', '.join(map(str, said))}, {names} was read"), right


def _pair_model_and_import_objects(
    definition: ModelDefinition, mechanism: Mechanism, item: OutputRequest, there: RequestedOutput
) -> dict[str, tuple[Any, Any]]:
    """Return, for subjects, reference and axes, the model's object and the object of the number that was read."""
    name = _make_name_lookup(definition, mechanism, item)
    found: dict[str, tuple[Any, Any]] = {}
    if name is not None:
        found |= {
            str(k): (_name_model_objects(definition, one), name(number))
            for k, (one, number) in enumerate(zip(item.subject, there.subject, strict=True), 1)
        }
    if item.relative_to is not None and there.relative_to is not None:
        of_frame = item.kind in {*_FRAME_OUTPUT_KINDS, "relative_velocity"}
        nodes: Any = mechanism.frames if of_frame else mechanism.points
        found["relative to"] = ((item.relative_to.name,), (nodes[there.relative_to].name,))
    axes: Any = item.expressed_in
    said = () if axes is None else (axes.name,)
    found["axes"] = said, (() if there.expressed_in is None else (mechanism.frames[there.expressed_in].name,))
    return found


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


def _name_model_objects(definition: ModelDefinition, one: Any) -> tuple[Any, ...]:
    """Return the names of the model's objects; for a load those of the points or frames it acts on."""
    speeds = {s.symbol: s.name for s in definition.speeds}
    if getattr(one, "is_Function", False) or getattr(one, "is_Derivative", False):
        return (speeds[one],)
    if hasattr(one, "pathway"):
        return tuple(point.name for point in one.pathway.attachments)
    if hasattr(one, "target_frame"):
        return (one.target_frame.name, *([one.reaction_frame.name] if one.reaction_frame else []))
    if isinstance(one, tuple):
        place: Any = getattr(one[0], "masscenter", one[0])
        return (place.name,)
    return (one.name,)


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
