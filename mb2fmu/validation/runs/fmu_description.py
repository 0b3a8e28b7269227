"""The part of modelDescription.xml that a driver needs, for FMI 2.0 and 3.0; nothing else is checked."""

from __future__ import annotations

import math
import platform
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Literal

from lxml import etree

from mb2fmu.errors import Fault, ValidationError
from mb2fmu.fmu.file_tree import FileTree
from mb2fmu.fmu.runner import array_elements as elements

InterfaceType = Literal["CoSimulation", "ModelExchange"]
INTERFACE_TYPES: tuple[InterfaceType, ...] = ("CoSimulation", "ModelExchange")
ELEMENT_NAMES_ANNOTATION = "mb2fmu.model.elements"
"""Type of the annotation of an array that has the names of its elements."""
TERMINALS_FILE = "terminalsAndIcons/terminalsAndIcons.xml"
_FMI2_TYPES = {"Real", "Integer", "Boolean", "String", "Enumeration"}
TROUBLE_LOG_CATEGORIES = ("logStatusWarning", "logStatusDiscard", "logStatusError", "logStatusFatal")
"""Log categories, named by the standards, of what did not go as asked."""


@dataclass(frozen=True, slots=True)
class FmuVariableDescription:
    """A variable of an FMU.

    Attributes:
        reference: Its value reference; of an element of an array what :func:`.array_elements.element` makes.
        real: It is a scalar of doubles.
        causality: As the standards name it.
        variability: As the standards name it.
        initial: As the standards name it; where it is left out, what they say then.
        kind: Type, as the standards name it.
        start: As written; empty if there is none.
        is_scalar: It is no array.
    """

    reference: int
    real: bool
    causality: str
    variability: str = "continuous"
    initial: str = ""
    kind: str = "Real"
    start: str = ""
    is_scalar: bool = True

    @property
    def settable(self) -> bool:
        """Whether its start value may be set before the simulation."""
        return bool(self.start) and self.variability != "constant" and self.initial in {"exact", "approx"}


@dataclass(frozen=True, slots=True)
class InterfaceCapabilities:
    """Optional abilities of an interface type.

    Attributes:
        any_step: Co-Simulation: communication steps may be of any size.
        output_derivatives: Highest order.
        directional: Directional derivatives.
        adjoint: Adjoint derivatives.
        states: The state can be kept and restored.
        bytes: And written as bytes.
    """

    any_step: bool
    output_derivatives: int
    directional: bool
    adjoint: bool
    states: bool
    bytes: bool


@dataclass(frozen=True, slots=True)
class FmuDescription:
    """The description of an FMU.

    Attributes:
        version: 2 or 3.
        identifiers: Kind → its ``modelIdentifier``; Co-Simulation first.
        token: ``guid`` or ``instantiationToken``.
        variables: By name.
        arrays: Value reference of each array → number of its elements.
        elements: Name of each array that tells them → names of its elements, the last index running fastest.
        states: Number of continuous states.
        indicators: Number of event indicators.
        needs_completed_steps: A Model Exchange importer must tell of each step that its integrator has made.
        troubles: Log categories that tell why a call did not do what was asked.
        capabilities: Kind → what it offers beside running.
        rates: (name of a state, name of its derivative), in the order of the states; () where these are not found.
    """

    version: int
    identifiers: Mapping[InterfaceType, str]
    token: str
    variables: Mapping[str, FmuVariableDescription]
    states: int
    indicators: int
    needs_completed_steps: bool
    troubles: tuple[str, ...] = ()
    capabilities: Mapping[InterfaceType, InterfaceCapabilities] = field(default_factory=lambda: MappingProxyType({}))
    rates: tuple[tuple[str, str], ...] = ()
    arrays: Mapping[int, int] = field(default_factory=lambda: MappingProxyType({}))
    elements: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: MappingProxyType({}))

    @property
    def state_names(self) -> frozenset[str] | None:
        """Names of its continuous states; None where the description does not give them."""
        return frozenset(state for state, _ in self.rates) if self.rates or not self.states else None

    @property
    def any_step(self) -> bool:
        """Whether Co-Simulation, if the FMU has it, takes communication steps of any size."""
        found = self.capabilities.get("CoSimulation")
        return found is None or found.any_step


def read_description(tree: FileTree) -> FmuDescription:
    """Read the description of an unpacked FMU.

    Raises:
        ValidationError: No readable description, another FMI version, neither Co-Simulation nor Model Exchange, no
            binary for this machine.
    """
    root, major = _parse_description(tree)
    interfaces = {kind: root.find(kind) for kind in INTERFACE_TYPES}
    identifiers = {kind: str(e.get("modelIdentifier", "")) for kind, e in interfaces.items() if e is not None}
    if not identifiers:
        fault = Fault(
            "offers neither Co-Simulation nor Model Exchange", "modelDescription.xml", "export it for one of them"
        )
        raise _make_refusal_error(fault)
    states, indicators = _count_states_and_indicators(root, major)
    exchange = interfaces["ModelExchange"]
    scalars = _read_variables(root, major)
    held, arrays = _read_array_elements(root, scalars)
    found = FmuDescription(
        version=major,
        identifiers=identifiers,
        token=str(root.get("guid" if major == 2 else "instantiationToken", "")),
        variables=scalars | held,
        arrays=arrays,
        elements={
            str(node.get("name")): _read_element_names(node)
            for node in _iterate_double_arrays(root)
            if _read_element_names(node)
        },
        states=states,
        indicators=indicators,
        needs_completed_steps=exchange is not None and _needs_completed_steps(exchange, major),
        troubles=tuple(
            name for name in TROUBLE_LOG_CATEGORIES if root.find(f"LogCategories/Category[@name='{name}']") is not None
        ),
        capabilities={kind: _read_capabilities(e, major) for kind, e in interfaces.items() if e is not None},
        rates=_read_derivative_pairs(root, major),
    )
    _check_platform(tree, found)
    return found


def _parse_description(tree: FileTree) -> tuple[etree._Element, int]:
    """Return the root element of the description and the major version of FMI; refuse what is neither 2 nor 3."""
    if "modelDescription.xml" not in tree:
        raise _make_refusal_error(Fault("has no modelDescription.xml", remedy="this is not an FMU"))
    try:
        root = etree.fromstring(tree["modelDescription.xml"], etree.XMLParser(resolve_entities=False, no_network=True))
    except etree.XMLSyntaxError as error:
        raise _make_refusal_error(
            Fault(f"is not well-formed: {error}", "modelDescription.xml", "export the FMU again")
        ) from error
    version = str(root.get("fmiVersion", ""))
    major = version.partition(".")[0]
    if major not in {"2", "3"}:
        raise _make_refusal_error(
            Fault(f"is FMI {version or 'of no version'}", "modelDescription.xml", "FMI 2.0 or 3.0 is needed")
        )
    return root, int(major)


def read_terminals(tree: FileTree) -> dict[str, dict[str, tuple[str, str]]]:
    """Return name of each terminal → name of its member → (variable, kind); {} where the file says nothing."""
    if TERMINALS_FILE not in tree:
        return {}
    try:
        root = etree.fromstring(tree[TERMINALS_FILE], etree.XMLParser(resolve_entities=False, no_network=True))
    except etree.XMLSyntaxError:
        return {}  # the auditor tells it
    return {
        str(terminal.get("name")): {
            str(each.get("memberName")): (str(each.get("variableName")), str(each.get("variableKind")))
            for each in terminal.iterfind("TerminalMemberVariable")
        }
        for terminal in root.iterfind("Terminals/Terminal")
    }


def _read_variables(root: etree._Element, major: int) -> dict[str, FmuVariableDescription]:
    """Return all variables by name, with FMI's defaults of causality, variability and initial put in."""
    variables = {}
    for element in root.iterfind("ModelVariables/*"):
        if not isinstance(element.tag, str):
            continue
        typed = next((e for e in element if e.tag in _FMI2_TYPES), element) if major == 2 else element
        scalar = element.find("Dimension") is None
        kind = str(typed.tag)
        causality = str(element.get("causality", "local"))
        variability = str(element.get("variability", "continuous" if kind in {"Real", "Float64"} else "discrete"))
        variables[str(element.get("name"))] = FmuVariableDescription(
            reference=int(element.get("valueReference", "-1")),
            real=kind in {"Real", "Float64"} and scalar,
            causality=causality,
            variability=variability,
            initial=str(element.get("initial", _default_initial(causality, variability))),
            kind=kind,
            start=str(typed.get("start", "")),
            is_scalar=scalar,
        )
    return variables


def _read_array_elements(
    root: etree._Element, known: Mapping[str, FmuVariableDescription]
) -> tuple[dict[str, FmuVariableDescription], dict[int, int]]:
    """Return elements of our arrays that are no variables themselves, by their names in the description; all arrays."""
    found, sizes = {}, {}
    for node in _iterate_double_arrays(root):
        array = known[str(node.get("name"))]
        shape = [each.get("start") for each in node.iterfind("Dimension")]
        if None in shape:
            continue  # sized by a structural parameter
        sizes[array.reference] = size = math.prod(int(str(each)) for each in shape)
        names = _read_element_names(node)
        starts = array.start.split()
        if len(names) != size or len(starts) not in {0, size}:
            continue
        for i, name in enumerate(names):
            if name not in known:
                reference = elements.encode_element_reference(array.reference, i)
                start = starts[i] if starts else ""
                found[name] = replace(array, reference=reference, real=True, is_scalar=True, start=start)
    return found, sizes


def _iterate_double_arrays(root: etree._Element) -> Iterator[etree._Element]:
    """Return an iterator over the arrays of doubles."""
    return root.iterfind("ModelVariables/Float64[Dimension]")


def _read_element_names(array: etree._Element) -> tuple[str, ...]:
    """Return the names of an array's elements; () if it does not tell them."""
    return tuple((array.findtext(f"Annotations/Annotation[@type='{ELEMENT_NAMES_ANNOTATION}']") or "").split())


def _default_initial(causality: str, variability: str) -> str:
    """Return the default of ``initial``."""
    if causality in {"parameter", "input", "structuralParameter"} or variability == "constant":
        return "exact"
    return "" if causality == "independent" else "calculated"


def _read_capabilities(interface: etree._Element, major: int) -> InterfaceCapabilities:
    """Return which optional calls an interface type offers, by the flags of FMI 2 or 3."""

    def flag(two: str, three: str) -> bool:
        """Return a capability, by its name in either version."""
        return interface.get(two if major == 2 else three) in {"true", "1"}

    step = "canHandleVariableCommunicationStepSize"
    return InterfaceCapabilities(
        any_step=flag(step, step),
        output_derivatives=int(interface.get("maxOutputDerivativeOrder", "0")),
        directional=flag("providesDirectionalDerivative", "providesDirectionalDerivatives"),
        adjoint=flag("providesAdjointDerivatives", "providesAdjointDerivatives"),
        states=flag("canGetAndSetFMUstate", "canGetAndSetFMUState"),
        bytes=flag("canSerializeFMUstate", "canSerializeFMUState"),
    )


def _read_derivative_pairs(root: etree._Element, major: int) -> tuple[tuple[str, str], ...]:
    """Return (state, derivative), in the order of the states; () if the description is unclear."""
    variables = [e for e in root.iterfind("ModelVariables/*") if isinstance(e.tag, str)]
    found = []
    try:
        if major == 2:
            for unknown in root.findall("ModelStructure/Derivatives/Unknown"):
                rate = variables[int(unknown.get("index", "")) - 1]
                state = variables[int(str(rate[0].get("derivative"))) - 1]
                found.append((str(state.get("name")), str(rate.get("name"))))
            return tuple(found)
        named = {e.get("valueReference"): e for e in variables}
        for unknown in root.findall("ModelStructure/ContinuousStateDerivative"):
            rate = named[unknown.get("valueReference")]
            found.append((str(named[rate.get("derivative")].get("name")), str(rate.get("name"))))
    except (ValueError, IndexError, KeyError):
        return ()
    return tuple(found)


def _count_states_and_indicators(root: etree._Element, major: int) -> tuple[int, int]:
    """Return the numbers of continuous states and of event indicators."""
    structure = "ModelStructure"
    if major == 2:
        return len(root.findall(f"{structure}/Derivatives/Unknown")), int(root.get("numberOfEventIndicators", "0"))
    return len(root.findall(f"{structure}/ContinuousStateDerivative")), len(root.findall(f"{structure}/EventIndicator"))


def _needs_completed_steps(exchange: etree._Element, major: int) -> bool:
    """Return whether the FMU wants to be told of accepted steps: by default yes in FMI 2, no in FMI 3."""
    if major == 2:
        return exchange.get("completedIntegratorStepNotNeeded") not in {"true", "1"}
    return exchange.get("needsCompletedIntegratorStep") in {"true", "1"}


def find_platform_folder(version: int) -> tuple[str, str]:
    """Return the folder below ``binaries/`` and file name extension for this machine, as fmpy looks for them."""
    machine = platform.machine().lower()
    arm = machine in {"aarch64", "arm64"}
    system = "windows" if sys.platform.startswith("win") else "darwin" if sys.platform == "darwin" else "linux"
    extension = {"windows": ".dll", "darwin": ".dylib", "linux": ".so"}[system]
    if version == 3:
        return f"{'aarch64' if arm else 'x86_64'}-{system}", extension
    return {"windows": "win64", "darwin": "darwin64", "linux": "linux64"}[system], extension


def _check_platform(tree: FileTree, found: FmuDescription) -> None:
    """Raise where the FMU has no binary for this machine; name the platforms it has."""
    folder, extension = find_platform_folder(found.version)
    needed = [f"binaries/{folder}/{identifier}{extension}" for identifier in found.identifiers.values()]
    missing = [path for path in needed if path not in tree]
    if not missing:
        return
    offered = sorted({path.split("/")[1] for path in tree if path.startswith("binaries/") and path.count("/") >= 2})
    has = f"it has {', '.join(offered)}" if offered else "it has none at all"
    raise _make_refusal_error(
        Fault(
            f"the FMU has no binary for this machine ({folder}): {has}",
            missing[0],
            "validate it on such a machine, or export it for this one",
        )
    )


def _make_refusal_error(fault: Fault) -> ValidationError:
    """Return the error of an FMU that cannot be run here."""
    return ValidationError("the FMU cannot be run here:", [fault])
