"""No false alarm: correct FMUs, our own and another maker's, are found correct, all rules judged."""

# ruff: noqa: E501  a line of XML: one line

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import ball
import pytest
import rare_ball_variants
import sampler
import sympy as sm
import sympy.physics.mechanics as me
import unusual_fmus

from mb2fmu import Model, Parts, pipeline
from mb2fmu.audit import audit

Base = Callable[[str], dict[str, bytes]]
ME, CS = "ModelExchange", "CoSimulation"
NIGHT = pytest.mark.repeats


MANY_CALLS = ("life.leak", "life.threads", "life.several", "life.uninitialized")
"""Rules that take thousands of calls: by day they are judged of one FMU, the ball of FMI 3."""


@pytest.mark.parametrize(
    ("version", "kinds", "skip"),
    [
        pytest.param(2, (ME, CS), MANY_CALLS, marks=NIGHT),  # FMI 2 with events: bouncing_ball in test_models
        (3, (ME, CS), ()),
        pytest.param(3, (CS,), MANY_CALLS, marks=NIGHT),
        pytest.param(2, (ME, CS), (), marks=NIGHT),
        pytest.param(2, (CS,), (), marks=NIGHT),
        pytest.param(2, (ME,), (), marks=NIGHT),
        pytest.param(3, (CS,), (), marks=NIGHT),
        pytest.param(3, (ME,), (), marks=NIGHT),
    ],
)
def test_events_and_all_types_raise_no_alarm(
    version: int, kinds: tuple[str, ...], skip: tuple[str, ...], tmp_path: Path
) -> None:
    """Another maker's unit: events, Integer, Boolean, String, Enumeration, Binary, an array, one interface only."""
    result = audit(ball.pack(ball.contents(version, kinds), tmp_path / "ball.fmu"), run_checkers=False, skip=skip)
    # Some rules ask for all functions of the interfaces that are there; more of them are no fault.
    assert [str(each) for each in result.findings] == []
    assert len(result.tried) > 15 * len(kinds)


@pytest.mark.parametrize(
    ("name", "skip"),
    [
        ("cart2", MANY_CALLS),
        pytest.param("cart2", (), marks=NIGHT),
        pytest.param("cart3", (), marks=NIGHT),
    ],
)
@pytest.mark.usefixtures("started_supervisors")
def test_our_own_fmus_raise_no_alarm(name: str, skip: tuple[str, ...], base: Base, tmp_path: Path) -> None:
    result = audit(ball.pack(base(name), tmp_path / "cart.fmu"), run_checkers=name == "cart2", skip=skip)
    # An export without a run has no page of documentation yet; FMI 2 has no other place for its picture.
    assert {each.rule for each in result.findings} <= {"archive.documentation"}
    assert result.skipped == ()
    assert (name == "cart2") == bool(result.consulted)


@pytest.mark.parametrize("skip", [MANY_CALLS, pytest.param((), marks=NIGHT)])
def test_a_sampler_with_arrays_and_clocks_raises_no_alarm(skip: tuple[str, ...], tmp_path: Path) -> None:
    result = audit(ball.pack(sampler.contents(), tmp_path / "sampler.fmu"), run_checkers=False, skip=skip)
    # It makes steps beyond the stop time; and exp() of a newer C library is a newer one.
    assert {each.rule for each in result.findings} <= {"steps.stop", "binary.glibc"}
    assert {"clock.ticks", "clock.interval", "value.structural", "value.order"} <= set(result.judged)


RARE = {
    **dict.fromkeys(unusual_fmus.UNUSUAL, unusual_fmus.contents),
    **dict.fromkeys(rare_ball_variants.ODD, rare_ball_variants.contents),
}  # fmt: skip
BY_DAY = {"nothing but the time"}


@pytest.mark.parametrize("name", [pytest.param(name, marks=() if name in BY_DAY else NIGHT) for name in RARE])
def test_right_though_unusual(name: str, tmp_path: Path) -> None:
    result = audit(ball.pack(RARE[name](name), tmp_path / "unusual.fmu"), run_checkers=False, effort=10.0)
    assert [str(each) for each in result.findings if each.severity == "error"] == []
    assert result.faults == ()


def test_stiff_states_at_the_end_of_a_ramp_raise_no_alarm(tmp_path: Path) -> None:
    """A mass that follows its spring in 0.2 ms: its speed is the ramp's at the end of a step of 10 ms.

    Where sixteen steps hold the input, it stands still at the end of each: both are right.
    """
    q, u, force = me.dynamicsymbols("q u force")
    m, k, d = sm.symbols("m k d")
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    P = O.locatenew("P", q * N.x)
    P.set_vel(N, u * N.x)
    parts = Parts(
        frame=N,
        origin=O,
        q=[q],
        u=[u],
        kinematic_equations=[u - q.diff()],
        bodies=[me.Particle("bob", P, m)],
        loads=[me.Force(P, (force - k * q - d * u) * N.x)],
    )
    model = Model("Stiff", parts)
    model.parameter(m, 1e-8, "kg")
    model.parameter(k, 1.0, "N/m")
    model.parameter(d, 2e-4, "N.s/m")
    model.input(force, 0.0, "N")
    model.coordinate(q, 0.0, "m")
    model.speed(u, 0.0, "m/s")
    model.experiment(stop=1.0, step=0.01)
    path = pipeline.export(model, tmp_path).path
    result = audit(path, only=["steps.input_derivatives"], run_checkers=False)
    assert [str(each) for each in result.findings] == []
    assert "CoSimulation: inputs with slopes" in result.tried


@pytest.mark.usefixtures("started_supervisors")
def test_modules_of_the_working_folder_are_not_taken_for_the_library(
    base: Base, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A user may have a platform.py beside the unit."""
    for name in ("platform", "json", "secrets"):
        (tmp_path / f"{name}.py").write_text('raise RuntimeError("taken from the working folder")\n')
    monkeypatch.chdir(tmp_path)
    result = audit(ball.pack(base("cart2"), tmp_path / "cart.fmu"), only=["life.load"], run_checkers=True)
    assert (result.findings, result.faults) == ((), ())
    assert "life.load" in result.judged
    assert result.consulted


def test_what_pythonfmu_does_is_reported(base: Base, tmp_path: Path) -> None:
    """Our description of these FMUs is right; what is found is pythonfmu's C++ side, and true."""
    reported = {"life.token", "host.path", "state.free"}
    asked = (*reported, "variables.*", "structure.*", "units.*", "dependencies.*", "value.*")
    result = audit(ball.pack(base("python"), tmp_path / "pendulum.fmu"), only=asked, run_checkers=False)
    assert {each.rule for each in result.findings} == reported


def test_fmus_that_cannot_be_run_are_read(tmp_path: Path) -> None:
    """A clock, clocked variables and Scheduled Execution: sources only."""
    text = CLOCKED.encode()
    members = {"modelDescription.xml": text, "sources/a.c": b"", "sources/buildDescription.xml": BUILD.encode()}
    result = audit(ball.pack(members, tmp_path / "clocked.fmu"), run_checkers=False)
    assert [str(each) for each in result.findings if each.severity == "error"] == []
    assert any("ScheduledExecution" in reason for reason in result.skipped)


BUILD = """<fmiBuildDescription fmiVersion="3.0"><BuildConfiguration modelIdentifier="clocked">
<SourceFileSet><SourceFile name="a.c"/></SourceFileSet></BuildConfiguration></fmiBuildDescription>"""
CLOCKED = """<?xml version="1.0" encoding="UTF-8"?>
<fmiModelDescription fmiVersion="3.0" modelName="clocked" instantiationToken="{1}">
<ScheduledExecution modelIdentifier="clocked"/>
<ModelVariables>
<Float64 name="time" valueReference="0" causality="independent"/>
<Clock name="tick" valueReference="1" causality="input" intervalVariability="constant" intervalDecimal="0.1"/>
<Float64 name="u" valueReference="2" causality="input" variability="discrete" clocks="1" start="0"/>
<Float64 name="x" valueReference="3" causality="local" variability="discrete" clocks="1" previous="4" initial="calculated"/>
<Float64 name="pre(x)" valueReference="4" causality="local" variability="discrete" clocks="1" initial="exact" start="0"/>
<Float64 name="y" valueReference="5" causality="output" variability="discrete" clocks="1" initial="calculated"/>
<UInt64 name="n" valueReference="6" causality="structuralParameter" variability="fixed" start="3"/>
<Float64 name="table" valueReference="7" causality="parameter" variability="fixed" start="1 2 3"><Dimension valueReference="6"/></Float64>
</ModelVariables>
<ModelStructure>
<Output valueReference="5" dependencies="2 4"/>
<ClockedState valueReference="3" dependencies="2 4"/>
</ModelStructure>
</fmiModelDescription>
"""
