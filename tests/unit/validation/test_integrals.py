"""Integrals of motion in the validation: found as the theory finds them, right, and an FMU that breaks one fails."""

from __future__ import annotations

import numpy as np
import pytest
import sympy as sm
import sympy.physics.mechanics as me
from event_models import ball, reference_of
from mechanisms import Evaluated, mechanism_of, random_states
from representatives import by_night

import mb2fmu
from mb2fmu import Model, pipeline, validation
from mb2fmu.errors import FormulationError
from mb2fmu.mechanics.formulations import form_equations_except_dynamics
from mb2fmu.mechanics.formulations.kane_tmt_lagrange_theory_quantities import form_theory_quantities
from mb2fmu.mechanics.mechanism import Mechanism
from mb2fmu.validation.comparison.motion_comparison import compute_error_bounds, compute_invariant_results
from mb2fmu.validation.reference.first_integrals_along_run import FirstIntegralsAlongRun, find_first_integrals
from mb2fmu.validation.reference.start_error_growth import measure_start_error_growth
from mb2fmu.validation.runs.fmu_run import FmuSimulationResult

MOMENTUM, ALONG = "momentum of x, which is ignorable", "momentum of all bodies along N.x"


def bead() -> Model:
    """On a wire that turns steadily about the vertical: T + V is not kept, Jacobi's integral is. u = 2 q' + w."""
    t = me.dynamicsymbols._t
    q, u = me.dynamicsymbols("q u")
    m, g, r, w = sm.symbols("m g r w", positive=True)
    N = me.ReferenceFrame("N")
    B = N.orientnew("B", "Axis", (w * t, N.z))
    O = me.Point("O")
    O.set_vel(N, 0)
    P = O.locatenew("P", r * (sm.sin(q) * B.x - sm.cos(q) * B.z))
    P.set_vel(N, P.pos_from(O).dt(N))
    kane = me.KanesMethod(N, [q], [u], kd_eqs=[u - 2 * q.diff(t) - w])
    kane.kanes_equations([me.Particle("bead", P, m)], [(P, -m * g * N.z)])
    model = Model("Bead", kane)
    for symbol, value, unit in ((m, 0.3, "kg"), (g, 9.81, "m/s2"), (r, 0.4, "m"), (w, 6.0, "rad/s")):
        model.parameter(symbol, value, unit)
    model.coordinate(q, 0.5, "rad")
    model.speed(u, 0.2, "rad/s")
    model.output_momentum("p", q, unit="kg.m2/s")
    model.output_jacobi_integral()
    model.experiment(stop=1.0, step=0.02)
    return model


def dragged() -> Model:
    """A particle that a bristle holds back; the bristle is straight at first."""
    x, v, z = me.dynamicsymbols("x v z")
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    P = O.locatenew("P", x * N.x)
    P.set_vel(N, v * N.x)
    kane = me.KanesMethod(N, [x], [v], kd_eqs=[v - x.diff()])
    kane.kanes_equations([me.Particle("block", P, 2)], [(P, -50 * z * N.x)])
    model = Model("Dragged", kane)
    model.coordinate(x, 0.0, "m")
    model.speed(v, 1.0, "m/s")
    model.state(z, v - 3 * z, 0.0, "m")
    return model


def cart(fault: float = 0.0, *, stop: float = 6.0, tolerance: float = 1e-9) -> Model:
    """A cart that rolls freely, two rods on it: chaotic; energy and the momentum along x are kept.

    ``fault``: kg/s, of a force on the cart by the first rod's speed and the moment on the rod by the cart's, which
    together do no work, as in a magnetic field.
    """
    t = me.dynamicsymbols._t
    x, a, b, v, wa, wb = me.dynamicsymbols("x a b v wa wb")
    m, g, length = sm.symbols("m g l", positive=True)
    N = me.ReferenceFrame("N")
    A, B = (N.orientnew(name, "Axis", (angle, N.z)) for name, angle in (("A", a), ("B", b)))
    O = me.Point("O")
    O.set_vel(N, 0)
    C = O.locatenew("C", x * N.x)
    P = C.locatenew("P", -length * A.y)
    Q = P.locatenew("Q", -length * B.y)
    rates = {x.diff(t): v, a.diff(t): wa, b.diff(t): wb}
    for point in (C, P, Q):
        point.set_vel(N, point.pos_from(O).dt(N).subs(rates))
    loads = [(point, -m * g * N.y) for point in (P, Q)]
    if fault:
        A.set_ang_vel(N, wa * N.z)
        loads += [(C, fault * length * wa * N.x), (A, -fault * length * v * N.z)]
    kane = me.KanesMethod(N, [x, a, b], [v, wa, wb], kd_eqs=[rate - speed for rate, speed in rates.items()])
    kane.kanes_equations([me.Particle(f"mass_{p.name}", p, m) for p in (C, P, Q)], loads)
    model = Model("CartWithRods", kane)
    for symbol, value, unit in ((m, 1.0, "kg"), (g, 9.81, "m/s2"), (length, 0.5, "m")):
        model.parameter(symbol, value, unit)
    for q, start, unit in ((x, 0.0, "m"), (a, 2.0, "rad"), (b, 2.8, "rad")):
        model.coordinate(q, start, unit)
    for u, unit in ((v, "m/s"), (wa, "rad/s"), (wb, "rad/s")):
        model.speed(u, 0.0, unit)
    model.experiment(stop=stop, step=0.02, tolerance=tolerance)
    return model


def found(mechanism: Mechanism) -> dict[str, str]:
    """Integral → unit."""
    return {
        kept.name: kept.unit
        for kept in find_first_integrals(mechanism, form_equations_except_dynamics(mechanism)).quantities
    }


@pytest.mark.parametrize(
    "model",
    [bead, cart, *by_night(lambda: mb2fmu.load("models/heavy_top.py"))],
)
def test_numbers_find_what_symbols_show(model) -> None:
    """The kinds, in the same order; symbols differentiate, numbers look at places far from each other."""
    mechanism = mechanism_of(model())
    shown = form_theory_quantities(mechanism, ["integrals"])["integrals"].quantities
    in_space = [q.of.rpartition(" (")[0] for q in shown if "all bodies" in q.of]
    others = [q.of.split(" ")[0] for q in shown if "all bodies" not in q.of]
    reported = [*found(mechanism)]
    assert [name for name in reported if "all bodies" in name] == in_space
    assert [name.split(" ")[0] for name in reported if "all bodies" not in name] == others
    assert reported


def test_a_state_that_starts_from_zero_takes_momentum_away() -> None:
    names = [*found(mechanism_of(dragged()))]
    assert MOMENTUM not in names
    assert ALONG not in names


def test_outputs_are_what_the_proof_judges() -> None:
    """p and h by formulas of two formulations, in numbers, and by hand."""
    mechanism = mechanism_of(bead())
    state = random_states(mechanism, 1, seed=2)[0]
    conserved = find_first_integrals(mechanism, form_equations_except_dynamics(mechanism))
    (h,), (size,), _ = conserved.evaluate(
        state.t, state.x[:1], state.x[1:], np.zeros(0), np.zeros(0), np.array(state.p)
    )
    m, g, r, w = (dict(zip([p.name for p in mechanism.p], state.p, strict=True))[name] for name in "mgrw")
    angle, rate = state.x[0], (state.x[1] - w) / 2
    by_hand = m * r**2 * (rate**2 - (w * np.sin(angle)) ** 2) / 2 - m * g * r * np.cos(angle)
    assert h == pytest.approx(by_hand, rel=1e-12)
    assert size >= abs(h)
    for method in ("tmt", "recursive-composite"):
        unit = Evaluated(mechanism, method)
        assert unit.output("jacobi_integral", state) == pytest.approx(by_hand, rel=1e-12)
        assert unit.output("p", state) == pytest.approx(m * r**2 * rate, rel=1e-12)


def test_terms_of_a_momentum_are_what_each_speed_contributes() -> None:
    """A plate that falls and stands askew, its speeds along its own sides: nothing moves along N.y, two speeds do.

    Errors of a right FMU's speeds do not cancel as the speeds do.
    """
    y, z, a, v, w, spin = me.dynamicsymbols("y z a v w spin")
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    A = N.orientnew("A", "Axis", (a, N.x))
    A.set_ang_vel(N, spin * N.x)
    P = O.locatenew("P", y * N.y + z * N.z)
    P.set_vel(N, v * A.y + w * A.z)
    plate = me.RigidBody("plate", P, A, 2, (me.inertia(A, 3, 0, 0), P))
    rates = [y.diff() - P.vel(N).dot(N.y), z.diff() - P.vel(N).dot(N.z), a.diff() - spin]
    kane = me.KanesMethod(
        N, [y, z, a], [v, w, spin], rates, bodies=[plate], forcelist=[(P, -20 * N.z)], explicit_kinematics=False
    )
    model = Model("Plate", kane)
    for symbol, unit in ((y, "m"), (z, "m"), (a, "rad")):
        model.coordinate(symbol, 0.0, unit)
    for symbol, unit in ((v, "m/s"), (w, "m/s"), (spin, "rad/s")):
        model.speed(symbol, 0.0, unit)
    derivation = pipeline.derive(model)
    found = find_first_integrals(derivation.mechanism, derivation.equations)
    tilt, fall = 0.1, 9.0
    u = np.array([fall * np.sin(tilt), fall * np.cos(tilt), 0.0])  # along N.z alone
    values, sizes, _ = found.evaluate(0.0, np.array([0.0, 0.0, tilt]), u, np.zeros(0), np.zeros(0), np.zeros(0))
    names = [kept.name for kept in found.quantities]
    along = names.index("momentum of all bodies along N.y")
    assert abs(values[along]) < 1e-14
    assert sizes[along] == pytest.approx(2 * 2 * fall * np.sin(tilt) * np.cos(tilt))


def test_what_falls_straight_is_driven_aside_by_round_off_of_its_weight() -> None:
    """Two bodies whose speeds are along N: nothing moves along N.x but what an FMU's linear solve leaves."""
    x, z, v, w, a, spin = me.dynamicsymbols("x z v w a spin")
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    A = N.orientnew("A", "Axis", (a, N.y))
    A.set_ang_vel(N, spin * N.y)
    P = O.locatenew("P", x * N.x + z * N.z)
    P.set_vel(N, v * N.x + w * N.z)
    tip = P.locatenew("tip", A.x)
    tip.v2pt_theory(P, N, A)
    bodies = [me.Particle("hub", P, 2), me.Particle("tip", tip, 1)]
    loads = [(P, -20 * N.z), (tip, -10 * N.z)]
    kane = me.KanesMethod(
        N, [x, z, a], [v, w, spin], [x.diff() - v, z.diff() - w, a.diff() - spin], bodies=bodies, forcelist=loads
    )
    model = Model("Pair", kane)
    for symbol, unit in ((x, "m"), (z, "m"), (a, "rad")):
        model.coordinate(symbol, 0.0, unit)
    for symbol, unit in ((v, "m/s"), (w, "m/s"), (spin, "rad/s")):
        model.speed(symbol, 0.0, unit)
    model.experiment(stop=1.0)
    reference, mechanism = reference_of(model), mechanism_of(model)
    conserved = find_first_integrals(mechanism, form_equations_except_dynamics(mechanism))
    kept = FirstIntegralsAlongRun(reference, conserved, np.zeros(len(reference.trajectory.time)))
    bound = kept.compute_bounds(1e-6)[[k.name for k in conserved.quantities].index(ALONG)]
    weight_momentum = 30.0 * 1.0
    assert np.all(bound > 1e-14 * weight_momentum)
    assert np.all(bound < 1e-12 * weight_momentum)


def test_momentum_of_nothing_is_refused() -> None:
    model = bead()
    model.output_momentum("wrong", me.dynamicsymbols("nobody"), unit="kg.m2/s")
    with pytest.raises(FormulationError, match="no coordinate and no speed"):
        Evaluated(mechanism_of(model), "tmt")


@pytest.mark.parametrize("fault", [3e-6, *by_night(0.0)])
def test_a_workless_force_is_seen_in_the_momenta(fault: float, tmp_path) -> None:
    """The FMU has a force that does no work: no one-step error and no energy says anything of it."""
    mechanism = mechanism_of(cart(stop=3.0))
    equations = form_equations_except_dynamics(mechanism)
    stick = validation.make_reference_and_bounds(
        mechanism.declared, equations, mechanism=mechanism, integrals_of=mechanism, perturb=False
    )
    unit = pipeline.export(cart(fault, stop=3.0), tmp_path).path
    result = validation.validate(
        unit,
        mechanism.declared,
        equations,
        mechanism=mechanism,
        reference_and_bounds=stick,
        conformance=False,
        perturb=False,
    )
    for kind in result.kinds:
        assert {i.name for i in kind.invariants if i.verdict == "failed"} == ({MOMENTUM, ALONG} if fault else set())
        assert {i.verdict for i in kind.invariants} <= {"passed", "failed"}


def test_energy_is_kept_between_impacts_and_a_loss_there_is_found() -> None:
    """An impact takes a half of the energy, and no verdict; air that brakes a little fails."""
    reference = reference_of(ball())
    limits = compute_error_bounds(reference, measure_start_error_growth(reference))
    mechanism = mechanism_of(ball())
    conserved = find_first_integrals(mechanism, form_equations_except_dynamics(mechanism))
    kept = FirstIntegralsAlongRun(reference, conserved, limits.traversals, limits.sides_near_events)
    energy = [k.name for k in conserved.quantities].index("energy T + V")
    values = reference.trajectory.values
    assert np.ptp(kept.evaluate_integrals(values)[0][:, energy]) > 1.0
    assert 10 <= kept.is_judged[:, energy].sum() < len(kept.is_judged)

    def verdict(rows: np.ndarray) -> str:
        names = tuple(v.name for v in reference.variables)
        unit = FmuSimulationResult(
            names=names, time=reference.trajectory.time, values=rows, log=(), seconds_per_step=0.0
        )
        return next(
            i for i in compute_invariant_results(reference, unit, limits, kept) if i.name == "energy T + V"
        ).verdict

    assert verdict(values) == "passed"
    braked = values.copy()
    braked[:, 1] *= np.exp(-1e-4 * reference.trajectory.time)
    assert verdict(braked) == "failed"


def test_a_right_chaotic_fmu_is_asked_while_it_is_close_to_the_reference(tmp_path) -> None:
    """Half-way through this run nobody knows where the rods are: derivatives asked for there were called wrong."""
    mechanism = mechanism_of(cart(stop=10.0, tolerance=1e-6))
    equations = form_equations_except_dynamics(mechanism)
    unit = pipeline.export(cart(stop=10.0, tolerance=1e-6), tmp_path).path
    result = validation.validate(unit, mechanism.declared, equations, mechanism=mechanism, conformance=False)
    assert "directional derivatives" in {call.name for call in result.api_checks}
    assert {call.verdict for call in result.api_checks} == {"passed"}


def test_a_force_without_a_value_at_the_samples_keeps_no_energy():
    """Seen: √(1e-8 − (x − 1)²) has none away from x = 1; the comparison with NaN counted as agreement."""
    x, u = me.dynamicsymbols("x u")
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    P = O.locatenew("P", x * N.x)
    P.set_vel(N, u * N.x)
    force = (sm.sqrt(sm.Float("1e-8") - (x - 1) ** 2) - sm.Float("1e-4")) * N.x
    kane = me.KanesMethod(N, [x], [u], [x.diff() - u], bodies=[me.Particle("P", P, 2)], forcelist=[(P, force)])
    model = Model("Brittle", kane)
    model.coordinate(x, 1.0, "m")
    model.speed(u, 0.0, "m/s")
    derivation = pipeline.derive(model)
    found = find_first_integrals(derivation.mechanism, derivation.equations, ())
    assert "energy T + V" not in [quantity.name for quantity in found.quantities]


@pytest.mark.parametrize("by_input", [False, True])
def test_a_momentum_with_prescribed_motion_needs_its_true_rate(by_input: bool) -> None:
    """A free cart and a mass at a place on it: kept at a place of time, not at one whose rate is an input."""
    t = me.dynamicsymbols._t
    x, v, place = me.dynamicsymbols("x v r")
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    C = O.locatenew("C", x * N.x)
    C.set_vel(N, v * N.x)
    way = place if by_input else sm.sin(t) / 3
    P = C.locatenew("P", way * N.x)
    P.set_vel(N, (v + way.diff(t)) * N.x)
    bodies = [me.Particle("cart", C, 2), me.Particle("load", P, 1)]
    model = Model("CartAndLoad", me.KanesMethod(N, [x], [v], [x.diff() - v], bodies=bodies))
    model.coordinate(x, 0.0, "m")
    model.speed(v, 0.0, "m/s")
    if by_input:
        for k, unit in enumerate(("m", "m/s", "m/s2")):
            model.input(place.diff(t, k), 0.0, unit)
    assert ("momentum of x, which is ignorable" in found(mechanism_of(model))) == (not by_input)


def test_nothing_is_kept_of_a_lagrangian_in_which_an_input_stands() -> None:
    """The same free cart, and one along a slope whose pull is an input: without inputs both laws hold."""
    t = me.dynamicsymbols._t
    x, r, pull = me.dynamicsymbols("x r pull")
    free = x.diff(t) ** 2
    laws = {"momentum of x, which is ignorable", "Jacobi's integral Σ q' ∂L/∂q' - L"}
    for lagrangian, inputs, kept in (
        (free + (x.diff(t) + sm.cos(t) / 3) ** 2 / 2, (), {"momentum of x, which is ignorable"}),
        (free + (x.diff(t) + r.diff(t)) ** 2 / 2, [r.diff(t, k) for k in range(3)], set()),
        (free + pull * x, [pull], set()),
        (free, (), laws),
    ):
        model = Model("Cart", me.LagrangesMethod(lagrangian, [x]))
        model.coordinate(x, 0.0, "m")
        model.speed(x.diff(t), 0.1, "m/s")
        for symbol in inputs:
            model.input(symbol, 0.0)
        assert set(found(mechanism_of(model))) & laws == kept
