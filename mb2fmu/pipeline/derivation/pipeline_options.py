"""Options of the user: how equations of motion are formed, and how an FMU is built of them."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Literal, TypedDict, cast, get_args

from mb2fmu.errors import Fault, InterfaceError

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
        constraints: Treatment of holonomic constraints (see ``formulation.treatment``).
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
        solver: Solver of the Co-Simulation at the start (see docs/native.md); None: as the model's experiment says.
    """

    backend: Backend
    fmi: FmiVersion
    platforms: str
    compiler: Compiler | None
    fast: bool
    solver: str | None


class ExportOptions(FormulationOptions, BuildOptions, total=False):
    """All options on the way from a model to its unit."""


def select_formulation_options(options: ExportOptions) -> FormulationOptions:
    """Return the options of the formulation."""
    return cast("FormulationOptions", {k: v for k, v in options.items() if k in FormulationOptions.__annotations__})


def select_build_options(options: ExportOptions) -> BuildOptions:
    """Return the options of the build."""
    return cast("BuildOptions", {k: v for k, v in options.items() if k in BuildOptions.__annotations__})


def choose_compiler(options: BuildOptions) -> Compiler:
    """Return the compiler of a native FMU: the requested one, else zig, else the system's if that alone exists."""
    from mb2fmu.fmu.toolchain import default_compiler

    return options.get("compiler") or default_compiler()


def fmi_major_version(options: BuildOptions) -> Literal["2", "3"]:
    """Return the version of the standard that an FMU is built for, from any of its spellings.

    Raises:
        InterfaceError: It is none that FMUs are built for.
    """
    asked = options.get("fmi", "2")
    for known in get_args(FmiVersion):
        if type(asked) is type(known) and asked == known:
            return "3" if str(known).startswith("3") else "2"
    fault = Fault(f"there are FMUs of FMI 2.0 and 3.0, not of {asked!r}", "fmi", 'use "2" or "3"')
    raise InterfaceError("no such FMU can be built:", [fault])
