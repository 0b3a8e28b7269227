"""Faults of reading in what events are made of, in declared values and in outputs: nobody's equations of motion."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import sympy as sm
from planted.fault import Mutant, Subject

from mb2fmu.mechanics.equations.contact_equations import UnilateralContact
from mb2fmu.mechanics.equations.equations_of_motion import EventDefinition
from mb2fmu.mechanics.equations.latch_equations import LatchedConstraintRow, MechanicalLatch
from mb2fmu.mechanics.mechanism.records.mechanism_records import Mechanism
from mb2fmu.mechanics.mechanism.records.output_and_joint_records import ExpressionOutput, RequestedOutput

SLIGHTLY = sm.Float("1.03")

Planted = Iterator[tuple[str, str, Callable[[Mechanism], Mechanism]]]


def mutants(subject: Subject) -> Iterator[Mutant]:
    """Every fault of this room that can be planted in a mechanism; each changes what the FMU does."""
    for faults in (_of_contacts, _of_latches, _of_events, _of_values, _of_outputs):
        for kind, place, change in faults(subject.read):
            yield Mutant(kind, "reading", place, change, by_construction=True)


def _with(items: Any, index: int, item: Any) -> tuple[Any, ...]:
    """The items with another one at an index."""
    return (*items[:index], item, *items[index + 1 :])


def _column(matrix: sm.ImmutableMatrix, column: int, factor: sm.Expr = SLIGHTLY) -> sm.ImmutableMatrix:
    """A row with another entry."""
    other = matrix.as_mutable()
    other[0, column] *= factor
    return sm.ImmutableMatrix(other)


def _of_contacts(mechanism: Mechanism) -> Planted:
    for i, contact in enumerate(mechanism.contacts.each if mechanism.contacts else ()):
        yield from _of_gap(mechanism, i, contact)
        if contact.friction is not None:
            yield from _of_friction(mechanism, i, contact)


def _contact(i: int, contact: UnilateralContact, **changes: Any) -> Callable[[Mechanism], Mechanism]:
    """Replaces fields of a contact."""

    def change(m: Mechanism) -> Mechanism:
        assert m.contacts is not None
        each = _with(m.contacts.each, i, replace(contact, **changes))
        return replace(m, contacts=replace(m.contacts, each=each))

    return change


def _of_gap(mechanism: Mechanism, i: int, contact: UnilateralContact) -> Planted:
    moving = [q for q in mechanism.q if q in contact.gap.free_symbols]
    for q in moving[:1]:
        farther = contact.gap.xreplace({q: SLIGHTLY * q})
        yield "gap of a contact", f"{contact.name}: {q} times 1.03", _contact(i, contact, position=farther)
    for j, u in enumerate(mechanism.u):
        if contact.jacobian[0, j] != 0:
            wrong = _contact(i, contact, jacobian=_column(contact.jacobian, j))
            yield "rate of a gap", f"{contact.name}: {u} times 1.03", wrong
    if contact.bias != 0:
        yield "rate of a gap", f"{contact.name}: no bias", _contact(i, contact, bias=sm.S.Zero)
    if not contact.restitution.is_number:
        less = _contact(i, contact, restitution=contact.restitution * sm.Float("0.97"))
        yield "restitution", f"{contact.name} times 0.97", less


def _of_friction(mechanism: Mechanism, i: int, contact: UnilateralContact) -> Planted:
    rough = contact.friction
    assert rough is not None
    more = replace(rough, coefficient=rough.coefficient * SLIGHTLY)
    yield "friction of a contact", f"{contact.name}: coefficient times 1.03", _contact(i, contact, friction=more)
    for j, u in enumerate(mechanism.u):
        if rough.jacobian[0, j] != 0:
            wrong = replace(rough, jacobian=_column(rough.jacobian, j))
            yield "slip of a contact", f"{contact.name}: {u} times 1.03", _contact(i, contact, friction=wrong)


def _of_latches(mechanism: Mechanism) -> Planted:
    for i, latch in enumerate(mechanism.latches.each if mechanism.latches else ()):
        for k, row in enumerate(latch.rows):
            yield from _of_row(mechanism, i, k, row)
        for what in ("close", "open"):
            condition = getattr(latch, what)
            if _moved(condition) != condition:
                moved = _latch(i, replace(latch, **{what: _moved(condition)}))
                yield "condition of a latch", f"{latch.name}: {what}", moved


def _latch(i: int, latch: MechanicalLatch) -> Callable[[Mechanism], Mechanism]:
    """Replaces a latch."""

    def change(m: Mechanism) -> Mechanism:
        assert m.latches is not None
        return replace(m, latches=replace(m.latches, each=_with(m.latches.each, i, latch)))

    return change


def _of_row(mechanism: Mechanism, i: int, k: int, row: LatchedConstraintRow) -> Planted:
    assert mechanism.latches is not None
    latch = mechanism.latches.each[i]
    for j, u in enumerate(mechanism.u):
        if row.jacobian[0, j] != 0:
            rows = _with(latch.rows, k, replace(row, jacobian=_column(row.jacobian, j)))
            yield "row of a latch", f"{row.name}: {u} times 1.03", _latch(i, replace(latch, rows=rows))


def _moved(condition: sm.Basic) -> sm.Basic:
    """A condition with 1.03 times the left side of its first comparison that has one."""
    for part in sorted(condition.atoms(sm.core.relational.Relational), key=str):
        if part.lhs.free_symbols:
            return condition.xreplace({part: part.func(SLIGHTLY * part.lhs + sm.Float("0.01"), part.rhs)})
    return condition


def _of_events(mechanism: Mechanism) -> Planted:
    for i, event in enumerate(mechanism.events):

        def events(i: int = i, event: EventDefinition = event, **changes: Any) -> Any:
            return lambda m: replace(m, events=_with(m.events, i, replace(event, **changes)))

        for k, (state, value) in enumerate(event.settings):
            wrong = _with(event.settings, k, (state, value * SLIGHTLY + sm.Float("0.001")))
            yield "what an event sets", f"{event.name}: {state}", events(settings=wrong)
        if event.kind == "when" and _moved(event.condition) != event.condition:
            yield "condition of an event", event.name, events(condition=_moved(event.condition))
        if event.kind == "ticks":
            later = event.condition.xreplace({mechanism.t: mechanism.t - sm.Float("0.003")})
            yield "condition of an event", f"{event.name}: 3 ms late", events(condition=later)


def _of_values(mechanism: Mechanism) -> Planted:
    for i, parameter in enumerate(mechanism.declared.parameters):
        if not parameter.calculated and parameter.value:
            other = replace(parameter, value=float(parameter.value) * 1.03)
            yield "value as read", f"{parameter.name} times 1.03", _declared("parameters", i, other)
    for kind in ("coordinates", "speeds", "inputs", "auxiliary_states"):
        for i, item in enumerate(getattr(mechanism.declared, kind)):
            if getattr(item, "kind", "fixed") == "fixed":
                moved = replace(item, start=item.start + 0.03 * (abs(item.start) or 1.0))
                yield "value as read", f"{item.name} starts elsewhere", _declared(kind, i, moved)
    for symbol in mechanism.declared.experiment.signals:
        yield "signal as read", f"{symbol} times 1.03", _louder(symbol)
    for kind in ("parameters", "coordinates", "inputs"):
        for i, item in enumerate(getattr(mechanism.declared, kind)):
            other_unit = {"m": "mm", "kg": "g", "rad": "deg", "N.m": "kN.m", "N": "kN"}.get(item.unit)
            if other_unit:
                yield "unit as read", f"{item.name} in {other_unit}", _declared(kind, i, replace(item, unit=other_unit))
                break


def _declared(kind: str, i: int, item: Any) -> Callable[[Mechanism], Mechanism]:
    """Replaces a declared quantity."""
    return lambda m: replace(m, declared=replace(m.declared, **{kind: _with(getattr(m.declared, kind), i, item)}))


def _louder(symbol: sm.Expr) -> Callable[[Mechanism], Mechanism]:
    """An input's signal times 1.03."""

    def change(m: Mechanism) -> Mechanism:
        experiment = m.declared.experiment
        signals = {**experiment.signals, symbol: experiment.signals[symbol] * SLIGHTLY}
        return replace(m, declared=replace(m.declared, experiment=replace(experiment, signals=signals)))

    return change


def _of_outputs(mechanism: Mechanism) -> Planted:
    for i, output in enumerate(mechanism.outputs):

        def outputs(i: int = i, output: Any = output, **changes: Any) -> Any:
            return lambda m: replace(m, outputs=_with(m.outputs, i, replace(output, **changes)))

        if isinstance(output, ExpressionOutput):
            yield "output as read", f"{output.name} times 1.03", outputs(expression=output.expression * SLIGHTLY)
        elif isinstance(output, RequestedOutput) and output.subject:
            for place, changes in _other_requests(mechanism, output):
                yield f"request of {output.kind}", f"{output.name}: {place}", outputs(**changes)


def _other_requests(mechanism: Mechanism, output: RequestedOutput) -> Iterator[tuple[str, dict[str, Any]]]:
    """The same kind of output of something else."""
    counts = {
        "position": len(mechanism.points),
        "velocity": len(mechanism.points),
        "acceleration": len(mechanism.points),
        "angular_velocity": len(mechanism.frames),
        "angular_acceleration": len(mechanism.frames),
        "orientation": len(mechanism.frames),
        "distance": len(mechanism.points),
        "force": len(mechanism.loads),
        "power": len(mechanism.loads),
        "multiplier": len(mechanism.multipliers),
        "momentum": len(mechanism.u),
        "linear_momentum": len(mechanism.bodies),
        "angular_momentum": len(mechanism.bodies),
        "reaction_force": len(mechanism.joints) if output.of_joint else len(mechanism.bodies),
        "reaction_torque": len(mechanism.joints) if output.of_joint else len(mechanism.bodies),
    }
    n = counts.get(output.kind, 0)
    first = output.subject[0]
    for other in (first - 1, first + 1):
        if 0 < other < n:
            yield f"of number {other} for {first}", {"subject": (other, *output.subject[1:])}
            break
    vectors = ("position", "velocity", "acceleration", "angular_velocity", "angular_acceleration")
    if output.kind in vectors and output.expressed_in is None and len(mechanism.frames) > 1:
        yield "in the axes of another frame", {"expressed_in": len(mechanism.frames) - 1}
