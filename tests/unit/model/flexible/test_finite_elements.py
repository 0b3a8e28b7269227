"""Reduction of finite element models: against the full model's own eigenvalues, a beam, and what does not fit."""

from __future__ import annotations

import functools

import numpy as np
import pytest
import scipy.linalg
import scipy.sparse
from finite_elements import box_model
from flexible_bodies import nodal_accelerations, pinned_body
from representatives import by_night

from mb2fmu import BeamSection, FlexibleBody, rhs
from mb2fmu.errors import ModelError

SIZE, CELLS = (1.0, 0.1, 0.05), (12, 2, 2)


@functools.cache
def box():
    K, M, nodes = box_model(SIZE, CELLS)
    return K, M, nodes, np.flatnonzero(nodes[:, 0] == 0.0), np.flatnonzero(nodes[:, 0] == SIZE[0])


@functools.cache
def full_frequencies(*, held: bool) -> np.ndarray:
    """Angular eigenfrequencies of the whole model, free or with the nodes of its root held."""
    K, M, nodes, root, _ = box()
    fixed = (3 * root[:, None] + np.arange(3)).ravel() if held else []
    free = np.setdiff1d(np.arange(3 * len(nodes)), fixed)
    squares = scipy.linalg.eigh(K[free][:, free].toarray(), M[free][:, free].toarray(), eigvals_only=True)
    return np.sqrt(np.abs(squares))


def reduced(**changes) -> FlexibleBody:
    K, M, nodes, root, _ = box()
    return FlexibleBody.from_finite_elements(
        "box", **{"K": K, "M": M, "nodes": nodes, "interfaces": {"root": root}, **changes}
    )


@pytest.mark.usefixtures("arrays_alone")
def test_one_interface_gives_the_models_own_eigenvalues():
    assert reduced(modes=4).data.frequencies() == pytest.approx(full_frequencies(held=True)[:4], rel=1e-8)


@pytest.mark.usefixtures("arrays_alone")
def test_a_free_model_gives_its_own_eigenvalues_without_rigid_motions():
    body = reduced(interfaces={}, modes=4)
    assert body.data.frequencies() == pytest.approx(full_frequencies(held=False)[6:10], rel=1e-8)


@pytest.mark.usefixtures("arrays_alone")
def test_two_interfaces_converge_to_the_model_with_a_rigid_tip_from_above():
    _, _, _, root, tip = box()
    whole = full_frequencies(held=True)
    errors = []
    for count in (2, 8):
        body = reduced(interfaces={"root": root, "tip": tip}, modes=count)
        errors.append(body.data.frequencies()[:3] / whole[:3] - 1.0)
    assert np.all(errors[0] >= errors[1])
    assert np.all(errors[1] > 0.0)
    assert np.all(errors[1] < 1e-3)


def test_mass_centre_and_inertia_are_the_boxs():
    body, mass = reduced(modes=2), 2700.0 * np.prod(SIZE)
    parts = [body.body, *body.particles]
    assert float(sum(part.mass for part in parts)) == pytest.approx(mass, rel=1e-12)
    assert body.data.centre == pytest.approx([0.5, 0.0, 0.0], abs=1e-12)
    a, b, c = SIZE
    central = mass / 12.0 * np.array([b**2 + c**2, a**2 + c**2, a**2 + b**2])
    about_root = central + mass * 0.25 * np.array([0.0, 1.0, 1.0])
    assert np.diag(body.data.inertia) == pytest.approx(about_root, rel=1e-12)  # trilinear elements have it exactly


@pytest.mark.usefixtures("arrays_alone")
def test_the_reduced_box_bends_as_a_beam():
    """Bricks of one size are too stiff in bending (shear locking); a fine mesh comes near Timoshenko's beam."""
    K, M, nodes = box_model((1.0, 0.1, 0.1), (60, 4, 4), nu=0.0)
    root = np.flatnonzero(nodes[:, 0] == 0.0)
    found = FlexibleBody.from_finite_elements("box", K=K, M=M, nodes=nodes, interfaces={"root": root}, modes=2)
    section = BeamSection.rectangle(0.1, 0.1)
    beam = FlexibleBody.beam(
        "beam", length=1.0, E=70e9, G=35e9, rho=2700.0, section=section, modes={"bending_y": 1}, theory="timoshenko"
    )
    assert found.data.frequencies()[:2] == pytest.approx(np.full(2, beam.data.frequencies()[0]), rel=1e-2)


def test_the_reduced_body_moves_as_its_full_nodal_mass_matrix_does():
    body = reduced(modes=2)
    f = rhs(pinned_body(body))
    state = np.array([0.4, 1e-3, -2e-3, 1.5, 0.05, -0.1])
    assert f(0.0, state)[3:] == pytest.approx(nodal_accelerations(body, state), rel=1e-8)


@pytest.mark.usefixtures("arrays_alone")
def test_a_square_section_has_the_same_modes_in_each_run():
    """Both bending modes have one frequency: any turned pair of them would be eigenvectors, too."""
    K, M, nodes = box_model((1.0, 0.1, 0.1), (6, 2, 2))
    given = {"K": K, "M": M, "nodes": nodes, "modes": 3}
    for interfaces in ({"root": np.flatnonzero(nodes[:, 0] == 0.0)}, {}):
        first, second = (FlexibleBody.from_finite_elements("box", interfaces=interfaces, **given) for _ in range(2))
        assert np.array_equal(first.data.modes, second.data.modes)


def test_one_node_is_an_interface_without_a_frame():
    _, _, _, root, tip = box()
    body = reduced(interfaces={"root": root, "tip": tip[:1]}, modes=2)
    assert len(body.q) == 2 + 3
    assert body.point("tip") is not body.point()
    with pytest.raises(ModelError, match="turns is not known"):
        body.frame("tip")


@pytest.mark.usefixtures("arrays_alone")
def test_more_modes_than_there_are_leave_those_that_are():
    K, M, nodes = box_model((1.0, 1.0, 1.0), (1, 1, 1))
    for interfaces, most in (({}, 18), ({"side": [0, 1, 2, 3]}, 12)):
        body = FlexibleBody.from_finite_elements("brick", K=K, M=M, nodes=nodes, interfaces=interfaces, modes=20)
        assert most - 2 <= len(body.data.modes) <= most


def test_interfaces_have_points_and_frames_and_other_nodes_points_only():
    _, _, _, root, tip = box()
    body = reduced(interfaces={"root": root, "tip": tip}, modes=2)
    assert body.point("root") is not None
    assert body.frame("tip") is not body.frame()
    assert body.frame("root") is body.frame()
    with pytest.raises(ModelError, match="how node 5"):
        body.frame(5)
    with pytest.raises(ModelError, match="its interfaces root, tip"):
        body.point("top")


@pytest.mark.usefixtures("arrays_alone")
def test_a_frequency_limit_drops_fast_modes():
    body = reduced(modes=6, up_to="400 Hz")
    assert np.max(body.data.frequencies()) / (2 * np.pi) <= 400.0
    assert len(body.data.modes) == 3
    given = [0.01, 0.02, 0.03, 0.04, 0.05, 0.06]
    kept = reduced(modes=6, up_to="400 Hz", damping=given).data
    modal = kept.modal_mass()
    ratios = np.diag(kept.damping) / (2.0 * np.sqrt(np.diag(kept.stiffness) * np.diag(modal)))
    assert ratios == pytest.approx(given[:3], rel=1e-9)
    with pytest.raises(ModelError, match="no mode is below"):
        reduced(modes=6, up_to="1 Hz")


@pytest.mark.usefixtures("arrays_alone")
@pytest.mark.parametrize("interfaces", [*by_night({}), {"root": np.arange(9)}])
def test_all_modes_below_a_limit_are_found_whatever_their_number(interfaces):
    """From one mode on, and from many: the same ones."""
    few, many = (reduced(interfaces=interfaces, modes=count, up_to="3 kHz").data for count in (1, 30))
    whole = full_frequencies(held=bool(interfaces))[0 if interfaces else 6 :] / (2.0 * np.pi)
    assert len(few.modes) == len(many.modes) == np.sum(whole < 3000.0) > 4
    assert few.frequencies() == pytest.approx(many.frequencies(), rel=1e-9)


@pytest.mark.usefixtures("arrays_alone")
def test_a_limit_that_no_mode_reaches_is_reported():
    with pytest.raises(ModelError, match=r"modes lie below 1e[+]12 Hz"):
        reduced(modes=30, up_to=1e12)


@pytest.mark.usefixtures("arrays_alone")
def test_a_part_that_hangs_on_nothing_is_reported():
    """Two boxes beside each other in one pair of matrices, and the root is one's."""
    K, M, nodes, root, _ = box()
    K, M = (scipy.sparse.block_diag([matrix, matrix], format="csr") for matrix in (K, M))
    with pytest.raises(ModelError, match="no resistance against some deformation while the interfaces are held"):
        reduced(K=K, M=M, nodes=np.vstack([nodes, nodes + 2.0]), interfaces={"root": root})


def _faults() -> dict[str, tuple[dict, str]]:
    K, M, nodes, *_ = box()
    supported = K.copy()
    supported[0, 0] += 1e9
    return {
        "nodes in another order": ({"nodes": nodes[::-1] * np.array([1.0, 2.0, 3.0])}, "does not fit the nodes"),
        "nodes in mm": ({"nodes": 1e3 * nodes}, "faster than in any material"),
        "no mass": ({"M": 0.0 * M}, "M has no mass"),
        "a row less": ({"M": M[:-3]}, "M has the shape"),
        "supported": ({"K": supported}, "resists rigid motions"),
        "half of K": ({"K": scipy.sparse.triu(K).tocsr()}, "K is not symmetric"),
        "interface of strangers": ({"interfaces": {"a": [0, 1], "b": [1, 10**6]}}, "do not exist"),
        "a root that turns": ({"interfaces": {"root": [0, 1]}}, "to which the body's frame is fixed, lie on a line"),
        "nothing between": ({"interfaces": {"all": range(len(nodes))}}, "every node is in an interface"),
        "nodes in a plane": ({"nodes": nodes[:, :2]}, "nodes has the shape"),
        "a node that is nowhere": ({"nodes": nodes * np.nan}, "nodes has entries that are no finite numbers"),
        "shared": ({"interfaces": {"a": [0, 1], "b": [1, 2]}}, "are in a and in b"),
        "no modes": ({"modes": 0}, "number of modes is 0"),
        "rotations of nodes": ({"nodes": nodes[: len(nodes) // 2], "K": K[:348, :348]}, "rotations of nodes"),
    }


@pytest.mark.usefixtures("arrays_alone")
@pytest.mark.parametrize("fault", _faults())
def test_what_does_not_fit_is_reported(fault):
    changes, message = _faults()[fault]
    with pytest.raises(ModelError, match=message):
        reduced(**changes)
