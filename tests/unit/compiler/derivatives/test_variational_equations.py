"""Programs that carry derivatives: S', y', P' and the Jacobian of S', against differences of what they are of."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
import sympy as sm
import sympy.physics.mechanics as me
from representatives import by_night

from mb2fmu import Model, pipeline
from mb2fmu.compiler import derivatives
from mb2fmu.compiler.derivatives.derivative_entry_points import ProgramWithDerivatives
from mb2fmu.compiler.evaluation import make_evaluator
from mb2fmu.compiler.program.scalar_program import ScalarProgram
from mb2fmu.pipeline.derivation.right_hand_side_of_derivation import start_values

MODELS = Path(__file__).parents[4] / "models"
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Case:
    """A model, two of what it is differentiated by (a parameter and a start value), and where."""

    program: ScalarProgram
    to: tuple[tuple[str, tuple[str, int]], ...]
    x: Floats
    r: Floats
    p: Floats
    time: float = 0.3

    def entry(self, program: ScalarProgram, name: str) -> Callable[[float, Floats, Floats], Floats]:
        """Return an entry point of t, x and p."""
        found = make_evaluator(program, name)
        return lambda t, x, p: np.asarray(found(t, x, self.r, p))


def shaken() -> Model:
    """A mass on a hard spring under a force that swings with w: x' has time in it."""
    x, v = me.dynamicsymbols("x v")
    w, c = sm.symbols("w c")
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    P = O.locatenew("P", x * N.x)
    P.set_vel(N, v * N.x)
    load = [(P, (sm.sin(w * me.dynamicsymbols._t) * (1 + x) - c * x**3) * N.x)]
    kane = me.KanesMethod(N, [x], [v], [x.diff() - v], bodies=[me.Particle("load", P, 1)], forcelist=load)
    model = Model("Shaken", kane)
    model.parameter(w, 3.0, "rad/s")
    model.parameter(c, 5.0, "N/m3")
    model.coordinate(x, 0.4, "m")
    model.speed(v, 0.0, "m/s")
    return model


@pytest.fixture(scope="module", params=["shaken", *by_night("four_bar", "bowl", "double_pendulum")])
def case(request: pytest.FixtureRequest) -> Case:
    """With time in x', with a loop that Newton's method closes (test_second_derivatives by day), with neither."""
    derivation = pipeline.derive(shaken() if request.param == "shaken" else MODELS / f"{request.param}.py")
    x, r, p = start_values(derivation)
    rng = np.random.default_rng(3)
    n = len(x)
    x = np.concatenate([x + 0.02 * rng.normal(size=n), rng.normal(size=2 * n)])
    to = (("first", ("parameters", 0)), ("second", ("states", 0)))
    return Case(derivation.program, to, x, r, p)


@pytest.fixture(scope="module")
def carried(case: Case) -> tuple[ProgramWithDerivatives, ProgramWithDerivatives]:
    """The FMU's own derivatives, and those of what is carried."""
    native = derivatives.add_fmu_derivatives(case.program, adjoint=False)
    return native, derivatives.add_variational_jacobian(native, case.to)


def test_what_is_carried_is_the_derivative(case: Case) -> None:
    """Along (S, θ), of x', y and P; and these are bit by bit what they were."""
    varied = derivatives.add_variational_states(case.program, case.to)
    n, h = len(case.program.layout.states), 1e-6
    for name in ("rhs", "outputs", "project"):
        if name not in varied.entries or not varied.entries[name].results:
            continue
        plain, found = case.entry(case.program, name), case.entry(varied, name)(case.time, case.x, case.p)
        was = plain(case.time, case.x[:n], case.p)
        blocks = found.reshape(3, -1)
        np.testing.assert_array_equal(blocks[0][: len(was)], was)
        for k, (_, (group, place)) in enumerate(case.to):
            S = case.x[n * (k + 1) : n * (k + 2)]
            step = np.zeros(len(case.p))
            step[place] = h if group == "parameters" else 0.0
            more, less = (plain(case.time, case.x[:n] + sign * h * S, case.p + sign * step) for sign in (1, -1))
            expected = (more - less) / (2 * h)
            size = np.abs(expected).max()
            np.testing.assert_allclose(blocks[k + 1][: len(was)], expected, rtol=0, atol=1e-7 * max(size, 1.0))


def test_the_jacobian_of_what_is_carried_is_exact(
    case: Case, carried: tuple[ProgramWithDerivatives, ProgramWithDerivatives]
) -> None:
    """By states and time, through Newton's method, too: second derivatives of the program."""
    varied, n, h = carried[1], len(case.program.layout.states), 1e-5
    rates = case.entry(varied.program, "rhs")
    found = np.zeros((3 * n, n + 1))
    found[varied.rows, varied.columns] = case.entry(varied.program, "jacobian")(case.time, case.x, case.p)
    found[varied.time_derivative_rows, n] = case.entry(varied.program, "jacobian_time")(case.time, case.x, case.p)
    for j in range(n + 1):
        by = np.zeros(len(case.x))
        by[j] = h if j < n else 0.0
        later = h if j == n else 0.0
        more, less = (rates(case.time + sign * later, case.x + sign * by, case.p) for sign in (1, -1))
        expected = (more - less) / (2 * h)
        size = max(np.abs(expected).max(), 1.0)
        np.testing.assert_allclose(found[:, j], expected, rtol=0, atol=1e-6 * size)


def test_the_jacobian_of_the_motion_itself_is_the_fmus(
    case: Case, carried: tuple[ProgramWithDerivatives, ProgramWithDerivatives]
) -> None:
    """To the last bit: pivots and steps hang on it."""
    native, varied = carried
    n, count = len(case.program.layout.states), len(native.rows)
    own = case.entry(native.program, "jacobian")(case.time, case.x[:n], case.p)
    there = case.entry(varied.program, "jacobian")(case.time, case.x, case.p)
    np.testing.assert_array_equal(there[:count], own)
