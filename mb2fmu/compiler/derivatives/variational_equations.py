"""``add_variational_states``: a Program with S = ∂x/∂θ as further states, for some parameters and start values θ."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from mb2fmu.compiler.derivatives.derivative_entry_points import ProgramWithDerivatives
from mb2fmu.compiler.derivatives.forward_derivatives import (
    VariableReference,
    add_jacobian_entry_point,
    form_directional_derivatives,
    list_variable_group_members,
)
from mb2fmu.compiler.derivatives.newton_solution_derivatives import make_newton_solutions_differentiable
from mb2fmu.compiler.program.program_builder import ProgramBuilder
from mb2fmu.compiler.program.program_copy import CopiedProgramNodes
from mb2fmu.compiler.program.program_pruning import prune_program
from mb2fmu.compiler.program.program_result_dependencies import VariableGroup
from mb2fmu.compiler.program.scalar_program import ProgramEntryPoint, ScalarProgram


def add_variational_states(program: ScalarProgram, to: Sequence[VariableReference], order: int = 1) -> ScalarProgram:
    """Return the program with more states: S = ∂x/∂θ, one block of n_x behind the other, in the order of ``to``.

    S' = ∂f/∂x S + ∂f/∂θ, and so for outputs y and projections P, which are results behind those that are there; x', y
    and P are the very nodes that they were.

    Args:
        program: As lowered.
        to: Name and place of each θ: a parameter, or a state for its start value.
        order: 2 if S' will be differentiated once more.

    Returns:
        A program in which ``project`` has all states, if it had any, and ``initialize`` is always there: x, then S,
        from start values as they were set.

    Source: Hairer, Nørsett, Wanner: Solving Ordinary Differential Equations I, 2nd ed. 1993, sect. I.14.
    """
    whole, sources = program, {}
    for name in ("rhs", "outputs", "project", "initialize"):
        if name in program.entries and program.entries[name].results:
            whole, sources[name] = make_newton_solutions_differentiable(whole, name, order if name == "rhs" else 1)
    states = program.layout.states
    carried = (*states, *(f"d {state} / d {name}" for name, _ in to for state in states))
    builder = ProgramBuilder(dataclasses.replace(program.layout, states=carried))
    varied = _VariationalResults(CopiedProgramNodes(whole, builder), to, len(states), sources)
    for name in sources:
        labels = program.entries["outputs"].labels if name == "outputs" else states
        along = [node for k in range(len(to)) for node in varied.result_derivatives(name, k)]
        builder.entry(
            name,
            (*labels, *(f"d {label} / d {other}" for other, _ in to for label in labels)),
            [*varied.results(name), *along],
        )
    if "initialize" not in sources:
        start = [builder.state(i) for i in range(len(states))]
        builder.entry(
            "initialize", carried, [*start, *(node for k in range(len(to)) for node in varied.initial_sensitivities(k))]
        )
    for source in set(sources.values()) - program.entries.keys():
        builder.forget(source)
    return prune_program(builder.build())


def add_variational_jacobian(native: ProgramWithDerivatives, to: Sequence[VariableReference]) -> ProgramWithDerivatives:
    """Return the same with the Jacobian of (x', S') by x and time: first that of x' unchanged, then that of S'.

    Args:
        native: With a Jacobian that is written out.
        to: As of :func:`add_variational_states`.
    """
    assert native.column_colours is None, "the Jacobian is not written out"
    kept = {name: entry for name, entry in native.program.entries.items() if "tangent" not in name}
    n = len(native.program.layout.states)
    varied = add_variational_states(dataclasses.replace(native.program, entries=kept), to, order=2)
    rates = varied.entries["rhs"]
    entries = {**varied.entries, "rates": ProgramEntryPoint("rates", rates.labels[n:], rates.results[n:])}
    builder = ProgramBuilder(varied.layout)
    copy = CopiedProgramNodes(dataclasses.replace(varied, entries=entries), builder)
    variables = [*list_variable_group_members(varied, ("states",))[:n], *list_variable_group_members(varied, ("time",))]
    rows, columns = add_jacobian_entry_point(copy, "rates", variables, "jacobian_rates")
    found = builder.build()
    nodes, labels = found.entries["jacobian_rates"].results, found.entries["jacobian_rates"].labels
    by_time = columns == n
    entries = {name: entry for name, entry in found.entries.items() if name not in {"rates", "jacobian_rates"}}
    for name, which in (("jacobian", ~by_time), ("jacobian_time", by_time)):
        more, old = np.flatnonzero(which).tolist(), entries[name]
        entries[name] = ProgramEntryPoint(
            name, (*old.labels, *(labels[i] for i in more)), (*old.results, *(nodes[i] for i in more))
        )
    return ProgramWithDerivatives(
        program=prune_program(dataclasses.replace(found, entries=entries)),
        rows=np.concatenate([native.rows, n + rows[~by_time]]),
        columns=np.concatenate([native.columns, columns[~by_time]]),
        time_derivative_rows=np.concatenate([native.time_derivative_rows, n + rows[by_time]]),
    )


class _VariationalResults:
    """Results of entry points and their derivatives by each θ.

    Args:
        copy: In which they are formed.
        to: Name and place of each θ.
        n: Number of states.
        sources: Entry point → where it can be differentiated.
    """

    def __init__(
        self, copy: CopiedProgramNodes, to: Sequence[VariableReference], n: int, sources: dict[str, str]
    ) -> None:
        self._copy, self._to, self._n, self._sources = copy, to, n, sources

    def results(self, name: str) -> list[int]:
        """Return the results; states are replaced by those given elsewhere."""
        found = [self._copy.node[node] for node in self._copy.program.entries[name].results]
        if name != "outputs":
            found += [self._copy.builder.state(i) for i in range(len(found), self._n)]
        return found

    def result_derivatives(self, name: str, k: int) -> list[int]:
        """Return the derivatives of the results by the k-th θ."""
        carried = self.initial_sensitivities(k) if name == "initialize" else self._carried(k)
        leaf = self._to[k][1]
        along: dict[tuple[VariableGroup, int], int] = {("states", i): node for i, node in enumerate(carried)}
        if leaf[0] == "parameters":
            along[leaf] = self._copy.builder.constant(1.0)
        found = form_directional_derivatives(self._copy, along, self._copy.program.entries[self._sources[name]].results)
        return found if name == "outputs" else [*found, *carried[len(found) :]]

    def initial_sensitivities(self, k: int) -> list[int]:
        """Return the initial S: 1 where θ is the state's own start value."""
        leaf, b = self._to[k][1], self._copy.builder
        return [b.constant(float(leaf == ("states", i))) for i in range(self._n)]

    def _carried(self, k: int) -> list[int]:
        """Return the states that hold S."""
        return [self._copy.builder.state(self._n * (k + 1) + i) for i in range(self._n)]
