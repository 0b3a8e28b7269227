"""C spellings of Python values: numbers that read back to the same bits, strings, comments."""

from __future__ import annotations

import math
from collections.abc import Sequence

_ELEMENTS_PER_LINE = 20
_UNESCAPED_CHARACTERS = frozenset(
    b" !#$%&'()*+,-./:;<=>@[]^_`{|}~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
)


def format_c_double(value: float) -> str:
    """Return a double as a C expression of type double; negative ones stand in parentheses."""
    if math.isfinite(value):
        return repr(value) if math.copysign(1.0, value) > 0.0 else f"({value!r})"
    return {math.inf: "MB2FMU_INFINITY", -math.inf: "(-MB2FMU_INFINITY)"}.get(value, "MB2FMU_NAN")


def format_c_string(text: str) -> str:
    """Return a string literal, UTF-8.

    Everything but plain ASCII is an octal escape, which ends after three digits whatever follows; so is ``?``, because
    C99 reads two of them as the beginning of a trigraph.
    """
    return (
        '"' + "".join(chr(byte) if byte in _UNESCAPED_CHARACTERS else f"\\{byte:03o}" for byte in text.encode()) + '"'
    )


def format_c_comment(text: str) -> str:
    """Return text as a C comment; nothing in the text can end it."""
    return f"/* {escape_comment_text(text)} */"


def escape_comment_text(text: str) -> str:
    """Return text for the inside of a comment."""
    shown = "".join(c if c.isprintable() and c != "\\" else " " for c in text)
    return shown.replace("*/", "* /").replace("/*", "/ *")


def format_array_elements(values: Sequence[object]) -> str:
    """Return the elements of an array as text, several on each line."""
    rows = (values[i : i + _ELEMENTS_PER_LINE] for i in range(0, len(values), _ELEMENTS_PER_LINE))
    return ",\n".join("    " + ", ".join(map(str, row)) for row in rows)
