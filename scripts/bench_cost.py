"""What each operation costs in a compiled FMU, among others: the weights of ``evaluation_cost_estimate.py``.

Into x' of a chain of joints more operations of one kind are put, evenly among what is there, and the program is timed
with and without them: so an operation costs what it adds, waiting included, not what it takes alone. Everything is
compiled as an FMU is, for processors with AVX2; programs are timed in turns, the fastest of many rounds counts. The
FMU is what an operation of the chain costs, most of which are products, sums and differences. How often Newton's
method evaluates its body is counted while loops move.
"""

from __future__ import annotations

import argparse
import dataclasses
import functools
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from bench_chain import ROOT, derived, fastest, ours
from scipy.integrate import solve_ivp

from mb2fmu import pipeline
from mb2fmu.compiler.arithmetic import python_runtime
from mb2fmu.compiler.evaluation.numpy_printer import find_parameter_only_nodes
from mb2fmu.compiler.program import evaluation_cost_estimate
from mb2fmu.compiler.program.program_builder import ProgramBuilder
from mb2fmu.compiler.program.program_copy import CopiedProgramNodes
from mb2fmu.compiler.program.program_result_dependencies import count_operations, count_solve_operations
from mb2fmu.compiler.program.scalar_program import EquationSolveBlock, Op, PiecewisePolynomial, ScalarProgram
from mb2fmu.model.scalar_operation_table import find_operations_by_attribute
from mb2fmu.pipeline.derivation.right_hand_side import CompilableProgram

JOINTS = 6
PLACES = 48
"""Where something is added to the chain."""
SIZES = (2, 3, 4, 6, 9)
"""Of matrices."""
LOOPS = ("crank_slider", "four_bar", "n_four_bar", "andrews")
SMALL = 1e-12  # of what is added to a value
UNARY = sorted(find_operations_by_attribute(lambda row: row.arity == 1) - {Op.NEG, Op.FROZEN, Op.NOT, Op.ACOSH})
BINARY = sorted(find_operations_by_attribute(lambda row: row.arity == 2) - {Op.SUB, Op.LE, Op.EQ, Op.AND, Op.OR})

KINDS = ("ldlt_factor", "lu_factor")
BLOCKS = 4
"""Matrices that are added."""

Added = Callable[[ProgramBuilder, int, int], list[int]]
"""What is added to a value, given a number between 0 and 1 and which place it is."""


def main(arguments: Sequence[str]) -> int:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=60, help="of which the fastest counts")
    rounds = parser.parse_args(arguments).rounds
    derivation, _ = derived(JOINTS)
    with tempfile.TemporaryDirectory() as name:
        sides = {}
        for kind, added in (kinds() | blocks()).items():
            folder = Path(name) / kind
            folder.mkdir()
            program = CompilableProgram.of(with_more(derivation.program, added))
            changed = dataclasses.replace(derivation, program=program, program_with_modes=program)
            (sides[kind],) = ours(changed, JOINTS, folder, ("avx2",)).values()
        taken = fastest(sides, JOINTS, rounds)
    one = taken["nothing"] / sum(count_operations(with_more(derivation.program, kinds()["nothing"]), "rhs").values())
    print(f"an operation of the chain: {one:.3f} ns")
    print("| operation | ns | as many of the chain's | weight |\n|---|---:|---:|---:|")
    for op in (*BINARY, *UNARY, Op.ACOSH, Op.SELECT, Op.TABLE):
        ns = (taken[op.name] - taken["nothing"]) / PLACES
        print(
            f"| {op.name} | {ns:.2f} | {ns / one:.1f} | {evaluation_cost_estimate.OPERATION_COSTS.get(op, 1.0):.0f} |"
        )
    for kind in KINDS:
        for n in SIZES:
            ns = (taken[f"{kind} {n}"] - taken[f"{kind} {n} without"]) / BLOCKS
            print_block(kind, n, ns / one - 2 * n)
    for model in LOOPS:
        print(f"Newton's method in {model}: {evaluations(model):.2f} evaluations of its body")
    return 0


def print_block(kind: str, n: int, found: float) -> None:
    """What a factorization with one solution costs, and as a multiple of its operations."""
    counts: dict[str, float] = {}
    for part in (kind, "solve"):
        for op, count in count_solve_operations(part, n).items():
            counts[op] = counts.get(op, 0.0) + count
    written = sum(evaluation_cost_estimate.OPERATION_COSTS.get(Op[op], 1.0) * count for op, count in counts.items())
    print(f"{kind} and solve of {n}: {found:.0f} operations of the chain, {found / written:.2f} for each of its own")


# --- what is added ----------------------------------------------------------------------------------------------------


def kinds() -> dict[str, Added]:
    """One operation more, and none more."""
    found: dict[str, Added] = {"nothing": lambda _, a, __: [a]}
    for op in UNARY:
        found[op.name] = functools.partial(_unary, op)
    for op in BINARY:
        found[op.name] = functools.partial(_binary, op)
    table = PiecewisePolynomial(
        "curve", tuple(np.linspace(0.0, 1.0, 9).tolist()), tuple((float(k),) * 8 for k in range(1, 5))
    )
    found["ACOSH"] = lambda b, a, _: [b.unary(Op.ACOSH, b.add(a, b.constant(1.0)))]
    found["SELECT"] = lambda b, a, _: [b.select(b.state(JOINTS), a, b.state(1))]
    found["TABLE"] = lambda b, a, _: [b.table(table, 0, a)]
    return found


def _unary(op: Op, b: ProgramBuilder, a: int, _place: int) -> list[int]:
    return [b.unary(op, a)]


def _binary(op: Op, b: ProgramBuilder, a: int, place: int) -> list[int]:
    return [b.binary(op, a, b.state(JOINTS + place % JOINTS))]


def blocks() -> dict[str, Added]:
    """Some factorizations, each with one solution; and their entries alone."""
    found: dict[str, Added] = {}
    for kind in KINDS:
        for n in SIZES:
            found[f"{kind} {n}"] = functools.partial(_block, kind, n, solved=True)
            found[f"{kind} {n} without"] = functools.partial(_block, kind, n, solved=False)
    return found


def _block(kind: Any, n: int, b: ProgramBuilder, a: int, place: int, *, solved: bool) -> list[int]:
    if place % (PLACES // BLOCKS):
        return [a]
    pairs = [(i, j) for i in range(n) for j in range(n if kind == "lu_factor" else i + 1)]
    entries = [b.add(b.mul(a, b.constant(1 / (1 + i + 2 * j))), b.constant(9.0 * (i == j))) for i, j in pairs]
    right = [b.add(a, b.state(k)) for k in range(n)]
    if not solved:
        return [*entries, *right]
    return [*entries, *right, *b.solution(b.block(EquationSolveBlock(kind, n, tuple(entries), name="more")), right)]


class _More(CopiedProgramNodes):
    """A copy in which values at some places are a little larger.

    Args:
        program: Any.
        builder: Takes the nodes.
        places: Nodes of the program → which place it is.
        added: What is added there, but for a small factor.
    """

    def __init__(self, program: ScalarProgram, builder: ProgramBuilder, places: dict[int, int], added: Added) -> None:
        self._places = places
        self._added = added
        super().__init__(program, builder)

    def _copied(self, node: int) -> int:
        b, value = self.builder, super()._copied(node)
        place = self._places.get(node)
        if place is None:
            return value
        argument = b.mul(b.add(b.state(place % JOINTS), b.constant(0.1)), b.constant(1.0 - place / (2 * PLACES)))
        for more in self._added(b, argument, place):
            value = b.add(value, b.mul(more, b.constant(SMALL)))
        return value


def with_more(program: ScalarProgram, added: Added) -> ScalarProgram:
    """The program with something added at places that are spread evenly over what moves."""
    ordinary = np.isin(program.op, [Op.ADD, Op.SUB, Op.MUL]) & ~find_parameter_only_nodes(program)
    nodes = np.flatnonzero(ordinary)
    chosen = nodes[np.linspace(0, len(nodes) - 1, PLACES).astype(int)]
    places = {int(node): place for place, node in enumerate(chosen)}
    builder = ProgramBuilder(program.layout)
    _More(program, builder, places, added)
    return builder.build()


# --- Newton's method --------------------------------------------------------------------------------------------------


def evaluations(model: str) -> float:
    """How often Newton's method evaluates its body, on the average over a motion of the model."""
    counts = [0, 0]
    plain = python_runtime.FAST["newton"]

    def counting(n: int, name: str, body: Callable[..., Any], theta: Any, guess: Any) -> Any:
        def counted(*arguments: Any) -> Any:
            counts[1] += 1
            return body(*arguments)

        counts[0] += 1
        return plain(n, name, counted, theta, guess)

    python_runtime.FAST["newton"] = counting
    try:
        f = pipeline.rhs(ROOT / "models" / f"{model}.py")
    finally:
        python_runtime.FAST["newton"] = plain
    solve_ivp(f, (0.0, 0.2), f.x0, rtol=1e-6, atol=1e-8, max_step=0.01)
    return counts[1] / counts[0]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
