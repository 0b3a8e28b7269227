"""Toolchain: external tools, run as subprocesses with a time limit.

Input: files. Output: what the tool made, as bytes.

Promises: equal input gives equal bytes; a tool that fails raises ``ToolError`` with its command, exit code and output;
nothing is left behind but the user's cache folder, which may be deleted.

Must not: know models or equations, and of FMI no more than the names of its platforms and folders.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mb2fmu.deferred_imports import import_on_first_use

if TYPE_CHECKING:
    from mb2fmu.fmu.toolchain.compiled_batch_functions import CompiledEntryPoint, compile_entry_point
    from mb2fmu.fmu.toolchain.compiled_integrator import (
        CompiledIntegrator,
        compile_explicit_integrator,
        compile_implicit_integrator,
    )
    from mb2fmu.fmu.toolchain.compilers import Compiler, choose_default_compiler
    from mb2fmu.fmu.toolchain.fmu_compilation import CompileObserver, FmuCompilation, compile_fmu_binaries
    from mb2fmu.fmu.toolchain.fmu_platform_build import CompilationSettings
    from mb2fmu.fmu.toolchain.host_library_compilation import (
        compile_library,
        compile_library_bytes,
        load_library_bytes,
    )
    from mb2fmu.fmu.toolchain.pythonfmu_builder import pythonfmu_version, read_pythonfmu_licence, run_pythonfmu_builder
    from mb2fmu.fmu.toolchain.target_platforms import (
        PLATFORMS,
        WASM_COMPONENT_FOLDER,
        TargetPlatform,
        host_platform,
        parse_platforms,
        separate_wasm_platform,
    )
    from mb2fmu.fmu.toolchain.wasm_component_compilation import compile_wasm_component, find_wasm_tools_command
    from mb2fmu.fmu.toolchain.wasm_page_compilation import compile_wasm_module

__all__ = [
    "PLATFORMS",
    "WASM_COMPONENT_FOLDER",
    "CompilationSettings",
    "CompileObserver",
    "CompiledEntryPoint",
    "CompiledIntegrator",
    "Compiler",
    "FmuCompilation",
    "TargetPlatform",
    "choose_default_compiler",
    "compile_entry_point",
    "compile_explicit_integrator",
    "compile_fmu_binaries",
    "compile_implicit_integrator",
    "compile_library",
    "compile_library_bytes",
    "compile_wasm_component",
    "compile_wasm_module",
    "find_wasm_tools_command",
    "host_platform",
    "load_library_bytes",
    "parse_platforms",
    "pythonfmu_version",
    "read_pythonfmu_licence",
    "run_pythonfmu_builder",
    "separate_wasm_platform",
]

__getattr__ = import_on_first_use(
    __name__,
    {
        "compiled_batch_functions": "CompiledEntryPoint compile_entry_point",
        "compiled_integrator": "CompiledIntegrator compile_explicit_integrator compile_implicit_integrator",
        "compilers": "Compiler choose_default_compiler",
        "fmu_platform_build": "CompilationSettings",
        "fmu_compilation": "CompileObserver FmuCompilation compile_fmu_binaries",
        "host_library_compilation": "compile_library compile_library_bytes load_library_bytes",
        "pythonfmu_builder": "pythonfmu_version read_pythonfmu_licence run_pythonfmu_builder",
        "target_platforms": (
            "PLATFORMS WASM_COMPONENT_FOLDER TargetPlatform host_platform parse_platforms separate_wasm_platform"
        ),
        "wasm_component_compilation": "compile_wasm_component find_wasm_tools_command",
        "wasm_page_compilation": "compile_wasm_module",
    },
)
