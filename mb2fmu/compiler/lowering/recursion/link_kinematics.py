"""Kinematics of links as nodes: each quantity is evaluated once, in the axes of its own frame.

Angular velocities and accelerations belong to axes (frames that never turn against each other), not to links. With
Ω = α̂0 + ω̂² the acceleration of a point fixed at r is a0 + Ω r: no velocity of any origin is needed for the dynamics.
Index 0 says: at u' = 0. Nothing here recurses: chains are followed by loops, however long they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import sympy as sm

from mb2fmu.compiler.lowering.recursion.vector_node_arithmetic import Matrix, NodeVectorArithmetic, Vector
from mb2fmu.compiler.lowering.sympy_lowering import SympyLowering
from mb2fmu.compiler.program.program_builder import ProgramBuilder
from mb2fmu.mechanics.equations.link_recursion import LinkFixedPoint, LinkRecursion, SpeedLinearVector


@dataclass(frozen=True, slots=True)
class LinkJointMotion:
    """Motion of a link against its parent, in its own axes.

    Attributes:
        rotation: Components in the link's axes → components in the parent's.
        position: Of the origin from the parent's, in the parent's axes.
        columns: Speed → (angular velocity, velocity of the origin) per unit of the speed.
        inherits_rotation: The parent's angular velocity is added.
        moves: The velocity that the parent gives to the origin is added.
    """

    rotation: Matrix
    position: Vector
    columns: dict[int, tuple[Vector, Vector]]
    inherits_rotation: bool
    moves: bool


class LinkKinematicsLowering:
    """Evaluates one recursion in one builder.

    Args:
        builder: Takes the nodes.
        walker: Lowers local expressions.
        recursion: The relations.
        u: Symbols of the speeds.
    """

    def __init__(
        self, builder: ProgramBuilder, walker: SympyLowering, recursion: LinkRecursion, u: Sequence[sm.Symbol]
    ) -> None:
        self.b = builder
        self.walker = walker
        self.recursion = recursion
        self.algebra = NodeVectorArithmetic(builder)
        self._u = u
        self._speeds: dict[int, int] = {}
        self._fixed: dict[int, Matrix] = {}
        self._relative: dict[tuple[int, int], Matrix] = {}
        self._omega: dict[int, Vector] = {0: self.algebra.null}
        self._alpha: dict[int, Vector] = {0: self.algebra.null}
        self._squares: dict[int, Matrix] = {}
        self._joints: dict[int, LinkJointMotion] = {}
        self._shifts: dict[int, Vector] = {0: self.algebra.null}
        self._velocity: dict[int, Vector] = {0: self.algebra.null}
        self._acceleration: dict[int, Vector] = {}
        self._position: dict[int, Vector] = {0: self.algebra.null}

    # --- local expressions -------------------------------------------------------------------------------------------

    def lower(self, components: Iterable[sm.Expr]) -> Vector:
        """Return three components as they are written."""
        x, y, z = self.walker.lower(components)
        return (x, y, z)

    def speed(self, j: int) -> int:
        """Return the node of u_j."""
        if j not in self._speeds:
            self._speeds[j] = self.walker.lower([self._u[j]])[0]
        return self._speeds[j]

    def in_axes(self, frame: int, components: Vector) -> Vector:
        """Return components in a frame as components in its axes."""
        return self.algebra.apply(self.fixed_frame_rotation(frame), components)

    def express_in_axes(self, frame: int, components: Vector, axes: int) -> Vector:
        """Return components in a frame as components in other axes."""
        own = self.in_axes(frame, components)
        if self.algebra.is_zero_vector(own):
            return own
        return self.algebra.apply_transposed(self.relative_rotation(self.recursion.frames[frame].axes, axes), own)

    def evaluate_linear_vector(self, vector: SpeedLinearVector) -> Vector:
        """Return the sum of columns u + offset, in the vector's frame."""
        g = self.algebra
        total = self.lower(vector.offset)
        for j, column in vector.columns:
            total = g.add(total, g.scale(self.speed(j), self.lower(column)))
        return total

    # --- axes --------------------------------------------------------------------------------------------------------

    def fixed_frame_rotation(self, frame: int) -> Matrix:
        """Return components in a frame as components in its axes; parameters only."""
        frames, g = self.recursion.frames, self.algebra
        path = []
        current = frame
        while current not in self._fixed and frames[current].axes != current:
            path.append(current)
            current = frames[current].parent
        matrix = self._fixed.get(current, g.identity)
        for k in reversed(path):
            matrix = self._fixed[k] = g.product(matrix, self._local(k))
        return matrix

    def _local(self, frame: int) -> Matrix:
        """Return a frame's rotation matrix to its reference; the shared identity where it does not turn."""
        entries = self.walker.lower(self.recursion.frames[frame].rotation)
        matrix = (self._row(entries, 0), self._row(entries, 1), self._row(entries, 2))
        return self.algebra.identity if matrix == self.algebra.identity else matrix

    def _row(self, entries: Sequence[int], i: int) -> Vector:
        """Return row i of a 3 × 3 matrix whose nine entries are given row by row."""
        return (entries[3 * i], entries[3 * i + 1], entries[3 * i + 2])

    def relative_rotation(self, first: int, last: int) -> Matrix:
        """Return components in the axes ``last`` as components in the axes ``first``."""
        if first == last:
            return self.algebra.identity
        if (first, last) not in self._relative:
            above = set(self._upwards(first))
            top = next(axes for axes in self._upwards(last) if axes in above)
            down = self._downwards(top, last)
            if top != first:
                down = self.algebra.product(self.algebra.transpose(self._downwards(top, first)), down)
            self._relative[first, last] = down
        return self._relative[first, last]

    def _upwards(self, axes: int) -> list[int]:
        """Return the chain of axes from `axes` to the inertial frame, both included."""
        chain = [axes]
        while chain[-1] != 0:
            chain.append(self._before(chain[-1]))
        return chain

    def _before(self, axes: int) -> int:
        """Return the axes that some axes are oriented in."""
        return self.recursion.frames[self.recursion.frames[axes].parent].axes

    def _downwards(self, top: int, last: int) -> Matrix:
        """Multiply the rotations from axes ``top`` to axes ``last`` below them, and keep each product."""
        path = []
        current = last
        while current != top and (top, current) not in self._relative:
            path.append(current)
            current = self._before(current)
        matrix = self._relative[top, current] if current != top else self.algebra.identity
        for axes in reversed(path):
            parent = self.recursion.frames[axes].parent
            step = self.algebra.product(self.fixed_frame_rotation(parent), self._local(axes))
            matrix = self._relative[top, axes] = self.algebra.product(matrix, step)
        return matrix

    # --- angular motion ----------------------------------------------------------------------------------------------

    def omega(self, axes: int) -> Vector:
        """Return the angular velocity in N, rad/s, in its own axes."""
        for current in self._missing(axes, self._omega):
            total = self._of_reference(current, self._omega)
            for vector in self.recursion.frames[current].spin:
                total = self.algebra.add(
                    total, self.express_in_axes(vector.frame, self.evaluate_linear_vector(vector), current)
                )
            self._omega[current] = total
        return self._omega[axes]

    def alpha(self, axes: int) -> Vector:
        """Return the angular acceleration at u' = 0, rad/s², in its own axes."""
        g = self.algebra
        for current in self._missing(axes, self._alpha):
            total = self._of_reference(current, self._alpha)
            for vector in self.recursion.frames[current].spin:
                total = g.add(total, self.express_in_axes(vector.frame, self._seen_in_inertial_frame(vector), current))
            self._alpha[current] = total
        return self._alpha[axes]

    def _seen_in_inertial_frame(self, vector: SpeedLinearVector) -> Vector:
        """Return the rate in N at u' = 0 of a vector, in the components of its frame: c' + ω × c."""
        g = self.algebra
        frame = self.recursion.frames[vector.frame]
        omega = g.apply_transposed(self.fixed_frame_rotation(vector.frame), self.omega(frame.axes))
        return g.add(self.lower(vector.bias), g.cross(omega, self.evaluate_linear_vector(vector)))

    def _missing(self, axes: int, known: dict[int, Vector]) -> list[int]:
        """Return the axes between known ones and ``axes``, nearest to the known ones first."""
        chain = []
        current = axes
        while current not in known:
            chain.append(current)
            current = self._reference(current)
        return chain[::-1]

    def _reference(self, axes: int) -> int:
        """Return the axes in which the reference frame of `axes` is expressed."""
        return self.recursion.frames[self.recursion.frames[axes].reference].axes

    def _of_reference(self, axes: int, known: dict[int, Vector]) -> Vector:
        """Return the reference frame's vector in components along `axes`; a zero vector is not turned."""
        base = known[self._reference(axes)]
        if self.algebra.is_zero_vector(base):
            return base
        return self.algebra.apply_transposed(self.relative_rotation(self._reference(axes), axes), base)

    def rotational_acceleration_matrix(self, axes: int) -> Matrix:
        """Return Ω = α̂0 + ω̂², in its own axes."""
        if axes not in self._squares:
            b = self.b
            (wx, wy, wz), (x, y, z) = self.omega(axes), self.alpha(axes)
            xx, yy, zz = b.mul(wx, wx), b.mul(wy, wy), b.mul(wz, wz)
            xy, xz, yz = b.mul(wx, wy), b.mul(wx, wz), b.mul(wy, wz)
            self._squares[axes] = (
                (b.neg(b.add(yy, zz)), b.sub(xy, z), b.add(xz, y)),
                (b.add(xy, z), b.neg(b.add(xx, zz)), b.sub(yz, x)),
                (b.sub(xz, y), b.add(yz, x), b.neg(b.add(xx, yy))),
            )
        return self._squares[axes]

    # --- links -------------------------------------------------------------------------------------------------------

    def axes(self, link: int) -> int:
        """Return the axes of a link."""
        return self.recursion.links[link].frame

    def joint(self, link: int) -> LinkJointMotion:
        """Return the motion of a link against its parent."""
        if link not in self._joints:
            for current in self._unknown(link, self._joints):
                self._joints[current] = self._joint(current)
        return self._joints[link]

    def _unknown(
        self, link: int, known: dict[int, object] | dict[int, LinkJointMotion] | dict[int, Vector]
    ) -> list[int]:
        """Return the links from the first whose parent is known to this one."""
        chain = []
        current = link
        while current > 0 and current not in known:
            chain.append(current)
            current = self.recursion.links[current].parent
        return chain[::-1]

    def _joint(self, link: int) -> LinkJointMotion:
        """Lower rotation, displacement and the speeds' columns of the joint that carries a link."""
        record, g = self.recursion.links[link], self.algebra
        base, own = self.axes(record.parent), record.frame
        rotation = self.relative_rotation(base, own)
        position = self._shifts[record.parent]
        for displacement in record.offset:
            components = self.lower(displacement.components)
            position = g.add(position, self.express_in_axes(displacement.frame, components, base))
        spins = self.recursion.list_angular_velocity_terms(link)[1]
        columns = self._joint_columns(link, own)
        joint = LinkJointMotion(rotation, position, columns, spins, record.velocity is None)
        return self._moved_along_axis(link, joint)

    def joint_columns_in_parent(self, link: int) -> dict[int, tuple[Vector, Vector]]:
        """Return the columns of a link's joint in the axes of its parent."""
        return self._joint_columns(link, self.axes(self.recursion.links[link].parent))

    def _joint_columns(self, link: int, axes: int) -> dict[int, tuple[Vector, Vector]]:
        """Return speed → (angular velocity, velocity of the origin) of a link against its parent, in some axes."""
        record, g = self.recursion.links[link], self.algebra
        columns: dict[int, tuple[Vector, Vector]] = {}
        for vector in self.recursion.list_angular_velocity_terms(link)[0]:
            for j, column in vector.columns:
                angular, linear = columns.get(j, (g.null, g.null))
                columns[j] = (g.add(angular, self.express_in_axes(vector.frame, self.lower(column), axes)), linear)
        velocity = record.velocity
        if velocity is None:
            velocity = tuple(d.rate for d in record.offset if d.rate is not None)
        for vector in velocity:
            for j, column in vector.columns:
                angular, linear = columns.get(j, (g.null, g.null))
                columns[j] = (angular, g.add(linear, self.express_in_axes(vector.frame, self.lower(column), axes)))
        return columns

    def _moved_along_axis(self, link: int, joint: LinkJointMotion) -> LinkJointMotion:
        """Move a hinge's origin along its axis to where the offset vanishes; points of the link know the shift."""
        g = self.algebra
        about = g.as_coordinate_axis_rotation(joint.rotation)
        self._shifts[link] = g.null
        slides = any(not g.is_zero_vector(linear) for _, linear in joint.columns.values())
        if about is None or slides or not joint.moves or not g.depends_on_parameters_only(joint.position):
            return joint
        along = [g.zero] * 3
        along[about.k] = joint.position[about.k]
        shift = (along[0], along[1], along[2])
        self._shifts[link] = shift
        return LinkJointMotion(
            joint.rotation, g.sub(joint.position, shift), joint.columns, joint.inherits_rotation, joint.moves
        )

    def point_position_in_link(self, attachment: LinkFixedPoint) -> Vector:
        """Return a point fixed in a link, from the link's origin, in its axes."""
        self.joint(attachment.link) if attachment.link else None
        total = self._shifts[attachment.link]
        for displacement in attachment.offset:
            total = self.algebra.add(total, self.in_axes(displacement.frame, self.lower(displacement.components)))
        return total

    def _slip(self, link: int) -> tuple[Vector, Vector]:
        """Return rate of the displacement from the parent's origin, and its rate at u' = 0, in the parent's axes."""
        g, record = self.algebra, self.recursion.links[link]
        base = self.axes(record.parent)
        rate = second = g.null
        for displacement in record.offset:
            if displacement.rate is not None:
                frame = displacement.rate.frame
                rate = g.add(rate, self.express_in_axes(frame, self.evaluate_linear_vector(displacement.rate), base))
                second = g.add(second, self.express_in_axes(frame, self.lower(displacement.rate.bias), base))
        return rate, second

    def velocity(self, link: int) -> Vector:
        """Return the velocity of a link's origin in N, m/s, in its axes."""
        g = self.algebra
        for current in self._unknown(link, self._velocity):
            record, joint = self.recursion.links[current], self.joint(current)
            if record.velocity is not None:
                total = g.null
                for vector in record.velocity:
                    total = g.add(
                        total, self.express_in_axes(vector.frame, self.evaluate_linear_vector(vector), record.frame)
                    )
            else:
                moved = g.cross(self.omega(self.axes(record.parent)), joint.position)
                total = g.add(g.add(self._velocity[record.parent], moved), self._slip(current)[0])
                total = g.apply_transposed(joint.rotation, total)
            self._velocity[current] = total
        return self._velocity[link]

    def acceleration(self, link: int) -> Vector:
        """Return the acceleration of a link's origin in N at u' = 0, less that of gravity, m/s², in its axes."""
        g = self.algebra
        if 0 not in self._acceleration:
            self._acceleration[0] = self.opposite_gravity(0)
        for current in self._unknown(link, self._acceleration):
            record, joint = self.recursion.links[current], self.joint(current)
            if record.velocity is not None:
                total = self.opposite_gravity(record.frame)
                for vector in record.velocity:
                    total = g.add(
                        total, self.express_in_axes(vector.frame, self._seen_in_inertial_frame(vector), record.frame)
                    )
            else:
                base = self.axes(record.parent)
                total = g.add(
                    self._acceleration[record.parent],
                    g.apply(self.rotational_acceleration_matrix(base), joint.position),
                )
                rate, second = self._slip(current)
                if not g.is_zero_vector(rate):
                    twice = g.scale(self.b.constant(2.0), g.cross(self.omega(base), rate))
                    total = g.add(total, g.add(twice, second))
                total = g.apply_transposed(joint.rotation, total)
            self._acceleration[current] = total
        return self._acceleration[link]

    def opposite_gravity(self, axes: int) -> Vector:
        """Return the opposite of gravity's acceleration, in some axes."""
        g = self.algebra
        if self.recursion.gravity is None:
            return g.null
        return self.express_in_axes(0, g.neg(self.lower(self.recursion.gravity)), axes)

    def position(self, link: int) -> Vector:
        """Return the position of a link's origin from O, m, in N."""
        g = self.algebra
        for current in self._unknown(link, self._position):
            parent = self.recursion.links[current].parent
            moved = g.apply(self.relative_rotation(0, self.axes(parent)), self.joint(current).position)
            self._position[current] = g.add(self._position[parent], moved)
        return self._position[link]
