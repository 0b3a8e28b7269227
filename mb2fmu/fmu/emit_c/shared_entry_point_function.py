"""One C function for what several entry points share: x', outputs and projection of an FMU for a page.

Functions of single entry points compute positions, velocities and mass matrix anew each, which is fast and takes room.
Where room counts, one function computes all of them, stage by stage, and returns behind the stage that was requested.
Every value is computed by the same operations, so all bits are the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from mb2fmu.compiler.program.program_pruning import find_needed_nodes
from mb2fmu.compiler.program.scalar_program import Op, ScalarProgram
from mb2fmu.compiler.program.statement_schedule import FactorizationStatement, Statement, StatementScheduleGraph
from mb2fmu.fmu.emit_c.c_function_printing_records import CNameRegistry, PrintedCFunction, PrintedCFunctionSignature
from mb2fmu.fmu.emit_c.long_function_splitting import SplitCFunction
from mb2fmu.fmu.emit_c.straight_line_printing import CFunctionBodyPrinter, format_function_signature

STAGE_ARGUMENT = "stage"
"""The last argument: the last stage that is wanted."""


def print_function_shared_by_entry_points(
    graph: StatementScheduleGraph,
    name: str,
    entries: Mapping[str, PrintedCFunctionSignature],
    names: CNameRegistry,
    given: npt.NDArray[np.bool_],
) -> tuple[PrintedCFunction, dict[str, PrintedCFunction]]:
    """Return a function for several entry points, and one for each that calls it.

    Args:
        graph: Of the program.
        name: Of the function.
        entries: Entry point → signature of its own function; in the order of the stages.
        names: Of the FMU.
        given: Mask of nodes that are read from ``names.prepared``.
    """
    first = next(iter(entries.values()))
    parameters = (*first.parameters[:-1], "double out[]", f"int {STAGE_ARGUMENT}")
    signature = PrintedCFunctionSignature(f"equations_{name}", parameters, first.leaves)
    stages, outputs, at = [], [], 0
    factored: set[int] = set()
    known, later = given, _find_block_results(graph.program, entries)
    for entry in entries:
        results = graph.program.entries[entry].results
        wanted = [*results, *_find_sibling_results(graph.program, results, later)]
        scheduled = graph.schedule_statements(wanted, known)
        # A stage runs behind those before it: what they factored is there, though no node says so.
        stages.append(
            [each for each in scheduled if not (isinstance(each, FactorizationStatement) and each.block in factored)]
        )
        factored.update(each.block for each in stages[-1] if isinstance(each, FactorizationStatement))
        outputs.append([(f"out[{at + i}]", node) for i, node in enumerate(results)])
        at += len(results)
        computed = [node for statement in stages[-1] for node in statement.defines]
        known = known.copy()
        known[computed] = True
    shared = _StagedFunctionPart(graph, signature, stages, outputs, names).printed()
    callers, begin = {}, 0
    for number, (entry, own) in enumerate(entries.items()):
        count = len(graph.program.entries[entry].results)
        callers[entry] = _print_calling_function(own, shared, (begin, count), number, at)
        begin += count
    return shared, callers


def _find_block_results(
    program: ScalarProgram, entries: Mapping[str, PrintedCFunctionSignature]
) -> npt.NDArray[np.intp]:
    """Return the nodes of all results of blocks that any of the entry points needs."""
    nodes, _ = find_needed_nodes(program, [node for entry in entries for node in program.entries[entry].results])
    return np.flatnonzero(nodes & (program.op == Op.BLOCK))


def _find_sibling_results(program: ScalarProgram, results: Sequence[int], later: npt.NDArray[np.intp]) -> list[int]:
    """Return results that later stages need of blocks that this one evaluates: a block is evaluated once."""
    _, blocks = find_needed_nodes(program, results)
    return [int(node) for node in later if blocks[program.a[node]]]


def _print_calling_function(
    own: PrintedCFunctionSignature, shared: PrintedCFunction, place: tuple[int, int], stage: int, size: int
) -> PrintedCFunction:
    """Return the function of an entry point: it calls the shared one, and copies its own results.

    Args:
        own: Signature of the function.
        shared: What it calls.
        place: First of its results among all, and how many they are.
        stage: Which it is.
        size: Number of all results.
    """
    begin, count = place
    arguments = ", ".join(own.arguments[:-1])
    lines = [
        format_function_signature(own.linkage, own.c_function_name, own.parameters),
        "{",
        f"    const int failed = {shared.name}({arguments}, work + {shared.work}, {stage});",
        f"    for (int i = 0; i < {count}; i++) {{",
        f"        {own.arguments[-1]}[i] = work[{shared.work + begin} + i];",
        "    }",
        "    return failed;",
        "}",
        "",
    ]
    return PrintedCFunction(own.name, "\n".join(lines), count, work=shared.work + size)


class _StagedFunctionPart(SplitCFunction):
    """One part, in stages.

    Args:
        graph: Of the program.
        signature: Of the function; its last argument is :data:`STAGE_ARGUMENT`.
        stages: Statements of each.
        outputs: (lvalue, node) of each value that a stage stores.
        names: Of the FMU.
    """

    def __init__(
        self,
        graph: StatementScheduleGraph,
        signature: PrintedCFunctionSignature,
        stages: Sequence[Sequence[Statement]],
        outputs: Sequence[Sequence[tuple[str, int]]],
        names: CNameRegistry,
    ) -> None:
        every = [statement for stage in stages for statement in stage]
        super().__init__(graph, signature, [every], [each for stage in outputs for each in stage], names)
        self._stages = stages
        self._stored = outputs

    def _body(self, i: int, places: dict[int, int]) -> CFunctionBodyPrinter:
        """Return the statements, each stage with what it stores and a way out behind it."""
        assert i == 0, "there is one part"
        body = CFunctionBodyPrinter(self._graph, self._signature, self._names, places, self._angles)
        for number, (statements, outputs) in enumerate(zip(self._stages, self._stored, strict=True)):
            for statement in statements:
                body.add(statement)
            for target, node in outputs:
                body.store(target, node)
            body.print_early_return(STAGE_ARGUMENT, number)
        return body

    def _store_outputs(self, body: CFunctionBodyPrinter, outputs: Sequence[tuple[str, int]]) -> None:
        """Store nothing behind the stages: each has stored its own."""
