"""Root element, interfaces, capability flags, default experiment, log categories."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator

from mb2fmu.audit.description.description_records import DESCRIPTION, DescribedModel, parse_xml_number
from mb2fmu.audit.rules_and_findings import RuleViolation

_C_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_DATE = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z\Z")
_BOOLEAN_TEXTS = {"true", "false", "0", "1"}
# flag → what it needs, by interface type and version
_REQUIRED_FLAGS_FMI2 = {"canSerializeFMUstate": "canGetAndSetFMUstate"}
_REQUIRED_FLAGS_FMI3 = {
    "canSerializeFMUState": "canGetAndSetFMUState",
    "canReturnEarlyAfterIntermediateUpdate": "providesIntermediateUpdate",
}


def check_root_element(description: DescribedModel) -> Iterator[RuleViolation]:
    """Yield violations of the rules about the root element: interfaces, flags, default experiment, log categories."""
    yield from _check_root(description)
    yield from _check_interfaces(description)
    yield from _check_flags(description)
    yield from _check_experiment(description)
    for name, count in Counter(description.categories).items():
        if count > 1 or not name.strip():
            yield RuleViolation("log.categories", f'category "{name}" is listed {count} times', DESCRIPTION)


def _check_root(description: DescribedModel) -> Iterator[RuleViolation]:
    """Yield faults of version, token, date and model name."""
    attributes = description.attributes
    version = attributes.get("fmiVersion", "")
    if description.version == 2 and version != "2.0":
        yield RuleViolation(
            "header.version", f'fmiVersion is "{version}"; every release of FMI 2 writes "2.0"', DESCRIPTION
        )
    if not description.token.strip():
        name = "guid" if description.version == 2 else "instantiationToken"
        yield RuleViolation(
            "header.token", f"{name} is empty, so nothing ties the binary to this description", DESCRIPTION
        )
    date = attributes.get("generationDateAndTime")
    if date is not None and not _DATE.match(date):
        yield RuleViolation(
            "header.date", f'generationDateAndTime "{date}" is not of the form YYYY-MM-DDThh:mm:ssZ', DESCRIPTION
        )
    if not attributes.get("modelName", "").strip():
        yield RuleViolation("header.model_name", "modelName is missing or empty", DESCRIPTION)


def _check_interfaces(description: DescribedModel) -> Iterator[RuleViolation]:
    """Yield a missing interface type, identifiers that are no names of C, and a malformed indicator count."""
    if not description.interfaces:
        yield RuleViolation(
            "header.interfaces", "neither ModelExchange nor CoSimulation nor ScheduledExecution is there", DESCRIPTION
        )
    for interface, attributes in description.interfaces.items():
        name = attributes.get("modelIdentifier", "")
        if not _C_IDENTIFIER.match(name):
            yield RuleViolation(
                "header.identifier", f'modelIdentifier "{name}" of {interface} is no name of C', DESCRIPTION
            )
    if description.version == 2:
        indicators = description.attributes.get("numberOfEventIndicators")
        if "ModelExchange" in description.interfaces and indicators is not None and not indicators.strip().isdigit():
            yield RuleViolation("header.event_indicators", f'numberOfEventIndicators is "{indicators}"', DESCRIPTION)


def _check_flags(description: DescribedModel) -> Iterator[RuleViolation]:
    """Yield capability flags that are malformed, or need another flag that is not set."""
    required_flags = _REQUIRED_FLAGS_FMI2 if description.version == 2 else _REQUIRED_FLAGS_FMI3
    for interface, attributes in description.interfaces.items():
        for name, value in attributes.items():
            if name.startswith(("can", "provides", "needs", "has", "might")) and value.strip() not in _BOOLEAN_TEXTS:
                yield RuleViolation(
                    "flags.value", f'{interface}: {name} is "{value}", neither true nor false', DESCRIPTION
                )
        for flag, required in required_flags.items():
            if description.flag(interface, flag) and not description.flag(interface, required):
                yield RuleViolation(
                    "flags.consistent",
                    f"{interface}: {flag} is true, but {required}, which it needs, is not",
                    DESCRIPTION,
                )
        order = attributes.get("maxOutputDerivativeOrder", "0").strip()
        if not order.isdigit():
            yield RuleViolation("flags.value", f'{interface}: maxOutputDerivativeOrder is "{order}"', DESCRIPTION)
        step = parse_xml_number(attributes.get("fixedInternalStepSize"))
        if step is not None and not step > 0.0:
            yield RuleViolation(
                "flags.value", f"{interface}: fixedInternalStepSize {step:g} is not positive", DESCRIPTION
            )


def _check_experiment(description: DescribedModel) -> Iterator[RuleViolation]:
    """Yield numbers of the default experiment that are not finite, not positive, or contradict each other."""
    values = {name: parse_xml_number(text) for name, text in description.experiment.items()}
    for name, value in values.items():
        if value is None or not math.isfinite(value):
            yield RuleViolation(
                "experiment.values", f'{name} "{description.experiment[name]}" is no finite number', DESCRIPTION
            )
    start, stop = values.get("startTime") or 0.0, values.get("stopTime")
    if stop is not None and not stop > start:
        yield RuleViolation("experiment.values", f"stopTime {stop:g} is not after startTime {start:g}", DESCRIPTION)
    for name in ("tolerance", "stepSize"):
        value = values.get(name)
        if value is not None and not value > 0.0:
            yield RuleViolation("experiment.values", f"{name} {value:g} is not positive", DESCRIPTION)
    tolerance = values.get("tolerance")
    if tolerance is not None and tolerance >= 1.0:
        yield RuleViolation(
            "experiment.values", f"tolerance {tolerance:g} is relative and cannot be 1 or more", DESCRIPTION
        )
    step = values.get("stepSize")
    if stop is not None and step is not None and step > stop - start > 0.0:
        yield RuleViolation("experiment.values", f"stepSize {step:g} is longer than the whole experiment", DESCRIPTION)
