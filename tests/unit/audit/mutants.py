"""Correct FMUs, changed in one place each, and the rule that has to name the change.

A change of the description finds one element and sets, drops or doubles something; a change of C replaces one place of
the sources and compiles them; a change of the archive replaces a member.
"""

# ruff: noqa: E501  one mutant, one line

from __future__ import annotations

import copy
import re
from collections.abc import Callable
from dataclasses import dataclass

from lxml import etree

Change = Callable[[dict[str, bytes]], None]
XML = "modelDescription.xml"
BOTH = ("ball2", "ball3")
OURS = ("cart2", "cart3")
ALL = (*BOTH, *OURS)


@dataclass(frozen=True)
class Mutant:
    """One change.

    Attributes:
        name: Of the change.
        rule: What must be found.
        change: Applied to the members of the archive.
        bases: FMUs that it is applied to.
        run: Whether only the running FMU shows it.
    """

    name: str
    rule: str
    change: Change
    bases: tuple[str, ...] = BOTH
    run: bool = False


def element(root: etree._Element, path: str) -> etree._Element:
    found = root.xpath(path)
    assert found, f"nothing at {path}"
    return found[0]


def edited(edit: Callable[[etree._Element], None], member: str = XML) -> Change:
    def change(members: dict[str, bytes]) -> None:
        root = etree.fromstring(members[member])
        edit(root)
        members[member] = etree.tostring(root, xml_declaration=True, encoding="UTF-8")

    return change


def put(path: str, **attributes: str | None) -> Change:
    """Sets attributes of one element; None drops one."""

    def edit(root: etree._Element) -> None:
        found = element(root, path)
        for name, value in attributes.items():
            if value is None:
                assert name in found.attrib
                del found.attrib[name]
            else:
                assert found.get(name) != value
                found.set(name, value)

    return edited(edit)


def drop(path: str) -> Change:
    return edited(lambda root: (found := element(root, path)).getparent().remove(found))


def double(path: str) -> Change:
    def edit(root: etree._Element) -> None:
        found = element(root, path)
        found.addnext(copy.deepcopy(found))

    return edited(edit)


def exchange(first: str, second: str, attribute: str) -> Change:
    def edit(root: etree._Element) -> None:
        a, b = element(root, first), element(root, second)
        values = a.get(attribute), b.get(attribute)
        assert values[0] != values[1]
        a.set(attribute, values[1])
        b.set(attribute, values[0])

    return edited(edit)


def add_known(path: str, known: str, kind: str = "dependent") -> Change:
    """Adds a dependency by name."""

    def edit(root: etree._Element) -> None:
        found = element(root, path)
        number = str(reference(root, known))
        listed = found.get("dependencies", "").split()
        assert number not in listed
        found.set("dependencies", " ".join([*listed, number]))
        kinds = found.get("dependenciesKind", " ".join(["dependent"] * len(listed))).split()
        found.set("dependenciesKind", " ".join([*kinds, kind]))

    return edited(edit)


def drop_known(path: str) -> Change:
    """Drops the last dependency."""

    def edit(root: etree._Element) -> None:
        found = element(root, path)
        assert found.get("dependencies").split()
        for name in ("dependencies", "dependenciesKind"):  # kinds are left out where all are dependent
            if name in found.attrib:
                found.set(name, " ".join(found.get(name).split()[:-1]))

    return edited(edit)


def all_kinds(path: str, kind: str) -> Change:
    def edit(root: etree._Element) -> None:
        found = element(root, path)
        found.set("dependenciesKind", " ".join([kind] * len(found.get("dependencies").split())))

    return edited(edit)


def reference(root: etree._Element, name: str) -> int:
    """How the model structure refers to a variable: by index in FMI 2, by value reference in FMI 3."""
    variables = [each for each in element(root, "ModelVariables") if isinstance(each.tag, str)]
    position = next(k for k, each in enumerate(variables) if each.get("name") == name)
    return position + 1 if root.get("fmiVersion") == "2.0" else int(variables[position].get("valueReference"))


def listed(tag: str, name: str) -> str:
    """XPath of an entry of the model structure in either version, by the variable's name."""
    three = {"Outputs": "Output", "Derivatives": "ContinuousStateDerivative", "InitialUnknowns": "InitialUnknown"}[tag]
    two = f"//{tag}/Unknown[@index=count(//ScalarVariable[@name='{name}']/preceding-sibling::ScalarVariable)+1]"
    return f"{two}|//{three}[@valueReference=//ModelVariables/*[@name='{name}']/@valueReference]"


def variable(name: str) -> str:
    return f"//ModelVariables/*[@name='{name}']"


def typed(name: str) -> str:
    """The element with start, unit and so on."""
    return f"//ScalarVariable[@name='{name}']/*|//ModelVariables/*[@name='{name}'][not(self::ScalarVariable)]"


def member(name: str, content: Callable[[bytes], bytes] | None, at: str | None = None) -> Change:
    """Changes, removes or (``at``) copies a member whose name matches."""

    def change(members: dict[str, bytes]) -> None:
        found = next(each for each in members if re.search(name, each))
        if content is None:
            del members[found]
        elif at:
            members[at] = content(members[found])
        else:
            members[found] = content(members[found])

    return change


def text(old: str, new: str) -> Change:
    def change(members: dict[str, bytes]) -> None:
        assert old.encode() in members[XML]
        members[XML] = members[XML].replace(old.encode(), new.encode(), 1)

    return change


ELF_MACHINE = slice(18, 20)


def other_machine(content: bytes) -> bytes:
    """An ELF header that says AArch64."""
    changed = bytearray(content)
    changed[ELF_MACHINE] = b"\xb7\x00"
    return bytes(changed)


DESCRIPTIONS = [
    Mutant("no token", "header.token", put("/*", guid=""), ("ball2", "cart2")),
    Mutant("no token 3", "header.token", put("/*", instantiationToken=""), ("ball3", "cart3")),
    Mutant("version 2.1", "header.version", put("/*", fmiVersion="2.1"), ("ball2", "cart2")),
    Mutant("no model name", "header.model_name", put("/*", modelName=" "), ALL),
    Mutant("one event indicator", "header.event_indicators", put("/*", numberOfEventIndicators="one"), ("ball2", "cart2")),
    Mutant("perhaps", "flags.value", put("//CoSimulation", canHandleVariableCommunicationStepSize="perhaps"), ALL),
    Mutant("type twice", "types.unique", double("//TypeDefinitions/*[last()]"), ALL),
    Mutant("FMU for nothing", "units.unused", edited(lambda root: element(root, "//UnitDefinitions").append(etree.Element("Unit", name="A"))), ALL),
    Mutant("state as input", "variables.state", put(variable("h"), causality="input", initial=None), BOTH),
    Mutant("previous of nothing", "variables.previous", put(variable("ticks"), previous="99"), ("ball3",)),
    Mutant("clocked state left out", "structure.clocked", put(variable("ticks"), previous="13"), ("ball3",)),
    Mutant("identifier with a dash", "header.identifier", put("//CoSimulation", modelIdentifier="a-b"), ALL),
    Mutant("date without zone", "header.date", put("/*", generationDateAndTime="2024-01-01T00:00:00"), ALL),
    Mutant("attribute misspelt", "xml.schema", put("/*", modelname="x"), ALL),
    Mutant("no variables", "xml.schema", drop("//ModelVariables"), BOTH),
    Mutant("not well-formed", "xml.readable", text("</fmiModelDescription>", "</fmi>"), ALL),
    Mutant("latin 1", "xml.encoding", text('encoding="UTF-8"', 'encoding="ISO-8859-1"'), BOTH),
    Mutant("serializing alone", "flags.consistent", put("//ModelExchange", canGetAndSetFMUstate="false"), ("ball2", "cart2")),
    Mutant("serializing alone 3", "flags.consistent", put("//CoSimulation", canGetAndSetFMUState="false"), ("ball3", "cart3")),
    Mutant("early alone", "flags.consistent", put("//CoSimulation", providesIntermediateUpdate="false"), ("ball3", "cart3")),
    Mutant("stop before start", "experiment.values", put("//DefaultExperiment", stopTime="-1"), ALL),
    Mutant("no tolerance", "experiment.values", put("//DefaultExperiment", tolerance="0"), ALL),
    Mutant("negative step", "experiment.values", put("//DefaultExperiment", stepSize="-0.1"), ALL),
    Mutant("category twice", "log.categories", double("//Category"), ALL),
    Mutant("FMU not defined", "units.declared", drop("//Unit[@name='kg']"), ALL),
    Mutant("FMU twice", "units.unique", double("//Unit[@name='kg']"), ALL),
    Mutant("wrong exponents", "units.exponents", put("//Unit[@name='N']/BaseUnit", s="-1"), ALL),
    Mutant("wrong factor", "units.exponents", put("//Unit[@name='m']/BaseUnit", factor="1000"), ALL),
    Mutant("degrees without offset", "units.exponents", edited(lambda root: etree.SubElement(etree.SubElement(element(root, "//UnitDefinitions"), "Unit", name="degC"), "BaseUnit", K="1")), ALL),
    Mutant("clock without interval", "variables.clocks", edited(lambda root: etree.SubElement(element(root, "//ModelVariables"), "Clock", name="tick", valueReference="900", causality="input", intervalVariability="constant")), ("ball3",)),
    Mutant("no factor", "units.factor", put("//Unit[@name='m']/BaseUnit", factor="0"), ALL),
    Mutant("FMU without base", "units.base", drop("//Unit[@name='m']/BaseUnit"), ALL),
    Mutant("display unit", "units.display", put(typed("g"), displayUnit="ft/s2"), ALL),
    Mutant("display unit of an alias", "units.display", edited(lambda root: element(root, variable("v")).append(etree.Element("Alias", name="speed", displayUnit="km/h"))), ("ball3",)),
    Mutant("FMU of a slope", "units.derivative", put(typed("der(v)"), unit="m"), BOTH),
    Mutant("type not defined", "types.declared", put(typed("shape"), declaredType="Form"), BOTH),
    Mutant("item value twice", "types.items", put("//Item[2]", value="1"), ALL),
    Mutant("name twice", "variables.unique", put(variable("g"), name="time"), ALL),
    Mutant("space in a name", "variables.name", put(variable("g"), name="the g"), ALL),
    Mutant("reference twice", "variables.reference", put(variable("g"), valueReference="0"), ("ball3",)),
    Mutant("time's reference twice", "variables.reference", put(variable("g"), valueReference="1"), ("cart3",)),
    Mutant("alias of another unit", "variables.aliases", put(variable("g"), valueReference="0"), ("ball2", "cart2")),
    Mutant("constant parameter", "variables.combination", put(variable("g"), variability="constant"), ALL),
    Mutant("fixed input", "variables.combination", put("//ModelVariables/*[@causality='input']", variability="fixed"), ALL),
    Mutant("continuous integer", "variables.continuous", put(variable("bounces"), variability="continuous"), BOTH),
    Mutant("calculated parameter", "variables.initial", put(variable("g"), initial="calculated"), ALL),
    Mutant("no start of a parameter", "variables.start_missing", put(typed("g"), start=None), ALL),
    Mutant("no start of an input", "variables.start_missing", put(typed("wind"), start=None), BOTH),
    Mutant("start of a result", "variables.start_forbidden", put(typed("energy"), start="1"), BOTH),
    Mutant("start of the time", "variables.start_forbidden", put(typed("time"), start="0"), ALL),
    Mutant("start that is text", "variables.start_type", put(typed("g"), start="heavy"), ALL),
    Mutant("half a bounce", "variables.start_type", put(typed("bounces"), start="0.5"), BOTH),
    Mutant("start above max", "variables.start_bounds", put(typed("e"), start="1.5"), BOTH),
    Mutant("max below start", "variables.start_bounds", put(typed("g"), max="9"), ALL),
    Mutant("no such item", "variables.start_bounds", put(typed("shape"), start="7"), BOTH),
    Mutant("bounds exchanged", "variables.bounds", put(typed("g"), min="20", max="10"), ALL),
    Mutant("nominal zero", "variables.nominal", put(typed("v"), nominal="0"), BOTH),
    Mutant("two times", "variables.independent", put(variable("g"), causality="independent"), ALL),
    Mutant("no time", "variables.independent", put(variable("time"), causality="local"), ("ball3", "cart3")),
    Mutant("derivative of nothing", "variables.derivative", put(typed("der(v)"), derivative="999"), ALL),
    Mutant("derivative of itself", "variables.derivative", put(typed("der(h)"), derivative="4"), ("ball2",)),
    Mutant("derivative of a parameter", "variables.derivative", put(typed("der(h)"), derivative="5"), ("ball3",)),
    Mutant("reinit of a parameter", "variables.reinit", put(typed("m"), reinit="true"), ALL),
    Mutant("set twice", "variables.multiple_set", put(variable("g"), canHandleMultipleSetPerTimeInstant="true"), ALL),
    Mutant("intermediate parameter", "variables.intermediate", put(variable("g"), intermediateUpdate="true"), ("ball3", "cart3")),
    Mutant("dimension zero", "variables.dimension", put("//Dimension", start="0"), ("ball3",)),
    Mutant("dimension of nothing", "variables.dimension", put("//Dimension", start=None, valueReference="5"), ("ball3",)),
    Mutant("no clock", "variables.clocks", put(variable("bounces"), clocks="5"), ("ball3",)),
    Mutant("output left out", "structure.outputs", drop("//Outputs/*[1]|//Output[1]"), ALL),
    Mutant("output twice", "structure.unique", double("//Outputs/*[1]|//Output[1]"), ALL),
    Mutant("local as output", "structure.outputs", put(variable("h"), causality="local"), BOTH),
    Mutant("derivative left out", "structure.derivatives", drop("//Derivatives/*[2]|//ContinuousStateDerivative[2]"), ALL),
    Mutant("initial unknown left out", "structure.initial", drop("//InitialUnknowns/*[1]|//InitialUnknown[1]"), ALL),
    Mutant("initial state", "structure.initial", put(variable("v"), initial="calculated"), BOTH),
    Mutant("unknown of nothing", "structure.reference", put("//Outputs/*[1]", index="99"), ("ball2", "cart2")),
    Mutant("unknown of nothing 3", "structure.reference", put("//Output[1]", valueReference="99"), ("ball3", "cart3")),
    Mutant("depends on a result", "structure.dependencies", add_known(listed("Outputs", "energy"), "height_twice"), ("ball2",)),
    Mutant("depends on a weight", "structure.dependencies", add_known(listed("Derivatives", "der(v)"), "weight"), BOTH),
    Mutant("depends on a parameter", "structure.dependencies", add_known(listed("Derivatives", "der(v)"), "g"), ("ball2", "cart2")),
    Mutant("depends twice", "structure.dependencies", put(listed("Outputs", "energy"), dependencies="2 2"), ("ball2",)),
    Mutant("fixed initially", "structure.kinds", all_kinds(listed("InitialUnknowns", "der(v)"), "fixed"), ALL),
    Mutant("kinds too few", "structure.kinds", put(listed("Derivatives", "der(v)"), dependenciesKind="dependent"), ALL),
    Mutant("nothing declared", "structure.explicit", edited(lambda root: [element(root, listed("Outputs", "energy")).attrib.pop(name) for name in ("dependencies", "dependenciesKind")] and None), BOTH),
    Mutant("integer by a factor", "structure.factors", add_known(listed("Outputs", "bounces"), "h", "constant"), BOTH),
    Mutant("indicator of a parameter", "structure.indicators", put("//EventIndicator", valueReference="5"), ("ball3",)),
    Mutant("terminal of nothing", "terminals.members", lambda members: members.update({"terminalsAndIcons/terminalsAndIcons.xml": b'<fmiTerminalsAndIcons fmiVersion="3.0"><Terminals><Terminal name="a"><TerminalMemberVariable variableName="none" variableKind="signal"/></Terminal></Terminals></fmiTerminalsAndIcons>'}), ALL),
    Mutant("two members of a name", "terminals.members", lambda members: members.update({"terminalsAndIcons/terminalsAndIcons.xml": b'<fmiTerminalsAndIcons fmiVersion="3.0"><Terminals><Terminal name="a" matchingRule="bus"><TerminalMemberVariable variableName="h" memberName="p" variableKind="signal"/><TerminalMemberVariable variableName="v" memberName="p" variableKind="signal"/></Terminal></Terminals></fmiTerminalsAndIcons>'}), ("ball3",)),
]  # fmt: skip

MEMBER = '<TerminalMemberVariable variableName="h" memberName="h" variableKind="signal"/>'
MANIFEST = "extra/org.fmi-standard.fmi-ls-bus/fmi-ls-manifest.xml"


def terminals(text: str) -> Change:
    """Terminals beside the ball's description."""
    whole = f'<fmiTerminalsAndIcons fmiVersion="3.0"><Terminals>{text}</Terminals></fmiTerminalsAndIcons>'
    return lambda members: members.update({"terminalsAndIcons/terminalsAndIcons.xml": whole.encode()})


ARCHIVES = [
    Mutant(
        "one terminal twice in another",
        "terminals.members",
        terminals(
            f'<Terminal name="a"><Terminal name="b">{MEMBER}</Terminal><Terminal name="b">{MEMBER}</Terminal></Terminal>'
        ),
        ("ball3",),
    ),
    Mutant(
        "a stream of nothing",
        "terminals.members",
        terminals(
            f'<Terminal name="a">{MEMBER}<TerminalStreamMemberVariable inStreamMemberName="i" outStreamMemberName="o" inStreamVariableName="none" outStreamVariableName="h"/></Terminal>'
        ),
        ("ball3",),
    ),
    Mutant(
        "a bus of unnamed members",
        "terminals.members",
        terminals(
            '<Terminal name="a" matchingRule="bus"><TerminalMemberVariable variableName="h" variableKind="signal"/></Terminal>'
        ),
        ("ball3",),
    ),
    Mutant(
        "a manifest without a name",
        "archive.manifest",
        lambda members: members.update(
            {MANIFEST: b'<fmiLayeredStandardManifest xmlns:fmi-ls="http://fmi-standard.org/fmi-ls-manifest"/>'}
        ),
        ("ball3",),
    ),
    Mutant(
        "a manifest that is no XML",
        "archive.manifest",
        lambda members: members.update({MANIFEST: b"fmi-ls-bus 1.0"}),
        ("ball3",),
    ),
    Mutant("no description", "archive.description", member("modelDescription", None), ALL),
    Mutant("backslashes", "archive.paths", lambda members: members.update({"documentation\\a.txt": b"a"}), BOTH),
    Mutant("out of the folder", "archive.paths", lambda members: members.update({"../a.txt": b"a"}), BOTH),
    Mutant("stray file", "archive.unexpected", lambda members: members.update({"notes.txt": b"a"}), ALL),
    Mutant(
        "drawing alone",
        "archive.pictures",
        lambda members: members.update({"documentation/diagram.svg": b"<svg/>"}),
        BOTH,
    ),
    Mutant(
        "licences without entrance",
        "archive.licences",
        lambda members: members.update({"documentation/licenses/x.txt": b"x"}),
        BOTH,
    ),
    Mutant(
        "picture that is none",
        "archive.pictures",
        lambda members: members.update({"terminalsAndIcons/icon.png": b"none"}),
        BOTH,
    ),
    Mutant(
        "icon that is not there",
        "archive.pictures",
        lambda members: members.update(
            {
                "terminalsAndIcons/terminalsAndIcons.xml": b'<fmiTerminalsAndIcons fmiVersion="3.0"><Terminals><Terminal name="a"><TerminalGraphicalRepresentation x1="0" y1="0" x2="1" y2="1" iconBaseName="port"/></Terminal></Terminals></fmiTerminalsAndIcons>'
            }
        ),
        ("ball3",),
    ),
    Mutant(
        "headers that are not there",
        "archive.sources",
        member(
            r"sources/buildDescription\.xml",
            lambda text: text.replace(b"</SourceFileSet>", b'<IncludeDirectory name="headers"/></SourceFileSet>'),
        ),
        ("cart3",),
    ),
    Mutant("no documentation", "archive.documentation", member("documentation/", None), BOTH),
    Mutant("source left out", "archive.sources", member(r"sources/unit\.c", None), OURS),
    Mutant("nothing to run", "binary.any", member(r"binaries/", None), BOTH),
    Mutant("library under another name", "binary.missing", put("//ModelExchange", modelIdentifier="other"), ALL),
    Mutant("text as library", "binary.format", member(r"binaries/", lambda _: b"#!/bin/sh\n"), ALL),
    Mutant(
        "Linux library for Windows", "binary.format", member(r"binaries/", bytes, "binaries/win64/ball.dll"), ("ball2",)
    ),
    Mutant("library for Arm", "binary.machine", member(r"binaries/", other_machine), ALL),
    Mutant("folder of FMI 2", "binary.folder", member(r"binaries/", bytes, "binaries/linux64/ball.so"), ("ball3",)),
    Mutant(
        "folder of FMI 3", "binary.folder", member(r"binaries/", bytes, "binaries/x86_64-linux/ball.so"), ("ball2",)
    ),
    Mutant("no word on tools", "archive.external", put("//CoSimulation", needsExecutionTool="true"), BOTH),
]

# What only the running FMU shows, though the description was changed.
RUNNING = [
    Mutant("derivatives exchanged", "derivative.state", exchange(typed("der(h)"), typed("der(v)"), "derivative"), BOTH, run=True),
    Mutant("derivatives exchanged, ours", "derivative.state", exchange(typed("der(x)"), typed("der(theta)"), "derivative"), OURS, run=True),
    Mutant("speed of the wrong coordinate", "derivative.slope", exchange(typed("der(x)"), typed("der(theta)"), "derivative"), ("cart2",), run=True),
    Mutant("constant that is not", "dependencies.kind", all_kinds(listed("Outputs", "energy"), "constant"), BOTH, run=True),
    Mutant("fixed that is not", "dependencies.kind", all_kinds(listed("Outputs", "energy"), "fixed"), BOTH, run=True),
    Mutant("fixed that is tunable", "dependencies.kind", put(listed("Derivatives", "der(v)"), dependenciesKind="fixed fixed"), ("ball2",), run=True),
    Mutant("constant acceleration", "dependencies.kind", all_kinds(listed("Derivatives", "der(v)"), "constant"), OURS, run=True),
    Mutant("constant at the beginning", "dependencies.kind", all_kinds(listed("InitialUnknowns", "der(v)"), "constant"), ALL, run=True),
    Mutant("dependency left out", "dependencies.missing", drop_known(listed("Derivatives", "der(v)")), ALL, run=True),
    Mutant("output's dependency left out", "dependencies.missing", drop_known(listed("Outputs", "energy")), BOTH, run=True),
    Mutant("initial dependency left out", "dependencies.missing", drop_known(listed("InitialUnknowns", "der(v)")), ALL, run=True),
    Mutant("false feedthrough", "dependencies.feedthrough", add_known(listed("Outputs", "energy"), "wind"), BOTH, run=True),
    Mutant("false feedthrough, ours", "dependencies.feedthrough", add_known(listed("Outputs", "total_energy"), "force"), OURS, run=True),
    Mutant("state without itself", "dependencies.own_state", put(listed("Outputs", "h"), dependencies="", dependenciesKind=None), BOTH, run=True),
    Mutant("false dependency", "dependencies.excessive", add_known(listed("Derivatives", "der(v)"), "h"), BOTH, run=True),
    Mutant("false dependency on time", "dependencies.excessive", add_known(listed("Outputs", "energy"), "time"), BOTH, run=True),
    Mutant("other start", "value.start", put(typed("g"), start="9.82"), ALL, run=True),
    Mutant("other start of a text", "value.start", put(typed("label"), start="bowl"), ("ball2",), run=True),
    Mutant("other token", "life.instantiate", put("/*", guid="{0}"), ("ball2", "cart2"), run=True),
    Mutant("other token 3", "life.instantiate", put("/*", instantiationToken="{0}"), ("ball3", "cart3"), run=True),
    Mutant("bounds too narrow", "value.bounds", put(typed("v"), min="-1", max="1"), BOTH, run=True),
    Mutant("discrete that flows", "value.variability", edited(lambda root: element(root, variable("energy")).set("variability", "discrete")), BOTH, run=True),
    Mutant("slopes of inputs", "steps.input_derivatives", put("//CoSimulation", canInterpolateInputs="true"), ("ball2",), run=True),
    Mutant("slopes of outputs", "steps.output_derivatives", put("//CoSimulation", maxOutputDerivativeOrder="1"), ("ball3",), run=True),
    Mutant("null memory", "flags.memory_null", put("//ModelExchange", canNotUseMemoryManagementFunctions="true"), ("ball2",), run=True),
    Mutant("importer's memory", "flags.memory", put("//CoSimulation", canNotUseMemoryManagementFunctions="false"), ("cart2",), run=True),
    Mutant("bounces unannounced", "exchange.reinit", put(typed("v"), reinit="false"), BOTH, run=True),
    Mutant("category not listed", "log.undeclared", put("//Category", name="other"), ("ball2", "ball3"), run=True),
    Mutant("too many indicators", "exchange.count", drop("//EventIndicator"), ("ball3",), run=True),
    Mutant("no event mode", "flags.true", put("//CoSimulation", hasEventMode="true"), ("ball3",), run=True),
    Mutant("no dependencies of elements", "flags.true", put("//ModelExchange", providesPerElementDependencies="true"), ("ball3",), run=True),
    Mutant("jumps without reinit", "exchange.reinit", put(typed("v"), reinit=None), ("ball2",), run=True),
    Mutant("python: no dependencies", "structure.explicit", edited(lambda root: [each.attrib.pop("dependencies") for each in root.iter("Unknown")][:0] and None), ("python",)),
    Mutant("python: wrong start", "value.start", edited(lambda root: [each.set("start", "0.4567") for each in root.xpath("//ScalarVariable[@causality='parameter']/Real")][:0] and None), ("python",), run=True),
    Mutant("python: initial unknowns", "structure.initial", drop("//InitialUnknowns/*[1]"), ("python",)),
    Mutant("python: serializing alone", "flags.consistent", put("//CoSimulation", canGetAndSetFMUstate="false"), ("python",)),
]  # fmt: skip


@dataclass(frozen=True)
class CMutant:
    """One place of the C sources changed."""

    name: str
    rule: str
    version: int
    old: str
    new: str


SOURCES = [
    CMutant("any token", "life.token", 2, "!guid || strcmp(guid, TOKEN)", "!guid"),
    CMutant("any token 3", "life.token", 3, "!token || strcmp(token, TOKEN)", "!token"),
    CMutant("version", "life.version", 2, "return fmi2Version;", 'return "1.0";'),
    CMutant("any reference", "value.reference", 2, "default: return 1;\n    }\n    return !isfinite", "default: *value = 0.0;\n    }\n    return !isfinite"),
    CMutant("any reference 3", "value.reference", 3, "default: return 1;\n    }\n    return !isfinite", "default: *value = 0.0;\n    }\n    return !isfinite"),
    CMutant("start in the code", "value.start", 3, "s->e = 0.7;", "s->e = 0.8;"),
    CMutant("forgets an input", "value.set", 2, "case WIND: s->wind = value; return 0;", "case WIND: return 0;"),
    CMutant("sets another", "value.set", 3, "case C: s->c = value; return 0;", "case C: s->e = value; return 0;"),
    CMutant("sets a result", "value.unsettable", 3, "case E: s->e = value; return 0;", "case E: s->e = value; return 0;\n    case WEIGHT: return 0;"),
    CMutant("reset forgets", "life.reset", 2, "fmi2Status fmi2Reset(fmi2Component c) { ball_start(&((Ball *)c)->s);", "fmi2Status fmi2Reset(fmi2Component c) { State *s = &((Ball *)c)->s; double kept = s->c; ball_start(s); s->c = kept;"),
    CMutant("reset forgets 3", "life.reset", 3, "fmi3Status fmi3Reset(fmi3Instance c) { ball_start(&((Unit *)c)->ball.s);", "fmi3Status fmi3Reset(fmi3Instance c) { ((Unit *)c)->ball.s.mode = INSTANTIATED;"),

    CMutant("static variable", "life.several", 2, "*dv = s->resting ? 0.0 : -s->g + s->c * (s->wind - v) / s->m;", "static double wind; if (s->wind != 0.0) wind = s->wind; *dv = s->resting ? 0.0 : -s->g + s->c * (wind - v) / s->m;"),
    CMutant("counts its instances", "life.repeat", 3, "ball_start(&b->ball.s);\n    return b;", "ball_start(&b->ball.s);\n    { static double count; b->ball.s.v += 1e-6 * count++; }\n    return b;"),
    CMutant("leaks", "life.leak", 2, "    f.freeMemory(b->logger);\n", ""),
    CMutant("leaks 3", "life.leak", 3, "    b->ball.logging = logging;\n", "    b->ball.logging = logging;\n    *(volatile char *)malloc(100) = 1;\n"),
    CMutant("frees nothing", "life.free", 2, "    if (!b) return;\n", ""),
    CMutant("numbers unchecked", "value.nan", 2, "#include <string.h>\n", "#include <string.h>\n#undef isfinite\n#define isfinite(x) 1\n"),
    CMutant("steps to nowhere", "value.extreme", 2, "return !isfinite(*value);", "return 0;"),
    CMutant("waits on what is enormous", "value.extreme", 2, "case WIND: s->wind = value; return 0;", "case WIND: s->wind = value; if (value > 1e200) sleep(1000); return 0;"),
    CMutant("state without a part", "state.roundtrip", 2, "memcpy(&((Ball *)c)->s, state, sizeof(State));", "{ double wind = ((Ball *)c)->s.wind; memcpy(&((Ball *)c)->s, state, sizeof(State)); ((Ball *)c)->s.wind = wind; }"),
    CMutant("state forgotten", "state.roundtrip", 3, "memcpy(&((Unit *)c)->ball.s, state, sizeof(State));", ""),
    CMutant("bytes without a part", "state.serialize", 2, "    memcpy(data, state, size);\n", "    memcpy(data, state, size);\n    ((State *)data)->v = 0.0;\n"),
    CMutant("bytes with an address", "state.serialize", 3, "    memcpy(data, state, size);\n", "    memcpy(data, state, size);\n    ((State *)data)->c = ((State *)data)->c + 1e-15 * (double)((size_t)c % 99991);\n"),
    CMutant("dangling state", "state.free", 3, "    *state = NULL;\n", ""),
    CMutant("wrong partial", "partials.directional", 2, "*value = -moving * s->c / s->m;", "*value = moving * s->c / s->m;"),
    CMutant("partial left out", "partials.directional", 3, "if (known == G) *value = s->m;", ""),
    CMutant("adjoint of the first only", "partials.adjoint", 3, "out[j] += seed[i] * d;", "out[j] += j ? 0.0 : seed[i] * d;"),
    CMutant("partial refused", "partials.directional", 2, "case HEIGHT_TWICE: *value = known == H ? 2.0 : 0.0; return 0;", ""),
    CMutant("states exchanged", "exchange.states", 2, "    x[0] = b->s.h;\n    x[1] = b->s.v;\n", "    x[0] = b->s.v;\n    x[1] = b->s.h;\n"),
    CMutant("derivatives by another road", "derivative.value", 3, "case DER_V: *value = dv; break;", "case DER_V: *value = 1.001 * dv; break;"),
    CMutant("old time", "exchange.time", 2, "fmi2Status fmi2SetTime(fmi2Component c, fmi2Real time) { ((Ball *)c)->s.time = time;", "fmi2Status fmi2SetTime(fmi2Component c, fmi2Real time) { (void)time;"),
    CMutant("memory in the derivatives", "exchange.pure", 3, "*dv = s->resting ? 0.0 : -s->g + s->c * (s->wind - v) / s->m;", "static double last; *dv = s->resting ? 0.0 : -s->g + s->c * (s->wind - v) / s->m + 1e-3 * last; last = v;"),
    CMutant("steps change states", "exchange.completed", 2, "    *event = *end = fmi2False;\n", "    *event = *end = fmi2False;\n    ((Ball *)c)->s.v *= 0.999;\n"),
    CMutant("no nominals", "exchange.nominals", 3, "while (n--) x[n] = 1.0;", "while (n--) x[n] = 0.0;"),
    CMutant("silent event", "exchange.values_changed", 2, "info->valuesOfContinuousStatesChanged = ball_event(&b->s);", "b->s.v += 0.1;\n    info->valuesOfContinuousStatesChanged = ball_event(&b->s) & 0;"),
    CMutant("Euler", "steps.parts", 2, "if (size > 1e-3) size = 1e-3;", "{ double dh, dv; ball_slopes(s, s->h, s->v, &dh, &dv); s->h += size * dh; s->v += size * dv; s->time += size; continue; }"),
    CMutant("other gravity in steps", "steps.exchange", 3, "    s->time += size;\n}", "    s->time += size;\n    s->v -= 0.01 * size;\n}"),
    CMutant("counts twice outside of steps", "steps.exchange", 2, "s->bounces++;", "s->bounces += s->mode == STEPPING ? 1 : 2;"),
    CMutant("fixed steps only", "steps.variable", 2, 'NEED(size > 0.0, "the step size must be positive");', 'NEED(fabs(size - 0.05) < 1e-9, "0.05 only");'),
    CMutant("steps backwards", "steps.size", 3, 'NEED(size > 0.0, "the step size must be positive");', "if (!(size > 0.0)) return fmi3OK;"),
    CMutant("beyond the stop", "steps.stop", 2, "!b->s.has_stop ||", "1 ||"),
    CMutant("from anywhere", "steps.point", 2, "NEED(fabs(point - b->s.time) <= 1e-9 * (1.0 + fabs(point)), ", "NEED(1, "),
    CMutant("last time", "steps.last", 3, "        *last = b->ball.s.time;\n", ""),
    CMutant("early unasked", "steps.early", 3, "if (asked && b->early && part == 1) {", "if (part == 1) {"),
    CMutant("never early", "steps.early", 3, "if (asked && b->early && part == 1) {", "if (0) {"),
    CMutant("no updates", "steps.intermediate", 3, "if (b->update) {", "if (0) {"),
    CMutant("slopes of outputs with a wrong sign", "steps.output_derivatives", 2, "value[i] = vr[i] == H ? dh :", "value[i] = vr[i] == H ? -dh :"),
    CMutant("clock runs fast", "value.time", 3, "case TIME: *value = s->time;", "case TIME: *value = 1.001 * s->time;"),
    CMutant("parameter drifts", "value.variability", 2, "    s->time = end;\n    return 0;", "    s->time = end;\n    s->c *= 1.01;\n    return 0;"),
    CMutant("crashes in a step", "life.crash", 3, "    *events = *end = *early = fmi3False;\n    *last = b->ball.s.time;\n", "    *events = *end = *early = fmi3False;\n    *(volatile int *)0 = 1;\n"),
    CMutant("hangs", "life.crash", 2, "fmi2Status fmi2Terminate(fmi2Component c) {", "fmi2Status fmi2Terminate(fmi2Component c) { for (volatile int i = 0;; ) (void)i;"),
    CMutant("ends its host", "life.crash", 3, "fmi3Status fmi3Terminate(fmi3Instance c) {", "fmi3Status fmi3Terminate(fmi3Instance c) { exit(0);"),
    CMutant("refuses to end", "life.calls", 2, "fmi2Status fmi2Terminate(fmi2Component c) { ((Ball *)c)->s.mode = TERMINATED; return fmi2OK; }", 'fmi2Status fmi2Terminate(fmi2Component c) { return fail((Ball *)c, "no"); }'),
    CMutant("rounds as it likes", "host.restored", 2, "    *dh = s->resting ? 0.0 : v;\n", "    *dh = s->resting ? 0.0 : v;\n    fesetround(FE_UPWARD);\n"),
    CMutant("no number on the way", "host.traps", 3, "    *dh = s->resting ? 0.0 : v;\n", "    { volatile double zero = 0.0; volatile double none = zero / zero; (void)none; }\n    *dh = s->resting ? 0.0 : v;\n"),
    CMutant("speaks to the host", "host.output", 2, "    ball_start(&b->s);\n    return b;", '    ball_start(&b->s);\n    printf("hello\\n");\n    fflush(stdout);\n    return b;'),
    CMutant("cannot decode the path", "host.path", 2, "    if (!guid || strcmp(guid, TOKEN)) {", "    if (resources && strchr(resources, '%')) return NULL;\n    if (!guid || strcmp(guid, TOKEN)) {"),
    CMutant("stray name", "binary.exports", 2, "static fmi2Status fail(", "int helper_of_ball(void) { return 1; }\nstatic fmi2Status fail("),
    CMutant("no CancelStep", "binary.symbols", 2, "fmi2Status fmi2CancelStep(fmi2Component c)", "static fmi2Status fmi2CancelStep_(fmi2Component c)"),
    CMutant("silent refusal", "log.silent", 2, 'if (b->logging && f.logger) f.logger(b->environment, b->name, fmi2Error, "logStatusError", text);', ""),
    CMutant("talks unasked", "log.disabled", 3, "    s->mode = INITIALIZING;\n", '    s->mode = INITIALIZING;\n    ((fmi3LogMessageCallback)b->ball.logger)(b->ball.environment, fmi3OK, "logStatusError", "hello");\n'),
    CMutant("output not finite", "value.finite", 2, "case ENERGY: *value = s->m * (s->g * s->h + 0.5 * s->v * s->v); break;", "case ENERGY: *value = s->time > 0.2 ? 0.0 / (s->h - s->h) : 1.0; return 0;"),
    CMutant("rounding of the host", "host.rounding", 3, "    *dh = s->resting ? 0.0 : v;\n", "    *dh = s->resting ? 0.0 : v;\n    if (fegetround() != FE_TONEAREST) *dh *= 1.01;\n"),
    CMutant("reads numbers in the host's way", "host.locale", 2, "s->e = 0.7;", 's->e = atof("0.7");'),
    CMutant("bounces in silence", "exchange.values_changed", 3, "*values = ball_event(&b->ball.s) != 0;", "ball_event(&b->ball.s);\n    *values = fmi3False;"),
    CMutant("one in a thread", "life.threads", 2, "    State before = b->s;\n    (void)no;\n", '    static volatile int busy;\n    State before = b->s;\n    int waiting;\n    (void)no;\n    if (busy) return fail(b, "busy");\n    busy = 1;\n    for (waiting = 0; waiting < 3000000; ++waiting) (void)busy;\n    busy = 0;\n'),
    CMutant("reset forgets a text", "life.reset", 2, "fmi2Status fmi2Reset(fmi2Component c) { ball_start(&((Ball *)c)->s);", "fmi2Status fmi2Reset(fmi2Component c) { char kept[64]; memcpy(kept, ((Ball *)c)->s.label, 64); ball_start(&((Ball *)c)->s); memcpy(((Ball *)c)->s.label, kept, 64);"),
    CMutant("reset counts on", "life.reset", 3, "fmi3Status fmi3Reset(fmi3Instance c) { ball_start(&((Unit *)c)->ball.s);", "fmi3Status fmi3Reset(fmi3Instance c) { State *s = &((Unit *)c)->ball.s; int kept = s->bounces; ball_start(s); s->bounces = kept;"),
    CMutant("state without its next event", "state.roundtrip", 3, "memcpy(&((Unit *)c)->ball.s, state, sizeof(State));", "{ double kept = ((Unit *)c)->ball.s.next_tick; memcpy(&((Unit *)c)->ball.s, state, sizeof(State)); ((Unit *)c)->ball.s.next_tick = kept; }"),
    CMutant("leaks with states", "life.leak", 2, "    free(*state);\n", ""),
    CMutant("leaks with steps", "life.leak", 3, "    State before = b->ball.s;\n    int part;\n", "    State before = b->ball.s;\n    int part;\n    *(volatile char *)malloc(200) = 1;\n"),
    CMutant("writes beyond the states", "life.writes", 2, "    x[0] = b->s.h;\n    x[1] = b->s.v;\n", "    x[0] = b->s.h;\n    x[1] = b->s.v;\n    x[2] = 0.0;\n"),
    CMutant("flags of steps unwritten", "life.writes", 3, "    *events = *end = *early = fmi3False;\n    *last = b->ball.s.time;\n", "    *last = b->ball.s.time;\n"),
    CMutant("flag of events unwritten", "life.writes", 2, "    info->terminateSimulation = fmi2False;\n", ""),
    CMutant("state that is no number", "value.nan", 2, "NEED(n == 2 && isfinite(x[0]) && isfinite(x[1]), ", "NEED(n == 2, "),
    CMutant("goes elsewhere", "host.restored", 2, "    ball_start(&b->s);\n    return b;", '    ball_start(&b->s);\n    chdir("/");\n    return b;'),
    CMutant("handles a signal", "host.restored", 2, "    ball_start(&b->s);\n    return b;", "    ball_start(&b->s);\n    signal(SIGFPE, SIG_IGN);\n    return b;"),
    CMutant("flushes to zero", "host.restored", 3, "    s->mode = INITIALIZING;\n", "    s->mode = INITIALIZING;\n    FLUSH_TO_ZERO;\n"),
    CMutant("never rests", "life.rest", 2, "info->newDiscreteStatesNeeded = fmi2False;", "info->newDiscreteStatesNeeded = fmi2True;"),
    CMutant("ticks on the spot", "life.rest", 3, "        s->next_tick += PERIOD;\n", ""),
    CMutant("ends at once", "life.ends", 3, "*needed = *end = *nominals = fmi3False;", "*needed = *nominals = fmi3False;\n    *end = fmi3True;"),
    CMutant("deaf between steps", "value.set", 2, "case WIND: s->wind = value; return 0;", "case WIND: if (s->mode != STEPPING) s->wind = value; return 0;"),
    CMutant("first seed for all", "partials.directional", 3, "out[i] += d * seed[j];", "out[i] += d * seed[0];"),
    CMutant("begins at zero", "value.time", 2, "b->s.time = b->s.start = start;", "b->s.time = b->s.start = 0.0;"),
    CMutant("only one at a time", "life.several", 2, "    b = (Ball *)functions->allocateMemory(1, sizeof *b);", "    { static int many; if (many++ % 2) return NULL; }\n    b = (Ball *)functions->allocateMemory(1, sizeof *b);"),
    CMutant("updates ahead of time", "steps.intermediate", 3, "b->update(b->ball.environment, b->ball.s.time,", "b->update(b->ball.environment, b->ball.s.time + 1.0,"),
    CMutant("other types", "life.version", 2, "return fmi2TypesPlatform;", 'return "standard32";'),
    CMutant("silent before the first step", "steps.exchange", 3, "case ENERGY: *value = s->m * (s->g * s->h + 0.5 * s->v * s->v); break;", "case ENERGY: *value = s->mode == STEPPING && s->time == s->start ? 0.0 : s->m * (s->g * s->h + 0.5 * s->v * s->v); break;"),
    CMutant("nothing to be read at the end", "life.calls", 2, "fmi2Status fmi2GetReal(fmi2Component c, const fmi2ValueReference vr[], size_t n, fmi2Real value[])\n{\n    Ball *b = (Ball *)c;\n    size_t i;\n", 'fmi2Status fmi2GetReal(fmi2Component c, const fmi2ValueReference vr[], size_t n, fmi2Real value[])\n{\n    Ball *b = (Ball *)c;\n    size_t i;\n    NEED(b->s.mode != TERMINATED, "over");\n'),
]  # fmt: skip


@dataclass(frozen=True)
class OwnMutant:
    """One place in the sources of one of our own units, found by a pattern that does not hang on how they are printed."""

    name: str
    rule: str
    base: str
    pattern: str
    new: str

    def change(self, members: dict[str, bytes]) -> None:
        """Replaces the first match, in whichever file it is."""
        for name in sorted(members):
            if re.fullmatch(r"sources/.*\.[ch]", name):
                old = members[name].decode()
                changed, count = re.subn(self.pattern, self.new, old, count=1)
                if count:
                    assert changed != old
                    members[name] = changed.encode()
                    return
        raise AssertionError(f"{self.pattern} matches in no source file")


OWN_SOURCES = [
    OwnMutant("ours: token", "life.instantiate", "cart2", r'(settings\) = \{\n +"\{)\w', r"\1x"),
    OwnMutant("ours: start", "value.start", "cart3", r"9\.81\b", "9.82"),
    OwnMutant("ours: version", "life.version", "cart2", r"return fmi2Version", 'return "3.0"'),
    OwnMutant("ours: output", "binary.exports", "cart3", r"\nconst char \*fmi3GetVersion", '\n__attribute__((visibility("default"))) int stray(void)\n{\n    return 1;\n}\n\nconst char *fmi3GetVersion'),
]  # fmt: skip
