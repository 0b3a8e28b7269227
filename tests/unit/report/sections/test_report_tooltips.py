"""Words that are explained where they stand."""

from __future__ import annotations

import html
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mb2fmu.report.sections.report_tooltips import EXPLANATIONS, add_tooltips

PIECES = st.lists(st.sampled_from([*EXPLANATIONS, "of", "<b>", "&", "rebound", "Bounds", ":", "12"]), max_size=12)


@given(PIECES)
def test_the_text_stays_and_each_word_is_explained_once(pieces: list[str]) -> None:
    text = " ".join(pieces)
    shown = str(add_tooltips(text))
    assert html.unescape(re.sub(r"</?dfn[^>]*>", "", shown)) == text
    marked = re.findall(r"<dfn[^>]*>([^<]*)</dfn>", shown)
    assert len({html.unescape(word).lower() for word in marked}) == len(marked)
    assert bool(marked) == any(piece in EXPLANATIONS for piece in pieces)


@pytest.mark.parametrize("word", list(EXPLANATIONS))
def test_every_word_is_found_also_with_a_capital(word: str) -> None:
    assert str(add_tooltips(f"The {word.capitalize()}: 3")).count("<dfn") == 1
    assert html.escape(EXPLANATIONS[word], quote=True).replace("&#x27;", "&#39;") in str(add_tooltips(word))
