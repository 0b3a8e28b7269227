"""Links that bend in the independent import of a robot: all their nodes, with the full mass matrix, in numbers.

Nothing is used of the rigid body and the particles that stand for them elsewhere. Of node p in the body's frame, with
modal coordinates η,

    r_p = X_p + Σ_k φ_kp η_k + ½ Σ_kl S_klp η_k η_l        arms of its section: a_pi = e_i + Σ_k (ψ_kp × e_i) η_k

with S arms have ½ Σ_kl ψ_kp × (ψ_lp × e_i) η_k η_l, too, of the pairs k, l that ``second_order_pairs`` says. And
with Jacobians J_p and A_pi of both, accelerations b at u' = 0 and the second moments Σ_p of sections,

    M = Σ_pq m_pq J_pᵀ J_q + Σ_p Σ_ij Σ_p,ij A_piᵀ A_pj,    f = −Σ_pq m_pq J_pᵀ (b_q − g) − Σ_p Σ_ij Σ_p,ij A_piᵀ b_pj

and −(K η + C η') in the rows of the modal speeds. A section is turned by the angles Σ ψ_k η_k about x, y and z, one
after the other.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mb2fmu.validation.independent_import.independent_urdf_equations import (
    Array,
    LinkModalState,
    LinkMotion,
    Pose,
    RobotTreeJoint,
    rotation_about_axis,
)


@dataclass(frozen=True, slots=True, eq=False)
class NodalFlexibleLink:
    """A link that bends, as its arrays say.

    Attributes:
        arrays: ``nodes``, ``mass``, ``modes``, ``rotations``, ``rotational_inertia``, ``second_order`` in full shapes;
            ``second_order_pairs``, shape (m, m).
        pose: The body's frame in the link's frame.
        nodes: Joint that the link carries → number of its node.
    """

    arrays: Mapping[str, Any]
    pose: Pose
    nodes: Mapping[str, int]

    @property
    def mode_count(self) -> int:
        """Number of modes."""
        return len(self.arrays["modes"])

    def move_section(
        self, joint: RobotTreeJoint, link: LinkMotion, modal: LinkModalState, first: int
    ) -> tuple[LinkMotion, RobotTreeJoint]:
        """Return the motion of the section that a joint hangs on, and the joint with its place in it.

        Args:
            joint: That the link carries.
            link: Motion of the link's frame.
            modal: Of the link.
            first: Column of its first modal speed.
        """
        node, (R, p) = self.nodes[joint.name], self.pose
        m = _move_rigidly(link, R, p)
        place, fields, bias = self._node_fields(modal)
        r, v_rel = m.R @ place[node], m.R @ (fields[:, node].T @ modal.rate)
        columns = slice(first, first + self.mode_count)
        Jv = m.Jv + np.cross(m.Jw.T, r).T
        Jv[:, columns] += m.R @ fields[:, node].T
        psi = self.arrays["rotations"][:, node]
        rotation, axes, rate = _compute_section_rotation(psi.T @ modal.eta, psi.T @ modal.rate)
        w_rel = m.R @ (axes @ (psi.T @ modal.rate))
        Jw = m.Jw.copy()
        Jw[:, columns] += m.R @ axes @ psi.T
        a = m.a + np.cross(m.alpha, r) + np.cross(m.w, np.cross(m.w, r)) + 2 * np.cross(m.w, v_rel) + m.R @ bias[node]
        alpha = m.alpha + np.cross(m.w, w_rel) + m.R @ rate
        v = m.v + np.cross(m.w, r) + v_rel
        section = LinkMotion(m.R @ rotation, m.p + r, m.w + w_rel, v, alpha, a, Jw, Jv)
        return section, replace(joint, R=R.T @ joint.R, p=R.T @ (joint.p - p) - self.arrays["nodes"][node])

    def add_equations(
        self, link: LinkMotion, modal: LinkModalState, first: int, gravity: Array, terms: tuple[Array, Array]
    ) -> None:
        """Add a link's share of M and f, in place.

        Args:
            link: Motion of the link's frame.
            modal: Of the link.
            first: Column of its first modal speed.
            gravity: m/s².
            terms: M and f.
        """
        M, f = terms
        m, columns = _move_rigidly(link, *self.pose), slice(first, first + self.mode_count)
        place, fields, bias = self._node_fields(modal)
        mass = self.arrays["mass"]
        J, b = self._form_vector_motions(m, place, fields, bias, modal, columns)
        J = J + m.Jv
        weighted = (mass @ J.reshape(len(J), -1)).reshape(J.shape)
        M += np.einsum("nia,nib->ab", J, weighted, optimize=True)
        f -= np.einsum("nia,ni->a", weighted, b + m.a - gravity)
        f[columns] -= modal.stiffness @ modal.eta + modal.damping @ modal.rate
        moments = self.arrays["rotational_inertia"]
        if moments is None:
            return
        seconds = np.trace(moments, axis1=1, axis2=2)[:, None, None] * np.eye(3) / 2.0 - moments
        arms = [self._form_vector_motions(m, *self._arm_fields(axis, modal), modal, columns) for axis in np.eye(3)]
        for i, j in np.ndindex(3, 3):
            weighted = seconds[:, i, j, None, None] * arms[i][0]
            M += np.einsum("nia,nib->ab", weighted, arms[j][0], optimize=True)
            f -= np.einsum("nia,ni->a", weighted, arms[j][1])

    def _node_fields(self, modal: LinkModalState) -> tuple[Array, Array, Array]:
        """Return positions (n, 3), mode shapes (m, n, 3) and accelerations at η'' = 0, (n, 3), in the body's frame."""
        X, phi, S = (self.arrays[name] for name in ("nodes", "modes", "second_order"))
        place, fields, bias = X + np.einsum("knj,k->nj", phi, modal.eta), phi, np.zeros_like(X)
        if S is not None:
            place = place + np.einsum("klnj,k,l->nj", S, modal.eta, modal.eta) / 2.0
            fields = fields + np.einsum("klnj,l->knj", S, modal.eta)
            bias = np.einsum("klnj,k,l->nj", S, modal.rate, modal.rate)
        return place, fields, bias

    def _arm_fields(self, axis: Array, modal: LinkModalState) -> tuple[Array, Array, Array]:
        """Return arms of sections (n, 3), what modes do to them (m, n, 3), and accelerations at η'' = 0, (n, 3)."""
        psi = self.arrays["rotations"]
        fields = np.cross(psi, axis)
        arm, bias = axis + np.einsum("knj,k->nj", fields, modal.eta), np.zeros(psi.shape[1:])
        if self.arrays["second_order"] is None:
            return arm, fields, bias
        # ψ_k (ψ_l · e) - e (ψ_k · ψ_l), of the pairs that count
        dots = np.einsum("knj,lnj->kln", psi, psi)
        pairs = 0.5 * (np.einsum("knj,ln->klnj", psi, psi @ axis) + np.einsum("lnj,kn->klnj", psi, psi @ axis))
        pairs -= np.multiply.outer(dots, axis)
        pairs[~self.arrays["second_order_pairs"]] = 0.0
        arm = arm + np.einsum("klnj,k,l->nj", pairs, modal.eta, modal.eta) / 2.0
        fields = fields + np.einsum("klnj,l->knj", pairs, modal.eta)
        return arm, fields, np.einsum("klnj,k,l->nj", pairs, modal.rate, modal.rate)

    def _form_vector_motions(
        self, m: LinkMotion, place: Array, fields: Array, bias: Array, modal: LinkModalState, columns: slice
    ) -> tuple[Array, Array]:
        """Return Jacobians (n, 3, N) and accelerations at u' = 0, (n, 3), of vectors from the body's origin."""
        r, v_rel = place @ m.R.T, np.einsum("knj,k->nj", fields, modal.rate) @ m.R.T
        J = np.cross(m.Jw.T[None, :, :], r[:, None, :]).transpose(0, 2, 1)
        J[:, :, columns] += np.einsum("ij,knj->nik", m.R, fields)
        b = np.cross(m.alpha, r) + np.cross(m.w, np.cross(m.w, r)) + 2.0 * np.cross(m.w, v_rel) + bias @ m.R.T
        return J, b


def _move_rigidly(m: LinkMotion, R: Array, p: Array) -> LinkMotion:
    """Return the motion of a frame that is fixed in a link."""
    r = m.R @ p
    a = m.a + np.cross(m.alpha, r) + np.cross(m.w, np.cross(m.w, r))
    return LinkMotion(m.R @ R, m.p + r, m.w, m.v + np.cross(m.w, r), m.alpha, a, m.Jw, m.Jv + np.cross(m.Jw.T, r).T)


def _compute_section_rotation(angles: Array, rates: Array) -> tuple[Array, Array, Array]:
    """Return a section's rotation, the axes that its angles turn about, and its angular acceleration at η'' = 0."""
    x, y, z = np.eye(3)
    first, second = rotation_about_axis(x, angles[0]), rotation_about_axis(y, angles[1])
    axes = np.column_stack([x, first @ y, first @ second @ z])
    before = np.cumsum(axes * rates, axis=1)  # angular velocity of the frame behind each axis
    rate = rates[1] * np.cross(before[:, 0], axes[:, 1]) + rates[2] * np.cross(before[:, 1], axes[:, 2])
    return first @ second @ rotation_about_axis(z, angles[2]), axes, rate
