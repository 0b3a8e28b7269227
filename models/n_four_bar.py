"""N four-bar linkages side by side that share their cranks: many loops, and positions where they become singular.

Coordinates: ``crank[i]`` is the angle of crank i = 0 … N from ``N.x`` (to the right), ``coupler[j]`` that of coupler
j = 0 … N-1, which joins the tips of cranks j and j + 1; all about ``N.z``, counter-clockwise positive. All links are
uniform rods of length ``l`` and mass ``m``; crank i is pinned to the ground at i l N.x, so that the loops are
parallelograms. Gravity acts along -N.y. Where all rods lie in one line the Jacobian of the loops loses rank: each loop
could leave the parallelogram there. The motion that is wanted goes on with the velocity that it has.

Without the loops' freedom to fold, the linkage is a pendulum: with theta the angle of the cranks from N.x,

    ((N + 1) / 3 + N) l theta'' = -g ((N + 1) / 2 + N) cos(theta).

Source: IFToMM Technical Committee for Multibody Dynamics, Library of Computational Benchmark Problems, A02: N-four-bar
mechanism; D. Dopico et al., Multibody System Dynamics 31 (2014) 223-241 (singular positions).
"""

import sympy as sm
import sympy.physics.mechanics as me

from mb2fmu import Box, Cylinder, Model, Parts

DIAGRAM = """<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 320 200" font-family="serif" font-size="15">
<rect width="320" height="200" fill="white"/>
<path d="M30 160H290" stroke="#333" stroke-width="2"/>
<g stroke="#1f77b4" stroke-width="7" stroke-linecap="round"><path d="M60 160L80 72"/><path d="M150 160L170 72"/>
<path d="M240 160L260 72"/></g>
<g stroke="#2ca02c" stroke-width="7" stroke-linecap="round"><path d="M80 72H170M170 72H260"/></g>
<g fill="white" stroke="#333" stroke-width="2"><circle cx="60" cy="160" r="5"/><circle cx="150" cy="160" r="5"/>
<circle cx="240" cy="160" r="5"/><circle cx="80" cy="72" r="5"/><circle cx="170" cy="72" r="5"/>
<circle cx="260" cy="72" r="5"/></g>
<path d="M88 160A28 28 0 0 0 66 133" fill="none" stroke="#d62728" stroke-width="2"/>
<path d="M61 131l9 -1l-4 8z" fill="#d62728"/>
<g font-style="italic"><text x="86" y="142" fill="#d62728">crank₀</text><text x="100" y="60">coupler₀</text>
<text x="52" y="66">B₀</text><text x="300" y="50">g</text></g>
<path d="M296 58V92" stroke="#333" stroke-width="2"/><path d="M296 98l-5 -10h10z" fill="#333"/>
</svg>
"""


def n_four_bar(n: int = 2) -> Model:
    """N linkages that start upright, their couplers moving to the right at 1 m/s."""
    crank = me.dynamicsymbols(f"crank:{n + 1}")
    coupler = me.dynamicsymbols(f"coupler:{n}")
    omega = me.dynamicsymbols(f"omega:{n + 1}")
    nu = me.dynamicsymbols(f"nu:{n}")
    length, m, g = sm.symbols("l m g", positive=True)

    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    bodies, loops = [], []

    def rod(name: str, angle: sm.Expr, speed: sm.Expr, base: me.Point) -> me.Point:
        frame = N.orientnew(name, "Axis", (angle, N.z))
        frame.set_ang_vel(N, speed * N.z)
        centre = base.locatenew(f"{name}_centre", length / 2 * frame.x)
        inertia = me.inertia(frame, 0, 0, m * length**2 / 12)
        bodies.append(me.RigidBody(name, centre, frame, m, (inertia, centre)))
        return base.locatenew(f"{name}_tip", length * frame.x)

    ground = [O.locatenew(f"A{i}", i * length * N.x) for i in range(n + 1)]
    tips = [rod(f"C{i}", crank[i], omega[i], ground[i]) for i in range(n + 1)]
    for j in range(n):
        end = rod(f"D{j}", coupler[j], nu[j], tips[j])
        loops += [end.pos_from(tips[j + 1]).dot(axis) for axis in (N.x, N.y)]
    q, u = (*crank, *coupler), (*omega, *nu)
    parts = Parts(
        frame=N,
        origin=O,
        q=q,
        u=u,
        kinematic_equations=tuple(ui - qi.diff() for qi, ui in zip(q, u, strict=True)),
        bodies=tuple(bodies),
        loads=tuple(me.Force(body.masscenter, -m * g * N.y) for body in bodies),
        holonomic_constraints=tuple(loops),
        q_dependent=q[1:],
        u_dependent=u[1:],
    )

    model = Model("NFourBar", parts, description=f"{n} four-bar linkages side by side", diagram=DIAGRAM)
    model.parameter(length, 1.0, "m", min=1e-6, description="length of each rod")
    model.parameter(m, 1.0, "kg", min=1e-6, description="mass of each rod")
    model.parameter(g, 9.81, "m/s2", min=0.0, description="acceleration of gravity, along -N.y")
    for i in range(n + 1):
        kind, first = ("guess", "") if i else ("fixed", "the first ")
        upright = float(sm.pi) / 2
        model.coordinate(
            crank[i], upright, "rad", name=f"crank[{i}]", kind=kind, description=f"angle of {first}crank {i} from N.x"
        )
        model.speed(omega[i], -1.0, "rad/s", name=f"omega[{i}]", kind=kind, description=f"angular speed of crank {i}")
    for j in range(n):
        model.coordinate(
            coupler[j], 0.0, "rad", name=f"coupler[{j}]", kind="guess", description=f"angle of coupler {j} from N.x"
        )
        model.speed(nu[j], 0.0, "rad/s", name=f"nu[{j}]", kind="guess", description=f"angular speed of coupler {j}")
    model.potential_energy(m * g * sum(body.masscenter.pos_from(O).dot(N.y) for body in bodies))
    model.output_position("B0", tips[0])
    model.output_velocity("B0_velocity", tips[0])
    model.output_total_energy()
    # Couplers in front of the cranks, the ground behind both: the rods pass each other.
    for body, layer in zip(bodies, (*((0,) * (n + 1)), *((1,) * n)), strict=True):
        before = body.masscenter.locatenew("before", layer * length / 12 * body.frame.z)
        model.visual(body, Cylinder(length, length / 30), at=before, along=body.frame.x)
    for i, (base, tip) in enumerate(zip(ground, tips, strict=True)):
        model.visual(N, Cylinder(length / 4, length / 22), at=base, along=N.z, color="#5b6470")
        before = tip.locatenew("before", length / 24 * bodies[i].frame.z)
        model.visual(
            bodies[i].frame, Cylinder(length / 5, length / 22), at=before, along=bodies[i].frame.z, color="#5b6470"
        )
    beam = O.locatenew("beam", n * length / 2 * N.x - length / 8 * N.z)
    model.visual(N, Box((n + 0.3) * length, length / 8, length / 30), at=beam, color="#8a94a3")
    model.trace(tips[0])
    model.experiment(stop=0.6, step=0.01, tolerance=1e-8)
    return model
