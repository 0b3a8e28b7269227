"""FMUs that are compiled while their sources are still being made; the compiler is a stand-in that keeps a list."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from mb2fmu.errors import ToolError, describe_process_end
from mb2fmu.fmu import user_cache
from mb2fmu.fmu.in_memory_file_tree import InMemoryFileTree
from mb2fmu.fmu.toolchain import CompilationSettings, FmuCompilation, compile_fmu_binaries, host_platform
from mb2fmu.fmu.toolchain.compiler_processes import make_command_failure_error

pytestmark = pytest.mark.skipif(os.name == "nt", reason="the stand-in is a shell script")

COMPILER = """#!/bin/sh
# Says what it is; joins its inputs; refuses the word "wrong"; takes its time over the word "slow".
[ "$1" = --version ] && { echo stand-in; exit; }
for word; do
  case $word in *.c|*.o) inputs="$inputs $word";; esac
  [ "$before" = -o ] && result=$word
  before=$word
done
inputs=${inputs%" $result"}
echo $inputs >> "@CALLS@"
grep -q wrong $inputs && { echo "wrong, says $inputs"; exit 1; }
if grep -q slow $inputs; then sleep 60 & echo $! >> "@CALLS@.sleeping"; wait; fi
cat $inputs > $result
"""
EARLY = InMemoryFileTree({"sources/unit.c": b"FMU ", "sources/equations.c": b"motion "})
WHOLE = EARLY.joined(InMemoryFileTree({"sources/derived.c": b"derivatives ", "sources/CMakeLists.txt": b"later"}))
ORDER = CompilationSettings("it", "cc")


@pytest.fixture(autouse=True)
def calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The list of what was compiled; caches and folders are in ``tmp_path``."""
    compiler, listed, scratch = tmp_path / "cc", tmp_path / "calls", tmp_path / "scratch"
    compiler.write_text(COMPILER.replace("@CALLS@", str(listed)))
    compiler.chmod(0o755)
    scratch.mkdir()
    monkeypatch.setenv("CC", str(compiler))
    monkeypatch.setenv(user_cache.CACHE_FOLDER_VARIABLE, str(tmp_path / "cache"))
    monkeypatch.setattr("tempfile.tempdir", str(scratch))
    return listed


def test_what_was_begun_is_compiled_once_and_gives_the_same_bytes(
    calls: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with FmuCompilation(ORDER, [host_platform()]) as compilation:
        compilation.begin(EARLY)
        compilation.begin(WHOLE)
        early = compilation.finish(WHOLE, 2)
    compiled = sorted(line for line in calls.read_text().splitlines() if line.endswith(".c"))
    twice = 2 if host_platform().processor == "x86_64" else 1
    assert compiled == sorted([*["sources/equations.c"] * twice, "sources/derived.c", "sources/unit.c"])
    assert list((tmp_path / "scratch").iterdir()) == []
    monkeypatch.setenv(user_cache.CACHE_FOLDER_VARIABLE, str(tmp_path / "cold"))
    assert compile_fmu_binaries(WHOLE, "it", [host_platform()], fmi=2, compiler="cc") == early


def test_nothing_is_begun_of_a_fmu_that_was_built_before(calls: Path) -> None:
    for _ in range(2):
        with FmuCompilation(ORDER, [host_platform()]) as compilation:
            compilation.begin(EARLY)
            built = compilation.finish(WHOLE, 2)
        once, *more = calls.read_text().count("unit.c"), len(built)
        assert (once, more) == (1, [1])


RUNTIME = InMemoryFileTree(
    {
        "sources/unit.c": b'#include "sizes.h"\n#include "model_names.h"\nruntime ',
        "sources/sizes.h": b'# include \t"deep.h"\n4 states ',
        "sources/deep.h": b"deep ",
        "sources/model_names.h": b"left_ ",
    }
)


@pytest.mark.parametrize(
    ("file", "compiled"),
    [
        *[("unit.c", True), ("sizes.h", True), ("deep.h", True)],
        *[("equations.c", False), ("other.h", False), ("model_names.h", False)],
    ],
)
def test_the_runtime_is_compiled_again_where_something_that_it_includes_has_changed(
    calls: Path, file: str, *, compiled: bool
) -> None:
    first = WHOLE.joined(InMemoryFileTree({"sources/other.h": b"of the equations "}))
    first = InMemoryFileTree({**first.files, **RUNTIME.files})
    second = InMemoryFileTree({**first.files, f"sources/{file}": first[f"sources/{file}"] + b"another "})
    built = [
        compile_fmu_binaries(sources, "it", [host_platform()], fmi=2, compiler="cc") for sources in (first, second)
    ]
    assert calls.read_text().splitlines().count("sources/unit.c") == 1 + compiled
    assert (built[0] != built[1]) is file.endswith(".c")  # the stand-in reads no headers


def test_what_is_noted_of_a_fmu_takes_no_place_among_the_binaries(tmp_path: Path) -> None:
    with FmuCompilation(ORDER, [host_platform()]) as compilation:
        compilation.begin(EARLY)
        compilation.begin(WHOLE)
        compilation.finish(WHOLE, 2)
    assert len(list((tmp_path / "cache" / "binaries").iterdir())) == 1


def test_what_fails_early_is_reported_at_the_end() -> None:
    wrong = InMemoryFileTree({"sources/unit.c": b"unit", "sources/equations.c": b"wrong"})
    with FmuCompilation(ORDER, [host_platform()]) as compilation:
        compilation.begin(wrong)
        with pytest.raises(ToolError, match=r"could not be compiled with (?s:.*)wrong, says +sources/equations\.c"):
            compilation.finish(wrong, 2)


def test_what_was_begun_ends_where_the_rest_fails(calls: Path, tmp_path: Path) -> None:
    sleeping = calls.with_suffix(".sleeping")

    def made_by_halves() -> None:
        with FmuCompilation(ORDER, [host_platform()]) as compilation:
            compilation.begin(InMemoryFileTree({"sources/unit.c": b"slow"}))
            while not sleeping.exists() or not sleeping.read_text().endswith("\n"):
                time.sleep(0.01)
            raise ZeroDivisionError

    begin = time.monotonic()
    with pytest.raises(ZeroDivisionError):
        made_by_halves()
    assert time.monotonic() - begin < 30.0
    assert list((tmp_path / "scratch").iterdir()) == []
    child = int(sleeping.read_text())
    for _ in range(500):  # whoever takes over orphans does so in a moment
        if not is_running(child):
            break
        time.sleep(0.01)
    assert not is_running(child)


def is_running(process: int) -> bool:
    """Whether there is such a process, and it is not just waiting to be taken note of."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    state = Path(f"/proc/{process}/stat")
    return not (state.exists() and state.read_text().rpartition(")")[2].split()[0] == "Z")


def test_sources_that_change_are_refused() -> None:
    with FmuCompilation(ORDER, [host_platform()]) as compilation:
        compilation.begin(EARLY)
        with pytest.raises(ValueError, match=r"sources/unit\.c"):
            compilation.finish(InMemoryFileTree({**WHOLE.files, "sources/unit.c": b"another"}), 2)


@pytest.mark.parametrize(
    ("code", "output", "remedy"),
    [
        (1, "a.c:1: error: unknown type name", "report it"),
        (1, "ld: write failed: No space left on device", "free some space"),
        (1, "virtual memory exhausted: Cannot allocate memory", "no memory left"),
        (-9, "", "no memory left"),
        (-11, "", ""),
    ],
)
def test_the_remedy_of_a_failed_compiler_is_of_what_it_said(code: int, output: str, remedy: str) -> None:
    error = make_command_failure_error("linux64", ["cc", "-c", "a.c"], describe_process_end(code), output)
    (fault,) = error.faults
    assert remedy in fault.remedy if remedy else not fault.remedy
    assert ("killed by SIGSEGV" in fault.what) == (code == -11)
