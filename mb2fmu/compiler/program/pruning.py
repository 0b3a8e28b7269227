"""``prune_program``: remove nodes, blocks, constants and tables that no entry point needs."""

from __future__ import annotations

import dataclasses

import numpy as np
import numpy.typing as npt

from mb2fmu.compiler.program.program import BINARY_OPERATIONS, TERNARY_OPERATIONS, UNARY_OPERATIONS, Op, Program
from mb2fmu.compiler.program.reachable_nodes import find_needed_nodes

_NODE_OPERANDS = {
    "a": UNARY_OPERATIONS | BINARY_OPERATIONS | TERNARY_OPERATIONS,
    "b": BINARY_OPERATIONS | TERNARY_OPERATIONS,
    "c": TERNARY_OPERATIONS | {Op.TABLE},
}


def prune_program(program: Program) -> Program:
    """Return the program with only what its entry points need, in the same order."""
    results = [node for entry in program.entries.values() for node in entry.results]
    nodes, blocks = find_needed_nodes(program, results)
    new_node = _new_indices(nodes)
    new_block = _new_indices(blocks)
    op = program.op[nodes]
    operands = {name: getattr(program, name)[nodes] for name in "abc"}
    for name, ops in _NODE_OPERANDS.items():
        mask = np.isin(op, [int(o) for o in ops])
        operands[name][mask] = new_node[operands[name][mask]]
    is_block = op == Op.BLOCK
    operands["a"][is_block] = new_block[operands["a"][is_block]]
    constants, operands["a"] = _select_used(len(program.constants), operands["a"], op == Op.CONSTANT)
    tables, operands["a"] = _select_used(len(program.tables), operands["a"], op == Op.TABLE)
    return Program(
        layout=program.layout,
        op=op,
        a=operands["a"],
        b=operands["b"],
        c=operands["c"],
        constants=program.constants[constants],
        blocks=tuple(
            dataclasses.replace(
                block,
                operands=tuple(int(new_node[node]) for node in block.operands),
                factor=int(new_block[block.factor]) if block.factor >= 0 else -1,
            )
            for block, kept in zip(program.blocks, blocks, strict=True)
            if kept
        ),
        tables=tuple(program.tables[i] for i in tables),
        bodies=program.bodies,
        systems=tuple(system.renumber_nodes(new_node) for system in program.systems if nodes[list(system.nodes)].all()),
        entries={
            name: dataclasses.replace(entry, results=tuple(int(new_node[node]) for node in entry.results))
            for name, entry in program.entries.items()
        },
    )


def _new_indices(mask: npt.NDArray[np.bool_]) -> npt.NDArray[np.int32]:
    """Return the new number of each kept element; numbers of dropped ones are meaningless."""
    return (np.cumsum(mask) - 1).astype(np.int32)


def _select_used(
    size: int, index: npt.NDArray[np.int32], mask: npt.NDArray[np.bool_]
) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.int32]]:
    """Return which of ``size`` things are still read, and the indices by which they are read from now on."""
    used = np.zeros(size, dtype=bool)
    used[index[mask]] = True
    index = index.copy()
    index[mask] = _new_indices(used)[index[mask]]
    return np.flatnonzero(used), index
