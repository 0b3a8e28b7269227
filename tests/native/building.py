"""Compiles FMUs whose models are written by hand in the ways the tests need."""

from __future__ import annotations

import atexit
import functools
import shutil
import sys
import tempfile
from pathlib import Path

import fmpy
from kept_compilations import compile_files

HERE = Path(__file__).parent
RUNTIME = Path(__file__).parents[2] / "mb2fmu/fmu/emit_c/runtime"
HEADERS = Path(fmpy.__file__).parent / "c-code"
TOKEN = "0b5b1a56-6b0e-5d5c-8e52-6ad1d0c7a001"
"""Of the oscillator."""

STRICT = [
    "-std=c99",
    "-Wall",
    "-Wextra",
    "-Wpedantic",
    "-Wconversion",
    "-Wshadow",
    "-Wstrict-prototypes",
    "-Wmissing-prototypes",
    "-Werror",
    "-ffp-contract=off",
    "-fPIC",
    "-fvisibility=hidden",
]


def compilers() -> dict[str, list[str]]:
    """The compilers of this machine, by name."""
    found = {"zig": [sys.executable, "-m", "ziglang", "cc"]}
    if shutil.which("gcc"):
        found["gcc"] = ["gcc"]
    return found


@functools.cache
def scratch() -> Path:
    """A folder for this run's binaries."""
    folder = tempfile.TemporaryDirectory(prefix="mb2fmu-native-")
    atexit.register(folder.cleanup)
    return Path(folder.name)


@functools.cache
def build(
    fmi: int, *flags: str, compiler: str | None = None, driver: str | None = None, model: str = "oscillator"
) -> Path:
    """A model as a shared library, or with a driver (a C file beside this one) as a program.

    Warnings are errors; what the compiler says is in the exception.
    """
    command = compilers()[compiler or ("gcc" if "gcc" in compilers() else "zig")]
    target = Path(tempfile.mkdtemp(dir=scratch())) / (model if driver else f"{model}.so")
    kind = [str(HERE / driver), "-lpthread", "-ldl"] if driver else ["-shared", "-Wl,-Bsymbolic"]
    compile_files(
        target.parent,
        [
            *command,
            *STRICT,
            "-O1",
            f"-DMB2FMU_FMI={fmi}",
            *flags,
            f"-I{HERE / model}",
            f"-I{RUNTIME}",
            f"-isystem{HEADERS}",
            str(HERE / model / "unit.c"),
            *kind,
            "-lm",
            "-o",
            str(target),
        ],
    )
    return target
