"""What tests compile is kept between runs: named by all that a compiler reads, and only where it succeeds."""

from __future__ import annotations

import sys
from pathlib import Path

import kept_compilations
import pytest

from mb2fmu.fmu.toolchain.compile_cache import CompiledFileCache

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the compiler of these tests is a script of a shell")
COMPILER = """#!/bin/sh
if [ "$1" = --version ]; then echo 1.0; exit; fi
echo run >> {calls}
case "$1" in -Wfail) exit 1;; esac
echo careful >&2
cat source.c {headers}/known.h > made.so
"""


def test_all_that_a_compiler_reads_names_what_it_makes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_compilations, "KEPT", CompiledFileCache(tmp_path / "kept"))
    compiler, calls, headers = tmp_path / "cc", tmp_path / "calls", tmp_path / "headers"
    compiler.write_text(COMPILER.format(calls=calls, headers=headers))
    compiler.chmod(0o755)
    headers.mkdir()
    (headers / "known.h").write_text("1")

    def made(place: str, *flags: str, source: str = "a") -> bytes:
        kept_compilations.sources_in.cache_clear()
        folder = tmp_path / place
        folder.mkdir()
        (folder / "source.c").write_text(source)
        assert kept_compilations.compile_files(folder, [str(compiler), *flags, f"-I{headers}"]) == "careful\n"
        return (folder / "made.so").read_bytes()

    assert made("first") == made("again") == b"a1"
    assert calls.read_text().count("run") == 1
    assert made("source", source="b") == b"b1"
    made("flags", "-O1")
    (headers / "known.h").write_text("2")
    assert made("another header") == b"a2"
    assert calls.read_text().count("run") == 4
    for place in ("failed", "failed again"):
        with pytest.raises(AssertionError):
            made(place, "-Wfail")
    assert calls.read_text().count("run") == 6
