"""Forces, motions and inertias of six components (angular before linear) carried from link to link.

A motion is (α, a) of a link's origin, a force (n, f): torque about the origin and force. An inertia takes a motion to
a force: n = J α + H a, f = Hᵀ α + M a.
"""

from __future__ import annotations

from dataclasses import dataclass

from mb2fmu.compiler.lowering.recursion.link_kinematics import LinkJointMotion
from mb2fmu.compiler.lowering.recursion.regrouped_link_inertias import RigidInertia
from mb2fmu.compiler.lowering.recursion.vector_node_arithmetic import Matrix, NodeVectorArithmetic, Vector

SpatialVector = tuple[Vector, Vector]


@dataclass(frozen=True, slots=True)
class SpatialInertia:
    """Symmetric 6 × 6: [[J, H], [Hᵀ, M]]."""

    J: Matrix
    H: Matrix
    M: Matrix

    def plus(self, other: SpatialInertia, g: NodeVectorArithmetic) -> SpatialInertia:
        """Return the sum of both inertias."""
        return SpatialInertia(
            g.add_matrices(self.J, other.J), g.add_matrices(self.H, other.H), g.add_matrices(self.M, other.M)
        )

    def rows(self, g: NodeVectorArithmetic) -> list[list[int]]:
        """Return all 6 × 6 entries."""
        upper = [[*self.J[i], *self.H[i]] for i in range(3)]
        lower = [[*row, *self.M[i]] for i, row in enumerate(g.transpose(self.H))]
        return upper + lower


def form_link_spatial_inertia(g: NodeVectorArithmetic, rigid: RigidInertia) -> SpatialInertia:
    """Return the inertia of a link by itself: H = ĥ, M = m 1."""
    x, y, z = rigid.first
    neg, zero, m = g.b.neg, g.zero, rigid.mass
    H = ((zero, neg(z), y), (z, zero, neg(x)), (neg(y), x, zero))
    return SpatialInertia(rigid.rotational_inertia_matrix(g), H, ((m, zero, zero), (zero, m, zero), (zero, zero, m)))


def form_spatial_inertia_from_matrix(rows: list[list[int]]) -> SpatialInertia:
    """Return the inertia with some entries."""

    def block(i: int, j: int) -> Matrix:
        x, y, z = ((row[j], row[j + 1], row[j + 2]) for row in rows[i : i + 3])
        return (x, y, z)

    return SpatialInertia(block(0, 0), block(0, 3), block(3, 3))


def shift_force_to_parent(g: NodeVectorArithmetic, joint: LinkJointMotion, force: SpatialVector) -> SpatialVector:
    """Return a force on the link as a force on its parent, about the parent's origin."""
    torque = g.apply(joint.rotation, force[0]) if joint.inherits_rotation else g.null
    if not joint.moves:
        return torque, g.null
    push = g.apply(joint.rotation, force[1])
    return g.add(torque, g.cross(joint.position, push)), push


def shift_motion_to_link(g: NodeVectorArithmetic, joint: LinkJointMotion, motion: SpatialVector) -> SpatialVector:
    """Return the part of the link's motion that the parent's motion causes."""
    angular = g.apply_transposed(joint.rotation, motion[0]) if joint.inherits_rotation else g.null
    if not joint.moves:
        return angular, g.null
    carried = g.add(motion[1], g.cross(motion[0], joint.position))
    return angular, g.apply_transposed(joint.rotation, carried)


def shift_inertia_to_parent(g: NodeVectorArithmetic, joint: LinkJointMotion, inertia: SpatialInertia) -> SpatialInertia:
    """Return a link's inertia as felt at its parent's origin: turned, then moved by r.

    H_r = H + r̂ M, and J_r = J − H r̂ − (H_r r̂)ᵀ, of which each entry is taken where it is shorter.
    """
    null = (g.null, g.null, g.null)
    C = joint.rotation
    J = g.rotate_symmetric(C, inertia.J) if joint.inherits_rotation else null
    H = g.rotate(C, inertia.H) if joint.inherits_rotation and joint.moves else null
    M = g.rotate_symmetric(C, inertia.M) if joint.moves else null
    r = joint.position
    if g.is_zero_vector(r):
        return SpatialInertia(J, H, M)
    moved = g.add_matrices(H, g.cross_left(r, M))
    return SpatialInertia(_shift_rotational_inertia(g, r, J, H, moved), moved, M)


def _shift_rotational_inertia(g: NodeVectorArithmetic, r: Vector, J: Matrix, H: Matrix, moved: Matrix) -> Matrix:
    """J − H r̂ − (H_r r̂)ᵀ; a row of A r̂ is the row of A crossed with r."""
    b = g.b
    entries: dict[tuple[int, int], int] = {}

    def crossed(row: Vector, j: int) -> int:
        k, l = (j + 1) % 3, (j + 2) % 3
        return b.sub(b.mul(row[k], r[l]), b.mul(row[l], r[k]))

    for i in range(3):
        for j in range(i, 3):
            if i == j:
                both = g.add(H[i], moved[i])
                entries[i, i] = b.sub(J[i][i], crossed(both, i))
                continue
            first, second = (
                (j, i) if g.is_zero_vector(H[j]) else (i, j)
            )  # a hinge leaves a row of H empty: use that one
            change = b.add(crossed(H[first], second), crossed(moved[second], first))
            entries[i, j] = entries[j, i] = b.sub(J[i][j], change)
    x, y, z = ((entries[i, 0], entries[i, 1], entries[i, 2]) for i in range(3))
    return (x, y, z)
