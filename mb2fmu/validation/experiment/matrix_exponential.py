"""The exponential of a matrix: how linear equations move over a span of time.

SciPy's takes longer to import than this function takes in a run.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

_TAYLOR_ORDER = 16  # of e^A with |A| <= 1/2: the rest is below 1e-19


def exponentiate_matrix(matrix: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return e^A of a square matrix, or of each of a stack, by scaling and squaring of its Taylor polynomial.

    Source: C. Moler, C. Van Loan, Nineteen dubious ways to compute the exponential of a matrix, twenty-five years
    later, SIAM Review 45 (2003), method 3.
    """
    norm = float(np.max(np.sum(np.abs(matrix), axis=-2), initial=0.0))
    squarings = max(0, math.ceil(math.log2(norm)) + 1) if 0.0 < norm < math.inf else 0
    scaled, identity = matrix / 2.0**squarings, np.eye(matrix.shape[-1])
    total = identity
    for order in range(_TAYLOR_ORDER, 0, -1):
        total = identity + scaled @ total / order
    for _ in range(squarings):
        total = total @ total
    return total
