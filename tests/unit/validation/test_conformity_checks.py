"""What an FMU declares is compared with the standards, against what it does, and against the model."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from lxml import etree
from planted.description import edited
from representatives import by_night
from unit.robots.robot_texts import ARM

from mb2fmu import pipeline
from mb2fmu.audit.description.description_import import parse_model_description, read_terminals
from mb2fmu.audit.description.description_records import DESCRIPTION, TERMINALS
from mb2fmu.errors import ToolError
from mb2fmu.fmu import package
from mb2fmu.fmu.in_memory_file_tree import InMemoryFileTree
from mb2fmu.model.model import OutputRequest
from mb2fmu.model.quantity_declarations import Parameter
from mb2fmu.validation.conformity_checks import (
    _add_array_elements,
    _compare_declarations,
    _compare_terminals,
    check_fmu_conformity,
)
from mb2fmu.validation.runs.fmu_description_for_runs import describe_denied_capabilities, read_fmu_description

MODEL = Path(__file__).parents[3] / "models" / "cart_pole.py"


@pytest.fixture(scope="module")
def built():
    """The right FMU, and what it is compared with."""
    derivation = pipeline.derive(MODEL)
    return derivation, pipeline.build(derivation).core


def errors(built, tmp_path, edit=None) -> list[str]:
    """What is said against the FMU with another description, checker and message."""
    derivation, core = built
    files = dict(core.files)
    files.update(edited(edit)(InMemoryFileTree(files)).files if edit else {})
    path = tmp_path / "CartPole.fmu"
    package.write_fmu_archive(InMemoryFileTree(files), path)
    found = check_fmu_conformity(path, derivation.definition, derivation.equations)
    return [f"{each.checker}: {each.message}" for each in found if each.severity == "error"]


@pytest.fixture
def auditor_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither other checkers nor sources, which take most of the time, where the auditor's findings are the subject."""
    for name in ("run_external_checkers", "compare_recompiled_sources"):
        monkeypatch.setattr(f"mb2fmu.validation.conformity_checks.{name}", lambda *_, **__: ())


def put(path: str, **attributes: str):
    """Sets attributes of the first element at an XPath."""

    def edit(root: etree._Element) -> None:
        found = root.xpath(path)[0]
        for name, value in attributes.items():
            assert found.get(name) != value
            found.set(name, value)

    return edit


@pytest.mark.repeats  # as for the FMUs of test_models
def test_nothing_is_said_against_the_right_fmu(built, tmp_path):
    assert errors(built, tmp_path) == []


def test_what_is_declared_otherwise_than_the_model_has_it_is_found(built):
    """Faults of one FMU, each reported: none hides another."""
    faults = [
        (put("//ScalarVariable[@name='m']/Real", start="0.3"), "m is declared to start at 0.3"),
        (put("//ScalarVariable[@name='theta']/Real", start="0.5"), "theta is declared to start at 0.5"),
        (put("//ScalarVariable[@name='solver_step']/Real", unit="kg"), "solver_step is declared to be in kg"),
        (put("//Unit[@name='kg']/BaseUnit", factor="0.001"), "the unit kg is defined as 0.001"),
        (put("//Unit[@name='N']/BaseUnit", s="-1"), "the unit N is defined as another one: its name says"),
        (put("//Unit[@name='rad']/DisplayUnit", factor="60.0"), "the display unit deg"),
        (
            put("//ScalarVariable[@name='cart_acceleration']/Real", unit="m/s"),
            "cart_acceleration is declared to be in m/s",
        ),
        (put("//ScalarVariable[@name='omega']/Real", declaredType="Mass"), "omega is of the type Mass"),
    ]

    derivation, core = built
    root = etree.fromstring(core.files[DESCRIPTION])
    for put_in, _ in faults:
        put_in(root)
    found = compare_with_the_model(etree.tostring(root), derivation)
    assert [reported for _, reported in faults if not any(each.startswith(reported) for each in found)] == [], found


def test_a_variable_without_a_unit_of_measure_is_reported(built):
    derivation, core = built
    root = etree.fromstring(core.files[DESCRIPTION])
    typed = root.xpath("//ScalarVariable[@name='cart_acceleration']/Real")[0]
    for attribute in {"unit", "declaredType"} & set(typed.attrib):
        del typed.attrib[attribute]
    described = parse_model_description(etree.tostring(root))
    found = _compare_declarations(described, derivation.definition, derivation.equations)
    reported = [each.message for each in found if each.severity == "warning"]
    assert reported == ["no unit of measure is declared of cart_acceleration"]


def test_what_may_change_less_often_than_in_the_model_is_reported(built):
    derivation, core = built
    root = etree.fromstring(core.files[DESCRIPTION])
    put("//ScalarVariable[@name='m']", variability="fixed")(root)
    put("//ScalarVariable[@name='force']", variability="discrete")(root)
    described = parse_model_description(etree.tostring(root))
    found = _compare_declarations(described, derivation.definition, derivation.equations)
    reported = [each.message for each in found if each.severity == "warning"]
    assert reported == ["m, force changes less often by the description than in the model: not tried"]


@pytest.mark.parametrize(
    ("name", "fmi"),
    [
        *(("cart_pole", "2.0"), ("bouncing_ball", "3.0")),
        *by_night(("cart_pole", "3.0"), ("bouncing_ball", "2.0"), ("four_bar", "2.0"), ("four_bar", "3.0")),
    ],
)
def test_limits_and_experiment_are_the_models(name, fmi):
    """Each number that a description says of bounds, nominal values and experiment, with another one in its place."""
    model = pipeline.load(MODEL.with_name(f"{name}.py"))
    first = next(item for item in model.declared if isinstance(item, Parameter))
    output = next(item for item in model.declared if isinstance(item, OutputRequest))
    hint = {id(first): 7.0, id(output): 30.0}
    model.declared = [replace(item, nominal=hint.get(id(item), item.nominal)) for item in model.declared]
    derivation = pipeline.derive(model)
    named = next(each.name for each in derivation.equations.outputs if each.nominal == 30.0)
    described = pipeline.build(derivation, fmi=fmi).core.files[DESCRIPTION]
    assert compare_with_the_model(described, derivation) == []
    faults = [
        *(("//DefaultExperiment", each) for each in ("startTime", "stopTime", "stepSize", "tolerance")),
        *((f"//ModelVariables/*[@name='{first.name}']", each) for each in ("min", "max", "nominal")),
        *((f"//ModelVariables/*[@name='{named}']", each) for each in ("min", "max", "nominal")),
    ]
    for path, attribute in faults:
        root = etree.fromstring(described)
        element = root.xpath(path)[0]
        element = element if fmi == "3.0" or "Default" in path else element[0]
        element.set(attribute, repr(float(element.get(attribute, "5e6")) * 1.001 + 0.001))
        found = compare_with_the_model(etree.tostring(root), derivation)
        assert len(found) == 1, (path, attribute, found)
        assert attribute in found[0]


@pytest.mark.parametrize(("second", "wrong"), [("force", ["force", "m"]), ("der(theta)", ["der(theta)"]), (None, [])])
def test_the_description_of_another_variable_is_reported(built, second, wrong):
    """The texts of m and another variable exchanged; a text that the model has nowhere is another maker's wording."""
    derivation, core = built
    root = etree.fromstring(core.files[DESCRIPTION])
    variables = {each.get("name"): each for each in root.find("ModelVariables")}
    text = variables["m"].get("description")
    assert text == "mass of the pole"
    variables["m"].set("description", variables[second].get("description") if second else "mass")
    if second:
        variables[second].set("description", text)
    found = compare_with_the_model(etree.tostring(root), derivation)
    assert sorted(each.partition(" is described as ")[0] for each in found) == wrong


def test_two_variables_may_be_described_alike(built):
    derivation, core = built
    root = etree.fromstring(core.files[DESCRIPTION])
    for each in root.find("ModelVariables").iterchildren("ScalarVariable"):
        each.set("description", "mass of the pole")
    assert compare_with_the_model(etree.tostring(root), derivation) == []


@pytest.mark.parametrize(
    ("fmi", "flags", "expected"),
    [
        ("2.0", {}, ()),
        ("3.0", {}, ()),
        ("2.0", {"canSerializeFMUstate": "false", "canInterpolateInputs": "false"},
         "canInterpolateInputs of CoSimulation, canSerializeFMUstate of CoSimulation"),
        ("3.0", {"providesAdjointDerivatives": "0", "maxOutputDerivativeOrder": "0"},
         "providesAdjointDerivatives of CoSimulation, maxOutputDerivativeOrder of CoSimulation"),
    ],
)  # fmt: skip
def test_capabilities_that_the_description_denies_are_reported_as_not_tried(built, fmi, flags, expected):
    core = pipeline.build(built[0], fmi=fmi).core
    tree = edited(put("CoSimulation", **flags))(InMemoryFileTree(core.files))
    found = describe_denied_capabilities(read_fmu_description(tree))
    assert [set(each.partition(": ")[2].split(", ")) for each in found] == (
        [set(expected.split(", "))] if expected else []
    )


def compare_with_the_model(description: bytes, derivation) -> list[str]:
    """What the model says against a description."""
    found = _compare_declarations(parse_model_description(description), derivation.definition, derivation.equations)
    return [each.message for each in found if each.severity == "error"]


@pytest.fixture(scope="module")
def of_arrays():
    """An FMU whose outputs and inputs are arrays, with what it was derived from."""
    model = pipeline.load(MODEL)
    model.array("tip", ["tip.x", "tip.y"])
    model.array("pushes", ["force"])
    derivation = pipeline.derive(model)
    return derivation, pipeline.build(derivation, fmi="3.0").core


def renamed(root: etree._Element) -> None:
    (note,) = root.xpath("//Float64[@name='tip']/Annotations/Annotation[@type='mb2fmu.model.elements']/Elements")
    note.set("names", " ".join(reversed(note.get("names").split())))


@pytest.mark.parametrize(
    ("edit", "expected"),
    [
        (renamed, ["the array tip has the elements tip.y, tip.x; the model has tip.x, tip.y"]),
        (put("//Float64[@name='tip']", unit="mm"), ["tip.x is declared to be in mm", "tip.y is declared to be in mm"]),
        (put("//Float64[@name='pushes']", start="0.5"), ["force is declared to start at 0.5; the model has 0.0"]),
        (put("//Float64[@name='pushes']", max="7.0"), ["force is declared with max = 7; the model has"]),
        (put("//Float64[@name='tip']", causality="local"), ["tip.x is an output of the model", "tip.y is an output"]),
    ],
)
def test_arrays_are_the_models(edit, expected, of_arrays):
    """Seen: an array whose first two elements had changed places passed, with a description that said so."""
    derivation, core = of_arrays
    for change, meant in ((None, []), (edit, expected)):
        tree = edited(change)(InMemoryFileTree(core.files)) if change else InMemoryFileTree(core.files)
        description = read_fmu_description(tree)
        elements = description.elements
        declared = _add_array_elements(description.model, elements)
        found = _compare_declarations(declared, derivation.definition, derivation.equations, elements)
        said = [each.message for each in found if each.severity == "error"]
        assert len(said) == len(meant), said
        assert all(any(each.startswith(start) for each in said) for start in meant), said


def test_an_array_has_the_widest_bounds_of_its_elements(tmp_path):
    """A robot whose drives are not all of one strength: its right arrays of FMI 3 failed."""
    file = tmp_path / "arm.urdf"
    limit = '<limit lower="-9" upper="9" effort="30" velocity="9"/>'
    file.write_text(ARM.replace('type="continuous"', 'type="revolute"').replace('<dynamics damping="0.1"/>', limit))
    derivation = pipeline.derive(file, arguments={"arrays": True})
    core = pipeline.build(derivation, fmi="3.0").core
    for change, count in ((None, 0), (put("//Float64[@name='tau']", max="20.0"), 3)):
        tree = edited(change)(InMemoryFileTree(core.files)) if change else InMemoryFileTree(core.files)
        description = read_fmu_description(tree)
        elements = description.elements
        declared = _add_array_elements(description.model, elements)
        found = _compare_declarations(declared, derivation.definition, derivation.equations, elements)
        said = [each.message for each in found if each.severity == "error"]
        assert len(said) == count, said


@pytest.mark.parametrize("fmi", [*by_night("2.0"), "3.0"])
def test_terminals_are_the_models(fmi):
    model = pipeline.load(MODEL)
    model.terminal("drive", {"f": "force", "s": "x", "v": "v"}, inflow=["f"])
    derivation = pipeline.derive(model)
    tree = pipeline.build(derivation, fmi=fmi).core
    text = tree[TERMINALS]
    for old, new in ((b"", b""), (b'"v" memberName', b'"omega" memberName'), (b'"inflow"', b'"signal"')):
        assert text.count(old) == 1 or not old
        changed = InMemoryFileTree({**tree.files, TERMINALS: text.replace(old, new)})
        found = list(_compare_terminals(read_terminals(changed[TERMINALS]), derivation.definition))
        assert len(found) == (old != new)
        assert all(each.severity == "error" and "the terminal drive has " in each.message for each in found)


def test_what_the_fmu_does_not_do_is_found(built, tmp_path):
    """Faults of one FMU: a dependency, the state of a derivative, and a start value that the model has otherwise."""

    def edit(root: etree._Element) -> None:
        put("//Derivatives/Unknown[last()]", dependencies="", dependenciesKind="")(root)
        put("//ScalarVariable[@name='der(v)']/Real", derivative="1")(root)
        put("//ScalarVariable[@name='m']/Real", start="0.3")(root)

    said = errors(built, tmp_path, edit)
    assert any(each.startswith("model: m is declared to start at 0.3") for each in said)
    found = [each for each in said if each.startswith("auditor")]
    others = [each for each in found if "dependencies.missing" not in each]
    assert len(others) < len(found)
    assert any("derivative" in each for each in others), found


OPEN = "the holonomic constraints: they contradict each other and stay open, last.x by 0.0095"


@pytest.mark.parametrize(
    ("redundant", "stiff", "findings"),
    [
        (False, False, {("life.calls", OPEN): True}),  # whoever has no row too many closes with any lengths near by
        (True, False, {
            ("life.calls", OPEN): False,
            ("life.calls", 'fmi2GetDirectionalDerivative answers Error: "no"'): True,
            ("derivative.slope", "says 1 where it moves with 2 per second"): True,
        }),
        (True, True, {
            ("life.calls", "fmi2DoStep answers Discard, without a message"): True,
            ("derivative.slope", "says 1 where it moves with 2 per second"): False,
            ("value.set", "reads another value"): True,
        }),
    ],
)  # fmt: skip
@pytest.mark.usefixtures("auditor_alone")
def test_only_refusals_by_contradiction_are_right_where_rows_are_redundant(
    redundant, stiff, findings, built, tmp_path, monkeypatch
):
    """What a right FMU is forgiven hides no other refusal."""
    derivation, core = built
    experiment = replace(derivation.definition.experiment, stiff=stiff)
    definition = replace(derivation.definition, experiment=experiment)
    reported = tuple(SimpleNamespace(rule=rule, severity="error", where="", message=text) for rule, text in findings)
    said = SimpleNamespace(faults=(), seconds=1.0, skipped=(), findings=reported)
    monkeypatch.setattr("mb2fmu.validation.conformity_checks.audit", lambda *_, **__: said)
    path = tmp_path / "CartPole.fmu"
    package.write_fmu_archive(core, path)
    found = check_fmu_conformity(path, definition, derivation.equations, redundant=redundant)
    found = [each.message for each in found if each.severity == "error"]
    for (_, text), fails in findings.items():
        assert any(text in each for each in found) is fails, (text, found)


@pytest.mark.usefixtures("auditor_alone")
def test_what_is_not_audited_in_time_is_no_verdict(built, tmp_path, monkeypatch):
    # By the clock: a busy machine must not let an FMU pass that was not looked at.
    monkeypatch.setattr("mb2fmu.validation.conformity_checks.AUDIT_WALL_TIME_S", 0.0)
    with pytest.raises(ToolError, match="could not be audited in time"):
        errors(built, tmp_path)


def test_the_unit_of_what_is_reported_of_constraints_is_held_against_the_model():
    derivation = pipeline.derive(MODEL.with_name("four_bar.py"))
    files = InMemoryFileTree(dict(pipeline.build(derivation).core.files))
    wrong = edited(put("//ScalarVariable[@name='diagnostics.velocity_residual']/Real", unit="1/s"))(files)
    reported = _compare_declarations(
        parse_model_description(wrong[DESCRIPTION]), derivation.definition, derivation.equations
    )
    assert [each.message for each in reported] == [
        "diagnostics.velocity_residual is declared to be in 1/s; the model has it in 1"
    ]
