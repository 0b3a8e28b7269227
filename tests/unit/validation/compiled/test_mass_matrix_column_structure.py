"""Columns of the reference's mass matrix: from resultants of rigid wholes where there are any, else body by body."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from compiled_reference import largest_difference
from mechanisms import closed_mechanism_of
from representatives import by_night
from unit.robots.robot_texts import joint, link, robot

from mb2fmu.mechanics.formulations import form_equations_except_dynamics
from mb2fmu.mechanics.mechanism import Mechanism
from mb2fmu.validation.compiled import compiled_check_tables
from mb2fmu.validation.compiled.mass_matrix_column_structure import (
    CompositeBody,
    DisplacedParticleGroup,
    MassMatrixColumnStructure,
    NodesMovedBySpeed,
    ResultantLocation,
)
from mb2fmu.validation.reference_equations.newton_euler import NewtonEulerEquations

MIMIC = '<mimic joint="swing" multiplier="-0.5" offset="0.2"/>'
TREE = robot(
    link("base", 3.0),
    link("a"),
    link("b", 0.5),
    link("c", 0.8, 0.03),
    link("d", 0.3),
    link("e", 0.6),
    joint("swing", "continuous", "base", "a"),
    joint("slide", "prismatic", "a", "b", '<limit lower="-1" upper="1" effort="9" velocity="9"/>', axis="1 2 2"),
    joint("wrist", "continuous", "b", "c", axis="1 0 0"),
    joint("loose", "floating", "a", "d"),
    joint("other", "continuous", "base", "e", MIMIC),
)


def columns_of(
    mechanism: Mechanism, monkeypatch: pytest.MonkeyPatch
) -> tuple[NewtonEulerEquations, MassMatrixColumnStructure]:
    """Compile the reference, and keep what its mass matrix is made of."""
    made: list[MassMatrixColumnStructure] = []

    def kept(*given):
        made.append(MassMatrixColumnStructure(*given))
        return made[-1]

    monkeypatch.setattr(compiled_check_tables, "MassMatrixColumnStructure", kept)
    monkeypatch.setattr(compiled_check_tables, "is_worth_unrolling", lambda _: False)
    numeric = NewtonEulerEquations(mechanism, form_equations_except_dynamics(mechanism))
    assert numeric.compile()
    return numeric, made[0]


@pytest.fixture
def tree(tmp_path: Path) -> Mechanism:
    path = tmp_path / "tree.urdf"
    path.write_text(TREE)
    return closed_mechanism_of(path, {"base": "floating"})


def test_all_but_the_speed_of_two_joints_move_one_rigid_whole(tree: Mechanism, monkeypatch: pytest.MonkeyPatch) -> None:
    numeric, columns = columns_of(tree, monkeypatch)
    names = [str(u) for u in tree.u]
    assert [name for name, stem in zip(names, columns.branches, strict=True) if stem is None] == ["u_swing"]
    assert largest_difference(numeric, tree, count=6, seed=3) < 1e-13


@pytest.mark.parametrize("fault", ["no moment", *by_night("a step of the path left out")])
def test_a_wrong_resultant_is_noticed(tree: Mechanism, monkeypatch: pytest.MonkeyPatch, fault: str) -> None:
    stem_of, composites_of = MassMatrixColumnStructure._find_turning_branch, MassMatrixColumnStructure._composites

    def without_moment(
        self: MassMatrixColumnStructure, node: int, moved: NodesMovedBySpeed
    ) -> ResultantLocation | None:
        stem = stem_of(self, node, moved)
        return stem and replace(stem, frame=-1)

    def nearer(self: MassMatrixColumnStructure) -> list[CompositeBody]:
        return [replace(c, pieces=tuple((k, way[1:]) for k, way in c.pieces)) for c in composites_of(self)]

    if fault == "no moment":
        monkeypatch.setattr(MassMatrixColumnStructure, "_find_turning_branch", without_moment)
    else:
        monkeypatch.setattr(MassMatrixColumnStructure, "_composites", nearer)
    assert largest_difference(columns_of(tree, monkeypatch)[0], tree, count=6, seed=3) > 1e-6


@pytest.fixture(scope="module")
def flexible_arm() -> Mechanism:
    return closed_mechanism_of("flexible_robot_arm")


def test_particles_of_flexible_bodies_are_moved_as_groups(
    flexible_arm: Mechanism, monkeypatch: pytest.MonkeyPatch
) -> None:
    numeric, columns = columns_of(flexible_arm, monkeypatch)
    names = [{flexible_arm.bodies[k].name for k in group.bodies} for group in columns.particle_groups]
    assert names == [
        {"payload", "forearm_particle1", "forearm_particle2", "forearm_particle3"},
        {"upper_arm_particle1", "upper_arm_particle2", "upper_arm_particle3"},
    ]
    assert largest_difference(numeric, flexible_arm, count=6, seed=3) < 1e-11


@pytest.mark.parametrize("fault", [*by_night("a particle left out"), "a group of a column left out"])
def test_a_wrong_group_of_particles_is_noticed(
    flexible_arm: Mechanism, monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    groups_of = MassMatrixColumnStructure.groups_moved

    def without_a_particle(self: MassMatrixColumnStructure) -> list[DisplacedParticleGroup]:
        first, *others = found(self)
        return [replace(first, bodies=first.bodies[1:]), *others]

    def of_the_last_alone(self: MassMatrixColumnStructure, speed: int) -> list[int]:
        return groups_of(self, speed)[-1:]

    found = MassMatrixColumnStructure._find_particle_groups
    if fault == "a particle left out":
        monkeypatch.setattr(MassMatrixColumnStructure, "_find_particle_groups", without_a_particle)
        monkeypatch.setattr(MassMatrixColumnStructure, "single_bodies", lambda *_: [])
    else:
        monkeypatch.setattr(MassMatrixColumnStructure, "groups_moved", of_the_last_alone)
    assert largest_difference(columns_of(flexible_arm, monkeypatch)[0], flexible_arm, count=6, seed=3) > 1e-6
