"""What compilers are told, and which are found."""

from __future__ import annotations

import ctypes
import importlib.util
import os
import shutil
import subprocess

import pytest

from mb2fmu.errors import ToolError
from mb2fmu.fmu import user_cache
from mb2fmu.fmu.in_memory_file_tree import InMemoryFileTree
from mb2fmu.fmu.toolchain import (
    PLATFORMS,
    compile_cache,
    compile_fmu_binaries,
    compile_library,
    compilers,
    host_platform,
)
from mb2fmu.pipeline.derivation.formulation_and_build_options import BuildOptions
from mb2fmu.pipeline.fmu_build.fmu_assembly import choose_native_compiler


@pytest.mark.parametrize("platform", PLATFORMS, ids=str)
def test_products_and_sums_are_fused_only_where_that_is_allowed(platform, tmp_path) -> None:
    """In the code for the processors that could; on those of x86-64 that have no such instruction, never."""
    (tmp_path / "sum.c").write_text("double f(double a, double b, double c) { return a * b + c; }\n")
    tool, variables = (
        compilers.find_compiler("zig"),
        compilers.compiler_environment(user_cache.cache_folder() / "zig", tmp_path),
    )

    def fuses(*, fast: bool, variant: compilers.Variant) -> bool:
        reported = compilers.compiler_options("zig", platform, fast=fast, variant=variant)
        command = [*tool.command, *reported, "-S", "sum.c", "-o", "sum.s"]
        subprocess.run(command, cwd=tmp_path, env=variables, capture_output=True, timeout=300, check=True)
        return "fmadd" in (tmp_path / "sum.s").read_text()

    *others, best = compilers.processor_variants(platform)
    assert [fuses(fast=fast, variant=best) for fast in (False, True)] == [False, True]
    assert not [variant for variant in others if fuses(fast=True, variant=variant)]


def test_the_systems_compiler_builds_for_the_host_only() -> None:
    assert "-target" not in compilers.compiler_options("cc", host_platform(), fast=False)
    other = next(each for each in PLATFORMS if each is not host_platform())
    with pytest.raises(ToolError, match=other.name):
        compilers.compiler_options("cc", other, fast=False)
    with pytest.raises(ToolError, match=other.name):
        compilers.linker_options("cc", other, "demo")


def forget() -> None:
    """What was found before."""
    compilers._find_zig.cache_clear()
    compilers._find_system_compiler.cache_clear()


@pytest.mark.skipif(shutil.which("gcc") is None, reason="gcc is not installed")
def test_the_variable_cc_names_the_systems_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", "gcc -O3 '-DSAID=so be it'")
    said = compilers.find_compiler("cc")
    assert said.command == (shutil.which("gcc"), "-O3", "-DSAID=so be it")
    monkeypatch.setenv("CC", "gcc")
    plain = compilers.find_compiler("cc")
    assert plain.command == (shutil.which("gcc"),)
    assert plain.version != said.version  # else one would be taken from the cache for the other
    assert "gcc" in plain.version


def test_a_missing_compiler_is_reported_with_the_way_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda _: None)
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    monkeypatch.delenv("CC", raising=False)
    forget()
    try:
        with pytest.raises(ToolError, match=r"mb2fmu\[zig\]'; or install cc or gcc or clang"):
            compilers.find_compiler("zig")
        with pytest.raises(ToolError, match="neither cc nor gcc nor clang"):
            compilers.find_compiler("cc")
        monkeypatch.setenv("CC", "nonesuch -m64")
        with pytest.raises(ToolError, match="from the variable CC"):
            compilers.find_compiler("cc")
    finally:
        forget()


def test_what_this_machine_alone_runs_is_compiled_without_zig_where_there_is_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    find_spec = importlib.util.find_spec
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "ziglang" else find_spec(name))
    forget()
    try:
        assert compilers.choose_default_compiler() == "cc"
        asked: tuple[BuildOptions, ...] = ({}, {"compiler": None}, {"compiler": "zig"})
        assert [choose_native_compiler(options) for options in asked] == ["cc", "cc", "zig"]
        windows = next(each for each in PLATFORMS if each.system == "windows" and each is not host_platform())
        with pytest.raises(ToolError, match=r"pip install 'mb2fmu\[zig\]'"):
            compilers.compiler_options("cc", windows, fast=False)
        source = b'__attribute__((visibility("default"))) double sum(double a, double b) { return a + b; }'
        library = compile_library({"sum.c": source}, "sum")
        library.sum.restype = ctypes.c_double
        assert library.sum(ctypes.c_double(1.5), ctypes.c_double(2.0)) == 3.5
        monkeypatch.setattr(shutil, "which", lambda _: None)
        forget()
        assert compilers.choose_default_compiler() == "zig"  # whose absence is what is reported, then
    finally:
        forget()


def test_the_callers_variables_have_no_influence(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("CPATH", "LD_RUN_PATH", "ZIG_LIB_DIR", "PYTHONPATH", "PYTHONHOME", "NAME_OF_A_LATER_COMPILER"):
        monkeypatch.setenv(name, "elsewhere")
    monkeypatch.setenv("LC_ALL", "de_DE.UTF-8")
    monkeypatch.setenv("PATH", "/found/here")
    reported = compilers.compiler_environment(tmp_path / "zig", tmp_path / "scratch")
    assert "elsewhere" not in reported.values()
    assert reported["LC_ALL"] == "C"
    assert reported["PATH"] == "/found/here"
    assert reported["ZIG_GLOBAL_CACHE_DIR"] == str(tmp_path / "zig")
    assert reported["ZIG_LOCAL_CACHE_DIR"].startswith(str(tmp_path / "scratch"))


CODE = b"""#include <math.h>
__attribute__((visibility("default"))) double f(double x) { return sqrt(x) + HUGE_VAL; }
"""
SOURCES = InMemoryFileTree({"sources/unit.c": CODE})


def hostile(folder):
    """Variables that gcc, clang, ld and zig read, each with what would change or break the result."""
    (folder / "include").mkdir(parents=True)
    (folder / "include" / "math.h").write_text("#define sqrt(x) 4711.0\n#define HUGE_VAL 4712.0\n")
    (folder / "bin").mkdir()
    for name in ("as", "ld", "cc1", "collect2", "ld.lld"):
        (folder / "bin" / name).write_text("#!/bin/sh\nexit 7\n")
        (folder / "bin" / name).chmod(0o755)
    (folder / "lib").mkdir()
    (folder / "lib" / "libm.so").write_text("this is no library")
    include, tools, libraries = (str(folder / name) for name in ("include", "bin", "lib"))
    return {
        **dict.fromkeys(("CPATH", "C_INCLUDE_PATH", "CPLUS_INCLUDE_PATH", "OBJC_INCLUDE_PATH", "INCLUDE"), include),
        **dict.fromkeys(("COMPILER_PATH", "GCC_EXEC_PREFIX"), f"{tools}/"),
        **dict.fromkeys(("LIBRARY_PATH", "LPATH", "LIB"), libraries),
        **dict.fromkeys(("LD_RUN_PATH", "LD_RUN_PATH_64"), libraries),
        **dict.fromkeys(("CFLAGS", "CPPFLAGS"), f"-I{include} -ffast-math"),
        "LDFLAGS": f"-Wl,-rpath,{libraries}",
        "NIX_LDFLAGS": f"-rpath {libraries}",
        "CCC_OVERRIDE_OPTIONS": "+-ffast-math",
        "CCC_ADD_ARGS": "-ffast-math",
        "CL": "/Od",
        "LDEMULATION": "elf_i386",
        "GNUTARGET": "elf32-i386",
        "COLLECT_GCC_OPTIONS": "-O0",
        "COLLECT_LTO_WRAPPER": "nonesuch",
        "DEPENDENCIES_OUTPUT": str(folder / "written"),
        "SUNPRO_DEPENDENCIES": str(folder / "written"),
        "GCC_COMPARE_DEBUG": "1",
        "SOURCE_DATE_EPOCH": "4711",
        "ZIG_LIB_DIR": libraries,
        "ZIG_LOCAL_CACHE_DIR": libraries,
        "ZIG_LIBC": str(folder / "include" / "math.h"),
        "SDKROOT": libraries,
        "MACOSX_DEPLOYMENT_TARGET": "9.9",
    }


@pytest.mark.parametrize("compiler", ["zig", "cc"])
def test_a_hostile_environment_gives_the_same_bytes(compiler, tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    if compiler == "cc" and not any(map(shutil.which, ("cc", "gcc", "clang"))):
        pytest.skip("there is no compiler")
    monkeypatch.setattr(compile_cache.CompiledFileCache, "get", lambda _self, _key: None)
    clean = compile_fmu_binaries(SOURCES, "it", [host_platform()], fmi=3, compiler=compiler)
    forget()
    for name, value in hostile(tmp_path / "hostile").items():
        monkeypatch.setenv(name, value)
    assert compile_fmu_binaries(SOURCES, "it", [host_platform()], fmi=3, compiler=compiler) == clean
    assert str(tmp_path).encode() not in b"".join(clean.files.values())
    assert not (tmp_path / "hostile" / "written").exists()


@pytest.mark.skipif(shutil.which("gcc") is None, reason="gcc is not installed")
def test_the_hostile_environment_is_hostile(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Handed on as it is, the caller's run path gets into the library."""
    monkeypatch.setattr(compile_cache.CompiledFileCache, "get", lambda _self, _key: None)
    monkeypatch.setattr(compile_cache.CompiledFileCache, "put", lambda _self, _key, _content: None)
    monkeypatch.setenv("CC", "gcc")
    clean = compile_fmu_binaries(SOURCES, "it", [host_platform()], fmi=3, compiler="cc")
    forget()
    monkeypatch.setenv("LD_RUN_PATH", str(tmp_path))
    monkeypatch.setattr(compilers, "select_inherited_environment", lambda: dict(os.environ))
    found = compile_fmu_binaries(SOURCES, "it", [host_platform()], fmi=3, compiler="cc")
    forget()
    assert found != clean
    assert str(tmp_path).encode() in b"".join(found.files.values())
