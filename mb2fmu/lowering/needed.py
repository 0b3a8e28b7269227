"""``needed``: which nodes and blocks have to be evaluated for some results."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from mb2fmu.lowering.program import Op, Program


def needed(program: Program, results: Iterable[int]) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
    """Masks over the nodes and over the blocks of a program.

    Args:
        program: Any.
        results: Nodes whose values are wanted.
    """
    nodes = np.zeros(len(program), dtype=bool)
    blocks = np.zeros(len(program.blocks), dtype=bool)
    stack = list(results)
    while stack:
        node = stack.pop()
        if nodes[node]:
            continue
        nodes[node] = True
        if program.op[node] != Op.BLOCK:
            stack.extend(program.operands(node))
        elif not blocks[program.a[node]]:
            index = int(program.a[node])
            blocks[index] = True
            blocks[program.blocks[index].factor] = True
            stack.extend(program.block_operands(index))
    return nodes, blocks
