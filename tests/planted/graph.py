"""Faults of lowering: a ``ScalarProgram`` that computes something else than the equations that it was made from."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
from planted.fault import Mutant, Subject, generator

from mb2fmu import pipeline
from mb2fmu.compiler.derivatives import ProgramWithDerivatives
from mb2fmu.compiler.evaluation import make_evaluator
from mb2fmu.compiler.program.program_builder import ProgramBuilder
from mb2fmu.compiler.program.program_copy import CopiedProgramNodes
from mb2fmu.compiler.program.scalar_program import Op, ScalarProgram
from mb2fmu.pipeline.derivation.right_hand_side import CompilableProgram

RESULTS = ("rhs", "position", "velocity", "acceleration", "dependent_speeds", "accelerations", "prepare")
"""Entry points whose results an importer sees."""

NodeChange = Callable[[ProgramBuilder, int], int]
"""From a node of the new program to the one that takes its place wherever it is used."""


class Changed(CopiedProgramNodes):
    """A copy in which others stand in the place of some nodes.

    Args:
        program: The right one.
        changes: Node of ``program`` → what takes its place.
    """

    def __init__(self, program: ScalarProgram, changes: Mapping[int, NodeChange]) -> None:
        self._changes = changes
        builder = ProgramBuilder(program.layout)
        builder.constant(1.0)  # so that nodes are copied one by one
        super().__init__(program, builder)

    def _copied(self, node: int) -> int:
        copied = super()._copied(node)
        change = self._changes.get(node)
        return change(self.builder, copied) if change else copied


def changed(program: ScalarProgram, changes: Mapping[int, NodeChange]) -> CompilableProgram:
    """The program with other nodes in the place of some, wherever they are used."""
    plain = dataclasses.replace(program, systems=())  # what is written out is differentiated as it is
    return CompilableProgram.of(Changed(plain, changes).builder.build())


def with_result(program: ScalarProgram, entry: str, index: int, change: NodeChange) -> CompilableProgram:
    """The program with another result of one entry point; ``outputs`` follows where it has the same label."""
    copy = Changed(dataclasses.replace(program, systems=()), {})
    label = program.entries[entry].labels[index]
    node = change(copy.builder, copy.node[program.entries[entry].results[index]])
    names = [entry]
    if entry in {"position", "velocity", "acceleration"} and label in program.entries["outputs"].labels:
        names.append("outputs")
    for name in names:
        old = program.entries[name]
        at = old.labels.index(label)
        results = [copy.node[result] for result in old.results]
        results[at] = node
        copy.builder.forget(name)
        copy.builder.entry(name, old.labels, results)
    return CompilableProgram.of(copy.builder.build())


def scaled(factor: float) -> NodeChange:
    """Times a number."""
    return lambda b, node: b.mul(b.constant(factor), node)


def number(value: float) -> NodeChange:
    """A constant instead."""
    return lambda b, _: b.constant(value)


def above(variable: Callable[[ProgramBuilder], int], threshold: float, wrong: NodeChange) -> NodeChange:
    """Wrong only where a variable's magnitude is larger than a threshold."""

    def change(b: ProgramBuilder, node: int) -> int:
        large = b.binary(Op.LT, b.constant(threshold), b.unary(Op.ABS, variable(b)))
        return b.select(large, wrong(b, node), node)

    return change


def mutants(subject: Subject) -> Iterator[Mutant]:
    """Every fault of lowering that can be planted in a program."""
    program = subject.derivation.program
    for faults in (_of_parameters, _of_inputs, _of_operations, _of_motion, _of_results):
        for kind, place, change in faults(subject, program):
            yield Mutant(kind, "program", place, change)
    yield from _of_derivatives(subject)


Planted = Iterator[tuple[str, str, Callable[[ScalarProgram], Any]]]


def _leaves(program: ScalarProgram, op: Op) -> dict[int, int]:
    """Index of what is read → node."""
    return {int(program.a[node]): int(node) for node in np.flatnonzero(program.op == op)}


def _values(subject: Subject) -> tuple[Any, Any, Any]:
    """Start values of states and inputs, values of the free parameters."""
    return pipeline.start_values(subject.derivation)


def _of_parameters(subject: Subject, program: ScalarProgram) -> Planted:
    leaves, names = _leaves(program, Op.PARAMETER), program.layout.parameters
    _, _, values = _values(subject)
    for i, node in leaves.items():
        for j in leaves:
            if i != j:
                same = " (of equal value)" if values[i] == values[j] else ""
                yield (
                    "parameter index",
                    f"{names[j]} in the place of {names[i]}{same}",
                    lambda p, node=node, j=j: changed(p, {node: lambda b, _: b.parameter(j)}),
                )
        value = float(values[i])
        yield (
            "wrong after a parameter changed",
            f"{names[i]} stays at its default",
            lambda p, node=node, value=value: changed(p, {node: lambda b, _: b.constant(value)}),
        )


def _of_inputs(subject: Subject, program: ScalarProgram) -> Planted:
    _, starts, _ = _values(subject)
    for i, node in _leaves(program, Op.INPUT).items():
        name = program.layout.inputs[i]
        start = float(starts[i])
        yield (
            "frozen input",
            f"{name} stays at its start",
            lambda p, node=node, start=start: changed(p, {node: lambda b, _: b.constant(start)}),
        )
        yield "sign", f"input {name} negated", lambda p, node=node: changed(p, {node: lambda b, n: b.neg(n)})
        yield "factor of a load", f"input {name} times 1.02", lambda p, node=node: changed(p, {node: scaled(1.02)})


def speeds_of(program: ScalarProgram) -> list[int]:
    """Indices of the states that are speeds."""
    known = set(program.entries["accelerations"].labels)
    return [i for i, name in enumerate(program.layout.states) if name in known]


def _degrees(program: ScalarProgram) -> list[int]:
    """Of each node the number of speeds that are multiplied in it at most, 2 for more."""
    speeds = set(speeds_of(program))
    degree: list[int] = []
    for node in range(len(program)):
        op, operands = Op(program.op[node]), program.operands(node)
        if op is Op.STATE:
            degree.append(int(program.a[node]) in speeds)
        elif op is Op.MUL:
            degree.append(min(sum(degree[each] for each in operands), 2))
        else:
            degree.append(max((degree[each] for each in operands), default=0))
    return degree


def _needed(program: ScalarProgram) -> list[int]:
    """Nodes that x' needs."""
    wanted, stack = set(), list(program.entries["rhs"].results)
    while stack:
        node = stack.pop()
        if node not in wanted:
            wanted.add(node)
            stack += program.operands(node)
    return sorted(wanted)


def _of_operations(_subject: Subject, program: ScalarProgram) -> Planted:
    degree = _degrees(program)
    for node in _needed(program):
        op = Op(program.op[node])
        a, b = int(program.a[node]), int(program.b[node])
        if op is Op.SUB:
            yield "sign", f"node {node}: + for −", lambda p, node=node: _operation(p, node, Op.ADD)
        elif op is Op.ADD:
            yield "sign", f"node {node}: − for +", lambda p, node=node: _operation(p, node, Op.SUB)
        elif op is Op.MUL and degree[node] == 2 and degree[a] == 1 and degree[b] == 1:
            yield (
                "missing Coriolis term",
                f"node {node}: no product of speeds",
                lambda p, node=node: changed(p, {node: number(0.0)}),
            )
        elif op is Op.CONSTANT and abs(program.constants[a]) not in {0.0, 1.0}:
            value = float(program.constants[a])
            yield (
                "constant",
                f"node {node}: {value * 1.02:g} for {value:g}",
                lambda p, node=node, value=value: changed(p, {node: number(value * 1.02)}),
            )


def _operation(program: ScalarProgram, node: int, op: Op) -> CompilableProgram:
    """Another operation on the same operands."""
    copy: dict[str, Changed] = {}

    def change(b: ProgramBuilder, _: int) -> int:
        this = copy["this"]
        return b.binary(op, this.node[int(program.a[node])], this.node[int(program.b[node])])

    class Operated(Changed):
        def _copied(self, at: int) -> int:
            copy["this"] = self
            return super()._copied(at)

    plain = dataclasses.replace(program, systems=())
    return CompilableProgram.of(Operated(plain, {node: change}).builder.build())


def _of_motion(subject: Subject, program: ScalarProgram) -> Planted:
    x0, _, p0 = _values(subject)
    largest = _largest_speeds(subject, program)
    accelerated = speeds_of(program)
    for j in speeds_of(program):
        for factor in (0.7, 1.2):
            threshold = factor * max(largest[j], 1e-6)
            for k in accelerated:
                name, other = program.layout.states[k], program.layout.states[j]
                place = f"{name}' times 1.05 where |{other}| > {threshold:.3g} ({factor} of the experiment's largest)"
                wrong = above(lambda b, j=j: b.state(j), threshold, scaled(1.05))  # type: ignore[misc]
                yield (
                    "wrong above a speed",
                    place,
                    lambda p, k=k, wrong=wrong: with_result(p, "rhs", k, wrong),
                )
    for i, name in enumerate(program.layout.parameters):
        value = float(p0[i])
        for k in accelerated[:1]:

            def later(b: ProgramBuilder, node: int, i: int = i, value: float = value) -> int:
                same = b.binary(Op.EQ, b.parameter(i), b.constant(value))
                return b.select(same, node, b.mul(b.constant(1.05), node))

            place = f"{program.layout.states[k]}' times 1.05 once {name} is another"
            yield (
                "wrong after a parameter changed",
                place,
                lambda p, k=k, later=later: with_result(p, "rhs", k, later),
            )
    for k in range(len(x0)):
        name = program.layout.states[k]
        yield "derivative", f"{name}' times 1.002", lambda p, k=k: with_result(p, "rhs", k, scaled(1.002))


def _largest_speeds(subject: Subject, program: ScalarProgram) -> dict[int, float]:
    """The largest magnitude of each speed that is a state, in the model's own experiment."""
    reference = subject.yardstick.reference if hasattr(subject.yardstick, "reference") else subject.yardstick
    trajectory = reference.trajectory
    names = {str(symbol): record.name for symbol, record in _speeds(subject)}
    found = {}
    for j in speeds_of(program):
        label = program.layout.states[j]
        name = label if label in trajectory.names else names.get(label, label)
        found[j] = float(np.max(np.abs(trajectory[name]))) if name in trajectory.names else 1.0
    return found


def _speeds(subject: Subject) -> Iterator[tuple[Any, Any]]:
    mechanism = subject.mechanism
    return zip(mechanism.u, mechanism.declared.speeds, strict=False)


def _of_results(subject: Subject, program: ScalarProgram) -> Planted:
    for entry in ("position", "velocity", "acceleration"):
        labels = program.entries[entry].labels
        for i, label in enumerate(labels):
            yield "one output", f"{label} times 1.02", lambda p, e=entry, i=i: with_result(p, e, i, scaled(1.02))
    for entry in ("dependent_speeds", "accelerations", "prepare"):
        for i, label in enumerate(program.entries[entry].labels):
            if (entry, i) not in subject.shown:
                continue
            kind = {"dependent_speeds": "one output", "accelerations": "one output", "prepare": "calculated parameter"}
            place = f"{label} of {entry} times 1.02, where it is shown only"
            yield kind[entry], place, lambda p, e=entry, i=i: with_result(p, e, i, scaled(1.02))


def _of_derivatives(subject: Subject) -> Iterator[Mutant]:
    entries = subject.derivation.program.entries
    labels = [(name, k, label) for name in RESULTS for k, label in enumerate(entries[name].labels)]
    for i, (entry, k, label) in enumerate(labels):
        if entry == "prepare" or (entry, k) not in subject.shown:
            continue
        place = f"of {label} ({entry}) times 1.05"
        yield Mutant("directional derivative", "derivatives", place, lambda n, i=i: _native(n, "tangent", i))
    x0, r0, _ = _values(subject)
    names = ("time", *subject.derivation.program.layout.states, *subject.derivation.program.layout.inputs)
    for i in range(1, 1 + len(x0) + len(r0)):
        place = f"by {names[i]} times 1.05"
        yield Mutant("adjoint derivative", "derivatives", place, lambda n, i=i: _native(n, "adjoint", i), fmi="3")


def _native(native: ProgramWithDerivatives, entry: str, index: int) -> ProgramWithDerivatives:
    """Another result of an entry point of a program with derivatives."""
    return dataclasses.replace(native, program=with_result(native.program, entry, index, scaled(1.05)))


# --- whether a fault changes anything ---

_STATES = 24
_LITTLE = 1e-9  # of the largest result, below which a result is nothing but round-off


def points(subject: Subject, seed: int) -> list[tuple[float, Any, Any, Any]]:
    """Times, states, inputs and parameters that the FMU offers, near and far from its start."""
    rng = generator("points", subject.name, seed)
    x0, r0, p0 = _values(subject)
    free = [p for p in subject.mechanism.declared.parameters if not p.calculated]
    low = np.array([-np.inf if p.minimum is None else p.minimum for p in free])
    high = np.array([np.inf if p.maximum is None else p.maximum for p in free])
    largest = _largest_speeds(subject, subject.derivation.program)
    speeds = list(largest)
    faster = np.array([max(each, 0.1) for each in largest.values()])
    found = []
    for k in range(_STATES):
        spread = (0.3, 0.03, 0.003)[k % 3]
        x = x0 + spread * rng.uniform(-1, 1, len(x0)) * np.maximum(np.abs(x0), 0.3)
        x[speeds] = x0[speeds] + (2.0, 1.0, 0.1)[k % 3] * rng.uniform(-1, 1, len(speeds)) * faster
        r = r0 + rng.uniform(-1, 1, len(r0)) * np.maximum(np.abs(r0), 1.0)
        p = p0 * (1 + min(spread, 0.1) * rng.uniform(-1, 1, len(p0))) + (p0 == 0) * rng.uniform(0.01, 0.1, len(p0))
        found.append((float(rng.uniform(0, 1)), x, r, np.clip(p, low, high)))
    return found


def effect(
    subject: Subject, right: ScalarProgram, wrong: ScalarProgram, *, entries: tuple[str, ...] = RESULTS
) -> float:
    """How much a fault changes of what the FMU computes: largest change over the result's largest magnitude.

    Infinite where the wrong program has no result though the right one has one.
    """
    evaluators = [make_evaluator(program, list(entries)) for program in (right, wrong)]
    rng = generator("seeds", subject.name)
    counts = len(right.layout.seeds)
    values: list[list[Any]] = [[], []]
    for t, x, r, p in points(subject, 0):
        seeds = rng.normal(size=counts)
        for found, evaluate in zip(values, evaluators, strict=True):
            try:
                found.append(evaluate(t, x, r, p, None, seeds))
            except Exception:  # noqa: BLE001  no solution there: whatever is said of it
                found.append(None)
    shown = [(a, b) for a, b in zip(*values, strict=True) if a is not None and np.all(np.isfinite(a))]
    if not shown:
        return float("nan")
    if any(b is None or not np.all(np.isfinite(b)) for _, b in shown):
        return float("inf")
    a, b = (np.array(each) for each in zip(*shown, strict=True))
    scale = np.max(np.abs(a), axis=0)
    scale = np.maximum(scale, _LITTLE * float(np.max(scale, initial=1e-300)))
    return float(np.max(np.abs(a - b) / scale, initial=0.0))
