"""Loops whose closed form the model gives: take the branch of the start, and check the constraint rows."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import sympy as sm

from mb2fmu.errors import Fault, FormulationError
from mb2fmu.mechanics.equations.equations_of_motion import Assignment, ClosedForm
from mb2fmu.mechanics.formulations.loops.loop_kind import LoopStart
from mb2fmu.mechanics.mechanism.records.mechanism_records import Mechanism

GIVEN_FORM_HEADLINE = "a closed form that the model says cannot be used:"
_BRANCH_TOLERANCE = 1e-6  # between the start and a branch, relative
_ROW_TOLERANCE = 1e-8  # what a row may leave over, relative
_SAMPLE_DISTANCE = 0.05
_SAMPLE_COUNT = 6


@dataclass(frozen=True, slots=True)
class GivenClosedForm:
    """A loop of the model's own, in plain symbols.

    Attributes:
        name: As the model calls it.
        rows: Names of the holonomic constraints.
        phi: The constraints.
        unknowns: Coordinates that it gives.
        branches: Each unknown's value, per way of assembly.
        positive: What must be positive.
        relation: Rows whose rates stand in for those of ``phi``.
        where: In the model file.
    """

    name: str
    rows: tuple[str, ...]
    phi: tuple[sm.Expr, ...]
    unknowns: tuple[sm.Symbol, ...]
    branches: tuple[Mapping[sm.Symbol, sm.Expr], ...]
    positive: tuple[sm.Expr, ...]
    relation: tuple[sm.Expr, ...]
    where: str

    def closed_form(self, start: LoopStart, angles: frozenset[sm.Symbol]) -> ClosedForm:
        """Return the solution on the branch of the start.

        Args:
            start: Numbers of the start.
            angles: Coordinates that may be whole turns off.

        Raises:
            FormulationError: If the start is on none of the branches, or on several; if the branch does not solve
                the rows near the start.
        """
        on = [found for branch in self.branches if (found := _shift_full_turns(branch, start, angles)) is not None]
        if len(on) != 1:
            there = ", ".join(f"{q} = {start.value(q):.6g}" for q in self.unknowns)
            what = (
                f"{'none' if not on else 'more than one'} of the {len(self.branches)} branches of {self.name} is that"
            )
            remedy = "start where the branches differ" if on else "give the closed form of each way of assembly"
            raise FormulationError(GIVEN_FORM_HEADLINE, [Fault(f"{what} of the start, {there}", self.where, remedy)])
        self._check(on[0], start)
        assignments = tuple(Assignment(q, on[0][q]) for q in self.unknowns)
        return ClosedForm(self.name, self.rows, self.unknowns, assignments, self.positive, self.relation)

    def _check(self, branch: Mapping[sm.Symbol, sm.Expr], start: LoopStart) -> None:
        """Check that the rows vanish near the start, wherever the loop closes."""
        free = sorted(start.values, key=str)
        known = [s for s in free if s not in self.unknowns]
        values = [branch[q] for q in self.unknowns]
        solve = sm.lambdify(known, [*values, *self.positive], modules=["scipy", "numpy"])
        rows = sm.lambdify([*known, *self.unknowns], [*self.phi, *self.relation], modules=["scipy", "numpy"])
        generator = np.random.default_rng(11)
        for _ in range(_SAMPLE_COUNT):
            shift = {s: _SAMPLE_DISTANCE * generator.uniform(-1, 1) if s in start.moving else 0.0 for s in known}
            near = [start.values[s] + shift[s] for s in known]
            with np.errstate(all="ignore"):
                found = np.array(solve(*near), dtype=complex)
                left = np.array(rows(*near, *found[: len(values)].real), dtype=complex)
            closes = np.isfinite(found).all() and not found.imag.any() and (found[len(values) :].real > 0).all()
            if closes and not np.max(np.abs(left)) <= _ROW_TOLERANCE * (1 + np.max(np.abs(found))):
                what = (
                    f"the closed form of {self.name} does not solve its rows: {np.max(np.abs(left)):.3g} is left over"
                )
                raise FormulationError(
                    GIVEN_FORM_HEADLINE, [Fault(what, self.where, "correct it: near the start rows must vanish")]
                )


def _shift_full_turns(
    branch: Mapping[sm.Symbol, sm.Expr], start: LoopStart, angles: frozenset[sm.Symbol]
) -> dict[sm.Symbol, sm.Expr] | None:
    """Return the solution shifted by full turns to match the start; None if the start is on another branch."""
    found = {}
    for q, expression in branch.items():
        try:
            off = start.value(q) - start.value(expression)
        except TypeError:  # not real there
            return None
        turns = round(off / (2 * math.pi)) if q in angles and math.isfinite(off) else 0
        if not abs(off - 2 * math.pi * turns) <= _BRANCH_TOLERANCE * (1 + abs(start.value(q))):
            return None
        found[q] = expression + 2 * sm.pi * turns
    return found


def read_given_closed_forms(m: Mechanism, start: LoopStart) -> Iterator[GivenClosedForm]:
    """Yield the model's own solutions of loops, in plain symbols.

    Raises:
        FormulationError: If a row is no holonomic constraint, or something undeclared stands in a closed form.
    """
    phis = [phi for _, phi in m.holonomic]
    known = set(start.values)
    for loop in m.loops:
        if loop.unknown_row:
            what = f"{loop.unknown_row} is not among the mechanics' holonomic constraints"
            raise FormulationError(
                GIVEN_FORM_HEADLINE, [Fault(what, loop.where, "give the expression that the mechanics have")]
            )
        rest = (loop.positive, loop.relation)
        every = [*(value for branch in loop.branches for value in branch.values()), *rest[0], *rest[1]]
        unknown = set().union(*(e.free_symbols for e in every)) - known
        if unknown:
            what = f"{', '.join(sorted(map(str, unknown)))} in {loop.name} is no coordinate, parameter, or time"
            raise FormulationError(GIVEN_FORM_HEADLINE, [Fault(what, loop.where, "use those only")])
        yield GivenClosedForm(
            loop.name,
            tuple(m.holonomic[i][0] for i in loop.rows),
            tuple(phis[i] for i in loop.rows),
            tuple(loop.branches[0]),
            loop.branches,
            *rest,
            loop.where,
        )
