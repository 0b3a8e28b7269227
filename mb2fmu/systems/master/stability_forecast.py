"""Forecast the growth of errors under a coupling, before any step, with linear components stepped exactly.

The components are linearized at their states (directional derivatives). The master's own step is applied to these
linear components and to the past of their inputs, one unit vector after another. That gives the matrix by which a
communication step multiplies errors; its spectral radius is compared with that of the exactly coupled system.

This finds couplings that diverge for small steps (feedthrough around a loop with a gain above one: the mass ratio) and
couplings that diverge because the step is too long.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from mb2fmu.systems.master.coupled_system_stepping import CommunicationStepError, SystemStepper
from mb2fmu.systems.master.fmu_slaves import SlaveCapabilities, SlaveStepResult
from mb2fmu.systems.port_and_bond_records import CommunicationStepSettings, SystemWiring
from mb2fmu.validation.experiment.matrix_exponential import exponentiate_matrix

Floats = npt.NDArray[np.float64]

MAX_ERROR_GROWTH = 1e3
"""Growth over the experiment, relative to the exact one's, above which a coupling is called unstable."""
_MAX_EXPONENT = 700.0


@dataclass(frozen=True, slots=True)
class LinearCoupledComponentModel:
    """x' = A x + B u, y = C x + D u of one component; shapes as in :class:`LinearCoupledComponent`."""

    A: Floats
    B: Floats
    C: Floats
    D: Floats

    def make_component(self) -> LinearCoupledComponent:
        """Return a slave that steps the model, at rest."""
        return LinearCoupledComponent(self.A, self.B, self.C, self.D)


@dataclass(frozen=True, slots=True)
class StabilityForecast:
    """Result of a forecast.

    Attributes:
        step_size: Communication step in s.
        spectral_radius: Largest factor by which one step multiplies errors.
        exact_spectral_radius: The same factor of the exactly coupled system.
        log_growth: Logarithm of the factor over the experiment, beyond the exact one's.
        stable_step: Longest halved step that is stable with these settings, in s; None if the present step is stable,
            nan if no halved step is.
    """

    step_size: float
    spectral_radius: float
    exact_spectral_radius: float
    log_growth: float
    stable_step: float | None = None

    @property
    def unstable(self) -> bool:
        """Whether errors grow beyond bounds within the experiment."""
        return bool(self.log_growth > np.log(MAX_ERROR_GROWTH))


def forecast_coupling_stability(
    wiring: SystemWiring,
    models: Sequence[LinearCoupledComponentModel],
    stepping: CommunicationStepSettings,
    stop: float,
    *,
    max_halvings: int = 12,
) -> StabilityForecast:
    """Forecast the growth of errors.

    Args:
        wiring: The system.
        models: The components, linearized.
        stepping: Settings of the master.
        stop: Length of the experiment in s.
        max_halvings: Largest number of halvings in the search for a stable step.
    """
    fixed_stepping = replace(stepping, accuracy=None)
    step_size = stepping.step
    spectral_radius, exact_radius = (
        _compute_spectral_radius(wiring, models, fixed_stepping, step_size),
        _compute_exact_spectral_radius(wiring, models, step_size),
    )
    forecast = StabilityForecast(
        step_size, spectral_radius, exact_radius, _compute_log_growth(spectral_radius, exact_radius, stop / step_size)
    )
    if not forecast.unstable:
        return forecast
    for halvings in range(1, max_halvings + 1):
        smaller_step = step_size / 2.0**halvings
        log_growth = _compute_log_growth(
            _compute_spectral_radius(wiring, models, fixed_stepping, smaller_step),
            _compute_exact_spectral_radius(wiring, models, smaller_step),
            stop / smaller_step,
        )
        if log_growth <= np.log(MAX_ERROR_GROWTH):
            return replace(forecast, stable_step=smaller_step)
    return replace(forecast, stable_step=np.nan)


def _compute_log_growth(spectral_radius: float, exact_radius: float, step_count: float) -> float:
    """Return ln of the growth of errors in so many steps, beyond that of the exact motion."""
    if not np.isfinite(spectral_radius):
        return float("inf")
    return float(step_count * (np.log(max(spectral_radius, 1e-300)) - np.log(max(exact_radius, 1.0))))


def _compute_spectral_radius(
    wiring: SystemWiring,
    models: Sequence[LinearCoupledComponentModel],
    stepping: CommunicationStepSettings,
    step_size: float,
) -> float:
    """Return the spectral radius of one step of the master, over states and past inputs."""
    state_counts = [len(model.A) for model in models]
    input_count, order = len(wiring.inputs), stepping.order
    linear_wiring = replace(wiring, links=tuple(replace(link, offset=0.0) for link in wiring.links), bonds=())
    slaves = [model.make_component() for model in models]
    dimension = sum(state_counts) + (order + 1) * input_count
    columns = []
    for column in range(dimension):
        unit_vector = np.zeros(dimension)
        unit_vector[column] = 1.0
        states, past_inputs = (
            unit_vector[: sum(state_counts)],
            unit_vector[sum(state_counts) :].reshape(order + 1, input_count),
        )
        for slave, slave_state in zip(slaves, np.split(states, np.cumsum(state_counts)[:-1]), strict=True):
            slave.restore_state(slave_state)
        stepper = SystemStepper(linear_wiring, slaves, replace(stepping, step=step_size))
        stepper.set_past_inputs(list(past_inputs), step_size)
        stepper.loop_solver.u = past_inputs[-1].copy()
        try:
            stepper.step(step_size)
        except (CommunicationStepError, np.linalg.LinAlgError):
            return float("inf")
        new_past_inputs = [*past_inputs[1:], stepper.recent_inputs[-1]]
        columns.append(np.concatenate([*(slave.x for slave in slaves), *new_past_inputs]))
    matrix = np.array(columns).T
    if not np.all(np.isfinite(matrix)):
        return float("inf")
    return float(np.max(np.abs(np.linalg.eigvals(matrix)), initial=0.0))


def _compute_exact_spectral_radius(
    wiring: SystemWiring, models: Sequence[LinearCoupledComponentModel], step_size: float
) -> float:
    """Return the spectral radius of the exactly coupled system over the same time."""
    A, B, C, D = (_make_block_diagonal([getattr(model, name) for model in models]) for name in "ABCD")
    L = np.zeros((len(wiring.inputs), len(wiring.outputs)))
    input_order = [port for component in range(len(models)) for port in wiring.inputs_of(component)]
    output_order = [port for component in range(len(models)) for port in wiring.outputs_of(component)]
    for link in wiring.links:
        L[input_order.index(link.target), output_order.index(link.source)] = link.factor
    try:
        coupled_matrix = A + B @ np.linalg.solve(np.eye(len(L)) - L @ D, L @ C)
    except np.linalg.LinAlgError:
        return 1.0
    real_parts = np.linalg.eigvals(coupled_matrix).real if len(coupled_matrix) else np.zeros(1)
    return float(np.exp(min(max(real_parts) * step_size, _MAX_EXPONENT)))


def _make_block_diagonal(blocks: Sequence[Floats]) -> Floats:
    """Return the block-diagonal matrix."""
    matrix = np.zeros(np.sum([block.shape for block in blocks], axis=0))
    row = column = 0
    for block in blocks:
        rows, columns = block.shape
        matrix[row : row + rows, column : column + columns] = block
        row, column = row + rows, column + columns
    return matrix


class LinearCoupledComponent:
    """A linear component; its inputs follow parabolas exactly.

    Args:
        A: Shape (n_x, n_x).
        B: Shape (n_x, n_u).
        C: Shape (n_y, n_x).
        D: Shape (n_y, n_u).
        x: State at the beginning, shape (n_x,); zero if left out.
    """

    capabilities = SlaveCapabilities(interpolates_inputs=True, saves_state=True)

    def __init__(self, A: Floats, B: Floats, C: Floats, D: Floats, x: Floats | None = None) -> None:
        self.A, self.B, self.C, self.D = A, B, C, D
        self.x = np.zeros(len(A)) if x is None else np.array(x, dtype=float)
        self.u = np.zeros(B.shape[1])
        self._transition_matrices: dict[float, Floats] = {}

    def write_inputs(self, values: Floats) -> None:
        """Set its inputs, shape (n_u,)."""
        self.u = np.array(values)

    def read_outputs(self) -> Floats:
        """Return its outputs, shape (n_y,)."""
        return np.asarray(self.C @ self.x + self.D @ self.u)

    def do_step(self, time: float, size: float, input_polynomials: Floats) -> SlaveStepResult:
        """Do one communication step with inputs along ``input_polynomials``, shape (n_u, 3)."""
        state_count, input_count = self.B.shape
        if size not in self._transition_matrices:
            # The inputs' three coefficients are states of a chain: u' = c1 + 2 c2 s.
            augmented_matrix = np.zeros((state_count + 3 * input_count, state_count + 3 * input_count))
            (
                augmented_matrix[:state_count, :state_count],
                augmented_matrix[:state_count, state_count : state_count + input_count],
            ) = self.A, self.B
            augmented_matrix[
                state_count : state_count + input_count, state_count + input_count : state_count + 2 * input_count
            ] = np.eye(input_count)
            augmented_matrix[
                state_count + input_count : state_count + 2 * input_count, state_count + 2 * input_count :
            ] = 2.0 * np.eye(input_count)
            self._transition_matrices[size] = exponentiate_matrix(augmented_matrix * size)[:state_count]
        self.x = self._transition_matrices[size] @ np.concatenate([self.x, input_polynomials.T.ravel()])
        self.u = input_polynomials[:, 0] + size * (input_polynomials[:, 1] + size * input_polynomials[:, 2])
        return SlaveStepResult(time + size)

    def save_state(self) -> Floats:
        """Return the state."""
        return self.x.copy()

    def restore_state(self, state: Floats) -> None:
        """Restore a saved state."""
        self.x = np.array(state)

    def free_state(self, state: Floats) -> None:
        """Do nothing: states need not be freed."""

    def handle_events(self) -> float | None:
        """Do nothing: there are no events."""
        return None
