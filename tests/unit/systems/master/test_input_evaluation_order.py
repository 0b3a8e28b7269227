"""Levels, loops by name, and the order of components."""

from __future__ import annotations

import pytest
from coupled_masses import WIRING

from mb2fmu.systems.master.input_evaluation_order import (
    format_algebraic_loop,
    order_gauss_seidel_components,
    order_inputs_by_level,
)
from mb2fmu.systems.port_and_bond_records import ComponentPort, PortLink, SystemWiring

# a.x → b.u (through) → b.y → c.u (through) → c.y → a.u
RING = SystemWiring(
    ("a", "b", "c"),
    (ComponentPort(0, "u", 0), ComponentPort(1, "u", 0), ComponentPort(2, "u", 0)),
    (ComponentPort(0, "x", 1), ComponentPort(1, "y", 1), ComponentPort(2, "y", 1)),
    (PortLink(0, 1), PortLink(1, 2), PortLink(2, 0)),
    frozenset({(1, 1), (2, 2)}),
)


def test_values_are_passed_on_level_by_level() -> None:
    found = order_inputs_by_level(RING)
    assert found.groups == ((1,), (2,), (0,))
    assert not any(found.loops)


def test_feedthrough_around_is_a_loop_with_a_name() -> None:
    closed = SystemWiring(RING.components, RING.inputs, RING.outputs, RING.links, RING.feedthrough | {(0, 0)})
    found = order_inputs_by_level(closed)
    assert found.groups == ((0, 1, 2),)
    assert found.loops == (True,)
    assert format_algebraic_loop(closed, found.groups[0]) == "a.u → a.x → b.u → b.y → c.u → c.y → a.u"


def test_components_with_feedthrough_come_last_in_a_ring() -> None:
    assert order_gauss_seidel_components(WIRING) == (0, 1)
    turned = SystemWiring(("right", "left"), *(
        tuple(type(p)(1 - p.component, p.name, p.reference) for p in ports) for ports in (WIRING.inputs, WIRING.outputs)
    ), WIRING.links, WIRING.feedthrough)  # fmt: skip
    assert order_gauss_seidel_components(turned) == (1, 0)


def test_a_chain_is_in_the_order_of_its_links() -> None:
    chain = SystemWiring(
        ("last", "first"), (ComponentPort(0, "u", 0),), (ComponentPort(1, "y", 0),), (PortLink(0, 0),), frozenset(),
    )  # fmt: skip
    assert order_gauss_seidel_components(chain) == (1, 0)


def test_a_wrong_sequence_is_reported() -> None:
    with pytest.raises(ValueError, match="each of left, right once"):
        order_gauss_seidel_components(WIRING, ("left", "middle"))
