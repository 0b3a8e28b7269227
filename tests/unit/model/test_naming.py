"""Names: FMI's grammar, identifiers, and the variables of output requests."""

import re

import pytest
import sympy.physics.mechanics as me
from hypothesis import given
from hypothesis import strategies as st

from mb2fmu.model.model import OutputRequest
from mb2fmu.model.quantity_declarations import format_symbol_as_word
from mb2fmu.model.variable_naming import (
    is_model_name,
    is_variable_name,
    list_output_variable_names,
    strip_latex,
    suggest_identifier,
)

identifiers = st.from_regex(re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,5}", re.ASCII), fullmatch=True)
indices = st.lists(st.integers(0, 99), max_size=2).map(lambda i: f"[{','.join(map(str, i))}]" if i else "")
names = st.lists(st.tuples(identifiers, indices).map("".join), min_size=1, max_size=3).map(".".join)


@given(names)
def test_structured_names(name):
    assert is_variable_name(name)
    assert is_variable_name(f"der({name})")
    assert is_variable_name(f"der({name},2)")
    for spoilt in (f"{name} ", f" {name}", f"{name}.", f".{name}", f"{name}\n", f"({name})", f"der(der({name}))"):
        assert not is_variable_name(spoilt)


@given(st.text(max_size=12))
def test_suggested_names_are_legal(text):
    name = suggest_identifier(text, "x")
    assert is_variable_name(name)
    assert is_model_name(name)


@pytest.mark.parametrize(
    ("name", "spelled"),
    [("θ", "theta"), ("ω_1", "omega_1"), ("φ₂", "phi2"), ("ϕ", "phi"), ("Δx", "Deltax"), ("λ", "lambda"), ("µ", "mu"),
     ("θ̇", "theta_dot"), ("ẋ", "x_dot"), ("ẍ_2", "x_ddot_2"), ("größe", "grosse"), ("x'", "x_prime"), ("x", "x")]
)  # fmt: skip
def test_letters_of_symbols_are_spelled(name, spelled):
    """Seen: a script with Greek symbols was refused, and every name it was offered was x."""
    assert strip_latex(name) == spelled
    assert suggest_identifier("größe θ", "x") == "grosse_theta"


@given(identifiers)
def test_an_identifier_names_a_variable(name):
    assert is_variable_name(name)


@pytest.mark.parametrize(
    ("name", "legal"), [("Arm2", True), ("_a", True), ("a.b", False), ("lambda", False), ("é", False)]
)
def test_model_names(name, legal):
    assert is_model_name(name) is legal


LOAD, ACTUATOR = (me.Point("P"), 0), object()


@pytest.mark.parametrize(
    ("kind", "subject", "representation", "expected"),
    [
        ("position", (LOAD[0],), "quaternion", ("n.x", "n.y", "n.z")),
        ("angular_velocity", (None,), "quaternion", ("n.x", "n.y", "n.z")),
        ("orientation", (None,), "quaternion", ("n.w", "n.x", "n.y", "n.z")),
        ("orientation", (None,), "zxy", ("n[1]", "n[2]", "n[3]")),
        ("force", (LOAD,), "quaternion", ("n.x", "n.y", "n.z")),
        ("force", (ACTUATOR,), "quaternion", ("n",)),
        ("power", (LOAD,), "quaternion", ("n",)),
        ("total_energy", (), "quaternion", ("n",)),
    ],
)
def test_variables_of_output_requests(kind, subject, representation, expected):
    request = OutputRequest(kind=kind, name="n", subject=subject, representation=representation)
    assert list_output_variable_names(request) == expected


def test_plain_names():
    q = me.dynamicsymbols("theta")
    assert [format_symbol_as_word(s) for s in (q, q.diff(), q.diff(me.dynamicsymbols._t, 2))] == [
        "theta",
        "theta_dot",
        "theta_ddot",
    ]
