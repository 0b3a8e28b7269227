"""Names of variables and joints in the words of descriptions and notes."""

from __future__ import annotations


def format_variable_name_as_words(word: str) -> str:
    """Return the last parts of a variable's name as words: ``angular velocity x``."""
    return word.replace("_", " ").replace(".", " ")


def format_name_list(names: list[str]) -> str:
    """Return names for a message, with the plural's s in front if there are several."""
    return f"{'s' if len(names) > 1 else ''} {', '.join(names)}"
