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
from mb2fmu.audit.behaviour.fixture.trial_registry import MEMORY, WATCHED
from mb2fmu.audit.behaviour.instance.remote_hosts import RemoteHost, make_valgrind_host, make_wine_host
from mb2fmu.audit.behaviour.runner.supervised_run import (
    SupervisedRunLimits,
    SupervisedRunResult,
    find_loadable_libraries,
    run_all_trials,
)
from mb2fmu.audit.checkers import check_conformance
from mb2fmu.audit.description import archive_rules as archive
from mb2fmu.audit.description import binary_rules, fmi1_rules, header_rules, rule_applicability, schema_validation
from mb2fmu.audit.description import structure_rules as structure
from mb2fmu.audit.description import unit_definition_rules as quantities
from mb2fmu.audit.description import variable_rules as variables
from mb2fmu.audit.description.description_import import read_description
from mb2fmu.audit.description.description_records import DESCRIPTION, DescribedModel
from mb2fmu.audit.findings import SEVERITIES, Finding, Observation, form_finding, rules
from mb2fmu.audit.recorded_reference import RecordedReference
from mb2fmu.deferred_imports import require_packages
from mb2fmu.errors import Fault, Mb2FmuError, ToolError

BUDGET = 120.0
"""For the whole audit, in s."""

CLOSING = 0.04
"""Part of the budget that is left for ending what runs, and for telling what was found."""

CALL_LIMIT = 15.0
"""For one call of the FMU, in s."""

MEMORY_LIMIT = 8 * 1024**3
OTHERS = "checker"
"""Rule that findings of other checkers are listed under."""

MOST_OF_A_RULE = 6
"""Findings of one rule that are listed; more of them are counted."""

NOT_TO_THE_END = "the trials that judge it came to no end"


@dataclass(frozen=True, slots=True)
class _CollectedFindings:
    """Everything that was read, run and asked, before it becomes a result."""

    description: DescribedModel | None
    version: str
    observations: list[Observation]
    trial: SupervisedRunResult
    idle: Mapping[str, str]


def audit(
    path: Path, *, only: Sequence[str] = ("*",), skip: Sequence[str] = (), run: bool = True, others: bool = True,
    budget: float = BUDGET, time_limit: float = CALL_LIMIT, memory_limit: int | None = None, jobs: int | None = None,
    policy: AuditPolicy = NO_POLICY, effort: float | None = None, recorded: RecordedReference | None = None,
    windows: bool = False, valgrind: bool = False,
) -> AuditResult:  # fmt: skip
    """Judge an FMU.

    Args:
        path: The archive, of FMI 2 or 3, from any tool.
        only: Patterns of rule ids, such as ``dependencies.*``: other rules are not judged.
        skip: Patterns of rule ids that are not judged.
        run: Whether to run it, or to judge only what can be read.
        others: Whether to ask fmpy and fmutool too.
        budget: What everything may take, in s.
        time_limit: What one call of the FMU may take, in s.
        memory_limit: Address space of the process that runs it, in bytes; None: 8 GiB, or half of the machine's.
        jobs: Processes at once; None: as many as there are processors.
        policy: What the one who asks accepts.
        effort: What all probes together may take of the processor, in s; None: as the budget. What is judged within
            it does not depend on what else the machine does, as long as the budget lasts.
        recorded: A run that is repeated and compared (rule ``experiment.reference``).
        windows: Runs what the archive has for Windows; through wine, unless this is Windows.
        valgrind: Runs it once more under valgrind, if that is installed (rule ``life.memory``).

    Raises:
        PackageError: If it cannot be read as an archive.
        Mb2FmuError: If no rule has an id of ``only``.
        ToolError: If a package is missing (extra ``audit``), or wine where it is needed.
    """
    require_packages("the audit", "lief", *(("fmu_manipulation_toolbox",) if others else ()))
    wanted = _wanted(only, (*skip, *policy.skip))
    unit = archive.read_archive(path)
    windows = windows and run and sys.platform != "win32"
    wine = _wine(unit) if windows else None
    began = time.monotonic()
    watcher = make_valgrind_host() if valgrind and run and not windows and MEMORY in wanted else None
    jobs = jobs or os.cpu_count() or 1
    end = began + (1.0 - CLOSING) * budget
    with ThreadPoolExecutor(1) as pool:
        asked = pool.submit(_others, path, (1.0 - CLOSING) * budget) if others else None
        memory = memory_limit or _memory()
        bounds = SupervisedRunLimits(
            end, time_limit, memory, jobs, budget if effort is None else effort, recorded, windows, wine, watcher
        )  # fmt: skip
        seen = _seen(unit, wanted, bounds, run=run)
        said = _answers(asked, path, end)
    return policy.applied(_result(path, seen, wanted, said, run=run, began=began))


def _wine(unit: archive.FmuArchive) -> RemoteHost | None:
    """Return wine, set up if needed; None if the archive has nothing for Windows that it could run.

    Raises:
        ToolError: If wine is not installed, or cannot be set up.
    """
    try:
        description = read_description(unit.contents.get(DESCRIPTION, b""))
    except ValueError:  # xml.readable tells it
        return None
    return make_wine_host() if find_loadable_libraries(description, unit.names, windows=True) else None


def _seen(
    unit: archive.FmuArchive, wanted: Sequence[str], bounds: SupervisedRunLimits, *, run: bool
) -> _CollectedFindings:
    """Read the archive and its description, and run the FMU."""
    seen, trial, idle = list(archive.check_archive_members(unit)), SupervisedRunResult(), {}
    description, version = None, ""
    if DESCRIPTION in unit.contents:
        try:
            description = read_description(unit.contents[DESCRIPTION])
            version = description.attributes.get("fmiVersion", "")
        except ValueError as error:
            version = fmi1_rules.find_fmi1_version(unit.contents[DESCRIPTION])
            if version:
                seen += fmi1_rules.check_fmi1_description(unit.contents[DESCRIPTION])
                trial.skipped.append(f"all but schema and variables: this is FMI {version}")
            else:
                seen.append(Observation("xml.readable", str(error), DESCRIPTION))
    if description is not None:
        idle = rule_applicability.find_inapplicable_rules(unit, description)
        behaviour = [each for each in wanted if rules()[each].half == "behaviour" or each == "binary.symbols"]
        with ThreadPoolExecutor(1) as pool:
            # Reading takes a while, and loading what reads binaries half a second: meanwhile the FMU is run.
            read = pool.submit(_read, unit, description, wanted)
            if run and any(rules()[each].half == "behaviour" for each in wanted):
                trial = run_all_trials(unit, description, behaviour, bounds)
            seen += read.result()
    return _CollectedFindings(description, version, seen, trial, idle)


def _result(
    path: Path, seen: _CollectedFindings, wanted: Sequence[str], said: Sequence[Finding], *, run: bool, began: float
) -> AuditResult:
    """Return everything that was seen, in its final form."""
    description, trial = seen.description, seen.trial
    version = description.version if description else 2
    found = [form_finding(each, version) for each in _merged([*seen.observations, *trial.observations])]
    found = [each for each in found if each.rule in wanted]
    every = [*_capped(found), *(each for each in said if each.rule == OTHERS)]
    every.sort(key=lambda each: SEVERITIES.index(each.severity))
    broken = {each.rule for each in found}
    unjudged = {name: why for name in wanted if name not in broken and (why := _unjudged(name, seen, version, run=run))}
    asked = run and description is not None and any(rules()[name].half == "behaviour" for name in wanted)
    return AuditResult(
        path.name,
        hashlib.sha256(path.read_bytes()).hexdigest(),
        seen.version,
        tuple(description.interfaces) if description else (),
        description.attributes.get("modelName", "") if description else "",
        tuple(every),
        tuple(dict.fromkeys(trial.skipped)),
        tuple(trial.tried),
        tuple(name for name in wanted if name not in unjudged),
        tuple(dict.fromkeys(each.source for each in said)),
        time.monotonic() - began,
        unjudged=unjudged,
        faults=tuple(dict.fromkeys(trial.faults)),
        lacking=tuple(dict.fromkeys(trial.lacking)),
        runnable=trial.runnable if asked else None,
    )


def _unjudged(name: str, seen: _CollectedFindings, version: int, *, run: bool) -> str:
    """Return why a requested rule was not judged; empty if it was."""
    rule, trial = rules()[name], seen.trial
    if version not in rule.sections:
        return f"FMI {version} has nothing of it"
    if rule.half == "description":
        if seen.description is None and name not in rule_applicability.ARCHIVE:
            return "there is no description that can be read"
        return seen.idle.get(name, "")
    if name in trial.judged:
        return ""
    if run and seen.description is not None and not trial.runnable:
        return "the archive has no binary that this machine can run"
    untried = NOT_TO_THE_END if trial.tried else "the FMU was not run"
    if name == MEMORY and not any(each.endswith(WATCHED) for each in trial.tried):
        untried = "valgrind is not installed, or was not asked for"
    return trial.idle.get(name) or untried


def _memory() -> int:
    """Return the default limit of memory, in bytes."""
    try:
        physical = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return MEMORY_LIMIT
    return min(MEMORY_LIMIT, max(physical // 2, 1024**3))


def _wanted(only: Sequence[str], skip: Sequence[str]) -> list[str]:
    """Return the ids of the requested rules."""
    unknown = [each for each in (*only, *skip) if not fnmatch.filter(rules(), each)]
    if unknown:
        faults = [Fault(each, "", "see mb2fmu audit --list-rules") for each in unknown]
        raise Mb2FmuError("no such rule", faults)
    return [
        name
        for name in rules()
        if any(fnmatch.fnmatch(name, pattern) for pattern in only)
        and not any(fnmatch.fnmatch(name, pattern) for pattern in skip)
    ]


def _read(unit: archive.FmuArchive, description: DescribedModel, wanted: Sequence[str]) -> list[Observation]:
    """Return what rules on archive, description and binaries find; binaries are read only if wanted."""
    seen = _described(unit, description)
    if any(each.startswith("binary.") for each in wanted):
        seen += binary_rules.check_binaries(unit, description)
    return seen


def _described(unit: archive.FmuArchive, description: DescribedModel) -> list[Observation]:
    """Return what rules on archive and description find."""
    return [
        *archive.check_promised_files(unit, description),
        *schema_validation.check_schemas(unit, description),
        *header_rules.check_header(description),
        *quantities.check_unit_definitions(description),
        *variables.check_variables(description),
        *structure.check_structure(description),
    ]


def _merged(seen: Iterable[Observation]) -> list[Observation]:
    """Merge equal findings of both interface types."""
    groups: dict[tuple[str, str, str], list[str]] = {}
    for each in _crashes(seen):
        kind, _, rest = each.where.partition(", ")
        inner = kind in {"ModelExchange", "CoSimulation"}
        kinds = groups.setdefault((each.rule, each.message, rest if inner else each.where), [])
        if inner and kind not in kinds:
            kinds.append(kind)
    return [
        Observation(rule, message, ", ".join([*([" and ".join(kinds)] if kinds else []), *([where] if where else [])]))
        for (rule, message, where), kinds in groups.items()
    ]


def _crashes(seen: Iterable[Observation]) -> Iterator[Observation]:
    """Yield one finding per crashing function: its first trial, and the number of the others."""
    groups: dict[tuple[str, str, str], list[Observation]] = {}
    for each in seen:
        what = each.message.partition(" while trying ")[0] if each.rule == "life.crash" else each.message
        groups.setdefault((each.rule, what, each.where), []).append(each)
    for group in groups.values():
        first, more = group[0], len({each.message for each in group}) - 1
        text = f"; and in {more} more trial{'s' * (more > 1)}" if more else ""
        yield Observation(first.rule, first.message + text, first.where)


def _capped(found: Sequence[Finding]) -> Iterator[Finding]:
    """Yield the first findings of each rule, and the number of the others."""
    groups: dict[str, list[Finding]] = {}
    for each in found:
        groups.setdefault(each.rule, []).append(each)
    for group in groups.values():
        yield from group[:MOST_OF_A_RULE]
        more = len(group) - MOST_OF_A_RULE
        if more > 0:
            yield replace(group[0], message=f"and {more} more of this rule", where="", number=more)


def _answers(asked: Future[list[Finding]] | None, path: Path, deadline: float) -> list[Finding]:
    """Return findings of other checkers; one that is not done in time is reported."""
    if asked is None:
        return []
    try:
        return asked.result(timeout=max(deadline - time.monotonic(), 1.0))
    except TimeoutError:
        return [Finding(OTHERS, "note", "not done within the budget", path.name, source="fmpy, fmutool")]


def _others(path: Path, time_limit: float) -> list[Finding]:
    """Return other checkers' findings; notes say only that a checker has no objections."""
    try:
        said = check_conformance(path, time_limit=time_limit)
    except ToolError as error:
        return [
            Finding(
                OTHERS,
                "warning",
                str(error).splitlines()[0],
                path.name,
                "see what the checker says itself",
                source="fmpy, fmutool",
            )
        ]
    return [
        Finding(OTHERS if each.severity != "note" else "", each.severity, each.message, source=each.checker)
        for each in said
    ]
