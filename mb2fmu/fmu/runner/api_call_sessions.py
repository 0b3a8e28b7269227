"""Sessions: calls in the middle of a run on an instance of their own, with records of the answers.

A session is a list of operations, each a list of a verb and its arguments; an answer is whatever JSON can hold. After
an operation that fails the rest of its session is left out, and the answer is ``{"failed": why}``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from fmpy.fmi1 import FMICallException

from mb2fmu.fmu.runner.co_simulation_event_search import EventLocatingInstance
from mb2fmu.fmu.runner.fmpy_instances import (
    FMI_STATUS_NAMES,
    INSTANCE_CLASSES,
    Fmi2CoSimulationInstance,
    Fmi2ModelExchangeInstance,
    Fmi3CoSimulationInstance,
    Fmi3ModelExchangeInstance,
    FmuMessageLog,
)


class ApiCallSession:
    """One instance of an FMU (or several in sequence), with its saved state.

    Args:
        request: As ``driver`` reads it.
        log: Of the FMU's messages.
    """

    def __init__(self, request: dict[str, Any], log: FmuMessageLog) -> None:
        self._request, self._log = request, log
        self._held = [np.load(experiment["held"]) for experiment in request["experiments"]]
        self._kept: tuple[Any, float] = (None, 0.0)
        self._bytes = b""
        self._time = 0.0
        self._instance = self._make_instance()

    def _make_instance(self) -> Any:
        """Return a new instance of the requested kind and version."""
        return INSTANCE_CLASSES[self._request["kind"], self._request["version"]](self._request, self._log)

    def run(self, operations: list[list[Any]]) -> list[Any]:
        """Return the answers, one per operation, up to the first that fails, and the reason."""
        answers: list[Any] = []
        for verb, *arguments in operations:
            try:
                answers.append(getattr(self, f"do_{verb}")(*arguments))
            except FMICallException as error:
                return [*answers, {"failed": f"{error.function} returned {FMI_STATUS_NAMES[error.status]}"}]
            except RuntimeError as error:  # CVODE's failures
                return [*answers, {"failed": str(error)}]
        self._instance.close()
        return answers

    def do_begin(self, experiment: int) -> None:
        """Initialize the instance for an experiment of the request."""
        self._time = 0.0
        self._instance.initialize(self._request["experiments"][experiment], self._held[experiment][0].tolist())

    def do_steps(self, experiment: int, first: int, last: int) -> list[list[float]]:
        """Do communication steps ``first`` to ``last`` - 1 of an experiment; return recorded variables after each."""
        given = self._request["experiments"][experiment]
        rows = []
        for k in range(first, last):
            if k:
                self._instance.change(given["inputs"], self._held[experiment][k].tolist())
            failure = self._instance.step(k * given["step"], given["step"])
            if failure:
                raise RuntimeError(failure)
            self._time = (k + 1) * given["step"]
            rows.append(self._instance.get(self._request["variables"]))
        return rows

    def do_watch(self, experiment: int, watches: list[dict[str, float]], read: list[int]) -> list[Any]:
        """Return an experiment from its start, and what was found of the watched events."""
        self.do_begin(experiment)
        held = [row.tolist() for row in self._held[experiment]]
        locator = EventLocatingInstance(self._instance, read, serializes=self._request["bytes"])
        return locator.locate_watched_events(self._request["experiments"][experiment], held, watches)

    def do_open(self, experiment: dict[str, Any], inputs: list[float]) -> None:
        """Initialize the instance for an experiment outside of the request, with its first inputs set."""
        self._time = 0.0
        self._instance.initialize(experiment, inputs)

    def do_follow(
        self, inputs: list[int], points: list[list[float]], held: list[list[float]], rows: list[int], read: list[int]
    ) -> list[list[float]]:
        """Do communication steps from point to point; return values read at some of them.

        Args:
            inputs: Value references.
            points: Time in s and, behind it, the inputs that hold when values are read there.
            held: Inputs over the step from each point to the next, one row less.
            rows: Points at which values are read, rising.
            read: Value references.
        """
        wanted, found = set(rows), []
        for k, (time, *given) in enumerate(points):
            if k:
                begin = points[k - 1][0]
                if inputs:
                    self._instance.change(inputs, held[k - 1])
                failure = self._instance.step(begin, time - begin)
                if failure:
                    raise RuntimeError(failure)
                self._time = time
            if k in wanted:
                if inputs and k:
                    self._instance.change(inputs, given)
                found.append(list(self._instance.get(read)))
        return found

    def do_moment(self, time: float, states: dict[str, float], inputs: list[int], values: list[float]) -> None:
        """Set Model Exchange to a time in s, with some states (by their place) and inputs."""
        assert isinstance(self._instance, Fmi2ModelExchangeInstance | Fmi3ModelExchangeInstance)
        self._instance.set_time_and_states(time, {int(k): value for k, value in states.items()})
        self._instance.set(inputs, values)

    def do_get(self, references: list[int]) -> list[float]:
        """Return the values of variables."""
        return list(self._instance.get(references))

    def do_nominals(self) -> list[float]:
        """Return the nominal values of the states that Model Exchange hands out."""
        assert isinstance(self._instance, Fmi2ModelExchangeInstance | Fmi3ModelExchangeInstance)
        return self._instance.nominals()

    def do_tune(self, references: list[int], values: list[float]) -> None:
        """Set tunable parameters."""
        if references:
            self._instance.set_tunable_parameters(references, values)

    def do_attempt(self, operations: list[list[Any]]) -> list[Any] | str:
        """Return the answers of operations of which one may be refused, or why it was; then in a new instance."""
        try:
            return [getattr(self, f"do_{verb}")(*arguments) for verb, *arguments in operations]
        except (FMICallException, RuntimeError) as error:
            self.do_new()
            self.do_begin(0)
            return str(error)

    def do_new(self) -> None:
        """Go on with a new instance."""
        self._instance.free()
        self._instance = self._make_instance()

    def do_ramp(self, references: list[int], rates: list[float]) -> None:
        """Let inputs of Co-Simulation change at rates per s from here on."""
        assert isinstance(self._instance, Fmi2CoSimulationInstance)
        self._instance.set_ramps(references, rates)

    def do_put(self, kind: str, references: list[int], values: list[Any]) -> None:
        """Set variables of another type than doubles."""
        self._instance.put(kind, references, values)

    def do_look(self, kind: str, references: list[int]) -> list[Any]:
        """Read variables of another type than doubles."""
        return list(self._instance.look(kind, references))

    def do_directional(self, unknowns: list[int], knowns: list[int], seeds: list[list[float]]) -> list[list[float]]:
        """Return directional derivatives, one row per seed."""
        return [self._instance.directional(unknowns, knowns, seed) for seed in seeds]

    def do_adjoint(self, unknowns: list[int], knowns: list[int], seeds: list[list[float]]) -> list[list[float]]:
        """Return adjoint derivatives, one row per seed."""
        assert isinstance(self._instance, Fmi3CoSimulationInstance)
        return [self._instance.adjoint(unknowns, knowns, seed) for seed in seeds]

    def do_slopes(self, references: list[int], order: int) -> list[float]:
        """Return derivatives of outputs by time."""
        return list(self._instance.slopes(references, order))

    def do_derivatives(
        self,
        point: dict[str, Any],
        inputs: list[float],
        states: list[float],
        references: list[int],
        outputs: list[int],
    ) -> list[list[float]]:
        """Return x' at a point (Model Exchange: as returned; Co-Simulation: variables that hold it), and outputs."""
        self._instance.initialize(point, inputs)
        if isinstance(self._instance, Fmi2ModelExchangeInstance | Fmi3ModelExchangeInstance):
            x_dot = self._instance.derivatives(point["begin"], states)
        else:
            x_dot = list(self._instance.get(references))
        return [x_dot, list(self._instance.get(outputs)) if outputs else []]

    def do_points(self, points: list[list[Any]], references: list[int]) -> list[list[float] | str]:
        """Return the values of variables after the initialization at each point, or why there are none.

        Args:
            points: Experiment and inputs of each.
            references: Value references.
        """
        answers: list[list[float] | str] = []
        for experiment, inputs in points:
            try:
                self._instance.initialize(experiment, inputs)
                answers.append(list(self._instance.get(references)))
            except (FMICallException, RuntimeError) as error:
                answers.append(str(error))
            self._instance.reset()
        self._instance.initialize(self._request["experiments"][0], self._held[0][0].tolist())
        return answers

    def do_save(self) -> None:
        """Save the state; integrators start anew here, as they will when it is restored."""
        self._kept = (self._instance.save(), self._time)
        self._instance.restart_integrator(self._time)

    def do_restore(self) -> None:
        """Go back to the saved state."""
        self._instance.restore(*self._kept)

    def do_write(self) -> int:
        """Serialize the saved state; return its number of bytes."""
        self._bytes = self._instance.written(self._kept[0])
        return len(self._bytes)

    def do_elsewhere(self, experiment: int) -> None:
        """Restore the serialized state in another instance, at the start of another experiment."""
        time = self._kept[1]
        self._instance.forget(self._kept[0])
        self._instance.close()
        self._instance = self._make_instance()
        self.do_begin(experiment)
        state = self._instance.read(self._bytes)
        self._instance.restore(state, time)
        self._instance.forget(state)
