"""Closed forms of loops that the model gives itself, for kinds of loops that are not recognised."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import sympy as sm

from mb2fmu.model.source_location import find_user_source_line


@dataclass(frozen=True, slots=True)
class DeclaredLoopClosedForm:
    """A loop's closed form as the user wrote it; see :meth:`LoopClosedFormDeclarations.loop`."""

    rows: tuple[sm.Expr, ...]
    branches: tuple[Mapping[sm.Expr, sm.Expr], ...]
    positive: tuple[sm.Expr, ...] = ()
    relation: tuple[sm.Expr, ...] = ()
    name: str = ""
    where: str = ""


class LoopClosedFormDeclarations:
    """Part of ``Model``: closed forms of loops.

    Attributes:
        loops: In order of declaration.
    """

    def __init__(self) -> None:
        self.loops: list[DeclaredLoopClosedForm] = []
        super().__init__()

    def loop(
        self,
        rows: Sequence[sm.Expr],
        *branches: Mapping[sm.Expr, sm.Expr],
        positive: Sequence[sm.Expr] = (),
        relation: Sequence[sm.Expr] = (),
        name: str = "loop",
    ) -> None:
        """Declare the dependent coordinates of a loop in closed form, for ``--constraints explicit``.

        Example:
            A ladder of length l against a wall, x and y of its ends, slides down; y follows from x.

            >>> model.loop([x**2 + y**2 - l**2], {y: sm.sqrt(l**2 - x**2)}, {y: -sm.sqrt(l**2 - x**2)},
            ...            positive=[l**2 - x**2], name="ladder")  # doctest: +SKIP

        Args:
            rows: Holonomic constraints, the expressions that were given to the mechanics.
            branches: For each way in which the loop can be assembled its dependent coordinates, as many as rows, in
                terms of coordinates that are known by then, parameters and time. The one that the start values are on
                is taken. Angles may be whole turns off.
            positive: What must be positive for the loop to close; where it is not, the FMU reports it.
            relation: Rows ψ(q, t) whose rates give those of the dependent coordinates, in place of the rates of
                ``rows``: needed only where the latter lose rank on the way.
            name: For messages.
        """
        self.loops.append(
            DeclaredLoopClosedForm(
                tuple(map(sm.sympify, rows)),
                tuple({key: sm.sympify(value) for key, value in branch.items()} for branch in branches),
                tuple(map(sm.sympify, positive)),
                tuple(map(sm.sympify, relation)),
                name,
                find_user_source_line(),
            )
        )
