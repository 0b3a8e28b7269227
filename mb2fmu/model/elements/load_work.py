"""The work of a load since the start."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import sympy as sm
from sympy.physics.mechanics import ForceActuator, Point, ReferenceFrame
from sympy.physics.mechanics.actuator import ActuatorBase
from sympy.physics.mechanics.body_base import BodyBase
from sympy.physics.vector import Vector

from mb2fmu.errors import Fault
from mb2fmu.model.elements.element_base_class import NamedElement
from mb2fmu.model.sources import mechanics_source
from mb2fmu.model.sources.frame_and_point_restoration import list_vector_frames, restore_frames_and_points
from mb2fmu.model.sources.record_based_mechanics import RecordBasedMechanics

if TYPE_CHECKING:
    from mb2fmu.model import Model


@dataclass(frozen=True)
class Work(NamedElement):
    """The work of a load or actuator: a state whose rate is its power, F·v or T·ω, summed over its ends.

    Example:
        What a motor has given, and what it gives now::

            model.add(Work("motor", drive))

        The state is ``motor.work`` in J, 0 at the start; the output is ``motor.power`` in W.

    Attributes:
        name: In front of the names of its variables.
        load: (point, frame or body, vector), an actuator of SymPy, or (joint, effort) of a robot.
    """

    load: Any

    def faults(self, model: Model) -> Iterator[Fault]:
        """Yield faults of the load."""
        recorded = isinstance(model.mechanics, RecordBasedMechanics)
        remedy = "give (joint, effort)" if recorded else "give a load or an actuator of the mechanics"
        try:
            self._power(model)
        except (ValueError, TypeError, KeyError, IndexError, AttributeError) as error:
            reason = " ".join(str(error).split())
            yield self.fault(f"the power of {self.load!r} is not known: {reason}", remedy)

    def declare(self, model: Model) -> None:
        """Declare the state and the output."""
        power = self._power(model)
        self.declare_state(model, "work", power, 0.0, "J", "of the load since the start")
        model.output(f"{self.name}.power", power, "W", description="of the load, to the mechanism")

    def _power(self, model: Model) -> sm.Expr:
        """Return the power in W; raise where a place or its velocity is not known."""
        mechanics = model.mechanics
        if isinstance(mechanics, RecordBasedMechanics):
            joint, effort = self.load
            return sm.sympify(effort) * mechanics.speed[joint]
        if type(self.load) is ForceActuator:
            with restore_frames_and_points(self.load.pathway.attachments):
                return self.load.force * self.load.pathway.extension_velocity
        loads = self.load.to_loads() if isinstance(self.load, ActuatorBase) else [self.load]
        return sm.Add(*(_power_at_place(mechanics_source.inertial_frame(mechanics), *load) for load in loads))


def _power_at_place(frame: Any, place: Any, vector: Any) -> sm.Expr:
    """Return the power of a force on a point or body, or of a torque on a frame."""
    if not isinstance(frame, ReferenceFrame):
        raise TypeError("the mechanics have no inertial frame")
    if not isinstance(vector, Vector):
        raise TypeError(f"{vector} is no vector")
    if isinstance(place, BodyBase):
        place = place.masscenter
    with restore_frames_and_points([frame, place, *list_vector_frames(vector)]):
        if isinstance(place, Point):
            return sm.sympify(vector.dot(place.vel(frame)))
        if isinstance(place, ReferenceFrame):
            return sm.sympify(vector.dot(place.ang_vel_in(frame)))
    raise TypeError(f"{place} is neither point, frame nor body")
