"""How far inputs without bounds go nobody says: far out an equation may have no value, which is no fault of the FMU."""

from __future__ import annotations

from pathlib import Path

import pytest
import sympy as sm
from sympy.physics import mechanics as me

from mb2fmu import Model, pipeline
from mb2fmu.audit import audit
from mb2fmu.validation.conformity_checks import UNBOUNDED_INPUTS_MESSAGE

RULES = ["life.calls", "state.*", "value.finite"]


def muscle(*, reach: float, maximum: float | None = None) -> Model:
    """A force of the root of an activation, which follows an excitation without bounds and ends at ``-reach``."""
    q, u, e, a = me.dynamicsymbols("q u e a")
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    P = O.locatenew("P", q * N.x)
    P.set_vel(N, u * N.x)
    force = 20 * sm.sqrt(a + reach) - 10 * q - u
    kane = me.KanesMethod(N, [q], [u], [q.diff() - u], bodies=[me.Particle("P", P, 1.0)], forcelist=[(P, force * N.x)])
    model = Model("Muscle", kane)
    model.coordinate(q, 0.0, "m")
    model.speed(u, 0.0, "m/s")
    bounds = {} if maximum is None else {"min": -maximum, "max": maximum}
    model.input(e, 0.0, "1", **bounds)
    model.state(a, (e - a) / (0.015 * (0.5 + 1.5 * a)), 0.0, "1")
    model.experiment(stop=1.0, step=0.01)
    return model


def audited(model: Model, folder: Path):
    return audit(pipeline.export(model, folder).path, only=RULES, run_checkers=False)


def test_discard_far_out_is_no_fault_and_reported(tmp_path: Path) -> None:
    result = audited(muscle(reach=0.02), tmp_path)
    assert result.findings == ()
    assert any(UNBOUNDED_INPUTS_MESSAGE in reason and "(e)" in reason for reason in result.skipped)


@pytest.mark.parametrize("fault", [{"reach": 1e-6}, {"reach": 0.02, "maximum": 0.5}])
def test_discard_at_a_hundredth_and_within_declared_bounds_stays_an_error(fault, tmp_path: Path) -> None:
    found = audited(muscle(**fault), tmp_path).findings
    assert any(each.rule == "life.calls" and "Discard" in each.message for each in found)
