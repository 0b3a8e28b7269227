"""A quadrotor that carries a box on a stiff, massless rod from a ball joint: two bodies free in space, quaternions.

Coordinates: ``position.x``, ``.y``, ``.z`` of the quadrotor's mass centre in ``N``; ``N.z`` points up. The orientations
of quadrotor and box are unit quaternions ``attitude[1]`` to ``[4]`` and ``swing[1]`` to ``[4]`` (scalar part first;
1, 0, 0, 0 is parallel to ``N``). Speeds are the velocity of the mass centre along the axes of ``N``, and the angular
velocities ``rate.x``, … of the quadrotor along its own axes and ``load_rate.x``, … of the box along its own. No
orientation is singular. The rod hangs along -z of the box from a ball joint just below the quadrotor's mass centre.

Rotors: the input ``thrust[i]`` is the force of rotor i along the quadrotor's z axis, on arms along x, y, -x, -y. Rotors
1 and 3 turn against 2 and 4: their reaction torques about that axis are -c and c times the thrust.

Equations of a quaternion e whose body turns with w: e' = ½ e ∘ (0, w) + k (1 - |e|²) e. The last term makes |e| = 1
attract: orientations do not depend on |e|, and what integration does to the length dies away.

Source: T. Lee, M. Leok, N. H. McClamroch, "Geometric tracking control of a quadrotor UAV on SE(3)", Proc. 49th IEEE
Conf. Decision and Control, 2010, 5420-5425 (data of the quadrotor, rotors); A. L. Schwab, J. P. Meijaard, "How to draw
Euler angles and utilize Euler parameters", Proc. ASME IDETC/CIE 2006, DETC2006-99307 (quaternions).
"""

import sympy as sm
import sympy.physics.mechanics as me

from mb2fmu import Box, Cylinder, Model, Parts

DIAGRAM = """<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 320 290" font-family="serif" font-size="15">
<rect width="320" height="290" fill="white"/>
<path d="M70 92L236 62M112 58L194 98" stroke="#333" stroke-width="4"/>
<g fill="#c6dcef" stroke="#333"><ellipse cx="70" cy="88" rx="34" ry="9"/><ellipse cx="236" cy="58" rx="34" ry="9"/>
<ellipse cx="112" cy="54" rx="30" ry="8"/><ellipse cx="194" cy="94" rx="32" ry="8"/></g>
<circle cx="153" cy="78" r="9" fill="#7fb0dc" stroke="#333"/>
<path d="M154 92L188 212" stroke="#888" stroke-width="3"/><circle cx="154" cy="92" r="4" fill="white" stroke="#333"/>
<path d="M170 214l32 -9l9 32l-32 9z" fill="#9dc3e6" stroke="#333"/>
<g stroke="#d62728" stroke-width="2"><path d="M70 80V42"/><path d="M236 50V12"/><path d="M112 46V14"/>
<path d="M194 86V50"/></g>
<g fill="#d62728"><path d="M70 36l-4 10h8z"/><path d="M236 6l-4 10h8z"/><path d="M112 8l-4 10h8z"/>
<path d="M194 44l-4 10h8z"/></g>
<g font-style="italic"><text x="244" y="24" fill="#d62728">f₁</text><text x="120" y="22" fill="#d62728">f₂</text>
<text x="48" y="48" fill="#d62728">f₃</text><text x="202" y="56" fill="#d62728">f₄</text>
<text x="164" y="80">m, J</text><text x="178" y="158">l</text>
<text x="218" y="232">load</text><text x="32" y="196">g</text></g>
<path d="M22 168V204" stroke="#333" stroke-width="2"/><path d="M22 210l-5 -10h10z" fill="#333"/>
<path d="M20 270H52M20 270V238" stroke="#555" fill="none"/>
<text x="56" y="275" font-size="12">N.x</text><text x="12" y="233" font-size="12">N.z</text>
</svg>
"""


def quadrotor_slung_load() -> Model:
    """The quadrotor hovers, turns and tilts a little; the load swings."""
    t = me.dynamicsymbols._t  # noqa: SLF001  (the symbol of time that SymPy mechanics uses)
    place, velocity = me.dynamicsymbols("x y z"), me.dynamicsymbols("v_x v_y v_z")
    e, f = me.dynamicsymbols("e1:5"), me.dynamicsymbols("f1:5")
    w, s = me.dynamicsymbols("w_x w_y w_z"), me.dynamicsymbols("s_x s_y s_z")
    thrust = me.dynamicsymbols("T1:5")
    m, arm, drag, load, rod, drop, g, k = sm.symbols("m d c m_load l h g k", positive=True)
    J, edges = sm.symbols("J_x J_y J_z"), sm.symbols("a b c_z", positive=True)
    box = [load * (edges[1] ** 2 + edges[2] ** 2) / 12, load * (edges[0] ** 2 + edges[2] ** 2) / 12]
    box.append(load * (edges[0] ** 2 + edges[1] ** 2) / 12)

    N, O = me.ReferenceFrame("N"), me.Point("O")
    Q, B = _turned("Q", N, e, w), _turned("B", N, f, s)
    centre = O.locatenew("centre", sum((c * axis for c, axis in zip(place, N, strict=True)), 0 * N.x))
    joint = centre.locatenew("joint", -drop * Q.z)
    box_centre = joint.locatenew("load", -rod * B.z)
    bodies = [
        me.RigidBody("quadrotor", centre, Q, m, (me.inertia(Q, *J), centre)),
        me.RigidBody("box", box_centre, B, load, (me.inertia(B, *box), box_centre)),
    ]
    loads = [me.Force(centre, -m * g * N.z), me.Force(box_centre, -load * g * N.z)]
    rotors = [centre.locatenew(f"rotor{i}", arm * axis) for i, axis in enumerate((Q.x, Q.y, -Q.x, -Q.y), 1)]
    for i, rotor in enumerate(rotors):
        loads.append(me.Force(rotor, thrust[i] * Q.z))
        loads.append(me.Torque(Q, (-1) ** (i + 1) * drag * thrust[i] * Q.z))
    kinematics = [c.diff(t) - v for c, v in zip(place, velocity, strict=True)]
    parts = Parts(
        frame=N,
        origin=O,
        q=(*place, *e, *f),
        u=(*velocity, *w, *s),
        kinematic_equations=[*kinematics, *_quaternion_equations(e, w, k, t), *_quaternion_equations(f, s, k, t)],
        bodies=bodies,
        loads=loads,
    )

    model = Model("QuadrotorSlungLoad", parts, description="A quadrotor with a box on a rod", diagram=DIAGRAM)
    model.parameter(m, 4.34, "kg", min=1e-6, description="mass of the quadrotor")
    for symbol, value, axis in zip(J, (0.0820, 0.0845, 0.1377), "xyz", strict=True):
        model.parameter(symbol, value, "kg.m2", min=1e-9, description=f"of the quadrotor about its {axis} axis")
    model.parameter(arm, 0.315, "m", min=0.0, description="rotors from the mass centre")
    model.parameter(drag, 8.004e-4, "m", min=0.0, description="reaction torque of a rotor over its thrust")
    model.parameter(load, 1.0, "kg", name="load.mass", min=1e-6, description="mass of the box")
    for symbol, value, axis in zip(edges, (0.2, 0.3, 0.15), "xyz", strict=True):
        name = f"load.edge_{axis}"
        model.parameter(symbol, value, "m", name=name, min=1e-3, description=f"edge of the box along its {axis} axis")
    model.parameter(rod, 1.2, "m", min=1e-6, description="box's mass centre from the ball joint")
    model.parameter(drop, 0.05, "m", min=0.0, description="ball joint below the quadrotor's mass centre")
    model.parameter(g, 9.81, "m/s2", min=0.0, description="acceleration of gravity, along -N.z")
    model.parameter(k, 1.0, "1/s", min=0.0, description="rate at which quaternions are drawn to unit length")
    _declare_states(model, (place, e, f), (velocity, w, s))
    for i, symbol in enumerate(thrust, 1):
        model.input(symbol, 0.0, "N", name=f"thrust[{i}]", description=f"of rotor {i} along the quadrotor's z axis")
    model.output_position("load_position", box_centre)
    model.output_position("load_offset", box_centre, relative_to=centre)
    model.output_orientation("orientation", Q)
    model.output_kinetic_energy()
    hover = 9.81 * (4.34 + 1.0) / 4
    rhythm = (0.6 * sm.cos(4 * t), 0.4 * sm.cos(3 * t), -0.6 * sm.cos(4 * t), -0.4 * sm.cos(3 * t))
    signals = {symbol: hover + part for symbol, part in zip(thrust, rhythm, strict=True)}
    model.experiment(stop=2.0, step=0.02, tolerance=1e-8, signals=signals)
    _draw(model, bodies, rotors, [load.force for load in loads[2::2]])
    return model


def _draw(model: Model, bodies: list[me.RigidBody], rotors: list[me.Point], thrusts: list[me.Vector]) -> None:
    """Arms and rotors with their thrust, the box on its rod; sizes that the model does not have are chosen."""
    (quadrotor, box), arm = bodies, sm.Symbol("d", positive=True)
    model.visual(quadrotor, Box(0.6 * arm, 0.6 * arm, 0.2 * arm), color="#33404f")
    Q = quadrotor.frame
    for rotor, thrust in zip(rotors, thrusts, strict=True):
        model.link(Q, quadrotor.masscenter, rotor, radius=0.04 * arm, color="#33404f")
        model.visual(Q, Cylinder(0.05 * arm, 0.55 * arm), at=rotor, along=Q.z, color="#4c78a8", opacity=0.45)
        model.arrow((rotor, thrust), scale=0.03, color="#54a24b")
    edges = sm.symbols("a b c_z", positive=True)
    joint = box.masscenter.locatenew("hook", sm.Symbol("l", positive=True) * box.frame.z)
    model.visual(box, Box(*edges), color="#c98b3a")
    model.link(box.frame, joint, box.masscenter, radius=0.02 * arm, color="#8a5a00")
    model.trace(box.masscenter)


def _turned(name: str, N: me.ReferenceFrame, e: tuple[sm.Expr, ...], w: tuple[sm.Expr, ...]) -> me.ReferenceFrame:
    """A frame whose orientation in N is the quaternion e, whatever its length, and whose angular velocity is w."""
    a, b, c, d = e
    rotation = sm.Matrix(
        [
            [a**2 + b**2 - c**2 - d**2, 2 * (b * c - a * d), 2 * (b * d + a * c)],
            [2 * (b * c + a * d), a**2 - b**2 + c**2 - d**2, 2 * (c * d - a * b)],
            [2 * (b * d - a * c), 2 * (c * d + a * b), a**2 - b**2 - c**2 + d**2],
        ]
    )
    frame = me.ReferenceFrame(name)
    frame.orient_explicit(N, rotation / (a**2 + b**2 + c**2 + d**2))
    frame.set_ang_vel(N, w[0] * frame.x + w[1] * frame.y + w[2] * frame.z)
    return frame


def _quaternion_equations(e: tuple[sm.Expr, ...], w: tuple[sm.Expr, ...], k: sm.Symbol, t: sm.Symbol) -> list[sm.Expr]:
    """Expressions e' - ½ e ∘ (0, w) - k (1 - |e|²) e, which vanish, for w along the body's own axes."""
    a, b, c, d = e
    x, y, z = w
    turned = (-b * x - c * y - d * z, a * x + c * z - d * y, a * y + d * x - b * z, a * z + b * y - c * x)
    excess = 1 - (a**2 + b**2 + c**2 + d**2)
    return [part.diff(t) - rate / 2 - k * excess * part for part, rate in zip(e, turned, strict=True)]


def _declare_states(
    model: Model, coordinates: tuple[tuple[sm.Expr, ...], ...], speeds: tuple[tuple[sm.Expr, ...], ...]
) -> None:
    """Start values, units and meanings of places, quaternions and speeds."""
    place, e, f = coordinates
    velocity, w, s = speeds
    for symbol, start, axis in zip(place, (0.0, 0.0, 2.0), "xyz", strict=True):
        model.coordinate(symbol, start, "m", name=f"position.{axis}", description=f"of the quadrotor along N.{axis}")
    for name, quaternion, starts, what in (
        ("attitude", e, (1.0, 0.0, 0.0, 0.0), "of the quadrotor"),
        ("swing", f, (float(sm.cos(0.2)), 0.0, float(sm.sin(0.2)), 0.0), "of the box"),
    ):
        for i, (symbol, start) in enumerate(zip(quaternion, starts, strict=True), 1):
            text = f"component {i} of the quaternion {what}"
            model.coordinate(symbol, start, name=f"{name}[{i}]", min=-1.1, max=1.1, description=text)
    for symbol, axis in zip(velocity, "xyz", strict=True):
        model.speed(symbol, 0.0, "m/s", name=f"velocity.{axis}", description=f"of the quadrotor along N.{axis}")
    for name, rate, starts, what in (
        ("rate", w, (0.2, -0.1, 0.5), "of the quadrotor"),
        ("load_rate", s, (0.5, 0.0, 1.0), "of the box"),
    ):
        for symbol, start, axis in zip(rate, starts, "xyz", strict=True):
            text = f"angular velocity {what} along its {axis} axis"
            model.speed(symbol, start, "rad/s", name=f"{name}.{axis}", description=text)
