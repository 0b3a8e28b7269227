"""Outputs that the mechanism computes: whether the import requests the same points, frames and rows as the model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from sympy.physics.mechanics.joint import Joint as SympyJoint

from mb2fmu.mechanics.mechanism import Mechanism
from mb2fmu.mechanics.mechanism.records.mechanism_records import ForceLoad, PathwayLoad, TorqueActuatorLoad, TorqueLoad
from mb2fmu.mechanics.mechanism.records.output_and_joint_records import RequestedOutput
from mb2fmu.model.checked_model import CheckedModel
from mb2fmu.model.declarations.declared_outputs import OUTPUT_KINDS, OutputRequest


def compare_imported_output_requests(definition: CheckedModel, mechanism: Mechanism) -> Iterator[tuple[str, bool]]:
    """Yield each request, and whether the imported numbers denote the objects that the model names.

    Points, frames, bodies and joints are recognized by their names, loads by the places that they act on; what has no
    name (a constraint row) is compared by ``imported_event_check``.

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
    definition: CheckedModel, mechanism: Mechanism, item: OutputRequest, imported_output: RequestedOutput
) -> dict[str, tuple[Any, Any]]:
    """Return, for subjects, reference and axes, the model's object and the object of the number that was read."""
    records = _find_named_records(definition, mechanism, item)
    pairs: dict[str, tuple[Any, Any]] = {}
    if records:
        subjects = zip(item.subject, imported_output.subject, records, strict=True)
        pairs |= {
            str(k): (_name_model_objects(definition, model_object), _name_record(mechanism, candidates[number]))
            for k, (model_object, number, candidates) in enumerate(subjects, 1)
        }
    if item.relative_to is not None and imported_output.relative_to is not None:
        of_frame = OUTPUT_KINDS[item.kind].relative_to in {"frame", "oriented frame"}
        nodes: Any = mechanism.frames if of_frame else mechanism.points
        pairs["relative to"] = ((item.relative_to.name,), (nodes[imported_output.relative_to].name,))
    axes: Any = item.expressed_in
    axis_names = () if axes is None else (axes.name,)
    pairs["axes"] = (
        axis_names,
        (() if imported_output.expressed_in is None else (mechanism.frames[imported_output.expressed_in].name,)),
    )
    return pairs


def _find_named_records(definition: CheckedModel, mechanism: Mechanism, item: OutputRequest) -> Sequence[Sequence[Any]]:
    """Return, for each subject, the records among which the import counts it; nothing where they have no names."""
    m = mechanism
    records: Mapping[str, Sequence[Any]] = {
        **dict.fromkeys(("point", "located point", "point and speed"), m.points),
        **dict.fromkeys(("frame", "oriented frame", "frame and speed"), m.frames),
        "body": m.bodies, "joint": m.joints, "load": m.loads,
    }  # fmt: skip
    speeds = {speed.symbol for speed in definition.speeds}
    kind = OUTPUT_KINDS[item.kind].subject
    if kind == "joint or bodies":
        kind = "joint" if isinstance(item.subject[0], SympyJoint) else "body"
    if kind == "coordinate or speed":
        return [m.declared.speeds if symbol in speeds else m.declared.coordinates for symbol in item.subject]
    if kind in {"point and speed", "frame and speed"}:
        return [records[kind], m.declared.speeds]
    return [records[kind]] * len(item.subject) if kind in records else []


def _name_model_objects(definition: CheckedModel, model_object: Any) -> tuple[Any, ...]:
    """Return the names of the model's objects; for a load those of the points or frames it acts on."""
    names = {
        **{coordinate.symbol: coordinate.name for coordinate in definition.coordinates},
        **{speed.symbol: speed.name for speed in definition.speeds},
    }
    if getattr(model_object, "is_Function", False) or getattr(model_object, "is_Derivative", False):
        return (names[model_object],)
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


def _name_record(m: Mechanism, record: Any) -> tuple[str, ...]:
    """Return the name of a record; of a load the points or frames that it acts on."""
    if isinstance(record, ForceLoad):
        return (m.points[record.point].name,)
    if isinstance(record, PathwayLoad):
        return tuple(m.points[k].name for k in (record.points[0], record.points[-1]))
    if isinstance(record, TorqueActuatorLoad):
        return (m.frames[record.frame].name, *([m.frames[record.reaction].name] if record.reaction >= 0 else []))
    return (m.frames[record.frame].name,) if isinstance(record, TorqueLoad) else (record.name,)
