"""Which faults are planted in a model: all there are, or a sample that is the same in every run."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Literal

from planted import conditional, description, graph, motion, occurrences, reading, runtime, touch_reading
from planted.fault import Mutant, Subject, generator

RIGHT = "none"
LEVELS = (reading, touch_reading, motion, graph, runtime, occurrences, conditional, description)


def all_mutants(subject: Subject) -> Iterator[Mutant]:
    """The right FMU first, then every fault of every level."""
    fmi: Literal["2", "3"] = "2" if generator(subject.name, RIGHT).random() < 0.5 else "3"
    yield Mutant(RIGHT, "none", "the right FMU", fmi=fmi, by_construction=True)
    for level in LEVELS:
        yield from level.mutants(subject)


def sample(
    subject: Subject,
    *,
    per_kind: int,
    limit: int | None,
    seed: int,
    kinds: Collection[str] = (),
    levels: Collection[str] = (),
) -> list[list[Mutant]]:
    """Mutants of a model by kind and level, in a random order that is the same in every run.

    Args:
        subject: The model.
        per_kind: How many are wanted of each kind and level. A list holds three times as many, because some turn out
            to change nothing.
        limit: How many kinds are planted in this model, the right FMUs not counted; None: all.
        seed: Of the order.
        kinds: Only these; all if empty.
        levels: Of the sample only what is planted in these; all if empty.
    """
    found: dict[tuple[str, str], list[Mutant]] = {}
    for mutant in all_mutants(subject):
        if not kinds or mutant.kind in kinds:
            found.setdefault((mutant.kind, mutant.level), []).append(mutant)
    right = found.pop((RIGHT, "none"), []) if not levels or "none" in levels else []
    found.pop((RIGHT, "none"), None)
    keys = list(found)
    order = generator(seed, subject.name).permutation(len(keys))[:limit]
    chosen = [[mutant] for mutant in right]
    for kind, level in (keys[i] for i in sorted(order)):
        if levels and level not in levels:
            continue
        mutants = found[kind, level]
        shuffled = generator(seed, subject.name, kind, level).permutation(len(mutants))
        chosen.append([mutants[i] for i in shuffled[: 3 * per_kind]])
    return chosen
