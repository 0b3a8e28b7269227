"""Compliant contact of spheres and points with a surface: Hunt and Crossley's law, Hertz's law, with friction."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import sympy as sm
from sympy.physics.mechanics import Particle, Point, ReferenceFrame, RigidBody
from sympy.physics.vector import Vector

from mb2fmu.errors import Fault
from mb2fmu.model.elements.bristle_friction import BristleFriction
from mb2fmu.model.elements.contact_surfaces import MIN_SQUARED_LENGTH, ContactSurface, ParameterNamer, SurfaceSize
from mb2fmu.model.elements.element_base_class import NamedElement
from mb2fmu.model.elements.robot_link_contact import (
    express_direction_in_ground,
    express_surface_in_ground,
    find_link_contact_faults,
    find_surface_carrier,
    form_relative_contact_motion,
    make_link_load,
    resolve_link_contact_points,
)
from mb2fmu.model.sources import mechanics_source
from mb2fmu.model.sources.frame_and_point_restoration import restore_frames_and_points
from mb2fmu.model.sources.parts_mechanics_source import Parts
from mb2fmu.model.sources.record_based_mechanics import NamedFramePoint, RecordBasedMechanics
from mb2fmu.model.supported_functions import no_event, sticking_sign

if TYPE_CHECKING:
    from mb2fmu.model import Model


@dataclass(frozen=True, slots=True)
class _ContactGeometry:
    """Place of a sphere or point against the surface.

    Attributes:
        gap: Between both, m; negative where they are pressed together.
        normal: Unit vector away from the surface.
        approach: -gap', m/s.
        slip: Velocity of what touches against the surface, where they touch.
        arm: From the middle of the sphere to where it touches.
        lever: From the surface's point to there.
        tangents: Two directions along the surface, if its friction needs them.
    """

    gap: sm.Expr
    normal: Vector
    approach: sm.Expr
    slip: Vector
    arm: Vector
    lever: Vector
    tangents: Sequence[Vector]


@dataclass(frozen=True)
class Contact(NamedElement):
    """Spheres or points of a body that a surface pushes off: plane, sphere, cylinder or ground with heights.

    With the depth δ = -gap by which they are pressed together, the normal force is

        F = k δⁿ max(0, 1 + d δ')    for δ > 0, else 0:

    Hertz's law with n = 3/2 and d = 0, that of Hunt and Crossley with d > 0. It never pulls. Friction of the
    coefficient μ acts against the slip v where they touch, which is the foot of the perpendicular on the surface that
    is not deformed: of a motion in space -μ F v / √(v² + slip_speed²), which creeps, or with ``presliding``
    :class:`~mb2fmu.model.elements.bristle_friction.BristleFriction`, which sticks; of one in a plane exactly Coulomb's
    law, which sticks. A particle does not turn: what acts on it goes through its middle. The surface, or the body that
    carries it, is pushed back at the same place.

    A contact that opens or closes is an event, ``name.gap < 0``.

    Example:
        A ball on the floor.

        >>> floor = PlaneSurface(O, N.y)                                                         # doctest: +SKIP
        >>> model.add(Contact("floor", ball, floor, radius=R, stiffness=1e6, dissipation=0.3))   # doctest: +SKIP

        Outputs are ``floor.gap``, ``floor.approach`` (δ'), ``floor.force`` (normal), with friction ``floor.friction``
        and ``floor.slip``, and if it is exact ``floor.sticking``; of several points ``floor.heel.gap`` and so on.

    Attributes:
        name: In front of the names of its variables.
        body: What touches; of a robot the name of a link.
        surface: What it touches: ``PlaneSurface``, ``SphereSurface``, ``CylinderSurface``, ``HeightSurface``.
        stiffness: k in N/mⁿ.
        exponent: n >= 1; a number is no parameter of the FMU, an expression is as it is.
        dissipation: d in s/m.
        radius: Of the sphere about each point, m; 0: the points themselves touch.
        at: Points of the body; None: its mass centre, of a robot's link its origin.
        kinetic: μ while it slides; None: there is no friction.
        static: Coefficient at which it breaks away, with ``plane``; None: μ.
        slip_speed: m/s, below which friction, or the damper of the bristles, is proportional to the slip; in space.
        presliding: m, by which a contact in space gives way elastically before it slides, on a plane; None: it creeps.
        plane: Normal of the plane in which everything moves: friction is exact, along ``normal × plane``.

    Source: K. H. Hunt and F. R. E. Crossley, Coefficient of restitution interpreted as damping in vibroimpact, J. Appl.
    Mech. 42 (1975) 440-445; K. L. Johnson, Contact Mechanics, 1985, section 4.2.
    """

    body: RigidBody | Particle | str
    surface: ContactSurface
    stiffness: SurfaceSize
    exponent: SurfaceSize = 1.5
    dissipation: SurfaceSize = 0.0
    radius: SurfaceSize = 0.0
    at: Point | NamedFramePoint | Sequence[Point | NamedFramePoint] | None = None
    kinetic: SurfaceSize | None = None
    static: SurfaceSize | None = None
    slip_speed: SurfaceSize | None = None
    presliding: SurfaceSize | None = None
    plane: Vector | None = None

    @property
    def points(self) -> list[Any]:
        """The points of the body that touch."""
        if isinstance(self.body, str):
            found: list[Any] = resolve_link_contact_points(self.body, self.at)
            return found
        if self.at is None:
            return [self.body.masscenter]
        return [self.at] if isinstance(self.at, Point | NamedFramePoint) else [*self.at]

    # --- faults ------------------------------------------------------------------------------------------------------

    def faults(self, model: Model) -> Iterator[Fault]:
        """Yield faults of body, surface and numbers."""
        whole = True
        for what, remedy in self._shape_faults(model):
            whole = False
            yield self.fault(what, remedy)
        yield from self._number_faults()
        yield from (self.fault(what, remedy) for what, remedy in self._friction_faults())
        if whole:
            yield from (self.fault(what, remedy) for what, remedy in self._place_faults(model))

    def _shape_faults(self, model: Model) -> Iterator[tuple[str, str]]:
        """Yield (what, remedy) for bodies, surface and points that cannot touch."""
        if isinstance(model.mechanics, RecordBasedMechanics):
            yield from find_link_contact_faults(self.body, self.at, self.surface, model.mechanics)
            return
        bodies = mechanics_source.bodies(model.mechanics)
        carrier = self.surface.body if isinstance(self.surface, ContactSurface) else None
        for role, body in (("what touches", self.body), ("what carries its surface", carrier)):
            if role == "what touches" and not isinstance(body, RigidBody | Particle):
                yield f"{role} is {body!r}", "give a RigidBody or a Particle"
            elif isinstance(body, RigidBody | Particle) and not any(body is known for known in bodies):
                yield f"{role}, {body.name}, is no body of the mechanics", "give one of the mechanics' own"
        if not isinstance(self.surface, ContactSurface):
            yield (
                f"its surface is {self.surface!r}",
                "give a PlaneSurface, SphereSurface, CylinderSurface or HeightSurface",
            )
        else:
            yield from self.surface.faults()
        if self.at is not None and not (self.points and all(isinstance(point, Point) for point in self.points)):
            yield f"it touches with {self.at!r}", "give a point of the body, or several"
        if mechanics_source.inertial_frame(model.mechanics) is None:
            yield "the mechanics have no inertial frame", "give it: LagrangesMethod(…, forcelist=[…], frame=N)"

    def _number_faults(self) -> Iterator[Fault]:
        """Yield faults of stiffness, dissipation, exponent and friction coefficients, as far as they are numbers."""
        for part in ("stiffness", "dissipation", "radius", "kinetic", "static"):
            yield from self.negative(part, getattr(self, part))
        exponent = sm.sympify(self.exponent)
        if exponent.is_number and not (exponent.is_finite and exponent >= 1):
            yield self.fault(f"exponent is {exponent}", "give 1 (linear), 1.5 (Hertz) or another number >= 1")
        names = [point.name for point in self.points if isinstance(point, Point)] if self.at is not None else []
        for name in sorted({name for name in names if names.count(name) > 1}):
            yield self.fault(f"two of its points are called {name}", "give them different names: they name the outputs")

    def _friction_faults(self) -> Iterator[tuple[str, str]]:
        """Yield (what, remedy) for friction settings that contradict each other."""
        if self.kinetic is None:
            parts = ("static", "slip_speed", "presliding", "plane")
            given = [part for part in parts if getattr(self, part) is not None]
            if given:
                yield f"it has {' and '.join(given)}, and no friction", "give the coefficient: kinetic=0.3"
            return
        if isinstance(self.body, str) and self.plane is not None:
            yield (
                "it has a plane, and links of robots move in space",
                "give slip_speed=1e-2, and presliding=1e-3 if it sticks",
            )
        elif (self.slip_speed is None) == (self.plane is None):
            has = "neither slip_speed nor plane" if self.plane is None else "both slip_speed and plane"
            yield (
                f"it has friction and {has}",
                "give slip_speed=1e-3 for motions in space (and presliding=1e-3 if it sticks), plane=N.z in a plane",
            )
        if self.static is not None and self.plane is None:
            yield "static needs friction with two coefficients", "give the plane of the motion: plane=N.z"
        if self.presliding is not None and self.plane is not None:
            yield "it has both plane and presliding", "leave one out: in a plane friction sticks by itself"
        if self.plane is not None and (not isinstance(self.plane, Vector) or self.plane == 0):
            yield f"the plane of the motion is {self.plane!r}", "give its normal, such as N.z"
        yield from self._friction_number_faults()

    def _friction_number_faults(self) -> Iterator[tuple[str, str]]:
        """Yield (what, remedy) for friction settings whose numbers make no sense."""
        kinetic, static = sm.sympify(self.kinetic), sm.sympify(self.static)
        for part, remedy in (
            ("slip_speed", "give a speed > 0, far below those that matter"),
            ("presliding", "give a length > 0, such as 1e-3"),
        ):
            size = sm.sympify(getattr(self, part))
            if size is not None and size.is_number and not (size.is_finite and size > 0):
                yield f"{part} is {getattr(self, part)}", remedy
        numbers = [each for each in (static, kinetic) if each is not None and each.is_number and each.is_finite]
        if len(numbers) == 2 and numbers[0] < numbers[1]:
            yield f"static {self.static} is less than kinetic {self.kinetic}", "exchange them"
        if kinetic.is_zero:
            yield "kinetic is 0", "leave it out"

    def _place_faults(self, model: Model) -> Iterator[tuple[str, str]]:
        """Yield directions, places and velocities that are not known."""
        try:
            self._tangents()
        except ValueError as error:
            yield str(error), "give a PlaneSurface whose normal is three numbers in one frame, or leave presliding out"
            return
        for point in self.points:
            try:
                self._touch(model, point, sm.S.Zero, lambda _part, value, _unit, _description: sm.sympify(value))
            except (ValueError, TypeError) as error:
                what = f"where {point.name} is against the surface is not known: {' '.join(str(error).split())}"
                yield what, "connect both with the mechanism"

    # --- what it consists of -----------------------------------------------------------------------------------------

    def declare(self, model: Model) -> None:
        """Declare loads, parameters and outputs."""
        made: dict[str, sm.Expr] = {}

        def named(part: str, value: SurfaceSize, unit: str, description: str) -> sm.Expr:
            """Return a parameter of the contact, made once for all points."""
            if part not in made:
                made[part] = self.parameter(model, part, value, unit, description, low=0.0)
            return made[part]

        radius = sm.S.Zero if self.radius == 0 else named("radius", self.radius, "m", "of what touches")
        for k, point in enumerate(self.points, 1):
            touch = self._touch(model, point, radius, named)
            label = f"point{k}" if isinstance(point, NamedFramePoint) else point.name
            name = self.name if len(self.points) == 1 else f"{self.name}.{label}"
            force = self._normal_force(touch, named)
            model.output(f"{name}.gap", touch.gap, "m", description="between what touches and the surface")
            model.output(f"{name}.approach", touch.approach, "m/s", description="speed at which the gap closes")
            model.output(f"{name}.force", force, "N", description="normal force")
            along = Vector(0) if self.kinetic is None else self._friction(model, name, touch, force, named)
            self._load(model, point, touch, (force, along, self._potential(touch, named)))

    def _touch(self, model: Model, point: Point, radius: sm.Expr, named: ParameterNamer) -> _ContactGeometry:
        """Return geometry and velocities by SymPy, of a robot by what expressions name of the motion."""
        if isinstance(model.mechanics, RecordBasedMechanics):
            motion = form_relative_contact_motion(model.mechanics, point, self.surface)
            surface = express_surface_in_ground(model.mechanics, self.surface)
            tangents = [express_direction_in_ground(model.mechanics, self.surface, t) for t in self._tangents()]
            return self._touched(surface, tangents, *motion, radius, named)
        frame, origin = mechanics_source.inertial_frame(model.mechanics), mechanics_source.origin(model.mechanics)
        assert isinstance(frame, ReferenceFrame)
        surface = self.surface
        roots = [
            frame,
            origin,
            point,
            surface.point,
            *surface.frames,
            _body_frame(self.body),
            _body_frame(surface.body),
        ]
        with restore_frames_and_points(roots):
            if isinstance(model.mechanics, Parts) and isinstance(origin, Point):
                origin.set_vel(frame, 0)  # it is fixed in the inertial frame, by its definition
            position = point.pos_from(surface.point).express(frame)
            turning, carried = (
                _body_angular_velocity(body, frame).express(frame) for body in (self.body, surface.body)
            )
            velocity = (point.vel(frame) - surface.point.vel(frame)).express(frame)
            tangents = [_combine(t, surface.frames[0]).express(frame) for t in self._tangents()]
            return self._touched(surface, tangents, position, velocity, turning, carried, radius, named)

    def _tangents(self) -> Sequence[Sequence[sm.Expr]]:
        """Return directions of bristles along the surface, in the axes of its shape; none without them."""
        return () if self.presliding is None else self.surface.tangents()

    def _touched(
        self,
        surface: ContactSurface,
        tangents: Sequence[Vector],
        position: Vector,
        velocity: Vector,
        turning: Vector,
        carried: Vector,
        radius: sm.Expr,
        named: ParameterNamer,
    ) -> _ContactGeometry:
        """Return where a point touches.

        Args:
            surface: Whose directions are vectors.
            tangents: Directions along it of bristles.
            position: Of the point from the surface's, as are all others in the inertial frame.
            velocity: Of the point against the surface's.
            turning: Angular velocity of what touches.
            carried: That of the surface.
            radius: Of the sphere about the point.
            named: Makes parameters.
        """
        at = surface.distance(position, named)
        arm = -at.value / at.length * at.out if isinstance(self.body, RigidBody | str) else Vector(0)
        slip = velocity + turning.cross(arm) - carried.cross(position + arm)
        approach = -(velocity - carried.cross(position)).dot(at.out) / at.length
        return _ContactGeometry(at.value - radius, at.out / at.length, approach, slip, arm, position + arm, tangents)

    def _normal_force(self, touch: _ContactGeometry, named: ParameterNamer) -> sm.Expr:
        """Return F of the law; it continues smoothly beyond the surface while its mode lasts."""
        exponent = self._exponent
        whole = exponent.is_Integer
        unit = {1: "N/m"}.get(int(exponent), f"N/m{int(exponent)}") if whole else "1"
        description = "of the contact" if whole else f"of the contact, in N/m^{self.exponent}"
        force = named("stiffness", self.stiffness, unit, description) * self._power(-touch.gap)
        if self.dissipation != 0:
            d = named(
                "dissipation", self.dissipation, "s/m", "of Hunt and Crossley: the force grows by it times approach"
            )
            force *= sm.Piecewise((1 + d * touch.approach, 1 + d * touch.approach > 0), (0, True))
        return sm.Piecewise((force, touch.gap < 0), (0, True))

    @property
    def _exponent(self) -> sm.Expr:
        """The exponent n, exact."""
        given = sm.sympify(self.exponent)
        return sm.Rational(str(float(given))) if given.is_number else given

    def _power(self, depth: sm.Expr) -> sm.Expr:
        """Return δⁿ, continued smoothly below zero as far as possible."""
        n = self._exponent
        return depth**n if n.is_Integer else depth * no_event(sm.Abs(depth)) ** (n - 1)

    def _potential(self, touch: _ContactGeometry, named: ParameterNamer) -> sm.Expr:
        """Return the energy of the contact in J."""
        n = self._exponent
        power = touch.gap ** (n + 1) * (-1) ** (n + 1) if n.is_Integer else no_event((touch.gap**2) ** ((n + 1) / 2))
        energy = named("stiffness", self.stiffness, "", "") * power / (n + 1)
        return sm.Piecewise((energy, touch.gap < 0), (0, True))

    def _friction(
        self, model: Model, name: str, touch: _ContactGeometry, force: sm.Expr, named: ParameterNamer
    ) -> Vector:
        """Return the force of the friction on what touches, and its outputs."""
        assert self.kinetic is not None  # or there is none
        kinetic = named("kinetic", self.kinetic, "1", "coefficient while it slides")
        if self.plane is None:
            assert self.slip_speed is not None  # or it has faults
            slow = named("slip_speed", self.slip_speed, "m/s", "below which friction is proportional to the slip")
            sliding = touch.slip + touch.approach * touch.normal
            square = sliding.dot(sliding)
            slip = sm.sqrt(square + MIN_SQUARED_LENGTH)
            if self.presliding is None:
                factor = kinetic * force / sm.sqrt(square + slow**2)
                magnitude, effort = factor * slip, -factor * sliding
            else:
                presliding = named("presliding", self.presliding, "m", "by which it gives way before it slides")
                bristles = self._declare_bristles(model, name, touch, presliding, slow)
                magnitude = kinetic * force * bristles.magnitude
                effort = -kinetic * force * _combine(bristles.force_ratio, touch.tangents)
            model.output(f"{name}.friction", magnitude, "N", description="magnitude of the friction")
        else:
            along = touch.normal.cross(self.plane.normalize())
            slip = touch.slip.dot(along)
            ratio = sm.S.One
            if self.static is not None:
                ratio = named("static", self.static, "1", "coefficient at which it breaks away") / kinetic
            sense = sticking_sign(slip, ratio)
            model.output(f"{name}.friction", -kinetic * force * sense, "N", description="friction on what touches")
            sticking = sm.Piecewise((0, sm.Eq(sense**2, 1)), (1, True))
            model.output(f"{name}.sticking", sticking, description="1 while it sticks")
            effort = -kinetic * force * sense * along
        model.output(f"{name}.slip", slip, "m/s", description="speed of sliding")
        return effort

    def _declare_bristles(
        self, model: Model, name: str, touch: _ContactGeometry, presliding: sm.Expr, slip_speed: sm.Expr
    ) -> BristleFriction:
        """Return the bristles of one point, their deflections declared as states."""
        parts = [f"{name}.bristle{k}".removeprefix(f"{self.name}.") for k in (1, 2)]
        slip = sm.Matrix([touch.slip.dot(t) for t in touch.tangents])
        bristles = BristleFriction(sm.Matrix([self.state(part) for part in parts]), slip, presliding, slip_speed)
        for part, rate in zip(parts, bristles.rates(touch.gap < 0), strict=True):
            description = "deflection of the bristles; they slide at 1"
            self.declare_state(model, part, rate, 0.0, "1", description, nominal=1.0)
        return bristles

    def _load(
        self, model: Model, point: Point, touch: _ContactGeometry, acting: tuple[sm.Expr, Vector, sm.Expr]
    ) -> None:
        """Add loads on the body and on the carrier of the surface at one place: normal force, friction, potential."""
        force, along, potential = acting
        whole = force * touch.normal + along
        if isinstance(model.mechanics, RecordBasedMechanics):
            loads = [(point, whole), *([(self.body, touch.arm.cross(along))] if along != 0 else [])]
            if link := find_surface_carrier(model.mechanics, self.surface):
                loads += [(self.surface.point, -whole), (link, -touch.lever.cross(whole))]
            model.add_loads(*(make_link_load(model.mechanics, at, vector) for at, vector in loads))
            return
        loads = [(point, whole), (_body_frame(self.body), touch.arm.cross(along))]
        carrier = self.surface.body
        if carrier is not None:
            loads += [(self.surface.point, -whole), (_body_frame(carrier), -touch.lever.cross(whole))]
        loads = [(place, vector) for place, vector in loads if place is not None and vector != 0]
        model.add_loads(*loads, potential=potential)


def _combine(components: Iterable[sm.Expr], directions: Iterable[Vector]) -> Vector:
    """Return the vector with these components along some directions."""
    return sum((c * e for c, e in zip(components, directions, strict=True)), Vector(0))


def _body_frame(body: RigidBody | Particle | None) -> ReferenceFrame | None:
    """Return the frame of a turning body."""
    return body.frame if isinstance(body, RigidBody) else None


def _body_angular_velocity(body: RigidBody | Particle | None, frame: ReferenceFrame) -> Vector:
    """Return the angular velocity; none for particles and the ground."""
    turning = _body_frame(body)
    return Vector(0) if turning is None else turning.ang_vel_in(frame)
