"""Checks of the closed forms of loops that a model declares."""

from __future__ import annotations

from collections.abc import Iterator

from mb2fmu.errors import Fault
from mb2fmu.model.model import Model
from mb2fmu.model.sources import mechanics_source


def loop_faults(model: Model) -> Iterator[Fault]:
    """Yield the faults of declared closed forms."""
    q = set(mechanics_source.coordinates(model.mechanics))
    for loop in model.loops:
        given = [set(branch) for branch in loop.branches]
        if not given:
            yield Fault(f"{loop.name} has no closed form", loop.where, "give a dict {coordinate: expression}")
            continue
        if any(keys != given[0] for keys in given) or len(given[0]) != len(loop.rows):
            what = f"each branch of {loop.name} must give the same {len(loop.rows)} coordinates, one per row"
            yield Fault(what, loop.where, "give one expression per dependent coordinate")
        for key in sorted(given[0] - q, key=str):
            yield Fault(
                f"{key}, which {loop.name} gives, is no coordinate of the mechanics", loop.where, "give one of q"
            )
        if len(loop.relation) not in (0, len(loop.rows)):
            what = f"{loop.name} has {len(loop.relation)} rows of its relation for {len(loop.rows)} constraints"
            yield Fault(what, loop.where, "give one per dependent coordinate, or none")
