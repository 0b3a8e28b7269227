"""modelDescription.xml: whatever the interface says can be read back, exactly."""

import dataclasses
from pathlib import Path

import fmpy
from golden.handwritten import pendulum_interface
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree

from mb2fmu.fmu import emit_xml
from mb2fmu.fmu.interface.model_structure import assign_model_structure_indices, form_model_structure

SCHEMA = etree.XMLSchema(etree.parse(Path(fmpy.__file__).parent / "schema" / "fmi2" / "fmi2ModelDescription.xsd"))
finite = st.floats(allow_nan=False, allow_infinity=False)
lines = st.text(st.characters(exclude_categories=["Cc", "Cs", "Cn", "Co"]), max_size=40)


def parsed(interface):
    root = etree.fromstring(emit_xml.emit_fmu_description_files(interface)["modelDescription.xml"])
    SCHEMA.assertValid(root)
    return root


def with_variable(name, **changes):
    sound = pendulum_interface()
    variables = tuple(dataclasses.replace(v, **changes) if v.name == name else v for v in sound.variables)
    return dataclasses.replace(sound, variables=variables)


@given(text=lines)
def test_any_line_of_text_reads_back(text):
    root = parsed(dataclasses.replace(with_variable("q", description=text), description=text))
    assert root.get("description") == text
    assert root.xpath("//ScalarVariable[@name='q']")[0].get("description", "") == text


@given(start=finite, nominal=finite.filter(lambda value: value > 0.0))
def test_numbers_read_back_to_the_same_bits(start, nominal):
    root = parsed(with_variable("q", start=start, nominal=nominal, minimum=None, maximum=None))
    (real,) = root.xpath("//ScalarVariable[@name='q']/Real")
    assert float(real.get("start")).hex() == start.hex()
    assert float(real.get("nominal")).hex() == nominal.hex()


def test_every_variable_stands_at_its_index_with_its_reference():
    interface = pendulum_interface()
    elements = parsed(interface).xpath("/fmiModelDescription/ModelVariables/ScalarVariable")
    assert [element.get("name") for element in elements] == list(assign_model_structure_indices(interface))
    assert [int(e.get("valueReference")) for e in elements] == [v.value_reference for v in interface.variables]
    derivatives = {e.get("name"): e[0].get("derivative") for e in elements if e[0].get("derivative")}
    index = assign_model_structure_indices(interface)
    assert derivatives == {"der(q)": str(index["q"]), "der(u)": str(index["u"])}


def test_structure_is_printed_completely():
    interface = pendulum_interface()
    root = parsed(interface)
    structure = form_model_structure(interface)
    for element, unknowns in (
        ("Outputs", structure.outputs),
        ("Derivatives", structure.derivatives),
        ("InitialUnknowns", structure.initial_unknowns),
    ):
        printed = [
            (
                int(u.get("index")),
                tuple(map(int, u.get("dependencies").split())),
                u.get("dependenciesKind"),
            )
            for u in root.xpath(f"//{element}/Unknown")
        ]
        kinds = [None if set(u.kinds) <= {"dependent"} else " ".join(u.kinds) for u in unknowns]  # no kinds: dependent
        assert printed == [(u.index, u.dependencies, kind) for u, kind in zip(unknowns, kinds, strict=True)]


def test_neither_date_nor_initial_of_inputs_is_given():
    root = parsed(pendulum_interface())
    assert root.get("generationDateAndTime") is None
    assert root.xpath("//ScalarVariable[@causality='input' or @causality='independent'][@initial]") == []
