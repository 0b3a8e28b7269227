"""Find the instants of events in a Co-Simulation FMU between communication points, to a given resolution.

The FMU makes the communication steps of an experiment. Where an event is expected its state is kept, and it steps from
there to one instant after the other: an event has happened by then if one of its variables is beyond a level. That the
FMU may step to any instant and go back is what it offers; whether an instant is right is not judged here.
"""

from __future__ import annotations

from typing import Any

from mb2fmu.fmu.runner.fmpy_instances import (
    Fmi2CoSimulationInstance,
    Fmi2ModelExchangeInstance,
    Fmi3CoSimulationInstance,
    Fmi3ModelExchangeInstance,
)

_BRACKET_GROWTH = 8.0


class EventLocatingInstance:
    """One instance during an experiment.

    Args:
        instance: Initialized.
        read: Value references of everything that is recorded before and after events.
        serializes: Whether states before events become bytes and are read again: modes and memory are in them, too.
    """

    def __init__(
        self, instance: Fmi2CoSimulationInstance | Fmi3CoSimulationInstance, read: list[int], *, serializes: bool
    ) -> None:
        assert not isinstance(instance, Fmi2ModelExchangeInstance | Fmi3ModelExchangeInstance)
        self._instance, self._read, self._serializes = instance, read, serializes
        self._kept: list[tuple[float, Any]] = []

    def locate_watched_events(
        self, experiment: dict[str, Any], held: list[list[float]], watches: list[dict[str, float]]
    ) -> list[Any]:
        """Return what was found of each watch: [time, values before, time, values after, low, high], or the wrong end.

        It came between low and high, in s. A watch has ``low``, ``high`` (in s, at most a step apart), ``at`` (where
        the event is expected), ``near`` (how far it may be from there), ``around`` (how far from there values are read
        at least: beyond events that belong to it), ``fine`` (the resolution), ``place`` (among what is read), ``sign``,
        ``level`` and ``rate``: by the time t it has happened if sign · (value − level − rate · (t − at)) > 0.
        """
        instance, size = self._instance, float(experiment["step"])
        found: list[Any] = []
        for k, inputs in enumerate(held):
            if len(found) == len(watches):
                break
            begin, end = k * size, k * size + size
            if k:
                instance.change(experiment["inputs"], inputs)
            if watches[len(found)]["low"] < end + size:
                self._keep(begin)
            failure = instance.step(begin, size)
            if failure:
                raise RuntimeError(failure)
            due = [watch for watch in watches[len(found) :] if watch["high"] <= end]
            if due:
                here = instance.save()
                found += [self._instant(watch) for watch in due]
                instance.restore(here, end)
                instance.forget(here)
        while self._kept:
            instance.forget(self._kept.pop()[1])
        return found

    def _keep(self, time: float) -> None:
        """Save the present state, beside the one before it."""
        state = self._instance.save()
        if self._serializes:
            content = self._instance.written(state)
            self._instance.forget(state)
            state = self._instance.read(content)
        self._kept.append((time, state))
        if len(self._kept) > 2:
            self._instance.forget(self._kept.pop(0)[1])

    def _look(self, time: float) -> list[float]:
        """Return the values read at an instant."""
        begin, state = [kept for kept in self._kept if kept[0] < time][-1]
        self._instance.restore(state, begin)
        failure = self._instance.step(begin, time - begin)
        if failure:
            raise RuntimeError(failure)
        return self._instance.get(self._read)

    def _instant(self, watch: dict[str, float]) -> Any:
        """Bracket an event by bisection to `fine` s, and return what was found, or "before" or "none"."""
        at, low, high = watch["at"], watch["at"] - watch["near"], watch["at"] + watch["near"]
        low, high = max(low, watch["low"]), min(high, watch["high"])
        before, after = self._look(low), self._look(high)
        while _is_past_event(watch, low, before) and low > watch["low"]:
            high, after = low, before
            low = max(watch["low"], at - _BRACKET_GROWTH * (at - low))
            before = self._look(low)
        while not _is_past_event(watch, high, after) and high < watch["high"]:
            low, before = high, after
            high = min(watch["high"], at + _BRACKET_GROWTH * (high - at))
            after = self._look(high)
        if _is_past_event(watch, low, before):
            return "before"
        if not _is_past_event(watch, high, after):
            return "none"
        while high - low > watch["fine"]:
            middle = 0.5 * (low + high)
            if not low < middle < high:
                break
            values = self._look(middle)
            if _is_past_event(watch, middle, values):
                high, after = middle, values
            else:
                low, before = middle, values
        bracket, around = [low, high], watch["around"]
        if around and at - around < low:
            low, before = at - around, self._look(at - around)
        if around and at + around > high:
            high, after = at + around, self._look(at + around)
        return [low, before, high, after, *bracket]


def _is_past_event(watch: dict[str, float], time: float, values: list[float]) -> bool:
    """Return whether the event has happened."""
    level = watch["level"] + watch["rate"] * (time - watch["at"])
    return watch["sign"] * (values[int(watch["place"])] - level) > 0.0
