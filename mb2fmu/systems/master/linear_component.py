"""A linear component x' = A x + B u, y = C x + D u, stepped exactly: for forecasts, and as a truth in tests."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.linalg import expm

from mb2fmu.systems.master.fmu_slaves import Abilities, Advance

Floats = npt.NDArray[np.float64]


class LinearSlave:
    """A linear component; its inputs follow parabolas exactly.

    Args:
        A: Shape (n_x, n_x).
        B: Shape (n_x, n_u).
        C: Shape (n_y, n_x).
        D: Shape (n_y, n_u).
        x: State at the beginning, shape (n_x,); zero if left out.
    """

    abilities = Abilities(lines=True, back=True)

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

    def advance(self, time: float, size: float, course: Floats) -> Advance:
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
        return Advance(time + size)

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
