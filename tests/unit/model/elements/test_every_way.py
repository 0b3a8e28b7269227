"""Elements by formulations and treatments of constraints: one table of what holds, and of what is refused and how.

A crank-slider carries one of each element. In every way of forming its equations the rate of the crank, and every
force, impulse and mode of each element, are those of the TMT method with the attractor. That one itself is compared
with laws and momenta by hand, element by element, in the other tests of this folder (``test_element_laws``,
``test_impact``, ``test_latch``, ``test_contact``, ``test_contact_friction``).
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import sympy as sm
import sympy.physics.mechanics as me
from representatives import by_night

from mb2fmu import (
    Backlash,
    Brake,
    Clutch,
    Contact,
    CoulombFriction,
    HardStop,
    Impact,
    Latch,
    Model,
    OneWayClutch,
    Parts,
    PlaneSurface,
    derive,
    load,
)
from mb2fmu.compiler.evaluation import make_evaluator
from mb2fmu.errors import Mb2FmuError

CRANK_SLIDER = Path(__file__).parents[4] / "models" / "crank_slider.py"
METHODS = ("kane", "tmt", "lagrange", "recursive-composite", "recursive", "recursive-articulated")
TREATMENTS = ("attractor", "explicit", "multipliers", "partition")
PLAIN = ("tmt", "attractor")
REFUSED = {"recursive-articulated": "velocity constraints need the mass matrix: recursive-composite gives it"}
"""Formulations that a mechanism with a loop has not, and a part of the message; on trees that one is compared with
another in ``test_impact``."""

R, LENGTH, AHEAD = 0.05, 0.15, 1e-12


def with_forces() -> Model:
    """One of each element that acts by a force alone."""
    model = load(CRANK_SLIDER)
    parts = model.mechanics
    N, O = parts.frame, parts.origin
    wheel, piston, rod = parts.bodies
    pin, crank = piston.masscenter, parts.q[0]
    wall = O.locatenew("wall", 0.17 * N.x)
    wall.set_vel(N, 0)
    ground = O.locatenew("ground", -0.001 * N.y)
    ground.set_vel(N, 0)
    axle = (wheel.frame, rod.frame, N.z)
    for element in (
        CoulombFriction("guide", (O, pin, N.x), kinetic=5.0, static=6.0, stribeck=0.2),
        Clutch("clutch", axle, capacity=4.0, engagement=0.5),
        Brake("brake", (None, wheel.frame, N.z), capacity=3.0, engagement=1.0),
        OneWayClutch("freewheel", axle, capacity=8.0),
        HardStop("stops", (O, pin, N.x), stiffness=1e4, damping=30.0, lower=0.12, upper=0.165),
        Backlash("gear", (None, wheel.frame, N.z), stiffness=200.0, damping=1.0, play=0.1, position=crank),
        Contact("wall", piston, PlaneSurface(wall, -N.x), stiffness=1e5, dissipation=0.1),
        Contact(
            "creeping", piston, PlaneSurface(ground, N.y), radius=0.002, stiffness=1e4, kinetic=0.4, slip_speed=0.01
        ),
        Contact(
            "bristles",
            piston,
            PlaneSurface(ground, N.y),
            radius=0.002,
            stiffness=1e4,
            kinetic=0.4,
            slip_speed=0.01,
            presliding=1e-3,
        ),
        Contact("rubbing", piston, PlaneSurface(ground, N.y), radius=0.002, stiffness=1e4, kinetic=0.3, plane=N.z),
    ):
        model.add(element)
    return model


def with_blows() -> Model:
    """A wall, a rigid stop and a latch; the wall and the latch are just reached at the crank's angle 0.9."""
    model = load(CRANK_SLIDER)
    parts = model.mechanics
    slider, pin = parts.q[2], parts.bodies[1].masscenter
    at = place(0.9, -30.0)["slider"]
    model.add(Impact("wall", at - AHEAD - slider, restitution=0.4))
    model.add(HardStop("stops", (parts.origin, pin, parts.frame.x), restitution=0.3, lower=0.02, upper=at - 2 * AHEAD))
    model.add(Latch("catch", slider - at, close=slider >= at - AHEAD, within=None))
    return model


def with_rough_blows() -> Model:
    """A crank-slider whose pin moves across its way, too: two freedoms; it strikes a wall, and slides along it."""
    q = crank, coupler, lift, slider = me.dynamicsymbols("crank coupler lift slider")
    u = omega, nu, w, v = me.dynamicsymbols("omega nu w v")
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    A, B = (N.orientnew(name, "Axis", (angle, N.z)) for name, angle in (("A", crank), ("B", coupler)))
    A.set_ang_vel(N, omega * N.z)
    B.set_ang_vel(N, nu * N.z)
    tip = O.locatenew("tip", R * A.x)
    end = tip.locatenew("end", LENGTH * B.x)
    pin = O.locatenew("pin", slider * N.x + lift * N.y)
    pin.set_vel(N, v * N.x + w * N.y)
    wheel = me.RigidBody("wheel", O, A, 8, (me.inertia(A, 0, 0, sm.Float(0.05)), O))
    loop = end.pos_from(pin)
    rows = (loop.dot(N.x), loop.dot(N.y))
    parts = Parts(
        frame=N, origin=O, q=q, u=u, bodies=(wheel, me.Particle("piston", pin, sm.Float(0.5))),
        kinematic_equations=tuple(speed - place.diff() for place, speed in zip(q, u, strict=True)),
        loads=((pin, -30 * N.x - 200 * lift * N.y),), holonomic_constraints=rows,
        q_dependent=(coupler, slider), u_dependent=(nu, v),
    )  # fmt: skip
    model = Model("Lifted", parts)
    start = place(0.9, -30.0)
    for symbol in q:
        model.coordinate(symbol, start[symbol.name], kind="guess" if symbol in {coupler, slider} else "fixed")
    for symbol in u:
        model.speed(symbol, start[symbol.name], kind="guess" if symbol in {nu, v} else "fixed")
    gap = start["slider"] - AHEAD - slider
    model.add(Impact("wall", gap, slip=w, friction=0.3, restitution=0.4, law="poisson"))
    model.experiment(stop=1.0, step=0.1)
    return model


MACHINES: dict[str, Callable[[], Model]] = {
    "forces": with_forces, "blows": with_blows, "rough blows": with_rough_blows,
}  # fmt: skip
ELEMENTS = {
    "forces": ("guide", "clutch", "brake", "freewheel", "stops", "gear", "wall", "creeping", "rubbing"),
    "blows": ("wall", "stops_lower_stop", "stops_upper_stop", "catch"),
    "rough blows": ("wall",),
}
PLACES: dict[str, list[tuple[float, float, dict[str, float]]]] = {
    "forces": [(0.8, 30.0, {}), (0.2, -12.0, {}), (2.4, 7.0, {}), (5.0, 3.0, {})],
    "blows": [
        (0.9, -30.0, {}),
        (0.9, -30.0, {"wall_resting": 1.0}),
        (2.0, 4.0, {"catch_engaged": 1.0}),
        (2.0, 4.0, {"stops_lower_stop_resting": 1.0}),
        (1.2, -4.0, {"stops_upper_stop_resting": 1.0}),
        (2.0, 4.0, {}),
    ],
    "rough blows": [
        (0.9, -30.0, {}),
        (0.9, -30.0, {"w": 0.3}),
        (0.9, -0.4, {"wall_resting": 1.0, "wall_sliding": 1.0, "w": 0.2}),
        (0.9, -0.4, {"wall_resting": 1.0, "wall_sliding": -1.0, "w": -0.2}),
        (0.9, 0.0, {"wall_resting": 1.0}),
    ],
}
"""Angle and speed of the crank, and modes."""


def place(angle: float, speed: float, across: float = 0.0) -> dict[str, float]:
    """All coordinates and speeds at an angle and speed of the crank, and a speed of the pin across its way."""
    coupler = -np.arcsin(R * np.sin(angle) / LENGTH)
    nu = (across - speed * R * np.cos(angle)) / (LENGTH * np.cos(coupler))
    v = -R * np.sin(angle) * speed - LENGTH * np.sin(coupler) * nu
    slider = R * np.cos(angle) + LENGTH * np.cos(coupler)
    found = {"crank": angle, "coupler": coupler, "slider": slider, "lift": 0.0}
    return {**found, "omega": speed, "nu": nu, "v": v, "w": across}


@functools.cache
def seen(machine: str, method: str, treatment: str) -> list[dict[str, float]]:
    """At each place: rates, outputs, and values behind the events there, by name."""
    derivation = derive(MACHINES[machine](), method=method, constraints=treatment)
    program = derivation.program
    known = {str(p.symbol): p.value for p in derivation.definition.parameters}
    known |= {p.name: p.value for p in derivation.definition.parameters}
    known |= {q.name.replace(".", "_"): q.start for q in derivation.definition.quantities if hasattr(q, "start")}
    p = [known[name] for name in program.layout.parameters]
    rows = []
    for angle, speed, modes in PLACES[machine]:
        values = {**known, **place(angle, speed, modes.get("w", 0.0)), **modes}
        x = [values.get(name.replace(".", "_"), 0.0) for name in program.layout.states]
        row = {}
        for entry in ("rhs", "position", "velocity", "acceleration", "resets"):
            if entry in program.entries:
                found = make_evaluator(program, entry)(0.0, x, [0.0] * len(program.layout.inputs), p)
                row |= {
                    f"{'behind ' if entry == 'resets' else ''}{label.rpartition(':')[2].replace('.', '_')}": value
                    for label, value in zip(program.entries[entry].labels, found, strict=True)
                }
        rows.append(row)
    return rows


@pytest.mark.parametrize("machine", ["forces", *by_night("blows", "rough blows")])
def test_every_element_is_at_work_somewhere(machine):
    """Else nothing would be compared."""
    rows = seen(machine, *PLAIN)
    for element in ELEMENTS[machine]:
        forces = [abs(row[name]) for row in rows for name in row if _of(name, element) and _acts(name)]
        assert max(forces) > 1e-3, element


BY_DAY = {
    "forces": ("recursive-composite", "recursive-articulated"),
    "blows": (),
    "rough blows": (),
}
"""Methods by day, each with one treatment; blows are in ``test_impact``, ``test_contact_friction``, ``test_latch``."""


@pytest.mark.parametrize(
    ("machine", "method", "treatment"),
    [
        pytest.param(
            *(machine, method, treatment),
            marks=() if (i - k) % 4 == 0 and method in BY_DAY[machine] else pytest.mark.repeats,
        )
        for machine in MACHINES
        for i, method in enumerate(METHODS)
        for k, treatment in enumerate(TREATMENTS)
        if (method, treatment) != PLAIN
    ],
)
def test_every_way_gives_the_same(machine, method, treatment):
    if method in REFUSED:
        with pytest.raises(Mb2FmuError, match=REFUSED[method]):
            derive(MACHINES[machine](), method=method, constraints=treatment)
        return
    for wanted, found in zip(seen(machine, *PLAIN), seen(machine, method, treatment), strict=True):
        for element in ELEMENTS[machine]:
            ours = {name: value for name, value in found.items() if _of(name, element)}
            assert ours
            assert ours == pytest.approx({name: wanted[name] for name in ours}, rel=1e-9, abs=1e-9)
        moving = {name: found[name] for name in found if name in {"omega", "behind omega"}}
        assert moving == pytest.approx({name: wanted[name] for name in moving}, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize(("method", "treatment"), [PLAIN, *by_night(("kane", "explicit"))])
def test_what_a_latch_locks_moves_on_as_held(method, treatment):
    """No contact can move anything then: its mobility is zero, or less by round-off; its force was no number."""
    row = seen("blows", method, treatment)[2]
    assert np.isfinite(list(row.values())).all()
    assert row["wall_force"] == row["stops_lower_stop_force"] == row["stops_upper_stop_force"] == 0.0


def _of(name: str, element: str) -> bool:
    """Whether a value is an element's."""
    return name.removeprefix("behind ").startswith(f"{element}_")


def _acts(name: str) -> bool:
    """Whether a value is a force, a torque or an impulse."""
    return name.rpartition("_")[2] in {"force", "torque", "impulse", "friction"}
