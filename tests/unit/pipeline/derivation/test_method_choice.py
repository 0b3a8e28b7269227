"""What ``auto`` and ``recursive`` stand for."""

from __future__ import annotations

from pathlib import Path

import pytest
from representatives import by_night

from mb2fmu import pipeline
from mb2fmu.compiler.program.evaluation_cost_estimate import estimate_evaluation_cost
from mb2fmu.compiler.program.program_result_dependencies import count_operations, count_solve_operations

MODELS = Path(__file__).parents[4] / "models"


@pytest.mark.parametrize(
    ("name", "arguments", "asked", "method"),
    [
        ("simple_pendulum", {}, "auto", "kane"),  # readable, and not twice as dear
        ("chaplygin_sleigh", {}, "recursive", "recursive-composite"),  # constraints need M
        ("heavy_top", {}, "auto", "lagrange"),  # a Lagrangian alone
        ("chain", {"n": 3}, "recursive", "recursive-composite"),
        ("chain", {"n": 12}, "auto", "recursive-articulated"),
    ],
)
def test_the_method_that_is_picked(name, arguments, asked, method):
    derivation = pipeline.derive(MODELS / f"{name}.py", arguments=arguments, method=asked)
    assert derivation.equations.method == method
    assert derivation.why


@pytest.mark.parametrize("n", [3, *by_night(7)])
def test_the_cheaper_variant_is_picked_and_both_are_named(n):
    path = MODELS / "chain.py"
    made = {
        m: pipeline.derive(path, arguments={"n": n}, method=m) for m in ("recursive-articulated", "recursive-composite")
    }
    costs = {m: estimate_evaluation_cost(d.program, "rhs") for m, d in made.items()}
    picked = pipeline.derive(path, arguments={"n": n}, method="recursive")
    assert costs[picked.equations.method] == min(costs.values())
    for method, value in costs.items():
        assert f"{value:.0f}" in picked.why, (method, picked.why)


def test_what_depends_on_parameters_only_costs_nothing():
    program = pipeline.derive(MODELS / "chain.py", arguments={"n": 1}, method="recursive-articulated").program
    assert estimate_evaluation_cost(program, "prepare") == 0


def test_newtons_method_costs_what_it_evaluates_and_not_a_solution():
    """The multipliers of a closed loop are found by Newton's method, whose F and step are evaluated more than once."""
    program = pipeline.derive(MODELS / "four_bar.py").program
    blocks = [block for block in program.blocks if block.kind == "newton"]
    assert blocks
    once = min(sum(count_operations(program.bodies[block.body], "residual").values()) for block in blocks)
    assert once > 2 * sum(count_solve_operations("solve", max(block.size for block in blocks)).values())
    assert estimate_evaluation_cost(program, "rhs") > sum(count_operations(program, "rhs").values()) + once
