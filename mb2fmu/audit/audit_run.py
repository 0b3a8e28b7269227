"""``audit``: apply all rules to one FMU, and collect the results of other checkers."""

from __future__ import annotations

import fnmatch
import hashlib
import os
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

from mb2fmu.audit.audit_policy import NO_POLICY, AuditPolicy
from mb2fmu.audit.audit_result import AuditResult
from mb2fmu.audit.behaviour.fixture.trial_registry import MEMORY_RULE, VALGRIND_TITLE
from mb2fmu.audit.behaviour.instance.auditor_build_cache import compile_model_exchange_stages
from mb2fmu.audit.behaviour.instance.wine_and_valgrind_hosts import FmuHostProgram, make_valgrind_host, make_wine_host
from mb2fmu.audit.behaviour.runner.supervised_trial_runs import (
    SupervisedTrialsOptions,
    SupervisedTrialsResult,
    find_loadable_libraries,
    run_all_trials,
)
from mb2fmu.audit.description import archive_rules as archive
from mb2fmu.audit.description import (
    binary_rules,
    fmi1_rules,
    inapplicable_rules,
    root_element_rules,
    schema_and_terminal_rules,
)
from mb2fmu.audit.description import model_structure_rules as structure
from mb2fmu.audit.description import unit_definition_rules as quantities
from mb2fmu.audit.description import variable_rules as variables
from mb2fmu.audit.description.description_import import UnsupportedFmiVersionError, parse_model_description
from mb2fmu.audit.description.description_records import DESCRIPTION, DescribedModel
from mb2fmu.audit.external_checkers import run_external_checkers
from mb2fmu.audit.recorded_reference_run import AuditReferenceRun
from mb2fmu.audit.rules_and_findings import (
    SEVERITIES,
    AuditFinding,
    RuleViolation,
    audit_rules_by_id,
    convert_rule_violation_to_finding,
)
from mb2fmu.deferred_imports import require_packages
from mb2fmu.errors import Fault, Mb2FmuError, PackageError, ToolError

TIME_BUDGET = 120.0
"""Default time of the whole audit, s."""

RESERVED_SHARE = 0.04
"""Share of the time budget that is reserved for ending processes and for reporting."""

CALL_TIME_LIMIT = 15.0
"""Default time limit of one call of the FMU, s."""

MEMORY_LIMIT = 8 * 1024**3
CHECKER_RULE = "checker"
"""Rule id of the findings of other checkers."""

MAX_FINDINGS_PER_RULE = 6
"""Most findings of one rule that are listed; further ones are counted."""

UNFINISHED_REASON = "the trials that judge it did not end"


@dataclass(frozen=True, slots=True)
class _CollectedAuditResults:
    """Description, observations and trial results, before they form a result."""

    description: DescribedModel | None
    version: str
    observations: list[RuleViolation]
    run_result: SupervisedTrialsResult
    inapplicable: Mapping[str, str]


def audit(
    path: Path,
    *,
    only: Sequence[str] = ("*",),
    skip: Sequence[str] = (),
    run: bool = True,
    run_checkers: bool = True,
    budget: float = TIME_BUDGET,
    time_limit: float = CALL_TIME_LIMIT,
    memory_limit: int | None = None,
    jobs: int | None = None,
    policy: AuditPolicy = NO_POLICY,
    effort: float | None = None,
    recorded: AuditReferenceRun | None = None,
    windows: bool = False,
    valgrind: bool = False,
    together: bool = False,
    run_calls: int | None = None,
) -> AuditResult:
    """Audit an FMU.

    Args:
        path: The archive, of FMI 2 or 3, from any tool.
        only: Patterns of rule ids, such as ``dependencies.*``: other rules are not judged.
        skip: Patterns of rule ids that are not judged.
        run: Whether to run the FMU, or to check only its files.
        run_checkers: Whether to run fmpy and fmutool too.
        budget: Time limit of the whole audit, s.
        time_limit: Time limit of one call of the FMU, s.
        memory_limit: Address space of the process that runs it, in bytes; None: 8 GiB, or half of the machine's.
        jobs: Processes at once; None: as many as there are processors.
        policy: Accepted findings and severities of the user.
        effort: Processor time of all trials together, s; None: as the budget. What is judged within
            it does not depend on what else the machine does, as long as the budget lasts.
        recorded: Recorded run to repeat and compare (rule ``experiment.reference``).
        windows: Whether to run the binary for Windows; through wine, unless this is Windows.
        valgrind: Whether to run it once more under valgrind, if that is installed (rule ``life.memory``).
        together: Whether all interface types run in one process: quicker, but what one leaves behind the next one
            finds.
        run_calls: Calls of the FMU that one run may have; None: as many as its share of the time allows.

    Raises:
        PackageError: If it cannot be read as an archive, or is another version of FMI than 1, 2 and 3.
        Mb2FmuError: If no rule has an id of ``only``.
        ToolError: If a package is missing (extra ``audit``), or wine where it is needed.
    """
    require_audit_packages(run_checkers=run_checkers)
    rule_ids = _select_rules(only, (*skip, *policy.skip))
    fmu_archive = archive.read_fmu_archive(path)
    windows = windows and run and sys.platform != "win32"
    wine = _prepare_wine_host(fmu_archive) if windows else None
    start_time = time.monotonic()
    valgrind_host = make_valgrind_host() if valgrind and run and not windows and MEMORY_RULE in rule_ids else None
    jobs = jobs or os.cpu_count() or 1
    deadline = start_time + (1.0 - RESERVED_SHARE) * budget
    with ThreadPoolExecutor(1) as pool:
        checker_run = pool.submit(_run_checkers, path, (1.0 - RESERVED_SHARE) * budget) if run_checkers else None
        memory_bytes = memory_limit or _default_memory_limit()
        limits = SupervisedTrialsOptions(
            deadline,
            time_limit,
            memory_bytes,
            jobs,
            budget if effort is None else effort,
            recorded,
            windows,
            wine,
            valgrind_host,
            together,
            run_calls,
            compile_model_exchange_stages() if run and not windows else None,
        )
        collected_findings = _collect_findings(fmu_archive, rule_ids, limits, run=run)
        checker_findings = _await_checkers(checker_run, path, deadline)
    return policy.apply_to(
        _form_result(path, collected_findings, rule_ids, checker_findings, run=run, start_time=start_time)
    )


def require_audit_packages(*, run_checkers: bool) -> None:
    """Say at once what the audit needs and is not installed.

    Args:
        run_checkers: fmpy and fmutool are to be run too.

    Raises:
        ToolError: If a package is missing (extra ``audit``).
    """
    require_packages("the audit", "lief", *(("fmu_manipulation_toolbox",) if run_checkers else ()))


def _prepare_wine_host(fmu: archive.FmuArchive) -> FmuHostProgram | None:
    """Return wine, set up if needed; None if the archive has no binary for Windows.

    Raises:
        ToolError: If wine is not installed, or cannot be set up.
    """
    try:
        description = parse_model_description(fmu.contents.get(DESCRIPTION, b""))
    except ValueError:  # xml.readable reports it
        return None
    return make_wine_host() if find_loadable_libraries(description, fmu.names, windows=True) else None


def _collect_findings(
    fmu: archive.FmuArchive, rule_ids: Sequence[str], limits: SupervisedTrialsOptions, *, run: bool
) -> _CollectedAuditResults:
    """Read the archive and its description, and run the FMU."""
    observations, run_result, inapplicable = list(archive.check_archive_members(fmu)), SupervisedTrialsResult(), {}
    description, version = None, ""
    if DESCRIPTION in fmu.contents:
        try:
            description = parse_model_description(fmu.contents[DESCRIPTION])
            version = description.attributes.get("fmiVersion", "")
        except UnsupportedFmiVersionError as error:
            version = fmi1_rules.find_fmi1_version(fmu.contents[DESCRIPTION])
            if not version:
                fault = Fault(str(error), DESCRIPTION, "export the FMU as FMI 2.0 or 3.0, as they were released")
                raise PackageError("the FMU cannot be judged:", [fault]) from error
            observations += fmi1_rules.check_fmi1_description(fmu.contents[DESCRIPTION])
            run_result.skipped.append(f"all but schema and variables: this is FMI {version}")
        except ValueError as error:
            observations.append(RuleViolation("xml.readable", str(error), DESCRIPTION))
    if description is not None:
        inapplicable = inapplicable_rules.find_inapplicable_rules(fmu, description)
        behaviour_rules = [
            rule_id
            for rule_id in rule_ids
            if audit_rules_by_id()[rule_id].half == "behaviour" or rule_id == "binary.symbols"
        ]
        with ThreadPoolExecutor(1) as pool:
            # Reading takes a while, and loading what reads binaries half a second: meanwhile the FMU is run.
            static_check = pool.submit(_check_static_rules, fmu, description, rule_ids)
            if run and any(audit_rules_by_id()[rule_id].half == "behaviour" for rule_id in rule_ids):
                run_result = run_all_trials(fmu, description, behaviour_rules, limits)
            observations += static_check.result()
    return _CollectedAuditResults(description, version, observations, run_result, inapplicable)


def _form_result(
    path: Path,
    collected_findings: _CollectedAuditResults,
    rule_ids: Sequence[str],
    checker_findings: Sequence[AuditFinding],
    *,
    run: bool,
    start_time: float,
) -> AuditResult:
    """Form the result from everything that was collected."""
    description, run_result = collected_findings.description, collected_findings.run_result
    version = description.version if description else 2
    findings = [
        convert_rule_violation_to_finding(item, version)
        for item in _merge_interfaces([*collected_findings.observations, *run_result.observations])
    ]
    findings = [item for item in findings if item.rule in rule_ids]
    listed_findings = [*_limit_findings(findings), *(item for item in checker_findings if item.rule == CHECKER_RULE)]
    listed_findings.sort(key=lambda item: SEVERITIES.index(item.severity))
    broken_rules = {item.rule for item in findings}
    unjudged = {
        rule_id: reason
        for rule_id in rule_ids
        if rule_id not in broken_rules
        and (reason := _find_unjudged_reason(rule_id, collected_findings, version, run=run))
    }
    was_to_run = (
        run
        and description is not None
        and any(audit_rules_by_id()[rule_id].half == "behaviour" for rule_id in rule_ids)
    )
    return AuditResult(
        path.name,
        hashlib.sha256(path.read_bytes()).hexdigest(),
        collected_findings.version,
        tuple(description.interfaces) if description else (),
        description.attributes.get("modelName", "") if description else "",
        tuple(listed_findings),
        tuple(dict.fromkeys(run_result.skipped)),
        tuple(run_result.tried),
        tuple(rule_id for rule_id in rule_ids if rule_id not in unjudged),
        tuple(dict.fromkeys(item.source for item in checker_findings)),
        time.monotonic() - start_time,
        unjudged=unjudged,
        faults=tuple(dict.fromkeys(run_result.faults)),
        lacking=tuple(dict.fromkeys(run_result.lacking)),
        runnable=run_result.runnable if was_to_run else None,
    )


def _find_unjudged_reason(rule_id: str, collected_findings: _CollectedAuditResults, version: int, *, run: bool) -> str:
    """Return why a requested rule was not judged; empty if it was."""
    rule, run_result = audit_rules_by_id()[rule_id], collected_findings.run_result
    if version not in rule.sections:
        return f"FMI {version} has no such requirement"
    if rule.half == "description":
        if collected_findings.description is None and rule_id not in inapplicable_rules.ARCHIVE_RULES:
            return "there is no description that can be read"
        return collected_findings.inapplicable.get(rule_id, "")
    if rule_id in run_result.judged:
        return ""
    if run and collected_findings.description is not None and not run_result.runnable:
        return "the archive has no binary that this machine can run"
    reason = UNFINISHED_REASON if run_result.tried else "the FMU was not run"
    if rule_id == MEMORY_RULE and not any(title.endswith(VALGRIND_TITLE) for title in run_result.tried):
        reason = "valgrind is not installed, or was not requested"
    return run_result.inapplicable.get(rule_id) or reason


def _default_memory_limit() -> int:
    """Return the default limit of memory, in bytes."""
    try:
        physical_memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return MEMORY_LIMIT
    return min(MEMORY_LIMIT, max(physical_memory // 2, 1024**3))


def _select_rules(only: Sequence[str], skip: Sequence[str]) -> list[str]:
    """Return the ids of the requested rules."""
    unmatched_patterns = [
        requested_pattern for requested_pattern in (*only, *skip) if not _match_rules(requested_pattern)
    ]
    if unmatched_patterns:
        faults = [
            Fault(requested_pattern, "", "see mb2fmu audit --list-rules") for requested_pattern in unmatched_patterns
        ]
        raise Mb2FmuError("no such rule", faults)
    selected_rules = set().union(*map(_match_rules, only)).difference(*map(_match_rules, skip))
    return [rule_id for rule_id in audit_rules_by_id() if rule_id in selected_rules]


def _match_rules(pattern: str) -> Sequence[str]:
    """Return the ids of rules that match a pattern; an id stands for itself."""
    return (pattern,) if pattern in audit_rules_by_id() else fnmatch.filter(audit_rules_by_id(), pattern)


def _check_static_rules(
    fmu: archive.FmuArchive, description: DescribedModel, rule_ids: Sequence[str]
) -> list[RuleViolation]:
    """Return what rules on archive, description and binaries find; binaries are read only if wanted."""
    observations = _check_description(fmu, description)
    if any(rule_id.startswith("binary.") for rule_id in rule_ids):
        observations += binary_rules.check_binaries(fmu, description)
    return observations


def _check_description(fmu: archive.FmuArchive, description: DescribedModel) -> list[RuleViolation]:
    """Return what rules on archive and description find."""
    return [
        *archive.check_archive_content(fmu, description),
        *schema_and_terminal_rules.check_xml_schemas(fmu, description),
        *root_element_rules.check_root_element(description),
        *quantities.check_unit_definitions(description),
        *variables.check_variables(description),
        *structure.check_model_structure(description),
    ]


def _merge_interfaces(observations: Iterable[RuleViolation]) -> list[RuleViolation]:
    """Merge equal findings of both interface types."""
    groups: dict[tuple[str, str, str], list[str]] = {}
    for observation in _merge_crashes(observations):
        first_part, _, place = observation.where.partition(", ")
        has_interface = first_part in {"ModelExchange", "CoSimulation"}
        interfaces = groups.setdefault(
            (observation.rule, observation.message, place if has_interface else observation.where), []
        )
        if has_interface and first_part not in interfaces:
            interfaces.append(first_part)
    return [
        RuleViolation(
            rule,
            message,
            ", ".join([*([" and ".join(interfaces)] if interfaces else []), *([member_place] if member_place else [])]),
        )
        for (rule, message, member_place), interfaces in groups.items()
    ]


def _merge_crashes(observations: Iterable[RuleViolation]) -> Iterator[RuleViolation]:
    """Yield one finding per crashing function: its first trial, and the number of the others."""
    groups: dict[tuple[str, str, str], list[RuleViolation]] = {}
    for observation in observations:
        key_message = (
            observation.message.partition(" while trying ")[0]
            if observation.rule == "life.crash"
            else observation.message
        )
        groups.setdefault((observation.rule, key_message, observation.where), []).append(observation)
    for group in groups.values():
        first, other_count = group[0], len({observation.message for observation in group}) - 1
        suffix = f"; and in {other_count} more trial{'s' * (other_count > 1)}" if other_count else ""
        yield RuleViolation(first.rule, first.message + suffix, first.where)


def _limit_findings(findings: Sequence[AuditFinding]) -> Iterator[AuditFinding]:
    """Yield the first findings of each rule, and the number of the others."""
    groups: dict[str, list[AuditFinding]] = {}
    for finding in findings:
        groups.setdefault(finding.rule, []).append(finding)
    for group in groups.values():
        yield from group[:MAX_FINDINGS_PER_RULE]
        omitted_count = len(group) - MAX_FINDINGS_PER_RULE
        if omitted_count > 0:
            yield replace(group[0], message=f"and {omitted_count} more of this rule", where="", number=omitted_count)


def _await_checkers(checker_run: Future[list[AuditFinding]] | None, path: Path, deadline: float) -> list[AuditFinding]:
    """Return findings of other checkers; one that is not done in time is reported."""
    if checker_run is None:
        return []
    try:
        return checker_run.result(timeout=max(deadline - time.monotonic(), 1.0))
    except TimeoutError:
        return [AuditFinding(CHECKER_RULE, "note", "not done within the budget", path.name, source="fmpy, fmutool")]


def _run_checkers(path: Path, time_limit: float) -> list[AuditFinding]:
    """Return other checkers' findings; notes say only that a checker has no objections."""
    try:
        checker_findings = run_external_checkers(path, time_limit=time_limit)
    except ToolError as error:
        return [
            AuditFinding(
                CHECKER_RULE,
                "warning",
                str(error).splitlines()[0],
                path.name,
                "see the output of the checker",
                source="fmpy, fmutool",
            )
        ]
    return [
        AuditFinding(
            CHECKER_RULE if finding.severity != "note" else "",
            finding.severity,
            finding.message,
            source=finding.checker,
        )
        for finding in checker_findings
    ]
