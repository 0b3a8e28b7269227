"""Every mutant is caught, and a rule that it breaks names it: one of each rule by day, all of them by night."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path

import ball
import late_mutants
import pytest
from planted_faults import BY_HARMS, KINDS, Planted, daily, every

from mb2fmu.audit import audit, audit_rules_by_id

Base = Callable[[str], dict[str, bytes]]
EVERY = list(every())
DAILY = daily()


def tried(*, run: bool) -> list[object]:
    """Those that are read, or those that are run; what repeats a law is marked as such."""
    return [
        pytest.param(each, id=each.name, marks=[] if each.name in DAILY else [pytest.mark.repeats])
        for each in EVERY
        if (each.group != "read") == run
    ]


@pytest.fixture(scope="session")
def said(base: Base, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, str], int]:
    """Number of findings of a rule in a correct FMU that is only read."""
    folder = tmp_path_factory.mktemp("right")

    @functools.cache
    def right(name: str) -> list[str]:
        found = audit(ball.pack(base(name), folder / f"{name}.fmu"), run=False, run_checkers=False).findings
        return [each.rule for each in found]

    return lambda name, rule: right(name).count(rule)


@pytest.mark.parametrize("mutant", tried(run=False))
def test_changed_descriptions_are_named(
    mutant: Planted, base: Base, said: Callable[[str, str], int], tmp_path: Path
) -> None:
    (rule,) = mutant.rules
    found = mutant.judged(mutant.make(base, tmp_path / "wrong.fmu")).findings
    assert [each.rule for each in found].count(rule) > said(mutant.base, rule)


@pytest.mark.parametrize("mutant", tried(run=True))
def test_what_a_fmu_does_wrongly_is_named(mutant: Planted, base: Base, tmp_path: Path) -> None:
    """By day all interface types run in one process, by night each in its own: each process imports for 0.2 s."""
    found = mutant.judged(mutant.make(base, tmp_path / "wrong.fmu"), together=mutant.name in DAILY)
    assert found.faults == ()
    assert {each.rule for each in found.findings} & set(mutant.rules)


@pytest.mark.parametrize(
    ("value", "named"), [("1e6 * (s->v + s->g * s->time)", False), ("s->m * s->g * s->h + s->wind", True)]
)
def test_what_an_input_does_at_once_in_steps(value: str, named: bool, tmp_path: Path) -> None:
    """Co-Simulation only: what goes by way of a state that is still near zero is no direct dependency."""
    members = ball.contents(2, ("CoSimulation",))
    energy = "s->m * (s->g * s->h + 0.5 * s->v * s->v)"
    members[ball.BINARIES[2]] = ball.library(2, f"case ENERGY: *value = {energy};", f"case ENERGY: *value = {value};")
    found = audit(
        ball.pack(members, tmp_path / "steps.fmu"), only=["dependencies.missing"], run_checkers=False
    ).findings
    assert any('"wind" without time going by' in each.message for each in found) == named


@pytest.mark.parametrize(
    ("rule", "flag"),
    [("binary.search", "-Wl,-rpath,/opt/elsewhere"), ("binary.libraries", "-Wl,--no-as-needed,-lresolv")],
)
def test_other_links_are_named(rule: str, flag: str, base: Base, tmp_path: Path) -> None:
    members = base("ball2")
    members[ball.BINARIES[2]] = ball.library(2, "", "", flag)
    found = audit(ball.pack(members, tmp_path / "wrong.fmu"), only=[rule], run=False, run_checkers=False).findings
    assert [each.rule for each in found] == [rule]


def test_there_are_enough_of_them() -> None:
    """And they break nearly all rules, each by day."""
    names = [each.name for each in EVERY]
    assert len(names) == len(set(names)) >= 400
    assert set(names) >= KINDS
    assert len(late_mutants.EVENTS) >= 20
    tried_by_day = {rule for each in EVERY if each.name in DAILY for rule in each.rules}
    assert tried_by_day == {rule for each in EVERY for rule in each.rules} - BY_HARMS
    assert set(audit_rules_by_id()) - tried_by_day <= UNTRIED


# What no single change of these units breaks, or a test of its own does.
UNTRIED = {
    "exchange.chatter",
    "state.bits",
    "host.files",  # these by the harms of hostile_fmus.py
    "host.network",
    "host.processes",
    "host.system",
    "life.unload",
    "life.memory",  # by test_wine_and_valgrind_hosts.py
    "log.null",
    "archive.suffix",
    "archive.compression",
    "experiment.reference",  # by test_recorded_runs.py
    "header.interfaces",
    "binary.libraries",
    "binary.search",
    "binary.glibc",
    "life.load",
}
