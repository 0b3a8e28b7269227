"""Runs FMUs of constrained models for as long as one likes, with inputs held at their start values.

Printed for every tenth of the run: the largest residual of the constraints at any communication point so far, by the
reference's own functions of the coordinates and speeds that the FMU gives, and the drift of its energy, over the range
of the kinetic energy and per 1,000 s. In Co-Simulation the state is saved during the run and the rest of that tenth run
twice: all bits must be the same. Exit code 1 if a residual reaches 1e-10, the drift 1e-6, or a bit differs.

In Model Exchange the importer integrates: fmpy by CVODE, whose backward differentiation formulas lose energy of
themselves. What is theirs is separated from what is the FMU's by control experiments: the same FMU by SciPy's DOP853
(``--integrator DOP853``), loops in closed form (``--constraints explicit``), a model without constraints.
"""

from __future__ import annotations

import argparse
import ctypes
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, get_args

import fmpy
import numpy as np
import numpy.typing as npt
from fmpy.fmi2 import FMU2Model, FMU2Slave
from scipy.integrate import DOP853

from mb2fmu import pipeline
from mb2fmu.mechanics import formulations
from mb2fmu.validation.reference.experiment_values import form_experiment_values
from mb2fmu.validation.reference_equations.numeric_equations import NumericEquations

ROOT = Path(__file__).parents[1]
Floats = npt.NDArray[np.float64]
RESIDUAL, DRIFT = 1e-10, 1e-6
TENTHS = 10
KINETIC = 20
"""The kinetic energy, of which only the range matters, is looked at in every so manieth point."""


@dataclass(slots=True)
class Watch:
    """What is kept of a run.

    Attributes:
        numeric: The equations as functions of numbers, apart from the FMU.
        prepared: Values of the parameters.
        names: What is read of the FMU: coordinates, speeds, total energy.
        residual: Largest so far.
    """

    numeric: NumericEquations
    prepared: tuple[float, ...]
    names: tuple[str, ...]
    residual: float = 0.0
    times: list[float] = field(default_factory=list)
    energies: list[float] = field(default_factory=list)
    kinetic: list[float] = field(default_factory=list)

    def look(self, t: float, values: Sequence[float]) -> None:
        """At one communication point."""
        n_q, n_u = self.numeric.n_q, self.numeric.n_u
        q, u = np.array(values[:n_q]), np.array(values[n_q : n_q + n_u])
        point = np.concatenate([[t], q, u, np.zeros(len(self.numeric.equations.r))])
        off = float(np.max(np.abs(self.numeric.residuals(point[None, :], self.prepared)), initial=0.0))
        self.residual = max(self.residual, off if np.isfinite(off) else np.inf)
        if len(self.times) % KINETIC == 0:
            x = np.concatenate([q, u[list(self.numeric.equations.u_independent)]])
            held = [0.0] * len(self.numeric.equations.r)
            self.kinetic.append(self.numeric.kinetic_energy(t, x, held, self.prepared))
        self.times.append(t)
        self.energies.append(values[-1])

    @property
    def drift(self) -> float:
        """Largest departure from the first energy, over the kinetic energy's range, per 1,000 s (at least those)."""
        off = np.abs(np.array(self.energies) - self.energies[0])
        return float(np.max(off / np.maximum(np.array(self.times) / 1000, 1.0)) / np.ptp(self.kinetic))

    def format_line(self) -> str:
        """A line."""
        return f"t = {self.times[-1]:8g} s   residual {self.residual:.2e}   energy drift {self.drift:.2e} per 1000 s"


@dataclass(frozen=True, slots=True)
class Span:
    """How long an FMU runs: s, s between communication points, relative tolerance, parameters by FMU name."""

    stop: float
    step: float
    tolerance: float
    parameters: Mapping[str, float]


def initialized(path: Path, kind: str, span: Span) -> tuple[Any, dict[str, int], int]:
    """An instance at its start, value references by name, and the number of its continuous states."""
    description = fmpy.read_model_description(path)
    make, of_kind = (
        (FMU2Slave, description.coSimulation) if kind == "CoSimulation" else (FMU2Model, description.modelExchange)
    )
    unit = make(
        guid=description.guid,
        unzipDirectory=fmpy.extract(str(path)),
        modelIdentifier=of_kind.modelIdentifier,
        instanceName="long",
    )
    references = {variable.name: variable.valueReference for variable in description.modelVariables}
    unit.instantiate()
    unit.setupExperiment(tolerance=span.tolerance, startTime=0.0)
    unit.setReal([references[name] for name in span.parameters], list(span.parameters.values()))
    unit.enterInitializationMode()
    unit.exitInitializationMode()
    return unit, references, description.numberOfContinuousStates


def co_simulation(path: Path, watch: Watch, span: Span) -> Iterator[str]:
    """A line for each tenth; the last one says whether the saved state gave the same bits."""
    unit, references, _ = initialized(path, "CoSimulation", span)
    wanted = [references[name] for name in watch.names]
    step = span.step
    count = round(span.stop / step)
    middle, tenth = count // 2, max(count // TENTHS, 1)

    def advance(begin: int, end: int) -> list[list[float]]:
        seen = []
        for k in range(begin, end):
            unit.doStep(currentCommunicationPoint=k * step, communicationStepSize=step)
            seen.append(unit.getReal(wanted))
        return seen

    watch.look(0.0, unit.getReal(wanted))
    same = True
    for begin in range(0, count, tenth):
        end = min(begin + tenth, count)
        seen = advance(begin, min(max(begin, middle), end))
        if begin <= middle < end:
            saved = unit.getFMUState()
            first = advance(middle, end)
            unit.setFMUState(saved)
            seen += advance(middle, end)
            same = np.array(first).tobytes() == np.array(seen[middle - begin :]).tobytes()
            unit.freeFMUState(saved)
        elif begin > middle:
            seen = advance(begin, end)
        for k, values in enumerate(seen, begin + 1):
            watch.look(k * step, values)
        yield watch.format_line()
    unit.terminate()
    unit.freeInstance()
    yield f"saved at {middle * step:g} s and restored: {'the same bits' if same else 'OTHER BITS'}"


def by_cvode(path: Path, watch: Watch, span: Span) -> Iterator[str]:
    """Model Exchange by fmpy."""
    lines = iter(range(1, TENTHS + 1))
    due = [next(lines) * span.stop / TENTHS]

    def finished(t: float, _recorder: object) -> bool:
        if t >= due[0]:
            print(f"  at {t:g} s", flush=True)
            due[0] = next(lines, TENTHS) * span.stop / TENTHS if t < span.stop else np.inf
        return True

    result = fmpy.simulate_fmu(
        str(path),
        fmi_type="ModelExchange",
        stop_time=span.stop,
        output_interval=span.step,
        relative_tolerance=span.tolerance,
        start_values=dict(span.parameters),
        output=list(watch.names),
        step_finished=finished,
        record_events=False,
    )
    for row in result:
        watch.look(float(row[0]), [float(value) for value in list(row)[1:]])
    yield watch.format_line()


def by_dop853(path: Path, watch: Watch, span: Span) -> Iterator[str]:
    """Model Exchange by SciPy's Dormand and Prince's method of order 8, looked at where its steps end."""
    unit, references, n = initialized(path, "ModelExchange", span)
    wanted = [references[name] for name in watch.names]
    unit.newDiscreteStates()
    unit.enterContinuousTimeMode()
    x, slope, nominal = (np.zeros(n) for _ in range(3))
    at_x, at_slope, at_nominal = (a.ctypes.data_as(ctypes.POINTER(ctypes.c_double)) for a in (x, slope, nominal))
    unit.getContinuousStates(at_x, n)
    unit.getNominalsOfContinuousStates(at_nominal, n)

    def put(t: float, state: Floats) -> None:
        unit.setTime(t)
        x[:] = state
        unit.setContinuousStates(at_x, n)

    def f(t: float, state: Floats) -> Floats:
        put(t, state)
        unit.getDerivatives(at_slope, n)
        return slope.copy()

    watch.look(0.0, unit.getReal(wanted))
    atol: Any = span.tolerance * nominal  # of each state: SciPy takes what its annotation does not
    solver = DOP853(f, 0.0, x.copy(), span.stop, rtol=span.tolerance, atol=atol)
    due = span.stop / TENTHS
    while solver.status == "running":
        solver.step()
        put(solver.t, solver.y)
        unit.completedIntegratorStep()
        watch.look(solver.t, unit.getReal(wanted))
        if solver.t >= due:
            due += span.stop / TENTHS
            yield watch.format_line()
    unit.terminate()
    unit.freeInstance()


RUNNERS = {"CoSimulation": co_simulation, "CVODE": by_cvode, "DOP853": by_dop853}


def run(name: str, runner: str, constraints: formulations.TreatmentOption, span: Span) -> bool:
    """One FMU; True if it kept everything."""
    with tempfile.TemporaryDirectory() as folder:
        exported = pipeline.export(ROOT / "models" / f"{name}.py", Path(folder), constraints=constraints)
        derivation = exported.build.derivation
        definition = derivation.definition
        names = [v.name for v in (*definition.coordinates, *definition.speeds)] + ["total_energy"]
        equations = replace(formulations.formulate(derivation.mechanism, "tmt"), outputs=())
        numeric = NumericEquations(equations)
        watch = Watch(numeric, numeric.prepare(form_experiment_values(definition).parameters), tuple(names))
        begun, same = time.perf_counter(), True
        print(f"{name}, {runner}, {constraints}, {span.stop:g} s, tolerance {span.tolerance:g}:", flush=True)
        for line in RUNNERS[runner](exported.path, watch, span):
            print(f"  {line}   ({time.perf_counter() - begun:.0f} s)", flush=True)
            same = same and "OTHER" not in line
    return same and watch.residual < RESIDUAL and watch.drift < DRIFT


def main() -> int:
    """Exit code 0, or 1 if something was not kept."""
    parser = argparse.ArgumentParser(prog="long_run", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="of models/NAME.py; four_bar and rolling_disc if none")
    parser.add_argument("--stop", type=float, default=10_000.0, help="s (default: %(default)g)")
    parser.add_argument("--step", type=float, default=0.1, help="between communication points, s (%(default)g)")
    parser.add_argument("--tolerance", type=float, default=1e-10, help="relative (%(default)g)")
    parser.add_argument("--kind", choices=("CoSimulation", "ModelExchange"), default="CoSimulation")
    parser.add_argument("--integrator", choices=("CVODE", "DOP853"), default="CVODE", help="of Model Exchange")
    parser.add_argument("--constraints", choices=get_args(formulations.TreatmentOption), default="auto")
    parser.add_argument("--rate", type=float, help="parameter constraints.rate of the FMU, 1/s")
    given = parser.parse_args()
    names = given.names or ["four_bar", "rolling_disc"]
    parameters = {} if given.rate is None else {"constraints.rate": given.rate}
    span = Span(given.stop, given.step, given.tolerance, parameters)
    runner = given.kind if given.kind == "CoSimulation" else given.integrator
    kept = [run(name, runner, given.constraints, span) for name in names]
    return 0 if all(kept) else 1


if __name__ == "__main__":
    sys.exit(main())
