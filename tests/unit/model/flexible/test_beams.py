"""Flexible beams against closed forms, conservation laws and published motions."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import sympy as sm
import sympy.physics.mechanics as me
from flexible_bodies import free_body, pinned_body, random_arrays, t
from representatives import by_night
from scipy.integrate import solve_ivp
from scipy.optimize import brentq

from mb2fmu import BeamSection, FlexibleBody, Model, Parts, linearize, rhs
from mb2fmu.errors import ModelError

ROOTS = {
    ("clamped", "free"): (1.8751040687119611, 4.694091132974175, 7.854757438237612),
    ("free", "free"): (4.730040744862704, 7.853204624095838, 10.995607838001671),
    ("pinned", "free"): (3.9266023120479188, 7.068582745628732, 10.210176122813031),
    ("pinned", "pinned"): (np.pi, 2 * np.pi, 3 * np.pi),
    ("clamped", "pinned"): (3.9266023120479188, 7.068582745628732, 10.210176122813031),
    ("clamped", "clamped"): (4.730040744862704, 7.853204624095838, 10.995607838001671),
}
"""β L of Euler and Bernoulli's beam: ω = β² √(E I / ρ A)."""

BY_DAY = [*((axis, ("clamped", "free")) for axis in "xyz"), *(("x", (end, end)) for end in ("free", "pinned"))]

LENGTH, BENDING, LINE_MASS = 2.0, 20.0, 0.5


def slender(modes: dict[str, int], ends=("clamped", "free"), name: str = "beam", **more) -> FlexibleBody:
    """E I = 20 N·m² about z and 5 N·m² about y, ρ A = 0.5 kg/m, 2 m long: a line of mass unless said otherwise."""
    section = BeamSection(area=1e-4, I_y=2.5e-9, I_z=1e-8, torsion_constant=1.2e-8)
    plain = {"rotary_inertia": False, "E": BENDING / 1e-8, "rho": LINE_MASS / 1e-4, **more}
    return FlexibleBody.beam(name, length=LENGTH, section=section, modes=modes, ends=ends, **plain)


@pytest.mark.usefixtures("arrays_alone")
@pytest.mark.parametrize(
    ("axis", "ends"),
    [*BY_DAY, *by_night(*(each for each in itertools.product("xyz", ROOTS) if each not in BY_DAY))],
)
def test_frequencies_of_bending_are_those_of_the_closed_form(ends, axis):
    families = {"x": ("bending_y", "bending_z"), "y": ("bending_z", "bending_x"), "z": ("bending_x", "bending_y")}
    strong, weak = families[axis]
    data = slender({strong: 8, weak: 3}, ends, axis=axis, foreshortening=False).data
    expected = (np.array(ROOTS[ends]) / LENGTH) ** 2 * np.sqrt(BENDING / LINE_MASS)
    modal = data.modal_mass()
    found = np.sqrt(np.diag(data.stiffness) / np.diag(modal))
    assert found[:3] == pytest.approx(expected, rel=1e-12)
    assert found[8:] == pytest.approx(expected / 2.0, rel=1e-12)
    assert modal == pytest.approx(np.diag(np.diag(modal)), abs=1e-12)


def free_beam(beam: FlexibleBody) -> Model:
    """A beam that floats in the plane x, y."""
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    q, u = me.dynamicsymbols("x y theta"), me.dynamicsymbols("v_x v_y omega")
    beam.frame().orient_axis(N, N.z, q[2])
    beam.point().set_pos(O, q[0] * N.x + q[1] * N.y)
    kinematic = [*(a.diff(t) - b for a, b in zip(q, u, strict=True)), *beam.kinematic_equations]
    model = Model(
        "Free",
        Parts(
            frame=N, origin=O, q=[*q, *beam.q], u=[*u, *beam.u], kinematic_equations=kinematic, bodies=beam.bodies,
            loads=beam.loads,
        ),
    )  # fmt: skip
    for coordinate, speed, unit in zip(q, u, ("m", "m", "rad"), strict=True):
        model.coordinate(coordinate, 0.0, unit)
        model.speed(speed, 0.0, f"{unit}/s")
    model.add(beam)
    return model


@pytest.mark.parametrize(
    "ends",
    [
        *(pytest.param((end, "free"), marks=pytest.mark.repeats) for end in ("free", "pinned")),
        ("clamped", "free"),
        *(pytest.param(("clamped", end), marks=pytest.mark.repeats) for end in ("pinned", "clamped")),
    ],
)
def test_beams_in_a_mechanism_have_the_closed_forms_frequencies(ends):
    """Floating, on a pin, held: eight modes with the ends of the joint, first three frequencies, of the whole x'."""
    beam = slender({"bending_y": 8}, ends, foreshortening=False)
    if ends == ("free", "free"):
        model = free_beam(beam)
    else:
        model = pinned_body(beam, gravity=0.0) if ends[0] == "pinned" else clamped(beam, lambda _: [])
    rigid = {"free": 6, "pinned": 2}.get(ends[0], 0)
    found = np.sort(np.abs(linearize(model).eigenvalues))[rigid : rigid + 6 : 2]
    assert found == pytest.approx((np.array(ROOTS[ends]) / LENGTH) ** 2 * np.sqrt(BENDING / LINE_MASS), rel=1e-9)


def test_a_beam_that_cannot_shorten_is_refused():
    """Its foreshortening would be that of a beam whose tip follows: bending would not stretch it."""
    for ends in (("clamped", "clamped"), ("pinned", "clamped")):
        with pytest.raises(ModelError, match="both ends are held along the beam"):
            slender({"bending_y": 2}, ends)
    slender({"extension": 2}, ("clamped", "clamped"))
    slender({"bending_y": 2}, ("clamped", "pinned"))


@pytest.mark.repeats  # by day: beams in a mechanism have the frequencies of the closed form, above
def test_clamped_modes_on_a_hinge_converge_to_the_hinged_beam_from_above():
    expected = (np.array(ROOTS["pinned", "free"]) / LENGTH) ** 2 * np.sqrt(BENDING / LINE_MASS)
    errors = []
    for count in (4, 8):
        beam = slender({"bending_y": count}, foreshortening=False)
        found = np.sort(np.abs(linearize(pinned_body(beam, gravity=0.0)).eigenvalues))[2:8:2]
        errors.append(found / expected - 1.0)
    assert np.all(errors[1] > 0.0)  # Ritz: stiffer than it is
    assert np.all(errors[1] < errors[0] / 50.0)
    assert errors[1][0] < 1e-6


@pytest.mark.usefixtures("arrays_alone")
def test_timoshenkos_pinned_beam_has_the_closed_forms_frequencies():
    section = BeamSection.rectangle(0.1, 0.2)
    E, G, rho = 70e9, 27e9, 2700.0
    beam = FlexibleBody.beam(
        "beam", length=LENGTH, E=E, G=G, rho=rho, section=section, modes={"bending_z": 4}, theory="timoshenko",
        ends=("pinned", "pinned"),
    )  # fmt: skip
    A, I = section.area, section.I_y
    for n, found in enumerate(beam.data.frequencies(), start=1):
        k = n * np.pi / LENGTH
        shear = 5 / 6 * G * A
        a, b, c = (
            rho**2 * A * I,
            -(rho * A * E * I * k**2 + rho * I * shear * k**2 + rho * A * shear),
            shear * E * I * k**4,
        )
        assert found**2 == pytest.approx((-b - np.sqrt(b * b - 4 * a * c)) / (2 * a), rel=1e-10)


@pytest.mark.usefixtures("arrays_alone")
def test_torsion_and_extension_have_the_closed_forms_frequencies():
    beam = slender({"torsion": 3, "extension": 3}, G=9e8, rotary_inertia=True).data
    k = (2 * np.arange(3) + 1) * np.pi / (2 * LENGTH)
    torsion = k * np.sqrt(9e8 * 1.2e-8 / (LINE_MASS / 1e-4 * 1.25e-8))
    extension = k * np.sqrt(BENDING / 1e-8 * 1e-4 / LINE_MASS)
    found = np.sqrt(np.diag(beam.stiffness) / np.diag(beam.modal_mass()))
    assert found == pytest.approx([*torsion, *extension], rel=1e-12)


def clamped(beam: FlexibleBody, loads_of) -> Model:
    """A beam whose frame is the ground's, with loads."""
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    beam.frame().orient_axis(N, N.z, 0)
    beam.point().set_pos(O, 0)
    parts = Parts(
        frame=N, origin=O, q=beam.q, u=beam.u, kinematic_equations=beam.kinematic_equations, bodies=beam.bodies,
        loads=[*beam.loads, *loads_of(N)],
    )  # fmt: skip
    model = Model("Clamped", parts)
    model.add(beam)
    return model


def closed_form_shape(beta: float, x: float) -> float:
    """Clamped-free shape of Euler and Bernoulli, 1 at the tip up to its sign."""
    c = (np.cosh(beta) + np.cos(beta)) / (np.sinh(beta) + np.sin(beta))
    y = beta * x / LENGTH
    return (np.cosh(y) - np.cos(y) - c * (np.sinh(y) - np.sin(y))) / 2.0


def test_deflection_under_weight_and_a_tip_force_is_the_closed_forms_of_these_modes():
    """w = Σ φ_k ∫ p φ_k / (E I β_k⁴ ∫ φ_k²), with ∫ φ_k² = L / 4 and ∫ φ_k = L c_k / β_k for 1 at the tip."""
    beam = slender({"bending_y": 3}, foreshortening=False)
    g, F = 9.81, 0.3
    model = clamped(beam, lambda N: [*beam.weight(-g * N.y), (beam.point(-1), F * N.y)])
    found = linearize(model)
    eta = dict(zip(found.names, found.point.x, strict=True))
    expected = 0.0
    for beta in ROOTS["clamped", "free"]:
        shape = closed_form_shape(beta, LENGTH)
        c = (np.cosh(beta) + np.cos(beta)) / (np.sinh(beta) + np.sin(beta))
        force = -LINE_MASS * g * LENGTH * c / beta + F * shape
        expected += shape * force / (BENDING * (beta / LENGTH) ** 4 * LENGTH / 4.0)
    tip = sum(beam.data.modes[k, -1, 1] * eta[f"beam.eta[{k + 1}]"] for k in range(3))
    assert tip == pytest.approx(expected, rel=1e-9)
    whole = F * LENGTH**3 / (3 * BENDING) - LINE_MASS * g * LENGTH**4 / (8 * BENDING)
    assert tip == pytest.approx(whole, rel=2e-3)


def test_axial_force_and_torque_stretch_and_twist_as_the_closed_form_of_these_modes():
    G = 9e8
    beam = slender({"torsion": 2, "extension": 2}, G=G, rotary_inertia=True)
    model = clamped(beam, lambda N: [(beam.point(-1), 5.0 * N.x), (beam.frame(-1), 0.2 * N.x)])
    twist = sum(beam.data.rotations[k, -1, 0] * beam.q[k] for k in range(2))
    model.output("twist", twist, "rad")
    model.output_position("tip", beam.point(-1))
    y = dict(zip((lin := linearize(model)).outputs, lin.y, strict=True))
    share = sum(8 / (np.pi**2 * (2 * k - 1) ** 2) for k in (1, 2))  # of the sum over all modes
    assert y["twist"] == pytest.approx(share * 0.2 * LENGTH / (G * 1.2e-8), rel=1e-9)
    assert y["tip.x"] - LENGTH == pytest.approx(share * 5.0 * LENGTH / (BENDING / 1e-8 * 1e-4), rel=1e-6)


@pytest.mark.parametrize("axis", [*by_night("x"), "z"])
def test_torsion_of_a_spinning_beam_has_the_closed_form_s_frequency(axis):
    """About its own axis the spin changes nothing; about z the frequency's square grows by Ω² (I_z - I_y) / I_p."""
    section, spin = BeamSection.rectangle(0.02, 0.05), 300.0
    beam = FlexibleBody.beam("beam", length=LENGTH, E=70e9, G=26e9, rho=2700.0, section=section, modes={"torsion": 1})
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    beam.frame().orient_axis(N, getattr(N, axis), spin * t)
    beam.point().set_pos(O, 0)
    model = Model(
        "Spinning",
        Parts(
            frame=N, origin=O, q=beam.q, u=beam.u, kinematic_equations=beam.kinematic_equations, bodies=beam.bodies,
            loads=beam.loads,
        ),
    )  # fmt: skip
    model.add(beam)
    small = 1e-5 / float(np.max(beam.data.rotations))
    moments = {"x": 0.0, "z": (section.I_z - section.I_y) / section.polar_moment}[axis]
    expected = beam.data.frequencies()[0] ** 2 + spin**2 * moments
    assert rhs(model)(0.0, [small, 0.0])[1] / small == pytest.approx(-expected, rel=1e-9)


@pytest.mark.usefixtures("arrays_alone")
def test_sections_turn_to_second_order_where_it_counts():
    """Thick beams and torsion: modes that turn sections about the same axis, with a share of the energy that counts."""
    modes, same = {"bending_y": 1, "bending_z": 1, "torsion": 1}, np.eye(3, dtype=bool)
    for radius, counted in ((0.002, np.diag([False, False, True])), (0.2, same)):
        section = BeamSection.circle(radius)
        beam = FlexibleBody.beam("b", length=LENGTH, E=70e9, G=26e9, rho=2700.0, section=section, modes=modes)
        assert np.array_equal(beam.data.second_order_pairs(), counted)
    beam = FlexibleBody.beam(
        "b", length=LENGTH, E=70e9, G=26e9, rho=2700.0, section=section, modes=modes, foreshortening=False
    )
    assert not np.any(beam.data.second_order_pairs())


def spin_up(count: int, *, foreshortening: bool = True) -> tuple[FlexibleBody, Model]:
    """The cantilever of Simo and Vu-Quoc (1986): 10 m, turned up to 6 rad/s within 15 s."""
    section = BeamSection(area=1e-2, I_y=1e-6, I_z=1e-6)
    beam = FlexibleBody.beam(
        "beam", length=10.0, E=1.4e10, rho=120.0, section=section, modes={"bending_y": count},
        foreshortening=foreshortening, rotary_inertia=False,
    )  # fmt: skip
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    T, omega = sm.Integer(15), sm.Integer(6)
    angle = omega / T * (t**2 / 2 + (T / (2 * sm.pi)) ** 2 * (sm.cos(2 * sm.pi * t / T) - 1))
    beam.frame().orient_axis(N, N.z, angle)
    beam.point().set_pos(O, 0)
    parts = Parts(
        frame=N, origin=O, q=beam.q, u=beam.u, kinematic_equations=beam.kinematic_equations, bodies=beam.bodies,
        loads=beam.loads,
    )  # fmt: skip
    model = Model("SpinUp", parts)
    model.add(beam)
    return beam, model


def test_the_spin_up_lags_as_published():
    """J. C. Simo, L. Vu-Quoc, J. Applied Mechanics 53 (1986) 849-863: largest lag 0.57 to 0.58 m, as it is cited."""
    beam, model = spin_up(3)
    f = rhs(model)
    run = solve_ivp(f, (0, 15), f.x0, method="LSODA", rtol=1e-8, atol=1e-10, t_eval=np.linspace(0, 15, 1501))
    tip = beam.data.modes[:, -1, 1] @ run.y[:3]
    assert np.min(tip) == pytest.approx(-0.573, rel=0.02)  # geometrically exact elements
    assert run.t[np.argmin(tip)] == pytest.approx(6.77, abs=0.05)


def test_without_foreshortening_the_spin_up_diverges():
    _, model = spin_up(1, foreshortening=False)
    f = rhs(model)
    run = solve_ivp(f, (0, 15), f.x0, method="LSODA", rtol=1e-8, atol=1e-10)
    assert np.max(np.abs(run.y[0])) > 1e3


def test_a_free_body_keeps_momentum_angular_momentum_and_energy():
    """8 s of a tumbling body with sections and second-order fields, whose frame is no mean frame."""
    body = FlexibleBody("body", **{**random_arrays(4, n=3, m=1), "damping": 0.0})
    f = rhs(free_body(body)).compile()
    run = solve_ivp(f, (0, 8), f.x0, method="DOP853", rtol=1e-11, atol=1e-12)
    y = f.outputs(run.t, run.y.T)
    kept = [i for i, name in enumerate(f.output_names) if name.startswith("momenta") or name == "total_energy"]
    assert len(kept) == 7
    assert np.max(np.abs(y[:, kept] - y[0, kept]) / np.abs(y[0, kept])) <= 1e-9
    energy = y[:, f.output_names.index("body.strain_energy")]
    assert np.max(energy) > 10.0 * np.min(energy)  # it does deform


@pytest.mark.repeats  # by day beams have the closed forms of their modes
def test_a_stiff_beam_moves_as_the_rigid_body():
    """Stiffness times 1e6: the pendulum of a rigid rod, up to the strain that is left."""
    beam = slender({"bending_y": 2, "bending_z": 1}, E=1e6 * BENDING / 1e-8, damping=1.0)
    f = rhs(pinned_body(beam))
    run = solve_ivp(f, (0, 1), f.x0, method="Radau", rtol=1e-9, atol=1e-12)

    def rod(_t, x):
        return [x[1], -1.5 * 9.81 / LENGTH * np.cos(x[0])]

    rigid = solve_ivp(rod, (0, 1), [0.3, 0.0], method="Radau", rtol=1e-10, atol=1e-12)
    assert run.y[0, -1] == pytest.approx(rigid.y[0, -1], abs=1e-5)
    assert np.max(np.abs(run.y[1:4])) < 2e-6


@pytest.mark.usefixtures("arrays_alone")
def test_modes_up_to_a_frequency():
    section = BeamSection.rectangle(0.02, 0.05)
    arguments = {"length": 2.0, "E": 70e9, "rho": 2700.0, "section": section, "foreshortening": False}
    found = FlexibleBody.beam(
        "b", up_to="0.2 kHz", modes=("bending_y", "bending_z"), **arguments
    ).data.frequencies() / (2 * np.pi)
    assert np.all(found < 200.0)
    more = FlexibleBody.beam("b", modes={"bending_y": 6, "bending_z": 6}, **arguments).data.frequencies()
    assert np.sum(more / (2 * np.pi) < 200.0) == len(found)


def test_a_beam_tells_all_its_faults_at_once():
    with pytest.raises(ModelError) as caught:
        FlexibleBody.beam(
            "b", length=-1.0, E=70e9, rho=0.0, section=BeamSection.circle(0.01), up_to="3 kg",
            modes={"bending_y": 1, "bending_q": 1, "torsion": 99}, ends=("clamped", "glued"), theory="reddy",
        )  # fmt: skip
    text = str(caught.value)
    for part in ("length is -1.0", "rho is 0.0", "no modes 'bending_q'", "torsion has 99", "glued", "'reddy'", "3 kg"):
        assert part in text
    assert "G=" in text
    with pytest.raises(ModelError) as caught:
        FlexibleBody.beam("b", length=-1.0, E=70e9, rho=2.7, section="round", modes=["bending_y"], up_to="9 Hz")
    assert "length is -1.0" in str(caught.value)
    assert "section is 'round'" in str(caught.value)


@pytest.mark.parametrize(
    ("make", "sizes"),
    [(BeamSection.circle, (-0.1,)), (BeamSection.circle, (0.1, 0.1)), (BeamSection.rectangle, (0.0, 0.1))],
)
def test_a_section_that_does_not_exist_is_reported(make, sizes):
    with pytest.raises(ModelError, match="in m"):
        make(*sizes)


def test_a_limit_below_all_modes_of_a_beam_is_reported():
    with pytest.raises(ModelError, match="no mode of bending_y is below"):
        slender(["bending_y"], up_to="0.1 Hz")


FLAPPING = {0.0: 3.5160, 3.0: 4.7973, 6.0: 7.3604, 12.0: 13.1702}
"""Angular speed → first flapping frequency, both in units of √(E I / ρ A) / L²; hub radius 0.
As cited of A. D. Wright et al., J. Applied Mechanics 49 (1982) 197-202; the article itself was not at hand."""


def flapping_frequency(spin: float, near: float) -> float:
    """Frequency of the beam's differential equation, by a power series from the root.

    w^(4) = spin² ((1 - x²) w' / 2)' + ω² w, with w = w' = 0 at x = 0, and no moment and no shear force at x = 1.
    """

    def free_end(frequency: float) -> float:
        ends = []
        for first in (2, 3):
            a = np.zeros(60)
            a[first] = 1.0
            for n in range(len(a) - 4):
                tension = (n + 2) * (n + 1) * a[n + 2] / 2 - n * (n + 1) / 2 * a[n]
                a[n + 4] = (spin**2 * tension + frequency**2 * a[n]) / ((n + 4) * (n + 3) * (n + 2) * (n + 1))
            ends.append([np.polynomial.Polynomial(a).deriv(k)(1.0) for k in (2, 3)])
        return ends[0][0] * ends[1][1] - ends[0][1] * ends[1][0]

    return brentq(free_end, 0.9 * near, 1.1 * near, xtol=1e-12)


def spinning_frequencies(count: int) -> np.ndarray:
    """First flapping frequencies of a beam whose frame spins, by the modes at rest."""
    unit = np.sqrt(BENDING / LINE_MASS) / LENGTH**2
    beam, spin = slender({"bending_y": count}), sm.Symbol("spin")
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    beam.frame().orient_axis(N, N.y, spin * t)
    beam.point().set_pos(O, 0)
    parts = Parts(
        frame=N, origin=O, q=beam.q, u=beam.u, kinematic_equations=beam.kinematic_equations, bodies=beam.bodies,
        loads=beam.loads,
    )  # fmt: skip
    model = Model("Spinning", parts)
    model.parameter(spin, 1.0, "rad/s")
    model.add(beam)
    f, h, found = rhs(model), 1e-5, []
    for value in FLAPPING:
        p = np.where([name == "spin" for name in f.parameters], value * unit, f.p0)
        steps = h * np.eye(2 * count)
        A = np.array([(f(0.0, e, p=p) - f(0.0, -e, p=p)) / (2 * h) for e in steps]).T
        found.append(np.min(np.abs(np.linalg.eigvals(A))) / unit)
    return np.array(found)


@pytest.mark.repeats
def test_flapping_frequencies_of_a_spinning_beam_converge_to_those_of_its_equation_from_above():
    exact = np.array([flapping_frequency(spin, near) for spin, near in FLAPPING.items()])
    assert exact == pytest.approx([*FLAPPING.values()], abs=6e-5)
    coarse, fine = (spinning_frequencies(count) / exact - 1.0 for count in (2, 4))
    assert np.all(fine[1:] > 0.0)  # Ritz: stiffer than it is
    assert abs(fine[0]) < 1e-8
    assert np.all(fine[1:] < coarse[1:] / 2.0)
    assert np.all(fine[:3] < 2e-4)
    assert fine[3] < 1e-3
