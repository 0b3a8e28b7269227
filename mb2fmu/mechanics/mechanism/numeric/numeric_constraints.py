"""``ConstraintEvaluator``: evaluate A, b, γ and K of a mechanism, without its bodies and loads.

``make_parameter_completion_function``: all parameters of a mechanism in numbers, from the free ones.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property

import numpy as np
import numpy.typing as npt
import sympy as sm

from mb2fmu.mechanics.mechanism.numeric.same_form_expression_evaluation import (
    GroupedExpressionEvaluator,
    make_same_form_expression_evaluator,
)
from mb2fmu.mechanics.mechanism.records.mechanism_records import Mechanism
from mb2fmu.model.numpy_lambdify import lambdify_for_numpy

Array = npt.NDArray[np.float64]


EntryPositions = tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]


def make_parameter_completion_function(mechanism: Mechanism) -> Callable[[Sequence[float] | Array], Array]:
    """Return all parameters, free ones first, then calculated ones."""
    calculate = lambdify_for_numpy(mechanism.p, _substitute_calculated(mechanism))
    return lambda p: np.array([*p, *calculate(*p)], dtype=float)


def _substitute_calculated(mechanism: Mechanism) -> list[sm.Expr]:
    """Return calculated parameters as expressions of free ones."""
    expressions: dict[sm.Symbol, sm.Expr] = {}
    for assignment in mechanism.calculated_parameters:
        expressions[assignment.symbol] = assignment.expression.xreplace(expressions)
    return list(expressions.values())


class ConstraintEvaluator:
    """Evaluates A u + b = 0, A u' + γ = 0 and q' = K u + k0; rows are sparse, and only their entries are evaluated.

    Args:
        mechanism: Its constraints linear in the speeds.
    """

    def __init__(self, mechanism: Mechanism) -> None:
        m, constraints = mechanism, mechanism.velocity_constraints
        self._calculate_parameters = make_parameter_completion_function(m)
        A = constraints.jacobian.todok() if constraints else {}
        K = m.kinematics.matrix.todok()
        self._A_positions, self._K_positions = _entry_positions(A), _entry_positions(K)
        self._row_count, self._n_q, self._n_u = len(constraints.names) if constraints else 0, len(m.q), len(m.u)
        self._mechanism = mechanism
        self._other_arguments = [*m.z, *m.r, *m.p, *(calculated.symbol for calculated in m.calculated_parameters)]
        expressions = [
            sm.sympify(expression)
            for expression in (*A.values(), *K.values(), *(constraints.offset if constraints else ()))
        ]
        self._evaluate = make_same_form_expression_evaluator((m.t, *m.q, *self._other_arguments), tuple(expressions))

    def evaluate(
        self, t: float, q: Array, z: Array, r: Array, p: Sequence[float] | Array
    ) -> tuple[Array, Array, Array]:
        """Return A, b and K.

        Args:
            t: Time in s.
            q: Coordinates.
            z: Auxiliary states.
            r: Inputs.
            p: Free parameters.
        """
        values = self._evaluate(t, *q, *z, *r, *self._calculate_parameters(p))
        A_entry_count, K_entry_count = len(self._A_positions[0]), len(self._K_positions[0])
        A, K = np.zeros((self._row_count, self._n_u)), np.zeros((self._n_q, self._n_u))
        A[self._A_positions], K[self._K_positions] = (
            values[:A_entry_count],
            values[A_entry_count : A_entry_count + K_entry_count],
        )
        return A, values[A_entry_count + K_entry_count :], K

    def evaluate_bias(self, t: float, q: Array, u: Array, z: Array, r: Array, p: Sequence[float] | Array) -> Array:
        """Return γ at the speeds u; other arguments as for :meth:`evaluate`."""
        return self._bias_function(t, *q, *u, *z, *r, *self._calculate_parameters(p))

    @cached_property
    def _bias_function(self) -> GroupedExpressionEvaluator:
        """Γ as a function of t, q, u and the rest, with auxiliary speeds zero."""
        m, constraints = self._mechanism, self._mechanism.velocity_constraints
        auxiliary = dict.fromkeys(m.u_auxiliary, sm.S.Zero)
        rows = [sm.sympify(expression).xreplace(auxiliary) for expression in constraints.bias] if constraints else []
        return make_same_form_expression_evaluator((m.t, *m.q, *m.u, *self._other_arguments), tuple(rows))


def _entry_positions(entries: dict[tuple[int, int], sm.Expr]) -> EntryPositions:
    """Return rows and columns of a sparse matrix's entries, in the order of its values."""
    rows, columns = np.array(list(entries), dtype=np.intp).reshape(-1, 2).T
    return rows, columns
