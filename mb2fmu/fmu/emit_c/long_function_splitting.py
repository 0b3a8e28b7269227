"""Print one C function for some results of a Program; a long one is split into parts of bounded size.

Parts hand values over in the caller's array ``work``, whose places are used again as soon as nobody reads their value
any more. Large arrays live there too: stacks may be small.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from mb2fmu.compiler.program.statement_schedule import (
    FactorizationStatement,
    NewtonStatement,
    SineCosineStatement,
    Statement,
    StatementScheduleGraph,
    count_factor_doubles,
    count_statement_values,
    group_statements_by_size,
)
from mb2fmu.fmu.emit_c.c_function_printing_records import (
    CNameRegistry,
    PrintedCFunction,
    PrintedCFunctionPart,
    PrintedCFunctionSignature,
    newton_work_size,
)
from mb2fmu.fmu.emit_c.straight_line_printing import (
    CFunctionBodyPrinter,
    format_function_declaration,
    format_function_definition,
    format_function_signature,
)

MAX_VALUES_PER_PART = 3_000
"""Largest number of values that one part computes; compilers need more than linear time for longer ones."""

_MAX_VALUES_OF_JOINED_PARTS = 500
"""Values that parts of what is seldom evaluated may compute together in one C function: many small ones cost more."""

_MAX_STACK_DOUBLES = 128
"""Doubles of an array that may lie on the stack."""


def print_c_function(
    graph: StatementScheduleGraph,
    signature: PrintedCFunctionSignature,
    outputs: Sequence[tuple[str, int]],
    names: CNameRegistry,
    *,
    given: npt.NDArray[np.bool_] | None = None,
    part: int = MAX_VALUES_PER_PART,
) -> PrintedCFunction:
    """Return a function that stores nodes.

    Args:
        graph: Of the program.
        signature: Of the function; it returns 0 or the number of the linear solve that failed.
        outputs: (lvalue, node) of each value to store.
        names: Shared by all functions of an FMU; takes what is new.
        given: Mask of nodes that are read from ``names.prepared``; None: none.
        part: Largest number of values that one part computes.
    """
    known = np.zeros(len(graph.op), dtype=bool) if given is None else given
    statements = graph.schedule_statements([node for _, node in outputs], known)
    return SplitCFunction(graph, signature, group_statements_by_size(statements, part), outputs, names).printed()


def print_forwarding_function(
    signature: PrintedCFunctionSignature,
    source: PrintedCFunction,
    arguments: Sequence[str],
    outputs: Sequence[tuple[str, int]],
    size: int,
) -> PrintedCFunction:
    """Return a function whose results are a part of another one's, which it calls.

    Args:
        signature: Of the function.
        source: The other one.
        arguments: Of the other one but for its results, which go into ``work``.
        outputs: (lvalue, which result of the other one).
        size: How many results the other one has.
    """
    lines = [
        format_function_signature(signature.linkage, signature.c_function_name, signature.parameters),
        "{",
        f"    double *const results = work + {source.work};",
        f"    const int failed = {source.name}({', '.join(arguments)}, results);",
        *(f"    {target} = results[{i}];" for target, i in outputs),
        "    return failed;",
        "}",
        "",
    ]
    return PrintedCFunction(signature.name, "\n".join(lines), len(outputs), work=source.work + size)


def _join_ranges(weights: Sequence[int], most: int) -> list[tuple[int, int]]:
    """Return ranges of neighbours that together weigh at most that much, or of one each."""
    ranges = [(0, 1)]
    for i, weight in enumerate(weights[1:], start=1):
        first, _ = ranges[-1]
        if sum(weights[first:i]) + weight <= most:
            ranges[-1] = (first, i + 1)
        else:
            ranges.append((i, i + 1))
    return ranges


class SplitCFunction:
    """A function in one or several parts, which pass values in ``work``.

    Args:
        graph: Of the program.
        signature: Of the function.
        parts: Statements, part by part.
        outputs: (lvalue, node) of each value to store.
        names: Of the FMU.
    """

    def __init__(
        self,
        graph: StatementScheduleGraph,
        signature: PrintedCFunctionSignature,
        parts: Sequence[Sequence[Statement]],
        outputs: Sequence[tuple[str, int]],
        names: CNameRegistry,
    ) -> None:
        self._graph = graph
        self._signature = signature
        self._parts = parts
        self._outputs = outputs
        self._names = names
        self._home = {node: i for i, part in enumerate(parts) for s in part for node in s.defines}
        self._size = 0
        self._free: list[int] = []
        self._fixed: dict[int, tuple[int, ...]] = {}  # places of values that are kept until the end
        self._angles: dict[SineCosineStatement, tuple[int, int]] = {}  # places of sines and cosines, likewise

    def printed(self) -> PrintedCFunction:
        """Return the function, and the parts that it calls one after the other if there are several."""
        bodies = self._bodies()
        signature = self._signature
        name, parameters = signature.c_function_name, signature.parameters
        weights = [self._weight(i) for i in range(len(self._parts))]
        prototype = format_function_declaration(name, parameters) if signature.compiled_quickly else ""
        if len(bodies) == 1:
            text = format_function_definition(signature.linkage, name, parameters, bodies)
            return PrintedCFunction(name, text, weights[0], work=self._size, prototype=prototype)
        parts = []
        for i, (first, end) in enumerate(
            _join_ranges(weights, _MAX_VALUES_OF_JOINED_PARTS if signature.compiled_quickly else 0)
        ):
            text = format_function_definition("int", self._part(i), parameters, bodies[first:end])
            known = format_function_declaration(self._part(i), parameters, "MB2FMU_NOINLINE")
            parts.append(PrintedCFunctionPart(known, text, sum(weights[first:end])))
        return PrintedCFunction(name, self._calls(len(parts)), len(parts), tuple(parts), self._size, prototype)

    def _bodies(self) -> list[CFunctionBodyPrinter]:
        """Print the parts; values that later parts read live in `work`, in places free again after the last read."""
        last = {node: end for node, end in self._last_reads().items() if node not in self._fixed}
        places = self._place_factors() | {node: each[0] for node, each in self._fixed.items()}
        outputs: list[list[tuple[str, int]]] = [[] for _ in self._parts]
        for target, node in self._outputs:
            outputs[self._output_part(node)].append((target, node))
        ending: list[list[int]] = [[] for _ in self._parts]
        for node, end in last.items():
            ending[end].append(node)
        bodies = []
        for i, part in enumerate(self._parts):
            body = self._body(i, places)
            body.clear(self._signature.zeros if i == 0 else ())
            self._store_outputs(body, outputs[i])
            for node in ending[i]:
                self._free.append(places.pop(node))
            for statement in part if last else ():
                for node in statement.defines:
                    if last.get(node, i) > i:
                        places[node] = self._place()
                        body.store(f"work[{places[node]}]", node)
            bodies.append(body)
        return bodies

    def _body(self, i: int, places: dict[int, int]) -> CFunctionBodyPrinter:
        """Return the statements of a part, without what it stores for others."""
        body = CFunctionBodyPrinter(self._graph, self._signature, self._names, places, self._angles)
        for statement in self._parts[i]:
            body.add(statement)
            if not self._fixed or (isinstance(statement, SineCosineStatement) and statement in self._angles):
                continue
            for node in statement.defines:
                for place in self._fixed.get(node, ()):
                    body.store(f"work[{place}]", node)
        return body

    def _weight(self, i: int) -> int:
        """Return the weight of a part, by which parts are made of equal size."""
        return count_statement_values(self._parts[i])

    def _store_outputs(self, body: CFunctionBodyPrinter, outputs: Sequence[tuple[str, int]]) -> None:
        """Print the stores of a part's outputs."""
        for target, node in outputs:
            body.store(target, node)

    def _output_part(self, node: int) -> int:
        """Return the part that stores a result."""
        return self._home.get(node, 0)

    def _last_reads(self) -> dict[int, int]:
        """Return the last part that reads a value of an earlier one."""
        last: dict[int, int] = {}
        for i, part in enumerate(self._parts):
            for statement in part:
                for node in statement.reads:
                    if self._home.get(node, i) < i:
                        last[node] = i
        return last

    def _place_factors(self) -> dict[int, int]:
        """Place factors that other parts read, or that are large, and the work of Newton's method."""
        places = {}
        for part in self._parts:
            for statement in part:
                if isinstance(statement, NewtonStatement):
                    block = self._graph.program.blocks[statement.block]
                    places[~statement.block] = self._size
                    self._size += newton_work_size(block.size) + self._names.body_work[block.body]
                if isinstance(statement, FactorizationStatement):
                    block = self._graph.program.blocks[statement.block]
                    size = count_factor_doubles(block.kind, block.size)
                    if len(self._parts) > 1 or size > _MAX_STACK_DOUBLES:
                        places[~statement.block] = self._size
                        self._size += size
        return places

    def _place(self) -> int:
        """Return a free place in `work`, or a new one."""
        if self._free:
            return self._free.pop()
        self._size += 1
        return self._size - 1

    def _part(self, i: int) -> str:
        """Return the C name of a part."""
        return f"MB2FMU_VARIANT({self._signature.stem}_{i})"

    def _calls(self, count: int) -> str:
        """Print the function that calls the parts in order and stops at the first failure."""
        arguments = ", ".join(self._signature.arguments)
        lines = [
            format_function_signature(
                self._signature.linkage, self._signature.c_function_name, self._signature.parameters
            ),
            "{",
            f"    int failed = {self._part(0)}({arguments});",
        ]
        for i in range(1, count):
            lines += ["    if (failed == 0) {", f"        failed = {self._part(i)}({arguments});", "    }"]
        return "\n".join([*lines, "    return failed;", "}", ""])
