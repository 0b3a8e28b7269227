"""Print the generated model: the functions of ``runtime/equations.h`` in translation units, and their tables.

The motion is printed from the program as it was lowered, so that it can be compiled while the program is still being
differentiated; the derivatives follow.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from mb2fmu.compiler.derivatives.fmu_derivative_entries import NativeProgram
from mb2fmu.compiler.program.program import Op, Program
from mb2fmu.fmu.emit_c.c_literals import number
from mb2fmu.fmu.emit_c.function_signatures import Names, PrintedFunction, Signature, body_name
from mb2fmu.fmu.emit_c.jacobian_columns import jacobian_by_columns
from mb2fmu.fmu.emit_c.rolled_loop_printing import print_rolled
from mb2fmu.fmu.emit_c.shared_motion_function import print_shared
from mb2fmu.fmu.emit_c.split_functions import PART, print_forwarding, print_function
from mb2fmu.fmu.emit_c.statement_schedule import Graph
from mb2fmu.fmu.emit_c.straight_line_printing import declaration

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
    Op.MEMORY: "(w + MB2FMU_N_CALCULATED)",
}
UNIT = 6_000
"""Largest number of values that the functions of one translation unit compute: two seconds of a compiler's time.

So all processors have something to do until the end.
"""

ONCE = 10_000
"""Nodes of a program above which what is seldom evaluated is compiled quickly.

A Jacobian that is written out, and the tangent beside it, are not part of that: implicit solvers evaluate them all the
time. That of a larger program is computed column by column, mostly in loops that wait for memory.
"""

TWICE = 200
"""Values that u' may compute once more for itself; where x' computes more, it is called for u'."""

MOST_SHARED, LEAST_SHARED = 12_000, 100
"""Values that functions compute which may become one: compilers need long for more; and how many that must save."""

_STAGES = ("project", "rhs", "velocity", "position", "acceleration")
"""Entry points that share what they compute, in the order in which one function computes them."""

_PLAIN = ("rhs", "position", "velocity", "acceleration", "dependent_speeds", "accelerations")


@dataclass(frozen=True, slots=True)
class _Function:
    """One or several entry points as a C function."""

    signature: Signature
    outputs: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class PrintedTable:
    """A lookup table, or a derivative of one, as C arrays.

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
        prototypes: Of functions that several FMUs know.
        texts: Definitions.
        tables: Lookup tables that they read.
        entries: Names of the functions of a table of ``runtime/equations.h``, in its order; of one FMU only.
        seldom: It is evaluated so seldom that it is compiled quickly.
    """

    prototypes: tuple[str, ...]
    texts: tuple[str, ...]
    tables: tuple[PrintedTable, ...]
    entries: tuple[str, ...] = ()
    seldom: bool = False


@dataclass(frozen=True, slots=True)
class PrintedEquations:
    """One of the two tables of functions of ``runtime/equations.h``.

    Attributes:
        table: Which.
        units: The first has the table.
        failures: What is wrong when a solve fails, in the order of their numbers; those of the motion come first.
        values: Doubles in w: calculated parameters, memory, then what else is prepared, for the motion first.
        work: Doubles that functions of both tables need for themselves, as far as they are printed.
    """

    table: Literal["equations", "derivatives"]
    units: tuple[PrintedUnit, ...]
    failures: tuple[str, ...]
    values: int
    work: int


def print_motion(program: Program, part: int = PART) -> PrintedEquations:
    """Print everything that a program computes except derivatives.

    Args:
        program: As it was lowered.
        part: Largest number of values that one C function computes.
    """
    functions = _motion(program)
    first = len(program.entries["prepare"].results) + len(program.layout.memory)
    printer = _Printer(program, functions, first, part)
    printed = [printer.prepare("equations_prepare", calculated=True)]
    for function in functions:
        whole = None
        if function.signature.name == "equations_accelerations" and printed[1].whole > TWICE:
            whole = _accelerations(printer.graph, function, printed[1], printer.hoisted)
        printed.append(whole or printer.function(function))
    return printer.equations("equations", printed, 0)


def print_small_motion(program: Program) -> PrintedEquations:
    """Print the same with one function for all that entry points share, where that takes less room.

    Failures have the numbers, and prepared values the places, of :func:`print_motion`.

    Args:
        program: As it was lowered.
    """
    functions = {function.signature.stem: function for function in _motion(program)}
    first = len(program.entries["prepare"].results) + len(program.layout.memory)
    printer = _Printer(program, list(functions.values()), first, PART)
    printed = {"prepare": printer.prepare("equations_prepare", calculated=True)}
    printed |= {name: printer.function(function) for name, function in functions.items()}
    stages = [name for name in _STAGES if name in functions and program.entries[name].results]
    alone = sum(printed[name].whole for name in stages)
    if len(stages) > 1 and alone <= MOST_SHARED:
        signatures = {name: functions[name].signature for name in stages}
        shared, callers = print_shared(printer.graph, "motion", signatures, printer.names, printer.hoisted)
        if shared.whole < alone - LEAST_SHARED:
            first_caller = next(name for name in printed if name in callers)
            printed |= callers
            printed[first_caller] = replace(callers[first_caller], text=f"{shared.text}\n{callers[first_caller].text}")
    return printer.equations("equations", list(printed.values()), 0)


def print_derivatives(native: NativeProgram, motion: PrintedEquations, part: int = PART) -> PrintedEquations:
    """Print the derivatives, and initial states that are solved for.

    Args:
        native: The program with its derivatives.
        motion: What was printed before.
        part: Largest number of values that one C function computes.
    """
    seldom = len(native.program) > ONCE
    functions = _derivatives(native, large=seldom)
    printer = _Printer(native.program, functions, motion.values, part, motion.failures)
    printed = [printer.prepare("equations_prepare_derivatives", seldom=seldom)]
    for function in functions:
        if native.colours is not None and function.signature.name == "equations_jacobian":
            tangent = [each.signature.stem for each in functions].index("tangent")
            printed.append(_by_columns(native, function.signature, printed[1 + tangent]))
        else:
            printed.append(printer.function(function))
    return printer.equations("derivatives", printed, motion.work)


class _Printer:
    """Prints functions that share prepared values.

    Args:
        program: Any.
        functions: All that read something prepared.
        first: First place in w that is free.
        part: Largest number of values that one C function computes.
        failures: That have their numbers already.
    """

    def __init__(
        self, program: Program, functions: Sequence[_Function], first: int, part: int, failures: Sequence[str] = ()
    ) -> None:
        self.graph = Graph(program)
        self.hoisted = self.graph.of_parameters & ~self.graph.is_leaf
        self._first = first
        self._part = part
        self.names = Names(
            prepared=_places(self.graph, functions, self.hoisted, first),
            pivots=required_nodes(program, "pivots"),
            divisors=required_nodes(program, "divisors"),
            domains=required_nodes(program, "domains"),
            failures={name: i for i, name in enumerate(failures, start=1)},
        )
        self._bodies, self._inner = print_bodies(program, self.names)

    def prepare(self, name: str, *, calculated: bool = False, seldom: bool = False) -> PrintedFunction:
        """Return the function that stores prepared values, calculated parameters included if asked for."""
        entry = self.graph.program.entries["prepare"]
        outputs = list(_stores("w", entry.results)) if calculated else []
        outputs += [(f"w[{place}]", node) for node, place in self.names.prepared.items() if place >= self._first]
        parameters = ("const double p[]", "double w[]", "double work[]")
        signature = Signature(name, parameters, {Op.PARAMETER: "p"}, seldom=seldom)
        return print_rolled(self.graph, signature, outputs, self.names, part=self._part)

    def function(self, function: _Function) -> PrintedFunction:
        """Return a function that reads prepared values."""
        return print_rolled(
            self.graph, function.signature, function.outputs, self.names, given=self.hoisted, part=self._part
        )

    def equations(
        self, table: Literal["equations", "derivatives"], printed: Sequence[PrintedFunction], work: int
    ) -> PrintedEquations:
        """Return all equations; ``work`` is the space that other code needs for itself."""
        tables = printed_tables(self.graph.program, self.names, self._inner)
        return PrintedEquations(
            table=table,
            units=_units(printed, tables, self._bodies),
            failures=tuple(self.names.failures),
            values=max([self._first, *(place + 1 for place in self.names.prepared.values())]),
            work=max([work, *(function.work for function in printed)]),
        )


def required_nodes(program: Program, entry: str) -> dict[int, str]:
    """Return the nodes that must be positive, or not zero, for valid results, and their names in messages."""
    required = program.entries.get(entry)
    return dict(zip(required.results, required.labels, strict=True)) if required else {}


def _accelerations(
    graph: Graph, function: _Function, rhs: PrintedFunction, hoisted: np.ndarray
) -> PrintedFunction | None:
    """Return u' as a forward of x' where x' holds little else, so that a long function is printed once."""
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
    """Return the Jacobian by one tangent per colour, and one for the time."""
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
            rows=native.rows,
            columns=native.columns,
        ),
        weight=1,
        work=tangent.work + seeds + results,
        prototype=declaration(signature.function, signature.parameters) if signature.seldom else "",
    )


def _units(
    printed: Sequence[PrintedFunction], tables: Sequence[PrintedTable], bodies: Sequence[PrintedFunction]
) -> tuple[PrintedUnit, ...]:
    """Return the slowly compiled and then the quickly compiled translation unit; the first has the table.

    What Newton's method evaluates stands in every FMU that calls it.
    """
    units: list[PrintedUnit] = []
    entries = tuple(function.name for function in printed)
    shared = tuple(function.prototype for function in printed if function.prototype)
    for seldom in (False, True):
        functions = [function for function in printed if bool(function.prototype) is seldom]
        prototypes = (*shared, *(part.prototype for function in functions for part in function.parts))
        for group in _groups(functions) if functions or not seldom else ():
            used = [body.text for body in bodies if any(f" {body.name}," in text for text in group)]
            units.append(
                PrintedUnit(
                    prototypes=prototypes,
                    texts=(*used, *group),
                    tables=tuple(t for t in tables if any(f"&{t.name}," in text for text in (*used, *group))),
                    entries=() if units else entries,
                    seldom=seldom,
                )
            )
    return tuple(units)


def _groups(functions: Sequence[PrintedFunction]) -> list[list[str]]:
    """Group functions with their parts: the first group until it is full, further parts in others."""
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


def _motion(program: Program) -> list[_Function]:
    """Return the functions of ``mb2fmu_equations`` but for ``prepare``, in their order."""
    entries = program.entries
    functions = []
    for name in _PLAIN:
        array = "dx" if name == "rhs" else "y"
        functions.append(_function(name, (f"double {array}[]",), _LEAVES, _stores(array, entries[name].results)))
    if "project" in entries and entries["project"].results:
        functions.append(_function("project", ("double y[]",), _LEAVES, _stores("y", entries["project"].results)))
    if program.layout.memory:
        functions.append(_function("remember", ("double y[]",), _LEAVES, _stores("y", entries["remember"].results)))
    functions += [
        _function(name, ("double y[]",), _LEAVES, _stores("y", entries[name].results))
        for name in ("indicators", "surfaces", "event", "next_time_event")
        if name in entries
    ]
    return functions


def _derivatives(native: NativeProgram, *, large: bool) -> list[_Function]:
    """Return the functions of ``mb2fmu_derivatives`` except ``prepare``, in order; large ones may be seldom called."""
    entries, by_columns = native.program.entries, native.colours is not None
    functions = []
    derived = [("tangent", "s", "out"), *([("adjoint", "bar", "sbar")] if "adjoint" in entries else [])]
    if "initialize" in entries:
        results = _stores("y", entries["initialize"].results)
        functions.append(_function("initialize", ("double y[]",), _LEAVES, results, seldom=large))
        derived = [*((f"initialize_{name}", seeds, array) for name, seeds, array in derived), *derived]
    for name, seeds, array in derived:
        parameters = (f"const double {seeds}[]", f"double {array}[]")
        outputs = _stores(array, entries[name].results)
        seldom = large and (name != "tangent" or by_columns)
        functions.append(_function(name, parameters, {**_LEAVES, Op.SEED: seeds}, outputs, seldom=seldom))
    functions.append(_jacobian(native, seldom=large and by_columns))
    return functions


def _jacobian(native: NativeProgram, *, seldom: bool) -> _Function:
    """Return the function of the Jacobian ∂x'/∂x, row by row, and of ∂x'/∂t; structural zeros are not stored."""
    entries = native.program.entries
    n = len(native.program.layout.states)
    by_time = dict(zip(native.time_rows.tolist(), entries["jacobian_time"].results, strict=True))
    entry = entries["jacobian"].results  # none where it is computed by columns
    places = (native.rows * n + native.columns).tolist()[: len(entry)]
    outputs = tuple((f"values[{place}]", node) for place, node in zip(places, entry, strict=True))
    outputs += tuple((f"dfdt[{row}]", node) for row, node in sorted(by_time.items()))
    zeros = [row for row in range(len(native.program.layout.states)) if row not in by_time]
    parameters = ("double values[]", "double dfdt[]")
    return _function("jacobian", parameters, _LEAVES, outputs, [f"dfdt[{row}]" for row in zeros], seldom=seldom)


def _function(
    name: str,
    more: tuple[str, ...],
    leaves: dict[Op, str],
    outputs: tuple[tuple[str, int], ...],
    zeros: Iterable[str] = (),
    *,
    seldom: bool = False,
) -> _Function:
    """Return a function of `equations.h` with the common arguments first; `zeros` are results set to 0."""
    signature = Signature(f"equations_{name}", (*_ARGUMENTS, *more), leaves, tuple(zeros), seldom=seldom)
    return _Function(signature, outputs)


def _stores(array: str, nodes: Sequence[int]) -> tuple[tuple[str, int], ...]:
    """Return (element of an array, node) pairs to store."""
    return tuple((f"{array}[{i}]", node) for i, node in enumerate(nodes))


def _places(graph: Graph, functions: Sequence[_Function], hoisted: np.ndarray, first: int) -> dict[int, int]:
    """Return places in w of the calculated parameters, and behind them of the other hoisted nodes that they read."""
    wanted: set[int] = set()
    for function in functions:
        wanted |= graph.boundary([node for _, node in function.outputs], hoisted)
    places: dict[int, int] = {}
    for i, node in enumerate(graph.program.entries["prepare"].results):
        if hoisted[node]:
            places.setdefault(node, i)
    return places | {node: i for i, node in enumerate(sorted(wanted - places.keys()), start=first)}


def hoisted_places(graph: Graph, results: Sequence[int], hoisted: np.ndarray) -> dict[int, int]:
    """Return the places in w of hoisted nodes that some results need."""
    return {node: i for i, node in enumerate(sorted(graph.boundary(results, hoisted)))}


def printed_tables(program: Program, names: Names, inner: Sequence[Names]) -> tuple[PrintedTable, ...]:
    """Return the lookup tables that printed functions read, those of Newton blocks' bodies (``inner``) included."""
    return tuple(
        _table(owner, key, name)
        for owner, its in ((program, names), *zip(program.bodies, inner, strict=True))
        for key, name in its.tables.items()
    )


def print_bodies(program: Program, names: Names, *, batch: bool = False) -> tuple[list[PrintedFunction], list[Names]]:
    """Print the functions of Newton's method: residuals, then steps; each in one part.

    Args:
        program: Any.
        names: Of the FMU; takes what the bodies need.
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
    """Return the signature of a Newton body: y and theta in, residual and step out; vectors of lanes for a batch."""
    leaves = {Op.STATE: "y", Op.PARAMETER: "theta"}
    if not batch:
        return Signature(name, ("const double y[]", "const double theta[]", "double values[]", "double work[]"), leaves)
    arrays = ("const mb2fmu_reals y[]", "const mb2fmu_reals theta[]", "mb2fmu_reals values[]")
    return Signature(name, (*arrays, "mb2fmu_words lost[]", "mb2fmu_reals work[]"), leaves, batch=True)


def _table(program: Program, key: tuple[int, int], name: str) -> PrintedTable:
    """Return the breaks and coefficients of a table's derivative, highest power first in each piece."""
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
