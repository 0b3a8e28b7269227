"""Faults that show under a condition only: beyond an angle, for one sign, late, after a reset, of one variable."""

from __future__ import annotations

import dataclasses
import functools
import itertools
from collections.abc import Iterator
from typing import Any, Literal

import numpy as np
from planted import description, graph
from planted.fault import Mutant, Subject, generator
from planted.runtime import replaced

from mb2fmu.compiler.derivatives import ProgramWithDerivatives
from mb2fmu.compiler.program.program_builder import ProgramBuilder
from mb2fmu.compiler.program.scalar_program import Op, ScalarProgram

_FIVE_PERCENT = 1.05
_REACHED = {"wrong far from the start", "wrong in the end", "saturated input"}
"""Where the default experiment comes, but not random points near its start."""


def mutants(subject: Subject) -> Iterator[Mutant]:
    """Every fault of this room that can be planted in a model."""
    program = subject.derivation.program
    for faults in (_of_regions, _of_inputs, _of_time, _of_quaternions):
        for kind, place, change in faults(subject, program):
            yield Mutant(kind, "program", place, change, by_construction=kind in _REACHED)
    yield from _of_single_derivatives(subject)
    fmi: Literal["2", "3"] = "2" if generator(subject.name, "conditional").random() < 0.5 else "3"
    for kind, place, change in _of_calls(subject, program):
        yield Mutant(kind, "sources", place, change, fmi=fmi, by_construction=True)
    for kind, place, edit in _of_description(subject, fmi):
        yield Mutant(kind, "description", place, description.edited(edit), fmi=fmi, by_construction=True)


def _where(b: ProgramBuilder, condition: int, node: int, factor: float = _FIVE_PERCENT) -> int:
    """Times a factor where the condition holds."""
    return b.select(condition, b.mul(b.constant(factor), node), node)


def _of_regions(subject: Subject, program: ScalarProgram) -> graph.Planted:
    """x' wrong where a speed is negative, and where a coordinate has gone far from its start."""
    speeds = graph.speeds_of(program)
    for j, k in itertools.product(speeds, speeds):
        name, other = program.layout.states[k], program.layout.states[j]

        def backwards(b: ProgramBuilder, node: int, j: int = j) -> int:
            return _where(b, b.binary(Op.LT, b.state(j), b.constant(0.0)), node)

        place = f"{name}' times 1.05 where {other} < 0"
        yield "wrong at negative speed", place, lambda p, k=k, f=backwards: graph.with_result(p, "rhs", k, f)
    reached, names = _excursions(subject), list(program.layout.states)
    for (name, (start, far)), k in itertools.product(reached.items(), speeds):
        if name not in names:
            continue

        def beyond(b: ProgramBuilder, node: int, j: int = names.index(name), s: float = start, f: float = far) -> int:
            way = b.unary(Op.ABS, b.sub(b.state(j), b.constant(s)))
            return _where(b, b.binary(Op.LT, b.constant(0.7 * f), way), node)

        place = f"{names[k]}' times 1.05 where {name} is farther than {0.7 * far:.3g} from its start"
        yield "wrong far from the start", place, lambda p, k=k, f=beyond: graph.with_result(p, "rhs", k, f)


def _excursions(subject: Subject) -> dict[str, tuple[float, float]]:
    """Coordinate → start value, and how far from it the default experiment goes."""
    trajectory = subject.yardstick.reference.trajectory
    symbols = {
        record.name: str(symbol) for symbol, record in zip(subject.mechanism.q, _coordinates(subject), strict=False)
    }
    found = {}
    for name, symbol in symbols.items():
        values = trajectory[name]
        far = float(np.max(np.abs(values - values[0])))
        if far > 0.0:
            found[symbol] = (float(values[0]), far)
    return found


def _coordinates(subject: Subject) -> Any:
    return subject.mechanism.declared.coordinates


def _of_inputs(subject: Subject, program: ScalarProgram) -> graph.Planted:
    """Inputs that saturate, are cut at zero, or count by their magnitude."""
    run = subject.yardstick.reference.experiment
    least = [record.minimum for record in subject.mechanism.declared.inputs]
    for i, node in graph._leaves(program, Op.INPUT).items():
        name, most = program.layout.inputs[i], float(np.max(np.abs(run.inputs[:, i])))
        if most:

            def saturated(b: ProgramBuilder, n: int, most: float = most) -> int:
                return b.binary(Op.MIN, n, b.constant(0.8 * most))

            yield "saturated input", f"{name} at {0.8 * most:.3g}", _changed(node, saturated)
        low = least[i]
        if low is not None and low >= 0.0:
            continue  # an input that is never negative is cut nowhere
        yield "input cut at zero", name, _changed(node, lambda b, n: b.binary(Op.MAX, n, b.constant(0.0)))
        yield "input by its magnitude", name, _changed(node, lambda b, n: b.unary(Op.ABS, n))


def _changed(node: int, change: graph.NodeChange) -> Any:
    return lambda p: graph.changed(p, {node: change})


def _of_time(subject: Subject, program: ScalarProgram) -> graph.Planted:
    """x' wrong in the last fifth of the experiment; signals of time that come late."""
    stop = float(subject.yardstick.reference.experiment.time[-1])
    for k in graph.speeds_of(program):

        def late(b: ProgramBuilder, node: int) -> int:
            return _where(b, b.binary(Op.LT, b.constant(0.8 * stop), b.time()), node)

        place = f"{program.layout.states[k]}' times 1.05 from {0.8 * stop:.3g} s on"
        yield "wrong in the end", place, lambda p, k=k, f=late: graph.with_result(p, "rhs", k, f)
    for node in graph._leaves(program, Op.TIME).values():
        yield "late time", "by 1 % of the experiment", _changed(node, lambda b, n: b.sub(n, b.constant(0.01 * stop)))


def _of_quaternions(subject: Subject, program: ScalarProgram) -> graph.Planted:
    """Norms that grow: each component moves outwards by a hundredth of itself per second."""
    equations, states = subject.derivation.equations, list(program.layout.states)
    for component in (equations.q[k] for group in equations.quaternions for k in group):
        if str(component) in states:
            i = states.index(str(component))

            def outwards(b: ProgramBuilder, node: int, i: int = i) -> int:
                return b.add(node, b.mul(b.constant(0.01), b.state(i)))

            yield (
                "norm of a quaternion",
                f"{component} grows",
                lambda p, i=i, f=outwards: graph.with_result(p, "rhs", i, f),
            )


def _of_single_derivatives(subject: Subject) -> Iterator[Mutant]:
    """Directional derivatives of one result that are wrong by one parameter only, or where a state moves with it."""
    native = subject.native.program
    tangent, names = native.entries["tangent"], native.layout.seeds
    parameters = [i for i, name in enumerate(names) if name.removeprefix("d ") in native.layout.parameters]
    state = next((i for i, name in enumerate(names) if name.removeprefix("d ") in native.layout.states), None)
    shown = [
        (entry, k) for entry in graph.RESULTS for k in range(len(subject.derivation.program.entries[entry].labels))
    ]
    for i, (entry, k) in enumerate(shown):
        if entry == "prepare" or (entry, k) not in subject.asked or i >= len(tangent.results):
            continue
        for j in parameters:

            def wrong(b: ProgramBuilder, node: int, j: int = j) -> int:
                return b.select(b.binary(Op.EQ, b.seed(j), b.constant(0.0)), node, b.mul(b.constant(1.05), node))

            def change(
                n: ProgramWithDerivatives, i: int = i, wrong: graph.NodeChange = wrong
            ) -> ProgramWithDerivatives:
                return dataclasses.replace(n, program=graph.with_result(n.program, "tangent", i, wrong))

            place = f"of {tangent.labels[i]} by {names[j].removeprefix('d ')} only"
            yield Mutant("directional derivative by one parameter", "derivatives", place, change)
            if state is None:
                continue

            def both(b: ProgramBuilder, node: int, wrong: graph.NodeChange = wrong, state: int = state) -> int:
                return b.select(b.binary(Op.EQ, b.seed(state), b.constant(0.0)), node, wrong(b, node))

            place = (
                f"of {tangent.labels[i]} by {names[j].removeprefix('d ')} and {names[state].removeprefix('d ')} at once"
            )
            several = functools.partial(change, wrong=both)
            yield Mutant("directional derivative by two at once", "derivatives", place, several)


_READ = "    *value = mb2fmu_value(instance, variable);\n"
_SET = "            *place = values[i];\n"
_RESET = "    mb2fmu_instance_reset(instance);\n    return MB2FMU_OK;\n"
_OUTPUT = " || ".join(f"variable->source == MB2FMU_SOURCE_{each}" for each in ("POSITION", "VELOCITY", "ACCELERATION"))
_LAST = f"""    if ({_OUTPUT}) {{
        static double mutant_last[3][1024];
        static int mutant_known[3][1024];
        const int mutant_s = (int)variable->source - (int)MB2FMU_SOURCE_POSITION;
        const int mutant_i = (int)variable->index;
        const double mutant_now = *value;
        *value = mutant_known[mutant_s][mutant_i] ? mutant_last[mutant_s][mutant_i] : mutant_now;
        mutant_last[mutant_s][mutant_i] = mutant_now;
        mutant_known[mutant_s][mutant_i] = 1;
    }}
"""
_LOST = """            if (variable->source == MB2FMU_SOURCE_STATE &&
                (instance->now.mode & (MB2FMU_INSTANTIATED | MB2FMU_INITIALIZATION)) != 0) {
                continue;
            }
"""
_ONCE = """            if (variable->source == MB2FMU_SOURCE_PARAMETER) {
                static double mutant_p[1024];
                static int mutant_set[1024];
                if (mutant_set[variable->index]) {
                    *place = mutant_p[variable->index];
                    continue;
                }
                mutant_p[variable->index] = values[i];
                mutant_set[variable->index] = 1;
            }
"""
_KEPT = """    const double mutant_p = instance->now.p[0];
    mb2fmu_instance_reset(instance);
    instance->now.p[0] = mutant_p;
    return MB2FMU_OK;
"""


def _of_calls(subject: Subject, program: ScalarProgram) -> Any:
    """What is read, set and reset."""
    if any(program.entries[entry].labels for entry in ("position", "velocity", "acceleration")):
        what = "what was there when it was read before"
        yield "output of the last time", what, replaced("values.c", _READ, _READ + _LAST)
        modes = [("CONTINUOUS", "in one kind only"), ("INITIALIZATION", "in initialization only")]
        for mode, kind in modes[: 2 if _begins_with_outputs(subject) else 1]:
            wrong = f"    *value *= ({_OUTPUT}) && instance->now.mode == MB2FMU_{mode} ? 1.002 : 1.0;\n"
            yield f"output {kind}", "times 1.002", replaced("values.c", _READ, _READ + wrong)
    if program.layout.states:
        yield "start value lost", "of all states, as they are set", replaced("values.c", _SET, _LOST + _SET)
    if program.layout.parameters:
        yield "reset forgets nothing", "the first parameter stays", replaced("protocol.c", _RESET, _KEPT)
        what = "the first value stays, in all instances"
        yield "parameter set once only", what, replaced("values.c", _SET, _ONCE + _SET)


def _begins_with_outputs(subject: Subject) -> bool:
    """Whether any output is not zero at the start: a thousandth more of zero is no fault."""
    trajectory = subject.yardstick.reference.trajectory
    return any(trajectory[output.name][0] != 0.0 for output in subject.derivation.equations.outputs)


def _of_description(subject: Subject, fmi: Literal["2", "3"]) -> Any:
    """A single variable's unit of measurement; two inputs that change places."""
    from lxml import etree

    root = etree.fromstring(subject.described(fmi)[description.FILE])
    variables = [v for v in root.find("ModelVariables") if isinstance(v.tag, str)]
    units = [u.get("name") for u in root.findall("UnitDefinitions/Unit")]
    for variable in variables:
        name, causality = str(variable.get("name")), variable.get("causality")
        unit = description._typed(root, name).get("unit")
        others = [u for u in units if u != unit]
        if causality in {"output", "parameter", "input"} and unit and others:
            yield "unit of one variable", f"{name}: {others[0]} for {unit}", description._put(name, "unit", others[0])
    inputs = [v.get("name") for v in variables if v.get("causality") == "input"]
    for first, second in itertools.pairwise(inputs):
        yield "inputs exchanged", f"{first} and {second}", description._swapped_references(first, second)
