"""The compiled integrator of many instances: lanes know nothing of each other, and of what vectors are wide."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from mb2fmu import pipeline
from mb2fmu.fmu.toolchain import CompiledIntegrator, compile_explicit_integrator
from mb2fmu.fmu.toolchain.batch_run_arguments_and_result import BatchRunTimeGrid
from mb2fmu.pipeline.simulation.model_ensemble_compilation import compile_model_ensemble

CART_POLE = Path(__file__).parents[4] / "models" / "cart_pole.py"


@pytest.fixture(scope="module")
def course() -> tuple[CompiledIntegrator, BatchRunTimeGrid, np.ndarray, np.ndarray]:
    ensemble = compile_model_ensemble(CART_POLE)
    inputs = np.asarray(ensemble.inputs[:50])
    turns = np.zeros(51, dtype=bool)
    turns[1:-1] = (inputs[1:] != inputs[:-1]).any(axis=1) if len(inputs) > 1 else False
    n = 21
    p = np.tile(ensemble.p0, (n, 1))
    p[:, ensemble.parameters.index("m")] = np.linspace(0.05, 2.0, n)
    x = np.tile(ensemble.x0, (n, 1))
    x[:, 1] = np.linspace(-1.0, 1.0, n)
    way = BatchRunTimeGrid(0.0, 0.02, 50, ensemble.most, 1e-8, ensemble.scale, inputs, turns)
    return compile_explicit_integrator(pipeline.derive(CART_POLE).program), way, x, p


def test_bits_do_not_depend_on_neighbours_or_on_the_width_of_vectors(course) -> None:
    wide, way, x, p = course
    narrow = compile_explicit_integrator(pipeline.derive(CART_POLE).program, variant="any")
    whole = wide(x, p, way, states=True, outputs=[1, 0])
    assert not any(whole.messages)
    np.testing.assert_array_equal(whole.states, narrow(x, p, way).states)
    order = np.random.default_rng(1).permutation(len(x))
    mixed = wide(x[order], p[order], way, states=True, outputs=[0])
    np.testing.assert_array_equal(mixed.path_states, whole.path_states[order])
    np.testing.assert_array_equal(mixed.path_outputs[..., 0], whole.path_outputs[order][..., 1])
    np.testing.assert_array_equal(wide(x[4:5], p[4], way).states[0], whole.states[4])
    np.testing.assert_array_equal(whole.path_states[:, 0], x)
    np.testing.assert_array_equal(whole.path_outputs[:, -1], whole.outputs[:, [1, 0]])


def test_lanes_that_give_up_say_why_and_leave_the_others_alone(course) -> None:
    wide, way, x, p = course
    good = wide(x, p, way)
    broken = x.copy()
    broken[3, 2:] = 1e200
    broken[9, 0] = np.nan
    found = wide(broken, p, way)
    assert "x' is not finite at t = 0 s" in {found.messages[3], found.messages[9]}
    assert np.isnan(found.states[[3, 9]]).all()
    others = [k for k in range(len(x)) if k not in {3, 9}]
    np.testing.assert_array_equal(found.states[others], good.states[others])
    hurried = wide(x, p, replace(way, most=1))
    assert any(message.startswith("too many steps") for message in hurried.messages)


def test_shapes_that_do_not_fit_are_refused(course) -> None:
    wide, way, x, p = course
    for wrong in ((x[:, :3], p), (x, p[:5])):
        with pytest.raises(ValueError, match="do not fit"):
            wide(*wrong, way)
    with pytest.raises(ValueError, match="do not fit"):
        wide(x, p, way, outputs=[99])
