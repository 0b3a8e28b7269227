"""Dormand and Prince's Runge-Kutta pair of order 5(4), for models that are not stiff.

Source: J. R. Dormand, P. J. Prince: A family of embedded Runge-Kutta formulae, J. Comp. Appl. Math. 6 (1980) 19-26;
Hairer, Norsett, Wanner: Solving Ordinary Differential Equations I, table II.5.2. The result is of order 5; the last
stage is the slope at the end of the step and becomes the first stage of the next one.

     0   |
    1/5  |    1/5
    3/10 |    3/40        9/40
    4/5  |   44/45      -56/15       32/9
    8/9  | 19372/6561 -25360/2187 64448/6561 -212/729
     1   |  9017/3168   -355/33   46732/5247   49/176  -5103/18656
     1   |   35/384        0        500/1113  125/192  -2187/6784   11/84
"""

from __future__ import annotations

from collections.abc import Sequence

from .integrator_base import AdaptiveIntegrator, RightHandSide, TentativeStep

A21 = 1 / 5
A31, A32 = 3 / 40, 9 / 40
A41, A42, A43 = 44 / 45, -56 / 15, 32 / 9
A51, A52, A53, A54 = 19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729
A61, A62, A63, A64, A65 = 9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656
B1, B3, B4, B5, B6 = 35 / 384, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84
# Order 5 minus order 4.
E1, E3, E4, E5, E6, E7 = 71 / 57600, -71 / 16695, 71 / 1920, -17253 / 339200, 22 / 525, -1 / 40


class DormandPrince(AdaptiveIntegrator):
    """Adaptive explicit integration; six evaluations of f per step."""

    exponent = 1 / 5
    integral = 0.04
    growth = 5.0

    def attempt(
        self, f: RightHandSide, t: float, x: Sequence[float], h: float, slope: Sequence[float]
    ) -> TentativeStep:
        """See :class:`AdaptiveIntegrator`."""
        k1 = slope
        k2 = f(t + h / 5, [y + h * (A21 * a) for y, a in zip(x, k1, strict=True)])
        k3 = f(t + 0.3 * h, [y + h * (A31 * a + A32 * b) for y, a, b in zip(x, k1, k2, strict=True)])
        k4 = f(t + 0.8 * h, [y + h * (A41 * a + A42 * b + A43 * c) for y, a, b, c in zip(x, k1, k2, k3, strict=True)])
        k5 = f(
            t + 8 / 9 * h,
            [y + h * (A51 * a + A52 * b + A53 * c + A54 * d) for y, a, b, c, d in zip(x, k1, k2, k3, k4, strict=True)],
        )
        k6 = f(
            t + h,
            [
                y + h * (A61 * a + A62 * b + A63 * c + A64 * d + A65 * e)
                for y, a, b, c, d, e in zip(x, k1, k2, k3, k4, k5, strict=True)
            ],
        )
        end = [
            y + h * (B1 * a + B3 * c + B4 * d + B5 * e + B6 * g)
            for y, a, c, d, e, g in zip(x, k1, k3, k4, k5, k6, strict=True)
        ]
        k7 = tuple(f(t + h, end))
        error = [
            h * (E1 * a + E3 * c + E4 * d + E5 * e + E6 * g + E7 * i)
            for a, c, d, e, g, i in zip(k1, k3, k4, k5, k6, k7, strict=True)
        ]
        return TentativeStep(end, self.tolerance.norm(error, x, end), k7)
