"""A Discard beside a point that the auditor made up is no fault; an Error is one."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from mb2fmu.audit.behaviour.instance.fmi_c_interface import DISCARD, ERROR, RefusedCallError
from mb2fmu.audit.behaviour.trials import partial_derivative_trials


def refused(status: int) -> Any:
    """The check at a point, whose first change the FMU refuses."""

    def check(*_: Any, **__: Any) -> Any:
        raise RefusedCallError("fmi2GetReal", status, "the loops do not close", "Continuous-Time Mode")
        yield

    return check


def test_a_discard_is_a_note_and_an_error_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    fixture: Any = SimpleNamespace(interface="ModelExchange", skipped=[])
    arguments: Any = (fixture, None, None, [], [])
    monkeypatch.setattr(partial_derivative_trials, "_check_at_point", refused(DISCARD))
    assert list(partial_derivative_trials._check_near_random_point(*arguments, 1)) == []
    (note,) = fixture.skipped
    assert note.startswith("ModelExchange: derivatives beside a random point: fmi2GetReal returns Discard in")
    monkeypatch.setattr(partial_derivative_trials, "_check_at_point", refused(ERROR))
    with pytest.raises(RefusedCallError):
        list(partial_derivative_trials._check_near_random_point(*arguments, 1))
