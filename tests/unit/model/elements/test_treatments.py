"""Elements in a mechanism with a loop: every formulation and every treatment of constraints gives one motion."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

import numpy as np
import pytest
from representatives import by_night

from mb2fmu import (
    Backlash,
    Brake,
    Clutch,
    Contact,
    CoulombFriction,
    Drag,
    HardStop,
    Model,
    OneWayClutch,
    PlaneSurface,
    SpringDamper,
    derive,
    load,
)
from mb2fmu.compiler.evaluation import make_evaluator
from mb2fmu.compiler.events import convert_switches_to_modes, list_program_switches

CRANK_SLIDER = Path(__file__).parents[4] / "models" / "crank_slider.py"
WAYS = [("attractor", "tmt"), ("explicit", "kane"), ("multipliers", "lagrange"), ("partition", "recursive-composite")]


BY_DAY = ("brake", "stops")
"""What sticks, and what switches; by night one of each element."""


def machine(names: Collection[str]) -> Model:
    """A crank-slider with elements; without names with one of each."""
    model = load(CRANK_SLIDER)
    parts = model.mechanics
    N, O = parts.frame, parts.origin
    wheel, piston, rod = parts.bodies
    A, B, pin, crank = wheel.frame, rod.frame, piston.masscenter, parts.q[0]
    wall = O.locatenew("wall", 0.178 * N.x)
    wall.set_vel(N, 0)
    for element in (
        CoulombFriction("guide", (O, pin, N.x), kinetic=5.0, static=6.0, stribeck=0.2),
        Clutch("clutch", (A, B, N.z), capacity=4.0, engagement=0.5),
        Brake("brake", (None, A, N.z), capacity=3.0, engagement=1.0),
        OneWayClutch("freewheel", (A, B, N.z), capacity=8.0),
        HardStop("stops", (O, pin, N.x), stiffness=1e4, damping=30.0, lower=0.1, upper=0.17),
        Backlash("gear", (None, A, N.z), stiffness=200.0, damping=1.0, play=0.1, position=crank),
        Contact("wall", piston, PlaneSurface(wall, -N.x), stiffness=1e5, dissipation=0.1),
        Drag("air", pin, area=0.01, coefficient=1.0),
        SpringDamper("spring", (O, pin), stiffness=100.0, damping=2.0, rest=0.15),
    ):
        if not names or element.name in names:
            model.add(element)
    return model


def consistent(angle: float, speed: float) -> dict[str, float]:
    """All coordinates and speeds at an angle and speed of the crank."""
    r, length = 0.05, 0.15
    coupler = -np.arcsin(r * np.sin(angle) / length)
    nu = -speed * r * np.cos(angle) / (length * np.cos(coupler))
    v = -r * np.sin(angle) * speed - length * np.sin(coupler) * nu
    slider = r * np.cos(angle) + length * np.cos(coupler)
    return {"crank": angle, "coupler": coupler, "slider": slider, "omega": speed, "nu": nu, "v": v}


@pytest.fixture(scope="module")
def moved():
    """(rate of omega, margins) of a way, in the modes of a state, or with the brake held."""
    known = {}

    def of(
        way: tuple[str, str], names: Collection[str], angle: float, speed: float, *, held: bool
    ) -> tuple[float, list[float]]:
        if (way, names) not in known:
            derivation = derive(machine(names), constraints=way[0], method=way[1])
            program = convert_switches_to_modes(derivation.program)
            values = {str(p.symbol): p.value for p in derivation.definition.parameters}
            values |= {p.name: p.value for p in derivation.definition.parameters}
            known[way, names] = program, [values[name] for name in program.layout.parameters]
        program, p = known[way, names]
        place = consistent(angle, speed)
        x, m = [place[name] for name in program.layout.states], np.zeros(len(program.layout.memory))
        at = (0.0, x, (0.0, 0.0), p, m)
        m[[switch.memory for switch in list_program_switches(program)]] = (
            1.0  # else all would be held, by one degree of freedom
        )
        for _ in range(3):  # what one looks at may depend on others
            s = make_evaluator(program, "surfaces")(*at)
            for k, switch in enumerate(list_program_switches(program)):
                sticks = switch.kind == "sticking"
                m[switch.memory] = np.sign(s[k]) if sticks else float(s[k] > 0.0)
                if held and sticks and switch.name in {"omega", "brake.slip"}:
                    m[switch.memory] = 0.0
        rates = dict(zip(program.entries["rhs"].labels, make_evaluator(program, "rhs")(*at), strict=True))
        return rates["omega"], sorted(make_evaluator(program, "indicators")(*at))

    return of


@pytest.mark.parametrize(("way", "names"), [(WAYS[3], BY_DAY), *by_night(*((way, ()) for way in WAYS[1:]))])
def test_every_way_gives_the_same_rates_and_margins(moved, way, names):
    for angle, speed, held in ((0.8, 30.0, False), (0.2, -12.0, False), (2.4, 7.0, False), (0.3, 0.5, True)):
        wanted, margins = moved(WAYS[0], names, angle, speed, held=held)
        found, others = moved(way, names, angle, speed, held=held)
        assert abs(wanted) < 1e-9 if held else abs(wanted) > 1.0
        assert found == pytest.approx(wanted, rel=1e-9, abs=1e-9)
        assert others == pytest.approx(margins, rel=1e-9, abs=1e-9)
