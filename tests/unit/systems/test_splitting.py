"""Parts of a cut mechanism, coupled without any error of time, move as the whole does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import sympy as sm
import sympy.physics.mechanics as me
from representatives import by_night
from scipy.integrate import solve_ivp

from mb2fmu import Model, pipeline
from mb2fmu.pipeline.derivation.pipeline_results import DerivationResult
from mb2fmu.pipeline.system_runs.model_split_export import complete_split_settings
from mb2fmu.systems.splitting import (
    CutMechanismPart,
    CutMethod,
    SplittingSettings,
    cut_mechanism,
    make_cut_mechanism_parts,
)
from mb2fmu.systems.splitting.splitting_settings import choose_bushing_stiffness
from mb2fmu.systems.wired_system import CouplingError

Floats = npt.NDArray[np.float64]
ROOT = Path(__file__).parents[3]
PENDULUM = ROOT / "systems" / "cut_pendulum" / "whole.py"
CHAIN = ROOT / "models" / "chain.py"
FOUR_BAR = ROOT / "models" / "four_bar.py"
MASSES = ROOT / "systems" / "two_masses" / "whole.py"


def derived(model: Any, arguments: Mapping[str, Any] | None = None) -> DerivationResult:
    """By one formulation: which one makes no difference to the parts of a mechanism."""
    return pipeline.derive(model, arguments=arguments, method="recursive-composite")


@cache
def whole_of(path: Path) -> DerivationResult:
    """A model that several tests cut."""
    return derived(path)


class Coupled:
    """Parts whose terminals always agree; u' of the whole is handed in where accelerations are passed."""

    def __init__(self, made: Sequence[CutMechanismPart]) -> None:
        self.parts = made
        self.f = [pipeline.right_hand_side(derived(part.definition)) for part in made]
        self.sizes = np.cumsum([0, *(len(f.x0) for f in self.f)])
        self.x0 = np.concatenate([f.x0 for f in self.f])

    def _own(self, k: int, x: Floats) -> Floats:
        return x[self.sizes[k] : self.sizes[k + 1]]

    def states(self, k: int, x: Floats) -> dict[str, float]:
        d = self.parts[k].definition
        names = [item.name for item in (*d.coordinates, *d.speeds, *d.auxiliary_states)]
        return dict(zip(names, self._own(k, x), strict=True))

    def inputs(self, k: int, t: float, x: Floats, known: Mapping[str, float]) -> Floats:
        d, found = self.parts[k].definition, {}
        for terminal in d.terminals:
            for member in terminal.members:
                if member.variable in {item.name for item in d.inputs}:
                    found[member.variable] = self._given(k, member, t, x, known)
        return np.array([found.get(item.name, item.start) for item in d.inputs])

    def _given(self, k: int, member: Any, t: float, x: Floats, known: Mapping[str, float]) -> float:
        if member.name in known:
            return known[member.name]
        for other, part in enumerate(self.parts):
            for each in (m for terminal in part.definition.terminals for m in terminal.members):
                taken = {item.name for item in part.definition.inputs}
                if other == k or each.name != member.name or each.variable in taken:
                    continue
                states = self.states(other, x)
                if each.variable in states:
                    return states[each.variable]
                f = self.f[other]
                y = f.outputs(t, self._own(other, x), self.inputs(other, t, x, known))
                value = float(np.ravel(y)[f.output_names.index(each.variable)])
                return -value if each.kind == member.kind != "signal" else value
        raise AssertionError(member.name)

    def rhs(self, t: float, x: Floats, known: Mapping[str, float] | None = None) -> Floats:
        rates = [
            f(t, self._own(k, x), self.inputs(k, t, x, known or {}))
            for k, f in enumerate(self.f)
        ]  # fmt: skip
        return np.concatenate(rates)

    def of_whole(self, names: Sequence[str]) -> list[tuple[int, int]]:
        """(place in x, place in the whole's states) of what both have."""
        pairs = []
        for k, part in enumerate(self.parts):
            own = list(self.states(k, self.x0))
            pairs += [
                (int(self.sizes[k]) + own.index(a), names.index(b))
                for a, b in part.reference_names.items()
                if b in names
            ]
        return pairs


def split(
    model: Any,
    at: Sequence[str],
    way: CutMethod | None = None,
    arguments: Mapping[str, Any] | None = None,
    **settings: Any,
) -> tuple[DerivationResult, Coupled]:
    whole = derived(model, arguments) if arguments or isinstance(model, Model) else whole_of(model)
    known = complete_split_settings(whole, at, way, SplittingSettings(**settings))
    return whole, Coupled(make_cut_mechanism_parts(cut_mechanism(whole.mechanism, at, way, known), known))


def springs(*, rigid: bool = False) -> Model:
    """Two bodies in the plane between springs with a slanting spring, or a rigid distance, between them."""
    q, u = me.dynamicsymbols("q1:4"), me.dynamicsymbols("u1:4")
    m, k, c = sm.symbols("m k c")
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    A = N.orientnew("A", "Axis", (q[0], N.z))
    A.set_ang_vel(N, u[0] * N.z)
    tip = O.locatenew("tip", 0.7 * A.x)
    tip.v2pt_theory(O, N, A)
    P = O.locatenew("P", (1 + q[1]) * N.x + q[2] * N.y)
    P.set_vel(N, u[1] * N.x + u[2] * N.y)
    rod = me.RigidBody("rod", tip, A, m, (me.inertia(A, 0, 0.1, 0.1), tip))
    bodies = [rod, me.Particle("ball", P, m)]
    loads: list[Any] = [(P, -k * (q[1] * N.x + q[2] * N.y)), (A, -k * q[0] * N.z)]
    path = me.LinearPathway(tip, P)
    actuators = [] if rigid else [me.ForceActuator(-c * (path.length - 0.2) - 0.3 * path.extension_velocity, path)]
    row = P.pos_from(O).dot(N.y) - 0.7 * sm.sin(q[0])
    handed = me.System(N, O)
    handed.add_bodies(*bodies)
    handed.q_ind, handed.u_ind = (q[:2], u[:2]) if rigid else (q, u)
    if rigid:
        handed.q_dep, handed.u_dep = q[2:], u[2:]
        handed.add_holonomic_constraints(row)
    handed.add_kdes(*(a.diff() - b for a, b in zip(q, u, strict=True)))
    handed.add_loads(*(me.Force(*each) if isinstance(each[0], me.Point) else me.Torque(*each) for each in loads))
    handed.add_actuators(*actuators)
    model = Model("Springs", handed)
    for symbol, value in ((m, 1.3), (k, 11.0), (c, 7.0)):
        model.parameter(symbol, value)
    for a, b, start in zip(q, u, (0.3, 0.1, 0.7 * np.sin(0.3)), strict=True):
        model.coordinate(a, start, "1", kind="guess" if rigid and a is q[2] else "fixed")
        model.speed(b, 0.0, "1/s", kind="guess" if rigid and b is u[2] else "fixed")
    if rigid:
        model.constraint(row, "level", acts=[(P, N.y), (tip, -N.y)])
    return model


@pytest.mark.parametrize(
    ("model", "at", "way"),
    [
        (PENDULUM, ["P2"], "force"),
        (MASSES, ["load[1]", "load[2]"], "motion"),
        *by_night(
            (ROOT / "models" / "n_link_pendulum.py", ["pin3"], "force"), (MASSES, ["load[1]", "load[2]"], "force")
        ),
        ("springs", ["ForceActuator[1]"], "motion"),
        ("springs", ["ForceActuator[1]"], "force"),
    ],
)
def test_parts_have_the_accelerations_of_the_whole(model: Any, at: list[str], way: CutMethod) -> None:
    """At random states, with exact exchange: x' of the parts is x' of the whole."""
    whole, coupled = split(springs() if model == "springs" else model, at, way)
    assert len(coupled.parts) == 2
    f = pipeline.right_hand_side(whole)
    random = np.random.default_rng(3)
    for _ in range(3):
        x = random.uniform(-0.9, 0.9, len(f.x0))
        exact = f(0.2, x, f.r0)
        known = {f"{name}_dot": rate for name, rate in zip(f.states, exact, strict=True)}
        own, pairs = np.zeros(len(coupled.x0)), coupled.of_whole(f.states)
        assert len(pairs) == len(f.states) == len(own)
        for here, there in pairs:
            own[here] = x[there]
        found = coupled.rhs(0.2, own, known)
        scale = np.max(np.abs(exact))
        for here, there in pairs:
            assert found[here] == pytest.approx(exact[there], abs=1e-10 * scale), f.states[there]


def errors(whole: DerivationResult, coupled: Coupled, stop: float) -> float:
    """Largest difference between the coupled parts and the whole at the end.

    At rest in each other, parts hide how fast a bushing damps: SciPy's own first step overflows.
    """
    f = pipeline.right_hand_side(whole)
    ends = [
        solve_ivp(rhs, (0.0, stop), start, method="DOP853", rtol=1e-10, atol=1e-11, first_step=1e-6).y[:, -1]
        for rhs, start in ((coupled.rhs, coupled.x0), (lambda t, x: f(t, x, f.r0), f.x0))
    ]
    return max(abs(ends[0][here] - ends[1][there]) for here, there in coupled.of_whole(f.states))


def test_motion_through_a_filter_has_an_error_of_second_order_and_no_feedthrough() -> None:
    found = []
    for bandwidth in (400.0, 800.0):
        whole, coupled = split(PENDULUM, ["P2"], "filter", bandwidth=bandwidth)
        found.append(errors(whole, coupled, 0.04))
    assert found[0] < 1e-3
    assert found[0] / found[1] == pytest.approx(4.0, rel=0.1)
    outer = coupled.f[1]
    assert not any("_dot" in name for name in outer.inputs)
    x = np.random.default_rng(1).uniform(-0.5, 0.5, len(outer.x0))
    one, other = (outer.outputs(0.0, x, r) for r in (outer.r0, outer.r0 + 1.0))
    assert np.array_equal(one, other)


def test_a_bushing_comes_near_to_its_constraint_as_it_stiffens() -> None:
    found = []
    for stiffness in (1e4, 4e4):
        settings = {"stiffness": stiffness, "damping": 2.0 * np.sqrt(stiffness)}
        whole, coupled = split(springs(rigid=True), ["level"], **settings)
        found.append(errors(whole, coupled, 0.2))
    assert found[0] / found[1] == pytest.approx(4.0, rel=0.2)


def test_a_constraint_is_cut_by_a_bushing_that_holds_also_if_nothing_is_said() -> None:
    """Neither the way nor a stiffness is named."""
    whole = derived(springs(rigid=True))
    chosen = complete_split_settings(whole, ["level"], None, SplittingSettings(), step=0.01)
    assert chosen.stiffness * 0.01**2 > 0.0
    assert chosen.damping > 0.0
    assert chosen == complete_split_settings(whole, ["level"], "bushing", SplittingSettings(), step=0.01)


@pytest.mark.repeats  # by day: what the sides push with at the start, and the command's own run
@pytest.mark.parametrize(
    ("model", "arguments", "at", "stop"),
    [
        (PENDULUM, {}, "P2", 0.1),  # absolute angles: the flange moves only
        (CHAIN, {"n": 2}, "J2", 0.1),  # it turns about one axis
        (CHAIN, {"n": 3}, "J3", 0.1),  # and freely, by a quaternion
    ],
)
def test_a_joint_on_a_bushing_comes_near_to_the_joint_as_it_stiffens(
    model: Path, arguments: dict[str, int], at: str, stop: float
) -> None:
    """In proportion to 1/k, for its start is the whole's; no accelerations are passed."""
    found = []
    for k in (1e4, 4e4):
        whole, coupled = split(
            model, [at], "bushing", arguments, stiffness=k, damping=2.0 * np.sqrt(k), angular_stiffness=0.1 * k,
            angular_damping=0.2 * np.sqrt(k), flange_inertia=10.0 / k,
        )  # fmt: skip
        found.append(errors(whole, coupled, stop))
        assert not any("_dot" in name for f in coupled.f for name in f.inputs)
    assert found[0] < 5e-3
    assert found[0] / found[1] == pytest.approx(4.0, rel=0.25)


@pytest.mark.parametrize(("way", "period"), [("bushing", 0.01), *by_night(("line", 0.002))])
def test_what_nobody_chose_of_an_element_follows_from_the_parts(way: CutMethod, period: float) -> None:
    """Its phase within a step is 0.37 on a bushing, 0.1 on a line; what is chosen stays, no mass is refused."""
    phase = {"bushing": 0.37, "line": 0.1}[way]
    whole = whole_of(PENDULUM)
    chosen = complete_split_settings(whole, ["P2"], way, SplittingSettings(delay=0.002), step=0.01)
    assert chosen.stiffness * period**2 == pytest.approx(phase**2 * 2.0)
    assert chosen.damping == pytest.approx(0.4 * np.sqrt(2.0 * chosen.stiffness))
    assert (
        complete_split_settings(whole, ["P2"], way, SplittingSettings(delay=0.002, stiffness=5.0), step=0.01).stiffness
        == 5.0
    )
    assert chosen.flange_inertia == pytest.approx(1e-3 * 2 / 48)  # two links of 1/48 kg·m² each
    heavy = replace(
        whole.mechanism, bodies=tuple(replace(body, inertia=100 * body.inertia) for body in whole.mechanism.bodies)
    )
    assert choose_bushing_stiffness(SplittingSettings(), heavy, [0, 0, 1, 1], period).flange_inertia == 1e-4
    given = complete_split_settings(whole, ["P2"], way, SplittingSettings(flange_inertia=0.0), step=0.01)
    assert given.flange_inertia == 0.0
    massless = replace(whole.mechanism, bodies=tuple(replace(body, mass=sm.S.Zero) for body in whole.mechanism.bodies))
    with pytest.raises(CouplingError, match="a part has no mass"):
        choose_bushing_stiffness(SplittingSettings(), massless, [0, 0, 1, 1], period)


@pytest.mark.parametrize(
    ("factors", "moved_mass"),
    [((1.0, 1.0), 0.37**2 * 2.0), ((1.0, 9.0), 0.37**2 * 6.0), ((1.0, 1e4), 2.0)],  # the last: 1 rad of the lightest
)
def test_a_bushing_is_as_stiff_as_the_mean_mass_says(factors: tuple[float, float], moved_mass: float) -> None:
    """Two parts of 2 kg times these factors: the geometric mean, bounded by what the lightest part follows."""
    mechanism = whole_of(PENDULUM).mechanism
    parts = [0, 0, 1, 1]
    bodies = tuple(
        replace(body, mass=sm.Float(factors[part])) for body, part in zip(mechanism.bodies, parts, strict=True)
    )
    chosen = choose_bushing_stiffness(SplittingSettings(), replace(mechanism, bodies=bodies), parts, 0.01)
    assert chosen.stiffness == pytest.approx(moved_mass / 0.01**2)
    assert chosen.damping == pytest.approx(0.4 * np.sqrt(2.0 * chosen.stiffness))


@pytest.mark.parametrize("way", ["bushing", "line"])
def test_sides_of_an_opened_joint_push_each_other_alike(way: CutMethod) -> None:
    """Force on one side is minus that on the other where bushing or line have it so; the start is the whole's."""
    _, coupled = split(PENDULUM, ["P1", "P2"], way, stiffness=1e4, damping=10.0, delay=1e-3)
    assert len(coupled.parts) == 3
    reported: dict[str, float] = {}
    for k, f in enumerate(coupled.f):
        y = f.outputs(0.0, f.x0, coupled.inputs(k, 0.0, coupled.x0, {}) if way == "bushing" else f.r0).ravel()
        reported |= dict(zip(f.output_names, y, strict=True))
    for joint, below in (("P1", 3), ("P2", 2)):
        for axis in "xy":
            inner, outer = reported[f"{joint}_inner_f{axis}"], reported[f"{joint}_outer_f{axis}"]
            assert inner == pytest.approx(-outer, rel=1e-9, abs=1e-9)
        # What hangs below accelerates downward while it falls: less than its weight is held.
        assert 0.5 * below * 9.81 < reported[f"{joint}_outer_fy"] < below * 9.81


def test_a_joint_with_frames_that_cannot_be_opened_is_reported() -> None:
    with pytest.raises(CouplingError, match="turns with states before the joint by itself"):
        split(tilted(), ["P"], "bushing")


def tilted() -> Model:
    """Two links; the second one's frame is written with the sum of the angles, relative to N."""
    q, u = me.dynamicsymbols("q1:3"), me.dynamicsymbols("u1:3")
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    A, B = N.orientnew("A", "Axis", (q[0], N.z)), N.orientnew("B", "Axis", (q[0] + q[1], N.z))
    A.set_ang_vel(N, u[0] * N.z)
    B.set_ang_vel(N, (u[0] + u[1]) * N.z)
    bodies, start = [], O
    for name, frame in (("a", A), ("b", B)):
        centre = start.locatenew(f"C{name}", 0.5 * frame.x)
        centre.v2pt_theory(start, N, frame)
        bodies.append(me.RigidBody(name, centre, frame, 1, (me.inertia(frame, 0, 0, 0.1), centre)))
        start = start.locatenew("P" if name == "a" else "E", frame.x)
        start.v2pt_theory(O if name == "a" else centre, N, frame)
    kane = me.KanesMethod(N, q, u, [a.diff() - b for a, b in zip(q, u, strict=True)], bodies=bodies)
    model = Model("Tilted", kane)
    for a, b in zip(q, u, strict=True):
        model.coordinate(a, 0.3, "rad")
        model.speed(b, 0.0, "rad/s")
    return model


@pytest.mark.parametrize(
    ("model", "at", "way", "text"),
    [
        (MASSES, ["load[1]"], None, "ties between bodies are load[1] at P1, load[2] at P2"),
        (MASSES, ["P9"], None, "→ there are load[1] at P1, load[2] at P2"),
        (MASSES, ["load[1]", "load[2]"], "bushing", "take motion or force"),
        (PENDULUM, ["P4"], None, "→ there are P3, P2, P1, load"),
        (PENDULUM, ["C1"], None, "no body hangs on it"),
        (PENDULUM, ["P1", "P2"], None, "2 joints at once"),
        (ROOT / "models" / "robot_arm.py", ["joint4"], None, "no states of their own"),
        (FOUR_BAR, ["holonomic[1]", "holonomic[2]"], None, "a chain that is closed to a loop has no cut"),
        (FOUR_BAR, ["P2"], None, "holonomic[1], holonomic[2] hold both sides"),
        (FOUR_BAR, ["P3"], "bushing", "cut between two bodies, at P2"),
    ],
)
def test_what_cannot_be_cut_is_reported(model: Path, at: list[str], way: CutMethod | None, text: str) -> None:
    with pytest.raises(CouplingError) as raised:
        split(model, at, way)
    assert text in str(raised.value)


def test_the_whole_is_compared_by_the_names_of_its_fmu() -> None:
    """Where coordinates are declared under other names than their symbols (q1 as shoulder.angle)."""
    whole, coupled = split(ROOT / "models" / "double_pendulum.py", ["elbow"])
    declared = whole.definition
    known = {record.name for record in (*declared.coordinates, *declared.speeds)}
    named = {name for part in coupled.parts for name in part.reference_names.values()}
    assert named == known == {"shoulder.angle", "elbow.angle", "shoulder.speed", "elbow.speed"}
