"""``find_needed_nodes``: find the nodes and blocks that have to be evaluated for some results."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from mb2fmu.compiler.program.program import Op, Program


def find_needed_nodes(program: Program, results: Iterable[int]) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
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
    first, second, others = program.pairs(stop)
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
