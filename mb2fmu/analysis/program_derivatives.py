"""A program's right-hand side, outputs and constraints with their exact derivatives, as numbers."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from mb2fmu.compiler.arithmetic.python_newton import SingularMatrixError
from mb2fmu.compiler.derivatives import form_jacobian
from mb2fmu.compiler.evaluation import EntryPointEvaluator, make_evaluator
from mb2fmu.compiler.lowering.auxiliary_program import lower_constraint_residuals
from mb2fmu.compiler.program.scalar_program import ScalarProgram
from mb2fmu.mechanics.equations.equations_of_motion import EquationsOfMotion

Floats = npt.NDArray[np.float64]
ProgramFunction = Callable[[Floats, Floats], Floats]


class ProgramDerivatives:
    """Values and derivatives at one time and for one set of parameters, as functions of states and inputs.

    Args:
        equations: Of any formulation.
        program: The same lowered.
        t: Time in s.
        p: Values of the free parameters.
    """

    def __init__(self, equations: EquationsOfMotion, program: ScalarProgram, t: float, p: Floats) -> None:
        self._t, self._p = t, p
        self.n_x, self.n_r = len(program.layout.states), len(program.layout.inputs)
        manifold = lower_constraint_residuals(equations)
        self.constraint_names = manifold.entries["residual"].labels
        self.rates, self.rate_slopes = self._pair(program, "rhs")
        self.outputs, self.output_slopes = self._pair(program, "outputs")
        self.residual, self.residual_slopes = self._pair(manifold, "residual")
        directions = self._function(make_evaluator(manifold, "directions"), len(manifold.entries["directions"].results))
        K = equations.kinematics.matrix
        self._n_q = K.rows if manifold.entries["directions"].labels else 0
        self._directions: ProgramFunction = lambda x, r: directions(x, r).reshape(K.shape)

    def set_time_and_parameters(self, t: float, p: Floats) -> None:
        """Set another time and other parameters, without new symbolic work."""
        self._t, self._p = t, p

    def constraint_rows(self, x: Floats, r: Floats) -> Floats:
        """Return rows that vanish on every direction in which the state can move, shape (m, n_x)."""
        return np.concatenate([self.residual_slopes(x, r), self.quaternion_length_rows(x, r)])[:, : self.n_x]

    def quaternion_length_rows(self, x: Floats, r: Floats) -> Floats:
        """Return directions of coordinates that no speed causes (quaternion lengths), shape (n_q - n_u, n_x + n_r)."""
        if not self._n_q:
            return np.zeros((0, self.n_x + self.n_r))
        K = self._directions(x, r)
        left = np.linalg.svd(K)[0][:, K.shape[1] :].T
        rows = np.zeros((len(left), self.n_x + self.n_r))
        rows[:, : self._n_q] = left
        return rows

    def _pair(self, program: ScalarProgram, entry: str) -> tuple[ProgramFunction, ProgramFunction]:
        """Return an entry point and its Jacobian with respect to states, then inputs."""
        slopes = form_jacobian(program, entry, ("states", "inputs"))
        entries = self._function(make_evaluator(slopes.program, slopes.entry), len(slopes.rows))

        def dense(x: Floats, r: Floats) -> Floats:
            matrix = np.zeros(slopes.shape)
            matrix[slopes.rows, slopes.columns] = entries(x, r)
            return matrix

        return self._function(make_evaluator(program, entry), len(program.entries[entry].results)), dense

    def _function(self, evaluate: EntryPointEvaluator, size: int) -> ProgramFunction:
        """Return values at (x, r) as a function; NaN of shape (size,) where a matrix is singular."""

        def values(x: Floats, r: Floats) -> Floats:
            """Evaluate the entry point at states and inputs; NaN where the equations are singular."""
            try:
                return np.asarray(evaluate(self._t, x, r, self._p), dtype=float)
            except SingularMatrixError:  # a state that cannot be: the search goes on from another
                return np.full(size, np.nan)

        return values
