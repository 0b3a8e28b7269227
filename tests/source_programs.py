"""Source code of targets as programs: compiled with a small driver, which reads points and prints what was computed."""

from __future__ import annotations

import ctypes
import importlib.util
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt
from kept_compilations import compile_files

from mb2fmu import pipeline
from mb2fmu.compiler.program.scalar_program import ScalarProgram
from mb2fmu.fmu.emit_c.standalone_c_program import list_model_outputs
from mb2fmu.fmu.in_memory_file_tree import InMemoryFileTree
from mb2fmu.fmu.package import write_file_tree
from mb2fmu.pipeline.fmu_build.target_source_export import (
    form_native_fmi3_interface,
    form_target_model_description,
    print_target_source_files,
)
from mb2fmu.targets.csharp import emit_csharp_files
from mb2fmu.targets.fortran import emit_fortran_files
from mb2fmu.targets.jax import emit_jax_module
from mb2fmu.targets.julia import emit_julia_file
from mb2fmu.targets.target_model_description import TargetModelDescription, TargetModelVariable

Floats = npt.NDArray[np.float64]

QUICKLY = ["-O0", "-fno-sanitize=undefined"]
"""For zig, which checks for undefined behaviour without optimization: that takes most of its time."""
SMALL = 10
"""Parameters of a program that JAX compiles as a whole."""
C_OPTIONS = ["-std=c99", "-O2", "-Wall", "-Wextra", "-Werror", "-ffp-contract=off", "-fno-math-errno", "-Iruntime"]


@dataclass(frozen=True)
class Point:
    """Where functions are evaluated."""

    t: float
    x: Floats
    r: Floats
    p: Floats

    @property
    def numbers(self) -> Floats:
        """All of them in order."""
        return np.concatenate([[self.t], self.x, self.r, self.p])


@dataclass(frozen=True)
class Values:
    """What a program computes, a row per point."""

    dx: Floats
    y: Floats
    start: Floats
    stepped: Floats | None = None


def compile_c(folder: Path, output: str, *more: str) -> Path:
    """Compile the files of the C target; return what comes out."""
    sources = sorted(path.name for path in folder.glob("*.c"))
    libraries = ["-nostdlib", "-lc", "-lm"]
    command = [sys.executable, "-m", "ziglang", "cc", *C_OPTIONS, *more, *sources, *libraries, "-o", output]
    compile_files(folder, command)
    return folder / output


def evaluate_c(derivation: pipeline.DerivationResult, points: Sequence[Point], folder: Path) -> Values:
    """x', outputs in the order of the equations, and start values, by the C target."""
    pipeline.export_target_source_code(derivation, "c", folder)
    name = derivation.definition.name
    library = ctypes.CDLL(str(compile_c(folder, f"{name}.so", "-shared", "-fPIC", *QUICKLY)))
    create = library[f"{name}_create"]
    create.restype = ctypes.c_void_p
    model = ctypes.c_void_p(create())
    names = [v.name for v in list_model_outputs(form_native_fmi3_interface(derivation))]
    wanted = [output.name for output in derivation.equations.outputs]

    def call(function: str, *arguments: float | Floats) -> None:
        given = [ctypes.c_double(a) if isinstance(a, float) else a.ctypes.data_as(ctypes.c_void_p) for a in arguments]
        assert library[f"{name}_{function}"](model, *given) == 0, function

    rows = []
    for point in points:
        dx, y, start = np.empty_like(point.x), np.empty(len(names)), point.x.copy()
        call("set_parameters", point.p)
        call("derivatives", point.t, point.x, point.r, dx)
        call("outputs", point.t, point.x, point.r, y)
        call("start", point.t, point.r, start)
        rows.append((dx, y[[names.index(output) for output in wanted]], start))
    library[f"{name}_destroy"](model)
    return Values(*(np.array(each) for each in zip(*rows, strict=True)))


FORTRAN_DRIVER = """
program driver
  use, intrinsic :: iso_fortran_env, only: rk => real64, error_unit
  use, intrinsic :: ieee_arithmetic, only: ieee_value, ieee_quiet_nan
  use {name}
  implicit none
  real(rk) :: t, x(n_states), r(n_inputs), p(n_parameters), dx(n_states), y(n_outputs), start(n_states){memory}
  integer :: points, i, status
  read (*, *) points
  do i = 1, points
    read (*, *) t, x, r, p
    call rhs(t, x, r, p{m}, dx, status)
    if (status == 0) call outputs(t, x, r, p{m}, y, status)
    if (status == 0) call initial_state(t, x0, r, p{m}, start, status)
    if (status == 0) call rk4_step(t, 1e-3_rk, x, r, p{m}, status)
    if (status /= 0) then
      write (error_unit, '(a)') message(status)
      dx = ieee_value(1.0_rk, ieee_quiet_nan)
      y = ieee_value(1.0_rk, ieee_quiet_nan)
      start = dx
      x = dx
    end if
    write (*, '(*(es25.16e3))') dx, y, start, x
  end do
end program driver
"""


def fortran_command(folder: Path, name: str, memory: int) -> list[str]:
    """Compile the module of the Fortran target with the driver; return the command that runs it."""
    declared = f", m({memory}) = m0" if memory else ""
    text = FORTRAN_DRIVER.format(name=name, memory=declared, m=", m" if memory else "")
    (folder / "driver.f90").write_text(text, encoding="utf-8")
    options = ["-std=f2008", "-pedantic", "-Wall", "-Wextra", "-Werror", "-Wno-unused-dummy-argument"]
    options += ["-Wno-unused-function", "-fcheck=all", "-O1", "-ffp-contract=off"]
    command = ["gfortran", *options, f"{name}.f90", "driver.f90", "-o", "driver"]
    compile_files(folder, command, time_limit=600)
    return [str(folder / "driver")]


CSHARP_DRIVER = """
using System;
using System.Collections.Generic;
using System.Globalization;

public static class Driver
{{
    public static void Main()
    {{
        int points = int.Parse(Console.ReadLine());
        double[] dx = new double[{name}.StateCount], y = new double[{name}.OutputCount], start = new double[dx.Length];
        for (int i = 0; i < points; i++)
        {{
            double[] all = Array.ConvertAll(
                Console.ReadLine().Split(' '), text => double.Parse(text, CultureInfo.InvariantCulture));
            double t = all[0];
            double[] x = new double[dx.Length], r = new double[{name}.InputCount];
            double[] p = new double[{name}.ParameterCount];
            Array.Copy(all, 1, x, 0, x.Length);
            Array.Copy(all, 1 + x.Length, r, 0, r.Length);
            Array.Copy(all, 1 + x.Length + r.Length, p, 0, p.Length);
            {memory}
            bool failed = false;
            try
            {{
                {name}.Rhs(t, x, r, p{m}, dx);
                {name}.Outputs(t, x, r, p{m}, y);
                {name}.InitialState(t, {name}.X0, r, p{m}, start);
                {name}.Rk4Step(t, 1e-3, x, r, p{m});
            }}
            catch (ArithmeticException error)
            {{
                Console.Error.WriteLine(error.Message);
                failed = true;
            }}
            foreach (double[] vector in new[] {{ dx, y, start, x }})
            {{
                foreach (double number in vector)
                {{
                    double value = failed ? double.NaN : number;
                    Console.WriteLine(value.ToString("R", CultureInfo.InvariantCulture));
                }}
            }}
        }}
    }}
}}
"""


def csharp_command(folder: Path, name: str, memory: int) -> list[str]:
    """Compile the class of the C# target with the driver; return the command that runs it."""
    declared = f"double[] m = {name}.M0;" if memory else ""
    text = CSHARP_DRIVER.format(name=name, memory=declared, m=", m" if memory else "")
    (folder / "Driver.cs").write_text(text, encoding="utf-8")
    command = ["mcs", "-warn:4", "-warnaserror", f"{name}.cs", "Driver.cs", "-out:driver.exe"]
    compile_files(folder, command, time_limit=600)
    return ["mono", str(folder / "driver.exe")]


COMPILED: dict[str, tuple[str, Callable[[Path, str, int], list[str]]]] = {
    "fortran": ("gfortran", fortran_command),
    "csharp": ("mcs", csharp_command),
}
"""Target → the program that compiles it, and how."""

EMITTERS: dict[str, Callable[[ScalarProgram, TargetModelDescription], InMemoryFileTree]] = {
    "fortran": emit_fortran_files,
    "csharp": emit_csharp_files,
    "julia": emit_julia_file,
    "jax": emit_jax_module,
}

TARGETS = tuple(EMITTERS)
"""Targets that :func:`evaluate` knows."""


def missing(target: str) -> str:
    """Why a target cannot be evaluated; empty if it can."""
    if target == "julia":
        there = importlib.util.find_spec("tree_sitter") and importlib.util.find_spec("tree_sitter_julia")
        return "" if there else "tree-sitter with its grammar of Julia is not installed"
    if target == "jax":
        return "" if importlib.util.find_spec("jax") else "the extra jax is not installed"
    compiler = COMPILED[target][0]
    return "" if shutil.which(compiler) else f"{compiler} is not installed"


def evaluate(target: str, derivation: pipeline.DerivationResult, points: Sequence[Point], folder: Path) -> Values:
    """The same as :func:`evaluate_c`, and x after a step of 1 ms of the target's integrator; see :func:`run_files`."""
    files = print_target_source_files(derivation, target)
    return run_files(target, files, form_target_model_description(derivation), points, folder)


def run_files(
    target: str, files: InMemoryFileTree, model: TargetModelDescription, points: Sequence[Point], folder: Path
) -> Values:
    """What the files of a target compute; NaN where a function reports that it has no valid result.

    Raises:
        ArithmeticError: If there is no valid result at any point, with the messages.
    """
    write_file_tree(files, folder)
    if target == "julia":
        values, messages = _evaluate_julia(files[f"{model.name}.jl"].decode(), points)
    elif target == "jax":
        values, messages = _evaluate_jax(load_jax_module(files[f"{model.name}.py"].decode()), points)
    else:
        values, messages = _evaluate_program(target, model, points, folder)
    if np.isnan(values.dx).all() and messages:
        raise ArithmeticError(messages)
    return values


def _evaluate_program(
    target: str, model: TargetModelDescription, points: Sequence[Point], folder: Path
) -> tuple[Values, str]:
    """What a compiled driver prints, and its messages."""
    command = COMPILED[target][1](folder, model.name, len(model.memory))
    lines = [str(len(points)), *(" ".join(map(repr, point.numbers.tolist())) for point in points)]
    given = "\n".join(lines) + "\n"
    done = subprocess.run(command, check=True, input=given, capture_output=True, text=True, timeout=600)
    n, m = len(model.states), len(model.outputs)
    table = np.array(done.stdout.split(), dtype=float).reshape(len(points), 3 * n + m)
    return Values(*np.split(table, [n, n + m, 2 * n + m], axis=1)), done.stderr


def run_program(target: str, program: ScalarProgram, states: Sequence[Floats], folder: Path) -> Floats:
    """The outputs of a program that has states alone, a row per point."""
    quantities = tuple(TargetModelVariable(name, "") for name in program.layout.states)
    outputs = tuple(TargetModelVariable(name, "") for name in program.entries["outputs"].labels)
    model = TargetModelDescription("TinyModel", "", "a test", quantities, (), (), outputs, 1.0, 0.1, 10, ((),), 1e-6)
    none = np.zeros(0)
    files = EMITTERS[target](program, model)
    return run_files(target, files, model, [Point(0.0, x, none, none) for x in states], folder).y


def _evaluate_julia(source: str, points: Sequence[Point]) -> tuple[Values, str]:
    """What the functions of a module compute as tree-sitter reads it, and their messages."""
    module = import_module("julia_reader").read_module(source)
    memory = [module["m0"]] if "m0" in module else []
    rows, messages = [], []
    for point in points:
        dx, y, start, x = np.empty(len(point.x)), np.empty(len(module["output_names"])), point.x.copy(), point.x.copy()
        given = (point.r, point.p, *(each.copy() for each in memory))
        try:
            module["motion!"](dx, x, given, point.t)
            module["outputs!"](y, point.t, x, *given)
            module["initial_state!"](start, point.t, module["x0"], *given)
            module["rk4_step!"](point.t, 1e-3, x, *given)
        except RuntimeError as error:
            messages.append(str(error))
            for vector in (dx, y, start, x):
                vector[:] = np.nan
        rows.append((dx, y, start, x))
    return Values(*(np.array(each) for each in zip(*rows, strict=True))), "\n".join(messages)


def load_jax_module(source: str) -> ModuleType:
    """The module that a file of the JAX target is, in double precision."""
    import_module("jax").config.update("jax_enable_x64", val=True)
    module = ModuleType("model")
    exec(compile(source, "model.py", "exec"), module.__dict__)
    return module


def _evaluate_jax(module: ModuleType, points: Sequence[Point]) -> tuple[Values, str]:
    """What the functions of a module compute of all points at once, and a message where it is nothing."""
    jax = import_module("jax")

    def at(t: Any, x: Any, r: Any, p: Any) -> tuple[Any, ...]:
        given = (r, dict(zip(module.PARAMETER_NAMES, p, strict=True)))
        stepped = module.rk4_step(t, 1e-3, x, *given)
        start = module.initial_state(given[1], t, module.START, r)
        return (
            module.rhs(t, x, *given),
            module.outputs(t, x, *given),
            start,
            stepped[0] if hasattr(module, "MEMORY") else stepped,
        )

    columns = [np.array([getattr(point, name) for point in points]) for name in ("t", "x", "r", "p")]
    together = jax.vmap(at)
    if len(module.PARAMETER_NAMES) < SMALL:  # compiled as a whole, and kept; of a model it would take minutes
        together = jax.jit(together)
    values = Values(*map(np.array, together(*columns)))
    return values, "no solution is found for some points" if np.isnan(values.dx).any() else ""
