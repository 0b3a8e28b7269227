"""A hydraulic cylinder with its valve: two chambers of compressible oil, leakage, orifices."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import sympy as sm
from sympy.physics.mechanics import ForceActuator, LinearPathway, Point
from sympy.physics.mechanics.joint import Joint

from mb2fmu.errors import Fault
from mb2fmu.model.elements.element_attachment import ElementAttachment, make_element_attachment
from mb2fmu.model.elements.element_base_class import NamedElement
from mb2fmu.model.elements.element_pathways import find_pathway_or_joint_faults, is_point_pair
from mb2fmu.model.sources.frame_and_point_restoration import restore_frames_and_points

if TYPE_CHECKING:
    from mb2fmu.model import Model
    from mb2fmu.model.declarations.declared_content_and_experiment import Number

__all__ = ["HydraulicCylinder", "Valve"]

_LEAKAGE_MAGNITUDE = 1e-12  # m3/(s.Pa): a millilitre per second at 10 bar; none leaks unless a number is given


@dataclass(frozen=True, kw_only=True)
class Valve:
    """A proportional 4/3 valve: opening 1 connects chamber A with the supply and B with the tank, -1 the other way.

    Each edge is an orifice: Q = opening · flow · φ(Δp) / √pressure_drop, φ(Δp) = Δp / (Δp² + laminar²)^(1/4), which is
    √Δp with its sign, and a straight line through zero where |Δp| is far below ``laminar``.

    Attributes:
        opening: From -1 to 1: an input, a state (of a spool that lags behind), any expression.
        flow: m3/s through one edge, fully open, at ``pressure_drop``.
        pressure_drop: Pa, over one edge, at which ``flow`` is given.
        supply: Pressure of the pump in Pa.
        tank: Pressure of the return line in Pa.
        laminar: Pa.
    """

    opening: sm.Expr
    flow: Number
    pressure_drop: Number
    supply: Number
    tank: Number = 0.0
    laminar: Number = 1e4


@dataclass(frozen=True, kw_only=True)
class HydraulicCylinder(NamedElement):
    """A double-acting cylinder between two points, or along a prismatic joint.

    With the piston at x = length - retracted: p_A' = β (Q_A − A_A x' − q) / (V + A_A x),
    p_B' = β (Q_B + A_B x' + q) / (V + A_B (stroke − x)), q = leakage (p_A − p_B); it pushes its ends apart with
    A_A p_A − A_B p_B − friction x'. The equations are stiff: ``model.experiment(stiff=True)``. What stops the piston at
    its ends is a ``HardStop``. Source: H. E. Merritt, Hydraulic Control Systems, 1967, sect. 3.4 and 6.1.

    Example:
        A boom's cylinder with an input for its valve::

            valve = Valve(opening=spool, flow=1e-3, pressure_drop=3.5e6, supply=2e7)
            sizes = dict(area=5e-3, rod_area=3e-3, stroke=0.8, retracted=1.1)
            model.add(HydraulicCylinder("boom", on=(P, Q), **sizes, valve=valve))

        States are ``boom.pressure_a`` and ``boom.pressure_b``; outputs ``boom.force`` (pushing positive),
        ``boom.piston``, and with a valve ``boom.flow_a`` and ``boom.flow_b``.

    Attributes:
        on: (point, point), a ``PrismaticJoint``, or a robot's sliding joint by its name.
        area: A_A of the piston in m2.
        rod_area: A_B of the ring around the rod in m2; as ``area`` unless given.
        stroke: m.
        retracted: Length, or coordinate, in m at which x = 0.
        dead_volume: V in m3: of each chamber and its line where the piston is at its end.
        bulk_modulus: β of the oil in Pa.
        leakage: Past the piston, m3/(s.Pa).
        friction: N.s/m.
        valve: What feeds it; None: both ports are closed.
        pressures: p_A and p_B at the start in Pa.
    """

    on: tuple[Point, Point] | Joint | str
    area: Number
    stroke: Number
    retracted: Number
    rod_area: Number | None = None
    dead_volume: Number = 1e-4
    bulk_modulus: Number = 1.4e9
    leakage: Number = 0.0
    friction: Number = 0.0
    valve: Valve | None = None
    pressures: tuple[float, float] = (1e5, 1e5)

    def faults(self, model: Model) -> Iterator[Fault]:
        """Yield faults of places and numbers."""
        yield from (self.fault(what, remedy) for what, remedy in find_pathway_or_joint_faults(self.on, model))
        for part in ("area", "stroke", "dead_volume", "bulk_modulus"):
            yield from self.not_positive(part, getattr(self, part))
        if self.rod_area is not None:
            yield from self.not_positive("rod_area", self.rod_area)
        for part in ("leakage", "friction"):
            yield from self.negative(part, getattr(self, part))
        if len(self.pressures) != 2:
            yield self.fault(f"pressures are {self.pressures!r}", "give those of A and B")
        if self.valve is not None:
            yield from self._valve_faults(self.valve)

    def _valve_faults(self, valve: Valve) -> Iterator[Fault]:
        """Yield faults of a valve's numbers and of its opening."""
        for part in ("flow", "pressure_drop", "laminar"):
            yield from self.not_positive(f"valve.{part}", getattr(valve, part))
        for part in ("supply", "tank"):
            yield from self.negative(f"valve.{part}", getattr(valve, part))
        if not isinstance(valve.opening, sm.Expr):
            yield self.fault(f"valve.opening is {valve.opening!r}", "give an input, a state or an expression")

    def declare(self, model: Model) -> None:
        """Declare load, parameters, states and outputs."""
        place: ElementAttachment | None = None
        if is_point_pair(self.on):
            pathway = LinearPathway(*self.on)
            with restore_frames_and_points(list(self.on)):
                length, rate = pathway.length, pathway.extension_velocity
        else:
            place = make_element_attachment(self.on, model)
            assert place.position is not None  # a joint has a coordinate
            length, rate = place.position, place.speed
        area = self.parameter(model, "area", self.area, "m2", "of the piston", low=0.0)
        ring = area
        if self.rod_area is not None:
            ring = self.parameter(model, "rod_area", self.rod_area, "m2", "of the ring around the rod", low=0.0)
        piston = length - self.parameter(model, "retracted", self.retracted, "m", "length where the piston begins")
        a, b = self._pressures(model, piston, rate, (area, ring))
        friction = self.parameter(model, "friction", self.friction, "N.s/m", "of the piston", low=0.0)
        push = area * a - ring * b - friction * rate
        if place is None:
            model.add_loads(ForceActuator(push, pathway))
        else:
            place.load(model, push)
        model.output(f"{self.name}.force", push, "N", description="pushing positive")
        model.output(f"{self.name}.piston", piston, "m", description="how far it is out")

    def _pressures(
        self, model: Model, piston: sm.Expr, rate: sm.Expr, areas: tuple[sm.Expr, sm.Expr]
    ) -> tuple[sm.Expr, sm.Expr]:
        """Return both pressures, as states."""
        a, b = self.state("pressure_a"), self.state("pressure_b")
        bulk = self.parameter(model, "bulk_modulus", self.bulk_modulus, "Pa", "of the oil", low=0.0)
        dead = self.parameter(model, "dead_volume", self.dead_volume, "m3", "of each chamber and its line", low=0.0)
        stroke = self.parameter(model, "stroke", self.stroke, "m", "of the piston", low=0.0)
        leakage = self.parameter(
            model, "leakage", self.leakage, "m3/(s.Pa)", "past the piston", low=0.0, nominal=_LEAKAGE_MAGNITUDE
        )
        past = leakage * (a - b)
        flow_a, flow_b = self._flows(model, a, b)
        for part, inflow, volume, start in (
            ("pressure_a", flow_a - areas[0] * rate - past, dead + areas[0] * piston, self.pressures[0]),
            ("pressure_b", flow_b + areas[1] * rate + past, dead + areas[1] * (stroke - piston), self.pressures[1]),
        ):
            words = f"of chamber {part[-1].upper()}"
            self.declare_state(model, part, bulk * inflow / volume, start, "Pa", words, nominal=1e6)
        return a, b

    def _flows(self, model: Model, a: sm.Expr, b: sm.Expr) -> tuple[sm.Expr, sm.Expr]:
        """Return the flows into A and B, m3/s; 0 without a valve."""
        if self.valve is None:
            return sm.S.Zero, sm.S.Zero
        valve = self.valve
        flow = self.parameter(model, "valve.flow", valve.flow, "m3/s", "through an edge, fully open", low=0.0)
        drop = self.parameter(model, "valve.pressure_drop", valve.pressure_drop, "Pa", "at which it is given", low=0.0)
        supply = self.parameter(model, "valve.supply", valve.supply, "Pa", "pressure of the pump")
        tank = self.parameter(model, "valve.tank", valve.tank, "Pa", "pressure of the return line")
        laminar = self.parameter(model, "valve.laminar", valve.laminar, "Pa", "below which flow is laminar", low=0.0)

        def edge(opening: sm.Expr, high: sm.Expr, low: sm.Expr) -> sm.Expr:
            """Return the flow through an edge from one pressure to another, m³/s."""
            fall = high - low
            return opening * flow * fall / ((fall**2 + laminar**2) ** sm.Rational(1, 4) * sm.sqrt(drop))

        forwards, backwards = sm.Max(0, valve.opening), sm.Max(0, -valve.opening)
        flow_a = edge(forwards, supply, a) - edge(backwards, a, tank)
        flow_b = edge(backwards, supply, b) - edge(forwards, b, tank)
        model.output(f"{self.name}.flow_a", flow_a, "m3/s", description="into chamber A")
        model.output(f"{self.name}.flow_b", flow_b, "m3/s", description="into chamber B")
        return flow_a, flow_b
