"""Checks the vocabulary: one word for one thing. Prints each line with a replaced word; exit code 1 if there is one.

``python scripts/vocabulary.py [FILE …]``: all text of the package, docs and scripts if no file is named. A word of
:data:`REPLACED` is allowed where its row says so, with the reason.
"""

from __future__ import annotations

import io
import re
import subprocess
import sys
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]


@dataclass(frozen=True)
class Replaced:
    """A word that is no longer used.

    Attributes:
        pattern: Regular expression of the word in text; case does not matter.
        instead: The word to use.
        allowed: Beginnings of paths where it may stand.
        why: The reason for that.
    """

    pattern: str
    instead: str
    allowed: tuple[str, ...] = ()
    why: str = ""


REPLACED = (
    Replaced(r"\b(native|Python|foreign|core|compiled|hosted|running|exported|wrong|unusual) units?\b", "FMU"),
    Replaced(r"\bunits? (that|which) (moves?|runs?|can be|was run|is run|passed|failed)\b", "FMU"),
    Replaced(r"\bunits? of (FMI|Python|C)\b", "FMUs of"),
    Replaced(r"\btranslation FMUs?\b|\bFMUs? of (measure|measurement|round-off)\b", "unit: no FMU is meant"),
    Replaced(r"\b(proofs?|proven|unproven|proves?|proved|proving)\b", "validation, validated"),
    Replaced(r"\b(fell|falls?) short\b", "failed"),
    Replaced(r"\b(held|holds?) against\b", "compared with"),
    Replaced(r"\bmoved experiments?\b", "perturbed experiment"),
    Replaced(r"\bin mid-run\b", "during the run"),
    Replaced(r"\b(no )?influence seen\b", "exercised, not exercised"),
    Replaced(r"\brungs?\b|\bladder of the\b", "independent checks"),
    Replaced(r"\bstep defects?\b", "one-step error"),
    Replaced(r"\bsecond reading\b", "independent import"),
    Replaced(r"\bhanded-over\b", "source object"),
    Replaced(r"\bjudged to (the|[0-9{])", "predictable until"),
    Replaced(r"\bdrawn to (the constraints|1)\b", "stabilized on, stabilized at"),
    Replaced(r"\b(impacts?|contacts|struck|order) (=? ?['\"`]*)?(in turn|at once)\b", "sequential, simultaneous"),
    Replaced(r"\b(no|the|a|model's or) unit('s own experiment| (was|is) (tried|made))\b", "FMU"),
    Replaced(
        r"\b(is|are|was|were|each) told\b|\btold apart\b|\bcannot be told\b|\btells? [\w ]+ apart\b|\band told\b",
        "reported, distinguished, known",
        (
            "mb2fmu/fmu/emit_c/",
            "mb2fmu/fmu/emit_python/",
            "mb2fmu/targets/matlab/",
            "mb2fmu/audit/behaviour/instance/remote_host/",
        ),
        "sources that FMUs contain, whose bytes stay; a protocol in C",
    ),
    Replaced(r"\b(deeds?|reaping|yardsticks?)\b", "system calls, process clean-up, reference data"),
    Replaced(r"\bblows?\b|\bstruck\b", "impact"),
    Replaced(
        r"\blets? go\b",
        "release, open, slip",
        ("mb2fmu/fmu/emit_c/", "mb2fmu/targets/modelica/templates/"),
        "sources that FMUs and targets contain, whose bytes stay",
    ),
    Replaced(
        r"\bas asked\b|\basked of\b|\bask for\b",
        "requested",
        ("mb2fmu/fmu/emit_c/", "docs/decisions/"),
        "sources of FMUs",
    ),
    Replaced(
        r"\bhanded (over|back|on|in|out)\b",
        "given, returned, passed",
        ("mb2fmu/fmu/emit_c/", "mb2fmu/compiler/arithmetic/", "docs/decisions/"),
        "sources that FMUs contain; decisions of the past",
    ),
    Replaced(r"\bghosts?\b", "reference, overlay"),
    Replaced(r"\bpage in a unit\b|\bFMI [123] units?\b|\bunit and reference\b", "FMU"),
)
# All patterns begin at the beginning of a word: to try them there alone takes half of the time, and so does to compare
# small letters with small letters.
_ANY_PATTERN = rf"\b(?=\w)(?:{'|'.join(row.pattern for row in REPLACED)})"
_ANY = re.compile(re.sub(r"(?<!\\)[A-Z]", lambda letter: letter[0].lower(), _ANY_PATTERN))
"""Is searched for in lower case."""
PLACES = ("mb2fmu", "scripts", "docs", "models", "systems", "tests/planted", "README.md", "CONTRIBUTING.md")
SKIPPED = ("scripts/vocabulary.py",)
SUFFIXES = (".py", ".md", ".jinja", ".c", ".h", ".js", ".toml", ".sh", "")
"""Programs of the shell have none."""


def texts(path: Path) -> Iterator[tuple[int, str]]:
    """Yield (line, text) of a file: comments and strings with spaces of Python, every line of other files."""
    content = path.read_text(encoding="utf-8")
    if path.suffix != ".py":
        yield from enumerate(content.splitlines(), 1)
        return
    for token in tokenize.generate_tokens(io.StringIO(content).readline):
        if token.type in (tokenize.COMMENT, tokenize.STRING) and " " in token.string:
            yield from enumerate(token.string.split("\n"), token.start[0])


def find_replaced_words(path: Path, name: str) -> Iterator[str]:
    """Yield a line for each replaced word in a file; ``name``: its path in the repository."""
    if not _ANY.search(path.read_text(encoding="utf-8").lower()):
        return
    for number, text in texts(path):
        for row in REPLACED if _ANY.search(text.lower()) else ():
            found = re.search(row.pattern, text, re.IGNORECASE)
            if found and not name.startswith(row.allowed or ("\0",)):
                yield f"{name}:{number}: {found[0]!r}: say {row.instead}"


def files() -> Iterator[str]:
    """Yield the paths of all kept files that have text of ours."""
    done = subprocess.run(["git", "ls-files", *PLACES], cwd=ROOT, capture_output=True, text=True, check=True)  # noqa: S607
    for name in done.stdout.splitlines():
        if Path(name).suffix in SUFFIXES and not name.startswith(SKIPPED):
            yield name


def main() -> int:
    """Print all replaced words that are left; the exit code says whether there are any."""
    lines = [line for name in sys.argv[1:] or files() for line in find_replaced_words(ROOT / name, name)]
    print(*lines, sep="\n")
    return int(bool(lines))


if __name__ == "__main__":
    sys.exit(main())
