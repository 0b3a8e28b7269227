"""Four inertias on one axis with three clutches between them, which are pressed, lock and slip.

Coordinates: ``phi1`` to ``phi4`` turn the inertias J about ``N.x``, ``w1`` to ``w4`` are their angular speeds. A torque
10 sin(10 pi t) N.m drives the first, which turns at 10 rad/s at the start. Clutch i is between inertias i and i + 1; it
takes 10 N.m times its ``engagement`` where it slips, and 1.1 times as much where it sticks:

    clutch1   sin(0.4 pi t + pi / 2)        opens at 1.25 s
    clutch2   0 before 0.4 s, then 1
    clutch3   0 before 0.9 s, then 1

The clutches lock and slip at .7096214747, .7916623592, .8311085061, .9068501928, 1.0002958599 and 1.1439674925 s.

Source: Modelica.Mechanics.Rotational.Examples.CoupledClutches of the Modelica Standard Library, its parameters.
"""

import sympy as sm
import sympy.physics.mechanics as me

from mb2fmu import Clutch, Cylinder, Model

DIAGRAM = """<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 320 130" font-family="serif" font-size="15">
<rect width="320" height="130" fill="white"/>
<path d="M14 65H306" stroke="#888" stroke-dasharray="6 4"/>
<g fill="#cfe2f3" stroke="#1f77b4" stroke-width="2"><rect x="44" y="35" width="26" height="60"/>
<rect x="116" y="35" width="26" height="60"/><rect x="188" y="35" width="26" height="60"/>
<rect x="260" y="35" width="26" height="60"/></g>
<g stroke="#333" stroke-width="3"><path d="M70 65H89M97 65H116M142 65H161M169 65H188M214 65H233M241 65H260"/>
<path d="M89 45V85M97 45V85M161 45V85M169 45V85M233 45V85M241 45V85"/></g>
<path d="M30 48A20 20 0 0 0 30 82" fill="none" stroke="#d62728" stroke-width="2"/>
<path d="M34 86l-9 -3l6 -6z" fill="#d62728"/>
<g font-style="italic"><text x="6" y="26" fill="#d62728">torque</text><text x="53" y="116">J</text>
<text x="125" y="116">J</text><text x="197" y="116">J</text><text x="269" y="116">J</text></g>
<text x="86" y="34">1</text><text x="158" y="34">2</text><text x="230" y="34">3</text>
</svg>
"""


def clutch_line() -> Model:
    """The line, of which the first inertia turns."""
    t = me.dynamicsymbols._t  # noqa: SLF001  (the symbol of time that SymPy mechanics uses)
    phi, w = me.dynamicsymbols("phi1:5"), me.dynamicsymbols("w1:5")
    J, m, torque = sm.symbols("J m torque", positive=True)
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    frames = [N.orientnew(f"A{i}", "Axis", (angle, N.x)) for i, angle in enumerate(phi, 1)]
    for frame, speed in zip(frames, w, strict=True):
        frame.set_ang_vel(N, speed * N.x)
    centers = [O.locatenew(f"C{i}", (0.25 * i - 0.1) * N.x) for i in range(1, 5)]
    bodies = []
    for i, (frame, center) in enumerate(zip(frames, centers, strict=True), 1):
        center.set_vel(N, 0)
        bodies.append(me.RigidBody(f"inertia{i}", center, frame, m, (me.inertia(frame, J, 0, 0), center)))
    rates = [angle.diff() - speed for angle, speed in zip(phi, w, strict=True)]
    drive = (frames[0], torque * sm.sin(10 * sm.pi * t) * N.x)
    kane = me.KanesMethod(N, list(phi), list(w), rates, bodies=bodies, forcelist=[drive])

    model = Model("ClutchLine", kane, description="Inertias with clutches between them", diagram=DIAGRAM)
    model.parameter(J, 1.0, "kg.m2", min=1e-6, description="moment of inertia of each")
    model.parameter(m, 50.0, "kg", min=1e-6, description="mass of each, which a turning body does not feel")
    model.parameter(torque, 10.0, "N.m", description="amplitude of the torque on the first")
    for i, (angle, speed) in enumerate(zip(phi, w, strict=True), 1):
        model.coordinate(angle, 0.0, "rad", description=f"turn of inertia {i}")
        model.speed(speed, 10.0 if i == 1 else 0.0, "rad/s", description=f"angular speed of inertia {i}")
    pressed = [sm.sin(0.4 * sm.pi * t + sm.pi / 2)]
    pressed += [sm.Piecewise((0, t < sm.Float(start)), (1, True)) for start in (0.4, 0.9)]
    for i, signal in enumerate(pressed):
        between = (frames[i], frames[i + 1], N.x)
        model.add(Clutch(f"clutch{i + 1}", between, capacity=10.0, engagement=signal, peak=1.1))
    model.output_kinetic_energy()
    for i, (frame, center) in enumerate(zip(frames, centers, strict=True)):
        model.visual(frame, Cylinder(0.12, 0.2), at=center, along=frame.x, color=("#1f77b4", "#2ca02c")[i % 2])
        rim = center.locatenew(f"rim{i}", 0.2 * frame.z)
        model.link(frame, rim, rim.locatenew(f"edge{i}", 0.12 * frame.x), radius=0.02, color="#d62728")
    model.experiment(stop=1.5, step=0.01, tolerance=1e-9)
    return model
