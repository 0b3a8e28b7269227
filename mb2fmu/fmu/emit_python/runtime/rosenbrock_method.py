"""Hairer and Wanner's Rosenbrock method RODAS of order 4(3), for stiff models.

Source: E. Hairer, G. Wanner: Solving Ordinary Differential Equations II, section IV.7 and the code RODAS there.
Linearly implicit, stiffly accurate, L-stable; every step takes the exact Jacobian J = df/dx and df/dt, and solves six
systems with the one matrix W = 1/(h gamma) - J:

    W k_i = f(t + alpha_i h, x + sum_j a_ij k_j) + sum_j c_ij k_j / h + h d_i df/dt
    x_1 = x + sum_j a_6j k_j + k_6        error = k_6
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from .integrator_base import AdaptiveIntegrator, RightHandSide, TentativeStep, Tolerance

Matrix = list[list[float]]
Linearization = Callable[[float, Sequence[float]], tuple[Matrix, Sequence[float]]]
Solver = Callable[[Sequence[float]], list[float]]
Factorization = Callable[[Matrix], Solver]

GAMMA = 0.25
ALPHA = (0.0, 0.386, 0.21, 0.63, 1.0, 1.0)
D = (0.25, -0.1043, 0.1035, -0.03620000000000023, 0.0, 0.0)
A = (
    (),
    (1.544,),
    (0.9466785280815826, 0.2557011698983284),
    (3.314825187068521, 2.896124015972201, 0.9986419139977817),
    (1.221224509226641, 6.019134481288629, 12.53708332932087, -0.687886036105895),
    (1.221224509226641, 6.019134481288629, 12.53708332932087, -0.687886036105895, 1.0),
)
C = (
    (),
    (-5.6688,),
    (-2.430093356833875, -0.2063599157091915),
    (-0.1073529058151375, -9.594562251023355, -20.47028614809616),
    (7.496443313967647, -10.24680431464352, -33.99990352819905, 11.7089089320616),
    (8.083246795921522, -7.981132988064893, -31.52159432874371, 16.31930543123136, -6.058818238834054),
)


def _combined(x: Sequence[float], weights: Sequence[float], vectors: Sequence[Sequence[float]]) -> list[float]:
    """Return x + sum of weights · vectors."""
    result = list(x)
    for weight, vector in zip(weights, vectors, strict=True):
        result = [a + weight * b for a, b in zip(result, vector, strict=True)]
    return result


class Rodas(AdaptiveIntegrator):
    """Adaptive linearly implicit integration.

    Args:
        tolerance: Error weights.
        linearize: (t, x) → (df/dx by rows, df/dt); raises ``UndefinedValueError``.
        factor: A square matrix → a function that solves with it; raises ``UndefinedValueError`` where it is singular.
    """

    exponent = 1 / 4
    integral = 0.0
    growth = 6.0

    def __init__(self, tolerance: Tolerance, linearize: Linearization, factor: Factorization) -> None:
        super().__init__(tolerance)
        self.linearize = linearize
        self.factor = factor

    def attempt(
        self, f: RightHandSide, t: float, x: Sequence[float], h: float, slope: Sequence[float]
    ) -> TentativeStep:
        """See :class:`AdaptiveIntegrator`."""
        jacobian, drift = self.linearize(t, x)
        matrix = [[-value for value in row] for row in jacobian]
        for i, row in enumerate(matrix):
            row[i] += 1.0 / (h * GAMMA)
        solve = self.factor(matrix)
        stages: list[list[float]] = []
        point: Sequence[float] = x
        for alpha, a, c, d in zip(ALPHA, A, C, D, strict=True):
            point = _combined(x, a, stages)
            value = f(t + alpha * h, point) if stages else slope
            right = _combined(value, [weight / h for weight in c], stages)
            stages.append(solve([b + h * d * e for b, e in zip(right, drift, strict=True)]))
        end = [a + b for a, b in zip(point, stages[-1], strict=True)]
        return TentativeStep(end, self.tolerance.norm(stages[-1], x, end))
