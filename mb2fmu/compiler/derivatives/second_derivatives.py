"""Second derivatives: the gradient of a weighted sum of results, differentiated once more.

Reverse, then forward: with g = ∂(wᵀ f)/∂v the rows of ∂g/∂v are the Hessian of wᵀ f, and ∂g/∂w is (∂f/∂v)ᵀ. The Hessian
is symmetric, so one of its triangles is computed and read twice. (Griewank and Walther, Evaluating Derivatives, 2008,
ch. 5.)
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
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
from mb2fmu.compiler.program.scalar_program import ProgramEntryPoint, ScalarProgram
from mb2fmu.errors import EmitError, Fault

IndexArray = npt.NDArray[np.intp]

_VALIDITY_ENTRIES = ("pivots", "divisors", "domains")
"""Entry points that say where there is no result; who prints the others reads them."""


@dataclass(frozen=True, slots=True)
class SparsityPattern:
    """Which entries of a matrix are there, row by row.

    Attributes:
        shape: Of the matrix.
        rows: Of each entry, shape (n_nonzero,).
        columns: Of each entry.
    """

    shape: tuple[int, int]
    rows: IndexArray
    columns: IndexArray


@dataclass(frozen=True, slots=True)
class TwiceDifferentiatedEntryPoint:
    """An entry point with first and second derivatives, by v: variables of some groups, one group after the other.

    Attributes:
        program: With the entry points ``value``; ``tangent``, the derivative in the direction of the seeds;
            ``jacobian``; ``adjoint``, the gradient g of the sum of the results weighted by the seeds; ``hessian``, the
            derivatives of g by v and then by the weights; ``adjoint_tangent``, the derivative of g in a direction,
            whose seeds (of v, then of the weights) follow after the weights.
        jacobian: Results by v.
        hessian: v by (v, weights).
        variables: Number of variables in each group.
    """

    program: ScalarProgram
    jacobian: SparsityPattern
    hessian: SparsityPattern
    variables: Mapping[VariableGroup, int]


def form_second_derivatives(
    program: ScalarProgram, entry: str, with_respect_to: Sequence[VariableGroup]
) -> TwiceDifferentiatedEntryPoint:
    """Return first and second derivatives of an entry point.

    Args:
        program: Without seeds.
        entry: Name of the entry point.
        with_respect_to: Groups of variables.

    Raises:
        EmitError: If Newton's method finds what it reads among equations of which some are redundant.
    """
    _check_no_least_norm(program, entry)
    entries = {name: program.entries[name] for name in _VALIDITY_ENTRIES if name in program.entries}
    entries["value"] = dataclasses.replace(program.entries[entry], name="value")
    alone = prune_program(dataclasses.replace(program, entries=entries))
    whole, source = make_newton_solutions_differentiable(alone, "value", order=2)
    variables = list_variable_group_members(alone, with_respect_to)
    results = len(alone.entries["value"].results)
    n = len(variables)
    # The weights come first, as an adjoint has them; a tangent of the results reads the seeds of an adjoint's tangent.
    names = [f"weight {i}" for i in range(results)]
    seeds = (*names, *(f"d {name}" for name, _ in variables), *(f"d {name}" for name in names))
    copy = CopiedProgramNodes(whole, ProgramBuilder(dataclasses.replace(program.layout, seeds=seeds)))
    add_tangent_entry_point(copy, source, variables, results, "tangent")
    jacobian = add_jacobian_entry_point(copy, source, variables, "jacobian")
    add_adjoint_entry(copy, source, variables, "adjoint")
    adjoint = copy.builder.build()
    weights = list_variable_group_members(adjoint, ("seeds",))[:results]
    again = CopiedProgramNodes(adjoint, ProgramBuilder(adjoint.layout))
    second = add_jacobian_entry_point(again, "adjoint", [*variables, *weights], "hessian")
    add_tangent_entry_point(again, "adjoint", [*variables, *weights], results, "adjoint_tangent")
    folded, pattern = _mirror_hessian_entries(again.builder.build(), *second, n)
    if source != "value":
        folded = _remove_entry(folded, source)
    sizes = {group: len(list_variable_group_members(alone, (group,))) for group in with_respect_to}
    return TwiceDifferentiatedEntryPoint(
        prune_program(folded),
        SparsityPattern((results, n), *jacobian),
        SparsityPattern((n, n + results), *pattern),
        sizes,
    )


def _check_no_least_norm(program: ScalarProgram, entry: str) -> None:
    """Refuse least-norm solutions: their second derivatives are not those of a regular system."""
    _, blocks = find_needed_nodes(program, program.entries[entry].results)
    used = [block for i, block in enumerate(program.blocks) if blocks[i] and block.kind == "newton"]
    turning = [block.name for block in used if "turned" in program.bodies[block.body].entries]
    if turning:
        remedy = "leave out the constraints that follow from others, or take --constraints explicit or multipliers"
        faults = [Fault("some of its equations are redundant", name, remedy) for name in turning]
        raise EmitError("there are no second derivatives:", faults)


def _mirror_hessian_entries(
    program: ScalarProgram, rows: IndexArray, columns: IndexArray, n: int
) -> tuple[ScalarProgram, tuple[IndexArray, IndexArray]]:
    """Return the Hessian's upper entries read from its lower triangle; both have the same zeros."""
    entry = program.entries["hessian"]
    found = dict(zip(zip(rows.tolist(), columns.tolist(), strict=True), range(len(rows)), strict=True))
    kept = [
        (i, j, place if i >= j or j >= n else found[j, i])
        for (i, j), place in found.items()
        if j >= n or (j, i) in found
    ]
    results = tuple(entry.results[place] for _, _, place in kept)
    labels = tuple(entry.labels[place] for _, _, place in kept)
    entries = {**program.entries, "hessian": ProgramEntryPoint("hessian", labels, results)}
    places = np.array([i for i, _, _ in kept], dtype=np.intp), np.array([j for _, j, _ in kept], dtype=np.intp)
    return dataclasses.replace(program, entries=entries), places


def _remove_entry(program: ScalarProgram, name: str) -> ScalarProgram:
    """Remove an entry point."""
    return dataclasses.replace(program, entries={k: v for k, v in program.entries.items() if k != name})
