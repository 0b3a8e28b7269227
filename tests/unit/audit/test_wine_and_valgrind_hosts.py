"""FMUs that are not loaded by the auditor's own process: those of Windows through wine, and any under valgrind."""

# ruff: noqa: E501  an edit: one line

from __future__ import annotations

import ctypes
import os
import shutil
import sys
import zipfile
from pathlib import Path

import ball
import pytest
from kept_compilations import compile_files
from representatives import by_night

from mb2fmu.audit import audit, audit_run
from mb2fmu.audit.behaviour.fixture.trial_fixture import TrialFixture
from mb2fmu.audit.behaviour.fixture.trial_simulation_runs import run_as_interface_type
from mb2fmu.audit.behaviour.instance import wine_and_valgrind_hosts
from mb2fmu.audit.behaviour.instance.fmi_c_interface import FmuLibrary
from mb2fmu.audit.behaviour.instance.remote_library import RemoteFmuLibrary
from mb2fmu.audit.description.description_import import parse_model_description
from mb2fmu.errors import ToolError
from mb2fmu.fmu.toolchain.compilers import linker_options, read_linked_sources
from mb2fmu.fmu.toolchain.target_platforms import X86_64_WINDOWS

WINDOWS = {2: "binaries/win64/ball.dll", 3: "binaries/x86_64-windows/ball.dll"}
linux = pytest.mark.skipif(sys.platform != "linux", reason="wine and valgrind are tried on Linux")
with_wine = pytest.mark.skipif(
    not any(map(shutil.which, wine_and_valgrind_hosts._WINE_COMMANDS)), reason="wine64 is not installed"
)
with_valgrind = pytest.mark.skipif(not shutil.which("valgrind"), reason="valgrind is not installed")


def for_windows(version: int, folder: Path, old: str = "", new: str = "") -> Path:
    """The ball with a library for Windows only."""
    for name in ("ball.h", f"ball{version}.c"):
        text = (ball.HERE / "foreign" / name).read_text(encoding="utf-8")
        (folder / name).write_text(text.replace(old, new) if old else text, encoding="utf-8")
    zig = [sys.executable, "-I", "-m", "ziglang", "cc"]
    lacking = read_linked_sources("zig", X86_64_WINDOWS)
    for name, content in lacking.items():
        (folder / name).write_bytes(content)
    options = ["-target", X86_64_WINDOWS.target, "-O1", "-w", f"-I{ball.HEADERS}"]
    compile_files(folder, [*zig, *options, "-c", f"ball{version}.c", "-o", "ball.o"])
    compile_files(folder, [*zig, *linker_options("zig", X86_64_WINDOWS, "ball"), "ball.o", *lacking, "-o", "ball.dll"])
    members = ball.contents(version)
    del members[ball.BINARIES[version]]
    return ball.pack({**members, WINDOWS[version]: (folder / "ball.dll").read_bytes()}, folder / "ball.fmu")


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("kind", ["ModelExchange", "CoSimulation"])
@linux
def test_a_library_in_another_process_answers_as_one_in_this(version: int, kind: str, tmp_path: Path) -> None:
    """Every value of a run, of every type, to the bit; strings, binaries, states and messages among them."""
    path = tmp_path / "ball.so"
    path.write_bytes(ball.library(version))
    described = parse_model_description(ball.description(version).encode())
    far = RemoteFmuLibrary([str(wine_and_valgrind_hosts._build_host_program("native"))], str(path), dict(os.environ))
    found = []
    for handle in (ctypes.CDLL(str(path)), far):
        stage = TrialFixture(FmuLibrary(handle, described, str(tmp_path)), kind, tmp_path)
        with stage.open_instance() as instance:
            rows = run_as_interface_type(stage, instance, stage.variables_to_try, steps=15).values
            kept = instance.serialize_state(state := instance.get_state())
            instance.set_state(instance.deserialize_state(kept))
            instance.free_state(state)
            refused = [instance.try_set(each, 0.5) for each in stage.variables_to_try if each.is_float]
            found.append((rows, kept, refused, list(instance.messages), instance.get(stage.variables_to_try)))
    far.close()
    assert found[0] == found[1]
    assert len(found[0][0]) == 16
    assert any(found[0][2])


@linux
def test_without_wine_it_is_said_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wine_and_valgrind_hosts.shutil, "which", lambda _: None)
    members = {**ball.contents(2), WINDOWS[2]: b"MZ"}
    with pytest.raises(ToolError, match="wine64"):
        audit(ball.pack(members, tmp_path / "ball.fmu"), windows=True, run_checkers=False)


@pytest.mark.parametrize("version", [2, 3])
@linux
def test_wine_is_not_set_up_for_an_archive_without_windows(
    version: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It takes a minute, or is not installed, which would hide that there is nothing to run."""
    monkeypatch.setattr(audit_run, "make_wine_host", lambda: pytest.fail("wine was asked for"))
    found = audit(ball.pack(ball.contents(version), tmp_path / "ball.fmu"), windows=True, run_checkers=False)
    assert found.runnable is False
    assert found.exit_code("error") == 4
    assert any("no binary for Windows" in each for each in found.skipped)


FAULTS = {
    "only there an output has another slope": ("case HEIGHT_TWICE: *value = 2.0 * s->h;", "case HEIGHT_TWICE: *value = (sizeof(long) == 4 ? 2.1 : 2.0) * s->h;", "partials.directional value.set life.crash host.files"),
    "only there it falls": ("case ENERGY: *value =", "case ENERGY: if (sizeof(long) == 4) *(volatile int *)0 = 1; *value =", "life.crash"),
}  # fmt: skip


@pytest.mark.parametrize("name", [next(iter(FAULTS)), *by_night("", *list(FAULTS)[1:])])
@linux
@with_wine
def test_a_fmu_of_windows_is_judged_by_running_it(name: str, tmp_path: Path) -> None:
    """What is wrong there only is named, and by the first of these rules alone."""
    old, new, reported = FAULTS.get(name, ("", "", "value.* derivative.* life.crash life.calls host.files"))
    rules = reported.split()
    path = for_windows(2 + ("falls" in name), tmp_path, old, new)
    found = audit(path, only=rules, run_checkers=False, windows=True, jobs=1)
    assert found.faults == ()
    assert found.runnable
    assert any("wine" in each for each in found.lacking)
    assert {each.rule for each in found.findings} == ({rules[0]} if name else set())
    assert not name or not audit(for_this(path, old, new), only=rules[:1], run_checkers=False, jobs=1).findings


def for_this(path: Path, old: str, new: str) -> Path:
    """The same with the library for this machine beside the other one."""
    version = 3 if WINDOWS[3] in zipfile.ZipFile(path).namelist() else 2
    return ball.pack({**ball.contents(version), ball.BINARIES[version]: ball.library(version, old, new)}, path)


MEMORY = {
    "a decision by what was never written": ("static void ball_slopes(const State *s, double h, double v, double *dh, double *dv)\n{", "static void ball_slopes(const State *s, double h, double v, double *dh, double *dv)\n{\n    volatile int *blank = (volatile int *)malloc(64);\n    if (blank[3] == 12345) v = 0.0;\n    free((void *)blank);"),
    "one behind the end": ("double dh, dv;\n    ball_slopes(s, s->h", "double dh, dv;\n    volatile char *few = (volatile char *)malloc(8);\n    few[8] = (char)reference;\n    free((void *)few);\n    ball_slopes(s, s->h"),
}  # fmt: skip


@pytest.mark.parametrize("wrong", [True, pytest.param(False, marks=pytest.mark.repeats)])
@linux
@with_valgrind
def test_valgrind_names_what_memory_is_used_wrongly(wrong: bool, tmp_path: Path) -> None:
    version = 2 + wrong
    sources = {each: (ball.HERE / "foreign" / each).read_text() for each in ("ball.h", f"ball{version}.c")}
    library = ball.compiled(sources, list(MEMORY.values()) if wrong else (), "-O0", "-g")
    members = {**ball.contents(version), ball.BINARIES[version]: library}
    path = ball.pack(members, tmp_path / "ball.fmu")
    found = audit(path, only=("life.memory",), run_checkers=False, valgrind=True, jobs=1)
    assert found.faults == ()
    assert found.judged == ("life.memory",)
    assert sum(each.endswith("under valgrind") for each in found.tried) == 2
    reported = [each.message for each in found.findings]
    assert bool(reported) == wrong
    if wrong:  # each where it stands
        assert any("ball_slopes" in each for each in reported), reported
        assert any("ball_get" in each for each in reported), reported
