"""What is saved in mid-stick goes on with the same bits; a thousand impacts have the same bits everywhere."""

from __future__ import annotations

import ctypes as c
import re
import struct
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import sympy as sm
import sympy.physics.mechanics as me
from native.driver import hosting
from native.driver.units import Unit as Made
from native.driver.units import described, unit
from native.fmi import CS, ME, OK, EventInfo, Unit, bits, load

from mb2fmu import Impact, Model
from mb2fmu.fmu.toolchain import host_platform
from mb2fmu.fmu.toolchain.target_platforms import AARCH64_LINUX, X86_64_WINDOWS

# --- saved while friction holds --------------------------------------------------------------------------------------


@pytest.fixture(scope="module", params=[2, 3], ids=["fmi2", "fmi3"])
def belt(request, tmp_path_factory):
    made = unit("stick_slip_belt", request.param)
    library = made.library(host_platform(), tmp_path_factory.mktemp("belt"))
    return made, load(library)


def begun(belt, kind: int) -> Unit:
    made, library = belt
    instance = Unit(library, made.fmi, kind).instantiate(token=made.token.encode())
    if kind == CS:
        return instance.start(tolerance=1e-8)
    assert instance.enter(tolerance=1e-8) == OK
    assert instance.call("ExitInitializationMode") == OK
    settle(instance)
    return instance


def settle(instance: Unit) -> None:
    """The event iteration, then continuous time."""
    if instance.fmi == 2:
        found = EventInfo(needed=1)
        while found.needed:
            assert instance.call("NewDiscreteStates", c.byref(found)) == OK
    else:
        flags, instant = [c.c_bool(1) for _ in range(5)], c.c_double()
        while flags[0].value:
            assert instance.call("UpdateDiscreteStates", *map(c.byref, flags), c.byref(instant)) == OK
    assert instance.call("EnterContinuousTimeMode") == OK


class Walk:
    """Model Exchange by Heun's method: events at the end of the step in which an indicator changes its sign."""

    def __init__(self, instance: Unit, time: float) -> None:
        self.instance, self.time = instance, time

    def vector(self, name: str, n: int) -> np.ndarray:
        status, values = self.instance.vector(name, n)
        assert status == OK
        return np.array(values)

    def slopes(self, time: float, x: np.ndarray) -> np.ndarray:
        one = self.instance
        assert one.call("SetTime", c.c_double(time)) == OK
        values = (c.c_double * len(x))(*x)
        assert one.call("SetContinuousStates", values, c.c_size_t(len(x))) == OK
        return self.vector("GetDerivatives" if one.fmi == 2 else "GetContinuousStateDerivatives", len(x))

    def step(self, size: float) -> None:
        one, x = self.instance, self.vector("GetContinuousStates", 2)
        before = self.vector("GetEventIndicators", 1)
        k1 = self.slopes(self.time, x)
        k2 = self.slopes(self.time + size, x + size * k1)
        self.time += size
        self.slopes(self.time, x + size * (k1 + k2) / 2)
        flag = c.c_int if one.fmi == 2 else c.c_bool
        event, ends = flag(0), flag(0)
        assert one.call("CompletedIntegratorStep", flag(1), c.byref(event), c.byref(ends)) == OK
        if event.value or np.any(before * self.vector("GetEventIndicators", 1) < 0.0):
            assert one.call("EnterEventMode") == OK
            settle(one)


def gone_on(belt, instance: Unit, kind: int, time: float) -> list[bytes]:
    """All that can be seen over the next 12 s, in which it is torn off and sticks again."""
    everything = [reference for name, reference in belt[0].references.items() if "solver" not in name]
    seen = []
    walk = Walk(instance, time)
    for _ in range(48 if kind == CS else 400):
        if kind == CS:
            assert instance.step(walk.time, 0.25) == OK
            walk.time += 0.25
        else:
            walk.step(0.03)
        seen.append(bits(instance.get(*everything)[1]))
    return seen


@pytest.mark.parametrize("kind", [ME, CS], ids=["me", "cs"])
def test_what_is_saved_in_mid_stick_goes_on_with_the_same_bits(belt, kind):
    """In the same instance, in another one, and from bytes. With its mode lost it would slip on, as is shown last."""
    made, _ = belt
    instance = begun(belt, kind)
    walk = Walk(instance, 0.0)
    if kind == CS:
        assert instance.step(0.0, 11.0) == OK  # torn off at 5 s, it sticks again from 8.9 s to 13.9 s
        walk.time = 11.0
    while walk.time < 11.0:
        walk.step(0.03)
    mode = made.references["mode[1]"]
    assert instance.value(mode) == 0.0
    state, data = instance.get_state(), instance.saved()
    first = gone_on(belt, instance, kind, walk.time)
    assert instance.set_state(state) == OK
    assert instance.value(mode) == 0.0
    assert gone_on(belt, instance, kind, walk.time) == first
    for put in (lambda other: other.set_state(state), lambda other: other.restore(data)):
        other = begun(belt, kind)
        assert put(other) == OK
        assert gone_on(belt, other, kind, walk.time) == first
    column = sorted(v for name, v in made.references.items() if "solver" not in name).index(mode)
    modes = {struct.unpack_from("d", one, 8 * column)[0] for one in first}
    assert modes == {0.0, -1.0}


# --- a thousand impacts ----------------------------------------------------------------------------------------------


@cache
def thrown(fmi: int) -> Made:
    """A ball on a table that shakes: chaotic, so that no bit is lost unseen; it comes to no rest."""
    t = me.dynamicsymbols._t
    h, v = me.dynamicsymbols("h v")
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    P = O.locatenew("P", h * N.y)
    P.set_vel(N, v * N.y)
    ball = me.Particle("ball", P, 1)
    kane = me.KanesMethod(N, [h], [v], [h.diff() - v], bodies=[ball], forcelist=[(P, -sm.Float(9.81) * N.y)])
    model = Model("Thrown", kane)
    model.coordinate(h, 0.5, "m")
    model.speed(v, 0.0, "m/s")
    model.add(Impact("table", h - sm.sin(12 * t) / 10, restitution=0.8, rest_below=1e-3))
    model.experiment(stop=600.0, step=1.0, tolerance=1e-6)
    return described(model, fmi)


@pytest.mark.parametrize("platform", [X86_64_WINDOWS, AARCH64_LINUX], ids=str)
def test_a_thousand_impacts_have_the_same_bits(platform, tmp_path: Path):
    made = thrown(3)
    reason = hosting.missing(platform)
    if reason:
        pytest.skip(reason)
    names = ["h", "v", "table.impulse", "table.impacts"]
    values = " ".join(str(made.references[name]) for name in names)
    script = f"instantiate\nenter 0 - 1e-6\nleave\nstep 1 600\nget {values}\nterminate\nfree\n"
    said = []
    for number, each in enumerate((host_platform(), platform)):
        folder = tmp_path / f"{number}"
        done = hosting.run(each, made.library(each, folder), made.fmi, "cs", made.token, script)
        assert done.returncode == 0, done.stdout + done.stderr
        assert not re.search(r"^[a-z]+ -?[0-9]$", done.stdout, re.MULTILINE), done.stdout + done.stderr  # a status
        said.append(done.stdout)
    assert said[0] == said[1]
    seen = dict(zip(names, (struct.unpack(">d", bytes.fromhex(w))[0] for w in said[0].split()[1:]), strict=True))
    assert seen["table.impacts"] >= 1000
    assert 0.0 < abs(seen["h"]) < 10.0
