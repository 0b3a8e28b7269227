"""One word for one thing: ``scripts/vocabulary.py`` finds none of the words that others have replaced."""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "scripts"))
import vocabulary  # noqa: E402 - a script, not a package


def test_no_replaced_word_is_left() -> None:
    assert [line for name in vocabulary.files() for line in vocabulary.find_replaced_words(ROOT / name, name)] == []


def test_replaced_words_are_looked_for_at_the_beginning_of_words() -> None:
    """Which takes half of the time; a pattern that begins otherwise would be found nowhere."""
    assert [row.pattern for row in vocabulary.REPLACED if not row.pattern.startswith(r"\b")] == []


def test_replaced_words_are_found_where_people_read_them(tmp_path: Path) -> None:
    text = 'x = proof  # a name is no text\n# the proof fell short\ny = "a native unit of mass"\n'
    (tmp_path / "planted.py").write_text(text, encoding="utf-8")
    found = list(vocabulary.find_replaced_words(tmp_path / "planted.py", "planted.py"))
    assert [line.split(":")[1] for line in found] == ["2", "2", "3"]


def test_programs_of_the_shell_are_read_too() -> None:
    assert {"scripts/plant_faults", "tests/planted/fault.py"} <= set(vocabulary.files())
