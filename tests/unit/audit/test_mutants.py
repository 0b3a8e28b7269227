"""Every mutant is caught, and the rule that names it is the one that it breaks."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import ball
import further_mutants
import late_mutants
import pytest
import sampler
import stranger_mutants
from mutants import ARCHIVES, DESCRIPTIONS, OWN_SOURCES, RUNNING, SOURCES, XML, CMutant, Mutant, OwnMutant

from mb2fmu.audit import audit, rules

Base = Callable[[str], dict[str, bytes]]
READ = [(mutant, base) for mutant in (*DESCRIPTIONS, *ARCHIVES, *RUNNING) for base in mutant.bases if not mutant.run]


def run_mutants() -> list[object]:
    """Each mutant of one unit that is run, the units in turns; of its other units by night."""
    found = []
    for count, mutant in enumerate(mutant for mutant in RUNNING if mutant.run):
        daily = mutant.bases[count % len(mutant.bases)]
        for base in mutant.bases:
            marks = [] if base == daily else [pytest.mark.repeats]
            found.append(pytest.param(mutant, base, marks=marks, id=f"{mutant.name}-{base}"))
    return found


ALL_LATE = (*late_mutants.ALL, *further_mutants.ALL, *sampler.ALL, *stranger_mutants.ALL)
LIMIT = 20.0
"""In s, of a busy machine."""

HANGS = {"life.crash", "value.extreme"}


def caught(path: Path, rule: str, *, run: bool) -> list[str]:
    result = audit(path, only=[rule], run=run, others=False, time_limit=1.0 if rule in HANGS else LIMIT)
    return [each.message for each in result.findings if each.rule == rule]


@pytest.mark.parametrize(("mutant", "name"), READ, ids=lambda value: getattr(value, "name", value))
def test_changed_descriptions_are_named(mutant: Mutant, name: str, base: Base, tmp_path: Path) -> None:
    members = base(name)
    before = audit(ball.pack(members, tmp_path / "right.fmu"), only=[mutant.rule], run=False, others=False)
    mutant.change(members)
    found = caught(ball.pack(members, tmp_path / "wrong.fmu"), mutant.rule, run=False)
    assert len(found) > len(before.findings)


@pytest.mark.parametrize(("mutant", "name"), run_mutants())
def test_lying_descriptions_are_named(mutant: Mutant, name: str, base: Base, tmp_path: Path) -> None:
    members = base(name)
    mutant.change(members)
    assert caught(ball.pack(members, tmp_path / "wrong.fmu"), mutant.rule, run=True)


def source_mutants() -> list[object]:
    """One of each rule by day, further ones by night."""
    found, rules_seen = [], set()
    for mutant in SOURCES:
        marks = [pytest.mark.repeats] if mutant.rule in rules_seen else []
        found.append(pytest.param(mutant, marks=marks, id=mutant.name))
        rules_seen.add(mutant.rule)
    return found


@pytest.mark.parametrize("mutant", source_mutants())
def test_changed_code_is_named(mutant: CMutant, base: Base, tmp_path: Path) -> None:
    members = base(f"ball{mutant.version}")
    members[ball.BINARIES[mutant.version]] = ball.library(mutant.version, mutant.old, mutant.new)
    run = rules()[mutant.rule].half == "behaviour"
    assert caught(ball.pack(members, tmp_path / "wrong.fmu"), mutant.rule, run=run)


@pytest.mark.parametrize("mutant", OWN_SOURCES, ids=lambda mutant: mutant.name)
def test_changed_code_of_our_own_is_named(mutant: OwnMutant, base: Base, tmp_path: Path) -> None:
    members = base(mutant.base)
    mutant.change(members)
    folder = tmp_path / "sources"
    for name, content in members.items():
        if name.startswith("sources/"):
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
    listed = re.findall(
        rb'<(?:Source)?File name="([^"]+)"', members.get("sources/buildDescription.xml") or members[XML]
    )
    units = sorted({name.decode() for name in listed})
    command = [
        *ball.compiler(),
        "-shared",
        "-fPIC",
        "-O0",
        "-w",
        "-fvisibility=hidden",
        "-Wl,-Bsymbolic",
        "-DDISABLE_PREFIX",
    ]
    done = subprocess.run(
        [*command, *units, "-o", "unit.so", "-lm"], cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    binary = next(name for name in members if name.startswith("binaries/"))
    members[binary] = (folder / "unit.so").read_bytes()
    run = rules()[mutant.rule].half == "behaviour"
    assert caught(ball.pack(members, tmp_path / "wrong.fmu"), mutant.rule, run=run)


@pytest.mark.parametrize(
    ("value", "named"), [("1e6 * (s->v + s->g * s->time)", False), ("s->m * s->g * s->h + s->wind", True)]
)
def test_what_an_input_does_at_once_in_steps(value: str, named: bool, tmp_path: Path) -> None:
    """Co-Simulation only: what goes by way of a state that is still near zero is no direct dependency."""
    members = ball.contents(2, ("CoSimulation",))
    energy = "s->m * (s->g * s->h + 0.5 * s->v * s->v)"
    members[ball.BINARIES[2]] = ball.library(2, f"case ENERGY: *value = {energy};", f"case ENERGY: *value = {value};")
    found = caught(ball.pack(members, tmp_path / "steps.fmu"), "dependencies.missing", run=True)
    assert any('"wind" without time going by' in each for each in found) == named


@pytest.mark.parametrize(
    ("rule", "flag"),
    [("binary.search", "-Wl,-rpath,/opt/elsewhere"), ("binary.libraries", "-Wl,--no-as-needed,-lresolv")],
)
def test_other_links_are_named(rule: str, flag: str, base: Base, tmp_path: Path) -> None:
    members = base("ball2")
    members[ball.BINARIES[2]] = ball.library(2, "", "", flag)
    assert caught(ball.pack(members, tmp_path / "wrong.fmu"), rule, run=False)


def test_there_are_enough_of_them() -> None:
    """And they break nearly all rules."""
    table = [*DESCRIPTIONS, *ARCHIVES, *RUNNING, *SOURCES, *OWN_SOURCES]
    assert len(table) >= 120
    assert len({mutant.name for mutant in table}) == len(table)
    late = {rule for mutant in ALL_LATE for rule in mutant.rules.split()}
    assert set(rules()) - {mutant.rule for mutant in table} - late <= UNTRIED
    assert len(table) + sum(len(mutant.versions) for mutant in late_mutants.ALL) >= 200


# What no single change of these units breaks, or a test of its own does.
UNTRIED = {
    "exchange.chatter",
    "state.bits",
    "host.files",  # these by the harms of hostile.py
    "host.network",
    "host.processes",
    "host.system",
    "life.unload",
    "life.memory",  # by test_far_units.py
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
