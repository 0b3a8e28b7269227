"""``emit_batch``: an entry point of a Program for many instances at once, as a library of its own.

Every value is a vector with one lane per instance (``runtime/batch.h``), so all the ways in which functions are printed
(parts, loops) serve here too, and each lane has the bits that the unit's code has for that instance. Linear solves
choose their pivots, and Newton's method its number of iterations, in each lane (``runtime/batch_algebra.h``).
"""

from __future__ import annotations

from mb2fmu.emit.c.loops import print_rolled
from mb2fmu.emit.c.model import hoisted_places, print_bodies, printed_tables, required_nodes
from mb2fmu.emit.c.operation_code import lane_functions, operation_files
from mb2fmu.emit.c.schedule import Graph
from mb2fmu.emit.c.signatures import Names, Signature
from mb2fmu.emit.c.sources import packaged, packaged_operations, render
from mb2fmu.filetree import FileTree
from mb2fmu.program.program import Op, Program

_RUNTIME = (
    *("elementary.h", "elementary.c", "elementary_coefficients.h", "elementary_circular.c"),
    *("elementary_exponential.c", "linear_algebra.h", "lookup.h", "lookup.c", "batch.h", "batch_algebra.h"),
    "portability.h",
)

_LEAVES = {Op.STATE: "x", Op.INPUT: "r", Op.PARAMETER: "p", Op.MEMORY: "m", Op.SEED: "s"}

PROBE = "mb2fmu_probe"
"""A function of the library that :func:`emit_probe` prints: 2 where the processor has AVX-512, 1 where AVX2."""


def emit_probe() -> FileTree:
    """Prints the code of a library that says what the processor can do."""
    runtime = {name: packaged("mb2fmu.emit.c", f"runtime/{name}") for name in ("processor.h", "portability.h")}
    return FileTree({**runtime, "unit.c": render("probe.c.jinja", name=PROBE)}).under("sources")


def emit_batch(program: Program, entry: str) -> FileTree:
    """Prints the code of a library with one function, ``mb2fmu_batch`` (``templates/batch.c.jinja``).

    Args:
        program: Any.
        entry: Name of an entry point.
    """
    results = program.entries[entry].results
    graph = Graph(program)
    hoisted = graph.of_parameters & ~graph.is_leaf
    names = Names(
        prepared=hoisted_places(graph, results, hoisted),
        pivots=required_nodes(program, "pivots"),
        divisors=required_nodes(program, "divisors"),
        domains=required_nodes(program, "domains"),
    )
    bodies, inner = print_bodies(program, names, batch=True)
    own = ("mb2fmu_words lost[]", "mb2fmu_reals work[]")
    prepare = Signature(
        "batch_prepare",
        ("const mb2fmu_reals p[]", "mb2fmu_reals w[]", *own),
        {Op.PARAMETER: "p"},
        batch=True,
    )
    arrays = (*(f"const mb2fmu_reals {name}[]" for name in (*_LEAVES.values(), "w")), *own, "mb2fmu_reals y[]")
    evaluate = Signature("batch_evaluate", ("mb2fmu_reals t", *arrays), {Op.TIME: "t", **_LEAVES}, batch=True)
    places = [(f"w[{place}]", node) for node, place in names.prepared.items()]
    stores = [(f"y[{i}]", node) for i, node in enumerate(results)]
    functions = (
        print_rolled(graph, prepare, places, names),
        print_rolled(graph, evaluate, stores, names, given=hoisted),
    )
    layout = program.layout
    sizes = {
        "states": len(layout.states),
        "inputs": len(layout.inputs),
        "parameters": len(layout.parameters),
        "memory": len(layout.memory),
        "seeds": len(layout.seeds),
        "results": len(results),
        "prepared": len(places),
    }
    text = render(
        "batch.c.jinja",
        functions=(*bodies, *functions),
        files=operation_files(program),
        lanes=lane_functions(program),
        tables=printed_tables(program, names, inner),
        vectors=1 + sum(sizes.values()) + max(function.work for function in functions),
        **sizes,
    )
    runtime = {name: packaged("mb2fmu.emit.c", f"runtime/{name}") for name in _RUNTIME}
    return FileTree({**runtime, **packaged_operations(program), "unit.c": text}).under("sources")
