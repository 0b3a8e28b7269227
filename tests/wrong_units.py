"""FMUs that are wrong in one place of their C sources, really compiled."""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

from kept_compilations import compile_files

from mb2fmu.fmu import package
from mb2fmu.fmu.in_memory_file_tree import InMemoryFileTree
from mb2fmu.pipeline.derivation.pipeline_results import FmuBuildResult


def packed(build: FmuBuildResult, path: Path) -> Path:
    """The FMU as it is."""
    package.write_fmu_archive(build.core, path)
    return path


def changed_unit(build: FmuBuildResult, path: Path, edits: Mapping[str, tuple[str, str]]) -> Path:
    """The FMU with some of its sources (file → what is replaced, by what) changed and compiled for this machine.

    What is replaced must stand there once.
    """
    members = {name: build.core[name] for name in build.core}
    for name, (old, new) in edits.items():
        text = members[f"sources/{name}"].decode()
        assert text.count(old) == 1, f"{name}: {old!r}"
        members[f"sources/{name}"] = text.replace(old, new).encode()
    folder = path.with_suffix("")
    for name, content in members.items():
        if name.startswith("sources/"):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(content)
    listed = members.get("sources/buildDescription.xml") or members["modelDescription.xml"]
    units = sorted({name.decode() for name in re.findall(rb'<(?:Source)?File name="([^"]+)"', listed)})
    compiler = [shutil.which("gcc") or ""] if shutil.which("gcc") else [sys.executable, "-m", "ziglang", "cc"]
    flags = ["-shared", "-fPIC", "-O0", "-w", "-ffp-contract=off", "-fvisibility=hidden", "-Wl,-Bsymbolic"]
    command = [*compiler, *flags, "-DDISABLE_PREFIX", *units, "-o", "unit.so", "-lm"]
    compile_files(folder / "sources", command)
    binary = next(name for name in members if name.startswith("binaries/"))
    package.write_fmu_archive(InMemoryFileTree(members | {binary: (folder / "sources" / "unit.so").read_bytes()}), path)
    return path
