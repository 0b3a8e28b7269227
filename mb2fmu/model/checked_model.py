"""CheckedModel: a checked model, the frozen record that the pipeline reads."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import sympy as sm
from sympy.physics.mechanics import Point, ReferenceFrame

from mb2fmu.errors import ModelError
from mb2fmu.model.declarations.appearance_declarations import AppearanceItem
from mb2fmu.model.declarations.declared_content_and_experiment import DeclaredModelContent
from mb2fmu.model.declarations.declared_events import DeclaredEvent
from mb2fmu.model.declarations.declared_loop_closed_forms import DeclaredLoopClosedForm
from mb2fmu.model.declarations.declared_outputs import OutputRequest
from mb2fmu.model.quantity_declarations import (
    ConstraintForce,
    DeclaredConstraint,
    Output,
)
from mb2fmu.model.sources.mechanics_source import Mechanics

if TYPE_CHECKING:
    from mb2fmu.model.declarations.contact_and_latch_declaration_records import (
        DeclaredContact,
        DeclaredMechanicalLatch,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedModel(DeclaredModelContent):
    """A checked model: every symbol declared once, every name legal and unique, every unit known.

    Attributes:
        mechanics: As given, with the loads that were added.
        constraint_forces: In order of declaration.
        constraints: What is said of constraints, in order of declaration.
        outputs: Expressions and requests, in order of declaration.
        potential_energy: Given by the user; None: found from gravity, springs and the bodies' potential energies.
        appearance_items: Shapes, traced points and arrows, in order of declaration.
        ground: Inertial frame and origin for pictures, where the mechanics (a Lagrangian alone) have none.
        loops: Closed forms of loops that the model says itself.
        events: That the model says itself, in order of declaration.
        contacts: Unilateral ones, in order of declaration.
        known_potentials: (loads that were added, their potential energy together in J), as elements declare it.
        element_of_load: (load that was added, name of the element that added it).
        latches: In order of declaration.
        flexible_bodies: ``FlexibleBody`` objects that were added.

    Raises:
        ModelError: If a symbol or a name stands in it twice.
    """

    mechanics: Mechanics
    constraint_forces: tuple[ConstraintForce, ...]
    outputs: tuple[Output | OutputRequest, ...]
    potential_energy: sm.Expr | None
    constraints: tuple[DeclaredConstraint, ...] = ()
    appearance_items: tuple[AppearanceItem, ...] = ()
    ground: tuple[ReferenceFrame, Point] | None = None
    loops: tuple[DeclaredLoopClosedForm, ...] = ()
    events: tuple[DeclaredEvent, ...] = ()
    contacts: tuple[DeclaredContact, ...] = ()
    known_potentials: tuple[tuple[tuple[Any, ...], sm.Expr], ...] = ()
    element_of_load: tuple[tuple[Any, str], ...] = ()
    latches: tuple[DeclaredMechanicalLatch, ...] = ()
    flexible_bodies: tuple[Any, ...] = ()

    @property
    def unilateral_forces(self) -> list[sm.Expr]:
        """Functions of time that stand for the forces of contacts, then of latches."""
        items: tuple[DeclaredContact | DeclaredMechanicalLatch, ...] = (*self.contacts, *self.latches)
        return [force for item in items for force in item.forces]

    def declarations(self, dependent: tuple[str, ...], origin: str) -> DeclaredModelContent:
        """Return declarations as plain data, for all stages after the reading.

        Args:
            dependent: Names of the coordinates and speeds that the mechanics name as dependent.
            origin: What the mechanism was read from, a noun phrase.
        """
        plain = {item.name: getattr(self, item.name) for item in fields(DeclaredModelContent)}
        return DeclaredModelContent(**plain | {"dependent": dependent, "origin": origin})

    def __post_init__(self) -> None:
        declared: tuple[Any, ...] = (*self.quantities, *self.constraint_forces)
        symbols = Counter(record.symbol for record in declared)
        names = Counter(record.name for record in (*declared, *self.outputs))
        doubles = {str(key) for key, count in (symbols | names).items() if count > 1}
        if doubles:
            raise ModelError(f"the definition of {self.name} has {', '.join(sorted(doubles))} twice")
