"""What is measured in a unit, and types made of it."""

import re

import pytest
from golden.handwritten import pendulum_interface
from hypothesis import given
from hypothesis import strategies as st

from mb2fmu.fmu.interface.fmu_types_arrays_terminals import TypeDefinition
from mb2fmu.fmu.interface.interface_description import make_unique_variable_name
from mb2fmu.fmu.interface.physical_quantities import find_physical_quantity, map_units_to_quantity_types
from mb2fmu.units import parse_unit

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@pytest.mark.parametrize(
    ("unit", "what"),
    [
        ("rad", "Angle"),
        ("deg", "Angle"),
        ("mm", "Length"),
        ("rpm", "AngularVelocity"),
        ("kg.m2", "MomentOfInertia"),
        ("N.m", "Torque"),
        ("kN.mm", "Torque"),
        ("J", "Energy"),
        ("kWh", "Energy"),
        ("kg.m2/s2", None),
        ("N.m.s/rad", "RotationalDampingConstant"),
        ("N.s/m", "TranslationalDampingConstant"),
        ("kg/s", None),
        ("kg/s2", None),
        ("1", None),
        ("1/s", None),
        ("Hz", None),
        ("kg.m/s2", "Force"),
    ],
)
def test_units_say_what_they_measure_only_where_they_do(unit, what):
    assert find_physical_quantity(unit) == what


def test_a_quantity_has_one_type_for_each_of_its_units():
    class Variable:
        def __init__(self, name, unit):
            self.name, self.unit = name, unit

    variables = [
        Variable("a", "m"),
        Variable("b", "mm"),
        Variable("Angle", "rad"),
        Variable("c", "m"),
        Variable("d", "1"),
    ]
    assert map_units_to_quantity_types(variables) == {
        "m": TypeDefinition("Length", "Length", "m"),
        "mm": TypeDefinition("Length_mm", "Length", "mm"),
        "rad": TypeDefinition("Angle_", "Angle", "rad"),
    }


UNITS = ["m", "mm", "km", "rad", "deg", "N.m", "J", "N.m.s/rad", "N.m.s/deg", "m/s", "km/h", "m.s-1", "1"]
NAMES = ["a", "Length", "Length_mm", "Angle", "Velocity", "Velocity_km_h", "Torque_"]


@given(st.lists(st.tuples(st.sampled_from(NAMES), st.sampled_from(UNITS)), max_size=12))
def test_types_have_names_of_their_own(pairs):
    class Variable:
        def __init__(self, name, unit):
            self.name, self.unit = name, unit

    types = map_units_to_quantity_types([Variable(*pair) for pair in pairs])
    names = [item.name for item in types.values()]
    assert len({*names, *(name for name, _ in pairs)}) == len(names) + len({name for name, _ in pairs})
    assert all(NAME.fullmatch(name) for name in names)
    assert set(types) == {unit for _, unit in pairs if find_physical_quantity(unit)}
    assert all(item.unit == unit and item.quantity == find_physical_quantity(unit) for unit, item in types.items())


@given(st.lists(st.sampled_from(["solver", "solver_", "solver__", "x"])))
def test_free_names_are_free(taken):
    name = make_unique_variable_name("solver", taken)
    assert name not in taken
    assert name.rstrip("_") == "solver"


def test_all_units_of_the_pendulum_are_recognized():
    interface = pendulum_interface()
    assert set(map_units_to_quantity_types(interface.variables)) == {v.unit for v in interface.variables}
    assert all(parse_unit(unit) for unit in map_units_to_quantity_types(interface.variables))
