"""Policy of the user: ``audit.toml`` with rules to skip, severities and waivers; and a baseline."""

from __future__ import annotations

import datetime as dt
import fnmatch
import json
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from mb2fmu.audit.audit_result import AuditResult
from mb2fmu.audit.findings import SEVERITIES, Finding, Severity, rules
from mb2fmu.errors import Fault, Mb2FmuError

FILE = "audit.toml"
BASELINE = "in the baseline too"
_KEYS = {"skip", "severity", "waive"}
_WAIVER = {"rule", "where", "message", "unit", "reason", "expires"}


@dataclass(frozen=True, slots=True)
class Waiver:
    """Findings that are known and accepted for now.

    Attributes:
        rule: Pattern of rule ids.
        reason: Why.
        expires: The last day that it holds; None: it holds for ever.
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

    def covers(self, unit: str, found: Finding) -> bool:
        """Return whether it covers a finding."""
        pairs = ((found.rule, self.rule), (found.where, self.where), (found.message, self.message), (unit, self.unit))
        return all(fnmatch.fnmatchcase(text, pattern) for text, pattern in pairs)


@dataclass(frozen=True, slots=True)
class AuditPolicy:
    """Accepted findings, and severities.

    Attributes:
        skip: Patterns of rules that are not judged.
        severity: Pattern of rules → the severity that they have here; the last one that fits holds.
        waivers: Findings that are known.
        baseline: What an earlier audit found: only what is new fails.
        today: Day by which waivers expire.
    """

    skip: tuple[str, ...] = ()
    severity: Mapping[str, Severity] = field(default_factory=dict)
    waivers: tuple[Waiver, ...] = ()
    baseline: frozenset[tuple[str, str, str]] = frozenset()
    today: dt.date | None = None

    def applied(self, result: AuditResult) -> AuditResult:
        """Return a result with this policy's severities, and without findings that it waives or its baseline has."""
        if self == NO_POLICY:
            return result
        kept: list[Finding] = []
        waived = list(result.waived)
        for each in result.findings:
            found = self._graded(each)
            why = self._waived(result.fmu, found)
            if why:
                waived.append((found, why))
            else:
                kept.append(found)
        expired = [self._expired(each) for each in self.waivers if self._is_over(each)]
        kept += expired
        kept.sort(key=lambda each: SEVERITIES.index(each.severity))
        return replace(result, findings=tuple(kept), waived=tuple(waived), idle=tuple(self._idle(result)))

    def _idle(self, result: AuditResult) -> Iterator[str]:
        """Yield each waiver that covers nothing though it could: it is stale, or its pattern is wrong."""
        graded = [self._graded(each) for each in result.findings]
        for each in self.waivers:
            concerned = fnmatch.fnmatchcase(result.fmu, each.unit) and fnmatch.filter(result.judged, each.rule)
            if concerned and not self._is_over(each) and not any(each.covers(result.fmu, found) for found in graded):
                yield f'the waiver of {each.rule} ("{each.reason}") fits nothing that was found'

    def _graded(self, found: Finding) -> Finding:
        """Return a finding with the severity that the policy gives it; the last matching pattern counts."""
        for pattern, severity in reversed(list(self.severity.items())):
            if fnmatch.fnmatchcase(found.rule, pattern):
                return replace(found, severity=severity)
        return found

    def _waived(self, unit: str, found: Finding) -> str:
        """Return why a finding is accepted; empty if it is not."""
        for each in self.waivers:
            if not self._is_over(each) and each.covers(unit, found):
                return each.reason
        return BASELINE if finding_fingerprint(found) in self.baseline else ""

    def _is_over(self, waiver: Waiver) -> bool:
        """Return whether a waiver has expired."""
        return waiver.expires is not None and waiver.expires < (self.today or dt.date.max)

    def _expired(self, waiver: Waiver) -> Finding:
        """Return the note on a waiver that has expired."""
        text = f'the waiver of {waiver.rule} ("{waiver.reason}") has expired on {waiver.expires}'
        return Finding("waiver", "note", text, FILE, "correct the fault that it waives, or give it a later day")


NO_POLICY = AuditPolicy()


def finding_fingerprint(found: Finding) -> tuple[str, str, str]:
    """Return a key that equal findings of two audits share: rule, place and message, without numbers."""
    return found.rule, _without_numbers(found.where), _without_numbers(found.message)


def _without_numbers(text: str) -> str:
    """Remove numbers and lines, which differ between builds."""
    quoted = text.split('"')
    for k in range(0, len(quoted), 2):
        quoted[k] = "".join("#" if sign.isdigit() else sign for sign in quoted[k])
        while "##" in quoted[k]:
            quoted[k] = quoted[k].replace("##", "#")
    return '"'.join(quoted)


def read_policy(path: Path | None, baseline: Path | None, today: dt.date | None = None) -> AuditPolicy:
    """Read ``audit.toml`` and the JSON of an earlier audit.

    Args:
        path: Of the first; None: that of the working folder, if it is there.
        baseline: Of the second; None: there is none.
        today: Day by which waivers expire; None: this day.

    Raises:
        Mb2FmuError: With everything that is wrong in them.
    """
    known = _baseline(baseline) if baseline else frozenset()
    today = today or dt.datetime.now(tz=dt.UTC).date()
    path = path or (Path(FILE) if Path(FILE).is_file() else None)
    if path is None:
        return AuditPolicy(baseline=known, today=today)
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise Mb2FmuError("the policy cannot be read", [Fault(str(error), str(path))]) from error
    faults = list(_faults(table, path))
    if faults:
        raise Mb2FmuError("the policy is wrong", faults)
    waivers = tuple(Waiver(**each) for each in table.get("waive", ()))
    return AuditPolicy(tuple(table.get("skip", ())), dict(table.get("severity", {})), waivers, known, today)


def _faults(table: Mapping[str, Any], path: Path) -> Iterator[Fault]:
    """Yield all faults of a policy file, each with its place."""
    for key in sorted(table.keys() - _KEYS):
        yield Fault(f'"{key}" means nothing', str(path), f"what can stand there: {', '.join(sorted(_KEYS))}")
    skip, severity, waive = table.get("skip", []), table.get("severity", {}), table.get("waive", [])
    if not isinstance(skip, list) or not isinstance(severity, dict) or not isinstance(waive, list):
        yield Fault("skip is a list, severity a table, [[waive]] a list of tables", str(path))
        return
    for pattern in (*skip, *severity):
        if not isinstance(pattern, str) or not _known(pattern):
            yield Fault(f"no rule is called {pattern}", str(path), "see mb2fmu audit --list-rules")
    for pattern, value in severity.items():
        if value not in SEVERITIES:
            yield Fault(f'{pattern} = "{value}"', str(path), f"severities are {', '.join(SEVERITIES)}")
    for number, each in enumerate(waive, 1):
        yield from (Fault(what, f"{path}, waiver {number}", remedy) for what, remedy in _waiver_faults(each))


def _known(pattern: str) -> bool:
    """Return whether a pattern matches any rule."""
    return bool(fnmatch.filter((*rules(), "checker"), pattern))


def _waiver_faults(each: Any) -> Iterator[tuple[str, str]]:
    """Yield (what, remedy) for a waiver: unknown keys or rules, no reason, malformed day or pattern."""
    if not isinstance(each, dict):
        yield "is no table", "write [[waive]]"
        return
    for key in sorted(each.keys() - _WAIVER):
        yield f'"{key}" means nothing', f"what can stand there: {', '.join(sorted(_WAIVER))}"
    if not _known(str(each.get("rule", ""))):
        yield f"no rule is called {each.get('rule', '')!r}", "see mb2fmu audit --list-rules"
    if not str(each.get("reason", "")).strip():
        yield "has no reason", "say why it is accepted"
    expires = each.get("expires")
    if expires is not None and (not isinstance(expires, dt.date) or isinstance(expires, dt.datetime)):
        yield f"expires = {expires!r} is no day", "write it as 2027-01-31, without quotation marks"
    for key in ("where", "message", "unit"):
        if not isinstance(each.get(key, "*"), str):
            yield f"{key} is no text", "write a pattern in quotation marks"


def _baseline(path: Path) -> frozenset[tuple[str, str, str]]:
    """Return the fingerprints of all findings in a JSON report, the waived ones included."""
    try:
        table = json.loads(path.read_text(encoding="utf-8"))
        listed = [*table["findings"], *(pair[0] for pair in table.get("waived", ()))]
        return frozenset(
            finding_fingerprint(Finding(each["rule"], each["severity"], each["message"], each["where"]))
            for each in listed
        )
    except (OSError, ValueError, KeyError, TypeError) as error:
        remedy = "hand over what --json wrote"
        raise Mb2FmuError("the baseline cannot be read", [Fault(str(error), str(path), remedy)]) from error
