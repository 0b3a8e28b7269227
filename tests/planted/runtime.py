"""Faults of the runtime: C sources of an FMU in which one statement does something else."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, Literal

import numpy as np
from planted import graph
from planted.fault import Mutant, Subject, generator

from mb2fmu.compiler.arithmetic.python_newton import NoSolutionError
from mb2fmu.compiler.evaluation import make_evaluator
from mb2fmu.fmu.emit_c import EquationSourceFiles
from mb2fmu.fmu.in_memory_file_tree import InMemoryFileTree

LATE = """
    static double mutant_held[MB2FMU_SIZE(MB2FMU_N_INPUTS)], mutant_last[MB2FMU_SIZE(MB2FMU_N_INPUTS)];
    static double mutant_t0 = -1.0;
    if (problem->t0 != mutant_t0) {
        for (int i = 0; i < MB2FMU_N_INPUTS; i++) {
            mutant_last[i] = mutant_t0 < 0.0 || problem->t0 <= 0.0 ? problem->r0[i] : mutant_held[i];
            mutant_held[i] = problem->r0[i];
        }
        mutant_t0 = problem->t0;
    }
"""


def replaced(file: str, old: str, new: str) -> Callable[[EquationSourceFiles], EquationSourceFiles]:
    """Another text in the place of one that stands in the file once."""

    def change(motion: EquationSourceFiles) -> EquationSourceFiles:
        path = f"sources/{file}"
        text = motion.sources[path].decode()
        if text.count(old) != 1:
            raise LookupError(f"{file} has {text.count(old)} times: {old!r}")
        files = {**motion.sources.files, path: text.replace(old, new).encode()}
        return replace(motion, sources=InMemoryFileTree(files))

    return change


def chained(*changes: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """One change after the other."""
    return lambda motion: functools.reduce(lambda changed, change: change(changed), changes, motion)


def mutants(subject: Subject) -> Iterator[Mutant]:
    """Every fault of the runtime that changes what this FMU does."""
    program = subject.derivation.program
    states, inputs = len(program.layout.states), len(program.layout.inputs)
    fmi: Literal["2", "3"] = "2" if generator(subject.name).random() < 0.5 else "3"
    last = _last_moving(subject)
    for kind, place, change in (
        *(_of_kinds(last) if last >= 0 else ()),
        *(_of_inputs() if inputs else ()),
        *(_of_parameters() if program.layout.parameters else ()),
        *_of_states(states, inputs, len(program.layout.parameters)),
        *_of_derivatives(),
    ):
        version: Literal["2", "3"] = "2" if kind == SLOPE else "3" if kind == ADJOINT else fmi
        yield Mutant(kind, "sources", place, change, fmi=version, by_construction=True)


SLOPE = "slope of an input"
"""Importers can tell it in FMI 2.0 only."""

ADJOINT = "adjoint in some calls only"
"""FMI 3.0 only."""

Planted = Iterator[tuple[str, str, Callable[[EquationSourceFiles], EquationSourceFiles]]]

_RHS = "    const int number = model_rhs(t, x, work->r, problem->p, problem->w, dx);\n"
_GIVEN = "        values[i] = instance->dx[i];\n"


def _last_moving(subject: Subject) -> int:
    """The last state that moves, -1 if none does: a part of a rate that is zero would be no fault."""
    program = subject.derivation.program
    largest = np.zeros(len(program.layout.states))
    evaluate = make_evaluator(program, ["rhs"])
    for t, x, r, p in graph.points(subject, 0):
        try:
            found = np.abs(evaluate(t, x, r, p, None, np.zeros(len(program.layout.seeds))))
        except (ArithmeticError, NoSolutionError):  # a loop that does not close there
            continue
        largest = np.fmax(largest, found)
    moving = np.flatnonzero(largest > 1e-9 * np.max(largest, initial=0.0))
    return int(moving[-1]) if len(moving) else -1


def _of_kinds(last: int) -> Planted:
    wrong = f"{_RHS}    dx[{last}] *= 1.002;\n"
    yield (
        "only in Co-Simulation",
        "the solver's x' of the last state times 1.002",
        replaced("cosimulation.c", _RHS, wrong),
    )
    wrong = f"        values[i] = instance->dx[i] * (i == {last} ? 1.002 : 1.0);\n"
    yield "only in Model Exchange", "x' of the last state times 1.002", replaced("vectors.c", _GIVEN, wrong)
    counted, head = "    instance->kind = kind;\n", "/* cosimulation.c"
    yield (
        "second instance of a process",
        "in Co-Simulation, times 1.01",
        chained(
            replaced("cosimulation.c", _RHS, f"{_RHS}    dx[{last}] *= mutant_instances > 1 ? 1.01 : 1.0;\n"),
            replaced("cosimulation.c", head, f"static int mutant_instances;\n{head}"),
            replaced("instance.c", counted, f"    mutant_instances += 1;\n{counted}"),
        ),
    )
    wrong = f"{_RHS}    dx[{last}] *= t > 0.2 ? 1.01 : 1.0;\n"
    yield "only after a time", "in Co-Simulation, from 0.2 s on", replaced("cosimulation.c", _RHS, wrong)
    old = "((k)[0][i] * (35.0 / 384.0)"
    yield (
        "solver",
        "a coefficient of the explicit method",
        replaced("dopri5.h", old, old.replace("35.0", "35.1")),
    )


def _of_inputs() -> Planted:
    line = "work->r[i] = problem->r1 != NULL ? problem->r0[i] + problem->r1[i] * (t - problem->t0) : problem->r0[i];"
    head = "    for (int i = 0; i < MB2FMU_N_INPUTS; i++) {\n        "
    late = LATE + head + line.replace("problem->r0[i]", "mutant_last[i]")
    yield "input one step late", "in Co-Simulation", replaced("cosimulation.c", head + line, late)
    slope = "problem->r0[i] + problem->r1[i] * (t - problem->t0)"
    yield (
        SLOPE,
        "derivatives of inputs are not used",
        replaced("cosimulation.c", slope, "problem->r0[i]"),
    )
    old = "            mb2fmu_changed(instance, (enum mb2fmu_source)variable->source);\n"
    new = old.replace("            ", "            if (variable->source != MB2FMU_SOURCE_INPUT) ")
    yield "stale value", "what was computed stays when an input is set", replaced("values.c", old, new)


def _of_parameters() -> Planted:
    old = "            *place = values[i];\n"
    new = (
        "            if (variable->source != MB2FMU_SOURCE_PARAMETER || "
        "(instance->now.mode & (MB2FMU_STEP | MB2FMU_EVENT | MB2FMU_CONTINUOUS)) == 0) {\n"
        "                *place = values[i];\n            }\n"
    )
    yield "wrong after a parameter changed", "a change during the run is lost", replaced("values.c", old, new)
    changed = "            mb2fmu_changed(instance, (enum mb2fmu_source)variable->source);\n"
    stale = changed.replace("            ", "            if (variable->source != MB2FMU_SOURCE_PARAMETER) ")
    yield "wrong after a parameter changed", "what was computed stays", replaced("values.c", changed, stale)


_RESTORE = "    memcpy(&instance->now, &state->now, sizeof instance->now);\n"


def _of_states(states: int, inputs: int, parameters: int) -> Planted:
    def forgetful(
        what: str, keep: str, back: str
    ) -> tuple[str, str, Callable[[EquationSourceFiles], EquationSourceFiles]]:
        new = f"    {{\n{keep}{_RESTORE}{back}    }}\n"
        return "restored state forgets", what, replaced("state.c", _RESTORE, new)

    if states:
        keep = "        const double mutant_x = instance->now.x[MB2FMU_N_STATES - 1];\n"
        yield forgetful("the last state", keep, "        instance->now.x[MB2FMU_N_STATES - 1] = mutant_x;\n")
    if parameters:
        keep = "        const double mutant_p = instance->now.p[0];\n"
        yield forgetful("the first parameter", keep, "        instance->now.p[0] = mutant_p;\n")
        old = "    mb2fmu_stream_reals(stream, now->p, MB2FMU_N_PARAMETERS);\n"
        new = (
            "    {\n        double mutant_p = 1.0;\n"
            "        mb2fmu_stream_reals(stream, now->p, MB2FMU_N_PARAMETERS - 1);\n"
            "        mb2fmu_stream_real(stream, &mutant_p);\n    }\n"
        )
        yield "restored state forgets", "the last parameter, as bytes", replaced("state.c", old, new)
    if inputs:
        keep = "        const double mutant_r = instance->now.r[0];\n"
        yield forgetful("the first input", keep, "        instance->now.r[0] = mutant_r;\n")
    keep = "        const mb2fmu_clock mutant_clock = instance->now.clock;\n"
    yield forgetful("the time", keep, "        instance->now.clock = mutant_clock;\n")


def _of_derivatives() -> Planted:
    old = "        values[i] = place < 0 ? instance->dx[-1 - place - MB2FMU_SEED_STATES] : instance->out[place];\n"
    yield (
        "output derivative",
        "twice as large",
        replaced("derivatives.c", old, old.replace("= place", "= 2.0 * (place").replace(";", ");")),
    )
    taken = "        sensitivity[i] = place < 0 ? instance->seeds[-1 - place] : instance->out[place];\n"
    for where, when in (
        ("by one known alone", "n_knowns == 1"),
        ("of one unknown by one known", "n_unknowns == 1 && n_knowns == 1"),
        ("in another order", "n_knowns > 1 && knowns[0] > knowns[1]"),
    ):
        slightly = taken.replace("= place", f"= ({when} ? 1.0001 : 1.0) * (place").replace("];\n", "]);\n")
        kind = "directional derivative in some calls only"
        yield kind, f"{where}, times 1.0001", replaced("derivatives.c", taken, slightly)
    taken = "        sensitivity[i] = instance->seeds[mb2fmu_seed_of(instance, knowns[i])];\n"
    for where, when in (
        ("of one unknown alone", "n_unknowns == 1"),
        ("by one known alone", "n_knowns == 1"),
        ("of one unknown by one known", "n_unknowns == 1 && n_knowns == 1"),
        ("of several unknowns", "n_unknowns > 1"),
        ("with one seed that is not zero", "mutant_seeds == 1"),
    ):
        slightly = taken.replace("= instance", f"= ({when} ? 1.0001 : 1.0) * instance")
        if "mutant" in when:
            count = (
                "for (size_t j = 0; j < n_unknowns; ++j) {\n            mutant_seeds += seed[j] != 0.0;\n        }\n"
            )
            slightly = f"        int mutant_seeds = 0;\n        {count}{slightly}"
        yield ADJOINT, f"{where}, times 1.0001", replaced("derivatives.c", taken, slightly)
