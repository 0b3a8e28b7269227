"""Forecast the growth of errors under a coupling, before any step, with linear components stepped exactly.

The components are linearized where they are (directional derivatives), and the master's own passes are applied to these
linear components and to the past of their inputs, one unit vector after another. That gives the matrix by which a
communication step multiplies errors; its spectral radius is compared with that of the exactly coupled system.

A pass that grows without bound as steps get smaller (feedthrough around a ring with a gain above one: the mass ratio)
shows here as well as one that grows because the step is too long.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
from scipy.linalg import expm

from mb2fmu.systems.master.communication_steps import CommunicationStepError, SystemStepper
from mb2fmu.systems.master.fmu_slaves import SlaveCapabilities, SlaveStepResult
from mb2fmu.systems.resolved_system import SteppingSettings, SystemWiring

Floats = npt.NDArray[np.float64]

EXPLODES = 1e3
"""Growth over the experiment, relative to the exact one's, above which a coupling is called unstable."""
_LONGEST = 700.0


@dataclass(frozen=True, slots=True)
class LinearModel:
    """x' = A x + B u, y = C x + D u of one component; shapes as in :class:`LinearComponent`."""

    A: Floats
    B: Floats
    C: Floats
    D: Floats

    def slave(self) -> LinearComponent:
        """Return a slave that steps the model, at rest."""
        return LinearComponent(self.A, self.B, self.C, self.D)


@dataclass(frozen=True, slots=True)
class StabilityForecast:
    """Result of a forecast.

    Attributes:
        size: Communication step in s.
        radius: Largest factor by which one step multiplies errors.
        exact: The same of the exactly coupled system.
        growth: Logarithm of the factor over the experiment, beyond the exact one's.
        stable_step: With these settings the longest of the halved steps that is stable, in s; None if the present one
            is, nan if none is.
    """

    size: float
    radius: float
    exact: float
    growth: float
    stable_step: float | None = None

    @property
    def unstable(self) -> bool:
        """Whether errors grow beyond bounds within the experiment."""
        return bool(self.growth > np.log(EXPLODES))


def forecast_stability(
    wiring: SystemWiring, models: Sequence[LinearModel], stepping: SteppingSettings, stop: float, *, deeper: int = 12
) -> StabilityForecast:
    """Forecast the growth of errors.

    Args:
        wiring: The system.
        models: Its components, linearized.
        stepping: How it is stepped.
        stop: Length of the experiment in s.
        deeper: How often the step is halved in the search of a stable one.
    """
    own = replace(stepping, accuracy=None)
    size = stepping.step
    radius, exact = _radius(wiring, models, own, size), _exact(wiring, models, size)
    found = StabilityForecast(size, radius, exact, _growth(radius, exact, stop / size))
    if not found.unstable:
        return found
    for halved in range(1, deeper + 1):
        small = size / 2.0**halved
        grown = _growth(_radius(wiring, models, own, small), _exact(wiring, models, small), stop / small)
        if grown <= np.log(EXPLODES):
            return replace(found, stable_step=small)
    return replace(found, stable_step=np.nan)


def _growth(radius: float, exact: float, steps: float) -> float:
    """Return ln of the growth of errors in so many steps, beyond that of the exact motion."""
    if not np.isfinite(radius):
        return float("inf")
    return float(steps * (np.log(max(radius, 1e-300)) - np.log(max(exact, 1.0))))


def _radius(wiring: SystemWiring, models: Sequence[LinearModel], stepping: SteppingSettings, size: float) -> float:
    """Return the spectral radius of one step of the master, over states and past inputs."""
    counts = [len(model.A) for model in models]
    inputs, order = len(wiring.inputs), stepping.order
    plain = replace(wiring, links=tuple(replace(link, offset=0.0) for link in wiring.links), bonds=())
    slaves = [model.slave() for model in models]
    total = sum(counts) + (order + 1) * inputs
    columns = []
    for k in range(total):
        start = np.zeros(total)
        start[k] = 1.0
        states, past = start[: sum(counts)], start[sum(counts) :].reshape(order + 1, inputs)
        for slave, x in zip(slaves, np.split(states, np.cumsum(counts)[:-1]), strict=True):
            slave.restore(x)
        march = SystemStepper(plain, slaves, replace(stepping, step=size))
        march.place(list(past), size)
        march.closing.u = past[-1].copy()
        try:
            march.step(size)
        except (CommunicationStepError, np.linalg.LinAlgError):
            return float("inf")
        kept = [*past[1:], march.newest[-1]]
        columns.append(np.concatenate([*(slave.x for slave in slaves), *kept]))
    matrix = np.array(columns).T
    if not np.all(np.isfinite(matrix)):
        return float("inf")
    return float(np.max(np.abs(np.linalg.eigvals(matrix)), initial=0.0))


def _exact(wiring: SystemWiring, models: Sequence[LinearModel], size: float) -> float:
    """Return the spectral radius of the exactly coupled system over the same time."""
    A, B, C, D = (_diagonal([getattr(model, name) for model in models]) for name in "ABCD")
    L = np.zeros((len(wiring.inputs), len(wiring.outputs)))
    place_in = [k for c in range(len(models)) for k in wiring.inputs_of(c)]
    place_out = [k for c in range(len(models)) for k in wiring.outputs_of(c)]
    for link in wiring.links:
        L[place_in.index(link.target), place_out.index(link.source)] = link.factor
    try:
        closed = A + B @ np.linalg.solve(np.eye(len(L)) - L @ D, L @ C)
    except np.linalg.LinAlgError:
        return 1.0
    slopes = np.linalg.eigvals(closed).real if len(closed) else np.zeros(1)
    return float(np.exp(min(max(slopes) * size, _LONGEST)))


def _diagonal(blocks: Sequence[Floats]) -> Floats:
    """Return the block-diagonal matrix."""
    from scipy.linalg import block_diag

    return np.asarray(block_diag(*blocks))


class LinearComponent:
    """A linear component; its inputs follow parabolas exactly.

    Args:
        A: Shape (n_x, n_x).
        B: Shape (n_x, n_u).
        C: Shape (n_y, n_x).
        D: Shape (n_y, n_u).
        x: State at the beginning, shape (n_x,); zero if left out.
    """

    abilities = SlaveCapabilities(lines=True, back=True)

    def __init__(self, A: Floats, B: Floats, C: Floats, D: Floats, x: Floats | None = None) -> None:
        self.A, self.B, self.C, self.D = A, B, C, D
        self.x = np.zeros(len(A)) if x is None else np.array(x, dtype=float)
        self.u = np.zeros(B.shape[1])
        self._maps: dict[float, Floats] = {}

    def write(self, values: Floats) -> None:
        """Set its inputs, shape (n_u,)."""
        self.u = np.array(values)

    def read(self) -> Floats:
        """Return its outputs, shape (n_y,)."""
        return np.asarray(self.C @ self.x + self.D @ self.u)

    def advance(self, time: float, size: float, course: Floats) -> SlaveStepResult:
        """Do one communication step with inputs along ``course``, shape (n_u, 3)."""
        n, m = self.B.shape
        if size not in self._maps:
            # The inputs' three coefficients are states of a chain: u' = c1 + 2 c2 s.
            chain = np.zeros((n + 3 * m, n + 3 * m))
            chain[:n, :n], chain[:n, n : n + m] = self.A, self.B
            chain[n : n + m, n + m : n + 2 * m] = np.eye(m)
            chain[n + m : n + 2 * m, n + 2 * m :] = 2.0 * np.eye(m)
            self._maps[size] = expm(chain * size)[:n]
        self.x = self._maps[size] @ np.concatenate([self.x, course.T.ravel()])
        self.u = course[:, 0] + size * (course[:, 1] + size * course[:, 2])
        return SlaveStepResult(time + size)

    def save(self) -> Floats:
        """Return the state."""
        return self.x.copy()

    def restore(self, state: Floats) -> None:
        """Go back to a state."""
        self.x = np.array(state)

    def forget(self, state: Floats) -> None:
        """Do nothing: states need not be freed."""

    def settle(self) -> float | None:
        """Do nothing: there are no events."""
        return None
