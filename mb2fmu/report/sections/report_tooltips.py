"""Words of the report that need an explanation: shown on pointing at them, and listed in the page."""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType

from markupsafe import Markup, escape

EXPLANATIONS: Mapping[str, str] = MappingProxyType(
    {
        "bound": (
            "The largest difference between FMU and reference that is accepted: what the tolerance allows, "
            "multiplied by how strongly the motion magnifies small differences."
        ),
        "error / bound": "How much of the accepted difference is used up. Below 1: passed.",
        "one-step error": (
            "How far the FMU's next state is from where the reference goes in one communication step from the "
            "FMU's own state. Earlier errors do not count in it."
        ),
        "balance": "What every true motion keeps, or what follows from other quantities: energy, for example.",
        "horizon": (
            "In chaotic motion small differences grow until nothing can be compared. Up to this time the reference "
            "knows itself well enough to judge the FMU."
        ),
        "predictable until": (
            "The time until which this variable is compared with the reference: its horizon, or the end."
        ),
        "reference": "The same motion, computed apart from the FMU: other equations, another solver, tighter.",
        "uncertainty": "How much the reference itself may be off, estimated from a second, tighter run.",
        "exercised": (
            "The quantity was given another value, and an FMU that ignores it would have left its bounds. "
            "What is not exercised may be right: nothing that was judged depends on it."
        ),
    }
)
"""Word → what it means here, in one or two plain sentences."""

_EXPLAINED_WORD_PATTERN = re.compile(
    rf"(?<!\w)({'|'.join(sorted(map(re.escape, EXPLANATIONS), key=len, reverse=True))})(?!\w)", re.IGNORECASE
)


def add_tooltips(text: str) -> Markup:
    """Return a text for the page in which each word's first occurrence carries its explanation."""
    explained: set[str] = set()
    pieces = []
    for k, piece in enumerate(_EXPLAINED_WORD_PATTERN.split(text)):
        word = piece.lower()
        if k % 2 == 0 or word in explained:
            pieces.append(escape(piece))
        else:
            explained.add(word)
            pieces.append(Markup('<dfn tabindex="0" title="{}">{}</dfn>').format(EXPLANATIONS[word], piece))
    return Markup().join(pieces)
