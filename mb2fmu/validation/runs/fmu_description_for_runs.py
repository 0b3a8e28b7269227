"""The part of a description that a run needs, for FMI 2.0 and 3.0: a view of the auditor's records, by names."""

from __future__ import annotations

import math
import platform
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

from mb2fmu.audit.description.description_import import (
    UnsupportedFmiVersionError,
    parse_root_element_safely,
    read_model_description_records,
)
from mb2fmu.audit.description.description_records import DESCRIPTION, DescribedModel, DescribedVariable
from mb2fmu.errors import Fault, ValidationError
from mb2fmu.fmu.in_memory_file_tree import InMemoryFileTree
from mb2fmu.fmu.runner import fmi3_array_elements as elements

InterfaceType = Literal["CoSimulation", "ModelExchange"]
INTERFACE_TYPES: tuple[InterfaceType, ...] = ("CoSimulation", "ModelExchange")
ELEMENT_NAMES_ANNOTATION = "mb2fmu.model.elements"
"""Type of the annotation of an array that has the names of its elements."""
MODEL_EXCHANGE_TOLERANCE_FACTOR = 1e-3
"""Relative tolerance of the integrator that drives Model Exchange, in parts of the experiment's."""
TIGHTEST_TOLERANCE = 1e-12
CONVERGED_TOLERANCE = 1e-13
"""Relative tolerance below which the integrator's results change by round-off alone."""
TROUBLE_LOG_CATEGORIES = ("logStatusWarning", "logStatusDiscard", "logStatusError", "logStatusFatal")
"""Log categories, named by the standards, of calls that did not succeed."""


@dataclass(frozen=True, slots=True)
class FmuVariableDescription:
    """A variable of an FMU.

    Attributes:
        reference: Its value reference; of an element of an array what
            :func:`.fmi3_array_elements.encode_array_element_reference` makes.
        is_double: It is a scalar of doubles.
        causality: As the standards name it.
        variability: As the standards name it.
        initial: As the standards name it; where it is left out, what they say then.
        kind: Type, as the standards name it.
        start: As written; empty if there is none.
        is_scalar: It is no array.
    """

    reference: int
    is_double: bool
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


@dataclass(frozen=True)
class FmuDescription:
    """The description of an FMU, as a run needs it.

    Attributes:
        model: All of ``modelDescription.xml``.
        variables: By name; elements of our arrays among them, by their names in the description.
        arrays: Value reference of each array of doubles → number of its elements.
        elements: Name of each array that lists them → names of its elements, the last index running fastest.
    """

    model: DescribedModel
    variables: Mapping[str, FmuVariableDescription]
    arrays: Mapping[int, int]
    elements: Mapping[str, tuple[str, ...]]

    @property
    def version(self) -> int:
        """2 or 3."""
        return self.model.version

    @property
    def identifiers(self) -> Mapping[InterfaceType, str]:
        """Kind → its ``modelIdentifier``; Co-Simulation first."""
        return {kind: self.model.identifier(kind) for kind in INTERFACE_TYPES if kind in self.model.interfaces}

    @property
    def token(self) -> str:
        """``guid`` or ``instantiationToken``."""
        return self.model.token

    @property
    def states(self) -> int:
        """Number of continuous states."""
        return len(self.model.model_structure_entries("Derivatives"))

    @property
    def indicators(self) -> int:
        """Number of event indicators."""
        if self.version == 2:
            return int(self.model.attributes.get("numberOfEventIndicators", "0"))
        return len(self.model.model_structure_entries("EventIndicators"))

    @property
    def needs_completed_steps(self) -> bool:
        """A Model Exchange importer must report each step of its integrator: by default yes in FMI 2, no in FMI 3."""
        if "ModelExchange" not in self.model.interfaces:
            return False
        if self.version == 2:
            return not self.model.flag("ModelExchange", "completedIntegratorStepNotNeeded")
        return self.model.flag("ModelExchange", "needsCompletedIntegratorStep")

    @property
    def trouble_log_categories(self) -> tuple[str, ...]:
        """Log categories that report why a call did not do what was requested."""
        return tuple(name for name in TROUBLE_LOG_CATEGORIES if name in self.model.categories)

    @cached_property
    def capabilities(self) -> Mapping[InterfaceType, InterfaceCapabilities]:
        """Kind → what it offers beside running."""
        return {kind: _read_capabilities(self.model, kind) for kind in self.identifiers}

    @cached_property
    def state_derivative_pairs(self) -> tuple[tuple[str, str], ...]:
        """(name of a state, name of its derivative), in the order of the states; () where these are not found."""
        derivatives = [unknown.variable for unknown in self.model.model_structure_entries("Derivatives")]
        states = [
            self.model.find_referenced_variable(rate.written.get("derivative")) if rate else None
            for rate in derivatives
        ]
        pairs = zip(states, derivatives, strict=True)
        complete_pairs = tuple(
            (state.name, rate.name) for state, rate in pairs if state is not None and rate is not None
        )
        return complete_pairs if len(complete_pairs) == len(derivatives) else ()

    def driver_request(
        self, kind: InterfaceType, tolerance: float, state_scales: Mapping[str, float] | None = None
    ) -> dict[str, object]:
        """Return what a driver must know of the FMU.

        Args:
            kind: How it is run.
            tolerance: Relative, that the FMU promises; Model Exchange is integrated more accurately than that.
            state_scales: Name of a state → what it moves by: Model Exchange is integrated as accurately as the
                integrator can, with absolute tolerances of these and not of nominal values; None: of nominal values.
        """
        integration_tolerance = max(MODEL_EXCHANGE_TOLERANCE_FACTOR * tolerance, TIGHTEST_TOLERANCE)
        return {
            "version": self.version,
            "kind": kind,
            "identifier": self.identifiers[kind],
            "token": self.token,
            "arrays": list(self.arrays.items()),
            "integration_tolerance": integration_tolerance if state_scales is None else CONVERGED_TOLERANCE,
            "largest_nominals": [(state_scales or {}).get(state, math.inf) for state, _ in self.state_derivative_pairs],
            "states": self.states,
            "indicators": self.indicators,
            "completes_steps": self.needs_completed_steps,
            "bytes": self.capabilities[kind].bytes,
            "several": not self.model.flag(kind, "canBeInstantiatedOnlyOncePerProcess"),
            "troubles": list(self.trouble_log_categories),
        }

    @property
    def state_names(self) -> frozenset[str] | None:
        """Names of its continuous states; None where the description does not give them."""
        return (
            frozenset(state for state, _ in self.state_derivative_pairs)
            if self.state_derivative_pairs or not self.states
            else None
        )

    @property
    def any_step(self) -> bool:
        """Whether Co-Simulation, if the FMU has it, takes communication steps of any size."""
        capabilities = self.capabilities.get("CoSimulation")
        return capabilities is None or capabilities.any_step


def read_fmu_description(tree: InMemoryFileTree) -> FmuDescription:
    """Read the description of an unpacked FMU.

    Raises:
        ValidationError: No readable description, another FMI version, neither Co-Simulation nor Model Exchange, no
            binary for this machine.
    """
    model = _read_model(tree)
    if not model.interfaces.keys() & set(INTERFACE_TYPES):
        raise _make_refusal_error(
            Fault("offers neither Co-Simulation nor Model Exchange", DESCRIPTION, "export it for one of them")
        )
    scalars = {variable.name: _describe_variable(variable) for variable in model.variables}
    doubles = [variable for variable in model.variables if variable.type == "Float64" and variable.dimensions]
    names = {array.name: tuple(array.annotations.get(ELEMENT_NAMES_ANNOTATION, "").split()) for array in doubles}
    element_variables, sizes = _describe_array_elements(doubles, scalars, names)
    description = FmuDescription(
        model,
        scalars | element_variables,
        sizes,
        {name: element_names for name, element_names in names.items() if element_names},
    )
    _check_platform(tree, description)
    return description


def _read_model(tree: InMemoryFileTree) -> DescribedModel:
    """Return all of the description; refuse what is neither FMI 2 nor 3."""
    if DESCRIPTION not in tree:
        raise _make_refusal_error(Fault(f"has no {DESCRIPTION}", remedy="this is not an FMU"))
    try:
        root = parse_root_element_safely(tree[DESCRIPTION])
    except ValueError as error:
        fault = Fault(f"is not well-formed: {error}", DESCRIPTION, "export the FMU again")
        raise _make_refusal_error(fault) from error
    try:
        return read_model_description_records(root)
    except UnsupportedFmiVersionError as error:
        fault = Fault(str(error), DESCRIPTION, "FMI 2.0 or 3.0 is needed")
        raise _make_refusal_error(fault) from error


def _describe_variable(variable: DescribedVariable) -> FmuVariableDescription:
    """Return what a run needs of a variable; of inputs the start value can be set, whatever ``initial`` is."""
    return FmuVariableDescription(
        reference=-1 if variable.reference is None else variable.reference,
        is_double=variable.type in {"Real", "Float64"} and not variable.dimensions,
        causality=variable.causality,
        variability=variable.variability,
        initial=variable.initial or ("exact" if variable.causality == "input" else ""),
        kind=variable.type,
        start=variable.written.get("start", ""),
        is_scalar=not variable.dimensions,
    )


def _describe_array_elements(
    doubles: Sequence[DescribedVariable],
    known: Mapping[str, FmuVariableDescription],
    element_names: Mapping[str, Sequence[str]],
) -> tuple[dict[str, FmuVariableDescription], dict[int, int]]:
    """Return elements of our arrays that are no variables themselves, by their names in the description; all arrays."""
    element_variables, sizes = {}, {}
    for variable in doubles:
        array, names = known[variable.name], element_names[variable.name]
        shape = [dimension.start for dimension in variable.dimensions]
        if None in shape:
            continue  # sized by a structural parameter
        sizes[array.reference] = size = math.prod(int(str(length)) for length in shape)
        starts = array.start.split()
        if len(names) != size or len(starts) not in {0, size}:
            continue
        for i, name in enumerate(names):
            if name not in known:
                reference = elements.encode_array_element_reference(array.reference, i)
                start = starts[i] if starts else ""
                element_variables[name] = replace(
                    array, reference=reference, is_double=True, is_scalar=True, start=start
                )
    return element_variables, sizes


def _read_capabilities(model: DescribedModel, kind: InterfaceType) -> InterfaceCapabilities:
    """Return which optional calls an interface type offers, by the flags of FMI 2 or 3."""

    def flag(fmi2: str, fmi3: str) -> bool:
        """Return a capability, by its name in either version."""
        return model.flag(kind, fmi2 if model.version == 2 else fmi3)

    step = "canHandleVariableCommunicationStepSize"
    return InterfaceCapabilities(
        any_step=flag(step, step),
        output_derivatives=int(model.interfaces[kind].get("maxOutputDerivativeOrder", "0")),
        directional=flag("providesDirectionalDerivative", "providesDirectionalDerivatives"),
        adjoint=flag("providesAdjointDerivatives", "providesAdjointDerivatives"),
        states=flag("canGetAndSetFMUstate", "canGetAndSetFMUState"),
        bytes=flag("canSerializeFMUstate", "canSerializeFMUState"),
    )


_CAPABILITY_FLAGS = {
    2: ("canGetAndSetFMUstate", "canSerializeFMUstate", "providesDirectionalDerivative"),
    3: (
        *("canGetAndSetFMUState", "canSerializeFMUState", "providesDirectionalDerivatives"),
        "providesAdjointDerivatives",
    ),
}
_CO_SIMULATION_FLAGS = {
    2: ("canHandleVariableCommunicationStepSize", "canInterpolateInputs"),
    3: ("canHandleVariableCommunicationStepSize", "providesIntermediateUpdate"),
}


def describe_denied_capabilities(description: FmuDescription) -> tuple[str, ...]:
    """Return, in words, what the description denies that FMUs can do: nothing of that is called, so nothing is judged.

    ``()`` where it denies nothing.
    """
    model, denied_kinds = description.model, dict[str, list[str]]()
    for kind in description.identifiers:
        names = _CAPABILITY_FLAGS[model.version]
        names += _CO_SIMULATION_FLAGS[model.version] if kind == "CoSimulation" else ()
        for name in names:
            if not model.flag(kind, name):
                denied_kinds.setdefault(name, []).append(kind)
        if kind == "CoSimulation" and not description.capabilities[kind].output_derivatives:
            denied_kinds.setdefault("maxOutputDerivativeOrder", []).append(kind)
        if model.flag(kind, "canBeInstantiatedOnlyOncePerProcess"):
            denied_kinds.setdefault("a second instance (canBeInstantiatedOnlyOncePerProcess)", []).append(kind)
    places = description.identifiers
    denied_names = [
        f"{name} of {kinds[0]}" if len(kinds) < len(places) else name for name, kinds in denied_kinds.items()
    ]
    return (f"what the FMU cannot do by its description: {', '.join(denied_names)}",) if denied_names else ()


def find_platform_folder(version: int) -> tuple[str, str]:
    """Return the folder below ``binaries/`` and file name extension for this machine, as fmpy expects them."""
    machine = platform.machine().lower()
    arm = machine in {"aarch64", "arm64"}
    system = "windows" if sys.platform.startswith("win") else "darwin" if sys.platform == "darwin" else "linux"
    extension = {"windows": ".dll", "darwin": ".dylib", "linux": ".so"}[system]
    if version == 3:
        return f"{'aarch64' if arm else 'x86_64'}-{system}", extension
    return {"windows": "win64", "darwin": "darwin64", "linux": "linux64"}[system], extension


def _check_platform(tree: InMemoryFileTree, description: FmuDescription) -> None:
    """Raise where the FMU has no binary for this machine; name the platforms it has."""
    folder, extension = find_platform_folder(description.version)
    place = f"binaries/{folder}/"
    needed_paths = [f"{place}{identifier}{extension}" for identifier in description.identifiers.values()]
    missing = [path for path in needed_paths if path not in tree]
    if not missing:
        return
    other_names = sorted(
        path.removeprefix(place) for path in tree if path.startswith(place) and path.endswith(extension)
    )
    if other_names:
        library = missing[0].removeprefix(place)
        remedy = f"export it again: the library of the model identifier is {library}"
        raise _make_refusal_error(Fault(f"it has {', '.join(other_names)}, not {library}", place.rstrip("/"), remedy))
    offered_platforms = sorted(
        {path.split("/")[1] for path in tree if path.startswith("binaries/") and path.count("/") >= 2}
    )
    platforms_text = f"it has {', '.join(offered_platforms)}" if offered_platforms else "it has none at all"
    raise _make_refusal_error(
        Fault(
            f"the FMU has no binary for this machine ({folder}): {platforms_text}",
            missing[0],
            "validate it on such a machine, or export it for this one",
        )
    )


def _make_refusal_error(fault: Fault) -> ValidationError:
    """Return the error of an FMU that cannot be run here."""
    return ValidationError("the FMU cannot be run here:", [fault])
