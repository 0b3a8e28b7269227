"""Plants faults in FMUs of many models and counts which the validation finds."""

from __future__ import annotations

import argparse
import csv
import json
import math
import sys
import tempfile
import traceback
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from planted.fault import ROOT, Mutant, Subject, subjects
from planted.planting import RIGHT, sample
from planted.validation_verdict import Verdict, judge

NOTHING_PLANTED = "no fault can be chosen"
"""The place of a model of which the choice itself fails."""
COUNTED = ("found", "survived")
"""Outcomes of faults that change what the FMU does."""


@dataclass(frozen=True, slots=True)
class Record:
    """One mutant and what became of it.

    Attributes:
        model: Name of the subject.
        kind, level, place, fmi: Of the mutant.
        outcome, by, effect, seconds: Of the verdict; ``effect`` is None where it was not measured.
    """

    model: str
    kind: str
    level: str
    place: str
    fmi: str
    outcome: str
    by: str = ""
    effect: float | None = None
    seconds: float = 0.0

    @property
    def key(self) -> tuple[str, str, str, str, str]:
        """What the mutant is."""
        return self.model, self.kind, self.level, self.place, self.fmi

    @classmethod
    def of(cls, subject: Subject, mutant: Mutant, verdict: Verdict) -> Record:
        """The mutant of a subject, judged."""
        effect = verdict.effect if math.isfinite(verdict.effect) else None
        what = (subject.name, mutant.kind, mutant.level, mutant.place, mutant.fmi)
        return cls(*what, verdict.outcome, verdict.by, effect, verdict.seconds)


@dataclass(slots=True)
class Store:
    """What was found so far, a line of JSON each, kept as it comes."""

    path: Path
    found: dict[tuple[str, str, str, str, str], Record] = field(default_factory=dict)

    def load(self, again: Sequence[str]) -> None:
        """Reads it, but for the outcomes that are to be judged again."""
        lines = self.path.read_text(encoding="utf-8").splitlines() if self.path.exists() else []
        records = [Record(**json.loads(line)) for line in lines]
        self.found = {record.key: record for record in records if record.outcome not in again}
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._write()

    def drop(self, model: str, place: str) -> None:
        """Forgets what an earlier run has said of a place of a model."""
        gone = [key for key, record in self.found.items() if (record.model, record.place) == (model, place)]
        for key in gone:
            del self.found[key]
        if gone:
            self._write()

    def _write(self) -> None:
        kept = "".join(json.dumps(asdict(record)) + "\n" for record in self.found.values())
        self.path.write_text(kept, encoding="utf-8")

    def add(self, record: Record) -> None:
        """Keeps and shows it."""
        self.found[record.key] = record
        with self.path.open("a", encoding="utf-8") as stream:
            stream.write(json.dumps(asdict(record)) + "\n")
        by = f" by {record.by}" if record.by else ""
        place = f"{record.model} | {record.level} | {record.kind} | {record.place}"
        say(f"{place}: {record.outcome}{by} ({record.seconds:.0f} s)")


def say(text: str) -> None:
    """Shows progress at once, also where it goes to a file."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def plant(subject: Subject, groups: Sequence[Sequence[Mutant]], per_kind: int, store: Store) -> None:
    """Judges of each group as many mutants as are wanted that change something."""
    for group in groups:
        effective = 0
        for mutant in group:
            if effective >= per_kind:
                break
            key = (subject.name, mutant.kind, mutant.level, mutant.place, mutant.fmi)
            if key not in store.found:
                with tempfile.TemporaryDirectory(prefix="mb2fmu-") as folder:
                    store.add(Record.of(subject, mutant, _judged(subject, mutant, Path(folder))))
            effective += store.found[key].outcome not in {"equivalent", "refused"}


def _of_one(subject: Subject, given: argparse.Namespace, store: Store) -> None:
    """Plants in one model; where nothing can be planted in it, that is kept as an error, and the others go on."""
    try:
        chosen = sample(
            subject,
            per_kind=given.per_kind,
            limit=given.limit,
            seed=given.seed,
            kinds=given.kinds,
            levels=given.levels,
        )
    except Exception as error:  # noqa: BLE001
        store.add(Record(subject.name, RIGHT, "none", NOTHING_PLANTED, "", "error", _said(error)))
        return
    store.drop(subject.name, NOTHING_PLANTED)
    plant(subject, chosen, given.per_kind, store)


def _said(error: Exception) -> str:
    """Shows where it was raised, and tells it in one line."""
    traceback.print_exception(error)
    return f"{type(error).__name__}: {' '.join(str(error).split())}"[:200]


def _judged(subject: Subject, mutant: Mutant, folder: Path) -> Verdict:
    """Whatever goes wrong with one mutant is reported of it, and the others go on."""
    try:
        return judge(subject, mutant, folder)
    except Exception as error:  # noqa: BLE001
        return Verdict("error", _said(error))


def table(records: Sequence[Record]) -> str:
    """By kind: planted, found, by which check first; then survivors, false alarms, errors one by one, as Markdown."""
    lines = ["| kind | planted | found | first found by | no effect | not made |", "|---|---:|---:|---|---:|---:|"]
    planted = [record for record in records if record.kind != RIGHT]
    kinds = sorted({record.kind for record in planted})
    lines += [_row(kind, [record for record in planted if record.kind == kind]) for kind in kinds]
    lines.append(_row("**all**", planted))
    right = [record for record in records if record.kind == RIGHT and record.outcome != "error"]
    alarms = [record for record in right if record.outcome != "passed"]
    errors = sum(record.outcome == "error" for record in records)
    models = len({record.model for record in planted if record.outcome in COUNTED})
    lines += ["", f"{models} models; {len(right)} right FMUs, {len(alarms)} false alarms; {errors} errors."]
    reported = [record for record in planted if record.outcome == "survived"] + alarms
    reported += [record for record in records if record.outcome == "error"]
    lines += ["", "| model | level | kind | place | outcome |", "|---|---|---|---|---|"] if reported else []
    lines += [f"| {r.model} | {r.level} | {r.kind} | {r.place} | {r.outcome} {r.by} |" for r in reported]
    return "\n".join(lines)


def _row(kind: str, records: Sequence[Record]) -> str:
    count = Counter(record.outcome for record in records)
    by = Counter(record.by.split(":")[0] for record in records if record.outcome == "found")
    checks = ", ".join(f"{check} {number}" for check, number in by.most_common())
    total = sum(count[outcome] for outcome in COUNTED)
    return f"| {kind} | {total} | {count['found']} | {checks} | {count['equivalent']} | {count['refused']} |"


def write_csv(records: Sequence[Record], path: Path) -> None:
    """All records as a table for other programs."""
    with path.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.DictWriter(stream, list(Record.__slots__))
        writer.writeheader()
        writer.writerows(asdict(record) for record in records)


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit code 0 if no wrong FMU passed and no right one failed, else 1."""
    parser = argparse.ArgumentParser(prog="plant_faults", description=__doc__)
    parser.add_argument("--models", nargs="*", default=(), metavar="NAME", help="all models and mechanisms if none")
    parser.add_argument("--kinds", nargs="*", default=(), metavar="KIND", help="all kinds of faults if none")
    parser.add_argument("--levels", nargs="*", default=(), metavar="LEVEL", help="of the sample, all if none")
    parser.add_argument("--limit", type=int, help="kinds of faults planted in one model, at most (all)")
    parser.add_argument("--per-kind", type=int, default=1, help="faults of each kind and model (%(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="of the choice of kinds and places (%(default)s)")
    parser.add_argument("--again", nargs="*", default=(), metavar="OUTCOME", help="judged again, not taken as found")
    parser.add_argument("--store", type=Path, default=ROOT / "out" / "fooling.jsonl", help="(%(default)s)")
    parser.add_argument("--csv", type=Path, help="also write all there")
    parser.add_argument("--table", type=Path, help="also write the table there")
    given = parser.parse_args(arguments)
    store = Store(given.store)
    store.load(given.again)
    for subject in subjects():
        if not given.models or subject.name in given.models:
            _of_one(subject, given, store)
    records = sorted(store.found.values(), key=lambda record: record.key)
    say(table(records))
    if given.table:
        given.table.write_text(table(records) + "\n", encoding="utf-8")
    if given.csv:
        write_csv(records, given.csv)
    return int(any(record.outcome in {"survived", "false alarm", "error"} for record in records))


if __name__ == "__main__":
    sys.exit(main())
