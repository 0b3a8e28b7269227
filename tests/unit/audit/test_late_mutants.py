"""Faults that only a whole run, another instance or another order of calls shows: a part of the table."""

from __future__ import annotations

from pathlib import Path

import ball
import further_mutants
import late_mutants
import odd_balls
import pytest
import sampler
import stranger_mutants
import unusual

from mb2fmu.audit import audit

SAMPLE = {
    "second bounce in silence", "one iteration too few", "next event too late", "ends after a second 3",
    "indicator that never crosses", "ticks once in steps", "depends on height when low", "ignores an integer",
    "keeps the importer's text", "stale when time goes back", "one parameter for all", "memory not cleared",
    "leaks a text each time", "state forgets m, FMI 3",
}  # fmt: skip


@pytest.mark.parametrize(
    "mutant", [each for each in late_mutants.ALL if each.name in SAMPLE], ids=lambda each: each.name
)
def test_late_faults_are_named(mutant: late_mutants.LateMutant, tmp_path: Path) -> None:
    path = late_mutants.unit(mutant, mutant.versions[-1], tmp_path / "late.fmu")
    found = audit(path, only=mutant.rules.split(), others=False, jobs=1, budget=60)
    assert found.faults == ()
    assert {each.rule for each in found.findings} & set(mutant.rules.split())


FURTHER = {
    "a kept state stays what it was first", "reads doubles of a list once only", "stop without round-off",
    "logs with another environment 3", "text in another encoding", "tunable parameter without effect later",
    "reading moves it",
}  # fmt: skip


@pytest.mark.parametrize(
    "mutant", [each for each in further_mutants.ALL if each.name in FURTHER], ids=lambda each: each.name
)
def test_further_faults_are_named(mutant: late_mutants.LateMutant, tmp_path: Path) -> None:
    path = late_mutants.unit(mutant, mutant.versions[-1], tmp_path / "further.fmu")
    found = audit(path, only=mutant.rules.split(), others=False, jobs=1, budget=60)
    assert {each.rule for each in found.findings} & set(mutant.rules.split())


SAMPLED = {"sampler: array of the old size", "sampler: clock ticks on", "sampler: another interval"}


@pytest.mark.parametrize("mutant", [each for each in sampler.ALL if each.name in SAMPLED], ids=lambda each: each.name)
def test_faults_of_arrays_and_clocks_are_named(mutant: late_mutants.LateMutant, tmp_path: Path) -> None:
    path = sampler.unit(mutant, 3, tmp_path / "sampler.fmu")
    found = audit(path, only=mutant.rules.split(), others=False, jobs=1, budget=60)
    assert {each.rule for each in found.findings} & set(mutant.rules.split())


def test_the_sampler_itself_raises_no_alarm(tmp_path: Path) -> None:
    result = audit(ball.pack(sampler.contents(), tmp_path / "sampler.fmu"), others=False, effort=20.0)
    # It makes steps beyond the stop time; and exp() of a newer C library is a newer one.
    assert {each.rule for each in result.findings} <= {"steps.stop", "binary.glibc"}
    assert {"clock.ticks", "clock.interval", "value.structural", "value.order"} <= set(result.judged)


@pytest.mark.parametrize(
    "name",
    ["nothing but the time", "texts only", "an end of its own", "a tool beside it", "a smaller step is asked for"],
)
def test_right_though_unusual(name: str, tmp_path: Path) -> None:
    """All of them are tried by ``scripts/audit_mutants unusual``."""
    result = audit(ball.pack(unusual.contents(name), tmp_path / "unusual.fmu"), others=False, effort=10.0)
    assert [str(each) for each in result.findings if each.severity == "error"] == []
    assert result.faults == ()


STRANGE = {
    "ticks count from zero wherever it starts", "each fifth step is shorter", "long name of an instance 3",
    "set to what it is, it moves", "asked for nothing it crashes", "its own category is refused",
    "an event restores the start's restitution",
}  # fmt: skip


@pytest.mark.parametrize(
    "mutant", [each for each in stranger_mutants.BALL if each.name in STRANGE], ids=lambda each: each.name
)
def test_strangers_faults_are_named(mutant: late_mutants.LateMutant, tmp_path: Path) -> None:
    path = late_mutants.unit(mutant, mutant.versions[-1], tmp_path / "strange.fmu")
    found = audit(path, only=mutant.rules.split(), others=False, jobs=1, budget=60)
    assert {each.rule for each in found.findings} & set(mutant.rules.split())


@pytest.mark.parametrize("mutant", stranger_mutants.SAMPLER, ids=lambda each: each.name)
def test_strangers_faults_of_clocks_are_named(mutant: late_mutants.LateMutant, tmp_path: Path) -> None:
    path = sampler.unit(mutant, 3, tmp_path / "sampler.fmu")
    found = audit(path, only=mutant.rules.split(), others=False, jobs=1, budget=60)
    assert {each.rule for each in found.findings} & set(mutant.rules.split())


@pytest.mark.parametrize("name", [pytest.param(name, marks=pytest.mark.repeats) for name in odd_balls.ODD])
def test_odd_balls_are_right(name: str, tmp_path: Path) -> None:
    result = audit(ball.pack(odd_balls.contents(name), tmp_path / "odd.fmu"), others=False, effort=20.0)
    assert [str(each) for each in result.findings if each.severity == "error"] == []
    assert result.faults == ()


def test_the_table_is_large() -> None:
    names = [each.name for each in late_mutants.ALL]
    assert len(set(names)) == len(names)
    assert set(names) >= SAMPLE
    assert len(late_mutants.EVENTS) >= 20
    assert sum(len(each.versions) for each in late_mutants.ALL) >= 100
    more = [each.name for each in (*further_mutants.ALL, *sampler.ALL, *stranger_mutants.ALL)]
    assert len(set(more)) == len(more) >= 60
    assert set(more) >= FURTHER | SAMPLED | STRANGE
