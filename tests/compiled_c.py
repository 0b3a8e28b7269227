"""Compiles printed models and the FMU's arithmetic into shared libraries and calls them."""

from __future__ import annotations

import ctypes
import dataclasses
import importlib.util
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from kept_compilations import compile_files

from mb2fmu.compiler.derivatives.derivative_entry_points import (
    DIFFERENTIATED_ENTRIES,
    ProgramWithDerivatives,
    add_fmu_derivatives,
)
from mb2fmu.compiler.program.program_pruning import prune_program
from mb2fmu.compiler.program.scalar_program import ProgramEntryPoint, ScalarProgram
from mb2fmu.fmu.emit_c import emit_fmu_sources, list_translation_units
from mb2fmu.fmu.interface.fmu_interface import (
    DefaultExperiment,
    FmuCapabilities,
    FmuInterface,
    FmuSolverSettings,
    FmuTarget,
    FmuVariable,
    InterfaceUnit,
)

RUNTIME = Path(__file__).parents[1] / "mb2fmu" / "fmu" / "emit_c" / "runtime"
WARNINGS = [
    *("-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wshadow"),
    *("-Wstrict-prototypes", "-Wmissing-prototypes", "-Werror"),
]
ARITHMETIC = ["-O2", "-ffp-contract=off", "-fno-math-errno"]
COMPILERS = {"gcc": ["gcc"], "zig": [sys.executable, "-m", "ziglang", "cc", "-nostdlib", "-lc"]}
ARCHITECTURE = {"gcc": [], "zig": ["-mcpu=x86_64_v3"]}
"""Deliberately different: the bits must not depend on it."""
MODELS = {"gcc": ["-O0"], "zig": ["-mcpu=x86_64_v3"]}
"""For whole models: gcc does not optimize, which takes a sixth of the time and is as different as can be."""

HARNESS = """
#include "model_config.h"
#include "elementary.c"
#include "linear_algebra.c"
#include "model.h"
#include "dispatch.c"
#define PLAIN(name) int call_##name(double t, const double x[], const double r[], const double p[], \\
mb2fmu_prepared *w, double y[]); int call_##name(double t, const double x[], const double r[], const double p[], \\
mb2fmu_prepared *w, double y[]) { return model_##name(t, x, r, p, w, y); }
#define MORE(name) int call_##name(double t, const double x[], const double r[], const double p[], \\
mb2fmu_prepared *w, AB); int call_##name(double t, const double x[], const double r[], const double p[], \\
mb2fmu_prepared *w, AB) { return model_##name(t, x, r, p, w, a, b); }
PLAIN(rhs)
PLAIN(position)
PLAIN(velocity)
PLAIN(acceleration)
PLAIN(dependent_speeds)
PLAIN(accelerations)
#define AB const double a[], double b[]
MORE(tangent)
MORE(adjoint)
#undef AB
#define AB double a[], double b[]
MORE(jacobian)
int call_prepare(const double p[], mb2fmu_prepared *w);
int call_prepare(const double p[], mb2fmu_prepared *w)
{ model_start(w, (double *)(void *)(w + 1)); return model_prepare(p, w); }
int memory(void);
int memory(void) { return (int)(sizeof(mb2fmu_prepared) + model_room() * sizeof(double)); }
const char *failure(int k);
const char *failure(int k) { return model_failure(k); }
int tables(void);
int tables(void) { return model_variables[0].index; }
"""


def missing(compiler: str) -> str | None:
    """Why a compiler cannot be used; None if it can."""
    if compiler == "zig":
        return None if importlib.util.find_spec("ziglang") else "the package ziglang is not installed"
    return None if shutil.which(compiler) else f"{compiler} is not installed"


def compile_library(compiler: str, folder: Path, text: str, flags: list[str], *more: str) -> Path:
    """Compiles C text, and files named by ``more``, into a shared library in ``folder``."""
    (folder / "harness.c").write_text(text)
    library = folder / f"{compiler}.so"
    command = [*COMPILERS[compiler], *WARNINGS, *ARITHMETIC, *flags, "-shared", "-fPIC"]
    command += [
        f"-I{folder}",
        f"-I{RUNTIME}",
        f"-I{RUNTIME.parent / 'operations'}",
        str(folder / "harness.c"),
        *(str(folder / name) for name in more),
    ]
    compile_files(folder, [*command, "-o", str(library), "-lm"], time_limit=600)
    return library


def bare_interface() -> FmuInterface:
    """An interface that has the time only, for programs that no model stands behind."""
    return FmuInterface(
        model_name="Bare",
        model_identifier="Bare",
        description="",
        token="01234567-89ab-5cde-8f01-23456789abcd",
        variables=(
            FmuVariable(name="time", value_reference=0, causality="independent", initial=None, unit="s", source="time"),
        ),
        units=(InterfaceUnit("s", 1.0, 0.0, (0, 0, 1, 0, 0, 0, 0, 0)),),
        experiment=DefaultExperiment(0.0, 1.0, 0.01, 1e-6),
        solver=FmuSolverSettings("explicit", 1e-6),
        log_categories=(),
        capabilities=FmuCapabilities(needs_execution_tool=False, state=True),
        generation_tool="mb2fmu",
        target=FmuTarget("2", "native"),
    )


class SingularError(Exception):
    """A function answered that a solve failed."""


@dataclass
class CompiledModel:
    """The functions of a printed model.

    Attributes:
        library: The shared library.
        program: What was printed, derivatives included.
    """

    library: ctypes.CDLL
    program: ScalarProgram

    def prepare(self, p: np.ndarray) -> np.ndarray:
        """What a call needs: memory of the type ``mb2fmu_prepared``, and the room behind it."""
        w = np.full(self.library.memory() // 8, np.nan)
        self._check(self.library.call_prepare(*map(_pointer, (p, w))))
        return w

    def call(self, name: str, t: float, x: np.ndarray, r: np.ndarray, p: np.ndarray, *more: np.ndarray) -> np.ndarray:
        """A function by its name; ``more`` are seeds, and what is written besides the last array."""
        size = len(self.program.entries[name].results)
        y = np.full(max(1, size), np.nan)
        arrays = (x, r, p, self.prepare(p), *more)
        function = getattr(self.library, f"call_{name}")
        self._check(function(ctypes.c_double(t), *map(_pointer, arrays), _pointer(y)))
        return y[:size]

    def jacobian(self, t: float, x: np.ndarray, r: np.ndarray, p: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """∂x'/∂x, dense, and ∂x'/∂t."""
        n = len(self.program.layout.states)
        dense, slope = np.zeros((n, n)), np.full(max(1, n), np.nan)
        arrays = (x, r, p, self.prepare(p), dense, slope)
        self._check(self.library.call_jacobian(ctypes.c_double(t), *map(_pointer, arrays)))
        return dense, slope[:n]

    def _check(self, failed: int) -> None:
        if failed:
            self.library.failure.restype = ctypes.c_char_p
            raise SingularError(self.library.failure(failed).decode())


def _pointer(array: np.ndarray) -> ctypes.c_void_p:
    assert array.dtype == np.float64
    assert array.flags.c_contiguous
    return ctypes.c_void_p(array.ctypes.data)


def compile_program(program: ScalarProgram, compiler: str, folder: Path, part: int = 3_000) -> CompiledModel:
    """Prints and compiles a program in a folder."""
    return compile_native(add_fmu_derivatives(program), compiler, folder, part)


def compile_explicit_integrator(program: ScalarProgram, compiler: str, folder: Path) -> CompiledModel:
    """The same with x' alone."""
    empty = ("tangent", "adjoint", "jacobian", "jacobian_time", *DIFFERENTIATED_ENTRIES)
    kept = {name: program.entries[name] for name in ("rhs", "pivots", "divisors") if name in program.entries}
    entries = {name: ProgramEntryPoint(name, (), ()) for name in empty} | kept
    none = np.array([], dtype=np.intp)
    small = prune_program(dataclasses.replace(program, entries=entries))
    return compile_native(ProgramWithDerivatives(small, none, none, none), compiler, folder)


def compile_native(native: ProgramWithDerivatives, compiler: str, folder: Path, part: int = 3_000) -> CompiledModel:
    """Prints and compiles a program with its derivatives."""
    sources = emit_fmu_sources(native, bare_interface(), part=part)
    _, *equations = list_translation_units(sources)
    for name in ("model_config.h", "model_names.h", *equations):
        (folder / name).write_bytes(sources[f"sources/{name}"])
    library = compile_library(compiler, folder, HARNESS, MODELS[compiler], *equations)
    return CompiledModel(ctypes.CDLL(str(library)), native.program)
