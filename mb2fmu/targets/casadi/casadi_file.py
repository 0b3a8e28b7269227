"""``emit``: make the files of the CasADi target from printed functions, a fixed runtime and a template."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import jinja2

from mb2fmu.compiler.derivatives.second_derivatives import TwiceDifferentiable, differentiate_twice
from mb2fmu.compiler.program.program import Op, Program, first_memory
from mb2fmu.compiler.program.reachable_nodes import needed
from mb2fmu.fmu import template_environment
from mb2fmu.fmu.emit_c.c_literals import number, remark
from mb2fmu.fmu.emit_c.equations_source import print_bodies, printed_tables, required_nodes
from mb2fmu.fmu.emit_c.fmu_sources import packaged, packaged_operations
from mb2fmu.fmu.emit_c.function_signatures import Names, PrintedFunction, Signature
from mb2fmu.fmu.emit_c.operation_code import operation_files
from mb2fmu.fmu.emit_c.rolled_loop_printing import print_rolled
from mb2fmu.fmu.emit_c.statement_schedule import Graph
from mb2fmu.fmu.file_tree import FileTree
from mb2fmu.targets.casadi.casadi_functions import GROUPS, BlockOfResults, ExternalFunction, external_functions

_RUNTIME = (
    *("elementary.h", "elementary.c", "elementary_coefficients.h", "elementary_circular.c"),
    *("elementary_exponential.c", "linear_algebra.h", "linear_algebra.c", "lookup.h", "lookup.c", "portability.h"),
)

_PARAMETERS = (
    *("double t", "const double x[]", "const double r[]", "const double p[]", "const double s[]"),
    *("double work[]", "double y[]"),
)
_LEAVES = {
    Op.TIME: "t",
    Op.STATE: "x",
    Op.INPUT: "r",
    Op.PARAMETER: "p",
    Op.SEED: "s",
    Op.MEMORY: "external_memory",
}

FUNCTIONS = {"rhs": "x'", "outputs": "y"}
"""Entry points that are printed, each into a file of its own, and what they give."""

LARGEST_HESSIAN = 60_000
"""Operations above which second derivatives are not written out: CasADi then takes one direction after the other."""


@dataclass(frozen=True, slots=True)
class ExternalFacts:
    """Facts for the files beside the equations.

    Attributes:
        name: Of the model; a C identifier.
        states: x: name, unit and start value of each; likewise the following.
        inputs: r.
        parameters: p.
        outputs: y: name and unit.
    """

    name: str
    states: tuple[tuple[str, str, float], ...]
    inputs: tuple[tuple[str, str, float], ...]
    parameters: tuple[tuple[str, str, float], ...]
    outputs: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class _Printed:
    """One external function with the two C functions behind it.

    Attributes:
        function: What CasADi sees.
        whole: Computes all.
        part: Computes all but derivatives by parameters; the same one where there are none.
        results: How many numbers they store.
        first: Of each output, where its numbers begin among these.
    """

    function: ExternalFunction
    whole: PrintedFunction
    part: PrintedFunction
    results: int
    first: tuple[int, ...]


def emit(program: Program, facts: ExternalFacts) -> FileTree:
    """Print the files.

    Args:
        program: With the entry points ``rhs`` and ``outputs``.
        facts: Of its model.

    Returns:
        ``<name>_rhs.c``, ``<name>_outputs.c`` and ``runtime/…``.

    Raises:
        EmitError: If there are no second derivatives.
    """
    files: dict[str, bytes] = {}
    runtime = {name: packaged("mb2fmu.fmu.emit_c", f"runtime/{name}") for name in _RUNTIME}
    for entry in [name for name in FUNCTIONS if program.entries[name].results]:
        twice = differentiate_twice(program, entry, GROUPS)
        files[f"{facts.name}_{entry}.c"] = _file(twice, facts, entry, first_memory(program))
        runtime |= packaged_operations(twice.program)
    runtime["external.h"] = packaged("mb2fmu.targets.casadi", "runtime/external.h")
    return FileTree(files).joined(FileTree(runtime).under("runtime"))


def _file(twice: TwiceDifferentiable, facts: ExternalFacts, entry: str, memory: Sequence[float]) -> bytes:
    """Print one function with its derivatives."""
    program = twice.program
    graph = Graph(program)
    names = Names(
        pivots=required_nodes(program, "pivots"),
        divisors=required_nodes(program, "divisors"),
        domains=required_nodes(program, "domains"),
    )
    bodies, inner = print_bodies(program, names)
    wanted = external_functions(twice, len(program.entries["value"].results))
    if needed(program, program.entries["hessian"].results)[0].sum() > LARGEST_HESSIAN:
        wanted = tuple(function for function in wanted if function.entry != "hessian")
    printed = [_printed(graph, function, names) for function in wanted]
    unique = {each.name: each for one in printed for each in (one.whole, one.part)}
    text = (
        _environment()
        .get_template("external.c.jinja")
        .render(
            facts=facts,
            gives=FUNCTIONS[entry],
            name=f"{facts.name}_{entry}",
            entry=entry,
            files=operation_files(program),
            tables=printed_tables(program, names, inner),
            memory=memory or (0.0,),
            functions=(*bodies, *unique.values()),
            printed=printed,
            longest=max(size for one in printed for _, size in (*one.function.inputs, ("", 1))),
        )
    )
    return text.encode()


def _printed(graph: Graph, function: ExternalFunction, names: Names) -> _Printed:
    """Print the C functions behind an external function."""
    entry = graph.program.entries[function.entry]
    first, places = [], []
    count = 0
    for block in function.outputs:
        first.append(count)
        places.append([(f"y[{count + i}]", entry.results[k]) for i, (_, _, k) in enumerate(block.entries)])
        count += len(block.entries)

    def c_function(name: str, blocks: Sequence[BlockOfResults]) -> PrintedFunction:
        """Print one C function that computes these blocks of results."""
        outputs = [
            place for block, its in zip(function.outputs, places, strict=True) if block in blocks for place in its
        ]
        return print_rolled(graph, Signature(f"external_{name}", _PARAMETERS, _LEAVES), outputs, names)

    whole = c_function(function.entry, function.outputs)
    without = [block for block in function.outputs if not block.by_parameters]
    part = whole if len(without) == len(function.outputs) else c_function(f"{function.entry}_part", without)
    return _Printed(function, whole, part, count, tuple(first))


@cache
def _environment() -> jinja2.Environment:
    """Return the template environment of this target."""
    environment = template_environment.environment("mb2fmu.targets.casadi")
    environment.filters |= {"number": number, "remark": remark}
    return environment
