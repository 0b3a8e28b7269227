"""validate: the stage's one function, from an FMU and independent equations to the verdict."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Collection
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

from mb2fmu import __version__
from mb2fmu.audit.checkers import check_conformance
from mb2fmu.validation.compare import FACTOR, Bounds, bounds, compare_invariants, compare_variables
from mb2fmu.validation.conditions import Conditions, conditions
from mb2fmu.validation.reference import Reference, describe, make_reference
from mb2fmu.validation.result import KindResult, ValidationResult
from mb2fmu.validation.sensitivity import measure_sensitivity
from mb2fmu.validation.simulate import TIME_LIMIT, offered_kinds, simulate

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mb2fmu.equations.motion import EquationsOfMotion, Method
    from mb2fmu.mechanism import Mechanism
    from mb2fmu.model.definition import ModelDefinition

# Most independent first: SymPy's own Kane, then energies, then our own TMT.
_PREFERENCE: tuple[Method, ...] = ("kane", "lagrange", "tmt")


def reference_method(used: Method | None, applicable: Collection[Method]) -> Method:
    """The formulation that the reference should use.

    Args:
        used: What the FMU was made by; None if that is unknown.
        applicable: Formulations that apply to the mechanism, at least one.

    Returns:
        Another one than ``used`` where there is one.

    Raises:
        ValueError: If none applies.
    """
    candidates = [method for method in _PREFERENCE if method in applicable]
    if not candidates:
        raise ValueError("no formulation applies")
    return next((method for method in candidates if method != used), candidates[0])


@dataclass(frozen=True, slots=True)
class Yardstick:
    """What any number of units of one model are judged by: the reference, and how far a unit may be from it."""

    reference: Reference
    limits: Bounds


def make_yardstick(
    definition: ModelDefinition,
    reference_equations: EquationsOfMotion,
    *,
    mechanism: Mechanism | None = None,
    experiment: Conditions | None = None,
) -> Yardstick:
    """Integrates the reference and measures how sensitive it is; arguments and errors as for :func:`validate`."""
    reference = make_reference(definition, reference_equations, experiment=experiment, mechanism=mechanism)
    return Yardstick(reference, bounds(reference, measure_sensitivity(reference)))


def validate(
    fmu: Path,
    definition: ModelDefinition,
    reference_equations: EquationsOfMotion,
    *,
    method: Method | None = None,
    mechanism: Mechanism | None = None,
    experiment: Conditions | None = None,
    conformance: bool = True,
    time_limit: float = TIME_LIMIT,
    yardstick: Yardstick | None = None,
) -> ValidationResult:
    """Runs an FMU through its model's experiment and judges it by equations that it was not made from.

    A unit that offers both Co-Simulation and Model Exchange is run and judged as both, under the same bounds.

    Args:
        fmu: The archive; FMI 2.0 or 3.0.
        definition: The checked model.
        reference_equations: By another formulation, where the mechanism has one (see :func:`reference_method`).
        method: The formulation that the FMU was made by, if known; only shown.
        mechanism: Where no second formulation is within reach (:func:`outgrows_symbols`): the reference is integrated
            from it, by Newton-Euler equations in NumPy.
        experiment: Other numbers than the model's default experiment (parameters, inputs, steps).
        conformance: Ask the independent checkers too.
        time_limit: For each of the FMU's runs, in s.
        yardstick: What :func:`make_yardstick` gave for the same definition, equations and experiment, where several
            units are judged; None: made here.

    Raises:
        PackageError: The file is no FMU.
        ValidationError: The FMU or experiment cannot be run or compared here.
        ToolError: The FMU failed, crashed or hung, or a checker did.
    """
    run = experiment or conditions(definition)
    clock = _Clock()
    with clock("simulate"):
        names = _compared(definition, reference_equations)
        simulations = [simulate(fmu, run, names, kind=kind, time_limit=time_limit) for kind in offered_kinds(fmu)]
    with clock("reference"):
        made = yardstick or make_yardstick(definition, reference_equations, experiment=run, mechanism=mechanism)
        reference, limits = made.reference, made.limits
    with clock("compare"):
        kinds = [
            KindResult(
                variables=compare_variables(reference, limits, simulation),
                invariants=compare_invariants(reference, simulation),
                simulation=simulation,
            )
            for simulation in simulations
        ]
    with clock("conformance"):
        findings = check_conformance(fmu) if conformance else ()
    return ValidationResult(
        model=definition.name,
        variables=kinds[0].variables,
        invariants=kinds[0].invariants,
        conformance=findings,
        reference=reference,
        simulation=kinds[0].simulation,
        others=tuple(kinds[1:]),
        timings=clock.seconds,
        provenance={
            "fmu_sha256": hashlib.sha256(fmu.read_bytes()).hexdigest(),
            "fmu_formulation": method or "unknown",
            "reference_formulation": reference.numeric.formulation,
            "tolerance": run.tolerance,
            "factor": FACTOR,
            "versions": {"mb2fmu": __version__} | {name: version(name) for name in ("fmpy", "numpy", "scipy", "sympy")},
        },
        notes=_notes(method, reference.numeric.formulation, reference),
    )


def _compared(definition: ModelDefinition, equations: EquationsOfMotion) -> list[str]:
    return [variable.name for variable in describe(definition, equations)]


def _notes(used: Method | None, by: str, reference: Reference) -> tuple[str, ...]:
    notes = []
    if used == by:
        notes.append(
            f"no second formulation applies: both sides derive from {by}, evaluated and integrated differently"
        )
    energy = reference.numeric.equations.energy
    if not any(balance.name == "energy" for balance in reference.balances):
        notes.append(f"no energy balance: {energy.reason or 'the kinetic energy is not known'}")
    when = reference.undetermined()
    if when is not None:
        equations = reference.numeric.equations
        names = ", ".join(equations.u[i].name for i in equations.u_dependent)
        notes.append(
            f"near t = {when:.4g} s the constraints do not determine the dependent speeds {names}: results are poor "
            "from there on; choose others, such as do not become undetermined on the way"
        )
    return tuple(notes)


class _Clock:
    """Wall clock by activity, in s."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    @contextmanager
    def __call__(self, activity: str) -> Iterator[None]:
        begin = time.perf_counter()
        yield
        self.seconds[activity] = time.perf_counter() - begin
