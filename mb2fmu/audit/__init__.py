"""Audit: what a unit does against what it says.

Input: any FMU, of FMI 2 or 3, from whatever tool. Output: :class:`AuditResult`: findings, each of a rule, with the
section of the standard that it breaks. Promises: all problems at once; a unit that crashes, hangs or eats memory is a
finding and not the end of the audit; the same unit gives the same findings. It knows nothing of the stages that make
units, since it judges any, and must not import them.
"""

from mb2fmu.audit.auditing import audit
from mb2fmu.audit.finding import SEVERITIES, Finding, Rule, Severity, rules
from mb2fmu.audit.outcome import AuditResult
from mb2fmu.audit.policy import Policy, read_policy
from mb2fmu.audit.recorded_run import Recorded, beside, read_recorded

__all__ = [
    "SEVERITIES", "AuditResult", "Finding", "Policy", "Recorded", "Rule", "Severity", "audit", "beside", "read_policy",
    "read_recorded", "rules",
]  # fmt: skip
