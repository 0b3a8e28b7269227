"""Derivatives of whole units: forward against differences, backward against forward, and what they cost."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from mechanisms import State, mechanism_of, moving_pivot, pendulum_with_reactions, random_states
from representatives import by_night

from mb2fmu.compiler.derivatives import differentiate_forward, differentiate_reverse, form_jacobian
from mb2fmu.compiler.derivatives.derivative_entry_points import (
    DIFFERENTIATED_ENTRIES,
    ProgramWithDerivatives,
    add_fmu_derivatives,
)
from mb2fmu.compiler.evaluation import make_evaluator
from mb2fmu.compiler.lowering import lower_equations_to_program
from mb2fmu.compiler.program import count_operations
from mb2fmu.mechanics.formulations import formulate
from mb2fmu.mechanics.mechanism import read_mechanism
from mb2fmu.model import check_model, load

MODELS = Path(__file__).parents[4] / "models"
BY_DAY = ("rolling_disc", "muscle_arm", "moving_pivot", "reactions")
"""Velocity constraints, curves, time, and multipliers; each has inputs or parameters."""


def _mechanism(name: str):
    if name == "moving_pivot":
        return mechanism_of(moving_pivot())
    if name == "reactions":
        return mechanism_of(pendulum_with_reactions()[0])
    return read_mechanism(check_model(load(MODELS / f"{name}.py")))


def _evaluator(native: ProgramWithDerivatives) -> Callable[[State], np.ndarray]:
    """All that is differentiated, of a state."""
    parts = [make_evaluator(native.program, name) for name in DIFFERENTIATED_ENTRIES]
    return lambda state: np.concatenate([np.atleast_1d(f(state.t, state.x, state.r, state.p)) for f in parts])


def _shifted(state: State, direction: np.ndarray, h: float) -> State:
    n, r = len(state.x), len(state.r)
    parts = np.split(h * direction, [1, 1 + n, 1 + n + r])
    return State(state.t + float(parts[0][0]), state.x + parts[1], state.r + parts[2], state.p + parts[3])


@pytest.mark.parametrize("name", [*BY_DAY, *by_night("double_pendulum", "turntable_ball")])
def test_tangent_adjoint_and_jacobian(name):
    mechanism = _mechanism(name)
    native = add_fmu_derivatives(lower_equations_to_program(formulate(mechanism, "tmt")))
    program = native.program
    generator = np.random.default_rng(3)
    tangent, adjoint = make_evaluator(program, "tangent"), make_evaluator(program, "adjoint")
    jacobian, slopes = make_evaluator(program, "jacobian"), make_evaluator(program, "jacobian_time")
    padding, values = len(program.layout.seeds), _evaluator(native)

    def padded(given: np.ndarray) -> np.ndarray:
        return np.concatenate([given, np.zeros(padding - len(given))])

    for state in random_states(mechanism, 3, seed=5):
        arguments = (state.t, state.x, state.r, state.p, ())
        size = 1 + len(state.x) + len(state.r) + len(state.p)
        seed = generator.uniform(-1, 1, size)
        forward = tangent(*arguments, padded(seed))
        h = 1e-6
        difference = (values(_shifted(state, seed, h)) - values(_shifted(state, seed, -h))) / (2 * h)
        assert np.allclose(forward, difference, rtol=1e-6, atol=1e-6 * np.max(np.abs(difference)))
        weights = generator.uniform(-1, 1, len(forward))
        gradient = adjoint(*arguments, padded(weights))
        # weights · (J seed) = (Jᵀ weights) · seed, to rounding
        scale = np.abs(weights) @ np.abs(forward) + 1
        assert abs(weights @ forward - gradient @ seed) < 1e-11 * scale
        dense = np.zeros((len(state.x), len(state.x)))
        dense[native.rows, native.columns] = jacobian(*arguments)
        in_time = np.zeros(len(state.x))
        in_time[native.time_derivative_rows] = slopes(*arguments)
        only_state = np.concatenate([[0.0], seed[1 : 1 + len(state.x)], np.zeros(size - 1 - len(state.x))])
        expected = tangent(*arguments, padded(only_state))[: len(state.x)]
        assert np.allclose(dense @ only_state[1 : 1 + len(state.x)], expected, rtol=1e-10, atol=1e-10)
        only_time = np.concatenate([[1.0], np.zeros(size - 1)])
        assert np.allclose(in_time, tangent(*arguments, padded(only_time))[: len(state.x)], rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("name", ["double_pendulum", *by_night("n_link_pendulum")])
def test_derivatives_stay_proportional(name):
    program = add_fmu_derivatives(lower_equations_to_program(formulate(_mechanism(name), "tmt"))).program
    cost = {entry: sum(count_operations(program, entry).values()) for entry in ("outputs", "tangent", "adjoint")}
    whole = sum(sum(count_operations(program, entry).values()) for entry in ("rhs", "outputs"))
    assert cost["tangent"] <= 3 * whole
    assert cost["adjoint"] <= 5 * whole


def test_derivatives_of_a_recursion_cost_a_small_multiple() -> None:
    """By counted operations: one directional derivative at most 3 times x', one adjoint at most 5 times."""
    model = load(MODELS / "chain.py", {"n": 6})
    program = lower_equations_to_program(formulate(read_mechanism(check_model(model)), "recursive-articulated"))
    x_dot = count_operations(program, "rhs").total()
    assert count_operations(differentiate_forward(program, "rhs"), "jvp_rhs").total() <= 3 * x_dot
    assert count_operations(differentiate_reverse(program, "rhs"), "vjp_rhs").total() <= 5 * x_dot
    written_out = form_jacobian(program, "rhs", ("states",))
    cost = count_operations(written_out.program, written_out.entry).total()
    assert cost <= len(program.layout.states) * x_dot  # a third of one tangent per column: columns share what they can
