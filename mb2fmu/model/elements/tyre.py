"""Tyres: force and torque of the ground on a wheel over its slips, by a brush or the Magic Formula, with relaxation."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import sympy as sm
from sympy.physics.mechanics import Point, ReferenceFrame
from sympy.physics.vector import Vector

from mb2fmu.errors import Fault
from mb2fmu.model.elements.element_base_class import NamedElement
from mb2fmu.model.sources import mechanics_source
from mb2fmu.model.sources.frame_and_point_restoration import list_vector_frames, restore_frames_and_points
from mb2fmu.model.supported_functions import no_event

if TYPE_CHECKING:
    from mb2fmu.model import Model
    from mb2fmu.model.declarations.declared_content_and_experiment import Number

__all__ = ["Brush", "MagicFormula", "Tyre", "TyreSlips"]

ParameterDeclarer: TypeAlias = "Callable[[str, Number, str, str], sm.Expr]"

_MIN_SLIP = sm.Float(1e-15)
"""Added to slips under a root, that its slope is finite at zero; it changes a force by 1e-15 of its stiffness."""


@dataclass(frozen=True)
class TyreSlips:
    """Slips of the contact.

    Attributes:
        longitudinal: κ = −V_sx / |V_x|, positive where the wheel drives; None of a wheel that rolls freely.
        lateral: tan α = −V_sy / |V_x|, positive where the contact slips against the lateral direction.
        rolling: Rolling speed over travelling speed, 1 + κ for a wheel that goes forwards; 0 where it is locked.
    """

    longitudinal: sm.Expr | None
    lateral: sm.Expr
    rolling: sm.Expr


class TyreLaw(ABC):
    """Forces of a tyre over its slips and its load."""

    @abstractmethod
    def faults(self, driven: bool) -> Iterator[tuple[str, str]]:
        """Yield (what is wrong, remedy); ``driven`` where there is a longitudinal slip."""

    @abstractmethod
    def forces(self, slips: TyreSlips, load: sm.Expr, declare: ParameterDeclarer) -> tuple[sm.Expr, sm.Expr]:
        """Return longitudinal and lateral force, N; ``declare(part, value, unit, description)`` makes parameters."""

    @property
    def has_pneumatic_trail(self) -> bool:
        """Whether the lateral force acts behind the contact, and so turns the wheel."""
        return False

    def trail(self, slips: TyreSlips, declare: ParameterDeclarer) -> sm.Expr:  # noqa: ARG002
        """Return the distance by which the lateral force acts behind the contact, m; only for laws that ``turn``."""
        return sm.S.Zero


@dataclass(frozen=True)
class Brush(TyreLaw):
    """Elastic bristles that stick, then slide where the load's parabola of pressure no longer holds them.

    With γ = √((C_κ κ)² + (C_α tan α)²) and s = γ / (3 μ F_z (1 + κ)), at most 1: (F_x, F_y) =
    μ F_z (1 − (1 − s)³) (C_κ κ, C_α tan α) / γ. So C_α is ∂F_y/∂α at rest, and beyond s = 1 all slides.
    Source: H. B. Pacejka, Tire and Vehicle Dynamics, 3rd ed. 2012, sect. 3.2.

    Attributes:
        cornering: C_α in N/rad.
        friction: μ.
        longitudinal: C_κ in N; of wheels that are driven or braked.
    """

    cornering: Number
    friction: Number
    longitudinal: Number | None = None

    def faults(self, driven: bool) -> Iterator[tuple[str, str]]:
        """Yield faults of numbers, and parameters that are missing."""
        for part in ("cornering", "friction", "longitudinal"):
            yield from _positive_number_faults(part, getattr(self, part))
        if driven and self.longitudinal is None:
            yield "its brush has no longitudinal stiffness", "give Brush(…, longitudinal=), or no centre"

    def forces(self, slips: TyreSlips, load: sm.Expr, declare: ParameterDeclarer) -> tuple[sm.Expr, sm.Expr]:
        """Return the forces of the class's formula; γ's direction is divided out, so that zero slip is regular."""
        C_y = declare("cornering", self.cornering, "N/rad", "cornering stiffness")
        mu = declare("friction", self.friction, "1", "coefficient of friction")
        lateral, longitudinal = C_y * slips.lateral, sm.S.Zero
        if slips.longitudinal is not None:
            assert self.longitudinal is not None  # or it has faults
            longitudinal = declare("longitudinal", self.longitudinal, "N", "stiffness over the slip") * (
                slips.longitudinal
            )
        gamma = sm.sqrt(lateral**2 + longitudinal**2 + (C_y * _MIN_SLIP) ** 2)
        most = no_event(sm.Max(3 * mu * load * slips.rolling, gamma))  # second derivatives are continuous where s = 1
        s = gamma / most
        scale = mu * load * (3 - 3 * s + s**2) / most
        return scale * longitudinal, scale * lateral


@dataclass(frozen=True)
class MagicFormula(TyreLaw):
    """Pacejka's formula: F = μ F_z sin(C atan(B x − E (B x − atan(B x)))) of x = κ or α, with weights.

    Each slip weakens the force of the other: F_x is divided by √(1 + (r_x α)²), F_y by √(1 + (r_y κ)²), which is
    cos(atan(r x)). The lateral force acts behind the contact by the pneumatic trail
    D cos(C atan(B x − E (B x − atan(B x)))) of x = α; of a driven wheel x = atan √(tan²α + (k κ)²), k the ratio of
    the two stiffnesses. Source: H. B. Pacejka, Tire and Vehicle Dynamics, 3rd ed. 2012, sect. 4.3, without shifts,
    and so without residual torque.

    Attributes:
        lateral: (B, C, μ, E), stiffness factor in 1/rad.
        longitudinal: (B, C, μ, E) over κ; of wheels that are driven or braked.
        combined: (r_x, r_y); needed with ``longitudinal``, (0, 0) leaves each force as it is.
        pneumatic_trail: (B, C, D, E), D in m; None: no aligning torque.
    """

    lateral: tuple[Number, Number, Number, Number]
    longitudinal: tuple[Number, Number, Number, Number] | None = None
    combined: tuple[Number, Number] | None = None
    pneumatic_trail: tuple[Number, Number, Number, Number] | None = None

    def faults(self, driven: bool) -> Iterator[tuple[str, str]]:
        """Yield faults of numbers, and parameters that are missing."""
        for part, count in (("lateral", 4), ("longitudinal", 4), ("combined", 2), ("pneumatic_trail", 4)):
            numbers = getattr(self, part)
            if numbers is None:
                continue
            if not isinstance(numbers, tuple) or len(numbers) != count:
                yield f"{part} is {numbers!r}", f"give {count} numbers"
                continue
            for number in map(sm.sympify, numbers):
                if number.is_number and not number.is_finite:
                    yield f"{part} has {number}", "give finite numbers"
            if count == 4:
                yield from _positive_number_faults(f"{part}: {'D' if part == 'pneumatic_trail' else 'μ'}", numbers[2])
        if driven and (self.longitudinal is None or self.combined is None):
            yield (
                "its formula has no coefficients of longitudinal slip",
                ("give MagicFormula(…, longitudinal=(B, C, mu, E), combined=(r_x, r_y)), or no centre"),
            )

    def forces(self, slips: TyreSlips, load: sm.Expr, declare: ParameterDeclarer) -> tuple[sm.Expr, sm.Expr]:
        """Return the forces of the class's formula."""
        alpha = sm.atan(slips.lateral)
        F_y = _magic_formula_force(alpha, "lateral", self.lateral, load, declare)
        if slips.longitudinal is None:
            return sm.S.Zero, F_y
        assert self.longitudinal is not None  # or it has faults
        assert self.combined is not None
        r_x = declare("combined[1]", self.combined[0], "1", "how lateral slip weakens the longitudinal force")
        r_y = declare("combined[2]", self.combined[1], "1", "how longitudinal slip weakens the lateral force")
        F_x = _magic_formula_force(slips.longitudinal, "longitudinal", self.longitudinal, load, declare)
        return F_x / sm.sqrt(1 + (r_x * alpha) ** 2), F_y / sm.sqrt(1 + (r_y * slips.longitudinal) ** 2)

    @property
    def has_pneumatic_trail(self) -> bool:
        """Whether the law has a pneumatic trail."""
        return self.pneumatic_trail is not None

    def trail(self, slips: TyreSlips, declare: ParameterDeclarer) -> sm.Expr:
        """Return the pneumatic trail of the class's formula, D at zero slip, m."""
        assert self.pneumatic_trail is not None
        x = sm.atan(slips.lateral)
        if slips.longitudinal is not None:
            assert self.longitudinal is not None  # or it has faults
            given = zip(("longitudinal", "lateral"), (self.longitudinal, self.lateral), strict=True)
            K_x, K_y = (sm.Mul(*_magic_formula_factors(part, numbers, declare)[:3]) for part, numbers in given)
            # The cosine is even: the sign of the slip does not matter, and zero slip is no special place.
            x = sm.atan(sm.sqrt(slips.lateral**2 + (K_x / K_y * slips.longitudinal) ** 2 + _MIN_SLIP**2))
        words = ("stiffness factor", "shape factor", "at no slip", "curvature factor")
        units = ("1", "1", "m", "1")
        B, C, D, E = (
            declare(f"trail.{letter}", value, unit, f"pneumatic trail: {word}")
            for letter, value, unit, word in zip("BCDE", self.pneumatic_trail, units, words, strict=True)
        )
        return D * sm.cos(C * sm.atan(B * x - E * (B * x - sm.atan(B * x))))


def _magic_formula_force(
    x: sm.Expr,
    part: str,
    coefficients: tuple[Number, Number, Number, Number],
    load: sm.Expr,
    declare: ParameterDeclarer,
) -> sm.Expr:
    """Return the force over one slip."""
    B, C, mu, E = _magic_formula_factors(part, coefficients, declare)
    return mu * load * sm.sin(C * sm.atan(B * x - E * (B * x - sm.atan(B * x))))


def _magic_formula_factors(
    part: str, coefficients: tuple[Number, Number, Number, Number], declare: ParameterDeclarer
) -> list[sm.Expr]:
    """Return B, C, μ and E of one slip, as parameters."""
    words = ("stiffness factor", "shape factor", "coefficient of friction", "curvature factor")
    return [
        declare(f"{part}.{letter}", value, "1", word)
        for letter, value, word in zip(("B", "C", "mu", "E"), coefficients, words, strict=True)
    ]


@dataclass(frozen=True)
class Tyre(NamedElement):
    """Force of a tyre at its contact with the ground, and its aligning torque.

    V_s is the velocity of the ``contact``: of the wheel's particle that touches the ground now
    (``contact.v2pt_theory(centre, N, wheel)``), so that the force drives the wheel's rotation too. V_x is that of the
    ``centre`` along the heading. Without a centre the wheel rolls freely: V_x is that of the contact, and there is no
    longitudinal slip. With a relaxation length σ the slips are those of deflections that follow,
    κ = e_x / σ, e_x' = −V_sx − |V_x| e_x / σ, and likewise tan α = e_y / σ: at rest the tyre is a spring. Source of
    these: Pacejka 2012, sect. 7.2. Of a wheel that spins on the spot e_x grows without end. A law with a pneumatic
    trail t turns the ``wheel`` about ``up`` by M_z = −t cos α (V_x / |V_x|) F_y: against the slip angle where it goes
    forwards, with it where it goes backwards, by nothing at rest.

    Example:
        The front wheel of a car that rolls freely::

            model.add(Tyre("front", P, heading=W.x, load=4e3, law=Brush(6e4, 0.9), relaxation=0.4))

        Outputs are ``front.lateral``, ``front.slip_angle``, with a centre ``front.driving`` and ``front.slip``, with a
        trail ``front.aligning``.

    Attributes:
        name: In front of the names of its variables.
        contact: Where it acts, see above.
        heading: Unit vector on the ground in which the wheel rolls forwards.
        load: F_z in N, what the ground carries: a number or any expression; below zero it counts as none.
        law: ``Brush`` or ``MagicFormula``.
        centre: Of the wheel.
        up: Unit vector normal to the ground; N.z unless given. Lateral is up × heading.
        relaxation: σ in m; one of (longitudinal, lateral) if these differ; None: slips follow at once.
        still: Speed in m/s: |V_x| is taken as √(V_x² + still²), so that all is finite at rest.
        wheel: Frame of the body that the aligning torque of a law with a trail acts on.
    """

    contact: Point
    heading: Vector
    load: Number
    law: TyreLaw
    centre: Point | None = None
    up: Vector | None = None
    relaxation: Number | tuple[Number, Number] | None = None
    still: float = 0.01
    wheel: ReferenceFrame | None = None

    def faults(self, model: Model) -> Iterator[Fault]:
        """Yield faults of places, law and numbers."""
        frame = mechanics_source.inertial_frame(model.mechanics)
        for part in ("heading", "up"):
            vector = getattr(self, part)
            if not (isinstance(vector, Vector) or (part == "up" and vector is None)) or vector == 0:
                yield self.fault(f"{part} is {vector!r}", "give a unit vector, such as N.x")
        for point in (self.contact, *([] if self.centre is None else [self.centre])):
            if not isinstance(point, Point):
                yield self.fault(f"it acts on {point!r}", "give a point")
            elif not hasattr(frame, "dcm"):
                yield self.fault("the mechanics have no frame of SymPy", "tyres are for mechanics of SymPy")
            else:
                yield from self._unknown_velocity(point, frame)
        if isinstance(self.law, TyreLaw):
            yield from (self.fault(what, remedy) for what, remedy in self.law.faults(self.centre is not None))
            yield from self._unfelt(frame, turns=self.law.has_pneumatic_trail)
        else:
            yield self.fault(f"the law is {self.law!r}", "give Brush(…) or MagicFormula(…)")
        yield from self.negative("load", self.load)
        for length in self._relaxations():
            yield from self.not_positive("relaxation", length)
        yield from self.not_positive("still", self.still)

    def _unfelt(self, frame: Any, *, turns: bool) -> Iterator[Fault]:
        """Yield an aligning torque that no body receives, or that does not exist."""
        if self.wheel is None:
            if turns:
                yield self.fault("its law has a trail, and no wheel that is turned", "give Tyre(…, wheel=FRAME)")
        elif not isinstance(self.wheel, ReferenceFrame):
            yield self.fault(f"wheel is {self.wheel!r}", "give the frame of the wheel's body")
        elif not turns:
            yield self.fault(
                "its law turns no wheel", "give MagicFormula(…, pneumatic_trail=(B, C, D, E)), or no wheel"
            )
        elif hasattr(frame, "dcm"):
            try:
                with restore_frames_and_points([frame, self.wheel]):
                    self.wheel.ang_vel_in(frame)
            except ValueError as error:
                reason = " ".join(str(error).split())
                yield self.fault(f"how {self.wheel} turns is not known: {reason}", "connect it with the mechanism")

    def _unknown_velocity(self, point: Point, frame: Any) -> Iterator[Fault]:
        """Yield a fault if a point has no velocity in a frame; SymPy's caches are restored afterwards."""
        try:
            with restore_frames_and_points([frame, point]):
                point.vel(frame)
        except ValueError as error:
            reason = " ".join(str(error).split())
            yield self.fault(f"the velocity of {point} is not known: {reason}", "connect it with the mechanism")

    def _relaxations(self) -> tuple[Number, ...]:
        """Return longitudinal and lateral relaxation length; none where slips follow at once."""
        if self.relaxation is None:
            return ()
        return self.relaxation if isinstance(self.relaxation, tuple) else (self.relaxation, self.relaxation)

    def declare(self, model: Model) -> None:
        """Declare load, parameters, states and outputs."""
        frame: Any = mechanics_source.inertial_frame(model.mechanics)
        up = frame.z if self.up is None else self.up
        with restore_frames_and_points(
            [frame, self.contact, self.centre, *list_vector_frames(self.heading), *list_vector_frames(up)]
        ):
            lateral = up.cross(self.heading)
            slipping = self.contact.vel(frame)
            V_sy = sm.sympify(slipping.dot(lateral))
            V_sx = None if self.centre is None else sm.sympify(slipping.dot(self.heading))
            V_x = sm.sympify((self.centre or self.contact).vel(frame).dot(self.heading))
        still = self.parameter(model, "still", self.still, "m/s", "speed at which the tyre counts as standing")
        travelling = sm.sqrt(V_x**2 + still**2)
        kappa = None if V_sx is None else self._slip(model, "x", V_sx, travelling)
        tangent = self._slip(model, "y", V_sy, travelling)
        rolling = sm.S.One if kappa is None else 1 + kappa * V_x / travelling
        load = self.parameter(model, "load", self.load, "N", "what the ground carries", low=0.0)
        carried = load if load.is_Symbol else sm.Max(0, load)
        slips, declared = TyreSlips(kappa, tangent, rolling), self._declared_once(model)
        F_x, F_y = self.law.forces(slips, carried, declared)
        model.add_loads((self.contact, F_x * self.heading + F_y * lateral))
        model.output(f"{self.name}.lateral", F_y, "N", description="force along up × heading")
        model.output(f"{self.name}.slip_angle", sm.atan(tangent), "rad", description="α, positive with the force")
        if kappa is not None:
            model.output(f"{self.name}.driving", F_x, "N", description="force along the heading")
            model.output(f"{self.name}.slip", kappa, description="κ, positive where the wheel drives")

        if self.law.has_pneumatic_trail:
            forwards = V_x / travelling / sm.sqrt(1 + tangent**2)  # cos α, negative where it goes backwards
            M_z = -self.law.trail(slips, declared) * forwards * F_y
            model.add_loads((self.wheel, M_z * up))
            model.output(f"{self.name}.aligning", M_z, "N.m", description="aligning torque about up")

    def _declared_once(self, model: Model) -> ParameterDeclarer:
        """Return parameters by their parts; those that force and torque share are declared once."""
        known: dict[str, sm.Expr] = {}

        def declare(part: str, value: Number, unit: str, description: str) -> sm.Expr:
            """Return the parameter of a part, declared at the first call."""
            if part not in known:
                known[part] = self.parameter(model, part, value, unit, description)
            return known[part]

        return declare

    def _slip(self, model: Model, axis: str, sliding: sm.Expr, travelling: sm.Expr) -> sm.Expr:
        """Return κ or tan α: of the present velocities, or of a deflection that follows them."""
        lengths = self._relaxations()
        if not lengths:
            return -sliding / travelling
        part = f"relaxation_{axis}"
        length = self.parameter(model, part, lengths["xy".index(axis)], "m", "relaxation length")
        deflection = self.state(f"deflection_{axis}")
        rate = -sliding - travelling * deflection / length
        self.declare_state(model, f"deflection_{axis}", rate, 0.0, "m", "of the tyre at its contact", nominal=0.01)
        return deflection / length


def _positive_number_faults(part: str, value: Number | None) -> Iterator[tuple[str, str]]:
    """Yield (what, remedy) if a value is a number and not above zero."""
    given = sm.sympify(value)
    if value is not None and given.is_number and not (given.is_finite and given > 0):
        yield f"{part} is {float(given):g}", f"give a number > 0 as {part}"
