"""``emit_batch``: an entry point of a Program for many instances at once, as a library of its own.

Every value is a vector with one lane per instance (``runtime/batch.h``), so all the ways in which functions are printed
(parts, loops) serve here too, and each lane has the bits that the unit's code has for that instance.
"""

from __future__ import annotations

from mb2fmu.emit.c.loops import print_rolled
from mb2fmu.emit.c.model import hoisted_places, printed_tables, required_nodes
from mb2fmu.emit.c.records import Names, Signature
from mb2fmu.emit.c.schedule import Graph
from mb2fmu.emit.c.sources import packaged, render
from mb2fmu.errors import EmitError, Fault
from mb2fmu.filetree import FileTree
from mb2fmu.lowering.needed import needed
from mb2fmu.lowering.program import Op, Program
from mb2fmu.lowering.python_code import parameter_only

_RUNTIME = (
    *("elementary.h", "elementary.c", "elementary_coefficients.h", "elementary_circular.c"),
    *("elementary_exponential.c", "linear_algebra.h", "lookup.h", "lookup.c", "batch.h", "portability.h"),
)


PROBE = "mb2fmu_probe"
"""A function of the library that :func:`emit_probe` prints: 1 where the processor has AVX2."""


def emit_probe() -> FileTree:
    """Prints the code of a library that says what the processor can do."""
    runtime = {name: packaged("mb2fmu.emit.c", f"runtime/{name}") for name in ("processor.h", "portability.h")}
    return FileTree({**runtime, "unit.c": render("probe.c.jinja", name=PROBE)}).under("sources")


def emit_batch(program: Program, entry: str) -> FileTree:
    """Prints the code of a library with one function, ``mb2fmu_batch`` (``templates/batch.c.jinja``).

    Args:
        program: Any.
        entry: Name of an entry point that needs no memory, no seeds, and neither linear solves nor Newton's method as
            block statements: what is written out in nodes.

    Raises:
        EmitError: If the entry point needs what there are no lanes for.
    """
    results = program.entries[entry].results
    nodes, blocks = needed(program, results)
    found = [block.name for block, used in zip(program.blocks, blocks, strict=True) if used]
    faults = [Fault("is a block statement", name) for name in found]
    if any((program.op[nodes] == op).any() for op in (Op.SEED, Op.MEMORY)):
        faults.append(Fault("reads seeds or discrete memory", entry))
    if faults:
        raise EmitError(f"{entry} cannot be evaluated for many instances at once:", faults)
    graph = Graph(program)
    hoisted = parameter_only(program) & ~graph.is_leaf
    names = Names(
        prepared=hoisted_places(graph, results, hoisted),
        pivots=required_nodes(program, "pivots"),
        divisors=required_nodes(program, "divisors"),
    )
    prepare = Signature(
        "batch_prepare",
        ("const mb2fmu_reals p[]", "mb2fmu_reals w[]", "mb2fmu_reals work[]"),
        {Op.PARAMETER: "p"},
        batch=True,
    )
    arrays = (*(f"const mb2fmu_reals {name}[]" for name in "xrpw"), "mb2fmu_reals work[]", "mb2fmu_reals y[]")
    leaves = {Op.TIME: "t", Op.STATE: "x", Op.INPUT: "r", Op.PARAMETER: "p"}
    evaluate = Signature("batch_evaluate", ("mb2fmu_reals t", *arrays), leaves, batch=True)
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
        "results": len(results),
        "prepared": len(places),
    }
    memory = 1 + sum(sizes.values()) + max(function.work for function in functions)
    text = render("batch.c.jinja", functions=functions, tables=printed_tables(program, names), memory=memory, **sizes)
    runtime = {name: packaged("mb2fmu.emit.c", f"runtime/{name}") for name in _RUNTIME}
    return FileTree({**runtime, "unit.c": text}).under("sources")
