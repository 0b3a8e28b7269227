"""Accelerations against Pinocchio, a library of its own in C++: random trees, long chains, and the arm with its motors.

Norm-wise within c ε cond(M), c = 100: what two backward stable ways to solve M q'' = f may differ by.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mechanisms import Evaluated, Numeric, State, mechanism_of, model_of, random_states
from pinocchio_model import PinocchioModel
from trees import AXES, DEGREES, KINDS, build

from mb2fmu import model
from mb2fmu.mechanics import mechanism

MODELS = Path(__file__).parents[2] / "models"
ROUNDING = 100 * np.finfo(float).eps

TREES = st.lists(
    st.tuples(st.sampled_from(KINDS), st.sampled_from(AXES), st.integers(0, 5)), min_size=1, max_size=6
).filter(lambda kinds: 1 <= sum(DEGREES[kind] for kind, *_ in kinds) <= 10)


def _same(found, wanted, condition) -> bool:
    size = max(np.linalg.norm(found), np.linalg.norm(wanted), 1.0)
    return bool(np.linalg.norm(found - wanted) <= ROUNDING * condition * size)


def test_a_tree_of_all_joints():
    """Composite bodies are compared with the same numbers in test_recursive."""
    joints = [("spherical", "y", 0), ("pin", "x", 1), ("weld", "z", 2), ("cylindrical", "z", 1), ("prismatic", "x", 0)]
    _agree([*joints, ("planar", "y", 3)], tilted=True, seed=3, methods=("recursive-articulated",))


@pytest.mark.repeats
@settings(max_examples=30)
@given(TREES, st.booleans(), st.integers(0, 1000))
def test_random_trees(kinds, tilted, seed):
    _agree(kinds, tilted, seed)


def _agree(kinds, tilted, seed, methods=("recursive-articulated", "recursive-composite")):
    system = build(kinds, tilted=tilted)
    read = mechanism_of(model_of("Tree", system, list(system.q), list(system.u), m=1.2, J=0.05, g=9.81, T=0.3))
    evaluated = [Evaluated(read, method) for method in methods]
    numeric = Numeric(read)
    for state in random_states(read, 2, seed):
        other = PinocchioModel(read, state.p)
        wanted, condition = other.accelerations(state), other.condition(state)
        assert _same(numeric.accelerations(state), wanted, condition)
        for one in evaluated:
            assert _same(one("accelerations", state), wanted, condition), one.equations.method


@pytest.mark.parametrize("n", [9, *(pytest.param(n, marks=pytest.mark.repeats) for n in (15, 100))])
def test_long_chains(n):
    read = mechanism.read_mechanism(model.check_model(model.load(MODELS / "chain.py", {"n": n})))
    articulated, numeric = Evaluated(read, "recursive-articulated"), Numeric(read)
    (state,) = random_states(read, 1)
    other = PinocchioModel(read, state.p)
    wanted, condition = other.accelerations(state), other.condition(state)
    assert _same(articulated("accelerations", state), wanted, condition)
    assert _same(numeric.accelerations(state), wanted, condition)


def test_the_arm_with_its_motors():
    read = mechanism.read_mechanism(model.check_model(model.load(MODELS / "robot_arm.py")))
    methods = [Evaluated(read, method) for method in ("recursive-composite", "tmt")]
    for state in random_states(read, 3):
        driven = State(state.t, state.x, np.array([20.0, -30.0, 10.0, 2.0, 1.0, -1.0]), state.p)
        other = PinocchioModel(read, state.p)
        wanted, condition = other.accelerations(driven), other.condition(driven)
        for one in methods:
            assert _same(one("accelerations", driven), wanted, condition), one.equations.method


def test_a_heavier_body_is_noticed():
    """The comparison itself: one mass changed by a millionth does not pass."""
    read = mechanism.read_mechanism(model.check_model(model.load(MODELS / "chain.py", {"n": 5})))
    (state,) = random_states(read, 1)
    numeric = Numeric(read)
    heavier = state.p * np.where([p.name == "m" for p in read.p], 1 + 1e-6, 1.0)
    other = PinocchioModel(read, heavier)
    assert not _same(numeric.accelerations(state), other.accelerations(state), other.condition(state))
