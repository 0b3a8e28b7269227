"""Targets: equations as source code of other languages, for use without FMI. Each target is a folder and a row.

Input: ``ScalarProgram`` and ``TargetModelDescription``. Output: ``InMemoryFileTree``. The target ``c`` is that of FMUs,
``mb2fmu.fmu.emit_c``. The files beside the folders are what all targets share: ``target_model_description`` (names,
units, start values, experiment, the comment at the top), ``program_statement_printing`` (order and checks of
statements), ``work_array_printing`` (functions of languages that are compiled) and ``single_module_target`` (their
files).

Promises: equal input gives equal bytes; numbers read back to the same bits.

Must not: decide anything about variables, or touch the disk (but for its own templates), the clock or the environment.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from types import MappingProxyType


@dataclass(frozen=True, slots=True)
class SourceCodeTarget:
    """One target: choices of the command line, what it says of them, and docs/reference/targets.md come from it.

    Names and calls are as a user writes them; ``NAME`` stands for that of the model. Empty: the target has none.

    Attributes:
        name: Of ``--format`` and ``--target``.
        gives: What ``--help`` says of it.
        files: At the top of the folder.
        needs: What it needs, to run.
        rhs: Call for x'.
        outputs: Call for y.
        start: How start values come onto the constraints, for parameters of one's choice.
        jacobian: Call for ∂x'/∂x.
        step: Call of an integrator.
        failure: How a call reports that it has no valid result.
        check: How the tests check it.
        has_events: It expresses events and friction that sticks.
    """

    name: str
    gives: str
    files: tuple[str, ...]
    needs: str
    rhs: str
    outputs: str
    failure: str
    check: str
    start: str = ""
    jacobian: str = ""
    step: str = ""
    has_events: bool = False


_ROWS = (
    SourceCodeTarget(
        name="c",
        gives="C99 functions of x', outputs and Jacobian, with a main program",
        files=("NAME.h", "NAME.c", "NAME_main.c"),
        needs="a C compiler",
        rhs="NAME_derivatives(model, t, x, r, dx)",
        outputs="NAME_outputs(model, t, x, r, y)",
        start="NAME_start(model, t, r, x)",
        jacobian="NAME_jacobian(model, t, x, r, J)",
        step="NAME_step(model, h, r, x)",
        failure="returns not 0; NAME_message(model)",
        check="compiled and run: the bits of the FMU",
    ),
    SourceCodeTarget(
        name="matlab",
        gives="the same for MATLAB and GNU Octave",
        files=("NAME.m", "NAME_experiment.m"),
        needs="MATLAB or GNU Octave",
        rhs="model.rhs(t, x, r, p)",
        outputs="model.outputs(t, x, r, p)",
        jacobian="model.jacobian(t, x, r, p)",
        step="NAME_experiment()",
        failure="error(…)",
        check="Octave runs the files: x', outputs, Jacobian to 1e-9, and the experiment",
    ),
    SourceCodeTarget(
        name="modelica",
        gives="one flat model without libraries",
        files=("NAME.mo",),
        needs="a Modelica tool",
        rhs="der(x) = …",
        outputs="y = …",
        start="start, fixed",
        failure="the tool's",
        check="rumoca simulates (1e-8, with events 1e-6), pymoca's residuals (1e-12)",
        has_events=True,
    ),
    SourceCodeTarget(
        name="casadi",
        gives="external functions with first and second derivatives, compiled",
        files=("NAME_rhs.c", "NAME_outputs.c"),
        needs="CasADi",
        rhs="NAME_rhs(t, x, r, p)",
        outputs="NAME_outputs(t, x, r, p)",
        jacobian="jac_NAME_rhs(t, x, r, p, y)",
        failure="NaN",
        check="CasADi's own derivatives to 1e-9",
    ),
    SourceCodeTarget(
        name="fortran",
        gives="one module of Fortran 2008, with a main program",
        files=("NAME.f90", "NAME_main.f90"),
        needs="a Fortran compiler",
        rhs="rhs(t, x, r, p, dx, status)",
        outputs="outputs(t, x, r, p, y, status)",
        start="initial_state(t, x, r, p, start, status)",
        step="rk4_step(t, h, x, r, p, status)",
        failure="status is not 0; message(status)",
        check="compiled by gfortran: x', outputs, start values to 1e-13 of the C code",
    ),
    SourceCodeTarget(
        name="csharp",
        gives="one static class of C# for .NET, with a main program",
        files=("NAME.cs", "NAMEMain.cs"),
        needs=".NET or Mono",
        rhs="NAME.Rhs(t, x, r, p, dx)",
        outputs="NAME.Outputs(t, x, r, p, y)",
        start="NAME.InitialState(t, x, r, p, start)",
        step="NAME.Rk4Step(t, h, x, r, p)",
        failure="throws ArithmeticException",
        check="compiled by Mono: x', outputs, start values to 1e-13 of the C code",
    ),
    SourceCodeTarget(
        name="julia",
        gives="one module of Julia for DifferentialEquations.jl",
        files=("NAME.jl",),
        needs="Julia",
        rhs="rhs!(dx, t, x, r, p)",
        outputs="outputs!(y, t, x, r, p)",
        start="initial_state!(start, t, x, r, p)",
        step="rk4_step!(t, h, x, r, p)",
        failure="error(…)",
        check="Julia is not at hand: a parser reads it, the tests execute what it reads, to 1e-13 of the C code",
    ),
    SourceCodeTarget(
        name="jax",
        gives="one module of pure functions for JAX, to be differentiated, mapped and compiled",
        files=("NAME.py",),
        needs="JAX (`mb2fmu[jax]`)",
        rhs="rhs(t, x, r, p)",
        outputs="outputs(t, x, r, p)",
        start="initial_state(p)",
        jacobian="jax.jacfwd(rhs, 1)(t, x, r, p)",
        step="rk4_step(t, h, x, r, p)",
        failure="NaN",
        check="run by JAX: x', outputs, energy and start values to 1e-13 of the C code, derivatives to 1e-11 of ours",
    ),
)

SOURCE_TARGETS = MappingProxyType({row.name: row for row in _ROWS})
"""Targets that give source code to be used without FMI; here, so that the command line need not import them."""


def format_targets_as_markdown() -> str:
    """Return the tables of docs/reference/targets.md: what each target gives, and how its functions are called."""
    given = [
        (
            f"`{row.name}`",
            row.gives,
            _format_code(*row.files),
            row.needs,
            "yes" if row.has_events else "refused",
            row.check,
        )
        for row in _ROWS
    ]
    called = [
        (f"`{row.name}`", *map(_format_code, (row.rhs, row.outputs, row.start, row.jacobian, row.step)), row.failure)
        for row in _ROWS
    ]
    return "\n\n".join(
        (
            _format_table(("`--format`", "gives", "files", "needs, to run", "events", "its check"), given),
            _format_table(
                ("`--format`", "x'", "outputs", "start values", "∂x'/∂x", "integration", "no valid result"), called
            ),
        )
    )


def _format_code(*texts: str) -> str:
    """Return code in Markdown; a dash where there is none."""
    return ", ".join(f"`{text}`" for text in texts if text) or "–"


def _format_table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    """Return a table in Markdown."""
    lines = (head, ("---",) * len(head), *rows)
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)
