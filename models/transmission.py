"""A motor that lifts an arm through a belt and a pair of gears: couplings that are linear in the coordinates.

Coordinates, angles about ``N.z``, counter-clockwise positive: ``motor`` of the motor's shaft, ``between`` of the shaft
between belt and gears, ``arm`` of the output shaft with the arm on it, from ``N.x`` (to the right). The belt does not
stretch and does not slip, the gears mesh without play:

    r1 motor - r2 between = 0,     r3 between + r4 (arm - arm0) = 0

where r1, r2 are the radii of the pulleys, r3, r4 the pitch radii of the gears, which turn against each other, and
``arm0`` is the angle of the arm where the others are zero. The rows are lengths of belt and of pitch circle, so their
multipliers are forces: what the tight side of the belt pulls more than the slack side, and the force between the teeth
along the pitch circles. Gravity acts along -N.y on the arm only.

All in terms of the arm, with the ratio n = motor' / arm' = -(r4 / r3) (r2 / r1) and n2 = between' / arm' = -r4 / r3:

    (J1 n² + J2 n2² + J3 + m c²) arm'' = n torque - d n² arm' - m g c cos(arm).

Source: M. Hiller, Mechanische Systeme, Springer 1983 (transmissions as constraints); the equation above is elementary.
"""

import sympy as sm
import sympy.physics.mechanics as me

from mb2fmu import Box, Cylinder, Model, Parts

DIAGRAM = """<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 340 180" font-family="serif" font-size="15">
<rect width="340" height="180" fill="white"/>
<path d="M51 76L149 52M51 104L149 128" stroke="#555" stroke-width="3"/>
<circle cx="55" cy="90" r="14" fill="#cfe2f3" stroke="#1f77b4" stroke-width="2"/>
<circle cx="155" cy="90" r="38" fill="#e3f1e3" stroke="#2ca02c" stroke-width="2"/>
<circle cx="155" cy="90" r="16" fill="#bfe0bf" stroke="#2ca02c" stroke-dasharray="3 2" stroke-width="3"/>
<circle cx="215" cy="90" r="44" fill="none" stroke="#ff7f0e" stroke-dasharray="3 2" stroke-width="3"/>
<path d="M215 90L312 130" stroke="#ff7f0e" stroke-width="7" stroke-linecap="round"/>
<g fill="white" stroke="#333" stroke-width="2"><circle cx="55" cy="90" r="4"/><circle cx="155" cy="90" r="4"/>
<circle cx="215" cy="90" r="4"/></g><circle cx="294" cy="122" r="8" fill="#333"/>
<path d="M30 66A34 34 0 0 0 28 112" fill="none" stroke="#d62728" stroke-width="2"/>
<path d="M31 117l-7 -6l9 -2z" fill="#d62728"/>
<g font-style="italic"><text x="10" y="56" fill="#d62728">torque</text><text x="48" y="126">r₁</text>
<text x="124" y="148">r₂</text><text x="150" y="70">r₃</text><text x="214" y="40">r₄</text>
<text x="270" y="104">c</text><text x="290" y="150">m</text><text x="318" y="44">g</text></g>
<path d="M326 52V80" stroke="#333" stroke-width="2"/><path d="M326 86l-5 -10h10z" fill="#333"/>
</svg>
"""


def transmission() -> Model:
    """The arm, hanging at first, swung up and down by the motor."""
    t = me.dynamicsymbols._t  # noqa: SLF001  (the symbol of time that SymPy mechanics uses)
    q = motor, between, arm = me.dynamicsymbols("motor between arm")
    u = w_motor, w_between, w_arm = me.dynamicsymbols("w_motor w_between w_arm")
    torque = me.dynamicsymbols("torque")
    radii = r1, r2, r3, r4 = sm.symbols("r1:5", positive=True)
    J1, J2, J3, m, c, d, g = sm.symbols("J1 J2 J3 m c d g", positive=True)
    m1, m2 = sm.symbols("m1 m2", positive=True)
    arm0 = sm.Symbol("arm0")

    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    shafts = (O, O.locatenew("O2", 3 * r2 * N.x), O.locatenew("O3", (3 * r2 + r3 + r4) * N.x))
    frames = []
    for name, angle, speed in zip("ABC", q, u, strict=True):
        frames.append(N.orientnew(name, "Axis", (angle, N.z)))
        frames[-1].set_ang_vel(N, speed * N.z)
    for shaft in shafts[1:]:
        shaft.set_vel(N, 0)
    A, B, C = frames
    centre = shafts[2].locatenew("centre", c * C.x)
    bodies = (
        me.RigidBody("rotor", shafts[0], A, m1, (me.inertia(A, 0, 0, J1), shafts[0])),
        me.RigidBody("between_shaft", shafts[1], B, m2, (me.inertia(B, 0, 0, J2), shafts[1])),
        me.RigidBody("lever", centre, C, m, (me.inertia(C, 0, 0, J3), centre)),
    )
    belt, teeth = r1 * motor - r2 * between, r3 * between + r4 * (arm - arm0)
    drive = me.TorqueActuator(torque - d * w_motor, N.z, A, N)
    parts = Parts(
        frame=N,
        origin=O,
        q=q,
        u=u,
        kinematic_equations=tuple(speed - place.diff() for place, speed in zip(q, u, strict=True)),
        bodies=bodies,
        loads=(me.Force(centre, -m * g * N.y),),
        actuators=(drive,),
        holonomic_constraints=(belt, teeth),
        q_dependent=(motor, between),
        u_dependent=(w_motor, w_between),
    )

    model = Model("Transmission", parts, description="An arm behind a belt and a pair of gears", diagram=DIAGRAM)
    what = ("pulley on the motor", "pulley on the shaft between", "gear on the shaft between", "gear on the arm")
    for radius, value, text in zip(radii, (0.02, 0.06, 0.03, 0.12), what, strict=True):
        model.parameter(radius, value, "m", min=1e-6, description=f"radius of the {text}")
    model.parameter(m1, 1.2, "kg", min=0.0, description="mass of the rotor")
    model.parameter(m2, 1.5, "kg", min=0.0, description="mass of the shaft between, with its wheels")
    model.parameter(J1, 4e-4, "kg.m2", min=0.0, description="inertia of the rotor")
    model.parameter(J2, 3e-3, "kg.m2", min=0.0, description="inertia of the shaft between, with its wheels")
    model.parameter(J3, 0.08, "kg.m2", min=0.0, description="inertia of arm and gear about their mass centre")
    model.parameter(m, 3.0, "kg", min=1e-6, description="mass of arm and gear")
    model.parameter(c, 0.3, "m", min=0.0, description="distance of the arm's mass centre from its shaft")
    model.parameter(d, 2e-3, "N.m.s/rad", min=0.0, description="damping of the motor")
    model.parameter(arm0, -1.5707963267948966, "rad", description="angle of the arm where the motor's is zero")
    model.parameter(g, 9.81, "m/s2", min=0.0, description="acceleration of gravity, along -N.y")
    model.input(torque, 0.0, "N.m", description="torque of the motor, counter-clockwise positive")
    model.coordinate(motor, 0.0, "rad", kind="guess", description="angle of the motor")
    model.coordinate(between, 0.0, "rad", kind="guess", description="angle of the shaft between")
    model.coordinate(arm, -1.5707963267948966, "rad", display_unit="deg", description="angle of the arm from N.x")
    model.speed(w_motor, 0.0, "rad/s", nominal=10.0, kind="guess", description="angular speed of the motor")
    model.speed(w_between, 0.0, "rad/s", kind="guess", description="angular speed of the shaft between")
    model.speed(w_arm, 0.0, "rad/s", description="angular speed of the arm")
    model.output_multiplier("belt_force", belt)
    model.output_multiplier("tooth_force", teeth)
    model.output("arm_acceleration", w_arm.diff(), "rad/s2", description="angular acceleration of the arm")
    model.output_position("tip", centre)
    model.output_power("motor_power", drive)
    model.output_total_energy()
    _draw(model, bodies, shafts, (*radii, c))
    model.experiment(stop=5.0, step=0.02, tolerance=1e-8, signals={torque: -0.9 * sm.sin(2 * t)})
    return model


def _draw(
    model: Model, bodies: tuple[me.RigidBody, ...], shafts: tuple[me.Point, ...], sizes: tuple[sm.Symbol, ...]
) -> None:
    """Pulleys, gears with a mark each, the belt along its tangents, the arm."""
    (rotor, between, lever), (r1, r2, r3, r4, c) = bodies, sizes
    wheels = ((rotor, shafts[0], r1, 0), (between, shafts[1], r2, 0), (between, shafts[1], r3, -1))
    for body, shaft, radius, layer in (*wheels, (lever, shafts[2], r4, -1)):
        place = shaft.locatenew("wheel", layer * r1 * body.frame.z)
        model.visual(body, Cylinder(0.7 * r1, radius), at=place, along=body.frame.z, color="#c9ced6")
        model.visual(body, Box(1.9 * radius, r1 / 5, 0.8 * r1), at=place)
    model.link(lever, shafts[2], shafts[2].locatenew("arm_end", 1.6 * c * lever.frame.x), radius=r1 / 2)
    # Tangents of both pulleys lean by what their radii differ over the distance of the shafts.
    N = shafts[1].pos_from(shafts[0]).separate().popitem()[0]
    s = (r2 - r1) / (3 * r2)
    for side in (-1, 1):
        normal = -s * N.x + side * sm.sqrt(1 - s**2) * N.y
        ends = [shaft.locatenew("belt", r * normal) for shaft, r in zip(shafts, (r1, r2), strict=False)]
        model.link(N, *ends, radius=r1 / 8, color="#333333")
