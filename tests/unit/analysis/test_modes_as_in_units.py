"""Events in numbers (``event_jump_sensitivities.py``) and in FMUs (``events.c``): states agree to the bit."""

from __future__ import annotations

import ctypes
import shutil
from pathlib import Path
from unittest.mock import patch

import lines
import numpy as np
import pytest
import sympy as sm
import sympy.physics.mechanics as me
from compiled_c import MODELS, RUNTIME, bare_interface, compile_library

from mb2fmu import CoulombFriction, Impact, Latch, Model, derive, pre
from mb2fmu.analysis.event_jump_sensitivities import MotionPointWithDerivatives, ProgramEventProcessor
from mb2fmu.compiler.derivatives.derivative_entry_points import add_fmu_derivatives
from mb2fmu.compiler.events import convert_switches_to_modes
from mb2fmu.compiler.program.scalar_program import read_initial_discrete_memory
from mb2fmu.errors import AnalysisError
from mb2fmu.fmu.emit_c import emit_fmu_sources, list_translation_units

HARNESS = """
#include "model_config.h"
#include "elementary.c"
#include "linear_algebra.c"
#include "model.h"
#include "dispatch.c"
#include "events.c"
static mb2fmu_settling settling;
int room(void);
int room(void) { return (int)(sizeof(mb2fmu_prepared) + model_room() * sizeof(double)); }
int events(int first, double t, double x[], const double r[], const double p[], mb2fmu_prepared *w, double memory[]);
int events(int first, double t, double x[], const double r[], const double p[], mb2fmu_prepared *w, double memory[])
{
    double *kept;
    int failed;
    model_start(w, (double *)(void *)(w + 1));
    failed = model_prepare(p, w);
    kept = w->values + MB2FMU_N_CALCULATED;
    memcpy(kept, memory, MB2FMU_N_MEMORY * sizeof(double));
    memset(settling.through, 0, sizeof settling.through);
    failed = failed || !first ? failed : mb2fmu_begin_modes(&settling, t, x, r, p, w);
    failed = failed ? failed : mb2fmu_settle(&settling, t, x, r, p, w, 0.5 * MB2FMU_SLACK, 0, 0);
    memcpy(memory, kept, MB2FMU_N_MEMORY * sizeof(double));
    return failed;
}
"""
FAULTS = (  # a statement of events.c, and what stands in its place
    ("*mode = 1.0 - *mode;", "*mode = 1.0;"),
    ("*mode = floor(s->surface[k]);", "*mode = floor(s->surface[k]) + 1.0;"),
    ("N_INDICATORS + k] > 0.0 ? 1.0 : -1.0;", "N_INDICATORS + k] > 0.0 ? -1.0 : 1.0;"),
    ("fabs(s->surface[j]) <= MB2FMU_HELD", "fabs(s->surface[j]) <= 1.0"),
    ("*mb2fmu_mode(w, i) = 0.0; /* the first may be now */", ";"),
)


def machine() -> Model:
    """Two masses on a line with every kind of switch and event, at whole numbers."""
    model, N, O, (P, Q) = lines.masses(
        "Everything", [(0.0, 0.0)] * 2, lambda x: [sm.Piecewise((-1, x[0] < 1), (2, True)), -x[1]]
    )
    x, u, y, v = (item.symbol for item in model.declared)
    held, count = (sm.Function(name)(lines.t) for name in ("held", "count"))
    model.discrete(held, 0.0)
    model.discrete(count, 0.0)
    model.add(CoulombFriction("rail", (O, P, N.x), kinetic=1.0, static=1.5))
    model.add(CoulombFriction("pads", (P, Q, N.x), kinetic=0.5))
    model.add(Impact("wall", y, restitution=0.5, rest_below=0.01))
    model.add(Latch("hook", x - 2, close=sm.And(x >= 2, u > 0), open=y > 1, within=None))
    model.output("steps", sm.floor(3 * x) + sm.Max(x, y))
    model.when(sm.Or(y > 1, x < -1), {u: -pre(u) / 2, count: count + 1}, name="turned")
    model.when(u < -1, {v: pre(v) + 1}, name="fast")
    model.every(0.25, {held: x + y})
    return model


class InC:
    """Events of a program as an FMU has them."""

    def __init__(self, program, folder: Path, right: str = "", wrong: str = "") -> None:
        sources = emit_fmu_sources(add_fmu_derivatives(program), bare_interface())
        _, *equations = list_translation_units(sources)
        for name in ("model_config.h", "model_names.h", *equations):
            (folder / name).write_bytes(sources[f"sources/{name}"])
        text = (RUNTIME / "events.c").read_text()
        assert text.count(right) == 1 or not right
        (folder / "events.c").write_text(text.replace(right, wrong) if right else text)
        self._library = ctypes.CDLL(str(compile_library("gcc", folder, HARNESS, MODELS["gcc"], *equations)))

    def settle(self, t: float, x: np.ndarray, p: np.ndarray, memory: np.ndarray, *, first: bool) -> bool:
        """Changes states and memory in place; whether modes were found."""
        w = np.full(self._library.room() // 8 + 1, np.nan)
        arrays = (x, np.zeros(1), p, w, memory)
        pointers = [ctypes.c_void_p(array.ctypes.data) for array in arrays]
        return self._library.events(int(first), ctypes.c_double(t), *pointers) == 0


def near_surfaces(draw: np.random.Generator, names: tuple[str, ...]) -> np.ndarray:
    """A state at whole and half numbers, or as far from them as round-off, slack or what counts as none."""
    x = draw.choice([-2.0, -1.0, -0.5, 0.0, 0.0, 0.0, 0.5, 1.0, 2.0], len(names))
    x += draw.choice([0.0, 0.0, 1e-15, -1e-15, 1e-13, -3e-14, 1e-11, -1e-9, 3e-9, 0.1], len(names))
    for i, name in enumerate(names):
        if name.endswith(("engaged", "resting", "sliding", "changes", "impacts", "count")):
            x[i] = draw.integers(0, 2)
    return x


@pytest.fixture(scope="module")
def frozen():
    derivation = derive(machine(), method="kane")
    p = np.array([item.value for item in derivation.definition.parameters if not item.calculated])
    program, none = convert_switches_to_modes(derivation.program), np.zeros(0)
    return program, p, ProgramEventProcessor(program, lambda _: none, p, np.zeros((0, len(p))))


def differences(frozen, unit: InC, count: int) -> tuple[int, int, int]:
    """At how many states bits differ; at how many anything happened; at how many no modes were found."""
    program, p, own = frozen
    draw = np.random.default_rng(13)
    names = program.layout.states
    differ = happened = lost = 0
    for _ in range(count):
        own.memory = np.array(read_initial_discrete_memory(program))
        memory, x = own.memory.copy(), near_surfaces(draw, names)
        for t in (float(draw.choice([0.0, 0.1, 0.25])), 0.5):  # the second from the modes of the first
            begins, theirs = x.copy(), x.copy()
            at = MotionPointWithDerivatives(t, x, np.zeros((0, len(x))), np.zeros(0))
            try:
                own.set_initial_modes(at) if t < 0.5 else own.settle_modes_and_events(at)
                found = True
            except AnalysisError:
                found = False
            same = unit.settle(t, theirs, p, memory, first=t < 0.5) == found
            if found and same:
                same = at.x.tobytes() == theirs.tobytes() and own.memory.tobytes() == memory.tobytes()
            differ += not same
            happened += found and at.x.tobytes() != begins.tobytes()
            lost += not found
            if not found:
                break
            x = at.x + (draw.random(len(x)) < 0.3) * draw.choice([-1.0, 1e-10, 0.5], len(x))
            for i, name in enumerate(names):
                if "_" in name:
                    x[i] = at.x[i]
    return differ, happened, lost


@pytest.mark.skipif(not shutil.which("gcc"), reason="gcc is not installed")
def test_modes_and_states_have_the_same_bits(frozen, tmp_path):
    unit = InC(frozen[0], tmp_path)
    differ, happened, lost = differences(frozen, unit, 100)
    assert differ == 0
    assert happened > 70
    assert lost < 70
    with patch.object(ProgramEventProcessor, "_let_go", lambda *_, **__: None):  # a fault on the other side
        assert differences(frozen, unit, 40)[0] > 0


@pytest.mark.skipif(not shutil.which("gcc"), reason="gcc is not installed")
@pytest.mark.parametrize(
    ("right", "wrong"), [pytest.param(*f, marks=() if i == 0 else pytest.mark.repeats) for i, f in enumerate(FAULTS)]
)
def test_a_fault_in_c_is_seen(frozen, tmp_path, right, wrong):
    assert differences(frozen, InC(frozen[0], tmp_path, right, wrong), 60)[0] > 0


def foot() -> Model:
    """Is driven by -1 against friction as contact scripts write it: within its band its sign has no effect."""
    v = me.dynamicsymbols("v1")
    push = -1 - sm.Piecewise((9 * v, sm.Abs(v) < 1), (9 * sm.sign(v), True))
    return lines.masses("Foot", [(0.0, -0.5)], lambda _: [push])[0]


@pytest.mark.skipif(not shutil.which("gcc"), reason="gcc is not installed")
@pytest.mark.parametrize("speed", [1e-2, 1e-6, 1e-8, 5e-10, 1e-12])
def test_a_sign_without_effect_is_that_of_the_state_however_it_is_driven(in_band, speed):
    program, p, own, unit = in_band
    own.memory = np.array(read_initial_discrete_memory(program))
    memory = own.memory.copy()
    at, theirs = (
        MotionPointWithDerivatives(0.0, np.array([0.0, -0.5]), np.zeros((0, 2)), np.zeros(0)),
        np.array([0.0, -0.5]),
    )
    own.set_initial_modes(at)
    assert unit.settle(0.0, theirs, p, memory, first=True)
    begun = own.memory.copy()
    at.x[1] = theirs[1] = speed
    own.settle_modes_and_events(at)
    assert unit.settle(0.0, theirs, p, memory, first=False)
    assert memory.tobytes() == own.memory.tobytes() != begun.tobytes()
    assert theirs.tolist() == at.x.tolist() == [0.0, speed]
    assert np.min(own.margins(0.0, at.x)) >= 0.0


@pytest.fixture(scope="module")
def in_band(tmp_path_factory):
    derivation = derive(foot(), method="kane")
    p = np.array([item.value for item in derivation.definition.parameters if not item.calculated])
    program, none = convert_switches_to_modes(derivation.program), np.zeros(0)
    own = ProgramEventProcessor(program, lambda _: none, p, np.zeros((0, len(p))))
    return program, p, own, InC(program, tmp_path_factory.mktemp("foot"))
