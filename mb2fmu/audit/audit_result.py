"""``AuditResult``: the findings of an audit, the rules that were judged, and the exit code."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from mb2fmu.audit.rules_and_findings import SEVERITIES, AuditFinding, Severity

NO_FINDINGS, FINDINGS, NOT_AN_FMU, TOOL_FAILURE, NO_USABLE_BINARY, INTERNAL_ERROR = 0, 1, 2, 3, 4, 70
"""Exit codes: nothing found; something found; no FMU of version 2 or 3; a tool failed; no binary for this machine, so
that only the description was judged; a fault of the auditor itself."""


@dataclass(frozen=True, slots=True)
class AuditResult:
    """Result of an audit.

    Attributes:
        fmu: Name of the file.
        sha256: Of its bytes.
        version: ``2.0``, ``3.0``, …; empty if unknown.
        kinds: Interfaces.
        model: Its name.
        findings: Worst first.
        skipped: Parts that could not be judged, with the reason.
        tried: Titles of the trials with the running FMU.
        judged: Ids of the rules that had something to judge, and judged it.
        consulted: Names and versions of other checkers that ran.
        seconds: Duration of the audit, s.
        unjudged: Rule → why it was not judged.
        faults: Of the auditor itself, with tracebacks; nothing of them is the FMU's.
        lacking: Limits of the trials that this machine cannot set.
        runnable: Whether there is a binary for this machine; None if nothing was to be run.
        waived: Findings removed by a waiver or by the baseline, with the reason.
        idle: Waivers of the policy that concern this FMU and judged rules, but match no finding.
    """

    fmu: str
    sha256: str
    version: str
    kinds: tuple[str, ...]
    model: str
    findings: tuple[AuditFinding, ...]
    skipped: tuple[str, ...]
    tried: tuple[str, ...]
    judged: tuple[str, ...]
    consulted: tuple[str, ...]
    seconds: float
    unjudged: Mapping[str, str] = field(default_factory=dict)
    faults: tuple[str, ...] = ()
    lacking: tuple[str, ...] = ()
    runnable: bool | None = None
    waived: tuple[tuple[AuditFinding, str], ...] = ()
    idle: tuple[str, ...] = ()

    def count(self, severity: Severity) -> int:
        """Return the number of findings of one severity."""
        return sum(finding.number for finding in self.findings if finding.severity == severity)

    def fails(self, threshold: Severity) -> bool:
        """Return whether there is a finding of a severity, or of a worse one."""
        return any(self.count(finding) for finding in SEVERITIES[: SEVERITIES.index(threshold) + 1])

    def exit_code(self, threshold: Severity = "error") -> int:
        """Return the exit code of the command line.

        Args:
            threshold: Severity from which on a finding fails.
        """
        if self.faults:
            return INTERNAL_ERROR
        if self.version.startswith("1."):
            return NOT_AN_FMU  # faults of its schema are listed, but it cannot be judged as an FMU
        if self.fails(threshold):
            return FINDINGS
        if not self.version:
            return NOT_AN_FMU
        return NO_USABLE_BINARY if self.runnable is False else NO_FINDINGS

    def to_json(self) -> str:
        """Return everything, and the counts, as JSON."""
        counts = {severity: self.count(severity) for severity in SEVERITIES}
        content: dict[str, Any] = {**asdict(self), "counts": counts, "exit_code": self.exit_code()}
        return json.dumps(content, indent=2, ensure_ascii=False) + "\n"
