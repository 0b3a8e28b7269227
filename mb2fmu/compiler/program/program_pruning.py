"""``prune_program``: remove nodes, blocks, constants and tables that no entry point needs.

``find_needed_nodes``: find the nodes and blocks that have to be evaluated for some results.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from mb2fmu.compiler.program.scalar_program import (
    BINARY_OPERATIONS,
    TERNARY_OPERATIONS,
    UNARY_OPERATIONS,
    Op,
    ScalarProgram,
)

_NODE_OPERANDS = {
    "a": UNARY_OPERATIONS | BINARY_OPERATIONS | TERNARY_OPERATIONS,
    "b": BINARY_OPERATIONS | TERNARY_OPERATIONS,
    "c": TERNARY_OPERATIONS | {Op.TABLE},
}


def find_needed_nodes(
    program: ScalarProgram, results: Iterable[int]
) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
    """Return masks over the nodes and over the blocks of a program.

    Args:
        program: Any.
        results: Nodes whose values are wanted.
    """
    wanted = bytearray(len(program) + 1)  # the last is the operand that a node does not have
    stop = 0
    for result in results:
        wanted[result] = 1
        stop = max(stop, result + 1)
    first, second, others = program.operand_pairs(stop)
    for node in range(stop - 1, -1, -1):  # what uses a node comes after it
        if wanted[node]:
            wanted[first[node]] = wanted[second[node]] = 1
            if node in others:
                for operand in others[node]:
                    wanted[operand] = 1
    nodes = np.frombuffer(wanted, dtype=np.uint8)[:-1].astype(bool)
    blocks = np.zeros(len(program.blocks), dtype=bool)
    for index in np.unique(program.a[nodes & (program.op == Op.BLOCK)]):
        blocks[index] = True
        if program.blocks[index].factor >= 0:
            blocks[program.blocks[index].factor] = True
    return nodes, blocks


def prune_program(program: ScalarProgram) -> ScalarProgram:
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
    return ScalarProgram(
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
