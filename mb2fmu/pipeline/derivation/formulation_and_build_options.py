"""Options of the user: how equations of motion are formed, and how an FMU is built of them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any, Literal, TypedDict, cast

if TYPE_CHECKING:
    from mb2fmu.fmu.toolchain import Compiler
    from mb2fmu.mechanics.equations.equations_of_motion import Method
    from mb2fmu.mechanics.formulations import TreatmentOption

Backend = Literal["native", "python"]
FmiVersion = Literal["2", "3", "2.0", "3.0", 2, 3]


class FormulationOptions(TypedDict, total=False):
    """How equations of motion are formed; all may be left out.

    Attributes:
        method: Formulation; of ``auto`` and ``recursive`` the one that costs least is taken (see ``model_derivation``).
        constraints: Treatment of holonomic constraints (see ``constraint_treatment``).
        baumgarte: Of the treatment ``multipliers``: rate in 1/s; None: without.
        independent: Of ``partition`` and ``explicit``: all independent coordinates' names; (): as the mechanics say.
    """

    method: Method | Literal["auto"]
    constraints: TreatmentOption
    baumgarte: float | None
    independent: Collection[str]


class BuildOptions(TypedDict, total=False):
    """How an FMU is built; all may be left out.

    Attributes:
        backend: ``native`` (C code, Model Exchange and Co-Simulation) or ``python`` (pythonfmu, Co-Simulation).
        fmi: Version of the standard; ``python`` builds FMI 2.0 only.
        platforms: Native only: ``host``, ``all``, or names separated by commas (``x86_64-linux,win64``); in
            FMI 3 also ``wasm32-wasip2``, a component of WebAssembly.
        compiler: Native only: ``zig`` (a package), or ``cc``, the system's; None: zig where it is installed.
        fast: Native only: allow fused multiply-adds; platforms then differ in the last digits.
        solver: Solver of the Co-Simulation at the start (docs/reference/native.md); None: the experiment's.
    """

    backend: Backend
    fmi: FmiVersion
    platforms: str
    compiler: Compiler | None
    fast: bool
    solver: str | None


class ExportOptions(FormulationOptions, BuildOptions, total=False):
    """All options on the way from a model to its FMU."""


def refuse_unknown_options(options: Mapping[str, Any], known: type) -> None:
    """Raise what Python raises for an unknown keyword: a misspelled option would have no effect.

    Raises:
        TypeError: Naming the options that are none of ``known``, a class of options.
    """
    unknown = sorted(options.keys() - known.__annotations__)
    if unknown:
        raise TypeError(f"{', '.join(unknown)}: no such option; there are {', '.join(known.__annotations__)}")


def separate_formulation_and_build_options(options: ExportOptions) -> tuple[FormulationOptions, BuildOptions]:
    """Return the options of the formulation, and those of the build."""
    refuse_unknown_options(options, ExportOptions)
    return (
        cast("FormulationOptions", {k: v for k, v in options.items() if k in FormulationOptions.__annotations__}),
        cast("BuildOptions", {k: v for k, v in options.items() if k in BuildOptions.__annotations__}),
    )
