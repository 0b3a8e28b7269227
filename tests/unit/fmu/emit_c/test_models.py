"""Models of the project: compiled functions give the values of the evaluator, and the same bits from two compilers."""

from __future__ import annotations

from functools import cache, partial
from pathlib import Path

import numpy as np
import pytest
from large_models import LARGE
from representatives import marked

from mb2fmu import model
from mb2fmu.compiler import evaluation, lowering
from mb2fmu.compiler.derivatives.derivative_entry_points import ProgramWithDerivatives, add_fmu_derivatives
from mb2fmu.compiler.program.scalar_program import ScalarProgram
from mb2fmu.mechanics import formulations, mechanism

MODELS = Path(__file__).parents[4] / "models"
FAST = ("simple_pendulum", "double_pendulum", "two_rods")
DAILY = {"muscle_arm"}
"""Curves; test_c_loop_printing has code that is printed as loops, test_compiled_targets a loop that Newton's method
closes."""
PLAIN = ("rhs", "position", "velocity", "acceleration", "dependent_speeds", "accelerations")


# Large ones compile for a minute and more, and a short chain's statements are of the same kinds.
SHORTENED = {"chain": {"n": 3}}


def parameters() -> list[object]:
    names = sorted(path.stem for path in MODELS.glob("*.py") if path.stem not in LARGE or path.stem in SHORTENED)
    repeating = set(names) - DAILY  # statements of the same kinds
    return marked(names, slow=frozenset(names) - set(FAST), repeating=repeating)


def lowered(name: str) -> tuple[ScalarProgram, np.ndarray, np.ndarray, np.ndarray, float]:
    """The program of a model, its start values x, r and p, and how far from x loops can still be closed."""
    definition = model.check_model(model.load(MODELS / f"{name}.py", SHORTENED.get(name)))
    equations = formulations.formulate(mechanism.read_mechanism(definition))
    program = lowering.lower_equations_to_program(equations)
    motion = [
        *definition.coordinates,
        *(definition.speeds[i] for i in equations.u_independent),
        *definition.auxiliary_states,
    ]
    p = [float(item.value) for item in definition.parameters if not item.calculated]
    x, r = [float(item.start) for item in motion], [float(item.start) for item in definition.inputs]
    return program, np.array(x), np.array(r), np.array(p), 0.01 if equations.holonomic else 0.2


def close(values: np.ndarray, expected: np.ndarray) -> None:
    np.testing.assert_allclose(values, expected, rtol=1e-10, atol=1e-11 * (1.0 + np.max(np.abs(expected), initial=0.0)))


@pytest.mark.parametrize("name", parameters())
def test_compiled_functions_give_the_values_of_the_evaluator(name: str, compile_model) -> None:
    program, x0, r0, p, reach = lowered(name)
    units = [compile_model(program, compiler) for compiler in ("gcc", "zig")]
    native = add_fmu_derivatives(program)
    evaluator = cache(partial(evaluation.make_evaluator, native.program))
    rng = np.random.default_rng(0)
    for _ in range(5):
        x, r = x0 + reach * rng.standard_normal(x0.shape), r0 + rng.standard_normal(r0.shape)
        t = float(rng.uniform(0.0, 3.0))
        calls: list[tuple[str, tuple[np.ndarray, ...]]] = [(entry, ()) for entry in PLAIN]
        sizes = {"tangent": len(native.program.entries["adjoint"].results)}
        sizes["adjoint"] = len(native.program.entries["tangent"].results)
        calls += [(entry, (rng.standard_normal(size),)) for entry, size in sizes.items()]
        for entry, seeds in calls:
            values = [unit.call(entry, t, x, r, p, *seeds) for unit in units]
            close(values[0], evaluator(entry)(t, x, r, p, (), padded(native, seeds)))
            assert values[0].tobytes() == values[1].tobytes()
        check_jacobian(native, evaluator("tangent"), units[0], (t, x, r, p))


def padded(native: ProgramWithDerivatives, seeds: tuple[np.ndarray, ...]) -> np.ndarray:
    """As many seeds as the layout names: tangent and adjoint read the first of them."""
    return np.resize(seeds[0], len(native.program.layout.seeds)) if seeds else np.zeros(0)


def check_jacobian(
    native: ProgramWithDerivatives, tangent, unit, arguments: tuple[float, np.ndarray, np.ndarray, np.ndarray]
) -> None:
    """Against directional derivatives: a large Jacobian is no entry point of the program."""
    n = len(native.program.layout.states)
    dense, slope = unit.jacobian(*arguments)
    along = np.eye(1 + n, len(native.program.layout.seeds))  # time, states
    expected_slope, *columns = (tangent(*arguments, (), seeds)[:n] for seeds in along)
    expected = np.column_stack(columns)
    close(dense, expected)
    close(slope, expected_slope)
