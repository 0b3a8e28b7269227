"""Named quantities of the theory: partial velocities, generalized forces, energies and their terms.

Input of this stage: none (it is a type). Expressions are in plain symbols; what is long keeps a name of its own, which
``intermediates`` assign in order.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import sympy as sm

from mb2fmu.mechanics.equations import notebook_display_registry
from mb2fmu.mechanics.equations.equations_of_motion import LinearSystemAssignment, SymbolAssignment

QuantityLetter = Literal[
    "v", "omega", "F", "F*", "F~", "F~*", "T", "M", "g", "f", "Q", "Q*", "energy T", "energy V", "L", "p", "dL", "dT",
    "dp", "invariant",
]  # fmt: skip
"""What a quantity is.

    v, omega        partial velocity of a point, partial angular velocity of a frame, components in N
    F, F*           generalized active force, generalized inertia force (holonomic: of one speed among all)
    F~, F~*         the same of an independent speed, the dependent ones carried along (nonholonomic)
    T, M, g, f      of one body: rows of the transformation, mass matrix, convective acceleration, applied force
    Q, Q*           Tᵀ f, and Tᵀ (f - M g) or the force of a coordinate
    energy T, energy V, L
    p, dp           generalized momentum ∂T/∂q' (∂L/∂q' where L is what was given), its rate
    dT, dL          ∂T/∂q where forces stand beside it as Q, ∂L/∂q where L is what was given
    invariant       what keeps its value
"""


@dataclass(frozen=True, slots=True)
class TheoryQuantity:
    """One named quantity: its name, symbol and value.

    Attributes:
        letter: What it is.
        of: Point, frame, body or load that it belongs to; empty: all together.
        index: Speed or coordinate that it belongs to; None where it belongs to none.
        value: A scalar, or a matrix; components of vectors are those in the inertial frame.
    """

    letter: QuantityLetter
    of: str
    index: sm.Symbol | None
    value: sm.Expr | sm.ImmutableMatrix

    @property
    def entries(self) -> tuple[sm.Expr, ...]:
        """The value's scalars, matrices row by row."""
        return tuple(self.value) if isinstance(self.value, sm.MatrixBase) else (self.value,)


@dataclass(frozen=True, slots=True)
class TheoryQuantitySection:
    """Quantities of one kind under a title; ``note`` adds a remark, or says why there are none."""

    kind: str
    title: str
    quantities: tuple[TheoryQuantity, ...]
    note: str = ""


@dataclass(frozen=True, slots=True)
class TheoryQuantities:
    """All quantities of the theory that were requested, of one mechanism.

    Attributes:
        name: Of the model.
        sections: One per kind, in the order requested.
        intermediates: That stand in the quantities, in order of evaluation.
        rates: Symbols of derivatives → (what they are the derivative of, how often), for people.
    """

    name: str
    sections: tuple[TheoryQuantitySection, ...]
    intermediates: tuple[SymbolAssignment | LinearSystemAssignment, ...]
    rates: dict[sm.Symbol, tuple[sm.Symbol, int]]

    def __getitem__(self, kind: str) -> TheoryQuantitySection:
        """Return the section of one kind."""
        return next(section for section in self.sections if section.kind == kind)

    def _repr_html_(self) -> str:
        """Return a section for each kind, to be unfolded, for notebooks."""
        return notebook_display_registry.render_record_as_html(self)

    def _repr_latex_(self) -> str:
        """Return the formulas as LaTeX, for notebooks that show nothing else."""
        return notebook_display_registry.render_record_as_latex(self)
