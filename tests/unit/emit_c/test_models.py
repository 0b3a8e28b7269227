"""Models of the project: compiled functions give the values of the evaluator, and the same bits from two compilers."""

from __future__ import annotations

import ast
from pathlib import Path

import numpy as np
import pytest

from mb2fmu import formulation, lowering, mechanism, model
from mb2fmu.lowering.program import Program

MODELS = Path(__file__).parents[3] / "models"
FAST = ("simple_pendulum", "double_pendulum", "two_rods")
PLAIN = ("rhs", "position", "velocity", "acceleration", "dependent_speeds", "accelerations")


def parameters() -> list[object]:
    names = sorted(path.stem for path in MODELS.glob("*.py"))
    assert ast is not None
    return [pytest.param(name, marks=() if name in FAST else pytest.mark.slow) for name in names]


def lowered(name: str) -> tuple[Program, np.ndarray, np.ndarray, np.ndarray]:
    """The program of a model and its start values: x, r and p."""
    definition = model.check(model.load(MODELS / f"{name}.py"))
    equations = formulation.formulate(mechanism.read(definition))
    program = lowering.lower(equations)
    motion = [
        *definition.coordinates,
        *(definition.speeds[i] for i in equations.u_independent),
        *definition.auxiliary_states,
    ]
    p = [float(item.value) for item in definition.parameters if not item.calculated]
    x, r = [float(item.start) for item in motion], [float(item.start) for item in definition.inputs]
    return program, np.array(x), np.array(r), np.array(p)


@pytest.mark.parametrize("name", parameters())
def test_compiled_functions_give_the_values_of_the_evaluator(name: str, compile_model) -> None:
    program, x0, r0, p = lowered(name)
    units = [compile_model(program, compiler) for compiler in ("gcc", "zig")]
    rng = np.random.default_rng(0)
    for _ in range(5):
        x, r = x0 + 0.2 * rng.standard_normal(x0.shape), r0 + rng.standard_normal(r0.shape)
        t = float(rng.uniform(0.0, 3.0))
        for entry in PLAIN:
            expected = lowering.evaluator(program, entry)(t, x, r, p)
            values = [unit.call(entry, t, x, r, p) for unit in units]
            np.testing.assert_allclose(
                values[0], expected, rtol=1e-11, atol=1e-11 * (1 + np.max(np.abs(expected), initial=0.0))
            )
            assert values[0].tobytes() == values[1].tobytes()
