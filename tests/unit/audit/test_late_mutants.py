"""Faults that only a whole run, another instance or another order of calls shows: a part of the table."""

from __future__ import annotations

from pathlib import Path

import late_mutants
import pytest

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


def test_the_table_is_large() -> None:
    names = [each.name for each in late_mutants.ALL]
    assert len(set(names)) == len(names)
    assert set(names) >= SAMPLE
    assert len(late_mutants.EVENTS) >= 20
    assert sum(len(each.versions) for each in late_mutants.ALL) >= 100
