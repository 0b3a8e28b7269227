"""``LinkRecursionMotion``: all quantities that equations request of a recursion, evaluated on demand in one builder."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import sympy as sm

from mb2fmu.compiler.lowering.recursion.articulated_bodies import ArticulatedBodyDynamics
from mb2fmu.compiler.lowering.recursion.composite_body_recursion import CompositeBodyDynamics
from mb2fmu.compiler.lowering.recursion.link_force_lowering import (
    AppliedLinkForces,
    attachment_position,
    attachment_velocity,
)
from mb2fmu.compiler.lowering.recursion.link_kinematics import LinkKinematicsLowering
from mb2fmu.compiler.lowering.recursion.spatial_algebra import SpatialVector, shift_motion_to_link
from mb2fmu.compiler.lowering.recursion.vector_node_arithmetic import Vector
from mb2fmu.compiler.lowering.sympy_lowering import SympyLowering
from mb2fmu.compiler.program.program_builder import ProgramBuilder
from mb2fmu.mechanics.equations.equations_of_motion import EquationsOfMotion
from mb2fmu.mechanics.equations.link_recursion import (
    ArticulatedBodyStructure,
    LinkFixedPoint,
    LinkRecursion,
    RecursionQuantity,
)


class LinkRecursionMotion:
    """Quantities and accelerations of one recursion.

    Args:
        builder: Takes the nodes.
        walker: Lowers local expressions; is given what the quantities' symbols stand for.
        equations: With a recursion.
    """

    def __init__(self, builder: ProgramBuilder, walker: SympyLowering, equations: EquationsOfMotion) -> None:
        assert equations.recursion is not None
        self._recursion: LinkRecursion = equations.recursion
        self._u_dot: tuple[sm.Symbol, ...] = equations.u_dot
        self._n = len(equations.u)
        self._geared = (
            equations.dynamics.geared_links if isinstance(equations.dynamics, ArticulatedBodyStructure) else ()
        )
        self._walker = walker
        self._k = LinkKinematicsLowering(builder, walker, self._recursion, equations.u)
        self._g = self._k.algebra
        self._loads = AppliedLinkForces(self._k)
        self._bodies: ArticulatedBodyDynamics | None = None
        self._composite: CompositeBodyDynamics | None = None
        self._added: dict[int, SpatialVector] = {0: (self._g.null, self._g.null)}
        for quantity in self._recursion.quantities:
            walker.define(quantity.symbols, quantity.given_expressions, self._answer(quantity))

    # --- accelerations -----------------------------------------------------------------------------------------------

    def accelerations(self) -> list[int]:
        """Return u' of all speeds, by articulated bodies."""
        return self.forward([()])[0]

    def forward(self, forces: Sequence[Sequence[int]]) -> list[list[int]]:
        """Return u' for several sets of added generalized forces (empty: none); inertias are swept once."""
        given = self._walker.lower(self._recursion.generalized_forces)
        zero = self._g.zero
        result = []
        for added in forces:
            rows = [
                self._g.b.add(x, y) for x, y in zip(given or [zero] * self._n, added or [zero] * self._n, strict=True)
            ]
            answer = self._articulated().accelerations(dict(enumerate(rows)))
            result.append([answer[j] for j in range(self._n)])
        return result

    def inverse(self, u_dot: Sequence[int]) -> list[int]:
        """Return the generalized forces that the given u' need in addition."""
        return self._mass().inverse(u_dot, self._walker.lower(self._recursion.generalized_forces))

    def _articulated(self) -> ArticulatedBodyDynamics:
        """Return the articulated-body inertias, built when they are first requested."""
        if self._bodies is None:
            self._bodies = ArticulatedBodyDynamics(self._k, self._loads, self._n, self._geared)
        return self._bodies

    def _mass(self) -> CompositeBodyDynamics:
        """Return the composite-body inertias, built when they are first requested."""
        if self._composite is None:
            self._composite = CompositeBodyDynamics(self._k, self._loads, self._n)
        return self._composite

    def _answer(self, quantity: RecursionQuantity) -> Callable[[Sequence[int]], Sequence[int]]:
        """Return the function that evaluates a quantity; an inverse effort takes u' and forces, others nothing."""
        if quantity.kind == "inverse effort":
            return lambda given: self._mass().inverse(given[: self._n], given[self._n :])
        return lambda _: self._evaluate(quantity)

    # --- quantities --------------------------------------------------------------------------------------------------

    def _evaluate(self, quantity: RecursionQuantity) -> Sequence[int]:  # noqa: PLR0911 (one answer per kind)
        """Evaluate one quantity of the motion; matrices row by row."""
        k, g, number = self._k, self._g, quantity.number
        match quantity.kind:
            case "rotation":
                axes = self._recursion.frames[number].axes
                return [
                    e for row in g.product(k.relative_rotation(0, axes), k.fixed_frame_rotation(number)) for e in row
                ]
            case "angular velocity":
                axes = self._recursion.frames[number].axes
                return g.apply(k.relative_rotation(0, axes), k.omega(axes))
            case "position":
                return attachment_position(k, self._recursion.points[number])
            case "velocity":
                return attachment_velocity(k, self._recursion.points[number])
            case "acceleration":
                return self._acceleration(self._recursion.points[number])
            case "angular acceleration":
                return self._angular_acceleration(self._recursion.frames[number].axes)
            case "pathway":
                return self._loads.pathway_length_and_rate(number)[:2]
            case "kinetic energy":
                return [self._kinetic_energy()]
        return self._along_speeds(quantity)

    def _along_speeds(self, quantity: RecursionQuantity) -> Sequence[int]:
        """Return a quantity of the whole recursion."""
        if quantity.kind == "mass matrix":
            return self._mass().mass_matrix()
        return self._mass().against_gravity() if quantity.kind == "gravity effort" else self._mass().forcing()

    def _acceleration(self, at: LinkFixedPoint) -> Vector:
        """Return a point's acceleration in N: that at u' = 0 without gravity, and what u' adds, m/s²."""
        k, g = self._k, self._g
        axes, place = k.axes(at.link), k.point_position_in_link(at)
        angular, linear = self._motion(at.link)
        total = g.sub(k.acceleration(at.link), k.opposite_gravity(axes))
        total = g.add(total, g.apply(k.rotational_acceleration_matrix(axes), place))
        total = g.add(total, g.add(linear, g.cross(angular, place)))
        return g.apply(k.relative_rotation(0, axes), total)

    def _motion(self, link: int) -> SpatialVector:
        """Return the part of a link's accelerations that u' causes."""
        g, links = self._g, self._recursion.links
        chain = []
        current = link
        while current not in self._added:
            chain.append(current)
            current = links[current].parent
        u_dot = self._walker.lower(self._u_dot)
        for current in reversed(chain):
            joint = self._k.joint(current)
            angular, linear = shift_motion_to_link(g, joint, self._added[links[current].parent])
            for j, column in joint.columns.items():
                angular = g.add(angular, g.scale(u_dot[j], column[0]))
                linear = g.add(linear, g.scale(u_dot[j], column[1]))
            self._added[current] = (angular, linear)
        return self._added[link]

    def _angular_acceleration(self, axes: int) -> Vector:
        """Return the angular acceleration of axes in N, rad/s²."""
        k, g = self._k, self._g
        u_dot = self._walker.lower(self._u_dot)
        total = k.alpha(axes)
        current = axes
        while current:
            frame = self._recursion.frames[current]
            for vector in frame.spin:
                for j, column in vector.columns:
                    turned = k.express_in_axes(vector.frame, k.lower(column), axes)
                    total = g.add(total, g.scale(u_dot[j], turned))
            current = self._recursion.frames[frame.reference].axes
        return g.apply(k.relative_rotation(0, axes), total)

    def _kinetic_energy(self) -> int:
        """Return the sum over all bodies of m v·v/2 + w·I w/2, in the links' axes."""
        k, g, b = self._k, self._g, self._g.b
        total = g.zero
        half = b.constant(0.5)
        for body in self._recursion.bodies:
            at = body.masscenter
            omega = k.omega(k.axes(at.link))
            v = g.add(k.velocity(at.link), g.cross(omega, k.point_position_in_link(at)))
            mass = k.walker.lower([body.mass])[0]
            total = b.add(total, b.mul(b.mul(half, mass), g.dot(v, v)))
            if body.inertia is not None:
                w = g.apply_transposed(k.fixed_frame_rotation(body.frame), omega)
                entries = k.walker.lower(body.inertia)
                momentum = [g.dot(entries[3 * i : 3 * i + 3], w) for i in range(3)]
                total = b.add(total, b.mul(half, g.dot(w, momentum)))
        return total
