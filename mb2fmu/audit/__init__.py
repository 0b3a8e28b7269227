"""Compare an FMU's actions with its own declarations and with the standard.

Input: any FMU, of FMI 2 or 3, from whatever tool. Output: :class:`AuditResult`: findings, each of a rule, with the
section of the standard that it breaks. Promises: all problems at once; an FMU that crashes, hangs or eats memory is a
finding and not the end of the audit; the same FMU gives the same findings. It knows nothing of the stages that make
FMUs, since it judges any, and must not import them.

The names below are imported when they are first used: the processes that run an FMU need none of them, and are started
often.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mb2fmu.deferred_imports import import_on_first_use

if TYPE_CHECKING:
    from mb2fmu.audit.audit_policy import AuditPolicy, read_audit_policy
    from mb2fmu.audit.audit_result import AuditResult
    from mb2fmu.audit.audit_run import audit, require_audit_packages
    from mb2fmu.audit.embedded_reference_run import find_reference_run_of_fmu
    from mb2fmu.audit.recorded_reference_run import AuditReferenceRun, read_audit_reference_run
    from mb2fmu.audit.rules_and_findings import SEVERITIES, AuditFinding, AuditRule, Severity, audit_rules_by_id

__all__ = [
    "SEVERITIES",
    "AuditFinding",
    "AuditPolicy",
    "AuditReferenceRun",
    "AuditResult",
    "AuditRule",
    "Severity",
    "audit",
    "audit_rules_by_id",
    "find_reference_run_of_fmu",
    "read_audit_policy",
    "read_audit_reference_run",
    "require_audit_packages",
]  # fmt: skip

__getattr__ = import_on_first_use(
    __name__,
    {
        "audit_policy": "AuditPolicy read_audit_policy",
        "audit_result": "AuditResult",
        "audit_run": "audit require_audit_packages",
        "rules_and_findings": "SEVERITIES AuditRule AuditFinding Severity audit_rules_by_id",
        "embedded_reference_run": "find_reference_run_of_fmu",
        "recorded_reference_run": "AuditReferenceRun read_audit_reference_run",
    },
)
