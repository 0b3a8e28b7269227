"""Content of the page as plain records: the template prints them and decides nothing.

Decide whether a report belongs to an FMU: the report names the FMU's hash, in a form for programs.

A page beside an FMU names the archive, byte by byte. The page within an FMU cannot: it is a part of the archive. It
names the core: the FMU's files without report and reference, which does not depend on how they are compressed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from html.parser import HTMLParser
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal

from markupsafe import Markup

if TYPE_CHECKING:
    from mb2fmu.report.equation_display.equation_html import EquationHtmlBlock
    from mb2fmu.report.figures.svg_chart import LineStyle
    from mb2fmu.validation.validation_result import ValidationVerdict
    from mb2fmu.visualization import AnimationPageElement

_META_NAME_PREFIX = "mb2fmu:"
_META_NAMES = ("model", "verdict", "unit", "core")


VerdictColour = Literal["good", "bad", "neutral"]


@dataclass(frozen=True, slots=True)
class ReportVerdictAndFmuHashes:
    """What a report states about itself.

    Attributes:
        model: Name of the model.
        verdict: As ``ValidationResult.verdict``, or empty: nobody has run the FMU.
        unit: SHA-256 of the FMU's archive, or empty.
        core: Hash of its core, or empty.
    """

    model: str
    verdict: str
    unit: str
    core: str

    def is_about(self, unit: str, core: str) -> bool:
        """Return whether it is about the FMU with these hashes: the archive decides, if the report names it."""
        if self.unit:
            return self.unit == unit
        return bool(self.core) and self.core == core


def _list_report_meta_elements(model: str, verdict: str, unit: str, core: str) -> Mapping[str, str]:
    """Return names and contents of the ``meta`` elements that :func:`read_report_verdict_and_fmu_hashes` reads."""
    return {
        f"{_META_NAME_PREFIX}{name}": text
        for name, text in zip(_META_NAMES, (model, verdict, unit, core), strict=True)
        if text
    }


def read_report_verdict_and_fmu_hashes(page: bytes) -> ReportVerdictAndFmuHashes | None:
    """Read the verdict and the FMU's hash from a page; None if the page is no report of mb2fmu."""
    reader = _HtmlMetaElementReader()
    reader.feed(page.decode(errors="replace").partition("<body")[0])
    found = {name: reader.found.get(f"{_META_NAME_PREFIX}{name}", "") for name in _META_NAMES}
    claim = ReportVerdictAndFmuHashes(**found)
    return claim if claim.model and (claim.unit or claim.core) else None


class _HtmlMetaElementReader(HTMLParser):
    """Collects the ``meta`` elements of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.found: dict[str, str] = {}

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Keep name and content; of two with one name the first."""
        given = dict(attrs)
        name, content = given.get("name"), given.get("content")
        if tag == "meta" and name and content:
            self.found.setdefault(name, content)


@dataclass(frozen=True, slots=True)
class ReportProvenance:
    """Origin of the report; empty fields are not printed.

    Attributes:
        unit: SHA-256 of the archive that the page is about; empty where the page is packed in it.
        core: Hash of the FMU's files but for report and reference, see ``native_fmu_assembly.hash_file_tree``.
        hashes: What else → its hash (the model file).
        platforms: For which the FMU has a binary, as FMI names them; empty: not known, or none needed.
        versions: Software → version.
        commands: What to type to get the same result again.
        timings: Step → seconds. Leave it out where the same input must give the same bytes.
        made: When and where, as text. Leave it out where the same input must give the same bytes.
    """

    unit: str = ""
    core: str = ""
    hashes: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    platforms: tuple[str, ...] = ()
    versions: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    commands: tuple[str, ...] = ()
    timings: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))
    made: str = ""


@dataclass(frozen=True, slots=True)
class ReportFact:
    """A term and its value; ``number`` is the exact value of a rounded text."""

    term: str
    text: str
    state: VerdictColour = "neutral"
    note: str = ""
    number: str | None = None


@dataclass(frozen=True, slots=True)
class VerdictText:
    """The verdict: one sentence in words (``words``), a headline with counts, and a few sentences."""

    verdict: ValidationVerdict
    words: str
    headline: str
    sentences: tuple[str, ...]
    facts: tuple[ReportFact, ...]

    @property
    def state(self) -> Literal["good", "bad", "doubt"]:
        """Its colour."""
        return "good" if self.verdict == "passed" else "bad" if self.verdict == "failed" else "doubt"


@dataclass(frozen=True, slots=True)
class RoundedDisplayNumber:
    """A number for people (``text``) and for machines (``value``, reads back to the same bits)."""

    text: str
    value: str


@dataclass(frozen=True, slots=True)
class VariableErrorRow:
    """One line of a table of errors.

    Attributes:
        name: Variable or invariant.
        anchor: Of its chart, or empty.
        unit: Of the errors and the bound.
        largest: Largest error.
        error: Error where error/bound is largest.
        bound: There.
        ratio: There.
        bar_length: Length of a bar for it, 0 … 100 %, on a logarithmic scale.
        when: Time there, s.
        verdict: In a word.
        state: Its colour.
        remark: Whatever else has to be known.
    """

    name: str
    anchor: str
    unit: str
    largest: RoundedDisplayNumber
    error: RoundedDisplayNumber
    bound: RoundedDisplayNumber
    ratio: RoundedDisplayNumber
    bar_length: float
    when: RoundedDisplayNumber
    verdict: str
    state: VerdictColour
    remark: str = ""


@dataclass(frozen=True, slots=True)
class ReportFigure:
    """A chart with its heading and legend."""

    anchor: str
    heading: str
    text: str
    picture: Markup
    legend: tuple[tuple[LineStyle, str], ...]
    state: VerdictColour = "neutral"


@dataclass(frozen=True, slots=True)
class ReportFigureGroup:
    """Charts that belong together."""

    title: str
    text: str
    figures: tuple[ReportFigure, ...]


@dataclass(frozen=True, slots=True)
class ExternalCheckerRow:
    """Result of one checker or importer."""

    name: str
    verdict: str
    state: VerdictColour
    messages: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ApiCheckRow:
    """One family of calls in the middle of a run, run as one interface type."""

    name: str
    kind: str
    formula: str
    ratio: RoundedDisplayNumber
    count: str
    where: str
    verdict: str
    state: VerdictColour
    remark: str = ""


@dataclass(frozen=True, slots=True)
class ExercisedQuantityRow:
    """Whether a parameter, start value or input influenced a judged variable.

    Attributes:
        name: FMU name.
        role: What it is.
        unit: Of ``default`` and ``moved``.
        default: Its value in the default experiment.
        moved: In the moved one; of an input the largest.
        tried: The range over which it was tried.
        ratio: What it moves, over the bound.
        most: What it moves most.
        verdict: In words.
        state: Its colour.
        remark: Why it is not exercised.
    """

    name: str
    role: str
    unit: str
    default: RoundedDisplayNumber
    moved: RoundedDisplayNumber
    tried: str
    ratio: RoundedDisplayNumber
    most: str
    verdict: str
    state: VerdictColour
    remark: str = ""


@dataclass(frozen=True, slots=True)
class CoverageSectionContent:
    """Checks beside the default experiment; ``moved``: interface type → its worst quantities."""

    text: str
    moved: Mapping[str, tuple[VariableErrorRow, ...]]
    signals: tuple[tuple[str, str], ...]
    calls: tuple[ApiCheckRow, ...]
    coverage_rows: tuple[ExercisedQuantityRow, ...]
    coverage_text: str


@dataclass(frozen=True, slots=True)
class EventComparisonRow:
    """One event of a run.

    Attributes:
        number: In the order of time.
        name: The switch that came first.
        expected: Instant by the reference, s; None: it has no such event.
        found: By the FMU; None: not found, or not looked for.
        difference: Of both.
        allowed: How large that may be; None: it is not judged.
        ratio: The largest of the difference and of all errors just before and after, over what is allowed.
        jumps: What jumps most.
        verdict: In a word.
        state: Its colour.
        remark: Why it failed or is not judged.
    """

    number: int
    name: str
    expected: RoundedDisplayNumber | None
    found: RoundedDisplayNumber | None
    difference: RoundedDisplayNumber | None
    allowed: RoundedDisplayNumber | None
    ratio: RoundedDisplayNumber | None
    jumps: tuple[str, ...]
    verdict: str
    state: VerdictColour
    remark: str = ""


@dataclass(frozen=True, slots=True)
class EventComparisonTable:
    """Events of one run; ``text`` says what the table leaves out."""

    heading: str
    rows: tuple[EventComparisonRow, ...]
    text: str


@dataclass(frozen=True, slots=True)
class IndependentCheckRow:
    """One independent check of the ladder that shows how independent the validation was.

    Attributes:
        name: What was compared with what.
        how: By which numbers.
        points: How many; empty where it was not done.
        ratio: Largest error over its bound; None where it was not done.
        worst: Of what, and when.
        verdict: In a word.
        state: Its colour.
        remark: Why it failed or was not done.
    """

    name: str
    how: str
    points: str
    ratio: RoundedDisplayNumber | None
    worst: str
    verdict: str
    state: VerdictColour
    remark: str = ""


@dataclass(frozen=True, slots=True)
class FmuVariableRow:
    """One variable of the FMU."""

    name: str
    symbol: Markup
    role: str
    unit: str
    start: str
    bounds: str
    description: str


@dataclass(frozen=True, slots=True)
class TheorySectionContent:
    """Theory of the mechanism itself.

    Attributes:
        graph: Picture of bodies, joints, loads, constraints and sensors; may be empty.
        is_large_graph: The picture is large, and folded.
        blocks: Quantities of Kane's method.
        text: What is to be said of them, or why there are none.
    """

    graph: Markup = field(default_factory=Markup)
    is_large_graph: bool = False
    blocks: tuple[EquationHtmlBlock, ...] = ()
    text: str = ""


@dataclass(frozen=True, slots=True)
class ReportPageContent:
    """Everything that the page shows, in order; without a verdict all parts of a validation are left out.

    ``licences`` is where they stand, seen from the page; may be empty. ``still`` is the mechanism where nothing moves.
    """

    title: str
    description: str
    verdict: VerdictText | None
    facts: tuple[ReportFact, ...]
    picture: Markup
    drawing: str
    errors: tuple[VariableErrorRow, ...]
    errors_text: str
    others: Mapping[str, tuple[VariableErrorRow, ...]]
    groups: tuple[ReportFigureGroup, ...]
    invariants: tuple[VariableErrorRow, ...]
    balances: ReportFigureGroup
    reference: str
    checks: tuple[ExternalCheckerRow, ...]
    equations: tuple[EquationHtmlBlock, ...]
    equations_text: str
    variables: tuple[FmuVariableRow, ...]
    validation_facts: Mapping[str, str]
    timings: Mapping[str, str]
    provenance: ReportProvenance
    licences: str = ""
    animation: AnimationPageElement | None = None
    still: Markup = field(default_factory=Markup)
    exercised: CoverageSectionContent | None = None
    independent_checks: tuple[IndependentCheckRow, ...] = ()
    events: tuple[EventComparisonTable, ...] = ()
    theory: TheorySectionContent = field(default_factory=TheorySectionContent)

    @property
    def kind(self) -> str:
        """Kind of the page, as in its headline and running title."""
        return "Validation report" if self.verdict else "Description of the FMU"

    @property
    def report_claims(self) -> Mapping[str, str]:
        """Statements of the page about itself for programs: see ``belonging``."""
        verdict = "" if self.verdict is None else self.verdict.verdict
        return _list_report_meta_elements(self.title, verdict, self.provenance.unit, self.provenance.core)

    @property
    def hashes(self) -> Mapping[str, str]:
        """All hashes, by their objects."""
        named = {"FMU (the archive)": self.provenance.unit, "core FMU, unpacked files": self.provenance.core}
        return {what: text for what, text in named.items() if text} | dict(self.provenance.hashes)
