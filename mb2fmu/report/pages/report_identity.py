"""Decide whether a report belongs to an FMU: the report names the FMU's hash, in a form for programs.

A page beside a unit names the archive, byte by byte. The page within an FMU cannot: it is a part of the archive. It
names the core: the FMU's files without report and reference, which does not depend on how they are compressed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from html.parser import HTMLParser

_META_NAME_PREFIX = "mb2fmu:"
_META_NAMES = ("model", "verdict", "unit", "core")


@dataclass(frozen=True, slots=True)
class ReportClaim:
    """What a report states about itself.

    Attributes:
        model: Name of the model.
        verdict: ``passed``, ``failed``, or empty: nobody has run the FMU.
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


def list_report_claims(model: str, verdict: str, unit: str, core: str) -> Mapping[str, str]:
    """Return names and contents of the ``meta`` elements for :func:`read_report_claim`, of a ``ReportClaim``."""
    return {
        f"{_META_NAME_PREFIX}{name}": text
        for name, text in zip(_META_NAMES, (model, verdict, unit, core), strict=True)
        if text
    }


def read_report_claim(page: bytes) -> ReportClaim | None:
    """Read the verdict and the FMU's hash from a page; None if the page is no report of mb2fmu."""
    reader = _MetaElementReader()
    reader.feed(page.decode(errors="replace").partition("<body")[0])
    found = {name: reader.found.get(f"{_META_NAME_PREFIX}{name}", "") for name in _META_NAMES}
    claim = ReportClaim(**found)
    return claim if claim.model and (claim.unit or claim.core) else None


class _MetaElementReader(HTMLParser):
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
