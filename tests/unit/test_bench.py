"""The benchmark runs, so that it never rots; its numbers are no matter of a test."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

BENCH = Path(__file__).parents[2] / "scripts" / "bench.py"


def bench(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(BENCH), *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)


def test_one_row_is_measured_and_written(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    done = bench("--links", "2", "--chains", "spatial", "--methods", "kane", "--output", str(page))
    assert done.returncode == 0, done.stderr
    rows = [line.split("|")[1:-1] for line in page.read_text().splitlines() if line.startswith("| 2 |")]
    assert len(rows) == 1
    numbers = [float(column.split()[0].replace(",", "")) for column in rows[0][2:]]
    assert len(numbers) == 5
    assert all(number > 0 for number in numbers)


def test_a_row_over_its_limit_is_said_to_be(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    done = bench("--links", "2", "--chains", "planar", "--methods", "tmt", "--limit", "0.01", "--output", str(page))
    assert done.returncode == 1  # nothing was measured
    assert "over 0.01 s" in done.stderr


def test_native_units_are_measured_and_written(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    script = BENCH.with_name("bench_native.py")
    command = [sys.executable, str(script), "--models", "double_pendulum", "--no-platforms", "--output", str(page)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
    text = page.read_text()
    rows = [line.split("|")[1:-1] for line in text.splitlines() if line.startswith("| double_pendulum |")]
    assert [len(row) for row in rows] == [10, 3]
    assert all(float(cell.split()[0].replace(",", "")) > 0 for cell in rows[0][1:])
    assert "written by hand" in text


def test_chains_are_measured_and_written(tmp_path: Path) -> None:
    """Without what takes minutes to compile, or to derive."""
    page = tmp_path / "page.md"
    script = BENCH.with_name("bench_chain.py")
    command = [sys.executable, str(script), "--joints", "2", "--rounds", "1", "--without", "pinocchio", "kane"]
    done = subprocess.run([*command, "--output", str(page)], capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
    rows = [line.split("|")[1:-1] for line in page.read_text().splitlines() if line.startswith("| 2 |")]
    assert [len(row) for row in rows] == [12]
    assert not rows[0][3].strip()  # Pinocchio
    assert all(float(rows[0][i].split()[0].replace(",", "")) > 0 for i in (1, 2, 4, 5, 6, 7, 10, 11))


def test_events_are_measured_and_written(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    script = BENCH.with_name("bench_events.py")
    command = [sys.executable, str(script), "--output", str(page)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
    rows = [line.split("|")[2:-1] for line in page.read_text().splitlines() if line.startswith("| ours")]
    striking = [float(cell.split()[0].replace(",", "")) for cell in rows[0]]
    assert striking[2] == 7830  # in 1000 s, each after 2 sqrt(2 h / g)
    assert abs(striking[4]) < 1e-9  # without loss
    assert not rows[1][0].strip()  # without the event it does not strike
