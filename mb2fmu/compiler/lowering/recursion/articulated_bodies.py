"""Articulated bodies: u' in three sweeps over the links; several sets of generalized forces share the inertias.

Outwards: velocities and the accelerations at u' = 0. Inwards: inertias and forces as felt through the joints below,
each direction of a joint eliminated by itself. Outwards: what the joints' accelerations add. Because the second sweep
starts from the accelerations at u' = 0, velocities enter forces only, once per link.

Source: R. Featherstone, Rigid Body Dynamics Algorithms, Springer 2008, ch. 7.2.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mb2fmu.compiler.lowering.recursion.composite_bodies import CompositeBodies
from mb2fmu.compiler.lowering.recursion.joint_spaces import JointMotionSubspace, MotionDirection
from mb2fmu.compiler.lowering.recursion.link_forces import AppliedLinkForces, link_inertia_force
from mb2fmu.compiler.lowering.recursion.link_inertia import regroup_inertias
from mb2fmu.compiler.lowering.recursion.link_kinematics import LinkKinematics
from mb2fmu.compiler.lowering.recursion.spatial_algebra import (
    SpatialInertia,
    SpatialVector,
    form_link_spatial_inertia,
    make_spatial_inertia,
    shift_force_to_parent,
    shift_inertia_to_parent,
    shift_motion_to_link,
)


@dataclass(frozen=True, slots=True)
class EliminatedDirection:
    """One eliminated direction of a joint.

    Attributes:
        direction: Which.
        inverse: One over the inertia felt along it.
        ratios: Inertia between it and every component, over that along it.
    """

    direction: MotionDirection
    inverse: int
    ratios: tuple[int, ...]


class ArticulatedBodies:
    """Forward and inverse dynamics of a tree whose speeds move one link each.

    Args:
        kinematics: Of the links.
        loads: What is applied.
        n: Number of speeds.
        geared: Links that only add inertia and force along a joint.
    """

    def __init__(
        self, kinematics: LinkKinematics, loads: AppliedLinkForces, n: int, geared: Sequence[int] = ()
    ) -> None:
        self._k = kinematics
        self._g = kinematics.algebra
        self._loads = loads
        links = kinematics.recursion.links
        self._links = [i for i, link in enumerate(links) if link.massive and i > 0 and i not in geared]
        self._inertia, self._force = _project_geared_links(kinematics, loads, n, geared)
        self._spaces = {i: self._space(i, links[i].name) for i in self._links}
        self._rigid = regroup_inertias(kinematics, self._links)
        self._bias: dict[int, SpatialVector] = {}
        self._eliminated: dict[int, list[EliminatedDirection]] = {}

    def _space(self, link: int, name: str) -> JointMotionSubspace:
        """Return the joint's motion subspace, geared where a rotor's inertia acts on one of its speeds."""
        joint = self._k.joint(link)
        return JointMotionSubspace(self._g, joint, name, geared=any(j in self._inertia for j in joint.columns))

    def accelerations(self, forces: Mapping[int, int]) -> dict[int, int]:
        """Return speed → u', for generalized forces that are added in the rows of some speeds."""
        self._eliminate()
        g, k = self._g, self._k
        through = self._forces_inwards(forces)
        motions: dict[int, SpatialVector] = {0: (g.null, g.null)}
        result: dict[int, int] = {}
        for link in self._links:
            parent = k.recursion.links[link].parent
            carried = shift_motion_to_link(g, k.joint(link), motions[parent])
            motion = [*carried[0], *carried[1]]
            w = [self._along(one, force, motion) for one, force in zip(*through[link], strict=True)]
            motions[link] = ((motion[0], motion[1], motion[2]), (motion[3], motion[4], motion[5]))
            space = self._spaces[link]
            result |= dict(zip(space.speeds, space.speeds_from(w), strict=True))
        return result

    def _along(self, one: EliminatedDirection, force: int, motion: list[int]) -> int:
        """Return the acceleration along a direction; ``motion`` grows by it."""
        g, b = self._g, self._g.b
        unit = one.direction.unit
        if unit is None:
            w = b.sub(b.mul(one.inverse, force), g.dot(one.ratios, motion))
            for i, component in enumerate(one.direction.components):
                motion[i] = b.add(motion[i], b.mul(component, w))
            return w
        others = [i for i in range(6) if i != unit]
        total = b.sub(b.mul(one.inverse, force), g.dot([one.ratios[i] for i in others], [motion[i] for i in others]))
        w = b.sub(total, motion[unit])
        motion[unit] = total
        return w

    def _forces_inwards(self, forces: Mapping[int, int]) -> dict[int, tuple[list[EliminatedDirection], list[int]]]:
        """Return the directions of each link, innermost first, and the remaining force along each."""
        g, b, k = self._g, self._g.b, self._k
        felt: dict[int, list[int]] = {}
        result = {}
        for link in reversed(self._links):
            bias = self.bias(link)
            force = [*bias[0], *bias[1]]
            force = [b.add(x, y) for x, y in zip(force, felt.pop(link, [g.zero] * 6), strict=True)]
            space, eliminated = self._spaces[link], self._eliminated[link]
            own = [b.add(forces.get(j, g.zero), self._force.get(j, g.zero)) for j in space.speeds]
            tau = space.forces_along(own)
            left = [g.zero] * len(tau)
            for i in reversed(range(len(tau))):
                one = eliminated[i]
                left[i] = b.sub(tau[i], g.dot(one.direction.components, force))
                for j in range(6):
                    if j != one.direction.unit:
                        force[j] = b.add(force[j], b.mul(one.ratios[j], left[i]))
                if one.direction.unit is not None:
                    force[one.direction.unit] = tau[i]
            result[link] = (eliminated, left)
            parent = k.recursion.links[link].parent
            if parent > 0:
                carried = shift_force_to_parent(
                    g, k.joint(link), ((force[0], force[1], force[2]), (force[3], force[4], force[5]))
                )
                old = felt.get(parent, [g.zero] * 6)
                felt[parent] = [b.add(x, y) for x, y in zip(old, (*carried[0], *carried[1]), strict=True)]
        return result

    def bias(self, link: int) -> SpatialVector:
        """Return the inertia force at u' = 0 less the applied force."""
        if link not in self._bias:
            inertia = link_inertia_force(self._k, link, self._rigid[link])
            applied = self._loads.on(link)
            self._bias[link] = (self._g.sub(inertia[0], applied[0]), self._g.sub(inertia[1], applied[1]))
        return self._bias[link]

    def _eliminate(self) -> None:
        """Eliminate inertias inwards; once."""
        g, k = self._g, self._k
        if self._eliminated:
            return
        felt: dict[int, SpatialInertia] = {}
        for link in reversed(self._links):
            inertia = form_link_spatial_inertia(g, self._rigid[link])
            if link in felt:
                inertia = felt.pop(link).plus(inertia, g)
            rows = inertia.rows(g)
            space = self._spaces[link]
            rotors = [self._inertia.get(j, g.zero) for j in space.speeds]  # zero where directions are not the columns
            along = list(zip(space.directions, rotors, strict=True))
            eliminated = [self._eliminated_from(rows, d, rotor, link) for d, rotor in reversed(along)]
            self._eliminated[link] = eliminated[::-1]
            parent = k.recursion.links[link].parent
            if parent > 0:
                carried = shift_inertia_to_parent(g, k.joint(link), make_spatial_inertia(rows))
                felt[parent] = felt[parent].plus(carried, g) if parent in felt else carried

    def _eliminated_from(
        self, rows: list[list[int]], direction: MotionDirection, rotor: int, link: int
    ) -> EliminatedDirection:
        """Remove a direction from an inertia, in place; ``rotor`` acts along its speed alone."""
        g, b = self._g, self._g.b
        unit = direction.unit
        column = list(rows[unit]) if unit is not None else [g.dot(row, direction.components) for row in rows]
        pivot = column[unit] if unit is not None else g.dot(direction.components, column)
        pivot = b.add(pivot, rotor)
        b.require(pivot, f"the inertia felt by the joint of {self._k.recursion.links[link].name}", positive=True)
        inverse = b.div(g.one, pivot)
        ratios = [g.one if i == unit else b.mul(entry, inverse) for i, entry in enumerate(column)]
        for i in range(6):
            for j in range(i + 1):
                left = g.zero if unit in (i, j) else b.sub(rows[i][j], b.mul(ratios[i], column[j]))
                rows[i][j] = rows[j][i] = left
        return EliminatedDirection(direction, inverse, tuple(ratios))


def _project_geared_links(
    kinematics: LinkKinematics, loads: AppliedLinkForces, n: int, geared: Sequence[int]
) -> tuple[dict[int, int], dict[int, int]]:
    """Return inertia and force of geared links in the rows of their speeds."""
    if not geared:
        return {}, {}
    bodies = CompositeBodies(kinematics, loads, n, geared)
    speeds = sorted({j for link in geared for j in kinematics.joint(link).columns})
    M, f = bodies.mass_matrix(), bodies.forcing()
    given = kinematics.walker.lower(kinematics.recursion.generalized_forces)  # counted where they are asked for
    f = [kinematics.b.sub(x, y) for x, y in zip(f, given, strict=True)] if given else f
    return {j: M[j * (j + 1) // 2 + j] for j in speeds}, {j: f[j] for j in speeds}
