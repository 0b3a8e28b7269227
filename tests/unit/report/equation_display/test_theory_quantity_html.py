"""Graph and Kane's quantities in pages and notebooks: all of them, well formed, equal to what the command shows."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import sympy as sm
from lxml import etree
from mechanisms import mechanism_of

import mb2fmu
from mb2fmu.mechanics.equations.equations_of_motion import SymbolAssignment
from mb2fmu.mechanics.equations.theory_quantities import TheoryQuantities
from mb2fmu.mechanics.formulations.kane_tmt_lagrange_theory_quantities import form_theory_quantities
from mb2fmu.mechanics.mechanism import Mechanism
from mb2fmu.pipeline.run_and_report import report_pages

MODELS = Path(__file__).parents[4] / "models"


@pytest.fixture(scope="module")
def mechanism() -> Mechanism:
    return mechanism_of(mb2fmu.load(MODELS / "chaplygin_sleigh.py"))


def numbers(shown: TheoryQuantities) -> np.ndarray:
    """All entries at a point that is the same for symbols of one name."""
    known: dict[sm.Basic, sm.Expr] = {}
    entries = [e for section in shown.sections for q in section.quantities for e in q.entries]
    given: set[sm.Symbol] = set().union(*(e.free_symbols for e in entries))
    for item in shown.intermediates:
        assert isinstance(item, SymbolAssignment)
        given |= item.expression.free_symbols
    made = {item.symbol for item in shown.intermediates if isinstance(item, SymbolAssignment)}
    assert not {s.name for s in made} & {s.name for s in given - made}
    known |= {symbol: sm.Float(0.5 + (sum(map(ord, symbol.name)) * 0.37) % 1) for symbol in given - made}
    for item in shown.intermediates:
        assert isinstance(item, SymbolAssignment)
        known[item.symbol] = item.expression.xreplace(known)
    return np.array([float(e.xreplace(known)) for e in entries])


def test_what_is_not_contracted_is_the_same(mechanism: Mechanism) -> None:
    plain = form_theory_quantities(mechanism, ["partial-velocities"], contracted=False)
    shown = form_theory_quantities(mechanism, ["partial-velocities"])
    assert [(q.letter, q.of, q.index) for q in plain.sections[0].quantities] == [
        (q.letter, q.of, q.index) for q in shown.sections[0].quantities
    ]
    values = numbers(plain)
    assert np.ptp(values) > 0.5
    np.testing.assert_allclose(values, numbers(shown), rtol=1e-12, atol=1e-14)


def test_a_page_has_the_graph_and_every_quantity(mechanism: Mechanism) -> None:
    theory = report_pages.form_graph_and_theory_content(mechanism, limited=False)
    assert "data:image/svg+xml" in theory.graph
    shown = form_theory_quantities(mechanism, report_pages.KANE_QUANTITY_KINDS, contracted=False)
    for block, section in zip(theory.blocks, shown.sections, strict=False):
        assert block.title == section.title
        assert len(block.lines) == len(section.quantities) > 0
        for line, quantity in zip(block.lines, section.quantities, strict=True):
            etree.fromstring(f"<p>{line}</p>")
            assert quantity.of in line
    few = report_pages.form_graph_and_theory_content(mechanism, limited=True)
    assert all(len(block.lines) <= report_pages.MAX_QUANTITY_LINES_IN_FMU for block in few.blocks)


def test_many_lines_are_counted_and_large_mechanisms_say_how_to_see_them(
    mechanism: Mechanism, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(report_pages, "MAX_QUANTITY_LINES_IN_FMU", 2)
    few = report_pages.form_graph_and_theory_content(mechanism, limited=True)
    whole = report_pages.form_graph_and_theory_content(mechanism, limited=False)
    first, all_lines = few.blocks[0], whole.blocks[0].lines
    assert first.lines == all_lines[:2]
    assert f"{len(all_lines) - 2} further lines" in first.note
    monkeypatch.setattr(report_pages, "MAX_PARTIAL_VELOCITIES", 1)
    large = report_pages.form_graph_and_theory_content(mechanism, limited=False)
    assert not large.blocks
    assert "--show partial-velocities" in large.text


def test_a_notebook_unfolds_them() -> None:
    shown = mb2fmu.quantities(MODELS / "chaplygin_sleigh.py", "generalized-active-forces")
    text = shown._repr_html_()
    assert text.count("<details") >= 1
    assert "Generalized active forces" in text
    etree.fromstring(f"<div>{text}</div>".replace("<details open>", "<details>"))
