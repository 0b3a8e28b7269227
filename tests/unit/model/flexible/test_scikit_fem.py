"""Finite elements that scikit-fem assembles, reduced to flexible bodies."""

from __future__ import annotations

import numpy as np
import pytest
from finite_elements import box_model

from mb2fmu import BeamSection, FlexibleBody

pytest.importorskip("skfem", reason="scikit-fem, which meshes and assembles, is not installed")
from skfem import Basis, BilinearForm, ElementHex1, ElementTetP2, ElementVector, MeshHex, MeshTet
from skfem.helpers import dot
from skfem.models.elasticity import lame_parameters, linear_elasticity

SIZE, E, RHO = (1.0, 0.1, 0.06), 70e9, 2700.0


def assembled(mesh, element, nu: float):
    """K, M and nodes, as the tutorial makes them."""
    basis = Basis(mesh, ElementVector(element))
    K = linear_elasticity(*lame_parameters(E, nu)).assemble(basis)
    M = BilinearForm(lambda u, v, _: RHO * dot(u, v)).assemble(basis)
    return K, M, basis.doflocs[:, ::3].T


def lines(cells: tuple[int, int, int]) -> list[np.ndarray]:
    starts = (0.0, -SIZE[1] / 2, -SIZE[2] / 2)
    return [np.linspace(a, a + size, n + 1) for a, size, n in zip(starts, SIZE, cells, strict=True)]


@pytest.mark.usefixtures("arrays_alone")
def test_bricks_give_the_same_body_as_those_assembled_by_hand():
    """Frequencies, and where a node goes: the order of unknowns is that of the nodes."""
    cells, tip = (6, 2, 2), np.array(SIZE) * [1.0, 0.5, 0.5]
    made = []
    for K, M, nodes in (box_model(SIZE, cells), assembled(MeshHex.init_tensor(*lines(cells)), ElementHex1(), 0.3)):
        root = np.flatnonzero(nodes[:, 0] < 1e-9)
        body = FlexibleBody.from_finite_elements("box", K=K, M=M, nodes=nodes, interfaces={"root": root}, modes=5)
        made.append((body.data.frequencies(), np.abs(body.data.modes[:, body.node_near(tip)])))
    assert made[0][0] == pytest.approx(made[1][0], rel=1e-8)
    assert made[0][1] == pytest.approx(made[1][1], rel=1e-5, abs=1e-7)


@pytest.mark.usefixtures("arrays_alone")
def test_quadratic_tetrahedra_bend_as_a_beam():
    K, M, nodes = assembled(MeshTet.init_tensor(*lines((12, 2, 2))), ElementTetP2(), 0.0)
    root = np.flatnonzero(nodes[:, 0] < 1e-9)
    body = FlexibleBody.from_finite_elements("box", K=K, M=M, nodes=nodes, interfaces={"root": root}, modes=2)
    section = BeamSection.rectangle(*SIZE[1:])
    beam = FlexibleBody.beam(
        "beam",
        length=1.0,
        E=E,
        G=E / 2,
        rho=RHO,
        section=section,
        modes={"bending_z": 1, "bending_y": 1},
        theory="timoshenko",
    )
    assert body.data.total_mass == pytest.approx(RHO * np.prod(SIZE), rel=1e-9)
    assert body.data.frequencies() == pytest.approx(beam.data.frequencies(), rel=2e-3)
