"""A flyball governor whose couplers are stiff springs and dampers: loops that are closed by forces, and by constraints.

A shaft stands upright and turns about ``N.z``. Two rods hang from pins at its top, on both sides, and carry balls at
their ends; a slider runs along the shaft and turns with it. From the middle of each rod a coupler goes to the slider.
Turning faster the balls go out and lift the slider.

Coordinates: ``spin`` of the shaft about N.z; ``s``, the height of the slider's centre above the foot of the shaft;
``tilt1`` and ``tilt2``, the angles of the rods from straight down, positive outwards. The origin is the shaft's foot.
Rods and shaft are square bars, the slider is a cube, the balls are points. Gravity acts along -N.z.

In the benchmark the couplers are spring-dampers of length l/2 at rest, with 8e5 N/m and 4e4 N.s/m: they damp at some
2e4 1/s what lasts for seconds, so an explicit method takes steps of 0.1 ms for nothing. ``rigid=True`` takes rods of
that length without mass instead: two closed loops, and what the stiff mechanism tends to as its springs get harder.

Source: M. Gonzalez, D. Dopico, U. Lugris, J. Cuadrado, "A benchmarking system for MBS simulation software: Problem
standardization and performance measurement", Multibody System Dynamics 16 (2006) 179-190; IFToMM library of
computational benchmark problems, A05 "stiff flyball governor".
"""

from typing import Literal

import sympy as sm
import sympy.physics.mechanics as me

from mb2fmu import Box, Cylinder, Model, Sphere

DIAGRAM = """<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 320 250" font-family="serif" font-size="15">
<rect width="320" height="250" fill="white"/>
<path d="M130 226H190" stroke="#333" stroke-width="3"/>
<path d="M160 226V24" stroke="#555" stroke-width="5"/>
<path d="M146 30H174" stroke="#555" stroke-width="5"/>
<path d="M174 30L286 94M146 30L34 94" stroke="#1f77b4" stroke-width="6" stroke-linecap="round"/>
<path d="M230 62L174 128M90 62L146 128" stroke="#d62728" stroke-width="2.500" stroke-dasharray="7 3"/>
<rect x="146" y="114" width="28" height="28" fill="#ffe5cc" stroke="#ff7f0e" stroke-width="2"/>
<g fill="#333"><circle cx="286" cy="94" r="9"/><circle cx="34" cy="94" r="9"/></g>
<g fill="white" stroke="#333" stroke-width="1.500"><circle cx="174" cy="30" r="4"/><circle cx="146" cy="30" r="4"/>
<circle cx="230" cy="62" r="3"/><circle cx="90" cy="62" r="3"/></g>
<path d="M174 36V84" stroke="#888" stroke-dasharray="4 4"/>
<path d="M174 72A42 42 0 0 0 211 51" fill="none" stroke="#2ca02c" stroke-width="2"/>
<path d="M110 226V128M106 128H140" stroke="#555" fill="none"/>
<path d="M140 208A24 8 0 0 0 182 210" fill="none" stroke="#9467bd" stroke-width="2"/>
<path d="M188 206l-9 -1l5 9z" fill="#9467bd"/>
<g font-style="italic"><text x="192" y="92" fill="#2ca02c">tilt₁</text><text x="98" y="184">s</text>
<text x="194" y="214" fill="#9467bd">spin</text><text x="210" y="110" fill="#d62728">K, C</text>
<text x="252" y="58">l</text><text x="274" y="124">m<tspan dy="3" font-size="9">b</tspan></text>
<text x="288" y="176">g</text></g>
<path d="M280 160V196" stroke="#333" stroke-width="2"/><path d="M280 202l-5 -10h10z" fill="#333"/>
</svg>
"""


def governor(rigid: bool = False) -> Model:
    """The benchmark: the shaft starts at one turn per second and is left alone; the input ``torque`` is zero."""
    spin, s, tilt1, tilt2 = me.dynamicsymbols("spin s tilt1 tilt2")
    omega, v, w1, w2 = me.dynamicsymbols("omega v w1 w2")
    torque = me.dynamicsymbols("torque")
    l, b, h, m, ms, mb, K, C, g = sm.symbols("l b h m m_s m_b K C g", positive=True)

    ground = me.RigidBody("ground")
    system = me.System.from_newtonian(ground)
    N = system.frame
    shaft, rod1, rod2 = (_bar(name, m, l, b) for name in ("shaft", "rod1", "rod2"))
    S = shaft.frame
    slider = me.RigidBody("slider", frame=me.ReferenceFrame("P"), mass=ms)
    slider.central_inertia = me.inertia(slider.frame, *(3 * [ms * h**2 / 6]))
    system.add_joints(
        me.PinJoint("bearing", ground, shaft, spin, omega, child_point=-l / 2 * S.z, joint_axis=N.z),
        me.PrismaticJoint("guide", shaft, slider, s, v, parent_point=-l / 2 * S.z, joint_axis=S.z),
    )
    balls, couplers = [], []
    for side, rod, tilt, w in ((1, rod1, tilt1, w1), (-1, rod2, tilt2, w2)):
        number = rod.name[-1]
        # The rod's z points up when it hangs; outwards is about -S.y on the right and about S.y on the left.
        at, end = side * h / 2 * S.x + l / 2 * S.z, l / 2 * rod.frame.z
        axis = -side * S.y
        system.add_joints(
            me.PinJoint(f"pin{number}", shaft, rod, tilt, w, parent_point=at, child_point=end, joint_axis=axis)
        )
        tip = rod.masscenter.locatenew(f"B{number}", -end)
        tip.v2pt_theory(rod.masscenter, N, rod.frame)
        balls.append(me.Particle(f"ball{number}", tip, mb))
        eye = slider.masscenter.locatenew(f"E{number}", side * h / 2 * slider.frame.x)
        eye.v2pt_theory(slider.masscenter, N, slider.frame)
        couplers.append(me.LinearPathway(rod.masscenter, eye))
    system.add_bodies(*balls)
    system.apply_uniform_gravity(-g * N.z)
    system.add_actuators(me.TorqueActuator(torque, N.z, shaft, ground))
    rows = [path.length**2 - l**2 / 4 for path in couplers] if rigid else []
    system.add_holonomic_constraints(*rows)
    for path in () if rigid else couplers:
        system.add_actuators(me.LinearSpring(K, path, equilibrium_length=l / 2), me.LinearDamper(C, path))

    what = "rigid rods" if rigid else "stiff spring-dampers"
    model = Model("Governor", system, description=f"A flyball governor, its couplers {what}", diagram=DIAGRAM)
    _declare_parameters(model, (l, b, h, m, ms, mb, g), () if rigid else (K, C))
    model.input(torque, 0.0, "N.m", description="torque on the shaft from the ground, about N.z")
    _declare_motion(model, (spin, s, tilt1, tilt2), (omega, v, w1, w2), kind="guess" if rigid else "fixed")
    model.output_position("ball", balls[0].masscenter)
    model.output("slider_acceleration", v.diff(), "m/s2", description="acceleration of the slider upwards")
    model.output_momentum("moment_of_momentum", omega, unit="kg.m2/s")
    model.output_total_energy()
    for number, row in enumerate(rows, 1):
        model.output_multiplier(f"coupler_multiplier{number}", row, unit="N/m")
    model.visual(shaft, Cylinder(l, b), along=S.z)
    model.visual(slider, Box(h, h, h))
    for rod, ball in ((rod1, balls[0]), (rod2, balls[1])):
        model.visual(rod, Cylinder(l, b), along=rod.frame.z)
        model.visual(ball, Sphere(0.06))
    foot = shaft.masscenter.locatenew("foot", -l / 2 * S.z)
    model.visual(N, Cylinder(h / 3, 1.5 * h), at=foot, along=N.z, color="#8a94a3")
    model.visual(shaft, Box(h + 2 * b, 3 * b, 3 * b), at=shaft.masscenter.locatenew("head", l / 2 * S.z))
    for path in couplers if rigid else ():
        _draw_coupler(model, S, path, b, l / 2)
    model.trace(balls[0].masscenter)
    model.experiment(stop=2.0, step=0.05, tolerance=1e-8, stiff=not rigid, signals={torque: 0.0})
    return model


def _draw_coupler(model: Model, S: me.ReferenceFrame, path: me.LinearPathway, b: sm.Symbol, length: sm.Expr) -> None:
    """A rod without a body, in a frame whose z lies along its line, in the plane of S.x and S.z."""
    start, end = path.attachments
    line = end.pos_from(start)
    x, z = line.dot(S.x), line.dot(S.z)
    frame = me.ReferenceFrame(f"coupler_{end.name}")
    frame.orient_axis(S, S.y, sm.atan2(x, z))
    middle = start.locatenew("coupler", line / 2)
    model.visual(frame, Cylinder(length, b / 2), at=middle, along=frame.z, color="#d62728")


def _bar(name: str, m: sm.Symbol, l: sm.Symbol, b: sm.Symbol) -> me.RigidBody:
    """A square bar along the z of its frame."""
    frame = me.ReferenceFrame(name[0].upper() + name[-1])
    body = me.RigidBody(name, frame=frame, mass=m)
    across = m * (l**2 + b**2) / 12
    body.central_inertia = me.inertia(frame, across, across, m * b**2 / 6)
    return body


def _declare_parameters(model: Model, symbols: tuple[sm.Symbol, ...], coupler: tuple[sm.Symbol, ...]) -> None:
    """The numbers of the benchmark."""
    l, b, h, m, ms, mb, g = symbols
    rho = sm.Symbol("rho", positive=True)
    model.parameter(l, 1.0, "m", min=1e-6, description="length of shaft and rods; couplers have half of it")
    model.parameter(b, 0.01, "m", min=1e-6, description="width of shaft and rods")
    model.parameter(h, 0.1, "m", min=1e-6, description="edge of the slider, and distance of the rods' pins")
    model.parameter(rho, 3000.0, "kg/m3", min=1e-6, description="density of shaft, rods and slider")
    model.parameter(m, rho * l * b**2, "kg", description="mass of the shaft and of each rod")
    model.parameter(ms, rho * h**3, "kg", description="mass of the slider")
    model.parameter(mb, 5.0, "kg", min=0.0, description="mass of each ball")
    model.parameter(g, 9.81, "m/s2", min=0.0, description="acceleration of gravity")
    for symbol, value, unit, what in zip(
        coupler, (8e5, 4e4), ("N/m", "N.s/m"), ("stiffness", "damping"), strict=bool(coupler)
    ):
        model.parameter(symbol, value, unit, min=0.0, description=f"{what} of each coupler")


def _declare_motion(
    model: Model, q: tuple[sm.Expr, ...], u: tuple[sm.Expr, ...], *, kind: Literal["fixed", "guess"]
) -> None:
    """Start values; rods follow the slider where couplers are rigid."""
    model.coordinate(q[0], 0.0, "rad", display_unit="deg", nominal=10.0, description="angle of the shaft about N.z")
    model.coordinate(q[1], 0.5, "m", description="height of the slider above the foot of the shaft")
    model.speed(u[0], float(2 * sm.pi), "rad/s", display_unit="rpm", description="angular speed of the shaft")
    model.speed(u[1], 0.0, "m/s", description="velocity of the slider upwards")
    for tilt, w, name in zip(q[2:], u[2:], ("first", "second"), strict=True):
        about = f"angle of the {name} rod from straight down, outwards"
        model.coordinate(tilt, float(sm.pi / 3), "rad", display_unit="deg", kind=kind, description=about)
        model.speed(w, 0.0, "rad/s", kind=kind, description=f"angular speed of the {name} rod outwards")
