"""The same motion, bit for bit, on every platform that can run here; a state written on one is continued on another."""

from __future__ import annotations

import dataclasses
import itertools
import re
import struct
from pathlib import Path

import pytest
from native.driver import hosting
from native.driver.units import Unit, unit
from representatives import by_night

from mb2fmu.fmu.in_memory_file_tree import InMemoryFileTree
from mb2fmu.fmu.toolchain import host_platform
from mb2fmu.fmu.toolchain.target_platforms import AARCH64_LINUX, X86_64_LINUX, X86_64_WINDOWS

MODEL = "double_pendulum"
KINDS = [(fmi, kind) for fmi in (2, 3) for kind in ("cs", "me")]
OTHERS = [X86_64_WINDOWS, AARCH64_LINUX]


def begin(made: Unit, solver: int = 1) -> str:
    return f"instantiate\nchoose {made.references['solver']} {solver}\nenter 0 - 1e-9\nleave\n"


def simulate(made: Unit, kind: str, solver: int = 1) -> str:
    everything = " ".join(str(reference) for name, reference in made.references.items() if "solver" not in name)
    states = " ".join(str(made.references[name]) for name in made.states)
    if kind == "me":
        motion = f"continuous\neuler {len(made.states)} 1e-4 20000\n"
    elif solver in {2, 3}:  # whose steps are the communication steps, if the model says nothing
        motion = f"step 1e-3 2000\nget {states}\nstep 3e-3 500\n"
    else:
        motion = f"step 0.01 200\nget {states}\nstep 0.37 10\n"
    return begin(made, solver) + motion + f"get {everything}\nterminate\nfree\n"


def run(platform, made: Unit, kind: str, script: str, folder: Path) -> str:
    reason = hosting.missing(platform)
    if reason:
        pytest.skip(reason)
    return run_library(platform, made.library(platform, folder), made, kind, script)


def run_library(platform, library: Path, made: Unit, kind: str, script: str) -> str:
    done = hosting.run(platform, library, made.fmi, kind, made.token, script)
    assert done.returncode == 0, done.stdout + done.stderr
    assert not re.search(r"^[a-z]+ -?[0-9]$", done.stdout, re.MULTILINE), done.stdout + done.stderr  # a status
    return done.stdout


def values(line: str) -> list[float]:
    return [struct.unpack(">d", bytes.fromhex(word))[0] for word in line.split()[1:]]


@pytest.mark.parametrize(
    ("model", "fmi", "kind"),
    [
        (MODEL, 3, "cs"),
        ("turntable_ball", 2, "me"),
        *by_night(*((MODEL, *each) for each in KINDS if each != (3, "cs")), ("muscle_arm", 3, "cs")),
    ],
)
@pytest.mark.parametrize("platform", OTHERS, ids=str)
def test_motion_has_the_same_bits(model: str, fmi: int, kind: str, platform, tmp_path: Path) -> None:
    made = unit(model, fmi)
    script = simulate(made, kind)
    there = run(platform, made, kind, script, tmp_path / "there")
    here = run(host_platform(), made, kind, script, tmp_path / "here")
    assert here == there
    begin_and_end = [values(line) for line in here.splitlines()]
    assert len(begin_and_end) == 2
    assert all(abs(value) < 1e3 for line in begin_and_end for value in line)
    assert begin_and_end[0] != [0.0] * len(made.states)


@pytest.mark.parametrize("platform", [X86_64_LINUX, *by_night(X86_64_WINDOWS)], ids=str)
def test_motion_has_the_same_bits_without_avx2(platform, tmp_path: Path) -> None:
    """With fused multiply-adds it has others, which shows that another variant of the equations was at work."""
    reason = hosting.missing(platform) or ("" if "avx2" in processor() else "needs a processor with AVX2")
    if reason:
        pytest.skip(reason)
    made = unit(MODEL, 3)
    for fast in (False, True):
        outputs = []
        for each in (made, without_variants(made)):
            library = each.library(platform, tmp_path / f"{fast}{len(outputs)}", fast=fast)
            outputs.append(run_library(platform, library, made, "cs", simulate(made, "cs")))
        assert (outputs[0] == outputs[1]) != fast


def without_variants(made: Unit) -> Unit:
    """A test build of the same unit, whose instances never take the equations for AVX2."""
    name = "sources/model_config.h"
    files = dict(made.sources.files)
    files[name] = b"#define MB2FMU_WITHOUT_VARIANTS\n" + files[name]
    return dataclasses.replace(made, sources=InMemoryFileTree(files))


def processor() -> list[str]:
    """What the processor says that it can do."""
    facts = Path("/proc/cpuinfo")
    return facts.read_text(encoding="utf-8").split() if facts.exists() else []


@pytest.mark.parametrize("solver", [*by_night(2, 3), 4])
@pytest.mark.parametrize("platform", OTHERS, ids=str)
def test_every_solver_has_the_same_bits(solver: int, platform, tmp_path: Path) -> None:
    made = unit(MODEL, 2)
    script = simulate(made, "cs", solver)
    there = run(platform, made, "cs", script, tmp_path / "there")
    assert run(host_platform(), made, "cs", script, tmp_path / "here") == there


@pytest.mark.parametrize("fmi", [*by_night(2), 3])
@pytest.mark.parametrize("platform", OTHERS, ids=str)
def test_a_state_written_on_one_is_continued_on_another(fmi: int, platform, tmp_path: Path) -> None:
    made = unit(MODEL, fmi)
    states = " ".join(str(made.references[name]) for name in made.states)
    whole = begin(made) + f"step 0.013 100\nstep 0.013 100\nget {states}\n"
    expected = run(host_platform(), made, "cs", whole, tmp_path / "whole")
    for number, (first, second) in enumerate(itertools.permutations((host_platform(), platform))):
        folders = [tmp_path / f"{number}{each}" for each in ("first", "second")]
        run(first, made, "cs", begin(made) + "step 0.013 100\nwrite state.bin\n", folders[0])
        written = next(folders[0].rglob("state.bin"))
        place = made.library(second, folders[1]).parent / "state.bin"
        place.write_bytes(written.read_bytes())
        # Time goes on at 1.3 s; the driver counts from the beginning, so that it is told to begin there.
        rest = f"instantiate\nenter 0 - 1e-9\nleave\nread state.bin\ncontinue 0.013 100\nstep 0.013 100\nget {states}\n"
        assert run(second, made, "cs", rest, folders[1]) == expected


@pytest.mark.parametrize("fmi", [2, *by_night(3)])
@pytest.mark.parametrize("platform", OTHERS, ids=str)
def test_messages_have_the_same_words_and_numbers(fmi: int, platform, tmp_path: Path) -> None:
    """Windows has no function that prints into a string: its FMUs bring one, ``windows_c_library.c``."""
    reason = hosting.missing(platform)
    if reason:
        pytest.skip(reason)
    made = unit(MODEL, fmi)
    said = []
    for number, each in enumerate((host_platform(), platform)):
        library = made.library(each, tmp_path / f"{number}")
        lines = []
        for script in ("instantiate\nenter 0 - 1e-6\nleave\nstep -0.1 1\n", "instantiate\nset 99999 1\nfree\n"):
            done = hosting.run(each, library, fmi, "cs", made.token, script, ["--verbose"])
            lines += done.stderr.splitlines()
        said.append([line for line in lines if "logStatus" in line])
    assert said[0] == said[1]
    assert len(said[0]) >= 2
    assert any("0.1" in line for line in said[0])
    assert any("99999" in line for line in said[0])
