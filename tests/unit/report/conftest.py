"""A validated pendulum made by hand: every number is known, nothing is simulated."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import sympy as sm
from sympy.physics.mechanics import Particle, Point, ReferenceFrame, dynamicsymbols

from mb2fmu.audit.external_checkers import ExternalCheckerFinding
from mb2fmu.fmu.interface.fmu_interface import (
    DefaultExperiment,
    FmuCapabilities,
    FmuInterface,
    FmuSolverSettings,
    FmuVariable,
    InterfaceUnit,
)
from mb2fmu.mechanics.equations.equations_of_motion import (
    EnergyBalance,
    EquationsOfMotion,
    KinematicEquations,
    MassMatrixDynamics,
    OutputExpression,
)
from mb2fmu.model.checked_model import CheckedModel
from mb2fmu.model.model import DeclaredExperiment, Parts
from mb2fmu.model.quantity_declarations import Coordinate, Input, Parameter, Speed
from mb2fmu.validation.reference.experiment_values import ExperimentValues
from mb2fmu.validation.reference.reference_run import BalanceResidual, ComparedVariable, ReferenceRun
from mb2fmu.validation.reference.trajectory_records import Trajectory
from mb2fmu.validation.reference_equations.numeric_equations import NumericEquations
from mb2fmu.validation.runs.fmu_run import FmuSimulationResult
from mb2fmu.validation.validation_result import InvariantResult, ValidationResult, VariableResult


@dataclass(frozen=True)
class Case:
    """What ``render`` takes."""

    definition: CheckedModel
    equations: EquationsOfMotion
    interface: FmuInterface
    result: ValidationResult


@pytest.fixture(scope="session")
def pendulum() -> Callable[..., Case]:
    return _case


def _case(
    *,
    outputs: int = 2,
    points: int = 201,
    failing: tuple[str, ...] = (),
    unjudged: tuple[str, ...] = (),
    findings: tuple[ExternalCheckerFinding, ...] = (
        ExternalCheckerFinding("checker 1.0", "note", "no problems found"),
    ),
    description: str = "a rod on a pin",
    diagram: str = "",
    horizon: float = 2.0,
) -> Case:
    names = [f"y{k}" for k in range(1, outputs + 1)]
    equations = _equations(names)
    return Case(
        _definition(description, diagram),
        equations,
        _interface(names),
        _result(equations, names, points, failing, unjudged, findings, horizon),
    )


def _definition(description: str, diagram: str) -> CheckedModel:
    theta, omega, tau = dynamicsymbols("theta omega tau")
    m, g = sm.symbols("m_rod g")
    N, O = ReferenceFrame("N"), Point("O")
    return CheckedModel(
        name="Pendulum",
        description=description,
        mechanics=Parts(
            frame=N,
            origin=O,
            q=[theta],
            u=[omega],
            kinematic_equations=[theta.diff() - omega],
            bodies=[Particle("P", O, m)],
        ),
        parameters=(
            Parameter(symbol=m, name="m", unit="kg", value=1.5, minimum=0.0, description="mass of the rod"),
            Parameter(symbol=g, name="g", unit="m/s2", value=9.81),
        ),
        inputs=(Input(symbol=tau, name="torque", unit="N.m"),),
        coordinates=(Coordinate(symbol=theta, name="hinge.angle", unit="rad", start=0.5, description="from below"),),
        speeds=(Speed(symbol=omega, name="hinge.speed", unit="rad/s", start=0.0),),
        auxiliary_states=(),
        constraint_forces=(),
        outputs=(),
        potential_energy=None,
        experiment=DeclaredExperiment(stop=2.0, step=0.01),
        diagram=diagram,
    )


def _equations(names: list[str]) -> EquationsOfMotion:
    theta, omega, alpha, m, g, tau, t = sm.symbols("theta omega alpha m_rod g tau t")
    return EquationsOfMotion(
        method="tmt",
        t=t,
        q=(theta,),
        u=(omega,),
        u_independent=(0,),
        u_dot=(alpha,),
        p=(m, g),
        r=(tau,),
        kinematics=KinematicEquations(sm.ImmutableMatrix([[1]]), sm.ImmutableMatrix([[0]])),
        dynamics=MassMatrixDynamics(sm.ImmutableMatrix([[m]]), sm.ImmutableMatrix([[tau - m * g * sm.sin(theta)]])),
        energy=EnergyBalance(kinetic=m * omega**2 / 2, potential=-m * g * sm.cos(theta)),
        outputs=tuple(OutputExpression(n, theta, "position", "m", description=f"height {n}") for n in names),
    )


def _interface(names: list[str]) -> FmuInterface:
    variables = [
        FmuVariable(name="time", value_reference=0, causality="independent", initial=None, unit="s", source="time"),
        FmuVariable(
            name="m",
            value_reference=1,
            causality="parameter",
            variability="tunable",
            initial="exact",
            start=1.5,
            unit="kg",
            minimum=0.0,
            description="mass of the rod",
            source="parameter",
        ),
        *(
            FmuVariable(
                name=name,
                value_reference=10 + k,
                causality="output",
                initial="calculated",
                unit="m",
                source="position",
                index=k,
            )
            for k, name in enumerate(names)
        ),
    ]
    return FmuInterface(
        model_name="Pendulum",
        model_identifier="Pendulum",
        description="a rod on a pin",
        token="00000000-0000-5000-8000-000000000000",
        variables=tuple(variables),
        units=tuple(InterfaceUnit(u, 1.0, 0.0, (0,) * 8) for u in ("s", "kg", "m")),
        experiment=DefaultExperiment(0.0, 2.0, 0.01, 1e-6),
        solver=FmuSolverSettings("explicit", 1e-6),
        log_categories=(),
        capabilities=FmuCapabilities(needs_execution_tool=True, state=True),
        generation_tool="mb2fmu",
    )


def _result(
    equations: EquationsOfMotion,
    names: list[str],
    points: int,
    failing: tuple[str, ...],
    unjudged: tuple[str, ...],
    findings: tuple[ExternalCheckerFinding, ...],
    horizon: float,
) -> ValidationResult:
    time = np.linspace(0.0, 2.0, points)
    variables = (
        ComparedVariable("hinge.angle", "coordinate", "rad"),
        ComparedVariable("hinge.speed", "speed", "rad/s"),
        *(ComparedVariable(name, "output", "m") for name in names),
    )
    phase = np.arange(len(variables))
    truth = np.cos(7.0 * time[:, None] + phase)
    errors = 1e-9 * (1.0 + time[:, None]) * (1.0 + phase / 7.0)
    errors = errors * [1e4 if v.name in failing else 1.0 for v in variables]
    bounds = np.full_like(truth, 1e-6)
    reference = _reference(equations, variables, time, truth)
    compared = []
    for k, v in enumerate(variables):
        verdict = "failed" if v.name in failing else "unjudged" if v.name in unjudged else "passed"
        compared.append(_compared(v, verdict, horizon, errors[:, k], bounds[:, k]))
    names_of_all = reference.trajectory.names
    return ValidationResult(
        model="Pendulum",
        variables=tuple(compared),
        invariants=_invariants(time),
        conformance=findings,
        reference=reference,
        simulation=FmuSimulationResult(names_of_all, time, truth + errors, (), 1e-5),
        timings={"simulate": 1.0},
        provenance={"method of the FMU": "tmt", "versions": {"sympy": "1.14.0"}},
        notes=("The reference was made by another method.",),
    )


def _reference(
    equations: EquationsOfMotion, variables: tuple[ComparedVariable, ...], time: Any, truth: Any
) -> ReferenceRun:
    """The motion that the FMU is compared with: cosines, known to 1e-13."""
    uncertainty = np.full_like(truth, 1e-13)
    run = ExperimentValues(
        time=time,
        inputs=np.sin(time[:-1, None]),
        input_names=("torque",),
        parameters=(1.5, 9.81),
        q=(0.5,),
        u=(0.0,),
        z=(),
        tolerance=1e-6,
    )
    trajectory = Trajectory(tuple(v.name for v in variables), time, truth, uncertainty, {"method": "kane"})
    return ReferenceRun(
        trajectory=trajectory,
        variables=variables,
        states=truth[:, :2],
        state_columns=(0, 1),
        scales=np.ones(len(variables)),
        typical=np.ones(len(variables)),
        natural_energy=1.0,
        work=np.zeros_like(time),
        balances=(BalanceResidual("energy", "|T − T(0) − W|", np.full_like(time, 3e-14), 12.0, "J"),),
        numeric=NumericEquations(equations),
        experiment=run,
    )


def _compared(v: ComparedVariable, verdict: Any, horizon: float, errors: Any, bounds: Any) -> VariableResult:
    """One variable, judged: its last point is its worst."""
    return VariableResult(
        name=v.name,
        kind=v.kind,
        unit=v.unit,
        range=2.0,
        max_error=float(errors[-1]),
        at=2.0,
        error=float(errors[-1]),
        bound=float(bounds[-1]),
        ratio=float(errors[-1] / bounds[-1]),
        horizon=horizon,
        verdict=verdict,
        reason={"passed": "", "failed": "it failed", "unjudged": "it is not known well enough"}[verdict],
        errors=errors,
        bounds=bounds,
    )


def _invariants(time: Any) -> tuple[InvariantResult, InvariantResult]:
    """An energy balance and a one-step error, both kept."""
    drift = InvariantResult(
        name="energy balance",
        formula="|T − T(0) − W|",
        unit="J",
        value=1.25e-9,
        at=1.0,
        bound=1e-6,
        ratio=1.25e-3,
        verdict="passed",
        values=1e-9 * time,
        bounds=np.full_like(time, 1e-6),
    )
    defect = InvariantResult(
        name="one-step error of hinge.angle",
        formula="|x(t + h) − Φ(x(t))|",
        unit="rad",
        value=1e-10,
        at=1.0,
        bound=1e-6,
        ratio=1e-4,
        verdict="passed",
        values=np.full(len(time) - 1, 1e-10),
        bounds=np.full(len(time) - 1, 1e-6),
    )
    return drift, defect
