"""Check the user's texts (names, descriptions, diagram): a unit must be able to carry them."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator

from mb2fmu.errors import Fault

MAX_NAME_LENGTH = 200
"""Characters of a model's name: file systems take 255 bytes, and FMI's identifiers are longer by a prefix."""


def text_faults(text: object, what: str, where: str, *, lines: bool = False) -> Iterator[Fault]:
    """Yield the faults of a text.

    Args:
        text: What stands where a text belongs.
        what: It is, for messages: "the description of m".
        where: It was written.
        lines: It may have several lines.
    """
    if not isinstance(text, str):
        yield Fault(f"{what} is {_shorten_value(text)}, which is no text", where, "write it in quotes: description='…'")
        return
    strange = [mark for mark in text if unicodedata.category(mark) in {"Cc", "Cs"} and not (lines and mark in "\n\t\r")]
    if strange:
        named = ", ".join(sorted({f"U+{ord(mark):04X}" for mark in strange}))
        yield Fault(
            f"{what} holds control characters ({named})", where, "write one line" if not lines else "leave them out"
        )


def _shorten_value(value: object) -> str:
    """Return a value as Python writes it, shortened where it is long."""
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:37]}…"
