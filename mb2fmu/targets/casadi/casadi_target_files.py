"""``emit_casadi_files``: make the files of the CasADi target from printed functions, a fixed runtime and a template."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import jinja2

from mb2fmu.compiler.derivatives.second_derivatives import (
    SparsityPattern,
    TwiceDifferentiatedEntryPoint,
    form_second_derivatives,
)
from mb2fmu.compiler.program.program_pruning import find_needed_nodes
from mb2fmu.compiler.program.program_result_dependencies import VariableGroup
from mb2fmu.compiler.program.scalar_program import (
    Op,
    ScalarProgram,
    find_domain_restricted_nodes,
    read_initial_discrete_memory,
)
from mb2fmu.compiler.program.statement_schedule import StatementScheduleGraph
from mb2fmu.fmu import packaged_templates
from mb2fmu.fmu.emit_c.c_function_printing_records import CNameRegistry, PrintedCFunction, PrintedCFunctionSignature
from mb2fmu.fmu.emit_c.c_literals import escape_comment_text, format_c_double
from mb2fmu.fmu.emit_c.c_loop_printing import print_function_with_loops
from mb2fmu.fmu.emit_c.equations_c_source import print_lookup_tables, print_newton_bodies
from mb2fmu.fmu.emit_c.fmu_c_sources import read_operation_c_files
from mb2fmu.fmu.emit_c.used_operation_c_code import list_included_c_files
from mb2fmu.fmu.in_memory_file_tree import InMemoryFileTree
from mb2fmu.fmu.packaged_templates import read_packaged_file
from mb2fmu.targets.target_model_description import TargetModelDescription

_RUNTIME_FILES = (
    *("elementary.h", "elementary.c", "elementary_coefficients.h", "elementary_circular.c"),
    *("elementary_exponential.c", "linear_algebra.h", "linear_algebra.c", "lookup.h", "lookup.c", "portability.h"),
)

_C_PARAMETERS = (
    *("double t", "const double x[]", "const double r[]", "const double p[]", "const double s[]"),
    *("double work[]", "double y[]"),
)
_LEAF_EXPRESSIONS = {
    Op.TIME: "t",
    Op.STATE: "x",
    Op.INPUT: "r",
    Op.PARAMETER: "p",
    Op.SEED: "s",
    Op.MEMORY: "external_memory",
}

PRINTED_ENTRIES = {"rhs": "x'", "outputs": "y"}
"""Entry points that are printed, each into a file of its own, and what they give."""

MAX_HESSIAN_OPERATIONS = 60_000
"""Operations above which second derivatives are not written out: CasADi then takes one direction after the other."""


@dataclass(frozen=True, slots=True)
class _PrintedCasadiExternalFunction:
    """One external function with the two C functions behind it.

    Attributes:
        function: What CasADi sees.
        whole: Computes all.
        part: Computes all but derivatives by parameters; the same one where there are none.
        results: How many numbers they store.
        first: Of each output, where its numbers begin among these.
    """

    function: _CasadiExternalFunction
    whole: PrintedCFunction
    part: PrintedCFunction
    results: int
    first: tuple[int, ...]


def emit_casadi_files(program: ScalarProgram, model: TargetModelDescription) -> InMemoryFileTree:
    """Print the files.

    Args:
        program: With the entry points ``rhs`` and ``outputs``.
        model: Names, units, start values.

    Returns:
        ``<name>_rhs.c``, ``<name>_outputs.c`` and ``runtime/…``.

    Raises:
        EmitError: If there are no second derivatives.
    """
    files: dict[str, bytes] = {}
    runtime = {name: read_packaged_file("mb2fmu.fmu.emit_c", f"runtime/{name}") for name in _RUNTIME_FILES}
    for entry in [name for name in PRINTED_ENTRIES if program.entries[name].results]:
        twice = form_second_derivatives(program, entry, INPUT_GROUPS)
        files[f"{model.name}_{entry}.c"] = _print_function_file(
            twice, model, entry, read_initial_discrete_memory(program)
        )
        runtime |= read_operation_c_files(twice.program)
    runtime["external.h"] = read_packaged_file("mb2fmu.targets.casadi", "runtime/external.h")
    return InMemoryFileTree(files).joined(InMemoryFileTree(runtime).move_under("runtime"))


def _print_function_file(
    twice: TwiceDifferentiatedEntryPoint, model: TargetModelDescription, entry: str, memory: Sequence[float]
) -> bytes:
    """Print one function with its derivatives."""
    program = twice.program
    graph = StatementScheduleGraph(program)
    names = CNameRegistry(
        pivots=find_domain_restricted_nodes(program, "pivots"),
        divisors=find_domain_restricted_nodes(program, "divisors"),
        domains=find_domain_restricted_nodes(program, "domains"),
    )
    bodies, inner = print_newton_bodies(program, names)
    wanted = _list_casadi_external_functions(twice, len(program.entries["value"].results))
    if find_needed_nodes(program, program.entries["hessian"].results)[0].sum() > MAX_HESSIAN_OPERATIONS:
        wanted = tuple(function for function in wanted if function.entry != "hessian")
    printed = [_print_external_function(graph, function, names) for function in wanted]
    unique = {each.name: each for one in printed for each in (one.whole, one.part)}
    text = (
        _make_template_environment()
        .get_template("external.c.jinja")
        .render(
            model=model,
            gives=PRINTED_ENTRIES[entry],
            name=f"{model.name}_{entry}",
            entry=entry,
            files=list_included_c_files(program),
            tables=print_lookup_tables(program, names, inner),
            memory=memory or (0.0,),
            functions=(*bodies, *unique.values()),
            printed=printed,
            longest=max(size for one in printed for _, size in (*one.function.inputs, ("", 1))),
        )
    )
    return text.encode()


def _print_external_function(
    graph: StatementScheduleGraph, function: _CasadiExternalFunction, names: CNameRegistry
) -> _PrintedCasadiExternalFunction:
    """Print the C functions behind an external function."""
    entry = graph.program.entries[function.entry]
    first, places = [], []
    count = 0
    for block in function.outputs:
        first.append(count)
        places.append([(f"y[{count + i}]", entry.results[k]) for i, (_, _, k) in enumerate(block.entries)])
        count += len(block.entries)

    def c_function(name: str, blocks: Sequence[CasadiSparseMatrixOutput]) -> PrintedCFunction:
        """Print one C function that computes these blocks of results."""
        outputs = [
            place for block, its in zip(function.outputs, places, strict=True) if block in blocks for place in its
        ]
        return print_function_with_loops(
            graph, PrintedCFunctionSignature(f"external_{name}", _C_PARAMETERS, _LEAF_EXPRESSIONS), outputs, names
        )

    whole = c_function(function.entry, function.outputs)
    without = [block for block in function.outputs if not block.by_parameters]
    part = whole if len(without) == len(function.outputs) else c_function(f"{function.entry}_part", without)
    return _PrintedCasadiExternalFunction(function, whole, part, count, tuple(first))


@cache
def _make_template_environment() -> jinja2.Environment:
    """Return the template environment of this target."""
    environment = packaged_templates.make_template_environment("mb2fmu.targets.casadi")
    environment.filters |= {"number": format_c_double, "remark": escape_comment_text}
    return environment


INPUT_GROUPS: tuple[VariableGroup, ...] = ("time", "states", "inputs", "parameters")
"""The inputs, in this order."""

_INPUT_NAMES = ("t", "x", "r", "p")

IndexRun = tuple[str, int | None, int]
"""Name, first place (None: nowhere) and length of neighbouring rows, columns or results."""


@dataclass(frozen=True, slots=True)
class CasadiSparseMatrixOutput:
    """One output of an external function: a sparse matrix, column by column.

    Attributes:
        name: Of the output.
        shape: Of the matrix.
        entries: (row, column, which result of the entry point) of each that is not zero, in CasADi's order.
        by_parameters: It is a derivative by parameters, which cost much and are often not requested.
    """

    name: str
    shape: tuple[int, int]
    entries: tuple[tuple[int, int, int], ...]
    by_parameters: bool = False

    @property
    def sparsity(self) -> list[int]:
        """The pattern as CasADi wants it: rows, columns, where each column begins, row numbers."""
        rows, columns = self.shape
        counts = [0] * (columns + 1)
        for _, j, _ in self.entries:
            counts[j + 1] += 1
        for j in range(columns):
            counts[j + 1] += counts[j]
        return [rows, columns, *counts, *(i for i, _, _ in self.entries)]


@dataclass(frozen=True, slots=True)
class _CasadiExternalFunction:
    """A function that CasADi finds by its name.

    Attributes:
        prefix: What stands before the name of F.
        entry: Entry point of the program.
        inputs: Name and length of each.
        seeds: For each run of the entry point's seeds: which input it is read from, or None if nothing reads it; and
            its length.
        outputs: What it gives.
    """

    prefix: str
    entry: str
    inputs: tuple[tuple[str, int], ...]
    seeds: tuple[tuple[int | None, int], ...]
    outputs: tuple[CasadiSparseMatrixOutput, ...]


def _list_casadi_external_functions(
    twice: TwiceDifferentiatedEntryPoint, results: int
) -> tuple[_CasadiExternalFunction, ...]:
    """Return f and its derivatives.

    Args:
        twice: By :data:`INPUT_GROUPS`.
        results: How many F has.
    """
    sizes = [twice.variables[group] for group in INPUT_GROUPS]
    inputs = tuple(zip(_INPUT_NAMES, sizes, strict=True))
    given = (*inputs, ("out_y", results))
    weighted = (*given, ("adj_y", results))
    adjoint = (*weighted, *_prefix_names("out_adj_", inputs))
    n = sum(sizes)
    starts = [sum(sizes[:i]) for i in range(len(sizes))]
    of_inputs = list(zip(_INPUT_NAMES, starts, sizes, strict=True))
    of_weighted = [*of_inputs, ("out_y", None, results), ("adj_y", n, results)]
    value, gradient = [("y", 0, results)], [(f"adj_{name}", start, size) for name, start, size in of_inputs]
    # Where the runs of seeds are read from: weights, directions of the inputs, directions of the weights.
    weights, unread = (len(given), results), (None, results)
    along = [(len(given) + i, size) for i, size in enumerate(sizes)]
    again = [(len(adjoint) + i, size) for i, size in enumerate(sizes)]
    last = (len(adjoint) + len(given), results)
    return (
        _CasadiExternalFunction("", "value", inputs, (), _full_columns(value)),
        _CasadiExternalFunction("jac_", "jacobian", given, (), _cut_into_blocks(twice.jacobian, value, of_inputs)),
        _CasadiExternalFunction(
            "fwd1_", "tangent", (*given, *_prefix_names("fwd_", inputs)), (unread, *along), _full_columns(value, "fwd_")
        ),
        _CasadiExternalFunction("adj1_", "adjoint", weighted, (weights,), _full_columns(gradient)),
        _CasadiExternalFunction(
            "jac_adj1_", "hessian", adjoint, (weights,), _cut_into_blocks(twice.hessian, gradient, of_weighted)
        ),
        _CasadiExternalFunction(
            "fwd1_adj1_",
            "adjoint_tangent",
            (*adjoint, *_prefix_names("fwd_", weighted)),
            (weights, *again, last),
            _full_columns(gradient, "fwd_"),
        ),
    )


def _prefix_names(before: str, inputs: Sequence[tuple[str, int]]) -> tuple[tuple[str, int], ...]:
    """Put a prefix before the names."""
    return tuple((before + name, size) for name, size in inputs)


def _full_columns(runs: Sequence[IndexRun], before: str = "") -> tuple[CasadiSparseMatrixOutput, ...]:
    """Return results as full columns, one run after the other."""
    return tuple(
        CasadiSparseMatrixOutput(
            name=before + name,
            shape=(size, 1),
            entries=tuple((i, 0, (start or 0) + i) for i in range(size)),
            by_parameters=name == "adj_p",
        )
        for name, start, size in runs
    )


def _cut_into_blocks(
    pattern: SparsityPattern, rows: Sequence[IndexRun], columns: Sequence[IndexRun]
) -> tuple[CasadiSparseMatrixOutput, ...]:
    """Cut a matrix into blocks, those of one run of rows in sequence; columns of rows in no run are zero."""
    places = list(zip(pattern.rows.tolist(), pattern.columns.tolist(), range(len(pattern.rows)), strict=True))
    blocks = []
    for down, top, height in rows:
        band = [(i - (top or 0), j, k) for i, j, k in places if 0 <= i - (top or 0) < height]
        for across, left, width in columns:
            inside = [] if left is None else [(i, j - left, k) for i, j, k in band if 0 <= j - left < width]
            blocks.append(
                CasadiSparseMatrixOutput(
                    name=f"jac_{down}_{across}",
                    shape=(height, width),
                    entries=tuple(sorted(inside, key=lambda entry: (entry[1], entry[0]))),
                    by_parameters="p" in {down.removeprefix("adj_"), across},
                )
            )
    return tuple(blocks)
