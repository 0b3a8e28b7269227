"""Random trees of SymPy joints: every formulation and the numeric equations agree, and so does SymPy's own System."""

from __future__ import annotations

import numpy as np
import pytest
import sympy as sm
from hypothesis import given, settings
from hypothesis import strategies as st
from mechanisms import Evaluated, Numeric, close, mechanism_of, model_of, random_states
from representatives import by_night
from trees import AXES, DEGREES, KINDS, build

from mb2fmu.mechanics.formulations import check_applicability_of_all_formulations

TREES = st.lists(
    st.tuples(st.sampled_from(KINDS), st.sampled_from(AXES), st.integers(0, 3)), min_size=1, max_size=3
).filter(lambda kinds: 1 <= sum(DEGREES[kind] for kind, *_ in kinds) <= 4 and kinds[-1][0] != "weld")


@pytest.mark.parametrize(
    ("kinds", "tilted"),
    [
        pytest.param([("prismatic", "x", 0), ("weld", "y", 1), ("pin", "z", 2)], True, id="chain"),
        *by_night(([("cylindrical", "z", 0)], False)),
    ],
)
def test_trees(kinds, tilted):
    """Other joints stand in test_recursive and test_pinocchio."""
    agree(kinds, tilted)


@pytest.mark.repeats
@settings(max_examples=30)
@given(TREES, st.booleans())
def test_random_trees(kinds, tilted):
    agree(kinds, tilted)


def agree(kinds, tilted):
    system = build(kinds, tilted=tilted)
    model = model_of("Tree", system, list(system.q), list(system.u), m=1.2, J=0.05, g=9.81, T=0.3)
    mechanism = mechanism_of(model)
    numeric = Numeric(mechanism)
    methods = [
        method for method, answer in check_applicability_of_all_formulations(mechanism).items() if answer.is_applicable
    ]
    assert set(methods) == {"kane", "tmt", "lagrange", "recursive", "recursive-articulated", "recursive-composite"}
    methods.remove("recursive")  # is one of its variants
    if len(mechanism.u) > 3:
        methods.remove("lagrange")  # SymPy expands for minutes
    evaluated = [Evaluated(mechanism, method) for method in methods]
    for state in random_states(mechanism, 3):
        expected = numeric.accelerations(state)
        for one in evaluated:
            assert close(one("accelerations", state), expected, numeric.condition()), one.equations.method


def test_sympy_itself_gives_the_same():
    system = build([("pin", "z", 0), ("prismatic", "x", 1)], tilted=True)
    model = model_of("Tree", system, list(system.q), list(system.u), m=1.2, J=0.05, g=9.81, T=0.3)
    mechanism = mechanism_of(model)
    tmt = Evaluated(mechanism, "tmt")
    system.form_eoms()
    arguments = [*system.q, *system.u, *(sm.Symbol(p.name) for p in mechanism.p)]
    equations = sm.lambdify(arguments, [system.mass_matrix_full, system.forcing_full], cse=True)
    for state in random_states(mechanism, 5):
        M, f = equations(*state.x, *state.p)
        expected = np.linalg.solve(M, f).ravel()
        assert np.allclose(tmt("rhs", state), expected, rtol=1e-11, atol=1e-11)
