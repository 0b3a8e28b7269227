"""Native units in the tools that others use: every model, both versions, both kinds, each within bounds of a reference.

The reference is integrated from another formulation; inputs stand at their start values, which is what an importer
gives that is told nothing else. Everything that loads binaries runs in a process of its own.
"""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest
from conformance.tools import driver, script, tool
from large_models import LARGE

from mb2fmu import formulation, package, pipeline, validation
from mb2fmu.model import load
from mb2fmu.validation.compare import bounds

ROOT = Path(__file__).parents[2]
QUICK = ("double_pendulum", "rolling_disc")
MODELS = [
    pytest.param(path.stem, marks=[] if path.stem in QUICK else pytest.mark.slow)
    for path in sorted((ROOT / "models").glob("*.py"))
    if path.stem not in LARGE
]
VERSIONS = ("2", "3")
STEPS = 100
"""Communication steps at most: importers are compared, not the motion, which ``mb2fmu run`` judges to its end."""

EULER = 1e-9
"""Of the same steps of the same method, relative to the largest value: round-off, grown."""


@dataclasses.dataclass(frozen=True)
class Case:
    """A model's units and what they have to do.

    Attributes:
        units: FMI version → path.
        run: The experiment.
        names: Compared variables.
        wanted: Their values at its end.
        allowed: How far off they may be.
        euler: Their values by explicit Euler with the communication step; None for closed loops, whose units are drawn
            to their constraints within x', which the reference is not.
        reach: How far from the start values derivatives are tried; loops close only near where they are closed.
    """

    units: dict[str, Path]
    run: validation.Conditions
    names: tuple[str, ...]
    wanted: np.ndarray
    allowed: np.ndarray
    euler: np.ndarray | None
    reach: float

    @property
    def stop(self) -> float:
        return float(self.run.time[-1])

    def far(self, found) -> dict[str, tuple[float, float]]:
        """What is out of bounds: name → error, bound."""
        errors = np.abs(np.array([found[name] for name in self.names]) - self.wanted)
        return {n: (e, b) for n, e, b in zip(self.names, errors, self.allowed, strict=True) if not e <= b}


def unsteered(definition, steps):
    """The default experiment's beginning with inputs at their start values."""
    run = validation.conditions(definition)
    steps = min(steps, len(run.inputs))
    held = np.tile([float(item.start) for item in definition.inputs], (steps, 1)).reshape(steps, -1)
    return dataclasses.replace(run, time=run.time[: steps + 1], inputs=held)


def made(model, folder):
    """Derives once, builds for both versions, integrates the reference."""
    derivation = pipeline.derive(load(ROOT / "models" / f"{model}.py"))
    units = {}
    for fmi in VERSIONS:
        units[fmi] = folder / fmi / f"{derivation.definition.name}.fmu"
        units[fmi].parent.mkdir()
        package.pack(pipeline.build(derivation, fmi=fmi).core, units[fmi])
    definition, mechanism = derivation.definition, derivation.mechanism
    applying = [method for method, applies in formulation.applicable(mechanism).items() if applies.yes]
    equations = formulation.formulate(mechanism, validation.reference_method(derivation.equations.method, applying))
    run = unsteered(definition, STEPS)
    reference = validation.make_reference(definition, equations, experiment=run)
    limits = bounds(reference, validation.measure_sensitivity(reference))
    names = reference.trajectory.names
    euler = None
    if not equations.holonomic:
        steps = validation.by_euler(definition, equations, run.step, experiment=run)
        assert steps.names == names
        euler = steps.values
    wanted, allowed = reference.trajectory.values[-1], limits.values[-1]
    return Case(units, run, names, wanted, allowed, euler, 1e-3 if equations.holonomic else 0.3)


@pytest.mark.parametrize("model", MODELS)
def test_importers_agree_with_the_reference(model, tmp_path):
    case = made(model, tmp_path)
    told = {}
    for fmi in VERSIONS:
        unit = case.units[fmi]
        told[f"fmpy validate, FMI {fmi}"] = (
            tool(script("fmpy"), "validate", unit).replace("No problems found.", "").strip()
        )
        told[f"fmutool, FMI {fmi}"] = fmutool(unit, fmi)
        for kind, tolerance in (("ModelExchange", 1e-4 * case.run.tolerance), ("CoSimulation", case.run.tolerance)):
            told[f"fmpy {kind}, FMI {fmi}"] = case.far(moved(case, unit, kind, "CVode", tolerance))
        if case.euler is not None:
            told[f"fmpy Euler, FMI {fmi}"] = euler_differences(case, moved(case, unit, "ModelExchange", "Euler", 1e-6))
        told[f"ecos, FMI {fmi}"] = case.far(
            last(driver("ecos", unit, case.run.step, len(case.run.inputs), *case.names))
        )
        told[f"casadi, FMI {fmi}"] = driver("jacobian", unit, case.reach).splitlines()[-1].replace("ok", "")
        told[f"audit, FMI {fmi}"] = [
            line for line in driver("audit", unit, case.reach).splitlines() if line != "ok" and "cancelled" not in line
        ]
    lines = driver("cosim", case.units["2"], case.run.step, len(case.run.inputs), *case.names)
    told["libcosim"] = case.far(last(lines))
    assert {name: what for name, what in told.items() if what} == {}


def fmutool(unit, fmi):
    """All that is said against it."""
    output = tool(script("fmutool"), "-input", unit, "-check", "-summary")
    assert f"This FMU seems to be compliant with FMI-{fmi}.0." in output
    assert f"No semantic error against the FMI-{fmi} standard." in output
    return [line for line in output.splitlines() if not line.startswith("INFO")]


def moved(case, unit, kind, solver, tolerance):
    """Values at the end of a simulation by fmpy."""
    found = last(driver("motion", unit, kind, solver, case.run.step, case.stop, tolerance, *case.names))
    assert found.pop("time") == pytest.approx(case.stop, abs=1e-9)
    return found


def euler_differences(case, found):
    largest = np.max(np.abs(case.euler)) or 1.0  # a mechanism may rest
    scale = np.maximum(np.max(np.abs(case.euler), axis=0), 1e-3 * largest)
    errors = np.abs(np.array([found[name] for name in case.names]) - case.euler[-1]) / scale
    return {name: error for name, error in zip(case.names, errors.tolist(), strict=True) if not error < EULER}


def last(output):
    """The JSON that a driver printed."""
    return json.loads(next(line for line in reversed(output.splitlines()) if line.startswith("{")))


def test_the_published_euler_number(tmp_path):
    """Model Exchange by explicit Euler, 0.1 ms, g = 9.81 m/s²: what SimulationX's reference was made by."""
    program = (
        "import sys, json, fmpy; "
        "r = fmpy.simulate_fmu(sys.argv[1], fmi_type='ModelExchange', solver='Euler', step_size=1e-4, "
        "output_interval=1e-4, stop_time=3.0, start_values={'g': 9.81}, output=['revolute1.w', 'revolute2.w']); "
        "print(json.dumps([f'{x:.8f}' for x in list(r[-1])[1:]]))"
    )
    derivation = pipeline.derive(ROOT / "models" / "msl_double_pendulum.py")
    for fmi in VERSIONS:
        path = tmp_path / f"{fmi}.fmu"
        package.pack(pipeline.build(derivation, fmi=fmi).core, path)
        output = tool(script("python"), "-c", program, path)
        assert json.loads(output.splitlines()[-1]) == ["4.21289321", "-0.17732859"]
