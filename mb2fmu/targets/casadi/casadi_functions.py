"""Functions that CasADi looks up for an external function: their inputs, outputs and sparsity.

An external function F has the inputs (t, x, r, p). CasADi finds its derivatives by their names (casadi.org, "External
functions"; the order of arguments is that of the code that CasADi generates itself):

    jac_F        (inputs, out_y)                                            →  ∂y/∂(input), one block per input
    fwd1_F       (inputs, out_y, fwd_(input)…)                              →  fwd_y
    adj1_F       (inputs, out_y, adj_y)                                     →  adj_(input)…
    jac_adj1_F   (inputs, out_y, adj_y, out_adj_(input)…)                   →  ∂adj/∂(what adj1_F takes), by blocks
    fwd1_adj1_F  (what jac_adj1_F takes, fwd of each of what adj1_F takes)  →  fwd_adj_(input)…

None reads ``out_…``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mb2fmu.compiler.derivatives.second_derivatives import Pattern, TwiceDifferentiable
from mb2fmu.compiler.program.result_dependencies import Group

GROUPS: tuple[Group, ...] = ("time", "states", "inputs", "parameters")
"""The inputs, in this order."""

_INPUTS = ("t", "x", "r", "p")

Run = tuple[str, int | None, int]
"""Name, first place (None: nowhere) and length of neighbouring rows, columns or results."""


@dataclass(frozen=True, slots=True)
class BlockOfResults:
    """One output of an external function: a sparse matrix, column by column.

    Attributes:
        name: Of the output.
        shape: Of the matrix.
        entries: (row, column, which result of the entry point) of each that is not zero, in CasADi's order.
        by_parameters: It is a derivative by parameters, which cost much and are often not asked for.
    """

    name: str
    shape: tuple[int, int]
    entries: tuple[tuple[int, int, int], ...]
    by_parameters: bool = False

    @property
    def sparsity(self) -> list[int]:
        """The pattern as CasADi wants it: rows, columns, where each column begins, row numbers."""
        rows, columns = self.shape
        counts = [0] * (columns + 1)
        for _, j, _ in self.entries:
            counts[j + 1] += 1
        for j in range(columns):
            counts[j + 1] += counts[j]
        return [rows, columns, *counts, *(i for i, _, _ in self.entries)]


@dataclass(frozen=True, slots=True)
class ExternalFunction:
    """A function that CasADi finds by its name.

    Attributes:
        prefix: What stands before the name of F.
        entry: Entry point of the program.
        inputs: Name and length of each.
        seeds: For each run of the entry point's seeds: which input it is read from, or None if nothing reads it; and
            its length.
        outputs: What it gives.
    """

    prefix: str
    entry: str
    inputs: tuple[tuple[str, int], ...]
    seeds: tuple[tuple[int | None, int], ...]
    outputs: tuple[BlockOfResults, ...]


def external_functions(twice: TwiceDifferentiable, results: int) -> tuple[ExternalFunction, ...]:
    """Return f and its derivatives.

    Args:
        twice: By :data:`GROUPS`.
        results: How many F has.
    """
    sizes = [twice.variables[group] for group in GROUPS]
    inputs = tuple(zip(_INPUTS, sizes, strict=True))
    given = (*inputs, ("out_y", results))
    weighted = (*given, ("adj_y", results))
    adjoint = (*weighted, *_named("out_adj_", inputs))
    n = sum(sizes)
    starts = [sum(sizes[:i]) for i in range(len(sizes))]
    of_inputs = list(zip(_INPUTS, starts, sizes, strict=True))
    of_weighted = [*of_inputs, ("out_y", None, results), ("adj_y", n, results)]
    value, gradient = [("y", 0, results)], [(f"adj_{name}", start, size) for name, start, size in of_inputs]
    # Where the runs of seeds are read from: weights, directions of the inputs, directions of the weights.
    weights, unread = (len(given), results), (None, results)
    along = [(len(given) + i, size) for i, size in enumerate(sizes)]
    again = [(len(adjoint) + i, size) for i, size in enumerate(sizes)]
    last = (len(adjoint) + len(given), results)
    return (
        ExternalFunction("", "value", inputs, (), _columns(value)),
        ExternalFunction("jac_", "jacobian", given, (), _blocks(twice.jacobian, value, of_inputs)),
        ExternalFunction(
            "fwd1_", "tangent", (*given, *_named("fwd_", inputs)), (unread, *along), _columns(value, "fwd_")
        ),
        ExternalFunction("adj1_", "adjoint", weighted, (weights,), _columns(gradient)),
        ExternalFunction("jac_adj1_", "hessian", adjoint, (weights,), _blocks(twice.hessian, gradient, of_weighted)),
        ExternalFunction(
            "fwd1_adj1_",
            "adjoint_tangent",
            (*adjoint, *_named("fwd_", weighted)),
            (weights, *again, last),
            _columns(gradient, "fwd_"),
        ),
    )


def _named(before: str, inputs: Sequence[tuple[str, int]]) -> tuple[tuple[str, int], ...]:
    """Put a prefix before the names."""
    return tuple((before + name, size) for name, size in inputs)


def _columns(runs: Sequence[Run], before: str = "") -> tuple[BlockOfResults, ...]:
    """Return results as full columns, one run after the other."""
    return tuple(
        BlockOfResults(
            name=before + name,
            shape=(size, 1),
            entries=tuple((i, 0, (start or 0) + i) for i in range(size)),
            by_parameters=name == "adj_p",
        )
        for name, start, size in runs
    )


def _blocks(pattern: Pattern, rows: Sequence[Run], columns: Sequence[Run]) -> tuple[BlockOfResults, ...]:
    """Cut a matrix into blocks, those of one run of rows in sequence; columns of rows in no run are zero."""
    places = list(zip(pattern.rows.tolist(), pattern.columns.tolist(), range(len(pattern.rows)), strict=True))
    blocks = []
    for down, top, height in rows:
        band = [(i - (top or 0), j, k) for i, j, k in places if 0 <= i - (top or 0) < height]
        for across, left, width in columns:
            inside = [] if left is None else [(i, j - left, k) for i, j, k in band if 0 <= j - left < width]
            blocks.append(
                BlockOfResults(
                    name=f"jac_{down}_{across}",
                    shape=(height, width),
                    entries=tuple(sorted(inside, key=lambda entry: (entry[1], entry[0]))),
                    by_parameters="p" in {down.removeprefix("adj_"), across},
                )
            )
    return tuple(blocks)
