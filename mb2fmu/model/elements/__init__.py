"""Elements: friction, clutches, brakes, stops in one line each, by ``model.add(element)``.

Input: a ``Model`` and an element, a frozen dataclass of numbers and SymPy expressions. Output: what the element
consists of is declared in the model under its name: loads, parameters, discrete values, events and outputs.

Promises: every number that an element is given is a parameter of the FMU, ``name.field``; every expression stays the
user's. Loads act as they are, whatever kind of mechanics was given, so that formulations, validation and
pictures see nothing but loads and events. What is wrong is reported with all other faults of the model, by
``mb2fmu.model.check_model``.

Must not: form equations, or know of programs and units.
"""

from mb2fmu.model.elements.bushing import Bushing
from mb2fmu.model.elements.clutches import Brake, Clutch, OneWayClutch
from mb2fmu.model.elements.compliant_contact import Contact
from mb2fmu.model.elements.contact_surfaces import CylinderSurface, HeightSurface, PlaneSurface, SphereSurface
from mb2fmu.model.elements.coulomb_friction import CoulombFriction
from mb2fmu.model.elements.drag_and_gravity_gradient import Drag, GravityGradient
from mb2fmu.model.elements.gear_motor import GearMotor
from mb2fmu.model.elements.hard_stops_and_backlash import Backlash, HardStop
from mb2fmu.model.elements.hydraulics import HydraulicCylinder, Valve
from mb2fmu.model.elements.latch import Latch
from mb2fmu.model.elements.load_work import Work
from mb2fmu.model.elements.rigid_impact import Impact
from mb2fmu.model.elements.spring_damper import SpringDamper
from mb2fmu.model.elements.tyre import Brush, MagicFormula, Tyre

__all__ = [
    "Backlash",
    "Brake",
    "Brush",
    "Bushing",
    "Clutch",
    "Contact",
    "CoulombFriction",
    "CylinderSurface",
    "Drag",
    "GearMotor",
    "GravityGradient",
    "HardStop",
    "HeightSurface",
    "HydraulicCylinder",
    "Impact",
    "Latch",
    "MagicFormula",
    "OneWayClutch",
    "PlaneSurface",
    "SphereSurface",
    "SpringDamper",
    "Tyre",
    "Valve",
    "Work",
]
