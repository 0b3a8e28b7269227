"""FMUs that harm their host: each gets its verdict, and nothing is left behind. ``scripts/audit_mutants`` has all."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import hostile_fmus
import pytest
from representatives import by_night

from mb2fmu.audit import audit

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="harms by Linux's means")
SAMPLE = [1, 7, 12, 17, 19, 21, 38, 42, 43, 46, 47, 52, 54, 73]


@pytest.mark.parametrize("harm", SAMPLE, ids=lambda harm: hostile_fmus.HARMS[harm][0])
def test_harm_is_named_and_contained(harm: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rules = hostile_fmus.HARMS[harm][1].split()
    only = rules if "life.leak" in rules else (*rules, "life.crash")
    path = hostile_fmus.unit(harm, tmp_path / "unit.fmu")
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(scratch))
    found = audit(path, only=only, run_checkers=False, time_limit=0.7, jobs=1)
    assert found.faults == ()
    assert {each.rule for each in found.findings} & set(rules), [str(each) for each in found.findings]
    assert list(scratch.iterdir()) == []
    assert not Path("/var/tmp/mb2fmu-hostile-left").exists()
    assert processes(str(scratch)) == []


def test_a_calm_one_is_blamed_for_nothing(tmp_path: Path) -> None:
    found = audit(hostile_fmus.unit(0, tmp_path / "unit.fmu"), only=("host.*", "life.*"), run_checkers=False)
    assert [str(each) for each in found.findings] == []
    assert found.faults == found.lacking == ()


def test_threads_that_loop_end_the_trials_of_their_fmu_alone(tmp_path: Path) -> None:
    """Asked for everything: each step leaves one, which would take the processor from all that follows."""
    found = audit(hostile_fmus.unit(55, tmp_path / "unit.fmu"), run_checkers=False, jobs=1)
    assert found.faults == ()
    assert "life.leak" in {each.rule for each in found.findings}
    assert any("keep the processor busy" in each for each in found.skipped)
    assert found.seconds < 60.0


def test_statuses_that_no_standard_has_are_reported_as_numbers(tmp_path: Path) -> None:
    """Whichever trial meets them: asked for everything, one of them had fallen over it."""
    found = audit(hostile_fmus.unit(62, tmp_path / "unit.fmu"), run_checkers=False, jobs=1)
    assert found.faults == ()
    assert any("42" in each.message for each in found.findings)


def test_what_follows_threads_that_wait_is_tried_in_a_new_process(tmp_path: Path) -> None:
    late = ("host.rounding", "host.locale")
    found = audit(
        hostile_fmus.unit(95, tmp_path / "unit.fmu"), only=("value.*", "life.*", *late), run_checkers=False, jobs=1
    )
    assert found.faults == ()
    assert "life.leak" in {each.rule for each in found.findings}
    # Hundreds of threads that stay may end a process on a machine that is short of anything. That is their harm too.
    others = [str(each) for each in found.findings if each.rule != "life.leak"]
    assert [text for text in others if "something tried before has done the damage" not in text] == []
    assert set(late) <= set(found.judged)


@pytest.mark.parametrize("how", [signal.SIGKILL, *by_night(signal.SIGTERM, signal.SIGINT)])
def test_nothing_outlives_an_auditor_that_is_ended(how: signal.Signals, tmp_path: Path) -> None:
    """However it ends: the FMU, which blocks all signals and loops, ends too, and its folder goes.

    It has two kinds of interfaces, which are tried at once: none of them is begun anew.
    """
    path = hostile_fmus.unit(23, tmp_path / "unit.fmu", ("ModelExchange", "CoSimulation"))
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    command = [sys.executable, "-m", "mb2fmu", "audit", str(path), "--no-checkers", "--time-limit", "60",
               "--jobs", "2"]  # fmt: skip
    # Shells let what runs in the background ignore SIGINT, and that is inherited. This is no preexec_fn: where JAX has
    # run, this process has threads, and a fork of it may wait for one of them forever.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    auditor = subprocess.Popen(command, env={**os.environ, "TMPDIR": str(scratch)}, stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL)  # fmt: skip
    until(lambda: len(processes(str(scratch))) >= 2 and sum(map(spins, processes(str(scratch)))) == 2)
    auditor.send_signal(how)
    auditor.wait(timeout=60)
    until(lambda: processes(str(scratch)) == [])
    until(lambda: list(scratch.iterdir()) == [])


def processes(mark: str) -> list[int]:
    """Those whose environment or command names a folder, without those that have ended."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                text = (entry / "cmdline").read_bytes() + (entry / "environ").read_bytes()
                ended = "Z" in (entry / "stat").read_text().rpartition(")")[2].split()[0]
            except OSError:
                continue
            if mark.encode() in text and not ended:
                found.append(int(entry.name))
    return found


def spins(process: int) -> bool:
    """Whether it blocks SIGTERM, as the FMU does before it loops."""
    try:
        status = Path(f"/proc/{process}/status").read_text()
    except OSError:
        return False
    blocked = next(int(line.split()[1], 16) for line in status.splitlines() if line.startswith("SigBlk"))
    return bool(blocked >> (signal.SIGTERM - 1) & 1)


def until(condition, limit: float = 60.0) -> None:
    end = time.monotonic() + limit
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)
