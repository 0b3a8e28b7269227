"""Toolchain: external tools, run as subprocesses with a time limit.

Input: files. Output: what the tool made, as bytes.

Promises: equal input gives equal bytes; a tool that fails raises ``ToolError`` with its command, exit code and output;
nothing is left behind but the user's cache folder, which may be deleted.

Must not: know models or equations, and of FMI no more than the names of its platforms and folders.
"""

from mb2fmu.fmu.toolchain.compile_and_link import Order
from mb2fmu.fmu.toolchain.compiled_batch import CompiledProgram, compile_program
from mb2fmu.fmu.toolchain.compiled_motion import CompiledMotion, compile_implicit_motion, compile_motion
from mb2fmu.fmu.toolchain.compilers import Compiler, installed
from mb2fmu.fmu.toolchain.component_compilation import compile_component, wasm_tools
from mb2fmu.fmu.toolchain.fmu_compilation import Compilation, CompileObserver, compile_unit
from mb2fmu.fmu.toolchain.platforms import COMPONENT, PLATFORMS, Platform, host, parse, split_component
from mb2fmu.fmu.toolchain.pythonfmu_builder import licence, run_builder, version
from mb2fmu.fmu.toolchain.shared_libraries import load_library, loaded
from mb2fmu.fmu.toolchain.web_compilation import compile_web

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
