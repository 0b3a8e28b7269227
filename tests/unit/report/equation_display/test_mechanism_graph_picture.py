"""The graph of a mechanism, and its picture."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from pathlib import Path

import sympy.physics.mechanics as me
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st
from mechanisms import cart_with_pathways, closed_mechanism_of, mechanism_of

import mb2fmu
from mb2fmu.cli import commands
from mb2fmu.mechanics.mechanism.symbolic.mechanism_graph import (
    GROUND_NUMBER,
    MechanismGraph,
    MechanismGraphEdge,
    build_mechanism_graph,
)
from mb2fmu.report.equation_display.mechanism_graph_picture import draw_mechanism_graph

MODELS = Path(__file__).parents[4] / "models"


def graph_of(model: mb2fmu.Model) -> MechanismGraph:
    return build_mechanism_graph(mechanism_of(model))


def test_a_chain_of_joints_with_its_loads_and_sensors() -> None:
    """Joints by name with their coordinates, pathways between what they pull, sensors where they look."""
    model = cart_with_pathways()
    bob = model.mechanics.bodies[-1]
    model.output_position("place", bob.masscenter)
    model.output_angular_velocity("turning", bob.frame)
    graph = graph_of(model)
    cart, swing = graph.bodies.index("cart"), graph.bodies.index("bob")
    assert MechanismGraphEdge("joint", "slide", GROUND_NUMBER, cart, ("x",)) in graph.edges
    assert MechanismGraphEdge("joint", "pin", cart, swing, ("q",)) in graph.edges
    pulled = [(bond.parent, bond.child) for bond in graph.edges if bond.kind == "load"]
    assert pulled == [
        (GROUND_NUMBER, swing),
        (GROUND_NUMBER, swing),
        (GROUND_NUMBER, cart),
        (GROUND_NUMBER, cart),
        (cart, swing),
        (swing, cart),
    ]
    assert graph.outputs_of_body[swing] == ("place", "turning")
    assert len(graph.loads_of_body[swing]) == len(graph.loads_of_body[cart]) == 1  # their weights


def test_particles_in_turning_frames_and_a_loop() -> None:
    """The book's four-bar linkage has no joints: coordinates are read off the frames; its loop ends at the ground."""
    graph = graph_of(mb2fmu.load("models/four_bar.py"))
    first, second = (next(b for b in graph.edges if b.child == k and b.kind == "joint") for k in (0, 1))
    assert (first.parent, first.coordinates) == (GROUND_NUMBER, ("q1",))
    assert (second.parent, second.coordinates) == (0, ("q2",))
    assert {(b.parent, b.child) for b in graph.edges if b.kind == "loop"} == {(GROUND_NUMBER, 1)}


def test_the_picture_is_svg_that_shows_every_name() -> None:
    """Well-formed, all inside its view box; names that XML would read are escaped, long ones cut."""
    m = me.dynamicsymbols("q u")
    graph = MechanismGraph(
        "A<B",
        ("left & right", "end"),
        (
            MechanismGraphEdge("joint", "pin", GROUND_NUMBER, 0, (str(m[0]),)),
            MechanismGraphEdge("joint", "", 0, 1, ("q2",)),
            MechanismGraphEdge("load", "spring", 0, 1),
            MechanismGraphEdge(
                "loop", "a closing condition with a name that is much longer than any picture is wide", GROUND_NUMBER, 1
            ),
        ),
        (("weight",), (), ()),
        ((), tuple(f"tip{i}" for i in range(12)), ()),
    )
    text = draw_mechanism_graph(graph)
    root = ET.fromstring(text)
    words = ["".join(e.itertext()) for e in root.iter() if e.tag.endswith("text")]
    assert {"left & right", "end", "pin", "spring", "weight", "tip0", "… and 5 more"} <= set(words)
    width, height = (float(root.attrib[key]) for key in ("width", "height"))
    for shape in (e for e in root.iter() if e.tag.endswith("rect")):
        x, y = float(shape.get("x", "0")), float(shape.get("y", "0"))
        assert 0 <= x <= x + float(shape.attrib["width"]) <= width
        assert 0 <= y <= y + float(shape.attrib["height"]) <= height
    assert draw_mechanism_graph(graph) == text


def test_what_is_drawn_has_a_colour_for_dark_screens() -> None:
    """Colours stand in the style alone, and every rule with one has another one for the dark."""
    text = draw_mechanism_graph(graph_of(mb2fmu.load("models/four_bar.py")))
    style, drawn = re.search(r"<style>(.*)</style>(.*)", text, flags=re.DOTALL).groups()
    light, dark = style.split("@media screen and (prefers-color-scheme:dark)")

    def coloured(rules: str) -> dict[str, str]:
        found = re.findall(r"([^{}]+)\{([^{}]*#[^{}]*)\}", rules)
        return {name: words for names, words in found for name in names.split(",")}

    assert coloured(light).keys() == coloured(dark).keys()
    assert "#" not in drawn
    assert all(coloured(light)[name] != words for name, words in coloured(dark).items())


def test_another_ending_is_refused(tmp_path: Path) -> None:
    done = CliRunner().invoke(commands, ["equations", "simple_pendulum", "--graph", str(tmp_path / "a.bmp")])
    assert done.exit_code == 2
    assert "give FILE.svg" in done.output
    assert not list(tmp_path.iterdir())


def test_bodies_around_a_ring_of_joints_are_drawn() -> None:
    """A wheel and a frame that hold each other, and a body that no joint leads to."""
    ring = (MechanismGraphEdge("joint", "hub", 0, 1), MechanismGraphEdge("joint", "axle", 1, 0))
    names = ("wheel", "frame", "fork")
    drawn = draw_mechanism_graph(MechanismGraph("Ring", names, ring, ((),) * 4, ((),) * 4))
    assert all(f">{name}<" in drawn for name in names)


@st.composite
def graphs(draw) -> MechanismGraph:
    """Random trees with wires between any two bodies."""
    n = draw(st.integers(1, 7))
    joints = [MechanismGraphEdge("joint", "", draw(st.integers(-1, k - 1)), k, (f"q{k}",)) for k in range(n)]
    ends = st.lists(st.tuples(st.sampled_from(["load", "loop"]), st.integers(-1, n - 1), st.integers(-1, n - 1)))
    wires = [MechanismGraphEdge(kind, f"wire {k}", a, b) for k, (kind, a, b) in enumerate(draw(ends)) if a != b]
    loads = [("weight",) * draw(st.integers(0, 10)) for _ in range(n)]
    bodies = tuple(f"body {k}" for k in range(n))
    return MechanismGraph("Random", bodies, (*joints, *wires), (*loads, ()), ((),) * (n + 1))


@settings(max_examples=60, deadline=None)
@given(graphs())
def test_wires_run_behind_no_body_and_nothing_is_cut(graph: MechanismGraph) -> None:
    """All in the view box, letters 7 wide; wires touch boxes from outside only, each its own two."""
    root = ET.fromstring(draw_mechanism_graph(graph))
    width, height = (float(root.attrib[key]) for key in ("width", "height"))
    boxes = [
        [float(e.attrib[key]) for key in ("x", "y", "width", "height")]
        for e in root.iter()
        if e.get("class") in {"body", "ground"}
    ]
    assert len(boxes) == len(graph.bodies) + 1
    runs = []
    for path in (e for e in root.iter() if e.get("class") in {"load", "loop"} and e.tag.endswith("path")):
        x, y = 0.0, 0.0
        touched = set()
        for letter, numbers in re.findall(r"([MHV])([-0-9. ]+)", path.attrib["d"]):
            values = [float(number) for number in numbers.split()]
            to = (values[0], values[-1]) if letter == "M" else (values[0], y) if letter == "H" else (x, values[0])
            if letter != "M":
                left, right, top, low = min(x, to[0]), max(x, to[0]), min(y, to[1]), max(y, to[1])
                assert 0.0 <= left <= right <= width
                assert 0.0 <= top <= low <= height
                runs.append((letter, left, right, top, low))
                for k, (bx, by, w, h) in enumerate(boxes):
                    assert right <= bx or left >= bx + w or low <= by or top >= by + h
                    touched |= {k} if left == bx + w and by < top <= low < by + h else set()
            x, y = to
        assert len(touched) == 2
    downward = [left for letter, left, *_ in runs if letter == "V"]
    assert len(set(downward)) == len(downward)  # each wire for itself
    for text in (e for e in root.iter() if e.tag.endswith("text") and "of-" in e.get("class", "")):
        assert float(text.attrib["x"]) + 6.9 * len("".join(text.itertext())) <= width


def test_a_frame_that_is_located_from_its_wheel_hangs_on_the_ground() -> None:
    """As a bicycle's: it turns against the ground, and its place follows from the contact of the wheel."""
    q = x, pitch, spin = me.dynamicsymbols("x pitch spin")
    u = me.dynamicsymbols("v w_pitch w_spin")
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    C = N.orientnew("C", "Axis", (pitch, N.y))
    W = C.orientnew("W", "Axis", (spin, C.y))
    hub = O.locatenew("contact", x * N.x).locatenew("hub", N.z)
    trunk = hub.locatenew("trunk", C.x)
    wheel, frame = (
        me.RigidBody(name, at, turned, 1, (me.inertia(turned, 1, 1, 1), at))
        for name, at, turned in (("wheel", hub, W), ("frame", trunk, C))
    )
    parts = mb2fmu.Parts(
        frame=N, origin=O, q=q, u=u, bodies=(wheel, frame),
        kinematic_equations=[place.diff() - speed for place, speed in zip(q, u, strict=True)],
    )  # fmt: skip
    model = mb2fmu.Model("Unicycle", parts)
    for place, speed in zip(q, u, strict=True):
        model.coordinate(place, 0.1)
        model.speed(speed, 0.0)
    hung = {b.child: (b.parent, b.coordinates) for b in graph_of(model).edges}
    assert hung == {0: (1, ("spin",)), 1: (GROUND_NUMBER, ("x", "pitch"))}


def test_what_acts_on_the_corner_that_a_platform_is_placed_by_acts_on_the_platform() -> None:
    """Three legs of the hexapod end there, the others elsewhere on it: each pushes the platform off its spindle."""
    graph = build_mechanism_graph(closed_mechanism_of(MODELS / "hexapod.py"))
    ends = {
        bond.name: {graph.bodies[bond.parent], graph.bodies[bond.child]} for bond in graph.edges if bond.kind == "load"
    }
    assert ends == {f"ForceActuator[{k}]": {f"spindle{k}", "platform"} for k in range(1, 7)}
