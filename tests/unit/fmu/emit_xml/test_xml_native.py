"""Description files of native units: valid, complete, and whatever the interface says can be read back exactly."""

import dataclasses
from pathlib import Path

import fmpy
import pytest
from fmpy.validation import validate_model_description
from golden.handwritten import native_interface
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree

from mb2fmu.fmu import emit_xml
from mb2fmu.fmu.integration_method_table import SOLVERS
from mb2fmu.fmu.interface.fmu_interface import FmuSolverSettings
from mb2fmu.fmu.interface.fmu_types_arrays_terminals import Terminal, TerminalMember
from mb2fmu.fmu.interface.model_structure import assign_model_structure_indices, form_model_structure

FOLDER = Path(fmpy.__file__).parent / "schema"
TERMINALS = "terminalsAndIcons/terminalsAndIcons.xml"
BUILD = "sources/buildDescription.xml"
VERSIONS = pytest.mark.parametrize("fmi", ["2", "3"])
finite = st.floats(allow_nan=False, allow_infinity=False)
lines = st.text(st.characters(exclude_categories=["Cc", "Cs", "Cn", "Co"]), max_size=40)
parts = st.one_of(
    st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,8}(\[\d{1,2}(,\d)?\])?", fullmatch=True),
    st.from_regex(r"'[A-Za-z0-9 <>&!%.,;+*/#-]{1,8}'", fullmatch=True),
)
TAKEN = {item.name for item in (*native_interface("2").variables, *native_interface("2").types)}
names = st.lists(parts, min_size=1, max_size=3).map(".".join).filter(lambda name: name not in TAKEN)


def schema(version, name):
    return etree.XMLSchema(etree.parse(FOLDER / f"fmi{version}" / f"fmi{version}{name}.xsd"))


SCHEMAS = {
    ("modelDescription.xml", "2"): schema(2, "ModelDescription"),
    ("modelDescription.xml", "3"): schema(3, "ModelDescription"),
    (TERMINALS, "2"): schema(3, "TerminalsAndIcons"),
    (TERMINALS, "3"): schema(3, "TerminalsAndIcons"),
    (BUILD, "2"): schema(3, "BuildDescription"),
    (BUILD, "3"): schema(3, "BuildDescription"),
}


def parsed(interface, sources=("unit.c",)):
    """Every file by its path, valid."""
    tree = emit_xml.emit_fmu_description_files(interface, sources)
    roots = {path: etree.fromstring(tree[path]) for path in tree}
    for path, root in roots.items():
        SCHEMAS[path, interface.target.fmi].assertValid(root)
    return roots


def description(interface):
    return parsed(interface)["modelDescription.xml"]


def variables(root):
    """Name → (element of the variable, element of its type's attributes)."""
    elements = root.find("ModelVariables")
    return {e.get("name"): (e, e[0] if e.tag == "ScalarVariable" else e) for e in elements.iterchildren("*")}


def renamed(interface, old, new):
    """The interface with one variable under another name, wherever it is named."""

    def other(name):
        return new if name == old else name

    def changed(variable):
        on = tuple(dataclasses.replace(item, on=other(item.on)) for item in variable.dependencies)
        of = None if variable.derivative_of is None else other(variable.derivative_of)
        return dataclasses.replace(variable, name=other(variable.name), dependencies=on, derivative_of=of)

    terminals = tuple(
        Terminal(
            other(terminal.name),
            tuple(TerminalMember(m.name, other(m.variable), m.kind) for m in terminal.members),
            terminal.description,
        )
        for terminal in interface.terminals
    )
    return dataclasses.replace(interface, variables=tuple(map(changed, interface.variables)), terminals=terminals)


def with_variable(interface, name, **changes):
    changed = tuple(dataclasses.replace(v, **changes) if v.name == name else v for v in interface.variables)
    return dataclasses.replace(interface, variables=changed)


@VERSIONS
def test_a_native_fmu_has_three_files(fmi):
    assert set(parsed(native_interface(fmi))) == {"modelDescription.xml", TERMINALS, BUILD}
    assert set(parsed(native_interface(fmi), ())) == {"modelDescription.xml", TERMINALS}


@VERSIONS
@given(name=names, text=lines)
def test_any_structured_name_and_any_line_of_text_reads_back(fmi, name, text):
    interface = with_variable(renamed(native_interface(fmi), "tau", name), name, description=text)
    roots = parsed(dataclasses.replace(interface, description=text))
    assert roots["modelDescription.xml"].get("description") == text
    element, _ = variables(roots["modelDescription.xml"])[name]
    assert element.get("description", "") == text
    (member,) = roots[TERMINALS].xpath("//TerminalMemberVariable[@variableKind='inflow']")
    assert member.get("variableName") == name


@VERSIONS
@given(start=finite, nominal=finite.filter(lambda value: value > 0.0), bounds=st.tuples(finite, finite).map(sorted))
def test_numbers_read_back_to_the_same_bits(fmi, start, nominal, bounds):
    interface = with_variable(native_interface(fmi), "tau", start=start, nominal=nominal)
    low, high = bounds
    interface = with_variable(interface, "tip.x", minimum=low, maximum=high)
    found = variables(description(interface))
    real, tip = found["tau"][1], found["tip.x"][1]
    assert [float(real.get(key)).hex() for key in ("start", "nominal")] == [start.hex(), nominal.hex()]
    assert [float(tip.get(key)).hex() for key in ("min", "max")] == [low.hex(), high.hex()]


@VERSIONS
def test_units_types_and_display_units_are_those_of_the_interface(fmi):
    interface = native_interface(fmi)
    root = description(interface)
    found = variables(root)
    assert list(found) == [variable.name for variable in interface.variables]
    for variable in interface.variables:
        element, typed = found[variable.name]
        assert int(element.get("valueReference")) == variable.value_reference
        assert typed.get("declaredType") == variable.declared_type
        if variable.kind == "enumeration":
            assert (typed.tag, typed.get("start"), typed.get("unit")) == ("Enumeration", "1", None)
        else:
            assert (typed.get("unit"), typed.get("displayUnit")) == (variable.unit, variable.display_unit)
    torque = root.xpath("//TypeDefinitions/*[@name='Torque']")[0]
    attributes = torque if fmi == "3" else torque[0]
    assert (attributes.get("quantity"), attributes.get("unit")) == ("Torque", "N.m")
    assert [item.get("value") for item in root.xpath("//TypeDefinitions//Item")] == [str(row.number) for row in SOLVERS]


@VERSIONS
def test_derivatives_point_at_their_states(fmi):
    interface = native_interface(fmi)
    numbers = assign_model_structure_indices(interface)
    found = variables(description(interface))
    assert {name: typed.get("derivative") for name, (_, typed) in found.items() if typed.get("derivative")} == {
        "der(q)": str(numbers["q"]),
        "der(u)": str(numbers["u"]),
    }
    assert {name for name, (_, typed) in found.items() if typed.get("reinit") == "false"} == {"q", "u"}


@VERSIONS
def test_the_structure_is_printed_completely(fmi):
    interface = native_interface(fmi)
    root = description(interface).find("ModelStructure")
    structure = form_model_structure(interface)
    number, places = (
        ("index", ("Outputs/Unknown", "Derivatives/Unknown", "InitialUnknowns/Unknown"))
        if fmi == "2"
        else ("valueReference", ("Output", "ContinuousStateDerivative", "InitialUnknown"))
    )
    for place, unknowns in zip(
        places, (structure.outputs, structure.derivatives, structure.initial_unknowns), strict=True
    ):
        printed = [
            (
                int(u.get(number)),
                tuple(map(int, u.attrib["dependencies"].split())),
                u.get("dependenciesKind"),
            )
            for u in root.findall(place)
        ]
        kinds = [None if set(u.kinds) <= {"dependent"} else " ".join(u.kinds) for u in unknowns]  # no kinds: dependent
        assert printed == [(u.index, u.dependencies, kind) for u, kind in zip(unknowns, kinds, strict=True)]
        assert printed


@VERSIONS
def test_fmpy_finds_nothing(fmi, tmp_path):
    tree = emit_xml.emit_fmu_description_files(native_interface(fmi), ("unit.c",))
    for path in tree:
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_bytes(tree[path])
    read = fmpy.read_model_description(str(tmp_path), validate=False)
    assert validate_model_description(read, validate_variable_names=True, validate_model_structure=True) == []
    assert (read.modelExchange is None, read.coSimulation is None) == (False, False)
    assert read.numberOfContinuousStates == 2
    assert read.buildConfigurations[0].sourceFileSets[0].sourceFiles == ["unit.c"]


def test_promises_of_fmi_2():
    root = description(native_interface("2"))
    assert (root.get("guid"), root.get("numberOfEventIndicators")) == ("{" + native_interface("2").token + "}", "0")
    exchange, cosimulation = root.find("ModelExchange"), root.find("CoSimulation")
    for kind in (exchange, cosimulation):
        assert {key: kind.get(key) for key in ("canGetAndSetFMUstate", "canSerializeFMUstate")} == {
            "canGetAndSetFMUstate": "true",
            "canSerializeFMUstate": "true",
        }
        assert (kind.get("needsExecutionTool"), kind.get("providesDirectionalDerivative")) == ("false", "true")
        assert kind.get("canNotUseMemoryManagementFunctions") == "true"
        assert [file.get("name") for file in kind.findall("SourceFiles/File")] == ["unit.c"]
    assert exchange.get("completedIntegratorStepNotNeeded") == "true"
    assert (cosimulation.get("canInterpolateInputs"), cosimulation.get("maxOutputDerivativeOrder")) == ("true", "1")


def test_promises_of_fmi_3():
    interface = native_interface("3")
    root = description(interface)
    assert root.get("instantiationToken") == "{" + interface.token + "}"
    exchange, cosimulation = root.find("ModelExchange"), root.find("CoSimulation")
    for kind in (exchange, cosimulation):
        assert (kind.get("providesDirectionalDerivatives"), kind.get("providesAdjointDerivatives")) == ("true", "true")
        assert kind.get("providesPerElementDependencies") == "false"
    assert exchange.get("needsCompletedIntegratorStep") == "false"
    said = {
        "canHandleVariableCommunicationStepSize": "true",
        "maxOutputDerivativeOrder": "1",
        "providesIntermediateUpdate": "true",
        "mightReturnEarlyFromDoStep": "false",
        "canReturnEarlyAfterIntermediateUpdate": "true",
        "hasEventMode": "false",
        "fixedInternalStepSize": None,
    }
    assert {key: cosimulation.get(key) for key in said} == said
    updated = {name for name, (e, _) in variables(root).items() if e.get("intermediateUpdate") == "true"}
    assert updated == {v.name for v in interface.variables if v.causality in ("input", "output")}


@given(step=st.floats(min_value=1e-9, max_value=1.0), kind=st.sampled_from(["fixed", "euler"]))
def test_the_fixed_step_is_reported_where_it_was_chosen(step, kind):
    interface = native_interface("3", solver=FmuSolverSettings(kind, 1e-6, step))
    assert float(description(interface).find("CoSimulation").get("fixedInternalStepSize")) == step


@VERSIONS
def test_no_date_no_host_no_initial_of_inputs(fmi):
    root = description(native_interface(fmi))
    assert root.get("generationDateAndTime") is None
    assert root.xpath("//*[@causality='input' or @causality='independent'][@initial]") == []


def test_a_fmu_without_terminals_has_an_icon_only():
    root = parsed(native_interface("3", terminals=()))[TERMINALS]
    assert [child.tag for child in root] == ["GraphicalRepresentation"]
