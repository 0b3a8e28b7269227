"""Compiled stages give what calls one by one give, and say as much of an FMU that does something wrong."""

from __future__ import annotations

import ctypes
import math
from contextlib import suppress
from pathlib import Path

import ball
import pytest

from mb2fmu.audit.behaviour.fixture.shared_trial_results import RecordedTrialRun
from mb2fmu.audit.behaviour.fixture.trial_fixture import TrialFixture
from mb2fmu.audit.behaviour.fixture.trial_simulation_runs import run_model_exchange, start_model_exchange_integration
from mb2fmu.audit.behaviour.instance.auditor_build_cache import compile_model_exchange_stages
from mb2fmu.audit.behaviour.instance.fmi_c_interface import FmuLibrary, RefusedCallError
from mb2fmu.audit.behaviour.process.shared_memory_channel import SharedMemoryChannel
from mb2fmu.audit.behaviour.process.trial_time_budget import TrialTimeBudget
from mb2fmu.audit.description.description_import import parse_model_description

SLOPES = "    ball_slopes(&b->s, b->s.h, b->s.v, &dx[0], &dx[1]);\n"


def fixture(folder: Path, version: int, *, compiled: bool, old: str = "", new: str = "") -> TrialFixture:
    """A ball in Model Exchange, with one place of its sources changed."""
    path = folder / f"ball{compiled}.so"
    path.write_bytes(ball.library(version, old, new))
    stages = compile_model_exchange_stages()
    assert stages
    library = FmuLibrary(
        ctypes.CDLL(str(path)), parse_model_description(ball.description(version).encode()), str(folder),
        trial_budget=TrialTimeBudget(SharedMemoryChannel(folder / "channel")),
        stage_library=ctypes.CDLL(str(stages)) if compiled else None,
    )  # fmt: skip
    return TrialFixture(library, "ModelExchange", folder)


def run(stage: TrialFixture) -> RecordedTrialRun:
    with stage.open_instance() as instance:
        return run_model_exchange(stage, instance, stage.variables_to_try, tolerance=1e-8)


@pytest.mark.parametrize("version", [2, 3])
def test_a_run_with_events_is_the_same(version: int, tmp_path: Path) -> None:
    """Also the number of calls, by which the length of runs is limited."""
    one_by_one, compiled = (fixture(tmp_path, version, compiled=choice) for choice in (False, True))
    expected, found = run(one_by_one), run(compiled)
    assert len(expected.recorded_events) > 1
    assert [event.cause for event in found.recorded_events] == [event.cause for event in expected.recorded_events]
    for row, other in zip(found.values, expected.values, strict=True):
        for value, other_value in zip(row, other, strict=True):
            is_number = isinstance(value, float) and isinstance(other_value, float)
            assert value == other_value or (is_number and math.isclose(value, other_value, rel_tol=1e-11))
    assert compiled.library.trial_budget.calls == one_by_one.library.trial_budget.calls
    name, is_running = SharedMemoryChannel(tmp_path / "channel").last_call()
    assert name == f"fmi{version}FreeInstance"
    assert not is_running


@pytest.mark.parametrize("compiled", [False, True])
def test_a_refusal_names_function_status_and_message(compiled: bool, tmp_path: Path) -> None:
    late = f'    NEED(b->s.time < 0.2, "it is late");\n{SLOPES}'
    stage = fixture(tmp_path, 2, compiled=compiled, old=SLOPES, new=late)
    with pytest.raises(RefusedCallError, match='GetDerivatives returns Error in Continuous-Time Mode: "it is late"'):
        run(stage)


@pytest.mark.parametrize(
    ("last_slope", "expected"), [(5.0, 0.5 * 3.0 / (1e-3 * 4.0)), (math.nan, math.inf), (-math.inf, math.inf)]
)
def test_the_error_of_a_step_is_relative_to_its_limit(last_slope: float, expected: float) -> None:
    """Of two states, after a step of 0.5 s by a method of two stages; no limit is above what is not finite."""

    def array(*values: float) -> ctypes.Array[ctypes.c_double]:
        return (ctypes.c_double * len(values))(*values)

    measure = ctypes.CDLL(str(compile_model_exchange_stages())).measure_step_error
    measure.restype = ctypes.c_double
    weights, slopes = array(-1.0, 1.0), array(0.0, 2.0, 0.0, last_slope)
    nominals, before, state = array(1.0, 2000.0), array(7.0, 4.0), array(7.0, -3.0)
    found = measure(
        ctypes.c_size_t(2), ctypes.c_size_t(1), weights, ctypes.c_double(0.5), ctypes.c_double(1e-3),
        nominals, before, state, slopes,
    )  # fmt: skip
    assert found == expected


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (f"{SLOPES}    if (b->s.time > 0.2) dx[2] = 0.0;\n", "writes beyond the 2 requested values"),
        (
            SLOPES.replace("&dx[1]", "b->s.time > 0.2 ? &b->s.c : &dx[1]"),
            "returns OK, but leaves values unwritten",
        ),
    ],
)
def test_what_is_written_wrongly_in_a_stage_is_found(wrong: str, said: str, tmp_path: Path) -> None:
    stage = fixture(tmp_path, 2, compiled=True, old=SLOPES, new=wrong)
    with stage.open_instance() as instance:
        integration = start_model_exchange_integration(stage, instance, 1e-6)
        integration.advance(0.15)
        assert not stage.library.violations
        with suppress(RefusedCallError):  # of a state that is no number
            integration.advance(0.3)
    assert stage.library.violations == {f"fmi2GetDerivatives {said}": "life.writes"}
