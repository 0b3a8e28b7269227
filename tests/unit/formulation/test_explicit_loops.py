"""Explicit loops: closed forms against the rows that they solve, and the motion against other treatments."""

from functools import cache

import numpy as np
import pytest

from mb2fmu import lowering, pipeline
from mb2fmu.errors import FormulationError
from mb2fmu.interface import describe


@cache
def derived(name, constraints="explicit", method="tmt"):
    return pipeline.derive(f"models/{name}.py", constraints=constraints, method=method)


def placed(derivation, x, r, p, t=0.0):
    """All coordinates and speeds that a state stands for, in the order of the equations."""
    e, program = derivation.equations, derivation.program
    outputs = sum(o.level == "position" for o in e.outputs)
    q, u = np.zeros(len(e.q)), np.zeros(len(e.u))
    n_q, n_u = len(e.q_independent), len(e.u_independent)
    q[list(e.q_independent)], u[list(e.u_independent)] = x[:n_q], x[n_q : n_q + n_u]
    q[list(e.q_dependent)] = lowering.evaluator(program, "position")(t, x, r, p)[outputs:]
    u[list(e.u_dependent)] = lowering.evaluator(program, "dependent_speeds")(t, x, r, p)
    return q, u


NAMES = ["transmission"]


@pytest.mark.parametrize("name", NAMES)
def test_the_motion_is_that_of_the_attractor(name):
    """At states on the constraints both treatments have the same accelerations and the same outputs."""
    explicit, attractor = derived(name), derived(name, "attractor")
    x0, r, p = pipeline.start_values(explicit)
    rate = len(pipeline.start_values(attractor)[2]) - len(p)
    everything = np.append(p, np.full(rate, 10.0))
    generator = np.random.default_rng(5)
    for _ in range(5):
        x = x0 + 0.3 * generator.uniform(-1, 1, len(x0))
        whole = np.concatenate([*placed(explicit, x, r, p)])
        theirs = lowering.evaluator(attractor.program, "accelerations")(0.0, whole, r, everything)
        ours = lowering.evaluator(explicit.program, "accelerations")(0.0, x, r, p)
        assert ours == pytest.approx(theirs, rel=1e-8, abs=1e-8 * np.max(np.abs(theirs)))
        outputs = [
            lowering.evaluator(d.program, "outputs")(0.0, x, r, p)
            for d, x, p in ((explicit, x, p), (attractor, whole, everything))
        ]
        assert outputs[0] == pytest.approx(outputs[1], rel=1e-8, abs=1e-8 * np.max(np.abs(outputs[1])))


@pytest.mark.parametrize("name", NAMES)
def test_states_are_independent_and_the_rest_is_calculated(name):
    derivation = derived(name)
    e = derivation.equations
    assert len(e.states) == len(e.q) + len(e.u) - len(e.holonomic) - len(e.velocity_constraints.names) + len(e.z)
    variables = {v.name: v for v in describe(derivation.definition, e, derivation.program).variables}
    for i, coordinate in enumerate(derivation.definition.coordinates):
        found = variables[coordinate.name]
        dependent = i in e.q_dependent
        assert (found.initial, found.source) == (("calculated", "position") if dependent else ("exact", "state"))
        assert found.start == (None if dependent else coordinate.start)
        assert (f"der({coordinate.name})" in variables) != dependent
    assert "constraints.rate" not in variables


def test_a_loop_of_no_known_kind_is_refused_with_the_reasons():
    with pytest.raises(FormulationError, match=r"no kind of loop gives .* from holonomic"):
        pipeline.derive("models/andrews.py", constraints="explicit", method="tmt")
