"""What touches, holds and sticks in a model, for its scene: contacts, latches, frictions, by the names of variables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

import sympy as sm

from mb2fmu.mechanics.equations.equations_of_motion import EquationsOfMotion, OutputExpression

ContactKind = Literal["contact", "latch", "friction"]


@dataclass(frozen=True, slots=True)
class SceneContact:
    """A contact, latch or friction; its variables are the FMU's, empty names where it has none.

    Attributes:
        name: Of the element.
        kind: Of the element.
        gaps: Indices among the results of the program's entry ``gaps``: what its efforts drive up.
        efforts: Output of each gap; of a friction, which has no gap, its one effort.
        units: Of the efforts.
        holds: Is above one half while it rests, is closed or sticks.
        slides: Is not 0 while it slides.
        counts: Grows by one with each impact.
        impulse: Of the last impact.
        impulse_unit: Its unit.
    """

    name: str
    kind: ContactKind
    gaps: tuple[int, ...]
    efforts: tuple[str, ...]
    units: tuple[str, ...]
    holds: str
    slides: str
    counts: str
    impulse: str
    impulse_unit: str


def list_scene_contacts(
    equations: EquationsOfMotion, names: Mapping[sm.Symbol, str]
) -> tuple[list[SceneContact], list[sm.Expr]]:
    """Return what can touch, in the order of the equations, and the expressions of its gaps.

    Args:
        equations: With their contacts, latches and outputs.
        names: State → its variable.
    """
    gaps: list[sm.Expr] = []
    outputs = {output.name: output for output in equations.outputs}
    found = [*_list_rigid_contacts(equations, outputs, names, gaps), *_list_latches(equations, outputs, names, gaps)]
    return [*found, *_list_compliant_contacts_and_frictions(outputs, gaps), *_list_compliant_stops(outputs, gaps)], gaps


def _list_rigid_contacts(
    equations: EquationsOfMotion,
    outputs: Mapping[str, OutputExpression],
    names: Mapping[sm.Symbol, str],
    gaps: list[sm.Expr],
) -> Iterator[SceneContact]:
    """Yield the rigid contacts."""
    for contact in equations.contacts.each if equations.contacts else ():
        effort = f"{contact.name}.force"
        unit = outputs[effort].unit if effort in outputs else "N"
        gaps.append(contact.gap)
        yield SceneContact(
            name=contact.name,
            kind="contact",
            gaps=(len(gaps) - 1,),
            efforts=(effort,),
            units=(unit,),
            holds=names[contact.resting],
            slides=names[contact.friction.sliding] if contact.friction else "",
            counts=names[contact.impact_count],
            impulse=names[contact.impulse],
            impulse_unit=f"{unit}.s",
        )


def _list_latches(
    equations: EquationsOfMotion,
    outputs: Mapping[str, OutputExpression],
    names: Mapping[sm.Symbol, str],
    gaps: list[sm.Expr],
) -> Iterator[SceneContact]:
    """Yield the latches."""
    for latch in equations.latches.each if equations.latches else ():
        first = len(gaps)
        gaps += [row.position for row in latch.rows]
        efforts = tuple(row.name for row in latch.rows)
        yield SceneContact(
            name=latch.name,
            kind="latch",
            gaps=tuple(range(first, len(gaps))),
            efforts=efforts,
            units=tuple(outputs[each].unit if each in outputs else "N" for each in efforts),
            holds=names[latch.engaged],
            slides="",
            counts=names[latch.change_count],
            impulse="",
            impulse_unit="",
        )


def _list_compliant_contacts_and_frictions(
    outputs: Mapping[str, OutputExpression], gaps: list[sm.Expr]
) -> Iterator[SceneContact]:
    """Yield compliant contacts (outputs gap, approach and force) and frictions (slip and sticking)."""
    ends = (".approach", ".sticking")
    for name in dict.fromkeys(each.rpartition(".")[0] for each in outputs if each.endswith(ends)):
        parts = {part: f"{name}.{part}" for part in ("gap", "approach", "force", "torque", "slip", "sticking")}
        has = {part: full for part, full in parts.items() if full in outputs}
        effort = has.get("force") or has.get("torque")
        touches = {"gap", "approach", "force"} <= has.keys()
        if effort is None or not (touches or {"slip", "sticking"} <= has.keys()):
            continue
        if touches:
            gaps.append(outputs[has["gap"]].expression)
        yield SceneContact(
            name=name,
            kind="contact" if touches else "friction",
            gaps=(len(gaps) - 1,) if touches else (),
            efforts=(effort,),
            units=(outputs[effort].unit,),
            holds=has.get("sticking", ""),
            slides="",
            counts="",
            impulse="",
            impulse_unit="",
        )


def _list_compliant_stops(outputs: Mapping[str, OutputExpression], gaps: list[sm.Expr]) -> Iterator[SceneContact]:
    """Yield what pushes while it is pressed and says on which distance or angle: compliant stops, play."""
    for name, output in outputs.items():
        if output.drives is not None:
            gaps.append(output.drives)
            yield SceneContact(
                name=name.rpartition(".")[0],
                kind="contact",
                gaps=(len(gaps) - 1,),
                efforts=(name,),
                units=(output.unit,),
                holds="",
                slides="",
                counts="",
                impulse="",
                impulse_unit="",
            )
