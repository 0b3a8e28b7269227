"""An audit for machines: annotations of GitHub Actions, SARIF 2.1.0, JUnit XML. One entry per rule, with its count."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import groupby
from typing import Any
from urllib.parse import quote
from xml.etree import ElementTree as ET

from mb2fmu.audit import AuditFinding, AuditResult, audit_rules_by_id

_GITHUB_COMMANDS = {"error": "error", "warning": "warning", "note": "notice"}
_SARIF_LEVELS = {"error": "error", "warning": "warning", "note": "note"}
_INVALID_XML_CHARACTERS = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
MAX_QUOTED_FINDINGS = 5
"""Findings of a rule that an annotation quotes."""


def _get_finding_rule_or_checker(found: AuditFinding) -> str:
    """Return the id of the rule, or the name of the checker, of a finding."""
    return found.rule if found.source == "mb2fmu" else found.source


def _group_findings_by_rule(result: AuditResult) -> Iterator[tuple[str, list[AuditFinding]]]:
    """Yield the findings of each rule, sorted by name."""
    ordered = sorted(result.findings, key=_get_finding_rule_or_checker)
    for name, group in groupby(ordered, key=_get_finding_rule_or_checker):
        yield name, list(group)


def _format_finding(each: AuditFinding) -> str:
    """Return a finding with its place in front."""
    return f"{each.where}: {each.message}" if each.where else each.message


def format_github_annotations(result: AuditResult) -> Iterator[str]:
    """Yield workflow commands that GitHub Actions shows beside the run, one per rule."""
    for name, group in _group_findings_by_rule(result):
        first, count = group[0], sum(each.number for each in group)
        text = "\n".join(_format_finding(each) for each in group[:MAX_QUOTED_FINDINGS])
        text += f"\nand {count - MAX_QUOTED_FINDINGS} more" if count > MAX_QUOTED_FINDINGS else ""
        text += f" (FMI {result.version or '2.0'}: {first.section})" if first.section else ""
        place = f"file={_escape_github_text(result.fmu, ',:')},title={_escape_github_text(name, ',:')}"
        yield f"::{_GITHUB_COMMANDS[first.severity]} {place}::{_escape_github_text(text)}"


def _escape_github_text(text: str, more: str = "") -> str:
    """Return text as GitHub's commands need it: percent codes for %, line ends and `more`."""
    for sign in "%\r\n" + more:
        text = text.replace(sign, f"%{ord(sign):02X}")
    return text


def format_sarif(result: AuditResult) -> bytes:
    """Return results in the format of code hosts for static analysis; places in the FMU are logical locations."""
    named = {name: group[0] for name, group in _group_findings_by_rule(result)}
    described = [_sarif_rule(name, found) for name, found in named.items()]
    order = {name: place for place, name in enumerate(named)}
    found = [_sarif_result(result, each, order[_get_finding_rule_or_checker(each)]) for each in result.findings]
    found += [
        {**_sarif_result(result, each, None), "suppressions": [{"kind": "external", "justification": why}]}
        for each, why in result.waived
    ]
    driver = {"name": "mb2fmu audit", "rules": described, "informationUri": "https://fmi-standard.org/"}
    notes = [{"level": "error", "message": {"text": each.splitlines()[-1]}} for each in result.faults]
    invocation = {"executionSuccessful": not result.faults, "toolExecutionNotifications": notes}
    whole = {
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{"tool": {"driver": driver}, "invocations": [invocation], "results": found}],
    }
    return (json.dumps(whole, indent=2, ensure_ascii=False) + "\n").encode()


def _sarif_rule(name: str, found: AuditFinding) -> dict[str, Any]:
    """Write the rule of a finding as SARIF describes rules."""
    rule = audit_rules_by_id().get(name)
    rule_text = rule.says if rule else "What another checker says."
    help_ = f"{rule.remedy} ({found.section})" if rule else "See what the checker says itself."
    level = {"level": _SARIF_LEVELS[rule.severity if rule else found.severity]}
    return {"id": name, "shortDescription": {"text": rule_text}, "help": {"text": help_}, "defaultConfiguration": level}


def _sarif_result(result: AuditResult, found: AuditFinding, place: int | None) -> dict[str, Any]:
    """Write a finding as a result of SARIF; ``place`` is the index of its rule."""
    where = {"physicalLocation": {"artifactLocation": {"uri": quote(result.fmu, safe="")}}}
    logical = [{"fullyQualifiedName": found.where}] if found.where else []
    entry: dict[str, Any] = {
        "ruleId": _get_finding_rule_or_checker(found),
        "level": _SARIF_LEVELS[found.severity],
        "message": {"text": _format_finding(found)},
        "locations": [{**where, **({"logicalLocations": logical} if logical else {})}],
    }
    if place is not None:
        entry["ruleIndex"] = place
    return entry


def format_junit(result: AuditResult) -> bytes:
    """Return a case per rule: failed where there is an error or a warning, skipped where it was not judged."""
    broken = dict(_group_findings_by_rule(result))
    suite = ET.Element("testsuite", name=f"mb2fmu audit {result.fmu}", time=f"{result.seconds:.3f}")
    failed = 0
    skipped = len(result.unjudged)
    for name in dict.fromkeys([*result.judged, *broken]):
        case = ET.SubElement(suite, "testcase", classname=result.fmu, name=name)
        group = broken.get(name, [])
        text = _INVALID_XML_CHARACTERS.sub("?", "\n".join(map(str, group)))
        if any(each.severity != "note" for each in group):
            failed += 1
            ET.SubElement(case, "failure", type=group[0].severity, message=text.splitlines()[0]).text = text
        elif group:
            ET.SubElement(case, "system-out").text = text
    for name, why in result.unjudged.items():
        case = ET.SubElement(suite, "testcase", classname=result.fmu, name=name)
        ET.SubElement(case, "skipped", message=_INVALID_XML_CHARACTERS.sub("?", why))
    for fault in result.faults:
        case = ET.SubElement(suite, "testcase", classname=result.fmu, name="auditor")
        ET.SubElement(case, "error", message="a fault of the auditor").text = _INVALID_XML_CHARACTERS.sub("?", fault)
    counts = {"tests": len(suite), "failures": failed, "errors": len(result.faults), "skipped": skipped}
    for key, value in counts.items():
        suite.set(key, str(value))
    whole = ET.Element("testsuites")
    whole.append(suite)
    ET.indent(whole)
    written: bytes = ET.tostring(whole, encoding="utf-8", xml_declaration=True)
    return written + b"\n"
