"""Constraints of the wrong level: one message with the argument's name, and none that follows from it."""

import pytest
import sympy as sm
from mechanisms import model_of
from sympy.physics import mechanics as me

from mb2fmu.errors import ModelError
from mb2fmu.model import check_model
from mb2fmu.model.model import Parts

T = me.dynamicsymbols._t
ARGUMENTS = {
    "lagrange": ("hol_coneqs", "nonhol_coneqs"),
    "kane": ("configuration_constraints", "velocity_constraints"),
    "parts": ("holonomic_constraints", "velocity_constraints"),
    "system": ("holonomic_constraints", "nonholonomic_constraints"),
}


def _particle_on_a_curve(kind, *, positions, velocities):
    """A particle in a plane; the rows are those of the curve x² + y = l, by how often they are differentiated.

    Args:
        kind: What is handed over.
        positions: Orders of the rows that are handed over as constraints on positions.
        velocities: Of those on velocities.
    """
    m, l = sm.symbols("m l")
    x, y, u, v = me.dynamicsymbols("x y u v")
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    P = O.locatenew("P", x * N.x + y * N.y)
    speeds = [x.diff(), y.diff()] if kind == "lagrange" else [u, v]
    P.set_vel(N, speeds[0] * N.x + speeds[1] * N.y)
    particle = me.Particle("P", P, m)
    curve = x**2 + y - l
    rows = [curve, 2 * x * speeds[0] + speeds[1], curve.diff(T, 2)]
    holonomic, nonholonomic = [rows[order] for order in positions], [rows[order] for order in velocities]
    rates = [x.diff() - u, y.diff() - v]
    q_dependent, u_dependent = [y] * len(holonomic), [v] * (len(holonomic) + len(nonholonomic))
    if kind == "lagrange":
        mechanics = me.LagrangesMethod(
            me.Lagrangian(N, particle), [x, y], hol_coneqs=holonomic, nonhol_coneqs=nonholonomic, frame=N
        )
    elif kind == "kane":
        mechanics = me.KanesMethod(
            N,
            [q for q in (x, y) if q not in q_dependent],
            [u],
            rates,
            q_dependent=q_dependent,
            configuration_constraints=holonomic,
            u_dependent=u_dependent[:1],
            velocity_constraints=[rows[1]] * len(holonomic) + nonholonomic,
            bodies=[particle],
        )
    elif kind == "parts":
        mechanics = Parts(
            frame=N,
            origin=O,
            q=[x, y],
            u=[u, v],
            kinematic_equations=rates,
            bodies=[particle],
            holonomic_constraints=holonomic,
            velocity_constraints=nonholonomic,
            q_dependent=q_dependent,
            u_dependent=u_dependent,
        )
    else:
        mechanics = me.System(N, O)
        mechanics.q_ind, mechanics.u_ind, mechanics.u_dep = [x] if holonomic else [x, y], [u], [v]
        if holonomic:
            mechanics.q_dep = [y]
        mechanics.kdes = rates
        mechanics.add_bodies(particle)
        mechanics.add_holonomic_constraints(*holonomic)
        mechanics.add_nonholonomic_constraints(*nonholonomic)
    return model_of("Curve", mechanics, [x, y], speeds, m=1.0, **({"l": 0.5} if 0 in (*positions, *velocities) else {}))


@pytest.mark.parametrize("kind", list(ARGUMENTS))
@pytest.mark.parametrize("order", [1, 2])
def test_positions_are_no_velocities_and_no_accelerations(kind, order):
    with pytest.raises(ModelError) as error:
        check_model(_particle_on_a_curve(kind, positions=[order], velocities=[]))
    (fault,) = error.value.faults
    positions, velocities = ARGUMENTS[kind]
    assert fault.what.startswith(f"{positions} takes constraints on positions")
    assert "row 1" in fault.what
    assert (velocities in fault.remedy) == (order == 1)


@pytest.mark.parametrize("kind", ["lagrange", "parts", "system"])  # KanesMethod itself refuses such rows
@pytest.mark.parametrize("order", [0, 2])
def test_velocities_are_no_positions_and_no_accelerations(kind, order):
    with pytest.raises(ModelError) as error:
        check_model(_particle_on_a_curve(kind, positions=[], velocities=[order]))
    (fault,) = error.value.faults
    positions, velocities = ARGUMENTS[kind]
    assert fault.what.startswith(f"{velocities} takes constraints on velocities")
    assert (positions in fault.remedy) == (order == 0)


@pytest.mark.parametrize("kind", list(ARGUMENTS))
@pytest.mark.parametrize(("positions", "velocities"), [([0], []), ([], [1])])
def test_rows_of_the_right_level_pass(kind, positions, velocities):
    check_model(_particle_on_a_curve(kind, positions=positions, velocities=velocities))
