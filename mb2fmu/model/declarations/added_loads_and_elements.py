"""Additions to mechanics that stay unchanged: loads in one line, and elements with their own parts."""
# ruff: noqa: SLF001 - what a System and SymPy's methods were given stands in private attributes only

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import sympy as sm
from sympy.physics.mechanics import KanesMethod, LagrangesMethod, Point, ReferenceFrame, System
from sympy.physics.mechanics.actuator import ActuatorBase
from sympy.physics.mechanics.body_base import BodyBase
from sympy.physics.vector import Vector

from mb2fmu.errors import Fault
from mb2fmu.model.source_location import find_user_source_line
from mb2fmu.model.sources.parts_mechanics_source import Parts
from mb2fmu.model.sources.record_based_mechanics import RecordBasedMechanics, RecordedLoad

if TYPE_CHECKING:
    from mb2fmu.model.sources.mechanics_source import Mechanics


class _ModelElement(Protocol):
    """Protocol of ``model.add``: an object that adds its own loads, parameters, events and outputs to a model."""

    def add_to(self, model: Any) -> Iterable[Fault]:
        """Declare all parts of the element; if any part is wrong, report the faults and declare nothing."""


ElementType = TypeVar("ElementType", bound=_ModelElement)


@dataclass(frozen=True, slots=True)
class _AddedLoad:
    """A load, and ``file:line`` where it was added.

    Attributes:
        load: (point, frame or body, vector), a SymPy actuator; of a robot (joint, effort), or a RecordedLoad.
        where: For messages.
        element: Name of the element that added it; empty: the model itself did.
    """

    load: Any
    where: str
    element: str = ""


class AddedLoadDeclarations:
    """The part of a model that adds to the mechanics; these are the model's own.

    Attributes:
        added_loads: In order of declaration.
        added_bodies: In order of declaration.
        known_potentials: (loads, their potential energy together in J) of those that gave it.
        element_faults: What elements that were added report of themselves.
        flexible_bodies: Those that were added, which the validation compares with their nodes.
        named_elements: (kind, name) of each that was added, and where it was made.
    """

    mechanics: Mechanics

    def __init__(self) -> None:
        self.added_loads: list[_AddedLoad] = []
        self.added_bodies: list[BodyBase] = []
        self.known_potentials: list[tuple[tuple[Any, ...], sm.Expr]] = []
        self.element_faults: list[Fault] = []
        self.flexible_bodies: list[Any] = []
        self.named_elements: dict[tuple[str, str], str] = {}
        self._adding: tuple[str, ...] = ()
        super().__init__()

    def add(self, element: ElementType) -> ElementType:
        """Add an element: friction, a brake, a stop (docs/explanation/events.md); its variables carry its name.

        Example:
            >>> model.add(CoulombFriction("bearing", joint, kinetic=0.2))                       # doctest: +SKIP

        Args:
            element: Of ``mb2fmu``, or anything with a method ``add_to(model)`` that declares what it consists of.

        Returns:
            The element.
        """
        if not callable(getattr(element, "add_to", None)):
            what, remedy = (
                f"{element!r} is no element",
                "add one of docs/explanation/events.md, or what has a method add_to",
            )
            self.element_faults.append(Fault(f"model.add: {what}", find_user_source_line(), remedy))
            return element
        outside, name = self._adding, getattr(element, "name", None)
        self._adding = (*outside, name) if isinstance(name, str) else outside
        try:
            self.element_faults += element.add_to(self)
        finally:
            self._adding = outside
        return element

    def add_loads(self, *loads: Any, potential: sm.Expr | None = None) -> None:
        """Add loads to any kind of mechanics; the source objects stay unchanged.

        Args:
            loads: (point, frame or body, vector) or SymPy's ``Force``, ``Torque`` and actuators; with a robot
                (joint, effort along it), or what its ``force`` and ``torque`` return.
            potential: Potential energy in J of these together, of what they do at rest; None: it is to be found. It is
                compared with the generalized forces, and dropped where they differ.
        """
        if potential is not None:
            self.known_potentials.append((loads, potential))
        element = self._adding[0] if self._adding else ""
        self.added_loads += [_AddedLoad(load, find_user_source_line(), element) for load in loads]

    @property
    def accepts_bodies(self) -> bool:
        """Whether bodies can be added: not to a Lagrangian (its energies are complete) nor to a robot's file."""
        return isinstance(self.mechanics, System | KanesMethod | Parts)

    def add_bodies(self, *bodies: BodyBase) -> None:
        """Add bodies that move with the frames and points of the mechanics; these stay unchanged.

        Args:
            bodies: ``RigidBody`` and ``Particle`` objects.

        Raises:
            TypeError: If the mechanics take none, see :attr:`accepts_bodies`.
        """
        if not self.accepts_bodies:
            raise TypeError(f"{type(self.mechanics).__name__} takes no bodies")
        self.added_bodies += bodies


def add_bodies_to_mechanics(mechanics: Mechanics, bodies: Sequence[BodyBase]) -> Mechanics:
    """Return the mechanics with more bodies; equations that were already formed are dropped."""
    if not bodies:
        return mechanics
    if isinstance(mechanics, Parts):
        return dataclasses.replace(mechanics, bodies=(*mechanics.bodies, *bodies))
    whole: Any = copy.copy(mechanics)
    if isinstance(mechanics, System):
        whole._bodies, whole._eom_method = [*mechanics._bodies, *bodies], None
    else:
        assert isinstance(mechanics, KanesMethod)
        whole._bodylist, whole._fr, whole._frstar = [*(mechanics.bodylist or ()), *bodies], None, None
    assert isinstance(whole, System | KanesMethod)
    return whole


def add_loads_to_mechanics(mechanics: Mechanics, loads: Sequence[Any]) -> Mechanics:
    """Return the mechanics with more loads; the original stays unchanged.

    Equations that were formed already are dropped, for they lack the added loads: whoever needs them forms them anew,
    from the same objects.

    Args:
        mechanics: As given.
        loads: As :meth:`AddedLoadDeclarations.add_loads` takes them.
    """
    if isinstance(mechanics, RecordBasedMechanics):
        robot = copy.copy(mechanics)
        robot.efforts = {joint: list(efforts) for joint, efforts in mechanics.efforts.items()}
        robot.loads = [*mechanics.loads, *(load for load in loads if isinstance(load, RecordedLoad))]
        for load in loads:
            if not isinstance(load, RecordedLoad):
                robot.add_effort(*load)
        return robot
    actuators = [load for load in loads if isinstance(load, ActuatorBase)]
    pairs = [load for load in loads if not isinstance(load, ActuatorBase)]
    if isinstance(mechanics, Parts):
        return dataclasses.replace(
            mechanics, loads=(*mechanics.loads, *pairs), actuators=(*mechanics.actuators, *actuators)
        )
    whole: Any = copy.copy(mechanics)
    if isinstance(mechanics, System):
        whole._loads, whole._actuators = [*mechanics._loads, *pairs], [*mechanics._actuators, *actuators]
        whole._eom_method = None
        return whole
    pairs += [load for actuator in actuators for load in actuator.to_loads()]
    whole._forcelist = [*(mechanics.forcelist or ()), *(_normalize_load(load) for load in pairs)]
    if isinstance(mechanics, KanesMethod):
        whole._fr = whole._frstar = None
    assert isinstance(whole, KanesMethod | LagrangesMethod)
    return whole


def _normalize_load(load: Any) -> tuple[Any, Any]:
    """Return a load in the form of SymPy's methods: a body stands for its mass centre."""
    return (load[0].masscenter, load[1]) if isinstance(load[0], BodyBase) else load


def can_add_load(load: Any, mechanics: Mechanics) -> bool:
    """Return whether a load can be added to the mechanics."""
    if isinstance(mechanics, RecordBasedMechanics):
        if isinstance(load, RecordedLoad):
            return True
        pair = isinstance(load, tuple) and len(load) == 2
        return pair and load[0] in mechanics.speed and isinstance(load[1], sm.Basic)
    if isinstance(load, ActuatorBase):
        return True
    if not isinstance(load, tuple) or len(load) != 2:
        return False
    return isinstance(load[0], Point | ReferenceFrame | BodyBase) and (isinstance(load[1], Vector) or load[1] == 0)
