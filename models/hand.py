"""A hand of 16 bodies and 22 joints, closed by one tendon per finger: a tree that branches five times at the palm.

Coordinates, all 0 in the straight, flat hand: ``wrist.flexion`` and ``wrist.deviation`` (towards the thumb) of the
palm on the forearm, which is fixed in ``N``; of each finger ``.spread`` (towards the thumb) and ``.knuckle`` (flexion)
of the first joint, ``.middle`` and ``.end`` (flexion) of the two others. The thumb's first two, ``thumb.spread`` and
``thumb.knuckle``, are those of its metacarpal bone at the wrist. Flexion moves towards the palm. The forearm lies
along ``N.y``, the fingers point to +y, the thumb's side is +x, the palm faces down; ``N.z`` points up.

Every finger's tendon runs from the forearm through eyelets on the palm and on the palmar sides of its segments to the
last one, in straight lines. The input ``pull`` of a finger is its tension (the force along the pathway is -pull).
Joints are elastic about a slightly bent rest position, and damped. Segments of fingers are cylinders of tissue, the
palm is a slab; everything scales with the length of the hand.

Source: B. Buchholz, T. J. Armstrong, S. A. Goldstein, "Anthropometric data for describing the kinematics of the human
hand", Ergonomics 35 (1992) 261-273 (lengths of the segments over the length of the hand). Widths, places of eyelets,
stiffness and damping are chosen.
"""

from dataclasses import dataclass

import sympy as sm
import sympy.physics.mechanics as me

from mb2fmu import Box, Cylinder, Model, Parts, Sphere

# Lengths of the three moving segments over the hand's, and the place of the first joint in the palm over it: x, y, z.
DIGITS = {
    "thumb": ((0.251, 0.196, 0.158), (0.13, 0.06, -0.05)),
    "index": ((0.245, 0.143, 0.097), (0.14, 0.46, 0.0)),
    "long": ((0.266, 0.170, 0.108), (0.03, 0.45, 0.0)),
    "ring": ((0.244, 0.165, 0.107), (-0.07, 0.42, 0.0)),
    "little": ((0.204, 0.117, 0.093), (-0.17, 0.40, 0.0)),
}
RADII = (0.050, 0.045, 0.040)  # of the segments over the hand's length
THUMB = (0.6, -0.9)  # rad: how its metacarpal stands on the palm, about the palm's -z and y axes
REST = {"spread": 0.0, "knuckle": 0.35, "middle": 0.45, "end": 0.25}  # rad
STIFFNESS = {"spread": 0.08, "knuckle": 0.06, "middle": 0.02, "end": 0.006}  # N.m/rad
DAMPING = {"spread": 1e-3, "knuckle": 1e-3, "middle": 2e-4, "end": 3e-5}  # N.m.s/rad
SKIN = "#e3b497"
PULL = {"thumb": 6.0, "index": 8.0, "long": 9.0, "ring": 7.0, "little": 5.0}  # N

DIAGRAM = """<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 320 300" font-family="serif" font-size="15">
<rect width="320" height="300" fill="white"/>
<path d="M140 296V262" stroke="#888" stroke-width="34"/>
<path d="M98 168L188 160L182 256H112z" fill="#c6dcef" stroke="#333"/>
<g stroke-linecap="round" stroke-width="15" stroke="#9dc3e6"><path d="M104 166L96 122M95 116L92 92M91 86L90 70"/>
<path d="M128 160L124 106M124 98L122 66M122 60L121 40"/><path d="M154 158L156 100M156 92L157 58M157 52L158 30"/>
<path d="M180 160L188 108M189 100L194 74M195 68L199 50"/>
<path d="M184 238L220 206M224 202L246 178M250 174L266 156"/></g>
<g fill="white" stroke="#333"><circle cx="146" cy="260" r="7"/><circle cx="105" cy="166" r="4"/>
<circle cx="128" cy="160" r="4"/><circle cx="154" cy="158" r="4"/>
<circle cx="180" cy="160" r="4"/><circle cx="184" cy="238" r="4"/>
<circle cx="95" cy="119" r="3"/><circle cx="124" cy="102" r="3"/><circle cx="156" cy="96" r="3"/>
<circle cx="188" cy="104" r="3"/><circle cx="222" cy="204" r="3"/><circle cx="92" cy="89" r="3"/>
<circle cx="122" cy="63" r="3"/><circle cx="157" cy="55" r="3"/><circle cx="195" cy="71" r="3"/>
<circle cx="248" cy="176" r="3"/></g>
<path d="M150 294L146 250L155 176L156 120L157 74L158 38" fill="none" stroke="#d62728" stroke-width="2"/>
<g font-style="italic"><text x="166" y="290" fill="#d62728">pull</text><text x="162" y="268">wrist</text>
<text x="200" y="122">knuckle</text><text x="204" y="88">middle, end</text><text x="252" y="216">thumb</text></g>
<path d="M20 280H52M20 280V248" stroke="#555" fill="none"/>
<text x="56" y="285" font-size="12">N.x</text><text x="12" y="243" font-size="12">N.y</text>
</svg>
"""


@dataclass(frozen=True)
class _Joint:
    """One coordinate with its speed, its place in a digit, and the axis and frames that its torque acts on."""

    q: sm.Expr
    u: sm.Expr
    digit: str
    kind: str
    axis: me.Vector
    outer: me.ReferenceFrame
    inner: me.ReferenceFrame


class _Hand:
    """What is collected while the hand is put together, from the wrist outwards."""

    def __init__(self, N: me.ReferenceFrame, length: sm.Symbol, density: sm.Symbol, g: sm.Symbol) -> None:
        self.N, self.length, self.density, self.g = N, length, density, g
        self.joints: list[_Joint] = []
        self.bodies: list[me.RigidBody] = []
        self.loads: list[me.Force] = []
        self.segments: list[tuple[me.Point, sm.Expr, sm.Expr]] = []  # joint, length and radius of each

    def turn(self, digit: str, kind: str, inner: me.ReferenceFrame, axis: me.Vector) -> me.ReferenceFrame:
        """A frame turned from another by a new joint."""
        q, u = me.dynamicsymbols(f"q_{digit}_{kind} u_{digit}_{kind}")
        outer = me.ReferenceFrame(f"{digit}_{kind}")
        outer.orient_axis(inner, axis, q)
        outer.set_ang_vel(inner, u * axis)
        self.joints.append(_Joint(q, u, digit, kind, axis, outer, inner))
        return outer

    def body(
        self, name: str, frame: me.ReferenceFrame, centre: me.Point, mass: sm.Expr, moments: list[sm.Expr]
    ) -> None:
        """A body with its weight."""
        self.bodies.append(me.RigidBody(name, centre, frame, mass, (me.inertia(frame, *moments), centre)))
        self.loads.append(me.Force(centre, -mass * self.g * self.N.z))

    def segment(self, name: str, frame: me.ReferenceFrame, joint: me.Point, size: float, radius: float) -> me.Point:
        """A cylinder along y of its frame, ``size`` and ``radius`` over the hand's length; the joint at its end."""
        length, r = size * self.length, radius * self.length
        mass = self.density * sm.pi * r**2 * length
        self.segments.append((joint, length, r))
        across, along = mass * (3 * r**2 + length**2) / 12, mass * r**2 / 2
        self.body(name, frame, joint.locatenew(f"{name}_centre", length / 2 * frame.y), mass, [across, along, across])
        return joint.locatenew(f"{name}_end", length * frame.y)


def hand() -> Model:
    """The hand with its palm down, closing while the tendons pull ever more."""
    t = me.dynamicsymbols._t  # noqa: SLF001  (the symbol of time that SymPy mechanics uses)
    length, density, g, wrist_k, wrist_d = sm.symbols("L rho g k_wrist d_wrist", positive=True)
    k = {kind: sm.Symbol(f"k_{kind}") for kind in STIFFNESS}
    d = {kind: sm.Symbol(f"d_{kind}") for kind in DAMPING}
    pulls = {name: me.dynamicsymbols(f"pull_{name}") for name in DIGITS}

    N, O = me.ReferenceFrame("N"), me.Point("O")
    made = _Hand(N, length, density, g)
    bent = made.turn("wrist", "flexion", N, -N.x)
    palm = made.turn("wrist", "deviation", bent, -bent.z)
    edges = [0.42 * length, 0.45 * length, 0.13 * length]
    mass = density * edges[0] * edges[1] * edges[2]
    moments = [mass * (sum(e**2 for e in edges) - edge**2) / 12 for edge in edges]
    made.body("palm", palm, O.locatenew("palm_centre", 0.23 * length * palm.y), mass, moments)
    tendons, tips = [], {}
    for name in DIGITS:
        pathway, tips[name] = _digit(made, name, palm, O)
        tendons.append(me.ForceActuator(-pulls[name], pathway))
    springs = []
    for joint in made.joints:
        stiffness, damping = (wrist_k, wrist_d) if joint.digit == "wrist" else (k[joint.kind], d[joint.kind])
        moment = -stiffness * (joint.q - REST.get(joint.kind, 0.0)) - damping * joint.u
        springs.append(me.TorqueActuator(moment, joint.axis, joint.outer, joint.inner))
    parts = Parts(
        frame=N,
        origin=O,
        q=[joint.q for joint in made.joints],
        u=[joint.u for joint in made.joints],
        kinematic_equations=[joint.u - joint.q.diff(t) for joint in made.joints],
        bodies=made.bodies,
        loads=made.loads,
        actuators=[*springs, *tendons],
    )

    model = Model("Hand", parts, description="A hand of 22 joints, closed by five tendons", diagram=DIAGRAM)
    model.parameter(length, 0.19, "m", min=1e-3, description="length of the hand")
    model.parameter(density, 1100.0, "kg/m3", min=1e-3, description="density of tissue and bone")
    model.parameter(g, 9.81, "m/s2", min=0.0, description="acceleration of gravity, along -N.z")
    model.parameter(wrist_k, 3.0, "N.m/rad", min=0.0, description="stiffness of the wrist")
    model.parameter(wrist_d, 0.1, "N.m.s/rad", min=0.0, description="damping of the wrist")
    for kind, value in STIFFNESS.items():
        model.parameter(k[kind], value, "N.m/rad", min=0.0, description=f"stiffness of joints: {kind}")
        model.parameter(d[kind], DAMPING[kind], "N.m.s/rad", min=0.0, description=f"damping of joints: {kind}")
    for joint in made.joints:
        name, start = f"{joint.digit}.{joint.kind}", REST.get(joint.kind, 0.0)
        what = f"{joint.kind} of the {joint.digit}" + ("" if joint.digit in {"wrist", "thumb"} else " finger")
        model.coordinate(joint.q, start, "rad", name=name, display_unit="deg", description=f"angle: {what}")
        model.speed(joint.u, 0.0, "rad/s", name=f"{name}_speed", description=f"angular speed: {what}")
    for name, pull in pulls.items():
        model.input(pull, 0.0, "N", name=f"{name}.pull", min=0.0, description=f"tension of the tendon: {name}")
        model.output_position(f"{name}.tip", tips[name])
    model.output_kinetic_energy()
    model.visual(made.bodies[0], Box(*edges), color=SKIN)
    model.visual(N, Cylinder(0.55 * length, 0.14 * length), at=O.locatenew("forearm", -0.3 * length * N.y), color=SKIN)
    for body, (joint, size, radius) in zip(made.bodies[1:], made.segments, strict=True):
        model.visual(body, Cylinder(size, radius), color=SKIN)
        model.visual(body, Sphere(1.06 * radius), at=joint, color="#c58c6c")
    signals = {pull: PULL[name] * sm.sin(3 * t) ** 2 for name, pull in pulls.items()}
    model.experiment(stop=0.5, step=0.01, tolerance=1e-7, signals=signals)
    return model


def _digit(made: _Hand, name: str, palm: me.ReferenceFrame, wrist: me.Point) -> tuple[me.PathwayBase, me.Point]:
    """The three segments of a finger or the thumb; its tendon's pathway, and its tip."""
    sizes, place = DIGITS[name]
    base, L = palm, made.length
    root = wrist.locatenew(f"{name}_root", sum((c * L * axis for c, axis in zip(place, palm, strict=True)), 0 * palm.x))
    if name == "thumb":
        base = me.ReferenceFrame("thumb_base")
        base.orient_body_fixed(palm, (-THUMB[0], THUMB[1], 0), "ZYX")
    below = -0.7 * RADII[0] * L
    eyelets = [wrist.locatenew(f"{name}_start", -0.3 * L * made.N.y + below * made.N.z)]
    eyelets.append(root.locatenew(f"{name}_pulley", -0.06 * L * base.y + 1.8 * below * base.z))
    frame = made.turn(name, "spread", base, -base.z)
    joint = root
    for kind, size, radius in zip(("knuckle", "middle", "end"), sizes, RADII, strict=True):
        frame = made.turn(name, kind, frame, -frame.x)
        along = 0.5 * size * L * frame.y
        eyelets.append(joint.locatenew(f"{name}_{kind}_eyelet", along - 1.1 * radius * L * frame.z))
        joint = made.segment(f"{name}_{kind}_segment", frame, joint, size, radius)
    return me.ObstacleSetPathway(*eyelets), joint
