"""A platform on six legs that are spring-loaded spindles: two mechanisms, by what is given, with their closed forms.

``N.z`` points up. Coordinates with the legs given (``given="legs"``): the lengths ``leg[1]`` to ``leg[6]`` of massless
legs, each with a spindle at its foot that turns as it lengthens; three legs carry one corner of the platform, two the
next, one the third. The corner's place ``px``, ``py``, ``pz`` and the platform's angles ``yaw``, ``pitch``, ``roll``
(about z, y, x, body-fixed) follow: the first corner from three spheres about feet, the next from a sphere about it and
two more, the roll from the last leg. Each has two branches, so that six lengths allow for eight poses.

Coordinates with the platform given (``given="platform"``): the place ``px``, ``py``, ``pz`` of its middle and its
angles ``ax``, ``ay``, ``az`` (about x, y, z, body-fixed). Each leg has a barrel and a rod with masses: ``first[i]`` and
``second[i]`` are the angles of its universal joint, ``out[i]`` is how far the rod is out; they follow as spherical
coordinates.

In each leg acts k (l0 + stroke - l) - d l', l its length (or how far its rod is out), l0 that of the start; the input
``stroke`` lengthens all legs.

Source: D. Stewart, "A platform with six degrees of freedom", Proc. Inst. Mech. Eng. 180 (1965) 371-386; the loops are
those of PyMbs' ``AddLoop.Hexapod`` and ``Hexapod_m`` (C. Schubert, TU Dresden).
"""

import math
from collections.abc import Sequence

import sympy as sm
import sympy.physics.mechanics as me

from mb2fmu import Cylinder, Model, Parts

DIAGRAM = """<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 280 230" font-family="serif" font-size="15">
<rect width="280" height="230" fill="white"/>
<path d="M30 180L140 205L250 180L140 155Z" fill="#f2f2f2" stroke="#888"/>
<g stroke="#1f77b4" stroke-width="5" stroke-linecap="round"><path d="M40 180L85 75M95 192L88 78M150 203L100 82"/>
<path d="M170 198L185 80M240 180L195 78"/><path d="M150 160L140 52"/></g>
<path d="M80 75L195 75L140 46Z" fill="#d9dde3" stroke="#333" stroke-width="2"/>
<g fill="white" stroke="#333" stroke-width="2"><circle cx="40" cy="180" r="4"/><circle cx="95" cy="192" r="4"/>
<circle cx="150" cy="203" r="4"/><circle cx="170" cy="198" r="4"/><circle cx="240" cy="180" r="4"/>
<circle cx="150" cy="160" r="4"/></g>
<path d="M214 128L204 104" stroke="#d62728" stroke-width="2"/><path d="M201 96l0 11l8 -3z" fill="#d62728"/>
<g font-style="italic"><text x="222" y="124" fill="#d62728">leg, stroke</text><text x="200" y="64">platform: m</text>
<text x="16" y="108">g</text></g>
<path d="M34 84V116" stroke="#333" stroke-width="2"/><path d="M34 122l-5 -10h10z" fill="#333"/>
<path d="M20 222H52M20 222V190" stroke="#555" fill="none"/>
<text x="56" y="227" font-size="12">N.x</text><text x="26" y="196" font-size="12">N.z</text>
</svg>
"""

FEET = ((0.6, 0.0), (-0.3, 0.5), (-0.3, -0.5), (0.9, 0.3), (0.9, -0.4), (0.2, 0.9))
CORNERS = ((0.0, 0.0), (0.5, 0.0), (0.2, 0.45))
CARRIED = (0, 0, 0, 1, 1, 2)
"""Legs given: feet on the ground and corners of the platform, in m, and the corner that each leg carries."""

Pair = tuple[sm.Expr, sm.Expr]
"""A coordinate and its speed."""


class _Mechanism:
    """A mechanism in the making."""

    def __init__(self) -> None:
        self.N, self.O = me.ReferenceFrame("N"), me.Point("O")
        self.O.set_vel(self.N, 0)
        self.motion: list[tuple[str, Pair, float, str, str]] = []
        self.bodies: list[me.RigidBody] = []
        self.actuators: list[me.ForceActuator] = []
        self.rows: dict[str, sm.Expr] = {}
        self.m, self.g, self.k, self.d = sm.symbols("m g k d", positive=True)
        self.stroke = me.dynamicsymbols("stroke")

    def coordinate(self, name: str, start: float, kind: str, text: str) -> Pair:
        """A coordinate and its speed; ``kind`` is ``guess`` for dependent ones."""
        symbol = name.replace("[", "_").replace("]", "")
        pair = me.dynamicsymbols(symbol), me.dynamicsymbols(f"v_{symbol}")
        self.motion.append((name, pair, start, kind, text))
        return pair

    def turned(self, name: str, parent: me.ReferenceFrame, angle: Pair, axis: str) -> me.ReferenceFrame:
        """A frame that turns about an axis of its parent."""
        frame, along = me.ReferenceFrame(name), getattr(parent, axis)
        frame.orient_axis(parent, along, angle[0])
        frame.set_ang_vel(parent, angle[1] * along)
        return frame

    def body(self, name: str, place: me.Point, frame: me.ReferenceFrame, mass: sm.Expr) -> me.RigidBody:
        """A body with its mass centre there; radii of gyration of 14, 17 and 20 cm."""
        inertia = me.inertia(frame, mass / 50, 3 * mass / 100, mass / 25)
        self.bodies.append(me.RigidBody(name, place, frame, mass, (inertia, place)))
        return self.bodies[-1]

    def spring(self, start: float, length: Pair, ends: tuple[me.Point, me.Point]) -> None:
        """What pushes along a leg."""
        force = self.k * (start + self.stroke - length[0]) - self.d * length[1]
        self.actuators.append(me.ForceActuator(force, me.LinearPathway(*ends)))

    def model(self, name: str, what: str) -> Model:
        """With gravity, and all that is declared."""
        q, u = zip(*(pair for _, pair, *_ in self.motion), strict=True)
        dependent = [pair for _, pair, _, kind, _ in self.motion if kind == "guess"]
        parts = Parts(
            frame=self.N,
            origin=self.O,
            q=q,
            u=u,
            kinematic_equations=[place.diff() - speed for place, speed in zip(q, u, strict=True)],
            bodies=self.bodies,
            loads=[(body.masscenter, -self.g * body.mass * self.N.z) for body in self.bodies],
            actuators=self.actuators,
            holonomic_constraints=list(self.rows.values()),
            q_dependent=[place for place, _ in dependent],
            u_dependent=[speed for _, speed in dependent],
        )
        model = Model(name, parts, description=what, diagram=DIAGRAM)
        model.parameter(self.m, 10.0, "kg", min=1e-3, description="mass of the platform")
        model.parameter(self.g, 9.81, "m/s2", min=0.0, description="acceleration of gravity, along -N.z")
        model.parameter(self.k, 5000.0, "N/m", min=0.0, description="stiffness of each leg")
        model.parameter(self.d, 100.0, "N.s/m", min=0.0, description="damping of each leg")
        model.input(self.stroke, 0.0, "m", description="how much longer than at the start the unloaded legs are")
        for label, (place, speed), start, kind, text in self.motion:
            unit = "m" if label.startswith(("p", "leg", "out")) and label != "pitch" else "rad"
            model.coordinate(place, start, unit, name=label, kind=kind, description=text)
            model.speed(speed, 0.0, f"{unit}/s", name=f"v_{label}", kind=kind, description=f"rate of {label}")
        for label, row in self.rows.items():
            model.constraint(row, label)
        t = me.dynamicsymbols._t  # noqa: SLF001  (the symbol of time that SymPy mechanics uses)
        for i, actuator in enumerate(self.actuators, 1):
            model.output_force(f"leg_force[{i}]", actuator)
        model.output_kinetic_energy()
        model.experiment(stop=2.0, step=0.01, tolerance=1e-8, signals={self.stroke: 0.03 * sm.sin(6 * t)})
        return model


def hexapod(given: str = "legs", legs: int = 6) -> Model:
    """The platform, lowered and lifted.

    Args:
        given: What the independent coordinates are: ``legs`` or ``platform``.
        legs: Number of legs, 1 to 6; fewer than 6 where the platform is given only.
    """
    if given not in ("legs", "platform"):
        msg = f'"{given}" cannot be given: legs, or platform'
        raise ValueError(msg)
    if not 1 <= legs <= 6 or (given == "legs" and legs != 6):
        msg = f"{legs} legs: there are 6, or 1 to 6 where the platform is given"
        raise ValueError(msg)
    return _platform_given(legs) if given == "platform" else _legs_given()


def _legs_given() -> Model:
    """The platform follows from the lengths of its legs."""
    made, starts = _Mechanism(), (-0.05, 0.02, 0.7, 0.1, -0.06, 0.08)
    names = ("px", "py", "pz", "yaw", "pitch", "roll")
    texts = (*(f"place of the first corner along N.{axis}" for axis in "xyz"), "about N.z", "about y'", "about x''")
    pose = [made.coordinate(*each, "guess", text) for *each, text in zip(names, starts, texts, strict=True)]
    (x, vx), (y, vy), (z, vz), yaw, pitch, roll = pose
    N = made.N
    P = made.O.locatenew("P", x * N.x + y * N.y + z * N.z)
    P.set_vel(N, vx * N.x + vy * N.y + vz * N.z)
    B = made.turned("B", made.turned("A", N, yaw, "z"), pitch, "y")
    C = made.turned("C", B, roll, "x")
    G = P.locatenew("G", 0.23 * C.x + 0.15 * C.y)
    G.v2pt_theory(P, N, C)
    platform = made.body("platform", G, C, made.m)
    lengths, tops, spindles = [], [], []
    for i, ((a, b), end) in enumerate(zip(FEET, CARRIED, strict=True), 1):
        foot = made.O.locatenew(f"foot{i}", a * N.x + b * N.y)
        foot.set_vel(N, 0)
        top = P.locatenew(f"top{i}", CORNERS[end][0] * C.x + CORNERS[end][1] * C.y)
        top.v2pt_theory(P, N, C)
        square = sum(top.pos_from(foot).express(N).dot(axis) ** 2 for axis in N)
        start = float(sm.sqrt(square.subs(dict(zip((q for q, _ in pose), starts, strict=True)))))
        leg = made.coordinate(f"leg[{i}]", start, "fixed", f"length of leg {i}")
        turned = made.turned(f"S{i}", N, (100 * leg[0], 100 * leg[1]), "x")
        spindles.append(made.body(f"spindle{i}", foot, turned, made.m / 10000))
        made.rows[f"length[{i}]"] = (square - leg[0] ** 2) / 2
        made.spring(start, leg, (foot, top))
        lengths.append(leg[0])
        tops.append(top)
    model = made.model("Hexapod", "A platform on six legs, whose lengths are given")
    _declare_loops(model, list(made.rows.values()), (x, y, z, yaw[0], pitch[0], roll[0]), lengths, (N, B))
    for k, end in enumerate((0, 3, 5)):
        model.link(platform, tops[end], tops[(3, 5, 0)[k]], radius=0.02)
    for spindle in spindles:
        model.visual(spindle, Cylinder(0.08, 0.03))
    model.output_position("platform", G)
    return model


def _declare_loops(
    model: Model,
    rows: Sequence[sm.Expr],
    pose: Sequence[sm.Expr],
    legs: Sequence[sm.Expr],
    frames: tuple[me.ReferenceFrame, me.ReferenceFrame],
) -> None:
    """Closed forms of the pose, two branches each: of the first corner, the next one, and the roll about their line.

    Args:
        model: Where they are said.
        rows: Constraints, one per leg.
        pose: Place of the first corner, yaw, pitch and roll.
        legs: Lengths.
        frames: The inertial frame, and that after yaw and pitch.
    """
    x, y, z, yaw, pitch, roll = pose
    N, B = frames
    feet, corner = [sm.Matrix([a, b, 0]) for a, b in FEET], sm.Matrix([x, y, z])
    foot, up, height = _meeting(feet[:3], legs[:3])
    places = [feet[0] + foot + sign * sm.sqrt(height) * up for sign in (1, -1)]
    model.loop(rows[:3], *(dict(zip((x, y, z), place, strict=True)) for place in places), positive=[height])
    reach = CORNERS[1][0]
    foot, up, height = _meeting([corner, *feet[3:5]], [reach, *legs[3:5]])
    ways = [foot + sign * sm.sqrt(height) * up for sign in (1, -1)]
    angles = [{yaw: sm.atan2(way[1], way[0]), pitch: -sm.asin(way[2] / reach)} for way in ways]
    model.loop(rows[3:5], *angles, positive=[height])
    along, aside = CORNERS[2]
    X, Y, Z = (sm.Matrix(axis.to_matrix(N)) for axis in (B.x, B.y, B.z))
    gap = corner + along * X - feet[5]
    a, b, c = gap.dot(Y), gap.dot(Z), (legs[5] ** 2 - gap.dot(gap) - aside**2) / (2 * aside)
    turns = [sm.atan2(b, a) + sign * sm.acos(c / sm.sqrt(a**2 + b**2)) for sign in (1, -1)]
    model.loop(rows[5:], *({roll: turn} for turn in turns), positive=[a**2 + b**2 - c**2])


def _meeting(centres: Sequence[sm.Matrix], radii: Sequence[sm.Expr | float]) -> tuple[sm.Matrix, sm.Matrix, sm.Expr]:
    """Of three spheres: midway between the points where they meet, from the first centre; the way there; its square."""
    ahead, aside = centres[1] - centres[0], centres[2] - centres[0]
    D = sm.sqrt(ahead.dot(ahead))
    ex = ahead / D
    i = ex.dot(aside)
    across = aside - i * ex
    j = sm.sqrt(across.dot(across))
    ey = across / j
    X = (radii[0] ** 2 - radii[1] ** 2 + D**2) / (2 * D)
    Y = (radii[0] ** 2 - radii[2] ** 2 + i**2 + j**2) / (2 * j) - i / j * X
    return X * ex + Y * ey, ex.cross(ey), radii[0] ** 2 - X**2 - Y**2


def _platform_given(legs: int) -> Model:
    """The legs follow from the platform: universal joint, slide, ball."""
    made = _Mechanism()
    N = made.N
    starts = {"px": 0.02, "py": -0.03, "pz": 0.6, "ax": 0.05, "ay": -0.04, "az": 0.1}
    texts = (*(f"place of its middle along N.{axis}" for axis in "xyz"), *(f"angle about {axis}" for axis in "xyz"))
    pose = [made.coordinate(*each, "fixed", text) for each, text in zip(starts.items(), texts, strict=True)]
    C = made.O.locatenew("C", sum((p[0] * axis for p, axis in zip(pose[:3], N, strict=True)), me.Vector(0)))
    C.set_vel(N, sum((p[1] * axis for p, axis in zip(pose[:3], N, strict=True)), me.Vector(0)))
    P = N
    for axis, angle in zip("xyz", pose[3:], strict=True):
        P = made.turned(f"P{axis}", P, angle, axis)
    platform = made.body("platform", C, P, made.m)
    looks = []
    for i in range(legs):
        at = math.pi * (i // 2 * 2 / 3 + 0.12 * (-1) ** i)
        to = math.pi * (i // 2 * 2 / 3 + 0.21 * (-1) ** i)
        foot = made.O.locatenew(f"foot{i}", 0.5 * math.cos(at) * N.x + 0.5 * math.sin(at) * N.y)
        foot.set_vel(N, 0)
        top = C.locatenew(f"top{i}", 0.3 * math.cos(to) * P.x + 0.3 * math.sin(to) * P.y)
        way = (0.3 * math.cos(to) - 0.5 * math.cos(at), 0.3 * math.sin(to) - 0.5 * math.sin(at), 0.6)
        far, which = math.hypot(*way), f"of leg {i + 1}"
        first = made.coordinate(f"first[{i + 1}]", -math.atan2(way[2], way[0]), "guess", f"first angle {which}")
        second = made.coordinate(f"second[{i + 1}]", math.asin(way[1] / far), "guess", f"second angle {which}")
        out = made.coordinate(f"out[{i + 1}]", far - 0.3, "guess", f"how far the rod is out {which}")
        L = made.turned(f"L{i}", made.turned(f"K{i}", N, first, "y"), second, "z")
        middle, end = foot.locatenew(f"barrel{i}", 0.15 * L.x), foot.locatenew(f"rod{i}", (0.3 + out[0]) * L.x)
        middle.v2pt_theory(foot, N, L)
        end.set_vel(N, out[1] * L.x + L.ang_vel_in(N).cross((0.3 + out[0]) * L.x))
        looks.append((made.body(f"barrel{i + 1}", middle, L, made.m / 12), L))
        made.body(f"rod{i + 1}", end, L, made.m / 20)
        for axis in "xyz":
            made.rows[f"ball[{i + 1}].{axis}"] = end.pos_from(top).dot(getattr(N, axis))
        made.spring(far - 0.3, out, (foot, end))
    model = made.model("HexapodOfPlatform", "A platform on six legs, whose pose is given")
    for barrel, L in looks:
        model.visual(barrel, Cylinder(0.3, 0.03), along=L.x)
    model.visual(platform, Cylinder(0.03, 0.3), along=P.z)
    model.output_position("platform", C)
    return model
