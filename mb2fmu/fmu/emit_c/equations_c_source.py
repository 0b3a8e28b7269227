"""Print the generated model: the functions of ``runtime/equations.h`` in translation units, and their tables.

The motion is printed from the program as it was lowered, so that it can be compiled while the program is still being
differentiated; the derivatives follow.

Print a Jacobian that is too large to be written out: one tangent for each colour of its columns.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import numpy.typing as npt

from mb2fmu.compiler.derivatives.derivative_entry_points import ProgramWithDerivatives
from mb2fmu.compiler.program.scalar_program import Op, ScalarProgram, find_domain_restricted_nodes
from mb2fmu.compiler.program.statement_schedule import StatementScheduleGraph
from mb2fmu.fmu.emit_c.c_function_printing_records import (
    CNameRegistry,
    PrintedCFunction,
    PrintedCFunctionSignature,
    newton_body_name,
)
from mb2fmu.fmu.emit_c.c_literals import format_array_elements, format_c_double
from mb2fmu.fmu.emit_c.c_loop_printing import print_function_with_loops
from mb2fmu.fmu.emit_c.long_function_splitting import MAX_VALUES_PER_PART, print_c_function, print_forwarding_function
from mb2fmu.fmu.emit_c.shared_entry_point_function import print_function_shared_by_entry_points
from mb2fmu.fmu.emit_c.straight_line_printing import format_function_declaration, format_function_signature

_C_ARGUMENTS = (
    "double t",
    "const double x[]",
    "const double r[]",
    "const double p[]",
    "const double w[]",
    "double work[]",
)
_LEAF_EXPRESSIONS = {
    Op.TIME: "t",
    Op.STATE: "x",
    Op.INPUT: "r",
    Op.PARAMETER: "p",
    Op.MEMORY: "(w + MB2FMU_N_CALCULATED)",
}
MAX_VALUES_PER_TRANSLATION_UNIT = 6_000
"""Largest number of values that the functions of one translation unit compute: two seconds of a compiler's time.

So all processors have something to do until the end.
"""
MIN_NODES_FOR_QUICK_COMPILATION = 10_000
"""Nodes of a program above which what is seldom evaluated is compiled quickly.

A Jacobian that is written out, and the tangent beside it, are not part of that: implicit solvers evaluate them all the
time. That of a larger program is computed column by column, mostly in loops that wait for memory.
"""
MAX_RECOMPUTED_VALUES = 200
"""Values that u' may compute once more for itself; where x' computes more, it is called for u'."""
MAX_SHARED_VALUES, MIN_SHARED_VALUES = 12_000, 100
"""Values that functions compute which may become one: compilers need long for more; and how many that must save."""
_SHARED_ENTRIES = ("project", "rhs", "velocity", "position", "acceleration")
"""Entry points that share what they compute, in the order in which one function computes them."""
_PLAIN_ENTRIES = ("rhs", "position", "velocity", "acceleration", "dependent_speeds", "accelerations")


def _print_jacobian_by_colours(
    *,
    signature: PrintedCFunctionSignature,
    tangent: str,
    memory: int,
    seeds: int,
    colours: Sequence[int],
    rows: npt.NDArray[np.intp],
    columns: npt.NDArray[np.intp],
) -> str:
    """Return the text of the function, tables included; ends with a line break.

    Args:
        signature: Of the function: (t, x, r, p, w, work, values, dfdt).
        tangent: Name of the function for one direction.
        memory: Doubles in ``work`` that it needs.
        seeds: How many it reads: time, states, inputs, parameters.
        colours: Of each state's column.
        rows: Of each entry that is not zero, row by row.
        columns: Of each of these.
    """
    n = len(colours)
    runs = _consecutive_runs(rows, columns)
    order = sorted(range(n), key=lambda column: (colours[column], column))
    ends = [bisect_right(order, colour, key=colours.__getitem__) for colour in range(max(colours, default=0) + 1)]
    return f"""{_print_integer_table("jacobian_colour", colours)}
{_print_integer_table("jacobian_order", order)}
{_print_integer_table("jacobian_end", ends)}
{_print_integer_table("jacobian_runs", [number for run in runs for number in run])}
{format_function_signature(signature.linkage, signature.c_function_name, signature.parameters)}
{{
    double *const s = work + {memory};
    double *const out = s + {seeds};
    int k = 0, failed;
    for (int i = 0; i < {seeds}; i++) {{
        s[i] = 0.0;
    }}
    s[0] = 1.0;
    failed = {tangent}(t, x, r, p, w, work, s, out);
    for (int i = 0; i < {n}; i++) {{
        dfdt[i] = out[i];
    }}
    s[0] = 0.0;
    for (int colour = 0; colour < {len(ends)} && failed == 0; colour++) {{
        for (int i = 0; i < {n}; i++) {{
            s[1 + i] = jacobian_colour[i] == colour ? 1.0 : 0.0;
        }}
        failed = {tangent}(t, x, r, p, w, work, s, out);
        for (; k < jacobian_end[colour]; k++) {{
            const int column = jacobian_order[k];
            for (const int *run = jacobian_runs; run < jacobian_runs + {3 * len(runs)}; run += 3) {{
                if (column >= run[1] && column < run[2]) {{
                    values[run[0] * {n} + column] = out[run[0]];
                }}
            }}
        }}
    }}
    return failed;
}}
"""


def _consecutive_runs(rows: npt.NDArray[np.intp], columns: npt.NDArray[np.intp]) -> list[tuple[int, int, int]]:
    """Return runs of neighbours in a row: (row, first column, column behind the last one)."""
    first = np.ones(len(rows), dtype=bool)
    first[1:] = (rows[1:] != rows[:-1]) | (columns[1:] != columns[:-1] + 1)
    last = np.append(first[1:], True)[: len(rows)]
    return list(zip(rows[first].tolist(), columns[first].tolist(), (columns[last] + 1).tolist(), strict=True))


def _print_integer_table(name: str, values: Sequence[int]) -> str:
    """Return the C definition of a constant table of integers."""
    return f"static const int {name}[{len(values)}] = {{\n{format_array_elements(values)}\n}};"


@dataclass(frozen=True, slots=True)
class _PlannedCFunction:
    """One or several entry points as a C function."""

    signature: PrintedCFunctionSignature
    outputs: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class PrintedLookupTable:
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
class PrintedTranslationUnit:
    """A translation unit of the equations.

    Attributes:
        prototypes: Of functions that several FMUs know.
        texts: Definitions.
        tables: Lookup tables that they read.
        entries: Names of the functions of a table of ``runtime/equations.h``, in its order; of one FMU only.
        compiled_quickly: It is evaluated so seldom that it is compiled quickly.
    """

    prototypes: tuple[str, ...]
    texts: tuple[str, ...]
    tables: tuple[PrintedLookupTable, ...]
    entries: tuple[str, ...] = ()
    compiled_quickly: bool = False


@dataclass(frozen=True, slots=True)
class EquationFunctionTable:
    """One of the two tables of functions of ``runtime/equations.h``.

    Attributes:
        table: Which.
        units: The first has the table.
        failures: What is wrong when a solve fails, in the order of their numbers; those of the motion come first.
        values: Doubles in w: calculated parameters, memory, then what else is prepared, for the motion first.
        work: Doubles that functions of both tables need for themselves, as far as they are printed.
        motion: Of the motion: its functions one by one, from which a smaller form is printed; None of derivatives.
    """

    table: Literal["equations", "derivatives"]
    units: tuple[PrintedTranslationUnit, ...]
    failures: tuple[str, ...]
    values: int
    work: int
    motion: PrintedMotion | None = None


def print_equation_functions(program: ScalarProgram, part: int = MAX_VALUES_PER_PART) -> EquationFunctionTable:
    """Print everything that a program computes except derivatives.

    Args:
        program: As it was lowered.
        part: Largest number of values that one C function computes.
    """
    functions = {function.signature.stem: function for function in _motion_functions(program)}
    first = len(program.entries["prepare"].results) + len(program.layout.memory)
    printer = _CEquationFunctionPrinter(program, list(functions.values()), first, part)
    printed = {"prepare": printer.print_preparation_function("equations_prepare", calculated=True)}
    for name, function in functions.items():
        whole = None
        if name == "accelerations" and printed["rhs"].total_value_count > MAX_RECOMPUTED_VALUES:
            whole = _forward_accelerations(printer.graph, function, printed["rhs"], printer.hoisted)
        printed[name] = whole or printer.print_equation_function(function)
    table = printer.collect_printed_equations("equations", list(printed.values()), 0)
    return replace(table, motion=PrintedMotion(printer, {n: f.signature for n, f in functions.items()}, printed))


def print_compact_equation_functions(motion: PrintedMotion) -> EquationFunctionTable:
    """Print the same with one function for all that entry points share, where that takes less room.

    Failures have the numbers, and prepared values the places, of :func:`print_equation_functions`.

    Args:
        motion: What that printed.
    """
    printer, printed, entries = motion.printer, dict(motion.printed), motion.printer.graph.program.entries
    stages = [name for name in _SHARED_ENTRIES if name in motion.signatures and entries[name].results]
    alone = sum(printed[name].total_value_count for name in stages)
    if len(stages) > 1 and alone <= MAX_SHARED_VALUES:
        signatures = {name: motion.signatures[name] for name in stages}
        shared, callers = print_function_shared_by_entry_points(
            printer.graph, "motion", signatures, printer.names, printer.hoisted
        )
        if shared.total_value_count < alone - MIN_SHARED_VALUES:
            first_caller = next(name for name in printed if name in callers)
            printed |= callers
            printed[first_caller] = replace(callers[first_caller], text=f"{shared.text}\n{callers[first_caller].text}")
    return printer.collect_printed_equations("equations", list(printed.values()), 0)


def print_derivative_functions(
    native: ProgramWithDerivatives, motion: EquationFunctionTable, part: int = MAX_VALUES_PER_PART
) -> EquationFunctionTable:
    """Print the derivatives, and initial states that are solved for.

    Args:
        native: The program with its derivatives.
        motion: What was printed before.
        part: Largest number of values that one C function computes.
    """
    seldom = len(native.program) > MIN_NODES_FOR_QUICK_COMPILATION
    functions = _derivative_functions(native, large=seldom)
    printer = _CEquationFunctionPrinter(native.program, functions, motion.values, part, motion.failures)
    printed = [printer.print_preparation_function("equations_prepare_derivatives", seldom=seldom)]
    for function in functions:
        if native.column_colours is not None and function.signature.name == "equations_jacobian":
            tangent = [each.signature.stem for each in functions].index("tangent")
            printed.append(_print_coloured_jacobian(native, function.signature, printed[1 + tangent]))
        else:
            printed.append(printer.print_equation_function(function))
    return printer.collect_printed_equations("derivatives", printed, motion.work)


@dataclass(frozen=True, slots=True)
class PrintedMotion:
    """Functions of the motion.

    Attributes:
        printer: That printed them.
        signatures: By the names of their entry points.
        printed: Likewise, and ``prepare``.
    """

    printer: _CEquationFunctionPrinter
    signatures: Mapping[str, PrintedCFunctionSignature]
    printed: Mapping[str, PrintedCFunction]


class _CEquationFunctionPrinter:
    """Prints functions that share prepared values.

    Args:
        program: Any.
        functions: All that read something prepared.
        first: First place in w that is free.
        part: Largest number of values that one C function computes.
        failures: That have their numbers already.
    """

    def __init__(
        self,
        program: ScalarProgram,
        functions: Sequence[_PlannedCFunction],
        first: int,
        part: int,
        failures: Sequence[str] = (),
    ) -> None:
        self.graph = StatementScheduleGraph(program)
        self.hoisted = self.graph.parameter_only_mask & ~self.graph.is_leaf
        self._first = first
        self._part = part
        self.names = CNameRegistry(
            prepared=_hoisted_places_of_functions(self.graph, functions, self.hoisted, first),
            pivots=find_domain_restricted_nodes(program, "pivots"),
            divisors=find_domain_restricted_nodes(program, "divisors"),
            domains=find_domain_restricted_nodes(program, "domains"),
            failures={name: i for i, name in enumerate(failures, start=1)},
        )
        self._bodies, self._inner = print_newton_bodies(program, self.names)

    def print_preparation_function(
        self, name: str, *, calculated: bool = False, seldom: bool = False
    ) -> PrintedCFunction:
        """Return the function that stores prepared values, calculated parameters included if requested."""
        entry = self.graph.program.entries["prepare"]
        outputs = list(_store_pairs("w", entry.results)) if calculated else []
        outputs += [(f"w[{place}]", node) for node, place in self.names.prepared.items() if place >= self._first]
        parameters = ("const double p[]", "double w[]", "double work[]")
        signature = PrintedCFunctionSignature(name, parameters, {Op.PARAMETER: "p"}, compiled_quickly=seldom)
        return print_function_with_loops(self.graph, signature, outputs, self.names, part=self._part)

    def print_equation_function(self, function: _PlannedCFunction) -> PrintedCFunction:
        """Return a function that reads prepared values."""
        return print_function_with_loops(
            self.graph, function.signature, function.outputs, self.names, given=self.hoisted, part=self._part
        )

    def collect_printed_equations(
        self, table: Literal["equations", "derivatives"], printed: Sequence[PrintedCFunction], work: int
    ) -> EquationFunctionTable:
        """Return all equations; ``work`` is the space that other code needs for itself."""
        tables = print_lookup_tables(self.graph.program, self.names, self._inner)
        return EquationFunctionTable(
            table=table,
            units=_arrange_translation_units(printed, tables, self._bodies),
            failures=tuple(self.names.failures),
            values=max([self._first, *(place + 1 for place in self.names.prepared.values())]),
            work=max([work, *(function.work for function in printed)]),
        )


def _forward_accelerations(
    graph: StatementScheduleGraph, function: _PlannedCFunction, rhs: PrintedCFunction, hoisted: np.ndarray
) -> PrintedCFunction | None:
    """Return u' as a forward of x' where x' holds little else, so that a long function is printed once."""
    results = graph.program.entries["rhs"].results
    where = {node: i for i, node in enumerate(results)}
    wanted = [node for _, node in function.outputs]
    if not all(node in where for node in wanted):
        return None
    if 2 * len(graph.schedule_statements(wanted, hoisted)) <= len(graph.schedule_statements(results, hoisted)):
        return None
    arguments = function.signature.arguments[:-1]
    outputs = [(target, where[node]) for target, node in function.outputs]
    return print_forwarding_function(function.signature, rhs, arguments, outputs, len(results))


def _print_coloured_jacobian(
    native: ProgramWithDerivatives, signature: PrintedCFunctionSignature, tangent: PrintedCFunction
) -> PrintedCFunction:
    """Return the Jacobian by one tangent per colour, and one for the time."""
    assert native.column_colours is not None, "otherwise it is written out"
    layout = native.program.layout
    seeds = 1 + len(layout.states) + len(layout.inputs) + len(layout.parameters)
    results = len(native.program.entries["tangent"].results)
    return PrintedCFunction(
        name=signature.c_function_name,
        text=_print_jacobian_by_colours(
            signature=signature,
            tangent=tangent.name,
            memory=tangent.work,
            seeds=seeds,
            colours=native.column_colours.tolist(),
            rows=native.rows,
            columns=native.columns,
        ),
        weight=1,
        work=tangent.work + seeds + results,
        prototype=format_function_declaration(signature.c_function_name, signature.parameters)
        if signature.compiled_quickly
        else "",
    )


def _arrange_translation_units(
    printed: Sequence[PrintedCFunction], tables: Sequence[PrintedLookupTable], bodies: Sequence[PrintedCFunction]
) -> tuple[PrintedTranslationUnit, ...]:
    """Return the slowly compiled and then the quickly compiled translation unit; the first has the table.

    What Newton's method evaluates stands in every FMU that calls it.
    """
    units: list[PrintedTranslationUnit] = []
    entries = tuple(function.name for function in printed)
    shared = tuple(function.prototype for function in printed if function.prototype)
    for seldom in (False, True):
        functions = [function for function in printed if bool(function.prototype) is seldom]
        prototypes = (*shared, *(part.prototype for function in functions for part in function.parts))
        for group in _group_functions(functions) if functions or not seldom else ():
            used = [body.text for body in bodies if any(f" {body.name}," in text for text in group)]
            units.append(
                PrintedTranslationUnit(
                    prototypes=prototypes,
                    texts=(*used, *group),
                    tables=tuple(t for t in tables if any(f"&{t.name}," in text for text in (*used, *group))),
                    entries=() if units else entries,
                    compiled_quickly=seldom,
                )
            )
    return tuple(units)


def _group_functions(functions: Sequence[PrintedCFunction]) -> list[list[str]]:
    """Group functions with their parts: the first group until it is full, further parts in others."""
    groups: list[list[str]] = [[]]
    weights = [sum(function.weight for function in functions)]
    for part in [part for function in functions for part in function.parts]:
        if weights[-1] + part.weight > MAX_VALUES_PER_TRANSLATION_UNIT and (groups[-1] or len(groups) == 1):
            groups.append([])
            weights.append(0)
        groups[-1].append(part.text)
        weights[-1] += part.weight
    groups[0] += [function.text for function in functions]
    return groups


def _motion_functions(program: ScalarProgram) -> list[_PlannedCFunction]:
    """Return the functions of ``mb2fmu_equations`` but for ``prepare``, in their order."""
    entries = program.entries
    functions = []
    for name in _PLAIN_ENTRIES:
        array = "dx" if name == "rhs" else "y"
        functions.append(
            _make_function(name, (f"double {array}[]",), _LEAF_EXPRESSIONS, _store_pairs(array, entries[name].results))
        )
    if "project" in entries and entries["project"].results:
        functions.append(
            _make_function("project", ("double y[]",), _LEAF_EXPRESSIONS, _store_pairs("y", entries["project"].results))
        )
    if program.layout.memory:
        functions.append(
            _make_function(
                "remember", ("double y[]",), _LEAF_EXPRESSIONS, _store_pairs("y", entries["remember"].results)
            )
        )
    functions += [
        _make_function(name, ("double y[]",), _LEAF_EXPRESSIONS, _store_pairs("y", entries[name].results))
        for name in ("indicators", "surfaces", "event", "next_time_event")
        if name in entries
    ]
    return functions


def _derivative_functions(native: ProgramWithDerivatives, *, large: bool) -> list[_PlannedCFunction]:
    """Return the functions of ``mb2fmu_derivatives`` except ``prepare``, in order; large ones may be seldom called."""
    entries, by_columns = native.program.entries, native.column_colours is not None
    functions = []
    derived = [("tangent", "s", "out"), *([("adjoint", "bar", "sbar")] if "adjoint" in entries else [])]
    if "initialize" in entries:
        results = _store_pairs("y", entries["initialize"].results)
        functions.append(_make_function("initialize", ("double y[]",), _LEAF_EXPRESSIONS, results, seldom=large))
        derived = [*((f"initialize_{name}", seeds, array) for name, seeds, array in derived), *derived]
    for name, seeds, array in derived:
        parameters = (f"const double {seeds}[]", f"double {array}[]")
        outputs = _store_pairs(array, entries[name].results)
        seldom = large and (name != "tangent" or by_columns)
        functions.append(
            _make_function(name, parameters, {**_LEAF_EXPRESSIONS, Op.SEED: seeds}, outputs, seldom=seldom)
        )
    functions.append(_jacobian_function(native, seldom=large and by_columns))
    return functions


def _jacobian_function(native: ProgramWithDerivatives, *, seldom: bool) -> _PlannedCFunction:
    """Return the function of the Jacobian ∂x'/∂x, row by row, and of ∂x'/∂t; structural zeros are not stored.

    Where it is computed by columns, by the function of the tangent, it has no results of its own.
    """
    entries = native.program.entries
    n = len(native.program.layout.states)
    outputs: tuple[tuple[str, int], ...] = ()
    zeros: list[int] = []
    if native.column_colours is None:
        by_time = dict(zip(native.time_derivative_rows.tolist(), entries["jacobian_time"].results, strict=True))
        places = (native.rows * n + native.columns).tolist()
        outputs = tuple(
            (f"values[{place}]", node) for place, node in zip(places, entries["jacobian"].results, strict=True)
        )
        outputs += tuple((f"dfdt[{row}]", node) for row, node in sorted(by_time.items()))
        zeros = [row for row in range(n) if row not in by_time]
    parameters = ("double values[]", "double dfdt[]")
    return _make_function(
        "jacobian", parameters, _LEAF_EXPRESSIONS, outputs, [f"dfdt[{row}]" for row in zeros], seldom=seldom
    )


def _make_function(
    name: str,
    more: tuple[str, ...],
    leaves: dict[Op, str],
    outputs: tuple[tuple[str, int], ...],
    zeros: Iterable[str] = (),
    *,
    seldom: bool = False,
) -> _PlannedCFunction:
    """Return a function of `equations.h` with the common arguments first; `zeros` are results set to 0."""
    signature = PrintedCFunctionSignature(
        f"equations_{name}", (*_C_ARGUMENTS, *more), leaves, tuple(zeros), compiled_quickly=seldom
    )
    return _PlannedCFunction(signature, outputs)


def _store_pairs(array: str, nodes: Sequence[int]) -> tuple[tuple[str, int], ...]:
    """Return (element of an array, node) pairs to store."""
    return tuple((f"{array}[{i}]", node) for i, node in enumerate(nodes))


def _hoisted_places_of_functions(
    graph: StatementScheduleGraph, functions: Sequence[_PlannedCFunction], hoisted: np.ndarray, first: int
) -> dict[int, int]:
    """Return places in w of the calculated parameters, and behind them of the other hoisted nodes that they read."""
    wanted: set[int] = set()
    for function in functions:
        wanted |= graph.boundary_nodes([node for _, node in function.outputs], hoisted)
    places: dict[int, int] = {}
    for i, node in enumerate(graph.program.entries["prepare"].results):
        if hoisted[node]:
            places.setdefault(node, i)
    return places | {node: i for i, node in enumerate(sorted(wanted - places.keys()), start=first)}


def locate_hoisted_nodes_in_work_array(
    graph: StatementScheduleGraph, results: Sequence[int], hoisted: np.ndarray
) -> dict[int, int]:
    """Return the places in w of hoisted nodes that some results need."""
    return {node: i for i, node in enumerate(sorted(graph.boundary_nodes(results, hoisted)))}


def print_lookup_tables(
    program: ScalarProgram, names: CNameRegistry, inner: Sequence[CNameRegistry]
) -> tuple[PrintedLookupTable, ...]:
    """Return the lookup tables that printed functions read, those of Newton blocks' bodies (``inner``) included."""
    return tuple(
        _print_lookup_table(owner, key, name)
        for owner, its in ((program, names), *zip(program.bodies, inner, strict=True))
        for key, name in its.tables.items()
    )


def print_newton_bodies(
    program: ScalarProgram, names: CNameRegistry, *, batch: bool = False
) -> tuple[list[PrintedCFunction], list[CNameRegistry]]:
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
        own = CNameRegistry(failures=names.failures, stem=newton_body_name(i))
        own.pivots.update(find_domain_restricted_nodes(body, "pivots"))
        own.divisors.update(find_domain_restricted_nodes(body, "divisors"))
        signature = _newton_body_signature(own.stem, batch=batch)
        nodes = (*body.entries["residual"].results, *body.entries["step"].results)
        printed.append(
            print_c_function(
                StatementScheduleGraph(body), signature, _store_pairs("values", nodes), own, part=len(body) + 1
            )
        )
        names.body_work[i] = printed[-1].work
        inner.append(own)
    return printed, inner


def _newton_body_signature(name: str, *, batch: bool) -> PrintedCFunctionSignature:
    """Return the signature of a Newton body: y and theta in, residual and step out; vectors of lanes for a batch."""
    leaves = {Op.STATE: "y", Op.PARAMETER: "theta"}
    if not batch:
        return PrintedCFunctionSignature(
            name, ("const double y[]", "const double theta[]", "double values[]", "double work[]"), leaves
        )
    arrays = ("const mb2fmu_reals y[]", "const mb2fmu_reals theta[]", "mb2fmu_reals values[]")
    return PrintedCFunctionSignature(name, (*arrays, "mb2fmu_words lost[]", "mb2fmu_reals work[]"), leaves, batch=True)


def _print_lookup_table(program: ScalarProgram, key: tuple[int, int], name: str) -> PrintedLookupTable:
    """Return the breaks and coefficients of a table's derivative, highest power first in each piece."""
    index, order = key
    table = program.tables[index].derivative(order)
    pieces = len(table.breaks) - 1
    columns = [row[i] for i in range(pieces) for row in reversed(table.coefficients)]
    return PrintedLookupTable(
        name=name,
        pieces=pieces,
        terms=len(table.coefficients),
        breaks=tuple(format_c_double(value) for value in table.breaks),
        coefficients=tuple(format_c_double(value) for value in columns),
    )
