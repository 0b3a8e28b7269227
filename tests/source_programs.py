"""Source code of targets as programs: compiled with a small driver, which reads points and prints what was computed."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from mb2fmu import pipeline
from mb2fmu.fmu.emit_c.standalone_program import list_model_outputs
from mb2fmu.pipeline.fmu_build.source_code_export import describe_native_interface

Floats = npt.NDArray[np.float64]

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
    command = [sys.executable, "-m", "ziglang", "cc", *C_OPTIONS, *more, *sources, "-lm", "-o", output]
    subprocess.run(command, cwd=folder, check=True, timeout=300)
    return folder / output


def evaluate_c(derivation: pipeline.Derivation, points: Sequence[Point], folder: Path) -> Values:
    """x', outputs in the order of the equations, and start values, by the C target."""
    pipeline.export_source_code(derivation, "c", folder)
    name = derivation.definition.name
    library = ctypes.CDLL(str(compile_c(folder, f"{name}.so", "-shared", "-fPIC")))
    create = library[f"{name}_create"]
    create.restype = ctypes.c_void_p
    model = ctypes.c_void_p(create())
    names = [v.name for v in list_model_outputs(describe_native_interface(derivation))]
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
  use, intrinsic :: iso_fortran_env, only: rk => real64
  use {name}
  implicit none
  real(rk) :: t, x(n_states), r(n_inputs), p(n_parameters), dx(n_states), y(n_outputs), start(n_states){memory}
  integer :: points, i, status
  read (*, *) points
  do i = 1, points
    read (*, *) t, x, r, p
    call rhs(t, x, r, p{m}, dx, status)
    if (status /= 0) call refuse(status)
    call outputs(t, x, r, p{m}, y, status)
    if (status /= 0) call refuse(status)
    call initial_state(t, x0, r, p{m}, start, status)
    if (status /= 0) call refuse(status)
    call rk4_step(t, 1e-3_rk, x, r, p{m}, status)
    if (status /= 0) call refuse(status)
    write (*, '(*(es25.16e3))') dx, y, start, x
  end do
contains
  subroutine refuse(status)
    integer, intent(in) :: status
    print '(a)', message(status)
    stop 1
  end subroutine refuse
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
    subprocess.run(command, cwd=folder, check=True, timeout=600)
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
            {name}.Rhs(t, x, r, p{m}, dx);
            {name}.Outputs(t, x, r, p{m}, y);
            {name}.InitialState(t, {name}.X0, r, p{m}, start);
            {name}.Rk4Step(t, 1e-3, x, r, p{m});
            foreach (double[] vector in new[] {{ dx, y, start, x }})
            {{
                foreach (double value in vector)
                {{
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
    subprocess.run(command, cwd=folder, check=True, timeout=600)
    return ["mono", str(folder / "driver.exe")]


COMPILED: dict[str, tuple[str, Callable[[Path, str, int], list[str]]]] = {
    "fortran": ("gfortran", fortran_command),
    "csharp": ("mcs", csharp_command),
}
"""Target → the program that compiles it, and how."""


def missing(target: str) -> str:
    """Why a target cannot be compiled; empty if it can."""
    compiler = COMPILED[target][0]
    return "" if shutil.which(compiler) else f"{compiler} is not installed"


def evaluate(target: str, derivation: pipeline.Derivation, points: Sequence[Point], folder: Path) -> Values:
    """The same as :func:`evaluate_c`, and x after a step of 1 ms, by a compiled target."""
    pipeline.export_source_code(derivation, target, folder)
    command = COMPILED[target][1](folder, derivation.definition.name, len(derivation.program.layout.memory))
    lines = [str(len(points)), *(" ".join(map(repr, point.numbers.tolist())) for point in points)]
    given = "\n".join(lines) + "\n"
    done = subprocess.run(command, check=False, input=given, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    n, m = len(points[0].x), len(derivation.equations.outputs)
    table = np.array(done.stdout.split(), dtype=float).reshape(len(points), 3 * n + m)
    return Values(*np.split(table, [n, n + m, 2 * n + m], axis=1))
