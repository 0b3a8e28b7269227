"""Quantities computed from a motion: outputs, energies, motions of bodies, diagnostics of constraints."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import sympy as sm

from mb2fmu.model.quantity_declarations import OutputLevel


@dataclass(frozen=True, slots=True)
class BodyMotion:
    """Motion of one body, for balances, animation and reactions.

    Attributes:
        name: Of the body.
        position: Of the mass centre from the origin, in the inertial frame, m; None where it is not known.
        rotation: ``N_C_B``, shape (3, 3); None for particles.
        velocity: Of the mass centre, components in the inertial frame, m/s.
        angular_velocity: In the inertial frame's components, rad/s; None for particles.
    """

    name: str
    position: tuple[sm.Expr, sm.Expr, sm.Expr] | None
    rotation: sm.ImmutableMatrix | None
    velocity: tuple[sm.Expr, sm.Expr, sm.Expr]
    angular_velocity: tuple[sm.Expr, sm.Expr, sm.Expr] | None


@dataclass(frozen=True, slots=True)
class OutputExpression:
    """One scalar output.

    Attributes:
        name: FMU variable name.
        expression: May contain q, u, z, p, r, t, u' symbols, constraint forces and intermediates.
        level: What it needs: ``position`` (q, t only), ``velocity`` (u too), ``acceleration`` (u' or constraint
            forces: costs the linear solve).
        unit: Modelica style.
        display_unit: For people.
        nominal: Typical magnitude.
        description: One line.
        events: Whether switches in it are events; not those of orientations, which choose among formulas only.
        drives: Of an effort that pushes: what a positive one drives up, for the animation.
    """

    name: str
    expression: sm.Expr
    level: OutputLevel
    unit: str = "1"
    display_unit: str | None = None
    nominal: float | None = None
    description: str = ""
    events: bool = True
    drives: sm.Expr | None = None


@dataclass(frozen=True, slots=True)
class EnergyBalance:
    """Balances of the mechanism: T' = sum of the powers where no prescribed motion does work.

    Attributes:
        kinetic: T in J; None where there are no bodies (a Lagrangian alone).
        potential: V in J; None where it is not known.
        powers: (load name, power in W that it delivers to the mechanism), all loads, gravity included.
        balanced: False where a prescribed motion (explicit time in the kinematics, moving constraints) does work that
            is not among ``powers``; then ``reason`` says which.
        reason: Why it is not balanced.
    """

    kinetic: sm.Expr | None = None
    potential: sm.Expr | None = None
    powers: tuple[tuple[str, sm.Expr], ...] = ()
    balanced: bool = True
    reason: str = ""


@dataclass(frozen=True, slots=True)
class ConstraintDiagnosticSymbols:
    """Symbols of diagnostics that outputs may contain; only a program can compute them.

    Attributes:
        position_residual: Largest |phi| at the coordinates that are states, before they are projected.
        velocity_residual: Largest |A u + b| with the speeds that are states, A and b at the projected coordinates.
        rank: How many rows of A are independent, estimated.
        condition: The condition of A, estimated.
    """

    position_residual: sm.Symbol
    velocity_residual: sm.Symbol
    rank: sm.Symbol
    condition: sm.Symbol

    @property
    def all(self) -> frozenset[sm.Symbol]:
        """All symbols."""
        return frozenset({self.position_residual, self.velocity_residual, self.rank, self.condition})


DIAGNOSTIC_SYMBOLS = ConstraintDiagnosticSymbols(
    *sm.symbols("position_residual velocity_residual rank condition", cls=sm.Dummy)
)


def select_diagnostic_outputs(outputs: Sequence[OutputExpression]) -> tuple[tuple[str, sm.Symbol], ...]:
    """Return the names of outputs about an FMU's own constraints, each with its symbol of ``DIAGNOSTIC_SYMBOLS``."""
    return tuple((o.name, o.expression) for o in outputs if o.expression in DIAGNOSTIC_SYMBOLS.all)


@dataclass(frozen=True, kw_only=True, init=False, repr=False, eq=False)  # only a part of a record
class MotionObservables:
    """Quantities computed from the motion.

    Attributes:
        bodies: Per-body motion.
        energy: Energies and powers.
        outputs: Scalar outputs.
    """

    bodies: tuple[BodyMotion, ...] = ()
    energy: EnergyBalance = field(default_factory=EnergyBalance)
    outputs: tuple[OutputExpression, ...] = ()
