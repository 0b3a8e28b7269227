"""Prints the generated model: the functions of ``runtime/equations.h`` in translation units, and their tables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from mb2fmu.emit.c.columns import jacobian_by_columns
from mb2fmu.emit.c.functions import declaration
from mb2fmu.emit.c.literals import number
from mb2fmu.emit.c.loops import print_rolled
from mb2fmu.emit.c.parts import PART, print_forwarding, print_function
from mb2fmu.emit.c.records import Names, PrintedFunction, Signature, body_name
from mb2fmu.emit.c.schedule import Graph
from mb2fmu.lowering.native import NativeProgram
from mb2fmu.lowering.program import Op, Program, first_memory

_ARGUMENTS = (
    "double t",
    "const double x[]",
    "const double r[]",
    "const double p[]",
    "const double w[]",
    "double work[]",
)
_LEAVES = {
    Op.TIME: "t",
    Op.STATE: "x",
    Op.INPUT: "r",
    Op.PARAMETER: "p",
    Op.MEMORY: "(w + MB2FMU_N_PREPARED)",
}
UNIT = 12_000
"""Largest number of values that the functions of one translation unit compute."""

ONCE = 10_000
"""Nodes of a program above which what is seldom evaluated is compiled once, and not for each kind of processor."""

_PLAIN = ("rhs", "position", "velocity", "acceleration", "dependent_speeds", "accelerations")


@dataclass(frozen=True, slots=True)
class _Function:
    """An entry point or several as a C function."""

    signature: Signature
    outputs: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class PrintedTable:
    """A lookup table, a derivative of one, as C arrays.

    Attributes:
        name: Stem of the arrays' names.
        pieces: Number of pieces.
        terms: Coefficients of each piece.
        breaks: Literals.
        coefficients: Literals, piece by piece, from the highest power down.
    """

    name: str
    pieces: int
    terms: int
    breaks: tuple[str, ...]
    coefficients: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PrintedUnit:
    """A translation unit of the equations.

    Attributes:
        prototypes: Of functions that several units know.
        texts: Definitions.
        tables: Lookup tables that they read.
        entries: Names of the functions of ``runtime/equations.h``, in its order; of one unit only.
        once: It is compiled once for all kinds of processors.
    """

    prototypes: tuple[str, ...]
    texts: tuple[str, ...]
    tables: tuple[PrintedTable, ...]
    entries: tuple[str, ...] = ()
    once: bool = False


@dataclass(frozen=True, slots=True)
class PrintedModel:
    """Everything generated, for the templates.

    Attributes:
        program: What was printed.
        units: The equations; the first has the table of functions.
        failures: What is wrong when a solve fails, in the order of their numbers.
        prepared: Number of values in w.
        work: Number of values that functions need for themselves.
        rows: Of the Jacobian's nonzeros.
        columns: Of the Jacobian's nonzeros.
    """

    program: Program
    units: tuple[PrintedUnit, ...]
    failures: tuple[str, ...]
    prepared: int
    work: int
    rows: tuple[int, ...]
    columns: tuple[int, ...]

    @property
    def first_memory(self) -> tuple[float, ...]:
        """The discrete memory to begin with."""
        return first_memory(self.program)

    def size(self, entry: str) -> int:
        """Number of results of an entry point; 0 if there is none of that name."""
        return len(self.program.entries[entry].results) if entry in self.program.entries else 0


def print_model(native: NativeProgram, part: int = PART) -> PrintedModel:
    """Prints all functions.

    Args:
        native: The program with its derivatives.
        part: Largest number of values that one C function computes.
    """
    program = native.program
    graph = Graph(program)
    once = len(program) > ONCE
    functions = _functions(native, once=once)
    hoisted = graph.of_parameters & ~graph.is_leaf
    calculated = program.entries["prepare"].results
    names = Names(
        prepared=_places(graph, functions, hoisted, calculated),
        pivots=required_nodes(program, "pivots"),
        divisors=required_nodes(program, "divisors"),
        domains=required_nodes(program, "domains"),
    )
    prepare = _prepare(calculated, names, once=once)
    bodies, inner = print_bodies(program, names)
    printed = [print_rolled(graph, prepare.signature, prepare.outputs, names, part=part)]
    for function in functions:
        whole = None
        if native.colours is not None and function.signature.name == "equations_jacobian":
            tangent = [each.signature.stem for each in functions].index("tangent")
            whole = _by_columns(native, function.signature, printed[1 + tangent])
        if function.signature.name == "equations_accelerations" and printed[1].parts:
            whole = _accelerations(graph, function, printed[1], hoisted)
        if whole is None:
            whole = print_rolled(graph, function.signature, function.outputs, names, given=hoisted, part=part)
        printed.append(whole)
    tables = printed_tables(program, names, inner)
    return PrintedModel(
        program=program,
        units=_units(printed, tables, bodies),
        failures=tuple(names.failures),
        prepared=len(prepare.outputs),
        work=max(function.work for function in printed),
        rows=tuple(native.rows.tolist()),
        columns=tuple(native.columns.tolist()),
    )


def required_nodes(program: Program, entry: str) -> dict[int, str]:
    """Nodes without whose being positive, or not zero, there is no result; and what that is called."""
    required = program.entries.get(entry)
    return dict(zip(required.results, required.labels, strict=True)) if required else {}


def _accelerations(
    graph: Graph, function: _Function, rhs: PrintedFunction, hoisted: np.ndarray
) -> PrintedFunction | None:
    """u' by way of x', where all of it is in there and little else, so that a long function is not printed twice."""
    results = graph.program.entries["rhs"].results
    where = {node: i for i, node in enumerate(results)}
    wanted = [node for _, node in function.outputs]
    if not all(node in where for node in wanted):
        return None
    if 2 * len(graph.schedule(wanted, hoisted)) <= len(graph.schedule(results, hoisted)):
        return None
    arguments = function.signature.arguments[:-1]
    outputs = [(target, where[node]) for target, node in function.outputs]
    return print_forwarding(function.signature, rhs, arguments, outputs, len(results))


def _by_columns(native: NativeProgram, signature: Signature, tangent: PrintedFunction) -> PrintedFunction:
    """The Jacobian by one tangent per colour, and one for the time."""
    assert native.colours is not None, "otherwise it is written out"
    layout = native.program.layout
    seeds = 1 + len(layout.states) + len(layout.inputs) + len(layout.parameters)
    results = len(native.program.entries["tangent"].results)
    return PrintedFunction(
        name=signature.function,
        text=jacobian_by_columns(
            signature=signature,
            tangent=tangent.name,
            memory=tangent.work,
            seeds=seeds,
            colours=native.colours.tolist(),
            rows=native.rows.tolist(),
            columns=native.columns.tolist(),
        ),
        weight=1,
        work=tangent.work + seeds + results,
        prototype=declaration(signature.function, signature.parameters) if signature.once else "",
    )


def _units(
    printed: Sequence[PrintedFunction], tables: Sequence[PrintedTable], bodies: Sequence[PrintedFunction]
) -> tuple[PrintedUnit, ...]:
    """What is compiled for each kind of processor, then what is compiled once; the first unit has the table.

    What Newton's method evaluates stands in every unit that calls it.
    """
    units: list[PrintedUnit] = []
    entries = tuple(function.name for function in printed)
    shared = tuple(function.prototype for function in printed if function.prototype)
    for once in (False, True):
        functions = [function for function in printed if bool(function.prototype) is once]
        prototypes = (*shared, *(part.prototype for function in functions for part in function.parts))
        for group in _groups(functions) if functions else ():
            used = [body.text for body in bodies if any(f" {body.name}," in text for text in group)]
            units.append(
                PrintedUnit(
                    prototypes=prototypes,
                    texts=(*used, *group),
                    tables=tuple(t for t in tables if any(f"&{t.name}," in text for text in (*used, *group))),
                    entries=() if units else entries,
                    once=once,
                )
            )
    return tuple(units)


def _groups(functions: Sequence[PrintedFunction]) -> list[list[str]]:
    """Functions with their parts in the first group as long as there is room, further parts in others."""
    groups: list[list[str]] = [[]]
    weights = [sum(function.weight for function in functions)]
    for part in [part for function in functions for part in function.parts]:
        if weights[-1] + part.weight > UNIT and (groups[-1] or len(groups) == 1):
            groups.append([])
            weights.append(0)
        groups[-1].append(part.text)
        weights[-1] += part.weight
    groups[0] += [function.text for function in functions]
    return groups


def _functions(native: NativeProgram, *, once: bool) -> list[_Function]:
    """All but ``prepare``, in the order of ``runtime/equations.h``; what is seldom evaluated perhaps compiled once."""
    entries = native.program.entries
    functions = []
    for name in _PLAIN:
        array = "dx" if name == "rhs" else "y"
        functions.append(_function(name, (f"double {array}[]",), _LEAVES, _stores(array, entries[name].results)))
    if "project" in entries and entries["project"].results:
        functions.append(_function("project", ("double y[]",), _LEAVES, _stores("y", entries["project"].results)))
    if native.program.layout.memory:
        functions.append(_function("remember", ("double y[]",), _LEAVES, _stores("y", entries["remember"].results)))
    derived = [("tangent", "s", "out"), *([("adjoint", "bar", "sbar")] if "adjoint" in entries else [])]
    if "initialize" in entries:
        results = _stores("y", entries["initialize"].results)
        functions.append(_function("initialize", ("double y[]",), _LEAVES, results, once=once))
        derived = [*((f"initialize_{name}", seeds, array) for name, seeds, array in derived), *derived]
    for name, seeds, array in derived:
        parameters = (f"const double {seeds}[]", f"double {array}[]")
        outputs = _stores(array, entries[name].results)
        functions.append(_function(name, parameters, {**_LEAVES, Op.SEED: seeds}, outputs, once=once))
    functions.append(_jacobian(native, once=once))
    return functions


def _jacobian(native: NativeProgram, *, once: bool) -> _Function:
    entries = native.program.entries
    by_time = dict(zip(native.time_rows.tolist(), entries["jacobian_time"].results, strict=True))
    outputs = _stores("values", entries["jacobian"].results)
    outputs += tuple((f"dfdt[{row}]", node) for row, node in sorted(by_time.items()))
    zeros = [row for row in range(len(native.program.layout.states)) if row not in by_time]
    parameters = ("double values[]", "double dfdt[]")
    return _function("jacobian", parameters, _LEAVES, outputs, [f"dfdt[{row}]" for row in zeros], once=once)


def _function(
    name: str,
    more: tuple[str, ...],
    leaves: dict[Op, str],
    outputs: tuple[tuple[str, int], ...],
    zeros: Iterable[str] = (),
    *,
    once: bool = False,
) -> _Function:
    signature = Signature(f"equations_{name}", (*_ARGUMENTS, *more), leaves, tuple(zeros), once=once)
    return _Function(signature, outputs)


def _stores(array: str, nodes: Sequence[int]) -> tuple[tuple[str, int], ...]:
    return tuple((f"{array}[{i}]", node) for i, node in enumerate(nodes))


def _places(
    graph: Graph, functions: Sequence[_Function], hoisted: np.ndarray, calculated: Sequence[int]
) -> dict[int, int]:
    """Places in w: those of the calculated parameters, then one for each hoisted node that a function reads."""
    wanted: set[int] = set()
    for function in functions:
        wanted |= graph.boundary([node for _, node in function.outputs], hoisted)
    places: dict[int, int] = {}
    for i, node in enumerate(calculated):
        if hoisted[node]:
            places.setdefault(node, i)
    return places | {node: i for i, node in enumerate(sorted(wanted - places.keys()), start=len(calculated))}


def hoisted_places(graph: Graph, results: Sequence[int], hoisted: np.ndarray) -> dict[int, int]:
    """Places in w of hoisted nodes that some results need."""
    return {node: i for i, node in enumerate(sorted(graph.boundary(results, hoisted)))}


def printed_tables(program: Program, names: Names, inner: Sequence[Names]) -> tuple[PrintedTable, ...]:
    """Lookup tables that printed functions read, those of Newton blocks' bodies (``inner``) included."""
    return tuple(
        _table(owner, key, name)
        for owner, its in ((program, names), *zip(program.bodies, inner, strict=True))
        for key, name in its.tables.items()
    )


def _prepare(calculated: Sequence[int], names: Names, *, once: bool) -> _Function:
    outputs = [(f"w[{i}]", node) for i, node in enumerate(calculated)]
    outputs += [(f"w[{place}]", node) for node, place in names.prepared.items() if place >= len(calculated)]
    parameters = ("const double p[]", "double w[]", "double work[]")
    signature = Signature("equations_prepare", parameters, {Op.PARAMETER: "p"}, once=once)
    return _Function(signature, tuple(outputs))


def print_bodies(program: Program, names: Names, *, batch: bool = False) -> tuple[list[PrintedFunction], list[Names]]:
    """What Newton's method evaluates: residuals, then steps; each in one part.

    Args:
        program: Any.
        names: Of the unit; takes what the bodies need.
        batch: For many instances at once.

    Returns:
        The functions, and the names in each.
    """
    printed, inner = [], []
    for i, body in enumerate(program.bodies):
        own = Names(failures=names.failures, stem=body_name(i))
        own.pivots.update(required_nodes(body, "pivots"))
        own.divisors.update(required_nodes(body, "divisors"))
        signature = _body_signature(own.stem, batch=batch)
        nodes = (*body.entries["residual"].results, *body.entries["step"].results)
        printed.append(print_function(Graph(body), signature, _stores("values", nodes), own, part=len(body) + 1))
        names.body_work[i] = printed[-1].work
        inner.append(own)
    return printed, inner


def _body_signature(name: str, *, batch: bool) -> Signature:
    leaves = {Op.STATE: "y", Op.PARAMETER: "theta"}
    if not batch:
        return Signature(name, ("const double y[]", "const double theta[]", "double values[]", "double work[]"), leaves)
    arrays = ("const mb2fmu_reals y[]", "const mb2fmu_reals theta[]", "mb2fmu_reals values[]")
    return Signature(name, (*arrays, "mb2fmu_words lost[]", "mb2fmu_reals work[]"), leaves, batch=True)


def _table(program: Program, key: tuple[int, int], name: str) -> PrintedTable:
    index, order = key
    table = program.tables[index].derivative(order)
    pieces = len(table.breaks) - 1
    columns = [row[i] for i in range(pieces) for row in reversed(table.coefficients)]
    return PrintedTable(
        name=name,
        pieces=pieces,
        terms=len(table.coefficients),
        breaks=tuple(number(value) for value in table.breaks),
        coefficients=tuple(number(value) for value in columns),
    )
