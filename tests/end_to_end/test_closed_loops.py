"""Mechanisms with closed loops, without any unit, against published numbers and against computations made afresh."""

from __future__ import annotations

import json

import numpy as np
import pytest
from end_to_end.test_models import CASES, ROOT
from scipy.integrate import solve_ivp

from mb2fmu import lowering, pipeline

LOOP_FORCES = slice(0, 6)


def _relative(found, wanted) -> float:
    wanted = np.array(wanted, dtype=float)
    return float(np.max(np.abs((np.asarray(found) - wanted) / wanted)))


@pytest.fixture(scope="module", params=["tmt", "kane", "lagrange"])
def andrews(request):
    case = json.loads((CASES / "andrews.json").read_text())
    derivation = pipeline.derive(ROOT / "models" / "andrews.py", method=request.param)
    return case, pipeline.right_hand_side(derivation), lowering.evaluator(derivation.program, "accelerations")


def test_andrews_mechanism_starts_with_the_published_accelerations_and_forces(andrews):
    case, f, accelerations = andrews
    x = np.array([*case["q0"], *case["qd0"]], dtype=float)
    u_dot, forces = np.array(case["qdd0"], dtype=float), np.array(case["lambda0"], dtype=float)
    assert accelerations(0, x, f.r0, f.p0) == pytest.approx(u_dot, abs=1e-9 * np.max(np.abs(u_dot)))
    assert f.outputs(0, x)[LOOP_FORCES] == pytest.approx(forces, abs=1e-9 * np.max(np.abs(forces)))


def test_andrews_mechanism_moves_as_in_quadruple_precision(andrews):
    case, f, accelerations = andrews
    end = case["reference_t003_quad"]
    x = np.array([*case["q0"], *case["qd0"]], dtype=float)
    x = solve_ivp(f, (0.0, case["t_end"]), x, method="DOP853", rtol=1e-12, atol=1e-12).y[:, -1]
    assert _relative(x[:7], end["q"]) < 1e-9
    assert _relative(x[7:], end["qd"]) < 1e-8
    assert _relative(accelerations(case["t_end"], x, f.r0, f.p0), end["qdd"]) < 1e-6
    assert _relative(f.outputs(case["t_end"], x)[LOOP_FORCES], end["lam"]) < 1e-6
