"""Derivatives of what Newton's method finds, with all digits: the derivatives of x' themselves."""

from __future__ import annotations

from pathlib import Path

import mpmath
import numpy as np
import pytest
from representatives import by_night

from mb2fmu import pipeline
from mb2fmu.compiler import derivatives
from mb2fmu.compiler.lowering.high_precision_evaluation import evaluate_high_precision
from mb2fmu.model.scalar_operation_table import Op

MODELS = Path(__file__).parents[4] / "models"


@pytest.mark.parametrize("k", [0, *by_night(4)])
def test_the_regularization_of_loops_does_not_enter_derivatives(k):
    """A regularization of 1e-14 changes one Newton step by 1e-11 of the slopes where singular values are near 1e-2."""
    f = pipeline.rhs(MODELS / "steering_linkage.py")
    x = f.x0 + 0.05 * np.random.default_rng(3).standard_normal(len(f.x0))
    leaves = {Op.TIME: [0.3], Op.INPUT: f.r0, Op.PARAMETER: f.p0}
    slopes = derivatives.form_jacobian(f.program, "rhs", ("states",))
    found = evaluate_high_precision(slopes.program, slopes.entry, {**leaves, Op.STATE: x})
    own = np.zeros((len(x), len(x)))
    own[np.asarray(slopes.rows), np.asarray(slopes.columns)] = [float(value) for value in found]
    step = mpmath.mpf("1e-15")
    with mpmath.workdps(60):
        sides = []
        for h in (step, -step):
            moved = [mpmath.mpf(float(value)) for value in x]
            moved[k] += h
            sides.append(evaluate_high_precision(f.program, "rhs", {**leaves, Op.STATE: moved}))
        expected = np.array([float((a - b) / (2 * step)) for a, b in zip(*sides, strict=True)])
        assert np.abs(own[:, k] - expected).max() <= 1e-15 * np.abs(own).max()
