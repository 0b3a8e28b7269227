"""A chain of n uniform rods on pins in a plane (n = 3 unless said otherwise; 2 to 10): parts built in a loop.

Coordinates: ``q1`` to ``qn`` are the angles of the rods from the downward vertical (absolute, not from rod to rod),
positive counter-clockwise about ``N.z`` (out of the page); ``N.x`` points to the right, ``N.y`` up. The speeds ``u1``
to ``un`` are their derivatives. All rods have the same length l and mass m; each pin brakes with the torque -d times
the speed of its two rods relative to each other.

Equations: sum over j of M_ij cos(q_i - q_j) u_j' = ..., with M_ij = m l² (n - max(i, j) + 1/2) for i ≠ j.

Source: T. R. Kane, D. A. Levinson, Dynamics: Theory and Applications, McGraw-Hill 1985, ch. 6 (the method).
"""

import sympy as sm
import sympy.physics.mechanics as me

from mb2fmu import Cylinder, Model, Parts

DIAGRAM = """<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 280 250" font-family="serif" font-size="15">
<rect width="280" height="250" fill="white"/>
<path d="M50 30H130" stroke="#333" stroke-width="3"/>
<g stroke="#888" stroke-dasharray="5 4"><path d="M90 30V100M135 82V150M197 110V180"/></g>
<g stroke-width="7" stroke-linecap="round"><path d="M90 30L135 82" stroke="#1f77b4"/>
<path d="M135 82L197 110" stroke="#2ca02c"/><path d="M197 110L219 175" stroke="#ff7f0e"/></g>
<path d="M222 186L232 218" stroke="#888" stroke-width="4" stroke-dasharray="2 6" stroke-linecap="round"/>
<g fill="white" stroke="#333" stroke-width="2"><circle cx="90" cy="30" r="5"/><circle cx="135" cy="82" r="5"/>
<circle cx="197" cy="110" r="5"/></g>
<g fill="none" stroke="#d62728" stroke-width="2"><path d="M90 74A44 44 0 0 0 116 65"/>
<path d="M135 126A44 44 0 0 0 173 103"/><path d="M197 156A46 46 0 0 0 210 155"/></g>
<g fill="#d62728"><path d="M122 60l-10 3l6 7z"/><path d="M176 96l-8 6l8 5z"/><path d="M218 152l-10 -2l2 9z"/></g>
<g font-style="italic"><text x="96" y="94" fill="#d62728">q₁</text><text x="158" y="136" fill="#d62728">q₂</text>
<text x="178" y="190" fill="#d62728">q₃</text><text x="120" y="54">l, m</text><text x="172" y="92">l, m</text>
<text x="216" y="142">l, m</text><text x="36" y="118">g</text></g>
<path d="M26 90V126" stroke="#333" stroke-width="2"/><path d="M26 132l-5 -10h10z" fill="#333"/>
<path d="M20 230H52M20 230V198" stroke="#555" fill="none"/>
<text x="56" y="235" font-size="12">N.x</text><text x="12" y="193" font-size="12">N.y</text>
</svg>
"""


def n_link_pendulum(n: int = 3) -> Model:
    """The chain, released in a fan: rod i at i·0.3 rad.

    Args:
        n: Number of rods, 2 to 10.
    """
    if not 2 <= n <= 10:
        msg = f"a chain of {n} rods: n must be 2 to 10"
        raise ValueError(msg)
    t = me.dynamicsymbols._t  # noqa: SLF001  (the symbol of time that SymPy mechanics uses)
    q, u = me.dynamicsymbols(f"q1:{n + 1}"), me.dynamicsymbols(f"u1:{n + 1}")
    m, length, inertia, g, d = sm.symbols("m l I g d", positive=True)

    N = me.ReferenceFrame("N")
    O = me.Point("O")
    O.set_vel(N, 0)
    bodies, loads, actuators = [], [], []
    pin, before = O, N
    for i in range(n):
        A = me.ReferenceFrame(f"A{i + 1}")
        A.orient_axis(N, N.z, q[i])
        A.set_ang_vel(N, u[i] * N.z)
        middle = pin.locatenew(f"middle{i + 1}", -length / 2 * A.y)
        middle.v2pt_theory(pin, N, A)
        bodies.append(me.RigidBody(f"rod{i + 1}", middle, A, m, (me.inertia(A, inertia, 0, inertia), middle)))
        loads.append(me.Force(middle, -m * g * N.y))
        relative = u[i] - (u[i - 1] if i else 0)
        actuators.append(me.TorqueActuator(-d * relative, N.z, A, before))
        end = pin.locatenew(f"pin{i + 2}", -length * A.y)
        end.v2pt_theory(pin, N, A)
        pin, before = end, A
    parts = Parts(
        frame=N,
        origin=O,
        q=q,
        u=u,
        kinematic_equations=[speed - coordinate.diff(t) for coordinate, speed in zip(q, u, strict=True)],
        bodies=bodies,
        loads=loads,
        actuators=actuators,
    )

    model = Model("NLinkPendulum", parts, description=f"A chain of {n} uniform rods on pins", diagram=DIAGRAM)
    model.parameter(m, 0.5, "kg", min=1e-6, description="mass of each rod")
    model.parameter(length, 0.4, "m", min=1e-6, description="length of each rod")
    model.parameter(inertia, m * length**2 / 12, "kg.m2", description="central inertia of a rod across its length")
    model.parameter(g, 9.81, "m/s2", min=0.0, description="acceleration of gravity, along -N.y")
    model.parameter(d, 0.005, "N.m.s/rad", min=0.0, description="damping of each pin")
    for i in range(n):
        model.coordinate(
            q[i],
            0.3 * (i + 1),
            "rad",
            display_unit="deg",
            description=f"angle of rod {i + 1} from the downward vertical",
        )
        model.speed(u[i], 0.0, "rad/s", description=f"angular speed of rod {i + 1}")
    for rod in bodies:
        model.visual(rod, Cylinder(length, 0.012))
    model.trace(pin)
    model.output_position("tip", pin)
    model.output_kinetic_energy()
    model.output_potential_energy()
    model.output_total_energy()
    model.experiment(stop=3.0, step=0.01, tolerance=1e-8)
    return model
