"""Entry points of native FMUs in addition to those of :func:`mb2fmu.compiler.lowering.equation_lowering`."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mb2fmu.compiler.derivatives.forward_derivatives import (
    add_jacobian_entry_point,
    add_tangent_entry_point,
    list_variable_group_members,
)
from mb2fmu.compiler.derivatives.newton_solution_derivatives import make_newton_solutions_differentiable
from mb2fmu.compiler.derivatives.reverse_derivatives import add_adjoint_entry
from mb2fmu.compiler.program.program_builder import ProgramBuilder
from mb2fmu.compiler.program.program_copy import CopiedProgramNodes
from mb2fmu.compiler.program.program_pruning import find_needed_nodes, prune_program
from mb2fmu.compiler.program.program_result_dependencies import VariableGroup
from mb2fmu.compiler.program.scalar_program import Op, ProgramEntryPoint, ScalarProgram

DIFFERENTIATED_ENTRIES = ("rhs", "position", "velocity", "acceleration", "dependent_speeds", "accelerations", "prepare")
"""Entry points whose results are differentiated, in this order."""

DIFFERENTIATION_GROUPS: tuple[VariableGroup, ...] = ("time", "states", "inputs", "parameters")
"""Variables that they are differentiated by, in this order."""


MAX_JACOBIAN_OPERATIONS = 20_000
"""Operations above which a Jacobian is not written out: compilers would take minutes, and caches would not hold it."""


@dataclass(frozen=True, slots=True)
class ProgramWithDerivatives:
    """A program with derivatives.

    Attributes:
        program: With the entry points ``tangent`` (seeds: one per variable of :data:`DIFFERENTIATION_GROUPS`; results:
            one per result of :data:`DIFFERENTIATED_ENTRIES`), ``adjoint`` if it was requested (seeds: weights of the
            results;
            results: one per variable), the same of ``initialize`` where it is there (``initialize_tangent``,
                ``initialize_adjoint``),
            ``jacobian`` (the entries of ∂x'/∂x that are not zero, row by row) and ``jacobian_time`` (those of ∂x'/∂t).
            These two are empty where the Jacobian is too large to be written out.
        rows: Of each entry of the Jacobian that is not zero, row by row, shape (n_nonzero,).
        columns: Of each of these entries, shape (n_nonzero,).
        time_derivative_rows: Of each entry of ∂x'/∂t that is not zero.
        column_colours: Of each column, shape (n_states,): columns of one colour have no row in common, so that one
            tangent gives them all. None where the Jacobian is written out.
    """

    program: ScalarProgram
    rows: npt.NDArray[np.intp]
    columns: npt.NDArray[np.intp]
    time_derivative_rows: npt.NDArray[np.intp]
    column_colours: npt.NDArray[np.intp] | None = None


def add_fmu_derivatives(program: ScalarProgram, *, adjoint: bool = True) -> ProgramWithDerivatives:
    """Add the derivatives that a native FMU offers.

    Args:
        program: As lowered.
        adjoint: Whether adjoint derivatives are among them; they are half of the work, and FMI 2.0 has none.
    """
    entries = dict(program.entries)
    labels = tuple(f"{name} {label}" for name in DIFFERENTIATED_ENTRIES for label in entries[name].labels)
    results = tuple(node for name in DIFFERENTIATED_ENTRIES for node in entries[name].results)
    entries["results"] = ProgramEntryPoint("results", labels, results)
    whole, source = make_newton_solutions_differentiable(dataclasses.replace(program, entries=entries), "results")
    whole, motion = make_newton_solutions_differentiable(whole, "rhs")
    start_source = "rhs"
    if "initialize" in entries:
        whole, start_source = make_newton_solutions_differentiable(whole, "initialize")
    variables = list_variable_group_members(program, DIFFERENTIATION_GROUPS)
    weights = range(len(variables), len(results) if adjoint else 0)
    seeds = (*(f"d {name}" for name, _ in variables), *(f"weight {i}" for i in weights))
    copy = CopiedProgramNodes(whole, ProgramBuilder(dataclasses.replace(program.layout, seeds=seeds)))
    add_tangent_entry_point(copy, source, variables, 0, "tangent")
    if adjoint:
        add_adjoint_entry(copy, source, variables, "adjoint")
    if "initialize" in entries:
        add_tangent_entry_point(copy, start_source, variables, 0, "initialize_tangent")
    if adjoint and "initialize" in entries:
        add_adjoint_entry(copy, start_source, variables, "initialize_adjoint")
    for name in {source, motion, start_source} - {"results", "rhs", "initialize"}:
        copy.builder.forget(name)
    reads = _x_dot_dependencies(program)
    if sum(each.bit_count() for each in reads) > MAX_JACOBIAN_OPERATIONS:
        return _add_coloured_jacobian(copy, [reads[node] for node in program.entries["rhs"].results])
    rows, columns = add_jacobian_entry_point(
        copy, motion, list_variable_group_members(program, ("states", "time")), "jacobian"
    )
    return _separate_time_column(copy.builder.build(), rows, columns)


def _x_dot_dependencies(program: ScalarProgram) -> list[int]:
    """Return the states, and time, that every node of x' depends on: sets as bits, time first."""
    wanted, _ = find_needed_nodes(program, program.entries["rhs"].results)
    reads = [0] * (len(program) + 1)  # the last is the operand that a node does not have
    for node in np.flatnonzero(program.op == Op.TIME).tolist():
        reads[node] = 1
    for node in np.flatnonzero(program.op == Op.STATE).tolist():
        reads[node] = 2 << int(program.a[node])
    first, second, others = program.operand_pairs()
    for node in np.flatnonzero(wanted).tolist():
        reads[node] |= reads[first[node]] | reads[second[node]]
        for operand in others.get(node, ()):
            reads[node] |= reads[operand]
    return reads[:-1]


def _add_coloured_jacobian(copy: CopiedProgramNodes, reads: Sequence[int]) -> ProgramWithDerivatives:
    """Return the Jacobian by one tangent per colour."""
    for name in ("jacobian", "jacobian_time"):
        copy.builder.entry(name, (), ())
    n = len(copy.program.layout.states)
    size = n // 8 + 1  # of bytes, for time too
    rows_of_bytes = np.frombuffer(b"".join(each.to_bytes(size, "little") for each in reads), dtype=np.uint8)
    bits = np.unpackbits(rows_of_bytes.reshape(len(reads), size), axis=1, count=n + 1, bitorder="little")
    holders = bits[:, 1:].T.astype(bool)
    columns, rows = np.nonzero(holders)
    order = np.lexsort((columns, rows))
    return ProgramWithDerivatives(
        program=_remove_results_entry(copy.builder.build()),
        rows=rows[order],
        columns=columns[order],
        time_derivative_rows=np.flatnonzero([each & 1 for each in reads]),
        column_colours=_colour_columns(holders),
    )


def _colour_columns(holders: npt.NDArray[np.bool_]) -> npt.NDArray[np.intp]:
    """Return a colour per column; columns of one colour share no row (greedy colouring).

    Curtis, Powell and Reid: On the estimation of sparse Jacobian matrices, J. Inst. Math. Appl. 13 (1974) 117.
    """
    taken: list[int] = []  # rows, as bits
    colours = []
    for column in (int.from_bytes(row.tobytes(), "little") for row in np.packbits(holders, axis=1, bitorder="little")):
        colour = next((i for i, rows in enumerate(taken) if not rows & column), len(taken))
        if colour == len(taken):
            taken.append(0)
        taken[colour] |= column
        colours.append(colour)
    return np.array(colours, dtype=np.intp)


def _remove_results_entry(program: ScalarProgram) -> ScalarProgram:
    """Return the program without the entry point `results`, and without the nodes that only it needs."""
    entries = {name: entry for name, entry in program.entries.items() if name != "results"}
    return prune_program(dataclasses.replace(program, entries=entries))


def _separate_time_column(
    program: ScalarProgram, rows: npt.NDArray[np.intp], columns: npt.NDArray[np.intp]
) -> ProgramWithDerivatives:
    """Return the Jacobian with its last column, that of time, separated."""
    entries = dict(program.entries)
    everything = entries.pop("jacobian")
    by_state = columns < len(program.layout.states)
    for part, mask in (("jacobian", by_state), ("jacobian_time", ~by_state)):
        picked = np.flatnonzero(mask)
        labels = tuple(everything.labels[i] for i in picked)
        entries[part] = ProgramEntryPoint(part, labels, tuple(everything.results[i] for i in picked))
    finished = _remove_results_entry(dataclasses.replace(program, entries=entries))
    return ProgramWithDerivatives(finished, rows[by_state], columns[by_state], rows[~by_state])
