"""Terminals that a model declares."""

from __future__ import annotations

from mb2fmu.model import check_model
from mb2fmu.model.declarations.declared_terminals import DeclaredTerminalMember


def test_members_are_named_by_symbols_or_by_names(pendulum):
    model = pendulum.model()
    model.output_position("tip", pendulum.P)
    names = {item.symbol: item.name for item in model.declared if hasattr(item, "symbol")}
    model.terminal("hand", {"s": pendulum.q, "x": "tip.x", "c": names[pendulum.q]}, outflow=["x"], description="held")
    (hand,) = check_model(model).terminals
    assert (hand.name, hand.description) == ("hand", "held")
    assert hand.members == (
        DeclaredTerminalMember("s", names[pendulum.q]),
        DeclaredTerminalMember("x", "tip.x", "outflow"),
        DeclaredTerminalMember("c", names[pendulum.q]),
    )
    assert hand.where.startswith("test_declared_terminals.py:")


def test_every_fault_of_a_terminal_is_reported(pendulum, faults_of):
    model = pendulum.model()
    model.terminal("a b", {"s": pendulum.q})
    model.terminal("empty", {})
    model.terminal("empty", {"x y": pendulum.q, "z": "tip.z"}, inflow=["f"])
    whats = [fault.what for fault in faults_of(model)]
    for reported in (
        "a terminal cannot be called 'a b'",
        "the terminal empty has no members",
        "2 terminals are called 'empty'",
        "a member of empty cannot be called 'x y'",
        "empty.z is tip.z, which the model does not have",
        "'f' flows, but is no member of the terminal empty",
    ):
        assert reported in whats
    assert len(whats) == 6
