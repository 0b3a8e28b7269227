"""Terminals: each joins an input that does work with its coordinate and speed.

A terminal is made only where it cannot be mistaken: the generalized force of one speed is the input itself (or minus
the input), no other equation of motion contains the input, and input times speed is a power by its units. Then the
power that flows in is the product of the two, as at a flange: the input is an ``inflow`` (``outflow`` if it enters with
a minus sign), the speed and, where its derivative is that speed, the coordinate are ``signal``. Members have the names
of Modelica's flanges (``tau``, ``phi``, ``w``; ``f``, ``s``, ``v``), the terminal that of the input. Inputs that act in
any other way (a force at a point, a torque at an inclined axis) belong to no terminal by themselves: which variables
describe the motion of their point is not known here, and the model may declare it. What it declares comes first; its
inputs get no other terminal.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

import numpy as np

from mb2fmu.compiler.evaluation import make_evaluator
from mb2fmu.compiler.program.program_result_dependencies import DependencyKind, ResultDependency
from mb2fmu.compiler.program.scalar_program import Op, ScalarProgram
from mb2fmu.fmu.interface.fmu_types_arrays_terminals import MemberKind, Terminal, TerminalMember
from mb2fmu.mechanics.equations.equations_of_motion import EquationsOfMotion
from mb2fmu.model.declarations.declared_content_and_experiment import DeclaredModelContent
from mb2fmu.model.declarations.declared_terminals import DeclaredTerminal
from mb2fmu.model.quantity_declarations import Coordinate, Input, Speed
from mb2fmu.units import parse_unit

_SIGN_TOLERANCE = 1e-9
_ROTATION_MEMBERS = ("tau", "phi", "w")
_TRANSLATION_MEMBERS = ("f", "s", "v")


def form_fmu_terminals(
    definition: DeclaredModelContent,
    equations: EquationsOfMotion,
    program: ScalarProgram,
    dependencies: Sequence[Sequence[ResultDependency]],
) -> tuple[Terminal, ...]:
    """Return the terminals of an FMU: the declared ones, then others in the order of the inputs.

    Args:
        definition: Names, units, start values.
        equations: How many equations of motion there are, and for which speeds.
        program: With the entry point ``equations``.
        dependencies: Of its results.
    """
    declared = [_convert_declared_terminal(terminal) for terminal in definition.terminals]
    taken = {terminal.name for terminal in declared}
    connected = {member.variable for terminal in declared for member in terminal.members}
    found = _input_terminals(definition, equations, program, dependencies, connected)
    return (*declared, *(each for each in found if each.name not in taken | connected))


def _convert_declared_terminal(terminal: DeclaredTerminal) -> Terminal:
    """Return a terminal that the model declares."""
    members = tuple(TerminalMember(member.name, str(member.variable), member.kind) for member in terminal.members)
    return Terminal(terminal.name, members, terminal.description)


def _input_terminals(
    definition: DeclaredModelContent,
    equations: EquationsOfMotion,
    program: ScalarProgram,
    dependencies: Sequence[Sequence[ResultDependency]],
    connected: Collection[str],
) -> Iterator[Terminal]:
    """Yield terminals of inputs that no declared terminal contains."""
    entry = program.entries.get("equations")
    rows = [] if entry is None else [i for i, label in enumerate(entry.labels) if label.startswith("f[")]
    if not rows or all(item.name in connected for item in definition.inputs):
        return
    speeds = _speeds_of_equations(definition, equations, len(rows))
    acting: dict[int, int] = {}
    for index, item in enumerate(definition.inputs):
        kinds = {
            row: dependency.kind
            for row, results in enumerate(dependencies)
            for dependency in results
            if dependency.group == "inputs" and dependency.index == index
        }
        if item.name not in connected and len(kinds) == 1 and set(kinds.values()) == {DependencyKind.CONSTANT}:
            (row,) = kinds
            acting |= {index: row} if row in rows else {}
    signs = _find_input_signs(definition, equations, program, acting)
    for index, row in acting.items():
        item, speed = definition.inputs[index], speeds[rows.index(row)]
        sign = signs[index]
        if sign is not None and _is_power(item.unit, speed.unit):
            yield _make_input_terminal(item, speed, _find_coordinate(definition, equations, program, speed), sign)


def _speeds_of_equations(definition: DeclaredModelContent, equations: EquationsOfMotion, rows: int) -> Sequence[Speed]:
    """Return the speed that each equation of motion belongs to: all speeds, or the independent ones."""
    if rows == len(definition.speeds):
        return definition.speeds
    return [definition.speeds[i] for i in equations.u_independent]


def _find_input_signs(
    definition: DeclaredModelContent, equations: EquationsOfMotion, program: ScalarProgram, acting: Mapping[int, int]
) -> dict[int, MemberKind | None]:
    """Return the sign of each input's factor in its equation of motion: 1 inflow, −1 outflow, else unknown.

    Args:
        definition: Start values.
        equations: Which coordinates and speeds are states.
        program: With the entry point ``equations``.
        acting: Number of an input → of the one result of ``equations`` that it stands in.
    """
    if not acting:
        return {}
    x = [
        *(float(definition.coordinates[i].start) for i in equations.q_independent),
        *(float(definition.speeds[i].start) for i in equations.u_independent),
        *(float(item.start) for item in definition.auxiliary_states),
    ]
    p = [float(parameter.value) for parameter in definition.parameters if not parameter.calculated]
    evaluate, count = make_evaluator(program, "equations", list(acting.values())), len(definition.inputs)
    values_without = evaluate(0.0, x, np.zeros(count), p)
    signs: dict[int, MemberKind | None] = {}
    for place, index in enumerate(acting):
        without = float(values_without[place])
        factor = float(evaluate(0.0, x, np.eye(count)[index], p)[place]) - without
        tolerance = _SIGN_TOLERANCE * (1.0 + abs(without))
        signs[index] = (
            "inflow" if abs(factor - 1.0) <= tolerance else "outflow" if abs(factor + 1.0) <= tolerance else None
        )
    return signs


def _is_power(force: str, speed: str) -> bool:
    """Return whether the product of two FMUs is a power (radians ignored)."""
    product = [a + b for a, b in zip(parse_unit(force).exponents, parse_unit(speed).exponents, strict=True)]
    return product[:-1] == list(parse_unit("W").exponents[:-1])


def _find_coordinate(
    definition: DeclaredModelContent, equations: EquationsOfMotion, program: ScalarProgram, speed: Speed
) -> Coordinate | None:
    """Return the coordinate whose derivative is ``speed``."""
    coordinates = [definition.coordinates[i] for i in equations.q_independent]
    rates = program.entries["rhs"].results[: len(coordinates)]
    independent = [definition.speeds[i] for i in equations.u_independent]
    if speed not in independent:
        return None
    state = len(coordinates) + independent.index(speed)
    for coordinate, rate in zip(coordinates, rates, strict=True):
        if program.op[rate] == Op.STATE and program.a[rate] == state:
            return coordinate
    return None


def _make_input_terminal(item: Input, speed: Speed, coordinate: Coordinate | None, kind: MemberKind) -> Terminal:
    """Return the terminal of an input that does work: effort, coordinate, speed; an outflow counts negative."""
    flow, position, rate = _ROTATION_MEMBERS if parse_unit(speed.unit).exponents[-1] else _TRANSLATION_MEMBERS
    members = [TerminalMember(flow, item.name, kind)]
    if coordinate is not None:
        members.append(TerminalMember(position, coordinate.name))
    members.append(TerminalMember(rate, speed.name))
    description = (
        f"{item.name} does work on {speed.name}: power = {'' if kind == 'inflow' else '-'}{item.name} {speed.name}"
    )
    return Terminal(item.name, tuple(members), description)
