"""C code for operations beside the runtime: files of their own, and functions over lanes."""

from __future__ import annotations

import numpy as np

from mb2fmu.compiler.program.scalar_program import ScalarProgram
from mb2fmu.model.scalar_operation_table import OPERATIONS, Op, ScalarOperation


def _list_used_operations(program: ScalarProgram) -> list[ScalarOperation]:
    """Return the rows of the operations in a program and in the bodies of its Newton blocks, by number."""
    numbers = np.unique(np.concatenate([each.op for each in (program, *program.bodies)]))
    return [OPERATIONS[Op(int(number))] for number in numbers if Op(int(number)) in OPERATIONS]


def list_included_c_files(program: ScalarProgram) -> tuple[str, ...]:
    """Return the names of the files of ``operations/`` that the program's code includes."""
    return tuple(sorted({row.c_file for row in _list_used_operations(program) if row.c_file}))


def form_vector_lane_macro_calls(program: ScalarProgram) -> list[str]:
    """Return the macro calls that define ``mb2fmu_each_…`` (``runtime/batch.h``), computed lane by lane."""
    lanes = [
        row
        for row in _list_used_operations(program)
        if not (row.of_lanes or row.infix or row.op in {Op.NEG, Op.FROZEN})
    ]
    values = ("x.lane[i]", "y.lane[i]")
    return [f"MB2FMU_EACH_{row.arity}({row.op.name.lower()}, {row.c.format(*values)})" for row in lanes]
