"""The Modelica target: another compiler reads it and moves as the equations do; what it cannot say is refused."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st
from representatives import by_night

from mb2fmu import pipeline
from mb2fmu.cli import commands
from mb2fmu.pipeline.derivation.event_requirements import needs_event_handling
from mb2fmu.pipeline.fmu_build.target_source_export import TARGET_PRINTERS, form_native_fmi3_interface
from mb2fmu.pipeline.system_runs.monolithic_model_simulation import simulate_monolithic_model
from mb2fmu.targets.modelica.modelica_file import make_modelica_identifiers
from mb2fmu.targets.modelica.modelica_printing import format_modelica_number

MODELS = Path(__file__).parents[3] / "models"
ALL = sorted(MODELS.glob("*.py"))
rumoca = pytest.importorskip("rumoca", reason="the compiler of Modelica that judges is not installed")
pytest.importorskip("pymoca", reason="the reader of Modelica that judges is not installed")
readers = import_module("modelica_readers")

NOT_READ_BY_PYMOCA = {
    "bouncing_ball": "when",
    "clutch_line": "when",
    "driven_crank": "asin",
    "dry_friction_oscillator": "when",
    "sampled_cart_pole": "when",
    "stick_slip_belt": "when",
    "compass_walker": "when",
    "gripper": "when",
    "rocking_block": "when",
    "slider_crank_clearance": "when",
    "simplest_walker": "when",
    "valve_train": "asin",
    "woodpecker": "when",
}
NOT_RUN_BY_RUMOCA = {
    "sampled_cart_pole": "its check of its own steps ends the run",
    "andrews": "its check of its own steps ends the run",
}
STOPS = {
    "gripper": 1.37, "rocking_block": 1.03, "slider_crank_clearance": 0.013, "woodpecker": 0.057, "n_four_bar": 0.7,
}  # fmt: skip
"""In s, of models in which an instant of the usual grid is one of an event, or whose equations become singular."""
CONFIG = {"rtol": 1e-12, "atol": 1e-13}
TIGHTER = {"hexapod": {"rtol": 1e-13, "atol": 1e-14}}
"""Stiff legs: rumoca is 1.3e-8 off with the usual tolerances, 1.3e-9 with these, 1.5e-10 with a tenth of these."""


RESTS = 1e-9
"""A state that stays below this does not move."""


def simulated(source: str, model: str, stop: float = 1.0, config: Mapping[str, float] = CONFIG) -> Any:
    """By rumoca, which sorts the equations, solves them and integrates by methods of its own."""
    compiled = rumoca.Session().loads(source, model=model, filename=f"{model}.mo")
    return compiled.simulate(t=(0.0, stop), dt=0.1 * stop, config=rumoca.SimConfig(**config))


@cache
def moved(path: Path, _text: str, stop: float) -> tuple[pipeline.DerivationResult, Mapping[str, Any]]:
    """What a file of this text is derived to, and how it moves."""
    derivation = pipeline.derive(path)
    return derivation, simulate_monolithic_model(derivation, np.linspace(0.0, stop, 11), 1e-13)


def errors(path: Path, *, planted: tuple[str, str] | None = None, stop: float = 1.0) -> dict[str, float]:
    """Largest error of each state up to ``stop`` s, of its own size, inputs at their start values.

    A state that rests is judged by the largest one of its unit: couplers of parallelograms do not turn.
    """
    derivation, truth = moved(path, path.read_text(encoding="utf-8"), stop)
    model, source = derivation.definition.name, readers.source_of(derivation)
    if planted is not None:
        assert planted[0] in source
        source = source.replace(*planted, 1)
    held = f"model {model}Held" in source
    found = simulated(source, f"{model}{'Held' if held else ''}", stop, TIGHTER.get(path.stem, CONFIG))
    # Instants of events stand twice, and not on the grid.
    tenths = np.asarray(found.time) / (0.1 * stop)
    last = {round(t): k for k, t in enumerate(tenths.tolist()) if abs(t - round(t)) < 1e-9}
    states = readers.states_in(source)
    described_states = sorted(
        form_native_fmi3_interface(derivation).variables_from_sources("state"), key=lambda v: v.index
    )
    owns = [v.name for v in described_states]
    # rumoca iterates no event at the start itself, but just behind it.
    first = 1 if "discrete Real stage" in source else 0
    rows, found_as = [last[k] for k in range(first, 11)], "unit.{}" if held else "{}"
    # What friction adds to an impulse is nothing beside a larger one of the normal.
    sizes = {own: np.max(np.abs(truth[own.replace("impulse_along", "impulse")])) for own in owns}
    units = {v.name: v.unit for v in described_states}
    for own in [each for each in owns if sizes[each] < RESTS]:
        sizes[own] = max(sizes[other] for other in owns if units[other] == units[own])
    return {
        own: float(
            np.max(np.abs(np.array(found[found_as.format(shown)])[rows] - truth[own][first:])) / max(sizes[own], 1e-3)
        )
        for own, shown in zip(owns, states, strict=True)
    }


@pytest.mark.parametrize(
    "name", ["bowl", *by_night("cart_pole", "four_bar", "double_pendulum", "heavy_top", "rigid_body")]
)
def test_another_compiler_moves_alike(name: str) -> None:
    """Linear systems, and closed loops as equations in multipliers."""
    assert max(errors(MODELS / f"{name}.py").values()) <= 1e-8


def test_a_planted_sign_is_seen() -> None:
    path = MODELS / "cart_pole.py"
    assert max(errors(path, planted=("der(theta) = ", "der(theta) = -")).values()) > 1e-3
    derivation = pipeline.derive(path)
    source = readers.source_of(derivation)
    assert readers.pymoca_error(derivation, source.replace("der(theta) = ", "der(theta) = -", 1), 0) > 1e-3


def test_events_are_clauses() -> None:
    """A ball that bounces: when and reinit."""
    assert max(errors(MODELS / "bouncing_ball.py").values()) <= 1e-6


@pytest.mark.parametrize(
    ("name", "stop"),
    [("dry_friction_oscillator", 3.0), ("stick_slip_belt", 14.0), *by_night(("clutch_line", 1.5))],
)
def test_friction_that_sticks_has_modes(name: str, stop: float) -> None:
    """It comes to rest for ever, is held and let go in turn, and locks a line of three clutches."""
    assert max(errors(MODELS / f"{name}.py", stop=stop).values()) <= 1e-6


def test_a_friction_that_others_drive_back_is_held_again(tmp_path: Path) -> None:
    """Both hinges are let go, and one slips against its own acceleration: without a trial the event never ends."""
    path = tmp_path / "arm.py"
    path.write_text(
        "from dry_hinges import arm\n\nfrom mb2fmu import Model\n\n\n"
        "def released() -> Model:\n    return arm(0.0587, 0.0749)\n"
    )
    assert "again > 0.5 then -1.0" in readers.source_of(pipeline.derive(path))
    assert max(errors(path, stop=0.05).values()) <= 1e-6


@pytest.mark.parametrize("name", ["rocking_block", *by_night("gripper", "slider_crank_clearance")])
def test_latches_and_contacts_have_modes(name: str) -> None:
    """Grips, carries and drops; rocks from one edge to the other; strikes, slides and rests in a joint with play."""
    assert max(errors(MODELS / f"{name}.py", stop=STOPS[name]).values()) <= 1e-6


SPARED = "reinit({0}, noEvent(if doing > {1}"


def test_a_speed_that_is_spared_is_seen() -> None:
    """Where a latch closes the motion is another one."""
    planted = (SPARED.format("omega", 2.5), SPARED.format("omega", 9.5))
    assert max(errors(MODELS / "rocking_block.py", planted=planted, stop=1.03).values()) > 1e-3


@pytest.mark.repeats
def test_a_floor_that_stops_nothing_is_struck_again_at_once_for_ever() -> None:
    planted = (SPARED.format("vy", 2.5), SPARED.format("vy", 9.5))
    with pytest.raises(rumoca.SimulationError, match="event update iteration did not converge"):
        errors(MODELS / "gripper.py", planted=planted, stop=1.37)


def test_friction_sticks_beside_events_of_the_models_own(tmp_path: Path) -> None:
    """A mass that has come to rest is kicked at .45 s."""
    path = tmp_path / "stuck.py"
    path.write_text(KICKED.replace("-x * N.x", "(-x - 1.5 * sm.sign(v)) * N.x").replace("x, 1.0", "x, 1.2"))
    assert max(errors(path).values()) <= 1e-6
    assert max(errors(path, planted=("0.45 - time", "0.55 - time")).values()) > 1e-2


@pytest.mark.parametrize("friction", [" - 0.01 * sm.sign(v)", *by_night("")])
def test_a_counter_that_is_set_upon_its_limit_has_reached_it(tmp_path: Path, friction: str) -> None:
    """As the mass turns for the first time: pulled harder from there on. Friction holds it just there, for an instant.

    Motion comes to v = 0, and goes on: v >= 0 becomes true once.
    """
    path = tmp_path / "counted.py"
    path.write_text(COUNTED.replace("FRICTION", friction))
    assert max(errors(path, stop=3.0).values()) <= 1e-6


def test_a_planted_friction_is_seen() -> None:
    """Nine tenths of it while it slips: it comes to rest elsewhere."""
    planted = ("else pre(mode1))", "else 0.9 * pre(mode1))")
    assert max(errors(MODELS / "dry_friction_oscillator.py", planted=planted, stop=3.0).values()) > 1e-3


def test_samples_and_tables(tmp_path: Path) -> None:
    """A held control of a sampled place, and a spring of tabulated force, move as the FMU does."""
    path = tmp_path / "held.py"
    path.write_text(SAMPLED)
    text = readers.source_of(pipeline.derive(path))
    assert "when sample(0.05, 0.1) then" in text
    assert "function table1" in text
    assert max(errors(path).values()) <= 1e-6
    assert max(errors(path, planted=("sample(0.05,", "sample(0.04,")).values()) > 1e-4


def test_an_event_at_one_instant_is_a_clause(tmp_path: Path) -> None:
    path = tmp_path / "kicked.py"
    path.write_text(KICKED)
    assert max(errors(path).values()) <= 1e-6
    assert max(errors(path, planted=("when time > 0.45 then", "when time > 0.55 then")).values()) > 1e-2
    path.write_text(KICKED.replace("once(0.45", "once(0"))  # rumoca reads no clause that sets what it reads at 0
    assert "when sample(0.0, " in readers.source_of(pipeline.derive(path))


@pytest.mark.parametrize("name", ["muscle_arm", *by_night("cart_pole", "four_bar")])
def test_another_reader_has_the_same_rates(name: str) -> None:
    """pymoca's residuals at random states, by a Newton step that includes its algebraic equations."""
    derivation = pipeline.derive(MODELS / f"{name}.py")
    source = readers.source_of(derivation)
    assert max(readers.pymoca_error(derivation, source, seed) for seed in range(3)) <= 1e-12


@pytest.mark.repeats
@pytest.mark.parametrize("path", ALL, ids=lambda path: path.stem)
def test_every_model_is_read_by_others(path: Path) -> None:
    """Or the reason why not is the one that the documentation says."""
    derivation, name = pipeline.derive(path), path.stem
    if name not in NOT_READ_BY_PYMOCA:
        assert readers.pymoca_error(derivation, readers.source_of(derivation), 1) <= 1e-12
    if name not in NOT_RUN_BY_RUMOCA:
        bound = 1e-6 if needs_event_handling(derivation) else 1e-8
        assert max(errors(path, stop=STOPS.get(name, 1.0)).values()) <= bound


def test_flanges_carry_power() -> None:
    """The quarter truck's parts, connected at flanges as those of the Modelica Standard Library, move as the whole."""
    folder = MODELS.parent / "systems" / "quarter_truck"
    parts = [TARGET_PRINTERS["modelica"](pipeline.derive(folder / f"{name}.py")) for name in ("body", "axle")]
    text = "\n".join(files[path].decode() for files in parts for path in files)
    found = simulated(FLANGE + text + TRUCK, "Truck")
    truth = simulate_monolithic_model(pipeline.derive(folder / "whole.py"), np.array(found.time), 1e-13)
    for shown, own in (("body.unit.z", "z_body"), ("axle.unit.z", "z_axle")):
        assert np.max(np.abs(np.array(found[shown]) - truth[own])) <= 1e-10
    assert np.max(np.abs(truth["z_axle"])) > 0.01


def test_what_cannot_be_said_is_reported_before_anything_is_written(tmp_path: Path) -> None:
    path = tmp_path / "smooth.py"
    path.write_text(KICKED.replace("-x * N.x", "-sm.erf(x) * N.x"))
    done = CliRunner().invoke(commands, ["export", str(path), "--modelica", "-o", str(tmp_path / "out")])
    assert done.exit_code not in {0, 1}
    assert "Modelica has no function erf" in done.output
    assert not list(tmp_path.rglob("*.fmu"))


def test_export_writes_the_model_beside_the_fmu(tmp_path: Path) -> None:
    command = ["export", str(MODELS / "cart_pole.py"), "--modelica", "-o", str(tmp_path)]
    done = CliRunner().invoke(commands, command)
    assert done.exit_code == 0, done.output
    assert {path.name for path in tmp_path.iterdir()} == {"CartPole.fmu", "CartPole.mo", "CartPoleFlanges.mo"}
    assert "unit.force = flange1.f;" in (tmp_path / "CartPoleFlanges.mo").read_text()


def test_the_command_writes_the_file(tmp_path: Path) -> None:
    command = ["equations", str(MODELS / "cart_pole.py"), "--format", "modelica", "-o", str(tmp_path)]
    done = CliRunner().invoke(commands, command)
    assert done.exit_code == 0, done.output
    text = (tmp_path / "CartPole.mo").read_text()
    assert 'parameter Real M(quantity = "Mass", unit = "kg", min = 1e-06) = 1.0 "mass of the cart";' in text
    assert 'Real theta(quantity = "Angle", unit = "rad", start = 0.1, fixed = true' in text
    assert "experiment(StartTime = 0.0" in text


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_numbers_read_back_to_the_same_bits(value: float) -> None:
    assert float(format_modelica_number(value).strip("()")).hex() == value.hex()


@given(st.lists(st.text(max_size=8), max_size=8, unique=True))
def test_names_are_identifiers_and_each_stands_once(names: list[str]) -> None:
    found = make_modelica_identifiers(["der", "v12", "bob.x", "bob_x", *names])
    assert len(set(found)) == len(found)
    assert all(re.fullmatch(r"[A-Za-z_]\w*", each, flags=re.ASCII) for each in found)
    assert not {"der", "v12"} & set(found)


FLANGE = """package Modelica
  package Mechanics
    package Translational
      package Interfaces
        connector Flange_b
          Real s;
          flow Real f;
        end Flange_b;
      end Interfaces;
    end Translational;
  end Mechanics;
end Modelica;
"""
TRUCK = """
model Truck
  TruckBodyFlanges body;
  TruckAxleFlanges axle;
equation
  connect(body.flange1, axle.flange1);
end Truck;
"""
KICKED = """
import sympy as sm
import sympy.physics.mechanics as me
from mb2fmu import Model, pre


def kicked() -> Model:
    x, v = me.dynamicsymbols("x v")
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    P = O.locatenew("P", x * N.x)
    P.set_vel(N, v * N.x)
    kane = me.KanesMethod(N, [x], [v], [x.diff() - v], bodies=[me.Particle("mass", P, 1)], forcelist=[(P, -x * N.x)])
    model = Model("Kicked", kane)
    model.coordinate(x, 1.0, "m")
    model.speed(v, 0.0, "m/s")
    model.once(0.45, {v: 1 - pre(v)}, name="kick")
    model.experiment(stop=1.0, step=0.05, tolerance=1e-10)
    return model
"""

COUNTED = """
import sympy as sm
import sympy.physics.mechanics as me
from mb2fmu import Model, pre


def counted() -> Model:
    x, v, n, turned = me.dynamicsymbols("x v n turned")
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    P = O.locatenew("P", x * N.x)
    P.set_vel(N, v * N.x)
    force = (P, (-(9 + turned) * xFRICTION) * N.x)
    kane = me.KanesMethod(N, [x], [v], [x.diff() - v], bodies=[me.Particle("mass", P, 1)], forcelist=[force])
    model = Model("Counted", kane)
    model.coordinate(x, 1.0, "m")
    model.speed(v, 0.0, "m/s")
    model.discrete(n, 0.0)
    model.discrete(turned, 0.0)
    model.when(v >= 0, {n: pre(n) + 1})
    model.when(n >= 1, {turned: 1})
    model.experiment(stop=3.0, step=0.05, tolerance=1e-10)
    return model
"""

SAMPLED = """
import sympy as sm
import sympy.physics.mechanics as me

from mb2fmu import Model
from mb2fmu.model.supported_functions import LookupTable


def held() -> Model:
    x, v, force = me.dynamicsymbols("x v force")
    m = sm.Symbol("m")
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    P = O.locatenew("P", x * N.x)
    P.set_vel(N, v * N.x)
    spring = LookupTable("spring", [-2.0, -0.5, 0.5, 2.0], [-8.0, -1.0, 1.0, 8.0], kind="cubic")
    loads = [(P, (force - spring(x)) * N.x)]
    kane = me.KanesMethod(N, [x], [v], [x.diff() - v], bodies=[me.Particle("P", P, m)], forcelist=loads)
    model = Model("Held", kane)
    model.parameter(m, 1.0, "kg")
    model.coordinate(x, 1.0, "m")
    model.speed(v, 0.0, "m/s")
    model.discrete(force, 0.0, "N")
    model.every(0.1, {force: -2 * v}, offset=0.05)
    model.experiment(stop=1.0, step=0.1, tolerance=1e-11)
    return model
"""
