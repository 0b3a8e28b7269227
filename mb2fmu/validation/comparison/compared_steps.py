"""Choose the communication steps at which one-step errors are compared.

A flow of equations with events costs some hundred times what one of smooth, compiled equations costs. So it is made at
a fixed number of steps that tell most, the same for each interface type: the first and last ones, those beside events,
those in which a state has its largest or smallest value, and one random step of each of equally long parts of the run.
"""

from __future__ import annotations

from itertools import chain

import numpy as np
import numpy.typing as npt

from mb2fmu.validation.modes.hybrid_equations import HybridEquations
from mb2fmu.validation.reference.reference_run import ReferenceRun

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

FIRST_STEPS = 8
"""Steps compared at the beginning of the run."""
RANDOM_STEPS = 48
"""Parts of the run, of each of which one random step is compared."""
MAX_COMPARED_EVENTS = 16
"""Events whose steps are compared: the first of each switch and name, then others spread evenly."""
MAX_COMPARED_EXTREMES = 24
"""States' extremes whose steps are compared."""

_SEED = 20_260_101  # any fixed number: the same steps each time, and for each interface type


def choose_compared_steps(reference: ReferenceRun) -> Integers:
    """Return numbers of the steps that are compared, ascending and each once; all of them without events.

    Args:
        reference: The run of the reference: its events and states choose, never those of an FMU.
    """
    count = len(reference.trajectory.time) - 1
    if not isinstance(reference.numeric, HybridEquations):
        return np.arange(count)
    parts = (
        range(FIRST_STEPS),
        (count - 1,),
        _list_event_steps(reference),
        _list_extreme_steps(reference.states),
        _draw_random_steps(count),
    )
    chosen = np.array(sorted(set(chain.from_iterable(parts))), dtype=np.int64)
    return chosen[(chosen >= 0) & (chosen < count)]


def _list_event_steps(reference: ReferenceRun) -> list[int]:
    """Return the steps of chosen events, and the ones before and behind them."""
    events = reference.events
    first: dict[tuple[str, int], int] = {}
    for i, event in enumerate(events):
        first.setdefault((event.name, event.switch), i)
    others = [i for i in range(len(events)) if i not in set(first.values())]
    kept = list(first.values())[:MAX_COMPARED_EVENTS]
    places = np.linspace(0, len(others) - 1, MAX_COMPARED_EVENTS - len(kept)).astype(int) if others else ()
    chosen = [events[i].step for i in kept + [others[place] for place in dict.fromkeys(places)]]
    return [step + beside for step in chosen for beside in (-1, 0, 1)]


def _list_extreme_steps(states: Floats) -> list[int]:
    """Return the steps that begin where states are largest and smallest, shape of states (n_t, n_x)."""
    extremes = np.concatenate([np.argmax(states, axis=0), np.argmin(states, axis=0)])
    places = np.unique(extremes)
    if len(places) > MAX_COMPARED_EXTREMES:
        places = places[np.linspace(0, len(places) - 1, MAX_COMPARED_EXTREMES).astype(int)]
    return [int(place) for place in places]


def _draw_random_steps(count: int) -> list[int]:
    """Return one random step of each of equally long parts of ``count`` steps."""
    edges = np.linspace(0, count, RANDOM_STEPS + 1)
    places = edges[:-1] + np.random.default_rng(_SEED).random(RANDOM_STEPS) * np.diff(edges)
    return [int(place) for place in places]
