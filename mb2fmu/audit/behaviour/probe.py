"""A probe: one trial of a running unit; and the list of all probes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from mb2fmu.audit.behaviour.far_hosts import HERE, WINE
from mb2fmu.audit.behaviour.stage import Stage
from mb2fmu.audit.finding import Observation

NEAR = (HERE,)
"""Of probes that look at this very process, or change it."""

BOTH = ("ModelExchange", "CoSimulation")
AGAIN = "a second instance when the first is freed"
"""Title of the probe that a unit may not survive that must be instantiated only once per process."""

MEMORY, WATCHED = "life.memory", "running it under valgrind"
"""The rule that valgrind judges, and the title of the probe that does so."""

Function = Callable[[Stage], Iterator[Observation]]


@dataclass(frozen=True, slots=True)
class Probe:
    """One trial.

    Attributes:
        title: What is done, for messages: "while …".
        rules: What it may find; it runs only if one of them is asked for.
        kinds: Interfaces that it applies to.
        crash: The rule that a crash in it breaks.
        function: Yields what it saw.
        slow: The rule that it breaks if it is not done in time, if not that of a crash.
        limit: What one call of the unit may take, in s, if less than for all probes.
        weight: Its share of the time, relative to the others'.
        where: How units are run with which it can be tried: in this process, through wine, under valgrind.
        late: It is tried after all others: it may leave the process in disorder, or teaches little.
    """

    title: str
    rules: tuple[str, ...]
    kinds: tuple[str, ...]
    crash: str
    function: Function
    slow: str
    limit: float | None
    weight: float
    late: bool
    where: tuple[str, ...]


PROBES: list[Probe] = []


def probe(
    title: str, *rules: str, kinds: tuple[str, ...] = BOTH, crash: str = "life.crash", slow: str = "",
    limit: float | None = None, weight: float = 1.0, late: bool = False,
    where: tuple[str, ...] = (HERE, WINE),
) -> Callable[[Function], Function]:  # fmt: skip
    """Add a function to the list."""

    def enter(function: Function) -> Function:
        PROBES.append(Probe(title, rules, kinds, crash, function, slow or crash, limit, weight, late, where))
        return function

    return enter
