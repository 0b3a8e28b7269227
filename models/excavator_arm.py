"""The arm of an excavator: boom, stick and bucket, three closed loops, and the forces of its cylinders as inputs.

Coordinates, angles counter-clockwise about ``N.z`` in the plane of N.x (away from the machine) and N.y (up): ``boom``
from N.x, ``stick`` from the boom, ``bucket`` from the stick; ``tilt1`` of the boom's cylinder from N.x, ``length1``
between its ends, ``tilt2`` of the stick's cylinder from the boom, ``length2``; ``rocker`` and ``link`` of the linkage
of the bucket from the stick. The origin is the boom's hinge. Three loops: each of the two cylinders, barrel and rod two
bodies that slide in each other, ends at an eye of the arm that it moves; rocker and link end at an eye of the bucket.
The third cylinder, between stick and rocker, has no mass of its own. Gravity acts along -N.y.

The inputs ``boom_force``, ``stick_force`` and ``bucket_force`` push the cylinders' ends apart; with how much, a circuit
of oil in another FMU says, which needs to know lengths and rates of the cylinders: ``length1``, ``length1_rate``,
``length2``, ``length2_rate``, ``length3``, ``rate3``. Viscous friction ``d`` acts in each cylinder.

Source: J.-C. Samin, P. Fisette, Symbolic Modeling of Multibody Systems, Kluwer 2003 (loops that are cut at joints). The
numbers are of the size of those of a machine of 25 t; they are no maker's.
"""

import itertools

import sympy as sm
import sympy.physics.mechanics as me

from mb2fmu import Box, Cylinder, Model, Parts

DIAGRAM = """<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 340 240" font-family="serif" font-size="14">
<rect width="340" height="240" fill="white"/>
<path d="M20 196H100" stroke="#333" stroke-width="2"/>
<path d="M60 170L108 72L204 44" fill="none" stroke="#1f77b4" stroke-width="8" stroke-linejoin="round"/>
<path d="M192 18L204 44L250 150" fill="none" stroke="#2ca02c" stroke-width="7" stroke-linejoin="round"/>
<path d="M250 150L272 170L262 204L226 196Z" fill="#ffe5cc" stroke="#ff7f0e" stroke-width="2"/>
<path d="M240 127L262 132L272 170" fill="none" stroke="#9467bd" stroke-width="5" stroke-linejoin="round"/>
<path d="M60 170L78 184M90 108L112 108M128 66L112 48M206 50L218 52" stroke="#555" stroke-width="3"/>
<g stroke="#d62728" stroke-width="3"><path d="M78 184L112 108M112 48L192 18M218 52L262 132"/></g>
<g fill="white" stroke="#333" stroke-width="1.500"><circle cx="60" cy="170" r="5"/><circle cx="204" cy="44" r="5"/>
<circle cx="250" cy="150" r="4"/><circle cx="240" cy="127" r="3"/><circle cx="262" cy="132" r="3"/>
<circle cx="272" cy="170" r="3"/><circle cx="78" cy="184" r="3"/><circle cx="112" cy="108" r="3"/>
<circle cx="112" cy="48" r="3"/><circle cx="192" cy="18" r="3"/><circle cx="218" cy="52" r="3"/></g>
<g font-style="italic"><text x="46" y="116" fill="#1f77b4">boom</text><text x="190" y="104" fill="#2ca02c">stick</text>
<text x="226" y="226" fill="#ff7f0e">bucket</text><text x="106" y="146" fill="#d62728">length₁</text>
<text x="114" y="26" fill="#d62728">length₂</text><text x="270" y="136" fill="#9467bd">rocker</text>
<text x="280" y="162" fill="#9467bd">link</text><text x="312" y="44">g</text></g>
<path d="M320 52V84" stroke="#333" stroke-width="2"/><path d="M320 90l-5 -10h10z" fill="#333"/>
</svg>
"""

PLACES = {
    "boom": ((5.7, 0.0), "end of the boom, the stick's hinge"),
    "boom_eye": ((2.5, 0.4), "eye of the boom's cylinder on the boom"),
    "base1": ((0.6, -0.5), "eye of the boom's cylinder on the machine"),
    "base2": ((2.6, 0.9), "eye of the stick's cylinder on the boom"),
    "stick_eye": ((-0.8, 0.2), "eye of the stick's cylinder on the stick"),
    "base3": ((0.3, 0.55), "eye of the bucket's cylinder on the stick"),
    "rocker_hinge": ((2.4, 0.0), "hinge of the rocker on the stick"),
    "bucket_hinge": ((2.9, 0.0), "hinge of the bucket on the stick"),
    "bucket_eye": ((0.0, 0.45), "eye of the link on the bucket"),
    "boom_centre": ((2.9, 0.4), "mass centre of the boom"),
    "stick_centre": ((1.0, 0.1), "mass centre of the stick"),
    "bucket_centre": ((0.6, -0.3), "mass centre of the bucket"),
}
"""Places on the bodies in m, along and across the body's first axis."""

BODIES = {
    "boom": (1500.0, 4000.0),
    "stick": (700.0, 700.0),
    "bucket": (600.0, 200.0),
    "rocker": (40.0, 2.0),
    "link": (50.0, 2.0),
    "barrel": (100.0, 15.0),
    "rod": (70.0, 10.0),
}
"""Mass in kg and inertia about the mass centre in kg.m2."""

NUMBERS = {
    "l_rocker": (0.6, "m", "length of the rocker"),
    "l_link": (0.55, "m", "length of the link"),
    "c_barrel": (0.8, "m", "mass centre of a barrel from its eye"),
    "c_rod": (0.7, "m", "mass centre of a rod from its eye"),
    "d": (1e5, "N.s/m", "viscous friction in each cylinder"),
    "g": (9.81, "m/s2", "acceleration of gravity, along -N.y"),
}

HOLDING = {"boom_force": 140.5e3, "stick_force": -15.0e3, "bucket_force": 2.8e3}
"""Forces in N that nearly hold the arm where it starts."""

START = {
    "boom": (0.7, "fixed"),
    "stick": (-1.8, "fixed"),
    "bucket": (-0.4, "fixed"),
    "tilt1": (1.16, "guess"),
    "length1": (2.64, "guess"),
    "tilt2": (-0.05, "guess"),
    "length2": (3.48, "guess"),
    "rocker": (1.32, "guess"),
    "link": (-0.31, "guess"),
}


class Arm:
    """Bodies, loops and loads, gathered while the arm is put together from its hinge outwards."""

    def __init__(self) -> None:
        self.q = dict(zip(START, me.dynamicsymbols(list(START)), strict=True))
        self.u = dict(zip(START, me.dynamicsymbols([f"{name}_rate" for name in START]), strict=True))
        self.at = {name: sm.symbols(f"{name}_x {name}_y") for name in PLACES}
        self.mass = {name: sm.symbols(f"m_{name} J_{name}", positive=True) for name in BODIES}
        self.number = {name: sm.Symbol(name, positive=True) for name in NUMBERS}
        self.N, self.O = me.ReferenceFrame("N"), me.Point("O")
        self.O.set_vel(self.N, 0)
        self.bodies: list[me.RigidBody] = []
        self.rows: list[sm.Expr] = []
        self.loads: list[me.Force] = []

    def turned(self, frame: me.ReferenceFrame, name: str) -> me.ReferenceFrame:
        """A frame that turns against another in the plane, by the coordinate of that name."""
        new = frame.orientnew(name, "Axis", (self.q[name], self.N.z))
        new.set_ang_vel(frame, self.u[name] * self.N.z)
        return new

    def place(self, base: me.Point, frame: me.ReferenceFrame, name: str) -> me.Point:
        """The place of that name on a body, from its hinge."""
        x, y = self.at[name]
        return base.locatenew(name, x * frame.x + y * frame.y)

    def body(self, name: str, frame: me.ReferenceFrame, centre: me.Point, kind: str = "") -> None:
        """A body with the mass and inertia of its name, or of its kind."""
        m, J = self.mass[kind or name]
        inertia = (me.inertia(frame, 0, 0, J), centre)
        self.bodies.append(me.RigidBody(f"{name}_body", centre, frame, m, inertia))

    def close(self, gap: me.Vector, frame: me.ReferenceFrame) -> None:
        """The two rows of a loop that closes where the gap vanishes."""
        self.rows += [gap.dot(frame.x), gap.dot(frame.y)]

    def push(self, base: me.Point, end: me.Point, force: me.Vector) -> None:
        """A force on one end, and its opposite on the base."""
        self.loads += [me.Force(end, force), me.Force(base, -force)]

    def cylinder(self, i: int, force: sm.Expr, frame: me.ReferenceFrame, base: me.Point, eye: me.Point) -> None:
        """Barrel and rod number ``i`` from ``base`` in ``frame`` to ``eye``."""
        C = self.turned(frame, f"tilt{i}")
        end = base.locatenew(f"end{i}", self.q[f"length{i}"] * C.x)
        barrel, rod = self.number["c_barrel"] * C.x, -self.number["c_rod"] * C.x
        self.body(f"barrel{i}", C, base.locatenew(f"barrel{i}_centre", barrel), "barrel")
        self.body(f"rod{i}", C, end.locatenew(f"rod{i}_centre", rod), "rod")
        self.close(end.pos_from(eye), frame)
        self.push(base, end, (force - self.number["d"] * self.u[f"length{i}"]) * C.x)

    def parts(self) -> Parts:
        """What was gathered, and gravity."""
        g = self.number["g"]
        dependent = [name for name, (_, kind) in START.items() if kind == "guess"]
        return Parts(
            frame=self.N,
            origin=self.O,
            q=tuple(self.q.values()),
            u=tuple(self.u.values()),
            kinematic_equations=tuple(self.u[name] - self.q[name].diff() for name in START),
            bodies=tuple(self.bodies),
            loads=(*self.loads, *(me.Force(b.masscenter, -b.mass * g * self.N.y) for b in self.bodies)),
            holonomic_constraints=tuple(self.rows),
            q_dependent=tuple(self.q[name] for name in dependent),
            u_dependent=tuple(self.u[name] for name in dependent),
        )

    def declare(self, model: Model) -> None:
        """Numbers, coordinates and speeds."""
        for name, ((x, y), text) in PLACES.items():
            model.parameter(self.at[name][0], x, "m", description=f"{text}, along")
            model.parameter(self.at[name][1], y, "m", description=f"{text}, across")
        for name, (m, J) in BODIES.items():
            model.parameter(self.mass[name][0], m, "kg", min=0.0, description=f"mass of {name}")
            model.parameter(self.mass[name][1], J, "kg.m2", min=0.0, description=f"central inertia of {name}")
        for name, (value, unit, text) in NUMBERS.items():
            model.parameter(self.number[name], value, unit, min=0.0, description=text)
        for name, (start, kind) in START.items():
            unit = "m" if name.startswith("length") else "rad"
            model.coordinate(self.q[name], start, unit, kind=kind, description=f"coordinate {name}")
            model.speed(self.u[name], 0.0, f"{unit}/s", kind=kind, description=f"rate of {name}")


def excavator_arm() -> Model:
    """The arm, held about where it starts by constant forces and moved to and fro by others."""
    t = me.dynamicsymbols._t  # noqa: SLF001  (the symbol of time that SymPy mechanics uses)
    forces = me.dynamicsymbols(list(HOLDING))
    arm = Arm()
    N, O = arm.N, arm.O
    boom = arm.turned(N, "boom")
    stick = arm.turned(boom, "stick")
    bucket = arm.turned(stick, "bucket")
    hinge2 = arm.place(O, boom, "boom")
    hinge3 = arm.place(hinge2, stick, "bucket_hinge")
    for name, frame, base in (("boom", boom, O), ("stick", stick, hinge2), ("bucket", bucket, hinge3)):
        arm.body(name, frame, arm.place(base, frame, f"{name}_centre"))
    arm.cylinder(1, forces[0], N, arm.place(O, N, "base1"), arm.place(O, boom, "boom_eye"))
    arm.cylinder(2, forces[1], boom, arm.place(O, boom, "base2"), arm.place(hinge2, stick, "stick_eye"))

    rocker, link = arm.turned(stick, "rocker"), arm.turned(stick, "link")
    l_rocker, l_link = arm.number["l_rocker"], arm.number["l_link"]
    root = arm.place(hinge2, stick, "rocker_hinge")
    tip = root.locatenew("rocker_tip", l_rocker * rocker.x)
    arm.body("rocker", rocker, root.locatenew("rocker_centre", l_rocker / 2 * rocker.x))
    arm.body("link", link, tip.locatenew("link_centre", l_link / 2 * link.x))
    end = tip.locatenew("link_tip", l_link * link.x)
    arm.close(end.pos_from(arm.place(hinge3, bucket, "bucket_eye")), stick)

    base3 = arm.place(hinge2, stick, "base3")
    line = tip.pos_from(base3)
    length3 = sm.sqrt(line.dot(line))
    rate3 = line.dot(l_rocker * arm.u["rocker"] * rocker.y) / length3  # seen from the stick, in which the base is fixed
    arm.push(base3, tip, (forces[2] - arm.number["d"] * rate3) * line / length3)

    description = "The arm of an excavator with its cylinders"
    model = Model("ExcavatorArm", arm.parts(), description=description, diagram=DIAGRAM)
    arm.declare(model)
    for force, (name, start) in zip(forces, HOLDING.items(), strict=True):
        cylinder = name.removesuffix("_force")
        model.input(force, start, "N", nominal=1e5, description=f"push of the {cylinder}'s cylinder")
    model.output("length3", length3, "m", description="length of the bucket's cylinder")
    model.output("rate3", rate3, "m/s", description="rate of length of the bucket's cylinder")
    model.output_position("bucket_centre", arm.bodies[2].masscenter)
    model.output_kinetic_energy()
    _draw(model, arm, {"root": root, "tip": tip, "end": end, "base3": base3, "hinge2": hinge2, "hinge3": hinge3})
    swing = (4e4 * sm.sin(2 * t), 3e4 * sm.sin(3 * t), 1e4 * sm.sin(2 * t))
    signals = {force: start + more for force, start, more in zip(forces, HOLDING.values(), swing, strict=True)}
    model.experiment(stop=1.5, step=0.02, tolerance=1e-8, signals=signals)
    return model


def _draw(model: Model, arm: Arm, places: dict[str, me.Point]) -> None:
    """Links, cylinders, bucket, and the machine that they hang on."""
    boom, stick, bucket, barrel1, rod1, barrel2, rod2, rocker, link = arm.bodies
    O, hinge2, hinge3 = arm.O, places["hinge2"], places["hinge3"]
    thick, dark = arm.at["bucket_eye"][1] / 4, "#5b6470"
    top = arm.place(O, boom.frame, "base2")
    tail, eye = arm.place(hinge2, stick.frame, "stick_eye"), arm.place(hinge3, bucket.frame, "bucket_eye")
    rods = [(boom, O, top, 2.2), (boom, top, hinge2, 1.8), (boom, top, arm.place(O, boom.frame, "boom_eye"), 1.5)]
    rods += [(stick, tail, hinge2, 1.6), (stick, hinge2, hinge3, 1.4), (stick, hinge2, places["base3"], 1.2)]
    rods += [(rocker, places["root"], places["tip"], 0.8), (link, places["tip"], places["end"], 0.8)]
    for body, start, end, times in rods:
        model.link(body, start, end, radius=times * thick, color=dark if body in (rocker, link) else "#e0a526")
    _draw_bucket(model, bucket, hinge3, eye)

    # The bucket's cylinder has no bodies: a frame of its own, along its line.
    line = places["tip"].pos_from(places["base3"])
    along = [line.dot(axis) for axis in (stick.frame.x, stick.frame.y)]
    c, s = (component / sm.sqrt(along[0] ** 2 + along[1] ** 2) for component in along)
    third = me.ReferenceFrame("bucket_cylinder")
    third.orient_explicit(stick.frame, sm.Matrix([[c, -s, 0], [s, c, 0], [0, 0, 1]]))
    cylinders = [(barrel1, rod1, arm.place(O, arm.N, "base1"), arm.place(O, boom.frame, "boom_eye"))]
    cylinders += [(barrel2, rod2, top, tail), (third, third, places["base3"], places["tip"])]
    for barrel, rod, start, end in cylinders:
        frame = getattr(barrel, "frame", barrel)
        part = 0.8 if barrel is third else 1.0
        for body, base, reach, radius, color in (
            (barrel, start, part * 2.3 * arm.number["c_barrel"], 1.1 * thick, dark),
            (rod, end, -part * 2.9 * arm.number["c_rod"], 0.6 * thick, "#c9ced6"),
        ):
            middle = base.locatenew("middle", reach / 2 * frame.x)
            model.visual(body, Cylinder(abs(reach), radius), at=middle, along=frame.x, color=color)
    _draw_machine(model, arm, thick)


def _draw_bucket(model: Model, bucket: me.RigidBody, hinge: me.Point, eye: me.Point) -> None:
    """Plates from the eye round the back to the teeth, and a lip below the hinge; shares of the eye's height."""
    B, size = bucket.frame, eye.pos_from(hinge).magnitude()
    shell = [(0, 0), (0, 1), (1.6, 0.8), (2.5, -0.3), (2.6, -2.1)]
    for plate in (shell, [(0, 0), (0.3, -1.3)]):
        corners = [hinge.locatenew(f"corner{i}", size * (x * B.x + y * B.y)) for i, (x, y) in enumerate(plate)]
        for start, end in itertools.pairwise(corners):
            line = end.pos_from(start)
            shape = Box(size / 8, line.magnitude(), 2.4 * size)
            model.visual(bucket, shape, at=start.locatenew("plate", line / 2), along=line, color="#8a6d3b")


def _draw_machine(model: Model, arm: Arm, thick: sm.Expr) -> None:
    """House and tracks behind the boom's hinge; it stands still."""
    N, (x, y) = arm.N, arm.at["base1"]
    model.link(N, arm.O.locatenew("mount", -x * N.x), arm.O, radius=2 * thick, color="#8a94a3")
    model.link(N, arm.O, arm.place(arm.O, N, "base1"), radius=2 * thick, color="#8a94a3")
    parts = [((-3 * x, -0.2 * y, 0), (4.6 * x, -2.6 * y, 16 * thick), "#e0a526")]
    parts += [((-2.4 * x, 1.45 * y, 0), (3 * x, -0.9 * y, 12 * thick), "#8a94a3")]
    parts += [((-2.4 * x, 2.6 * y, side * 7 * thick), (6.5 * x, -1.6 * y, 5 * thick), "#4d5663") for side in (-1, 1)]
    for (px, py, pz), edges, color in parts:
        place = arm.O.locatenew("machine", px * N.x + py * N.y + pz * N.z)
        model.visual(N, Box(*edges), at=place, color=color)
