"""Policy of the user: ``audit.toml`` with rules to skip, severities and waivers; and a baseline."""

from __future__ import annotations

import datetime as dt
import fnmatch
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from mb2fmu.audit.audit_result import AuditResult
from mb2fmu.audit.rules_and_findings import SEVERITIES, AuditFinding, Severity, audit_rules_by_id
from mb2fmu.errors import Fault, Mb2FmuError

POLICY_FILE = "audit.toml"
BASELINE_REASON = "in the baseline too"
_POLICY_KEYS = {"skip", "severity", "waive"}
_WAIVER_KEYS = {"rule", "where", "message", "unit", "reason", "expires"}


@dataclass(frozen=True, slots=True)
class AuditWaiver:
    """Findings that are known and accepted for now.

    Attributes:
        rule: Pattern of rule ids.
        reason: Why.
        expires: Last day of validity; None: unlimited.
        where: Pattern of places.
        message: Pattern of messages.
        unit: Pattern of file names.
    """

    rule: str
    reason: str
    expires: dt.date | None = None
    where: str = "*"
    message: str = "*"
    unit: str = "*"

    def covers(self, fmu_name: str, finding: AuditFinding) -> bool:
        """Return whether it covers a finding."""
        texts_and_patterns = (
            (finding.rule, self.rule),
            (finding.where, self.where),
            (finding.message, self.message),
            (fmu_name, self.unit),
        )
        return all(fnmatch.fnmatchcase(text, pattern) for text, pattern in texts_and_patterns)


@dataclass(frozen=True, slots=True)
class AuditPolicy:
    """Accepted findings, and severities.

    Attributes:
        skip: Patterns of rules that are not judged.
        severity: Pattern of rules → the severity given here; the last matching pattern counts.
        waivers: Accepted findings.
        baseline: Fingerprints of the findings of an earlier audit: only new findings fail.
        today: Day by which waivers expire.
    """

    skip: tuple[str, ...] = ()
    severity: Mapping[str, Severity] = field(default_factory=dict)
    waivers: tuple[AuditWaiver, ...] = ()
    baseline: frozenset[tuple[str, str, str]] = frozenset()
    today: dt.date | None = None

    def apply_to(self, result: AuditResult) -> AuditResult:
        """Return a result with this policy's severities, and without findings that it waives or its baseline has."""
        if self == NO_POLICY:
            return result
        remaining_findings: list[AuditFinding] = []
        waived_findings = list(result.waived)
        for finding in result.findings:
            graded_finding = self._apply_severity(finding)
            reason = self._find_waiver_reason(result.fmu, graded_finding)
            if reason:
                waived_findings.append((graded_finding, reason))
            else:
                remaining_findings.append(graded_finding)
        expiry_notes = [self._form_expiry_note(finding) for finding in self.waivers if self._is_expired(finding)]
        remaining_findings += expiry_notes
        remaining_findings.sort(key=lambda finding: SEVERITIES.index(finding.severity))
        return replace(
            result,
            findings=tuple(remaining_findings),
            waived=tuple(waived_findings),
            idle=tuple(self._list_unused_waivers(result)),
        )

    def _list_unused_waivers(self, result: AuditResult) -> Iterator[str]:
        """Yield a note on each relevant waiver that matches no finding: it is outdated, or its pattern is wrong."""
        graded_findings = [self._apply_severity(waiver) for waiver in result.findings]
        for waiver in self.waivers:
            is_relevant = fnmatch.fnmatchcase(result.fmu, waiver.unit) and fnmatch.filter(result.judged, waiver.rule)
            if (
                is_relevant
                and not self._is_expired(waiver)
                and not any(waiver.covers(result.fmu, finding) for finding in graded_findings)
            ):
                yield f'the waiver of {waiver.rule} ("{waiver.reason}") matches no finding'

    def _apply_severity(self, finding: AuditFinding) -> AuditFinding:
        """Return a finding with the severity that the policy gives it; the last matching pattern counts."""
        for pattern, severity in reversed(list(self.severity.items())):
            if fnmatch.fnmatchcase(finding.rule, pattern):
                return replace(finding, severity=severity)
        return finding

    def _find_waiver_reason(self, fmu_name: str, finding: AuditFinding) -> str:
        """Return why a finding is accepted; empty if it is not."""
        for waiver in self.waivers:
            if not self._is_expired(waiver) and waiver.covers(fmu_name, finding):
                return waiver.reason
        return BASELINE_REASON if _finding_fingerprint(finding) in self.baseline else ""

    def _is_expired(self, waiver: AuditWaiver) -> bool:
        """Return whether a waiver has expired."""
        return waiver.expires is not None and waiver.expires < (self.today or dt.date.max)

    def _form_expiry_note(self, waiver: AuditWaiver) -> AuditFinding:
        """Return the note on a waiver that has expired."""
        message = f'the waiver of {waiver.rule} ("{waiver.reason}") has expired on {waiver.expires}'
        return AuditFinding(
            "waiver", "note", message, POLICY_FILE, "correct the fault that it waives, or give it a later day"
        )


NO_POLICY = AuditPolicy()


def _finding_fingerprint(finding: AuditFinding) -> tuple[str, str, str]:
    """Return a key that equal findings of two audits share: rule, place and message, without numbers."""
    return finding.rule, _replace_numbers(finding.where), _replace_numbers(finding.message)


def _replace_numbers(text: str) -> str:
    """Remove numbers and lines, which differ between builds."""
    pieces = text.split('"')
    for index in range(0, len(pieces), 2):
        pieces[index] = "".join("#" if character.isdigit() else character for character in pieces[index])
        while "##" in pieces[index]:
            pieces[index] = pieces[index].replace("##", "#")
    return '"'.join(pieces)


def read_audit_policy(path: Path | None, baseline: Path | None, today: dt.date | None = None) -> AuditPolicy:
    """Read ``audit.toml`` and the JSON of an earlier audit.

    Args:
        path: Path of ``audit.toml``; None: that of the working folder, if it exists.
        baseline: Path of the JSON report; None: no baseline.
        today: Day by which waivers expire; None: this day.

    Raises:
        Mb2FmuError: With everything that is wrong in them.
    """
    fingerprints = _read_baseline_fingerprints(baseline) if baseline else frozenset()
    today = today or dt.datetime.now(tz=dt.UTC).date()
    path = path or (Path(POLICY_FILE) if Path(POLICY_FILE).is_file() else None)
    if path is None:
        return AuditPolicy(baseline=fingerprints, today=today)
    import tomllib  # most runs have no policy

    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise Mb2FmuError("the policy cannot be read", [Fault(str(error), str(path))]) from error
    faults = list(_find_policy_faults(table, path))
    if faults:
        raise Mb2FmuError("the policy is wrong", faults)
    waivers = tuple(AuditWaiver(**waiver) for waiver in table.get("waive", ()))
    return AuditPolicy(tuple(table.get("skip", ())), dict(table.get("severity", {})), waivers, fingerprints, today)


def _find_policy_faults(table: Mapping[str, Any], path: Path) -> Iterator[Fault]:
    """Yield all faults of a policy file, each with its place."""
    for key in sorted(table.keys() - _POLICY_KEYS):
        yield Fault(f'"{key}" is not a known key', str(path), f"allowed are: {', '.join(sorted(_POLICY_KEYS))}")
    skip, severity, waivers = table.get("skip", []), table.get("severity", {}), table.get("waive", [])
    if not isinstance(skip, list) or not isinstance(severity, dict) or not isinstance(waivers, list):
        yield Fault("skip is a list, severity a table, [[waive]] a list of tables", str(path))
        return
    for pattern in (*skip, *severity):
        if not isinstance(pattern, str) or not _matches_any_rule(pattern):
            yield Fault(f"no rule is called {pattern}", str(path), "see mb2fmu audit --list-rules")
    for pattern, value in severity.items():
        if value not in SEVERITIES:
            yield Fault(f'{pattern} = "{value}"', str(path), f"severities are {', '.join(SEVERITIES)}")
    for number, waiver in enumerate(waivers, 1):
        yield from (
            Fault(message, f"{path}, waiver {number}", remedy) for message, remedy in _find_waiver_faults(waiver)
        )


def _matches_any_rule(pattern: str) -> bool:
    """Return whether a pattern matches any rule."""
    return bool(fnmatch.filter((*audit_rules_by_id(), "checker"), pattern))


def _find_waiver_faults(waiver: Any) -> Iterator[tuple[str, str]]:
    """Yield (what, remedy) for a waiver: unknown keys or rules, no reason, malformed day or pattern."""
    if not isinstance(waiver, dict):
        yield "is no table", "write [[waive]]"
        return
    for key in sorted(waiver.keys() - _WAIVER_KEYS):
        yield f'"{key}" is not a known key', f"allowed are: {', '.join(sorted(_WAIVER_KEYS))}"
    if not _matches_any_rule(str(waiver.get("rule", ""))):
        yield f"no rule is called {waiver.get('rule', '')!r}", "see mb2fmu audit --list-rules"
    if not str(waiver.get("reason", "")).strip():
        yield "has no reason", "say why it is accepted"
    expires = waiver.get("expires")
    if expires is not None and (not isinstance(expires, dt.date) or isinstance(expires, dt.datetime)):
        yield f"expires = {expires!r} is no day", "write it as 2027-01-31, without quotation marks"
    for key in ("where", "message", "unit"):
        if not isinstance(waiver.get(key, "*"), str):
            yield f"{key} is no text", "write a pattern in quotation marks"


def _read_baseline_fingerprints(path: Path) -> frozenset[tuple[str, str, str]]:
    """Return the fingerprints of all findings in a JSON report, the waived ones included."""
    try:
        table = json.loads(path.read_text(encoding="utf-8"))
        findings = [*table["findings"], *(pair[0] for pair in table.get("waived", ()))]
        return frozenset(
            _finding_fingerprint(
                AuditFinding(finding["rule"], finding["severity"], finding["message"], finding["where"])
            )
            for finding in findings
        )
    except (OSError, ValueError, KeyError, TypeError) as error:
        remedy = "give a file that --json wrote"
        raise Mb2FmuError("the baseline cannot be read", [Fault(str(error), str(path), remedy)]) from error
