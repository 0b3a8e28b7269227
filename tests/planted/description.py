"""Faults of what an FMU declares: interface and ``modelDescription.xml``."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, Literal

from lxml import etree
from planted.fault import Mutant, Subject, generator

from mb2fmu.compiler.program.scalar_program import Op
from mb2fmu.fmu.in_memory_file_tree import InMemoryFileTree
from mb2fmu.fmu.interface.fmu_interface import FmuInterface

FILE = "modelDescription.xml"
Edit = Callable[[etree._Element], None]


def edited(edit: Edit) -> Callable[[InMemoryFileTree], InMemoryFileTree]:
    """The description after a change of its elements."""

    def change(tree: InMemoryFileTree) -> InMemoryFileTree:
        root = etree.fromstring(tree[FILE])
        edit(root)
        text = etree.tostring(root, xml_declaration=True, encoding="UTF-8")
        return InMemoryFileTree({**tree.files, FILE: text})

    return change


def mutants(subject: Subject) -> Iterator[Mutant]:
    """Every fault of what an FMU declares."""
    fmi: Literal["2", "3"] = "2" if generator(subject.name, "description").random() < 0.5 else "3"
    yield from _of_starts(subject)
    for kind, place, edit in (
        *_of_dependencies(subject, fmi),
        *_of_slopes(subject, fmi),
        *_of_values(subject, fmi),
        *_of_units(subject),
    ):
        yield Mutant(kind, "description", place, edited(edit), fmi=fmi, by_construction=True)


def _of_starts(subject: Subject) -> Iterator[Mutant]:
    definition = subject.mechanism.declared
    records = (*definition.coordinates, *definition.speeds, *definition.auxiliary_states)
    states = set(subject.derivation.program.layout.states)
    guessed = {str(symbol) for symbol in subject.derivation.equations.solved_start_states}
    plain = (*subject.mechanism.q, *subject.mechanism.u, *subject.mechanism.z)
    for symbol, record in zip(plain, records, strict=False):
        if str(symbol) in states and str(symbol) not in guessed:
            yield _start(record.name, 0.03)
    for record in definition.parameters:
        if not record.calculated:
            yield _start(record.name, 0.02)
    for record in definition.inputs:
        yield _start(record.name, 0.1)


def _start(name: str, more: float) -> Mutant:
    """Another start value in code and description."""

    def change(interface: FmuInterface) -> FmuInterface:
        variables = tuple(
            replace(v, start=_moved(v.start, more)) if v.name == name and v.start is not None else v
            for v in interface.variables
        )
        if variables == interface.variables:
            raise LookupError(f"no start value of {name}")
        return replace(interface, variables=variables)

    return Mutant("start value", "interface", f"{name}, by {more:g}", change, by_construction=True)


def _moved(start: float, more: float) -> float:
    return start * (1 + more) if start else more


def _variable(root: etree._Element, name: str) -> etree._Element:
    return next(v for v in root.find("ModelVariables") if v.get("name") == name)


def _typed(root: etree._Element, name: str) -> etree._Element:
    """The element that has start and unit."""
    found = _variable(root, name)
    return next(iter(found)) if found.tag == "ScalarVariable" else found


def _number(root: etree._Element, name: str) -> str:
    """How the model structure refers to a variable."""
    found = _variable(root, name)
    if root.get("fmiVersion") == "2.0":
        same = [v for v in root.find("ModelVariables") if isinstance(v.tag, str)]
        return str(same.index(found) + 1)
    return str(found.get("valueReference"))


def _entries(root: etree._Element) -> list[etree._Element]:
    """Outputs and derivatives of the model structure."""
    structure = root.find("ModelStructure")
    tags = {"Output", "ContinuousStateDerivative"}
    return [*structure.findall("Outputs/Unknown"), *structure.findall("Derivatives/Unknown")] or [
        entry for entry in structure if entry.tag in tags
    ]


def _entry(root: etree._Element, name: str) -> etree._Element:
    number = _number(root, name)
    return next(e for e in _entries(root) if number in {e.get("index"), e.get("valueReference")})


Planted = Iterator[tuple[str, str, Edit]]


def _of_dependencies(subject: Subject, fmi: Literal["2", "3"]) -> Planted:
    root = etree.fromstring(subject.described(fmi)[FILE])
    names = {_number(root, v.get("name")): v.get("name") for v in root.find("ModelVariables") if v.get("name")}
    for entry in _entries(root):
        name = names[entry.get("index") or entry.get("valueReference")]
        if _entry(root, name) is not entry:  # FMI 3 lists a derivative that is an output twice
            continue
        known = entry.get("dependencies", "").split()
        own = [number for number in known if names[number] != name]
        for position, number in enumerate(known):
            if number in own:
                yield "dependency", f"{name} without {names[number]}", _forgotten(name, position)
        kinds = entry.get("dependenciesKind", " ".join(["dependent"] * len(known))).split()
        if own and "dependent" in kinds and not _is_a_state(subject, name):
            yield "dependency", f"{name}: constant factors", _constant(name)


def _is_a_state(subject: Subject, name: str) -> bool:
    """Whether an output is nothing but a state: its factor is constant."""
    program = subject.derivation.program
    entries = (program.entries[entry] for entry in ("position", "velocity", "acceleration"))
    results = {label: node for entry in entries for label, node in zip(entry.labels, entry.results, strict=True)}
    return name in results and Op(program.op[results[name]]) is Op.STATE


def _forgotten(name: str, position: int) -> Edit:
    def edit(root: etree._Element) -> None:
        entry = _entry(root, name)
        for attribute in ("dependencies", "dependenciesKind"):
            if attribute in entry.attrib:
                listed = entry.get(attribute).split()
                del listed[position]
                entry.set(attribute, " ".join(listed))

    return edit


def _constant(name: str) -> Edit:
    def edit(root: etree._Element) -> None:
        entry = _entry(root, name)
        entry.set("dependenciesKind", " ".join(["constant"] * len(entry.get("dependencies").split())))

    return edit


def _of_slopes(subject: Subject, fmi: Literal["2", "3"]) -> Planted:
    root = etree.fromstring(subject.described(fmi)[FILE])
    slopes = [v.get("name") for v in root.find("ModelVariables") if str(v.get("name")).startswith("der(")]
    for first, second in itertools.pairwise(slopes):

        def swapped(root: etree._Element, first: str = first, second: str = second) -> None:
            a, b = _typed(root, first), _typed(root, second)
            one, other = a.get("derivative"), b.get("derivative")
            a.set("derivative", other)
            b.set("derivative", one)

        yield "derivative index", f"{first} and {second}", swapped


def _of_values(subject: Subject, fmi: Literal["2", "3"]) -> Planted:
    root = etree.fromstring(subject.described(fmi)[FILE])
    variables = [v for v in root.find("ModelVariables") if isinstance(v.tag, str)]
    for causality in ("parameter", "output"):
        named = [v.get("name") for v in variables if v.get("causality") == causality and v.get("name") != "solver"]
        for first, second in itertools.pairwise(named):
            if "solver" not in {first, second} and "solver_step" not in {first, second}:
                yield "value reference", f"{first} and {second}", _swapped_references(first, second)
    for variable in variables:
        name = str(variable.get("name"))
        start = _typed(root, name).get("start")
        if start is not None and variable.get("causality") in {"parameter", "output"} and not name.startswith("solver"):
            value = repr(_moved(float(start), 0.05))
            yield "start value", f"{name}, in the description only", _put(name, "start", value)


def _swapped_references(first: str, second: str) -> Edit:
    def edit(root: etree._Element) -> None:
        a, b = _variable(root, first), _variable(root, second)
        one, other = a.get("valueReference"), b.get("valueReference")
        a.set("valueReference", other)
        b.set("valueReference", one)

    return edit


def _put(name: str, attribute: str, value: str) -> Edit:
    return lambda root: _typed(root, name).set(attribute, value)


def _of_units(subject: Subject) -> Planted:
    root = etree.fromstring(subject.described("2")[FILE])
    for unit in root.findall("UnitDefinitions/Unit"):
        name = unit.get("name")
        base = unit.find("BaseUnit")
        if base is not None and unit.get("name") in {"rad", "m", "kg", "N", "rad/s"}:

            def scaled(root: etree._Element, name: Any = name) -> None:
                element = next(u for u in root.findall("UnitDefinitions/Unit") if u.get("name") == name)
                element.find("BaseUnit").set("factor", "0.001")

            yield "unit factor", f"{name} as a thousandth of itself", scaled
        for of in [shown.get("name") for shown in unit.findall("DisplayUnit")]:

            def displayed(root: etree._Element, name: Any = name, of: Any = of) -> None:
                element = next(u for u in root.findall("UnitDefinitions/Unit") if u.get("name") == name)
                display = next(d for d in element.findall("DisplayUnit") if d.get("name") == of)
                display.set("factor", repr(float(display.get("factor")) * 1.1))

            yield "unit factor", f"display unit {of} of {name} by a tenth too large", displayed
    names = {str(u.get("name")) for u in root.findall("UnitDefinitions/Unit")}
    variables = [v for v in root.find("ModelVariables") if isinstance(v.tag, str)]
    for variable in variables:
        unit = _typed(root, str(variable.get("name"))).get("unit")
        others = sorted(names - {str(unit)})
        if unit and others and variable.get("causality") == "output":
            yield "unit", f"{variable.get('name')} in {others[0]}", _put(str(variable.get("name")), "unit", others[0])
