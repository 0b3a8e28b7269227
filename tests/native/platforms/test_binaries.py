"""What is in the libraries, read from their headers: the right machine, FMI's functions only, libc and libm only."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from functools import cache
from importlib import resources
from pathlib import Path

import pytest
from native.driver.units import unit
from native.platforms import inspection
from representatives import by_night

from mb2fmu.errors import ToolError
from mb2fmu.fmu import user_cache
from mb2fmu.fmu.in_memory_file_tree import InMemoryFileTree
from mb2fmu.fmu.toolchain import PLATFORMS, compile_fmu_binaries, compilers, host_platform
from mb2fmu.fmu.toolchain import fmu_compilation as building
from mb2fmu.fmu.toolchain.target_platforms import (
    AARCH64_DARWIN,
    X86_64_DARWIN,
    X86_64_LINUX,
    X86_64_WINDOWS,
    TargetPlatform,
)

MODEL = "double_pendulum"
FMI = (2, 3)
# KERNEL32.dll would be code that zig compiles of MinGW-w64, the first time for minutes.
LIBRARIES = {
    "linux": r"lib[cm]\.so\.6",
    "windows": r"api-ms-win-crt-[a-z]+-l1-1-0\.dll",
    "darwin": r"/usr/lib/libSystem\.B\.dylib",
}
SIZE = 200_000
"""In bytes: what a platform may cost."""


@cache
def binaries(fmi: int, platforms: tuple[TargetPlatform, ...]) -> InMemoryFileTree:
    made = unit(MODEL, fmi)
    return compile_fmu_binaries(made.sources, made.identifier, platforms, fmi=fmi)


def library(fmi: int, platform: TargetPlatform) -> bytes:
    """Of FMI 2 both processors of macOS are built at once: they share a file."""
    built = DARWIN if fmi == 2 and platform in DARWIN else (platform,)
    return binaries(fmi, built)[f"binaries/{platform.folder(fmi)}/{unit(MODEL, fmi).identifier}{platform.extension}"]


def slices(fmi: int, platform) -> list[inspection.Slice]:
    """Those of that platform's processor; in FMI 2's darwin64 there is another."""
    return [each for each in inspection.read(library(fmi, platform)) if each.processor == platform.processor]


def functions(fmi: int) -> set[str]:
    text = resources.files("fmpy").joinpath(f"c-code/fmi{fmi}FunctionTypes.h").read_text(encoding="utf-8")
    return {f"fmi{fmi}{name}" for name in re.findall(rf"fmi{fmi}(\w+)TYPE\s*\(", text)}


DARWIN = (X86_64_DARWIN, AARCH64_DARWIN)
BY_DAY = {(2, X86_64_DARWIN), (2, AARCH64_DARWIN), (3, X86_64_LINUX), (3, X86_64_WINDOWS)}
"""Each format of libraries, each version of FMI, both processors."""

each_binary = pytest.mark.parametrize(
    ("fmi", "platform"),
    [
        pytest.param(*case, marks=[] if case in BY_DAY else [pytest.mark.repeats])
        for case in itertools.product(FMI, PLATFORMS)
    ],
    ids=str,
)


@each_binary
def test_every_platform_has_its_machine_code(fmi: int, platform) -> None:
    assert len(slices(fmi, platform)) == 1
    found = inspection.read(library(fmi, platform))
    if fmi == 2 and platform is X86_64_DARWIN:
        assert [each.processor for each in found] == ["x86_64", "aarch64"]
    else:
        assert len(found) == 1


@each_binary
def test_fmi_functions_are_exported_all_of_them_and_nothing_else(fmi: int, platform) -> None:
    assert len(functions(fmi)) > 40
    for each in inspection.read(library(fmi, platform)):
        assert each.exports == functions(fmi)


@each_binary
def test_exported_functions_are_never_called_through_the_dynamic_linker(fmi: int, platform) -> None:
    for each in inspection.read(library(fmi, platform)):
        assert not each.imports & each.exports


@pytest.mark.parametrize("bound", [pytest.param(True, marks=pytest.mark.repeats), False])
def test_such_a_call_would_be_seen(bound: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code = b"""
    __attribute__((visibility("default"), noinline)) int inner(int x) { return x * x + 1; }
    __attribute__((visibility("default"))) int outer(int x) { return inner(x) + inner(x + 1); }
    """
    if not bound:
        plain = compilers.linker_options
        monkeypatch.setattr(building, "linker_options", lambda *a: tuple(w for w in plain(*a) if w != "-Wl,-Bsymbolic"))
    monkeypatch.setenv(user_cache.CACHE_FOLDER_VARIABLE, str(tmp_path))
    tree = compile_fmu_binaries(InMemoryFileTree({"sources/unit.c": code}), "calls", [X86_64_LINUX], fmi=2)
    (content,) = tree.files.values()
    (found,) = inspection.read(content)
    assert found.exports == {"inner", "outer"}
    assert ("inner" in found.imports) == (not bound)


@each_binary
def test_nothing_but_libc_and_libm_is_needed(fmi: int, platform) -> None:
    for each in inspection.read(library(fmi, platform)):
        assert each.libraries
        assert [name for name in each.libraries if not re.fullmatch(LIBRARIES[platform.system], name)] == []


@each_binary
def test_the_oldest_systems_are_served(fmi: int, platform) -> None:
    for each in inspection.read(library(fmi, platform)):
        assert all(version <= (2, 17) for version in each.versions)
        assert bool(each.versions) == (platform.system == "linux")
        if platform.system == "darwin":
            assert each.minimum == ((11, 0) if each.processor == "aarch64" else (10, 15))
            assert each.signed or each.processor == "x86_64"  # Arm Macs load nothing that is not signed


@each_binary
def test_no_path_and_no_debug_file(fmi: int, platform) -> None:
    content = library(fmi, platform)
    for place in (
        str(Path.home()),
        str(Path(__file__).parents[3]),
        str(user_cache.cache_folder()),
        "/tmp/",
        "mb2fmu-",
    ):
        assert place.encode() not in content
    assert b".pdb" not in content
    assert len(content) <= SIZE * len(inspection.read(content))


def test_universal_slices_are_the_thin_libraries() -> None:
    thin = library(2, AARCH64_DARWIN)
    assert library(2, X86_64_DARWIN).endswith(thin)
    alone = compile_fmu_binaries(unit(MODEL, 2).sources, unit(MODEL, 2).identifier, [X86_64_DARWIN], fmi=2)
    (content,) = alone.files.values()
    assert [each.processor for each in inspection.read(content)] == ["x86_64"]
    assert content in library(2, X86_64_DARWIN)


SMALL = InMemoryFileTree(
    {
        "sources/unit.h": b"static const char *header(void) { return __FILE__; }\n",
        "sources/unit.c": b"""
            #include <math.h>
            #include "unit.h"
            __attribute__((visibility("default"))) const char *place(void) { return __FILE__; }
            __attribute__((visibility("default"))) const char *place_of_header(void) { return header(); }
            __attribute__((visibility("default"))) double unit(double x) { return sin(x); }
        """,
    }
)
"""Sources that would tell where they were compiled."""


def of_a_model() -> InMemoryFileTree:
    return unit("simple_pendulum", 2).sources


ONE_OF_EACH_FORMAT = [X86_64_LINUX, AARCH64_DARWIN]
"""For Windows a C library is built, once in each cache; for macOS seconds go into what zig links with."""


@pytest.mark.parametrize(
    ("sources", "wanted"),
    [
        pytest.param(lambda: SMALL, [X86_64_LINUX], id="small"),
        pytest.param(lambda: SMALL, ONE_OF_EACH_FORMAT, id="small, all formats", marks=pytest.mark.repeats),
        pytest.param(of_a_model, ONE_OF_EACH_FORMAT, id="unit", marks=pytest.mark.repeats),
    ],
)
def test_folders_caches_and_names_of_places_leave_no_trace(
    sources: Callable[[], InMemoryFileTree],
    wanted: list[TargetPlatform],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made = sources()

    def compiled(place: str):
        folder = tmp_path / place
        folder.mkdir(exist_ok=True)
        monkeypatch.setenv(user_cache.CACHE_FOLDER_VARIABLE, str(folder))
        monkeypatch.setattr("tempfile.tempdir", str(folder))
        seen = []

        class Observer:
            def started(self, platform) -> None:
                assert platform in wanted

            def finished(self, platform, seconds: float, *, cached: bool) -> None:
                assert seconds >= 0
                seen.append((platform, cached))

        tree = compile_fmu_binaries(made, "unit", wanted, fmi=2, observer=Observer())
        assert {platform for platform, _ in seen} == set(wanted)
        assert sorted(each.name for each in folder.iterdir()) == ["binaries", "objects", "zig"]
        return tree, {cached for _, cached in seen}

    first, was_cached = compiled("first")
    assert was_cached == {False}
    again, was_cached = compiled("first")
    assert was_cached == {True}
    elsewhere, was_cached = compiled("ein anderer Ort, länger")
    assert was_cached == {False}
    assert first == again == elsewhere


def test_contraction_is_what_fast_allows(tmp_path: Path) -> None:
    """On Arm a fused multiply-add is one instruction; so its four bytes are in one library only."""
    made = unit(MODEL, 2)
    fused = re.compile(rb"[\x00-\xff]{2}[\x40-\x5f]\x1f", re.DOTALL)  # fmadd d, d, d, d
    counts = []
    for fast in (False, True):
        file = made.library(PLATFORMS[3], tmp_path / str(fast), fast=fast)
        code = file.read_bytes()
        counts.append(sum(1 for i in range(0, len(code) - 3, 4) if fused.fullmatch(code[i : i + 4])))
    assert counts[1] > counts[0] + 100


@pytest.mark.parametrize("compiler", ["zig", "cc"])
def test_a_failing_compiler_is_quoted(compiler) -> None:
    sources = InMemoryFileTree({"sources/unit.c": b"int broken(void) { return undeclared; }\n"})
    with pytest.raises(ToolError) as caught:
        compile_fmu_binaries(sources, "broken", [host_platform()], fmi=2, compiler=compiler)
    text = str(caught.value)
    assert "exit code 1" in text
    assert "-ffp-contract=off" in text
    assert "undeclared" in text
    assert "sources/unit.c" in text


@pytest.mark.parametrize("fmi", [*by_night(2), 3])
def test_the_systems_compiler_makes_the_same_exports(fmi: int, tmp_path: Path) -> None:
    file = unit(MODEL, fmi).library(host_platform(), tmp_path, compiler="cc")
    (found,) = inspection.read(file.read_bytes())
    assert found.exports == functions(fmi)
