"""All mutants of all tables in one list: how each is made, the rules that may name it, and which are tried by day."""

from __future__ import annotations

import functools
import itertools
import re
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import ball
import call_order_mutants
import end_of_run_mutants
import further_mutants
import late_mutants
import mutants
import persistence_mutants
import protocol_mutants
import sampler
import type_limit_mutants
import update_and_tick_mutants
from correct_fmus import Base, Members
from kept_compilations import compile_files

from mb2fmu.audit import AuditResult, audit, audit_rules_by_id

HANGS = {"life.crash", "value.extreme"}
"""Rules by which a call that does not come back is named: mutants of theirs get less time."""

LIMIT = 20.0
"""For one call, in s, of a busy machine."""


@dataclass(frozen=True)
class Planted:
    """One fault in one unit.

    Attributes:
        name: Of the fault and of its unit.
        rules: One of these has to name it.
        make: Writes the FMU to a path.
        group: The table that it stands in: ``read``, ``lies``, ``code``, ``ours``, ``late`` or ``sampler``.
        base: The correct FMU that it was, where that is judged too.
    """

    name: str
    rules: tuple[str, ...]
    make: Callable[[Base, Path], Path]
    group: str
    base: str = ""

    @property
    def run(self) -> bool:
        """Whether only a running FMU shows it."""
        return any(audit_rules_by_id()[each].half == "behaviour" for each in self.rules) and self.group != "read"

    def judged(self, path: Path, *, together: bool = False) -> AuditResult:
        """What its rules say of a unit, each interface type in a process of its own or all in one."""
        limit = 1.0 if HANGS & set(self.rules) else LIMIT
        return audit(
            path, only=self.rules, run=self.run, run_checkers=False, time_limit=limit, jobs=1, together=together
        )

    def named(self, path: Path) -> set[str]:
        """Its rules that say something of a unit."""
        return {each.rule for each in self.judged(path).findings} & set(self.rules)


def every() -> Iterator[Planted]:
    """All of them."""
    for mutant in (*mutants.DESCRIPTIONS, *mutants.ARCHIVES, *mutants.RUNNING):
        for base in mutant.bases:
            group = "lies" if mutant.run else "read"
            make = functools.partial(_changed, mutant.change, base)
            yield Planted(f"{mutant.name}, {base}", (mutant.rule,), make, group, base)
    for each in mutants.SOURCES:
        yield Planted(each.name, (each.rule,), functools.partial(_compiled, each), "code")
    for own in mutants.OWN_SOURCES:
        yield Planted(own.name, (own.rule,), functools.partial(_own, own), "ours")
    tables = (
        late_mutants.ALL,
        further_mutants.ALL,
        call_order_mutants.BALL,
        protocol_mutants.BALL,
        update_and_tick_mutants.BALL,
        end_of_run_mutants.BALL,
        persistence_mutants.BALL,
        type_limit_mutants.BALL,
    )
    for late in itertools.chain(*tables):
        for version in late.versions:
            yield Planted(f"{late.name}, FMI {version}", tuple(late.rules.split()),
                          functools.partial(_late, late, version), "late")  # fmt: skip
    for late in (
        *sampler.ALL,
        *call_order_mutants.SAMPLER,
        *protocol_mutants.SAMPLER,
        *update_and_tick_mutants.SAMPLER,
        *end_of_run_mutants.SAMPLER,
        *persistence_mutants.SAMPLER,
        *type_limit_mutants.SAMPLER,
    ):
        yield Planted(late.name, tuple(late.rules.split()), functools.partial(_sampler, late), "sampler")


def _changed(change: Callable[[Members], None], name: str, base: Base, path: Path) -> Path:
    """Changes members of a correct unit."""
    members = base(name)
    change(members)
    return ball.pack(members, path)


def _compiled(mutant: mutants.CMutant, base: Base, path: Path) -> Path:
    """The ball with one place of its code changed."""
    members = base(f"ball{mutant.version}")
    members[ball.BINARIES[mutant.version]] = ball.library(mutant.version, mutant.old, mutant.new)
    return ball.pack(members, path)


def _late(mutant: late_mutants.LateMutant, version: int, _base: Base, path: Path) -> Path:
    return late_mutants.unit(mutant, version, path)


def _sampler(mutant: late_mutants.LateMutant, _base: Base, path: Path) -> Path:
    return sampler.unit(mutant, 3, path)


def _own(mutant: mutants.OwnMutant, base: Base, path: Path) -> Path:
    """An FMU of ours with one place of its sources changed, compiled from them."""
    members = base(mutant.base)
    mutant.change(members)
    folder = Path(tempfile.mkdtemp(dir=ball.scratch()))
    for name, content in members.items():
        if name.startswith("sources/"):
            place = folder / name
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(content)
    described = members.get("sources/buildDescription.xml") or members[mutants.XML]
    listed = sorted({name.decode() for name in re.findall(rb'<(?:Source)?File name="([^"]+)"', described)})
    flags = ["-shared", "-fPIC", "-O0", "-w", "-fvisibility=hidden", "-Wl,-Bsymbolic", "-DDISABLE_PREFIX"]
    command = [*ball.compiler(), *flags, *listed, "-o", "unit.so", "-lm"]
    compile_files(folder / "sources", command)
    binary = next(name for name in members if name.startswith("binaries/"))
    members[binary] = (folder / "sources" / "unit.so").read_bytes()
    return ball.pack(members, path)


KINDS = {
    "second bounce in silence, FMI 2", "indicator that never crosses, FMI 3", "stale when time goes back, FMI 3",
    "one parameter for all, FMI 3", "a kept state stays what it was first, FMI 2", "sampler: array of the old size",
    "a table of one thread, FMI 3", "bytes hold an address, FMI 3", "an input a step late, however little, FMI 2",
    "no end out of Event Mode, FMI 2", "python: wrong start, python", "constant acceleration, cart2",
    "depends on wind after the second tick, FMI 2", "bounces as before the reset, FMI 2",
    "partials of one unknown by one known are a ten thousandth off, FMI 3",
}  # fmt: skip
"""Tried by day for their kind: late, in another instance, in a kept state, of arrays, in FMUs of ours."""

COSTLY = {"states exchanged", "leaks", "one in a thread"}
"""Tried by night if another one stands for their rule."""


BY_HARMS = {"host.processes"}
"""Rules that FMUs in ``test_hostile_fmus.py`` break by day: for a thread that sleeps the auditor waits for 2 s."""


def daily() -> frozenset[str]:
    """Names of those that are tried by day: one of each rule at least, and each reading one in one unit."""
    everything = list(every())
    found = {each.name for each in everything if each.name in KINDS}
    found |= {each.name for each in everything if each.group == "read" and each.base == _first(each, everything).base}
    running = [each for each in everything if each.group != "read"]
    for rule in (each for each in audit_rules_by_id() if each not in BY_HARMS):
        served = [each for each in running if rule in each.rules]
        if served and not any(each.rules == (rule,) and each.name in found for each in served):
            found.add(min(served, key=lambda each: (len(each.rules), each.name in COSTLY)).name)
    return frozenset(found)


def _first(mutant: Planted, everything: list[Planted]) -> Planted:
    """The same change in the first of its units."""
    name = mutant.name.rpartition(", ")[0]
    return next(each for each in everything if each.name.rpartition(", ")[0] == name)
