"""Rules of the auditor, each once in ``rules.json``, and findings, each of a rule or of another checker.

A rule is what an FMU must or should be and do. ``fmi2`` and ``fmi3`` of the file name the sections of FMI 2.0.5 and
3.0.2; a rule without one of them is not of that version. JSON: as TOML its 186 rules took 0.04 s of every run.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import Literal

Severity = Literal["error", "warning", "note"]
SEVERITIES: tuple[Severity, ...] = ("error", "warning", "note")
AUDITOR_NAME = "mb2fmu"


@dataclass(frozen=True, slots=True)
class AuditRule:
    """One requirement on an FMU.

    Attributes:
        id: ``group.name``.
        severity: ``error``: it breaks the standard or its own description, so that importers go wrong. ``warning``:
            users suffer from it, or the standard recommends otherwise. ``note``: to be known.
        half: ``description``: judged by description and archive; ``behaviour``: by the running FMU.
        says: The requirement, in one sentence.
        remedy: What to do if it is not met.
        sections: FMI version → section of the standard; a version without one is not judged by this rule.
    """

    id: str
    severity: Severity
    half: Literal["description", "behaviour"]
    says: str
    remedy: str
    sections: Mapping[int, str]


@dataclass(frozen=True, slots=True)
class AuditFinding:
    """One fault or remark.

    Attributes:
        rule: Of the table; or the id that stands for another checker.
        severity: The rule's.
        message: What is wrong, with names and numbers.
        where: Archive member with line, variable, or activity.
        remedy: What to do about it.
        section: Of the standard, for the FMU's version; empty for findings of other checkers.
        source: ``mb2fmu``, or the name and version of the checker that says it.
        number: Number of findings that it represents.
    """

    rule: str
    severity: Severity
    message: str
    where: str = ""
    remedy: str = ""
    section: str = ""
    source: str = AUDITOR_NAME
    number: int = 1

    def __str__(self) -> str:
        where = f"{self.where}: " if self.where else ""
        return f"{self.severity} {self.rule}: {where}{self.message}"


@dataclass(frozen=True, slots=True)
class RuleViolation:
    """Result of a check; section of the standard and severity are added later."""

    rule: str
    message: str
    where: str = ""


@cache
def audit_rules_by_id() -> Mapping[str, AuditRule]:
    """Return all rules by id, in the order of the table."""
    import json
    from importlib import resources

    table = json.loads(resources.files("mb2fmu.audit").joinpath("rules.json").read_text(encoding="utf-8"))
    rules_by_id: dict[str, AuditRule] = {}
    halves: tuple[Literal["description", "behaviour"], ...] = ("description", "behaviour")
    for half in halves:
        for rule_id, entry in table[half].items():
            sections = {int(key[-1]): str(entry[key]) for key in ("fmi2", "fmi3") if key in entry}
            assert entry["severity"] in SEVERITIES, rule_id
            assert sections, rule_id
            rules_by_id[rule_id] = AuditRule(
                rule_id,
                entry["severity"],
                half,
                entry["says"],
                entry["remedy"],
                MappingProxyType(sections),
            )
    return MappingProxyType(rules_by_id)


def convert_rule_violation_to_finding(observation: RuleViolation, version: int) -> AuditFinding:
    """Return an observation in its finished form.

    Args:
        observation: Of a rule of the table.
        version: FMI version of the FMU, 2 or 3.
    """
    rule = audit_rules_by_id()[observation.rule]
    return AuditFinding(
        rule.id,
        rule.severity,
        observation.message,
        observation.where,
        rule.remedy,
        rule.sections.get(version, next(iter(rule.sections.values()))),
    )
