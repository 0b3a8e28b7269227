"""``audit``: all rules on one unit, and what other checkers say."""

from __future__ import annotations

import fnmatch
import hashlib
import json
import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from mb2fmu.audit.behaviour.trial import Trial, try_unit
from mb2fmu.audit.checkers import check_conformance
from mb2fmu.audit.description import archive_rules as archive
from mb2fmu.audit.description import binaries, header, schema
from mb2fmu.audit.description import structure_rules as structure
from mb2fmu.audit.description import unit_rules as quantities
from mb2fmu.audit.description import variable_rules as variables
from mb2fmu.audit.description.described_model import DESCRIPTION, Description
from mb2fmu.audit.description.parse_description import read_description
from mb2fmu.audit.finding import SEVERITIES, Finding, Observation, Severity, finding, rules
from mb2fmu.errors import Fault, Mb2FmuError, ToolError

TIME_LIMIT = 120.0
MEMORY_LIMIT = 8 * 1024**3
OTHERS = "checker"
"""Rule that findings of other checkers are listed under."""


@dataclass(frozen=True, slots=True)
class AuditResult:
    """What an audit found.

    Attributes:
        fmu: Name of the file.
        sha256: Of its bytes.
        version: ``2.0``, ``3.0``, …; empty if that cannot be told.
        kinds: Interfaces.
        model: Its name.
        findings: Worst first.
        skipped: What could not be judged, with the reason.
        tried: What was done with the running unit.
        judged: Ids of the rules that were asked for.
        consulted: Names and versions of other checkers.
        seconds: What it took.
    """

    fmu: str
    sha256: str
    version: str
    kinds: tuple[str, ...]
    model: str
    findings: tuple[Finding, ...]
    skipped: tuple[str, ...]
    tried: tuple[str, ...]
    judged: tuple[str, ...]
    consulted: tuple[str, ...]
    seconds: float

    def count(self, severity: Severity) -> int:
        """How many findings there are of one severity."""
        return sum(each.severity == severity for each in self.findings)

    def fails(self, least: Severity) -> bool:
        """Whether there is a finding of a severity, or of a worse one."""
        return any(self.count(each) for each in SEVERITIES[: SEVERITIES.index(least) + 1])

    def to_json(self) -> str:
        """Everything, and the counts."""
        whole = {**asdict(self), "counts": {each: self.count(each) for each in SEVERITIES}}
        return json.dumps(whole, indent=2, ensure_ascii=False) + "\n"


def audit(
    path: Path, *, only: Sequence[str] = ("*",), run: bool = True, others: bool = True, time_limit: float = TIME_LIMIT,
    memory_limit: int = MEMORY_LIMIT,
) -> AuditResult:  # fmt: skip
    """Judges a unit.

    Args:
        path: The archive, of FMI 2 or 3, from any tool.
        only: Patterns of rule ids, such as ``dependencies.*``: other rules are not judged.
        run: Whether to run it, or to judge only what can be read.
        others: Whether to ask fmpy and fmutool too.
        time_limit: For each thing that is tried with the running unit, in s.
        memory_limit: Address space of the process that runs it, in bytes.

    Raises:
        PackageError: If it cannot be read as an archive.
        Mb2FmuError: If no rule has an id of ``only``, or if the auditor itself fails.
        ToolError: If another checker does not run to its end.
    """
    began = time.monotonic()
    wanted = _wanted(only)
    unit = archive.read_archive(path)
    seen = list(archive.check_members(unit))
    description, trial = None, Trial()
    if DESCRIPTION in unit.contents:
        try:
            description = read_description(unit.contents[DESCRIPTION])
        except ValueError as error:
            seen.append(Observation("xml.readable", str(error), DESCRIPTION))
    if description is not None:
        seen += _described(unit, description)
        behaviour = [each for each in wanted if rules()[each].half == "behaviour" or each == "binary.symbols"]
        if run and any(rules()[each].half == "behaviour" for each in wanted):
            trial = try_unit(unit, description, behaviour, time_limit=time_limit, memory_limit=memory_limit)
    if trial.faults:
        raise Mb2FmuError(
            "the auditor failed", [Fault(each, path.name, "report it, with the FMU") for each in trial.faults]
        )
    version = description.version if description else 2
    found = [finding(each, version) for each in _merged([*seen, *trial.observations]) if each.rule in wanted]
    said = _others(path) if others else []
    found.sort(key=lambda each: SEVERITIES.index(each.severity))
    return AuditResult(
        path.name,
        hashlib.sha256(path.read_bytes()).hexdigest(),
        description.attributes.get("fmiVersion", "") if description else "",
        tuple(description.interfaces) if description else (),
        description.attributes.get("modelName", "") if description else "",
        (*found, *(each for each in said if each.rule == OTHERS)),
        tuple(dict.fromkeys(trial.skipped)),
        tuple(trial.tried),
        tuple(wanted),
        tuple(dict.fromkeys(each.source for each in said)),
        time.monotonic() - began,
    )


def _wanted(only: Sequence[str]) -> list[str]:
    wanted = [name for name in rules() if any(fnmatch.fnmatch(name, pattern) for pattern in only)]
    if not wanted:
        raise Mb2FmuError("no such rule", [Fault(", ".join(only), "", "see mb2fmu audit --list-rules")])
    return wanted


def _described(unit: archive.Archive, description: Description) -> list[Observation]:
    return [
        *archive.check_contents(unit, description),
        *schema.check(unit, description),
        *header.check(description),
        *quantities.check(description),
        *variables.check(description),
        *structure.check(description),
        *binaries.check(unit, description),
    ]


def _merged(seen: Iterable[Observation]) -> list[Observation]:
    """What both kinds of interface show is said once."""
    groups: dict[tuple[str, str, str], list[str]] = {}
    for each in seen:
        kind, _, rest = each.where.partition(", ")
        inner = kind in {"ModelExchange", "CoSimulation"}
        kinds = groups.setdefault((each.rule, each.message, rest if inner else each.where), [])
        if inner and kind not in kinds:
            kinds.append(kind)
    return [
        Observation(rule, message, ", ".join([*([" and ".join(kinds)] if kinds else []), *([where] if where else [])]))
        for (rule, message, where), kinds in groups.items()
    ]


def _others(path: Path) -> list[Finding]:
    """Notes are only that a checker has nothing to say."""
    try:
        said = check_conformance(path)
    except ToolError as error:
        return [
            Finding(
                OTHERS,
                "error",
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
