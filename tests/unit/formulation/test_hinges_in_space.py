"""Four hinges in space, five closing conditions: Bennett's linkage (rank two of five) and a planar one (two of five).

J. E. Angeles, Fundamentals of Robotic Mechanical Systems, 4th ed. 2014, sec. 4.2 (Denavit and Hartenberg's frames);
G. T. Bennett, Engineering 76 (1903) 777-778: sin(alpha) / a = sin(beta) / b.
"""

from dataclasses import replace

import numpy as np
import pytest
import sympy as sm
import sympy.physics.mechanics as me
from scipy.integrate import solve_ivp
from scipy.optimize import least_squares

from mb2fmu import Model, pipeline
from mb2fmu.errors import MechanismError
from mb2fmu.lowering import evaluator
from mb2fmu.mechanism.consistency import parameter_values
from mb2fmu.validation.numeric import NumericEquations

BENNETT = ([1.0, np.sin(1.0) / np.sin(0.6)] * 2, [0.6, 1.0] * 2)
PLANAR = ([0.8, 2.0, 1.0, 2.0], [0.0] * 4)


def angles(lengths, twists, first):
    """The other angles of a loop of hinges."""

    def link(angle, length, twist):
        c, s, ct, st = np.cos(angle), np.sin(angle), np.cos(twist), np.sin(twist)
        return np.array(
            [[c, -s * ct, s * st, length * c], [s, c * ct, -c * st, length * s], [0, st, ct, 0], [0, 0, 0, 1]]
        )

    def gap(rest):
        chain = np.eye(4)
        for each in zip((first, *rest), lengths, twists, strict=True):
            chain = chain @ link(*each)
        return (chain - np.eye(4))[:3].ravel()

    for guess in np.random.default_rng(0).uniform(-3, 3, (50, 3)):
        found = least_squares(gap, guess, xtol=1e-15, ftol=1e-15, gtol=1e-15)
        if found.cost < 1e-20:
            return found.x
    raise AssertionError("the loop does not close")


def linkage(lengths, twists):
    """Three links on three hinges, the fourth closes the loop with five conditions."""
    q, u = me.dynamicsymbols("q1:4"), me.dynamicsymbols("u1:4")
    a, twist, m, g = sm.symbols("a1:5"), sm.symbols("twist1:5"), *sm.symbols("m g")
    ground = me.RigidBody("ground")
    N, system = ground.frame, me.System.from_newtonian(ground)
    body, hinge = ground, N
    for i in range(3):
        frame = me.ReferenceFrame(f"L{i}")
        link = me.RigidBody(f"link{i}", frame=frame, mass=m)
        link.inertia = (me.inertia(frame, m * a[i] ** 2 / 50, m * a[i] ** 2 / 12, m * a[i] ** 2 / 12), link.masscenter)
        joint = me.PinJoint(
            f"joint{i}", body, link, q[i], u[i], parent_point=a[i - 1] / 2 * body.x if i else None,
            child_point=-a[i] / 2 * link.x, parent_interframe=hinge, child_interframe=frame, joint_axis=hinge.z,
        )  # fmt: skip
        system.add_joints(joint)
        system.add_loads(me.Force(link, -m * g * N.y))
        body, hinge = link, frame.orientnew(f"H{i}", "Axis", [twist[i], frame.x])
    back = N.orientnew("back", "Axis", [-twist[3], N.x])
    end = body.masscenter.locatenew("end", a[2] / 2 * body.x)
    gap = end.pos_from(system.fixed_point) + a[3] * N.x
    rows = [*(gap.dot(e) for e in N), hinge.z.dot(back.x), hinge.z.dot(back.y)]
    system.add_holonomic_constraints(*rows)
    model = Model("Hinges", system)
    for symbols, values, unit in ((a, lengths, "m"), (twist, twists, "rad"), ((m, g), (1.0, 9.81), "1")):
        for symbol, value in zip(symbols, values, strict=True):
            model.parameter(symbol, float(value), {m: "kg", g: "m/s2"}.get(symbol, unit))
    start = [1.0, *angles(lengths, twists, 1.0)[:2]]
    for i in range(3):
        model.coordinate(q[i], float(start[i]), "rad", kind="guess" if i else "fixed")
        model.speed(u[i], 0.0 if i else 0.5, "rad/s", kind="guess" if i else "fixed")
    pins = [[(end, e)] for e in N]
    tilts = [[(body.frame, hinge.z.cross(e))] for e in (back.x, back.y)]
    for name, row, acts in zip(("x", "y", "z", "tilt_x", "tilt_y"), rows, pins + tilts, strict=True):
        model.constraint(row, f"last.{name}", acts=acts)
        model.output_multiplier(f"lambda.{name}", row)
    model.output_reaction("first", system.joints[0])
    model.output_total_energy()
    model.experiment(stop=2.0, step=0.05, tolerance=1e-8)
    return model


def test_a_body_where_its_frame_is_meant_is_pointed_out():
    model = linkage(*PLANAR)
    link = model.mechanics.bodies[-1]
    at = next(i for i, item in enumerate(model.declared) if getattr(item, "name", "") == "last.tilt_x")
    model.declared[at] = replace(model.declared[at], acts=((link, model.declared[at].acts[0][1]),))
    with pytest.raises(MechanismError, match=r"last\.tilt_x.*\n.*a torque on its frame \(L2 of link2\)"):
        pipeline.derive(model, method="tmt")


@pytest.fixture(scope="module", params=["bennett", "planar"])
def derivations(request):
    """By both treatments."""
    shape = BENNETT if request.param == "bennett" else PLANAR
    return [pipeline.derive(linkage(*shape), method="tmt", constraints=c) for c in ("attractor", "multipliers")]


def test_three_of_five_conditions_are_named(derivations):
    for derivation in derivations:
        named = derivation.treated.partition("redundant, so that they share their forces: ")[2]
        assert len(named.split(", ")) == 3


def test_motion_forces_of_redundant_rows_and_reactions_are_the_references(derivations):
    """Forces of least norm, by singular values there and by Jacobi's rotations here."""
    for derivation in derivations:
        f, reference = pipeline.right_hand_side(derivation), NumericEquations(derivation.equations)
        p = parameter_values(derivation.mechanism)
        at = reference.motion(0.0, f.x0, [], reference.prepare(p))
        assert f(0.0, f.x0) == pytest.approx(at.x_dot, abs=1e-10)
        assert evaluator(derivation.program, "outputs")(0.0, f.x0, [], p) == pytest.approx(at.outputs, abs=1e-9)


def test_they_swing_without_fighting_their_conditions(derivations):
    """Energy is kept, both treatments agree, and no steps are lost."""
    ends = []
    for derivation in derivations:
        f, p = pipeline.right_hand_side(derivation), parameter_values(derivation.mechanism)
        found = solve_ivp(f, (0, 2), f.x0, "DOP853", rtol=1e-9, atol=1e-9)
        assert found.nfev < 1200
        outputs = evaluator(derivation.program, "outputs")
        energies = [outputs(0.0, x, [], p)[-1] for x in (f.x0, found.y[:, -1])]
        assert energies[1] == pytest.approx(energies[0], abs=1e-5)
        ends.append(found.y[:, -1])
    assert ends[0] == pytest.approx(ends[1], abs=1e-5)
