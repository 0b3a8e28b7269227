"""FMUs in hosts that are not kind: traps, flush-to-zero, rounding, locales, small stacks, crowds, memory checkers.

In each the FMU must answer as in a plain host, bit for bit, and leave the host's floating-point settings alone.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from functools import cache, partial
from pathlib import Path

import pytest
from native.driver import hosting
from native.driver.units import Unit, unit
from representatives import by_night

from mb2fmu.fmu.toolchain import host_platform

MODEL = "double_pendulum"
night = partial(pytest.param, marks=pytest.mark.repeats)
each_kind = pytest.mark.parametrize(("fmi", "kind"), [(2, "me"), (3, "cs"), night(2, "cs"), night(3, "me")])


def script(made: Unit, kind: str, steps: int = 20) -> str:
    names = made.references
    everything = " ".join(str(names[name]) for name in names if "solver" not in name)
    motion = f"continuous\neuler {len(made.states)} 1e-3 {10 * steps}\n" if kind == "me" else f"step 0.01 {steps}\n"
    derivative = f"tangent {names[f'der({made.states[-1]})']} {names[made.states[0]]}\n"
    values = f"get {everything}\n{derivative}"
    begin = "enter 0 - 1e-6\nleave\n"
    again = f"reset\n{begin}{motion}{values}"
    return f"instantiate\n{begin}save\n{motion}{values}write\n{again}read\n{values}terminate\nfree\n"


def answer(made: Unit, kind: str, folder: Path, options=(), steps: int = 20, **others) -> str:
    library = others.pop("library", None) or made.library(host_platform(), folder)
    done = hosting.run(
        host_platform(), library, made.fmi, kind, made.token, script(made, kind, steps), options, **others
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert not re.search(r"^[a-z]+ -?[0-9]$", done.stdout, re.MULTILINE), done.stdout + done.stderr  # a status
    return done.stdout


@each_kind
@pytest.mark.parametrize(
    "options",
    [
        ["--traps"],
        ["--flush"],
        *(["--rounding", str(mode)] for mode in (1, 2, 3)),
        ["--traps", "--flush", "--rounding", "2", "--threads", "3", "--stack", "65536"],
        ["--instances", "1000"],
        ["--threads", "8", "--instances", "5"],
    ],
    ids=" ".join,
)
def test_the_hosts_settings_change_nothing(fmi: int, kind: str, options: list[str], tmp_path: Path) -> None:
    made = unit(MODEL, fmi)
    assert answer(made, kind, tmp_path, options) == answer(made, kind, tmp_path)


@each_kind
def test_paths_with_spaces_and_umlauts(fmi: int, kind: str, tmp_path: Path) -> None:
    made = unit(MODEL, fmi)
    assert answer(made, kind, tmp_path / "ein Ördner mit ß") == answer(made, kind, tmp_path)


GERMAN = "".join(
    f'LC_{part}\ncopy "{"POSIX" if part in {"CTYPE", "COLLATE"} else "de_DE"}"\nEND LC_{part}\n'
    for part in (
        *("CTYPE", "COLLATE", "NUMERIC", "TIME", "MONETARY", "MESSAGES"),
        *("PAPER", "NAME", "ADDRESS", "TELEPHONE", "MEASUREMENT", "IDENTIFICATION"),
    )
)
"""The German locale without its letters and their order, which take three quarters of the time to compile."""


@cache
def german(folder: Path) -> str:
    """Makes a German locale in the folder; why there is none, or empty."""
    if not shutil.which("localedef"):
        return "needs localedef"
    (folder / "german").write_text(GERMAN, encoding="utf-8")
    command = ["localedef", "-i", str(folder / "german"), "-f", "UTF-8", str(folder / "de_DE.UTF-8")]
    made = subprocess.run(command, capture_output=True, text=True, check=False)
    return "" if made.returncode == 0 else f"needs Debian's package locales: {made.stderr.strip()}"


@pytest.fixture(scope="module")
def locales(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a German locale."""
    folder = tmp_path_factory.mktemp("locales")
    reason = german(folder)
    if reason:
        pytest.skip(reason)
    return folder


@each_kind
def test_a_decimal_comma_changes_nothing(fmi: int, kind: str, locales: Path, tmp_path: Path) -> None:
    made = unit(MODEL, fmi)
    there = answer(made, kind, tmp_path, ["--locale", "de_DE.UTF-8"], environment={"LOCPATH": str(locales)})
    assert there == answer(made, kind, tmp_path)


def test_the_locale_test_can_fail(tmp_path: Path) -> None:
    made = unit(MODEL, 2)
    done = hosting.run(
        host_platform(), made.library(host_platform(), tmp_path), 2, "cs", made.token, "", ["--locale", "xx_XX"],
        environment={"LOCPATH": str(tmp_path)},
    )  # fmt: skip
    assert done.returncode == 77


@pytest.mark.parametrize("loading", [[], ["--global"]], ids=["local", "global"])
def test_fmus_side_by_side_answer_for_themselves(loading: list[str], tmp_path: Path) -> None:
    first, second = unit(MODEL, 2), unit("simple_pendulum", 2)
    other = first.library(host_platform(), tmp_path / "other")
    alone = answer(second, "cs", tmp_path)
    assert answer(second, "cs", tmp_path, [*loading, "--also", str(other)]) == alone


@pytest.mark.parametrize(("sanitizer", "fmi"), [("address", 3), night("address", 2), ("thread", 2), night("thread", 3)])
def test_sanitizers_find_nothing(sanitizer: str, fmi: int, tmp_path: Path) -> None:
    """One library with a sanitizer offers both kinds."""
    if shutil.which("cc") is None:
        pytest.skip("needs a C compiler of the system")
    made = unit(MODEL, fmi)
    library = hosting.compile_sanitized(made.sources, tmp_path, sanitizer)
    crowd = ["--threads", "4", "--instances", "3"]
    for kind in ("cs", "me"):
        found = answer(made, kind, tmp_path, crowd, 5, library=library, sanitizer=sanitizer)
        assert found == answer(made, kind, tmp_path, steps=5)


@pytest.mark.parametrize(("fmi", "kind"), [(3, "cs"), *by_night((2, "me"), (2, "cs"), (3, "me"))])
def test_valgrind_finds_no_error_and_no_leak(fmi: int, kind: str, tmp_path: Path) -> None:
    if shutil.which("valgrind") is None:
        pytest.skip("needs valgrind")
    made = unit(MODEL, fmi)
    checker = ["valgrind", "--quiet", "--error-exitcode=9", "--leak-check=full", "--show-leak-kinds=all"]
    assert answer(made, kind, tmp_path, ["--instances", "2"], 5, before=checker) == answer(
        made, kind, tmp_path, steps=5
    )
