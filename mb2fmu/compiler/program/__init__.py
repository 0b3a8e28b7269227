"""Program: one scalar graph with named entry points, and its analyses.

Input: operations, one by one, into a ``ProgramBuilder``. Output: ``ScalarProgram``, frozen, and answers about it: what
a result needs (``needed``), depends on (``find_result_dependencies``) and costs (``cost``), the same graph without
unused nodes (``pruning``), a copy to add to (``program_copy``), a record that JSON can hold
(``program_serialization``).

Promises: equal subexpressions are one node; constants are folded with correct rounding; a program is never changed.

Must not: know SymPy, mechanics, FMI, or any printed language.
"""

from mb2fmu.compiler.program.program_result_dependencies import (
    DependencyKind,
    ResultDependency,
    count_operations,
    find_result_dependencies,
)
from mb2fmu.compiler.program.program_serialization import convert_program_to_record, restore_program_from_record

__all__ = [
    "DependencyKind",
    "ResultDependency",
    "convert_program_to_record",
    "count_operations",
    "find_result_dependencies",
    "restore_program_from_record",
]
