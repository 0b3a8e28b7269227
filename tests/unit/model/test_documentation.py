"""docs/reference/models.md says what is true."""

import math
import re
from dataclasses import replace
from pathlib import Path

import pytest
import sympy.physics.mechanics as me

from mb2fmu import units
from mb2fmu.mechanics import mechanism
from mb2fmu.model import Model, check_model
from mb2fmu.model.supported_functions import SUPPORTED_FUNCTIONS

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "models.md"


@pytest.fixture(scope="module")
def text():
    return PAGE.read_text(encoding="utf-8") + PAGE.with_name("functions.md").read_text(encoding="utf-8")


def test_the_example_is_a_good_model(text):
    names = {}
    for block in re.findall(r"```python\n(.*?)```", text, re.DOTALL):
        exec(compile(block, str(PAGE), "exec"), names)
    definition = check_model(names["pendulum"]())
    assert [output.name for output in definition.outputs] == ["bob", "torque_of_gravity"]
    assert names["brake"].has(names["u"])


def test_all_supported_functions_are_listed(text):
    for function, meaning in SUPPORTED_FUNCTIONS.items():
        assert f"| `{function}` | {meaning} |" in text


def test_all_units_are_listed(text):
    listed = {
        "with": re.search(r"- units that take prefixes from `a` to `E`: (.*)", text).group(1).split(),
        "without": re.search(r"- units without prefixes: (.*)", text).group(1).split(),
    }
    assert listed["with"] == list(units._PREFIXABLE_UNITS)
    assert listed["without"] == list(units._UNPREFIXABLE_UNITS)


def test_units_in_the_text_are_units(text):
    section = text.partition("## Units")[2].partition("## Functions")[0]
    shown = re.findall(r"`([^`]+)`", section.partition("- units that take prefixes")[0])
    assert len(shown) > 7
    for unit in shown[2:]:
        units.parse_unit(unit)


def test_every_output_call_is_documented(text):
    calls = [name for name in dir(Model) if name.startswith("output_")]
    assert len(calls) > 10
    assert all(f"`{name}(" in text for name in calls)


def test_every_declaration_is_documented(text):
    calls = ["parameter", "input", "coordinate", "speed", "state", "constraint_force", "constraint"]
    calls += ["potential_energy", "experiment"]
    assert all(hasattr(Model, name) for name in calls)
    assert [name for name in calls if f"`model.{name}(" not in text] == []


def test_the_loop_in_space_closes_as_the_page_says():
    text = (PAGE.parents[1] / "explanation" / "loops_in_space.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    names = {}
    exec(compile(next(block for block in blocks if "def cardan" in block), "constraints.md", "exec"), names)
    angle, start = 0.6, 0.9
    model = names["cardan"]()
    theta, phi, omega, psi = (me.dynamicsymbols(name) for name in ("theta", "phi", "omega", "psi"))
    declared = check_model(model)
    turned = replace(
        declared,
        coordinates=tuple(replace(q, start=start) if q.symbol == theta else q for q in declared.coordinates),
    )
    closed = mechanism.solve_loop_closure_start_values(mechanism.read_mechanism(turned)).declared
    values = {item.symbol: item.start for item in (*closed.coordinates, *closed.speeds)}
    assert math.isclose(math.tan(values[phi]), math.cos(angle) * math.tan(start), rel_tol=1e-9)
    ratio = math.cos(angle) / (1 - (math.sin(angle) * math.sin(start)) ** 2)
    assert math.isclose(values[psi] / values[omega], ratio, rel_tol=1e-9)
