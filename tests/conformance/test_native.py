"""Native FMUs in the tools that others use: both versions, both kinds, each within bounds of a reference.

By day models of a few kinds, by night every model.
The reference is integrated from another formulation; inputs stand at their start values, which is what an importer
gives that is told nothing else. Everything that loads binaries runs in a process of its own.
"""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from unittest import mock

import numpy as np
import pytest
from conformance.tools import driver, script, tool
from explicit_euler import integrate_explicit_euler, make_slope_with_held_inputs

from mb2fmu import pipeline, validation
from mb2fmu.compiler import lowering
from mb2fmu.compiler.numerics.multiplier_solve import MultiplierSystem
from mb2fmu.fmu import package
from mb2fmu.mechanics import formulations
from mb2fmu.mechanics.mechanism.numeric.numeric_mechanism_evaluation import MechanismEvaluator
from mb2fmu.model import load
from mb2fmu.model.scales.characteristic_units import DEFAULT_ATTRACTOR_RATE
from mb2fmu.pipeline.run_and_report.validation_run import choose_reference_equations
from mb2fmu.validation.comparison.motion_comparison import compute_error_bounds
from mb2fmu.validation.modes.hybrid_equations import HybridEquations
from mb2fmu.validation.reference.reference_run import (
    drop_diagnostic_outputs,
    observe_trajectory,
)
from mb2fmu.validation.reference_equations.numeric_equations import NumericEquations

ROOT = Path(__file__).parents[2]
VERSIONS = ("2", "3")
BY_DAY = {"double_pendulum": VERSIONS}
"""For a hundred steps; loops closed by Newton's method by night: fmpy runs four_bar by day where it is validated."""
MODELS = sorted(path.stem for path in (ROOT / "models").glob("*.py"))
MODELS = [pytest.param(name, VERSIONS, True, id=name, marks=pytest.mark.repeats) for name in MODELS]
STEPS = 100
"""Communication steps at most: importers are compared, not the motion, which ``mb2fmu run`` judges to its end. By
night closed loops go the whole way, through their dead centres."""

FEW = 10
"""The same where the reference is integrated body by body in NumPy."""

EULER = 1e-9
"""Of the same steps of the same method, relative to the largest value: round-off, grown."""

NO_EVENTS = "Values of continuous states not implemented"
"""What CasADi says of FMUs that set states in events, which it does not go through."""

POINTS = 6
"""Points of the motion about which derivatives are tried."""

FREE, CLOSED = 0.3, 0.02
"""How far from the motion derivatives are tried (SI): loops close only near where they are closed."""


@dataclasses.dataclass(frozen=True)
class Case:
    """A model's FMUs and what they have to do.

    Attributes:
        units: FMI version → path.
        run: The experiment.
        names: Compared variables.
        wanted: Their values at its end.
        allowed: How far off they may be.
        steps: The experiment of explicit Euler: as many steps, for closed loops smaller ones.
        euler: The variables by it; None where something switches: explicit Euler steps over events.
        about: File with points of the motion, and how far from them derivatives are tried.
    """

    units: dict[str, Path]
    run: validation.ExperimentValues
    names: tuple[str, ...]
    wanted: np.ndarray
    allowed: np.ndarray
    steps: validation.ExperimentValues
    euler: np.ndarray | None
    about: Path

    def far(self, found) -> dict[str, tuple[float, float]]:
        """What is out of bounds: name → error, bound."""
        errors = np.abs(np.array([found[name] for name in self.names]) - self.wanted)
        return {n: (e, b) for n, e, b in zip(self.names, errors, self.allowed, strict=True) if not e <= b}


class Attracted(NumericEquations):
    """The reference's equations as FMUs with closed loops have them: x' = f(P(x)) - rate (x - P(x)), outputs at P(x).

    P(x): coordinates move along the rows of G at x until the loops are closed; then ``kept`` speeds to the nearest in
    kinetic energy, and the others, which rows give with constant factors, follow.
    """

    def __init__(self, equations, mechanism, kept, left):
        super().__init__(equations)
        self.numeric = MechanismEvaluator(mechanism)
        self.kept, self.left = kept, left  # speeds, rows

    def _advance(self, t, x, r, prepared):
        onto = self.projected(t, x, r, prepared)
        values, constraints, x_dot, power = super()._advance(t, onto, r, prepared)
        return values, constraints, x_dot - float(DEFAULT_ATTRACTOR_RATE) * (x - onto), power

    def projected(self, t, x, r, prepared):
        n, q = self.n_q, x.copy()
        D = np.array(self._holonomic_slopes(self._values(t, x, r, prepared))).reshape(-1, n)
        weights = np.zeros(len(D))
        for _ in range(20):
            q[:n] = x[:n] - D.T @ weights
            values = self._values(t, q, r, prepared)
            G = np.array(self._holonomic_slopes(values)).reshape(-1, n)
            step = np.linalg.lstsq(G @ D.T, np.array(self._holonomic(values)), rcond=1e-10)[0]
            weights += step
            if np.max(np.abs(D.T @ step)) < 1e-15:
                break
        q[:n] = x[:n] - D.T @ weights
        A, b = self._rows(self._constraints(self._values(t, q, r, prepared)))
        q[n : n + self.n_u] = self.nearest(self.mass_matrix(t, q, prepared), A, b, q[n : n + self.n_u])
        return q

    def mass_matrix(self, t, x, prepared):
        q, z, r = x[: self.n_q], x[self.n_q + self.n_u :], np.zeros(len(self.equations.r))
        self.numeric.set_state(t, q, np.zeros(len(self.numeric.mechanism.u_all)), z, r, np.array(prepared))
        return self.numeric.unconstrained_mass_and_forcing()[0][: self.n_u, : self.n_u]

    def nearest(self, M, A, b, v):
        """Of all u with A u + b = 0: u = S w + s with w near the kept speeds of v."""
        K, T = self.kept, [j for j in range(len(v)) if j not in self.kept]
        L, R = self.left, [i for i in range(len(A)) if i not in self.left]
        S, s = np.zeros((len(v), len(K))), np.zeros(len(v))
        S[K, range(len(K))] = 1.0
        if T:
            S[T] = -np.linalg.solve(A[np.ix_(R, T)], A[np.ix_(R, K)])
            s[T] = -np.linalg.solve(A[np.ix_(R, T)], b[R])
        # In units in which kinetic energy is the square of length; what rows hold may have no mass.
        heavy = M + A.T @ A * (np.trace(M) / np.trace(A.T @ A))
        root = np.linalg.cholesky(S.T @ heavy @ S)
        rows = np.linalg.solve(root, (A[L] @ S).T).T
        off = A[L] @ (S @ v[K] + s) + b[L]
        return S @ (v[K] - np.linalg.solve(root.T, np.linalg.lstsq(rows, off, rcond=1e-10)[0])) + s


def kept_speeds(equations):
    """The speeds and rows that are left when those that have constant pivots are taken out: all by ``explicit``."""
    if equations.treatment == "explicit":
        return list(range(len(equations.u))), list(range(len(equations.velocity_constraints.names)))
    systems = []

    def noted(self, *arguments):
        original(self, *arguments)
        systems.append(self._taken)

    original = MultiplierSystem.__init__
    with mock.patch.object(MultiplierSystem, "__init__", noted):
        lowering.lower_equations_to_program(equations)
    return systems[0].columns, systems[0].rows


def unsteered(definition, steps):
    """The default experiment's beginning with inputs at their start values."""
    run = validation.form_experiment_values(definition)
    steps = min(steps, len(run.inputs))
    held = np.tile([float(item.start) for item in definition.inputs], (steps, 1)).reshape(steps, -1)
    return dataclasses.replace(run, time=run.time[: steps + 1], inputs=held)


def divided(run, parts):
    """At most the first steps of an experiment without changes, each a part of itself: Euler tears loops apart."""
    count = min(STEPS, len(run.inputs))
    return dataclasses.replace(run, time=np.arange(count + 1) * (run.step / parts), inputs=run.inputs[:count])


def parts(reference):
    """Of a communication step that Euler takes: longer ones tear loops apart, or outrun stiff springs and explode."""
    numeric, run, x = reference.numeric, reference.experiment, np.append(reference.states[0], 0.0)
    fastest = 0.0
    if run.stiff:
        slope = make_slope_with_held_inputs(numeric, run)(0)
        ways = np.diag(1e-7 * np.append(reference.state_scales, 1.0))
        slopes = np.column_stack([(slope(0.0, x + way) - slope(0.0, x - way)) / (2 * np.sum(way)) for way in ways])
        fastest = float(np.max(np.abs(np.linalg.eigvals(slopes))))
    powers = int(np.ceil(np.log10(max(1.0, 10 * run.step * fastest))))
    return 10 ** max(1 if numeric.equations.holonomic else 0, powers)


def with_dynamics(derivation):
    """Equations by another formulation than the FMU's: the reference's own may say only what stands where."""
    applying = [
        method
        for method, applies in formulations.check_applicability_of_all_formulations(derivation.mechanism).items()
        if applies.is_applicable
    ]
    method = validation.choose_reference_formulation(derivation.equations.method, applying)
    return drop_diagnostic_outputs(formulations.formulate(derivation.mechanism, method))


def by_euler(reference, run, derivation):
    """The variables at each point by the FMU's steps."""
    numeric = reference.numeric
    if numeric.equations.holonomic:
        numeric = Attracted(with_dynamics(derivation), derivation.mechanism, *kept_speeds(derivation.equations))
    start = np.append(reference.states[0], 0.0)
    states = integrate_explicit_euler(make_slope_with_held_inputs(numeric, run), run.time, start, run.step)[:, :-1]
    values, _, _ = observe_trajectory(numeric, run, states, numeric.prepare(run.parameters))
    values[:, reference.state_columns] = states  # as they are, off the constraints by what Euler errs
    return values


def about(reference, file):
    """Writes points of the motion, the whole way along it."""
    rows = np.linspace(0, len(reference.states) - 1, POINTS).round().astype(int)
    names = [reference.variables[column].name for column in reference.state_columns]
    points = [dict(zip(names, reference.states[row].tolist(), strict=True)) for row in rows]
    reach = CLOSED if reference.numeric.equations.holonomic else FREE
    times = reference.experiment.time[rows].tolist()
    file.write_text(json.dumps({"reach": reach, "times": times, "points": points}))
    return file


def made(model, versions, folder, *, to_the_end):
    """Derives once, builds for the versions, integrates the reference; closed loops may go to the experiment's end."""
    derivation = pipeline.derive(load(ROOT / "models" / f"{model}.py"))
    units = {}
    for fmi in versions:
        units[fmi] = folder / fmi / f"{derivation.definition.name}.fmu"
        units[fmi].parent.mkdir()
        package.write_fmu_archive(pipeline.build(derivation, fmi=fmi).core, units[fmi])
    definition, mechanism = derivation.definition, derivation.mechanism
    source = choose_reference_equations(mechanism, derivation.equations.method)
    numeric, equations = validation.is_too_large_for_symbols(mechanism), source.equations
    run = unsteered(
        definition,
        FEW
        if numeric
        else len(validation.form_experiment_values(definition).inputs)
        if to_the_end and equations.holonomic
        else STEPS,
    )
    reference = validation.make_reference(definition, equations, experiment=run, mechanism=source.mechanism)
    limits = compute_error_bounds(reference, validation.measure_start_error_growth(reference))
    steps = divided(run, parts(reference))
    return Case(
        units=units,
        run=run,
        names=reference.trajectory.names,
        wanted=reference.trajectory.values[-1],
        allowed=limits.values[-1],
        steps=steps,
        euler=None if isinstance(reference.numeric, HybridEquations) else by_euler(reference, steps, derivation),
        about=about(reference, folder / "about.json"),
    )


@pytest.mark.parametrize(
    ("model", "versions", "to_the_end"),
    [*(pytest.param(name, fmi, False, id=f"{name}-{fmi}") for name, fmi in BY_DAY.items()), *MODELS],
)
def test_importers_agree_with_the_reference(model, versions, to_the_end, tmp_path):
    case = made(model, versions, tmp_path, to_the_end=to_the_end)
    reported = {}
    for fmi in versions:
        unit = case.units[fmi]
        if to_the_end:  # by day in test_native_fmu_assembly and test_correct_fmus
            reported[f"fmpy validate, FMI {fmi}"] = (
                tool(script("fmpy"), "validate", unit).replace("No problems found.", "").strip()
            )
            reported[f"fmutool, FMI {fmi}"] = fmutool(unit, fmi)
        exchange, own, *euler = moved(case, unit)
        reported[f"fmpy ModelExchange, FMI {fmi}"], reported[f"fmpy CoSimulation, FMI {fmi}"] = map(
            case.far, (exchange, own)
        )
        reported[f"fmpy Euler, FMI {fmi}"] = [
            differences for each in euler if (differences := euler_differences(case, each))
        ]
        reported[f"ecos, FMI {fmi}"] = case.far(
            last(driver("ecos", unit, case.run.step, len(case.run.inputs), *case.names))
        )
        lines = driver("jacobian", unit, case.about).splitlines()
        reported[f"casadi, FMI {fmi}"] = [line for line in lines if NO_EVENTS not in line][-1].replace("ok", "")
        if to_the_end:  # by day CasADi's differences above, and the auditor in test_correct_fmus
            reported[f"audit, FMI {fmi}"] = [
                line
                for line in driver("audit", unit, case.about).splitlines()
                if line != "ok" and "cancelled" not in line
            ]
    if "2" in versions:
        lines = driver("cosim", case.units["2"], case.run.step, len(case.run.inputs), *case.names)
        reported["libcosim"] = case.far(last(lines))
    assert {name: what for name, what in reported.items() if what} == {}


def fmutool(unit, fmi):
    """All that is said against it."""
    output = tool(script("fmutool"), "-input", unit, "-check", "-summary")
    assert f"This FMU seems to be compliant with FMI-{fmi}.0." in output
    assert f"No semantic error against the FMI-{fmi} standard." in output
    return [line for line in output.splitlines() if not line.startswith("INFO")]


def moved(case, unit):
    """Values at the ends of simulations by fmpy: as either kind, and by explicit Euler where nothing switches."""
    tolerance = case.run.tolerance
    runs = [(case.run, "ModelExchange", "CVode", 1e-4 * tolerance), (case.run, "CoSimulation", "CVode", tolerance)]
    if case.euler is not None:
        runs.append((case.steps, "ModelExchange", "Euler", 1e-6))
    given = [[kind, solver, run.step, float(run.time[-1]), bound] for run, kind, solver, bound in runs]
    lines = driver("motion", unit, json.dumps(given), *case.names).splitlines()
    found = [json.loads(line) for line in lines if line.startswith("{")]
    assert [each.pop("time") for each in found] == pytest.approx([each[3] for each in given], abs=1e-9)
    return found


def euler_differences(case, found):
    largest = np.max(np.abs(case.euler)) or 1.0  # a mechanism may rest
    scale = np.maximum(np.max(np.abs(case.euler), axis=0), 1e-3 * largest)
    errors = np.abs(np.array([found[name] for name in case.names]) - case.euler[-1]) / scale
    return {name: error for name, error in zip(case.names, errors.tolist(), strict=True) if not error < EULER}


def last(output):
    """The JSON that a driver printed."""
    return json.loads(next(line for line in reversed(output.splitlines()) if line.startswith("{")))


@pytest.mark.repeats  # the equations end there in test_published_euler; FMUs take the same steps above
def test_the_published_euler_number(tmp_path):
    """Model Exchange by explicit Euler, 0.1 ms, g = 9.81 m/s²: what SimulationX's reference was made by."""
    program = (
        "import sys, json, fmpy; "
        "r = fmpy.simulate_fmu(sys.argv[1], fmi_type='ModelExchange', solver='Euler', step_size=1e-4, "
        "output_interval=1e-4, stop_time=3.0, start_values={'g': 9.81}, output=['revolute1.w', 'revolute2.w']); "
        "print(json.dumps([f'{x:.8f}' for x in list(r[-1])[1:]]))"
    )
    derivation = pipeline.derive(ROOT / "models" / "msl_double_pendulum.py")
    path = tmp_path / "unit.fmu"
    package.write_fmu_archive(pipeline.build(derivation).core, path)
    output = tool(script("python"), "-c", program, path)
    assert json.loads(output.splitlines()[-1]) == ["4.21289321", "-0.17732859"]
