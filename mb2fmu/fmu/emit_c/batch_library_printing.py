"""``emit_batch_library``: print an entry point of a Program for many instances at once, as a library of its own.

Every value is a vector with one lane per instance (``runtime/batch.h``), so all the ways in which functions are printed
(parts, loops) serve here too, and each lane has the bits that the FMU's code has for that instance. Linear solves
choose their pivots, and Newton's method its number of iterations, in each lane (``runtime/batch_algebra.h``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mb2fmu.compiler.program import count_operations
from mb2fmu.compiler.program.scalar_program import Op, ScalarProgram, find_domain_restricted_nodes
from mb2fmu.compiler.program.statement_schedule import StatementScheduleGraph
from mb2fmu.fmu.emit_c.c_function_printing_records import CNameRegistry, PrintedCFunctionSignature
from mb2fmu.fmu.emit_c.c_loop_printing import print_function_with_loops
from mb2fmu.fmu.emit_c.equations_c_source import (
    locate_hoisted_nodes_in_work_array,
    print_lookup_tables,
    print_newton_bodies,
)
from mb2fmu.fmu.emit_c.fmu_c_sources import read_operation_c_files, render_c_template
from mb2fmu.fmu.emit_c.used_operation_c_code import form_vector_lane_macro_calls, list_included_c_files
from mb2fmu.fmu.in_memory_file_tree import InMemoryFileTree
from mb2fmu.fmu.packaged_templates import read_packaged_file

_RUNTIME_FILES = (
    *("elementary.h", "elementary.c", "elementary_coefficients.h", "elementary_circular.c"),
    *("elementary_exponential.c", "linear_algebra.h", "lookup.h", "lookup.c", "batch.h", "batch_algebra.h"),
    "portability.h",
)

_MAX_TWO_REGISTER_OPERATIONS = 300
"""Operations up to which motions have two registers to a value. With AVX2 a double pendulum (66 of them) is 1.3 times
as fast so, a four-bar (540) as fast, a chain of seven links (2,000) half as fast: values in use leave the registers."""

_INTEGRATOR_FILES = (
    "batch_course.h",
    "batch_step_loop.h",
    "batch_dopri5.h",
    "dopri5.h",
    "batch_rosenbrock.h",
    "rodasp.h",
)
JacobianSparsity = tuple[Sequence[int], Sequence[int], Sequence[int]]
"""Rows and columns of the entries of ∂x'/∂x that are not zero; rows of those of ∂x'/∂t."""
StoredResults = Mapping[str, Sequence[tuple[int, int]]]
"""Name in C → place in ``y`` and node of each result."""

_WORK_PARAMETERS = ("mb2fmu_words lost[]", "mb2fmu_reals work[]")
_LEAF_ARRAYS = {Op.STATE: "x", Op.INPUT: "r", Op.PARAMETER: "p", Op.MEMORY: "m", Op.SEED: "s"}

PROCESSOR_PROBE = "mb2fmu_probe"
"""Name of the function that :func:`emit_cpu_feature_probe` prints: 2 where the processor has AVX-512, 1 where AVX2."""


def emit_cpu_feature_probe() -> InMemoryFileTree:
    """Print a library that reports the features of the processor."""
    runtime = {
        name: read_packaged_file("mb2fmu.fmu.emit_c", f"runtime/{name}") for name in ("processor.h", "portability.h")
    }
    return InMemoryFileTree({**runtime, "unit.c": render_c_template("probe.c.jinja", name=PROCESSOR_PROBE)}).move_under(
        "sources"
    )


def emit_batch_library(program: ScalarProgram, entry: str) -> InMemoryFileTree:
    """Print a library with one function, ``mb2fmu_batch`` (``templates/batch.c.jinja``).

    Args:
        program: Any.
        entry: Name of an entry point.
    """
    arrays = (
        *(f"const mb2fmu_reals {name}[]" for name in (*_LEAF_ARRAYS.values(), "w")),
        *_WORK_PARAMETERS,
        "mb2fmu_reals y[]",
    )
    printed = _print_entries(
        program, {"evaluate": _results_in_order(program, entry)}, arrays, {Op.TIME: "t", **_LEAF_ARRAYS}
    )
    layout = program.layout
    sizes = {
        "states": len(layout.states),
        "inputs": len(layout.inputs),
        "parameters": len(layout.parameters),
        "memory": len(layout.memory),
        "seeds": len(layout.seeds),
        "results": len(program.entries[entry].results),
        "prepared": printed.prepared,
    }
    text = render_c_template("batch.c.jinja", **printed.facts, vectors=1 + sum(sizes.values()) + printed.work, **sizes)
    return _library_sources(program, text, _RUNTIME_FILES)


def emit_batch_integrator(
    program: ScalarProgram, jacobian: JacobianSparsity | None = None, step_control_states: int | None = None
) -> InMemoryFileTree:
    """Print a library that integrates x', ``mb2fmu_ensemble`` (``templates/ensemble.c.jinja``).

    Args:
        program: One without memory, seeds and events; for the implicit method with ``jacobian`` and ``jacobian_time``.
        jacobian: Where their results stand: the implicit method is printed instead of the explicit one.
        step_control_states: So many states, the first ones, choose the step sizes; None: all.
    """
    names = ("rhs", "outputs", "project")
    stores = {name: _results_in_order(program, name) for name in names if name in program.entries}
    layout = program.layout
    if jacobian is not None:
        stores["jacobian"] = _jacobian_entries(
            program, jacobian, len(layout.states) if step_control_states is None else step_control_states
        )
    leaves: dict[Op, str] = {Op.STATE: "x", Op.INPUT: "r", Op.PARAMETER: "p"}
    arrays = (
        *(f"const mb2fmu_reals {name}[]" for name in (*leaves.values(), "w")),
        *_WORK_PARAMETERS,
        "mb2fmu_reals y[]",
    )
    printed = _print_entries(program, stores, arrays, {Op.TIME: "t", **leaves})

    def count(entry: str) -> int:
        return len(program.entries[entry].results) if entry in program.entries else 0

    sizes = {
        "states": len(layout.states),
        "judged": len(layout.states) if step_control_states is None else step_control_states,
        "inputs": len(layout.inputs),
        "parameters": len(layout.parameters),
        "outputs": count("outputs"),
        "projected": count("project"),
        "prepared": printed.prepared,
        "work": printed.work,
        "implicit": int(jacobian is not None),
    }
    operations = sum(count_operations(program, name).total() for name in stores if name not in {"outputs", "project"})
    registers = 2 if operations <= _MAX_TWO_REGISTER_OPERATIONS else 1
    text = render_c_template("ensemble.c.jinja", **printed.facts, sizes=sizes, registers=registers)
    return _library_sources(program, text, (*_RUNTIME_FILES, *_INTEGRATOR_FILES))


def read_repeated_fmu_run_sources() -> dict[str, bytes]:
    """Return the code of a library that runs an FMU of FMI 2 repeatedly, ``mb2fmu_unit_runs``: file name → content."""
    headers = ("fmi2FunctionTypes.h", "fmi2TypesPlatform.h")
    return {
        **{name: read_packaged_file("mb2fmu.fmu.emit_c", f"fmi_headers/{name}") for name in headers},
        **{
            name: read_packaged_file("mb2fmu.fmu.emit_c", f"runtime/{name}")
            for name in ("batch_course.h", "batch_unit.c")
        },
    }


def _results_in_order(program: ScalarProgram, entry: str) -> list[tuple[int, int]]:
    """Return place in ``y`` and node of each result."""
    return list(enumerate(program.entries[entry].results))


def _jacobian_entries(program: ScalarProgram, jacobian: JacobianSparsity, n: int) -> list[tuple[int, int]]:
    """Return the non-zero entries of ∂x'/∂x row by row, by the n first states, then ∂x'/∂t."""
    behind = n * len(program.layout.states)
    by_state, by_time = (program.entries[name].results for name in ("jacobian", "jacobian_time"))
    places = [n * row + column for row, column in zip(*jacobian[:2], strict=True)]
    return [
        *zip(places, by_state, strict=True),
        *((behind + row, node) for row, node in zip(jacobian[2], by_time, strict=True)),
    ]


@dataclass(frozen=True, slots=True)
class _PrintedEntryPoints:
    """Entry points as C.

    Attributes:
        facts: What the head of the templates needs.
        prepared: Values that depend on parameters only.
        work: Vectors that functions work in.
    """

    facts: dict[str, object]
    prepared: int
    work: int


def _print_entries(
    program: ScalarProgram, stored: StoredResults, arrays: Sequence[str], leaves: dict[Op, str]
) -> _PrintedEntryPoints:
    """Print ``batch_prepare`` and the functions ``batch_…``, which share its results."""
    results = [node for stores in stored.values() for _, node in stores]
    graph = StatementScheduleGraph(program)
    hoisted = graph.parameter_only_mask & ~graph.is_leaf
    names = CNameRegistry(
        prepared=locate_hoisted_nodes_in_work_array(graph, results, hoisted),
        pivots=find_domain_restricted_nodes(program, "pivots"),
        divisors=find_domain_restricted_nodes(program, "divisors"),
        domains=find_domain_restricted_nodes(program, "domains"),
    )
    bodies, inner = print_newton_bodies(program, names, batch=True)
    prepare = PrintedCFunctionSignature(
        "batch_prepare",
        ("const mb2fmu_reals p[]", "mb2fmu_reals w[]", *_WORK_PARAMETERS),
        {Op.PARAMETER: "p"},
        batch=True,
    )
    places = [(f"w[{place}]", node) for node, place in names.prepared.items()]
    functions = [print_function_with_loops(graph, prepare, places, names)]
    for name, places_of_results in stored.items():
        signature = PrintedCFunctionSignature(f"batch_{name}", ("mb2fmu_reals t", *arrays), leaves, batch=True)
        stores = [(f"y[{i}]", node) for i, node in places_of_results]
        functions.append(print_function_with_loops(graph, signature, stores, names, given=hoisted))
    facts: dict[str, object] = {
        "functions": (*bodies, *functions),
        "files": list_included_c_files(program),
        "lanes": form_vector_lane_macro_calls(program),
        "tables": print_lookup_tables(program, names, inner),
    }
    return _PrintedEntryPoints(facts, len(places), max(function.work for function in functions))


def _library_sources(program: ScalarProgram, text: bytes, names: Sequence[str]) -> InMemoryFileTree:
    """Return the sources of a library."""
    runtime = {name: read_packaged_file("mb2fmu.fmu.emit_c", f"runtime/{name}") for name in names}
    return InMemoryFileTree({**runtime, **read_operation_c_files(program), "unit.c": text}).move_under("sources")
