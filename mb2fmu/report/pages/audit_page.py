"""An audit for people: in a terminal, and as one self-contained HTML page."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping
from itertools import groupby

from rich.console import RenderableType
from rich.text import Text

from mb2fmu.audit import SEVERITIES, AuditFinding, AuditResult, AuditRule, audit_rules_by_id
from mb2fmu.audit.rules_and_findings import Severity
from mb2fmu.report.summary_lines import SummaryState, VerdictSummaryLine

SEVERITY_STYLES = {"error": "bold red", "warning": "bold yellow", "note": "cyan"}


def format_audit_headline(result: AuditResult) -> str:
    """Return the counts in words."""
    parts = [
        f"{result.count(each)} {each}{'s' * (result.count(each) != 1)}" for each in SEVERITIES if result.count(each)
    ]
    counts_text = ", ".join(parts) or ("nothing new found" if result.waived else "nothing found")
    return f"{counts_text}, {len(result.waived)} waived" if result.waived else counts_text


def format_audit_for_terminal(result: AuditResult) -> Iterator[RenderableType]:
    """Yield blocks for a terminal: findings by rule, remedies, and a last line."""
    for (severity, name, source_), group in groupby(
        result.findings, key=lambda each: (each.severity, each.rule, each.source)
    ):
        found = list(group)
        text = Text()
        text.append(f"{severity} ", style=SEVERITY_STYLES[severity])
        text.append(name if source_ == "mb2fmu" else source_, style="bold")
        if found[0].section:
            text.append(f"   FMI {result.version or '2.0'}: {found[0].section}", style="dim")
        for each in found:
            text.append(f"\n  {each.where}: " if each.where else "\n  ", style="dim")
            text.append(each.message)
        if found[0].remedy:
            text.append(f"\n  → {found[0].remedy}", style="dim")
        yield text
    for line in _list_remarks(result):
        yield Text(line, style="dim")
    who = f" with {', '.join(result.consulted)}" if result.consulted else ""
    effort = f"{len(result.judged)} rules judged, {len(result.unjudged)} not, {len(result.tried)} trials{who}"
    effort += f" in {result.seconds:.1f} s"
    if result.runnable is False:
        yield Text("the archive has no binary for this machine: what it does when it runs was not judged", style="bold")
    last = f"{result.fmu}: {format_audit_headline(result)}; {effort}"
    good = result.exit_code() == 0
    yield Text(last, style="bold green" if good else "bold red")


def summarize_audit(result: AuditResult, fail_on: Severity) -> tuple[VerdictSummaryLine, list[VerdictSummaryLine]]:
    """Return the headline and the lines of an audit: what was judged, the worst findings, what was not judged."""
    passed = result.exit_code(fail_on) == 0
    headline = VerdictSummaryLine(
        "",
        f"{result.fmu} {'passed' if passed else 'failed'}: {format_audit_headline(result)} ({result.seconds:.1f} s)",
        "good" if passed else "bad",
    )
    kinds = ", ".join(result.kinds) or "no interface"
    lines = [VerdictSummaryLine("FMU", f"FMI {result.version or 'unknown'}, {kinds}: {result.model}")]
    lines += list(_summarize_findings(result))
    tried = f"{len(result.judged)} rules, {len(result.tried)} trials with the running FMU"
    lines.append(VerdictSummaryLine("Judged", tried if result.runnable else f"{len(result.judged)} rules"))
    if result.consulted:
        lines.append(VerdictSummaryLine("Checkers", ", ".join(result.consulted)))
    if result.runnable is False:
        lines.append(VerdictSummaryLine("", "the archive has no binary for this machine: it was not run", "doubt"))
    lacking = sum(map(len, _group_unjudged_rules(result).values()))
    if lacking or result.skipped or result.waived or result.idle:
        counts = [f"{lacking} rules not judged" if lacking else "", *result.skipped[:1]]
        counts += [f"{len(result.waived)} findings waived" if result.waived else ""]
        counts += [f"{len(result.idle)} waivers match nothing" if result.idle else ""]
        lines.append(VerdictSummaryLine("Left out", "; ".join(filter(None, counts)) + " (reasons with -v)"))
    return headline, lines


MAX_LISTED_RULES = 5


def _summarize_findings(result: AuditResult) -> Iterator[VerdictSummaryLine]:
    """Yield a line for each of the worst rules that are broken: the first finding, how many, and the remedy."""
    groups = [
        (name, list(found))
        for name, found in groupby(
            result.findings, lambda each: (each.severity, each.rule if each.source == "mb2fmu" else each.source)
        )
    ]
    for k, ((severity, rule), found) in enumerate(groups[:MAX_LISTED_RULES]):
        count = sum(each.number for each in found)
        times = f" ({count} times)" if count > 1 else ""
        first = found[0]
        place = f"{first.where}: " if first.where else ""
        text = textwrap.shorten(f"{severity} {rule}{times}: {place}{first.message}", 200, placeholder=" …")
        state: SummaryState = "bad" if severity == "error" else "doubt" if severity == "warning" else "plain"
        yield VerdictSummaryLine("Found" if k == 0 else "", text, state)
        if first.remedy and severity != "note":
            yield VerdictSummaryLine("", textwrap.shorten(f"-> {first.remedy}", 140, placeholder=" …"))
    if len(groups) > MAX_LISTED_RULES:
        yield VerdictSummaryLine("", f"{len(groups) - MAX_LISTED_RULES} more rules with -v")


def _list_remarks(result: AuditResult) -> Iterator[str]:
    """Yield remarks: accepted findings, rules that were not judged, limits that could not be set."""
    for found, why in result.waived:
        yield f"waived ({why}): {found}"
    for idle in result.idle:
        yield f"{idle}: correct its patterns (* stands for anything), or delete it"
    for reason in result.skipped:
        yield f"not judged: {reason}"
    for reason, names in _group_unjudged_rules(result).items():
        yield f"not judged: {', '.join(names)}: {reason}"
    for lacking in result.lacking:
        yield f"not bounded: {lacking}"


def _group_unjudged_rules(result: AuditResult) -> Mapping[str, list[str]]:
    """Return reason → rules that were not judged for it; those of other versions are left out."""
    found: dict[str, list[str]] = {}
    for name, why in result.unjudged.items():
        if not why.endswith("has nothing of it"):
            found.setdefault(why, []).append(name)
    return found


def format_audit_rules_as_text() -> Iterator[str]:
    """Yield all rules as lines of text."""
    for rule in audit_rules_by_id().values():
        yield f"{rule.id:26} {rule.severity:8} {rule.says}"
        for version, section in rule.sections.items():
            yield f"{'':26} FMI {version}: {section}"


def format_audit_rules_as_markdown() -> str:
    """Return all rules as tables for the documentation."""
    lines: list[str] = []
    titles = {"description": "What the archive and the description show", "behaviour": "What the running FMU shows"}
    for half, group in groupby(audit_rules_by_id().values(), key=lambda each: each.half):
        lines += [
            f"### {titles[half]}",
            "",
            "| rule | severity | what must hold | FMI 2.0.5 | FMI 3.0.2 |",
            "|---|---|---|---|---|",
        ]
        for rule in group:
            sections = [rule.sections.get(version, "–") for version in (2, 3)]
            lines.append(" | ".join(("", f"`{rule.id}`", rule.severity, rule.says, *sections, "")).strip())
        lines.append("")
    return "\n".join(lines)


def render_audit_page(result: AuditResult) -> bytes:
    """Return one self-contained HTML document in UTF-8."""
    from mb2fmu.report.pages.page_rendering import render_html_document

    found: dict[str, list[AuditFinding]] = {each: [] for each in SEVERITIES}
    for each in result.findings:
        found[each.severity].append(each)
    broken = {each.rule for each in result.findings}
    groups: dict[str, list[tuple[AuditRule, bool]]] = {}
    for name in result.judged:
        groups.setdefault(name.partition(".")[0], []).append((audit_rules_by_id()[name], name in broken))
    unjudged = [(name, why) for why, names in _group_unjudged_rules(result).items() for name in names]
    facts: Mapping[str, str] = {
        "File": result.fmu,
        "SHA-256": result.sha256,
        "FMI version": result.version or "unknown",
        "Interfaces": ", ".join(result.kinds) or "none",
        "Other checkers": ", ".join(result.consulted) or "not run",
        "Took": f"{result.seconds:.1f} s",
    }
    return render_html_document(
        "audit.html.jinja",
        result=result, found=found, groups=groups, facts=facts,
        headline=format_audit_headline(result), unjudged=unjudged,
        version=int(result.version[:1] or 2),
    )  # fmt: skip
