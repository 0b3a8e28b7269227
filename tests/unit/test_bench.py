"""The benchmark runs, so that it never rots; its numbers are no matter of a test."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import pytest

SCRIPTS = Path(__file__).parents[2] / "scripts"


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], ModuleType]]:
    """A function that loads a script as a module, which is forgotten with the test."""
    monkeypatch.syspath_prepend(SCRIPTS)
    before = set(sys.modules)
    yield importlib.import_module
    for name in set(sys.modules) - before:
        if name.startswith("bench"):
            del sys.modules[name]


def rows_of(page: Path, begin: str) -> list[list[str]]:
    """Cells of the rows of tables that begin so."""
    lines = page.read_text(encoding="utf-8").splitlines()
    return [line.split("|")[1:-1] for line in lines if line.startswith(begin)]


def number(cell: str) -> float:
    return float(cell.split(maxsplit=1)[0].replace(",", ""))


@pytest.mark.repeats  # by day a row that takes too long
def test_one_row_is_measured_and_written(script, tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    words = ["--links", "2", "--chains", "planar", "--methods", "kane", "--output", str(page)]
    assert script("bench").main(words) == 0
    (row,) = rows_of(page, "| 2 |")
    numbers = [number(cell) for cell in row[2:]]
    assert len(numbers) == 5
    assert all(each > 0 for each in numbers)


def test_a_row_over_its_limit_is_said_to_be(script, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "page.md"
    words = ["--links", "2", "--chains", "planar", "--methods", "tmt", "--limit", "0.01", "--output", str(page)]
    assert script("bench").main(words) == 1  # nothing was measured
    assert "over 0.01 s" in capsys.readouterr().err


@pytest.mark.repeats
def test_native_fmus_are_measured_and_written(script, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = tmp_path / "page.md"
    native: ModuleType = script("bench_native")
    monkeypatch.setattr(native, "TIMED", {"step": 100})
    monkeypatch.setattr(native, "USUALLY_TIMED", 1_000)
    count = native.instructions  # of two calls, since each starts valgrind twice
    monkeypatch.setattr(
        native, "instructions", lambda program, call: count(program, call) if call in {"model", "hand"} else None
    )
    assert native.main(["--models", "double_pendulum", "--no-platforms", "--output", str(page)]) == 0
    rows = rows_of(page, "| double_pendulum |")
    assert [len(row) for row in rows] == [10, 3]
    assert all(number(cell) > 0 for cell in rows[0][1:])
    text = page.read_text(encoding="utf-8")
    assert "written by hand" in text
    assert "times its instructions" in text or not native.shutil.which("valgrind")


@pytest.mark.repeats
def test_chains_are_measured_and_written(script, tmp_path: Path) -> None:
    """Without what takes minutes to compile, or to derive."""
    page = tmp_path / "page.md"
    words = ["--joints", "2", "--rounds", "1", "--without", "pinocchio", "kane", "--output", str(page)]
    assert script("bench_chain").main(words) == 0
    (row,) = rows_of(page, "| 2 |")
    assert len(row) == 12
    assert not row[3].strip()  # Pinocchio
    assert all(number(row[i]) > 0 for i in (1, 2, 4, 5, 6, 7, 10, 11))


@pytest.mark.repeats
def test_events_are_measured_and_written(script, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = tmp_path / "page.md"
    events: ModuleType = script("bench_events")
    monkeypatch.setattr(events, "ROUNDS", 1)
    assert events.main(["--output", str(page)]) == 0
    striking, without = (row[1:] for row in rows_of(page, "| ours"))
    assert number(striking[2]) == 7830  # in 1000 s, each after 2 sqrt(2 h / g)
    assert abs(number(striking[4])) < 1e-9  # without loss
    assert not without[0].strip()  # without the event it does not strike
