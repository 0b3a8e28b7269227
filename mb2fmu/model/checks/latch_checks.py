"""Checks of the latches that elements declare."""

from __future__ import annotations

from collections.abc import Iterator

import sympy as sm
from sympy.core.function import AppliedUndef

from mb2fmu.errors import Fault
from mb2fmu.model.declarations.declared_latches import DeclaredLatch
from mb2fmu.model.declarations.output_requests import OutputRequest
from mb2fmu.model.model import Model
from mb2fmu.model.sources import mechanics_source


def latch_faults(model: Model) -> Iterator[Fault]:
    """Yield the faults of a model's latches."""
    coordinates = set(mechanics_source.coordinates(model.mechanics))
    speeds = set(mechanics_source.speeds(model.mechanics).all)
    for latch in model.declared_latches:
        for row in latch.rows:
            functions = row.position.atoms(AppliedUndef, sm.Derivative)
            wrong = sorted({f for f in functions if isinstance(f, sm.Derivative) or f in speeds}, key=str)
            if wrong:
                what = f"what {row.name} holds contains {', '.join(map(str, wrong))}, and must contain no speeds"
                yield Fault(what, latch.where, "write it in coordinates, parameters and time")
            elif not coordinates & functions:
                what = f"what {row.name} holds, {row.position}, has no velocity: no coordinate stands in it"
                yield Fault(what, latch.where, "write it in the coordinates of what is held")
    for request in model.declared if model.declared_latches else ():
        if isinstance(request, OutputRequest) and request.kind in {"reaction_force", "reaction_torque"}:
            what = f"{request.name} is a reaction, and forces of latches that are closed are not in it yet"
            yield Fault(what, request.where, "leave it out, or ask for it in a model without latches")


def latch_expressions(latch: DeclaredLatch) -> list[sm.Basic]:
    """Return all expressions of a latch."""
    return [latch.close, latch.open, latch.stabilization, *(row.position for row in latch.rows)]
