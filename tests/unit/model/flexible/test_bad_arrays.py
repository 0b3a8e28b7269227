"""Arrays that make no flexible body: every fault at once, with what to do."""

from __future__ import annotations

import numpy as np
import pytest
from flexible_bodies import pinned_body, random_arrays

from mb2fmu import FlexibleBody, Model
from mb2fmu.errors import ModelError
from mb2fmu.model import check_model


def arrays(**changes):
    return {**random_arrays(2, n=5, sections=False, second=False), **changes}


def with_mode(shape) -> dict:
    given = arrays()
    return arrays(modes=np.stack([given["modes"][0], shape(given["nodes"])]))


FAULTS = {
    "no number": (arrays(nodes=[["a", 0, 0]] * 5), "nodes has entries that are no finite numbers"),
    "not finite": (arrays(stiffness=[1.0, np.inf]), "stiffness has entries"),
    "a stiffness too many": (arrays(stiffness=[1.0, 2.0, 3.0]), "stiffness has the shape (3,)"),
    "masses of other nodes": (arrays(mass=np.ones(4)), "mass has the shape (4,)"),
    "asymmetric mass": (arrays(mass=np.eye(5) + np.triu(np.ones((5, 5)), 1)), "mass matrix is not symmetric"),
    "negative mass": (arrays(mass=[1.0, 1.0, -1.0, 1.0, 1.0]), "negative mass"),
    "no mass": (arrays(mass=np.zeros(5)), "it has no mass"),
    "coupled axes": (arrays(mass=np.eye(15) + 0.1 * (np.ones((15, 15)) - np.eye(15))), "different axes"),
    "masses that differ by axis": (arrays(mass=np.diag(np.tile([1.0, 2.0, 1.0], 5))), "not the same along x, y and z"),
    "a rigid mode left in": (arrays(stiffness=[50.0, 0.0]), "not positive definite"),
    "negative damping": (arrays(damping=[-0.1, 0.1]), "damping is negative"),
    "a mode without mass": (with_mode(lambda X: 0.0 * X), "no mass moves in mode 1"),
    "a translation": (with_mode(np.ones_like), "mode 1 (counted from 0) is a rigid motion"),
    "a rotation": (with_mode(lambda X: np.cross([0.3, -1.0, 2.0], X)), "mode 1 (counted from 0) is a rigid motion"),
    "the same mode twice": (with_mode(lambda _: arrays()["modes"][0]), "modes 0, 1 (counted from 0) together"),
    "inertia without rotations": (arrays(rotational_inertia=np.ones((5, 3))), "a rotational inertia and no rotations"),
    "an inertia of no body": (
        arrays(rotational_inertia=np.tile([1.0, 0.1, 0.1], (5, 1)), rotations=np.zeros((2, 5, 3))),
        "a rotational inertia that no body has",
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_the_fault_is_reported_with_a_remedy(fault):
    given, message = FAULTS[fault]
    with pytest.raises(ModelError) as caught:
        FlexibleBody("arm", **given)
    assert message in str(caught.value)
    assert "→" in str(caught.value)


def test_several_faults_are_reported_at_once():
    with pytest.raises(ModelError) as caught:
        FlexibleBody("arm", **arrays(mass=np.ones(4), stiffness=[1.0], rotations=np.zeros((1, 5, 3))))
    assert len(caught.value.faults) == 3


def test_mechanics_that_lack_the_body_are_reported():
    body, other = FlexibleBody("arm", **arrays()), FlexibleBody("leg", **arrays())
    model = pinned_body(body)
    assert isinstance(model, Model)
    model.add(other)
    with pytest.raises(ModelError, match=r"FlexibleBody leg: the mechanics lack .* bodies, 2 of its coordinates"):
        check_model(model)


def test_a_name_that_stands_twice_is_reported():
    body = FlexibleBody("arm", **arrays())
    model = pinned_body(body)
    model.add(body)
    with pytest.raises(ModelError, match="another flexible body has this name"):
        check_model(model)


def test_nodes_that_do_not_exist_and_unknown_rotations_are_reported():
    body = FlexibleBody("arm", **arrays())
    with pytest.raises(ModelError, match="its nodes are 0 to 4"):
        body.point(5)
    with pytest.raises(ModelError, match="give rotations"):
        body.frame(0)
