"""Derivatives of a mechanism whose closing conditions follow from each other, on the constraints and beside them."""

from types import SimpleNamespace

import numpy as np
import pytest
from hinges import BENNETT, linkage
from representatives import by_night

from mb2fmu import pipeline
from mb2fmu.compiler.derivatives.forward_derivatives import differentiate_forward, form_jacobian
from mb2fmu.compiler.derivatives.reverse_derivatives import differentiate_reverse
from mb2fmu.compiler.evaluation.numpy_evaluator import make_evaluator

BESIDE = (0.0, 1e-5, 0.03)  # of the constraints
ENTRIES = ["rhs", *by_night("outputs")]
AWAY = np.array([0.1, 0.02, -0.1, 0.3, 0.1, 0.2])  # from the start, before it is put on the constraints
GUESSED = np.array([0.0, 0.05, -0.04, 0.0, 0.3, 0.2])  # how far guesses are from closed


@pytest.fixture(scope="module")
def bennett():
    """Bennett's linkage: two of five rows are independent where the loop is closed, all of them beside it."""
    derived = pipeline.derive(linkage(*BENNETT))
    f = pipeline.right_hand_side(derived)
    assert len(derived.equations.redundant_rows) == 3
    program, p = derived.program, np.array(f.p0)
    x = np.asarray(make_evaluator(program, "project")(0.0, f.x0 + AWAY, p=p))
    return SimpleNamespace(program=program, p=p, x=x)


@pytest.fixture(scope="module", params=ENTRIES)
def f(bennett, request):
    """An entry point itself, its Jacobian, and derivatives of weights."""
    program, p, entry = bennett.program, bennett.p, request.param
    whole = form_jacobian(program, entry, ["states"])
    evaluated, entries = make_evaluator(program, entry), make_evaluator(whole.program, whole.entry)
    reverse = make_evaluator(differentiate_reverse(program, entry, ["states"]), f"vjp_{entry}")

    def dense(x):
        J = np.zeros(whole.shape)
        J[whole.rows, whole.columns] = entries(0.0, x, p=p)
        return J

    return SimpleNamespace(
        value=lambda x: np.asarray(evaluated(0.0, x, p=p)),
        jacobian=dense,
        reverse=lambda x, s: reverse(0.0, x, p=p, s=s),
        entry=entry,
    )


def differences(f, x, h):
    """The derivatives by central differences of order two, shape (results, states)."""
    return np.array([(f(x + h * e) - f(x - h * e)) / (2.0 * h) for e in np.eye(len(x))]).T


@pytest.mark.parametrize("beside", BESIDE, ids=str)
def test_derivatives_are_those_of_the_function_that_is_evaluated(bennett, f, beside):
    rng = np.random.default_rng(5)
    x = bennett.x + beside * rng.normal(size=6)
    J = f.jacobian(x)
    size = np.abs(J).max()
    coarse, fine = (differences(f.value, x, h) for h in (4e-3, 2e-3))
    assert 3.9 < np.abs(coarse - J).max() / np.abs(fine - J).max() < 4.1, "errors fall by four as steps are halved"
    np.testing.assert_allclose(J, (4.0 * fine - coarse) / 3.0, atol=2e-8 * size)
    weights = rng.normal(size=len(J))
    np.testing.assert_allclose(f.reverse(x, weights), weights @ J, atol=1e-12 * size)


@pytest.mark.repeats  # by day: the Jacobian is formed of derivatives along directions
def test_directions_take_the_jacobian(bennett, f):
    forward = make_evaluator(differentiate_forward(bennett.program, f.entry, ["states"]), f"jvp_{f.entry}")
    rng = np.random.default_rng(5)
    for beside in BESIDE:
        x = bennett.x + beside * rng.normal(size=6)
        J = f.jacobian(x)
        one, other = rng.normal(size=(2, 6))
        for s in (one, other, one + other):
            np.testing.assert_allclose(forward(0.0, x, p=bennett.p, s=s), J @ s, atol=1e-12 * np.abs(J).max())


def test_energy_does_not_change_along_the_motion(bennett):
    program, p, x = bennett.program, bennett.p, bennett.x
    along = make_evaluator(program, "rhs")(0.0, x, p=p)
    slopes = make_evaluator(differentiate_forward(program, "energy", ["states"]), "jvp_energy")(0.0, x, p=p, s=along)
    kinetic, potential = (slopes[program.entries["energy"].labels.index(name)] for name in ("kinetic", "potential"))
    assert abs(kinetic) > 0.1
    assert kinetic + potential == pytest.approx(0.0, abs=1e-11)


def test_start_values_follow_those_that_are_fixed(bennett):
    program, p = bennett.program, bennett.p
    start = make_evaluator(program, "initialize")
    found = form_jacobian(program, "initialize", ["states"])
    x = bennett.x + GUESSED
    J = np.zeros(found.shape)
    J[found.rows, found.columns] = make_evaluator(found.program, found.entry)(0.0, x, p=p)
    h = 1e-3
    coarse, fine = (differences(lambda x: np.asarray(start(0.0, x, p=p)), x, step) for step in (h, h / 2.0))
    np.testing.assert_allclose(J[:, [0, 3]], (4.0 * fine - coarse)[:, [0, 3]] / 3.0, atol=1e-9 * np.abs(J).max())
