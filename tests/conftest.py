"""Settings for all tests, which of them are slow, and what each file of them took.

``slow_tests.txt`` names files, and functions of files, that take more than 0.1 s of processor time in all:
``pytest -m "not slow"`` (``scripts/test --quick``) leaves them out, and does not import files that have no others.
``pytest --write-slow``, which runs the tests it is given, brings their lines up to date.
A fixture of a module counts for the first of its tests that run: measure the quick tests alone once more, until they
stay the same.
"""

from __future__ import annotations

import ast
import functools
import gc
import hashlib
import os
import platform
import re
from collections import defaultdict
from collections.abc import Generator, Iterable, Iterator
from contextlib import ExitStack, nullcontext
from itertools import chain
from pathlib import Path
from typing import Any

import kept_readings
import pytest
from hypothesis import settings
from one_formulation import COMPARED, is_about_something_else, one_formulation, pages_without_theory

from mb2fmu.fmu.user_cache import cache_folder

# The machine that runs the tests may be busy: time says nothing about a property. The same examples every time, so that
# a change that breaks something is the one that shows it.
settings.register_profile("project", deadline=None, derandomize=True, print_blob=True, max_examples=20)
settings.register_profile("night", settings.get_profile("project"), max_examples=400)
settings.load_profile("project")


# As the commands have it: threads of BLAS that wait for each other, beside those of the other worker, take processor
# time from all. Its first import reads this; processes that tests begin have it too.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# SymPy forgets what it has computed beyond a thousand calls of each function: a user's model has less, a room of tests
# comes back to the same expressions with the next model.
os.environ.setdefault("SYMPY_CACHE_SIZE", "20000")

# Modules and tests that are collected are a million objects that stay: searched for cycles, they cost a tenth of that.
gc.set_threshold(20_000, 20, 20)

# Tests that call zig themselves take what FMUs are built with: for Windows alone zig builds a minute and more.
os.environ.setdefault("ZIG_GLOBAL_CACHE_DIR", str(cache_folder() / "zig"))


def processor() -> str:
    """A name for processors of the same instructions."""
    described = Path("/proc/cpuinfo").read_text(encoding="utf-8") if Path("/proc/cpuinfo").exists() else ""
    flags = next((line for line in described.splitlines() if line.startswith(("flags", "Features"))), "")
    return hashlib.sha256(f"{platform.machine()} {platform.processor()} {flags}".encode()).hexdigest()[:16]


# JAX keeps what it has compiled, which takes most of its tests' time: for this processor alone.
os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(cache_folder() / "tests" / f"jax-{processor()}"))
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0.1")

SLOW = Path(__file__).with_name("slow_tests.txt")
FUNCTION = re.compile(r"^(@pytest\.mark\.(?:repeats|slow)\b.*\n(?:[@ )\]].*\n)*)?def (test_\w+)", re.MULTILINE)
"""Decorators from a mark on that tells when it is not run, if there is one, and the name."""
LIMIT = 0.1
"""Seconds of processor time that a function may take in all, with its set-up, before it is called slow."""


@functools.cache
def named_slow() -> set[str]:
    """Files, and functions of files."""
    return set(SLOW.read_text(encoding="utf-8").split())


def function_of(nodeid: str) -> str:
    """Without the parameters."""
    return nodeid.partition("[")[0]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--write-slow", action="store_true", help=f"write {SLOW.name} afresh for what is run")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """What has no tests that are wanted is not imported, with all that it imports: True; else others decide."""
    if "not slow" not in config.option.markexpr or collection_path.suffix != ".py":
        return None
    name = collection_path.relative_to(config.rootpath).as_posix()
    functions = FUNCTION.findall(collection_path.read_text(encoding="utf-8"))
    unwanted = [marked or f"{name}::{function}" in named_slow() for marked, function in functions]
    return name in named_slow() or bool(unwanted and all(unwanted)) or None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    names = named_slow()
    for item in items:
        if {function_of(item.nodeid), item.nodeid.partition("::")[0]} & names:
            item.add_marker(pytest.mark.slow)


@pytest.fixture(scope="module", autouse=True)
def derivation_by_one_formulation(request: pytest.FixtureRequest) -> Iterator[None]:
    """In rooms that are not about formulations, nor about pages."""
    with ExitStack() as stack:
        if is_about_something_else(request.node.nodeid):
            stack.enter_context(one_formulation())
        if is_about_something_else(request.node.nodeid) and not request.node.nodeid.startswith(COMPARED):
            stack.enter_context(pages_without_theory())
        yield


@pytest.fixture(scope="session")
def trees() -> dict[Path, ast.Module]:
    """Syntax trees of all modules of the package, parsed once in a process; nothing of them is searched for cycles."""
    root = Path(__file__).parents[1]
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.syspath_prepend(root / "scripts")
        from code_size import parse_modules
    gc.disable()
    try:
        found = parse_modules(root / "mb2fmu")
        gc.freeze()
    finally:
        gc.enable()
    return found


@pytest.fixture(scope="session")
def known_readings() -> dict[Any, Any]:
    """What was read of the shipped models in this process."""
    return {}


@pytest.fixture(scope="module", autouse=True)
def readings_that_are_kept(request: pytest.FixtureRequest, known_readings: dict[Any, Any]) -> Iterator[None]:
    """In rooms that are about what is made of a model."""
    is_room = request.node.nodeid.startswith(kept_readings.ROOMS)
    with kept_readings.kept_readings(known_readings) if is_room else nullcontext():
        yield


def pytest_collection_finish() -> None:
    """What is there before the tests, and stays, is no longer searched for cycles: hundreds of thousands of objects."""
    gc.freeze()
    processor_time()


def processor_time() -> float:
    """Seconds since the last call, of this process and of those that it began and that ended."""
    before, now = getattr(processor_time, "before", 0.0), sum(os.times()[:4])
    processor_time.before = now
    return now - before


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """The time of a machine that is busy with other things says nothing about a test."""
    report = yield
    report.processor_time = processor_time()
    return report


def pytest_unconfigure() -> None:
    """What ends with the process may be searched again: extension modules count what is left of theirs."""
    gc.unfreeze()


def with_measured(names: set[str], reports: Iterable[pytest.TestReport]) -> set[str]:
    """The names, those of functions that were run by what they took; files stay."""
    taken: dict[str, float] = defaultdict(float)
    for report in reports:
        taken[function_of(report.nodeid)] += getattr(report, "processor_time", 0.0)  # none if its worker ended
    return (names - taken.keys()) | {name for name, seconds in taken.items() if seconds > LIMIT}


def seconds_by_file(reports: Iterable[pytest.TestReport]) -> list[tuple[str, float, int]]:
    """File, seconds with set-up, and number of tests, the longest first."""
    seconds: dict[str, float] = defaultdict(float)
    count: dict[str, int] = defaultdict(int)
    for report in reports:
        file = report.nodeid.partition("::")[0]
        seconds[file] += report.duration
        count[file] += report.when == "call"
    return sorted(((file, seconds[file], count[file]) for file in seconds), key=lambda row: -row[1])


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Where the durations of tests are asked for, those of files too; all processes together."""
    everything = chain.from_iterable(terminalreporter.stats.values())
    reports = [each for each in everything if isinstance(each, pytest.TestReport)]
    if config.option.write_slow:
        SLOW.write_text("\n".join(sorted(with_measured(named_slow(), reports))) + "\n", encoding="utf-8")
    shown = config.option.durations
    if shown is None:
        return
    rows = seconds_by_file(reports)
    terminalreporter.section(f"seconds by file, {sum(row[1] for row in rows):.0f} in all")
    for file, seconds, count in rows[: shown or None]:
        terminalreporter.line(f"{seconds:8.1f}  {count:4d} tests  {file}")
