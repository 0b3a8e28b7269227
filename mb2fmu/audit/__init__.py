"""Compare an FMU's actions with its own declarations and with the standard.

Input: any FMU, of FMI 2 or 3, from whatever tool. Output: :class:`AuditResult`: findings, each of a rule, with the
section of the standard that it breaks. Promises: all problems at once; an FMU that crashes, hangs or eats memory is a
finding and not the end of the audit; the same unit gives the same findings. It knows nothing of the stages that make
FMUs, since it judges any, and must not import them.

The names below are imported when they are first used: the processes that run an FMU need none of them, and are started
often.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mb2fmu.audit.audit_policy import AuditPolicy, read_policy
    from mb2fmu.audit.audit_result import AuditResult
    from mb2fmu.audit.audit_run import audit
    from mb2fmu.audit.findings import SEVERITIES, AuditRule, Finding, Severity, rules
    from mb2fmu.audit.recorded_reference import RecordedReference, find_recorded_reference, read_recorded_reference

__all__ = [
    "SEVERITIES", "AuditPolicy", "AuditResult", "AuditRule", "Finding", "RecordedReference", "Severity", "audit",
    "find_recorded_reference", "read_policy", "read_recorded_reference", "rules",
]  # fmt: skip

_HOMES = {
    "audit_run": ("audit",),
    "findings": ("SEVERITIES", "Finding", "AuditRule", "Severity", "rules"),
    "audit_result": ("AuditResult",),
    "audit_policy": ("AuditPolicy", "read_policy"),
    "recorded_reference": ("RecordedReference", "find_recorded_reference", "read_recorded_reference"),
}


def __getattr__(name: str) -> object:
    """Import a public name from its module, on first use."""
    for home, names in _HOMES.items():
        if name in names:
            value = getattr(import_module(f"{__name__}.{home}"), name)
            globals()[name] = value
            return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
