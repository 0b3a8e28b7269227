"""Small mechanisms whose equations are written by hand, so that nothing but validation is under test."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest
import sympy as sm
from hypothesis import settings
from stock_units import built
from sympy.physics.mechanics import dynamicsymbols

from mb2fmu.mechanics.equations.equations_of_motion import (
    EnergyBalance,
    EquationsOfMotion,
    KinematicEquations,
    MassMatrixDynamics,
    OutputExpression,
)
from mb2fmu.model.checked_model import CheckedModel
from mb2fmu.model.model import DeclaredExperiment
from mb2fmu.model.quantity_declarations import AuxiliaryState, Coordinate, Input, Parameter, Speed
from mb2fmu.validation import independent_checks
from mb2fmu.validation.source_checks import source_acceleration_samples, source_accelerations

t, q, u, q1, q2, u1, u2, a, a1, a2, g, w, tau, z = sm.symbols("t q u q1 q2 u1 u2 a a1 a2 g w tau z")


@pytest.fixture
def few_points(monkeypatch: pytest.MonkeyPatch) -> int:
    """How many random points source objects are evaluated at: eight by day, where any point shows what is tested."""
    if settings.get_current_profile_name() != "night":
        for module in (source_acceleration_samples, source_accelerations):
            monkeypatch.setattr(module, "RANDOM_POINT_COUNT", 8)
        monkeypatch.setattr(independent_checks, "MIN_POINTS", 6)
    return source_acceleration_samples.RANDOM_POINT_COUNT


@dataclass(frozen=True)
class Case:
    """A definition and its equations."""

    definition: CheckedModel
    equations: EquationsOfMotion


def define(name: str, experiment: DeclaredExperiment, **records: object) -> CheckedModel:
    empty = ("parameters", "inputs", "coordinates", "speeds", "auxiliary_states", "constraint_forces", "outputs")
    return CheckedModel(
        name=name,
        description="",
        mechanics=None,
        potential_energy=None,
        experiment=experiment,
        **{key: () for key in empty if key not in records},
        **records,
    )


def parameter(symbol: sm.Symbol, value: float) -> Parameter:
    return Parameter(name=symbol.name, symbol=symbol, value=value)


def coordinate(name: str, start: float) -> Coordinate:
    return Coordinate(name=name, symbol=dynamicsymbols(name), start=start, unit="rad")


def speed(name: str, start: float) -> Speed:
    return Speed(name=name, symbol=dynamicsymbols(name), start=start, unit="rad/s")


def identity(n: int) -> KinematicEquations:
    return KinematicEquations(sm.ImmutableMatrix.eye(n), sm.ImmutableMatrix.zeros(n, 1))


def pendulum(start: float = 2.0, stop: float = 10.0, step: float = 0.02, tolerance: float = 1e-6) -> Case:
    """q'' = -g sin(q) on a massless rod of 1 m."""
    equations = EquationsOfMotion(
        method="kane",
        t=t,
        q=(q,),
        u=(u,),
        u_independent=(0,),
        u_dot=(a,),
        p=(g,),
        kinematics=identity(1),
        dynamics=MassMatrixDynamics(sm.ImmutableMatrix([[1]]), sm.ImmutableMatrix([[-g * sm.sin(q)]])),
        energy=EnergyBalance(kinetic=u**2 / 2, powers=(("gravity", -g * sm.sin(q) * u),)),
        outputs=(OutputExpression("acceleration", a, "acceleration", "rad/s2"),),
    )
    definition = define(
        "Pendulum",
        DeclaredExperiment(stop=stop, step=step, tolerance=tolerance),
        parameters=(parameter(g, 9.81),),
        coordinates=(coordinate("q", start),),
        speeds=(speed("u", 0.0),),
    )
    return Case(definition, equations)


def oscillator(stop: float = 5.0, step: float = 0.05, signal: sm.Expr | float = 0.0) -> Case:
    """q'' = -w² q + tau with a filter z' = q - z behind it: linear, with an input and an auxiliary state."""
    equations = EquationsOfMotion(
        method="kane",
        t=t,
        q=(q,),
        u=(u,),
        u_independent=(0,),
        u_dot=(a,),
        z=(z,),
        p=(w,),
        r=(tau,),
        kinematics=identity(1),
        z_dot=(q - z,),
        dynamics=MassMatrixDynamics(sm.ImmutableMatrix([[2]]), sm.ImmutableMatrix([[2 * (tau - w**2 * q)]])),
        energy=EnergyBalance(kinetic=u**2, powers=(("spring", -2 * w**2 * q * u), ("tau", 2 * tau * u))),
        outputs=(OutputExpression("pull", 2 * tau - w**2 * q, "position", "N"),),
    )
    definition = define(
        "Oscillator",
        DeclaredExperiment(stop=stop, step=step, tolerance=1e-6, signals={dynamicsymbols("tau"): signal}),
        parameters=(parameter(w, 3.0),),
        inputs=(Input(name="tau", symbol=dynamicsymbols("tau")),),
        coordinates=(coordinate("q", 0.4),),
        speeds=(speed("u", -0.3),),
        auxiliary_states=(AuxiliaryState(name="z", symbol=dynamicsymbols("z"), start=0.1, derivative=sm.S.Zero),),
    )
    return Case(definition, equations)


def double_pendulum(
    start: tuple[float, float], stop: float = 10.0, step: float = 0.02, tolerance: float = 1e-6
) -> Case:
    """Two point masses of 1 kg on rods of 1 m, absolute angles; chaotic when it starts high."""
    c, s = sm.cos(q1 - q2), sm.sin(q1 - q2)
    equations = EquationsOfMotion(
        method="kane",
        t=t,
        q=(q1, q2),
        u=(u1, u2),
        u_independent=(0, 1),
        u_dot=(a1, a2),
        p=(g,),
        kinematics=identity(2),
        dynamics=MassMatrixDynamics(
            sm.ImmutableMatrix([[2, c], [c, 1]]),
            sm.ImmutableMatrix([[-s * u2**2 - 2 * g * sm.sin(q1)], [s * u1**2 - g * sm.sin(q2)]]),
        ),
        energy=EnergyBalance(
            kinetic=u1**2 + u2**2 / 2 + u1 * u2 * c,
            powers=(("gravity", -2 * g * sm.sin(q1) * u1 - g * sm.sin(q2) * u2),),
        ),
    )
    definition = define(
        "DoublePendulum",
        DeclaredExperiment(stop=stop, step=step, tolerance=tolerance),
        parameters=(parameter(g, 9.81),),
        coordinates=(coordinate("q1", start[0]), coordinate("q2", start[1])),
        speeds=(speed("u1", 0.0), speed("u2", 0.0)),
    )
    return Case(definition, equations)


@pytest.fixture(scope="session")
def cases() -> dict[str, object]:
    """Makers of cases, by name."""
    return {"pendulum": pendulum, "oscillator": oscillator, "double_pendulum": double_pendulum}


UNIT = '''
import atexit, math, os, time
from pythonfmu import Fmi2Causality, Fmi2Slave, Fmi2Variability, Real


class {name}(Fmi2Slave):
    """The pendulum of the tests, by Runge-Kutta steps of 1 ms; ``mood`` makes it misbehave at 0.5 s."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.q, self.u, self.acceleration, self.g, self.tau, self.mood = 2.0, 0.0, 0.0, 9.81, 0.0, 0.0
        for output in ("q", "u", "acceleration"):
            self.register_variable(Real(output, causality=Fmi2Causality.output))
        self.register_variable(Real("tau", causality=Fmi2Causality.input))
        for parameter in ("g", "mood"):
            self.register_variable(
                Real(parameter, causality=Fmi2Causality.parameter, variability=Fmi2Variability.tunable)
            )

    def slope(self, q, u):
        return u, self.tau - self.g * math.sin(q)

    def exit_initialization_mode(self):
        self.acceleration = self.slope(self.q, self.u)[1]

    def do_step(self, now, size):
        if self.mood == 4.0:  # at the end of the process, long after the last step
            atexit.register(os.abort)
            self.mood = 0.0
        if self.mood and now >= 0.5:
            if self.mood == 1.0:
                print("about to abort", flush=True)
                os.abort()
            if self.mood == 2.0:
                time.sleep(60.0)
            return False
        count = round(size / 1e-3)
        h = size / count
        for _ in range(count):
            q, u = self.q, self.u
            k1 = self.slope(q, u)
            k2 = self.slope(q + h / 2 * k1[0], u + h / 2 * k1[1])
            k3 = self.slope(q + h / 2 * k2[0], u + h / 2 * k2[1])
            k4 = self.slope(q + h * k3[0], u + h * k3[1])
            self.q = q + h / 6 * (k1[0] + 2 * k2[0] + 2 * k3[0] + k4[0])
            self.u = u + h / 6 * (k1[1] + 2 * k2[1] + 2 * k3[1] + k4[1])
        self.acceleration = self.slope(self.q, self.u)[1]
        return True
'''


@pytest.fixture(scope="session")
def pendulum_fmu(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A stock pythonfmu FMU of :func:`pendulum`, with an input torque per inertia."""
    return built(tmp_path_factory.mktemp("stock"), "StockPendulum", UNIT.format(name="StockPendulum"))
