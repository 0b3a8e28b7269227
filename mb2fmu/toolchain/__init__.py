"""Toolchain: external tools, run as subprocesses with a time limit.

Input: files. Output: what the tool made, as bytes.

Promises: equal input gives equal bytes; a tool that fails raises ``ToolError`` with its command, exit code and output;
nothing is left behind but the user's cache folder, which may be deleted.

Must not: know models or equations, and of FMI no more than the names of its platforms and folders.
"""

from mb2fmu.toolchain.batch import CompiledProgram, compile_program
from mb2fmu.toolchain.batch_motion import CompiledMotion, compile_implicit_motion, compile_motion
from mb2fmu.toolchain.compilers import Compiler, installed
from mb2fmu.toolchain.component_compilation import compile_component, wasm_tools
from mb2fmu.toolchain.libraries import load_library, loaded
from mb2fmu.toolchain.platforms import COMPONENT, PLATFORMS, Platform, host, parse, split_component
from mb2fmu.toolchain.pythonfmu import licence, run_builder, version
from mb2fmu.toolchain.unit_compilation import Compilation, CompileObserver, compile_unit
from mb2fmu.toolchain.web_compilation import compile_web
from mb2fmu.toolchain.workshop import Order

__all__ = [
    "COMPONENT",
    "PLATFORMS",
    "Compilation",
    "CompileObserver",
    "CompiledMotion",
    "CompiledProgram",
    "Compiler",
    "Order",
    "Platform",
    "compile_component",
    "compile_implicit_motion",
    "compile_motion",
    "compile_program",
    "compile_unit",
    "compile_web",
    "host",
    "installed",
    "licence",
    "load_library",
    "loaded",
    "parse",
    "run_builder",
    "split_component",
    "version",
    "wasm_tools",
]
