"""The graph of a mechanism, and its picture."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import sympy.physics.mechanics as me
from mechanisms import cart_with_pathways, mechanism_of

import mb2fmu
from mb2fmu.mechanism.mechanism_graph import GROUND, Bond, MechanismGraph, mechanism_graph
from mb2fmu.report.graph_picture import graph_picture


def graph_of(model: mb2fmu.Model) -> MechanismGraph:
    return mechanism_graph(mechanism_of(model))


def test_a_chain_of_joints_with_its_loads_and_sensors() -> None:
    """Joints by name with their coordinates, pathways between what they pull, sensors where they look."""
    model = cart_with_pathways()
    bob = model.mechanics.bodies[-1]
    model.output_position("place", bob.masscenter)
    model.output_angular_velocity("turning", bob.frame)
    graph = graph_of(model)
    cart, swing = graph.bodies.index("cart"), graph.bodies.index("bob")
    assert Bond("joint", "slide", GROUND, cart, ("x",)) in graph.bonds
    assert Bond("joint", "pin", cart, swing, ("q",)) in graph.bonds
    pulled = [(bond.parent, bond.child) for bond in graph.bonds if bond.kind == "load"]
    assert pulled == [(GROUND, swing), (GROUND, swing), (GROUND, cart), (GROUND, cart), (cart, swing), (swing, cart)]
    assert graph.sensors[swing] == ("place", "turning")
    assert len(graph.loads[swing]) == len(graph.loads[cart]) == 1  # their weights


def test_particles_in_turning_frames_and_a_loop() -> None:
    """The book's four-bar linkage has no joints: coordinates are read off the frames; its loop ends at the ground."""
    graph = graph_of(mb2fmu.load("models/four_bar.py"))
    first, second = (next(b for b in graph.bonds if b.child == k and b.kind == "joint") for k in (0, 1))
    assert (first.parent, first.coordinates) == (GROUND, ("q1",))
    assert (second.parent, second.coordinates) == (0, ("q2",))
    assert {(b.parent, b.child) for b in graph.bonds if b.kind == "loop"} == {(GROUND, 1)}


def test_the_picture_is_svg_that_shows_every_name() -> None:
    """Well-formed, all inside its view box; names that XML would read are escaped, long ones cut."""
    m = me.dynamicsymbols("q u")
    graph = MechanismGraph(
        "A<B",
        ("left & right", "end"),
        (
            Bond("joint", "pin", GROUND, 0, (str(m[0]),)),
            Bond("joint", "", 0, 1, ("q2",)),
            Bond("load", "spring", 0, 1),
            Bond("loop", "a closing condition with a name that is much longer than any picture is wide", GROUND, 1),
        ),
        (("weight",), (), ()),
        ((), tuple(f"tip{i}" for i in range(12)), ()),
    )
    text = graph_picture(graph)
    root = ET.fromstring(text)
    words = ["".join(e.itertext()) for e in root.iter() if e.tag.endswith("text")]
    assert {"left & right", "end", "pin", "spring", "weight", "tip0", "… and 5 more"} <= set(words)
    width, height = (float(root.attrib[key]) for key in ("width", "height"))
    for shape in (e for e in root.iter() if e.tag.endswith("rect")):
        x, y = float(shape.get("x", "0")), float(shape.get("y", "0"))
        assert 0 <= x <= x + float(shape.attrib["width"]) <= width
        assert 0 <= y <= y + float(shape.attrib["height"]) <= height
    assert graph_picture(graph) == text


def test_bodies_around_a_ring_of_joints_are_drawn() -> None:
    """A wheel and a frame that hold each other, and a body that no joint leads to."""
    ring = (Bond("joint", "hub", 0, 1), Bond("joint", "axle", 1, 0))
    names = ("wheel", "frame", "fork")
    drawn = graph_picture(MechanismGraph("Ring", names, ring, ((),) * 4, ((),) * 4))
    assert all(f">{name}<" in drawn for name in names)
